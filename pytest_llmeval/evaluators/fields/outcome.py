"""What a comparison of two structures found, field by field."""

__all__ = ("FieldsOutcome", "Found", "element_path", "field_path")

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_LONGEST = 120
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def field_path(path: str, name: str) -> str:
    """Return the path of a field of an object.

    >>> field_path("vendor", "name"), field_path("", "total")
    ('vendor.name', 'total')
    """
    return f"{path}.{name}" if path else name


def element_path(path: str, index: int | None = None) -> str:
    """Return the path of an element of a list; without an index, the path that all its elements share.

    >>> element_path("items"), element_path("items", 2)
    ('items[]', 'items[2]')
    """
    return f"{path}[]" if index is None else f"{path}[{index}]"


class Found(NamedTuple):
    """A field on one side.

    Attributes:
        path: With ``[]`` for the elements of lists.
        place: With the index of each element.
        value: Its value.
    """

    path: str
    place: str
    value: Any


@dataclass(slots=True)
class FieldsOutcome:
    """The fields of two structures.

    Attributes:
        right: Paths of fields that agree.
        wrong: Fields that differ, with the value that was found.
        missing: Fields that are expected and were not found.
        extra: Fields that were found and are not expected.
        whole: Path of each list and named object that is expected, and whether all of it is right.
    """

    right: list[str] = field(default_factory=list)
    wrong: list[tuple[Found, Any]] = field(default_factory=list)
    missing: list[Found] = field(default_factory=list)
    extra: list[Found] = field(default_factory=list)
    whole: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """How many fields are not right."""
        return len(self.wrong) + len(self.missing) + len(self.extra)

    def lines(self) -> list[str]:
        """Say what is not right, each field with what was found and what was expected."""
        lines = [f"{each.place}: found {_shown(value)}, expected {_shown(each.value)}" for each, value in self.wrong]
        lines += [f"{each.place}: missing, expected {_shown(each.value)}" for each in self.missing]
        return lines + [f"{each.place}: extra, found {_shown(each.value)}" for each in self.extra]


def _shown(value: Any) -> str:
    text = _ENCODER.encode(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
