"""Lines that explain the errors of an annotation, and gaps in the ground truth."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pytest_llmeval.core.tables import Count, MetricTable
from pytest_llmeval.core.wording import listed
from pytest_llmeval.tasks.narrative.document import ACTION_FIELDS, Character, Event, Relationship, Story
from pytest_llmeval.tasks.narrative.document import listed as parts_listed

STORY_BUCKETS = {
    "missing": ("missing_characters", "missing_relationships", "missing_sentiments", "missing_events"),
    "extra": ("extra_characters", "false_positive_relationships", "extra_sentiments", "extra_events"),
    "mislabelled": ("wrong_archetypes", "wrong_levels", "wrong_fields"),
}
"""Bucket to the details whose content puts a story into it."""

_MISSING = "missing_relationships"
_EXTRA = "false_positive_relationships"
_FEW = 0.5
"""Overlap below which a span is reported."""


def character_lines(details: Mapping[str, Any], gold: Sequence[Character]) -> list[str]:
    """Name missing and extra characters, and wrong archetypes."""
    archetypes = {each.name: each.archetype for each in gold if each.archetype}
    lines = []
    for name in details["missing_characters"]:
        expected = f" (expected {archetypes[name]})" if name in archetypes else ""
        lines.append(f"missing character: {name}{expected}")
    lines += [f"extra character: {name}" for name in details["extra_characters"]]
    return lines + [
        f"character {each['character']}: found archetype {each['predicted'] or 'none'}, expected {each['expected']}"
        for each in details["wrong_archetypes"]
    ]


def relationship_lines(details: Mapping[str, Any]) -> list[str]:
    """Name missing and extra relationships, and those with other labels."""
    lines = [f"event {each['event']}: missing relationship: {_ends(each)}{_levels(each)}" for each in details[_MISSING]]
    lines += [f"event {each['event']}: extra relationship: {_ends(each)}{_levels(each)}" for each in details[_EXTRA]]
    return lines + [
        f"event {each['event']}: relationship {_ends(each)}: found {each['field'].removeprefix('relationship_')} "
        f"{each['predicted'] or 'none'}, expected {each['expected']}"
        for each in details["wrong_levels"]
    ]


def sentiment_lines(details: Mapping[str, Any]) -> list[str]:
    """Name missing and extra sentiments."""
    return [
        f"event {each['event']}: relationship {_ends(each)}: {kind} sentiment: {listed(each['sentiment'])}"
        for kind in ("missing", "extra")
        for each in details[f"{kind}_sentiments"]
    ]


def action_lines(details: Mapping[str, Any]) -> list[str]:
    """Name missing events, and fields with other values."""
    lines = [f"missing event: {label}" for label in details["missing_events"]]
    return lines + [
        f"event {each['event']}: {each['field']}: found {each['predicted'] or 'none'}, expected {each['expected']}"
        for each in details["wrong_fields"]
    ]


def span_lines(details: Mapping[str, Any]) -> list[str]:
    """Name boundaries that only one side has, spans that overlap little, and odd spans."""
    right, predicted = details["ground_truth_boundaries"], details["predicted_boundaries"]
    lines = [
        f"{kind} boundaries: {listed(f'after sentence {each}' for each in boundaries)}"
        for kind, boundaries in (("missing", _without(right, predicted)), ("extra", _without(predicted, right)))
        if boundaries
    ]
    if few := [each for each in details["overlap_scores"] if each < _FEW]:
        lines.append(
            f"spans that overlap the expected one by less than half: {len(few)} of {len(details['overlap_scores'])}"
        )
    for kind, labels in details.get("span_faults", {}).get("prediction", {}).items():
        lines.append(f"{kind.replace('_', ' ')} spans of predicted events: {listed(labels)}")
    return lines


def event_lines(details: Mapping[str, Any]) -> list[str]:
    """Name missing and extra events."""
    summary = details["summary"]
    return [f"{kind} event: {label}" for kind in ("missing", "extra") for label in summary[f"{kind}_events"]]


def label_lines(details: Mapping[str, Any]) -> list[str]:
    """Name labels that no taxonomy has."""
    return [f"event {each['event']}: {each['reason']}" for each in details["invalid_labels"]]


def _ends(each: Mapping[str, Any]) -> str:
    return f"{each['agent'] or '?'} -> {each['target'] or '?'}"


def _levels(each: Mapping[str, Any]) -> str:
    levels = [level for name in ("relationship_level1", "relationship_level2") if (level := each[name])]
    return f" ({', '.join(levels)})" if levels else ""


def _without(some: Iterable[int], others: Iterable[int]) -> list[int]:
    known = set(others)
    return [each for each in some if each not in known]


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
    fields in addition.

    Args:
        part: Such as ``relationships``.
        gold: The ground truth.
        nothing: The reason why the part has nothing to judge, if it is not a gap.
    """
    gaps = list(_FINDERS[part](gold))
    whole = [gap for gap in gaps if gap["field"] in _WHOLE]
    reason = f"the ground truth has {_described(whole)}" if whole and nothing is None else nothing
    return {"gt_incomplete": bool(whole), "gt_incomplete_reason": reason, "gt_gaps": gaps}


def gap_counts(details: Mapping[str, Any]) -> dict[str, int]:
    """Return the count for `gaps_table`, from `gap_details`; empty without a gap."""
    number = len(details["gt_gaps"])
    return {GAPS: number} if number else {}


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
    """Also report a story without events as a gap."""
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
        labels = places.setdefault(f"no {name}" + (f" in {kind} " if kind in gap else ""), {})
        labels |= dict.fromkeys([gap[kind]] if kind in gap else [])
    return "; ".join(head + parts_listed(list(names)) for head, names in places.items())
