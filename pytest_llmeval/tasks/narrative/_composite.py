"""Evaluator ``narrative``."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from msgspec import structs

from pytest_llmeval.core import (
    AnyError,
    Case,
    Evaluator,
    FloatArray,
    LazyDetails,
    Metric,
    MetricTable,
    Observation,
    Sums,
    resolve,
    unknown_name,
)
from pytest_llmeval.evaluators import ratio
from pytest_llmeval.suites import get_evaluator
from pytest_llmeval.tasks.narrative import _report as report
from pytest_llmeval.tasks.narrative._alignment import ALIGN, Alignment, NameMatch, Pairing
from pytest_llmeval.tasks.narrative._base import (
    GAPS,
    NarrativeEvaluator,
    event_lines,
    gaps_table,
    label_lines,
    mean_of_present,
)
from pytest_llmeval.tasks.narrative._components import (
    ActionLayer,
    Characters,
    Relationships,
    describe_events,
    observe_events,
    summarize_events,
)
from pytest_llmeval.tasks.narrative._text_span import Sentiment, TextSpan
from pytest_llmeval.tasks.narrative.labels import check_labels

if TYPE_CHECKING:
    import os


@dataclass(frozen=True)
class OwnComponents:
    """Evaluators by the name of their component; the first metric of each is its score.

    Attributes:
        options: Name to an evaluator, the name of a registered one (a conftest's), or ``package.module:Class``.
        reserved: Names of other components.

    Raises:
        ValueError: A name is taken or no name, or its value is of another type.
        EvaluatorError: There is no such evaluator.
    """

    options: Mapping[str, Any]
    reserved: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, value in self.options.items():
            if name in self.reserved or not name.isidentifier():
                raise ValueError(f"components: found the name {name!r}, expected a new one of letters and digits")
            if not isinstance(value, str | Evaluator):
                message = f"components.{name}: found {value!r}, expected an evaluator or its name"
                raise ValueError(message)  # noqa: TRY004 (options raise ValueError)
        self.evaluators  # noqa: B018 (raises for unknown evaluators)

    @cached_property
    def evaluators(self) -> dict[str, Evaluator]:
        """The evaluators by the name of their component."""
        return {name: _evaluator(value, name) for name, value in self.options.items()}

    def describe(self) -> list[Metric]:
        """Return the scores of the components."""
        return [
            Metric(f"narrative_{name}", signature=self._score(evaluator).signature)
            for name, evaluator in self.evaluators.items()
        ]

    def measure(self, name: str, case: Case) -> Observation:
        """Return the counts of a component in a case; its details have its metrics."""
        evaluator = self.evaluators[name]
        observation = evaluator.measure(case)
        scores = evaluator.scores(observation)
        reason = observation.undefined.get(first := self._score(evaluator).name)
        undefined = {} if scores.get(first) is not None else {f"narrative_{name}": reason or "nothing to judge"}
        counts = {f"{name}:{count}": value for count, value in observation.counts.items()}
        judged = {} if undefined else {f"{name}:judged stories": 1}
        details = {name: {**observation.details, **scores}}
        abstained = tuple(undefined) if first in observation.abstained else ()
        return Observation(counts | judged, details, undefined, observation.malformed, abstained=abstained)

    def summarize(self, sums: Sums) -> dict[str, FloatArray]:
        """Return the scores of the components; NaN where no story could be judged."""
        import numpy as np

        scores = {}
        for name, evaluator in self.evaluators.items():
            with np.errstate(all="ignore"):
                column = evaluator.summarize(_sums_of(name, sums))[self._score(evaluator).name]
            scores[name] = np.where(sums[f"{name}:judged stories"] > 0, column, np.nan)
        return scores

    @staticmethod
    def _score(evaluator: Evaluator) -> Metric:
        return evaluator.describe()[0]


def _evaluator(option: str | Evaluator, name: str) -> Evaluator:
    """The evaluator of a component of ``narrative``: given, by registered name, or by ``module:Class``."""
    if isinstance(option, Evaluator):
        return option
    if ":" not in option:
        return get_evaluator(option)
    try:
        evaluator = resolve(option)
    except Exception as error:
        raise ValueError(f"components.{name}: {option!r}: {AnyError(error).text}") from error
    if not isinstance(evaluator, type) or not issubclass(evaluator, Evaluator):
        message = f"components.{name}: found {option!r}, expected a subclass of Evaluator"
        raise ValueError(message)  # noqa: TRY004 (options raise ValueError)
    return evaluator()


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

_RELATIONSHIP_SCORES = {"pairs": "relationship_f1", "labelled": "labelled_f1"}
_FIELD_ACCURACIES = tuple(f"action_{name}_accuracy" for name in ("category", "type", "context", "status", "function"))


@dataclass(frozen=True)
class Narrative(NarrativeEvaluator):
    """All components of a JSON v3 annotation with all their metrics, a score for each, and one overall score.

    * ``narrative_characters``: ``character_f1``; ``narrative_relationships``: ``relationship_f1``;
      ``narrative_sentiment``: ``sentiment_f1``;
    * ``narrative_action_layer``: mean of ``action_layer_complete_match`` and of the mean of the field accuracies;
    * ``narrative_text_span``: mean of ``boundary_score`` and ``overlap_ratio``;
    * ``overall_score``: weighted mean of those five, of which components with nothing to judge are left out;
    * ``event_precision``, ``event_recall``, ``event_f1``: events that are aligned; ``extra_events``: how many are not;
    * ``event_accuracy``: share of the gold events that are aligned, have all given fields of the action right and every
      relationship with its given levels and exactly its sentiments (text spans are no part of it);
      ``judged_event_accuracy``: the same, without events whose ground truth has neither action nor relationship;
    * ``taxonomy_validity``: share of the predicted labels that the taxonomies have. It changes no other metric.

    All of these but ``extra_events`` are in [0, 1].

    Attributes:
        weights: Component to weight in `overall_score`; 1 where not given.
        components: More components: name to an evaluator, the name of a registered one, or ``package.module:Class``.
            Each gets the whole documents; its first metric, in [0, 1], is its score.
        relationship_score: ``pairs``: ``relationship_f1``; ``labelled``: ``labelled_f1``, which needs the levels.
        match: ``strict``: only main names count, no aliases.
        pairing: ``many``: relationships between the same characters are paired many-to-many.
        repair_spans: As in `narrative.text_span`.
        fuzzy: Least likeness at which names are equal, as in `narrative.characters`.
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
        tolerance: As in `narrative.text_span`.
        relationship_taxonomy: File of your own with the labels of relationships; ``None``: the shipped one.
        sentiment_taxonomy: The same for sentiments; their polarity is read there.
        action_taxonomy: The same for actions.

    Raises:
        ValueError: An option has an impossible value.
    """

    name = "narrative"

    weights: dict[str, float] | None = None
    components: dict[str, Any] | None = field(default=None, kw_only=True)
    relationship_score: Literal["pairs", "labelled"] = field(default="pairs", kw_only=True)
    match: NameMatch = field(default="aliases", kw_only=True)
    pairing: Pairing = field(default="one", kw_only=True)
    repair_spans: bool = field(default=False, kw_only=True)
    fuzzy: float | None = None
    align: tuple[str, ...] = ALIGN
    tolerance: int = 2
    relationship_taxonomy: str | None = field(default=None, metadata={"path": True})
    sentiment_taxonomy: str | None = field(default=None, metadata={"path": True})
    action_taxonomy: str | None = field(default=None, metadata={"path": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relationship_score not in _RELATIONSHIP_SCORES:
            message = unknown_name("score", self.relationship_score, _RELATIONSHIP_SCORES)
            raise ValueError(f"relationship_score: {message}")
        for name, weight in (self.weights or {}).items():
            if name not in self._names:
                raise ValueError(f"weights: {unknown_name('component', name, self._names)}")
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"weights: found {weight!r} for {name}, expected a number of at least 0")
        if not any(self._weights.values()):
            raise ValueError("weights: found 0 for every component, expected a positive weight")
        self._components  # noqa: B018 (raises for impossible options)

    @cached_property
    def _weights(self) -> dict[str, float]:
        return dict.fromkeys(self._names, 1.0) | (self.weights or {})

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return (*COMPONENTS, *self._own.evaluators)

    @cached_property
    def _own(self) -> OwnComponents:
        return OwnComponents(self.components or {}, COMPONENTS)

    @cached_property
    def _parts(self) -> dict[str, tuple[str, ...]]:
        return _PARTS | {"relationships": (_RELATIONSHIP_SCORES[self.relationship_score],)}

    @cached_property
    def _components(self) -> dict[str, NarrativeEvaluator]:
        names: dict[str, Any] = {"match": self.match, "normalize": self.normalize}
        evaluators = (
            Characters(self.fuzzy, **names),
            Relationships(self.fuzzy, self.align, pairing=self.pairing, **names),
            Sentiment(self.fuzzy, self.align, self.sentiment_taxonomy, pairing=self.pairing, **names),
            ActionLayer(self.align, normalize=self.normalize),
            TextSpan(self.tolerance, self.align, normalize=self.normalize, repair_spans=self.repair_spans),
        )
        return dict(zip(COMPONENTS, evaluators, strict=True))

    def describe(self) -> Sequence[Metric]:
        """Return the overall score, the scores of the components, and all their metrics.

        Raises:
            SuiteError: A taxonomy has faults.
        """
        how = self._signature()
        weights = ",".join(f"{name}={weight:g}" for name, weight in self._weights.items())
        if self.relationship_score != "pairs":
            weights += f"|relationships:{self.relationship_score}"
        own = (self.relationship_taxonomy, self.sentiment_taxonomy, self.action_taxonomy)
        self._check_taxonomies()
        taxonomies = ",".join("shipped" if path is None else "own" for path in own)
        return [
            Metric("overall_score", signature=f"weights:{weights}|n_t:{self.tolerance}|{how}"),
            *(Metric(_score_name(component), signature=how) for component in COMPONENTS),
            *self._own.describe(),
            *describe_events(how),
            Metric("taxonomy_validity", signature=f"taxonomies:{taxonomies}|v:{self.version}"),
            *(metric for component in self._components.values() for metric in component.describe()),
        ]

    def tables(self) -> Sequence[MetricTable]:
        """Return the scores of the components, and the gaps in the ground truth, part by part."""
        scores = [((name,), (_score_name(name),)) for name in self._names]
        return [
            MetricTable(
                "Components, pooled over all stories",
                ("component", "score"),
                [*scores, (("overall",), ("overall_score",))],
            ),
            gaps_table({component: _count_name(component, GAPS) for component in COMPONENTS}),
        ]

    def measure(self, case: Case) -> Observation:
        """Count one story, also in the components of a user's own; see `NarrativeEvaluator.measure`."""
        observation = super().measure(case)
        for name in self._own.evaluators:
            own = self._own.measure(name, case)
            undefined = {**observation.undefined, **own.undefined}
            if not own.undefined and self._weights[name]:
                undefined.pop("overall_score", None)
            observation = structs.replace(
                observation,
                counts={**observation.counts, **own.counts},
                details={**observation.details, **own.details},
                undefined=undefined,
                malformed=observation.malformed or own.malformed,
                abstained=(*observation.abstained, *own.abstained),
            )
        return observation

    def observe(self, stories: Alignment) -> Observation:
        """Count everything in two stories."""
        counts: dict[str, float] = {}
        undefined: dict[str, str] = {}
        abstained: list[str] = []
        components = {component: evaluator.observe(stories) for component, evaluator in self._components.items()}
        for component, observation in components.items():
            start = _count_name(component, "")
            counts |= {start + name: count for name, count in observation.counts.items()}
            undefined |= observation.undefined
            abstained += observation.abstained
            if reason := observation.undefined.get(self._parts[component][0]):
                undefined[_score_name(component)] = reason
        judged = [name for name in COMPONENTS if _score_name(name) not in undefined and self._weights[name]]
        if not judged:
            undefined["overall_score"] = "the ground truth has nothing to judge"
        wholes = observe_events(stories), self._observe_labels(stories)
        for part in wholes:
            counts |= part.counts
            undefined |= part.undefined
            abstained += part.abstained
        details = LazyDetails(lambda: _details(components, wholes))
        return Observation(counts, details, undefined, abstained=tuple(abstained))

    def _observe_labels(self, stories: Alignment) -> Observation:
        labels, invalid = check_labels(stories.predicted, self._taxonomy)
        undefined = {} if labels else {"taxonomy_validity": "the prediction gives no label"}
        counts = {"labels": labels, "labels.valid": labels - len(invalid)}
        return Observation(counts, {"invalid_labels": invalid}, undefined, abstained=tuple(undefined))

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """List missing and extra events, and the lines of every component."""
        details = observation.details
        lines = event_lines(details)
        for component, evaluator in self._components.items():
            part = Observation({}, details[component])
            lines += [f"{component}: {line}" for line in evaluator.explain(case, part)]
        return lines + label_lines(details)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return the metrics of every component, their scores, and the weighted mean of those that are defined."""
        metrics: dict[str, FloatArray] = {}
        for component, evaluator in self._components.items():
            metrics |= evaluator.summarize(_sums_of(component, sums))
        fields = mean_of_present({name: metrics[name] for name in _FIELD_ACCURACIES})
        known = metrics | {"action_field_accuracy": fields}
        scores = {name: mean_of_present({part: known[part] for part in parts}) for name, parts in self._parts.items()}
        scores |= self._own.summarize(sums)
        return {
            "overall_score": mean_of_present(scores, self._weights),
            **{_score_name(component): score for component, score in scores.items()},
            **summarize_events(sums),
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
            ``summary`` (events), ``taxonomy_validity`` and ``invalid_labels``. ``None`` where nothing can be judged,
            and everywhere where nothing of the prediction can be read; ``malformed`` says what has a wrong form.
        """
        details, scores = self._evaluated(prediction, ground_truth, text)
        results: dict[str, Any] = {
            "overall_score": scores["overall_score"],
            "component_scores": {component: scores[_score_name(component)] for component in self._names},
            "detailed_results": {
                component: details.pop(component)
                | {metric.name: scores[metric.name] for metric in evaluator.describe()}
                for component, evaluator in self._components.items()
            }
            | {component: details.pop(component) for component in self._own.evaluators},
            "summary": details.pop("summary")
            | {event.name: scores[event.name] for event in describe_events("") if event.high is not None},
            "taxonomy_validity": scores["taxonomy_validity"],
        }
        return results | details

    def get_metrics_summary(self, results: Mapping[str, Any]) -> dict[str, float | None]:
        """Return ``overall_score``, the scores of the components and ``event_accuracy``."""
        scores = {_score_name(name): score for name, score in results["component_scores"].items()}
        overall, events = results["overall_score"], results["summary"]["event_accuracy"]
        return {"overall_score": overall, **scores, "event_accuracy": events}

    def aggregate_results(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return means of scores and sums of counts over several stories; see `report.aggregate_results`."""
        return report.aggregate_results(results)

    def generate_report(
        self,
        results: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        output_path: "str | os.PathLike[str] | None" = None,
        format: report.Format | None = None,  # noqa: A002 (as in the original)
    ) -> str:
        """Return, and write, a report of what `evaluate` returned; see `report.generate_report`."""
        return report.generate_report(results, output_path, format)


def _details(components: Mapping[str, Observation], wholes: Iterable[Observation]) -> dict[str, Any]:
    """The details of a story: those of each component under its name, those of whole stories, and what is wrong."""
    details: dict[str, Any] = {component: observation.details for component, observation in components.items()}
    for whole in wholes:
        details |= whole.details
    wrong = [line for observation in components.values() for line in observation.details.get("wrong", [])]
    return details | ({"wrong": wrong} if wrong else {})


def _score_name(component: str) -> str:
    """The metric with the score of a component of ``narrative``."""
    return f"narrative_{component}"


def _count_name(component: str, name: str) -> str:
    """The key of a component's count among the counts of ``narrative``, where components must not collide."""
    return f"{component}:{name}"


def _sums_of(component: str, sums: Sums) -> Sums:
    """The sums of a component of ``narrative`` under the component's own names."""
    start = _count_name(component, "")
    columns = {name.removeprefix(start): column for name, column in sums.items() if name.startswith(start)}
    return Sums(columns, sums.length)
