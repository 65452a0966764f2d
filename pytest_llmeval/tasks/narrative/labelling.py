"""Labels folded to those of the taxonomy and checked against it, and the quoted text of spans."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from pytest_llmeval.core.wording import excerpt
from pytest_llmeval.data.labels import LabelSet
from pytest_llmeval.evaluators.measures.spans import Span
from pytest_llmeval.tasks.narrative.document import Event, Relationship, Story, listed, name_key
from pytest_llmeval.tasks.narrative.labels import NarrativeTaxonomy

_HAN = "\u3400-\u9fff"
_BORDER = re.compile(rf"[()\[\]/|]|(?<=[{_HAN}])\s*(?=[a-z])|(?<=[a-z])\s*(?=[{_HAN}])")

_Log = list[dict[str, Any]]


def normalize_labels(story: Story, taxonomy: NarrativeTaxonomy) -> tuple[Story, _Log]:
    """Return a story with the labels that the taxonomies have, and the changes.

    Unknown labels stay unchanged. Changes are listed as ``{event, field, value, label}``.
    """
    log: _Log = []
    return replace(story, events=tuple(_event(event, taxonomy, log) for event in story.events)), log


def find_label(labels: LabelSet, text: str) -> str | None:
    """Return the label that a text means; ``None`` if it is unknown, or if its parts mean different labels.

    >>> kin = LabelSet({"Family & Kinship": "Family & Kinship", "亲属关系": "Family & Kinship"})
    >>> find_label(kin, "FAMILY & kinship"), find_label(kin, "家庭(Family & Kinship)"), find_label(kin, "friend")
    ('Family & Kinship', 'Family & Kinship', None)
    """
    if text in labels.names:
        return labels.names[text]
    names, key = _keys(labels), name_key(text)
    if key in names:
        return names[key]
    meanings = {names[part] for each in _BORDER.split(key) if (part := each.strip()) in names}
    return meanings.pop() if len(meanings) == 1 else None


@lru_cache(maxsize=64)
def _keys(labels: LabelSet) -> Mapping[str, str]:
    """Return labels by the keys of their names; a name in the letter case of a label overrides other names."""
    keys: dict[str, str] = {}
    for name, label in sorted(labels.names.items(), key=lambda item: item[0] != item[1]):
        keys.setdefault(name_key(name), label)
    return keys


def _event(event: Event, taxonomy: NarrativeTaxonomy, log: _Log) -> Event:
    def fold(labels: LabelSet, field: str, value: str) -> str:
        label = find_label(labels, value) if value else None
        if label is None or label == value:
            return value
        log.append({"event": event.label, "field": field, "value": value, "label": label})
        return label

    action: dict[str, str] = {}
    for field, value in event.action.items():
        action[field] = fold(_of_action(taxonomy, field, action.get("category", "")), f"action_layer.{field}", value)
    relationships = tuple(_relationship(each, taxonomy, fold) for each in event.relationships)
    return replace(event, action=action, relationships=relationships)


def _relationship(
    each: Relationship, taxonomy: NarrativeTaxonomy, fold: Callable[[LabelSet, str, str], str]
) -> Relationship:
    level1 = fold(taxonomy.relationships, "relationship_level1", each.level1)
    level2 = fold(_below(taxonomy.relationships, level1), "relationship_level2", each.level2)
    sentiments = frozenset(fold(taxonomy.sentiments, "sentiment", value) for value in sorted(each.sentiments))
    return replace(each, level1=level1, level2=level2, sentiments=sentiments)


def _of_action(taxonomy: NarrativeTaxonomy, field: str, category: str) -> LabelSet:
    """Return the labels of a field; fields are folded in the order of the layer, so the category is a label by now."""
    if field == "type":
        return _below(taxonomy.categories, category)
    return {
        "category": taxonomy.categories,
        "context": taxonomy.contexts,
        "status": taxonomy.statuses,
        "function": taxonomy.functions,
    }[field]


def _below(labels: LabelSet, parent: str) -> LabelSet:
    return labels.members.get(parent, labels.below)


class LabelCheck(NamedTuple):
    """The number of labels, and the invalid ones as ``{event, field, value, reason}``."""

    labels: int
    invalid: list[dict[str, Any]]


def check_labels(story: Story, taxonomy: NarrativeTaxonomy) -> LabelCheck:
    """Look up every level of a relationship, every sentiment and every field of an action layer that is given."""
    labels = 0
    invalid: list[dict[str, Any]] = []
    for event in story.events:
        for field, value, reason in _judged(event, taxonomy):
            labels += 1
            if reason is not None:
                invalid.append({"event": event.label, "field": field, "value": value, "reason": reason})
    return LabelCheck(labels, invalid)


def _judged(event: Event, taxonomy: NarrativeTaxonomy) -> Iterator[tuple[str, str, str | None]]:
    """Yield field, label, and why it is invalid if it is."""
    for each in event.relationships:
        level1_fault = taxonomy.invalid_relationship(each.level1, "")
        if each.level1:
            yield "relationship_level1", each.level1, level1_fault
        if each.level2:
            # Below an invalid level 1 any level 2 is accepted: one mistake is reported once.
            above = "" if level1_fault else each.level1
            yield "relationship_level2", each.level2, taxonomy.invalid_relationship(above, each.level2)
        for sentiment in sorted(each.sentiments):
            yield "sentiment", sentiment, taxonomy.invalid_sentiment(sentiment)
    for field, value in event.action.items():
        yield f"action_layer.{field}", value, taxonomy.invalid_action(field, value, event.action.get("category", ""))


_LONGEST = 60


def drifted_spans(story: Story, text: str) -> list[dict[str, Any]]:
    """Return the spans whose text differs from the story's text there.

    White space around and within texts does not matter, and neither does a span without text or a story without text.

    Returns:
        For each ``event``, ``span``, ``text`` (as quoted), ``found`` (in the story) and ``nearest``, the position where
        the quoted text does occur; ``None`` if it does not.
    """
    return [
        {
            "event": event.label,
            "span": list(span),
            "text": excerpt(event.quote, _LONGEST, lines=True),
            "found": excerpt(_at(text, span), _LONGEST, lines=True),
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
    """Return a story whose drifted spans lie at the nearest occurrence of their text, and the moves.

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
    places = [place for place in (before, after) if place >= 0]
    if not places:
        return None
    place = min(places, key=lambda each: abs(each - start))
    return place, place + len(quote)
