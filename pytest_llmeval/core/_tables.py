"""Tables of results as data.

Names of metrics and counts are those of the evaluator itself; a suite may put a prefix before them.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct

from pytest_llmeval.core._codec import is_finite_number
from pytest_llmeval.core._errors import needing

Label: TypeAlias = str | int | float | bool

NO_LABEL = "null"
"""Key of "no label was given"; no label has it, since null is no label."""

_NO_LABEL_NAME = "(none)"

_NEEDS_QUOTES = re.compile(r'-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null|\(none\)|".*', re.DOTALL)
"""Strings that would be mistaken for another label when they are shown without quotes."""


_REMEMBERED = 1 << 12
"""Names that are remembered: formulas read the same ones for every block of resamples."""


@lru_cache(maxsize=_REMEMBERED)
def _quoted_label(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def label_key(value: Any) -> str | None:
    """Return the JSON text of a label, which distinguishes labels: ``"1"``, ``1`` and ``1.0`` differ.

    Returns:
        The text; ``None`` for what cannot be a label (null, a list, an object, a number that is not finite).
    """
    if type(value) is str:
        return _quoted_label(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (str, int, float)) else None


@lru_cache(maxsize=_REMEMBERED)
def label_name(key: str) -> str:
    """Return a key as people read it: a string without quotes unless it looks like another JSON value."""
    if key == NO_LABEL:
        return _NO_LABEL_NAME
    value = json.loads(key)
    return value if isinstance(value, str) and not _NEEDS_QUOTES.fullmatch(value) else key


def label_order(key: str) -> tuple[int, float, str]:
    """Return what keys are sorted by: booleans, numbers by size, strings by code point, `NO_LABEL` last."""
    if key == NO_LABEL:
        return 3, 0.0, key
    value = json.loads(key)
    if isinstance(value, str):
        return 2, 0.0, value
    return (0 if isinstance(value, bool) else 1), value, key


CELL = "cell"
"""Prefix of the names of confusion counts, unless an evaluator has several kinds of them."""


@lru_cache(maxsize=_REMEMBERED)
def cell_name(gold: str, predicted: str, prefix: str = CELL) -> str:
    """Return the count name of a cell, such as ``cell["joy","anger"]``, from the keys of its two labels."""
    return f"{prefix}[{gold},{predicted}]"


def read_cells(sums: Mapping[str, Any], prefix: str = CELL) -> dict[tuple[str, str], Any]:
    """Return the cells among named sums as ``(gold key, predicted key) -> sum``; other names are left out."""
    return {_read_cell(name, prefix): value for name, value in sums.items() if name.startswith(prefix + "[")}


@lru_cache(maxsize=_REMEMBERED)
def _read_cell(name: str, prefix: str) -> tuple[str, str]:
    gold, predicted = json.loads(name.removeprefix(prefix))
    return label_key(gold) or NO_LABEL, label_key(predicted) or NO_LABEL


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
        """Return the name of a count, for observations; ``None`` represents no label."""
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


@dataclass(frozen=True, slots=True)
class Strength:
    """One system.

    Attributes:
        system: Its name.
        value: Logarithm of its strength; the mean of all systems is 0.
        low: Lower bound of the interval; ``None`` if there is one case only.
        high: Upper bound.
    """

    system: str
    value: float | int
    low: float | int | None = None
    high: float | int | None = None


@dataclass(frozen=True, slots=True)
class Strengths:
    """The systems of a suite, compared in pairs.

    Attributes:
        label: Of the evaluator that compared them.
        systems: The strongest first.
        ties: How readily two equal systems tie: their ties are ``ties / (2 + ties)`` of all their pairs.
        pairs: How many comparisons there are.
        cases: How many cases have some.
    """

    label: str
    systems: Sequence[Strength]
    ties: float | int
    pairs: int
    cases: int


FrameLibrary: TypeAlias = Literal["pandas", "polars", "pyarrow"]
"""A library of data frames."""

_INT64: Final = 2**63


def data_frame(columns: Mapping[str, list[Any]], library: FrameLibrary | None) -> Any:
    """Return columns as a data frame of a library.

    Args:
        columns: Name to values of one length. A column of texts, of numbers or of truth values has these; one of other
            data, or of several kinds, has them as JSON.
        library: Of the frame; default: the first that is installed.

    Raises:
        MissingExtraError: narwhals is not installed.
        ImportError: The library is not installed.
    """
    with needing("a data frame of results", "frames"):
        import narwhals as nw
    known = get_args(FrameLibrary)
    chosen = library or next((each for each in known if find_spec(each)), "pandas")
    if chosen not in known:
        raise ValueError(f"found library {chosen!r}, expected one of {', '.join(known)}")
    return nw.from_dict({name: _cells(cells) for name, cells in columns.items()}, backend=chosen).to_native()


def _cells(values: list[Any]) -> list[Any]:
    """Return the values of a column as values of one type: texts, numbers, truth values, or else JSON."""
    known = [each for each in values if each is not None]
    if all(type(each) is bool for each in known):
        return values
    if all(is_finite_number(each) and abs(each) < _INT64 for each in known):
        as_floats = any(isinstance(each, float) for each in known)
        return [each if each is None or not as_floats else float(each) for each in values]
    if not all(isinstance(each, str) for each in known):
        values = [each if each is None else json.dumps(each, ensure_ascii=False, default=str) for each in values]
    # Half of a surrogate pair, which models do emit, has no bytes in UTF-8.
    return [each if each is None else each.encode(errors="backslashreplace").decode() for each in values]
