"""Checks of a text."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from pytest_llmeval.core import Parts, counted, limit, printable
from pytest_llmeval.data import DeclaredType
from pytest_llmeval.evaluators._answers import AnswerValue
from pytest_llmeval.evaluators._calls import MissingTraceError, ToolCall
from pytest_llmeval.evaluators._patterns import SlowPatternError, TimedPattern
from pytest_llmeval.evaluators.checks._check import (
    CheckError,
    CheckKind,
    CheckOutcome,
    CheckTest,
    Subject,
    composed,
    quoted,
)
from pytest_llmeval.evaluators.measures._sentences import split_sentences

if TYPE_CHECKING:
    pass

Text: TypeAlias = str | int | float | bool
"""Texts; numbers and booleans are read as their JSON text, as YAML tells them from texts by their looks."""

_MET = CheckOutcome(True)
_UNMET = CheckOutcome(False)

_SLACK = 1e-12


@dataclass(frozen=True)
class Levenshtein:
    """The options of the check ``levenshtein``.

    Attributes:
        to: What the answer is compared with.
        max: Most edits: characters inserted, left out or replaced.
        min_similarity: Least similarity: 1 minus the edits over the length of the longer text.

    Raises:
        ValueError: No limit is given, or one is out of its range.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    to: Text
    max: int | None = None
    min_similarity: float | None = None

    def __post_init__(self) -> None:
        if self.max is None and self.min_similarity is None:
            raise ValueError("max or min_similarity is missing")
        if self.max is not None and self.max < 0:
            raise ValueError(f"found max {self.max}, expected at least 0")
        if self.min_similarity is not None and not 0 <= self.min_similarity <= 1:
            raise ValueError(f"found min_similarity {self.min_similarity}, expected a number from 0 to 1")


def _plain_text(value: Text) -> str:
    """The text of a check's argument, in the composed form in which answers are compared."""
    text = AnswerValue(value).text
    assert text is not None  # its type has been checked
    return composed(text)


def _folded_text(value: Text) -> str:
    """The text of a check's argument without regard to case, for checks such as ``icontains``."""
    return composed(_plain_text(value).casefold())


def _search_texts(values: Text | Sequence[Text], fold: Callable[[Text], str]) -> list[str]:
    """The texts that a check such as ``contains`` looks for in an answer; an empty text is refused."""
    listed = [values] if isinstance(values, Text) else list(values)
    needles = [fold(value) for value in listed]
    if not needles:
        raise ValueError("found an empty list, expected at least one text")
    if "" in needles:
        raise ValueError("found an empty text, which every answer contains, expected some text")
    return needles


def _is_read_as(value: Text, subject: Subject) -> bool:
    """Whether a check's text, such as ``"1.50"``, denotes the typed object that the target returned."""
    form = subject.expectation(value)
    return form is not value and bool(form == subject.value)


def _equals_check(value: Text) -> CheckTest:
    """Prepare the check ``equals``: an answer is a text."""
    expected = _plain_text(value)

    def test(subject: Subject) -> CheckOutcome:
        met = subject.text == expected or _is_read_as(value, subject)
        return _MET if met else _UNMET

    return test


def _empty_check(_: None) -> CheckTest:
    """Prepare the check ``empty``: an answer has no content."""

    def test(subject: Subject) -> CheckOutcome:
        value = subject.value
        met = not value.strip() if isinstance(value, str) else value is None or (value in ({}, []))
        return CheckOutcome(met, subject.show())

    return test


def _one_of(values: tuple[Text, ...]) -> CheckTest:
    """Prepare the check ``one_of``: an answer is one of some texts."""
    if not values:
        raise ValueError("found an empty list, expected at least one text")
    accepted = frozenset(map(_plain_text, values))
    return lambda subject: _MET if subject.text in accepted else _UNMET


def _starts_with(value: Text) -> CheckTest:
    """Prepare the check ``starts_with``: an answer begins with a text."""
    (start,) = _search_texts(value, _plain_text)
    return lambda subject: _MET if subject.text.startswith(start) else _UNMET


def _ends_with(value: Text) -> CheckTest:
    """Prepare the check ``ends_with``: an answer ends with a text."""
    (end,) = _search_texts(value, _plain_text)
    return lambda subject: _MET if subject.text.endswith(end) else _UNMET


def _containing_check(values: Text | tuple[Text, ...], *, ignore_case: bool, need_all: bool) -> CheckTest:
    """Prepare a check such as ``contains_any`` or ``icontains``: an answer has all or one of some texts."""
    needles = _search_texts(values, _folded_text if ignore_case else _plain_text)

    def test(subject: Subject) -> CheckOutcome:
        text = subject.folded if ignore_case else subject.text
        lacking = [needle for needle in needles if needle not in text]
        met = not lacking if need_all else len(lacking) < len(needles)
        if met:
            return CheckOutcome(True, partial(_first, needles, text))
        if need_all and len(needles) > 1:
            return CheckOutcome(False, f"no {', '.join(map(quoted, lacking))} in {subject.show()}")
        return _UNMET

    return test


def _first(needles: Sequence[str], text: str) -> str:
    """The first of a check's texts that an answer contains, with its position."""
    needle = next(text_sought for text_sought in needles if text_sought in text)
    return f"{quoted(needle)} at character {text.index(needle) + 1}"


def _regex_check(pattern: str) -> CheckTest:
    """Prepare the check ``regex``: a regular expression matches somewhere in an answer."""
    expression = TimedPattern.compile(composed(pattern))

    def test(subject: Subject) -> CheckOutcome:
        try:
            match = expression.search(subject.text)
        except SlowPatternError as error:
            raise CheckError(str(error)) from None
        return (
            _UNMET
            if match is None
            else CheckOutcome(True, lambda: f"{quoted(match[0])} at character {match.start() + 1}")
        )

    return test


def _levenshtein_check(options: Levenshtein) -> CheckTest:
    """Prepare the check ``levenshtein``: an answer is close to a text by edit distance."""
    from rapidfuzz.distance import Levenshtein as Distance

    target = _plain_text(options.to)

    def test(subject: Subject) -> CheckOutcome:
        distance = Distance.distance(subject.text, target)
        similarity = 1 - distance / max(len(subject.text), len(target), 1)
        met = options.max is None or distance <= options.max
        met = met and (options.min_similarity is None or similarity >= options.min_similarity - _SLACK)
        return CheckOutcome(met, lambda: f"{subject.show()}, distance {distance}, similarity {similarity:.4g}")

    return test


def _counting_check(unit: str, count: Callable[[Subject], int], limit: int, *, at_least: bool) -> CheckTest:
    """Prepare a check of an answer's length, such as ``min_words``, against a limit."""
    if limit < 0:
        raise ValueError(f"found {limit}, expected a whole number of at least 0")

    def test(subject: Subject) -> CheckOutcome:
        number = count(subject)
        return CheckOutcome(number >= limit if at_least else number <= limit, lambda: f"{number} {unit}")

    return test


def _count_words(subject: Subject) -> int:
    """The number of words of an answer, for checks of its length."""
    return subject.words


def _count_characters(subject: Subject) -> int:
    """The number of characters of an answer, for checks of its length."""
    return len(subject.text)


def _count_sentences(subject: Subject) -> int:
    """The number of sentences of an answer, for checks of its length."""
    return len(split_sentences(subject.text))


_COUNTED: Final = (
    ("chars", "characters", "characters", _count_characters),
    ("sentences", "sentences", "sentences", _count_sentences),
    ("words", "words", "words between white space", _count_words),
)
_Texts = tuple[Text, ...]
_EXACT = partial(_containing_check, ignore_case=False)
_FOLDED = partial(_containing_check, ignore_case=True)

TEXT_KINDS: Final = (
    CheckKind("contains", "the text stands in the answer", Text, partial(_EXACT, need_all=True), each=True),
    CheckKind("contains_all", "all texts stand in the answer", _Texts, partial(_EXACT, need_all=True)),
    CheckKind("contains_any", "one of the texts stands in the answer", _Texts, partial(_EXACT, need_all=False)),
    CheckKind("empty", "the answer is blank, or an empty list or object", None, _empty_check),
    CheckKind("ends_with", "the answer ends with the text", Text, _ends_with),
    CheckKind("equals", "the answer is this text", Text, _equals_check),
    CheckKind("icontains", "as contains, in any case", Text, partial(_FOLDED, need_all=True), each=True),
    CheckKind("icontains_all", "as contains_all, in any case", _Texts, partial(_FOLDED, need_all=True)),
    CheckKind("icontains_any", "as contains_any, in any case", _Texts, partial(_FOLDED, need_all=False)),
    CheckKind("levenshtein", "the answer is within some edits of a text", Levenshtein, _levenshtein_check),
    *(
        CheckKind(
            f"{end}_{name}", f"{how} so many {what}", int, partial(_counting_check, unit, count, at_least=end == "min")
        )
        for end, how in (("max", "at most"), ("min", "at least"))
        for name, unit, what, count in _COUNTED
    ),
    CheckKind("one_of", "the answer is one of these texts", _Texts, _one_of),
    CheckKind("regex", "the pattern matches somewhere in the answer", str, _regex_check, each=True),
    CheckKind("starts_with", "the answer begins with the text", Text, _starts_with),
)
"""The kinds, in alphabetical order."""


_NO_SPANS: Final = "the prediction has no spans (trace.spans): they come from the source or target setting 'traces'"
_MOST_SHOWN = 5


@dataclass(frozen=True)
class SpanPattern:
    """The options of the check ``span``: a pattern of trace spans, with limits on number and duration.

    Attributes:
        name: Pattern of names, as of a shell; capitals matter.
        attributes: Attribute to its value; of a text, a pattern.
        failed: Only spans that failed, or that did not.
        count: How many spans there have to be; default: at least one.
        max_duration_s: Seconds that none of them takes longer than.
    """

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    name: str = "*"
    attributes: dict[str, Any] = field(default_factory=dict)
    failed: bool | None = None
    count: int | None = None
    max_duration_s: float | None = None

    def means(self, span: Mapping[str, Any]) -> bool:
        """Whether a trace span matches the pattern.

        Raises:
            CheckError: One of its attributes is too long to be a part of the prediction.
        """
        if not fnmatchcase(str(span.get("name", "")), self.name):
            return False
        if self.failed is not None and bool(span.get("failed")) is not self.failed:
            return False
        attributes = span.get("attributes")
        known = attributes if isinstance(attributes, Mapping) else {}
        left_out = span.get("left_out")
        for name, expected in self.attributes.items():
            if isinstance(left_out, list) and name in left_out:
                raise CheckError(f"the attribute {name!r} is too long to be kept: check the part that it is about")
            if name not in known or not _is_argument(known[name], expected):
                return False
        return True


def _is_argument(actual: Any, expected: Any) -> bool:
    """Whether an attribute of a trace span is as the check ``span`` asks; texts are patterns."""
    if isinstance(actual, str) and isinstance(expected, str):
        return fnmatchcase(actual, expected)
    return isinstance(actual, bool) is isinstance(expected, bool) and bool(actual == expected)


def _span_check(pattern: str | SpanPattern) -> CheckTest:
    """Prepare the check ``span``: a prediction's trace has spans of a pattern, within the limits."""
    meant = SpanPattern(pattern) if isinstance(pattern, str) else pattern
    if meant.count is not None and meant.count < 0:
        raise ValueError(f"found the count {meant.count}, expected a number of at least 0")
    if meant.max_duration_s is not None and not meant.max_duration_s >= 0:
        raise ValueError(f"found the duration {meant.max_duration_s}, expected seconds")

    def test(subject: Subject) -> CheckOutcome:
        spans = list(_spans_of_subject(subject))
        matches = [span for span in spans if meant.means(span)]
        is_enough = meant.count is None and bool(matches)
        if not is_enough and len(matches) != meant.count:
            return CheckOutcome(False, _span_summary(matches, spans))
        slow = max(matches, key=_span_seconds, default=None) if meant.max_duration_s is not None else None
        if slow is not None and meant.max_duration_s is not None and _span_seconds(slow) > meant.max_duration_s:
            return CheckOutcome(False, f"{_span_name(slow)} took {limit(_span_seconds(slow))} s")
        return CheckOutcome(True, _span_summary(matches, spans))

    return test


def _spans_of_subject(subject: Subject) -> Iterator[Mapping[str, Any]]:
    """Yield the spans in the trace of a prediction; without any, the check ``span`` cannot be made."""
    origin = subject.case.origin
    prediction = subject.case.prediction if origin is None else origin.prediction
    trace = prediction.get("trace") if isinstance(prediction, Mapping) else None
    spans = trace.get("spans") if isinstance(trace, Mapping) else None
    if not isinstance(spans, list) or not all(isinstance(span, Mapping) for span in spans):
        raise CheckError(_NO_SPANS)
    yield from spans


def _span_seconds(span: Mapping[str, Any]) -> float:
    """The duration of a span in a prediction's trace, which the check ``span`` limits."""
    seconds = span.get("duration_s")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise CheckError(f"the span {_span_name(span)} does not say how long it took")
    return seconds


def _span_name(span: Mapping[str, Any]) -> str:
    """The name of a span in a prediction's trace, as messages of the check ``span`` show it."""
    return f"'{printable(str(span.get('name', '')))}'"


def _span_summary(matches: list[Mapping[str, Any]], spans: list[Mapping[str, Any]]) -> Callable[[], str]:
    """The function that lists the matching spans of a trace, or else all names, for the check ``span``."""

    def summary() -> str:
        if matches:
            return f"{counted(len(matches), 'span')} of this kind: {', '.join(dict.fromkeys(map(_span_name, matches)))}"
        names = list(dict.fromkeys(map(_span_name, spans)))
        more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
        return f"no span of this kind among {', '.join(names[:_MOST_SHOWN]) or 'no spans'}{more}"

    return summary


@dataclass(frozen=True)
class CallPattern:
    """The pattern of tool calls in the check ``tool_call``.

    Attributes:
        name: Pattern of names, as of a shell; capitals matter.
        arguments: Regular expression that is searched in the arguments as compact JSON.
    """

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    name: str = "*"
    arguments: str | None = None

    @cached_property
    def _expression(self) -> TimedPattern | None:
        return None if self.arguments is None else TimedPattern.compile(self.arguments)

    def among(self, calls: Sequence[ToolCall]) -> list[int]:
        """The places of the tool calls that match.

        Raises:
            SlowPatternError: A search takes too long.
        """
        return [place for place, call in enumerate(calls) if self._means(call)]

    def _means(self, call: ToolCall) -> bool:
        """Whether a tool call matches the name and the arguments."""
        if not fnmatchcase(call.name, self.name):
            return False
        written = json.dumps(call.arguments or {}, ensure_ascii=False, separators=(",", ":"))
        return self._expression is None or self._expression.search(written) is not None


@dataclass(frozen=True)
class CountedCalls(CallPattern):
    """The options of the check ``tool_call``: a pattern, with limits on number and order.

    Attributes:
        min: Least number of calls.
        max: Most of them.
        before: Other calls, the first of which must come after the first of these.
    """

    min: int = 1
    max: int | None = None
    before: str | CallPattern | None = None


def _tool_call(pattern: str | CountedCalls) -> CheckTest:
    """Prepare the check ``tool_call``: a prediction has tool calls of a pattern, in number and order."""
    meant = CountedCalls(pattern) if isinstance(pattern, str) else pattern
    later = CallPattern(meant.before) if isinstance(meant.before, str) else meant.before
    if meant.min < 0 or (meant.max is not None and meant.max < meant.min):
        raise ValueError(f"found min {meant.min} and max {meant.max}, expected 0 <= min <= max")
    for call_pattern in (meant, later):
        if call_pattern is not None and call_pattern.arguments is not None:
            TimedPattern.compile(call_pattern.arguments)

    def test(subject: Subject) -> CheckOutcome:
        calls = _calls(subject)
        try:
            places, others = meant.among(calls), [] if later is None else later.among(calls)
        except SlowPatternError as error:
            raise CheckError(str(error)) from None
        names = ", ".join(dict.fromkeys(printable(call.name) for call in calls)) or "no tools"
        summary = f"{counted(len(places), 'call')} of this kind; called: {names}"
        if not meant.min <= len(places) <= (len(calls) if meant.max is None else meant.max):
            return CheckOutcome(False, summary)
        if later is None:
            return CheckOutcome(True, summary)
        if not places or not others:
            return CheckOutcome(False, f"{summary}; {counted(len(others), 'call')} that they must come before")
        order = "before" if places[0] < others[0] else "after"
        return CheckOutcome(places[0] < others[0], f"call {places[0] + 1} {order} call {others[0] + 1}")

    return test


def _calls(subject: Subject) -> list[ToolCall]:
    """The tool calls of a prediction, from its calls or else its messages.

    Raises:
        CheckError: It has neither, or a call cannot be read.
    """
    try:
        trace = subject.part("tool_calls")
    except CheckError as error:
        try:
            trace = subject.part("messages")
        except CheckError:
            raise error from None
    try:
        calls = ToolCall.read_trace(trace)
    except MissingTraceError as error:
        raise CheckError(str(error)) from None
    if faults := [call.fault for call in calls if call.fault is not None]:
        raise CheckError(f"a tool call cannot be read: {faults[0]}")
    return calls


TRACE_KINDS: Final = (
    CheckKind("span", "the trace has such a span, or so many", str | SpanPattern, _span_check, on=Parts.WHOLE),
    CheckKind("tool_call", "such a tool was called, or so often", str | CountedCalls, _tool_call, on=Parts.WHOLE),
)
"""The kinds, in alphabetical order."""
