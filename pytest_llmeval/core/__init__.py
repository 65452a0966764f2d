"""The vocabulary of the package."""

__all__ = ("CHECKS_DEFERRED", "WINDOWS", "grouped", "resolve", "with_value")

import os
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.core._case import (
        MISSING,
        Case,
        CaseLabels,
        NoAnswer,
        Parts,
        ShownPrints,
        input_digest,
    )
    from pytest_llmeval.core._codec import (
        LARGEST,
        AnyNumber,
        JsonNumber,
        Opaque,
        WrittenField,
        are_equal,
        decode,
        encode,
        form_of,
        is_finite_number,
        is_json,
        is_typed,
        parse_digits,
    )
    from pytest_llmeval.core._errors import (
        AnyError,
        BudgetError,
        EvaluatorError,
        Fault,
        FieldsError,
        JudgeError,
        LlmevalError,
        MediaError,
        MissingDataError,
        MissingExtraError,
        OptionError,
        PredictionError,
        SuiteError,
        shown_path,
    )
    from pytest_llmeval.core._evaluator import (
        Basis,
        ComparingEvaluator,
        ErrorBucket,
        Evaluator,
        Metric,
        Reads,
        RecordedCounts,
        WrappedEvaluator,
    )
    from pytest_llmeval.core._media import Media
    from pytest_llmeval.core._media_forms import MediaForm, MediaLimits, MediaRun, MediaText
    from pytest_llmeval.core._observation import FloatArray, LazyDetails, Observation, Sums, Totals
    from pytest_llmeval.core._rereading import WrittenObject
    from pytest_llmeval.core._results import (
        AnswerShown,
        CaseChoice,
        CaseOutcome,
        CaseRecord,
        CaseResult,
        Clusters,
        GroupResult,
        IntervalMethod,
        JudgeCall,
        JudgingShown,
        MetricIndex,
        MetricValue,
        Result,
        TargetUsage,
    )
    from pytest_llmeval.core._tables import (
        CaseTable,
        ConfusionMatrix,
        Count,
        Detail,
        LabelKey,
        LabelTable,
        MetricTable,
        ReportTable,
    )
    from pytest_llmeval.core._verdicts import (
        Abstention,
        ChangeVerdict,
        ChangeWord,
        GateOutcome,
        GateResult,
        MetricChange,
        SignificanceTest,
        SnapshotVerdict,
        Statistic,
        Strengths,
        SystemDifference,
    )
    from pytest_llmeval.core._views import (
        AnswerChange,
        Mutator,
        Neighbours,
        Reading,
        Turn,
    )
    from pytest_llmeval.core.wording import (
        AlignedTable,
        LogWriter,
        as_line,
        call_text,
        closest,
        counted,
        excerpt,
        interval,
        limit,
        listed,
        number,
        printable,
        quotation,
        seconds,
        suggest,
        unknown_name,
        width_of,
    )

WINDOWS: Final[bool] = os.name == "nt"
"""True if open files cannot be removed or replaced, and signals end other processes or reach all of a console."""


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key among pairs of key and value, in their order.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


@contextmanager
def with_value(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """A context in which a context variable has a value, such as the registry in use."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


CHECKS_DEFERRED: Final = ContextVar("checks_deferred", default=False)
"""True while the importer of a user's module checks the suites in it itself: conftests may register what they name."""


def resolve(target: Any) -> Any:
    """The object of an import string ``package.module:name``; any other object unchanged.

    Raises:
        ImportError: There is no such module.
        AttributeError: The module has no such name.
    """
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


_HOMES = {
    "_case": (
        "Case",
        "CaseLabels",
        "MISSING",
        "NoAnswer",
        "Parts",
        "ShownPrints",
        "input_digest",
    ),
    "_codec": (
        "AnyNumber",
        "JsonNumber",
        "LARGEST",
        "Opaque",
        "WrittenField",
        "are_equal",
        "decode",
        "encode",
        "form_of",
        "is_finite_number",
        "is_json",
        "is_typed",
        "parse_digits",
    ),
    "_errors": (
        "AnyError",
        "BudgetError",
        "EvaluatorError",
        "Fault",
        "FieldsError",
        "JudgeError",
        "LlmevalError",
        "MediaError",
        "MissingDataError",
        "MissingExtraError",
        "OptionError",
        "PredictionError",
        "SuiteError",
        "shown_path",
    ),
    "_evaluator": (
        "Basis",
        "ComparingEvaluator",
        "ErrorBucket",
        "Evaluator",
        "Metric",
        "Reads",
        "RecordedCounts",
        "WrappedEvaluator",
    ),
    "_media": ("Media",),
    "_media_forms": (
        "MediaForm",
        "MediaLimits",
        "MediaRun",
        "MediaText",
    ),
    "_observation": (
        "FloatArray",
        "LazyDetails",
        "Observation",
        "Sums",
        "Totals",
    ),
    "_rereading": ("WrittenObject",),
    "_results": (
        "AnswerShown",
        "CaseChoice",
        "CaseOutcome",
        "CaseRecord",
        "CaseResult",
        "Clusters",
        "GroupResult",
        "IntervalMethod",
        "JudgeCall",
        "JudgingShown",
        "MetricIndex",
        "MetricValue",
        "Result",
        "TargetUsage",
    ),
    "_tables": (
        "CaseTable",
        "ConfusionMatrix",
        "Count",
        "Detail",
        "LabelKey",
        "LabelTable",
        "MetricTable",
        "ReportTable",
    ),
    "_verdicts": (
        "Abstention",
        "ChangeVerdict",
        "ChangeWord",
        "GateOutcome",
        "GateResult",
        "MetricChange",
        "SignificanceTest",
        "SnapshotVerdict",
        "Statistic",
        "Strengths",
        "SystemDifference",
    ),
    "_views": (
        "AnswerChange",
        "Mutator",
        "Neighbours",
        "Reading",
        "Turn",
    ),
    "wording": (
        "AlignedTable",
        "LogWriter",
        "as_line",
        "call_text",
        "closest",
        "counted",
        "excerpt",
        "interval",
        "limit",
        "listed",
        "number",
        "printable",
        "quotation",
        "seconds",
        "suggest",
        "unknown_name",
        "width_of",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
