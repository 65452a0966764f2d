"""Results of single cases, read from the columns of all cases."""

import math
from collections.abc import Container, ItemsView, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

from msgspec import Struct

from pytest_llmeval.core import CaseRecord, CaseResult, FloatArray, MetricIndex, Observation, limit, number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Small: TypeAlias = npt.NDArray[np.int8]


class CaseDigest(NamedTuple):
    """The fingerprints of a case, by which later runs notice that it was edited.

    Attributes:
        data: Of its input, expectation and labels.
        limits: Of its thresholds; nothing if it has none.
    """

    data: str
    limits: str = ""


_NOTHING = -1
"""Stands for NaN in a packed column."""


class PackedColumns(Mapping[str, "FloatArray"]):
    """Metric name to one number per case; most columns take a byte for each number.

    A column that holds anything but NaN and whole numbers from 0 to 127 keeps its floats.
    """

    # Scores of cases are mostly 0, 1 or nothing, and a classification has several columns for each label. Measured with
    # 100,000 cases of 50 labels (212 metrics): 21 MB in place of 171, and 73 in place of 222 while they are computed.
    # With a handful of metrics it makes no difference; reading single numbers takes 1.2 to 1.7 times as long.

    __slots__ = ("_columns", "_length")

    def __init__(self, length: int) -> None:
        self._length = length
        self._columns: dict[str, npt.NDArray[Any]] = {}

    def __getitem__(self, name: str) -> FloatArray:
        import numpy as np

        column = self._columns[name]
        return _floats(column) if column.dtype == np.int8 else column

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def fill(self, name: str, start: int, numbers: FloatArray) -> None:
        """Set numbers of a column from a row on; rows never set are NaN."""
        import numpy as np

        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = np.full(self._length, _NOTHING, np.int8)
        rows = slice(start, start + len(numbers))
        if column.dtype == np.int8:
            packed = _pack_column(numbers)
            if packed is not None:
                column[rows] = packed
                return
            column = self._columns[name] = _floats(column)
        column[rows] = numbers

    def erase(self, name: str, rows: "int | npt.NDArray[np.bool_]") -> None:
        """Set some rows of a column to NaN."""
        import numpy as np

        column = self._columns[name]
        column[rows] = _NOTHING if column.dtype == np.int8 else np.nan

    def at(self, name: str, row: int) -> float:
        """One number of a column of case scores."""
        column = self._columns[name]
        number = column.item(row)
        return math.nan if number == _NOTHING and column.dtype.kind == "i" else float(number)


class ScoreColumns(Struct, frozen=True):
    """The scores of all cases of a run, a column per metric.

    Attributes:
        scores: Metric name to one number per case, NaN if there is none.
        owner: Metric name to evaluator label.
        of_family: Members of families, of which a case has only those that occur in it.
    """

    scores: PackedColumns
    owner: Mapping[str, str]
    of_family: Container[str]


class CaseScores(Mapping[str, float | None]):
    """The scores of one case: metric name to score, ``None`` if it is undefined."""

    # Not a dictionary for each case: 100,000 cases of 8 metrics would hold 67 MB in place of 6, and the process with
    # 212 metrics 1.2 GB in place of 0.2.

    __slots__ = ("_columns", "_labels", "_row")

    def __init__(self, columns: ScoreColumns, row: int, labels: Container[str]) -> None:
        """Read the scores of a case.

        Args:
            columns: Of all cases.
            row: Of the case.
            labels: Evaluators that measured it.
        """
        self._columns, self._row, self._labels = columns, row, labels

    def __contains__(self, name: object) -> bool:
        columns = self._columns
        if not isinstance(name, str) or columns.owner.get(name) not in self._labels:
            return False
        return name not in columns.of_family or math.isfinite(columns.scores.at(name, self._row))

    def __getitem__(self, name: str) -> float | None:
        if name not in self:
            raise KeyError(name)
        score = self._columns.scores.at(name, self._row)
        return score if math.isfinite(score) else None

    def __iter__(self) -> Iterator[str]:
        return filter(self.__contains__, self._columns.owner)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> ItemsView[str, float | None]:
        """All metric names of the case with their scores, each read once."""
        columns, row, labels = self._columns, self._row, self._labels
        scores: dict[str, float | None] = {}
        for name, label in columns.owner.items():
            if label in labels:
                score = columns.scores.at(name, row)
                if math.isfinite(score):
                    scores[name] = score
                elif name not in columns.of_family:
                    scores[name] = None
        return scores.items()

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self.items()),)  # a copy needs none of the other cases


_FIGURES = {"latency_s": "target_latency_s", "tokens": "target_tokens", "cost_usd": "target_cost_usd"}
"""Field of a case's result to the figure of usage that it holds."""


class CaseResults(Sequence[CaseResult]):
    """The results of all cases of a run, each built when it is read."""

    __slots__ = ("_columns", "_figures", "_index", "_records")

    def __init__(self, records: Sequence[CaseRecord], columns: ScoreColumns, index: MetricIndex) -> None:
        self._records, self._columns, self._index = records, columns, index
        self._figures = {field: name for field, name in _FIGURES.items() if name in columns.scores}

    @overload
    def __getitem__(self, place: int) -> CaseResult: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[CaseResult]: ...

    def __getitem__(self, place: int | slice) -> CaseResult | Sequence[CaseResult]:
        rows = range(len(self._records))[place]
        return self._result(rows) if isinstance(rows, int) else [self._result(row) for row in rows]

    def __len__(self) -> int:
        return len(self._records)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # compared by content

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def _result(self, row: int) -> CaseResult:
        """The result of the case in a row."""
        record = self._records[row]
        details: dict[str, Any] = {}
        undefined: dict[str, str] = {}
        abstained: list[str] = []
        errors = {label or "prediction": why for label, why in record.errors.items()}
        for label, seen in record.observations.items():
            if seen.details:
                details[label] = seen.details
            if seen.undefined or seen.abstained or seen.errored:  # as of few
                undefined.update({self._index.full_name(label, name): why for name, why in seen.undefined.items()})
                abstained += [self._index.full_name(label, name) for name in seen.abstained]
                errors.update({self._index.full_name(label, name): why for name, why in seen.errored.items()})
        if undefined:
            details["undefined"] = undefined
        if abstained:
            details["abstained"] = abstained
        if errors:
            details["errors"] = errors
        if record.repeats is not None:
            details["repeats"] = record.repeats
        return CaseResult(
            record.id,
            record.outcome,
            CaseScores(self._columns, row, record.observations),
            details,
            record.reason,
            record.duration_s,
            record.unmet,
            **{field: self._figure(name, row) for field, name in self._figures.items()},
        )

    def _figure(self, name: str, row: int) -> float | None:
        """A figure of the usage of a case; ``None`` if it is unknown."""
        figure = self._columns.scores.at(name, row)
        return figure if math.isfinite(figure) else None


def _floats(column: "Small") -> FloatArray:
    """Unpack a byte column of case scores into floats, with NaN for cases without a score."""
    import numpy as np

    numbers = column.astype(float)
    numbers[column == _NOTHING] = np.nan
    return numbers


def _pack_column(numbers: FloatArray) -> "Small | None":
    """Pack a column of case scores into a byte each; ``None`` if that would change one."""
    import numpy as np

    nothing = np.isnan(numbers)
    whole = np.where(nothing, 0.0, numbers)
    if not fits_a_byte(whole):
        return None
    packed = whole.astype(np.int8)
    packed[nothing] = _NOTHING
    return packed


TOLERANCE = 1e-12
"""Slack of every comparison with a limit, so that 0.1 + 0.2 meets 0.3."""


class Abstained(NamedTuple):
    """A metric of a case whose answer gives it nothing to score.

    Attributes:
        reason: Why, in words.
        value: What it counts as: the worst value of the metric; ``None`` if it has none.
    """

    reason: str
    value: float | None

    @classmethod
    def by_metric(cls, index: MetricIndex, names: Iterable[str], reasons: Mapping[str, str]) -> "dict[str, Abstained]":
        """The metrics to which a case's answer gives nothing to score.

        Args:
            index: The metrics of the suite.
            names: Names of those metrics.
            reasons: Metric to the reason.
        """
        owned = {name: index.find(name) for name in names}
        return {
            name: cls(reasons.get(name, "nothing to score"), None if owner is None else owner.metric.worst)
            for name, owner in owned.items()
        }


class Threshold(Struct, frozen=True):
    """The threshold of a metric for one case: a range, whose ends belong to it. Limits of whole suites are gates."""

    min: float | None = None
    max: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a score lies in the range."""
        return (self.min is None or value >= self.min - TOLERANCE) and (
            self.max is None or value <= self.max + TOLERANCE
        )

    def __str__(self) -> str:
        parts = []
        if self.min is not None:
            parts.append(f">= {limit(self.min)}")
        if self.max is not None:
            parts.append(f"<= {limit(self.max)}")
        return " and ".join(parts)


class Unmet(Struct, frozen=True):
    """A score of a case outside its threshold.

    Attributes:
        metric: Its name.
        value: The score; of an answer that abstains, the worst one, ``None`` if the metric has none.
        limit: The limit.
        abstained: Why the answer leaves nothing to score; empty if it has a score.
    """

    metric: str
    value: float | None
    limit: Threshold
    abstained: str = ""

    def __str__(self) -> str:
        if not self.abstained:
            return f"{self.metric} {self.score}, limit {self.limit}"
        worst = "not met" if self.value is None else limit(round(self.value, 4))
        return f"{self.metric} abstains ({self.abstained}), counted as {worst}, limit {self.limit}"

    @property
    def score(self) -> str:
        """The score in words, for tables."""
        if self.abstained or self.value is None:
            return "abstains"
        return number(self.value, self.limit.min, self.limit.max)

    @classmethod
    def of_case(
        cls,
        limits: Mapping[str, Threshold],
        scores: Mapping[str, float | None],
        abstained: Mapping[str, Abstained] = {},
    ) -> "list[Unmet]":
        """The thresholds of a case that its scores do not meet.

        Args:
            limits: Metric to limit.
            scores: Metric to score. One that does not exist meets every limit, unless the answer abstains.
            abstained: Metrics to which the answer, or some of its repeats, gives nothing to score.
        """
        misses = []
        for metric, bounds in limits.items():
            why, value = abstained.get(metric, ("", scores.get(metric)))
            if not bounds.holds(value) if value is not None else why:
                misses.append(cls(metric, value, bounds, why))
        return misses


_MOST_OF_A_BYTE = 127


def stack(observations: Sequence[Observation | None], *, compact: bool = False) -> "tuple[list[str], npt.NDArray[Any]]":
    """Put an evaluator's observations of all cases into a matrix of counts.

    Args:
        observations: One per case; ``None`` where a case has none (its row is zero).
        compact: Whether whole numbers from 0 to 127 may come as a byte each, if there are no others.

    Returns:
        The sorted count names, and an array of shape ``(cases, names)``.
    """
    import numpy as np

    # Most cases of an evaluator have counts of the same names, which are put into the matrix at once.
    numbers: dict[tuple[str, ...], int] = {}
    shapes = np.array(
        [
            -1 if observation is None else numbers.setdefault(tuple(observation.counts), len(numbers))
            for observation in observations
        ],
        np.intp,
    )
    names = sorted({name for shape in numbers for name in shape})
    position = {name: column for column, name in enumerate(names)}
    order = np.argsort(shapes, kind="stable")
    first = np.searchsorted(shapes[order], np.arange(len(numbers)))
    blocks = []
    for shape, rows in zip(numbers, np.split(order, first)[1:], strict=True):
        counts = chain.from_iterable(
            observation.counts.values() for row in rows if (observation := observations[row]) is not None
        )
        values = np.fromiter(counts, float, len(rows) * len(shape)).reshape(len(rows), len(shape))
        blocks.append((np.ix_(rows, np.array([position[name] for name in shape], np.intp)), values))
    small = compact and all(fits_a_byte(values) for _, values in blocks)
    matrix = np.zeros((len(observations), len(names)), np.int8 if small else float)
    for place, values in blocks:
        matrix[place] = values
    return names, matrix


def fits_a_byte(values: "FloatArray") -> bool:
    """Whether all numbers of a column are whole ones from 0 to 127, so that signed bytes hold them without a change."""
    import numpy as np

    return not (np.signbit(values).any() or (values > _MOST_OF_A_BYTE).any() or (values != np.rint(values)).any())
