"""Histories of suites: lines of runs, score files of approvals, and the one that the documentation shows.

``python tests/histories.py > docs/images/history.svg`` draws that one.
"""

__all__ = ("note_runs", "picture", "run_line", "write_approvals")

import json
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_llmeval.baselines.comparable import Comparable, EvaluatorPrint
from pytest_llmeval.baselines.files import score_file
from pytest_llmeval.baselines.history import HISTORY
from pytest_llmeval.baselines.layout import render
from pytest_llmeval.baselines.scores import Approval, Cases, Score, SuiteScores
from pytest_llmeval.reports.timeline import Point, Timeline, history_svg
from pytest_llmeval.suite.suite import SuiteKey


def run_line(day: int, value: float | None = 0.5, **more: Any) -> str:
    """Return a line of a run of ``s.eval.yaml`` in January."""
    data = {
        "time": f"2026-01-{day:02d}T10:00:00+00:00",
        "commit": f"{day:02d}" * 20,
        "path": "s.eval.yaml",
        "test": "",
        "variant": "",
        "values": {"f1": value},
        **more,
    }
    return json.dumps(data)


def note_runs(root: Path, *lines: str) -> None:
    """Write the history of a folder."""
    path = root / HISTORY
    path.parent.mkdir(exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))


def write_approvals(root: Path, approvals: Sequence[Mapping[str, Any]], variant: str = "") -> Path:
    """Write the score file of ``s.eval.yaml`` with these approvals; return its path."""
    history = tuple(Approval(each["time"], each.get("commit"), each["values"]) for each in approvals)
    value = history[-1].values["f1"]
    score = Score(value, 0.25, 0.75, 4, 0, 0, 0)
    comparable = Comparable("c", "d", "", {"text": EvaluatorPrint("text", "1")})
    scores = SuiteScores("s.eval.yaml", "", variant, Cases(4, "x"), comparable, {"f1": score}, history=history)
    path = score_file(SuiteKey(str(root / "s.eval.yaml"), "s.eval.yaml", variant=variant))
    path.parent.mkdir(exist_ok=True)
    path.write_text(render(scores), encoding="utf-8")
    return path


def picture() -> str:
    """Return the picture of a month: an approved rise, another judge, and two runs whose gate failed."""
    points = []
    for day in range(1, 29):
        level = 0.74 + 0.08 * (day >= 9) - 0.16 * (day in (20, 21))
        value, rate = level + 0.02 * math.sin(day * day), min(1.0, level + 0.14 + 0.01 * math.cos(day * day))
        points.append(
            Point(
                datetime(2026, 10, day, 9, tzinfo=UTC),
                f"{day:02d}" * 20,
                {"judge_score": round(value, 4), "pass_rate": round(rate, 2)},
                {"judge_score": (value - 0.06, value + 0.05)},
                {"judge_score >= 0.7": "failed" if value < 0.7 else "passed"},
                basis={"judge": "new" if day >= 15 else "old"},
                approved=day in (1, 9, 15),
            )
        )
    timeline = Timeline("support.eval.yaml", "", points)
    return history_svg([timeline], {timeline.title: timeline.metrics})


if __name__ == "__main__":
    sys.stdout.write(picture())
