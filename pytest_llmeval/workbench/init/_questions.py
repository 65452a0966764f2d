"""The questions of a project, their columns, and the form of one answer of its application."""

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_llmeval.core import (
    AnyError,
    Fault,
    LlmevalError,
    Parts,
    PredictionError,
    SuiteError,
    counted,
    listed,
    suggest,
)
from pytest_llmeval.data import CaseId, InputFile
from pytest_llmeval.run import json_like
from pytest_llmeval.targets import PythonTarget
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
_QUESTIONS: Final = {"question": "the question", "expected": "the right answer"}
"""Parts that the user is asked for where no column has a usual name."""
_NONE: Final = "-"
_MOST_COLUMNS = 20
_SEPARATORS = (";", "|", ",")


class QuestionColumns(NamedTuple):
    """The columns of a file of questions, for ``llmeval init --rag``; empty if the file lacks one.

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
    """The rows of a file of questions, from which ``llmeval init --rag`` makes a suite.

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
        """The values of a column, without absent and empty ones."""
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
    file = InputFile(path)
    delimiter = _delimiter(file) if form == "csv" else ""
    if form == "csv":
        rows: Sequence[Any] = [row for _, row in file.read_csv(faults, delimiter=delimiter)]
    elif form == "jsonl":
        rows = [row for _, row in file.read_jsonl(faults)]
    else:
        data = file.read_json().data
        rows = data if isinstance(data, list) else [data]
    if faults:
        raise SuiteError(faults)
    if wrong := [number for number, row in enumerate(rows, 1) if not isinstance(row, Mapping)]:
        raise LlmevalError(f"{path}: row {wrong[0]} is no object, expected a list of objects with a question each")
    if not rows:
        raise LlmevalError(f"{path} has no rows: write one for each question")
    return QuestionFile(path, form, delimiter, rows)


def _delimiter(file: InputFile) -> str:
    """The delimiter of a CSV file of questions: the most frequent one in the line of column names."""
    first = next(iter(file.read_text("a line of column names").splitlines()), "")
    return max(_DELIMITERS, key=first.count)


def ask(question: str, default: str) -> str:
    """Ask a question of ``llmeval init`` on the terminal; the default without a reply, empty without a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return ""
    try:
        return input(f"{question} [{default}] ").strip() or default
    except EOFError:
        return ""


def find_columns(file: QuestionFile, chosen: Mapping[str, str | None]) -> QuestionColumns:
    """Find the columns of a file of questions: those that the user names, or else those with usual names.

    Args:
        file: The file.
        chosen: Part to the column that the user named; ``-`` for none.

    Raises:
        LlmevalError: A column that was named does not exist, or which one has the question is not clear.
    """
    names = file.columns
    columns = {part: column for part, column in chosen.items() if column is not None}
    for part, usual in _NAMES.items():
        if part not in columns:
            free = [name for name in names if name not in columns.values()]
            columns[part] = next((name for known in usual for name in free if _folded(name) == known), "")
            if not columns[part] and part in _QUESTIONS:
                question = f"Which column has {_QUESTIONS[part]}: {', '.join(free)}? ('{_NONE}' for none)"
                columns[part] = ask(question, _NONE)
            if part == "id" and not _are_ids(file, columns[part]):
                columns[part] = _NONE
        column = columns[part]
        if column not in (*names, _NONE, ""):
            reason = f"found the columns {listed(names, _MOST_COLUMNS)}"
            raise LlmevalError(f"--{part} {column}: {reason} in {file.path}{suggest(column, names)}")
    columns = {part: column if file.values(column) else "" for part, column in columns.items()}
    question = columns["question"]
    if not question:
        columns_found = listed(names, _MOST_COLUMNS)
        raise LlmevalError(
            f"{file.path}: found the columns {columns_found}; name the one with the question: --question COLUMN"
        )
    lacking = [number for number, row in enumerate(file.rows, 1) if row.get(question) in (None, "")]
    if lacking:
        raise LlmevalError(
            f"{file.path}: {counted(len(lacking), 'row')} without a {question}, the first is row {lacking[0]}: fill "
            "or remove them"
        )
    return QuestionColumns(**columns)


def _folded(name: str) -> str:
    """A column name without differences of case, spaces and hyphens, to compare with usual names."""
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def id_separator(file: QuestionFile, column: str) -> str:
    """The text between document ids in the cells of a column; empty if each cell is one id, or a list."""
    texts = [value for value in file.values(column) if isinstance(value, str) and not value.lstrip().startswith("[")]
    return next((mark for mark in _SEPARATORS if any(mark in text for text in texts) and _splits(texts, mark)), "")


def _splits(texts: Sequence[str], mark: str) -> bool:
    """Whether a mark separates document ids: a comma may also be part of a title."""
    return mark != "," or not any(re.search(r"\s", part.strip()) for text in texts for part in text.split(mark))


def _are_ids(file: QuestionFile, column: str) -> bool:
    """Whether the cells of a question file's column are usable as case ids: present, valid and unique."""
    ids = [CaseId.read(row.get(column)) for row in file.rows]
    return len({*ids}) == len(ids) and all(id_ and not CaseId(id_).fault() for id_ in ids)


_TIMEOUT_S = 120.0
_DEEPEST = 3
_ANSWERS = ("answer", "text", "output_text", "output", "response", "result", "content", "message", "答案", "回答")
_PASSAGES = (
    *("contexts", "context", "passages", "source_documents", "source_nodes", "documents", "sources", "hits", "chunks"),
    *("上下文", "来源"),
)
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class AnswerShape(NamedTuple):
    """The paths to the text and the passages of an application's answer.

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
    """Call a project's target with one question; return its answer as JSON data.

    Raises:
        LlmevalError: It cannot be imported, it raised, took too long, or returned something else.
    """
    root = (folder / target.root).resolve()
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        called = PythonTarget.load(target.name, root)
        return json_like(asyncio.run(called.ask(value, _TIMEOUT_S)))
    except PredictionError as error:
        raise LlmevalError(f"{target.name}: {error}; nothing was written") from None
    except Exception as error:  # noqa: BLE001 (an application may raise anything)
        raise LlmevalError(f"{target.name} raised {AnyError(error).full_text}; nothing was written") from None
    finally:
        sys.dont_write_bytecode = writes


def answer_shape(prediction: Any, parts: Mapping[str, str], ids: AbstractSet[str] = frozenset()) -> AnswerShape:
    """Find the paths to the text and the passages of an application's answer.

    Args:
        prediction: The answer.
        parts: JMESPaths that the user named, by part: ``answer``, ``contexts``, ``documents``.
        ids: Those of documents that should be retrieved for any question; without them, no place of ids is looked for.

    Raises:
        LlmevalError: No text was found, or not where the user said.
    """
    if isinstance(prediction, str) and not parts:
        return AnswerShape()
    places = dict(_places([prediction])) if isinstance(prediction, Mapping) else {}
    lists = [path for path, values in places.items() if "[]" in path and not ids.isdisjoint(map(str, values))]
    paths = {
        "answer": parts.get("answer") or _answer_place(places),
        "contexts": parts.get("contexts") or _passages_place(places, ids),
        "documents": parts.get("documents") or next(iter(lists), "").removesuffix("[]"),
    }
    if not paths["answer"]:
        keys = Parts.describe(prediction).replace("the prediction", "the answer", 1)
        raise LlmevalError(
            f"{keys}; no text was found in it: name its place by --part answer=PATH, such as output.text"
        )
    values = {part: _part(part, path, prediction) for part, path in paths.items() if path}
    passages = values.get("contexts")
    return AnswerShape(
        "" if paths["answer"] == "answer" else paths["answer"],
        "" if paths["contexts"] == "contexts" else paths["contexts"],
        len(passages) if isinstance(passages, list) else None if passages is None else 1,
        paths["documents"],
    )


_PARTS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "answer": ((str,), "text"),
    "contexts": ((list, str), "passages"),
    "documents": ((list,), "list"),
}
"""Part of an answer to what it is, and its name in messages."""


def _part(part: str, path: str, prediction: Any) -> Any:
    """The part of an application's answer at a path that the user named.

    Raises:
        LlmevalError: It is not at this path.
    """
    try:
        value = Parts.search(path, prediction)
    except PredictionError as error:
        raise LlmevalError(f"--part {part}={path}: {error}") from None
    kind, name = _PARTS[part]
    if not isinstance(value, kind):
        raise LlmevalError(f"--part {part}={path}: there is no {name}; {Parts.describe(prediction)}")
    return value


def _places(values: Sequence[Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the paths inside an application's answer with the texts and numbers there."""
    if all(isinstance(value, Mapping) for value in values) and depth <= _DEEPEST:
        for key in values[0]:
            name = key if _PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)
            yield from _places([value.get(key) for value in values], f"{path}.{name}".lstrip("."), depth + 1)
    elif len(values) == 1 and isinstance(values[0], list) and values[0] and "[]" not in path:
        yield from _places(values[0], f"{path}[]", depth)
    elif all(isinstance(value, str | int) for value in values):
        yield path, values


def _keys(path: str) -> list[str]:
    """The keys in the JMESPath of a part of an answer."""
    return [key.strip('"') for key in path.replace("[]", "").split(".")]


def _are_texts(values: Sequence[Any]) -> bool:
    """Whether all values at a path of an answer are texts."""
    return all(isinstance(value, str) for value in values)


def _answer_place(places: Mapping[str, Sequence[Any]]) -> str:
    """The path of an answer's text: the usual one, the only one, or the one that the user chooses."""
    texts = [path for path, values in places.items() if _are_texts(values) and len(values) == 1]
    texts = [path for path in texts if "[]" not in path] or texts  # as in choices[0].message.content
    usual = [path for key in _ANSWERS for path in texts if _keys(path)[-1] == key]
    paths = [path.replace("[]", "[0]") for path in usual or texts]
    if usual or len(paths) == 1:
        return paths[0]
    return ask(f"Where is its text: {', '.join(paths)}?", paths[0]) if paths else ""


def _passages_place(places: Mapping[str, Sequence[Any]], ids: AbstractSet[str]) -> str:
    """The path of an answer's passages: the longest texts under a usual key that are not ids."""
    passages = {
        path: sum(map(len, values))
        for path, values in places.items()
        if _are_texts(values) and ids.isdisjoint(values)
        if not set(_PASSAGES).isdisjoint(_keys(path)) and ("[]" in path or _keys(path)[-1].startswith("context"))
    }
    return max(passages, key=passages.__getitem__, default="").removesuffix("[]")
