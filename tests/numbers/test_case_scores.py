"""Results of single cases are made when they are read, from the columns of all cases."""

import copy
import pickle

import numpy as np
import pytest

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.numbers._case_scores import CaseScores, PackedColumns, ScoreColumns

PACKED = PackedColumns(2)
for metric, numbers in {"f1": [0.5, np.nan], "support[joy]": [2.0, np.nan], "other": [1.0, 1.0]}.items():
    PACKED.fill(metric, 0, np.array(numbers))

COLUMNS = ScoreColumns(
    PACKED,
    {"f1": "text", "support[joy]": "text", "other": "absent"},
    {"support[joy]"},
)


def scores(row: int) -> CaseScores:
    return CaseScores(COLUMNS, row, ("text",))


def test_a_case_has_the_metrics_of_the_evaluators_that_measured_it() -> None:
    assert dict(scores(0)) == {"f1": 0.5, "support[joy]": 2.0}
    assert "other" not in scores(0)
    with pytest.raises(KeyError, match="other"):
        scores(0)["other"]


def test_an_undefined_metric_is_none_and_a_member_of_a_family_that_a_case_lacks_is_absent() -> None:
    assert dict(scores(1)) == {"f1": None}
    assert (len(scores(1)), scores(1).get("support[joy]", "absent")) == (1, "absent")


@pytest.mark.parametrize("name", ["f2", 1, None])
def test_a_name_that_is_no_metric_is_not_in_the_scores(name: object) -> None:
    assert name not in scores(0)


def test_copies_are_dictionaries_that_keep_no_other_case() -> None:
    for other in (copy.deepcopy(scores(0)), pickle.loads(pickle.dumps(scores(0)))):
        assert type(other) is dict
        assert other == scores(0)
    assert repr(scores(0)) == "{'f1': 0.5, 'support[joy]': 2.0}"


def test_cases_with_many_labels_share_their_columns() -> None:
    cases = [Case(str(number), "?", f"label-{number}", f"label-{number}") for number in range(60)]
    result = score(get_evaluator("classification"), cases, confidence=None)
    assert {type(case.metrics) for case in result.cases} == {CaseScores}
    assert result.cases[7].metrics["support[label-7]"] == 1
    assert result.cases[7].metrics["support[label-8]"] == 0
    assert "recall[label-8]" not in result.cases[7].metrics


def test_results_of_cases_are_a_sequence() -> None:
    cases = [Case(str(number), "?", "a", "ab"[number % 2]) for number in range(5)]
    found = score(get_evaluator("classification", metrics=["accuracy"]), cases, confidence=None).cases
    assert [case.metrics["accuracy"] for case in found] == [1, 0, 1, 0, 1]
    assert (len(found), found[-1].id, [case.id for case in found[1:4:2]]) == (5, "4", ["1", "3"])
    with pytest.raises(IndexError):
        found[5]
    listed = list(found)
    assert found == listed
    assert found != listed[:4]
    assert found != "other"
    assert pickle.loads(pickle.dumps(found)) == listed
    assert repr(found) == repr(listed)


def bits(numbers: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> list[str]:
    return [float(number).hex() for number in numbers]


@pytest.mark.parametrize("other", [0.0, 1.0, 127.0, -0.0, -1.0, 0.5, 128.0, np.inf, -np.inf, np.nan, 1e300])
def test_every_number_is_read_with_all_its_bits(other: float) -> None:
    numbers = np.array([0.0, 1.0, np.nan, other])
    columns = PackedColumns(4)
    columns.fill("f1", 0, numbers)
    assert bits(columns["f1"]) == bits(numbers)
    assert bits(np.array([columns.at("f1", row) for row in range(4)])) == bits(numbers)


def test_a_column_that_is_filled_in_parts_keeps_the_parts_before() -> None:
    columns = PackedColumns(6)
    for start, part in enumerate(([1.0, np.nan], [0.25, -1.0], [2.0])):
        columns.fill("f1", 2 * start, np.array(part))
    assert bits(columns["f1"]) == bits(np.array([1.0, np.nan, 0.25, -1.0, 2.0, np.nan]))


@pytest.mark.parametrize("number", [1.0, -1.0])
def test_erased_rows_are_nan(number: float) -> None:
    columns = PackedColumns(3)
    columns.fill("f1", 0, np.full(3, number))
    columns.erase("f1", 1)
    assert bits(columns["f1"]) == bits(np.array([number, np.nan, number]))
    columns.erase("f1", np.array([True, True, False]))
    assert bits(columns["f1"]) == bits(np.array([np.nan, np.nan, number]))


def test_flags_take_a_byte_each() -> None:
    columns = PackedColumns(1_000)
    columns.fill("exact_match", 0, np.ones(1_000))
    columns.fill("f1", 0, np.full(1_000, 0.5))
    assert [columns._columns[name].nbytes for name in columns] == [1_000, 8_000]
