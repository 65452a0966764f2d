from collections.abc import Sequence

import pytest

from pytest_llmeval.tasks._matching import best_pairs, first_pairs


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        ("", "", []),
        ("a", "", []),
        ("ab", "ba", [(0, 1), (1, 0)]),
        ("aa", "aaa", [(0, 0), (1, 1)]),
        ("aab", "ab", [(0, 0), (2, 1)]),
        ([None, "a"], [None, "a"], [(1, 1)]),
        ([1], ["1"], []),
    ],
)
def test_equal_keys_are_paired_in_order(
    rows: Sequence[object], columns: Sequence[object], expected: list[tuple[int, int]]
) -> None:
    assert first_pairs(rows, columns) == expected


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ({}, []),
        ({(3, 7): ()}, [(3, 7)]),
        # One more pair outweighs every preference.
        ({(0, 0): (9, 9), (0, 1): (0, 0), (1, 0): (0, 0)}, [(0, 1), (1, 0)]),
        # The first preference outweighs the second, however large.
        ({(0, 0): (1, 0), (0, 1): (0, 50), (1, 0): (0, 50), (1, 1): (0, 0)}, [(0, 0), (1, 1)]),
        ({(0, 0): (0, 1), (0, 1): (0, 2)}, [(0, 1)]),
        ({(0, 0): (1,), (1, 0): (2,)}, [(1, 0)]),
        # Equally good: by number.
        ({(5, 5): (1,), (2, 5): (1,)}, [(2, 5)]),
        # Pairs greedily taken row by row would leave row 2 alone.
        ({(0, 0): (), (0, 1): (), (1, 0): (), (2, 1): (), (2, 2): ()}, [(0, 1), (1, 0), (2, 2)]),
    ],
)
def test_the_most_pairs_then_the_best_ones_are_taken(
    edges: dict[tuple[int, int], tuple[int, ...]], expected: list[tuple[int, int]]
) -> None:
    assert best_pairs(edges) == expected


def test_preferences_beyond_double_precision_do_not_disturb_those_before_them() -> None:
    size = 40
    edges = {
        (row, column): (int(row == column), 10**9 * int(row != column), 10**9 * column)
        for row in range(size)
        for column in range(size)
    }
    assert best_pairs(edges) == [(place, place) for place in range(size)]
