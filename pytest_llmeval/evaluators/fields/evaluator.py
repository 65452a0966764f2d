"""Evaluator ``fields``: structured output compared with what is expected, field by field."""

__all__ = ("FieldsEvaluator",)

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import EvaluatorError
from pytest_llmeval.core.evaluator import Evaluator, Metric, Reads
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.wording import printable
from pytest_llmeval.evaluators.answers import NoJsonError, describe_found, read_json
from pytest_llmeval.evaluators.fields.build import Comparator, build_root, options_digest
from pytest_llmeval.evaluators.fields.nodes import Elements, FieldNode, FieldsOutcome, compare
from pytest_llmeval.evaluators.measures.confusion import precision_recall_f1

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

    from pytest_llmeval.core.observation import FloatArray, Sums

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
            yield f"found {describe_found(case.expected)}, expected {expected}"
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
        found, malformed = self._read(case.prediction)
        if case.expected is None:
            names = (*_RATES, "fields_exact", *_COUNTS)
            return Observation({}, undefined=dict.fromkeys(names, "no expected fields"), malformed=malformed)
        if not isinstance(case.expected, self._form):
            raise EvaluatorError(f"found {describe_found(case.expected)} as expected, expected an object")
        malformed = malformed or _of_another_form(found, case.expected)
        out = FieldsOutcome()
        compare(self._root, "", "", case.expected, found, out)
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
        undefined = {} if counts["fields.expected"] or not counts["fields.found"] else {_RATES[1]: "no expected fields"}
        return Observation(counts, _details(out), undefined, malformed)

    def _read(self, prediction: Any) -> tuple[Any, str | None]:
        """Return the structure that was answered, or ``None``; with why it cannot be read."""
        if isinstance(prediction, str):
            try:
                prediction = read_json(prediction)
            except NoJsonError as error:
                return None, str(error)
        if isinstance(prediction, self._form):
            return prediction, None
        form = "a list" if isinstance(self._root, Elements) else "an object"
        return None, f"found {describe_found(prediction)}, expected {form}"

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
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


def _of_another_form(found: Any, expected: Any) -> str | None:
    """Say that an object has none of the expected keys, so that it is an answer to something else."""
    objects = isinstance(found, Mapping) and isinstance(expected, Mapping)
    if not objects or not found or not expected or not found.keys().isdisjoint(expected):
        return None
    ours, theirs = (", ".join(printable(str(key)) for key in list(each)[:_MOST_KEYS]) for each in (expected, found))
    return f"found an object with {theirs}, expected one with {ours}"


def _as_paths(options: Any) -> Any:
    return {"paths": options} if isinstance(options, Mapping) else options


def _by_path(out: FieldsOutcome) -> dict[str, float]:
    """Count how often each field was expected, and right."""
    right = Counter(out.right)
    expected = right + Counter(each.path for each, _ in out.wrong) + Counter(each.path for each in out.missing)
    for path, whole in out.whole:
        expected[path] += 1
        right[path] += whole
    counts: dict[str, float] = {f"expected[{path or '.'}]": count for path, count in expected.items()}
    return counts | {f"right[{path or '.'}]": count for path, count in right.items() if count}


def _details(out: FieldsOutcome) -> dict[str, Any]:
    lines = out.lines()
    if not lines:
        return {}
    more = [f"... and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
    return {"wrong": lines[:_MOST_LINES] + more}
