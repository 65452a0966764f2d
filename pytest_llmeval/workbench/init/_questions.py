"""The questions of a project, their columns, and the form of one answer of its application."""

import asyncio
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_llmeval.core import (
    MISSING,
    Fault,
    LlmevalError,
    PredictionError,
    SuiteError,
    counted,
    describe_prediction,
    format_error,
    origin,
    search,
    several,
    suggest,
)
from pytest_llmeval.data import case_id, id_fault, load_json, read_csv, read_jsonl, read_text
from pytest_llmeval.run import json_like
from pytest_llmeval.targets import call_target, load_target
from pytest_llmeval.workbench._project import TargetPlace

_FORMATS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_DELIMITERS = (",", ";", "\t", "|")

_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "question": ("question", "query", "user_input", "input", "prompt", "问题"),
    "expected": (
        *("expected", "expected_answer", "expected_output", "ground_truth", "reference", "answer"),
        *("参考答案", "标准答案", "答案"),
    ),
    "contexts": ("contexts", "context", "passages", "上下文"),
    "documents": ("gold_ids", "expected_ids", "expected_documents", "document_ids", "source", "文档编号"),
    "id": ("id", "question_id", "no", "编号"),
    "label": ("category", "topic", "question_type", "type", "类别"),
}
"""Part of a case to the names of columns that are its default, the most usual first."""
_SEPARATORS = (";", "|", ",")
_MOST_GROUPS = 12


class QuestionColumns(NamedTuple):
    """The columns of a file of questions; empty for what it does not have.

    Attributes:
        question: What the target receives.
        expected: The right answer.
        contexts: Passages that the target receives with the question.
        id: Names the cases.
        label: Groups the cases.
        documents: Ids of the documents that should be retrieved.
    """

    question: str
    expected: str = ""
    contexts: str = ""
    id: str = ""
    label: str = ""
    documents: str = ""


class QuestionFile(NamedTuple):
    """The rows of a file of questions.

    Attributes:
        path: The file.
        format: Name of the source that reads it.
        delimiter: Between the cells of a table; empty for other files.
        rows: Column to value, row by row; at least one.
    """

    path: Path
    format: str
    delimiter: str
    rows: Sequence[Mapping[str, Any]]

    @property
    def columns(self) -> list[str]:
        """The columns of all rows, in the order of the file."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def values(self, column: str) -> list[Any]:
        """Return what the rows have in a column, without absent and empty values."""
        return [row[column] for row in self.rows if row.get(column) not in (None, "", [])]


def read_questions(path: Path) -> QuestionFile:
    """Read a file of questions: CSV, JSON lines, or a JSON list of objects.

    Raises:
        LlmevalError: It cannot be read, or it has no row.
    """
    form = _FORMATS.get(path.suffix.lower())
    if form is None:
        raise LlmevalError(f"--rag {path}: found suffix {path.suffix!r}, expected one of {', '.join(_FORMATS)}")
    faults: list[Fault] = []
    delimiter = _delimiter(path) if form == "csv" else ""
    if form == "csv":
        rows: Sequence[Any] = [row for _, row in read_csv(path, str(path), faults, delimiter=delimiter)]
    elif form == "jsonl":
        rows = [row for _, row in read_jsonl(path, str(path), faults)]
    else:
        data = load_json(path, str(path)).data
        rows = data if isinstance(data, list) else [data]
    if faults:
        raise SuiteError(faults)
    if wrong := [number for number, row in enumerate(rows, 1) if not isinstance(row, Mapping)]:
        raise LlmevalError(f"{path}: row {wrong[0]} is no object, expected a list of objects with a question each")
    if not rows:
        raise LlmevalError(f"{path}: found no row, expected one for each question")
    return QuestionFile(path, form, delimiter, rows)


def _delimiter(path: Path) -> str:
    """Return the character that is most frequent in the line of column names."""
    first = next(iter(read_text(path, str(path), "a line of column names").splitlines()), "")
    return max(_DELIMITERS, key=first.count)


def ask(question: str, default: str) -> str:
    """Ask a question; without a reply, the default is taken. Nobody is asked where there is no terminal: empty."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return ""
    try:
        return input(f"{question} [{default}] ").strip() or default
    except EOFError:
        return ""


def find_columns(file: QuestionFile, chosen: Mapping[str, str | None]) -> QuestionColumns:
    """Return the columns of a file: those that the user names, or else those with usual names.

    Args:
        file: The file.
        chosen: Part to the column that the user named.

    Raises:
        LlmevalError: A column that was named does not exist, or which one has the question is not clear.
    """
    names = file.columns
    named = {part: column for part, column in chosen.items() if column is not None}
    columns: dict[str, str] = {}
    for part, usual in _NAMES.items():
        free = [name for name in names if name not in (*columns.values(), *named.values())]
        column = named.get(part, "") or next((name for each in usual for name in free if _folded(name) == each), "")
        if not column and part in _QUESTIONS:
            column = ask(f"Which column has {_QUESTIONS[part]}: {', '.join(free)}? ('-' for none)", "-")
            column = column.removeprefix("-")
        if column and column not in names:
            reason = f"found the columns {several(names)}"
            raise LlmevalError(f"--{part} {column}: {reason} in {file.path}{suggest(column, names)}")
        fits = part in named or part not in _FITS or _FITS[part](file, column)
        columns[part] = column if fits and file.values(column) else ""
    question = columns["question"]
    if not question:
        message = f"{file.path}: found the columns {several(names)}; name the one with the question: --question COLUMN"
        raise LlmevalError(message)
    lacking = [number for number, row in enumerate(file.rows, 1) if row.get(question) in (None, "")]
    if lacking:
        raise LlmevalError(
            f"{file.path}: {counted(len(lacking), 'row')} without a {question}, the first is row {lacking[0]}: fill "
            "or remove them"
        )
    return QuestionColumns(**columns)


_QUESTIONS: Final = {"question": "the question", "expected": "the right answer"}
"""Parts that the user is asked for where no column has a usual name."""


def _folded(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def id_separator(file: QuestionFile, column: str) -> str:
    """Return the text between the ids in the cells of a column; empty if each cell is one id, or a list."""
    texts = [each for each in file.values(column) if isinstance(each, str) and not each.lstrip().startswith("[")]
    return next((mark for mark in _SEPARATORS if any(mark in each for each in texts) and _splits(texts, mark)), "")


def _splits(texts: Sequence[str], mark: str) -> bool:
    """Return whether a mark is between ids: a comma may also be part of a title."""
    return mark != "," or not any(re.search(r"\s", part.strip()) for each in texts for part in each.split(mark))


def _are_ids(file: QuestionFile, column: str) -> bool:
    ids = [case_id(row.get(column)) for row in file.rows]
    return len({*ids}) == len(ids) and all(each and not id_fault(each) for each in ids)


def _are_labels(file: QuestionFile, column: str) -> bool:
    values = [row.get(column) for row in file.rows]
    if not all(isinstance(each, str) and each for each in values):
        return False
    return 1 < len({*values}) <= min(_MOST_GROUPS, len(values) // 2)


_FITS: Final = {"id": _are_ids, "label": _are_labels}
"""What the values of a column must be for its name to make it a default."""


_TIMEOUT_S = 120.0
_DEEPEST = 3
_ANSWERS = ("answer", "text", "output_text", "output", "response", "result", "content", "message", "答案", "回答")
_PASSAGES = (
    *("contexts", "context", "passages", "source_documents", "source_nodes", "documents", "sources", "hits", "chunks"),
    *("上下文", "来源"),
)
_IDS = ("id", "doc_id", "document_id", "source")
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class AnswerShape(NamedTuple):
    """The places of the parts of an answer.

    Attributes:
        answer: JMESPath of the text; empty if the answer is a text, or has it under ``answer``.
        contexts: JMESPath of the passages; empty if it has none, or has them under ``contexts``.
        passages: How many passages it has; ``None`` if no place for them was found.
        documents: JMESPath of the ids of what was retrieved; empty if no place for them was found.
    """

    answer: str = ""
    contexts: str = ""
    passages: int | None = None
    documents: str = ""


def ask_once(target: TargetPlace, folder: Path, value: Any) -> Any:
    """Call the target of a project once; return its answer as JSON data.

    Raises:
        LlmevalError: It cannot be imported, it raised, took too long, or returned something else.
    """
    root = (folder / target.root).resolve()
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        called = load_target(target.name, root)
        return json_like(asyncio.run(call_target(called, value, _TIMEOUT_S)))
    except PredictionError as error:
        raise LlmevalError(f"{target.name}: {error}; nothing was written") from None
    except Exception as error:  # noqa: BLE001 (an application may raise anything)
        raise LlmevalError(f"{target.name} raised {format_error(error)}{origin(error)}; nothing was written") from None
    finally:
        sys.dont_write_bytecode = writes


def answer_shape(prediction: Any, parts: Mapping[str, str], ids: Collection[str] = ()) -> AnswerShape:
    """Return where an answer has its text and its passages.

    Args:
        prediction: The answer.
        parts: JMESPaths that the user named, by part: ``answer``, ``contexts``, ``documents``.
        ids: Those of documents that should be retrieved for any question; without them, no place of ids is looked for.

    Raises:
        LlmevalError: No text was found, or not where the user said.
    """
    if isinstance(prediction, str) and not parts:
        return AnswerShape()
    places = list(_places([prediction])) if isinstance(prediction, Mapping) else []
    answer = parts.get("answer") or _answer_place(places)
    if not answer:
        keys = describe_prediction(prediction).replace("the prediction", "the answer", 1)
        raise LlmevalError(
            f"{keys}; no text was found in it: name its place by --part answer=PATH, such as output.text"
        )
    if not isinstance(_part("answer", answer, prediction), str):
        raise LlmevalError(f"--part answer={answer}: found no text there; {describe_prediction(prediction)}")
    contexts = parts.get("contexts") or _passages_place(places, ids)
    passages = _part("contexts", contexts, prediction) if contexts else None
    if "contexts" in parts and not isinstance(passages, list | str):
        raise LlmevalError(f"--part contexts={contexts}: found no passages there; {describe_prediction(prediction)}")
    number = len(passages) if isinstance(passages, list) else 1 if isinstance(passages, str) else None
    documents = parts.get("documents") or (_ids_place(places, ids) if ids else "")
    if "documents" in parts and not isinstance(_part("documents", documents, prediction), list):
        raise LlmevalError(f"--part documents={documents}: found no list there; {describe_prediction(prediction)}")
    return AnswerShape(
        "" if answer == "answer" else answer, "" if contexts == "contexts" else contexts, number, documents
    )


def _part(part: str, path: str, prediction: Any) -> Any:
    try:
        value = search(path, prediction)
    except PredictionError as error:
        raise LlmevalError(f"--part {part}={path}: {error}") from None
    return None if value is MISSING else value


class _PlaceInAnswer(NamedTuple):
    """A place in an answer.

    Attributes:
        path: JMESPath of it.
        keys: The keys on the way to it.
        values: The texts and numbers there: one, or those of a list.
    """

    path: str
    keys: tuple[str, ...]
    values: Sequence[Any]

    @property
    def is_text(self) -> bool:
        """Whether there are texts only."""
        return all(isinstance(value, str) for value in self.values)


def _places(values: Sequence[Any], path: str = "", keys: tuple[str, ...] = ()) -> Iterator[_PlaceInAnswer]:
    """Yield the places below a path that has these values: several below a list, which is ``[]`` in the path."""
    if all(isinstance(value, Mapping) for value in values) and len(keys) <= _DEEPEST:
        for key in values[0]:
            below = f"{path}.{_key(key)}" if path else _key(key)
            yield from _places([value.get(key) for value in values], below, (*keys, key))
    elif len(values) == 1 and isinstance(values[0], list) and values[0] and "[]" not in path:
        yield from _places(values[0], f"{path}[]", keys)
    elif all(isinstance(value, str | int) for value in values):
        yield _PlaceInAnswer(path, keys, values)


def _answer_place(places: Sequence[_PlaceInAnswer]) -> str:
    """Return the path of the text of an answer: the usual one, the only one, or the one that the user says."""
    texts = [place for place in places if place.is_text and len(place.values) == 1]
    texts = [place for place in texts if "[]" not in place.path] or texts  # as in choices[0].message.content
    paths = [place.path.replace("[]", "[0]") for place in texts]
    usual = [path for key in _ANSWERS for path, place in zip(paths, texts, strict=True) if place.keys[-1] == key]
    if usual or len(paths) == 1:
        return (usual or paths)[0]
    return ask(f"Where is its text: {', '.join(paths)}?", paths[0]) if paths else ""


def _passages_place(places: Sequence[_PlaceInAnswer], ids: Collection[str]) -> str:
    """Return the path of the longest texts below a usual key that are not ids."""
    passages = [
        place
        for place in places
        if any(key in _PASSAGES for key in place.keys)
        and place.is_text
        and ("[]" in place.path or place.keys[-1].startswith("context"))
        and not any(value in ids for value in place.values)
    ]
    longest = max(passages, key=lambda place: sum(map(len, place.values)), default=None)
    return "" if longest is None else longest.path.removesuffix("[]")


def _ids_place(places: Sequence[_PlaceInAnswer], ids: Collection[str]) -> str:
    """Return the path of a list that has one of the ids, or else of one with a usual key."""
    lists = [place for place in places if "[]" in place.path]
    matching = [place.path for place in lists if any(str(value) in ids for value in place.values)]
    usual = [place.path for key in _IDS for place in lists if place.keys[-1] == key]
    return next(iter([*matching, *usual]), "").removesuffix("[]")


def _key(name: str) -> str:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return name if _PLAIN.fullmatch(name) else f'"{quoted}"'
