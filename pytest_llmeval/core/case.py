"""A case: input, expected answer and prediction."""

__all__ = ("MISSING", "Case", "Missing")

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING
"""Stands for a prediction that was not given; ``None`` is a prediction of null."""


@dataclass(frozen=True, slots=True)
class Case:
    """One evaluation case.

    Attributes:
        id: Unique within its suite.
        input: What the target receives; any JSON value.
        expected: The ground truth; any JSON value, ``None`` where it is absent.
        prediction: What was answered; any JSON value, or `MISSING` until the target has answered.
        labels: What ``group_by`` and judges read, such as ``question_type``.
        tags: Become pytest marks.
        thresholds: Metric name to limits; they replace the suite's limit of the same metric.
        line: Line of the case in its file, counted from 1; 0 where it has none.
    """

    id: str
    input: Any = None
    expected: Any = None
    prediction: Any = MISSING
    labels: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0

    def answered(self, prediction: Any) -> "Case":
        """Return this case with a prediction."""
        return replace(self, prediction=prediction)
