"""Published tools and skills as files."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from msgspec import Struct

from pytest_llmeval.core import EvaluatorError, Fault, PredictionError, SuiteError, excerpt, unknown_name
from pytest_llmeval.data import InputFile, OutputFile, kind
from pytest_llmeval.evaluators import AnswerValue, JsonSchema, ToolCall
from pytest_llmeval.services import Secrets

_PARAMETERS: Final = ("parameters", "input_schema", "inputSchema")
"""Where definitions of tools have the schema of the arguments: OpenAI, Anthropic, MCP."""

_PYDANTIC_AI: Final = "parameters_json_schema"
_SKILL: Final = "SKILL.md"


class ListedTool(Struct, frozen=True):
    """A tool or skill in a published catalogue: name, description and parameter schema.

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
    """Read a catalogue of tools or skills, by name, from a file or a folder of skills.

    Args:
        path: A JSON or YAML file with definitions as OpenAI, Anthropic or an MCP server (``tools/list``) write them.
            It may be a folder with skills, whose ``SKILL.md`` have name and description at their top.

    Raises:
        EvaluatorError: It cannot be read, or has another form.
    """
    listed = _skills(path) if path.is_dir() else _definitions(path)
    tools: dict[str, ListedTool] = {}
    for tool in listed:
        if tool.name in tools:
            raise EvaluatorError(f"{path.name}: found the tool {tool.name!r} twice, expected it once")
        tools[tool.name] = tool
    if not tools:
        raise EvaluatorError(f"{path.name} has no tool")
    return tools


def _definitions(path: Path) -> Iterator[ListedTool]:
    """Yield the tools of a catalogue file: a list of tool definitions, as MCP and model APIs write them."""
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
    """Yield an agent's skills from a folder: the name and description at the top of each skill file."""
    for path in sorted(folder.rglob(_SKILL)):
        name = path.relative_to(folder).as_posix()
        try:
            data = InputFile(path, name).read_front_matter("a skill")[0].data
        except SuiteError as error:
            raise EvaluatorError(str(error)) from None
        if not isinstance(data.get("name"), str):
            raise EvaluatorError(f"{name}: name is missing at the top: write '---', name, description, '---'")
        yield ListedTool(data["name"], str(data.get("description") or ""))


def _content(path: Path) -> Any:
    """The data of a tool catalogue's file; an unreadable file is an error of the evaluator."""
    try:
        return InputFile(path, path.name).read_document().data
    except SuiteError as error:
        raise EvaluatorError(str(error)) from None


def _definition(entry: Any) -> Mapping[str, Any] | None:
    """The named tool definition in an entry of a catalogue's list; ``None`` if the entry has none."""
    inner = entry.get("function", entry) if isinstance(entry, Mapping) else None
    return inner if isinstance(inner, Mapping) and isinstance(inner.get("name"), str) else None


def read_schemas(path: Path) -> Mapping[str, Any]:
    """Read a JSON or YAML file: tool to JSON Schema, a list of definitions as sent to models, or a snapshot of MCP.

    Raises:
        EvaluatorError: The file cannot be read, or has another form.
    """
    data = _content(path)
    if isinstance(data, Mapping) and isinstance(data.get("tools"), list):
        data = data["tools"]
    if isinstance(data, Mapping):
        return data
    if not isinstance(data, list):
        raise EvaluatorError(
            f"{path.name}: found {AnswerValue(data).kind}, expected tools by name, or a list of definitions"
        )
    schemas: dict[str, Any] = {}
    for number, entry in enumerate(data):
        inner = _definition(entry)
        if inner is None:
            why = f"found {AnswerValue(entry).kind}, expected the definition of a tool with its name"
            raise EvaluatorError(f"{path.name}[{number}]: {why}")
        schemas[inner["name"]] = next((inner[key] for key in (*_PARAMETERS, _PYDANTIC_AI) if key in inner), {})
    return schemas


@dataclass(frozen=True)
class ToolSchemas:
    """The tools of an agent and the JSON Schemas of their arguments, to find invalid calls.

    Attributes:
        schemas: Name of a tool to the JSON Schema of its arguments.

    Raises:
        ValueError: A schema is none.
    """

    schemas: Mapping[str, Any]

    def __post_init__(self) -> None:
        _ = self._compiled

    def __reduce__(self) -> tuple[type["ToolSchemas"], tuple[Mapping[str, Any]]]:
        """Leave out the compiled schemas, which cannot be pickled."""
        return ToolSchemas, (self.schemas,)

    @cached_property
    def _compiled(self) -> Mapping[str, JsonSchema]:
        from jsonschema import SchemaError

        compiled: dict[str, JsonSchema] = {}
        for name, schema in self.schemas.items():
            if not isinstance(schema, dict | bool):
                raise ValueError(f"{name}: found {AnswerValue(schema).kind}, expected a JSON Schema")  # noqa: TRY004 (a fault)
            try:
                compiled[name] = JsonSchema.compile(schema)
            except SchemaError as error:
                raise ValueError(f"{name}{error.json_path[1:]}: {error.message}, expected a JSON Schema") from None
        return compiled

    def fault(self, call: ToolCall) -> str | None:
        """Say why a call is not valid; ``None`` if it is."""
        from jsonschema.exceptions import best_match

        if call.fault is not None:
            return call.fault
        compiled = self._compiled.get(call.name)
        if compiled is None:
            return unknown_name("tool", call.name, self._compiled)
        try:
            error = best_match(compiled.errors(call.arguments or {}))
        except EvaluatorError as why:
            raise EvaluatorError(f"schema of {call.name!r}: {why}") from None
        return None if error is None else f"{call.name}{error.json_path[1:]}: {error.message}"


RECORD: Final = "LLMEVAL_MCP=record"
"""Setting with which results are recorded."""

WITHHELD: Final = "withheld"
_ResultPlace: TypeAlias = tuple[str, str, str, int]
"""Tool, arguments, case, and how many equal calls the case made before."""


@dataclass
class RecordedResults:
    """A case's calls of real tools and the file of recorded results that replays them.

    Attributes:
        path: The file (JSONL).
        case: Id of the case.
        tools: The definitions of the tools.
        rows: By tool, arguments, case and number of the call.
    """

    path: Path
    case: str
    tools: Sequence[Mapping[str, Any]] = ()
    rows: dict[_ResultPlace, dict[str, Any]] = field(default_factory=dict)
    _numbers: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def read(cls, path: Path, case: str) -> Self:
        """Read a file.

        Raises:
            PredictionError: It is absent, or not one of recorded results.
        """
        if not path.exists():
            raise PredictionError(f"{path} does not exist; run once with {RECORD} to call the server")
        recorded, faults = cls(path, case), list[Fault]()
        for line, row in InputFile(path).read_jsonl(faults):
            if isinstance(row, dict) and isinstance(row.get("tools"), list):
                recorded.tools = row["tools"]
            elif _is_row(row):
                recorded.rows[row["tool"], _line(row["arguments"]), row["case"], row.get("nth", 0)] = row
            else:
                expected = "expected an object with tools, or with tool, arguments, case and result"
                faults.append(Fault(str(path), line, 1, "", expected))
        if faults:
            raise PredictionError(str(SuiteError(faults)))
        return recorded

    def _next_place(self, tool: str, arguments: Mapping[str, Any]) -> _ResultPlace:
        key = tool, _line(arguments)
        self._numbers[key] += 1
        return *key, self.case, self._numbers[key] - 1

    def replayed(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the recorded result of the next call: that of this case, or else of all others if they agree.

        Raises:
            PredictionError: There is none.
        """
        place = self._next_place(tool, arguments)
        rows = [row for at, row in self.rows.items() if (*at[:2], at[3]) == (*place[:2], place[3])]
        row = self.rows.get(place) or (
            rows[0] if len({_line(candidate["result"]) for candidate in rows}) == 1 else None
        )
        if row is not None and WITHHELD not in row:
            result: dict[str, Any] = row["result"]
            return result
        why = "is not recorded" if row is None else "is not recorded, since its result has a secret,"
        call = f"{tool}({excerpt(_line(arguments)[1:-1], 120)})"
        raise PredictionError(f"{call} {why} in {self.path.name}; run once with {RECORD} to call the server")

    def add(self, tool: str, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Record a result; one with the value of a secret variable is left out, since the file is committed."""
        place = self._next_place(tool, arguments)
        row: dict[str, Any] = {"tool": tool, "arguments": dict(arguments), "case": self.case, "result": result}
        if Secrets.of_variables().without(text := _line(result)) != text:
            row |= {"result": None, WITHHELD: True}
        self.rows[place] = row | ({"nth": place[3]} if place[3] else {})

    def keep(self) -> None:
        """Write what this case recorded into the file, which other cases write as well.

        Raises:
            OSError: It cannot be written.
            PredictionError: It has another content.
        """

        def merged() -> str:
            stored = RecordedResults.read(self.path, self.case).rows if self.path.exists() else {}
            rows = {**stored, **self.rows}
            lines = [{"tools": self.tools}, *(rows[place] for place in sorted(rows))]
            return "".join(f"{_line(line)}\n" for line in lines)

        OutputFile(self.path).rewrite(merged)


def _is_row(row: Any) -> bool:
    """Whether a line of recorded tool results has the tool, the case, the arguments and the result of a call."""
    texts = isinstance(row, dict) and all(isinstance(row.get(key), str) for key in ("tool", "case"))
    return texts and isinstance(row.get("arguments"), dict) and isinstance(row.get("nth", 0), int) and "result" in row


def _line(value: Any) -> str:
    """The arguments or result of a recorded tool call as JSON text, equal for equal values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
