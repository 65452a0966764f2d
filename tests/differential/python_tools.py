"""Verdicts of tools in Python, by an interpreter that has them: ``python python_tools.py TOOL INPUT OUTPUT``.

The input holds pairs of a construct and answers, the output a text of T, F and E for each. It imports nothing of ours.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def pydantic_evals(construct: Any) -> Callable[[Any], bool]:
    from datetime import timedelta

    from pydantic_evals import evaluators

    ((name, arguments),) = construct.items()
    if name == "EqualsExpected":
        expected, evaluator = arguments["expected_output"], evaluators.EqualsExpected()
    else:
        expected, evaluator = None, getattr(evaluators, name)(**arguments)

    def verdict(answer: Any) -> bool:
        seconds = timedelta(milliseconds=answer).total_seconds() if name == "MaxDuration" else 0
        found = evaluator.evaluate(SimpleNamespace(output=answer, expected_output=expected, duration=seconds))
        return found is True or getattr(found, "value", False) is True

    return verdict


def inspect_ai(construct: Any) -> Callable[[Any], bool]:
    from inspect_ai import scorer

    ((name, target),) = construct.items()
    score = getattr(scorer, name)()

    def verdict(answer: Any) -> bool:
        state = SimpleNamespace(output=SimpleNamespace(completion=answer))
        found = asyncio.run(score(state, scorer.Target(target)))
        return found.value in ("C", 1, 1.0)

    return verdict


def openai_evals(construct: Any) -> Callable[[Any], bool]:
    """Return what the documentation of string checks, and the source of the registry's classes, say."""
    ((name, ideal),) = construct.items()
    ideals = ideal if isinstance(ideal, list) else [ideal]
    checks: dict[str, Callable[[str], bool]] = {
        "eq": lambda answer: answer == ideal,
        "ne": lambda answer: answer != ideal,
        "like": lambda answer: ideal in answer,
        "ilike": lambda answer: ideal.lower() in answer.lower(),
        "Match": lambda answer: any(answer.startswith(each) for each in ideals),
        "Includes": lambda answer: any(each in answer for each in ideals),
        "JsonMatch": lambda answer: any(_json_equal(answer, each) for each in ideals),
    }
    return checks[name]


def _json_equal(sampled: str, ideal: str) -> bool:
    """Compare as `json_match` of the package evals: key by key, a value of ``None`` is a missing one."""
    try:
        one, other = json.loads(sampled), json.loads(ideal)
    except ValueError:
        return False
    return _parts_equal(one, other)


def _parts_equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return False
    if isinstance(one, dict):
        same = isinstance(other, dict) and one.keys() == other.keys()
        return same and all(_parts_equal(one[key], other[key]) for key in one)
    if isinstance(one, list):
        same = isinstance(other, list) and len(one) == len(other)
        return same and all(map(_parts_equal, one, other))
    return bool(one == other)


TOOLS = {"pydantic-evals": pydantic_evals, "inspect-ai": inspect_ai, "openai-evals": openai_evals}


def main(tool: str, source: Path, target: Path) -> None:
    rows = []
    for construct, answers in json.loads(source.read_text(encoding="utf-8")):
        verdict = TOOLS[tool](construct)
        row = ""
        for each in answers:
            try:
                row += "T" if verdict(each) else "F"
            except Exception:  # noqa: BLE001 (whatever a tool raises is its verdict)
                row += "E"
        rows.append(row)
    name = "documentation" if tool == "openai-evals" else version(tool)
    target.write_text(json.dumps({"version": name, "rows": rows}), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
