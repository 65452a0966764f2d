"""Arguments of tool calls, compared, and the pairing of calls by name."""

import marshal
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from pytest_llmeval.core import EvaluatorError
from pytest_llmeval.evaluators import ToolCall
from pytest_llmeval.tasks._matching import first_pairs
from pytest_llmeval.tasks.extraction import Comparator, FieldsOutcome, FieldValue, Record, assign, build_record, compare

_MOST_PAIRS = 250_000
"""Comparisons of calls of one tool: an agent in a loop must not stop the run."""


@dataclass(frozen=True)
class ArgumentRules:
    """The rules of evaluator ``tools`` by which the arguments of an expected and an actual tool call agree.

    Attributes:
        mode: ``exact``: the same arguments; ``partial``: more than the expected ones do no harm, nested ones included.
        ignored: Patterns of paths that do not count.
        defaults: Pattern of a tool's name to what its arguments are if they are left out.
        comparators: Pattern of a tool's name to paths of arguments and their comparators.
        null_is_absent: Whether an argument that is null equals one that is left out.
    """

    mode: Literal["exact", "partial", "ignore"] = "exact"
    ignored: tuple[str, ...] = ()
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    comparators: Mapping[str, Mapping[str, Comparator]] = field(default_factory=dict)
    null_is_absent: bool = True

    @cached_property
    def _by_tool(self) -> dict[str, tuple[Record, Mapping[str, Any]]]:
        return {}

    def _rules(self, tool: str) -> tuple[Record, Mapping[str, Any]]:
        """The rules that compare the arguments of a tool, and its defaults; of several patterns the last counts."""
        rules = self._by_tool.get(tool)
        if rules is None:
            merged: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
            for into, by_pattern in zip(merged, (self.comparators, self.defaults), strict=True):
                for pattern, by_argument in by_pattern.items():
                    if fnmatchcase(tool, pattern):
                        into.update(by_argument)
            rules = self._by_tool[tool] = (build_record(merged[0]), merged[1])
        return rules

    def _completed(self, call: ToolCall) -> Mapping[str, Any]:
        defaults = self._rules(call.name)[1]
        arguments = {**defaults, **(call.arguments or {})} if defaults else call.arguments or {}
        return arguments if self.null_is_absent else _replaced(arguments, None, _NULL)

    @property
    def plain(self) -> bool:
        """Whether all arguments must be the expected ones."""
        return self.mode == "exact" and not (self.ignored or self.comparators)

    def has_keys(self, tool: str) -> bool:
        """Whether calls of a tool agree if and only if their keys are equal."""
        return self.mode != "partial" and not self.ignored and self._rules(tool)[0].transitive

    def key(self, call: ToolCall) -> Hashable:
        """Return the normal form of the arguments of a call."""
        key = self._rules(call.name)[0].key(self._completed(call))
        return () if key is None else key

    def differences(self, expected: ToolCall, actual: ToolCall) -> FieldsOutcome:
        """Compare the arguments of two calls of one tool."""
        out = FieldsOutcome()
        compare(self._rules(expected.name)[0], "", "", self._completed(expected), self._completed(actual), out)
        if self.mode == "partial":
            out.extra = out.clashes
        if out.faults and self.ignored:
            out.wrong = [pair for pair in out.wrong if not self._is_ignored(pair[0].path)]
            out.missing = [field_value for field_value in out.missing if not self._is_ignored(field_value.path)]
            out.extra = [field_value for field_value in out.extra if not self._is_ignored(field_value.path)]
        if out.faults and not self.null_is_absent:
            out.wrong = [(_readable(field_value), _replaced(value, _NULL, None)) for field_value, value in out.wrong]
            out.missing, out.extra = [*map(_readable, out.missing)], [*map(_readable, out.extra)]
        return out

    def counted_arguments(self, call: ToolCall) -> Mapping[str, Any]:
        """Return the arguments that are not ignored."""
        arguments = call.arguments or {}
        if not self.ignored:
            return arguments
        return {name: argument for name, argument in arguments.items() if not self._is_ignored(name)}

    def _is_ignored(self, path: str) -> bool:
        """Whether a pattern names the path, or an argument that holds it."""
        steps = path.replace("[]", "").split(".")
        paths = [".".join(steps[:length]) for length in range(1, len(steps) + 1)]
        return any(fnmatchcase(prefix, pattern) for prefix in paths for pattern in self.ignored)


_NULL: Final = object()
"""Stands for null where that is a value, since comparators of fields take null for an absent field."""


def _replaced(value: Any, old: Any, new: Any) -> Any:
    """Replace a value wherever it is in a tool call's arguments, which are JSON data."""
    if isinstance(value, Mapping):
        return {name: _replaced(item, old, new) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item, old, new) for item in value]
    return new if value is old else value


def _readable(each: FieldValue) -> FieldValue:
    """A field of a tool call's arguments for the report, in which the internal mark of a null is ``None`` again."""
    return each._replace(value=_replaced(each.value, _NULL, None))


@dataclass(frozen=True, slots=True)
class CallPairing:
    """An agent's expected and actual tool calls, paired by name.

    Attributes:
        missing: Expected calls without a partner.
        extra: Calls without a partner.
        stated: Pairs whose expected call says something of arguments.
        agreeing: Those of them whose arguments agree.
        lines: How the arguments of the others differ.
    """

    missing: Sequence[ToolCall]
    extra: Sequence[ToolCall]
    stated: int
    agreeing: int
    lines: Sequence[str]


def pair_calls(expected: Sequence[ToolCall], actual: Sequence[ToolCall], rules: ArgumentRules) -> CallPairing:
    """Pair calls of the same tool one-to-one, as many as possible, so that the most of them agree in their arguments.

    Among such pairings, one in which the most arguments agree.

    Raises:
        EvaluatorError: There are too many calls of one tool to compare all of them.
    """
    alike = _written_alike(expected, actual) if rules.plain else []
    rows, columns = _unpaired(alike, len(expected), len(actual))
    by_name: defaultdict[str, tuple[list[ToolCall], list[ToolCall]]] = defaultdict(lambda: ([], []))
    for side, calls in enumerate(([expected[row] for row in rows], [actual[column] for column in columns])):
        for call in calls:
            by_name[call.name][side].append(call)
    missing: list[ToolCall] = []
    extra: list[ToolCall] = []
    lines: list[str] = []
    stated = agreeing = len(alike)
    for expected_calls, called in by_name.values():
        if not expected_calls or not called:
            missing += expected_calls
            extra += called
            continue
        compares = rules.mode != "ignore"
        spoken = [call for call in expected_calls if call.arguments is not None and compares]
        silent = [call for call in expected_calls if call.arguments is None or not compares]
        equal, others = _best(spoken, called, rules) if spoken else ([], [])
        agreeing += len(equal)
        for row, column in others:
            differences = rules.differences(spoken[row], called[column])
            agreeing += not differences.faults
            made_call = called[column]
            lines += [made_call.placed(f"{made_call.name}: {line}") for line in differences.lines()]
        pairs = equal + others
        stated += len(pairs)
        rows, columns = _unpaired(pairs, len(spoken), len(called))
        missing += [spoken[row] for row in rows] + silent[len(columns) :]
        extra += [called[column] for column in columns[len(silent) :]]
    return CallPairing(missing, extra, stated, agreeing, lines)


_Pairs: TypeAlias = list[tuple[int, int]]


def _written_alike(expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> _Pairs:
    """As many pairs as possible of tool calls with the same JSON text, which spares comparing arguments."""
    return first_pairs(map(_written, expected), map(_written, actual))


def _written(call: ToolCall) -> bytes | None:
    """A tool call's name and arguments as bytes; ``None`` if arguments are not expected or are no JSON data."""
    if call.arguments is None:
        return None
    try:
        # Several times faster than a normal form. Version 2 has no references, so equal bytes mean equal data.
        return marshal.dumps((call.name, call.arguments), 2)  # type: ignore[arg-type]  # ValueError if it cannot
    except ValueError:
        return None


def _best(expected: Sequence[ToolCall], actual: Sequence[ToolCall], rules: ArgumentRules) -> tuple[_Pairs, _Pairs]:
    """The best pairs of expected and actual calls of one tool, by index: those known to agree, and others."""
    if len(expected) == len(actual) == 1:
        return [], [(0, 0)]
    if rules.has_keys(expected[0].name):
        equal = first_pairs(map(rules.key, expected), map(rules.key, actual))
        # No other calls agree, so the pairing of the rest matters for the explanation alone.
        left, right = _unpaired(equal, len(expected), len(actual))
        if not left or not right:
            return equal, []
        weights = [[1 + _alike(expected[row], actual[column]) for column in right] for row in left]
        return equal, [(left[row], right[column]) for row, column in assign(weights)]
    if len(expected) * len(actual) > _MOST_PAIRS:
        sizes = f"{len(expected)} expected and {len(actual)} calls of {expected[0].name}"
        raise EvaluatorError(f"found {sizes}, expected at most {_MOST_PAIRS} pairs")
    outcomes = [[rules.differences(right_call, call) for call in actual] for right_call in expected]
    # A pair counts more than any agreement, and one more call that agrees more than all arguments together.
    fewer = min(len(expected), len(actual))
    agreeing = fewer * max(len(outcome.right) for line in outcomes for outcome in line) + 1
    paired = (agreeing + 1) * (fewer + 1)
    weights = [
        [paired + len(outcome.right) + (0 if outcome.faults else agreeing) for outcome in line] for line in outcomes
    ]
    return [], assign(weights)


def _unpaired(pairs: _Pairs, expected: int, actual: int) -> tuple[list[int], list[int]]:
    """The expected and the actual tool calls that have no partner."""
    if len(pairs) == expected == actual:
        return [], []
    rows, columns = {row for row, _ in pairs}, {column for _, column in pairs}
    return (
        [row for row in range(expected) if row not in rows],
        [column for column in range(actual) if column not in columns],
    )


def _alike(expected: ToolCall, actual: ToolCall) -> int:
    """The number of equal arguments of an expected and an actual tool call, a preference for pairing them."""
    right, answered = expected.arguments or {}, actual.arguments or {}
    return sum(name in answered and answered[name] == value for name, value in right.items())
