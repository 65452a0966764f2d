"""The contract of a source of cases, and the reading of ids, texts and predictions that all sources share."""

import json
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from msgspec import Struct

from pytest_llmeval.core import (
    MISSING,
    Case,
    Fault,
    MediaText,
    SuiteError,
    counted,
    grouped,
    listed,
    parse_digits,
    quotation,
    shown_path,
    suggest,
)
from pytest_llmeval.data.files._places import FaultLog
from pytest_llmeval.data.files.documents import Document, InputFile

_LONGEST_SHOWN = 40
_WHOLE = re.compile(r"[+-]?[0-9]+\.0")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def json_text(value: Any) -> str:
    """The text of a data file's value: text unchanged, other values as JSON text: ``2022`` as ``"2022"``."""
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return MediaText.carrying(text, value) if '"media"' in text else text


class CaseId(Struct, frozen=True):
    """The id of a case, or of a document in a data file.

    Attributes:
        text: As data and reports have it.
    """

    KEYS: ClassVar = ("question_id", "query_id", "id")
    """The keys under which rows of answers may have an id."""

    text: str

    @staticmethod
    def read(value: Any) -> str | None:
        """The id that text or a whole number is, also 264.0, in composed form (NFC); ``None`` for other values."""
        if isinstance(value, str):
            return unicodedata.normalize("NFC", value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else None

    def canonical(self) -> str:
        """The common form of ids that mean the same: ``264`` for ``264.0``.

        Tools such as pandas write the whole numbers of a column with a fraction if one of them is missing.
        """
        text = self.text
        return text.removesuffix(".0") if text.endswith(".0") and _WHOLE.fullmatch(text) else text

    def fault(self) -> str | None:
        """The reason why pytest could not select a case by this id; ``None`` if it can."""
        wrong, text = None, self.text
        if not text:
            wrong = "an empty id"
        elif "::" in text:
            wrong = f"the id {text!r} with '::', which pytest splits at"
        elif text != text.strip():
            wrong = f"the id {text!r} with surrounding spaces"
        elif _CONTROL.search(text):
            wrong = f"the id {text!r} with a control character"
        elif text.startswith("__") and text.endswith("__"):
            wrong = f"the id {text!r}, a name that Python reserves"
        return wrong and f"found {wrong}, expected an id that can name the case on the command line"


def kind(value: Any) -> str:
    """The description of a data file's value of the wrong type: ``a list``, ``null``, ``the number 3``."""
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, str):
        return f"the text {quotation(value, _LONGEST_SHOWN)}"
    return json.dumps(value) if value is None or isinstance(value, bool) else f"the number {value}"


PARTS: Final = ("id", "input", "messages", "expected", "prediction", "labels", "tags", "thresholds", "checks", "always")
"""The parts of a case that a row can give."""

CELL_CHECKS: Final = (
    "contains",
    "contains_all",
    "contains_any",
    "contains_json",
    "cost_usd",
    "empty",
    "ends_with",
    "equals",
    "icontains",
    "icontains_all",
    "icontains_any",
    "image_size",
    "is_json",
    "json_equals",
    "json_schema",
    "json_subset",
    "judge",
    "language",
    "latency_s",
    "levenshtein",
    "max_chars",
    "max_sentences",
    "max_words",
    "media_type",
    "min_chars",
    "min_sentences",
    "min_words",
    "number",
    "one_of",
    "pii",
    "quotes",
    "refusal",
    "regex",
    "rubric",
    "same_bytes",
    "span",
    "starts_with",
    "tool_call",
)
"""Checks that a column of a CSV file may hold under their names."""

ABSENT: Final = object()
"""Stands for a value that a row does not have; ``None`` is a null that it has."""


@dataclass(frozen=True)
class ColumnMap:
    """The columns of each part of a case.

    A part that is not listed here is read from the column of the same name. A column is named as in the file, or
    by a dotted path into nested data: ``meta.type``, ``answers.0``.

    Attributes:
        id: The column of the id; if there is none, rows are counted from 1.
        input: One column, or several by the names that they get: ``{question: q, context: text}``.
        messages: A column that holds the script of a conversation, in place of the input.
        expected: As `input`.
        prediction: As `input`.
        labels: A column that holds an object of labels, or label to column: ``{question_type: type}``.
        tags: A column that holds a list of tags, or a text with commas between them.
        thresholds: A column that holds an object of limits, or metric to column.
        checks: A column that holds a list of checks, or check to the column of its argument: ``{contains: must_say}``.
        always: A column that says whether the case always runs.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    id: str | None = None
    input: str | dict[str, str] | None = None
    messages: str | None = None
    expected: str | dict[str, str] | None = None
    prediction: str | dict[str, str] | None = None
    labels: str | dict[str, str] | None = None
    tags: str | None = None
    thresholds: str | dict[str, str] | None = None
    checks: str | dict[str, str] | None = None
    always: str | None = None


def pick(row: Mapping[str, Any], column: str) -> Any:
    """The value of a data row in `column`, or at the dotted path that it is; `ABSENT` if there is none."""
    if column in row:
        return row[column]
    if "." not in column:
        return ABSENT
    here: Any = row
    for step in column.split("."):
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and (place := parse_digits(step)) is not None and place < len(here):
            here = here[place]
        else:
            return ABSENT
    return here


class DataPath:
    """A dotted path into nested data, such as ``meta.type`` or ``answers.0``.

    Attributes:
        path: Its text.
    """

    ABSENT: ClassVar[object] = ABSENT
    """Stands for a value that is not there."""

    def __init__(self, path: str) -> None:
        self.path = path

    def find(self, value: Any) -> Any:
        """The value at the path inside of a mapping or a list; `ABSENT` if there is none."""
        return pick(value, self.path) if isinstance(value, Mapping) else pick({"": value}, f".{self.path}")


class SharedRows(Struct, frozen=True):
    """What one shard knows of the rows of a data file that several shards share.

    Attributes:
        count: How many rows the file has.
        unread: How many of them were left to other shards.
        digest: Of the ids of all rows, in any order.
        unanswered: Whether a row that was left to others has no prediction.
    """

    count: int
    unread: int
    digest: str
    unanswered: bool


class RowShare:
    """The rows that one shard reads of a data file; of the others it only learns what it must know of the whole.

    Args:
        numbered: Returns the number by which the row of an id belongs to a shard: a whole number below 2 ** 256.
        owns: Returns whether the row of a number belongs to this one.

    Attributes:
        count: How many rows were met.
        checked: Whether one of them has checks of its own.
        named: Ids of the rows of other shards, where a file of answers may name them; else none.
    """

    def __init__(self, numbered: Callable[[str], int], owns: Callable[[int], bool]) -> None:
        self._numbered = numbered
        self._owns = owns
        self._unread = 0
        self._sum = 0
        self._unanswered = False
        self._open: set[str] | None = None
        self.count = 0
        self.checked = False
        self.named: set[str] = set()

    def whole(self) -> "RowShare":
        """The share that has every row, for a file of which a part does not tell enough."""
        return RowShare(self._numbered, lambda _: True)

    def takes(self, name: str, *, answered: bool, checked: bool) -> bool:
        """Note a row of the data file, and return whether this shard reads it.

        Args:
            name: The id of its case.
            answered: Whether it has a prediction.
            checked: Whether it has checks.
        """
        number = self._numbered(name)
        self.count += 1
        self._sum += number
        self.checked = self.checked or checked
        is_own = self._owns(number)
        self._unread += not is_own
        if self._open is None or is_own:
            self._unanswered = self._unanswered or not (answered or is_own)
        else:
            self.named.add(name)
            if not answered:
                self._open.add(name)
        return is_own

    def expect_answers(self) -> None:
        """Keep the ids of the rows of other shards: a file of recorded answers follows."""
        self._open = set()

    def takes_answer(self, name: str) -> bool:
        """Note the recorded answer to a row, and return whether it is none of another shard."""
        if self._open is not None:
            self._open -= {name, CaseId(name).canonical(), f"{name}.0"}
        return name not in self.named

    def rows(self) -> SharedRows:
        """What the shard knows of the data file's rows once all rows and answers were met."""
        unanswered = self._unanswered or bool(self._open)
        return SharedRows(self.count, self._unread, f"{self._sum % 2**256:064x}", unanswered)


class DataRow(Struct, frozen=True):
    """One row of a data file.

    Attributes:
        data: The row; an object if it is a good one.
        line: Its line.
        column: Its column.
        path: Its path in the file, such as ``[3]``.
        objects: Column to the object of the user's whose JSON form is in `data`.
        number: By which its case is called without an id; 0 where rows are counted as they come.
        document: The document in whose list it is, if it is in one.
        index: Its index in that list.
    """

    data: Any
    line: int
    column: int = 1
    path: str = ""
    objects: Mapping[str, Any] = {}
    number: int = 0
    document: Document | None = None
    index: int = 0

    def locate(self, keys: Sequence[str]) -> tuple[int, int]:
        """Line and column of a value in the row, or of the row if that is all that is known."""
        return (self.line, self.column) if self.document is None else self.document.locate([self.index, *keys])

    def path_to(self, *keys: str) -> str:
        """The path in the file to a value of the row."""
        return ".".join(filter(None, (self.path, *keys)))


class CaseFile(InputFile):
    """The data file of a source, with the cases and faults found in it so far.

    Attributes:
        path: Where it is.
        display_path: Its name in errors.
        share: Which of its rows become cases; ``None``: all of them.
        cases: By id, in the order of the file.
        faults: What is wrong with it; ``faults.add(line, column, path, "found ..., expected ...")`` adds to them.
    """

    def __init__(self, path: Path, display_path: str, share: RowShare | None = None) -> None:
        super().__init__(path, display_path)
        self.share = share
        self.cases: dict[str, Case] = {}
        self.faults = FaultLog(display_path)

    def rows(self, document: Document | None, expected: str) -> Iterator[DataRow]:
        """Yield the rows of the file; a file without a list of rows has a fault.

        Args:
            document: The file as JSON or YAML; ``None``: each line is a row in JSON.
            expected: What the list is, for that fault, such as ``a list of claims``.
        """
        if document is None:
            faults: list[Fault] = []
            yield from (DataRow(data, line) for line, data in self.read_jsonl(faults))
            self.faults.extend(faults)
        elif isinstance(document.data, list):
            for index, data in enumerate(document.data):
                line, column = document.locate([index])
                yield DataRow(data, line, column, f"[{index}]", document=document, index=index)
        else:
            self.faults.add(1, 1, "", f"found {kind(document.data)}, expected {expected}")

    def add(self, case: Case, path: str = "", column: int = 1) -> None:
        """Add a case, or a fault if its id cannot be used or is taken.

        Args:
            case: With its `line`, counted from 1.
            path: The field of its id, for that fault; empty where it has none.
            column: Where the case begins in its line.
        """
        wrong = CaseId(case.id).fault()
        if wrong is None and case.id in self.cases:
            first = self.cases[case.id].line
            wrong = f"found the id {case.id!r} twice, expected it once (first in line {first})"
        if wrong is None:
            self.cases[case.id] = case
        else:
            self.faults.add(case.line, column, path, wrong)


@dataclass(frozen=True)
class Source(ABC):
    """A dataset format. Subclass as a frozen dataclass whose fields are the options.

    `FileSource` is simpler if all cases are in one file.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    format: ClassVar[str]
    """Its name in suite files."""

    beyond_gold: ClassVar[Any] = MISSING
    """The prediction of a system for a case that ground truth lacks and that only another system names."""

    @classmethod
    def row_schema(cls) -> dict[str, Any] | None:
        """The JSON Schema of a row of its files; ``None`` if none is published."""
        return None

    @abstractmethod
    def load(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """The selected cases, in the order of the data.

        Args:
            folder: The folder of the suite file.
            faults: Gets the log; good cases survive them.
        """

    def load_recorded(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """The selected cases as of `load`, but without predictions that the data itself may have."""
        return self.load(folder, faults)

    def load_systems(self, folder: Path, systems: Sequence["Source"]) -> list[tuple[list[Case], list[Fault]]]:
        """The cases and faults of sources that differ from this one in their predictions; see `load_recorded`.

        Args:
            folder: The folder of the suite file.
            systems: The sources. A format whose cases are costly to read may read them once for all.
        """
        answers: list[tuple[list[Case], list[Fault]]] = []
        for source in systems:
            faults: list[Fault] = []
            answers.append((source.load_recorded(folder, faults), faults))
        return answers

    @abstractmethod
    def faulty(self, faults: Iterable[Fault]) -> int:
        """The number of cases that cannot run because of the faults that `load` found."""

    @abstractmethod
    def file_of(self, case: Case) -> str:
        """The file of a case, for a fault in its row."""


@dataclass(frozen=True)
class FileSource(Source):
    """A dataset format of one data file: a subclass writes `read`.

    Example:
        >>> @dataclass(frozen=True)
        ... class Lines(FileSource):
        ...     format = "lines"
        ...
        ...     def read(self, file):
        ...         for number, line in enumerate(file.path.read_text(encoding="utf-8").splitlines(), 1):
        ...             question, separator, answer = line.partition(" = ")
        ...             if separator:
        ...                 file.add(Case(str(number), question, answer, line=number))
        ...             else:
        ...                 file.faults.add(number, 1, "", f"found {line!r}, expected QUESTION = ANSWER")

    Attributes:
        path: The data file; relative to the suite file's folder, or absolute.
        predictions: A file of answers by question id, or ``None``; they replace answers of the data file.
    """

    short_ids: ClassVar[bool] = False
    """Whether answers may name a case by the part of its id behind the slash, where only one case has it."""

    divisible: ClassVar[bool] = False
    """Whether `read` keeps to `CaseFile.share`."""

    path: str
    predictions: str | None = None

    @abstractmethod
    def read(self, file: CaseFile) -> None:
        """Add the cases and the faults of the data file.

        Raises:
            SuiteError: The file cannot be read at all; its faults are taken over.
        """

    def selects(self, case: Case) -> bool:
        """Whether the options select a case; answers to the other cases are ignored."""
        del case
        return True

    def answers(self, path: Path, cases: Mapping[str, Case], faults: FaultLog) -> "RecordedAnswers":
        """The recorded answers of a file to cases, which are given by id."""
        del cases
        return RecordedAnswers.read(path, faults)

    def load(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """The selected cases, in the order of the file; see `Source.load`."""
        return self._add_answers(self._data(folder), folder, faults)

    def load_share(self, folder: Path, faults: list[Fault], share: RowShare) -> list[Case]:
        """The selected cases of a shard, of a format that is `divisible`; see `Source.load`."""
        if self.predictions is not None:
            share.expect_answers()
        return self._add_answers(self._data(folder, share), folder, faults)

    def load_recorded(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """The selected cases with the predictions of the file of answers; see `Source.load_recorded`."""
        return self._add_answers(_without_predictions(self._data(folder)), folder, faults)

    def load_systems(self, folder: Path, systems: Sequence[Source]) -> list[tuple[list[Case], list[Fault]]]:
        """Read the data file once for all systems; see `Source.load_systems`."""
        data = _without_predictions(self._data(folder))
        answers: list[tuple[list[Case], list[Fault]]] = []
        for source in systems:
            assert isinstance(source, FileSource)
            faults: list[Fault] = []
            answers.append((source._add_answers(data, folder, faults), faults))  # noqa: SLF001 (its own class)
        return answers

    def _data(self, folder: Path, share: RowShare | None = None) -> CaseFile:
        """Read the data file, or a shard's part of it."""
        file = CaseFile(folder / self.path, shown_path(folder / self.path), share)
        try:
            self.read(file)
        except SuiteError as error:
            file.faults.extend(error.faults)
        if not file.faults.count and not any(map(self.selects, file.cases.values())):
            file.faults.add(0, 0, "", "the options select no case")
        return file

    def _add_answers(self, file: CaseFile, folder: Path, faults: list[Fault]) -> list[Case]:
        """The selected cases of the data file, with recorded answers if there are any."""
        faults.extend(file.faults.listed())
        selected = {name: case for name, case in file.cases.items() if self.selects(case)}
        if self.predictions is not None:
            log = FaultLog(shown_path(folder / self.predictions))
            path, share = folder / self.predictions, file.share
            known = dict.fromkeys(file.cases)
            if share is None:
                answers = self.answers(path, file.cases, log)
            else:
                answers = RecordedAnswers.read(path, log, keeps=share.takes_answer)
                known |= dict.fromkeys(share.named)
            if selected:
                answers.fill(selected, known, log, short_ids=self.short_ids)
            faults.extend(log.listed())
        return list(selected.values())

    def faulty(self, faults: Iterable[Fault]) -> int:
        """The number of lines of the data file with faults that keep their case from running."""
        data, costly = Path(self.path).name, (fault for fault in faults if fault.line and not fault.spares_case)
        return len({fault.line for fault in costly if Path(fault.file).name == data})

    def file_of(self, case: Case) -> str:
        """The data file."""
        del case
        return self.path


def _without_predictions(file: CaseFile) -> CaseFile:
    """A copy of a data file of cases without predictions, for answers from a recording or another system."""
    bare = copy(file)
    bare.cases = {name: case.answered(MISSING) for name, case in file.cases.items()}
    return bare


_CONVERSATION_KEYS = ("sample_id", "conversation_id")
_ANSWER_KEYS = ("prediction", "hypothesis", "answer", "results")
_SHOWN_IDS = 3


class RecordedAnswer(Struct, frozen=True):
    """An answer to a case in a file of predictions.

    Attributes:
        id: The id that the file gives.
        value: What was answered.
        line: Its line.
        column: Its column.
    """

    id: str
    value: Any
    line: int
    column: int


class RecordedAnswers:
    """The answers to cases in a file of predictions."""

    def __init__(self) -> None:
        self._answers: list[RecordedAnswer] = []

    def add(self, case: str, value: Any, line: int, column: int = 1) -> None:
        """Add an answer to the case of an id, from a line of the file."""
        self._answers.append(RecordedAnswer(case, value, line, column))

    @classmethod
    def read(
        cls,
        path: Path,
        log: FaultLog,
        prepare: Callable[[Any], Any] = lambda row: row,
        *,
        rows_key: str | None = None,
        answer_keys: Sequence[str] = _ANSWER_KEYS,
        keeps: Callable[[str], bool] = lambda _: True,
        keeps_null: bool = True,
    ) -> "RecordedAnswers":
        """Read a file of answers.

        A ``.json`` file is an object ``{id: answer}`` or a list of rows; any other file is JSONL, one row a line.
        A row has its id under ``question_id``, ``query_id`` or ``id``, together with ``sample_id`` or
        ``conversation_id`` if ids are unique only within a conversation. It has the answer under ``prediction``,
        ``hypothesis``, ``answer`` or ``results``; the first that is there counts.

        Args:
            path: The file.
            log: Gets the faults; good answers survive them.
            prepare: Brings a row of another form into this one.
            rows_key: Key of an object that holds the list of rows, as in files of results.
            answer_keys: The keys of answers in the rows before `prepare`, for faults.
            keeps: Returns whether the answer to an id is kept.
            keeps_null: Whether null is an answer.
        """
        reader = _AnswerRows(log, prepare, answer_keys)
        answers = cls()
        try:
            if path.suffix.lower() == ".json":
                every = _from_json(path, reader, rows_key)
            else:
                lines = InputFile(path, log.file).jsonl_lines(log)
                every = (answer for line, row in lines for answer in reader.answers(line, 1, "", row))
            own = [answer for answer in every if keeps(answer.id)]
        except SuiteError as error:
            log.extend(error.faults)
            return answers
        reader.finish()
        answers._answers += [answer for answer in own if keeps_null or answer.value is not None]
        return answers

    def fill(self, cases: dict[str, Case], known: Collection[str], faults: FaultLog, *, short_ids: bool) -> None:
        """Put the answers into their cases; a case without an answer is unchanged.

        Args:
            cases: By id; changed in place.
            known: All ids of the data file; answers to cases that are not selected are ignored.
            faults: Gets the answers that belong nowhere, or to several cases, or where another came first.
            short_ids: Whether the part of an id behind the slash is enough where only one case has it.
        """
        by_short_id = grouped((name.rpartition("/")[2], name) for name in (cases if short_ids else ()))
        is_exact = all(answer.id in known for answer in self._answers)
        same = {} if is_exact else {CaseId(name).canonical(): name for name in known}
        first: dict[str, RecordedAnswer] = {}
        unknown: list[RecordedAnswer] = []
        ambiguous: list[RecordedAnswer] = []
        for answer in self._answers:
            name = answer.id if answer.id in known else same.get(CaseId(answer.id).canonical(), "")
            targets = [name] if name else by_short_id.get(answer.id, [])
            if len(targets) != 1:
                (ambiguous if targets else unknown).append(answer)
            elif (earlier := first.setdefault(targets[0], answer)) is not answer:
                message = f"found a second answer to {targets[0]!r}, expected one (first in line {earlier.line})"
                faults.add(answer.line, answer.column, "", message)
            elif targets[0] in cases:
                cases[targets[0]] = cases[targets[0]].answered(answer.value)
        _add_unknown(unknown, known, faults)
        _add_ambiguous(ambiguous, by_short_id, faults)


def _from_json(path: Path, reader: "_AnswerRows", rows_key: str | None) -> Iterator[RecordedAnswer]:
    """Yield the recorded answers of a ``.json`` file: an object of answers by id, or a list of rows."""
    document = InputFile(path, reader.faults.file).read_json(depth=1 if rows_key is None else 2)
    if isinstance(document.data, dict) and isinstance(rows := document.data.get(rows_key), list):
        for index, row in enumerate(rows):
            yield from reader.answers(*document.locate((str(rows_key), index)), f"{rows_key}[{index}]", row)
    elif isinstance(document.data, dict):
        for key, value in document.data.items():
            yield RecordedAnswer(str(CaseId.read(key)), value, *document.locate((key,), key=True))
    elif isinstance(document.data, list):
        for index, row in enumerate(document.data):
            yield from reader.answers(*document.locate((index,)), f"[{index}]", row)
    else:
        expected = "an object of answers by id, or a list of rows"
        reader.faults.add(1, 1, "", f"found {kind(document.data)}, expected {expected}")


class _AnswerRows:
    """Reads rows of one file of answers; rows that lack the same key are one fault."""

    def __init__(self, faults: FaultLog, prepare: Callable[[Any], Any], answer_keys: Sequence[str]) -> None:
        self.faults = faults
        self.prepare = prepare
        self.answer_keys = answer_keys
        self.lacking: dict[tuple[str, ...], list[tuple[int, int, str, Any]]] = {}

    def answers(self, line: int, column: int, path: str, raw: Any) -> Iterator[RecordedAnswer]:
        """Yield the answer of a row, or add its fault."""
        row = self.prepare(raw)
        if not isinstance(row, dict):
            message = f"found {kind(row)}, expected an object with `question_id` and `prediction`"
            self.faults.add(line, column, path, message)
            return
        id_key = _first_key(row, CaseId.KEYS)
        answer_key = _first_key(row, _ANSWER_KEYS)
        if id_key is None or answer_key is None:
            keys = tuple(CaseId.KEYS if id_key is None else self.answer_keys)
            self.lacking.setdefault(keys, []).append((line, column, path, raw))
            return
        name = CaseId.read(row[id_key])
        if name is None:
            message = f"found {kind(row[id_key])} as `{id_key}`, expected text or a whole number"
            self.faults.add(line, column, path, message)
            return
        conversation_key = _first_key(row, _CONVERSATION_KEYS)
        conversation = CaseId.read(row[conversation_key]) if conversation_key is not None else None
        if conversation is not None and not name.startswith(f"{conversation}/"):
            name = f"{conversation}/{name}"
        yield RecordedAnswer(name, row[answer_key], line, column)

    def finish(self) -> None:
        """Add a fault for the rows that lack an id, and one for those that lack an answer."""
        for keys, rows in self.lacking.items():
            line, column, path, row = rows[0]
            expected = " or ".join(f"`{key}`" for key in keys)
            present = f"the keys {', '.join(map(repr, row))}" if row else "no key"
            more = f" (and {counted(len(rows) - 1, 'more row')} like it)" if len(rows) > 1 else ""
            self.faults.add(line, column, path, f"found {present}, expected {expected}{more}")


def _first_key(row: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    """The first of several accepted keys that a row of recorded answers has, such as ``question_id``."""
    return next((key for key in keys if key in row), None)


def _some(answers: list[RecordedAnswer]) -> str:
    """The first few ids of recorded answers, for the message of a fault."""
    return listed((repr(answer.id) for answer in answers), _SHOWN_IDS, ", ...")


def _add_unknown(answers: list[RecordedAnswer], known: Collection[str], faults: FaultLog) -> None:
    """Add one fault for the recorded answers with an id that no case has."""
    if answers:
        unknown = f"found {counted(len(answers), 'id')} that no case has ({_some(answers)})"
        expected = f"expected ids such as {next(iter(known))!r}{suggest(answers[0].id, known)}"
        faults.add(answers[0].line, answers[0].column, "", f"{unknown}, {expected}")


def _add_ambiguous(answers: list[RecordedAnswer], by_short_id: dict[str, list[str]], faults: FaultLog) -> None:
    """Add one fault for the recorded answers with a short id that several conversations have."""
    if answers:
        same = by_short_id[answers[0].id]
        ambiguous = f"found {counted(len(answers), 'id')} that several conversations have ({_some(answers)})"
        expected = f"expected them with their conversation: {answers[0].id!r} is {same[0]!r} or {same[1]!r}"
        faults.add(answers[0].line, answers[0].column, "", f"{ambiguous}, {expected}")
