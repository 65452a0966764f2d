"""Label sets of story annotations, shipped or from users, with lookup and suggestions."""

__all__ = ("NarrativeTaxonomy", "narrative_taxonomy")

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_llmeval.data.files.documents import Document, read_document
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.files.validation import check
from pytest_llmeval.data.labels import LabelSet, taxonomy_path
from pytest_llmeval.tasks.narrative.labels.tables import (
    Actions,
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

if TYPE_CHECKING:
    from pytest_llmeval.tasks.narrative.labels.tables import Category, Label, Sentiment


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
        """Return why the two levels of a relationship are not labels, or do not belong together; ``None`` if valid."""
        first, second = _text(level1), _text(level2)
        faults = (
            self.relationships.fault("relationship_level1", first),
            self.relationships.member_fault("relationship_level2", second, first),
        )
        return "; ".join(filter(None, faults)) or None

    def invalid_sentiment(self, label: object) -> str | None:
        """Return why a sentiment is not a label; ``None`` if it is."""
        return self.sentiments.fault("sentiment", _text(label))

    def invalid_action(self, field: str, value: object, category: object = None) -> str | None:
        """Return why the value of an action layer's field is not a valid label; ``None`` if it is.

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
        labels = {
            "category": self.categories,
            "context": self.contexts,
            "status": self.statuses,
            "function": self.functions,
        }
        return labels[field].fault(field, name)

    def polarity(self, label: object) -> str | None:
        """Return ``positive``, ``neutral`` or ``negative`` for a sentiment in any letter case, else ``None``."""
        return self.polarities.get(_text(label).lower())


@cache
def narrative_taxonomy(
    relationships: str | None = None, sentiments: str | None = None, actions: str | None = None
) -> NarrativeTaxonomy:
    """Return the labels of story annotations.

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
    types = [each for category in categories for each in category.types]
    return NarrativeTaxonomy(
        relationships=LabelSet(_names(levels), {each.label: LabelSet(_names(each.level2)) for each in levels}),
        sentiments=LabelSet(_names(feelings)),
        polarities={each.label.lower(): polarity for each in feelings if (polarity := _polarity(each))},
        categories=LabelSet(_names(categories), {each.label: LabelSet(_names(each.types)) for each in categories}),
        contexts=LabelSet({context: context for each in types for context in each.contexts}),
        statuses=LabelSet(_names(action_labels.statuses)),
        functions=LabelSet(_names(action_labels.functions)),
    )


def _path(option: str | None, shipped: str) -> Path:
    return taxonomy_path(shipped) if option is None else Path(option)


def _names(labels: "Iterable[Label]") -> dict[str, str]:
    """Return every name with its label; where two labels share a name, a label wins, then the first one."""
    labels = list(labels)
    names = {each.label: each.label for each in labels}
    for each in labels:
        for name in each.names:
            names.setdefault(name, each.label)
    return names


def _polarity(sentiment: "Sentiment") -> str | None:
    """Return the polarity of a sentiment, or else that of the shipped one with any of its names."""
    if sentiment.polarity is not None:
        return sentiment.polarity
    shipped = read_sentiments(taxonomy_path("sentiments"))
    names = {name.lower() for name in (sentiment.label, *sentiment.names)}
    return next((each.polarity for each in shipped if not names.isdisjoint((each.label, *each.names))), None)


def _with_short_names(categories: "Iterable[Category]") -> "list[Category]":
    """Add the short names of the shipped file to the categories that it also has."""
    short = {each.label: each.short for each in read_actions(taxonomy_path("actions")).categories}
    return [replace(each, short=each.short or short.get(each.label)) for each in categories]


def _text(value: object) -> str:
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
    log = FaultLog(str(path))
    if path.suffix.lower() in _TABLES:
        rows = read_rows(path, log, _COLUMNS[kind])
        if not rows:
            log.check()
        labels = from_rows(rows, log)
        log.check()
        return labels

    document = read_document(path, str(path))
    value, faults = check(kind, document.data, document, ())
    log.extend(faults)
    if value is not None:
        _check_labels(document, document.data, (), log)
    log.check()
    assert isinstance(value, kind)
    return value


def _check_labels(document: Document, data: Any, path: tuple[str | int, ...], faults: FaultLog) -> None:
    """Add a fault for every label that is blank, has surrounding spaces, or occurs twice in its list."""
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
