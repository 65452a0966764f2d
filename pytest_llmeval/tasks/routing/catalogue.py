"""Lists of tools and skills, read from the forms in which they are published."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pytest_llmeval.core.errors import EvaluatorError, SuiteError
from pytest_llmeval.data.files.documents import read_document, read_front_matter
from pytest_llmeval.data.formats.base import kind

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
