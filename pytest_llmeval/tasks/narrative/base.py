"""The base class of the evaluators of story annotations."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import structs

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import EvaluatorError
from pytest_llmeval.core.evaluator import ErrorBucket, Evaluator, Metric, Reads
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.evaluators.measures.confusion import f1, precision, ratio, recall
from pytest_llmeval.tasks.narrative.alignment import Alignment, Matching
from pytest_llmeval.tasks.narrative.document import (
    PARTS,
    Story,
    handle_missing_ground_truth,
    is_blank,
    json_fault,
    listed,
    parse_document,
    read_story,
)
from pytest_llmeval.tasks.narrative.explaining import GAPS, STORY_BUCKETS, gaps_table
from pytest_llmeval.tasks.narrative.labelling import normalize_labels, repair_spans, warn_of_drift
from pytest_llmeval.tasks.narrative.labels import NarrativeTaxonomy, narrative_taxonomy

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray
    from pytest_llmeval.core.tables import ReportTable

_TAXONOMIES = ("relationship", "sentiment", "action")
_EXPECTED = "expected a JSON v3 document (an object)"
_UNREAD = "unread"
"""The detail of predictions of which nothing could be read."""


@dataclass(frozen=True)
class NarrativeEvaluator(Evaluator):
    """Base of the evaluators of JSON v3 annotations.

    ``expected`` and ``prediction`` are JSON v3 documents: objects, or JSON texts, which may be in a fenced block. In
    a prediction, malformed values count as absent; of a system's prediction, such as
    ``{answer, usage}``, the answer is read. ``input`` is the text of the story;
    where it is not given, ``source_info.text_content`` is, of the ground truth or else of the prediction.

    What the ground truth leaves empty (null, missing, blank, ``[]``, ``{}``) is never an error of the prediction. A
    subclass may have the options of `Matching`, under their names, those of its taxonomies, and `repair_spans`.

    Attributes:
        metrics: The names of the metrics, unless a subclass describes them itself.
        normalize: Fold labels of both sides into those of the taxonomies: bilingual, long and short forms, and letter
            case. Unknown labels stay unchanged.
    """

    reads = Reads(own_keys=PARTS)

    metrics: ClassVar[tuple[str, ...]] = ()

    normalize: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self._matching  # noqa: B018 (raises for impossible options)

    @cached_property
    def _matching(self) -> Matching:
        return Matching(**{each.name: getattr(self, each.name) for each in fields(self) if each.name in _OPTIONS})

    @cached_property
    def _numbers_of_things(self) -> frozenset[str]:
        return frozenset(metric.name for metric in self.describe() if metric.high is None)

    def _signature(self) -> str:
        """Return the settings that values depend on: name comparison, alignment of events, version."""
        own = {each.name for each in fields(self)}
        fuzzy, version = self._matching.fuzzy, f"v:{self.version}"
        names = "main" if self._matching.match == "strict" else "strict" if fuzzy is None else f"fuzzy>={fuzzy:g}"
        parts = {
            "fuzzy": f"names:{names}",
            "align": f"align:{','.join(self._matching.align)}",
        }
        flags = {"normalize": "labels:normalized", "repair_spans": "spans:repaired"}
        pairing = ["pairing:many"] if self._matching.pairing == "many" else []
        named = [part for name, part in parts.items() if name in own]
        return "|".join(
            [*named, *pairing, *(part for name, part in flags.items() if getattr(self, name, False)), version]
        )

    def describe(self) -> Sequence[Metric]:
        """Return the metrics.

        Raises:
            SuiteError: A taxonomy has faults.
        """
        self._check_taxonomies()
        return [Metric(name, signature=self._signature()) for name in self.metrics]

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Describe the errors that the details list."""
        del case
        return self.lines(observation.details)

    @staticmethod
    def lines(details: Mapping[str, Any]) -> list[str]:
        """Return a line for each error that the details of an observation list."""
        del details
        return []

    def check(self, case: Case) -> Iterable[str]:
        """Yield the malformed values of the ground truth."""
        if is_blank(case.expected):
            return ()
        gold = parse_document(case.expected)
        if gold is None:
            return [_wrong(case.expected)]
        story = read_story(gold)
        # A case without a line has a file of its own, of which its source warns.
        if case.line and hasattr(self, "repair_spans"):
            warn_of_drift(f"case {case.id} (line {case.line})", story, _given_text(case) or story.text)
        return story.faults

    def measure(self, case: Case) -> Observation:
        """Count one story.

        Raises:
            EvaluatorError: The ground truth is not a JSON v3 document. Malformed values inside it count as absent.
        """
        stories, changes = self._prepared(self._read(case))
        observation = self.observe(stories)
        details = {**observation.details, **changes}
        if stories.gold.faults:
            details["gt_faults"] = list(stories.gold.faults)
        if notes := stories.notes:
            details["notes"] = notes
        faults = stories.predicted.faults
        if faults and not (stories.predicted.characters or stories.predicted.events):
            details[_UNREAD] = True
        return structs.replace(observation, details=details, malformed=listed(faults, "; ") if faults else None)

    def error_buckets(self) -> Sequence[ErrorBucket]:
        """Return missing, extra and mislabelled parts of stories."""
        metric = self.describe()[0].name
        return [ErrorBucket(name, metric, details=details) for name, details in STORY_BUCKETS.items()]

    def _read(self, case: Case) -> Alignment:
        right = read_gold(case)
        predicted = parse_document(case.prediction)
        story = Story(faults=(_wrong(case.prediction),)) if predicted is None else _read_prediction(predicted)
        return Alignment(right, story, _given_text(case) or right.text or story.text, self._matching)

    def aligned(self, case: Case) -> Alignment:
        """Return the aligned annotations of a case, before labels are normalized.

        Raises:
            EvaluatorError: The ground truth is not a JSON v3 document.
        """
        return self._read(case)

    @cached_property
    def _taxonomy(self) -> NarrativeTaxonomy:
        return narrative_taxonomy(*(getattr(self, f"{kind}_taxonomy", None) for kind in _TAXONOMIES))

    def _check_taxonomies(self) -> None:
        """Read the taxonomies that the options need, to raise for their faults."""
        if self.normalize or any(getattr(self, f"{kind}_taxonomy", None) is not None for kind in _TAXONOMIES):
            self._taxonomy  # noqa: B018 (raises for faults)

    def _prepared(self, stories: Alignment) -> tuple[Alignment, dict[str, Any]]:
        """Apply `normalize` and `repair_spans` to both sides; also return their changes."""
        sides = {"ground_truth": stories.gold, "prediction": stories.predicted}
        changes: dict[str, Any] = {}
        if self.normalize:
            folded = {side: normalize_labels(story, self._taxonomy) for side, story in sides.items()}
            sides = {side: story for side, (story, _) in folded.items()}
            changes["folded_labels"] = {side: log for side, (_, log) in folded.items()}
        if getattr(self, "repair_spans", False):
            repaired = {side: repair_spans(story, stories.text) for side, story in sides.items()}
            sides = {side: story for side, (story, _) in repaired.items()}
            changes["repaired_spans"] = {side: log for side, (_, log) in repaired.items()}
        return replace(stories, gold=sides["ground_truth"], predicted=sides["prediction"]), changes

    def tables(self) -> "Sequence[ReportTable]":
        """Return the table of the gaps in the ground truth."""
        return [gaps_table({self.name.rpartition(".")[-1]: GAPS})]

    def evaluate(self, prediction: Any, ground_truth: Any, text: Any = None) -> dict[str, Any]:
        """Score one pair; a prediction of which nothing can be read has no score, and ``malformed`` says why."""
        details, scores = self._evaluated(prediction, ground_truth, text)
        return {**details, **scores}

    def _evaluated(
        self, prediction: Any, ground_truth: Any, text: Any
    ) -> tuple[dict[str, Any], Mapping[str, float | None]]:
        observation = self.measure(self.pair(prediction, ground_truth, text))
        details, scores = dict(observation.details), self.scores(observation)
        if observation.malformed is not None:
            details["malformed"] = observation.malformed
        return details, dict.fromkeys(scores) if _UNREAD in details else scores

    handle_missing_ground_truth = staticmethod(handle_missing_ground_truth)

    def get_metrics_summary(self, results: Mapping[str, Any]) -> dict[str, float | None]:
        """Return the metrics out of what `evaluate` returned."""
        return {metric.name: results[metric.name] for metric in self.describe() if metric.name in results}

    def scores(self, observation: Observation) -> dict[str, float | None]:
        """Return the metrics of one observation, numbers of things as whole numbers; ``None`` where undefined."""
        return {
            name: int(value) if value is not None and name in self._numbers_of_things else value
            for name, value in super().scores(observation).items()
        }

    @abstractmethod
    def observe(self, stories: Alignment) -> Observation:
        """Count two stories."""


_OPTIONS = frozenset(each.name for each in fields(Matching))


def read_gold(case: Case) -> Story:
    """Return the ground truth of a case.

    Raises:
        EvaluatorError: It is not a JSON v3 document.
    """
    gold = {} if is_blank(case.expected) else parse_document(case.expected)
    if gold is None:
        raise EvaluatorError(_wrong(case.expected))
    return read_story(gold)


def parsed_prediction(value: Any) -> tuple[Mapping[str, Any], str | None]:
    """Return the document of a prediction, or else an empty one with the fault."""
    document = parse_document(value)
    return ({}, _wrong(value)) if document is None else (document, None)


def _given_text(case: Case) -> str:
    return case.input if isinstance(case.input, str) and not is_blank(case.input) else ""


def _wrong(value: object) -> str:
    malformed = json_fault(value) if isinstance(value, str) else None
    return f"found {malformed or describe_found(value)}, {_EXPECTED}"


def _read_prediction(data: Mapping[str, Any]) -> Story:
    """Read a prediction; an object without any part of a document is malformed."""
    story = read_story(data)
    if not data or story.faults or any(part in data for part in PARTS):
        return story
    keys = listed([repr(key) for key in data])
    fault = f"found an object with {keys}, expected a JSON v3 document with {' or '.join(map(repr, PARTS))}"
    return replace(story, faults=(fault,))


def rates(hits: "FloatArray", predicted: "FloatArray", gold: "FloatArray") -> "tuple[FloatArray, ...]":
    """Return precision, recall and F1 of summed counts."""
    return precision(hits, predicted, gold), recall(hits, gold), f1(hits, predicted, gold)


def mean_of_present(columns: "Mapping[str, FloatArray]", weights: Mapping[str, float] | None = None) -> "FloatArray":
    """Return the weighted mean over columns, row by row, ignoring NaN; NaN where no weight is left."""
    import numpy as np

    values = np.array(list(columns.values()))
    weight = np.array([1.0 if weights is None else weights[name] for name in columns])[:, np.newaxis]
    present = np.where(np.isnan(values), 0.0, weight)
    mean: FloatArray = ratio((np.nan_to_num(values) * present).sum(axis=0), present.sum(axis=0))
    return mean
