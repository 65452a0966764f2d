"""Relevance rules of the evaluator ``retrieval``."""

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

from pydantic import Discriminator, Field, Tag

from pytest_llmeval.core.case import MISSING
from pytest_llmeval.evaluators.answers import describe_found

_STRICT = {"extra": "forbid"}


def _value_at(data: Any, path: str) -> Any:
    """Return the value under a key, or under a path of keys such as ``meta.court``; `MISSING` if there is none."""
    if not isinstance(data, dict):
        return MISSING
    value = data.get(path, MISSING)
    if value is not MISSING or "." not in path:
        return value
    head, _, tail = path.partition(".")
    return _value_at(data.get(head), tail)


def _value_of(result: Mapping[str, Any], paths: Iterable[str]) -> Any:
    """Return the value of a field of a result: at the top or under ``meta``, as corpora have it; null if only that."""
    first: Any = MISSING
    for data in (result, result.get("meta")):
        for path in paths:
            value = _value_at(data, path)
            if value is not MISSING and value is not None:
                return value
            first = value if first is MISSING else first
    return first


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


class Relevance(NamedTuple):
    """The relevance of a result by a rule.

    Attributes:
        relevant: Whether it is relevant, an absent attribute being empty.
        unjudged: Whether it lacks the attribute that the query has, so that its relevance is unknown.
        fault: The fault of its attribute, if any; it is not relevant then.
    """

    relevant: bool
    unjudged: bool = False
    fault: str | None = None


class FieldRule(ABC):
    """A rule that compares a field of a result with the query's ``meta``."""

    field: str
    query_field: str | None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the field in a result: its own name, and the query's."""
        return (self.field,) if self.query_field is None else (self.field, self.query_field)

    @abstractmethod
    def value_fault(self, value: Any) -> str | None:
        """Return the fault of a value, if any."""

    @abstractmethod
    def matcher(self, value: Any) -> Callable[[Any], bool]:
        """Return the function that compares attributes of results with the query's value."""

    def fault(self, meta: Any) -> str | None:
        """Return the fault of the query's field, if any."""
        return self.value_fault(_value_at(meta, self.query_field or self.field))

    def judge(self, meta: Any, results: Iterable[Mapping[str, Any]]) -> list[Relevance]:
        """Return the relevance of each result."""
        value = _value_at(meta, self.query_field or self.field)
        matches, known = self.matcher(value), value is not MISSING
        attributes = (_value_of(result, self.paths) for result in results)
        return [Relevance(matches(each), known and each is MISSING, self.value_fault(each)) for each in attributes]


@dataclass(frozen=True)
class SameSet(FieldRule):
    """A result is relevant if a field holds the same set of values as the query's.

    Numbers and their digits are the same. A text may hold several values, separated by semicolons or by ``、``, and may
    stand in square brackets. Null and the query's missing field are the empty set.

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

    def value_fault(self, value: Any) -> str | None:
        """Return the fault of a value, if any."""
        right = value is MISSING or _values(value) is not None
        return None if right else f"found {describe_found(value)}, expected a list of values"

    def matcher(self, value: Any) -> Callable[[Any], bool]:
        """Return whether an attribute has the query's values and no others."""
        expected = _values(value) or frozenset()
        return lambda attribute: attribute == value or _values(attribute) == expected


def _values(value: Any) -> frozenset[str] | None:
    listed = listed_values(value)
    return None if listed is None else frozenset(listed)


def listed_values(value: Any) -> list[str] | None:
    """Return the values of a set in their order, as texts; ``None`` for anything else."""
    if value is None or value is MISSING:
        return []
    if isinstance(value, str):
        return list(_split(value))
    if isinstance(value, list):
        right = all(isinstance(each, str | int | float) for each in value)
        return [_bare(each) if isinstance(each, str) else str(each) for each in value] if right else None
    return [str(value)] if isinstance(value, int) and not isinstance(value, bool) else None


def _split(text: str) -> Iterator[str]:
    """Yield the values in a text."""
    bare = _bare(text)
    listed = _LISTED if bare != text.strip() else _SEPARATOR
    for part in listed.split(bare):
        if value := _bare(part.strip(_QUOTES)):
            yield value


def _bare(text: str) -> str:
    """Return a text without the square brackets around the whole of it."""
    text = text.strip()
    inner = text[1:-1]
    return inner if text[:1] + text[-1:] in ("[]", "【】") and not _INNER.search(inner) else text


_SEPARATOR = re.compile(r"[;；、,，](?![^\[]*\])")
"""Between values, outside square brackets: these may be a part of a name."""

_LISTED = re.compile(r"[;；、,，]")
_INNER = re.compile(r"[\[\]【】]")
_QUOTES = " \t\r\n\"'"


@dataclass(frozen=True)
class Near(FieldRule):
    """A result is relevant if a number is close to the query's, and flags are the same.

    Null and the query's missing number are 0, a missing flag is not set. Where a flag is set on both sides the numbers
    do not matter. A number may be a text of digits.

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
            tolerances = f"{self.relative:g} and {self.absolute:g}"
            raise ValueError(f"found tolerances {tolerances}, expected relative and absolute of at least 0")

    def __str__(self) -> str:
        return f"near {self.field} {self.relative:g} {self.absolute:g}"

    def value_fault(self, value: Any) -> str | None:
        """Return the fault of a value, if any."""
        where = "" if self.number is None else f", or an object with it as {self.number!r}"
        return None if self.read(value)[0] is not None else f"found {describe_found(value)}, expected a number{where}"

    def matcher(self, value: Any) -> Callable[[Any], bool]:
        """Return whether an attribute is close enough to the query's value."""
        query = self.read(value)
        return lambda attribute: self.distance(query, self.read(attribute)) is not None

    def distance(self, query: "Measured", result: "Measured") -> float | None:
        """Return how far the numbers are apart: 0 where flags make them not matter, ``None`` where that is too far."""
        (number, flags), (other, others) = query, result
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


_DIGITS = re.compile(r"\d{1,9}(?:\.\d{1,9})?")


def _number(value: Any) -> float | None:
    """Return a finite number, that of a text of digits, 0 for nothing, ``None`` for anything else."""
    if value is None or value is MISSING:
        return 0
    if isinstance(value, str):
        text = value.strip()
        return float(text) if _DIGITS.fullmatch(text) else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if number and abs(value) <= sys.float_info.max else None  # neither NaN nor more than can be subtracted


Rule: TypeAlias = Annotated[GoldList | SameSet | Near, Field(discriminator="rule")]


def _form(tasks: Any) -> str:
    """Tell the two forms of the option apart, so that faults are those of the intended form."""
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
