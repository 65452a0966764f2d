"""Cases a second of `fields` (20 fields) and `tools` (10 calls), one thread, measured in turn.

Half of the predictions are right; the others have wrong values, reordered lists or calls, and missing and extra ones.
Beside them, the same predictions through json.loads(json.dumps(...)), so that machines can be compared.
Run: ``python benchmarks/structured.py [CASES] [ROUNDS]``.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from pytest_llmeval import Case, Evaluator, get_evaluator

PATHS = {
    **{f"text_{number}": "text" for number in range(5)},
    **{f"amount_{number}": {"number": {"tolerance": 0.01}} for number in range(3)},
    "date": "date",
    "items": {"list": {"key": "sku"}},
}


def invoice(number: int) -> dict[str, Any]:
    """Return an object with 20 fields: 14 at the top, and three items of two fields each."""
    texts = {f"text_{each}": f"Text {number} of {each}" for each in range(5)}
    amounts = {f"amount_{each}": number * 1.5 + each for each in range(3)}
    others = {f"other_{each}": number + each for each in range(5)}
    items = [{"sku": f"s{each}", "price": number + each} for each in range(3)]
    return {**texts, **amounts, **others, "date": "2024-03-05", "items": items}


def found_invoice(number: int) -> dict[str, Any]:
    """Return what a model found in an invoice."""
    found = invoice(number)
    if number % 2:
        found |= {
            "text_0": "TEXT 0",
            "amount_1": -1,
            "date": "March 5, 2024",
            "items": found["items"][::-1],
            "note": "x",
        }
        del found["other_3"]
    return found


def trace(number: int) -> list[dict[str, Any]]:
    """Return 10 calls of four tools."""
    return [
        {
            "name": f"tool_{each % 4}",
            "arguments": {"query": f"q{each} {number}", "limit": each, "filter": {"year": each}},
        }
        for each in range(10)
    ]


def made_trace(number: int) -> list[dict[str, Any]]:
    """Return the calls that an agent made."""
    calls = trace(number)
    if number % 2:
        calls = [*calls[5:], *calls[:4], {"name": "tool_9", "arguments": {}}]
        calls[0]["arguments"]["limit"] = -1
    return calls


def measuring(evaluator: Evaluator, cases: list[Case]) -> Callable[[], None]:
    """Return what measures all cases."""

    def measure() -> None:
        for case in cases:
            evaluator.measure(case)

    return measure


def copying(cases: list[Case]) -> Callable[[], None]:
    """Return what writes and reads the predictions as JSON."""

    def copy() -> None:
        for case in cases:
            json.loads(json.dumps(case.prediction))

    return copy


def main(cases: int = 5_000, rounds: int = 5) -> None:
    invoices = [Case(str(n), expected=invoice(n), prediction=found_invoice(n)) for n in range(cases)]
    traces = [Case(str(n), expected=trace(n), prediction=made_trace(n)) for n in range(cases)]
    runs = {
        "fields": measuring(get_evaluator("fields", **PATHS), invoices),
        "fields, JSON": copying(invoices),
        "tools": measuring(get_evaluator("tools", order="in_order"), traces),
        "tools, JSON": copying(traces),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            before = time.process_time()
            run()
            seconds[name].append(time.process_time() - before)
    print(f"{cases} cases, {rounds} rounds after one to warm up, processor time")
    for name, times in seconds.items():
        print(f"{name:12} {cases / statistics.median(times[1:]):8.0f} cases a second")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
