"""What few labels of people can show of a judge: errors that none has shown, and kinds that are rare."""

import json
from itertools import pairwise
from typing import Any

import pytest

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import MetricValue

CORRECTED = get_evaluator("judge", mode="continuous", corrected=True)


def judged(noise: float) -> MetricValue:
    """Return the corrected score of 200 answers, 20 of them with labels, by a judge that is off by so much."""
    cases = []
    for place in range(200):
        right = (0.7, 0.8, 0.9, 1.0)[place % 4]
        given = min(1.0, right + (noise if place % 2 else -noise))
        answer = f"score {given:.7f}"
        labels = {"reference": "r", "human": right, "scored_answer": answer}
        labelled = place % 10 == place // 10 % 10
        cases.append(Case(f"c{place:03}", input=f"q{place}", expected=labels if labelled else "r", prediction=answer))
    return score(CORRECTED, cases, judge=lambda asked: json.dumps({"score": _given(asked)})).metrics[
        "corrected(judge_score)"
    ]


def _given(asked: Any) -> float:
    return float(str(asked).rpartition("score ")[2][:9])


def test_more_noise_of_the_judge_never_narrows_the_interval() -> None:
    widths = []
    for noise in (0.0, 1e-6, 0.01, 0.1):
        value = judged(noise)
        assert value.low is not None
        assert value.high is not None
        widths.append(value.high - value.low)
    assert widths[0] > 0.2
    assert all(late >= early - 0.002 for early, late in pairwise(widths)), widths


@pytest.mark.parametrize(("rare", "known"), [(2, False), (4, False), (5, True), (12, True)])
def test_kappa_needs_labels_of_either_kind(rare: int, known: bool) -> None:
    evaluator = get_evaluator("judge_agreement", mode="continuous", levels=[0, 1])
    cases = [
        Case(str(n), input="q", expected={"reference": "r", "human": float(n >= rare)}, prediction=f"{n >= rare}")
        for n in range(40)
    ]
    metrics = score(evaluator, cases, judge=lambda _: json.dumps({"score": 1})).metrics
    assert (metrics["cohen_kappa"].value is not None) == known
    if not known:
        assert f"{rare} labels besides the most frequent one, expected at least 5" in metrics["cohen_kappa"].reason
