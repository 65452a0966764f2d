"""The quoted text of spans: comparison with the story, and repair of positions that have drifted."""

__all__ = ("describe_drift", "drifted_spans", "repair_spans", "warn_of_drift")

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pytest_llmeval.evaluators.measures.spans import Span
from pytest_llmeval.tasks.narrative.document import Event, Story
from pytest_llmeval.tasks.narrative.rules import listed

_LONGEST = 60


def drifted_spans(story: Story, text: str) -> list[dict[str, Any]]:
    """Return the spans whose text is not what the story has there.

    White space around and within texts does not matter, and neither does a span without text or a story without text.

    Returns:
        For each ``event``, ``span``, ``text`` (as quoted), ``found`` (in the story) and ``nearest``, the position where
        the quoted text does occur; ``None`` if it does not.
    """
    return [
        {
            "event": event.label,
            "span": list(span),
            "text": _short(event.quote),
            "found": _short(_at(text, span)),
            "nearest": list(place) if place else None,
        }
        for event, span, place in _drifted(story, text)
    ]


def describe_drift(drift: Mapping[str, Any]) -> str:
    """Write an entry of `drifted_spans` as a line."""
    place = drift["nearest"]
    where = f"which is at {place[0]}-{place[1]}" if place else "which the story does not have"
    start, end = drift["span"]
    return f"event {drift['event']!r}: text_span {start}-{end} is {drift['found']!r}, not {drift['text']!r}, {where}"


def warn_of_drift(place: str, gold: Story, text: str) -> None:
    """Warn of drifted spans in ground truth, which cost every prediction."""
    if drifts := [describe_drift(each) for each in drifted_spans(gold, text)]:
        warnings.warn(f"{place}: {listed(drifts, '; ')}", UserWarning, stacklevel=2)


def repair_spans(story: Story, text: str) -> tuple[Story, list[dict[str, Any]]]:
    """Return a story whose drifted spans lie at the nearest occurrence of their text, and what was moved.

    A span whose text does not occur stays. Of two occurrences equally far the first is taken.
    """
    moved = {id(event): place for event, _, place in _drifted(story, text) if place is not None}
    log = [
        {"event": event.label, "span": list(event.span or ()), "repaired": list(moved[id(event)])}
        for event in story.events
        if id(event) in moved
    ]
    events = tuple(replace(event, span=moved.get(id(event), event.span)) for event in story.events)
    return replace(story, events=events), log


def _drifted(story: Story, text: str) -> Iterator[tuple[Event, Span, Span | None]]:
    """Yield event, span and the nearest occurrence of its text."""
    for event in story.events if text else ():
        if event.span and event.quote and _words(_at(text, event.span)) != _words(event.quote):
            yield event, event.span, _nearest(event.quote.strip(), text, event.span[0])


def _at(text: str, span: Span) -> str:
    start, end = span
    return text[start:end] if 0 <= start <= end else ""


def _words(text: str) -> list[str]:
    return text.split()


def _nearest(quote: str, text: str, start: int) -> Span | None:
    before = text.rfind(quote, 0, max(0, start) + len(quote))
    after = text.find(quote, max(0, start))
    found = [place for place in (before, after) if place >= 0]
    if not found:
        return None
    place = min(found, key=lambda each: abs(each - start))
    return place, place + len(quote)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
