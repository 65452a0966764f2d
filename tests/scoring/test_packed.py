"""Columns of scores read as they were written, in a byte for each number where that is possible."""

import numpy as np
import pytest

from pytest_llmeval.scoring.packed import PackedColumns


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
