"""Rates of a judge against people, and the share that they correct."""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from builders import parse_gate
from scipy import stats

from pytest_llmeval import Case, EvaluatorError, get_evaluator, score
from pytest_llmeval.core import MetricValue, Sums
from pytest_llmeval.evaluators.judge._agreement import rates_basis


def labelled(judge: Sequence[int], human: Sequence[Any]) -> list[Case]:
    """Cases whose answer is what the judge says of it, with what people say; ``None`` for nobody."""
    return [
        Case(f"{n}", input="Q?", expected={"reference": "R", "human": person}, prediction="yes" if each else "no")
        if person is not None
        else Case(f"{n}", input="Q?", expected="R", prediction="yes" if each else "no")
        for n, (each, person) in enumerate(zip(judge, human, strict=True))
    ]


def says(request: Any) -> str:
    return "yes" if '"answer": "yes"' in str(request.messages) else "no"


def measured(name: str, cases: Sequence[Case], **options: Any) -> dict[str, MetricValue]:
    evaluator = get_evaluator(name, mode="default_binary", **options)
    return dict(score(evaluator, cases, judge=says).metrics)


def test_rates_have_wilson_intervals_over_the_labels_of_their_kind() -> None:
    found = measured("judge_agreement", labelled([1] * 9 + [0] + [1] * 2 + [0] * 8, [1] * 10 + [0] * 10))
    for name, hits in (("tpr", 9), ("tnr", 8)):
        wilson = stats.binomtest(hits, 10).proportion_ci(method="wilson")
        assert found[name].value == hits / 10
        assert (found[name].low, found[name].high) == pytest.approx((wilson.low, wilson.high))
        assert (found[name].scored, found[name].undefined) == (10, 10)
    both = found["balanced_accuracy"]
    assert both.value == pytest.approx(0.85)
    assert both.low is not None
    assert both.high is not None
    assert both.low < 0.85 < both.high
    assert found["tpr"].reason == "52 more positive labels for an interval of ±0.1"


def balanced_interval(hits: tuple[int, int], labels: int) -> tuple[float, float]:
    """Return the interval of the balanced accuracy after so many hits among as many labels of each kind."""
    counts = {f"{side}{part}": labels for side in ("positive", "negative") for part in ("", "_square")}
    counts |= {"positive_hit": hits[0], "negative_hit": hits[1]}
    sums = Sums({name: np.array([float(count)]) for name, count in counts.items()}, 1)
    interval = rates_basis(sums)["balanced_accuracy"].interval
    assert interval is not None
    return interval(0.95, 1.0)


def test_the_interval_of_balanced_accuracy_holds_it_as_often_as_promised_by_exact_arithmetic(thorough: bool) -> None:
    for labels in (10, 20, 50) if thorough else (10,):
        hits = range(labels + 1)
        bounds = np.array([[balanced_interval((each, other), labels) for other in hits] for each in hits])
        for tpr, tnr in combinations_with_replacement((0.7, 0.8, 0.9, 0.95, 0.98), 2):
            chances = np.outer(*(stats.binom.pmf(hits, labels, rate) for rate in (tpr, tnr)))
            truth = (tpr + tnr) / 2
            held = chances[(bounds[:, :, 0] <= truth + 1e-12) & (truth - 1e-12 <= bounds[:, :, 1])].sum()
            assert 0.93 <= round(held, 2) <= 0.98, (labels, tpr, tnr)


def test_a_rate_without_labels_of_its_kind_has_no_value_but_a_reason() -> None:
    found = measured("judge_agreement", labelled([1, 0, 1], [0, 0, 0]))
    assert (found["tpr"].value, found["tpr"].low, found["tpr"].reason) == (None, None, "no positive label")
    assert found["balanced_accuracy"].reason == "no positive label"
    assert found["tnr"].value == pytest.approx(1 / 3)


def test_people_who_differ_are_parts_of_a_label() -> None:
    found = measured("judge_agreement", labelled([1, 0], [[1, 0], [1, 1]]))
    assert found["tpr"].value == pytest.approx(0.5 / 1.5)
    assert found["tnr"].value == 0.0


def test_a_pass_mark_makes_levels_positive_and_must_be_a_level() -> None:
    evaluator = get_evaluator("judge_agreement", mode="continuous", pass_mark=0.6)
    cases = [Case("a", input="Q?", expected={"reference": "R", "human": 0.6}, prediction="x")]
    assert score(evaluator, cases, judge=lambda _: '{"score": 0.8}').metrics["tpr"].value == 1
    with pytest.raises(EvaluatorError, match=r"found pass_mark 0, expected a level above the lowest: 0.2, 0.4"):
        get_evaluator("judge_agreement", mode="continuous", pass_mark=0)


BALANCED = labelled([1] * 18 + [0] * 2 + [1] * 4 + [0] * 16 + [1] * 60 + [0] * 40, [1] * 20 + [0] * 20 + [None] * 100)


def test_balanced_labels_correct_the_share_of_the_other_answers() -> None:
    found = measured("judge", BALANCED, corrected="balanced")["corrected(judge_score)"]
    # (0.6 + 0.8 - 1) / (0.9 + 0.8 - 1), and the limits of the authors' formula.
    assert found.value == pytest.approx(0.4 / 0.7)
    assert (found.low, found.high) == pytest.approx((0.3490072, 0.8069648))
    assert "lang-reiczigel" in found.signature


@pytest.mark.parametrize(
    ("cases", "reason"),
    [
        (BALANCED[11:], "9 positive labels, expected at least 10"),
        (BALANCED[:40], "no case without a label, expected those whose share is corrected"),
        (
            labelled([0] * 10 + [1] * 10 + [1], [1] * 10 + [0] * 10 + [None]),
            "tpr 0 and tnr 0 of the judge are no better than chance",
        ),
    ],
)
def test_a_share_that_rates_cannot_correct_is_undefined(cases: list[Case], reason: str) -> None:
    found = measured("judge", cases, corrected="balanced")["corrected(judge_score)"]
    assert (found.value, found.low, found.reason) == (None, None, reason)


def test_balanced_labels_are_for_judges_that_say_yes_or_no() -> None:
    with pytest.raises(
        EvaluatorError, match=r"found balanced and the levels 0, 0.2, .*, expected a judge that says yes"
    ):
        get_evaluator("judge", mode="continuous", corrected="balanced")


def test_a_gate_says_how_many_more_labels_would_show_the_rate() -> None:
    evaluator = get_evaluator("judge_agreement", mode="default_binary")
    result = score(evaluator, labelled([1] * 9 + [0] + [0] * 10, [1] * 10 + [0] * 10), judge=says)
    failed = parse_gate("low(tpr) >= 0.8").judge(result)
    assert failed.outcome == "failed"
    assert failed.reason.endswith("; 52 more scored cases would show it at 0.9000")
    assert parse_gate("tnr >= 0.9").judge(result).outcome == "passed"
    assert "more scored" not in parse_gate("low(tpr) >= 0.95").judge(result).reason
