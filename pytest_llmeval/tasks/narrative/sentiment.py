"""Evaluator ``narrative.sentiment``: the feelings of characters towards each other."""

__all__ = ("Sentiment",)

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.evaluators.measures.confusion import f1, precision, ratio, recall
from pytest_llmeval.tasks.narrative.alignment import ALIGN, Alignment, NameMatch, Pairing, RelationshipPair
from pytest_llmeval.tasks.narrative.base import NarrativeEvaluator
from pytest_llmeval.tasks.narrative.document import Event, Relationship
from pytest_llmeval.tasks.narrative.explaining import gap_counts, gap_details, sentiment_lines
from pytest_llmeval.tasks.narrative.labels import narrative_taxonomy

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_FOUND = ("sentiment_precision", "sentiment_recall", "sentiment_f1")
_POLARITY = "sentiment_polarity_accuracy"
_ABSENT = "the ground truth has no sentiment of a relationship with agent and target"
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

    fuzzy: float | None = None
    match: NameMatch = field(default="aliases", kw_only=True)
    pairing: Pairing = field(default="one", kw_only=True)
    align: tuple[str, ...] = ALIGN
    sentiment_taxonomy: str | None = field(default=None, metadata={"path": True})

    def describe(self) -> Sequence[Metric]:
        """Return the four metrics.

        Raises:
            SuiteError: The taxonomy has faults.
        """
        self._check_taxonomies()
        return [Metric(name, signature=self._signature()) for name in (*_FOUND, _POLARITY)]

    def observe(self, stories: Alignment) -> Observation:
        """Count the sentiments of two stories."""
        tally = _Tally(narrative_taxonomy(sentiments=self.sentiment_taxonomy).polarity)
        for (event, partner), pairs, links in zip(stories.events, stories.feelings, stories.links, strict=True):
            for right, answer in pairs:
                tally.add(event, right, answer)
            if partner:
                tally.add_others(event, partner, pairs, {id(answer) for _, answer in links})
        details = tally.details() | gap_details("sentiment", stories.gold)
        if not tally.judged:
            return Observation(gap_counts(details), details, dict.fromkeys((*_FOUND, _POLARITY), _ABSENT))
        no_polarity = {} if tally.counts["polarity_total"] else {_POLARITY: _NO_POLARITY}
        return Observation(gap_counts(details) | tally.counts, details, no_polarity)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say which sentiments are missing or extra."""
        del case
        return sentiment_lines(observation.details)

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return precision, recall and F1 of all sentiments pooled, and the share of right polarities."""
        hits, gold = sums["true_positives"], sums["true_positives"] + sums["false_negatives"]
        predicted = hits + sums["false_positives"]
        found = (precision(hits, predicted, gold), recall(hits, gold), f1(hits, predicted, gold))
        accuracy = ratio(sums["polarity_correct"], sums["polarity_total"])
        return dict(zip(_FOUND, found, strict=True)) | {_POLARITY: accuracy}


class _Tally:
    """Counts sentiments, one gold relationship after the other."""

    def __init__(self, polarity: Callable[[str], str | None]) -> None:
        self._polarity = polarity
        names = ("true_positives", "false_positives", "false_negatives", "polarity_correct", "polarity_total")
        self.counts = dict.fromkeys(names, 0)
        self.judged = 0
        self.skipped = 0
        self.skipped_events = 0
        self.unjudged: list[dict[str, Any]] = []
        self.missing: list[dict[str, Any]] = []
        self.extra: list[dict[str, Any]] = []

    def add(self, event: Event, right: Relationship, answer: Relationship | None) -> None:
        found = answer.sentiments if answer else frozenset()
        if not right.sentiments:
            self.skipped += bool(found)
            self._leave_open(event, answer)
            return
        self.judged += 1
        missed, surplus = right.sentiments - found, found - right.sentiments
        self.counts["true_positives"] += len(right.sentiments & found)
        self.counts["false_positives"] += len(surplus)
        self.counts["false_negatives"] += len(missed)
        where = {"event": event.label, "agent": right.agent, "target": right.target}
        for target, sentiments in ((self.missing, missed), (self.extra, surplus)):
            if sentiments:
                target.append(where | {"sentiment": sorted(sentiments)})
        expected = self._polarities(right.sentiments)
        if answer and expected:
            self.counts["polarity_total"] += 1
            self.counts["polarity_correct"] += expected == self._polarities(found)

    def add_others(self, event: Event, partner: Event, pairs: Sequence[RelationshipPair], paired: set[int]) -> None:
        """Add what the partner of an event has beside its pairs, and count the event if none of it is judged."""
        for each in partner.relationships:
            if id(each) not in paired:
                self._leave_open(event, each)
        if not pairs:
            self.skipped += len(partner.relationships)
        if not any(right.sentiments for right, _ in pairs):
            self.skipped_events += any(each.sentiments for each in partner.relationships)

    def _leave_open(self, event: Event, answer: Relationship | None) -> None:
        if answer is not None and answer.sentiments:
            where = {"event": event.label, "agent": answer.agent, "target": answer.target}
            self.unjudged.append(where | {"sentiment": sorted(answer.sentiments)})

    def _polarities(self, sentiments: Iterable[str]) -> set[str]:
        return {polarity for each in sentiments if (polarity := self._polarity(each))}

    def details(self) -> dict[str, Any]:
        return {
            "missing_sentiments": self.missing,
            "extra_sentiments": self.extra,
            "unjudged_sentiments": self.unjudged,
            "n_events_skipped": self.skipped_events,
            "n_relationships_skipped": self.skipped,
            **self.counts,
        }
