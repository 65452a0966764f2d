"""Results of single cases, read from the columns of all cases."""

__all__ = ("CaseResults", "CaseScores", "ScoreColumns")

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from pytest_llmeval.core.metrics import MetricIndex
from pytest_llmeval.core.results import CaseRecord, CaseResult
from pytest_llmeval.scoring.packed import PackedColumns


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """The scores of all cases.

    Attributes:
        scores: Metric name to one number per case, NaN where there is none.
        owner: Metric name to the label of its evaluator.
        of_family: Metrics of which only the cases have scores that have the member.
    """

    scores: PackedColumns
    owner: Mapping[str, str]
    of_family: Container[str]


class CaseScores(Mapping[str, float | None]):
    """Metric name to score, ``None`` where it is undefined.

    A dictionary for each case would take most of the memory of many cases, and with many labels nearly all of it.
    """

    __slots__ = ("_columns", "_labels", "_row")

    def __init__(self, columns: ScoreColumns, row: int, labels: Container[str]) -> None:
        """Read the scores of a case.

        Args:
            columns: Of all cases.
            row: Of the case.
            labels: Of the evaluators that measured it; it has the metrics of no other.
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

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)  # a copy needs none of the other cases


class CaseResults(Sequence[CaseResult]):
    """The results of all cases, each made when it is read: kept, they would take more memory than all columns."""

    __slots__ = ("_columns", "_index", "_records")

    def __init__(self, records: Sequence[CaseRecord], columns: ScoreColumns, index: MetricIndex) -> None:
        self._records, self._columns, self._index = records, columns, index

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

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def _result(self, row: int) -> CaseResult:
        record = self._records[row]
        details: dict[str, Any] = {}
        undefined: dict[str, str] = {}
        errors = {label or "prediction": why for label, why in record.errors.items()}
        for label, seen in record.observations.items():
            if seen.details:
                details[label] = seen.details
            undefined.update({self._index.full_name(label, name): why for name, why in seen.undefined.items()})
            errors.update({self._index.full_name(label, name): why for name, why in seen.errored.items()})
        if undefined:
            details["undefined"] = undefined
        if errors:
            details["errors"] = errors
        if record.repeats is not None:
            details["repeats"] = record.repeats
        metrics = CaseScores(self._columns, row, record.observations)
        return CaseResult(record.id, record.outcome, metrics, details, record.reason, record.duration_s)
