"""Labels are told apart and read back whatever text, number or truth value they are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_llmeval.core import ConfusionMatrix, LabelKey

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
    assert LabelKey.of_value(value) == key
    assert LabelKey(key).name == name


@pytest.mark.parametrize("value", [None, [], ["joy"], {}, float("nan"), float("inf")])
def test_other_values_are_no_labels(value: object) -> None:
    assert LabelKey.of_value(value) is None


def test_absent_label_is_shown_as_none() -> None:
    assert LabelKey(LabelKey.NONE).name == "(none)"


@settings(deadline=None)
@given(st.lists(any_label, max_size=6))
def test_names_are_distinct_where_keys_are(values: list[object]) -> None:
    keys = {key for value in values if (key := LabelKey.of_value(value)) is not None} | {LabelKey.NONE}
    assert len({LabelKey(key).name for key in keys}) == len(keys)


def test_labels_are_sorted_by_kind_then_value() -> None:
    keys = [LabelKey.NONE, '"b"', '"10"', '"B"', "10", "9", "-1", "1.5", "true", "false", str(10**400)]
    assert sorted(keys, key=lambda key: LabelKey(key).order) == [
        "false", "true", "-1", "1.5", "9", "10", str(10**400), '"10"', '"B"', '"b"', LabelKey.NONE,
    ]  # fmt: skip


@settings(deadline=None)
@given(any_label, any_label)
def test_cell_name_holds_both_labels(gold: object, predicted: object) -> None:
    keys = LabelKey.of_value(gold), LabelKey.of_value(predicted)
    assert keys[0] is not None
    assert keys[1] is not None
    assert ConfusionMatrix.read_cells({ConfusionMatrix.cell_name(keys[0], keys[1]): 3.0, "other": 1.0}) == {keys: 3.0}
    assert ConfusionMatrix.read_cells({ConfusionMatrix.cell_name(keys[0], LabelKey.NONE): 1.0}) == {
        (keys[0], LabelKey.NONE): 1.0
    }


def test_cell_name_is_readable() -> None:
    assert ConfusionMatrix.cell_name('"joy"', "null") == 'cell["joy",null]'
