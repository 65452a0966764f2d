"""Relevance rules of the evaluator ``retrieval``."""

__all__ = ("LEGAL", "GoldList", "Measured", "Near", "Rule", "SameSet", "Tasks")

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from pytest_llmeval.evaluators.answers import describe_found

_STRICT = {"extra": "forbid"}


def _value_at(data: Any, path: str) -> Any:
    """Return the value under a key, or under a path of keys such as ``meta.court``; ``None`` if there is none."""
    if not isinstance(data, dict):
        return None
    value = data.get(path)
    if value is not None or "." not in path:
        return value
    head, _, rest = path.partition(".")
    return _value_at(data.get(head), rest)


@dataclass(frozen=True)
class GoldList:
    """A result is relevant if it is in the list of positives.

    Attributes:
        rule: Names the rule.
        by: What makes two documents the same: their ``id``, or their ``text`` without the blanks around it.
    """

    __pydantic_config__: ClassVar = _STRICT

    rule: Literal["gold"]
    by: Literal["id", "text"] = "text"

    def __str__(self) -> str:
        return f"gold by {self.by}"


@dataclass(frozen=True)
class SameSet:
    """A result is relevant if a field holds the same set of values as the query's.

    A missing field, or one of another kind, is the empty set; a lone value is a set of one; numbers and their digits
    are the same.

    Attributes:
        rule: Names the rule.
        field: Field of the result; dots lead into objects.
        query_field: Field of the query's ``meta``, if it has another name.
    """

    __pydantic_config__: ClassVar = _STRICT

    rule: Literal["same_set"]
    field: str
    query_field: str | None = None

    def __str__(self) -> str:
        return f"same {self.field}"

    def fault(self, meta: Any) -> str | None:
        """Return what is wrong with the query's field; ``None`` if nothing is."""
        value = _value_at(meta, self.query_field or self.field)
        right = value is None or isinstance(value, str | int | list)
        return None if right else f"found {describe_found(value)}, expected a list of values"

    def judge(self, meta: Any, results: Iterable[Mapping[str, Any]]) -> list[bool]:
        """Return for each result whether it has the query's values and no others."""
        value = _value_at(meta, self.query_field or self.field)
        wanted = _values(value)
        found = (_value_at(result, self.field) for result in results)
        return [each == value or _values(each) == wanted for each in found]


def _values(value: Any) -> frozenset[str]:
    if isinstance(value, list):
        return frozenset(map(str, value))
    return frozenset((str(value),)) if isinstance(value, str | int) else frozenset()


@dataclass(frozen=True)
class Near:
    """A result is relevant if a number is close to the query's, and flags are the same.

    A missing number is 0, a missing flag is not set. Where a flag is set on both sides the numbers do not matter. A
    result with something else instead of a number is not relevant.

    Attributes:
        rule: Names the rule.
        field: Field of the result: a number, or an object that may hold it; dots lead into objects.
        query_field: Field of the query's ``meta``, if it has another name.
        number: Key of the number, where the field is an object.
        flags: Keys of the flags in that object.
        relative: How far the numbers may be apart, as a share of the query's.
        absolute: How far they may be apart in any case.
    """

    __pydantic_config__: ClassVar = _STRICT

    rule: Literal["near"]
    field: str
    query_field: str | None = None
    number: str | None = None
    flags: tuple[str, ...] = ()
    relative: float = 0.0
    absolute: float = 0.0

    def __post_init__(self) -> None:
        if self.flags and self.number is None:
            raise ValueError("found flags without number, expected the key of the number as well")
        if not (self.relative >= 0 and self.absolute >= 0):  # NaN is neither
            found = f"tolerances {self.relative:g} and {self.absolute:g}"
            raise ValueError(f"found {found}, expected relative and absolute of at least 0")

    def __str__(self) -> str:
        return f"near {self.field} {self.relative:g} {self.absolute:g}"

    def fault(self, meta: Any) -> str | None:
        """Return what is wrong with the query's field; ``None`` if nothing is."""
        number, _ = self.read(_value_at(meta, self.query_field or self.field))
        where = "" if self.number is None else f", or an object with it as {self.number!r}"
        return None if number is not None else f"found a value that is not a number, expected a number{where}"

    def judge(self, meta: Any, results: Iterable[Mapping[str, Any]]) -> list[bool]:
        """Return for each result whether it is close enough to the query."""
        asked = self.read(_value_at(meta, self.query_field or self.field))
        read = (self.read(_value_at(result, self.field)) for result in results)
        return [self.distance(asked, found) is not None for found in read]

    def distance(self, asked: "Measured", found: "Measured") -> float | None:
        """Return how far the numbers are apart: 0 where flags make them not matter, ``None`` where that is too far."""
        (number, flags), (other, others) = asked, found
        if flags != others:
            return None
        if True in flags:
            return 0.0
        if number is None or other is None:
            return None
        distance = abs(other - number)
        return distance if distance <= max(self.absolute, self.relative * abs(number)) else None

    def read(self, value: Any) -> "Measured":
        """Return number and flags of a field; anything but a number is ``None``."""
        if self.number is None or not isinstance(value, dict):
            return _number(value), (False,) * len(self.flags)
        return _number(value.get(self.number)), tuple([bool(value.get(flag)) for flag in self.flags])


Measured: TypeAlias = tuple[float | None, tuple[bool, ...]]
"""A number, or ``None`` for any other value, and flags."""


def _number(value: Any) -> float | None:
    """Return a finite number, 0 for nothing, ``None`` for anything else."""
    if value is None:
        return 0
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if number and abs(value) <= sys.float_info.max else None  # neither NaN nor more than can be subtracted


Rule: TypeAlias = Annotated[GoldList | SameSet | Near, Field(discriminator="rule")]


def _form(tasks: Any) -> str:
    """Tell the two forms of the option apart, so that faults are those of the one that was meant."""
    return "str" if isinstance(tasks, str) else "dict[str,Rule]"


Tasks: TypeAlias = Annotated[
    Annotated[Literal["legal"], Tag("str")] | Annotated[Mapping[str, Rule], Tag("dict[str,Rule]")], Discriminator(_form)
]
"""The option ``tasks``: a set of rules by its name, or rules by their names."""

LEGAL: Mapping[str, Rule] = {
    "gold": GoldList("gold", by="text"),
    "accusation": SameSet("same_set", "accusation"),
    "article": SameSet("same_set", "relevant_articles"),
    "imprisonment": Near(
        "near",
        "imprisonment",
        query_field="term_of_imprisonment",
        number="imprisonment",
        flags=("death_penalty", "life_imprisonment"),
        relative=0.2,
        absolute=6,
    ),
}
"""The four tasks of similar-case retrieval in criminal law; terms are in months."""
