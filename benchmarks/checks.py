"""Cost of checks: 10,000 cases with ten checks each against the same cases with ``exact_match`` alone.

The checks belong to the suite, or to each case. Each side runs as a whole pytest process, in turn, so that the drift of
the machine hits both. Run: ``python benchmarks/checks.py [CASES] [ROUNDS]``.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

from per_case import timed

CHECKS = [
    {"contains": "30 days"},
    {"not_contains": ["As an AI", "I cannot"]},
    {"icontains_any": ["REFUND", "return"]},
    {"starts_with": "Refunds"},
    {"regex": r"\border #\d+\b"},
    {"max_words": 120},
    {"min_chars": 10},
    {"levenshtein": {"to": "Refunds take 30 days for order #12.", "max": 10}},
    {"any_of": [{"contains": "receipt"}, {"contains": "order"}]},
    "not_refusal",
]
ANSWER = "Refunds take 30 days for order #{n}."


def write_projects(folder: Path, cases: int) -> dict[str, list[str]]:
    """Write a project per side and mode; return the command of each."""
    sides = {
        "exact_match": ({"evaluators": [{"text": {"metrics": ["exact_match"]}}]}, {}),
        "checks of the suite": ({"checks": CHECKS}, {}),
        "checks of each case": ({"evaluators": []}, {"checks": CHECKS}),
    }
    commands = {}
    for mode in ("items", "bulk"):
        for side, (settings, own) in sides.items():
            project = folder / mode / side.replace(" ", "_")
            project.mkdir(parents=True)
            (project / "pytest.ini").write_text("[pytest]\n")
            answers = (ANSWER.format(n=n) for n in range(cases))
            rows = ({"id": f"case-{n}", "expected": "x", "prediction": text, **own} for n, text in enumerate(answers))
            (project / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            suite = {"mode": mode, "source": {"format": "jsonl", "path": "cases.jsonl"}, **settings}
            (project / "cases.eval.yaml").write_text(json.dumps(suite))
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--llmeval", str(project)]
            commands[f"{mode:5} {side}"] = command
    return commands


def main(cases: int = 10_000, rounds: int = 5) -> None:
    with tempfile.TemporaryDirectory() as folder:
        commands = write_projects(Path(folder), cases)
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                seconds[name].append(timed(command))
    print(f"{cases} cases, {rounds} rounds, CPU seconds of the whole process")
    for name, times in seconds.items():
        base = seconds[f"{name[:5]} exact_match"]
        ratio = statistics.median(a / b for a, b in zip(times, base, strict=True))
        print(f"{name:25}  median {statistics.median(times):6.2f}  ratio {ratio:5.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
