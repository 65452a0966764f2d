from typing import Any

import pytest

from pytest_llmeval.tasks.narrative._document import (
    calculate_precision_recall_f1,
    calculate_set_metrics,
    handle_missing_ground_truth,
)


@pytest.mark.parametrize(
    ("prediction", "gold", "status", "is_error"),
    [
        ("x", None, "extra", False),
        (None, "", "matched", False),
        ([], "x", "missing", True),
        ("x", "y", "mismatch", None),
        (0, False, "mismatch", None),
    ],
)
def test_missing_ground_truth_is_no_error(prediction: Any, gold: Any, status: str, is_error: bool | None) -> None:
    found = handle_missing_ground_truth(prediction, gold, "themes")
    assert (found["status"], found["count_as_error"]) == (status, is_error)


def test_rates_without_denominator_are_0() -> None:
    assert calculate_precision_recall_f1(0, 0, 0) == (0, 0, 0)
    assert calculate_precision_recall_f1(1, 1, 3) == (1 / 2, 1 / 4, pytest.approx(1 / 3))


def test_an_incomplete_set_has_recall_only() -> None:
    assert calculate_set_metrics({"a"}, {"a", "b"})["f1"] == pytest.approx(2 / 3)
    found = calculate_set_metrics(["a", "a"], ["a", "b"], gt_incomplete=True)
    assert found == {"precision": None, "recall": 1 / 2, "f1": None, "gt_incomplete": True}
    assert calculate_set_metrics(["a"], [], gt_incomplete=True)["recall"] is None
