"""Commands on 100,000 cases: the gate, reports, and two processes; processor seconds of whole processes.

Run as ``python benchmarks/bulk_commands.py [CASES] [ROUNDS]``. The commands take turns, and the least of all rounds
counts. The yardstick of the gate reads both files with `json`, pairs the scores by id, and draws 1,000 resamples of
the mean difference with NumPy.
"""

__all__ = ("main",)

import json
import random
import sys
import tempfile
from pathlib import Path

from sides import run_s

YARDSTICK = """\
import json, sys
import numpy as np

def scores(path):
    with open(path, encoding="utf-8") as file:
        return {row["id"]: row["scores"]["f1"] for row in map(json.loads, file)}

old, new = map(scores, sys.argv[1:])
rng = np.random.default_rng(0)
difference = np.array([new[name] - old[name] for name in old])
means = [difference[rng.integers(0, len(difference), len(difference))].mean() for _ in range(1_000)]
print(difference.mean(), np.quantile(means, [0.025, 0.975]))
"""


def write_results(path: Path, rng: random.Random, cases: int) -> None:
    rows = ({"id": f"case-{number}", "scores": {"f1": rng.random()}} for number in range(cases))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_suite(folder: Path, rng: random.Random, cases: int) -> None:
    rows = (
        {
            "id": f"case-{number}",
            "input": f"{number}?",
            "expected": "yes it is",
            "prediction": rng.choice(("yes", "no")),
        }
        for number in range(cases)
    )
    (folder / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    suite = {
        "suite": "answers",
        "evaluators": [{"text": {"metrics": ["exact_match", "f1"]}}],
        "source": {"format": "jsonl", "path": "cases.jsonl"},
    }
    (folder / "answers.eval.json").write_text(json.dumps(suite), encoding="utf-8")


def commands(folder: Path) -> dict[str, list[str]]:
    """Name to command: the gate after its yardstick, then ``llmeval score`` alone and with more to do."""
    results = [str(folder / "old.jsonl"), str(folder / "new.jsonl")]
    llmeval = [sys.executable, "-m", "pytest_llmeval"]
    score = [*llmeval, "score", str(folder / "answers.eval.json")]
    return {
        "json and NumPy": [sys.executable, "-c", YARDSTICK, *results],
        "gate": [*llmeval, "gate", results[1], "--baseline", results[0]],
        "score": score,
        "score, JSON report": [*score, "--report", str(folder / "report.json")],
        "score, HTML report": [*score, "--report", str(folder / "report.html")],
        "score, two processes": [*score, "--executor", "processes:2"],
    }


def main(cases: int = 100_000, rounds: int = 3) -> None:
    """Print a row for each command."""
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for file in ("old.jsonl", "new.jsonl"):
            write_results(folder / file, rng, cases)
        write_suite(folder, rng, cases)
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands(folder)}
        for _ in range(rounds):
            for name, command in commands(folder).items():
                taken[name].append(run_s(command))
    print("| command | processor | wall | ratio |\n|---|---|---|---|")
    least = {name: min(seconds for seconds, _ in times) for name, times in taken.items()}
    for name, times in taken.items():
        base = least["json and NumPy" if name == "gate" else "score"]
        ratio = "" if name in ("json and NumPy", "score") else f"{least[name] / base:.2f}"
        print(f"| {name} | {least[name]:.1f} s | {min(wall for _, wall in times):.1f} s | {ratio} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
