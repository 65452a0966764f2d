"""Labels, confusion cells and the measures computed from them."""

import numpy as np

from pytest_llmeval.evaluators import Margins
from pytest_llmeval.evaluators.measures._confusion import matthews


def test_measures_of_nothing_are_undefined() -> None:
    margins = Margins.from_cells({}, 2)
    columns = [margins.cohen_kappa(), matthews(margins)]
    columns += [column for kind in ("micro", "macro", "weighted") for column in margins.average(kind).values()]
    assert all(column.shape == (2,) and np.isnan(column).all() for column in columns)


def test_fractional_weights_of_a_single_label_leave_kappa_undefined_and_correlation_zero() -> None:
    weights = np.array([0.1, 0.7, 0.2])
    margins = Margins.from_cells({("0", "0"): weights, ("1", "0"): weights / 3}, 3)
    assert matthews(margins).tolist() == [0.0, 0.0, 0.0]
    alone = Margins.from_cells({("0", "0"): weights}, 3)
    assert np.isnan(alone.cohen_kappa()).all()
    assert matthews(alone).tolist() == [0.0, 0.0, 0.0]
