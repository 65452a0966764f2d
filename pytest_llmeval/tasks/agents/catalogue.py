"""Lists of tools and skills in their published forms, and the schemas of the arguments of calls."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from pytest_llmeval.core.errors import EvaluatorError, SuiteError
from pytest_llmeval.core.wording import expected_name
from pytest_llmeval.data.files.documents import read_document, read_front_matter
from pytest_llmeval.data.formats.base import kind
from pytest_llmeval.evaluators.answers import describe_found, schema_errors, schema_validator
from pytest_llmeval.evaluators.calls import ToolCall

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_PARAMETERS: Final = ("parameters", "input_schema", "inputSchema")
"""Where definitions of tools have the schema of the arguments: OpenAI, Anthropic, MCP."""

_PYDANTIC_AI: Final = "parameters_json_schema"
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
    data = _content(path)
    for key in ("result", "tools"):  # MCP
        if isinstance(data, Mapping) and key in data:
            data = data[key]
    if not isinstance(data, list):
        raise EvaluatorError(f"{path.name}: found {kind(data)}, expected a list of tools, or an object with 'tools'")
    for number, entry in enumerate(data):
        inner = _definition(entry)
        if inner is None:
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


def _content(path: Path) -> Any:
    try:
        return read_document(path, path.name).data
    except SuiteError as error:
        raise EvaluatorError(str(error)) from None


def _definition(entry: Any) -> Mapping[str, Any] | None:
    """Return what has the name of a tool; ``None`` if the entry of a list is no definition."""
    inner = entry.get("function", entry) if isinstance(entry, Mapping) else None
    return inner if isinstance(inner, Mapping) and isinstance(inner.get("name"), str) else None


def read_schemas(path: Path) -> Mapping[str, Any]:
    """Read a JSON or YAML file: tool to JSON Schema, or a list of definitions as sent to models.

    Raises:
        EvaluatorError: The file cannot be read, or has another form.
    """
    data = _content(path)
    if isinstance(data, Mapping):
        return data
    if not isinstance(data, list):
        raise EvaluatorError(
            f"{path.name}: found {describe_found(data)}, expected tools by name, or a list of definitions"
        )
    schemas: dict[str, Any] = {}
    for number, entry in enumerate(data):
        inner = _definition(entry)
        if inner is None:
            why = f"found {describe_found(entry)}, expected the definition of a tool with its name"
            raise EvaluatorError(f"{path.name}[{number}]: {why}")
        schemas[inner["name"]] = next((inner[key] for key in (*_PARAMETERS, _PYDANTIC_AI) if key in inner), {})
    return schemas


@dataclass(frozen=True)
class ToolSchemas:
    """The tools that exist, and what their arguments must be.

    Attributes:
        schemas: Name of a tool to the JSON Schema of its arguments.

    Raises:
        ValueError: A schema is none.
    """

    schemas: Mapping[str, Any]

    def __post_init__(self) -> None:
        _ = self._validators

    def __reduce__(self) -> tuple[type["ToolSchemas"], tuple[Mapping[str, Any]]]:
        """Leave out the validators, which cannot be pickled."""
        return ToolSchemas, (self.schemas,)

    @cached_property
    def _validators(self) -> "Mapping[str, Validator]":
        from jsonschema import SchemaError

        validators: dict[str, Validator] = {}
        for name, schema in self.schemas.items():
            if not isinstance(schema, dict | bool):
                raise ValueError(f"{name}: found {describe_found(schema)}, expected a JSON Schema")  # noqa: TRY004 (a fault)
            try:
                validators[name] = schema_validator(schema)
            except SchemaError as error:
                raise ValueError(f"{name}{error.json_path[1:]}: {error.message}, expected a JSON Schema") from None
        return validators

    def fault(self, call: ToolCall) -> str | None:
        """Say why a call is not valid; ``None`` if it is."""
        from jsonschema.exceptions import best_match

        if call.fault is not None:
            return call.fault
        validator = self._validators.get(call.name)
        if validator is None:
            names = sorted(self._validators)
            return f"found the unknown tool {call.name!r}{expected_name(call.name, names)}"
        try:
            error = best_match(schema_errors(validator, call.arguments or {}))
        except EvaluatorError as why:
            raise EvaluatorError(f"schema of {call.name!r}: {why}") from None
        return None if error is None else f"{call.name}{error.json_path[1:]}: {error.message}"
