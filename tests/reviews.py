"""Reports with the texts of all answers, for reviews, and what a person says of one."""

__all__ = ("answered", "labels_of", "lines", "review", "suites_of")

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pages import case, report, suite

from pytest_llmeval.data.formats.human_labels import HumanLabel, label_line
from pytest_llmeval.reports.form import SuiteReport
from pytest_llmeval.reports.reading import read_report
from pytest_llmeval.workbench.reviews.items import Review, review_of


def answered(number: int, scores: Sequence[float] = (), outcome: str = "passed", **more: Any) -> dict[str, Any]:
    """Return a case that one judge scored, or several jurors."""
    texts = {"question": f"Question {number}?", "answer": f"Answer {number}", "reference": f"Right {number}"}
    texts |= more.pop("texts", {})
    judging = {"evaluator": "judge", "mode": "continuous", "question": texts, "reply": "x"}
    judgings = [{**judging, "score": score, "judge": f"juror {place}"} for place, score in enumerate(scores)]
    value = sum(scores) / len(scores) if scores else None
    return case(
        f"c{number}",
        outcome,
        input=texts["question"],
        expected=texts["reference"],
        prediction=texts["answer"],
        **({"judgings": judgings} if judgings else {}),
        **more,
        f1=value,
    )


def suites_of(folder: Path, *cases: Mapping[str, Any], **more: Any) -> Sequence[SuiteReport]:
    """Write a report of one suite, and return its results."""
    path = folder / "run.json"
    path.write_text(json.dumps(report(suite(cases, **more))), encoding="utf-8")
    return read_report(path).suites


def review(folder: Path, *cases: Mapping[str, Any], **options: Any) -> Review:
    """Return the review of a suite with these cases."""
    return review_of(suites_of(folder, *cases), **options)


def labels_of(found: Review, annotator: str, say: Callable[[int], str | int | None]) -> list[HumanLabel]:
    """Return what a person says of each item, by the number in its answer."""
    numbers = [int(each.answer.split()[1]) for each in found.items]
    return [found.label(place, annotator, say(number)) for place, number in enumerate(numbers)]


def lines(path: Path, labels: Sequence[HumanLabel]) -> Path:
    """Write a file of labels."""
    path.write_text("".join(map(label_line, labels)), encoding="utf-8")
    return path
