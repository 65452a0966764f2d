"""Cases from a JSONL file: one object per line."""

__all__ = ("JsonlSource",)

from dataclasses import dataclass
from typing import ClassVar

from pytest_llmeval.core.errors import Fault
from pytest_llmeval.data.files.documents import read_jsonl
from pytest_llmeval.data.formats.base import CaseFile, FileSource
from pytest_llmeval.data.formats.fields import ColumnMap
from pytest_llmeval.data.formats.rows import DataRow, add_rows


@dataclass(frozen=True)
class JsonlSource(FileSource):
    """One object a line.

    Attributes:
        fields: Which keys feed which part of a case; without it the objects have the keys of a case.
    """

    format: ClassVar[str] = "jsonl"

    fields: ColumnMap | None = None

    def read(self, file: CaseFile) -> None:
        """Add the cases of the lines."""
        faults: list[Fault] = []
        rows = [DataRow(value, line) for line, value in read_jsonl(file.path, file.shown, faults)]
        file.faults.extend(faults)
        add_rows(file, rows, self.fields)
