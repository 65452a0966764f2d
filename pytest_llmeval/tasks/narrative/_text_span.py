"""The evaluators of text spans and of sentiment."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pytest_llmeval.core import Case, ErrorBucket, FloatArray, LazyDetails, Metric, Observation, Sums
from pytest_llmeval.evaluators import ratio
from pytest_llmeval.tasks.narrative._alignment import (
    ALIGN,
    Alignment,
    NameMatch,
    Pairing,
    RelationshipPair,
    pair_spans,
)
from pytest_llmeval.tasks.narrative._base import (
    NarrativeEvaluator,
    gap_counts,
    gap_details,
    rates,
    sentiment_lines,
    span_lines,
)
from pytest_llmeval.tasks.narrative._document import Event, Relationship, Span
from pytest_llmeval.tasks.narrative._segmentation import (
    TOO_SHORT,
    boundary_counts,
    describe_boundaries,
    end_mark_spans,
    match_boundaries,
    sentence_index,
    summarize_boundaries,
    window_errors,
)
from pytest_llmeval.tasks.narrative.labels import describe_drift, drifted_spans, narrative_taxonomy

_WINDOWED = ("pk", "window_diff")
_OVERLAP = "overlap_ratio"
_ABSENT = "the ground truth has no text span with start and end"
_NO_TEXT = "text is required for text spans: give it as input, or in source_info.text_content"


@dataclass(frozen=True)
class TextSpan(NarrativeEvaluator):
    """Similarity of the boundaries that text spans draw between sentences, and overlap of the spans.

    A span whose start and end lie in different sentences draws a boundary before the sentence of its end. Predicted
    spans of events whose gold event has none are left out. Spans are not judged event by event:

    * ``boundary_score``, ``exact_matches``, ``near_misses``, ``insertions``, ``deletions``, ``pk`` and ``window_diff``
      compare the two sets of boundaries as `segmentation` does;
    * ``overlap_ratio`` is the mean over gold spans of intersection over union with the predicted span that an optimal
      one-to-one assignment gives them, in [0, 1]; 0 without one.

    Both sides may also be lists of spans, ``[{"start": 0, "end": 9}, ...]`` or ``[(0, 9), ...]``.

    Attributes:
        tolerance: n_t of Fournier (2013): boundaries less than this many sentences apart are near misses.
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
        repair_spans: Move spans whose text is not what the story has there to the nearest place where it is.
    """

    name = "narrative.text_span"
    lines = staticmethod(span_lines)

    tolerance: int = 2
    align: tuple[str, ...] = ALIGN
    repair_spans: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tolerance < 1:
            raise ValueError(f"tolerance: found {self.tolerance!r}, expected at least 1")

    def describe(self) -> Sequence[Metric]:
        """Return the metrics of `segmentation`, and the overlap."""
        overlap = Metric(_OVERLAP, signature=f"assignment:optimal|{self._signature()}")
        return [*describe_boundaries(self.tolerance, self.version), overlap]

    def error_buckets(self) -> Sequence[ErrorBucket]:
        """Return none: spans are positions, not parts of a story."""
        return ()

    def evaluate(self, prediction: Any, ground_truth: Any, text: Any = None) -> dict[str, Any]:
        """Score one pair.

        Raises:
            ValueError: There is no text: neither given nor in a document.
        """
        if not self.aligned(self.pair(prediction, ground_truth, text)).text:
            raise ValueError(_NO_TEXT)
        return super().evaluate(prediction, ground_truth, text)

    def check(self, case: Case) -> Iterable[str]:
        """Yield the malformed values of the ground truth."""
        return super().check(replace(case, expected=_document(case.expected)))

    def aligned(self, case: Case) -> Alignment:
        """Return the aligned annotations of a case; see `NarrativeEvaluator.aligned`."""
        expected, prediction = _document(case.expected), _document(case.prediction)
        return super().aligned(replace(case, expected=expected, prediction=prediction))

    def observe(self, stories: Alignment) -> Observation:
        """Count the boundaries and overlaps of two stories; undefined without a text."""
        gold = [event for event, _ in stories.events if event.span]
        predicted, excluded = _judged(stories)
        if not gold or not stories.text:
            reason = _NO_TEXT if gold else _ABSENT
            undefined = dict.fromkeys([metric.name for metric in self.describe()], reason)
            gaps = gap_details("text_span", stories.gold, _NO_TEXT if gold else None)
            details = _details([], [], [], [], excluded) | gaps
            return Observation(gap_counts("text_span", stories.gold), details, undefined)
        sentences = end_mark_spans(stories.text)
        right, answers = (_boundaries(_spans(events), sentences) for events in (gold, predicted))
        windows = window_errors(len(sentences), right, answers)
        counts = boundary_counts(match_boundaries(right, answers, self.tolerance), windows)
        undefined = {} if windows.windows else dict.fromkeys(_WINDOWED, TOO_SHORT)
        overlaps = assign_spans(_spans(gold), _spans(predicted))
        counts |= {"overlap": math.fsum(overlaps), "spans": len(overlaps)}
        counts |= gap_counts("text_span", stories.gold)

        def make_details() -> dict[str, Any]:
            judged = _details(gold, overlaps, answers, right, excluded)
            faults = _faults(gold, predicted, len(stories.text))
            return judged | gap_details("text_span", stories.gold) | faults | _drifts(stories)

        return Observation(counts, LazyDetails(make_details), undefined)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return everything for the boundaries and the spans of all stories pooled."""
        windowed = {name: ratio(sums[f"{name}.errors"], sums[f"{name}.windows"]) for name in _WINDOWED}
        return summarize_boundaries(sums) | windowed | {_OVERLAP: ratio(sums["overlap"], sums["spans"])}


def _document(value: Any) -> Any:
    """A list of predicted spans as a story annotation; anything else unchanged."""
    return {"narrative_events": [{"text_span": _ends(span)} for span in value]} if isinstance(value, list) else value


def _ends(span: Any) -> Any:
    """A span's pair of start and end as an object of a story annotation; anything else unchanged."""
    return {"start": span[0], "end": span[1]} if isinstance(span, (list, tuple)) and len(span) == 2 else span  # noqa: PLR2004 (start and end)


def _judged(stories: Alignment) -> tuple[list[Event], list[str]]:
    """The predicted events whose spans are scored, and the gold events without a span that others match."""
    unjudged = {id(partner): event for event, partner in stories.events if partner and partner.span and not event.span}
    judged = [event for event in stories.predicted.events if event.span and id(event) not in unjudged]
    return judged, [event.label for event in unjudged.values()]


def assign_spans(gold: Sequence[Span], predicted: Sequence[Span]) -> list[float]:
    """The overlap of each gold event span with the predicted span that `pair_spans` gives it.

    Returns:
        One number in [0, 1] for each gold span, in order; 0.0 where none is assigned.
    """
    overlaps = [0.0] * len(gold)
    for row, _, overlap in pair_spans(gold, predicted):
        overlaps[row] = overlap
    return overlaps


def span_faults(spans: Sequence[Span], length: int) -> dict[str, list[int]]:
    """The event spans that are not a proper, separate part of the story's text, by kind of fault.

    Args:
        spans: Spans in any order.
        length: Of the text in characters.

    Returns:
        Indices into `spans` by kind; kinds without a span are left out. ``outside``: an end lies before or after
        the text; ``empty``: both ends are the same; ``reversed``: the end comes before the start;
        ``overlapping``: it begins before an earlier one has ended.
    """
    reached = 0
    for start, end in spans:
        if not reached <= start < end:
            break
        reached = end
    else:
        if reached <= length:  # one after the other, as they mostly are
            return {}
    faults: dict[str, list[int]] = {
        "outside": [
            index for index, (start, end) in enumerate(spans) if min(start, end) < 0 or max(start, end) > length
        ],
        "empty": [index for index, (start, end) in enumerate(spans) if start == end],
        "reversed": [index for index, (start, end) in enumerate(spans) if start > end],
        "overlapping": _overlapping(spans),
    }
    return {kind: indices for kind, indices in faults.items() if indices}


def _overlapping(spans: Sequence[Span]) -> list[int]:
    """The indices of event spans that begin before an earlier span of the story has ended."""
    indices: list[int] = []
    reached: int | None = None
    for start, end, index in sorted((start, end, index) for index, (start, end) in enumerate(spans) if start < end):
        if reached is not None and start < reached:
            indices.append(index)
        reached = end if reached is None else max(reached, end)
    return sorted(indices)


def _spans(events: Sequence[Event]) -> list[Span]:
    """The text spans of a story's annotated events."""
    return [event.span for event in events if event.span]


def _boundaries(spans: Sequence[Span], sentences: Sequence[Span]) -> list[int]:
    """The sentence boundaries that a story's event spans draw: before the last sentence of each."""
    boundaries = set()
    for start, end in spans:
        last = sentence_index(end, sentences)
        if sentence_index(start, sentences) < last:
            boundaries.add(last - 1)
    return sorted(boundaries)


def _faults(gold: Sequence[Event], predicted: Sequence[Event], length: int) -> dict[str, Any]:
    """The events with odd spans: outside the story's text, empty, reversed or overlapping."""
    sides = {"ground_truth": gold, "prediction": predicted}
    faults = {
        side: {kind: [events[index].label for index in indices] for kind, indices in kinds.items()}
        for side, events in sides.items()
        if (kinds := span_faults(_spans(events), length))
    }
    return {"span_faults": faults} if faults else {}


def _drifts(stories: Alignment) -> dict[str, Any]:
    """The spans whose quoted text differs from the story's text there; predicted ones are explained."""
    sides = {"ground_truth": stories.gold, "prediction": stories.predicted}
    by_side = {side: drifts for side, story in sides.items() if (drifts := drifted_spans(story, stories.text))}
    if not by_side:
        return {}
    wrong = [describe_drift(drift) for drift in by_side.get("prediction", ())]
    return {"drifted_spans": by_side} | ({"wrong": wrong} if wrong else {})


def _details(
    gold: Sequence[Event],
    overlaps: Sequence[float],
    predicted: Sequence[int],
    right: Sequence[int],
    excluded: Sequence[str],
) -> dict[str, Any]:
    """The details of a text span case: overlap of each gold event, boundaries of both sides, excluded events."""
    pairs = zip(gold, overlaps, strict=True)
    return {
        "overlap_scores": sorted(overlaps, reverse=True),
        "event_overlaps": [{"event": event.label, "overlap": overlap} for event, overlap in pairs],
        "mean_overlap": math.fsum(overlaps) / len(overlaps) if overlaps else None,
        "predicted_boundaries": predicted,
        "ground_truth_boundaries": right,
        "n_predicted": len(predicted),
        "n_ground_truth": len(right),
        "unjudged_spans": excluded,
        "n_spans_excluded": len(excluded),
    }


_POLARITY = "sentiment_polarity_accuracy"
_NO_SENTIMENT = "the ground truth has no sentiment of a relationship with agent and target"
_NO_POLARITY = "no paired relationship has a sentiment of known polarity in the ground truth"


@dataclass(frozen=True)
class Sentiment(NarrativeEvaluator):
    """Precision, recall and F1 of sentiments, and accuracy of their polarity.

    A relationship has a set of sentiments. Judged are those of gold relationships that have any, paired as by
    `narrative.relationships`: common ones are hits, and the sentiments of a gold relationship without a partner are
    all missed. Polarity is judged in pairs whose gold has a known one: the sets of polarities must be equal.
    Sentiments are compared after trimming, and letter case matters; for polarity it does not. All metrics are in
    [0, 1].

    Attributes:
        fuzzy: Least likeness at which names are equal, as in `narrative.characters`.
        match: ``strict``: only main names count, no aliases.
        pairing: ``many``: the sentiments of all relationships between the same characters are compared as one set.
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
        sentiment_taxonomy: File of your own with the polarity of sentiments; ``None``: the shipped one.
    """

    name = "narrative.sentiment"
    metrics = ("sentiment_precision", "sentiment_recall", "sentiment_f1", _POLARITY)
    lines = staticmethod(sentiment_lines)

    fuzzy: float | None = None
    match: NameMatch = field(default="aliases", kw_only=True)
    pairing: Pairing = field(default="one", kw_only=True)
    align: tuple[str, ...] = ALIGN
    sentiment_taxonomy: str | None = field(default=None, metadata={"path": True})

    def observe(self, stories: Alignment) -> Observation:
        """Count the sentiments of two stories."""
        tally = _Tally(narrative_taxonomy(sentiments=self.sentiment_taxonomy).polarity)
        for (event, partner), pairs, links in zip(stories.events, stories.feelings, stories.links, strict=True):
            for right, answer in pairs:
                tally.add(event, right, answer)
            if partner:
                tally.add_others(event, partner, pairs, {id(answer) for _, answer in links})
        details = LazyDetails(lambda: tally.details() | gap_details("sentiment", stories.gold))
        gaps = gap_counts("sentiment", stories.gold)
        if not tally.judged:
            return Observation(gaps, details, dict.fromkeys(self.metrics, _NO_SENTIMENT))
        no_polarity = {} if tally.counts["polarity_total"] else {_POLARITY: _NO_POLARITY}
        abstained = tuple(no_polarity) if tally.has_polarity else ()
        return Observation(gaps | tally.counts, details, no_polarity, abstained=abstained)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return precision, recall and F1 of all sentiments pooled, and the share of right polarities."""
        hits, gold = sums["true_positives"], sums["true_positives"] + sums["false_negatives"]
        predicted = hits + sums["false_positives"]
        accuracy = ratio(sums["polarity_correct"], sums["polarity_total"])
        return dict(zip(self.metrics, (*rates(hits, predicted, gold), accuracy), strict=True))


_SentimentGroup: TypeAlias = tuple[Event, Relationship, frozenset[str]]
"""Some of the sentiments of a relationship in an event."""


def _sentiment_detail(group: _SentimentGroup) -> dict[str, Any]:
    """The sentiments of an annotated relationship, for the details of a story's case."""
    event, relationship, sentiments = group
    where = {"event": event.label, "agent": relationship.agent, "target": relationship.target}
    return where | {"sentiment": sorted(sentiments)}


class _Tally:
    """The counts of a story's sentiments, one gold relationship after the other."""

    def __init__(self, polarity: Callable[[str], str | None]) -> None:
        self._polarity = polarity
        names = ("true_positives", "false_positives", "false_negatives", "polarity_correct", "polarity_total")
        self.counts = dict.fromkeys(names, 0)
        self.judged = 0
        self.has_polarity = False
        self.skipped = 0
        self.skipped_events = 0
        self.unjudged: list[_SentimentGroup] = []
        self.missing: list[_SentimentGroup] = []
        self.extra: list[_SentimentGroup] = []

    def add(self, event: Event, right: Relationship, answer: Relationship | None) -> None:
        predicted = answer.sentiments if answer else frozenset()
        if not right.sentiments:
            self.skipped += bool(predicted)
            self._leave_open(event, answer)
            return
        self.judged += 1
        missed, surplus = right.sentiments - predicted, predicted - right.sentiments
        self.counts["true_positives"] += len(right.sentiments & predicted)
        self.counts["false_positives"] += len(surplus)
        self.counts["false_negatives"] += len(missed)
        for groups, sentiments in ((self.missing, missed), (self.extra, surplus)):
            if sentiments:
                groups.append((event, right, sentiments))
        expected = self._polarities(right.sentiments)
        self.has_polarity = self.has_polarity or bool(expected)
        if answer and expected:
            self.counts["polarity_total"] += 1
            self.counts["polarity_correct"] += expected == self._polarities(predicted)

    def add_others(self, event: Event, partner: Event, pairs: Sequence[RelationshipPair], paired: set[int]) -> None:
        """Add the unpaired relationships of an event's partner, and count the event if none of them is judged."""
        for relationship in partner.relationships:
            if id(relationship) not in paired:
                self._leave_open(event, relationship)
        if not pairs:
            self.skipped += len(partner.relationships)
        if not any(right.sentiments for right, _ in pairs):
            self.skipped_events += any(relationship.sentiments for relationship in partner.relationships)

    def _leave_open(self, event: Event, answer: Relationship | None) -> None:
        if answer is not None and answer.sentiments:
            self.unjudged.append((event, answer, answer.sentiments))

    def _polarities(self, sentiments: Iterable[str]) -> set[str]:
        return {polarity for sentiment in sentiments if (polarity := self._polarity(sentiment))}

    def details(self) -> dict[str, Any]:
        return {
            "missing_sentiments": list(map(_sentiment_detail, self.missing)),
            "extra_sentiments": list(map(_sentiment_detail, self.extra)),
            "unjudged_sentiments": list(map(_sentiment_detail, self.unjudged)),
            "n_events_skipped": self.skipped_events,
            "n_relationships_skipped": self.skipped,
            **self.counts,
        }
