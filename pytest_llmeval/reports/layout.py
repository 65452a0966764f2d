"""Plain-text tables that fit a width: columns are dropped and counted, names are never broken."""

__all__ = ("Line", "TextTable", "draw", "padded", "width_of")

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from pytest_llmeval.core.wording import counted, printable

_GAP = "  "


class Line(NamedTuple):
    """A line of text and its colour: ``green``, ``red``, ``yellow``, ``bold`` or none."""

    text: str
    colour: str = ""


class TextTable(Struct, frozen=True):
    """A table as text.

    Attributes:
        title: The line above it; may be empty.
        headers: Of the columns.
        rows: The cells.
        texts: Positions of left-aligned columns; the others hold numbers.
        spare: Positions of columns that may be dropped for lack of room, in this order.
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: Sequence[int] = (0,)
    spare: Sequence[int] = ()


def width_of(text: str) -> int:
    """Return the width of a text in terminal columns; East Asian wide characters take two.

    >>> width_of("Tokyo"), width_of("東京")
    (5, 4)
    """
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(wcswidth(text), 0)


def padded(text: str, width: int, *, left: bool = True) -> str:
    """Pad a text with blanks, on the right or on the left."""
    blanks = " " * (width - width_of(text))
    return f"{text}{blanks}" if left else f"{blanks}{text}"


def draw(table: TextTable, width: int, *, everything: bool = False) -> Iterator[Line]:
    """Yield the lines of a table without its title.

    Args:
        table: The table.
        width: Of the terminal, in columns.
        everything: Whether dropped columns follow in further tables; otherwise they are counted.
    """
    columns = [[printable(cell) for cell in column] for column in zip(table.headers, *table.rows, strict=True)]
    widths = [max(map(width_of, column)) for column in columns]
    fixed = [place for place in range(len(columns)) if place not in table.spare]
    spare = list(table.spare)
    while True:
        kept = _fitting(fixed, spare, widths, width)
        if everything and spare and len(kept) == len(fixed):
            kept = sorted([*fixed, spare[-1]])
        for row in zip(*(columns[place] for place in kept), strict=True):
            cells = (
                padded(cell, widths[place], left=place in table.texts) for place, cell in zip(kept, row, strict=True)
            )
            yield Line(_GAP.join(cells).rstrip())
        spare = [place for place in spare if place not in kept]
        if not spare:
            return
        if not everything:
            yield Line(f"{counted(len(spare), 'more column')}: -vv or a wider terminal")
            return
        yield Line("")


def _fitting(fixed: Sequence[int], spare: Sequence[int], widths: Sequence[int], width: int) -> list[int]:
    """Return the columns that fit."""
    kept = sorted([*fixed, *spare])
    for place in spare:
        if sum(widths[each] + len(_GAP) for each in kept) - len(_GAP) <= width:
            break
        kept.remove(place)
    return kept
