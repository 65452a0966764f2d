"""What the ground truth leaves open, by part, event and field. It depends on the ground truth alone."""

__all__ = ("GAPS", "gap_counts", "gap_details", "gaps_table")

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from pytest_llmeval.core.tables import Count, MetricTable
from pytest_llmeval.tasks.narrative.document import ACTION_FIELDS, Event, Relationship, Story
from pytest_llmeval.tasks.narrative.rules import listed

GAPS = "gaps"
"""The count of the gaps of a part."""

Gap: TypeAlias = Mapping[str, str]
"""The ``field`` without a value, and the ``event``, ``character``, or ``agent`` and ``target`` that lack it."""

_EVENTS = "narrative_events"
_WORDS = {
    "action_layer": "action layer",
    "relationships": "relationship with agent and target",
    "sentiment": "sentiment of a relationship",
    "text_span": "text span with start and end",
    _EVENTS: "events",
}
_WHOLE = frozenset(("characters", *_WORDS))


def gap_details(part: str, gold: Story, nothing: str | None = None) -> dict[str, Any]:
    """Return ``gt_incomplete``, ``gt_incomplete_reason`` and ``gt_gaps`` of a part.

    The ground truth of a part is incomplete if nothing is known of an event or relationship; ``gt_gaps`` lists single
    fields as well.

    Args:
        part: Such as ``relationships``.
        gold: The ground truth.
        nothing: The reason where the part has nothing to judge for lack of anything else.
    """
    gaps = list(_FINDERS[part](gold))
    whole = [gap for gap in gaps if gap["field"] in _WHOLE]
    reason = f"the ground truth has {_described(whole)}" if whole and nothing is None else nothing
    return {"gt_incomplete": bool(whole), "gt_incomplete_reason": reason, "gt_gaps": gaps}


def gap_counts(details: Mapping[str, Any]) -> dict[str, int]:
    """Return the count for `gaps_table`, from `gap_details`; nothing where there is no gap."""
    found = len(details["gt_gaps"])
    return {GAPS: found} if found else {}


def gaps_table(counts: Mapping[str, str]) -> MetricTable:
    """Return a table of the gaps in the ground truth.

    Args:
        counts: Part to the name of its count.
    """
    rows = [([part], [Count(name)]) for part, name in counts.items()]
    return MetricTable("Gaps in the ground truth (not judged)", ("part", "values missing"), rows)


def _characters(gold: Story) -> Iterator[Gap]:
    if not gold.characters:
        yield {"field": "characters"}
    for each in gold.characters:
        if not each.archetype:
            yield {"character": each.name, "field": "archetype"}


def _relationships(gold: Story) -> Iterator[Gap]:
    for event in gold.events:
        if not any(each.is_usable for each in event.relationships):
            yield {"event": event.label, "field": "relationships"}
            continue
        for each in sorted(event.relationships, key=_order):
            absent = {
                "agent": not each.agent,
                "target": not each.target,
                "relationship_level1": each.is_usable and not each.level1,
                "relationship_level2": each.is_usable and not each.level2,
            }
            yield from (_of_relationship(event, each, field) for field, is_absent in absent.items() if is_absent)


def _order(each: Relationship) -> tuple[str, ...]:
    return each.agent, each.target, each.level1, each.level2


def _sentiment(gold: Story) -> Iterator[Gap]:
    for event in gold.events:
        usable = sorted((each for each in event.relationships if each.is_usable), key=_order)
        if not usable:
            yield {"event": event.label, "field": "relationships"}
        yield from (_of_relationship(event, each, "sentiment") for each in usable if not each.sentiments)


def _action_layer(gold: Story) -> Iterator[Gap]:
    for event in gold.events:
        absent = [f"action_layer.{field}" for field in ACTION_FIELDS if field not in event.action]
        for field in absent if event.action else ["action_layer"]:
            yield {"event": event.label, "field": field}


def _text_span(gold: Story) -> Iterator[Gap]:
    return ({"event": event.label, "field": "text_span"} for event in gold.events if event.span is None)


def _of_events(find: Callable[[Story], Iterable[Gap]]) -> Callable[[Story], Iterable[Gap]]:
    """Make a story without any event a gap as well."""
    return lambda gold: find(gold) if gold.events else [{"field": _EVENTS}]


_FINDERS: dict[str, Callable[[Story], Iterable[Gap]]] = {
    "characters": _characters,
    "relationships": _of_events(_relationships),
    "sentiment": _of_events(_sentiment),
    "action_layer": _of_events(_action_layer),
    "text_span": _of_events(_text_span),
}


def _of_relationship(event: Event, each: Relationship, field: str) -> Gap:
    return {"event": event.label, "agent": each.agent, "target": each.target, "field": field}


def _described(gaps: Iterable[Gap]) -> str:
    """Describe gaps field by field, each with the first of the events or characters that lack it."""
    places: dict[str, dict[str, None]] = {}
    for gap in gaps:
        kind = "event" if "event" in gap else "character"
        name = _WORDS.get(gap["field"], gap["field"])
        found = places.setdefault(f"no {name}" + (f" in {kind} " if kind in gap else ""), {})
        found |= dict.fromkeys([gap[kind]] if kind in gap else [])
    return "; ".join(head + listed(list(names)) for head, names in places.items())
