"""A map from the parts of a case to the columns of a table."""

__all__ = ("ABSENT", "PARTS", "Fields", "pick")

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

PARTS: Final = ("id", "input", "expected", "prediction", "labels", "tags", "thresholds")
"""The parts of a case that a row can give."""

ABSENT: Final = object()
"""Stands for a value that a row does not have; ``None`` is a null that it has."""


@dataclass(frozen=True)
class Fields:
    """Which columns feed which part of a case.

    A part that is not named here is read from the column of its own name. A column is named as in the file, or
    by a dotted path into nested data: ``meta.type``, ``answers.0``.

    Attributes:
        id: The column of the id; where there is none, rows are counted from 1.
        input: One column, or several by the names that they get: ``{question: q, context: text}``.
        expected: As `input`.
        prediction: As `input`.
        labels: A column that holds an object of labels, or label to column: ``{question_type: type}``.
        tags: A column that holds a list of tags, or a text with commas between them.
        thresholds: A column that holds an object of limits, or metric to column.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    id: str | None = None
    input: str | dict[str, str] | None = None
    expected: str | dict[str, str] | None = None
    prediction: str | dict[str, str] | None = None
    labels: str | dict[str, str] | None = None
    tags: str | None = None
    thresholds: str | dict[str, str] | None = None


def pick(row: Mapping[str, Any], column: str) -> Any:
    """Return the value in `column`, or at the dotted path that it is; `ABSENT` if there is none."""
    if column in row:
        return row[column]
    here: Any = row
    for step in column.split("."):
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and step.isdecimal() and int(step) < len(here):
            here = here[int(step)]
        else:
            return ABSENT
    return here
