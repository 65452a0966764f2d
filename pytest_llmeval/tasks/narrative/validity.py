"""Labels of an annotation that are not in the taxonomies."""

__all__ = ("LabelCheck", "check_labels")

from collections.abc import Iterator
from typing import Any, NamedTuple

from pytest_llmeval.tasks.narrative.document import Event, Story
from pytest_llmeval.tasks.narrative.labels import NarrativeTaxonomy


class LabelCheck(NamedTuple):
    """How many labels there are, and those of them that are invalid, as ``{event, field, value, reason}``."""

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
