"""Records with columns of known names."""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.core import Fault, SuiteError
from pytest_llmeval.exchange._ledger import (
    CaseIds,
    ColumnPart,
    Fate,
    ImportedSource,
    ImportedSuite,
    ImportOptions,
    LeftOutError,
    SourceLedger,
    as_list,
    as_mapping,
    as_text,
    fit_items,
    is_scalar,
    read_records,
)
from pytest_llmeval.exchange._media import ImportedMedia, is_file, medium_part

_JUDGE = "openai:gpt-4.1"
"""The judge where a tool has none in its files."""

_MEANINGS: dict[ColumnPart, str] = {
    "answer": "the prediction of the case",
    "contexts": "contexts of the prediction",
    "criterion": "check judge",
    "expected": "the right answer of the case",
    "expected_tools": "the tool calls that are expected",
    "id": "the id of the case",
    "input": "the input of the case",
    "label": "a label",
    "labels": "labels: texts, numbers and booleans",
    "lost": "no part of a case",
    "messages": "the script of a conversation",
    "tools": "tool_calls of the prediction",
}


@dataclass(frozen=True)
class Column:
    """The meaning of a column of imported records: the part of a case that it becomes.

    Attributes:
        part: Of a case.
        text: The differences, or why it is left out; default: the meaning of the part.
        alone: Whether to unwrap an object with a single text.
    """

    part: ColumnPart
    text: str = ""
    alone: bool = False

    def note(self, column: str, ledger: SourceLedger) -> None:
        """Note the fate of the column."""
        fate = Fate.NOT_IMPORTED if self.part == "lost" else Fate.NEAR if self.text else Fate.SAME
        meaning = _MEANINGS[self.part]
        text = self.text if self.part == "lost" and self.text else f"{meaning}; {self.text}" if self.text else meaning
        ledger.note((column,), f"column {column}", fate, text)


def suite_of_records(
    name: str, ledger: SourceLedger, records: Sequence[Mapping[str, Any]], columns: Mapping[str, Column], folder: Path
) -> ImportedSuite:
    """Build the suite of imported records; columns that are not named are not imported.

    Args:
        name: Of the suite.
        ledger: Of the records, with the columns at the top.
        records: One for each case.
        columns: Name to part; names are compared without regard to case, hyphens and underscores.
        folder: From which records name the files of media.
    """
    by_name = {_folded(header): column for header, column in columns.items()}
    known = {header: by_name[_folded(header)] for header in ledger.data if _folded(header) in by_name}
    for header, column in known.items():
        column.note(header, ledger)
    suite, ids = ImportedSuite(name), CaseIds()
    several = sum(column.part == "input" for column in known.values()) > 1
    media = _RecordMedia(ledger, ImportedMedia(suite, folder), known)
    for number, record in enumerate(records):
        suite.cases.append(_case(media.replaced(record, number), known, ids, several=several))
    if any("checks" in case for case in suite.cases):
        suite.settings["judge"] = {"model": _JUDGE}
    add_evaluators(suite)
    return suite


@dataclass(frozen=True)
class _RecordMedia:
    """The media in imported records.

    Attributes:
        ledger: Of the records.
        media: Of the suite.
        columns: Name to part.
    """

    ledger: SourceLedger
    media: ImportedMedia
    columns: Mapping[str, Column]

    def replaced(self, record: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        """Return a record with media in place of their contents; what is none stays as it is, and is noted."""
        images = as_mapping(next((record[name] for name in _IMAGES if record.get(name)), {}))
        changed = {}
        for name, column in self.columns.items():
            if column.part not in _WITH_MEDIA:
                continue
            value = _without_names(record.get(name))
            if value is not record.get(name):
                text = "an object with nothing but 'file' would name a file here: its text is the value"
                self.ledger.near((name, number), f"file in column {name}", text)
                changed[name] = value
            try:
                new = self.media.shown_in(value, images) if isinstance(value, str) and "[DEEPEVAL:" in value else value
                new = self.media.replaced(new)
            except LeftOutError as error:
                self.ledger.lost((name, number), f"medium in column {name}", f"{error}; it stays text")
                continue
            if new is not value:
                self.ledger.same((name, number), f"medium in column {name}", "a file or an address")
                changed[name] = new
        return {**record, **changed} if changed else record


def _without_names(value: Any) -> Any:
    """Imported data with the text in place of an object that would name a file; itself if it has none."""
    if isinstance(value, list):
        items = [_without_names(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if not isinstance(value, Mapping):
        return value
    if is_file(value) and isinstance(value["file"], str) and medium_part(value) is None:
        return value["file"]
    held = {name: _without_names(child) for name, child in value.items()}
    return value if all(held[name] is child for name, child in value.items()) else held


_WITH_MEDIA: Final = ("answer", "expected", "input")
_IMAGES: Final = ("imagesMapping", "images_mapping")


def _folded(name: str) -> str:
    """The name of an imported column without case, hyphens, underscores and spaces, for comparisons."""
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


def _case(record: Mapping[str, Any], columns: Mapping[str, Column], ids: CaseIds, *, several: bool) -> dict[str, Any]:
    """The case of a suite that an imported record becomes."""
    parts: dict[ColumnPart, dict[str, Any]] = {}
    for name, column in columns.items():
        value = record.get(name)
        if value is not None and value != "":
            if column.alone and len(fields := as_mapping(value)) == 1 and "answer" not in fields:
                (inner,) = fields.values()
                value = inner if isinstance(inner, str) else value
            parts.setdefault(column.part, {})[name] = value
    case: dict[str, Any] = {"id": ids.next(_first(parts, "id"))}
    if messages := _script(_first(parts, "messages")):
        case["messages"] = messages
    elif "input" in parts:
        case["input"] = parts["input"] if several else _first(parts, "input")
    expected = _first(parts, "expected")
    if tools := _calls(_first(parts, "expected_tools")):
        case["expected"] = {"tool_calls": tools, **({"answer": expected} if expected is not None else {})}
    elif expected is not None:
        case["expected"] = expected
    prediction = {
        "answer": _first(parts, "answer"),
        "contexts": written_list(_first(parts, "contexts")),
        "tool_calls": _calls(_first(parts, "tools")),
    }
    present = {key: value for key, value in prediction.items() if value is not None and value != []}
    if "answer" in present or "tool_calls" in present:
        case["prediction"] = present["answer"] if present.keys() == {"answer"} else present
    if (criterion := _first(parts, "criterion")) is not None:
        case["checks"] = [{"judge": str(criterion)}]
    labels = {name: value for name, value in parts.get("label", {}).items() if is_scalar(value)}
    for value in parts.get("labels", {}).values():
        labels |= {str(name): label for name, label in as_mapping(_written(value)).items() if is_scalar(label)}
    if labels:
        case["labels"] = labels
    return case


def _first(parts: Mapping[ColumnPart, Mapping[str, Any]], part: ColumnPart) -> Any:
    """The first value for a part of a case among an imported record's columns; ``None`` if there is none."""
    return next(iter(parts.get(part, {}).values()), None)


def _written(value: Any) -> Any:
    """The data in a cell of an imported table that is JSON or a Python literal; other cells unchanged."""
    if not as_text(value).lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(json.dumps(ast.literal_eval(value)))  # literals only: no name is looked up, nothing is called
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return value


def written_list(value: Any) -> list[Any] | None:
    """The list in a cell of an imported table: JSON, a Python literal, or items between ``|``."""
    data = _written(value)
    if data is None or isinstance(data, list):
        return data
    return [item.strip() for item in data.split("|")] if isinstance(data, str) else [data]


def _calls(value: Any) -> list[Any] | None:
    """The tool calls in a cell of an imported table; ``None`` if there are none."""
    return [_call(raw) for raw in written_list(value) or ()] or None


def _call(call: Any) -> Any:
    """A tool call of an imported record with the keys of predictions."""
    if not isinstance(call, Mapping):
        return call
    names = {"input_parameters": "arguments", "inputParameters": "arguments", "args": "arguments", "output": "result"}
    fields = {names.get(key, key): value for key, value in call.items() if value is not None}
    allowed = ("name", "arguments", "result", "status", "id")
    return {key: value for key, value in fields.items() if key in allowed}


def _script(value: Any) -> list[Any] | None:
    """The user's turns of an imported conversation, as the script of a case; ``None`` if there are none."""
    turns = map(as_mapping, as_list(_written(value)))
    contents = [turn.get("content") for turn in turns if turn.get("role") == "user"]
    return [text for text in fit_items(str, contents) if text.strip()] or None


def add_evaluators(suite: ImportedSuite) -> None:
    """Add evaluators that suit the right answers of an imported suite, or a check if it has none."""
    expected = [case["expected"] for case in suite.cases if case.get("expected") is not None]
    evaluators: list[Any] = []
    if any("tool_calls" in as_mapping(answer) for answer in expected):
        evaluators.append({"tools": {"order": "any_order", "arguments": "partial"}})
    if any(_is_text(answer) or "answer" in as_mapping(answer) for answer in expected):
        evaluators.append({"text": {"metrics": ["exact_match", "f1"]}})
    for case in suite.cases:
        if is_file(case.get("expected")):
            case.setdefault("checks", []).append("same_bytes")
        elif "expected" in case and not _is_text(case["expected"]) and not _has_part(case["expected"]):
            case.setdefault("checks", []).append({"json_equals": case.pop("expected")})
    if evaluators:
        suite.settings["evaluators"] = evaluators
    elif not suite.settings.get("checks") and not any(case.get("checks") for case in suite.cases):
        suite.settings["checks"] = [{"not_empty": True}]


def _has_part(value: Any) -> bool:
    """Whether the expected value of an imported case is an object with an answer or tool calls."""
    return bool({"answer", "tool_calls"} & as_mapping(value).keys())


def _is_text(value: Any) -> bool:
    """Whether the expected value of an imported case is a scalar, or a list of them."""
    return is_scalar(value) or (isinstance(value, list) and bool(value) and all(map(is_scalar, value)))


_CONTEXT = "what the answer should rest on; evaluator claims reads contexts of predictions"
_NOT_ASKED = "it says where the case is from"

DEEPEVAL: Final = {
    "input": Column("input"),
    "actual_output": Column("answer"),
    "expected_output": Column("expected"),
    "retrieval_context": Column("contexts"),
    "context": Column("lost", "the ideal context; give evaluator claims the contexts that were retrieved"),
    "tools_called": Column("tools"),
    "expected_tools": Column("expected_tools"),
    "name": Column("id"),
    "comments": Column("label"),
    "source_file": Column("label"),
    "additional_metadata": Column("labels", "lists and objects are left out"),
    "scenario": Column("input"),
    "user_description": Column("input"),
    "expected_outcome": Column("criterion", "the judge says yes or no"),
    "turns": Column("messages", "what the user says is the script, answers are left out"),
    "chatbot_role": Column("input"),
    "images_mapping": Column("lost", "its images stand where texts show them"),
}
"""Columns of goldens and test cases, single-turn and conversational."""

RAGAS: Final = {
    "user_input": Column("input"),
    "question": Column("input"),
    "query": Column("input"),
    "response": Column("answer"),
    "answer": Column("answer"),
    "reference": Column("expected"),
    "ground_truth": Column("expected"),
    "ground_truths": Column("expected"),
    "grading_notes": Column("criterion", "the judge says yes or no"),
    "expected_output": Column("expected"),
    "retrieved_contexts": Column("contexts"),
    "contexts": Column("contexts"),
    "reference_contexts": Column("lost", _CONTEXT),
    "reference_tool_calls": Column("expected_tools"),
    "rubrics": Column("lost", "write it as a check rubric"),
    "rubric": Column("lost", "write it as a check rubric"),
    "synthesizer_name": Column("label"),
    "persona_name": Column("label"),
    "query_style": Column("label"),
    "query_length": Column("label"),
    "id": Column("id"),
}
"""Columns of datasets before and since 0.2."""

BRAINTRUST: Final = {
    "input": Column("input"),
    "expected": Column("expected"),
    "output": Column("answer"),
    "metadata": Column("labels", "lists and objects are left out"),
    "id": Column("id"),
    "tags": Column("lost", "write them as tags of the cases, which are words"),
    "scores": Column("lost", "scores are computed anew from the answers"),
    "metrics": Column("lost", "figures are measured anew"),
    "created": Column("lost", _NOT_ASKED),
    "span_id": Column("lost", _NOT_ASKED),
    "root_span_id": Column("lost", _NOT_ASKED),
}

LANGSMITH: Final = {
    "inputs": Column("input"),
    "outputs": Column("expected", alone=True),
    "reference_outputs": Column("expected", alone=True),
    "metadata": Column("labels", "lists and objects are left out"),
    "split": Column("label"),
    "id": Column("id"),
    "example_id": Column("id"),
    "dataset_id": Column("lost", _NOT_ASKED),
    "created_at": Column("lost", _NOT_ASKED),
    "modified_at": Column("lost", _NOT_ASKED),
    "source_run_id": Column("lost", _NOT_ASKED),
    "attachments": Column("lost", "files are not part of an input"),
}


def _imported(
    path: Path, display_path: str, options: ImportOptions, columns: Mapping[str, Column], keys: tuple[str, ...]
) -> ImportedSource:
    """Import a file of records as a suite; columns that the user names come first.

    Raises:
        SuiteError: The file cannot be read, or lacks a column.
    """
    if path.suffix == ".py":
        fault = "found a Python file, expected records: save its goldens with dataset.save_as(file_type='json', ...)"
        raise SuiteError([Fault(display_path, 0, 0, "", fault)])
    ledger, records, beside = read_records(path, display_path, keys)
    named = options.columns()
    if absent := sorted(named.keys() - ledger.data.keys()):
        known = ", ".join(ledger.data)
        raise ledger.fault((), f"unknown column {absent[0]!r}, expected one of {known}")
    known_columns = {name: column for name, column in columns.items() if column.part not in options.parts()}
    chosen = {**known_columns, **{name: Column(part) for name, part in named.items()}}
    suite = suite_of_records(options.suite_name(path.stem), ledger, records, chosen, path.parent)
    source = ImportedSource(display_path, suite, [ledger, *beside])
    if not any({"input", "messages"} & case.keys() for case in suite.cases):
        source.refuse(f"the column of the input is missing among {', '.join(ledger.data)}: --input COLUMN")
    return source


import_deepeval = partial(_imported, columns=DEEPEVAL, keys=("goldens", "testCases", "conversationalGoldens"))
import_ragas = partial(_imported, columns=RAGAS, keys=("samples", "data"))
import_braintrust = partial(_imported, columns=BRAINTRUST, keys=("events", "data"))
import_langsmith = partial(_imported, columns=LANGSMITH, keys=("examples", "data"))
import_table = partial(_imported, columns={"id": Column("id")}, keys=())
"""From file, display path and options to a suite: by the columns of a tool, or by those that the user names."""
