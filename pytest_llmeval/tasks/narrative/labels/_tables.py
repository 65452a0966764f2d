"""The content of a label set, and label sets from the rows of CSV files and Markdown tables."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from pytest_llmeval.core import Fault
from pytest_llmeval.data import FaultLog, InputFile, describe

STRICT = {"extra": "forbid"}

Polarity = Literal["positive", "neutral", "negative"]


@dataclass(frozen=True, kw_only=True)
class Label:
    """A label and its other names.

    Attributes:
        label: Its spelling in annotations.
        zh: Its Chinese name.
        aliases: More names.
        description: Its meaning.
    """

    __pydantic_config__: ClassVar = STRICT

    label: str
    zh: str | None = None
    aliases: tuple[str, ...] = ()
    description: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The other names."""
        return (*filter(None, (self.zh,)), *self.aliases)


@dataclass(frozen=True, kw_only=True)
class Level1(Label):
    """A relationship label of level 1, with those of level 2 below it."""

    level2: tuple[Label, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sentiment(Label):
    """A sentiment: its polarity, and how well-disposed it is.

    Attributes:
        polarity: ``None``: that of the sentiment of this name in the shipped file, if it has one.
    """

    polarity: Polarity | None = None
    level: float | None = None


@dataclass(frozen=True, kw_only=True)
class ActionType(Label):
    """A type of action and the contexts that are usual for it."""

    contexts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Category(Label):
    """A category of actions, its short name, and the types below it."""

    short: str | None = None
    types: tuple[ActionType, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The other names."""
        return (*filter(None, (self.short, self.zh)), *self.aliases)


@dataclass(frozen=True, kw_only=True)
class Relationships:
    """A file of relationships."""

    __pydantic_config__: ClassVar = STRICT

    relationships: tuple[Level1, ...]


@dataclass(frozen=True, kw_only=True)
class Sentiments:
    """A file of sentiments."""

    __pydantic_config__: ClassVar = STRICT

    sentiments: tuple[Sentiment, ...]


@dataclass(frozen=True, kw_only=True)
class Actions:
    """A file of actions."""

    __pydantic_config__: ClassVar = STRICT

    categories: tuple[Category, ...]
    statuses: tuple[Label, ...] = ()
    functions: tuple[Label, ...] = ()


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
    "level2": ("level 2", "level 2 tag", "relationship level2", "二级分类", "二级标签"),
    "level2_zh": ("level 2 zh",),
    "polarity": ("情感极性", "极性"),
    "short": ("short name", "简称"),
    "status": ("状态",),
    "type": ("code", "action type"),
    "zh": ("chinese", "中文", "中文名称", "name 名称"),
}
_BILINGUAL = frozenset(("category", "function", "label", "level1", "level2", "status", "type"))
_MEANING = {other: name for name, others in _COLUMNS.items() for other in (name.replace("_", " "), *others)}

_REMARK = re.compile(r"(?:(?<!\s)\s++)?(?:[(（][^()（）]*[)）]|[\[【［][^\[\]【】［］]*[\]】］])\s*")
_IN_PARENTHESES = re.compile(r"(?:(?<!\s)\s++)?[(（]([^()（）]*)[)）]\s*$")
_HAN = re.compile("[\u3400-\u9fff]")
_HEADING = re.compile(r"#{1,6}\s+(.*?)[\s#]*")
_NUMBERED = re.compile(r"(?:(?<![IVXLC])[IVXLC]++|(?<!\d)\d++)[.)]\s+")
_RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_MARKED_ITEM = re.compile(r"[*+-]\s+\**`([^`]+)`")


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A row of a label table.

    Attributes:
        line: Where it begins, counted from 1.
        heading: The Markdown heading above it, without its number.
        cells: The cells of the known columns, by their common names.
        columns: The names of all columns of the table.
    """

    line: int
    heading: str
    cells: Mapping[str, str]
    columns: tuple[str, ...] = ()


def read_rows(path: Path, log: FaultLog, columns: Collection[str]) -> list[LabelRow]:
    """Read the rows of label tables from a ``.csv`` file, or from the tables and marked lists of a Markdown file.

    Surplus cells of a CSV row belong to the first of the other columns if no wanted column follows it: definitions are
    often written with unquoted commas.

    Args:
        path: The file.
        log: Gets the faults; good rows survive them.
        columns: The common names of the wanted columns.

    Raises:
        SuiteError: A Markdown file cannot be read.
    """
    if path.suffix.lower() != ".csv":
        return list(_markdown_rows(InputFile(path, log.file).read_text("Markdown tables"), log))
    faults: list[Fault] = []
    read = InputFile(path, log.file).read_csv(faults, surplus=partial(_free_text, names=columns))
    rows = [LabelRow(line, "", _meant(cells), tuple(cells)) for line, cells in read]
    log.extend(faults)
    return rows


def _free_text(header: Sequence[str], names: Collection[str]) -> int | None:
    """The first column of free text in a label table; ``None`` if none, or if a label column follows it."""
    others = [column_name(column) not in names for column in header]
    first = others.index(True) if True in others else None
    return first if first is not None and all(others[first:]) else None


def column_name(text: str) -> str | None:
    """The common name of a label table's column, ``None`` for other columns: ``Level 2 Tag`` is ``level2``.

    Remarks in brackets do not matter: so is ``Level 2 Tag [required]``.
    """
    for spelling in filter(None, (text, *split_name(text), _REMARK.sub(" ", text))):
        words = " ".join(re.sub(r"[\W_]+", " ", spelling).casefold().split())
        if words in _MEANING:
            return _MEANING[words]
    return None


def split_name(text: str) -> tuple[str, str | None]:
    """Split ``ambush (偷袭)`` into a name and the other name in parentheses."""
    match = _IN_PARENTHESES.search(text)
    return (text[: match.start()].strip(), match[1].strip() or None) if match else (text.strip(), None)


def bilingual_name(text: str) -> tuple[str, str | None]:
    """Split ``家庭与亲缘(Family & Kinship)`` into label and Chinese name, in either order.

    >>> bilingual_name("家庭与亲缘(Family & Kinship)")
    ('Family & Kinship', '家庭与亲缘')
    >>> bilingual_name("sail (on water)")
    ('sail (on water)', None)
    """
    before, inside = split_name(text)
    if not before or inside is None or bool(_HAN.search(before)) == bool(_HAN.search(inside)):
        return text, None
    return (inside, before) if _HAN.search(before) else (before, inside)


def plain(text: str) -> str:
    """A cell of a Markdown label table without marks for bold and code, and without escaped borders."""
    return text.replace("**", "").replace("`", "").replace("\\|", "|").strip()


def _meant(cells: Mapping[str, str]) -> dict[str, str]:
    """The cells of a label table's row under the common names of their columns."""
    named = {name: cell.strip() for column, cell in cells.items() if (name := column_name(column)) is not None}
    for name in _BILINGUAL.intersection(named):
        label, zh = bilingual_name(named[name])
        if zh is not None:
            named |= {name: label, f"{name}_zh": named.get(f"{name}_zh") or zh, f"{name}_whole": named[name]}
    return named


def _markdown_rows(text: str, faults: FaultLog) -> Iterator[LabelRow]:
    """Yield the rows of a Markdown file's label tables; list items such as ``* `climax`: ...`` are rows as well."""
    heading = ""
    columns: Sequence[str] = ()
    above: Sequence[str] = ()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if "|" not in stripped:
            columns = above = ()
            if match := _HEADING.fullmatch(stripped):
                heading = plain(_NUMBERED.sub("", match[1], count=1))
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
    """A row of a Markdown label table without its outer borders."""
    line = line.removeprefix("|")
    return line[:-1] if line.endswith("|") and not line.endswith("\\|") else line


_POLARITIES: dict[Polarity, tuple[str, ...]] = {
    "positive": ("positive", "正", "积极"),
    "neutral": ("neutral", "中"),
    "negative": ("negative", "负", "消极"),
}
_HEADINGS = {"status": ("status", "状态"), "function": ("function", "功能")}
_SEPARATORS = re.compile(r"[,;，；、]")


@dataclass
class _Group:
    """The rows of a label table below one upper label.

    Attributes:
        zh: Chinese name of the upper label.
        short: Its short name.
        whole: Its name in both languages, as the file has it.
        rows: Those that have a label of their own.
    """

    zh: str | None
    short: str | None
    whole: str | None
    rows: list[LabelRow] = field(default_factory=list)


def relationships_of(rows: list[LabelRow], faults: FaultLog) -> Relationships:
    """Make relationship labels of rows with the columns ``level1`` and ``level2``; `faults` gets the faults."""
    groups = _groups(rows, "level1", "level2", faults)
    levels = (
        Level1(
            label=label,
            zh=group.zh,
            aliases=tuple(filter(None, (group.whole,))),
            level2=tuple(_label(row, "level2") for row in group.rows),
        )
        for label, group in groups.items()
    )
    return Relationships(relationships=tuple(levels))


def sentiments_of(rows: list[LabelRow], faults: FaultLog) -> Sentiments:
    """Make sentiment labels of rows with the column ``label``; `faults` gets the faults.

    Without a column ``polarity``, labels have none of their own.
    """
    seen: set[str] = set()
    sentiments = []
    for row in _with_columns(rows, ("label",), faults):
        wrong = label_fault(row.cells["label"], seen)
        if wrong is not None:
            faults.add(row.line, 1, "label", wrong)
        faulty = faults.count
        polarity = _polarity(row, faults) if "polarity" in row.cells else None
        level = _level(row, faults)
        if wrong is None and faults.count == faulty:
            sentiments.append(Sentiment(**vars(_label(row, "label")), polarity=polarity, level=level))
    return Sentiments(sentiments=tuple(sentiments))


def actions_of(rows: list[LabelRow], faults: FaultLog) -> Actions:
    """Make action labels of rows with the columns ``category`` and ``type``; `faults` gets the faults.

    Statuses and functions come from columns of these names, or from tables and lists below headings with these words.
    """
    groups = _groups(rows, "category", "type", faults)
    categories = (
        Category(
            label=label,
            zh=group.zh,
            short=group.short,
            aliases=tuple(filter(None, (group.whole,))),
            types=tuple(map(_action_type, group.rows)),
        )
        for label, group in groups.items()
    )
    return Actions(
        categories=tuple(categories),
        statuses=_listed(rows, "status", faults),
        functions=_listed(rows, "function", faults),
    )


def label_fault(label: str, seen: set[str]) -> str | None:
    """The fault of a taxonomy's next label; `seen` has the labels before it, and gets this one."""
    if not label or label != label.strip():
        return f"found {describe(label)}, expected a label without surrounding spaces"
    if label in seen:
        return f"found the label {label!r} twice, expected it once"
    seen.add(label)
    return None


def _with_columns(rows: list[LabelRow], column_names: Sequence[str], faults: FaultLog) -> list[LabelRow]:
    """The rows of label tables that have these columns; a file without any is a fault."""
    matches = [row for row in rows if all(column in row.cells for column in column_names)]
    if not matches:
        columns = next((row.columns for row in rows if row.columns), ())
        there = f"the columns {', '.join(map(repr, columns))}" if columns else "no table"
        names = " and ".join(map(repr, column_names))
        faults.add(0, 0, "", f"found {there}, expected the column{'s' if len(column_names) > 1 else ''} {names}")
    return matches


def _below_headings(rows: list[LabelRow], upper: str) -> Iterator[LabelRow]:
    """Yield label table rows; without the upper column, the Markdown heading above gives the upper label."""
    for row in rows:
        if upper not in row.cells and row.heading:
            label, other = split_name(row.heading)
            yield replace(row, cells={**row.cells, upper: label, f"{upper}_zh": other or ""})
        else:
            yield row


def _groups(rows: list[LabelRow], upper: str, lower: str, faults: FaultLog) -> dict[str, _Group]:
    """Group label table rows by their upper label; an empty cell repeats the one above."""
    groups: dict[str, _Group] = {}
    seen: dict[str, set[str]] = {}
    above = ""
    for row in _with_columns(list(_below_headings(rows, upper)), (upper, lower), faults):
        name = row.cells[lower]
        label = row.cells[upper] or (above if name else "")
        if not label and name:
            message = f"found the {lower} {name!r} without a {upper}, expected one in this row or above it"
            faults.add(row.line, 1, upper, message)
        if not label:
            continue
        above = label
        zh, short, whole = (row.cells.get(key) or None for key in (f"{upper}_zh", "short", f"{upper}_whole"))
        group = groups.setdefault(label, _Group(zh, short, whole))
        if name:
            wrong = label_fault(name, seen.setdefault(label, set()))
            if wrong is None:
                group.rows.append(row)
            else:
                faults.add(row.line, 1, lower, wrong)
    return groups


def _listed(rows: list[LabelRow], column: str, faults: FaultLog) -> tuple[Label, ...]:
    """The labels in a column of label tables, and in tables and lists below a heading about it."""
    seen: set[str] = set()
    labels = []
    for row in rows:
        headed = any(word in row.heading.casefold() for word in _HEADINGS[column])
        key = "label" if headed and column not in row.cells else column
        name = row.cells.get(key, "")
        if not name:
            continue
        wrong = label_fault(name, seen)
        if wrong is None:
            labels.append(_label(row, key))
        else:
            faults.add(row.line, 1, column, wrong)
    return tuple(labels)


def _label(row: LabelRow, column: str) -> Label:
    """The label of a taxonomy from a column of a label table's row, with Chinese name and aliases."""
    # A sheet may list types and statuses side by side; its other names are those of the types.
    other = {} if "type" in row.cells and column != "type" else row.cells
    zh = row.cells.get(f"{column}_zh") or other.get("zh") or None
    whole = filter(None, (row.cells.get(f"{column}_whole"),))
    return Label(label=row.cells[column], zh=zh, aliases=(*_parts(other.get("aliases", "")), *whole))


def _action_type(row: LabelRow) -> ActionType:
    """The action type of a taxonomy from a label table's row, with the contexts it belongs to."""
    names = (name for part in _parts(row.cells.get("contexts", "")) for name in split_name(part))
    return ActionType(**vars(_label(row, "type")), contexts=tuple(filter(None, names)))


def _parts(cell: str) -> tuple[str, ...]:
    """Split a label table's cell with several names."""
    return tuple(filter(None, map(str.strip, _SEPARATORS.split(cell))))


def _polarity(row: LabelRow, faults: FaultLog) -> Polarity | None:
    """The polarity of a sentiment from a label table's cell such as ``High Positive``."""
    text = row.cells["polarity"]
    meant = [polarity for polarity, words in _POLARITIES.items() if any(word in text.casefold() for word in words)]
    if len(meant) == 1:
        return meant[0]
    faults.add(row.line, 1, "polarity", f"found {describe(text)}, expected positive, neutral or negative")
    return None


def _level(row: LabelRow, faults: FaultLog) -> float | None:
    """The level of a sentiment (how well-disposed it is) in a label table's row; other text is a fault."""
    text = row.cells.get("level", "")
    try:
        level = float(text) if text else None
    except ValueError:
        level = math.nan
    if level is None or math.isfinite(level):
        return level
    faults.add(row.line, 1, "level", f"found {describe(text)}, expected a number")
    return None
