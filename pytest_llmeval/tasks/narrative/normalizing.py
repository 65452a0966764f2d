"""Folding of labels: bilingual, long and short forms and letter case become the label of the taxonomy."""

__all__ = ("find_label", "normalize_labels")

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pytest_llmeval.data.labels import LabelSet
from pytest_llmeval.tasks.narrative.document import Event, Relationship, Story
from pytest_llmeval.tasks.narrative.labels import NarrativeTaxonomy
from pytest_llmeval.tasks.narrative.rules import name_key

_HAN = "\u3400-\u9fff"
_BORDER = re.compile(rf"[()\[\]/|]|(?<=[{_HAN}])\s*(?=[a-z])|(?<=[a-z])\s*(?=[{_HAN}])")

_Log = list[dict[str, Any]]


def normalize_labels(story: Story, taxonomy: NarrativeTaxonomy) -> tuple[Story, _Log]:
    """Return a story with the labels that the taxonomies have, and which others were folded into them.

    Unknown labels stay as they are. What was folded is listed as ``{event, field, value, label}``.
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
    found = {names[part] for each in _BORDER.split(key) if (part := each.strip()) in names}
    return found.pop() if len(found) == 1 else None


@lru_cache(maxsize=64)
def _keys(labels: LabelSet) -> Mapping[str, str]:
    """Return labels by the keys of their names; a name in the letter case of a label goes before other names."""
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
