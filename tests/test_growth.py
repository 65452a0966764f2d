"""Growth of commands that read rows: steps are counted, at n rows and at four times as many."""

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from running import WITHOUT_UNUSED, run_python

from pytest_llmeval.cli import main

SMALL = 100
TIMES = 4
MOST = 4.6
"""What may be needed for four times the rows, in place of 4."""

SUITE = """\
suite: capitals
evaluators: [{text: {metrics: [exact_match, f1]}}]
group_by: [half]
gates: [f1 >= 0.1]
source: {format: jsonl, path: cases.jsonl}
"""


def score_rows(rows: int, shift: int) -> str:
    values = ((f"case-{n}", name, value) for n in range(rows) for name, value in _scores(n + shift))
    return "".join(json.dumps({"case": case, "metric": name, "score": value}) + "\n" for case, name, value in values)


def _scores(number: int) -> list[tuple[str, float]]:
    share = number * 37 % 101 / 100
    return [("f1", share), ("ok", float(share > 0.3))]


def case_rows(rows: int) -> str:
    cases = (
        {"id": f"case-{n}", "input": f"Where is {n}?", "expected": f"at {n} by the sea", "prediction": f"at {n % 7}"}
        for n in range(rows)
    )
    return "".join(json.dumps({**case, "labels": {"half": "ab"[n % 2]}}) + "\n" for n, case in enumerate(cases))


def write_scores(rows: int) -> None:
    """Write the scores of two runs."""
    for name, shift in (("new.jsonl", 0), ("old.jsonl", 3)):
        Path(name).write_text(score_rows(rows, shift), encoding="utf-8")


def write_suite(rows: int) -> None:
    """Write a suite with its answers."""
    Path("cases.jsonl").write_text(case_rows(rows), encoding="utf-8")
    Path("s.eval.yaml").write_text(SUITE, encoding="utf-8")


def write_reports(rows: int) -> None:
    """Write the reports of two runs, whose cases differ."""
    write_suite(rows)
    assert main(["score", "s.eval.yaml", "--report=old.json"]) == 0
    answers = case_rows(rows).replace('"at 3"', '"by the sea"')
    Path("cases.jsonl").write_text(answers, encoding="utf-8")
    assert main(["score", "s.eval.yaml", "--report=new.json"]) == 0


def write_families(rows: int) -> None:
    """Write the scores of two runs in a quarter as many metrics, whose gates are one family."""
    for name, shift in (("new.jsonl", 0), ("old.jsonl", 3)):
        values = ((case, f"m{n}", float((n + case * 7 + shift) % 5 > 0)) for n in range(rows // 4) for case in range(8))
        lines = (json.dumps({"case": f"c{case}", "metric": metric, "score": value}) for case, metric, value in values)
        Path(name).write_text("\n".join(lines), encoding="utf-8")


def write_promptfoo(rows: int) -> None:
    """Write a configuration of another tool."""
    tests = [
        {"vars": {"q": f"Where is {n}?"}, "assert": [{"type": "contains", "value": f"at {n}"}, {"type": "is-json"}]}
        for n in range(rows)
    ]
    data = {"prompts": ["{{q}}"], "providers": ["openai:gpt-4o-mini"], "tests": tests}
    Path("promptfooconfig.json").write_text(json.dumps(data), encoding="utf-8")


def write_shards(rows: int) -> None:
    """Run a suite in two parts."""
    write_suite(rows)
    Path("pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for part in (1, 2):
        options = (f"--llmeval-shard={part}/2", f"--llmeval-report={part}.llmeval")
        done = run_python(["-m", "pytest", "--llmeval", *WITHOUT_UNUSED, *options], os.environ, Path.cwd())
        assert done.code == 0, done.out


def write_snapshot(rows: int) -> None:
    """Write a suite whose scores are approved."""
    write_suite(rows)
    Path("pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    Path("s.eval.yaml").write_text(f"{SUITE}snapshot: true\n", encoding="utf-8")


def counted_steps(arguments: list[str]) -> int:
    """Return the calls that a command makes, with the numbers of each column that one of them returns.

    Draws of resampling are no columns: they have two dimensions, and their count does not depend on the rows.
    """
    steps = 0

    def note(_: FrameType, event: str, given: Any) -> None:
        nonlocal steps
        if event in ("call", "c_call"):
            steps += 1
        elif event == "return" and isinstance(given, np.ndarray) and given.ndim == 1:
            steps += given.size

    sys.setprofile(note)
    try:
        main(arguments)
    finally:
        sys.setprofile(None)
    return steps


COMMANDS: dict[str, tuple[Callable[[int], None], list[str]]] = {
    "gate": (write_scores, ["gate", "new.jsonl"]),
    "gate with a baseline": (write_scores, ["gate", "new.jsonl", "--baseline", "old.jsonl"]),
    "score": (write_suite, ["score", "s.eval.yaml", "--report=run.json"]),
    "compare": (write_reports, ["compare", "new.json", "--baseline", "old.json"]),
    "comment": (write_reports, ["comment", "new.json", "--baseline", "old.json"]),
    "html": (write_reports, ["html", "new.json", "--output=page.html"]),
    "merge": (write_shards, ["merge", "1.llmeval", "2.llmeval", "--report=run.json"]),
    "import": (write_promptfoo, ["import", "promptfoo", "promptfooconfig.json", "--to=imported", "--force"]),
    "a family of gates": (write_families, ["gate", "new.jsonl", "--baseline", "old.jsonl"]),
}


SELDOM = {"merge", "snapshots"}
"""What runs thousands of cases first."""


@pytest.mark.parametrize("gates", [1, 25, 100, pytest.param(2_500, marks=pytest.mark.release)])
def test_steps_grow_with_the_gates_of_a_family(gates: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    steps = []
    for metrics in (1, gates, TIMES * gates):  # the first run imports and fills caches
        write_families(4 * metrics)
        steps.append(counted_steps(COMMANDS["a family of gates"][1]))
    _, few, many = steps
    assert many <= MOST * few, f"{few} steps for {gates} gates, {many} for {TIMES * gates}"


def rows_of(table: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.release] * (name in SELDOM)) for name in table]


@pytest.mark.parametrize("command", rows_of(COMMANDS))
def test_steps_grow_with_rows(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write, arguments = COMMANDS[command]
    steps = []
    for rows in (SMALL, SMALL, TIMES * SMALL):  # the first run imports and fills caches
        write(rows)
        steps.append(counted_steps(arguments))
    _, few, many = steps
    assert many <= MOST * few, f"{few} steps for {SMALL} rows, {many} for {TIMES * SMALL}"


RUNS: dict[str, tuple[Callable[[int], None], list[str]]] = {
    "collection": (write_suite, ["--collect-only", "-q"]),
    "snapshots": (write_snapshot, ["--snapshot-update"]),
}
COUNTED = """\
import sys
import pytest
steps = 0
def note(_, event, given):
    global steps
    steps += event in ("call", "c_call")
sys.setprofile(note)
code = pytest.main(sys.argv[1:])
sys.setprofile(None)
print("steps", int(code), steps)
"""


@pytest.mark.parametrize("run", rows_of(RUNS))
def test_steps_of_pytest_grow_with_rows(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write, options = RUNS[run]
    found = []
    for rows in (SMALL, TIMES * SMALL):
        write(rows)
        done = run_python(["-c", COUNTED, "--llmeval", *WITHOUT_UNUSED, *options], os.environ, tmp_path)
        *_, said, code, steps = done.out.split()
        assert (said, code) == ("steps", "0"), done.out
        found.append(int(steps))
    few, many = found
    assert many <= MOST * few, f"{few} steps for {SMALL} rows, {many} for {TIMES * SMALL}"
