"""Evaluator ``fields``: structured output compared with what is expected by the comparators of its fields."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Discriminator, Tag

from pytest_llmeval.core import (
    Case,
    Evaluator,
    EvaluatorError,
    FieldsError,
    FloatArray,
    Metric,
    Observation,
    Reads,
    Sums,
    printable,
)
from pytest_llmeval.evaluators import AnswerText, AnswerValue
from pytest_llmeval.tasks._rates import precision_recall_f1
from pytest_llmeval.tasks.extraction._nodes import AnyValue, Elements, FieldNode, FieldsOutcome, Record, Whole, compare
from pytest_llmeval.tasks.extraction._values import EXACT, Day, Folded, Members, Numeral, ValueComparator

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema


_STRICT: Mapping[str, Any] = {"extra": "forbid"}


@dataclass(frozen=True)
class NumberOptions:
    """Tolerances of numbers.

    Attributes:
        tolerance: Largest difference; compared in decimal, so 1.1 is within 0.1 of 1.
        relative: Largest difference as a share of the expected number. The larger of both limits counts.
    """

    __pydantic_config__: ClassVar = _STRICT

    tolerance: float = 0.0
    relative: float = 0.0

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"found {option.name} {value!r}, expected a number of at least 0")


@dataclass(frozen=True)
class DateOptions:
    """The order of day and month in dates.

    Attributes:
        order: Of day and month in dates such as 03/05/2024; without it, such a date cannot be read.
    """

    __pydantic_config__: ClassVar = _STRICT

    order: Literal["dmy", "mdy"] | None = None


@dataclass(frozen=True)
class SetOptions:
    """The comparator of the members of a set.

    Attributes:
        of: A comparator without options.
    """

    __pydantic_config__: ClassVar = _STRICT

    of: Literal["exact", "text", "number", "date"] = "exact"


@dataclass(frozen=True)
class ListOptions:
    """The alignment and the comparators of the elements of a list.

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
        options = [name for name in ("number", "date", "set", "list", "fields") if getattr(self, name) is not None]
        if len(options) != 1:
            names = " and ".join(options) or "no options"
            raise ValueError(
                f"found {names}, expected the options of one comparator: number, date, set, list or fields"
            )


def _form(comparator: Any) -> str:
    """Tell a comparator's name from its options in a suite file, so that faults are those of the intended form."""
    return "dict[str,ComparatorOptions]" if isinstance(comparator, Mapping | ComparatorOptions) else "str"


Comparator: TypeAlias = Annotated[
    Annotated[Literal["exact", "text", "number", "date", "set", "list", "ignore"], Tag("str")]
    | Annotated[ComparatorOptions, Tag("dict[str,ComparatorOptions]")],
    Discriminator(_form),
]
"""A comparator: its name, or a mapping with its options."""


def options_digest(options: Any) -> str:
    """The part of a metric's signature that represents long options by a digest; empty without any.

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
    """The comparators that a suite file gives for one path of an extracted structure.

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
    """The comparator of whole extracted answers, built from a suite file's options.

    Raises:
        FieldsError: Two options contradict each other, or a path is empty.
    """
    return _build(_draft(options), named=False)


def build_record(options: Mapping[str, Comparator]) -> Record:
    """The comparator of objects such as tool arguments, built from the comparators of their fields.

    Raises:
        FieldsError: Two options contradict each other, or a path is empty.
        ValueError: The options are about a list.
    """
    built = build_root(options)
    if not isinstance(built, Record):
        raise ValueError("found the comparator of a list, expected those of the fields of an object")  # noqa: TRY004 (pydantic reports ValueError)
    return built


def _draft(options: Mapping[str, Comparator]) -> _Draft:
    """The tree of a suite file's field comparators, built from their dotted paths."""
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
    """Build the comparator of an extracted field and of all fields inside it."""
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
    """Build the comparator of an extracted list from the options of the list and of its elements."""
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
    """Build the comparator of an extracted object from its fields' comparators; unnamed fields are compared exactly."""
    inside = _draft(options)
    if inside.comparator is not None or inside.element is not None:
        raise FieldsError([(draft.path, "found a comparator of the object itself, expected those of its fields")])
    if twice := sorted(set(inside.fields) & set(draft.fields)):
        raise FieldsError([(draft.path, f"found the field {twice[0]!r} twice, expected it once")])
    drafts = {**inside.fields, **draft.fields}
    others = drafts.pop(_OTHERS, _Draft(comparator="exact"))
    nodes = {name: None if child.comparator == "ignore" else _build(child) for name, child in drafts.items()}
    return Record(nodes, _others_node(others), named=named)


def _others_node(others: _Draft) -> FieldNode | None:
    """The comparator of extracted fields that no option names; objects among them are compared by field."""
    if others.comparator == "ignore":
        return None
    built = _build(others)
    return AnyValue(built) if isinstance(built, Whole) else built


def _leaf(comparator: Comparator) -> ValueComparator:
    """The comparator of a single extracted value that a suite file names or configures."""
    if isinstance(comparator, str):
        return Members() if comparator == "set" else _LEAVES[comparator]
    if comparator.number is not None:
        return Numeral(comparator.number.tolerance, comparator.number.relative)
    if comparator.date is not None:
        return Day(comparator.date.order)
    assert comparator.set is not None
    return Members(_LEAVES[comparator.set.of])


_RATES = ("field_precision", "field_recall", "field_f1")
_COUNTS = ("missing_fields", "extra_fields")
_MOST_LINES = 50
_MOST_KEYS = 10
"""Lines that details list."""


@dataclass(frozen=True)
class FieldsEvaluator(Evaluator):
    """Accuracy of each field, pooled precision, recall and F1 of fields, and whether all fields are right.

    The options are the paths of fields, each with its comparator. What no path names is compared exactly; ``"*"`` sets
    another comparator for it, or ``ignore``. ``expected`` is an object. The prediction is an object, a text that is
    JSON, or a text with JSON in a fenced block.

    A field is a value that is no object; each field of each element of a list that is compared by ``list`` is one. A
    field that is null counts as absent. With r fields that agree, p found ones and e expected ones, precision is r/p,
    recall r/e and F1 2r/(p + e), pooled over all cases. Where nothing is expected and nothing found, they are 1.

    Attributes:
        paths: Path to comparator.
    """

    name = "fields"
    reads: ClassVar[Reads] = Reads("answer", objects=True, records=True)

    paths: Mapping[str, Comparator] = field(default_factory=dict)

    def __post_init__(self) -> None:
        build_root(self.paths)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        """Read the options as paths, so that a suite names them without a key above."""
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(_as_paths, handler(source))

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: "CoreSchema", handler: "GetJsonSchemaHandler") -> dict[str, Any]:
        """Return the schema of the paths."""
        inner = handler.resolve_ref_schema(handler(schema))
        comparator = inner["properties"]["paths"]["additionalProperties"]
        return {"type": "object", "additionalProperties": comparator}

    @cached_property
    def _root(self) -> FieldNode:
        return build_root(self.paths)

    def describe(self) -> Sequence[Metric]:
        """Return the rates, the share of cases that are right, counts, and the accuracy of each field."""
        signature = f"fields:pooled|list:optimal|{options_digest(self.paths)}v:{self.version}"
        return [
            *(Metric(name, signature=signature) for name in _RATES),
            Metric("fields_exact", signature=signature, averaged=True),
            *(Metric(name, higher_is_better=False, high=None, signature=signature) for name in _COUNTS),
            Metric("field[label]", signature=signature),
        ]

    def check(self, case: Case) -> Iterable[str]:
        """Yield fields of the expected object that their comparators cannot read."""
        if case.expected is None:
            return
        if not isinstance(case.expected, self._form):
            expected = "a list" if isinstance(self._root, Elements) else "an object"
            yield f"found {AnswerValue(case.expected).kind}, expected {expected}"
        else:
            yield from self._root.faults("", case.expected)

    @property
    def _form(self) -> tuple[type, ...]:
        return (list, tuple) if isinstance(self._root, Elements) else (Mapping,)

    def measure(self, case: Case) -> Observation:
        """Compare the fields of one case.

        Raises:
            EvaluatorError: What is expected is neither absent nor an object, or a list is too long to align.
        """
        answer, malformed = self._read(case.prediction)
        if case.expected is None:
            names = (*_RATES, "fields_exact", *_COUNTS)
            return Observation({}, undefined=dict.fromkeys(names, "no expected fields"), malformed=malformed)
        if not isinstance(case.expected, self._form):
            raise EvaluatorError(f"found {AnswerValue(case.expected).kind} as expected, expected an object")
        malformed = malformed or _of_another_form(answer, case.expected)
        out = FieldsOutcome()
        compare(self._root, "", "", case.expected, answer, out)
        right = len(out.right)
        counts: dict[str, float] = {
            "fields.cases": 1,
            "fields.exact": 0 if out.faults or malformed else 1,
            "fields.right": right,
            "fields.expected": right + len(out.wrong) + len(out.missing),
            "fields.found": right + len(out.wrong) + len(out.extra),
            "missing_fields": len(out.missing),
            "extra_fields": len(out.extra),
        }
        counts |= _by_path(out)
        return Observation(counts, wrong_details(out.lines()), malformed=malformed)

    def _read(self, prediction: Any) -> tuple[Any, str | None]:
        """Return the structure that was answered, or ``None``; with why it cannot be read."""
        if isinstance(prediction, str):
            try:
                prediction = AnswerText(prediction).read_json()
            except ValueError as error:
                return None, str(error)
        if isinstance(prediction, self._form):
            return prediction, None
        form = "a list" if isinstance(self._root, Elements) else "an object"
        return None, f"found {AnswerValue(prediction).kind}, expected {form}"

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Compute the rates of all fields, and of each."""
        import numpy as np

        cases = sums["fields.cases"]
        rates = precision_recall_f1(sums["fields.right"], sums["fields.found"], sums["fields.expected"], cases)
        metrics = dict(zip(_RATES, rates, strict=True)) | {"fields_exact": sums["fields.exact"] / cases}
        metrics |= {name: np.where(cases > 0, sums[name], np.nan) for name in _COUNTS}
        for name in sorted(sums):
            if name.startswith("expected["):
                path = name.removeprefix("expected")
                metrics[f"field{path}"] = sums[f"right{path}"] / sums[name]
        return metrics


def _of_another_form(answer: Any, expected: Any) -> str | None:
    """The message that an extracted object has none of the expected keys, so it answers something else."""
    objects = isinstance(answer, Mapping) and isinstance(expected, Mapping)
    if not objects or not answer or not expected or not answer.keys().isdisjoint(expected):
        return None
    ours, theirs = (", ".join(printable(str(key)) for key in list(side)[:_MOST_KEYS]) for side in (expected, answer))
    return f"found an object with {theirs}, expected one with {ours}"


def _as_paths(options: Any) -> Any:
    """A suite file's ``fields`` in the form of the evaluator's options, where comparators are under ``paths``."""
    return {"paths": options} if isinstance(options, Mapping) else options


def _by_path(out: FieldsOutcome) -> dict[str, float]:
    """Count how often each extracted field was expected, and how often it was right."""
    right = Counter(out.right)
    expected = (
        right
        + Counter(field_value.path for field_value, _ in out.wrong)
        + Counter(field_value.path for field_value in out.missing)
    )
    for path, whole in out.whole:
        expected[path] += 1
        right[path] += whole
    counts: dict[str, float] = {f"expected[{path or '.'}]": count for path, count in expected.items()}
    return counts | {f"right[{path or '.'}]": count for path, count in right.items() if count}


def wrong_details(lines: Sequence[str]) -> dict[str, Any]:
    """The first 50 lines on wrong fields or arguments as the details of a case."""
    if not lines:
        return {}
    more = [f"... and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
    return {"wrong": [*lines[:_MOST_LINES], *more]}
