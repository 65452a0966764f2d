"""JSON Schemas of tools, by which calls are valid or not."""

__all__ = ("ToolSchemas", "read_schemas")

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.errors import EvaluatorError, SuiteError
from pytest_llmeval.core.wording import suggest
from pytest_llmeval.data.files.documents import read_document
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.evaluators.tools.calls import ToolCall

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_PARAMETERS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema")
"""Where definitions of tools have the schema of the arguments: OpenAI, Anthropic, MCP, pydantic-ai."""


def read_schemas(path: Path) -> Mapping[str, Any]:
    """Read a JSON or YAML file: tool to JSON Schema, or a list of definitions as they are sent to models.

    Raises:
        EvaluatorError: The file cannot be read, or has another form.
    """
    try:
        data = read_document(path, path.name).data
    except SuiteError as error:
        raise EvaluatorError(str(error)) from None
    if isinstance(data, Mapping):
        return data
    if not isinstance(data, list):
        raise EvaluatorError(
            f"{path.name}: found {describe_found(data)}, expected tools by name, or a list of definitions"
        )
    return dict(_definition(each, f"{path.name}[{index}]") for index, each in enumerate(data))


def _definition(entry: Any, place: str) -> tuple[str, Any]:
    inner = entry.get("function", entry) if isinstance(entry, Mapping) else None
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(name, str):
        raise EvaluatorError(f"{place}: found {describe_found(entry)}, expected the definition of a tool with its name")
    return name, next((inner[key] for key in _PARAMETERS if key in inner), {})


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
        from jsonschema.validators import Draft202012Validator, validator_for
        from referencing import Registry

        made: dict[str, Validator] = {}
        for name, schema in self.schemas.items():
            if not isinstance(schema, dict | bool):
                raise ValueError(f"{name}: found {describe_found(schema)}, expected a JSON Schema")  # noqa: TRY004 (a fault)
            kind = validator_for(schema, default=Draft202012Validator)
            try:
                kind.check_schema(schema)  # type: ignore[arg-type] # true and false are schemas too
            except SchemaError as error:
                raise ValueError(f"{name}{error.json_path[1:]}: {error.message}, expected a JSON Schema") from None
            # With an empty registry nothing that a schema refers to is fetched.
            made[name] = kind(schema, registry=Registry())
        return made

    def fault(self, call: ToolCall) -> str | None:
        """Say why a call is not valid; ``None`` if it is."""
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        if call.fault is not None:
            return call.fault
        validator = self._validators.get(call.name)
        if validator is None:
            names = sorted(self._validators)
            return (
                f"found the unknown tool {call.name!r}, expected one of {', '.join(names)}{suggest(call.name, names)}"
            )
        try:
            error = best_match(validator.iter_errors(call.arguments or {}))
        except Unresolvable as unknown:
            raise EvaluatorError(
                f"schema of {call.name!r}: found the reference {unknown.ref!r}, expected one inside it"
            ) from None
        return None if error is None else f"{call.name}{error.json_path[1:]}: {error.message}"
