"""The JSON v3 format of story annotations, and its validation."""

__all__ = ("Annotation", "annotation_problems")

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec import structs
from pydantic import BeforeValidator

from pytest_llmeval.core.errors import Fault
from pytest_llmeval.data.files.documents import Document
from pytest_llmeval.data.files.validation import check, describe
from pytest_llmeval.tasks.narrative.document import PARTS, format_faults

_TOLERANT = {"extra": "ignore"}
"""Every key may be absent or null, and there may be more keys: annotation tools write different ones."""


def _whole(value: Any) -> Any:
    """Return 3 for 3.0, which JSON does not distinguish, and anything else unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Texts = str | list[str | None] | None
_Whole = Annotated[int, BeforeValidator(_whole)]

_ENTRY = re.compile(r"(characters|narrative_events)\[(\d+)\]")
_NAMED = {"characters": ("character", "name"), "narrative_events": ("event", "id")}


@dataclass(frozen=True)
class TextSpan:
    """The position of an event in the text, in characters; the end is exclusive."""

    __pydantic_config__: ClassVar = _TOLERANT

    start: _Whole | None = None
    end: _Whole | None = None
    text: str | None = None


@dataclass(frozen=True)
class Relationship:
    """The relationship of the agent to the target, and one or several sentiments."""

    __pydantic_config__: ClassVar = _TOLERANT

    agent: str | None = None
    target: str | None = None
    relationship_level1: str | None = None
    relationship_level2: str | None = None
    sentiment: _Texts = None


@dataclass(frozen=True)
class ActionLayer:
    """What happens in an event."""

    __pydantic_config__: ClassVar = _TOLERANT

    category: str | None = None
    type: str | None = None
    context: str | None = None
    status: str | None = None
    function: str | None = None


@dataclass(frozen=True)
class Event:
    """An event of the story."""

    __pydantic_config__: ClassVar = _TOLERANT

    id: str | int | float | bool | None = None
    time_order: str | int | float | bool | None = None
    text_span: TextSpan | None = None
    agents: _Texts = None
    targets: _Texts = None
    relationships: list[Relationship | None] | None = None
    action_layer: ActionLayer | None = None


@dataclass(frozen=True)
class Character:
    """A character; several aliases are a list, or a text with semicolons."""

    __pydantic_config__: ClassVar = _TOLERANT

    name: str | None = None
    alias: _Texts = None
    archetype: str | None = None


@dataclass(frozen=True)
class SourceInfo:
    """Where the story comes from, and its text."""

    __pydantic_config__: ClassVar = _TOLERANT

    text_content: str | None = None
    language: str | None = None


@dataclass(frozen=True)
class Annotation:
    """A document in JSON v3."""

    __pydantic_config__: ClassVar = _TOLERANT

    version: str | int | float | None = None
    metadata: dict[str, Any] | None = None
    source_info: SourceInfo | None = None
    characters: list[Character | None] | None = None
    narrative_events: list[Event | None] | None = None


def annotation_problems(document: Document) -> list[Fault]:
    """Return what keeps a document from being ground truth; a fault inside an event or character names it."""
    data = document.data
    if isinstance(data, Mapping) and (wrong := format_faults(data)):
        return [document.fault((key,), message) for key, message in wrong]
    if not isinstance(data, Mapping) or not any(part in data for part in PARTS):
        wanted = " or ".join(map(repr, PARTS))
        return [document.fault((), f"found {describe(data)}, expected a JSON v3 document with {wanted}")]
    _, faults = check(Annotation, _blanks_as_null(data), document, ())
    return [_naming_entry(fault, data) for fault in faults]


def _is_blank(value: Any) -> bool:
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def _blanks_as_null(value: Any) -> Any:
    """Return data with null for every blank value: whatever is blank counts as absent, of whatever type it is."""
    if _is_blank(value):
        return None
    if isinstance(value, Mapping):
        return {key: _blanks_as_null(each) for key, each in value.items()}
    return [_blanks_as_null(each) for each in value] if isinstance(value, list) else value


def _naming_entry(fault: Fault, data: Mapping[str, Any]) -> Fault:
    """Put the id of the event, or the name of the character, before the message of its fault."""
    found = _ENTRY.match(fault.path)
    entry = data[found[1]][int(found[2])] if found else None
    if found is None or not isinstance(entry, Mapping):
        return fault
    kind, key = _NAMED[found[1]]
    name = entry.get(key)
    return structs.replace(fault, message=f"{kind} {name!r}: {fault.message}") if isinstance(name, str | int) else fault
