"""P-values of several tests, against scipy and against the definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_llmeval.numbers._inference import adjusted_gates, benjamini_hochberg, hochberg, holm

several = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([], []),
        ([0.2], [0.2]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.5, 0.5], [1.0, 1.0]),
        ([0.03, 0.01, 0.02, 0.02], [0.06, 0.04, 0.06, 0.06]),
    ],
)
def test_holm_multiplies_by_the_tests_left_and_never_falls(p_values: list[float], adjusted: list[float]) -> None:
    assert holm(p_values) == pytest.approx(adjusted)


@given(several)
def test_holm_lies_between_hochberg_and_bonferroni(p_values: list[float]) -> None:
    for before, up, after in zip(p_values, hochberg(p_values), holm(p_values), strict=True):
        assert before <= up <= after + 1e-15 <= min(1.0, before * len(p_values)) + 2e-15


@given(several, st.floats(0.001, 0.999))
def test_hochberg_rejects_up_to_the_largest_p_value_below_its_bound(p_values: list[float], level: float) -> None:
    ordered = sorted(p_values)
    size = len(ordered)
    below = [each for rank, each in enumerate(ordered) if each * (size - rank) <= level]
    found = {each for each, adjusted in zip(p_values, hochberg(p_values), strict=True) if adjusted <= level}
    assert found == {each for each in p_values if below and each <= max(below)}


@given(several)
def test_the_false_discovery_rate_is_that_of_scipy(p_values: list[float]) -> None:
    assert benjamini_hochberg(p_values) == pytest.approx(list(stats.false_discovery_control(p_values)))


@given(several)
def test_gates_of_one_test_are_adjusted_by_holm(p_values: list[float]) -> None:
    assert [each[0] for each in adjusted_gates([[each] for each in p_values])] == pytest.approx(holm(p_values))


def test_the_level_passes_on_only_from_a_gate_of_which_every_test_is_rejected() -> None:
    assert adjusted_gates([[0.001, 0.5], [0.03]]) == [[0.002, 0.5], [0.06]]
    assert adjusted_gates([[0.001, 0.002], [0.03]]) == [[0.002, 0.004], [0.03]]


def test_no_gate_at_all_needs_no_adjustment() -> None:
    assert adjusted_gates([]) == []
