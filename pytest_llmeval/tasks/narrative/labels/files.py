"""Reading label files: YAML and JSON, CSV, and Markdown tables."""

__all__ = ("read_actions", "read_relationships", "read_sentiments")

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pytest_llmeval.data.files.documents import Document, read_document
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.files.validation import check
from pytest_llmeval.tasks.narrative.labels.model import Actions, Level1, Relationships, Sentiment, Sentiments
from pytest_llmeval.tasks.narrative.labels.tables import (
    LabelRow,
    actions_of,
    label_fault,
    read_rows,
    relationships_of,
    sentiments_of,
)

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
        found = from_rows(rows, log)
        log.check()
        return found

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
