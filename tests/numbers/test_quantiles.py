"""Quantiles are those of NumPy, to the last bit."""

import numpy as np
import pytest

from pytest_llmeval.numbers._intervals import quantiles


@pytest.mark.parametrize("distinct", [3, 1_000_000])
def test_quantiles_are_those_of_numpy(distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    for _ in range(300):
        values = rng.integers(0, distinct, int(rng.integers(1, 200))) / 7
        levels = [float(rng.choice([0.0, 0.025, 0.5, 1.0])), float(rng.random())]
        assert quantiles(values, levels) == np.quantile(values, levels).tolist()
