"""Comparators as suite files write them, a name or a mapping of options, and the nodes that they become."""

__all__ = (
    "Comparator",
    "ComparatorOptions",
    "DateOptions",
    "ListOptions",
    "NumberOptions",
    "SetOptions",
    "build_record",
    "build_root",
    "options_digest",
)

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Discriminator, Tag

from pytest_llmeval.core.errors import FieldsError
from pytest_llmeval.evaluators.fields.nodes import AnyValue, Elements, FieldNode, Record, Whole
from pytest_llmeval.evaluators.fields.values import EXACT, Day, Folded, Members, Numeral, ValueComparator

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


_LEAVES: Final[Mapping[str, ValueComparator]] = {"exact": EXACT, "text": Folded(), "number": Numeral(), "date": Day()}
_OTHERS: Final = "*"
_ROOT: Final = "."
_ELEMENTS: Final = "[]"


@dataclass(slots=True)
class _Draft:
    """What options say about one place.

    Attributes:
        path: The option that names it.
        comparator: What the option says; ``None`` if options only name places inside.
        fields: Of the object that stands there.
        element: Of the list that stands there.
    """

    path: str = ""
    comparator: Comparator | None = None
    fields: "dict[str, _Draft]" = field(default_factory=dict)
    element: "_Draft | None" = None

    def at(self, path: str) -> "_Draft":
        """Return the draft of a path below this one."""
        draft = self
        for part in path.split(".") if path != _ROOT else ():
            name = part.removesuffix(_ELEMENTS)
            if name:
                draft = draft.fields.setdefault(name, _Draft(path))
            if part != name:
                if draft.element is None:
                    draft.element = _Draft(path)
                draft = draft.element
        return draft


def build_root(options: Mapping[str, Comparator]) -> FieldNode:
    """Return the node that compares whole answers.

    Raises:
        FieldsError: Two options contradict each other, or a path is empty.
    """
    return _build(_draft(options), named=False)


def build_record(options: Mapping[str, Comparator]) -> Record:
    """Return the node that compares objects.

    Raises:
        FieldsError: Two options contradict each other, or a path is empty.
        ValueError: The options are about a list.
    """
    built = build_root(options)
    if not isinstance(built, Record):
        raise ValueError("found the comparator of a list, expected those of the fields of an object")  # noqa: TRY004 (pydantic reports ValueError)
    return built


def _draft(options: Mapping[str, Comparator]) -> _Draft:
    root = _Draft()
    for path, comparator in options.items():
        if path != _ROOT and not all(path.split(".")):
            raise FieldsError([(path, f"found {path!r}, expected a path such as total, vendor.name or items[].price")])
        draft = root.at(path)
        if draft.comparator is not None:
            raise FieldsError([(path, f"found {path!r} and {draft.path!r}, expected one of them: they name one place")])
        draft.path, draft.comparator = path, comparator
    return root


def _build(draft: _Draft, *, named: bool = True) -> FieldNode:
    comparator = draft.comparator
    options = comparator if isinstance(comparator, ComparatorOptions) else None
    of_list = options.list if options is not None else None
    of_fields = options.fields if options is not None else None
    in_list = comparator == "list" or of_list is not None or draft.element is not None
    if draft.fields and in_list:
        inside = next(iter(draft.fields.values())).path
        raise FieldsError([(inside, f"found {inside!r} inside a list, expected {draft.path}[] in front of the field")])
    if in_list and (comparator in (None, "list") or of_list is not None):
        return _list(draft, of_list or ListOptions())
    if comparator is None or of_fields is not None:
        return _record(draft, of_fields or {}, named=named)
    if draft.fields or draft.element is not None:
        inside = draft.element.path if draft.element is not None else next(iter(draft.fields.values())).path
        raise FieldsError([(inside, f"found {inside!r} inside {draft.path!r}, which is compared as one value")])
    return Whole(_leaf(comparator))


def _list(draft: _Draft, options: ListOptions) -> FieldNode:
    if draft.element is not None:
        if options.of is not None or options.fields is not None:
            inside = draft.element.path
            raise FieldsError(
                [(inside, f"found {inside!r} and comparators of elements at {draft.path!r}, expected one")]
            )
        return Elements(_build(draft.element, named=False), options.key)
    if options.fields is not None:
        return Elements(_record(_Draft(draft.path), options.fields, named=False), options.key)
    if options.of is not None:
        return Elements(_build(_Draft(draft.path, options.of), named=False), options.key)
    return Elements(AnyValue(), options.key)


def _record(draft: _Draft, options: Mapping[str, Comparator], *, named: bool) -> Record:
    inside = _draft(options)
    if inside.comparator is not None or inside.element is not None:
        raise FieldsError([(draft.path, "found a comparator of the object itself, expected those of its fields")])
    if twice := sorted(set(inside.fields) & set(draft.fields)):
        raise FieldsError([(draft.path, f"found the field {twice[0]!r} twice, expected it once")])
    drafts = {**inside.fields, **draft.fields}
    others = drafts.pop(_OTHERS, _Draft(comparator="exact"))
    nodes = {name: None if each.comparator == "ignore" else _build(each) for name, each in drafts.items()}
    return Record(nodes, _rest(others), named=named)


def _rest(others: _Draft) -> FieldNode | None:
    """Return the node of the fields that no option names; objects among them are compared field by field."""
    if others.comparator == "ignore":
        return None
    built = _build(others)
    return AnyValue(built) if isinstance(built, Whole) else built


def _leaf(comparator: Comparator) -> ValueComparator:
    if isinstance(comparator, str):
        return Members() if comparator == "set" else _LEAVES[comparator]
    if comparator.number is not None:
        return Numeral(comparator.number.tolerance, comparator.number.relative)
    if comparator.date is not None:
        return Day(comparator.date.order)
    assert comparator.set is not None
    return Members(_LEAVES[comparator.set.of])
