"""Tables as data: what cannot be drawn is refused where it is declared."""

import re

import pytest

from pytest_llmeval.core import CaseTable, ConfusionMatrix, Count, Detail, LabelTable, MetricTable

METRICS = MetricTable("t", ("task", "value", "cases"), [(("gold",), ("f1", Count("n"))), (("tags",), ("f2", "f3"))])
LABELS = LabelTable("t", "label", {"F1": "f1[label]"})
MATRIX = ConfusionMatrix("t", counts="pairs")
CASES = CaseTable("t", {"f1": "f1", "n": Count("n"), "why": Detail("why")})


def test_a_row_has_a_cell_for_each_header() -> None:
    why = "table 'k': found 1 names and 2 cells in row ['gold'], expected 2, one for each header"
    with pytest.raises(ValueError, match=re.escape(why)):
        MetricTable("k", ("task", "@1"), [(("gold",), ("recall@1", "recall@2"))])


def test_a_column_of_labels_is_a_family() -> None:
    with pytest.raises(ValueError, match=r"table 'by label': found 'f1', expected a family such as 'f1\[label\]'"):
        LabelTable("by label", "label", {"F1": "f1"})


def test_the_metrics_that_a_table_names_can_be_listed() -> None:
    named = [table.metric_names() for table in (METRICS, LABELS, MATRIX, CASES)]
    assert named == [["f1", "f2", "f3"], ["f1[label]"], [], ["f1"]]


def test_it_is_known_which_tables_need_counts() -> None:
    plain = MetricTable("t", ("task", "value"), [(("gold",), ("f1",))])
    tables = (METRICS, plain, LABELS, MATRIX, CASES, CaseTable("t", {"f1": "f1"}))
    assert [table.has_counts for table in tables] == [True, False, False, True, True, False]


def test_the_counts_of_a_matrix_are_read_back() -> None:
    sums = {MATRIX.count("joy", "anger"): 1, MATRIX.count(1, None): 2, "cell[1,2]": 3}
    assert ConfusionMatrix.read_cells(sums, "pairs") == {('"joy"', '"anger"'): 1, ("1", "null"): 2}
