"""Lists of tools and skills in their published forms, and rows about the tool that each request should reach."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from msgspec import Struct

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import EvaluatorError, Fault, SuiteError
from pytest_llmeval.core.wording import expected_name, suggest
from pytest_llmeval.data.files.documents import read_document, read_front_matter, read_jsonl
from pytest_llmeval.data.formats.base import CaseFile, FileSource, case_id, kind
from pytest_llmeval.data.formats.rows import DataRow

_PARAMETERS: Final = ("parameters", "input_schema", "inputSchema")
_SKILL: Final = "SKILL.md"


class ListedTool(Struct, frozen=True):
    """A tool or a skill.

    Attributes:
        name: Its name.
        description: As the model reads it.
        parameters: JSON Schema of its arguments; empty for a skill.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as a target reads it."""
        parameters = {"parameters": self.parameters} if self.parameters else {}
        return {"name": self.name, "description": self.description, **parameters}


def read_catalogue(path: Path) -> dict[str, ListedTool]:
    """Return tools by name.

    Args:
        path: A JSON or YAML file with definitions as OpenAI, Anthropic or an MCP server (``tools/list``) write them.
            It may be a folder with skills, whose ``SKILL.md`` have name and description at their top.

    Raises:
        EvaluatorError: It cannot be read, or has another form.
    """
    listed = _skills(path) if path.is_dir() else _definitions(path)
    tools: dict[str, ListedTool] = {}
    for each in listed:
        if each.name in tools:
            raise EvaluatorError(f"{path.name}: found the tool {each.name!r} twice, expected it once")
        tools[each.name] = each
    if not tools:
        raise EvaluatorError(f"{path.name}: found no tool, expected at least one")
    return tools


def _definitions(path: Path) -> Iterator[ListedTool]:
    try:
        data = read_document(path, path.name).data
    except SuiteError as error:
        raise EvaluatorError(str(error)) from None
    for key in ("result", "tools"):  # MCP
        if isinstance(data, Mapping) and key in data:
            data = data[key]
    if not isinstance(data, list):
        raise EvaluatorError(f"{path.name}: found {kind(data)}, expected a list of tools, or an object with 'tools'")
    for number, entry in enumerate(data):
        inner = entry.get("function", entry) if isinstance(entry, Mapping) else None
        if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
            raise EvaluatorError(f"{path.name}[{number}]: found {kind(entry)}, expected a tool with its name")
        schema: Mapping[str, Any] = next((inner[key] for key in _PARAMETERS if isinstance(inner.get(key), Mapping)), {})
        yield ListedTool(inner["name"], str(inner.get("description") or ""), schema)


def _skills(folder: Path) -> Iterator[ListedTool]:
    for path in sorted(folder.rglob(_SKILL)):
        name = path.relative_to(folder).as_posix()
        try:
            data = read_front_matter(path, name, "a skill")[0].data
        except SuiteError as error:
            raise EvaluatorError(str(error)) from None
        if not isinstance(data.get("name"), str):
            raise EvaluatorError(f"{name}: found no name at its top, expected '---', name, description, '---'")
        yield ListedTool(data["name"], str(data.get("description") or ""))


NONE = "none"
"""Stands for no tool in rows."""

_KEYS = ("id", "ask", "expect", "not", "args", "labels", "prediction")


@dataclass(frozen=True)
class ToolsSource(FileSource):
    """Rows ``{ask, expect, not, args}`` of JSONL, or a list of them in JSON or YAML.

    ``expect`` is the name of a tool, or ``none``. ``not`` has siblings that must not fire, and ``args`` arguments that
    a call must have, among others. A row may have ``id``, ``labels`` and ``prediction``. Cases have the label ``tool``.

    Attributes:
        tools: The list of tools, relative to the data file: a file with definitions of OpenAI, Anthropic or MCP, or a
            folder with skills.
        show: Whether the input is ``{ask, tools}`` and not the text alone.
    """

    format: ClassVar[str] = "tools"

    tools: str = "tools.json"
    show: bool = True

    def read(self, file: CaseFile) -> None:
        """Add the rows whose tools exist."""
        try:
            catalogue = read_catalogue(file.path.parent / self.tools)
        except EvaluatorError as error:
            file.faults.add(0, 0, "", f"tools: {error}")
            return
        definitions = [each.definition for each in catalogue.values()]
        for number, row in enumerate(_rows(file), 1):
            faults = list(_faults(row.data, catalogue))
            for key, message in faults:
                file.faults.add(row.line, row.column, ".".join(filter(None, (row.path, key))), message)
            if not faults:
                file.add(self._case(number, row, definitions), row.path, row.column)

    def _case(self, number: int, row: DataRow, definitions: list[dict[str, Any]]) -> Case:
        data = row.data
        name = data.get("id")
        expect = None if data["expect"] in (None, NONE) else data["expect"]
        expected = {"expect": expect, "not": _listed(data.get("not"))}
        return Case(
            id=str(number) if name is None else str(case_id(name)),
            input={"ask": data["ask"], "tools": definitions} if self.show else data["ask"],
            expected=expected | ({} if data.get("args") is None else {"args": data["args"]}),
            prediction=data.get("prediction", MISSING),
            labels={**{key: str(value) for key, value in (data.get("labels") or {}).items()}, "tool": expect or NONE},
            line=row.line,
        )


def _rows(file: CaseFile) -> Iterator[DataRow]:
    if file.path.suffix.lower() == ".jsonl":
        faults: list[Fault] = []
        yield from (DataRow(data, line) for line, data in read_jsonl(file.path, file.display_path, faults))
        file.faults.extend(faults)
        return
    document = read_document(file.path, file.display_path)
    if not isinstance(document.data, list):
        file.faults.add(1, 1, "", f"found {kind(document.data)}, expected a list of rows")
        return
    for index, data in enumerate(document.data):
        yield DataRow(data, *document.locate([index]), f"[{index}]")


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _faults(row: Any, catalogue: Mapping[str, ListedTool]) -> Iterator[tuple[str, str]]:
    """Yield key and message of what is wrong with a row."""
    if not isinstance(row, dict):
        yield "", f"found {kind(row)}, expected an object with ask and expect"
        return
    for key in row:
        if key not in _KEYS:
            yield key, f"found the unknown key {key!r}{expected_name(key, _KEYS)}"
    if not isinstance(ask := row.get("ask"), str) or not ask.strip():
        yield "ask", f"found {'an empty text' if isinstance(ask, str) else kind(ask)}, expected a request"
    if "expect" not in row:
        yield "", "found nothing, expected 'expect': the name of a tool, or none"
    names = [("expect", row.get("expect"))] if row.get("expect") not in (None, NONE) else []
    for key, name in [*names, *(("not", each) for each in _listed(row.get("not")))]:
        if not isinstance(name, str) or name not in catalogue:
            hint = suggest(name, catalogue) if isinstance(name, str) else ""
            yield key, f"found the unknown tool {name!r}, expected one of {', '.join(catalogue)}{hint}"
    if row.get("expect") in _listed(row.get("not")):
        yield "not", f"found {row['expect']!r}, which is expected, expected its siblings"
    for key in ("args", "labels"):
        if row.get(key) is not None and not isinstance(row[key], dict):
            yield key, f"found {kind(row[key])}, expected an object"
    if row.get("id") is not None and case_id(row["id"]) is None:
        yield "id", f"found {kind(row['id'])}, expected text or a whole number"
