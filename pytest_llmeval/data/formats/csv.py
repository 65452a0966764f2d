"""Cases from a CSV file whose first line names the columns."""

__all__ = ("CsvSource",)

from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_llmeval.core.errors import Fault
from pytest_llmeval.data.files.documents import read_csv
from pytest_llmeval.data.formats.base import CaseFile, FileSource
from pytest_llmeval.data.formats.fields import ColumnMap, kind
from pytest_llmeval.data.formats.rows import DataRow, add_rows

_NESTED = ("labels", "thresholds")


@dataclass(frozen=True)
class CsvSource(FileSource):
    """One row a case; columns such as ``labels.question_type`` and ``thresholds.f1`` make objects.

    An empty cell is an absent value, except that an empty prediction is an empty answer.

    Attributes:
        fields: Which columns feed which part of a case; without it they have the parts' names.
        delimiter: The one character between cells.
    """

    format: ClassVar[str] = "csv"

    fields: ColumnMap | None = None
    delimiter: str = ","

    def read(self, file: CaseFile) -> None:
        """Add the cases of the rows."""
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            message = f"found {kind(self.delimiter)}, expected one character other than a quote or a line break"
            file.faults.add(0, 0, "delimiter", message)
            return
        faults: list[Fault] = []
        records = list(read_csv(file.path, file.shown, faults, delimiter=self.delimiter))
        file.faults.extend(faults)
        add_rows(file, [DataRow(_nest(cells), line) for line, cells in records], self.fields, cells=True)


def _nest(cells: dict[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for column, cell in cells.items():
        part, dot, name = column.partition(".")
        if dot and part in _NESTED and part not in cells:
            row.setdefault(part, {})[name] = cell
        else:
            row[column] = cell
    return row
