"""The classes and functions of the original evaluation package, under their names."""

__all__ = (
    "ActionLayerEvaluator",
    "BaseEvaluator",
    "BoundarySegmentationMetric",
    "CharacterEvaluator",
    "CompositeEvaluator",
    "RelationshipEvaluator",
    "SentimentEvaluator",
    "TextSpanEvaluator",
    "calculate_overlap_ratio",
    "calculate_precision_recall_f1",
    "calculate_set_metrics",
    "char_position_to_sentence_index",
    "handle_missing_ground_truth",
    "load_action_taxonomy",
    "load_ground_truth",
    "load_prediction",
    "load_relationship_taxonomy",
    "load_sentiment_taxonomy",
    "normalize_character_name",
    "text_to_sentence_indices",
)

import json
import math
import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

from pytest_llmeval.core import (
    AnyError,
    Case,
    Evaluator,
    EvaluatorError,
    FloatArray,
    Metric,
    Observation,
    SuiteError,
    Sums,
)
from pytest_llmeval.data import InputFile
from pytest_llmeval.evaluators import ratio
from pytest_llmeval.tasks.narrative._alignment import overlap_ratio
from pytest_llmeval.tasks.narrative._base import NarrativeEvaluator, parsed_prediction
from pytest_llmeval.tasks.narrative._components import ActionLayer, Characters, Relationships
from pytest_llmeval.tasks.narrative._composite import Narrative
from pytest_llmeval.tasks.narrative._document import (
    calculate_precision_recall_f1,
    calculate_set_metrics,
    handle_missing_ground_truth,
    name_key,
)
from pytest_llmeval.tasks.narrative._segmentation import Segmentation, end_mark_spans, sentence_index
from pytest_llmeval.tasks.narrative._source import annotation_problems
from pytest_llmeval.tasks.narrative._text_span import Sentiment, TextSpan
from pytest_llmeval.tasks.narrative.labels import read_actions, read_relationships, read_sentiments

ActionLayerEvaluator = ActionLayer
RelationshipEvaluator = Relationships
SentimentEvaluator = Sentiment
TextSpanEvaluator = TextSpan

_NOTHING: Mapping[str, Any] = {"characters": [], "narrative_events": []}


@dataclass(frozen=True)
class CharacterEvaluator(Characters):
    """Characters, as `Characters`; absent scores are NaN: scripts of the original print them as ``:.3f``."""

    def evaluate(self, prediction: Any, ground_truth: Any, text: Any = None) -> dict[str, Any]:
        """Score one pair; see `Characters.evaluate`."""
        results = super().evaluate(prediction, ground_truth, text)
        names = {metric.name for metric in self.describe()}
        return {name: math.nan if value is None and name in names else value for name, value in results.items()}


@dataclass(frozen=True)
class CompositeEvaluator(Narrative):
    """All components, as `Narrative`; an absent overall score is NaN: scripts of the original print it as ``:.3f``."""

    def evaluate(self, prediction: Any, ground_truth: Any, text: Any = None) -> dict[str, Any]:
        """Score one pair; see `Narrative.evaluate`."""
        return _printable(super().evaluate(prediction, ground_truth, text))

    def aggregate_results(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return means of scores and sums of counts over several stories; see `Narrative.aggregate_results`."""
        return _printable(super().aggregate_results(results))


def _printable(results: dict[str, Any]) -> dict[str, Any]:
    """The results of the original narrative package, with NaN where there is no overall score."""
    return results if results["overall_score"] is not None else results | {"overall_score": math.nan}


@dataclass(frozen=True)
class BoundarySegmentationMetric:
    """Similarity of segment boundaries, by the formula of the evaluator `segmentation`.

    Attributes:
        tolerance: n_t of Fournier (2013): boundaries less than this apart are near misses.

    Raises:
        ValueError: The tolerance is below 1.
    """

    tolerance: int = 2

    def __post_init__(self) -> None:
        Segmentation(self.tolerance)

    def calculate(self, reference_boundaries: Iterable[int], hypothesis_boundaries: Iterable[int]) -> float:
        """Return the score, in [0, 1]; 1 if neither side has a boundary.

        Args:
            reference_boundaries: The right boundaries; boundary i lies after sentence i, counted from 0.
            hypothesis_boundaries: The predicted ones.

        Raises:
            ValueError: A boundary is no whole number.
        """
        predicted, right = list(hypothesis_boundaries), list(reference_boundaries)
        results = Segmentation(self.tolerance).evaluate(predicted, right)
        if "malformed" in results:
            raise ValueError(results["malformed"])
        score: float = results["boundary_score"]
        return score


class BaseEvaluator(Evaluator):
    """Base of evaluators of your own that were written for the original package: two methods, no counts.

    `evaluate` gets two documents and the text. Each number that `get_metrics_summary` returns is a metric, whose value
    over several stories is the mean of those that have one; ``None`` is undefined. A registered subclass is named by
    its attribute ``name``, or else by its class: ``ThemesEvaluator`` is ``themes``.

    Attributes:
        metrics: The names of the metrics; without any, `get_metrics_summary` says them for two empty documents.
    """

    reads = NarrativeEvaluator.reads
    metrics: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Evaluator") or cls.__name__).lower()

    @abstractmethod
    def evaluate(self, prediction: Any, ground_truth: Any, text: Any = None) -> dict[str, Any]:
        """Score a prediction against the ground truth."""

    @abstractmethod
    def get_metrics_summary(self, results: dict[str, Any]) -> Mapping[str, float | None]:
        """Return the metrics out of what `evaluate` returned."""

    handle_missing_ground_truth = staticmethod(handle_missing_ground_truth)

    def resolve(self) -> Evaluator:
        """Return the evaluator, made by its own ``__init__`` unless it is a dataclass with options."""
        return self if fields(self) else type(self)()

    def describe(self) -> Sequence[Metric]:
        """Return the metrics of the summary, of any range.

        Raises:
            EvaluatorError: Their names are unknown.
        """
        return [Metric(name, low=None, high=None, signature=f"v:{self.version}") for name in self._names]

    @cached_property
    def _names(self) -> tuple[str, ...]:
        if self.metrics:
            return tuple(self.metrics)
        try:
            return tuple(self.get_metrics_summary(self.evaluate(dict(_NOTHING), dict(_NOTHING), "")))
        except Exception as error:
            message = f"{type(self).__name__}: evaluate failed for two empty documents ({AnyError(error).text})"
            raise EvaluatorError(f"{message}; set metrics = (...)") from error

    def measure(self, case: Case) -> Observation:
        """Evaluate one story; a malformed prediction is scored as an empty one.

        Raises:
            EvaluatorError: The summary has a metric that is not described, or a value that is no number.
        """
        predicted, malformed = parsed_prediction(case.prediction)
        text = case.input if isinstance(case.input, str) else None
        results = self.evaluate(predicted, case.expected, text)
        summary: Mapping[str, Any] = self.get_metrics_summary(results)
        counts: dict[str, float] = {}
        for name, value in summary.items():
            if name not in self._names:
                raise EvaluatorError(f"found the metric {name!r}, expected one of: {', '.join(self._names)}")
            if value is None:
                continue
            if not (isinstance(value, Real) and math.isfinite(value)):
                raise EvaluatorError(f"{name}: found {value!r}, expected a finite number or None")
            counts |= {name: float(value), f"{name}.stories": 1}
        undefined = {name: "the evaluator gave no value" for name in self._names if name not in counts}
        details = json.loads(json.dumps(results, default=str))
        return Observation(counts, details, undefined, malformed)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return the means over stories."""
        return {name: ratio(sums[name], sums[f"{name}.stories"]) for name in self._names}


BaseEvaluator.register(NarrativeEvaluator)  # type: ignore[type-abstract]  # no instance is made here


def load_ground_truth(json_path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return a JSON v3 document.

    Raises:
        SuiteError: The file cannot be read, is no JSON or not in JSON v3; all faults are listed, with their places.
    """
    document = InputFile(Path(json_path), str(json_path)).read_json()
    if faults := annotation_problems(document):
        raise SuiteError(faults)
    data: dict[str, Any] = document.data
    return data


def load_prediction(json_path: str | os.PathLike[str]) -> Any:
    """Return the prediction of a model; evaluators report malformed ones.

    Raises:
        SuiteError: The file cannot be read or is no JSON, with the place.
    """
    return InputFile(Path(json_path), str(json_path)).read_json().data


def normalize_character_name(name: str, aliases: Iterable[str] = ()) -> str:
    """Return the key by which a name is compared: that of the first of `aliases`, the main name, if it is among them.

    >>> normalize_character_name(" The  Miller", ["Mira", "the miller"])
    'mira'
    """
    keys = [name_key(alias) for alias in aliases]
    key = name_key(name)
    return keys[0] if key in keys else key


def load_relationship_taxonomy(csv_path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Return the labels of level 1 with those of level 2 below each.

    Raises:
        SuiteError: The file cannot be read or has faults.
    """
    return {
        relationship.label: [below.label for below in relationship.level2]
        for relationship in read_relationships(Path(csv_path))
    }


def load_sentiment_taxonomy(csv_path: str | os.PathLike[str]) -> list[str]:
    """Return the labels of sentiments; see `load_relationship_taxonomy`."""
    return [sentiment.label for sentiment in read_sentiments(Path(csv_path))]


def load_action_taxonomy(md_path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return ``categories`` (each with its types, each with its contexts), ``status`` and ``function``."""
    labels = read_actions(Path(md_path))
    return {
        "categories": {
            category.label: {kind.label: list(kind.contexts) for kind in category.types}
            for category in labels.categories
        },
        "status": [status.label for status in labels.statuses],
        "function": [function.label for function in labels.functions],
    }


def text_to_sentence_indices(text: str) -> list[tuple[int, int]]:
    """Return start and end of each sentence.

    >>> text_to_sentence_indices("One. Two!")
    [(0, 4), (4, 9)]
    """
    return end_mark_spans(text)


def char_position_to_sentence_index(char_pos: int, sentence_indices: Sequence[tuple[int, int]]) -> int:
    """Return the sentence of a position, counted from 0."""
    return sentence_index(char_pos, sentence_indices)


def calculate_overlap_ratio(span1: tuple[int, int], span2: tuple[int, int]) -> float:
    """Return intersection over union of two spans, in [0, 1]."""
    return overlap_ratio(span1, span2)
