"""Systems side by side: the paired comparison of 10 systems, and runs of 3 systems against 3 suites.

The comparison has 8 metrics and 2,000 cases. The runs are whole pytest processes in mode ``bulk``, in turn, with the
recorded predictions of three systems: as one suite with ``systems``, and as a suite for each of them.
Run: ``python benchmarks/systems.py [CASES] [ROUNDS]``.
"""

import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from per_case import timed

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import MetricIndex
from pytest_llmeval.numbers import SystemTable

SYSTEMS, CASES = 10, 2_000
METRICS = ["exact_match", "f1", "rouge1", "rouge2", "rougeL", "bleu1", "bleu2", "bleu4"]


def compare() -> None:
    """Print the seconds of the comparison."""
    draw = random.Random(0)
    evaluator = get_evaluator("text", metrics=METRICS)
    results = {}
    for system in range(SYSTEMS):
        share = 0.5 + system / 40
        answers = [
            Case(str(each), expected="the red gate", prediction="the red gate" if draw.random() < share else "a gate")
            for each in range(CASES)
        ]
        results[f"system {system}"] = score(evaluator, answers, confidence=None)
    started = time.process_time()
    SystemTable.of_results(results, "system 0", MetricIndex.from_evaluators({evaluator.name: evaluator}))
    print(f"{SYSTEMS} systems x {len(METRICS)} metrics x {CASES} cases: {time.process_time() - started:.2f} s")


def write_projects(folder: Path, cases: int) -> dict[str, list[str]]:
    """Write a project with one suite and one with three; return the command of each."""
    draw = random.Random(0)
    common: dict[str, Any] = {"mode": "bulk", "evaluators": [{"text": {"metrics": ["exact_match"]}}]}
    source = {"format": "jsonl", "path": "cases.jsonl"}
    one = {**common, "source": source, "systems": {name: {"predictions": f"{name}.jsonl"} for name in "abc"}}
    three = {name: {**common, "source": {**source, "predictions": f"{name}.jsonl"}} for name in "abc"}
    commands = {}
    for kind, suites in (("one suite", {"s": one}), ("three suites", three)):
        project = folder / kind.replace(" ", "_")
        project.mkdir()
        (project / "pytest.ini").write_text("[pytest]\n")
        rows = ({"id": f"case-{number}", "expected": "yes"} for number in range(cases))
        (project / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for name in "abc":
            answers = ({"id": f"case-{number}", "answer": draw.choice(("yes", "no"))} for number in range(cases))
            (project / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
        for name, suite in suites.items():
            (project / f"{name}.eval.json").write_text(json.dumps(suite))
        commands[kind] = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--llmeval", str(project)]
    return commands


def main(cases: int = 10_000, rounds: int = 3) -> None:
    compare()
    with tempfile.TemporaryDirectory() as folder:
        commands = write_projects(Path(folder), cases)
        seconds = [{name: timed(command) for name, command in commands.items()} for _ in range(rounds)]
    ratio = statistics.median(each["one suite"] / each["three suites"] for each in seconds)
    print(f"3 systems x {cases} cases: {ratio:.2f} of the processor time of three suites")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
