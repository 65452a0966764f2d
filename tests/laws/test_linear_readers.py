"""Each function and method that reads a text takes steps as it grows: counted, at a length and at twice as much."""

import ast
import importlib
import inspect
import io
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from project import ROOT

from pytest_llmeval import get_evaluator
from pytest_llmeval.core import Case, LlmevalError, MetricIndex, Neighbours
from pytest_llmeval.data import FaultLog, JsonText, MediaFolder, ModelText
from pytest_llmeval.data.files._json import RejectedError, scan_json
from pytest_llmeval.evaluators import AnswerText
from pytest_llmeval.exchange._ledger import LeftOutError
from pytest_llmeval.gates import DropGate
from pytest_llmeval.judges.questions._forms import ReplyField
from pytest_llmeval.judges.questions._modes import ModeFile
from pytest_llmeval.workbench.reviews._loopback import RefusedError

SHORT, LONG = 150, 300
STEEPEST = 2.6
"""Most times as many steps for a text of twice the length: linear is 2, quadratic 4."""

READS = {
    *("_text", "answer", "block", "body", "cell", "chunk", "cited", "claim", "content", "data", "figure", "head"),
    *("justification", "line", "literal", "message", "number", "numerals", "output", "prediction", "prompt"),
    *("quotation", "quote", "raw", "reply", "commands"),
    *("sentence", "span_text", "template", "text", "utterance", "value", "word", "written"),
}
"""Names of a first parameter that is a text from outside."""

NAMES = {
    *("_outcome", "absent", "address", "annotator", "approved", "argument", "arguments", "assertion", "base"),
    *("before", "canonical", "case", "cluster_by", "column", "crashitem"),
    *("character", "characters", "checkout", "code", "commit", "component", "criteria", "digest", "digits"),
    *("display_path", "evaluator", "event", "expected", "extra", "family", "fault", "field", "file"),
    *("finding", "flag", "folder", "format_name", "function", "gold", "group", "header", "identifier", "ids", "indent"),
    *("key", "kind", "label", "language", "left", "location", "lower"),
    *("mark", "marks", "method", "metric", "mode", "model", "module", "name", "names", "nodeid", "noun"),
    *("old", "on", "option", "order", "out", "outcome", "owner", "package", "page", "part", "path", "pattern", "place"),
    *("plugin", "point", "process", "provider", "question", "reason", "reference", "report", "run", "runner", "sample"),
    *(
        "scorer",
        "section",
        "separators",
        "sign",
        "signature",
        "since",
        "snapshot_location",
        "snapshot_name",
        "source",
        "spec",
    ),
    *(
        "statement",
        "stem",
        "subject",
        "suffix",
        "suite",
        "suite_file",
        "system",
        "tag",
        "task",
        "title",
        "tool",
        "truth",
    ),
    *("unit", "uri", "url", "variable", "variant", "what", "whose", "why", "worker", "workflow"),
}
"""Names of a first parameter that is a name, a part of a declared text, or a text of the package itself."""

UNITS = [
    *("a", "a ", "A.", "0", "0 ", "1,", " ", "\n", "-", "- a\n", ".", ". ", ",", ";", ":", "'", '"', '\\"', "\\", "|"),
    *("(", ")", "()", "[", "]", "[]", "[],", "{", "}", "{}", '{"a":', '"a":1,', '{"a":1}', "[[", "]]", "{{", "{{a}}"),
    *(
        "```",
        "```\n",
        "```json\n",
        "<think>",
        "</think>",
        "<a>",
        "&",
        "#",
        "# a\n",
        "*",
        "**",
        "_",
        "=",
        "a=",
        "http://",
    ),
    *(
        "，",
        "。",
        "“",
        "”",
        "《",
        "》",
        "日",
        "日 ",
        "é",
        "e\u0301",
        "\ud800",
        "\x1b[1m",
        "yes ",
        "no ",
        "a: b\n",
        "- ",
        "!a ",
    ),
]
FEW_UNITS = ["a ", "0 ", "[", '{"a":1,', "```\n", "\\"]
"""Those that every run tries, `FEW` times; a release tries all."""

FEW = 104
"""Even, and beyond the number of brackets from which a depth is counted."""

FRAMES = ["{}", '{{"a":1,{}"a":2}}', "```\n{}\n```", "[{}1]"]

CASE = Case("a", input="q", expected="b", prediction="a")
NEAR = Neighbours([Case("b", input="q", expected="c d", prediction="c d")], ["b", "c d"], "b", {}, "1")

GIVEN: Mapping[str, Callable[[], Any]] = {
    "_case": lambda: CASE,
    "_near": lambda: NEAR,
    "case": lambda: CASE,
    "chosen": list,
    "claim": lambda: "image/png",
    "claims": lambda: (1,),
    "columns": lambda: ("a", "b"),
    "concludes": lambda: str,
    "context": lambda: "a",
    "declared": lambda: None,
    "count": lambda: 2,
    "delimiter": lambda: ",",
    "depth": lambda: 2,
    "display_path": lambda: "s.yaml",
    "end": lambda: 1,
    "environment": dict,
    "expected": lambda: "b",
    "fault_of": lambda: str.strip,
    "faults": lambda: FaultLog("file"),
    "folder": lambda: MediaFolder(Path("absent")),
    "top": lambda: Path("absent"),
    "gold": lambda: "b",
    "ground_truth": lambda: "b",
    "ids": lambda: ["a", "b"],
    "images": dict,
    "indent": lambda: "  ",
    "index": lambda: 1,
    "item": dict,
    "keep_marks": lambda: False,
    "key": lambda: "a",
    "kind": lambda: object,
    "known": lambda: None,
    "label": lambda: "a",
    "levels": lambda: [0.0, 1.0],
    "limit": lambda: 60,
    "listed": list,
    "message": lambda: "found nothing",
    "metric": lambda: "f1",
    "metrics": lambda: MetricIndex.from_evaluators({"text": get_evaluator("text")}),
    "most": lambda: 3.0,
    "name": lambda: "a",
    "names": lambda: ["a", "b"],
    "near": lambda: NEAR,
    "no_names": frozenset,
    "now": lambda: datetime.now(UTC),
    "numbers": lambda: (1,),
    "options": lambda: ["a", "b"],
    "other": lambda: "0123456789abcdef",
    "others": lambda: ["a", "b"],
    "passages": lambda: (1,),
    "place": lambda: 0,
    "places": lambda: [(1,), (2,)],
    "quantities": tuple,
    "rank": lambda: _rank,
    "reference": lambda: "b",
    "references": lambda: ["b"],
    "rule": lambda: "pair form",
    "scale": lambda: None,
    "secret": lambda: "0123456789abcdef",
    "secrets": lambda: ["0123456789abcdef"],
    "separators": lambda: ";",
    "shape": lambda: "Aa",
    "span": lambda: (0, 1),
    "spans": lambda: [(0, 1)],
    "split": lambda: str.split,
    "start": lambda: 0,
    "tag": lambda: "tag:yaml.org,2002:int",
    "text": lambda: "a b",
    "texts": lambda: 2,
    "tokenizer": lambda: "words",
    "truth": lambda: "a",
    "utterance_text": lambda: "a b",
    "value": lambda: 1.0,
    "values": dict,
    "variables": lambda: {"a": "b"},
    "what": lambda: "a",
    "whole": lambda: True,
    "width": lambda: 80,
    "write": lambda: str,
}
"""What further parameters get, by their names: a reader with another one needs an entry."""

REACHED: Mapping[str, str] = {
    "cli._options.Option.value": "the function of each option that reads its value",
    "core._media.Media._read": "_type_of and _check_dimensions",
    "data.files._json.JsonParser._float": "JsonParser.parse",
    "data.files._json.JsonParser._integer": "JsonParser.parse",
    "data.files._json._Scanner.__init__": "scan_json",
    "data.files._json._Scanner.scalar": "scan_json",
    "data.files._json._has_lone_surrogate": "JsonParser.parse",
    "data.files._json._syntax_message": "JsonParser.parse",
    "data.files._json._too_deep": "JsonParser.parse",
    "data.files._yaml._character_fault": "load_yaml",
    "data.files._yaml._load": "load_yaml",
    "data.files._yaml._syntax_fault": "load_yaml",
    "evaluators._answers._is_truncated": "json_in",
    "tasks._replies._at_trailing_comma": "closing_object",
    "tasks._replies._likeliest": "closing_object",
    "tasks._replies._values": "closing_object",
    "evaluators._text._Family.best": "TextEvaluator.measure",
    "evaluators.checks._kinds._verdict_text": "text of a verdict that has been read",
    "evaluators.measures._sentences._is_end": "split_sentences",
    "evaluators.measures._tokens._replace_suffix": "treebank_tokens",
    "exchange._patterns._Translation._peek": "python_pattern",
    "exchange._patterns._Translation._take": "python_pattern",
    "exchange.promptfoo._prompts.PromptReader._read": "its parts: _names_file, and the functions that read a prompt",
    "exchange.promptfoo._services._SentTexts._sent": "its parts: the functions that read a template",
    "exchange.traces._spans.JsonPieces._fault": "a message of the package's own",
    "gates._gate.Gate.from_text": "LimitGate.from_text",
    "gates._limit._Parts.__init__": "gate_form_fault",
    "gates._limit._unknown": "gate_form_fault",
    "judges.clients._base.Dialect.refuses_form": "those of its classes",
    "judges.questions._replies._check_prose": "Mode.read_text",
    "judges._protocol._read_expected": "Mode.read_text",
    "plugin._progress.Progress._write": "a line of the package's own",
    "services._processes.Program.exchange": "sends a line, and reads one within limits",
    "services._processes.Program.exchange_if_alive": "sends a line, and reads one within limits",
    "services._processes.Program.send": "sends a line",
    "suites._reading.SuiteReading.is_expression": "the library of these expressions",
    "targets._network.CommandTarget._read": "JsonText.parse_reply",
    "tasks.agents._workspace.WorkspaceTarget._contamination": "_is_shown, for each line of a file",
    "tasks.emotion_cause._pair_files._StepReader.__init__": "splits its lines, which their patterns read",
    "run._run_record.UsedJudgements.take": "a text of the package's own",
    "tasks.emotion_cause._pair_files._StepReader._fault": "a message of the package's own",
    "tasks.fact_check._mentions._Chinese.introduced": "find_names",
    "tasks.fact_check._mentions._Chinese.name": "find_names",
    "tasks.fact_check._mentions._Chinese.speakers": "find_names",
    "tasks.fact_check._mentions._introduced": "find_citations",
    "tasks.fact_check._mentions._is_host": "find_citations",
    "tasks.fact_check._mentions._stretch": "find_citations",
    "tasks.fact_check._mentions._whole_number": "find_names",
    "tasks.retrieval._ranking._parts": "split_ranking",
    "tasks.similarity._embeddings.EmbeddingJudge._coming": "sends a text",
    "workbench._comment._Sheet.add": "adds a block of the package's own",
    "workbench.mutation._mutators._substituted": "the mutators that change a word",
    "workbench.reviews._command.LabelFile.save": "LabelFile._sent",
    "workbench.reviews._loopback._Handler._save": "LabelFile._sent",
}
"""Readers of what another reader has found in the same text, and which that is, or readers of texts of the package."""

RECEIVERS: Mapping[str, Callable[[type], Any]] = {
    "baselines._comparable.Stamp": lambda kind: kind,
    "cli._console.NumberArgument": lambda kind: kind(least=0),
    "core.wording.LogWriter": lambda kind: kind(io.StringIO()),
    "core._case.CaseLabels": lambda kind: kind,
    "core._media.Media": lambda kind: kind,
    "core._media_forms.MediaText": lambda kind: kind,
    "data.files._json.JsonParser": lambda kind: kind(FaultLog("file")),
    "data.files.documents.Document": lambda kind: kind,
    "data.files._writing.OutputFile": lambda kind: kind(Path(os.devnull)),
    "data.files._writing._Echo": lambda kind: kind(),
    "evaluators._answers.References": lambda kind: kind(["a b"]),
    "evaluators._calls.ToolCall": lambda kind: kind("find", {}),
    "evaluators._patterns.TimedPattern": lambda kind: kind.compile("(a|b)+c"),
    "evaluators._text.TextEvaluator": lambda kind: kind(ignore=("citations",)),
    "evaluators.measures._tokens._RougeTable": lambda kind: kind(lambda text, _: text.split()),
    "exchange._media.ImportedMedia": lambda kind: kind(None),
    "exchange.promptfoo._prompts.PromptReader": lambda kind: kind(None),
    "gates._gate.Gate": lambda kind: kind,
    "gates._limit.LimitGate": lambda kind: kind,
    "gates._reading.GateReader": lambda kind: kind(GIVEN["metrics"](), dict, print, "without"),
    "gates._rules.GateRules": lambda kind: kind(DropGate),
    "judges._options.CachePlace": lambda kind: kind,
    "judges._protocol.Mode": lambda _: ModeFile.mode_named("continuous"),
    "judges._protocol.Question": lambda kind: kind,
    "judges.clients._http.Anthropic": object.__new__,
    "judges.clients._gemini.Gemini": object.__new__,
    "judges.clients._http.OpenAI": object.__new__,
    "judges.questions._replies.ReplyObject": lambda kind: kind,
    "judges.questions._forms.ReplyForm": lambda kind: kind({"score": ReplyField(min=1, max=5)}),
    "run._shards.Shard": lambda kind: kind,
    "services._secrets.FaultSources": lambda kind: kind,
    "services._secrets.Secrets": lambda kind: kind(frozenset({"0123456789abcdef"})),
    "suites._registry.Registry": lambda kind: kind(),
    "services._secrets.Redactor": lambda kind: kind(["0123456789abcdef"], {}),
    "tasks.fact_check._evidence.EvidenceMatcher": lambda kind: kind(),
    "tasks.retrieval._documents.DocumentIds": lambda kind: kind(),
    "workbench.reviews._command.LabelFile": lambda kind: kind(None, None),
}
"""The objects whose methods are readers: how to make each of its class."""

NO_TEXT_FROM_OUTSIDE = {
    "add_yaml_fault": "`load_yaml` calls it with the fault that it found",
    "_flip_signs": "the bytes of an array of the package's own",
    "scan_json": "valid JSON only: `InputFile.read_document` and parsers call it with what they have read",
}
"""Readers whose text is no text from outside as it comes, and why."""


def _rank(value: object) -> int:
    return isinstance(value, dict)


KINDS: Mapping[str, Callable[[str], str | bytes]] = {
    "str": str,
    "bytes": lambda text: text.encode("utf-8", "surrogatepass"),
    "bytes | str": str,
    "str | bytes": str,
}
"""What makes a first parameter of a text, by its annotation."""


@cache
def first_parameters() -> list[tuple[str, str, str]]:
    """Return every function and method whose first parameter is a text: its name, that parameter, its annotation.

    The receiver of a method is no parameter; what makes an error gets a message of the package.
    """
    found = []
    for path in sorted((ROOT / "pytest_llmeval").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.endswith(("Error", "Fault")):
                holders = [(f"{module}.{node.name}", method) for method in node.body]
            else:
                holders = [(module, node)]
            for holder, function in holders:
                if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                is_bound = holder != module and "staticmethod" not in map(ast.unparse, function.decorator_list)
                parameters = [*function.args.posonlyargs, *function.args.args][is_bound:]
                if parameters and parameters[0].annotation is not None:
                    kind = ast.unparse(parameters[0].annotation)
                    if kind in KINDS:
                        found.append((f"{holder}.{function.name}", parameters[0].arg, kind))
    return found


def named(name: str) -> Any:
    holder, _, function = name.rpartition(".")
    make = RECEIVERS.get(holder.removeprefix("pytest_llmeval."))
    if make is None:
        return getattr(importlib.import_module(holder), function)
    module, _, kind = holder.rpartition(".")
    return getattr(make(getattr(importlib.import_module(module), kind)), function)


READERS = {
    name: kind
    for name, parameter, kind in first_parameters()
    if parameter in READS
    and name.removeprefix("pytest_llmeval.") not in REACHED
    and name.rpartition(".")[2] not in NO_TEXT_FROM_OUTSIDE
}


def further(reader: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments of a reader besides the text."""
    _, *others = inspect.signature(reader).parameters.values()
    return {each.name: GIVEN[each.name]() for each in others if each.default is each.empty}


def steps_of(reader: Callable[..., Any], text: str | bytes) -> int:
    """Return the lines and calls that reading takes, with the elements that a list is searched for or counted in."""
    steps = 0

    def line(_: FrameType, event: str, __: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return line

    def call(_: FrameType, event: str, function: Any) -> None:
        nonlocal steps
        if event == "c_call":
            owner = getattr(function, "__self__", None)
            if isinstance(owner, list | tuple) and function.__name__ in ("count", "index", "remove"):
                steps += len(owner)
            else:
                steps += 1

    others = further(reader)
    sys.settrace(line)
    sys.setprofile(call)
    try:
        found = reader(text, **others)
        if isinstance(found, Iterator):
            list(found)
    except (LlmevalError, LeftOutError, RefusedError, RejectedError, ValueError, RecursionError, ArgumentTypeError):
        pass
    finally:
        sys.setprofile(None)
        sys.settrace(None)
    return steps


HOLDERS: Mapping[str, Callable[[str], Any]] = {
    "AnswerText.json_or_text": lambda text: AnswerText(text).json_or_text(),
    "AnswerText.read_json": lambda text: AnswerText(text).read_json(),
    "AnswerText.spoken": lambda text: AnswerText(text).spoken(),
    "JsonText.is_readable": lambda text: JsonText(text).is_readable(),
    "JsonText.load": lambda text: JsonText(text).load(),
    "JsonText.parse_reply": lambda text: JsonText(text).parse_reply(),
    "ModelText.behind_thoughts": lambda text: ModelText(text).behind_thoughts(),
    "ModelText.spoken": lambda text: ModelText(text).spoken(),
}
"""Readers of a text that their object holds."""


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.release)])
@pytest.mark.parametrize("name", [*READERS, *HOLDERS])
def test_a_reader_takes_steps_as_its_text_grows(name: str, whole: bool) -> None:
    reader, make = (HOLDERS[name], str) if name in HOLDERS else (named(name), KINDS[READERS[name]])
    frames, units, times = (FRAMES, UNITS, (SHORT, LONG)) if whole else (FRAMES[:1], FEW_UNITS, (FEW, 2 * FEW))
    steep = {}
    for frame in frames:
        for unit in units:
            many = steps_of(reader, make(frame.format(unit * times[1])))
            if many <= STEEPEST * times[0]:
                continue
            few = steps_of(reader, make(frame.format(unit * times[0])))
            # Beyond the length to which a text is cut, more steps are taken once: they are steep if they grow again.
            if many > STEEPEST * few:
                most = steps_of(reader, make(frame.format(unit * 2 * times[1])))
                if most > STEEPEST * many:
                    steep[frame, unit] = few, many, most
    assert steep == {}


@pytest.mark.parametrize("unit", ["[],", "{},", '{"a":[]},', '"\\"",', "1,", '"日",', "\n1,"])
def test_places_of_json_take_steps_as_it_grows(unit: str) -> None:
    few, many = (steps_of(scan_json, f"[{unit * times}1]") for times in (SHORT, LONG))
    assert many <= STEEPEST * few


def test_every_first_parameter_that_is_a_text_is_known() -> None:
    parameters = {parameter for _, parameter, _ in first_parameters()}
    assert parameters == READS | NAMES
    names = {name.removeprefix("pytest_llmeval.") for name, *_ in first_parameters()}
    assert names >= REACHED.keys()
    assert {name.rpartition(".")[0].removeprefix("pytest_llmeval.") for name in READERS} >= RECEIVERS.keys()


def test_readers_are_found() -> None:
    names = {name.rpartition(".")[2] for name in READERS}
    assert names >= {"closing", "are_in", "load_yaml", "read_transcript"}


@pytest.mark.parametrize(
    "slow",
    [
        lambda text: [text for at in range(len(text)) for _ in range(at)],
        lambda text: [list(text).count(character) for character in text],
    ],
)
def test_slow_readers_are_noticed(slow: Callable[[str], object]) -> None:
    assert steps_of(slow, "a" * LONG) > STEEPEST * steps_of(slow, "a" * SHORT)
