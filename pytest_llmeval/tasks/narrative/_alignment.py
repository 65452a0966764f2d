"""Alignment of two annotations."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from msgspec import structs

from pytest_llmeval.core import unknown_name
from pytest_llmeval.tasks._matching import best_pairs, first_pairs
from pytest_llmeval.tasks.narrative._document import (
    Character,
    Event,
    Relationship,
    Resolver,
    Scalar,
    Span,
    Story,
    name_key,
    nearest,
)

ALIGN = ("id", "time_order")
"""The fields that align events by default."""

NameMatch: TypeAlias = Literal["aliases", "strict"]
"""The names of a character that count: main name and aliases, or the main name alone."""

Pairing: TypeAlias = Literal["one", "many"]
"""Partners of a relationship: one of the other side, or every one between the same characters."""

Pairs: TypeAlias = list[tuple[int, int]]
"""Places in the gold list and in the predicted list."""

EventPair: TypeAlias = tuple[Event, Event | None]
"""A gold event and the predicted one that it is aligned with."""

RelationshipPair: TypeAlias = tuple[Relationship, Relationship | None]
"""A usable gold relationship and the predicted one that it is paired with."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Matching:
    """The options by which the characters and events of two story annotations are matched.

    Attributes:
        fuzzy: How like two names must be to be equal, in (0, 1], as in `nearest`; ``None``: their keys are equal.
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
            Events that share none of these fields are aligned by their position.
        match: ``strict``: only main names count, no aliases, and none may be fuzzy.
        pairing: ``one``: a relationship has one partner at most; ``many``: it has every relationship of the other side
            between the same characters.

    Raises:
        ValueError: An option has an impossible value.
    """

    fuzzy: float | None = None
    align: Sequence[str] = ALIGN
    match: NameMatch = "aliases"
    pairing: Pairing = "one"

    def __post_init__(self) -> None:
        if self.fuzzy is not None and not 0 < self.fuzzy <= 1:
            raise ValueError(f"fuzzy: found {self.fuzzy!r}, expected a number above 0 and at most 1, or null")
        if self.match not in (known := get_args(NameMatch)):
            raise ValueError(f"match: {unknown_name('way', self.match, known)}")
        if self.pairing not in (known := get_args(Pairing)):
            raise ValueError(f"pairing: {unknown_name('way', self.pairing, known)}")
        if self.match == "strict" and self.fuzzy is not None:
            raise ValueError(f"fuzzy: found {self.fuzzy!r} with match: strict, expected match: aliases")
        for name in self.align:
            if name not in _ALIGNMENTS:
                raise ValueError(f"align: {unknown_name('field', name, _ALIGNMENTS)}")
        if not self.align or len(set(self.align)) < len(self.align):
            raise ValueError(f"align: found {list(self.align)!r}, expected one or more different fields")


@dataclass(frozen=True)
class Alignment:
    """A gold and a predicted story annotation with their matched parts, each computed on first access.

    Attributes:
        gold: The right annotation.
        predicted: The annotation to be judged.
        text: The text of the story; empty if unknown.
        matching: The options.
    """

    gold: Story
    predicted: Story
    text: str = ""
    matching: Matching = field(default_factory=Matching)

    @cached_property
    def characters(self) -> list[tuple[Character, Character]]:
        """Gold and predicted characters that are the same, one-to-one, in the order of gold.

        First those with equal main names; then as many of the others as possible that share any name; with `fuzzy`
        then as many as possible of those left that have like names. With ``match: strict`` only equal main names
        count. Where several pairings would do, one with the most equal archetypes is taken.
        """
        stages = [_by_main_name] if self.matching.match == "strict" else [_by_main_name, _by_any_name]
        if self.matching.fuzzy is not None:
            least = self.matching.fuzzy
            stages.append(lambda gold, predicted: _by_like_name(gold, predicted, least))
        return _pair_in_stages(self.gold.characters, self.predicted.characters, stages)

    @cached_property
    def events(self) -> list[EventPair]:
        """Each gold event with its predicted partner."""
        partner = {id(gold): predicted for gold, predicted in self._aligned}
        return [(event, partner.get(id(event))) for event in self.gold.events]

    @cached_property
    def extra_events(self) -> list[Event]:
        """Predicted events without a partner."""
        partners = {id(predicted) for _, predicted in self._aligned}
        return [event for event in self.predicted.events if id(event) not in partners]

    @cached_property
    def notes(self) -> list[str]:
        """Notes on the alignment for readers of the scores."""
        if not self._by_position:
            return []
        number, names = len(self._by_position), self.matching.align
        events = "1 event is" if number == 1 else f"{number} events are"
        lacking = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not on both sides"
        return [f"{events} aligned by position: {lacking}"]

    @cached_property
    def _aligned(self) -> list[tuple[Event, Event]]:
        return [*self._by_fields, *self._by_position]

    @cached_property
    def _by_fields(self) -> list[tuple[Event, Event]]:
        stages = list(chain.from_iterable(_ALIGNMENTS[name] for name in self.matching.align))
        return _pair_in_stages(self.gold.events, self.predicted.events, stages)

    @cached_property
    def _by_position(self) -> list[tuple[Event, Event]]:
        """Pair events at the same place of both lists that no field can align, since one of the two lacks each."""
        partners = {id(event) for pair in self._by_fields for event in pair}
        return [
            (gold, predicted)
            for gold, predicted in zip(self.gold.events, self.predicted.events, strict=False)
            if id(gold) not in partners and id(predicted) not in partners
            if not any(_has(gold, name) and _has(predicted, name) for name in self.matching.align)
        ]

    @cached_property
    def relationships(self) -> list[list[RelationshipPair]]:
        """For each gold event its usable relationships with their partners, the best one of several."""
        pairs = []
        for (gold, _), links in zip(self.events, self.links, strict=True):
            best: dict[int, Relationship] = {}
            for right, answer in sorted(links, key=_unlikeness) if len(links) > 1 else links:
                best.setdefault(id(right), answer)
            pairs.append(
                [
                    (relationship, best.get(id(relationship)))
                    for relationship in gold.relationships
                    if relationship.is_usable
                ]
            )
        return pairs

    @cached_property
    def links(self) -> list[list[tuple[Relationship, Relationship]]]:
        """For each gold event the gold and predicted relationships that belong together."""
        return [
            relationship_links(
                gold.relationships,
                predicted.relationships if predicted else (),
                self._resolver,
                many=self.matching.pairing == "many",
            )
            for gold, predicted in self.events
        ]

    @cached_property
    def feelings(self) -> list[list[RelationshipPair]]:
        """As `relationships`; where many belong together, they are one relationship with the sentiments of all."""
        if self.matching.pairing == "one":
            return self.relationships
        return [self._united(pairs, links) for pairs, links in zip(self.relationships, self.links, strict=True)]

    def _united(
        self, pairs: Sequence[RelationshipPair], links: Sequence[tuple[Relationship, Relationship]]
    ) -> list[RelationshipPair]:
        groups: dict[tuple[str, str], tuple[list[Relationship], dict[int, Relationship]]] = {}
        for right, _ in pairs:
            groups.setdefault(_ends(right, self._resolver), ([], {}))[0].append(right)
        for right, answer in links:
            groups[_ends(right, self._resolver)][1][id(answer)] = answer
        return [
            (_union(rights), _union(list(answers.values())) if answers else None) for rights, answers in groups.values()
        ]

    @cached_property
    def _resolver(self) -> Resolver:
        """Names to characters; gold main names and aliases override the names of predicted characters."""
        resolver = Resolver(self.matching.fuzzy)
        if self.matching.match == "strict":
            return resolver
        for character in self.gold.characters:
            resolver.add(character.key, character.key)
        for character in self.gold.characters:
            for alias in character.aliases:
                resolver.add(alias, character.key)
        for gold, predicted in self.characters:
            for key in predicted.keys:
                resolver.add(key, gold.key)
        if self.matching.fuzzy is not None:
            # An end that no list of characters has can still be like the predicted one.
            usable = (
                relationship
                for event in self.gold.events
                for relationship in event.relationships
                if relationship.is_usable
            )
            for end in (name for relationship in usable for name in (relationship.agent, relationship.target)):
                resolver.add(name_key(end), resolver(name_key(end)))
        return resolver


def _pair_in_stages(
    gold: Sequence[_Item], predicted: Sequence[_Item], stages: Iterable[Callable[[list[_Item], list[_Item]], Pairs]]
) -> list[tuple[_Item, _Item]]:
    """Pair characters or events of two annotations in stages, each on the remaining ones; in the order of gold."""
    partner: dict[int, int] = {}
    for stage in stages:
        free_gold = [place for place in range(len(gold)) if place not in partner]
        partners = set(partner.values())
        free_predicted = [place for place in range(len(predicted)) if place not in partners]
        if not free_gold or not free_predicted:
            break
        pairs = stage([gold[place] for place in free_gold], [predicted[place] for place in free_predicted])
        partner |= {free_gold[right]: free_predicted[answered] for right, answered in pairs}
    return [(gold[right], predicted[partner[right]]) for right in sorted(partner)]


def _by_main_name(gold: list[Character], predicted: list[Character]) -> Pairs:
    """Pair a story's characters with the predicted ones by their main names."""
    return first_pairs([character.key for character in gold], [character.key for character in predicted])


def _by_any_name(gold: list[Character], predicted: list[Character]) -> Pairs:
    """Pair a story's characters with the predicted ones if they share a main name or alias."""
    return _best_characters(gold, predicted, lambda right, answered: not set(right.keys).isdisjoint(answered.keys))


def _by_like_name(gold: list[Character], predicted: list[Character], least: float) -> Pairs:
    """Pair a story's characters with the predicted ones by similar names, from a least similarity."""
    return _best_characters(
        gold, predicted, lambda right, answered: any(nearest(key, answered.keys, least) for key in right.keys)
    )


def _best_characters(
    gold: list[Character], predicted: list[Character], same: Callable[[Character, Character], bool]
) -> Pairs:
    """The largest pairing of characters that a test of names allows; equal archetypes are preferred."""
    # Going by names, not by places, keeps the result independent of the order of the lists.
    rows, columns = (sorted(range(len(side)), key=lambda place: _order(side[place])) for side in (gold, predicted))
    edges = {
        (row, column): _archetype_preference(gold[right], predicted[answered])
        for row, right in enumerate(rows)
        for column, answered in enumerate(columns)
        if same(gold[right], predicted[answered])
    }
    return [(rows[row], columns[column]) for row, column in best_pairs(edges)]


def _order(character: Character) -> tuple[str, ...]:
    """The sort key of a character in a story annotation: names, then archetype."""
    return (*character.keys, "", character.archetype)


def _archetype_preference(gold: Character, predicted: Character) -> tuple[int, int]:
    """The preference for pairing two characters: equal archetypes, then gold ones without any."""
    return int(bool(gold.archetype) and gold.archetype == predicted.archetype), int(not gold.archetype)


def _by_scalar(name: str, key: Callable[[Scalar | None], Scalar | None]) -> Callable[[list[Event], list[Event]], Pairs]:
    """A stage of event alignment that pairs the events of two annotations by equal values of a field."""

    def stage(gold: list[Event], predicted: list[Event]) -> Pairs:
        right, answered = ([key(getattr(event, name)) for event in side] for side in (gold, predicted))
        return [(row, column) for column, row in first_pairs(answered, right)]

    return stage


def _as_written(value: Scalar | None) -> Scalar | None:
    """A number of an annotation as text, since models write ``"1"`` for 1."""
    if value is None or value[0] == "boolean":
        return value
    written = value[1]
    if isinstance(written, float) and written.is_integer():
        written = int(written)
    return "text", str(written).strip()


def _by_either(name: str) -> list[Callable[[list[Event], list[Event]], Pairs]]:
    """Two stages of event alignment on a field: by its value, then by the value as text."""
    return [_by_scalar(name, lambda value: value), _by_scalar(name, _as_written)]


def _has(event: Event, name: str) -> bool:
    """Whether an annotated event has a value of a field by which events are aligned."""
    return getattr(event, name) is not None


def overlap_ratio(a: Span, b: Span) -> float:
    """The overlap of two text spans: length of the intersection over that of the union (Jaccard 1912).

    Returns:
        In [0, 1]; 1.0 for equal spans. A span that covers no character (empty or reversed) overlaps no other.
    """
    if a == b:
        return 1.0
    shared = min(a[1], b[1]) - max(a[0], b[0])
    if shared <= 0:
        return 0.0
    return shared / (a[1] - a[0] + b[1] - b[0] - shared)


def pair_spans(gold: Sequence[Span], predicted: Sequence[Span]) -> list[tuple[int, int, float]]:
    """Pair spans one-to-one so that the sum of their overlaps is as large as possible.

    Returns:
        ``(index in gold, index in predicted, overlap)`` of the pairs that overlap, by index in gold.
    """
    if not gold or not predicted:
        return []
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    overlaps = np.array([[overlap_ratio(right, answered) for answered in predicted] for right in gold])
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), overlaps[rows, columns].tolist(), strict=True)
    return [pair for pair in pairs if pair[2] > 0]


def _by_span(gold: list[Event], predicted: list[Event]) -> Pairs:
    """Pair events of two annotations by overlapping spans so that the sum of the overlaps is largest."""
    right, answered = (
        sorted((event.span, event.label, place) for place, event in enumerate(side) if event.span is not None)
        for side in (gold, predicted)
    )
    pairs = pair_spans([span for span, _, _ in right], [span for span, _, _ in answered])
    return [(right[row][-1], answered[column][-1]) for row, column, _ in pairs]


_ALIGNMENTS: dict[str, list[Callable[[list[Event], list[Event]], Pairs]]] = {
    "id": _by_either("id"),
    "time_order": _by_either("time_order"),
    "span": [_by_span],
}


def relationship_links(
    gold: Sequence[Relationship],
    predicted: Sequence[Relationship],
    resolve: Callable[[str], str],
    *,
    many: bool = False,
) -> list[tuple[Relationship, Relationship]]:
    """Pair the relationships of a gold event with the predicted ones.

    Only relationships between the same two characters in the same direction are paired: as many as possible one-to-one,
    then with the most equal levels 1, then levels 2, then common sentiments; or all of them.

    Args:
        gold: The right ones.
        predicted: Those to be judged.
        resolve: Tells whom a name means.
        many: Whether all of them are paired.
    """
    groups: dict[tuple[str, str], tuple[list[Relationship], list[Relationship]]] = {}
    for side, relationships in enumerate((gold, predicted)):
        for relationship in relationships:
            if relationship.is_usable:
                groups.setdefault(_ends(relationship, resolve), ([], []))[side].append(relationship)
    if many:
        return [link for rights, answers in groups.values() for link in product(rights, answers)]
    return [link for sides in groups.values() if all(sides) for link in _best_relationships(*sides)]


def _ends(each: Relationship, resolve: Callable[[str], str]) -> tuple[str, str]:
    """The agent and target of an annotated relationship, with names resolved to characters."""
    return resolve(name_key(each.agent)), resolve(name_key(each.target))


def _union(relationships: Sequence[Relationship]) -> Relationship:
    """The first of some annotated relationships with the sentiments of all."""
    return structs.replace(
        relationships[0], sentiments=frozenset().union(*(relationship.sentiments for relationship in relationships))
    )


def _best_relationships(
    gold: list[Relationship], predicted: list[Relationship]
) -> list[tuple[Relationship, Relationship]]:
    """The one-to-one pairing of an event's relationships with the predicted ones of most agreement."""
    if len(gold) == len(predicted) == 1:
        return [(gold[0], predicted[0])]
    rows, columns = sorted(gold, key=_content), sorted(predicted, key=_content)
    edges = {
        (row, column): _likeness(right, answer)
        for row, right in enumerate(rows)
        for column, answer in enumerate(columns)
    }
    return [(rows[row], columns[column]) for row, column in best_pairs(edges)]


def _likeness(right: Relationship, answer: Relationship) -> tuple[int, int, int]:
    """The agreement of two annotated relationships: equal first level, equal second level, shared sentiments."""
    return (
        int(bool(right.level1) and right.level1 == answer.level1),
        int(bool(right.level2) and right.level2 == answer.level2),
        len(right.sentiments & answer.sentiments),
    )


def _unlikeness(link: tuple[Relationship, Relationship]) -> tuple[Any, ...]:
    """The sort key of a pair of annotated relationships, those of most agreement first."""
    return (*(-degree for degree in _likeness(*link)), _content(link[1]))


def _content(each: Relationship) -> tuple[str, str, list[str], str, str]:
    """The sort key of an annotated relationship, independent of the order of the annotation."""
    return (each.level1, each.level2, sorted(each.sentiments), each.agent, each.target)
