"""Cases from queries and their positives: a JSONL file, or the qrels and runs of TREC."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ctypes import c_float
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import counted
from pytest_llmeval.data.files.documents import load_json, read_jsonl, read_text
from pytest_llmeval.data.files.places import FaultLog, render_path
from pytest_llmeval.data.formats.base import (
    ID_KEYS,
    CaseFile,
    FileSource,
    RecordedAnswer,
    Source,
    case_id,
    id_fault,
    json_text,
    kind,
    shown_path,
    wrong_values,
)

_IDS = ("query_id", "id")


@dataclass(frozen=True)
class CaseRetrievalSource(FileSource):
    """One query a line: ``{"query_id": ..., "query": {"fact": ..., "meta": {...}}, "positives": [...]}``.

    The query, an object or a text, is the input. The positives, best first, are what is expected: texts, ids, or
    objects that hold them. A line without ``query_id`` or ``id`` has its number as id. ``labels`` may be given; other
    keys are ignored.

    Recorded replies have the id of their query, or are in the order of the queries: a list of results for each, or a
    list of such lists for each batch, perhaps under ``results``. A null is no reply.
    """

    format: ClassVar[str] = "case_retrieval"

    def read(self, file: CaseFile) -> None:
        """Add the queries."""
        faults: list[Fault] = []
        for line, row in read_jsonl(file.path, file.display_path, faults):
            self._read_row(file, line, row)
        file.faults.extend(faults)

    def answers(self, path: Path, cases: Mapping[str, Case], faults: FaultLog) -> list[RecordedAnswer]:
        """Return the recorded results of a file to queries, which are given by id, in the order of their file."""
        replies = _replies_in_order(path, faults.file)
        if replies is None:
            return super().answers(path, cases, faults)
        if len(replies) != len(cases):
            message = f"found {counted(len(replies), 'list')} of results without ids, expected {len(cases)}"
            faults.add(0, 0, "", f"{message}, one for each query in its order")
            return []
        pairs = zip(cases, replies, strict=True)
        return [RecordedAnswer(name, results, line, 1) for name, (line, results) in pairs if results is not None]

    def _read_row(self, file: CaseFile, line: int, row: Any) -> None:
        faults = list(_faults(row))
        for path, message in faults:
            file.faults.add(line, 1, render_path(path), message)
        if faults:
            return
        key = next((key for key in _IDS if key in row), None)
        name = str(line) if key is None else str(case_id(row[key]))
        labels = {label: json_text(value) for label, value in row.get("labels", {}).items() if value is not None}
        case = Case(name, row["query"], {"positives": row["positives"]}, labels=labels, line=line)
        file.add(case, key or "")


def _replies_in_order(path: Path, display_path: str) -> list[tuple[int, Any]] | None:
    """Return line and results of each reply; ``None`` for a file with ids, or without any reply that can be read."""
    try:
        if path.suffix.lower() == ".json":
            data = load_json(path, display_path, depth=1).data
            rows = [(1, each) for each in (data if isinstance(data, list) else [data])]
        else:
            faults: list[Fault] = []
            rows = list(read_jsonl(path, display_path, faults))
            if faults:
                return None  # without a line, those after it would be other queries' replies
    except SuiteError:
        return None
    replies: list[tuple[int, Any]] = []
    for line, row in rows:
        named = isinstance(row, dict) and not any(key in row for key in ID_KEYS)
        results = row.get("results") if named else row
        if not isinstance(results, list):
            return None
        is_batch = any(isinstance(each, list) for each in results)
        replies += [(line, each) for each in results] if is_batch else [(line, results)]
    return replies or None


def _faults(row: Any) -> Sequence[tuple[Sequence[str], str]]:
    """Return path and message of each fault of a line."""
    if not isinstance(row, dict):
        return [((), f"found {kind(row)}, expected an object with `query` and `positives`")]
    labels = row.get("labels", {})
    checks = [
        ("query", isinstance(row.get("query"), dict | str), "an object or a text"),
        ("positives", isinstance(row.get("positives"), list), "a list of documents"),
        ("labels", isinstance(labels, dict), "an object"),
        *((key, case_id(row[key]) is not None, "text or a whole number") for key in _IDS if key in row),
    ]
    faults: list[tuple[Sequence[str], str]] = [*wrong_values(row, checks)]
    if isinstance(labels, dict):
        wrong = [name for name, value in labels.items() if isinstance(value, list | dict)]
        faults += [(("labels", name), f"found {kind(labels[name])}, expected text") for name in wrong]
    return faults


_QRELS = ("query", "iteration", "document", "relevance")
_RUN = ("query", "Q0", "document", "rank", "score", "tag")


class _Line(NamedTuple):
    """A judgement or a result: a document of a query, with its relevance or its score."""

    number: int
    query: str
    document: str
    value: float


@dataclass(frozen=True)
class TrecSource(Source):
    """Judgements in lines ``QUERY 0 DOCUMENT RELEVANCE``, and results in lines ``QUERY Q0 DOCUMENT RANK SCORE TAG``.

    A case is a query, and its id is the query's; the input is that id. What is expected are the documents with a
    relevance above 0, the most relevant first. As in trec_eval, results are ordered by score in single precision, equal
    ones by id of the document backwards, and ranks are ignored.

    Attributes:
        qrels: The judgements; relative to the suite file's folder, or absolute.
        predictions: The run, or ``None`` where a target answers. A judged query without results has an empty list. A
            query with results but no judgement is a case without ground truth.
    """

    format: ClassVar[str] = "trec"
    beyond_gold: ClassVar[Any] = []

    qrels: str
    predictions: str | None = None

    def load(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """Return the queries, in the order of the judgements; see `Source.load`."""
        judged = _by_query(folder / self.qrels, _QRELS, faults) or {}
        results = _by_query(folder / self.predictions, _RUN, faults) if self.predictions is not None else None
        cases = []
        for query in [*judged, *(query for query in results or () if query not in judged)]:
            lines = judged.get(query)
            documents = MISSING if results is None else [each.document for each in _ranked(results.get(query, ()))]
            line = lines[0].number if lines else 0
            cases.append(Case(query, query, None if lines is None else _expected(lines), documents, line=line))
        return cases

    def faulty(self, faults: Iterable[Fault]) -> int:
        """Return 0: a faulty line costs its query a document, but not the case."""
        del faults
        return 0

    def file_of(self, case: Case) -> str:
        """Return the file that names the query first."""
        return self.qrels if case.line or self.predictions is None else self.predictions


def _by_query(path: Path, columns: tuple[str, ...], faults: list[Fault]) -> dict[str, list[_Line]] | None:
    """Read a file, ``None`` if that cannot be; faults are added to `faults`, and good lines survive them."""
    log = FaultLog(shown_path(path))
    queries: dict[str, list[_Line]] = {}
    first: dict[tuple[str, str], int] = {}
    try:
        for line in _lines(read_text(path, log.file, f"lines of {len(columns)} columns"), columns, log):
            place = (line.query, line.document)
            if place in first:
                message = f"found the document {line.document!r} of query {line.query!r} twice, expected it once"
                log.add(line.number, 1, "document", f"{message} (first in line {first[place]})")
                continue
            first[place] = line.number
            queries.setdefault(line.query, []).append(line)
    except SuiteError as error:
        faults.extend(error.faults)
        return None
    faults.extend(log.listed())
    return queries


def _lines(text: str, columns: tuple[str, ...], faults: FaultLog) -> Iterator[_Line]:
    expected = " ".join(columns)
    whole = columns is _QRELS
    for number, line in enumerate(text.split("\n"), 1):
        cells = line.split()
        if not cells:
            continue
        if len(cells) != len(columns):
            faults.add(number, 1, "", f"found {len(cells)} columns, expected {len(columns)}: {expected}")
            continue
        name = "relevance" if whole else "score"
        cell = cells[columns.index(name)]
        value = _number(cell, whole=whole)
        if value is None:
            faults.add(number, 1, name, f"found {cell!r}, expected {'a whole' if whole else 'a finite'} number")
        elif wrong := id_fault(cells[0]):
            faults.add(number, 1, "query", wrong)
        else:
            yield _Line(number, cells[0], cells[2], value)


def _number(cell: str, *, whole: bool) -> float | None:
    try:
        value = int(cell) if whole else float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _expected(lines: Iterable[_Line]) -> dict[str, Any]:
    relevant = sorted((line for line in lines if line.value > 0), key=lambda line: -line.value)
    return {"positives": [{"id": line.document, "relevance": line.value} for line in relevant]}


def _ranked(lines: Iterable[_Line]) -> list[_Line]:
    # trec_eval stores scores in single precision: scores equal in that precision are ties.
    return sorted(lines, key=lambda line: (c_float(line.value).value, line.document), reverse=True)
