"""Cases from a JSONL file of queries and their positives."""

__all__ = ("CaseRetrievalSource",)

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import Fault
from pytest_llmeval.data.files.documents import read_jsonl
from pytest_llmeval.data.files.places import render_path
from pytest_llmeval.data.formats.base import CaseFile, FileSource
from pytest_llmeval.data.formats.fields import case_id, json_text, kind, wrong_values

_IDS = ("query_id", "id")


@dataclass(frozen=True)
class CaseRetrievalSource(FileSource):
    """One query a line: ``{"query_id": ..., "query": {"fact": ..., "meta": {...}}, "positives": [...]}``.

    The query, an object or a text, is the input. The positives, best first, are what is expected: texts, ids, or
    objects that hold them. A line without ``query_id`` or ``id`` has its number as id. ``labels`` may be given; other
    keys are passed over.
    """

    format: ClassVar[str] = "case_retrieval"

    def read(self, file: CaseFile) -> None:
        """Add the queries."""
        faults: list[Fault] = []
        for line, row in read_jsonl(file.path, file.shown, faults):
            self._read_row(file, line, row)
        file.faults.extend(faults)

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
