"""Cases from a JSON file: a list of objects."""

__all__ = ("JsonSource",)

from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_llmeval.data.files.documents import load_json
from pytest_llmeval.data.files.places import render_path
from pytest_llmeval.data.formats.base import CaseFile, FileSource
from pytest_llmeval.data.formats.fields import ColumnMap, kind
from pytest_llmeval.data.formats.rows import DataRow, add_rows


@dataclass(frozen=True)
class JsonSource(FileSource):
    """A list of objects.

    Attributes:
        items: Where the list is inside an object: a key, or keys with dots between them.
        fields: Which keys feed which part of a case; without it the objects have the keys of a case.
    """

    format: ClassVar[str] = "json"

    items: str | None = None
    fields: ColumnMap | None = None

    def read(self, file: CaseFile) -> None:
        """Add the cases of the list."""
        path = self.items.split(".") if self.items is not None else []
        document = load_json(file.path, file.shown, depth=len(path) + 1)
        data: Any = document.data
        for step in path:
            data = data.get(step) if isinstance(data, dict) else None
        if not isinstance(data, list):
            message = f"found {kind(data)}, expected a list of objects{_advice(data)}"
            file.faults.add(*document.locate(path), render_path(path), message)
            return
        places = [(index, render_path([*path, index])) for index in range(len(data))]
        rows = [DataRow(data[index], *document.locate([*path, index]), shown) for index, shown in places]
        add_rows(file, rows, self.fields)


def _advice(data: Any) -> str:
    lists = [key for key, value in data.items() if isinstance(value, list)] if isinstance(data, dict) else []
    return f": name it under `items`, such as {lists[0]!r}" if lists else ""
