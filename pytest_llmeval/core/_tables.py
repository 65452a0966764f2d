"""Tables of results as data.

Names of metrics and counts are those of the evaluator itself; a suite may put a prefix before them.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

from msgspec import Struct

Label: TypeAlias = str | int | float | bool

_NO_LABEL_NAME = "(none)"

_NEEDS_QUOTES = re.compile(r'-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null|\(none\)|".*', re.DOTALL)
"""Strings that would be mistaken for another label when they are shown without quotes."""


_REMEMBERED = 1 << 12
"""Names that are remembered: formulas read the same ones for every block of resamples."""


@lru_cache(maxsize=_REMEMBERED)
def _quoted_label(text: str) -> str:
    """The key of a label that is text, in confusion matrices and families of metrics; cached."""
    return json.dumps(text, ensure_ascii=False)


class LabelKey(Struct, frozen=True):
    """The key of a class label in confusion matrices and families of metrics: its JSON text.

    Keys distinguish labels: ``"1"``, ``1`` and ``1.0`` differ.

    Attributes:
        text: The JSON text.
    """

    NONE: ClassVar = "null"
    """Key of "no label was given"; no label has it, since null is no label."""

    text: str

    @staticmethod
    def of_value(value: Any) -> str | None:
        """The text of the key of a label.

        Returns:
            ``None`` for what cannot be a label (null, a list, an object, a number that is not finite).
        """
        if type(value) is str:
            return _quoted_label(value)
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return json.dumps(value, ensure_ascii=False) if isinstance(value, (str, int, float)) else None

    @property
    def name(self) -> str:
        """The text of the label in tables: without quotes unless it looks like another JSON value."""
        return _label_name(self.text)

    @property
    def order(self) -> tuple[int, float, str]:
        """What labels are sorted by: booleans, numbers by size, strings by code point, no label last."""
        if self.text == LabelKey.NONE:
            return 3, 0.0, self.text
        value = json.loads(self.text)
        if isinstance(value, str):
            return 2, 0.0, value
        return (0 if isinstance(value, bool) else 1), value, self.text


@lru_cache(maxsize=_REMEMBERED)
def _label_name(key: str) -> str:
    """The name of a class label in tables, by the text of its key; cached."""
    if key == LabelKey.NONE:
        return _NO_LABEL_NAME
    value = json.loads(key)
    return value if isinstance(value, str) and not _NEEDS_QUOTES.fullmatch(value) else key


CELL = "cell"
"""Prefix of the names of confusion counts, unless an evaluator has several kinds of them."""


@lru_cache(maxsize=_REMEMBERED)
def _cell_name(gold: str, predicted: str, prefix: str) -> str:
    """The count name of a confusion matrix's cell; cached."""
    return f"{prefix}[{gold},{predicted}]"


@lru_cache(maxsize=_REMEMBERED)
def _read_cell(name: str, prefix: str) -> tuple[str, str]:
    """The keys of the true and the predicted label in the count name of a confusion matrix's cell; cached."""
    gold, predicted = json.loads(name.removeprefix(prefix))
    return LabelKey.of_value(gold) or LabelKey.NONE, LabelKey.of_value(predicted) or LabelKey.NONE


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
        rows: The first cells of a row, as shown, and what fills the others: names of metrics, or counts.
        above_one: The line below the table if a metric in it, or its interval, exceeds 1; empty for none.
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[tuple[Sequence[str], Sequence[str | Count]]]
    above_one: str = ""

    def __post_init__(self) -> None:
        for names, cells in self.rows:
            if len(names) + len(cells) != len(self.headers):
                sizes = f"{len(names)} names and {len(cells)} cells in row {list(names)}"
                raise ValueError(
                    f"table {self.title!r}: found {sizes}, expected {len(self.headers)}, one for each header"
                )

    def metric_names(self) -> list[str]:
        """The metrics that the table names; families as declared."""
        return [cell for _, cells in self.rows for cell in cells if isinstance(cell, str)]

    @property
    def has_counts(self) -> bool:
        """Whether the table shows counts, not only metrics made of them."""
        return any(isinstance(cell, Count) for _, cells in self.rows for cell in cells)


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

    def metric_names(self) -> list[str]:
        """The metrics that the table names; families as declared."""
        return list(self.columns.values())

    @property
    def has_counts(self) -> bool:
        """Whether the table shows counts, not only metrics made of them."""
        return False


class ConfusionMatrix(Struct, frozen=True):
    """Counts of each predicted label for each true one: a row for a true label, a column for a predicted one.

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
        """The name of a cell's count, for observations; ``None`` represents no label."""
        gold, answer = (LabelKey.of_value(label) or LabelKey.NONE for label in (true, predicted))
        return self.cell_name(gold, answer, self.counts)

    @staticmethod
    def cell_name(gold: str, predicted: str, prefix: str = CELL) -> str:
        """The count name of a cell, such as ``cell["joy","anger"]``, from the keys of its labels."""
        return _cell_name(gold, predicted, prefix)

    @staticmethod
    def read_cells(sums: Mapping[str, Any], prefix: str = CELL) -> dict[tuple[str, str], Any]:
        """The cells among named sums, as ``(gold key, predicted key) -> sum``."""
        return {_read_cell(name, prefix): value for name, value in sums.items() if name.startswith(prefix + "[")}

    def metric_names(self) -> list[str]:
        """Return the metrics that it names; families as declared."""
        return [self.metrics] if self.metrics else []

    @property
    def has_counts(self) -> bool:
        """Whether it shows counts, not only metrics made of them."""
        return True


class CaseTable(Struct, frozen=True):
    """A row for each case.

    Attributes:
        title: The line above the table; empty for none.
        columns: Header to what stands below it: the name of a metric, a count or a detail.
    """

    title: str
    columns: Mapping[str, str | Count | Detail]

    def metric_names(self) -> list[str]:
        """The metrics that the table names; families as declared."""
        return [cell for cell in self.columns.values() if isinstance(cell, str)]

    @property
    def has_counts(self) -> bool:
        """Whether the table shows counts, not only metrics made of them."""
        return any(isinstance(cell, Count) for cell in self.columns.values())


ReportTable: TypeAlias = MetricTable | LabelTable | ConfusionMatrix | CaseTable
