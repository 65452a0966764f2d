"""Files of tests: the checkout, suites in folders, imported suites, targets, and traces."""

import ast
import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml
from pydantic import TypeAdapter

from pytest_llmeval.cli import main
from pytest_llmeval.core import Case, Fault, PredictionError
from pytest_llmeval.data import Source
from pytest_llmeval.suites import LoadedSuite, Registry, load_suite
from pytest_llmeval.targets import BatchTarget

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
CONFORMANCE = SHARED / "conformance"
IMPORTERS = SHARED / "data" / "importers"
"""Files of other tools, as their projects published them."""


def script(name: str) -> Any:
    """Return a script of the project's own as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def modules_that_say(word: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the modules of the package whose text has a word, as Python parses them."""
    for path in sorted((ROOT / "pytest_llmeval").rglob("*.py")):
        if word in (text := path.read_text(encoding="utf-8")):
            yield path, ast.parse(text)


Loaded: TypeAlias = tuple[list[Case], list[str]]
"""Cases, and faults as they are shown."""


def write(name: str, data: Any) -> str:
    """Write a file into the current folder, text as it is and other data as JSON; return its name."""
    Path(name).write_text(data if isinstance(data, str) else json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return name


def cases_of(source: Source, folder: Path) -> Loaded:
    """Load what a source names in a folder."""
    faults: list[Fault] = []
    return source.load(folder, faults), list(map(str, faults))


def load_source(name: str, folder: Path, **options: Any) -> Loaded:
    """Load by the source of a name, with options as a suite file gives them."""
    return cases_of(
        TypeAdapter(Registry.installed().source(name)).validate_json(json.dumps(options), strict=True), folder
    )


def load_text(text: str, folder: Path, *, root: Path | None = None, registry: Registry | None = None) -> LoadedSuite:
    """Write ``s.eval.yaml`` into a folder and load it."""
    path = folder / "s.eval.yaml"
    path.write_text(text, encoding="utf-8")
    return load_suite(path, registry or Registry.installed(), root=root or folder, display_path=path.name)


@dataclass(frozen=True)
class Imported:
    """What an import wrote and printed.

    Attributes:
        code: The exit code.
        out: Standard output.
        err: Standard error.
        folder: Where it wrote.
    """

    code: int
    out: str
    err: str
    folder: Path

    def suite(self, name: str = "suite") -> Any:
        """Return the content of a suite file."""
        return yaml.safe_load((self.folder / f"{name}.eval.yaml").read_text(encoding="utf-8"))

    @property
    def report(self) -> str:
        """The text of IMPORT.md."""
        return (self.folder / "IMPORT.md").read_text(encoding="utf-8")


def write_source(folder: Path, name: str, content: Any) -> Path:
    """Write a source: text as it is, data as JSON, which is YAML too."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def run_import(
    capsys: pytest.CaptureFixture[str], format_name: str, *arguments: object, to: Path | None = None
) -> Imported:
    """Run ``llmeval import``; what is written must be free of faults."""
    target = to or Path("imported")
    code = main(["import", format_name, *map(str, arguments), "--to", str(target)])
    captured = capsys.readouterr()
    if any(target.rglob("*.eval.yaml")):
        valid = main(["validate", str(target)])
        assert valid == 0, capsys.readouterr().out
        capsys.readouterr()
    return Imported(code, captured.out, captured.err, target)


def source_paths(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value in a source that is neither a list nor an object, and of empty ones."""
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from source_paths(value, (*path, key))
    elif isinstance(data, list) and data:
        for number, value in enumerate(data):
            yield from source_paths(value, (*path, number))
    else:
        yield path


def echoed(messages: Any) -> str:
    return f"{len(messages)} {messages[-1]['content']}"


class Echo(BatchTarget):
    batch = 2

    async def answer(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        return [echoed(each) for each in inputs]

    async def aclose(self) -> None:
        """Have nothing to close."""


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(each) for each in value]}}
        case dict():
            return {"kvlistValue": {"values": attributes(value)}}
    return {"stringValue": value}


def attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them."""
    return [{"key": name, "value": _value(each)} for name, each in given.items()]


def span(
    trace: str, name: str, parent: str, start: int, end: int, given: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """Return a span; its id is also its name, and times are seconds."""
    return {
        "traceId": trace,
        "spanId": name,
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": str(start * 10**9),
        "endTimeUnixNano": str(end * 10**9),
        "attributes": attributes(given),
        **more,
    }


def export(*spans: dict[str, Any], service: str = "shop") -> dict[str, Any]:
    """Return what an exporter sends for spans of one service."""
    scoped = {"scope": {"name": "tests"}, "spans": list(spans)}
    resource = {"attributes": attributes({"service.name": service})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]}


def _said(*messages: tuple[str, dict[str, Any]]) -> str:
    return json.dumps([{"role": role, "parts": [part]} for role, part in messages])


_ASKED = ("user", {"type": "text", "content": "Refund order 7"})
_CALLED = ("assistant", {"type": "tool_call", "id": "c1", "name": "refund", "arguments": {"order": 7}})
_RETURNED = ("tool", {"type": "tool_call_response", "id": "c1", "response": "no such order"})
_TOLD = ("assistant", {"type": "text", "content": "I could not find order 7."})
_CHAT = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "gpt-5"}
_A = "a" * 32

AGENT = [
    span(
        _A,
        "agent",
        "",
        1,
        9,
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "bot",
            "gen_ai.conversation.id": "conv-1",
            "gen_ai.usage.input_tokens": 30,
        },
    ),
    span(
        _A,
        "second chat",
        "agent",
        5,
        8,
        {
            **_CHAT,
            "gen_ai.input.messages": _said(_ASKED, _CALLED, _RETURNED),
            "gen_ai.output.messages": _said(_TOLD),
            "gen_ai.usage.input_tokens": 20,
            "gen_ai.usage.output_tokens": 5,
        },
    ),
    span(
        _A,
        "execute_tool refund",
        "agent",
        3,
        4,
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "refund",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": '{"order": 7}',
        },
        status={"code": 2},
    ),
    span(
        _A,
        "first chat",
        "agent",
        2,
        3,
        {
            **_CHAT,
            "gen_ai.input.messages": _said(_ASKED),
            "gen_ai.output.messages": _said(_CALLED),
            "gen_ai.usage.input_tokens": 10,
            "gen_ai.usage.output_tokens": 7,
        },
    ),
]
"""Spans of an agent that calls a tool, which fails, by the conventions of OpenTelemetry; not in order."""

_B = "b" * 32
_IN, _OUT = "llm.input_messages", "llm.output_messages.0.message"
RAG = [
    span(
        _B,
        "rag",
        "",
        1,
        5,
        {"openinference.span.kind": "CHAIN", "input.value": "How long?", "output.value": "30 days."},
    ),
    span(
        _B,
        "retrieve",
        "rag",
        1,
        2,
        {
            "openinference.span.kind": "RETRIEVER",
            "retrieval.documents.0.document.content": "Refunds take 30 days.",
            "retrieval.documents.0.document.score": 0.9,
            "retrieval.documents.1.document.content": "Shipping is free.",
        },
    ),
    span(
        _B,
        "llm",
        "rag",
        2,
        4,
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "gpt-4o",
            f"{_IN}.0.message.role": "system",
            f"{_IN}.0.message.content": "Be kind",
            f"{_IN}.1.message.role": "user",
            f"{_IN}.1.message.contents.0.message_content.type": "text",
            f"{_IN}.1.message.contents.0.message_content.text": "How long?",
            f"{_OUT}.role": "assistant",
            f"{_OUT}.content": "30 days.",
            f"{_OUT}.tool_calls.0.tool_call.id": "t1",
            f"{_OUT}.tool_calls.0.tool_call.function.name": "log",
            f"{_OUT}.tool_calls.0.tool_call.function.arguments": '{"x": 1}',
            "llm.token_count.prompt": 50,
            "llm.token_count.completion": 4,
            "llm.cost.total": 0.002,
        },
    ),
]
"""Spans of retrieval and generation by the conventions of OpenInference."""
