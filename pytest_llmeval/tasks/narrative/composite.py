"""Evaluator ``narrative``: all components of a story annotation, and an overall score."""

__all__ = ("COMPONENTS", "Narrative")

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.observation import Observation, Sums
from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.evaluators.measures.confusion import ratio
from pytest_llmeval.tasks.narrative import report
from pytest_llmeval.tasks.narrative.action_layer import ActionLayer, is_action_right
from pytest_llmeval.tasks.narrative.alignment import ALIGN, Alignment, EventPair, RelationshipPair
from pytest_llmeval.tasks.narrative.base import NarrativeEvaluator, mean_of_present
from pytest_llmeval.tasks.narrative.characters import Characters
from pytest_llmeval.tasks.narrative.explaining import event_lines, label_lines
from pytest_llmeval.tasks.narrative.labels import narrative_taxonomy
from pytest_llmeval.tasks.narrative.relationships import Relationships, is_labelled_right
from pytest_llmeval.tasks.narrative.sentiment import Sentiment
from pytest_llmeval.tasks.narrative.text_span import TextSpan
from pytest_llmeval.tasks.narrative.validity import check_labels

if TYPE_CHECKING:
    import os

    from pytest_llmeval.core.observation import FloatArray

COMPONENTS = ("characters", "relationships", "sentiment", "action_layer", "text_span")
"""The parts of an annotation, each with its own evaluator."""

_PARTS = {
    "characters": ("character_f1",),
    "relationships": ("relationship_f1",),
    "sentiment": ("sentiment_f1",),
    "action_layer": ("action_layer_complete_match", "action_field_accuracy"),
    "text_span": ("boundary_score", "overlap_ratio"),
}
"""The metrics whose mean is the score of a component."""

_FIELD_ACCURACIES = tuple(f"action_{name}_accuracy" for name in ("category", "type", "context", "status", "function"))


@dataclass(frozen=True)
class Narrative(NarrativeEvaluator):
    """All components of a JSON v3 annotation with all their metrics, a score for each, and one overall score.

    * ``narrative_characters``: ``character_f1``; ``narrative_relationships``: ``relationship_f1``;
      ``narrative_sentiment``: ``sentiment_f1``;
    * ``narrative_action_layer``: mean of ``action_layer_complete_match`` and of the mean of the field accuracies;
    * ``narrative_text_span``: mean of ``boundary_score`` and ``overlap_ratio``;
    * ``overall_score``: weighted mean of those five, of which components with nothing to judge are left out;
    * ``event_accuracy``: share of the gold events that are aligned, have all given fields of the action right and every
      relationship with its given levels and exactly its sentiments (text spans are no part of it);
    * ``taxonomy_validity``: share of the predicted labels that the taxonomies have. It changes no other metric.

    All of these are in [0, 1].

    Attributes:
        weights: Component to weight in `overall_score`; 1 where not given.
        fuzzy: Least likeness at which names are equal, as in `narrative.characters`.
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
        tolerance: As in `narrative.text_span`.
        relationship_taxonomy: File of your own with the labels of relationships; ``None``: the shipped one.
        sentiment_taxonomy: The same for sentiments; their polarity is read there, too.
        action_taxonomy: The same for actions.

    Raises:
        ValueError: An option has an impossible value.
    """

    name = "narrative"

    weights: dict[str, float] | None = None
    fuzzy: float | None = None
    align: tuple[str, ...] = ALIGN
    tolerance: int = 2
    relationship_taxonomy: str | None = field(default=None, metadata={"path": True})
    sentiment_taxonomy: str | None = field(default=None, metadata={"path": True})
    action_taxonomy: str | None = field(default=None, metadata={"path": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, weight in (self.weights or {}).items():
            if name not in COMPONENTS:
                raise ValueError(f"weights: {unknown_name('component', name, COMPONENTS)}")
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"weights: found {weight!r} for {name}, expected a number of at least 0")
        if not any(self._weights.values()):
            raise ValueError("weights: found 0 for every component, expected a positive weight")
        self._components  # noqa: B018 (raises for impossible options)

    @cached_property
    def _weights(self) -> dict[str, float]:
        return dict.fromkeys(COMPONENTS, 1.0) | (self.weights or {})

    @cached_property
    def _components(self) -> dict[str, NarrativeEvaluator]:
        evaluators = (
            Characters(self.fuzzy),
            Relationships(self.fuzzy, self.align),
            Sentiment(self.fuzzy, self.align, self.sentiment_taxonomy),
            ActionLayer(self.align),
            TextSpan(self.tolerance, self.align),
        )
        return dict(zip(COMPONENTS, evaluators, strict=True))

    def describe(self) -> Sequence[Metric]:
        """Return the overall score, the scores of the components, and all their metrics.

        Raises:
            SuiteError: A taxonomy has faults.
        """
        how = self._signature()
        weights = ",".join(f"{name}={weight:g}" for name, weight in self._weights.items())
        own = (self.relationship_taxonomy, self.sentiment_taxonomy, self.action_taxonomy)
        if any(own):
            narrative_taxonomy(*own)
        taxonomies = ",".join("shipped" if path is None else "own" for path in own)
        return [
            Metric("overall_score", signature=f"weights:{weights}|n_t:{self.tolerance}|{how}"),
            *(Metric(_score_name(component), signature=how) for component in COMPONENTS),
            Metric("event_accuracy", signature=how),
            Metric("taxonomy_validity", signature=f"taxonomies:{taxonomies}|v:{self.version}"),
            *(metric for each in self._components.values() for metric in each.describe()),
        ]

    def observe(self, stories: Alignment) -> Observation:
        """Count everything in two stories."""
        counts: dict[str, float] = {}
        details: dict[str, Any] = {}
        undefined: dict[str, str] = {}
        for component, evaluator in self._components.items():
            observation = evaluator.observe(stories)
            counts |= {_count_name(component, name): count for name, count in observation.counts.items()}
            details[component] = observation.details
            undefined |= observation.undefined
            if reason := observation.undefined.get(_PARTS[component][0]):
                undefined[_score_name(component)] = reason
        judged = [name for name in COMPONENTS if _score_name(name) not in undefined and self._weights[name]]
        if not judged:
            undefined["overall_score"] = "the ground truth has nothing to judge"
        for part in (_observe_events(stories), self._observe_labels(stories)):
            counts |= part.counts
            details |= part.details
            undefined |= part.undefined
        return Observation(counts, details, undefined)

    def _observe_labels(self, stories: Alignment) -> Observation:
        taxonomy = narrative_taxonomy(self.relationship_taxonomy, self.sentiment_taxonomy, self.action_taxonomy)
        labels, invalid = check_labels(stories.predicted, taxonomy)
        undefined = {} if labels else {"taxonomy_validity": "the prediction gives no label"}
        counts = {"labels": labels, "labels.valid": labels - len(invalid)}
        return Observation(counts, {"invalid_labels": invalid}, undefined)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say what every component says, and which events are missing or extra."""
        details = observation.details
        lines = event_lines(details)
        for component, evaluator in self._components.items():
            part = Observation({}, details[component])
            lines += [f"{component}: {line}" for line in evaluator.explain(case, part)]
        return lines + label_lines(details)

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return the metrics of every component, their scores, and the weighted mean of those that are defined."""
        metrics: dict[str, FloatArray] = {}
        for component, evaluator in self._components.items():
            start = _count_name(component, "")
            columns = {name.removeprefix(start): column for name, column in sums.items() if name.startswith(start)}
            metrics |= evaluator.summarize(Sums(columns, sums.length))
        fields = mean_of_present({name: metrics[name] for name in _FIELD_ACCURACIES})
        known = metrics | {"action_field_accuracy": fields}
        scores = {name: mean_of_present({part: known[part] for part in parts}) for name, parts in _PARTS.items()}
        return {
            "overall_score": mean_of_present(scores, self._weights),
            **{_score_name(component): score for component, score in scores.items()},
            "event_accuracy": ratio(sums["events.correct"], sums["events"]),
            "taxonomy_validity": ratio(sums["labels.valid"], sums["labels"]),
            **metrics,
        }

    def evaluate(self, prediction: Any, ground_truth: Any, text: Any = None) -> dict[str, Any]:
        """Score one pair.

        Args:
            prediction: A JSON v3 document.
            ground_truth: A JSON v3 document.
            text: Their text; by default ``source_info.text_content`` of the ground truth or the prediction.

        Returns:
            ``overall_score``, ``component_scores``, ``detailed_results`` (what the component's own evaluator returns),
            ``summary`` (events), ``taxonomy_validity`` and ``invalid_labels``. ``None`` where nothing can be judged.
        """
        observation = self.measure(Case(id="", input=text, expected=ground_truth, prediction=prediction))
        scores, details = self.scores(observation), dict(observation.details)
        results: dict[str, Any] = {
            "overall_score": scores["overall_score"],
            "component_scores": {component: scores[_score_name(component)] for component in COMPONENTS},
            "detailed_results": {
                component: details.pop(component) | {each.name: scores[each.name] for each in evaluator.describe()}
                for component, evaluator in self._components.items()
            },
            "summary": details.pop("summary") | {"event_accuracy": scores["event_accuracy"]},
            "taxonomy_validity": scores["taxonomy_validity"],
        }
        return results | details

    def aggregate_results(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return means over what `evaluate` returned for several stories; see `report.aggregate_results`."""
        return report.aggregate_results(results)

    def generate_report(self, results: Mapping[str, Any], output_path: "str | os.PathLike[str] | None" = None) -> str:
        """Return, and write, a report of what `evaluate` returned; see `report.generate_report`."""
        return report.generate_report(results, output_path)


def _score_name(component: str) -> str:
    return f"narrative_{component}"


def _count_name(component: str, name: str) -> str:
    return f"{component}:{name}"


def _observe_events(stories: Alignment) -> Observation:
    together = list(zip(stories.events, stories.relationships, strict=True))
    correct = sum(_is_correct(pair, relationships) for pair, relationships in together)
    missing = [event.label for event, partner in stories.events if partner is None]
    total = len(stories.events)
    details = {
        "summary": {
            "total_events": total,
            "correct_events": correct,
            "matched_events": total - len(missing),
            "predicted_events": len(stories.predicted.events),
            "missing_events": missing,
            "extra_events": [event.label for event in stories.extra_events],
        }
    }
    undefined = {} if total else {"event_accuracy": "the ground truth has no events"}
    return Observation({"events": total, "events.correct": correct}, details, undefined)


def _is_correct(pair: EventPair, relationships: Sequence[RelationshipPair]) -> bool:
    event, partner = pair
    return partner is not None and is_action_right(event, partner) and all(map(_is_exact, relationships))


def _is_exact(pair: RelationshipPair) -> bool:
    right, answer = pair
    if answer is None or not is_labelled_right(right, answer):
        return False
    return not right.sentiments or right.sentiments == answer.sentiments
