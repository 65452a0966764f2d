"""What is wrong with an annotation, in lines."""

__all__ = (
    "STORY_BUCKETS",
    "action_lines",
    "character_lines",
    "event_lines",
    "label_lines",
    "relationship_lines",
    "sentiment_lines",
    "span_lines",
)

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_llmeval.core.explanations import listed
from pytest_llmeval.tasks.narrative.document import Character

STORY_BUCKETS = {
    "missing": ("missing_characters", "missing_relationships", "missing_sentiments", "missing_events"),
    "extra": ("extra_characters", "extra_relationships", "extra_sentiments", "extra_events"),
    "mislabelled": ("wrong_archetypes", "wrong_levels", "wrong_fields"),
}
"""Bucket to the details whose content puts a story into it."""

_MISSING = "missing_relationships"
_EXTRA = "extra_relationships"
_FEW = 0.5
"""Overlap below which a span is said not to be found."""


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
    right, found = details["ground_truth_boundaries"], details["predicted_boundaries"]
    lines = [
        f"{kind} boundaries: {listed(f'after sentence {each}' for each in boundaries)}"
        for kind, boundaries in (("missing", _without(right, found)), ("extra", _without(found, right)))
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
