"""Limits of one case."""

import pytest

from pytest_llmeval.numbers import Abstained, Threshold, Unmet


@pytest.mark.parametrize(
    ("limit", "value", "holds"),
    [
        (Threshold(min=0.3), 0.3, True),
        (Threshold(min=0.1 + 0.2), 0.3, True),
        (Threshold(min=0.3), 0.3 - 1e-11, False),
        (Threshold(max=0.3), 0.1 + 0.2, True),
        (Threshold(max=0.3), 0.3 + 1e-11, False),
        (Threshold(0.2, 0.4), 0.3, True),
        (Threshold(0.2, 0.4), 0.1, False),
        (Threshold(0.2, 0.4), 0.5, False),
        (Threshold(0.0), -0.0, True),
        (Threshold(), -1e300, True),
    ],
)
def test_both_ends_belong_to_a_limit_with_a_little_slack(limit: Threshold, value: float, holds: bool) -> None:
    assert limit.holds(value) is holds


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (Threshold(0.5), ">= 0.5"),
        (Threshold(max=2), "<= 2"),
        (Threshold(0.5, 1.0), ">= 0.5 and <= 1"),
        (Threshold(), ""),
    ],
)
def test_a_limit_reads_as_a_comparison(limit: Threshold, text: str) -> None:
    assert str(limit) == text


def test_scores_outside_their_limits_are_listed_in_the_order_of_the_limits() -> None:
    limits = {"rougeL": Threshold(0.5), "f1": Threshold(0.5), "exact_match": Threshold(0.5)}
    missed = Unmet.of_case(limits, {"f1": 0.25, "rougeL": 0.1, "exact_match": 1.0})
    assert missed == [Unmet("rougeL", 0.1, Threshold(0.5)), Unmet("f1", 0.25, Threshold(0.5))]
    assert [str(each) for each in missed] == ["rougeL 0.1000, limit >= 0.5", "f1 0.2500, limit >= 0.5"]
    assert str(Unmet("f1", 0.99999999, Threshold(1))) == "f1 0.99999999, limit >= 1"


def test_a_score_that_does_not_exist_is_not_held_against_the_case() -> None:
    assert Unmet.of_case({"f1": Threshold(0.5), "meteor": Threshold(0.5)}, {"f1": None}) == []


@pytest.mark.parametrize(
    ("limit", "abstained", "text"),
    [
        (Threshold(0.5), Abstained("no claims", 0.0), "f1 abstains (no claims), counted as 0, limit >= 0.5"),
        (Threshold(0.0), Abstained("no claims", 0.0), None),
        (Threshold(max=3), Abstained("no claims", None), "f1 abstains (no claims), counted as not met, limit <= 3"),
    ],
)
def test_a_score_from_which_an_answer_abstains_is_the_worst(limit: Threshold, abstained: Abstained, text: str) -> None:
    assert [str(each) for each in Unmet.of_case({"f1": limit}, {"f1": None}, {"f1": abstained})] == (
        [text] if text else []
    )
