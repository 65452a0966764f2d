"""The questions of a project, their columns, and the form of one answer of its application."""

import asyncio
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_llmeval.core.case import MISSING, describe_prediction, search
from pytest_llmeval.core.errors import Fault, LlmevalError, PredictionError, SuiteError, format_error, origin
from pytest_llmeval.core.wording import counted, several, suggest
from pytest_llmeval.data.files.documents import load_json, read_csv, read_jsonl, read_text
from pytest_llmeval.data.formats.base import case_id, id_fault
from pytest_llmeval.run.execute import json_like
from pytest_llmeval.targets.python import call_target, load_target
from pytest_llmeval.workbench.project import TargetPlace

_FORMATS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_DELIMITERS = (",", ";", "\t", "|")

_QUESTION = (
    "question",
    "questions",
    "query",
    "user_input",
    "input",
    "prompt",
    "q",
    "问题",
    "提问",
    "用户问题",
    "查询",
    "问句",
)
_EXPECTED = (
    *("expected", "expected_answer", "expected_output", "ground_truth", "reference", "reference_answer", "gold"),
    *("gold_answer", "correct_answer", "right_answer", "ideal", "target", "answer", "a"),
    *("标准答案", "参考答案", "正确答案", "期望答案", "预期答案", "答案", "回答"),
)
_CONTEXTS = (
    *(
        "contexts",
        "context",
        "reference_contexts",
        "retrieved_contexts",
        "passages",
        "passage",
        "documents",
        "evidence",
    ),
    *("上下文", "参考资料", "段落", "文档", "资料", "依据"),
)
_DOCUMENTS = (
    *("gold_ids", "gold_id", "gold_documents", "gold_document", "gold_document_ids", "gold_doc_ids", "gold_doc_id"),
    *("gold_docs", "gold_doc", "gold_sources", "gold_source", "expected_ids", "expected_documents", "expected_sources"),
    *("relevant_ids", "relevant_documents", "relevant_docs", "relevant_doc_ids", "document_ids", "document_id"),
    *("doc_ids", "doc_id", "source_ids", "source_id", "文档编号", "相关文档"),
)
_DOCUMENT_KEYS = ("id", "doc_id", "document_id", "source_id", "docno", "_id", "source", "url", "path")
_SEPARATORS = (";", "|", ",")
_IDS = ("id", "case_id", "question_id", "qid", "nr", "no", "number", "编号", "序号")
_LABELS = (
    "category",
    "topic",
    "type",
    "kind",
    "question_type",
    "difficulty",
    "language",
    "类别",
    "分类",
    "类型",
    "主题",
    "难度",
    "语言",
)
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


def find_columns(file: QuestionFile, chosen: Mapping[str, str | None]) -> QuestionColumns:
    """Return the columns of a file by their usual names, in English and Chinese.

    Args:
        file: The file.
        chosen: Columns that the user named: ``question``, ``expected``, ``contexts``, ``documents``.

    Raises:
        LlmevalError: A column that was named does not exist, or which one has the question is not clear.
    """
    names = file.columns
    for part, column in chosen.items():
        if column is not None and column not in names:
            reason = f"found the columns {several(names)}"
            raise LlmevalError(f"--{part} {column}: {reason} in {file.path}{suggest(column, names)}")
    question = chosen.get("question") or _first(names, _QUESTION)
    if not question:
        message = f"{file.path}: found the columns {several(names)}; name the one with the question: --question COLUMN"
        raise LlmevalError(message)
    lacking = [number for number, row in enumerate(file.rows, 1) if row.get(question) in (None, "")]
    if lacking:
        raise LlmevalError(
            f"{file.path}: {counted(len(lacking), 'row')} without a {question}, the first is row {lacking[0]}: fill "
            "or remove them"
        )
    remaining = [name for name in names if name != question]
    expected = chosen.get("expected") or _first(remaining, _EXPECTED)
    contexts = chosen.get("contexts") or _first([name for name in remaining if name != expected], _CONTEXTS)
    documents = chosen.get("documents") or _first(
        [name for name in remaining if name not in (expected, contexts)], _DOCUMENTS
    )
    used = {question, expected, contexts, documents}
    remaining = [name for name in remaining if name not in used]
    return QuestionColumns(
        question,
        expected if file.values(expected) else "",
        contexts if file.values(contexts) else "",
        next((name for name in _matching(remaining, _IDS) if _are_ids(file, name)), ""),
        next((name for name in _matching(remaining, _LABELS) if _are_labels(file, name)), ""),
        documents if file.values(documents) else "",
    )


def id_separator(file: QuestionFile, column: str) -> str:
    """Return the text between the ids in the cells of a column; empty if each cell is one id, or a list."""
    texts = [each for each in file.values(column) if isinstance(each, str) and not each.lstrip().startswith("[")]
    return next((mark for mark in _SEPARATORS if any(mark in each for each in texts) and _splits(texts, mark)), "")


def _splits(texts: Sequence[str], mark: str) -> bool:
    """Return whether a mark is between ids: a comma may also be part of a title."""
    return mark != "," or not any(re.search(r"\s", part.strip()) for each in texts for part in each.split(mark))


def _first(names: Sequence[str], known: Sequence[str]) -> str:
    return next(_matching(names, known), "")


def _matching(names: Sequence[str], known: Sequence[str]) -> Iterator[str]:
    """Yield the names that are known, the most usual first; upper case, spaces and hyphens do not matter."""
    folded = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in reversed(names)}
    for each in known:
        if each in folded:
            yield folded[each]
        elif each.replace("_", "") in folded:
            yield folded[each.replace("_", "")]


def _are_ids(file: QuestionFile, column: str) -> bool:
    ids = [case_id(row.get(column)) for row in file.rows]
    return len({*ids}) == len(ids) and all(each and not id_fault(each) for each in ids)


def _are_labels(file: QuestionFile, column: str) -> bool:
    values = [row.get(column) for row in file.rows]
    if not all(isinstance(each, str) and each for each in values):
        return False
    return 1 < len({*values}) <= min(_MOST_GROUPS, len(values) // 2)


_TIMEOUT_S = 120.0
_DEEPEST = 3
_ANSWERS = (
    *("answer", "text", "output_text", "output", "response", "result", "reply", "completion", "generation", "content"),
    *("message", "答案", "回答", "回复"),
)
_PASSAGES = (
    *("contexts", "context", "retrieved_contexts", "passages", "source_documents", "source_nodes", "documents", "docs"),
    *("sources", "chunks", "retrieved", "retrieval", "hits", "results", "references", "citations", "nodes"),
    *("上下文", "来源", "资料", "文档", "段落"),
)
_TEXTS = ("text", "content", "page_content", "passage", "chunk", "body", "snippet", "document", "文本", "内容")
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
    answer = parts.get("answer") or next(_texts(prediction), "")
    if not answer:
        keys = describe_prediction(prediction).replace("the prediction", "the answer", 1)
        raise LlmevalError(
            f"{keys}; no text was found in it: name its place by --part answer=PATH, such as output.text"
        )
    if not isinstance(_part("answer", answer, prediction), str):
        raise LlmevalError(f"--part answer={answer}: found no text there; {describe_prediction(prediction)}")
    contexts = parts.get("contexts") or next(_passages(prediction), "")
    passages = _part("contexts", contexts, prediction) if contexts else None
    if "contexts" in parts and not isinstance(passages, list | str):
        raise LlmevalError(f"--part contexts={contexts}: found no passages there; {describe_prediction(prediction)}")
    number = len(passages) if isinstance(passages, list) else 1 if isinstance(passages, str) else None
    documents = parts.get("documents") or (_ids_place(prediction, ids) if ids else "")
    if "documents" in parts and not isinstance(_part("documents", documents, prediction), list):
        raise LlmevalError(f"--part documents={documents}: found no list there; {describe_prediction(prediction)}")
    return AnswerShape(
        "" if answer == "answer" else answer, "" if contexts == "contexts" else contexts, number, documents
    )


def _ids_place(prediction: Any, ids: Collection[str]) -> str:
    """Return the path of a list that has one of the ids, or else of one whose key is usual for ids."""
    places = dict(_scalar_lists(prediction))
    matching = [path for path, values in places.items() if not values.isdisjoint(ids)]
    usual = [path for key in _DOCUMENT_KEYS for path in places if path.endswith(f"[].{key}")]
    return next(iter([*matching, *usual]), "")


def _scalar_lists(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, set[str]]]:
    """Yield the path of each list of texts or numbers, also of a field of listed objects, with its values."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for name, held in value.items():
            yield from _scalar_lists(held, _below(path, name), depth + 1)
    elif isinstance(value, list) and value:
        if all(isinstance(each, str | int) for each in value):
            yield path, {str(each) for each in value}
        elif all(isinstance(each, Mapping) for each in value):
            for name in value[0]:
                held = [each.get(name) for each in value]
                below = f"{path}[].{_key(name)}"
                if all(isinstance(each, str | int) for each in held):
                    yield below, {str(each) for each in held}
                elif all(isinstance(each, Mapping) for each in held):
                    yield from (
                        (f"{below}.{_key(key)}", {str(each.get(key)) for each in held})
                        for key in held[0]
                        if all(isinstance(each.get(key), str | int) for each in held)
                    )


def _part(part: str, path: str, prediction: Any) -> Any:
    try:
        value = search(path, prediction)
    except PredictionError as error:
        raise LlmevalError(f"--part {part}={path}: {error}") from None
    return None if value is MISSING else value


def _texts(value: Any, path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of texts that can be the answer, the most usual first; a single text of an object counts."""
    if not isinstance(value, Mapping) or depth > _DEEPEST:
        return
    named = [name for name in _ANSWERS if name in value]
    yield from (_below(path, name) for name in named if isinstance(value[name], str))
    inner = [*named, *(name for name in value if name not in named)]
    for name in inner:
        held = value[name]
        if isinstance(held, list) and len(held) == 1:  # as in choices[0].message.content
            yield from _texts(held[0], f"{_below(path, name)}[0]", depth + 1)
        else:
            yield from _texts(held, _below(path, name), depth + 1)
    texts = [name for name, each in value.items() if isinstance(each, str)]
    if len(texts) == 1 and not named:
        yield _below(path, texts[0])


def _passages(value: Any, path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of lists of passages, the most usual first."""
    if not isinstance(value, Mapping) or depth > _DEEPEST:
        return
    for name in _PASSAGES:
        held = value.get(name)
        place = _below(path, name)
        if isinstance(held, list) and held:
            yield from (f"{place}{inner}" for inner in _inside(held))
        elif isinstance(held, str) and held and name.startswith("context"):
            yield place
    for name, held in value.items():
        yield from _passages(held, _below(path, name), depth + 1)


def _inside(items: list[Any], depth: int = 0) -> Iterator[str]:
    """Yield what follows a list in the path of its texts; nothing if these are no texts."""
    if all(isinstance(each, str) for each in items):
        yield ""
    elif all(isinstance(each, Mapping) for each in items) and depth <= 1:
        for name in _TEXTS:
            if all(isinstance(each.get(name), str) for each in items):
                yield f"[].{_key(name)}"
        for name in items[0]:
            held = [each.get(name) for each in items]
            if all(isinstance(each, Mapping) for each in held):
                yield from (f"[].{_key(name)}{inner.removeprefix('[]')}" for inner in _inside(held, depth + 1))


def _below(path: str, name: str) -> str:
    return f"{path}.{_key(name)}" if path else _key(name)


def _key(name: str) -> str:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return name if _PLAIN.fullmatch(name) else f'"{quoted}"'
