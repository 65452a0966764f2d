"""Reading of queries, positives and results for the evaluator ``retrieval``."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from pytest_llmeval.core.errors import EvaluatorError
from pytest_llmeval.evaluators.answers import describe_found, json_in

By: TypeAlias = Literal["id", "text"]

Key: TypeAlias = str | None
"""The identity of a document: its id, or its text without the blanks around it; ``None`` if it has none.

A text is its own key: Python hashes it when it is first looked up, remembers the hash, and compares it only with
texts of the same hash. A digest of it would be one pass more.
"""

_GROWTH = 4
"""Growth of the part of a list that has been read, with each further reading."""

_SPARE = 2
"""Results that are read more than asked for, since the query itself may be among them."""


class Query(NamedTuple):
    """The query of a case: its keys, and its attributes."""

    id: Key
    text: Key
    meta: Any


@dataclass(frozen=True, slots=True)
class Fields:
    """Keys of ids and texts; the first one present is used."""

    id: tuple[str, ...]
    text: tuple[str, ...]

    def names(self, by: By) -> tuple[str, ...]:
        """Return the fields of a kind of key."""
        return self.id if by == "id" else self.text

    def key_of(self, document: Any, by: By) -> Key:
        """Return the key of a document: a field of an object, or the value itself."""
        read = _READERS[by]
        if not isinstance(document, dict):
            return read(document)
        value = next(
            (value for name in self.names(by) if (value := document.get(name)) and read(value, raw=True)), None
        )
        return read(value)

    def query_of(self, question: Any) -> Query:
        """Return the query of a case's input: an object, or a text."""
        if isinstance(question, dict):
            return Query(self.key_of(question, "id"), self.key_of(question, "text"), question.get("meta"))
        return Query(None, _text(question), None)

    def keys_of(self, items: Sequence[Mapping[str, Any]], by: By) -> Sequence[Key]:
        """Return the keys of objects: what `key_of` returns for each, but faster where all have the same field."""
        for name in self.names(by):
            values = _values(items, name)
            if by == "id" and all(values) and _all_texts(values):
                return values
            kinds = set(map(type, values))
            if kinds == {type(None)}:
                continue
            if by == "text" and kinds == {str} and all(values):
                return [text.strip() or None for text in cast("list[str]", values)]
            return [self.key_of(item, by) for item in items]
        return [None] * len(items)


def _values(items: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Return a field of each item, ``None`` where absent."""
    try:
        return list(map(itemgetter(name), items))  # a third of the time of asking each whether it has the field
    except KeyError:
        return [item.get(name) for item in items]


def _id(value: Any, *, raw: bool = False) -> Key:
    del raw
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) and value else None


def _text(value: Any, *, raw: bool = False) -> Key:
    if not isinstance(value, str):
        return None
    return (value if raw else value.strip()) or None


_READERS: Mapping[By, Callable[..., Key]] = {"id": _id, "text": _text}


class Entries(NamedTuple):
    """The usable results of a prediction.

    Attributes:
        items: Their fields; empty for a bare id where all are.
        ids: The ids, where all are bare ids.
        junk: Number of entries that cannot be results.
        fault: Why the prediction is not a list of results.
    """

    items: Sequence[Mapping[str, Any]]
    ids: Sequence[str] | None = None
    junk: int = 0
    fault: str | None = None


class Results(NamedTuple):
    """The first results of a query, without the query itself.

    Attributes:
        items: Their fields.
        keys: By kind, the key of each.
        itself: Number of entries that are the query itself, which are left out.
        read: Number of entries read for them.
        complete: Whether no result follows.
    """

    items: Sequence[Mapping[str, Any]]
    keys: Mapping[By, Sequence[Key]]
    itself: int
    read: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of results.

    Attributes:
        fields: Keys of ids and texts.
        kinds: The kinds of keys that rules use. A bare id is a result only if ids are among them.
        exclude_self: Whether results with the text of the query are left out; with its id, if rules use ids.
    """

    fields: Fields
    kinds: frozenset[By]
    exclude_self: bool

    def entries(self, prediction: Any) -> Entries:
        """Separate results from junk: texts that are not ids are junk that models produce, anything else is a fault.

        The list may be the text of a JSON list, or stand under ``results`` of an object.
        """
        original = prediction
        if isinstance(prediction, str):
            prediction = json_in(prediction)
        if isinstance(prediction, dict) and "results" in prediction:
            prediction = prediction["results"]
        if not isinstance(prediction, list):
            return Entries((), fault=f"found {describe_found(original)}, expected a list of results")
        bare = "id" in self.kinds
        if bare and _all_texts(prediction) and all(prediction):
            return Entries([{}] * len(prediction), prediction)
        if list(map(type, prediction)).count(dict) == len(prediction):
            return Entries(prediction)
        items = [self._item(each, bare=bare) for each in prediction]
        results = [item for item in items if item is not None]
        return Entries(
            results, junk=len(items) - len(results), fault=_fault(prediction) or self._nothing(prediction, results)
        )

    def _nothing(self, prediction: Sequence[Any], results: Sequence[Any]) -> str | None:
        """Return the fault of a list without any result."""
        if results or not prediction:
            return None
        expected = "objects" if "id" not in self.kinds else "objects or ids"
        return (
            f"found a list of which no item is a result, such as {describe_found(prediction[0])}, expected {expected}"
        )

    def _item(self, entry: Any, *, bare: bool) -> Mapping[str, Any] | None:
        if isinstance(entry, dict):
            return entry if type(entry) is dict else dict(entry)  # others may make up fields that are not there
        return {self.fields.id[0]: entry} if bare and _id(entry) is not None else None

    def first(self, entries: Entries, query: Query, most: int) -> Results:
        """Return at least the first `most` results, if there are so many.

        Long lists are not read to the end, because their last texts do not matter.
        """
        results = self._read(entries, query, 0, most + _SPARE)
        if not results.complete and len(results.items) < most:
            for part in self.behind(entries, query, results):
                keys = {by: [*each, *part.keys[by]] for by, each in results.keys.items()}
                items, itself = [*results.items, *part.items], results.itself + part.itself
                results = Results(items, keys, itself, part.read, part.complete)
                if len(items) >= most:
                    break
        return results

    def behind(self, entries: Entries, query: Query, first: Results) -> Iterator[Results]:
        """Yield the results behind the first ones, in parts of growing length."""
        part = first
        while not part.complete:
            part = self._read(entries, query, part.read, _GROWTH * part.read)
            yield part

    def _read(self, entries: Entries, query: Query, start: int, stop: int) -> Results:
        items = entries.items[start:stop]
        own: dict[By, str] = {}
        if self.exclude_self:
            if query.id is not None and "id" in self.kinds:  # where texts are compared, ids may be ranks or row numbers
                own["id"] = query.id
            if query.text is not None:
                own["text"] = query.text
        keys: dict[By, Sequence[Key]] = {}
        for by in self.kinds.union(own) if own else self.kinds:
            bare = by == "id" and entries.ids is not None
            keys[by] = entries.ids[start:stop] if bare else self.fields.keys_of(items, by)  # type: ignore[index]  # bare says that there are ids
        complete, itself = stop >= len(entries.items), 0
        for by, key in own.items():
            if key in keys[by]:
                others = [each != key for each in keys[by]]
                items = list(compress(items, others))
                keys = {kind: list(compress(each, others)) for kind, each in keys.items()}
                itself += others.count(False)
        return Results(items, keys, itself, stop, complete)


def _all_texts(entries: list[Any]) -> bool:
    if not entries or type(entries[0]) is not str:
        return False
    try:
        "".join(entries)  # fails at the first that is no text, and takes a quarter of the time of checking types
    except TypeError:
        return False
    return True


def _fault(prediction: Iterable[Any]) -> str | None:
    for rank, each in enumerate(prediction, 1):
        if isinstance(each, bool) or not isinstance(each, dict | str | int):
            return f"result {rank}: found {describe_found(each)}, expected an object or an id"
    return None


def listed_positives(expected: Any) -> list[Any] | None:
    """Return the list of positives; ``None`` if there is no ground truth.

    Raises:
        EvaluatorError: The value is not a list.
    """
    listed = expected.get("positives") if isinstance(expected, dict) else expected
    if expected is None or isinstance(listed, list):
        return listed
    raise EvaluatorError(f"expected.positives: found {describe_found(listed)}, expected a list")


def gains_of(positives: Sequence[Any], by: By, fields: Fields) -> Mapping[str, float]:
    """Return the keys of positives, and their relevance; of a document listed twice the first counts.

    Raises:
        EvaluatorError: A relevance is no number above 0.
    """
    if by == "id" and set(map(type, positives)) == {str} and all(positives):
        return dict.fromkeys(positives, 1.0)
    gains: dict[str, float] = {}
    for place, each in enumerate(positives):
        if fault := _relevance_fault(each):
            raise EvaluatorError(f"expected.positives[{place}].{fault}")
        key = fields.key_of(each, by)
        if key is not None:
            gains.setdefault(key, _relevance(each))
    return gains


def positive_faults(expected: Any, kinds: Iterable[By], fields: Fields) -> Iterator[str]:
    """Yield the faults of the positives of a case, and of their keys."""
    try:
        positives = listed_positives(expected)
    except EvaluatorError as error:
        yield str(error)
        return
    for by in sorted(kinds):
        lacking = [place for place, each in enumerate(positives or ()) if fields.key_of(each, by) is None]
        if lacking:
            names, more = ", ".join(fields.names(by)), f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
            expected = f"expected one ({names}): a task compares documents by it"
            yield f"expected.positives[{lacking[0]}]{more}: found no {by}, {expected}"
    for place, each in enumerate(positives or ()):
        if fault := _relevance_fault(each):
            yield f"expected.positives[{place}].{fault}"


def _relevance(positive: Any) -> Any:
    return positive.get("relevance", 1) if isinstance(positive, dict) else 1


def _relevance_fault(positive: Any) -> str | None:
    grade = _relevance(positive)
    if isinstance(grade, int | float) and not isinstance(grade, bool) and 0 < grade <= sys.float_info.max:
        return None
    return f"relevance: found {describe_found(grade)}, expected a number above 0"
