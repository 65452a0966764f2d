"""The base class of the evaluators of story annotations, and the lines that explain the errors of one."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from msgspec import structs

from pytest_llmeval.core import (
    Case,
    Count,
    ErrorBucket,
    Evaluator,
    EvaluatorError,
    FloatArray,
    LazyDetails,
    Metric,
    MetricTable,
    Observation,
    Reads,
    listed,
)
from pytest_llmeval.evaluators import AnswerValue, precision, ratio
from pytest_llmeval.tasks.narrative._alignment import Alignment, Matching
from pytest_llmeval.tasks.narrative._document import (
    ACTION_FIELDS,
    PARTS,
    Character,
    Event,
    Relationship,
    Story,
    handle_missing_ground_truth,
    is_blank,
    json_fault,
    parse_document,
    read_story,
)
from pytest_llmeval.tasks.narrative._document import listed as parts_listed
from pytest_llmeval.tasks.narrative.labels import (
    NarrativeTaxonomy,
    narrative_taxonomy,
    normalize_labels,
    repair_spans,
    warn_of_drift,
)

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
    """The report's lines on missing and extra characters and wrong archetypes of a story."""
    archetypes = {character.name: character.archetype for character in gold if character.archetype}
    lines = []
    for name in details["missing_characters"]:
        expected = f" (expected {archetypes[name]})" if name in archetypes else ""
        lines.append(f"missing character: {name}{expected}")
    lines += [f"extra character: {name}" for name in details["extra_characters"]]
    return lines + [
        f"character {diff['character']}: found archetype {diff['predicted'] or 'none'}, expected {diff['expected']}"
        for diff in details["wrong_archetypes"]
    ]


def relationship_lines(details: Mapping[str, Any]) -> list[str]:
    """The report's lines on missing, extra and mislabelled relationships of a story."""
    lines = [f"event {pair['event']}: missing relationship: {_ends(pair)}{_levels(pair)}" for pair in details[_MISSING]]
    lines += [f"event {pair['event']}: extra relationship: {_ends(pair)}{_levels(pair)}" for pair in details[_EXTRA]]
    return lines + [
        f"event {diff['event']}: relationship {_ends(diff)}: found {diff['field'].removeprefix('relationship_')} "
        f"{diff['predicted'] or 'none'}, expected {diff['expected']}"
        for diff in details["wrong_levels"]
    ]


def sentiment_lines(details: Mapping[str, Any]) -> list[str]:
    """The report's lines on missing and extra sentiments of a story's relationships."""
    return [
        f"event {diff['event']}: relationship {_ends(diff)}: {kind} sentiment: {listed(diff['sentiment'])}"
        for kind in ("missing", "extra")
        for diff in details[f"{kind}_sentiments"]
    ]


def action_lines(details: Mapping[str, Any]) -> list[str]:
    """The report's lines on missing events and wrong action fields of a story."""
    lines = [f"missing event: {label}" for label in details["missing_events"]]
    return lines + [
        f"event {diff['event']}: {diff['field']}: found {diff['predicted'] or 'none'}, expected {diff['expected']}"
        for diff in details["wrong_fields"]
    ]


def span_lines(details: Mapping[str, Any]) -> list[str]:
    """The report's lines on a story's wrong boundaries, spans of little overlap, and odd spans."""
    right, predicted = details["ground_truth_boundaries"], details["predicted_boundaries"]
    lines = [
        f"{kind} boundaries: {listed(f'after sentence {boundary}' for boundary in boundaries)}"
        for kind, boundaries in (("missing", _without(right, predicted)), ("extra", _without(predicted, right)))
        if boundaries
    ]
    if few := [overlap for overlap in details["overlap_scores"] if overlap < _FEW]:
        lines.append(
            f"spans that overlap the expected one by less than half: {len(few)} of {len(details['overlap_scores'])}"
        )
    for kind, labels in details.get("span_faults", {}).get("prediction", {}).items():
        lines.append(f"{kind.replace('_', ' ')} spans of predicted events: {listed(labels)}")
    return lines


def event_lines(details: Mapping[str, Any]) -> list[str]:
    """The report's lines on missing and extra events of a story."""
    summary = details["summary"]
    return [f"{kind} event: {label}" for kind in ("missing", "extra") for label in summary[f"{kind}_events"]]


def label_lines(details: Mapping[str, Any]) -> list[str]:
    """The report's lines on a story's labels that no taxonomy has."""
    return [f"event {label['event']}: {label['reason']}" for label in details["invalid_labels"]]


def _ends(each: Mapping[str, Any]) -> str:
    """The agent and target of an annotated relationship in a line of the report."""
    return f"{each['agent'] or '?'} -> {each['target'] or '?'}"


def _levels(each: Mapping[str, Any]) -> str:
    """The relationship labels of both levels in brackets, for a line of the report."""
    levels = [level for name in ("relationship_level1", "relationship_level2") if (level := each[name])]
    return f" ({', '.join(levels)})" if levels else ""


def _without(some: Iterable[int], others: Iterable[int]) -> list[int]:
    """The sentence boundaries of one annotation that the other lacks."""
    known = set(others)
    return [boundary for boundary in some if boundary not in known]


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
    """The details ``gt_incomplete``, ``gt_incomplete_reason`` and ``gt_gaps`` of a gold annotation's part.

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


def gap_counts(part: str, gold: Story) -> dict[str, int]:
    """The count of the gaps in a gold annotation's part for `gaps_table`; empty without a gap."""
    number = sum(1 for _ in _FINDERS[part](gold))
    return {GAPS: number} if number else {}


def gaps_table(counts: Mapping[str, str]) -> MetricTable:
    """The report's table of gaps in gold annotations.

    Args:
        counts: Part to the name of its count.
    """
    rows = [([part], [Count(name)]) for part, name in counts.items()]
    return MetricTable("Gaps in the ground truth (not judged)", ("part", "values missing"), rows)


def _characters(gold: Story) -> Iterator[Gap]:
    """Yield the characters without an archetype in a gold annotation, which no score judges."""
    if not gold.characters:
        yield {"field": "characters"}
    for character in gold.characters:
        if not character.archetype:
            yield {"character": character.name, "field": "archetype"}


def _relationships(gold: Story) -> Iterator[Gap]:
    """Yield the relationships and labels that a gold annotation leaves out, which no score judges."""
    for event in gold.events:
        if not any(relationship.is_usable for relationship in event.relationships):
            yield {"event": event.label, "field": "relationships"}
            continue
        for relationship in sorted(event.relationships, key=_order):
            absent = {
                "agent": not relationship.agent,
                "target": not relationship.target,
                "relationship_level1": relationship.is_usable and not relationship.level1,
                "relationship_level2": relationship.is_usable and not relationship.level2,
            }
            yield from (
                _of_relationship(event, relationship, field) for field, is_absent in absent.items() if is_absent
            )


def _order(each: Relationship) -> tuple[str, ...]:
    """The sort key of an annotated relationship in a list of gaps."""
    return each.agent, each.target, each.level1, each.level2


def _sentiment(gold: Story) -> Iterator[Gap]:
    """Yield the relationships of a gold annotation without a sentiment, which no score judges."""
    for event in gold.events:
        usable = sorted((relationship for relationship in event.relationships if relationship.is_usable), key=_order)
        if not usable:
            yield {"event": event.label, "field": "relationships"}
        yield from (
            _of_relationship(event, relationship, "sentiment") for relationship in usable if not relationship.sentiments
        )


def _action_layer(gold: Story) -> Iterator[Gap]:
    """Yield the action fields that events of a gold annotation leave out, which no score judges."""
    for event in gold.events:
        absent = [f"action_layer.{name}" for name in ACTION_FIELDS if name not in event.action]
        for path in absent if event.action else ["action_layer"]:
            yield {"event": event.label, "field": path}


def _text_span(gold: Story) -> Iterator[Gap]:
    """Yield the events of a gold annotation without a text span, which no score judges."""
    return ({"event": event.label, "field": "text_span"} for event in gold.events if event.span is None)


def _of_events(find: Callable[[Story], Iterable[Gap]]) -> Callable[[Story], Iterable[Gap]]:
    """A finder of gaps that also reports a gold annotation without events."""
    return lambda gold: find(gold) if gold.events else [{"field": _EVENTS}]


_FINDERS: dict[str, Callable[[Story], Iterable[Gap]]] = {
    "characters": _characters,
    "relationships": _of_events(_relationships),
    "sentiment": _of_events(_sentiment),
    "action_layer": _of_events(_action_layer),
    "text_span": _of_events(_text_span),
}


def _of_relationship(event: Event, each: Relationship, field: str) -> Gap:
    """The report's entry for a field that an annotated relationship leaves out."""
    return {"event": event.label, "agent": each.agent, "target": each.target, "field": field}


def _described(gaps: Iterable[Gap]) -> str:
    """Describe the gaps of a gold annotation by field, each with the first events or characters that lack it."""
    places: dict[str, dict[str, None]] = {}
    for gap in gaps:
        kind = "event" if "event" in gap else "character"
        name = _WORDS.get(gap["field"], gap["field"])
        labels = places.setdefault(f"no {name}" + (f" in {kind} " if kind in gap else ""), {})
        labels |= dict.fromkeys([gap[kind]] if kind in gap else [])
    return "; ".join(head + parts_listed(list(names)) for head, names in places.items())


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
        return Matching(
            **{option.name: getattr(self, option.name) for option in fields(self) if option.name in _OPTIONS}
        )

    @cached_property
    def _numbers_of_things(self) -> frozenset[str]:
        return frozenset(metric.name for metric in self.describe() if metric.high is None)

    def _signature(self) -> str:
        """Return the settings that values depend on: name comparison, alignment of events, version."""
        own = {option.name for option in fields(self)}
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
        stories, changes = self._prepared(self.aligned(case))
        observation, faults = self.observe(stories), stories.predicted.faults

        def details() -> dict[str, Any]:
            read = {**observation.details, **changes}
            if stories.gold.faults:
                read["gt_faults"] = list(stories.gold.faults)
            if notes := stories.notes:
                read["notes"] = notes
            if faults and not (stories.predicted.characters or stories.predicted.events):
                read[_UNREAD] = True
            return read

        malformed = parts_listed(faults, "; ") if faults else None
        return structs.replace(observation, details=LazyDetails(details), malformed=malformed)

    def error_buckets(self) -> Sequence[ErrorBucket]:
        """Return missing, extra and mislabelled parts of stories."""
        metric = self.describe()[0].name
        return [ErrorBucket(name, metric, details=details) for name, details in STORY_BUCKETS.items()]

    def aligned(self, case: Case) -> Alignment:
        """Return the aligned annotations of a case, before labels are normalized.

        Raises:
            EvaluatorError: The ground truth is not a JSON v3 document.
        """
        right = read_gold(case)
        predicted = parse_document(case.prediction)
        story = Story(faults=(_wrong(case.prediction),)) if predicted is None else _read_prediction(predicted)
        return Alignment(right, story, _given_text(case) or right.text or story.text, self._matching)

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
        if changes:
            stories = replace(stories, gold=sides["ground_truth"], predicted=sides["prediction"])
        return stories, changes

    def tables(self) -> Sequence[MetricTable]:
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


_OPTIONS = frozenset(option.name for option in fields(Matching))


def read_gold(case: Case) -> Story:
    """Read the gold annotation of a story case.

    Raises:
        EvaluatorError: It is not a JSON v3 document.
    """
    gold = {} if is_blank(case.expected) else parse_document(case.expected)
    if gold is None:
        raise EvaluatorError(_wrong(case.expected))
    return read_story(gold)


def parsed_prediction(value: Any) -> tuple[Mapping[str, Any], str | None]:
    """The predicted story annotation, or an empty one with the fault."""
    document = parse_document(value)
    return ({}, _wrong(value)) if document is None else (document, None)


def _given_text(case: Case) -> str:
    """The story's text if it is the input of the case; empty if the input is anything else."""
    return case.input if isinstance(case.input, str) and not is_blank(case.input) else ""


def _wrong(value: object) -> str:
    """The message for a story annotation that is no JSON document."""
    malformed = json_fault(value) if isinstance(value, str) else None
    return f"found {malformed or AnswerValue(value).kind}, {_EXPECTED}"


def _read_prediction(data: Mapping[str, Any]) -> Story:
    """Read a predicted story annotation; an object without any part of one is malformed."""
    story = read_story(data)
    story = structs.replace(story, faults=(*story.faults, *story.misnamed))
    if not data or story.faults or any(part in data for part in PARTS):
        return story
    keys = parts_listed([repr(key) for key in data])
    fault = f"found an object with {keys}, expected a JSON v3 document with {' or '.join(map(repr, PARTS))}"
    return structs.replace(story, faults=(fault,))


def rates(hits: FloatArray, predicted: FloatArray, gold: FloatArray) -> tuple[FloatArray, ...]:
    """Precision, recall and F1 of a story component's summed counts."""
    return precision(hits, predicted, gold), ratio(hits, gold), ratio(2 * hits, predicted + gold)


def mean_of_present(columns: Mapping[str, FloatArray], weights: Mapping[str, float] | None = None) -> FloatArray:
    """The weighted mean of component scores, row by row, ignoring NaN; NaN if no weight remains."""
    import numpy as np

    values = np.array(list(columns.values()))
    weight = np.array([1.0 if weights is None else weights[name] for name in columns])[:, np.newaxis]
    present = np.where(np.isnan(values), 0.0, weight)
    mean: FloatArray = ratio((np.nan_to_num(values) * present).sum(axis=0), present.sum(axis=0))
    return mean
