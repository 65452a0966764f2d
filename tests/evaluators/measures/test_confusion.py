"""Labels, confusion cells and the measures computed from them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_llmeval.core.observation import Observation, Totals
from pytest_llmeval.evaluators.measures.confusion import (
    Margins,
    average,
    cell_name,
    cohen_kappa,
    confusion_matrix,
    matthews,
    read_cells,
)
from pytest_llmeval.evaluators.measures.labels import NO_LABEL, label_key, label_name, label_order

any_label = st.one_of(
    st.text(max_size=4), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans()
)


@pytest.mark.parametrize(
    ("value", "key", "name"),
    [
        ("joy", '"joy"', "joy"),
        ("Not Enough Evidence", '"Not Enough Evidence"', "Not Enough Evidence"),
        ("", '""', ""),
        ("喜", '"喜"', "喜"),
        ("f1[x]", '"f1[x]"', "f1[x]"),
        (1, "1", "1"),
        ("1", '"1"', '"1"'),
        (1.0, "1.0", "1.0"),
        (1e22, "1e+22", "1e+22"),
        (True, "true", "true"),
        ("true", '"true"', '"true"'),
        ("null", '"null"', '"null"'),
        ("(none)", '"(none)"', '"(none)"'),
        ('"1"', r'"\"1\""', r'"\"1\""'),
    ],
)
def test_label_has_key_and_readable_name(value: object, key: str, name: str) -> None:
    assert label_key(value) == key
    assert label_name(key) == name


@pytest.mark.parametrize("value", [None, [], ["joy"], {}, float("nan"), float("inf")])
def test_other_values_are_no_labels(value: object) -> None:
    assert label_key(value) is None


def test_absent_label_is_shown_as_none() -> None:
    assert label_name(NO_LABEL) == "(none)"


@settings(deadline=None)
@given(st.lists(any_label, max_size=6))
def test_names_are_distinct_where_keys_are(values: list[object]) -> None:
    keys = {key for value in values if (key := label_key(value)) is not None} | {NO_LABEL}
    assert len({label_name(key) for key in keys}) == len(keys)


def test_labels_are_sorted_by_kind_then_value() -> None:
    keys = [NO_LABEL, '"b"', '"10"', '"B"', "10", "9", "-1", "1.5", "true", "false", str(10**400)]
    assert sorted(keys, key=label_order) == [
        "false", "true", "-1", "1.5", "9", "10", str(10**400), '"10"', '"B"', '"b"', NO_LABEL,
    ]  # fmt: skip


@settings(deadline=None)
@given(any_label, any_label)
def test_cell_name_holds_both_labels(gold: object, predicted: object) -> None:
    keys = label_key(gold), label_key(predicted)
    assert keys[0] is not None
    assert keys[1] is not None
    assert read_cells({cell_name(keys[0], keys[1]): 3.0, "other": 1.0}) == {keys: 3.0}
    assert read_cells({cell_name(keys[0], NO_LABEL): 1.0}) == {(keys[0], NO_LABEL): 1.0}


def test_cell_name_is_readable() -> None:
    assert cell_name('"joy"', "null") == 'cell["joy",null]'


def _totals() -> Totals:
    cells = {("b", "a"): 2.0, ("a", "a"): 3.0, ("b", None): 1.0}
    counts = {f"cell{json.dumps([*cell], separators=(',', ':'))}": count for cell, count in cells.items()}
    return Totals.of([Observation(counts)])


def test_confusion_matrix_has_gold_rows_and_predicted_columns() -> None:
    labels, matrix = confusion_matrix(_totals())
    assert labels == ["a", "b", "(none)"]
    assert matrix.tolist() == [[3, 0, 0], [2, 0, 1], [0, 0, 0]]


def test_confusion_matrix_of_columns_has_one_matrix_per_total() -> None:
    labels, matrix = confusion_matrix(_totals().sums())
    assert labels == ["a", "b", "(none)"]
    assert matrix.shape == (1, 3, 3)
    assert matrix[0].tolist() == confusion_matrix(_totals())[1].tolist()


def test_confusion_matrix_of_nothing_is_empty() -> None:
    labels, matrix = confusion_matrix({})
    assert labels == []
    assert matrix.shape == (0, 0)


def test_measures_of_nothing_are_undefined() -> None:
    margins = Margins.of({}, 2)
    columns = [cohen_kappa(margins), matthews(margins)]
    columns += [column for kind in ("micro", "macro", "weighted") for column in average(margins, kind).values()]
    assert all(column.shape == (2,) and np.isnan(column).all() for column in columns)


def test_fractional_weights_of_a_single_label_leave_kappa_undefined_and_correlation_zero() -> None:
    weights = np.array([0.1, 0.7, 0.2])
    margins = Margins.of({("0", "0"): weights, ("1", "0"): weights / 3}, 3)
    assert matthews(margins).tolist() == [0.0, 0.0, 0.0]
    alone = Margins.of({("0", "0"): weights}, 3)
    assert np.isnan(cohen_kappa(alone)).all()
    assert matthews(alone).tolist() == [0.0, 0.0, 0.0]
