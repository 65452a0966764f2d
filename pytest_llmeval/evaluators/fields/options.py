"""Comparators as suite files write them: a name, or a mapping with the options of one comparator."""

__all__ = (
    "Comparator",
    "ComparatorOptions",
    "DateOptions",
    "ListOptions",
    "NumberOptions",
    "SetOptions",
    "options_digest",
)

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, Tag

_STRICT: Mapping[str, Any] = {"extra": "forbid"}


@dataclass(frozen=True)
class NumberOptions:
    """How far numbers may be apart.

    Attributes:
        tolerance: Largest difference; compared in decimal, so 1.1 is within 0.1 of 1.
        relative: Largest difference as a share of the expected number. The larger of both limits counts.
    """

    __pydantic_config__: ClassVar = _STRICT

    tolerance: float = 0.0
    relative: float = 0.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"found {each.name} {value!r}, expected a number of at least 0")


@dataclass(frozen=True)
class DateOptions:
    """How dates are written.

    Attributes:
        order: Of day and month in dates such as 03/05/2024; without it, such a date cannot be read.
    """

    __pydantic_config__: ClassVar = _STRICT

    order: Literal["dmy", "mdy"] | None = None


@dataclass(frozen=True)
class SetOptions:
    """How the members of a set are compared.

    Attributes:
        of: A comparator without options.
    """

    __pydantic_config__: ClassVar = _STRICT

    of: Literal["exact", "text", "number", "date"] = "exact"


@dataclass(frozen=True)
class ListOptions:
    """How the elements of a list are aligned and compared.

    Attributes:
        key: Field of the elements; those with the same value of it belong together.
        of: Comparator of elements that are no objects.
        fields: Path to comparator, for elements that are objects.
    """

    __pydantic_config__: ClassVar = _STRICT

    key: str | None = None
    of: "Comparator | None" = None
    fields: "dict[str, Comparator] | None" = None

    def __post_init__(self) -> None:
        if self.of is not None and self.fields is not None:
            raise ValueError("found both of and fields, expected one of them")


@dataclass(frozen=True)
class ComparatorOptions:
    """A comparator with options; exactly one is given."""

    __pydantic_config__: ClassVar = _STRICT

    number: NumberOptions | None = None
    date: DateOptions | None = None
    set: SetOptions | None = None
    list: ListOptions | None = None
    fields: "dict[str, Comparator] | None" = None

    def __post_init__(self) -> None:
        given = [each for each in ("number", "date", "set", "list", "fields") if getattr(self, each) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "no options"
            raise ValueError(
                f"found {found}, expected the options of one comparator: number, date, set, list or fields"
            )


def _form(comparator: Any) -> str:
    """Distinguish the two forms, so that faults are those of the one that was meant."""
    return "dict[str,ComparatorOptions]" if isinstance(comparator, Mapping | ComparatorOptions) else "str"


Comparator: TypeAlias = Annotated[
    Annotated[Literal["exact", "text", "number", "date", "set", "list", "ignore"], Tag("str")]
    | Annotated[ComparatorOptions, Tag("dict[str,ComparatorOptions]")],
    Discriminator(_form),
]
"""A comparator: its name, or a mapping with its options."""


def options_digest(options: Any) -> str:
    """Return the part of a signature that stands for options too long to be written out; empty without any.

    >>> tolerant = ComparatorOptions(number=NumberOptions(tolerance=1.0))
    >>> options_digest({"total": "number"}) == options_digest({"total": tolerant})
    False
    """
    if not options:
        return ""
    text = json.dumps(options, sort_keys=True, default=vars)
    return f"options:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}|"
