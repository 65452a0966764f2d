"""Files of recorded answers, and matching them with cases."""

__all__ = ("RecordedAnswer", "add_predictions", "read_answers")

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import counted, suggest
from pytest_llmeval.data.files.documents import load_json, read_jsonl
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.formats.fields import case_id, kind

_ID_KEYS = ("question_id", "query_id", "id")
_CONVERSATION_KEYS = ("sample_id", "conversation_id")
_ANSWER_KEYS = ("prediction", "hypothesis", "answer", "results")
_SHOWN_IDS = 3


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A recorded answer.

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


def read_answers(path: Path, log: FaultLog, prepare: Callable[[Any], Any] = lambda row: row) -> list[RecordedAnswer]:
    """Read a file of answers.

    A ``.json`` file is an object ``{id: answer}`` or a list of rows; any other file is JSONL, one row a line.
    A row has its id under ``question_id``, ``query_id`` or ``id``, together with ``sample_id`` or
    ``conversation_id`` if ids are unique only within a conversation, and the answer under ``prediction``,
    ``hypothesis``, ``answer`` or ``results``; the first that is there counts.

    Args:
        path: The file.
        log: Gets the faults; good answers survive them.
        prepare: Brings a row of another form into this one.
    """
    try:
        if path.suffix.lower() == ".json":
            return list(_from_json(path, log, prepare))
        faults: list[Fault] = []
        rows = [(line, 1, "", prepare(row)) for line, row in read_jsonl(path, log.file, faults)]
        log.extend(faults)
        return [answer for row in rows for answer in _from_row(*row, log)]
    except SuiteError as error:
        log.extend(error.faults)
        return []


def _from_json(path: Path, faults: FaultLog, prepare: Callable[[Any], Any]) -> Iterator[RecordedAnswer]:
    document = load_json(path, faults.file, depth=1)
    if isinstance(document.data, dict):
        for key, value in document.data.items():
            yield RecordedAnswer(str(case_id(key)), value, *document.locate((key,), key=True))
    elif isinstance(document.data, list):
        for index, row in enumerate(document.data):
            yield from _from_row(*document.locate((index,)), f"[{index}]", prepare(row), faults)
    else:
        expected = "an object of answers by id, or a list of rows"
        faults.add(1, 1, "", f"found {kind(document.data)}, expected {expected}")


def _from_row(line: int, column: int, path: str, row: Any, faults: FaultLog) -> Iterator[RecordedAnswer]:
    """Yield the answer of a row, or add its fault."""
    if not isinstance(row, dict):
        message = f"found {kind(row)}, expected an object with `question_id` and `prediction`"
        faults.add(line, column, path, message)
        return
    id_key = _first_key(row, _ID_KEYS)
    answer_key = _first_key(row, _ANSWER_KEYS)
    if id_key is None or answer_key is None:
        wanted = " or ".join(f"`{key}`" for key in (_ID_KEYS if id_key is None else _ANSWER_KEYS))
        found = f"the keys {', '.join(map(repr, row))}" if row else "no key"
        faults.add(line, column, path, f"found {found}, expected {wanted}")
        return
    name = case_id(row[id_key])
    if name is None:
        message = f"found {kind(row[id_key])} as `{id_key}`, expected text or a whole number"
        faults.add(line, column, path, message)
        return
    conversation_key = _first_key(row, _CONVERSATION_KEYS)
    conversation = case_id(row[conversation_key]) if conversation_key is not None else None
    if conversation is not None and not name.startswith(f"{conversation}/"):
        name = f"{conversation}/{name}"
    yield RecordedAnswer(name, row[answer_key], line, column)


def _first_key(row: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    return next((key for key in keys if key in row), None)


def add_predictions(
    cases: dict[str, Case], answers: list[RecordedAnswer], known: Collection[str], faults: FaultLog, *, short_ids: bool
) -> None:
    """Put answers into their cases; a case without an answer is unchanged.

    Args:
        cases: By id; changed in place.
        answers: What was recorded.
        known: All ids of the data file; answers to cases that are not selected are passed over.
        faults: Gets the answers that belong nowhere, or to several cases, or where another came first.
        short_ids: Whether the part of an id behind the slash is enough where only one case has it.
    """
    by_short_id: dict[str, list[str]] = {}
    for name in cases if short_ids else ():
        by_short_id.setdefault(name.rpartition("/")[2], []).append(name)
    first: dict[str, RecordedAnswer] = {}
    unknown: list[RecordedAnswer] = []
    ambiguous: list[RecordedAnswer] = []
    for answer in answers:
        targets = [answer.id] if answer.id in known else by_short_id.get(answer.id, [])
        if len(targets) != 1:
            (ambiguous if targets else unknown).append(answer)
        elif (earlier := first.setdefault(targets[0], answer)) is not answer:
            message = f"found a second answer to {targets[0]!r}, expected one (first in line {earlier.line})"
            faults.add(answer.line, answer.column, "", message)
        elif targets[0] in cases:
            cases[targets[0]] = cases[targets[0]].answered(answer.value)
    _add_unknown(unknown, known, faults)
    _add_ambiguous(ambiguous, by_short_id, faults)


def _some(answers: list[RecordedAnswer]) -> str:
    more = ", ..." if len(answers) > _SHOWN_IDS else ""
    return ", ".join(repr(each.id) for each in answers[:_SHOWN_IDS]) + more


def _add_unknown(answers: list[RecordedAnswer], known: Collection[str], faults: FaultLog) -> None:
    if answers:
        found = f"found {counted(len(answers), 'id')} that no case has ({_some(answers)})"
        expected = f"expected ids such as {next(iter(known))!r}{suggest(answers[0].id, known)}"
        faults.add(answers[0].line, answers[0].column, "", f"{found}, {expected}")


def _add_ambiguous(answers: list[RecordedAnswer], by_short_id: dict[str, list[str]], faults: FaultLog) -> None:
    if answers:
        same = by_short_id[answers[0].id]
        found = f"found {counted(len(answers), 'id')} that several conversations have ({_some(answers)})"
        expected = f"expected them with their conversation: {answers[0].id!r} is {same[0]!r} or {same[1]!r}"
        faults.add(answers[0].line, answers[0].column, "", f"{found}, {expected}")
