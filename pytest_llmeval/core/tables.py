"""Tables of results as data: declared by an evaluator, and drawn alike by every report.

Names of metrics and counts are those of the evaluator itself; a suite may put a prefix before them.
"""

__all__ = (
    "CaseTable",
    "ConfusionMatrix",
    "Count",
    "Detail",
    "LabelTable",
    "MetricTable",
    "ReportTable",
    "has_counts",
    "metric_names",
)

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from pytest_llmeval.core.labels import CELL, NO_LABEL, Label, cell_name, label_key


class Count(Struct, frozen=True):
    """A cell that shows a count: the sum over all cases, in a `CaseTable` that of the case.

    Attributes:
        name: As in `Observation.counts`.
    """

    name: str


class Detail(Struct, frozen=True):
    """A cell of a `CaseTable` that shows one of the case's details.

    Attributes:
        name: As in `Observation.details`.
    """

    name: str


class MetricTable(Struct, frozen=True):
    """Metrics side by side, each row laid out by hand, such as recall at k by task.

    Attributes:
        title: The line above the table; empty for none.
        headers: Of all columns.
        rows: The first cells of a row, as they are shown, and what fills the others: names of metrics, or counts.
        above_one: The line below the table if a metric in it, or its interval, exceeds 1; empty for none.
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[tuple[Sequence[str], Sequence[str | Count]]]
    above_one: str = ""

    def __post_init__(self) -> None:
        for names, cells in self.rows:
            if len(names) + len(cells) != len(self.headers):
                found = f"{len(names)} names and {len(cells)} cells in row {list(names)}"
                raise ValueError(
                    f"table {self.title!r}: found {found}, expected {len(self.headers)}, one for each header"
                )


class LabelTable(Struct, frozen=True):
    """A row for each label of some families of metrics, such as precision, recall and F1 by emotion.

    Attributes:
        title: The line above the table; empty for none.
        header: Of the column of labels.
        columns: Header to family, as declared: ``{"F1": "f1[label]"}``.
        counts: Headers of the columns that count something; their numbers are shown as whole ones where they are.
    """

    title: str
    header: str
    columns: Mapping[str, str]
    counts: Sequence[str] = ()

    def __post_init__(self) -> None:
        for family in self.columns.values():
            if "[" not in family:
                raise ValueError(f"table {self.title!r}: found {family!r}, expected a family such as 'f1[label]'")
        for header in self.counts:
            if header not in self.columns:
                expected = f"expected one of the columns {', '.join(self.columns)}"
                raise ValueError(f"table {self.title!r}: found the column {header!r} in counts, {expected}")


class ConfusionMatrix(Struct, frozen=True):
    """How often each label was predicted for each true one: a row for a true label, a column for a predicted one.

    The cells are counts of observations, so they add up over cases like everything else.

    Attributes:
        title: The line above the table; empty for none.
        labels: Those to show first, in this order, whether they occur or not; others follow in sorted order.
        counts: What the names of the counts begin with.
        metrics: The family of metrics, as declared, that has the same numbers; reports do not list it once more.

    Example:
        >>> matrix = ConfusionMatrix("Emotions", labels=("joy", "anger"))
        >>> matrix.count("joy", "anger"), matrix.count("joy", None)
        ('cell["joy","anger"]', 'cell["joy",null]')
    """

    title: str
    labels: Sequence[Label] = ()
    counts: str = CELL
    metrics: str = ""

    def __post_init__(self) -> None:
        if self.metrics and "[" not in self.metrics:
            expected = "expected a family such as 'confusion[true->predicted]'"
            raise ValueError(f"table {self.title!r}: found {self.metrics!r}, {expected}")

    def count(self, true: Label | None, predicted: Label | None) -> str:
        """Return the name of a count, for observations; ``None`` stands for no label."""
        return cell_name(label_key(true) or NO_LABEL, label_key(predicted) or NO_LABEL, self.counts)


class CaseTable(Struct, frozen=True):
    """A row for each case.

    Attributes:
        title: The line above the table; empty for none.
        columns: Header to what stands below it: the name of a metric, a count or a detail.
    """

    title: str
    columns: Mapping[str, str | Count | Detail]


ReportTable: TypeAlias = MetricTable | LabelTable | ConfusionMatrix | CaseTable


def metric_names(table: ReportTable) -> Iterator[str]:
    """Yield the metrics that a table names; families as declared."""
    if isinstance(table, MetricTable):
        yield from (cell for _, cells in table.rows for cell in cells if isinstance(cell, str))
    elif isinstance(table, LabelTable | CaseTable):
        yield from (cell for cell in table.columns.values() if isinstance(cell, str))
    elif table.metrics:
        yield table.metrics


def has_counts(table: ReportTable) -> bool:
    """Return whether a table shows counts, not only metrics made of them."""
    if isinstance(table, MetricTable):
        return any(isinstance(cell, Count) for _, cells in table.rows for cell in cells)
    if isinstance(table, CaseTable):
        return any(isinstance(cell, Count) for cell in table.columns.values())
    return isinstance(table, ConfusionMatrix)
