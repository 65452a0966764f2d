"""Checks of the spans of a trace: what ran, with which attributes, how often, and for how long."""

__all__ = ("SPAN_KINDS", "SpanPattern")

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Final

from pytest_llmeval.core.parts import WHOLE, PredictionParts
from pytest_llmeval.core.wording import counted, limit, printable
from pytest_llmeval.data.files.validation import STRICT
from pytest_llmeval.evaluators.checks.contract import CheckError, CheckKind, CheckOutcome, CheckTest, Subject

_NO_SPANS: Final = "the prediction has no spans (trace.spans): they come from the source or target setting 'traces'"
_MOST_SHOWN = 5


@dataclass(frozen=True)
class SpanPattern:
    """Which spans are meant, and what is wanted of them.

    Attributes:
        name: Pattern of names, as of a shell; capitals matter.
        attributes: Attribute to its value; of a text, a pattern.
        failed: Only spans that failed, or that did not.
        count: How many spans there have to be; default: at least one.
        max_duration_s: Seconds that none of them takes longer than.
    """

    __pydantic_config__: ClassVar = STRICT

    name: str = "*"
    attributes: dict[str, Any] = field(default_factory=dict)
    failed: bool | None = None
    count: int | None = None
    max_duration_s: float | None = None

    def means(self, span: Mapping[str, Any]) -> bool:
        """Return whether a span is one of those.

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
        for name, wanted in self.attributes.items():
            if isinstance(left_out, list) and name in left_out:
                raise CheckError(f"the attribute {name!r} is too long to be kept: check the part that it is about")
            if name not in known or not _is(known[name], wanted):
                return False
        return True


def _is(found: Any, wanted: Any) -> bool:
    if isinstance(found, str) and isinstance(wanted, str):
        return fnmatchcase(found, wanted)
    return isinstance(found, bool) is isinstance(wanted, bool) and bool(found == wanted)


def _span(pattern: str | SpanPattern) -> CheckTest:
    meant = SpanPattern(pattern) if isinstance(pattern, str) else pattern
    if meant.count is not None and meant.count < 0:
        raise ValueError(f"found the count {meant.count}, expected a number of at least 0")
    if meant.max_duration_s is not None and not meant.max_duration_s >= 0:
        raise ValueError(f"found the duration {meant.max_duration_s}, expected seconds")

    def test(subject: Subject) -> CheckOutcome:
        spans = list(_spans(subject))
        found = [each for each in spans if meant.means(each)]
        wanted = meant.count is None and bool(found)
        if not wanted and len(found) != meant.count:
            return CheckOutcome(False, _told(found, spans))
        slow = max(found, key=_seconds, default=None) if meant.max_duration_s is not None else None
        if slow is not None and meant.max_duration_s is not None and _seconds(slow) > meant.max_duration_s:
            return CheckOutcome(False, f"{_name(slow)} took {limit(_seconds(slow))} s")
        return CheckOutcome(True, _told(found, spans))

    return test


def _spans(subject: Subject) -> Iterator[Mapping[str, Any]]:
    origin = subject.case.origin
    prediction = origin.prediction if isinstance(origin, PredictionParts) else subject.case.prediction
    trace = prediction.get("trace") if isinstance(prediction, Mapping) else None
    spans = trace.get("spans") if isinstance(trace, Mapping) else None
    if not isinstance(spans, list) or not all(isinstance(each, Mapping) for each in spans):
        raise CheckError(_NO_SPANS)
    yield from spans


def _seconds(span: Mapping[str, Any]) -> float:
    seconds = span.get("duration_s")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise CheckError(f"the span {_name(span)} does not say how long it took")
    return seconds


def _name(span: Mapping[str, Any]) -> str:
    return f"'{printable(str(span.get('name', '')))}'"


def _told(found: list[Mapping[str, Any]], spans: list[Mapping[str, Any]]) -> Callable[[], str]:
    """Say how many spans are meant; where there are none, which there are."""

    def said() -> str:
        if found:
            return f"{counted(len(found), 'span')} of this kind: {', '.join(dict.fromkeys(map(_name, found)))}"
        names = list(dict.fromkeys(map(_name, spans)))
        more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
        return f"no span of this kind among {', '.join(names[:_MOST_SHOWN]) or 'no spans'}{more}"

    return said


SPAN_KINDS: Final = (CheckKind("span", "the trace has such a span, or so many", str | SpanPattern, _span, on=WHOLE),)
"""The kinds."""
