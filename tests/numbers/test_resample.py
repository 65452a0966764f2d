"""Totals of resampled cases."""

import numpy as np
import pytest

from pytest_llmeval.numbers import _resample as resample
from pytest_llmeval.numbers._resample import SEED, resample_count, resampled_totals, swapped_totals


@pytest.mark.parametrize(
    ("cases", "resamples"),
    [(0, 10_000), (1, 10_000), (2_000, 10_000), (2_001, 9_995), (4_000, 5_000), (20_000, 1_000), (10**6, 1_000)],
)
def test_the_number_of_resamples_falls_with_the_number_of_cases(cases: int, resamples: int) -> None:
    assert resample_count(cases) == resamples


@pytest.mark.parametrize("cases", [1, 2, 7, 1_000])
def test_the_weights_of_every_resample_add_up_to_the_number_of_cases(cases: int) -> None:
    assert np.all(resampled_totals(np.ones((cases, 1)), 500) == cases)


def test_weights_are_whole_numbers_that_count_draws() -> None:
    weights = resampled_totals(np.eye(6), 300)
    assert np.all(weights == np.floor(weights))
    assert np.all(weights >= 0)
    assert np.all(weights.sum(axis=1) == 6)


def test_every_case_is_drawn_once_on_average() -> None:
    weights = resampled_totals(np.eye(8), 20_000)
    assert np.allclose(weights.mean(axis=0), 1.0, atol=0.03)
    assert np.allclose(weights.var(axis=0), 7 / 8, atol=0.05)


def test_the_same_seed_gives_the_same_totals_and_another_seed_others() -> None:
    matrix = np.arange(20.0).reshape(10, 2)
    first, again, other = (resampled_totals(matrix, 50, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_equal_shapes_draw_equal_weights_so_that_two_runs_are_paired() -> None:
    left, right = resampled_totals(np.eye(5), 40), resampled_totals(np.eye(5) * 3, 40)
    assert np.array_equal(left * 3, right)


@pytest.mark.parametrize("kept", [0, 1_000])
@pytest.mark.parametrize("draws", [1, 10, 35, 1_000])
def test_slicing_and_keeping_weights_change_nothing(monkeypatch: pytest.MonkeyPatch, draws: int, kept: int) -> None:
    matrix = np.arange(20.0).reshape(10, 2)
    whole = resampled_totals(matrix, 37)
    monkeypatch.setattr(resample, "_SLICE_DRAWS", draws)
    monkeypatch.setattr(resample, "_MOST_DRAWS", kept)
    resample._kept_weights.cache_clear()
    assert np.array_equal(resampled_totals(matrix, 37), whole)


@pytest.mark.parametrize("draws", [1, 25, 370])
def test_how_many_draws_are_counted_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch, draws: int) -> None:
    generator = np.random.Generator(np.random.SFC64(SEED))
    drawn = generator.integers(0, 10, size=(37, 10), dtype=np.uint16)
    monkeypatch.setattr(resample, "_COUNTED_DRAWS", draws)
    resample._kept_weights.cache_clear()
    assert np.array_equal(resampled_totals(np.eye(10), 37), [np.bincount(row, minlength=10) for row in drawn])


@pytest.mark.parametrize("draws", [1, 16, 1_000])
def test_slicing_changes_no_coin(monkeypatch: pytest.MonkeyPatch, draws: int) -> None:
    monkeypatch.setattr(resample, "_SLICE_DRAWS", draws)
    assert np.array_equal(swapped_totals(np.eye(8), 37), swapped_totals(np.eye(8), 37))
    assert set(np.unique(swapped_totals(np.eye(8), 37))) == {-1.0, 1.0}


def test_coins_are_fair_and_independent() -> None:
    signs = swapped_totals(np.eye(6), 20_000)
    assert np.allclose(signs.mean(axis=0), 0, atol=0.03)
    assert np.allclose(signs.T @ signs / 20_000, np.eye(6), atol=0.03)


def test_a_fault_while_multiplying_is_raised() -> None:
    with pytest.raises(TypeError):
        resampled_totals(np.array([[object()]]), 3)


@pytest.mark.parametrize("size", [1, 200])
@pytest.mark.parametrize("cases", [200, 3_000])
def test_totals_of_a_sparse_matrix_are_those_of_the_whole_matrix(cases: int, size: int) -> None:
    matrix = np.zeros((cases, 130))
    matrix[np.arange(cases), np.arange(cases) * 7 % 129] = (np.arange(cases) % 5 - 1) * size
    compact = resampled_totals(matrix, 40, compact=True)
    assert compact.dtype == (np.int16 if size == 1 else np.int32)
    assert np.array_equal(compact, resampled_totals(matrix, 40))


@pytest.mark.parametrize("slices", [1_000, 1_000_000])
@pytest.mark.parametrize(("kinds", "counted"), [(1, True), (256, True), (257, False)])
def test_totals_of_few_kinds_of_rows_are_those_of_all_rows(
    monkeypatch: pytest.MonkeyPatch, kinds: int, counted: bool, slices: int
) -> None:
    kind = np.arange(600) * 7 % kinds
    matrix = np.column_stack([kind % 100, kind // 100, np.full(600, 127)]).astype(np.int8)
    monkeypatch.setattr(resample, "_MOST_DRAWS", 0)
    monkeypatch.setattr(resample, "_SLICE_DRAWS", slices)
    assert (resample._Kinds.from_matrix(matrix) is not None) == counted
    assert np.array_equal(resampled_totals(matrix, 40), resampled_totals(matrix.astype(float), 40))


def test_rows_of_too_many_numbers_to_tell_them_apart_are_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.full((50, 20), 127, np.int8)
    monkeypatch.setattr(resample, "_MOST_DRAWS", 0)
    assert resample._Kinds.from_matrix(matrix) is None
    assert np.array_equal(resampled_totals(matrix, 40), resampled_totals(matrix.astype(float), 40))


@pytest.mark.parametrize("number", [0.5, 2.0**31])
def test_totals_that_are_not_small_whole_numbers_keep_all_their_bits(number: float) -> None:
    matrix = np.zeros((200, 130))
    matrix[np.arange(200), np.arange(200) % 130] = number
    assert np.array_equal(resampled_totals(matrix, 40, compact=True), resampled_totals(matrix, 40))
