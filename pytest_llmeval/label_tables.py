"""Rows of label tables, from CSV and from Markdown, under column names that mean the same in all of them."""

__all__ = ("LabelRow", "column_name", "plain", "read_rows", "split_name")

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_llmeval.errors import Problem
from pytest_llmeval.faults import Faults
from pytest_llmeval.reading import read_csv
from pytest_llmeval.text_file import read_text

_COLUMNS = {
    "aliases": ("alias", "别名"),
    "category": ("action category", "类别"),
    "category_zh": (),
    "contexts": ("context", "context tags", "recommended context tags"),
    "function": ("narrative function", "叙事功能"),
    "label": ("tag", "sentiment", "标签"),
    "level": ("friendly level", "intensity"),
    "level1": ("level 1", "relationship level1", "一级分类"),
    "level1_zh": ("level 1 zh",),
    "level2": ("level 2", "level 2 tag", "relationship level2", "二级分类"),
    "level2_zh": ("level 2 zh",),
    "polarity": ("情感极性", "极性"),
    "short": ("short name", "简称"),
    "status": ("状态",),
    "type": ("code", "action type"),
    "zh": ("chinese", "中文", "中文名称", "name 名称"),
}
_MEANING = {other: name for name, others in _COLUMNS.items() for other in (name.replace("_", " "), *others)}

_IN_PARENTHESES = re.compile(r"\s*[(（]([^()（）]*)[)）]\s*$")
_HEADING = re.compile(r"#{1,6}\s+(.*?)[\s#]*")
_NUMBERED = re.compile(r"(?:[IVXLC]+|\d+)[.)]\s+")
_RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_MARKED_ITEM = re.compile(r"[*+-]\s+\**`([^`]+)`")


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A row of a table.

    Attributes:
        line: Where it begins, counted from 1.
        heading: The Markdown heading above it, without its number.
        cells: What stands in the columns that mean something here, by their common names.
        columns: All columns of the table as they are called.
    """

    line: int
    heading: str
    cells: Mapping[str, str]
    columns: tuple[str, ...] = ()


def read_rows(path: Path, faults: Faults) -> list[LabelRow]:
    """Read a ``.csv`` file, or the tables and the lists of marked labels of a Markdown file.

    Args:
        path: The file.
        faults: Gets the faults; good rows survive them.

    Raises:
        SuiteError: A Markdown file cannot be read.
    """
    if path.suffix.lower() != ".csv":
        return list(_markdown_rows(read_text(path, faults.file, "Markdown tables"), faults))
    problems: list[Problem] = []
    rows = [LabelRow(line, "", _meant(cells), tuple(cells)) for line, cells in read_csv(path, faults.file, problems)]
    faults.extend(problems)
    return rows


def column_name(text: str) -> str | None:
    """Return the common name of a column, ``None`` if it means nothing here: ``Level 2 Tag`` is ``level2``."""
    for each in (text, _IN_PARENTHESES.sub("", text)):
        words = " ".join(re.sub(r"[\W_]+", " ", each).casefold().split())
        if words in _MEANING:
            return _MEANING[words]
    return None


def split_name(text: str) -> tuple[str, str | None]:
    """Split ``ambush (偷袭)`` into a name and the other name in parentheses."""
    found = _IN_PARENTHESES.search(text)
    return (text[: found.start()].strip(), found[1].strip() or None) if found else (text.strip(), None)


def plain(text: str) -> str:
    """Return Markdown text without the marks for bold and code, and without escapes of the cell border."""
    return text.replace("**", "").replace("`", "").replace("\\|", "|").strip()


def _meant(cells: Mapping[str, str]) -> dict[str, str]:
    named = {column_name(column): cell.strip() for column, cell in cells.items()}
    return {name: cell for name, cell in named.items() if name is not None}


def _markdown_rows(text: str, faults: Faults) -> Iterator[LabelRow]:
    """Yield the rows of tables, and items such as ``* `climax`: ...`` as rows with a label."""
    heading = ""
    columns: Sequence[str] = ()
    above: Sequence[str] = ()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if "|" not in stripped:
            columns = above = ()
            if found := _HEADING.fullmatch(stripped):
                heading = plain(_NUMBERED.sub("", found[1], count=1))
            elif item := _MARKED_ITEM.match(stripped):
                yield LabelRow(number, heading, {"label": item[1].strip()})
            continue
        cells = [plain(cell) for cell in _CELL_BORDER.split(_inner(stripped))]
        if not columns and _RULE.fullmatch(stripped) and len(above) == len(cells):
            columns = above
        elif not columns:
            above = cells
        elif len(cells) == len(columns):
            yield LabelRow(number, heading, _meant(dict(zip(columns, cells, strict=True))), tuple(columns))
        else:
            faults.add(number, 1, "", f"found {len(cells)} cells, expected {len(columns)} as in the header")


def _inner(line: str) -> str:
    """Return a row without its outer borders."""
    line = line.removeprefix("|")
    return line[:-1] if line.endswith("|") and not line.endswith("\\|") else line
