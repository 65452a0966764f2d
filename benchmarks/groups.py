"""Cost of groups: cases with 150 groups of unequal size against the same cases without, in turn.

Whole pytest processes in mode ``bulk`` and with an item for each case, and the summary alone. Processor seconds; the
ratio is the median of the rounds, with the smallest and the largest.
Run: ``python benchmarks/groups.py [CASES] [ROUNDS]``.
"""

import json
import random
import sys
import tempfile
import time
from pathlib import Path

from sides import pytest_command, ratio_line, run_s

from pytest_llmeval import Case, get_evaluator, score

GROUPS = 150
WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "then", "went", "home", "to", "sleep", "for", "long", "hours")


def rows(cases: int) -> list[dict[str, object]]:
    """Return cases of which some are right, with words in common; group 0 is the smallest."""
    draw = random.Random(1)

    def text() -> str:
        return " ".join(draw.choices(WORDS, k=6))

    groups = draw.choices(range(GROUPS), weights=range(1, GROUPS + 1), k=cases)
    return [
        {
            "id": f"case-{number}",
            "input": "?",
            "expected": text(),
            "prediction": text(),
            "labels": {"group": f"{group}"},
        }
        for number, group in enumerate(groups)
    ]


def suite(metric: str, mode: str, group_by: list[str]) -> str:
    """Return a suite file."""
    settings = {
        "mode": mode,
        "evaluators": [{"text": {"metrics": [metric]}}],
        "group_by": group_by,
        "source": {"format": "jsonl", "path": "cases.jsonl"},
    }
    return json.dumps(settings)


def whole_runs(cases: list[dict[str, object]], rounds: int, metric: str, mode: str) -> str:
    """Return the line about whole processes."""
    with tempfile.TemporaryDirectory() as folder:
        commands = []
        for name, group_by in (("without", []), ("with", ["group"])):
            project = Path(folder) / name
            project.mkdir()
            (project / "pytest.ini").write_text("[pytest]\n")
            (project / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in cases))
            (project / "cases.eval.json").write_text(suite(metric, mode, group_by))
            commands.append(pytest_command(project, "--llmeval"))
        pairs = [tuple(run_s(command)[0] for command in commands) for _ in range(rounds)]
    return ratio_line(f"{metric}, whole process, mode {mode}", [(grouped, plain) for plain, grouped in pairs])


def summaries(cases: list[dict[str, object]], rounds: int, metric: str) -> str:
    """Return the line about `score` in Python."""
    given = [Case(**row) for row in cases]  # type: ignore[arg-type]  # a row has the fields of a case
    evaluator = get_evaluator("text", metrics=[metric])
    pairs = []
    for _ in range(rounds):
        seconds = []
        for group_by in (["group"], []):
            started = time.process_time()
            score(evaluator, given, group_by)
            seconds.append(time.process_time() - started)
        pairs.append((seconds[0], seconds[1]))
    return ratio_line(f"{metric}, score() alone", pairs)


def main(cases: int = 10_000, rounds: int = 5) -> None:
    given = rows(cases)
    print(f"{cases} cases in {GROUPS} groups, {rounds} rounds, processor seconds: with groups / without")
    for metric in ("exact_match", "f1"):
        for mode in ("items", "bulk"):
            print(whole_runs(given, rounds, metric, mode))
        print(summaries(given, rounds, metric))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
