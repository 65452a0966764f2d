"""Labels, confusion cells and the measures computed from them."""

import json

import numpy as np

from pytest_llmeval.core.observation import Observation, Totals
from pytest_llmeval.evaluators.measures.confusion import (
    Margins,
    average,
    cohen_kappa,
    confusion_matrix,
    matthews,
)


def _totals() -> Totals:
    cells = {("b", "a"): 2.0, ("a", "a"): 3.0, ("b", None): 1.0}
    counts = {f"cell{json.dumps([*cell], separators=(',', ':'))}": count for cell, count in cells.items()}
    return Totals.add_up([Observation(counts)])


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
    margins = Margins.from_cells({}, 2)
    columns = [cohen_kappa(margins), matthews(margins)]
    columns += [column for kind in ("micro", "macro", "weighted") for column in average(margins, kind).values()]
    assert all(column.shape == (2,) and np.isnan(column).all() for column in columns)


def test_fractional_weights_of_a_single_label_leave_kappa_undefined_and_correlation_zero() -> None:
    weights = np.array([0.1, 0.7, 0.2])
    margins = Margins.from_cells({("0", "0"): weights, ("1", "0"): weights / 3}, 3)
    assert matthews(margins).tolist() == [0.0, 0.0, 0.0]
    alone = Margins.from_cells({("0", "0"): weights}, 3)
    assert np.isnan(cohen_kappa(alone)).all()
    assert matthews(alone).tolist() == [0.0, 0.0, 0.0]
