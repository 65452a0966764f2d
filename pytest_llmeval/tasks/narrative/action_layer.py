"""Evaluator ``narrative.action_layer``: the actions in the events of a story."""

__all__ = ("ActionLayer", "is_action_right")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.evaluators.measures.confusion import ratio
from pytest_llmeval.tasks.narrative.alignment import ALIGN, Alignment
from pytest_llmeval.tasks.narrative.base import NarrativeEvaluator
from pytest_llmeval.tasks.narrative.document import ACTION_FIELDS, Event
from pytest_llmeval.tasks.narrative.explaining import action_lines, gap_counts, gap_details

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_ACCURACY = {field: f"action_{field}_accuracy" for field in ACTION_FIELDS}
_MATCHES = ("action_layer_complete_match", "action_layer_partial_match")
_NAMES = (*_ACCURACY.values(), *_MATCHES)
_ABSENT = "the ground truth has no action layer"


@dataclass(frozen=True)
class ActionLayer(NarrativeEvaluator):
    """Accuracy of category, type, context, status and function of actions, and how many actions are right.

    Judged is every gold event that gives at least one of the fields, and only the fields that it gives; where the
    event is missing all of them are wrong. Labels are equal after trimming; letter case matters.

    * ``action_<field>_accuracy``: share of right fields among those given;
    * ``action_layer_complete_match``: share of the events with all given fields right;
    * ``action_layer_partial_match``: share of the events with some of them right, but not all.

    All metrics are in [0, 1].

    Attributes:
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
        action_taxonomy: File of your own with the labels for `normalize`; ``None``: the shipped one.
    """

    name = "narrative.action_layer"

    align: tuple[str, ...] = ALIGN
    action_taxonomy: str | None = field(default=None, kw_only=True, metadata={"path": True})

    def describe(self) -> Sequence[Metric]:
        """Return the seven metrics.

        Raises:
            SuiteError: The taxonomy has faults.
        """
        self._check_taxonomies()
        return [Metric(name, signature=self._signature()) for name in _NAMES]

    def observe(self, stories: Alignment) -> Observation:
        """Count the fields of the actions of two stories."""
        judged = [(event, partner) for event, partner in stories.events if event.action]
        skipped = [event.label for event, partner in stories.events if not event.action and partner and partner.action]
        given = {field: [pair for pair in judged if field in pair[0].action] for field in ACTION_FIELDS}
        right = {field: sum(_is_right(*pair, field) for pair in pairs) for field, pairs in given.items()}
        numbers = [(sum(_is_right(*pair, field) for field in pair[0].action), len(pair[0].action)) for pair in judged]
        matches = {
            "complete_matches": sum(hits == total for hits, total in numbers),
            "partial_matches": sum(0 < hits < total for hits, total in numbers),
        }
        details: dict[str, Any] = {
            "wrong_fields": [wrong for pair in judged for wrong in _wrong_fields(*pair)],
            "unjudged_fields": [
                {"event": event.label, "field": field, "predicted": value}
                for event, partner in stories.events
                for field, value in (partner.action.items() if partner else ())
                if field not in event.action
            ],
            "missing_events": [event.label for event, partner in judged if partner is None],
            "field_counts": {field: {"correct": right[field], "total": len(given[field])} for field in ACTION_FIELDS},
            **matches,
            "n_events_evaluated": len(judged),
            "n_events_skipped": len(skipped),
        } | gap_details("action_layer", stories.gold)
        if not judged:
            return Observation(gap_counts(details), details, dict.fromkeys(_NAMES, _ABSENT))
        counts = gap_counts(details) | matches | {"events": len(judged)}
        for name, pairs in given.items():
            counts |= {name: len(pairs), f"{name}.right": right[name]}
        absent = [field for field in ACTION_FIELDS if not given[field]]
        undefined = {_ACCURACY[field]: f"the ground truth has no {field}" for field in absent}
        return Observation(counts, details, undefined)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say which events are missing, and which fields differ."""
        del case
        return action_lines(observation.details)

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return the shares of right fields and of right events, of all stories pooled."""
        accuracies = {name: ratio(sums[f"{field}.right"], sums[field]) for field, name in _ACCURACY.items()}
        complete, partial = (ratio(sums[f"{kind}_matches"], sums["events"]) for kind in ("complete", "partial"))
        return accuracies | dict(zip(_MATCHES, (complete, partial), strict=True))


def is_action_right(event: Event, partner: Event) -> bool:
    """Whether a predicted event has every field of the action that gold gives."""
    return all(_is_right(event, partner, field) for field in event.action)


def _is_right(event: Event, partner: Event | None, field: str) -> bool:
    return partner is not None and partner.action.get(field) == event.action[field]


def _wrong_fields(event: Event, partner: Event | None) -> list[dict[str, Any]]:
    if partner is None:
        return []
    return [
        {"event": event.label, "field": field, "expected": expected, "predicted": partner.action.get(field, "")}
        for field, expected in event.action.items()
        if not _is_right(event, partner, field)
    ]
