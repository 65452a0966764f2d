"""Evaluator ``tools``: tool calls and trajectories compared with the expected ones."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from pytest_llmeval.core import (
    Case,
    Count,
    Evaluator,
    EvaluatorError,
    FloatArray,
    Metric,
    MetricTable,
    MissingExtraError,
    Observation,
    PredictionError,
    Reads,
    Sums,
)
from pytest_llmeval.evaluators import MessageStep, MissingTraceError, ToolCall
from pytest_llmeval.tasks._rates import precision_recall_f1
from pytest_llmeval.tasks.agents._arguments import ArgumentRules, CallPairing, pair_calls
from pytest_llmeval.tasks.agents._catalogue import ToolSchemas, read_schemas
from pytest_llmeval.tasks.agents._policies import ApprovalRule, ApprovalRules, CallLimits, PolicyVerdict, ToolPolicies
from pytest_llmeval.tasks.extraction import SCALARS, Comparator, build_record, exact_key, options_digest, wrong_details

_RATES = ("tool_precision", "tool_recall", "tool_f1")
_COMPARED = (*_RATES, "trajectory_match", "trajectory_f1")
_ACCURACY = "argument_accuracy"
_COUNTS = ("tool_calls", "tool_errors", "loops")
_LIMITS = "tool_limits"
_VALID = "tools_valid"


TrajectoryOrder: TypeAlias = Literal["exact", "in_order", "any_order", "superset", "subset"]
"""The comparison of the names of calls."""


@dataclass(frozen=True)
class Tools(Evaluator):
    """Precision, recall and F1 of tool names, the order of calls, their arguments, and limits.

    ``expected`` is a list of calls ``{name, arguments}``, or of names. The prediction is a list of calls, with
    ``result``, ``status`` and ``id`` if known, or of messages of OpenAI, Anthropic or pydantic-ai.

    Names are compared as multisets: with s names on both sides, c calls and e expected ones, precision is s/c, recall
    s/e and F1 2s/(c + e), pooled over all cases. ``trajectory_f1`` has the length of the longest common subsequence in
    place of s. Where nothing is expected and nothing called, they are 1. ``trajectory_match`` is 1 or 0 a case, by
    `order`.

    ``argument_accuracy`` is the share of calls whose arguments agree among those that are paired by name, under the
    pairing in which the most agree; expected calls that say nothing of arguments take no part.

    Attributes:
        order: What ``trajectory_match`` asks of the names.
        arguments: Whether arguments must be the expected ones, may be more, or are not compared.
        ignore_arguments: Patterns of arguments that do not count, such as ``*_id`` or ``meta.*``.
        null_arguments: Whether an argument that is null counts as ``absent``, or is a ``value``.
        defaults: Pattern of a tool's name to what arguments are if they are left out.
        compare: Pattern of a tool's name to paths of arguments and comparators, as for `fields`.
        include_failed: Whether calls that gave an error are compared. They always count as calls.
        ignore: Patterns of tools whose calls do not count at all, such as ``log_*``.
        max_calls: Most calls in a case.
        forbidden: Patterns of tools that may not be called.
        required: Patterns of tools that must be called.
        before: What must be approved before a tool is called: by a call of another tool, or by the user.
        says_did_not: Pattern of a tool to what claims, in a message, that it was called; found, unless it was.
        schemas: Name of a tool to the JSON Schema of its arguments.
        schemas_file: File with these, or with definitions of tools as sent to models.
    """

    name = "tools"
    reads: ClassVar[Reads] = Reads("tool_calls", second_part="messages", lists=True)

    order: TrajectoryOrder = "exact"
    arguments: Literal["exact", "partial", "ignore"] = "exact"
    ignore_arguments: tuple[str, ...] = ()
    null_arguments: Literal["absent", "value"] = "absent"
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    compare: Mapping[str, Mapping[str, Comparator]] = field(default_factory=dict)
    include_failed: bool = False
    ignore: tuple[str, ...] = ()
    max_calls: int | None = None
    forbidden: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    before: ApprovalRules = ()
    says_did_not: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, Any] | None = None
    schemas_file: str | None = field(default=None, metadata={"path": True})

    def __post_init__(self) -> None:
        if self.max_calls is not None and self.max_calls < 0:
            raise ValueError(f"found max_calls {self.max_calls}, expected at least 0")
        if self.schemas is not None and self.schemas_file is not None:
            raise ValueError("found both schemas and schemas_file, expected one of them")
        for paths in self.compare.values():
            build_record(paths)
        if self._has_schemas and find_spec("jsonschema") is None:
            raise MissingExtraError("the evaluator 'tools' with schemas", "schema")
        if self.schemas is not None:
            _ = self._schemas
        _ = self._policies

    @cached_property
    def _rules(self) -> ArgumentRules:
        null_is_absent = self.null_arguments == "absent"
        return ArgumentRules(self.arguments, self.ignore_arguments, self.defaults, self.compare, null_is_absent)

    @cached_property
    def _limits(self) -> CallLimits:
        return CallLimits(self.max_calls, self.forbidden, self.required)

    @cached_property
    def _policies(self) -> ToolPolicies:
        before = (self.before,) if isinstance(self.before, ApprovalRule) else self.before
        return ToolPolicies(before, self.says_did_not)

    @property
    def has_rules(self) -> bool:
        """Whether there are limits of calls, or policies."""
        return bool(self._limits or self._policies)

    @cached_property
    def _schemas(self) -> ToolSchemas | None:
        if self.schemas_file is not None:
            return ToolSchemas(read_schemas(Path(self.schemas_file)))
        return None if self.schemas is None else ToolSchemas(self.schemas)

    @property
    def _has_schemas(self) -> bool:
        return self.schemas is not None or self.schemas_file is not None

    def describe(self) -> Sequence[Metric]:
        """The metrics of calls against expected ones, counts, and those of the options' limits."""
        failed = "included" if self.include_failed else "left-out"
        ignored = f"ignored:{','.join(sorted(self.ignore))}|" if self.ignore else ""
        names = f"failed:{failed}|{ignored}v:{self.version}"
        how = {"trajectory_match": f"order:{self.order}|{names}", "trajectory_f1": f"order:lcs|{names}"}
        metrics = [
            Metric(name, signature=how.get(name, f"names:multiset|{names}"), averaged=name == "trajectory_match")
            for name in _COMPARED
        ]
        if self.arguments != "ignore":
            nulls = "" if self._rules.null_is_absent else self.null_arguments
            rules = options_digest(
                [option for option in (self.ignore_arguments, self.defaults, self.compare, nulls) if option]
            )
            how_compared = f"arguments:{self.arguments}|pairing:optimal|{rules}{names}"
            metrics.append(Metric(_ACCURACY, signature=how_compared))
        metrics += [
            Metric(name, higher_is_better=False, high=None, signature=f"{ignored}v:{self.version}") for name in _COUNTS
        ]
        if self.has_rules:
            options = [self.max_calls, self.forbidden, self.required]
            limits = options_digest([*options, self.before, self.says_did_not] if self._policies else options)
            metrics.append(Metric(_LIMITS, signature=f"{limits}{names}", averaged=True))
        if self._has_schemas:
            schemas = options_digest(self.schemas)
            metrics.append(Metric(_VALID, signature=f"{schemas}v:{self.version}"))
        return metrics

    def tables(self) -> Sequence[MetricTable]:
        """The called and the expected tools, with the rates."""
        cells = (Count("tools.expected"), Count("tools.compared"), Count("tools.shared"), *_RATES)
        headers = ("", "expected", "called", "both", "precision", "recall", "F1")
        return [MetricTable("Tool calls", headers, [(("all tools",), cells)])]

    def check(self, case: Case) -> Iterable[str]:
        """Yield what is wrong with the expected calls, or with the schemas."""
        try:
            _ = self._schemas
        except (EvaluatorError, ValueError) as error:
            yield f"schemas: {error}"
        yield from (f"tool_calls{call.fault}" for call in ToolCall.read_expected(case.expected) or () if call.fault)

    def measure(self, case: Case) -> Observation:
        """Compare the calls of one case; a missing trace is an error of all metrics.

        Raises:
            EvaluatorError: There are too many calls of one tool to compare.
        """
        try:
            calls = [call for call in in_turns(case, ToolCall.read_trace(case.prediction)) if not self._ignores(call)]
        except MissingTraceError as error:
            return Observation({}, errored=dict.fromkeys(sorted(self._reported), str(error)))
        considered = calls if self.include_failed else [call for call in calls if not call.failed]
        counts: dict[str, float] = {
            "tools.cases": 1,
            "tool_calls": len(calls),
            "tool_errors": sum(call.failed for call in calls),
            "loops": self._loops(calls),
        }
        expected = self._expected(case)
        undefined: dict[str, str] = {}
        abstained: list[str] = []
        wrong: list[str] = []
        if expected is None:
            undefined = dict.fromkeys([*_COMPARED, _ACCURACY], "no expected tool calls")
        else:
            pairing = pair_calls(expected, considered, self._rules)
            counts |= _compared(expected, considered, pairing, self.order)
            if not pairing.stated:
                undefined[_ACCURACY] = "no two calls with arguments are paired"
                abstained += [_ACCURACY] if any(call.arguments is not None for call in expected) else []
            wrong = self._lines(expected, considered, pairing)
        faults = [f"tool_calls{call.fault}" for call in calls if call.fault]
        if self.has_rules:
            unmet, undecided = self._policies.verdict(case, calls) if self._policies else PolicyVerdict((), ())
            unmet = [*self._limits.unmet(calls, considered), *unmet]
            counts["limits.met"] = 0 if unmet or undecided else 1
            if undecided and not unmet:
                counts["limits.undecided"] = 1
                undefined[_LIMITS] = "; ".join(undecided)
                abstained.append(_LIMITS)
            # A rule that cannot be decided is not kept: the case fails, though its metric has no value.
            faults += [*unmet, *(f"undecided: {why}" for why in undecided)]
        if (schemas := self._schemas) is not None:
            invalid = [call.placed(fault) for call in calls if (fault := schemas.fault(call)) is not None]
            counts |= {"valid.met": len(calls) - len(invalid), "valid.n": len(calls)}
            wrong += [f"not valid: {fault}" for fault in invalid]
            if not calls:
                undefined[_VALID] = "no tool calls"
                abstained.append(_VALID)
        undefined = {name: why for name, why in undefined.items() if name in self._reported}
        malformed = "; ".join(faults) or None
        return Observation(
            counts,
            wrong_details(wrong),
            undefined,
            malformed,
            abstained=tuple(filter(self._reported.__contains__, abstained)),
        )

    def _ignores(self, call: ToolCall) -> bool:
        return any(fnmatchcase(call.name, pattern) for pattern in self.ignore)

    def _expected(self, case: Case) -> list[ToolCall] | None:
        calls = ToolCall.read_expected(case.expected)
        return None if calls is None else [call for call in calls if not self._ignores(call)]

    @cached_property
    def _reported(self) -> frozenset[str]:
        return frozenset(metric.name for metric in self.describe())

    def _loops(self, calls: Sequence[ToolCall]) -> int:
        """The number of calls that repeat an earlier one, arguments included."""
        counted = [(call.name, self._rules.counted_arguments(call)) for call in calls]
        # Where texts and numbers alone tell all calls apart, their normal forms are not needed.
        if len({(name, _scalars(arguments)) for name, arguments in counted}) == len(counted):
            return 0
        return len(counted) - len({(name, exact_key(arguments)) for name, arguments in counted})

    def _lines(self, expected: Sequence[ToolCall], calls: Sequence[ToolCall], pairing: CallPairing) -> list[str]:
        """Say which calls have no partner, which are out of order, and which arguments differ."""
        lines = [*_joined_lines(f"missing call: {call}" for call in pairing.missing)]
        lines += _joined_lines(call.placed(f"extra call: {call}") for call in pairing.extra)
        names = [call.name for call in expected], [call.name for call in calls]
        if not pairing.missing and not pairing.extra and not follows(*names, self.order):
            lines.append(f"order: found {', '.join(names[1])}, expected {', '.join(names[0])}")
        return lines + list(pairing.lines)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Compute the metrics from summed counts."""
        import numpy as np

        called, expected, cases = sums["tools.compared"], sums["tools.expected"], sums["compared.cases"]
        rates = precision_recall_f1(sums["tools.shared"], called, expected, cases)
        metrics = dict(zip(_RATES, rates, strict=True))
        metrics["trajectory_match"] = sums["tools.follows"] / cases
        metrics["trajectory_f1"] = precision_recall_f1(sums["tools.in_order"], called, expected, cases)[2]
        metrics[_ACCURACY] = sums["arguments.agreeing"] / sums["arguments.stated"]
        metrics |= {name: np.where(sums["tools.cases"] > 0, sums[name], np.nan) for name in _COUNTS}
        metrics[_LIMITS] = sums["limits.met"] / (sums["tools.cases"] - sums["limits.undecided"])
        metrics[_VALID] = sums["valid.met"] / sums["valid.n"]
        return {metric.name: metrics[metric.name] for metric in self.describe()}


def in_turns(case: Case, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
    """A conversation's tool calls with the turn of each; unchanged if its messages do not name calls."""
    try:
        steps = MessageStep.read_case(case) or []
    except (MissingTraceError, PredictionError):
        return calls
    turns, turn = [], 0
    for step in steps:
        turn += step.role == "user"
        turns += [(call.name, max(turn, 1)) for call in step.calls]
    if turn <= 1 or [name for name, _ in turns] != [call.name for call in calls]:
        return calls
    return [call._replace(turn=own) for call, (_, own) in zip(calls, turns, strict=True)]


def common_subsequence(expected: Sequence[str], called: Sequence[str]) -> int:
    """The length of the longest common subsequence of expected and called tool names.

    >>> common_subsequence("abcd", "badc")
    2
    """
    from rapidfuzz.distance import LCSseq

    return len(expected) if expected == called else LCSseq.similarity(expected, called)


def _scalars(arguments: Mapping[str, Any]) -> frozenset[Any]:
    """The texts and numbers among a tool call's arguments."""
    return frozenset([argument for argument in arguments.values() if type(argument) in SCALARS])


def _compared(
    expected: Sequence[ToolCall], calls: Sequence[ToolCall], pairing: CallPairing, order: TrajectoryOrder
) -> dict[str, float]:
    """The counts of one case that compare its tool calls with the expected ones."""
    names = [call.name for call in expected]
    called = [call.name for call in calls]
    return {
        "compared.cases": 1,
        "tools.expected": len(names),
        "tools.compared": len(called),
        "tools.shared": len(names) - len(pairing.missing),
        "tools.in_order": common_subsequence(names, called),
        "tools.follows": int(follows(names, called, order)),
        "arguments.stated": pairing.stated,
        "arguments.agreeing": pairing.agreeing,
    }


def follows(expected: Sequence[str], called: Sequence[str], order: TrajectoryOrder) -> bool:
    """Whether an agent's calls follow the expected trajectory in the order that the suite demands.

    Args:
        expected: The names of the expected calls.
        called: The names of the calls.
        order: ``exact``: the same sequence. ``in_order``: the expected sequence is a subsequence of the calls.
            ``any_order``: the same names, equally often. ``superset``: each expected name at least as often as
            expected. ``subset``: no name more often than expected.

    Example:
        >>> follows(["search", "book"], ["search", "look", "book"], "in_order")
        True
        >>> follows(["search", "book"], ["book", "search"], "any_order")
        True
    """
    if order == "exact":
        return list(expected) == list(called)
    if order == "in_order":
        remaining = iter(called)
        return all(name in remaining for name in expected)
    right, actual = Counter(expected), Counter(called)
    if order == "any_order":
        return right == actual
    return right <= actual if order == "superset" else actual <= right


def _joined_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the report's lines on tool calls, with equal neighbours joined into one.

    >>> list(_joined_lines(["check()", "check()", "book()", "check()"]))
    ['check() (x 2)', 'book()', 'check()']
    """
    for line, equal in groupby(lines):
        times = sum(1 for _ in equal)
        yield f"{line} (x {times})" if times > 1 else line
