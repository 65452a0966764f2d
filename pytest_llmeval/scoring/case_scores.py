"""The scores of one case, read from the columns of all cases."""

__all__ = ("CaseScores", "ScoreColumns")

import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """The scores of all cases.

    Attributes:
        scores: Metric name to one number per case, NaN where there is none.
        owner: Metric name to the label of its evaluator.
        of_family: Metrics of which only the cases have scores that have the member.
    """

    scores: "Mapping[str, FloatArray]"
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
        return name not in columns.of_family or math.isfinite(columns.scores[name][self._row])

    def __getitem__(self, name: str) -> float | None:
        if name not in self:
            raise KeyError(name)
        score = float(self._columns.scores[name][self._row])
        return score if math.isfinite(score) else None

    def __iter__(self) -> Iterator[str]:
        return filter(self.__contains__, self._columns.owner)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)  # a copy needs none of the other cases
