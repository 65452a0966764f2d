"""Queries, positives and ranked results."""

import math
import operator
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, cast

from pytest_llmeval.core import MISSING, Case, EvaluatorError, Fault, SuiteError, counted, shown_path
from pytest_llmeval.data import (
    CaseFile,
    CaseId,
    FaultLog,
    FileSource,
    InputFile,
    RecordedAnswers,
    Source,
    json_text,
    kind,
    render_path,
)
from pytest_llmeval.evaluators import AnswerValue
from pytest_llmeval.tasks._replies import read_reply
from pytest_llmeval.tasks._rows import UnreadKeys, wrong_values

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
    """The query of a retrieval case: its keys, and its attributes."""

    id: Key
    text: Key
    meta: Any


@dataclass(frozen=True, slots=True)
class Fields:
    """The names of the fields with a document's id and text; the first one present is used."""

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
    """A field of each search result, ``None`` where absent."""
    try:
        return list(map(itemgetter(name), items))  # a third of the time of asking each whether it has the field
    except KeyError:
        return [item.get(name) for item in items]


def _id(value: Any, *, raw: bool = False) -> Key:
    """The key of a search result that is compared by id; ``None`` for a value that is no id."""
    del raw
    return (value if type(value) is str else CaseId.read(value)) or None


def _text(value: Any, *, raw: bool = False) -> Key:
    """The key of a search result that is compared by its text; ``None`` for a blank or other value."""
    if not isinstance(value, str):
        return None
    return (value if raw else value.strip()) or None


_READERS: Mapping[By, Callable[..., Key]] = {"id": _id, "text": _text}


class Entries(NamedTuple):
    """The usable search results of a prediction.

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
    """The first search results of a query, without the query itself.

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
    """A reader of ranked search results in predictions.

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
            reply = read_reply(prediction, _rank, lists=True)
            if reply.fault:
                return Entries((), fault=reply.fault)
            prediction = prediction if reply.value is None else reply.value
            if isinstance(prediction, dict) and "results" not in prediction:
                prediction = [prediction]
        if isinstance(prediction, dict) and "results" in prediction:
            prediction = prediction["results"]
        if not isinstance(prediction, list):
            return Entries((), fault=f"found {AnswerValue(original).kind}, expected a list of results")
        bare = "id" in self.kinds
        if bare and _all_texts(prediction) and all(prediction):
            return Entries([{}] * len(prediction), prediction)
        if list(map(type, prediction)).count(dict) == len(prediction):
            return Entries(prediction)
        items = [self._item(result, bare=bare) for result in prediction]
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
            f"found a list of which no item is a result, such as {AnswerValue(prediction[0]).kind}, expected {expected}"
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
                keys = {by: [*key, *part.keys[by]] for by, key in results.keys.items()}
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
            if entries.ids is None:
                keys[by] = self.fields.keys_of(items, by)
            else:
                keys[by] = entries.ids[start:stop] if by == "id" else [None] * len(items)
        complete, itself = stop >= len(entries.items), 0
        for by, key in own.items():
            if key in keys[by]:
                others = [other != key for other in keys[by]]
                items = list(compress(items, others))
                keys = {kind: list(compress(column, others)) for kind, column in keys.items()}
                itself += others.count(False)
        return Results(items, keys, itself, stop, complete)


def _rank(value: Any) -> int:
    """The likelihood that data in a reply is the answer: 2 for search results, 1 for an empty list, 0 for others."""
    if isinstance(value, dict):
        return 2
    if not isinstance(value, list):
        return 0
    return 2 if value and all(isinstance(item, dict | str) for item in value) else int(not value)


def _all_texts(entries: list[Any]) -> bool:
    """Whether a list of search results has only texts, which a bare list of ids has."""
    if not entries or type(entries[0]) is not str:
        return False
    try:
        "".join(entries)  # fails at the first that is no text, and takes a quarter of the time of checking types
    except TypeError:
        return False
    return True


def _fault(prediction: Iterable[Any]) -> str | None:
    """The fault of the first search result that is neither an object nor an id."""
    for rank, result in enumerate(prediction, 1):
        if not isinstance(result, dict | str) and CaseId.read(result) is None:
            return f"result {rank}: found {AnswerValue(result).kind}, expected an object or an id"
    return None


def listed_positives(expected: Any) -> list[Any] | None:
    """The positives (relevant documents) of a query; ``None`` if there is no ground truth.

    Raises:
        EvaluatorError: The value is not a list.
    """
    listed = expected.get("positives") if isinstance(expected, dict) else expected
    if expected is None or isinstance(listed, list):
        return listed
    raise EvaluatorError(f"expected.positives: found {AnswerValue(listed).kind}, expected a list")


def gains_of(positives: Sequence[Any], by: By, fields: Fields) -> Mapping[str, float]:
    """The keys of a query's positives with their relevance; of a document listed twice the first counts.

    Raises:
        EvaluatorError: A relevance is no number above 0.
    """
    if by == "id" and set(map(type, positives)) == {str} and all(positives):
        return dict.fromkeys(positives, 1.0)
    for fault in _relevance_faults(positives):
        raise EvaluatorError(fault)
    gains: dict[str, float] = {}
    for key, positive in zip(_keys_of(positives, by, fields), positives, strict=True):
        if key is not None:
            gains.setdefault(key, relevance_of(positive))
    return gains


def _keys_of(positives: Sequence[Any], by: By, fields: Fields) -> Sequence[Key]:
    """The keys of a query's positives."""
    if set(map(type, positives)) == {dict}:
        return fields.keys_of(positives, by)
    return [fields.key_of(positive, by) for positive in positives]


def positive_faults(expected: Any, kinds: Iterable[By], fields: Fields) -> Iterator[str]:
    """Yield the faults of a query's positives, and of their keys."""
    try:
        positives = listed_positives(expected)
    except EvaluatorError as error:
        yield str(error)
        return
    for by in sorted(kinds):
        lacking = [place for place, key in enumerate(_keys_of(positives or (), by, fields)) if key is None]
        if lacking:
            names, more = ", ".join(fields.names(by)), f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
            needed = f"a task compares documents by it ({names})"
            yield f"expected.positives[{lacking[0]}]{more}: {by} is missing: {needed}"
    yield from _relevance_faults(positives or ())


def relevance_of(positive: Any) -> Any:
    """The relevance grade of a query's positive; 1 without one."""
    return positive.get("relevance", 1) if isinstance(positive, dict) else 1


def _relevance_faults(positives: Sequence[Any]) -> Iterator[str]:
    """Yield the faults of expected documents whose relevance is no number above 0."""
    most = sys.float_info.max
    for place, positive in enumerate(positives):
        grade = positive.get("relevance", 1) if isinstance(positive, dict) else 1
        if type(grade) is bool or not isinstance(grade, (int, float)) or not 0 < grade <= most:
            wrong = f"found {AnswerValue(grade).kind}, expected a number above 0"
            yield f"expected.positives[{place}].relevance: {wrong}"


_IDS = ("query_id", "id")


@dataclass(frozen=True)
class CaseRetrievalSource(FileSource):
    """One query a line: ``{"query_id": ..., "query": {"fact": ..., "meta": {...}}, "positives": [...]}``.

    The query, an object or a text, is the input. The positives, best first, are what is expected: texts, ids, or
    objects that hold them. A line without ``query_id`` or ``id`` has its number as id. ``labels`` may be given.

    Recorded replies have the id of their query, or are in the order of the queries: a list of results for each, or a
    list of such lists for each batch, perhaps under ``results``. A null is no reply.

    Attributes:
        ignore: Keys of the lines that are not read on purpose.
    """

    format: ClassVar[str] = "case_retrieval"

    ignore: tuple[str, ...] = ()

    def read(self, file: CaseFile) -> None:
        """Add the queries."""
        faults: list[Fault] = []
        unread = UnreadKeys((*_IDS, "query", "positives", "labels"), self.ignore)
        for line, row in file.read_jsonl(faults):
            if isinstance(row, dict):
                unread.add(row, line, 1)
            self._read_row(file, line, row)
        unread.report(file.faults)
        file.faults.extend(faults)

    def answers(self, path: Path, cases: Mapping[str, Case], faults: FaultLog) -> RecordedAnswers:
        """Return the recorded results of a file to queries, which are given by id, in the order of their file."""
        replies = _replies_in_order(path, faults.file)
        if replies is None:
            return super().answers(path, cases, faults)
        answers = RecordedAnswers()
        if len(replies) != len(cases):
            message = f"found {counted(len(replies), 'list')} of results without ids, expected {len(cases)}"
            faults.add(0, 0, "", f"{message}, one for each query in its order")
            return answers
        for name, (line, results) in zip(cases, replies, strict=True):
            if results is not None:
                answers.add(name, results, line)
        return answers

    def _read_row(self, file: CaseFile, line: int, row: Any) -> None:
        faults = list(_faults(row))
        for path, message in faults:
            file.faults.add(line, 1, render_path(path), message)
        if faults:
            return
        key = next((key for key in _IDS if key in row), None)
        name = str(line) if key is None else str(CaseId.read(row[key]))
        labels = {label: json_text(value) for label, value in row.get("labels", {}).items() if value is not None}
        case = Case(name, row["query"], {"positives": row["positives"]}, labels=labels, line=line)
        file.add(case, key or "")


def _replies_in_order(path: Path, display_path: str) -> list[tuple[int, Any]] | None:
    """Line and results of each reply in a file without ids; ``None`` with ids or without readable replies."""
    file = InputFile(path, display_path)
    try:
        if path.suffix.lower() == ".json":
            data = file.read_json(depth=1).data
            rows = [(1, reply) for reply in (data if isinstance(data, list) else [data])]
        else:
            faults: list[Fault] = []
            rows = list(file.read_jsonl(faults))
            if faults:
                return None  # without a line, those after it would be other queries' replies
    except SuiteError:
        return None
    replies: list[tuple[int, Any]] = []
    for line, row in rows:
        named = isinstance(row, dict) and not any(key in row for key in CaseId.KEYS)
        results = row.get("results") if named else row
        if not isinstance(results, list):
            return None
        is_batch = any(isinstance(result, list) for result in results)
        replies += [(line, result) for result in results] if is_batch else [(line, results)]
    return replies or None


def _faults(row: Any) -> Sequence[tuple[Sequence[str], str]]:
    """Yield path and message of each fault in a line of an evaluation set."""
    if not isinstance(row, dict):
        return [((), f"found {kind(row)}, expected an object with `query` and `positives`")]
    labels = row.get("labels", {})
    checks = [
        ("query", isinstance(row.get("query"), dict | str), "an object or a text"),
        ("positives", isinstance(row.get("positives"), list), "a list of documents"),
        ("labels", isinstance(labels, dict), "an object"),
        *((key, CaseId.read(row[key]) is not None, "text or a whole number") for key in _IDS if key in row),
    ]
    faults: list[tuple[Sequence[str], str]] = [*wrong_values(row, checks)]
    if isinstance(labels, dict):
        wrong = [name for name, value in labels.items() if isinstance(value, list | dict)]
        faults += [(("labels", name), f"found {kind(labels[name])}, expected text") for name in wrong]
    return faults


_QRELS = ("query", "iteration", "document", "relevance")
_BEIR = ("query-id", "corpus-id", "score")
"""The header of qrels of BEIR, whose lines have three columns."""
_RUN = ("query", "Q0", "document", "rank", "score", "tag")


class _Documents(NamedTuple):
    """A query's documents in a TREC file, with relevance or score, and the first line of the query."""

    line: int
    values: dict[str, float]


@dataclass(frozen=True)
class TrecSource(Source):
    """Judgements in lines ``QUERY 0 DOCUMENT RELEVANCE``, and results in lines ``QUERY Q0 DOCUMENT RANK SCORE TAG``.

    Judgements of BEIR are read as well: lines ``QUERY DOCUMENT RELEVANCE`` below a header.

    A case is a query, and its id is the query's; the input is that id. What is expected are the documents with a
    relevance above 0, the most relevant first. As in trec_eval, results are ordered by score in single precision, equal
    ones by id of the document backwards, and ranks are ignored.

    Attributes:
        qrels: The judgements; relative to the suite file's folder, or absolute.
        predictions: The run, or ``None`` where a target answers. A judged query without results has an empty list. A
            query with results but no judgement is a case without ground truth.
        ignore_identical_ids: Whether a result with the id of its query is left out, as in BEIR.
    """

    format: ClassVar[str] = "trec"
    beyond_gold: ClassVar[Any] = []

    qrels: str
    predictions: str | None = None
    ignore_identical_ids: bool = False

    def load(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """Return the queries, in the order of the judgements; see `Source.load`."""
        judged = _by_query(folder / self.qrels, _QRELS, faults) or {}
        results = _by_query(folder / self.predictions, _RUN, faults) if self.predictions is not None else None
        cases = []
        for query in [*judged, *(query for query in results or () if query not in judged)]:
            line, relevance = judged.get(query, (0, None))
            documents = MISSING if results is None else self._documents(results.get(query), query)
            cases.append(Case(query, query, None if relevance is None else _expected(relevance), documents, line=line))
        return cases

    def _documents(self, results: _Documents | None, query: str) -> list[str]:
        """Return the documents of a query, best first."""
        ranked = [] if results is None else _ranked(results.values)
        return [document for document in ranked if document != query] if self.ignore_identical_ids else ranked

    def faulty(self, faults: Iterable[Fault]) -> int:
        """Return 0: a faulty line costs its query a document, but not the case."""
        del faults
        return 0

    def file_of(self, case: Case) -> str:
        """Return the file that names the query first."""
        return self.qrels if case.line or self.predictions is None else self.predictions


def _by_query(path: Path, columns: tuple[str, ...], faults: list[Fault]) -> dict[str, _Documents] | None:
    """Read a TREC file by query; good lines survive faults, and ``None`` is for a file that cannot be read."""
    log = FaultLog(shown_path(path))
    queries: dict[str, _Documents] = {}
    query, values = "", {}  # those of the last line: lines of a query mostly follow each other
    first_lines: dict[tuple[str, str], int] = {}
    try:
        text = InputFile(path, log.file).read_text(f"lines of {len(columns)} columns")
    except SuiteError as error:
        faults.extend(error.faults)
        return None
    for number, name, document, value in _lines(text, columns, log):
        if name != query:
            if wrong := CaseId(name).fault():
                log.add(number, 1, "query", wrong)
                continue
            query, values = name, queries.setdefault(name, _Documents(number, {})).values
        if document in values:
            first_lines = first_lines or _first_lines(text, columns)
            message = f"found the document {document!r} of query {query!r} twice, expected it once"
            log.add(number, 1, "document", f"{message} (first in line {first_lines[query, document]})")
        else:
            values[document] = value
    faults.extend(log.listed())
    return queries


def _first_lines(text: str, columns: tuple[str, ...]) -> dict[tuple[str, str], int]:
    """The first line of each document of a query in a TREC file, which only faults need."""
    first: dict[tuple[str, str], int] = {}
    for number, query, document, _ in _lines(text, columns, FaultLog("")):
        first.setdefault((query, document), number)
    return first


def _lines(text: str, columns: tuple[str, ...], faults: FaultLog) -> Iterator[tuple[int, str, str, float]]:
    """Yield number, query, document and value of each complete line in a TREC file."""
    whole = columns is _QRELS
    name, read = ("relevance", int) if whole else ("score", float)
    lines = text.removeprefix("\ufeff").split("\n")
    first = next((number for number, line in enumerate(lines, 1) if _is_row(line)), 1)
    start = first if whole and tuple(lines[first - 1].split()) == _BEIR else 0
    columns = ("query", "document", "relevance") if start else columns
    value_at, document_at, width = columns.index(name), columns.index("document"), len(columns)
    for number, line in enumerate(lines[start:], start + 1):
        cells = line.split()
        if len(cells) != width or cells[0][0] == "#":
            if _is_row(line):
                faults.add(number, 1, "", f"found {len(cells)} columns, expected {width}: {' '.join(columns)}")
            continue
        try:
            value = read(cells[value_at])
            is_number = math.isfinite(value)
        except (ValueError, OverflowError):  # the latter for a whole number that is no float
            is_number = False
        if is_number:
            yield number, cells[0], cells[document_at], value
        else:
            kind = "a whole" if whole else "a finite"
            faults.add(number, 1, name, f"found {cells[value_at]!r}, expected {kind} number")


def _is_row(line: str) -> bool:
    """Whether a line of a TREC file is neither blank nor a comment; trec_eval skips both."""
    cells = line.split(maxsplit=1)
    return bool(cells) and not cells[0].startswith("#")


def _expected(judgements: Mapping[str, float]) -> dict[str, Any]:
    """The expected documents of a query from its relevance judgements, most relevant first."""
    relevant = sorted((item for item in judgements.items() if item[1] > 0), key=lambda item: -item[1])
    return {"positives": [{"id": document, "relevance": relevance} for document, relevance in relevant]}


def _ranked(results: Mapping[str, float]) -> list[str]:
    """The documents of a TREC run for a query, best first."""
    # trec_eval stores scores in single precision: scores equal in that precision are ties.
    scores = array("f", results.values())
    if all(map(operator.gt, scores, scores[1:])):  # as most runs are written
        return list(results)
    return [document for _, document in sorted(zip(scores, results, strict=True), reverse=True)]
