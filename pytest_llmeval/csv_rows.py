"""Rows of a CSV text with the lines that they begin in."""

__all__ = ("parse_csv",)

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager

from pytest_llmeval.faults import Faults


@contextmanager
def _cell_limit(limit: int) -> Iterator[None]:
    """Raise the limit of the csv module, which is global and below the length of some model answers."""
    before = csv.field_size_limit(limit)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _records(text: str, delimiter: str, faults: Faults) -> Iterator[tuple[int, list[str]]]:
    """Yield first line and cells of each record that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            faults.add(line, 1, "", f"found a row that is no CSV ({error}), expected matching quotes")
            continue
        if cells:
            yield line, cells


def parse_csv(text: str, delimiter: str, limit: int, faults: Faults) -> list[tuple[int, dict[str, str]]]:
    """Read rows as mappings from column to cell; faulty rows are left out.

    Args:
        text: The text; its first record names the columns.
        delimiter: The one character between cells.
        limit: Most characters of a cell.
        faults: Gets the faults.
    """
    with _cell_limit(limit):
        records = _records(text, delimiter, faults)
        header_line, header = next(records, (1, []))
        twice = sorted({name for name in header if header.count(name) > 1})
        for name in twice:
            faults.add(header_line, 1, name, f"found the column {name!r} twice, expected it once")
        rows = []
        for line, cells in records:
            if len(cells) == len(header):
                rows.append((line, dict(zip(header, cells, strict=True))))
            else:
                faults.add(line, 1, "", f"found {len(cells)} cells, expected {len(header)} as in the header")
    return [] if twice else rows
