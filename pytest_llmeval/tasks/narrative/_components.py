"""The evaluators of events, characters, relationships and the action layer."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pytest_llmeval.core import Case, FloatArray, LazyDetails, Metric, Observation, Sums
from pytest_llmeval.evaluators import precision, ratio
from pytest_llmeval.tasks.narrative._alignment import ALIGN, Alignment, EventPair, NameMatch, Pairing, RelationshipPair
from pytest_llmeval.tasks.narrative._base import (
    NarrativeEvaluator,
    action_lines,
    character_lines,
    gap_counts,
    gap_details,
    rates,
    read_gold,
    relationship_lines,
)
from pytest_llmeval.tasks.narrative._document import ACTION_FIELDS, Event, Relationship

_PAIRED = ("relationship_precision", "relationship_recall", "relationship_f1")
_LABELLED = ("labelled_precision", "labelled_recall", "labelled_f1")
_LEVELS = ("level1", "level2")
_COVERAGE = "relationship_pair_coverage"
_RELATIONSHIP_METRICS = (*_PAIRED, *_LABELLED, *(f"{level}_accuracy" for level in _LEVELS), _COVERAGE)
_NO_RELATIONSHIP = "the ground truth has no relationship with agent and target"


@dataclass(frozen=True)
class Relationships(NarrativeEvaluator):
    """Precision, recall and F1 of relationships, and accuracy of their two levels.

    Judged is every gold event that has at least one relationship with agent and target, including missing events.
    Predicted relationships of an event are paired one-to-one with gold ones between the same characters (aliases are
    resolved), preferring equal levels 1, then levels 2, then common sentiments.

    With ``pairing: many`` every relationship between the same characters is found, however many there are of it.

    * ``relationship_*``: of the pairs; recall is ``relationship_pair_coverage``;
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
    metrics = _RELATIONSHIP_METRICS
    lines = staticmethod(relationship_lines)

    fuzzy: float | None = None
    match: NameMatch = field(default="aliases", kw_only=True)
    pairing: Pairing = field(default="one", kw_only=True)
    align: tuple[str, ...] = ALIGN
    relationship_taxonomy: str | None = field(default=None, kw_only=True, metadata={"path": True})

    def observe(self, stories: Alignment) -> Observation:
        """Count the relationships of two stories."""
        tally = _Tally()
        for (event, partner), pairs, links in zip(stories.events, stories.relationships, stories.links, strict=True):
            tally.add(event, partner, pairs, links)
        details = LazyDetails(lambda: _relationship_details(stories, tally.counts))
        gaps = gap_counts("relationships", stories.gold)
        if not any(stories.relationships):
            return Observation(gaps, details, dict.fromkeys(self.metrics, _NO_RELATIONSHIP))
        undefined = {
            f"{level}_accuracy": f"no paired relationship has {level} in the ground truth"
            for level in _LEVELS
            if not tally.counts[level]
        }
        abstained = tuple(name for name in undefined if name.removesuffix("_accuracy") in tally.levels)
        return Observation(gaps | tally.counts, details, undefined, abstained=abstained)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return precision, recall and F1 of all relationships pooled, and the shares of right levels."""
        import numpy as np

        predicted, gold = sums["predicted"], sums["gold"]
        metrics: dict[str, FloatArray] = {}
        for names, kind in ((_PAIRED, "paired"), (_LABELLED, "labelled")):
            hits, more = sums[kind], sums[f"{kind}.more"]
            precise, covered = precision(hits + more, predicted, gold), ratio(hits, gold)
            f1 = ratio(2 * hits, predicted + gold)
            both = np.where(more == 0, f1, ratio(2 * precise * covered, precise + covered))
            metrics |= dict(zip(names, (precise, covered, both), strict=True))
        accuracies = {f"{level}_accuracy": ratio(sums[f"{level}.right"], sums[level]) for level in _LEVELS}
        return metrics | accuracies | {_COVERAGE: metrics["relationship_recall"]}


class _Tally:
    """The counts of a story's relationships, event by event."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("gold", "predicted", "paired", "labelled"), 0)
        self.counts |= {name: 0 for level in _LEVELS for name in (level, f"{level}.right")}
        self.levels: set[str] = set()  # that gold has, in pairs or not

    def add(
        self,
        event: Event,
        partner: Event | None,
        pairs: Sequence[RelationshipPair],
        links: Sequence[tuple[Relationship, Relationship]],
    ) -> None:
        if not pairs:
            return
        self.counts["gold"] += len(pairs)
        if partner:
            self.counts["predicted"] += len(partner.relationships) - _excused(event, partner, pairs)
        for right, answer in pairs:
            self.levels.update(level for level in _LEVELS if getattr(right, level))
            if answer is not None:
                self._add_pair(right, answer)
        self._add_more("paired", links)
        self._add_more("labelled", [link for link in links if is_labelled_right(*link)])

    def _add_more(self, kind: str, links: Sequence[tuple[Relationship, Relationship]]) -> None:
        """Count by how many the predicted relationships that are found outnumber the gold ones."""
        if more := len({id(answer) for _, answer in links}) - len({id(right) for right, _ in links}):
            self.counts[f"{kind}.more"] = self.counts.get(f"{kind}.more", 0) + more

    def _add_pair(self, right: Relationship, answer: Relationship) -> None:
        self.counts["paired"] += 1
        self.counts["labelled"] += is_labelled_right(right, answer)
        for level in _LEVELS:
            expected, predicted = getattr(right, level), getattr(answer, level)
            if expected:
                self.counts[level] += 1
                self.counts[f"{level}.right"] += expected == predicted


def _excused(event: Event, partner: Event, pairs: Sequence[RelationshipPair]) -> int:
    """The number of predicted relationships that lack an end as gold ones of the event do, and are not judged."""
    lacking = sum(not relationship.is_usable for relationship in partner.relationships)
    return min(lacking, len(event.relationships) - len(pairs))


def _relationship_details(stories: Alignment, counts: Mapping[str, int]) -> dict[str, Any]:
    """The details of a story's relationships."""
    missing: list[dict[str, Any]] = []
    extra: list[dict[str, Any]] = []
    unjudged: list[dict[str, Any]] = []
    wrong: list[dict[str, Any]] = []
    skipped_events = 0
    for (event, partner), pairs, links in zip(stories.events, stories.relationships, stories.links, strict=True):
        missing += [_relationship_detail(event, right) for right, answer in pairs if answer is None]
        wrong += [level for right, answer in pairs if answer for level in _wrong_levels(event, right, answer)]
        if partner is None:
            continue
        predicted = partner.relationships
        if not pairs:
            unjudged += [_relationship_detail(event, relationship) for relationship in predicted]
            skipped_events += bool(predicted)
            continue
        paired = {id(answer) for _, answer in links}
        usable = [
            relationship for relationship in predicted if relationship.is_usable and id(relationship) not in paired
        ]
        unusable = [relationship for relationship in predicted if not relationship.is_usable]
        excused = _excused(event, partner, pairs)
        unjudged += [_relationship_detail(event, relationship) for relationship in unusable[:excused]]
        extra += [_relationship_detail(event, relationship) for relationship in (*usable, *unusable[excused:])]
    details = {
        "missing_relationships": missing,
        "false_positive_relationships": extra,
        "extra_relationships": unjudged,  # as the original: without ground truth
        "wrong_levels": wrong,
        "n_events_evaluated": sum(map(bool, stories.relationships)),
        "n_events_skipped": skipped_events,
        "n_extra_relationships": len(unjudged),  # the original's name
        "total_relationships_pred": counts["predicted"],
        "total_relationships_gt": counts["gold"],
        "total_relationships_correct": counts["paired"],
    }
    return details | gap_details("relationships", stories.gold)


def _wrong_levels(event: Event, right: Relationship, answer: Relationship) -> Iterator[dict[str, Any]]:
    """Yield the levels in which a predicted relationship differs from its gold one, for a case's details."""
    for level in _LEVELS:
        expected, predicted = getattr(right, level), getattr(answer, level)
        if expected and expected != predicted:
            difference = {"field": f"relationship_{level}", "expected": expected, "predicted": predicted}
            yield {"event": event.label, "agent": right.agent, "target": right.target} | difference


def is_labelled_right(right: Relationship, answer: Relationship) -> bool:
    """Whether a predicted relationship has every level that the gold annotation gives."""
    return all(getattr(right, level) in ("", getattr(answer, level)) for level in _LEVELS)


def _relationship_detail(event: Event, each: Relationship) -> dict[str, Any]:
    """A relationship of an annotated event, for the details of a story's case."""
    return {
        "event": event.label,
        "agent": each.agent,
        "target": each.target,
        "relationship_level1": each.level1,
        "relationship_level2": each.level2,
        "sentiment": sorted(each.sentiments),
    }


_ACCURACY = {field: f"action_{field}_accuracy" for field in ACTION_FIELDS}
_MATCHES = ("action_layer_complete_match", "action_layer_partial_match")
_NAMES = (*_ACCURACY.values(), *_MATCHES)
_NO_ACTION_LAYER = "the ground truth has no action layer"


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
    metrics = _NAMES
    lines = staticmethod(action_lines)

    align: tuple[str, ...] = ALIGN
    action_taxonomy: str | None = field(default=None, kw_only=True, metadata={"path": True})

    def observe(self, stories: Alignment) -> Observation:
        """Count the fields of the actions of two stories."""
        judged = [(event, partner) for event, partner in stories.events if event.action]
        hits = [_right_fields(*pair) for pair in judged]
        right = Counter(chain.from_iterable(hits))
        totals = Counter(chain.from_iterable(event.action for event, _ in judged))
        numbers = [(len(fields), len(event.action)) for fields, (event, _) in zip(hits, judged, strict=True)]
        matches = {
            "complete_matches": sum(hits == total for hits, total in numbers),
            "partial_matches": sum(0 < hits < total for hits, total in numbers),
        }

        def details() -> dict[str, Any]:
            skipped = [pair for pair in stories.events if not pair[0].action and pair[1] and pair[1].action]
            return {
                "wrong_fields": [wrong for pair in judged for wrong in _wrong_fields(*pair)],
                "unjudged_fields": [
                    {"event": event.label, "field": field, "predicted": value}
                    for event, partner in stories.events
                    for field, value in (partner.action.items() if partner else ())
                    if field not in event.action
                ],
                "missing_events": [event.label for event, partner in judged if partner is None],
                "field_counts": {field: {"correct": right[field], "total": totals[field]} for field in ACTION_FIELDS},
                **matches,
                "n_events_evaluated": len(judged),
                "n_events_skipped": len(skipped),
            } | gap_details("action_layer", stories.gold)

        counts = gap_counts("action_layer", stories.gold)
        if not judged:
            return Observation(counts, LazyDetails(details), dict.fromkeys(self.metrics, _NO_ACTION_LAYER))
        counts |= matches | {"events": len(judged)}
        for name in ACTION_FIELDS:
            counts |= {name: totals[name], f"{name}.right": right[name]}
        undefined = {
            _ACCURACY[field]: f"the ground truth has no {field}" for field in ACTION_FIELDS if not totals[field]
        }
        return Observation(counts, LazyDetails(details), undefined)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return the shares of right fields and of right events, of all stories pooled."""
        accuracies = {name: ratio(sums[f"{field}.right"], sums[field]) for field, name in _ACCURACY.items()}
        complete, partial = (ratio(sums[f"{kind}_matches"], sums["events"]) for kind in ("complete", "partial"))
        return accuracies | dict(zip(_MATCHES, (complete, partial), strict=True))


def is_action_right(event: Event, partner: Event) -> bool:
    """Whether a predicted event has every action field that the gold annotation gives."""
    return event.action.items() <= partner.action.items()


def _right_fields(event: Event, partner: Event | None) -> list[str]:
    """The action fields of a gold event whose value the paired predicted event has."""
    if partner is None:
        return []
    answers = partner.action
    return [field for field, expected in event.action.items() if answers.get(field) == expected]


def _wrong_fields(event: Event, partner: Event | None) -> list[dict[str, Any]]:
    """The action fields in which a predicted event differs from its gold event, for a case's details."""
    if partner is None:
        return []
    return [
        {"event": event.label, "field": field, "expected": expected, "predicted": partner.action.get(field, "")}
        for field, expected in event.action.items()
        if partner.action.get(field) != expected
    ]


_RATES = ("event_accuracy", "event_precision", "event_recall", "event_f1")
_JUDGED = "judged_event_accuracy"
_EXTRA = "extra_events"


def describe_events(signature: str) -> list[Metric]:
    """The metrics of a story's events."""
    shares = [Metric(name, signature=signature) for name in (*_RATES, _JUDGED)]
    return [*shares, Metric(_EXTRA, higher_is_better=False, high=None, signature=signature)]


def observe_events(stories: Alignment) -> Observation:
    """Count the events of two story annotations; undefined if the gold one has none."""
    together = list(zip(stories.events, stories.relationships, stories.feelings, strict=True))
    right = [_is_correct(*parts) for parts in together]
    judged = [is_right for is_right, (pair, pairs, _) in zip(right, together, strict=True) if pair[0].action or pairs]
    correct = sum(right)
    total, predicted = len(stories.events), len(stories.predicted.events)
    matched = sum(partner is not None for _, partner in stories.events)

    def details() -> dict[str, Any]:
        return {
            "summary": {
                "total_events": total,
                "correct_events": correct,
                "judged_events": len(judged),
                "matched_events": matched,
                "predicted_events": predicted,
                "missing_events": [event.label for event, partner in stories.events if partner is None],
                "extra_events": [event.label for event in stories.extra_events],
            }
        }

    if not total:
        undefined = dict.fromkeys((*_RATES, _JUDGED, _EXTRA), "the ground truth has no events")
        return Observation({}, LazyDetails(details), undefined)
    counts = {"": total, ".correct": correct, ".matched": matched, ".predicted": predicted, ".judged": 1}
    counts |= {".known": len(judged), ".known.correct": sum(judged)}
    undefined = {} if judged else {_JUDGED: "the ground truth has no event with an action or a relationship"}
    return Observation({f"events{name}": count for name, count in counts.items()}, LazyDetails(details), undefined)


def summarize_events(sums: Sums) -> Mapping[str, FloatArray]:
    """The metrics of the events of all stories pooled."""
    import numpy as np

    gold, matched, predicted = sums["events"], sums["events.matched"], sums["events.predicted"]
    shares = (ratio(sums["events.correct"], gold), *rates(matched, predicted, gold))
    metrics = dict(zip(_RATES, shares, strict=True))
    metrics |= {_JUDGED: ratio(sums["events.known.correct"], sums["events.known"])}
    return metrics | {_EXTRA: np.where(sums["events.judged"] > 0, predicted - matched, np.nan)}


def _is_correct(
    pair: EventPair, relationships: Sequence[RelationshipPair], feelings: Sequence[RelationshipPair]
) -> bool:
    """Whether a gold event is predicted with the right action, relationships and sentiments."""
    event, partner = pair
    return (
        partner is not None
        and is_action_right(event, partner)
        and all(answer is not None and is_labelled_right(right, answer) for right, answer in relationships)
        and all(answer is not None and _feels_the_same(right, answer) for right, answer in feelings)
    )


def _feels_the_same(right: Relationship, answer: Relationship) -> bool:
    """Whether a predicted relationship has the gold sentiments; any do if the gold annotation has none."""
    return not right.sentiments or right.sentiments == answer.sentiments


_ARCHETYPE = "character_archetype_accuracy"
_NO_CHARACTERS = "the ground truth has no characters"


@dataclass(frozen=True)
class Characters(NarrativeEvaluator):
    """Precision, recall and F1 of characters, and accuracy of their archetypes.

    Characters are paired one-to-one: first those with equal names, then as many as possible of the others that
    share any name or alias. Names are equal after NFKC, case folding, trimming and joining of white space. Archetypes
    are judged in pairs whose gold character has one; none predicted is wrong. All metrics are in [0, 1].

    Attributes:
        fuzzy: Least likeness (rapidfuzz's ratio, in (0, 1]) at which the names of characters that are left over are
            equal as well; ``None``: none are.
        match: ``strict``: only main names count, no aliases.
    """

    name = "narrative.characters"
    metrics = ("character_precision", "character_recall", "character_f1", _ARCHETYPE)

    fuzzy: float | None = None
    match: NameMatch = field(default="aliases", kw_only=True)

    def observe(self, stories: Alignment) -> Observation:
        """Count the characters of two stories."""
        gold, predicted = stories.gold.characters, stories.predicted.characters
        pairs = stories.characters
        judged = [(right, answer) for right, answer in pairs if right.archetype]
        wrong = [(right, answer) for right, answer in judged if right.archetype != answer.archetype]

        def details() -> dict[str, Any]:
            paired = {id(character) for pair in pairs for character in pair}
            names = [character.name for character in predicted if id(character) not in paired]
            return {
                "missing_characters": [character.name for character in gold if id(character) not in paired],
                "extra_characters": names if gold else [],
                "unjudged_characters": [] if gold else names,
                "wrong_archetypes": [
                    {"character": right.name, "expected": right.archetype, "predicted": answer.archetype}
                    for right, answer in wrong
                ],
                "n_matched": len(pairs),
                "n_predicted": len(predicted),
                "n_ground_truth": len(gold),
                "archetype_correct": len(judged) - len(wrong),
                "archetype_total": len(judged),
            } | gap_details("characters", stories.gold)

        counts = gap_counts("characters", stories.gold)
        if not gold:
            return Observation(counts, LazyDetails(details), dict.fromkeys(self.metrics, _NO_CHARACTERS))
        counts |= {
            "matched": len(pairs),
            "predicted": len(predicted),
            "gold": len(gold),
            "archetypes.right": len(judged) - len(wrong),
            "archetypes": len(judged),
        }
        undefined = {} if judged else {_ARCHETYPE: "no paired character has an archetype in the ground truth"}
        abstained = tuple(undefined) if any(character.archetype for character in gold) else ()
        return Observation(counts, LazyDetails(details), undefined, abstained=abstained)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """List characters that are missing or extra, or have another archetype."""
        return character_lines(observation.details, read_gold(case).characters)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return precision, recall and F1 of all characters pooled, and the share of right archetypes."""
        matched, predicted, gold = sums["matched"], sums["predicted"], sums["gold"]
        accuracy = ratio(sums["archetypes.right"], sums["archetypes"])
        return dict(zip(self.metrics, (*rates(matched, predicted, gold), accuracy), strict=True))
