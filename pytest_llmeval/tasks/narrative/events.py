"""The events of a story as wholes: found, missing, extra, and right in every judged part."""

__all__ = ("describe_events", "observe_events", "summarize_events")

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.evaluators.measures.confusion import f1, precision, ratio, recall
from pytest_llmeval.tasks.narrative.action_layer import is_action_right
from pytest_llmeval.tasks.narrative.alignment import Alignment, EventPair, RelationshipPair
from pytest_llmeval.tasks.narrative.document import Relationship
from pytest_llmeval.tasks.narrative.relationships import is_labelled_right

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_RATES = ("event_accuracy", "event_precision", "event_recall", "event_f1")
_JUDGED = "judged_event_accuracy"
_EXTRA = "extra_events"


def describe_events(signature: str) -> list[Metric]:
    """Return the metrics of events."""
    rates = [Metric(name, signature=signature) for name in (*_RATES, _JUDGED)]
    return [*rates, Metric(_EXTRA, higher_is_better=False, high=None, signature=signature)]


def observe_events(stories: Alignment) -> Observation:
    """Count the events of two stories; undefined if the ground truth has none."""
    together = list(zip(stories.events, stories.relationships, stories.feelings, strict=True))
    correct = sum(_is_correct(*each) for each in together)
    judged = [each for each in together if each[0][0].action or each[1]]
    missing = [event.label for event, partner in stories.events if partner is None]
    extra = [event.label for event in stories.extra_events]
    total, predicted = len(stories.events), len(stories.predicted.events)
    details = {
        "summary": {
            "total_events": total,
            "correct_events": correct,
            "judged_events": len(judged),
            "matched_events": total - len(missing),
            "predicted_events": predicted,
            "missing_events": missing,
            "extra_events": extra,
        }
    }
    if not total:
        return Observation({}, details, dict.fromkeys((*_RATES, _JUDGED, _EXTRA), "the ground truth has no events"))
    counts = {"": total, ".correct": correct, ".matched": total - len(missing), ".predicted": predicted, ".judged": 1}
    counts |= {".known": len(judged), ".known.correct": sum(_is_correct(*each) for each in judged)}
    undefined = {} if judged else {_JUDGED: "the ground truth has no event with an action or a relationship"}
    return Observation({f"events{name}": count for name, count in counts.items()}, details, undefined)


def summarize_events(sums: "Sums") -> "Mapping[str, FloatArray]":
    """Return the metrics of the events of all stories pooled."""
    import numpy as np

    gold, matched, predicted = sums["events"], sums["events.matched"], sums["events.predicted"]
    found = (precision(matched, predicted, gold), recall(matched, gold), f1(matched, predicted, gold))
    rates = dict(zip(_RATES, (ratio(sums["events.correct"], gold), *found), strict=True))
    rates |= {_JUDGED: ratio(sums["events.known.correct"], sums["events.known"])}
    return rates | {_EXTRA: np.where(sums["events.judged"] > 0, predicted - matched, np.nan)}


def _is_correct(
    pair: EventPair, relationships: Sequence[RelationshipPair], feelings: Sequence[RelationshipPair]
) -> bool:
    event, partner = pair
    return (
        partner is not None
        and is_action_right(event, partner)
        and all(answer is not None and is_labelled_right(right, answer) for right, answer in relationships)
        and all(answer is not None and _feels_the_same(right, answer) for right, answer in feelings)
    )


def _feels_the_same(right: Relationship, answer: Relationship) -> bool:
    return not right.sentiments or right.sentiments == answer.sentiments
