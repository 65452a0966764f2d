"""Evaluator ``narrative.relationships``: the relationships between characters."""

__all__ = ("Relationships", "is_labelled_right")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.evaluators.measures.confusion import f1, precision, ratio, recall
from pytest_llmeval.tasks.narrative.alignment import ALIGN, Alignment, NameMatch, Pairing, RelationshipPair
from pytest_llmeval.tasks.narrative.base import NarrativeEvaluator
from pytest_llmeval.tasks.narrative.document import Event, Relationship
from pytest_llmeval.tasks.narrative.explaining import gap_counts, gap_details, relationship_lines

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_PAIRED = ("relationship_precision", "relationship_recall", "relationship_f1")
_LABELLED = ("labelled_precision", "labelled_recall", "labelled_f1")
_LEVELS = ("level1", "level2")
_COVERAGE = "relationship_pair_coverage"
_NAMES = (*_PAIRED, *_LABELLED, *(f"{level}_accuracy" for level in _LEVELS), _COVERAGE)
_ABSENT = "the ground truth has no relationship with agent and target"


@dataclass(frozen=True)
class Relationships(NarrativeEvaluator):
    """Precision, recall and F1 of relationships, and accuracy of their two levels.

    Judged is every gold event that has at least one relationship with agent and target, including missing events.
    Predicted relationships of an event are paired one-to-one with gold ones between the same characters (aliases are
    resolved), preferring equal levels 1, then levels 2, then common sentiments.

    With ``pairing: many`` every relationship between the same characters is found, however many there are of it.

    * ``relationship_*``: of the pairs; recall is ``relationship_pair_coverage`` too;
    * ``labelled_*``: a pair counts if it has every level that gold gives;
    * ``level1_accuracy``, ``level2_accuracy``: over the pairs whose gold has the level; none predicted is wrong.

    All metrics are in [0, 1].

    Attributes:
        fuzzy: Least likeness at which names are equal, as in `narrative.characters`.
        match: ``strict``: only main names count, no aliases.
        pairing: ``many``: relationships between the same characters are paired many-to-many.
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
        relationship_taxonomy: File of your own with the labels for `normalize`; ``None``: the shipped one.
    """

    name = "narrative.relationships"

    fuzzy: float | None = None
    match: NameMatch = field(default="aliases", kw_only=True)
    pairing: Pairing = field(default="one", kw_only=True)
    align: tuple[str, ...] = ALIGN
    relationship_taxonomy: str | None = field(default=None, kw_only=True, metadata={"path": True})

    def describe(self) -> Sequence[Metric]:
        """Return the nine metrics.

        Raises:
            SuiteError: The taxonomy has faults.
        """
        self._check_taxonomies()
        return [Metric(name, signature=self._signature()) for name in _NAMES]

    def observe(self, stories: Alignment) -> Observation:
        """Count the relationships of two stories."""
        tally = _Tally()
        for (event, partner), pairs, links in zip(stories.events, stories.relationships, stories.links, strict=True):
            tally.add(event, partner, pairs, links)
        details = tally.details() | gap_details("relationships", stories.gold)
        if not tally.judged_events:
            return Observation(gap_counts(details), details, dict.fromkeys(_NAMES, _ABSENT))
        undefined = {
            f"{level}_accuracy": f"no paired relationship has {level} in the ground truth"
            for level in _LEVELS
            if not tally.counts[level]
        }
        return Observation(gap_counts(details) | tally.counts, details, undefined)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say which relationships are missing, extra, or have other labels."""
        del case
        return relationship_lines(observation.details)

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return precision, recall and F1 of all relationships pooled, and the shares of right levels."""
        import numpy as np

        predicted, gold = sums["predicted"], sums["gold"]
        metrics: dict[str, FloatArray] = {}
        for names, kind in ((_PAIRED, "paired"), (_LABELLED, "labelled")):
            hits, more = sums[kind], sums[f"{kind}.more"]
            found, covered = precision(hits + more, predicted, gold), recall(hits, gold)
            both = np.where(more == 0, f1(hits, predicted, gold), ratio(2 * found * covered, found + covered))
            metrics |= dict(zip(names, (found, covered, both), strict=True))
        accuracies = {f"{level}_accuracy": ratio(sums[f"{level}.right"], sums[level]) for level in _LEVELS}
        return metrics | accuracies | {_COVERAGE: metrics["relationship_recall"]}


class _Tally:
    """Counts relationships event by event."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("gold", "predicted", "paired", "labelled"), 0)
        self.counts |= {name: 0 for level in _LEVELS for name in (level, f"{level}.right")}
        self.judged_events = 0
        self.skipped_events = 0
        self.missing: list[dict[str, Any]] = []
        self.extra: list[dict[str, Any]] = []
        self.unjudged: list[dict[str, Any]] = []
        self.wrong: list[dict[str, Any]] = []

    def add(
        self,
        event: Event,
        partner: Event | None,
        pairs: Sequence[RelationshipPair],
        links: Sequence[tuple[Relationship, Relationship]],
    ) -> None:
        predicted = partner.relationships if partner else ()
        if not pairs:
            self.unjudged += [_shown(event, each) for each in predicted]
            if predicted:
                self.skipped_events += 1
            return
        self.judged_events += 1
        # As many predicted ones may lack an end as gold ones do.
        lacking = sum(not each.is_usable for each in predicted)
        excused = min(lacking, len(event.relationships) - len(pairs))
        self.counts["gold"] += len(pairs)
        self.counts["predicted"] += len(predicted) - excused
        for right, answer in pairs:
            if answer is None:
                self.missing.append(_shown(event, right))
            else:
                self._add_pair(event, right, answer)
        self._add_more("paired", links)
        self._add_more("labelled", [link for link in links if is_labelled_right(*link)])
        paired = {id(answer) for _, answer in links}
        usable = [each for each in predicted if each.is_usable and id(each) not in paired]
        unusable = [each for each in predicted if not each.is_usable]
        self.unjudged += [_shown(event, each) for each in unusable[:excused]]
        self.extra += [_shown(event, each) for each in (*usable, *unusable[excused:])]

    def _add_more(self, kind: str, links: Sequence[tuple[Relationship, Relationship]]) -> None:
        """Count by how many the predicted relationships that are found outnumber the gold ones."""
        if more := len({id(answer) for _, answer in links}) - len({id(right) for right, _ in links}):
            self.counts[f"{kind}.more"] = self.counts.get(f"{kind}.more", 0) + more

    def _add_pair(self, event: Event, right: Relationship, answer: Relationship) -> None:
        self.counts["paired"] += 1
        self.counts["labelled"] += is_labelled_right(right, answer)
        for level in _LEVELS:
            expected, found = getattr(right, level), getattr(answer, level)
            if not expected:
                continue
            self.counts[level] += 1
            self.counts[f"{level}.right"] += expected == found
            if expected != found:
                found_field = {"field": f"relationship_{level}", "expected": expected, "predicted": found}
                self.wrong.append({"event": event.label, "agent": right.agent, "target": right.target} | found_field)

    def details(self) -> dict[str, Any]:
        return {
            "missing_relationships": self.missing,
            "extra_relationships": self.extra,
            "unjudged_relationships": self.unjudged,
            "wrong_levels": self.wrong,
            "n_events_evaluated": self.judged_events,
            "n_events_skipped": self.skipped_events,
            "n_extra_relationships": len(self.unjudged),  # the original's name
            "total_relationships_pred": self.counts["predicted"],
            "total_relationships_gt": self.counts["gold"],
            "total_relationships_correct": self.counts["paired"],
        }


def is_labelled_right(right: Relationship, answer: Relationship) -> bool:
    """Whether a predicted relationship has every level that gold gives."""
    return all(getattr(right, level) in ("", getattr(answer, level)) for level in _LEVELS)


def _shown(event: Event, each: Relationship) -> dict[str, Any]:
    return {
        "event": event.label,
        "agent": each.agent,
        "target": each.target,
        "relationship_level1": each.level1,
        "relationship_level2": each.level2,
        "sentiment": sorted(each.sentiments),
    }
