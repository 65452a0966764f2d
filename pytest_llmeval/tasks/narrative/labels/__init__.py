"""Label sets of story annotations."""

__all__ = (
    "NarrativeTaxonomy",
    "narrative_taxonomy",
)

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec import structs

from pytest_llmeval.core import excerpt
from pytest_llmeval.data import DeclaredType, Document, FaultLog, InputFile, Taxonomy
from pytest_llmeval.tasks.narrative._document import Event, Relationship, Span, Story, listed, name_key
from pytest_llmeval.tasks.narrative.labels._label_set import LabelSet
from pytest_llmeval.tasks.narrative.labels._tables import (
    Actions,
    Category,
    Label,
    LabelRow,
    Level1,
    Relationships,
    Sentiment,
    Sentiments,
    actions_of,
    label_fault,
    read_rows,
    relationships_of,
    sentiments_of,
)


@dataclass(frozen=True, eq=False)
class NarrativeTaxonomy:
    """The labels of story annotations. A label is compared after trimming, and letter case matters.

    Empty values, and those that are not text, are valid.

    Attributes:
        relationships: Labels of level 1, with those of level 2 below each.
        sentiments: Labels of sentiment.
        polarities: Sentiment, in small letters, to ``positive``, ``neutral`` or ``negative``.
        categories: Categories of actions, with the types below each.
        contexts: Contexts of actions; each is allowed with any type.
        statuses: Outcomes of actions.
        functions: Functions of actions in the story.
    """

    relationships: LabelSet
    sentiments: LabelSet
    polarities: Mapping[str, str]
    categories: LabelSet
    contexts: LabelSet
    statuses: LabelSet
    functions: LabelSet

    def invalid_relationship(self, level1: object, level2: object) -> str | None:
        """The reason why the two levels of a relationship are no labels, or no pair; ``None`` if valid."""
        first, second = _text(level1), _text(level2)
        faults = (
            self.relationships.fault("relationship_level1", first),
            self.relationships.member_fault("relationship_level2", second, first),
        )
        return "; ".join(filter(None, faults)) or None

    def invalid_sentiment(self, label: object) -> str | None:
        """The reason why a sentiment is not a label; ``None`` if it is."""
        return self.sentiments.fault("sentiment", _text(label))

    def invalid_action(self, field: str, value: object, category: object = None) -> str | None:
        """The reason why the value of an action layer's field is not a valid label; ``None`` if it is.

        Args:
            field: ``category``, ``type``, ``context``, ``status`` or ``function``.
            value: Its value.
            category: The category that a type has to belong to.

        Raises:
            KeyError: There is no such field.
        """
        name = _text(value)
        if field == "type":
            return self.categories.member_fault(field, name, _text(category))
        return self.action_labels[field].fault(field, name)

    @property
    def action_labels(self) -> Mapping[str, LabelSet]:
        """Labels by the field of an action; those of a type depend on its category."""
        return {
            "category": self.categories,
            "context": self.contexts,
            "status": self.statuses,
            "function": self.functions,
        }

    def polarity(self, label: object) -> str | None:
        """Return ``positive``, ``neutral`` or ``negative`` for a sentiment in any letter case, else ``None``."""
        return self.polarities.get(_text(label).lower())


@cache
def narrative_taxonomy(
    relationships: str | None = None, sentiments: str | None = None, actions: str | None = None
) -> NarrativeTaxonomy:
    """Read the taxonomies of story annotations: relationships, sentiments and actions.

    Fields that a file does not list are not checked: no contexts listed means that every context is valid.

    Args:
        relationships: A file of your own: CSV, Markdown tables, or YAML or JSON in the form of the shipped file.
            ``None`` for the shipped one. A file is read once in a process.
        sentiments: The same for sentiments.
        actions: The same for actions.

    Raises:
        SuiteError: A file cannot be read or has faults; all faults of the file are listed.
    """
    levels = read_relationships(_path(relationships, "relationships"))
    feelings = read_sentiments(_path(sentiments, "sentiments"))
    action_labels = read_actions(_path(actions, "actions"))
    categories = action_labels.categories if actions is None else _with_short_names(action_labels.categories)
    types = [type_ for category in categories for type_ in category.types]
    return NarrativeTaxonomy(
        relationships=LabelSet(_names(levels), {level.label: LabelSet(_names(level.level2)) for level in levels}),
        sentiments=LabelSet(_names(feelings)),
        polarities={feeling.label.lower(): polarity for feeling in feelings if (polarity := _polarity(feeling))},
        categories=LabelSet(
            _names(categories), {category.label: LabelSet(_names(category.types)) for category in categories}
        ),
        contexts=LabelSet({context: context for type_ in types for context in type_.contexts}),
        statuses=LabelSet(_names(action_labels.statuses)),
        functions=LabelSet(_names(action_labels.functions)),
    )


def _path(option: str | None, shipped: str) -> Path:
    """The file of a story label set: the one of the option, or the shipped one."""
    return Taxonomy(shipped).path if option is None else Path(option)


def _names(labels: Iterable[Label]) -> dict[str, str]:
    """Each name of a taxonomy's labels with its label; if two share a name, a label wins, then the first one."""
    labels = list(labels)
    names = {label.label: label.label for label in labels}
    for label in labels:
        for name in label.names:
            names.setdefault(name, label.label)
    return names


def _polarity(sentiment: Sentiment) -> str | None:
    """The polarity of a taxonomy's sentiment, or else that of the shipped sentiment with any of its names."""
    if sentiment.polarity is not None:
        return sentiment.polarity
    shipped = read_sentiments(Taxonomy("sentiments").path)
    names = {name.lower() for name in (sentiment.label, *sentiment.names)}
    return next((other.polarity for other in shipped if not names.isdisjoint((other.label, *other.names))), None)


def _with_short_names(categories: Iterable[Category]) -> list[Category]:
    """Add the shipped short names to the action categories of a user's taxonomy."""
    short = {category.label: category.short for category in read_actions(Taxonomy("actions").path).categories}
    return [replace(category, short=category.short or short.get(category.label)) for category in categories]


def _text(value: object) -> str:
    """A text of a story annotation without surrounding spaces; empty for other values."""
    return value.strip() if isinstance(value, str) else ""


_T = TypeVar("_T")

_TABLES = (".csv", ".md", ".markdown")

_COLUMNS: dict[type, tuple[str, ...]] = {
    Relationships: ("level1", "level1_zh", "level2", "level2_zh", "aliases"),
    Sentiments: ("label", "polarity", "zh", "aliases", "level"),
    Actions: ("category", "category_zh", "short", "type", "zh", "aliases", "contexts", "status", "function"),
}


@cache
def read_relationships(path: Path) -> tuple[Level1, ...]:
    """Read relationship labels; a file is read once in a process.

    Raises:
        SuiteError: The file cannot be read or has faults; all of them are listed.
    """
    return _read(path, Relationships, relationships_of).relationships


@cache
def read_sentiments(path: Path) -> tuple[Sentiment, ...]:
    """Read sentiment labels; see `read_relationships`."""
    return _read(path, Sentiments, sentiments_of).sentiments


@cache
def read_actions(path: Path) -> Actions:
    """Read action labels; see `read_relationships`."""
    return _read(path, Actions, actions_of)


def _read(path: Path, kind: type[_T], from_rows: Callable[[list[LabelRow], FaultLog], _T]) -> _T:
    """Read a label set of story annotations from a table, JSON or YAML file, with all faults of the file."""
    log = FaultLog(str(path))
    if path.suffix.lower() in _TABLES:
        rows = read_rows(path, log, _COLUMNS[kind])
        if not rows:
            log.check()
        labels = from_rows(rows, log)
        log.check()
        return labels

    document = InputFile(path).read_document()
    value, faults = DeclaredType(kind).check(document.data, document)
    log.extend(faults)
    if value is not None:
        _check_labels(document, document.data, (), log)
    log.check()
    assert isinstance(value, kind)
    return value


def _check_labels(document: Document, data: Any, path: tuple[str | int, ...], faults: FaultLog) -> None:
    """Add a fault for each taxonomy label that is blank, has surrounding spaces, or is repeated in its list."""
    if isinstance(data, dict):
        for key, value in data.items():
            _check_labels(document, value, (*path, key), faults)
    elif isinstance(data, list):
        seen: set[str] = set()
        for index, entry in enumerate(data):
            if isinstance(entry, dict):
                label = entry["label"]
                wrong = label_fault(label, seen)
                if wrong is not None:
                    faults.extend([document.fault((*path, index, "label"), wrong)])
                _check_labels(document, entry, (*path, index), faults)


_HAN = "\u3400-\u9fff"
_BORDER = re.compile(rf"[()\[\]/|]|(?<=[{_HAN}])\s*(?=[a-z])|(?<=[a-z])\s*(?=[{_HAN}])")

_Log = list[dict[str, Any]]


def normalize_labels(story: Story, taxonomy: NarrativeTaxonomy) -> tuple[Story, _Log]:
    """A story annotation with its labels in the taxonomies' spelling, and the changes.

    Unknown labels stay unchanged. Changes are listed as ``{event, field, value, label}``.
    """
    log: _Log = []
    return structs.replace(story, events=tuple(_event(event, taxonomy, log) for event in story.events)), log


def find_label(labels: LabelSet, text: str) -> str | None:
    """The taxonomy's label that a text means; ``None`` if it is unknown or its parts mean different labels.

    >>> kin = LabelSet({"Family & Kinship": "Family & Kinship", "亲属关系": "Family & Kinship"})
    >>> find_label(kin, "FAMILY & kinship"), find_label(kin, "家庭(Family & Kinship)"), find_label(kin, "friend")
    ('Family & Kinship', 'Family & Kinship', None)
    """
    if text in labels.names:
        return labels.names[text]
    names, key = _keys(labels), name_key(text)
    if key in names:
        return names[key]
    meanings = {names[part] for piece in _BORDER.split(key) if (part := piece.strip()) in names}
    return meanings.pop() if len(meanings) == 1 else None


@lru_cache(maxsize=64)
def _keys(labels: LabelSet) -> Mapping[str, str]:
    """A taxonomy's labels by the keys of their names; the letter case of a label wins."""
    keys: dict[str, str] = {}
    for name, label in sorted(labels.names.items(), key=lambda item: item[0] != item[1]):
        keys.setdefault(name_key(name), label)
    return keys


def _event(event: Event, taxonomy: NarrativeTaxonomy, log: _Log) -> Event:
    """An annotated event with its labels in the spelling of the taxonomy; changed labels are logged."""

    def fold(labels: LabelSet, field: str, value: str) -> str:
        label = find_label(labels, value) if value else None
        if label is None or label == value:
            return value
        log.append({"event": event.label, "field": field, "value": value, "label": label})
        return label

    action: dict[str, str] = {}
    for field, value in event.action.items():
        action[field] = fold(_of_action(taxonomy, field, action.get("category", "")), f"action_layer.{field}", value)
    relationships = tuple(_relationship(relationship, taxonomy, fold) for relationship in event.relationships)
    return structs.replace(event, action=action, relationships=relationships)


def _relationship(
    each: Relationship, taxonomy: NarrativeTaxonomy, fold: Callable[[LabelSet, str, str], str]
) -> Relationship:
    """An annotated relationship with its labels in the spelling of the taxonomy."""
    level1 = fold(taxonomy.relationships, "relationship_level1", each.level1)
    level2 = fold(_below(taxonomy.relationships, level1), "relationship_level2", each.level2)
    sentiments = frozenset(fold(taxonomy.sentiments, "sentiment", value) for value in sorted(each.sentiments))
    return structs.replace(each, level1=level1, level2=level2, sentiments=sentiments)


def _of_action(taxonomy: NarrativeTaxonomy, field: str, category: str) -> LabelSet:
    """The taxonomy's labels for an action field; the category was normalized before its types."""
    return _below(taxonomy.categories, category) if field == "type" else taxonomy.action_labels[field]


def _below(labels: LabelSet, parent: str) -> LabelSet:
    """The second-level labels of a relationship label, or those of all labels if it is unknown."""
    return labels.members.get(parent, labels.below)


class LabelCheck(NamedTuple):
    """The number of a story's labels, and the invalid ones as ``{event, field, value, reason}``."""

    labels: int
    invalid: list[dict[str, Any]]


def check_labels(story: Story, taxonomy: NarrativeTaxonomy) -> LabelCheck:
    """Look up every level of a relationship, every sentiment and every field of an action layer that is given."""
    labels = 0
    invalid: list[dict[str, Any]] = []
    for event in story.events:
        for field, value, reason in _judged(event, taxonomy):
            labels += 1
            if reason is not None:
                invalid.append({"event": event.label, "field": field, "value": value, "reason": reason})
    return LabelCheck(labels, invalid)


def _judged(event: Event, taxonomy: NarrativeTaxonomy) -> Iterator[tuple[str, str, str | None]]:
    """Yield field and label of an annotated event, with the reason if the taxonomy lacks the label."""
    for relationship in event.relationships:
        level1, level2 = relationship.level1, relationship.level2
        level1_fault = _fault(taxonomy, "relationship_level1", level1)
        if level1:
            yield "relationship_level1", level1, level1_fault
        if level2:
            # Below an invalid level 1 any level 2 is accepted: one mistake is reported once.
            yield (
                "relationship_level2",
                level2,
                _fault(taxonomy, "relationship_level2", level2, "" if level1_fault else level1),
            )
        for sentiment in sorted(relationship.sentiments):
            yield "sentiment", sentiment, _fault(taxonomy, "sentiment", sentiment)
    category = event.action.get("category", "")
    for field, value in event.action.items():
        yield f"action_layer.{field}", value, _fault(taxonomy, field, value, category)


def _fault(taxonomy: NarrativeTaxonomy, field: str, value: str, above: str = "") -> str | None:
    """The reason why a taxonomy lacks the label of a field, below a label of the level above."""
    look_up = _known_fault if len(value) + len(above) <= _LONGEST else _known_fault.__wrapped__
    return look_up(taxonomy, field, value, above)


@lru_cache(maxsize=4096)  # stories use few labels, again and again
def _known_fault(taxonomy: NarrativeTaxonomy, field: str, value: str, above: str) -> str | None:
    """The reason why a taxonomy lacks a label, cached for labels of ordinary length."""
    if field == "sentiment":
        return taxonomy.invalid_sentiment(value)
    if field == "relationship_level1":
        return taxonomy.invalid_relationship(value, "")
    if field == "relationship_level2":
        return taxonomy.invalid_relationship(above, value)
    return taxonomy.invalid_action(field, value, above)


_LONGEST = 60


def drifted_spans(story: Story, text: str) -> list[dict[str, Any]]:
    """The spans of a story annotation whose quoted text differs from the story's text there.

    White space around and within texts does not matter, and neither does a span without text or a story without text.

    Returns:
        For each ``event``, ``span``, ``text`` (as quoted), ``found`` (in the story) and ``nearest``, the position where
        the quoted text does occur; ``None`` if it does not.
    """
    return [
        {
            "event": event.label,
            "span": list(span),
            "text": excerpt(event.quote, _LONGEST, lines=True),
            "found": excerpt(_at(text, span), _LONGEST, lines=True),
            "nearest": list(place) if place else None,
        }
        for event, span, place in _drifted(story, text)
    ]


def describe_drift(drift: Mapping[str, Any]) -> str:
    """The report's line on a span of `drifted_spans`."""
    place = drift["nearest"]
    where = f"which is at {place[0]}-{place[1]}" if place else "which the story does not have"
    start, end = drift["span"]
    return f"event {drift['event']!r}: text_span {start}-{end} is {drift['found']!r}, not {drift['text']!r}, {where}"


def warn_of_drift(place: str, gold: Story, text: str) -> None:
    """Warn of drifted spans in a gold story annotation, which lower every prediction's scores."""
    if drifts := [describe_drift(span) for span in drifted_spans(gold, text)]:
        warnings.warn(f"{place}: {listed(drifts, '; ')}", UserWarning, stacklevel=2)


def repair_spans(story: Story, text: str) -> tuple[Story, list[dict[str, Any]]]:
    """A story annotation with drifted spans moved to the nearest occurrence of their text, and the moves.

    A span whose text does not occur stays. Of two occurrences equally far the first is taken.
    """
    moved = {id(event): place for event, _, place in _drifted(story, text) if place is not None}
    log = [
        {"event": event.label, "span": list(event.span or ()), "repaired": list(moved[id(event)])}
        for event in story.events
        if id(event) in moved
    ]
    events = tuple(structs.replace(event, span=moved.get(id(event), event.span)) for event in story.events)
    return structs.replace(story, events=events), log


def _drifted(story: Story, text: str) -> Iterator[tuple[Event, Span, Span | None]]:
    """Yield each event whose span does not have its quoted text, with the nearest occurrence of that text."""
    for event in story.events if text else ():
        if event.span and event.quote and _words(_at(text, event.span)) != _words(event.quote):
            yield event, event.span, _nearest(event.quote.strip(), text, event.span[0])


def _at(text: str, span: Span) -> str:
    """The text of a story at a span; empty for a span that is none."""
    start, end = span
    return text[start:end] if 0 <= start <= end else ""


def _words(text: str) -> list[str]:
    """The words of a story's text, between spaces."""
    return text.split()


def _nearest(quote: str, text: str, start: int) -> Span | None:
    """The span of a quotation in a story's text that is nearest to the annotated start."""
    before = text.rfind(quote, 0, max(0, start) + len(quote))
    after = text.find(quote, max(0, start))
    places = [place for place in (before, after) if place >= 0]
    if not places:
        return None
    place = min(places, key=lambda each: abs(each - start))
    return place, place + len(quote)
