"""Scoring rules and tolerant reading of a JSON v3 document, with a list of its malformed values."""

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct, structs

from pytest_llmeval.core import listed as list_items
from pytest_llmeval.data import render_path
from pytest_llmeval.evaluators import AnswerText, AnswerValue, harmonic_mean
from pytest_llmeval.tasks._replies import read_reply

Span: TypeAlias = tuple[int, int]
"""A half-open interval ``[start, end)`` of characters; nothing is assumed of the order of its ends."""


def handle_missing_ground_truth(prediction_value: Any, ground_truth_value: Any, field_name: str) -> dict[str, Any]:
    """Return the status of a field that one side may lack.

    Returns:
        ``status`` (``matched``: both are empty; ``extra``: only the ground truth is; ``missing``: only the prediction
        is; ``mismatch``: neither is, so that they have to be compared), ``count_as_error`` (``None`` where the
        comparison decides) and ``reason``, in the words of the original.
    """
    match _is_empty(prediction_value), _is_empty(ground_truth_value):
        case True, True:
            status, is_error, reason = "matched", False, f"Both empty for {field_name}"
        case False, True:
            reason = f"Ground truth missing for {field_name}, prediction has value"
            status, is_error = "extra", False
        case True, False:
            status, is_error, reason = "missing", True, f"Prediction missing for {field_name}"
        case _:
            return {"status": "mismatch", "count_as_error": None, "reason": "Both have values, need comparison"}
    return {"status": status, "count_as_error": is_error, "reason": reason}


def _is_empty(value: Any) -> bool:
    """Whether a value of a story annotation is absent, or an empty text, list or object."""
    return value is None or (isinstance(value, (str, list, dict)) and not value)


def calculate_precision_recall_f1(
    true_positives: int, false_positives: int, false_negatives: int, gt_incomplete_count: int = 0
) -> tuple[float, float, float]:
    """Return precision, recall and F1, each in [0, 1]; 0.0 where a denominator is 0.

    `gt_incomplete_count`, the number of values that the ground truth lacks, is for reports: it changes nothing.
    """
    del gt_incomplete_count
    predicted, gold = true_positives + false_positives, true_positives + false_negatives
    precision = true_positives / predicted if predicted else 0.0
    recall = true_positives / gold if gold else 0.0
    return precision, recall, harmonic_mean(precision, recall)


def calculate_set_metrics(
    prediction_set: Collection[Hashable], ground_truth_set: Collection[Hashable], gt_incomplete: bool = False
) -> dict[str, float | bool | None]:
    """Return ``precision``, ``recall`` and ``f1`` of a set, and ``gt_incomplete``.

    Args:
        prediction_set: The predicted values.
        ground_truth_set: The right values.
        gt_incomplete: Whether there may be more right values. Then precision and F1 are ``None``, and so is recall
            if no right value is known.
    """
    predicted, gold = set(prediction_set), set(ground_truth_set)
    hits = len(predicted & gold)
    precision, recall, f1 = calculate_precision_recall_f1(hits, len(predicted) - hits, len(gold) - hits)
    if gt_incomplete:
        return {"precision": None, "recall": recall if gold else None, "f1": None, "gt_incomplete": True}
    return {"precision": precision, "recall": recall, "f1": f1, "gt_incomplete": False}


_LONGEST_LIST = 3


def listed(items: Sequence[str], separator: str = ", ") -> str:
    """The first few items for a line on a story annotation, with the number of the others.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    return list_items(items, _LONGEST_LIST, " and {} more", separator)


_SEPARATOR = re.compile("[;；,，、/／]")


def name_key(name: str) -> str:
    """The form in which character names are compared: NFKC, case folded, trimmed, white space joined.

    >>> name_key("  Ｍｅｎｇ　 Jiang ")
    'meng jiang'
    """
    return " ".join((name if name.isascii() else unicodedata.normalize("NFKC", name)).casefold().split())


def split_names(text: str) -> list[str]:
    """Split a text at ``;``, ``,``, ``、`` and ``/``, of any width, into trimmed names, blank ones left out."""
    return [name for part in _SEPARATOR.split(text) if (name := part.strip())]


def nearest(key: str, others: Iterable[str], least: float) -> str | None:
    """The first of the character names most like `key`; ``None`` if none is similar enough.

    Likeness is that of rapidfuzz's ``fuzz.ratio``: twice the longest common subsequence over both lengths.

    Args:
        key: From `name_key`.
        others: From `name_key`.
        least: In (0, 1].
    """
    from rapidfuzz import fuzz, process

    match = process.extractOne(key, others, scorer=fuzz.ratio, score_cutoff=100 * least)
    return None if match is None else match[0]


class Resolver:
    """A resolver of names in a story annotation to characters; unknown names resolve to themselves."""

    def __init__(self, fuzzy: float | None = None) -> None:
        self._fuzzy = fuzzy
        self._owner: dict[str, str] = {}
        self._guessed: dict[str, str] = {}

    def add(self, key: str, owner: str) -> None:
        """Resolve a name to `owner`, unless it already has an owner."""
        self._owner.setdefault(key, owner)

    def __call__(self, key: str) -> str:
        """Return the owner of a name, or with `fuzzy` of the name most like it."""
        if key in self._owner or self._fuzzy is None:
            return self._owner.get(key, key)
        if key not in self._guessed:
            near = nearest(key, self._owner, self._fuzzy)
            self._guessed[key] = key if near is None else self._owner[near]
        return self._guessed[key]


ACTION_FIELDS = ("category", "type", "context", "status", "function")

PARTS = ("characters", "narrative_events")

_VERSION = "3"
_LIKE = 0.85
"""Least likeness of a key to one of `PARTS` to be a misspelling of it."""
_FENCE = "```"

Steps: TypeAlias = tuple[str | int, ...]
ValueFault: TypeAlias = tuple[Steps, Any, str]
Scalar: TypeAlias = tuple[str, Any]
"""A number, text or boolean, distinguished by type: 1 is not ``"1"`` and not ``true``."""


class Character(Struct, frozen=True, gc=False):
    """A character in a story annotation.

    Attributes:
        name: As given, trimmed.
        key: The name in the form used for comparison.
        aliases: The aliases in the form used for comparison.
        archetype: Empty where absent.
    """

    name: str
    key: str
    aliases: tuple[str, ...]
    archetype: str

    @property
    def keys(self) -> tuple[str, ...]:
        """Name and aliases in the form used for comparison."""
        return (self.key, *self.aliases)


class Relationship(Struct, frozen=True, gc=False):
    """An annotated relationship of an agent to a target; absent parts are empty."""

    agent: str
    target: str
    level1: str
    level2: str
    sentiments: frozenset[str]

    @property
    def is_usable(self) -> bool:
        """Whether both ends are known."""
        return bool(self.agent and self.target)


class Event(Struct, frozen=True, gc=False):
    """An event in a story annotation.

    Attributes:
        label: Its name for people: its id, or its place in the list.
        id: ``None`` where absent.
        time_order: ``None`` where absent.
        span: ``None`` unless both ends are given.
        quote: The text of the span; empty where absent.
        relationships: All of them, those that lack an end included.
        action: The fields of the action layer that are given.
    """

    label: str
    id: Scalar | None
    time_order: Scalar | None
    span: Span | None
    quote: str
    relationships: tuple[Relationship, ...]
    action: Mapping[str, str]


class Story(Struct, frozen=True, gc=False):
    """A story annotation that was read: characters, events and faults.

    Attributes:
        characters: Those with a name.
        events: In the order of the document.
        text: Empty where absent.
        faults: ``path: found ..., expected ...`` for everything of a wrong form; it counts as absent.
        misnamed: The same for keys that are not read and look like one that is absent.
    """

    characters: tuple[Character, ...] = ()
    events: tuple[Event, ...] = ()
    text: str = ""
    faults: tuple[str, ...] = ()
    misnamed: tuple[str, ...] = ()


def format_faults(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The signs that a story annotation is not in version 3: key and ``found ..., expected ...``.

    >>> format_faults({"version": "3.0", "events": []})
    [('events', "found the key 'events', expected 'narrative_events' (JSON v3)")]
    """
    faults = []
    version = data.get("version")
    if not is_blank(version) and not str(version).strip().startswith(_VERSION):
        faults.append(("version", f"found version {version!r}, expected 3.0"))
    for part in PARTS:
        keys = [key for key in data if key not in PARTS and _is_like(str(key), part)] if part not in data else []
        faults += [(key, f"found the key {key!r}, expected {part!r} (JSON v3)") for key in keys]
    return faults


@lru_cache(maxsize=4096)  # a key that is not read is in every object of a document
def _is_like(key: str, part: str) -> bool:
    """Whether an unknown key of a story annotation looks like a misspelling of a known part."""
    from difflib import SequenceMatcher

    name = key.casefold().replace("-", "_").replace(" ", "_")
    return part.endswith(f"_{name}") or SequenceMatcher(None, name, part).ratio() >= _LIKE


def is_blank(value: Any) -> bool:
    """Whether a value of a story annotation is null, blank text, an empty list or an empty object."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, (list, tuple, Mapping)) and not value)


def json_fault(text: str) -> str | None:
    """The reason why a predicted story annotation has no JSON document; ``None`` for a text without JSON."""
    _, fault = AnswerText(text).spoken()
    if fault:
        return f"a text without a document ({fault})"
    first, last = text.find(_FENCE), text.rfind(_FENCE)
    start = text.find("\n", first) + 1 if 0 <= first < last else 0
    block = text[start:last] if start else text
    if not block.lstrip().startswith("{"):
        return None
    try:
        json.loads(block)
    except json.JSONDecodeError as error:
        line = text.count("\n", 0, start) + error.lineno
        return f"malformed JSON (line {line}, column {error.colno}: {error.msg})"
    except (ValueError, RecursionError) as error:
        return f"malformed JSON ({error})"
    return None


def parse_document(value: Any) -> Mapping[str, Any] | None:
    """The story annotation that a prediction is, or has in a fence or in prose; ``None`` for anything else."""
    data = read_reply(value, _rank).value if isinstance(value, str) else value
    return data if isinstance(data, Mapping) else None


def _rank(value: Any) -> int:
    """The likelihood that data in a reply is the annotation: 2 for a document, 1 for any other object, 0 for others."""
    if not isinstance(value, Mapping):
        return 0
    return 2 if any(part in value for part in PARTS) else 1


def read_story(data: Mapping[str, Any]) -> Story:
    """Read a story annotation in JSON v3."""
    reader = _Reader()
    story = reader.story(data)
    wrong = [f"{key}: {message}" for key, message in format_faults(data)]
    wrong += [
        f"{render_path(path)}: found {AnswerValue(value).kind}, expected {expected}"
        for path, value, expected in reader.faults
    ]
    misnamed = tuple(f"{render_path(path)}: {message}" for path, message in reader.misnamed)
    return structs.replace(story, faults=tuple(wrong), misnamed=misnamed)


def value_faults(data: Mapping[str, Any]) -> list[ValueFault]:
    """Path, value and expectation of each malformed value in a story annotation, even if no metric reads it."""
    reader = _Reader(reads_all=True)
    reader.story(data)
    return reader.faults


def misnamed_keys(data: Mapping[str, Any]) -> list[tuple[Steps, str]]:
    """Path and message of each unread key of a story annotation that looks like an absent one."""
    reader = _Reader()
    reader.story(data)
    return reader.misnamed


_KEYS: Mapping[str, Mapping[str, None]] = {
    kind: dict.fromkeys(keys)
    for kind, keys in {
        "characters": ("name", "alias", "archetype"),
        "narrative_events": ("id", "time_order", "text_span", "relationships", "action_layer", "agents", "targets"),
        "relationships": ("agent", "target", "relationship_level1", "relationship_level2", "sentiment"),
        "text_span": ("start", "end", "text"),
        "action_layer": ACTION_FIELDS,
        "source_info": ("text_content", "language"),
    }.items()
}
"""The keys that are read in the objects under a key."""


class _Reader:
    """A reader of story annotations; malformed values become faults and count as absent."""

    def __init__(self, *, reads_all: bool = False) -> None:
        self.reads_all = reads_all
        self.faults: list[ValueFault] = []
        self.misnamed: list[tuple[Steps, str]] = []

    def story(self, data: Mapping[str, Any]) -> Story:
        characters = tuple(filter(None, self.each(data, (), "characters", self.character)))
        events = tuple(self.each(data, (), "narrative_events", self.event))
        source = self.object(data, (), "source_info")
        if self.reads_all:
            self.object(data, (), "metadata")
            self.text(source, ("source_info",), "language")
        return Story(characters, events, self.text(source, ("source_info",), "text_content"))

    def fault(self, value: Any, path: Steps, expected: str) -> None:
        """Add a fault, unless the value is blank."""
        if not is_blank(value):
            self.faults.append((path, value, expected))

    def check_keys(self, data: Mapping[str, Any], path: Steps, kind: str) -> None:
        """Add the keys of an object that look like one that it lacks."""
        known = _KEYS.get(kind, {})
        if known.keys() >= data.keys():
            return
        unread = [key for key in data if key not in known]
        for name in (key for key in known if key not in data):
            similar = (key for key in unread if _is_like(str(key), name))
            self.misnamed += [((*path, key), f"found the key {key!r}, expected {name!r} (JSON v3)") for key in similar]

    def object(self, data: Mapping[str, Any], path: Steps, key: str) -> Mapping[str, Any]:
        value = data.get(key)
        if type(value) is dict or isinstance(value, Mapping):
            self.check_keys(value, (*path, key), key)
            return value
        self.fault(value, (*path, key), "an object")
        return {}

    def each(
        self, data: Mapping[str, Any], path: Steps, key: str, read: Callable[[Mapping[str, Any], Steps], Any]
    ) -> Any:
        """Read the objects of a list; blank ones are left out."""
        path = (*path, key)
        value = data.get(key)
        if not isinstance(value, (list, tuple)):
            self.fault(value, path, "a list")
            return []
        results = []
        for place, item in enumerate(value):
            inside = (*path, place)
            if item and (type(item) is dict or isinstance(item, Mapping)):  # abstract types ask slowly
                self.check_keys(item, inside, key)
                results.append(read(item, inside))
            else:
                self.fault(item, inside, "an object")
        return results

    def text(self, data: Mapping[str, Any], path: Steps, key: str) -> str:
        value = data.get(key)
        if isinstance(value, str):
            return value if value.strip() else ""
        if value is not None:
            self.fault(value, (*path, key), "text")
        return ""

    def label(self, data: Mapping[str, Any], path: Steps, key: str) -> str:
        value = data.get(key)
        return value.strip() if type(value) is str else self.text(data, path, key).strip()

    def labels(self, data: Mapping[str, Any], path: Steps, key: str) -> list[str]:
        """Read a list of texts, or one text with separators."""
        value = data.get(key)
        if isinstance(value, str):
            return split_names(value)
        path = (*path, key)
        if not isinstance(value, (list, tuple)):
            self.fault(value, path, "text or a list of texts")
            return []
        for place, item in enumerate(value):
            if not isinstance(item, str):
                self.fault(item, (*path, place), "text")
        return [label for item in value if isinstance(item, str) and (label := item.strip())]

    def scalar(self, data: Mapping[str, Any], path: Steps, key: str) -> Scalar | None:
        value = data.get(key)
        if isinstance(value, str):
            if not is_blank(value):
                return "text", value
        elif isinstance(value, bool):
            return "boolean", value
        elif isinstance(value, (int, float)):
            return "number", value
        self.fault(value, (*path, key), "text or a number")
        return None

    def offset(self, data: Mapping[str, Any], path: Steps, key: str) -> int | None:
        value = data.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float) and value.is_integer():  # JSON does not distinguish 3 from 3.0
            return int(value)
        self.fault(value, (*path, key), "a whole number")
        return None

    def character(self, data: Mapping[str, Any], path: Steps) -> Character | None:
        name = self.label(data, path, "name")
        key = name_key(name)
        if not key:
            return None
        aliases = filter(None, map(name_key, self.labels(data, path, "alias")))
        return Character(name, key, tuple(dict.fromkeys(aliases)), self.label(data, path, "archetype"))

    def relationship(self, data: Mapping[str, Any], path: Steps) -> Relationship:
        return Relationship(
            agent=self.label(data, path, "agent"),
            target=self.label(data, path, "target"),
            level1=self.label(data, path, "relationship_level1"),
            level2=self.label(data, path, "relationship_level2"),
            sentiments=frozenset(self.labels(data, path, "sentiment")),
        )

    def event(self, data: Mapping[str, Any], path: Steps) -> Event:
        if self.reads_all:
            for key in ("agents", "targets"):
                self.labels(data, path, key)
        identifier = self.scalar(data, path, "id")
        span, inside = self.object(data, path, "text_span"), (*path, "text_span")
        start, end = self.offset(span, inside, "start"), self.offset(span, inside, "end")
        layer, within = self.object(data, path, "action_layer"), (*path, "action_layer")
        action = {field: label for field in ACTION_FIELDS if (label := self.label(layer, within, field))}
        return Event(
            label=render_path(path) if identifier is None else str(identifier[1]),
            id=identifier,
            time_order=self.scalar(data, path, "time_order"),
            span=None if start is None or end is None else (start, end),
            quote=self.text(span, inside, "text"),
            relationships=tuple(self.each(data, path, "relationships", self.relationship)),
            action=action,
        )
