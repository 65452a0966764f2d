"""The official files of LoCoMo and LongMemEval as cases and samples, and memory agents as targets."""

import asyncio
import hashlib
import inspect
import json
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pytest_llmeval.core import Case, Fault, PredictionError, SuiteError, grouped, unknown_name
from pytest_llmeval.data import (
    CaseFile,
    CaseId,
    Document,
    FaultLog,
    FileSource,
    InputFile,
    RecordedAnswers,
    Taxonomy,
    json_text,
    kind,
)
from pytest_llmeval.services import in_thread
from pytest_llmeval.tasks._rows import UnreadKeys, wrong_values
from pytest_llmeval.tasks.memory_qa._qa import Agent, QAPair, Sample, type_of

_ADVERSARIAL = 5
_CATEGORY_NAMES: Final[Mapping[str, str]] = {
    "1": "multi_hop",
    "2": "temporal",
    "3": "open_domain",
    "4": "single_hop",
    "5": "adversarial",
}
"""The categories under the names that LoCoMo's scorer gives to them."""


@dataclass(frozen=True)
class LocomoSource(FileSource):
    """A list of ``{sample_id, conversation, qa}``.

    The id of a case is ``sample_id/index``, since each conversation numbers its questions from 0. Labels
    are ``question_type``, ``category`` and ``conversation_id``. A category outside 1 to 5 counts as
    ``single_hop``, as where the question types come from; the label ``category`` keeps the number. Questions of
    category 5 have no expected answer: their ``adversarial_answer`` is the wrong one that they provoke.

    Answers belong to questions by id, or by ``question``, with ``sample_id`` if several conversations ask it. A file of
    LoCoMo's scripts, a list of conversations whose ``qa`` have a ``..._prediction``, is read as well.

    Attributes:
        history: Whether the input has the ``conversation`` besides ``question`` and ``conversation_id``; all
            questions about it share one object. Not needed where the answers are recorded.
        conversations: The ``sample_id`` of the conversations to read; empty for all.
        question_types: The question types to read; empty for all.
        category_names: Names of the categories 1, 3 and 4: ``magma`` for ``single_hop``, ``multi_hop`` and
            ``open_domain``, as in MAGMA and HiMGA; ``locomo`` for ``multi_hop``, ``open_domain`` and ``single_hop``, as
            in LoCoMo's own scorer.
        adversarial: The expected answer of category 5: ``none``, or ``original`` for the ``adversarial_answer``, which
            HiMGA expects.
        ignore: Keys of the file that are not read on purpose.
    """

    format: ClassVar[str] = "locomo"
    short_ids: ClassVar[bool] = True

    history: bool = True
    conversations: tuple[str, ...] = ()
    question_types: tuple[str, ...] = ()
    category_names: Literal["magma", "locomo"] = "magma"
    adversarial: Literal["none", "original"] = "none"
    ignore: tuple[str, ...] = ()

    def selects(self, case: Case) -> bool:
        """Whether conversation and question type are asked for."""
        return (not self.conversations or case.labels["conversation_id"] in self.conversations) and (
            not self.question_types or case.labels["question_type"] in self.question_types
        )

    def read(self, file: CaseFile) -> None:
        """Add the questions of all conversations."""
        document = file.read_json(depth=4)
        if not isinstance(document.data, list):
            file.faults.add(1, 1, "", f"found {kind(document.data)}, expected a list of conversations")
            return
        keys = {_SAMPLE: UnreadKeys(_SAMPLE_KEYS, self.ignore), _QUESTION: UnreadKeys(_QUESTION_KEYS, self.ignore)}
        names = [self._read_sample(file, document, index, keys) for index in range(len(document.data))]
        for unread in keys.values():
            unread.report(file.faults)
        _check_names(file, "conversations", self.conversations, {name for name in names if name})
        _check_names(
            file,
            "question_types",
            self.question_types,
            Taxonomy("question_types").load()["locomo"]["categories"].values(),
        )

    def answers(self, path: Path, cases: Mapping[str, Case], faults: FaultLog) -> RecordedAnswers:
        """Return the recorded answers, of which those without an id belong to the question that they repeat."""
        by_question: dict[tuple[str, str], list[str]] = grouped(
            ((conversation, _key(case.input["question"])), name)
            for name, case in cases.items()
            for conversation in ("", case.labels["conversation_id"])
        )

        def with_id(row: Any) -> Any:
            if not isinstance(row, dict) or any(key in row for key in CaseId.KEYS):
                return row
            if not isinstance(question := row.get("question"), str):
                return row
            names = by_question.get((CaseId.read(row.get("sample_id")) or "", _key(question)), [])
            return {**row, "id": names[0]} if len(names) == 1 else row

        if (rows := _predicted_samples(path)) is not None:
            return rows
        return RecordedAnswers.read(path, faults, with_id, answer_keys=("prediction", "hypothesis", "answer"))

    def _read_sample(
        self, file: CaseFile, document: Document, index: int, keys: "Mapping[str, UnreadKeys]"
    ) -> str | None:
        """Add the questions of one conversation and return its id."""
        sample = document.data[index]
        if not isinstance(sample, dict):
            file.faults.extend([document.fault([index], f"found {kind(sample)}, expected an object")])
            return None
        keys[_SAMPLE].add(sample, *document.locate([index]), f"[{index}]")
        name = CaseId.read(sample.get("sample_id"))
        conversation = sample.get("conversation")
        checks = (
            ("sample_id", name is not None, "text"),
            ("qa", isinstance(sample.get("qa"), list), "a list of questions"),
            (
                "conversation",
                not self.history or isinstance(conversation, dict),
                "an object (or `history: false`)",
            ),
        )
        faults = wrong_values(sample, checks)
        file.faults.extend(document.fault([index, *path], message) for path, message in faults)
        if not faults:
            shared = {"conversation_id": name} | ({"conversation": conversation} if self.history else {})
            for number, item in enumerate(sample["qa"]):
                if isinstance(item, dict):
                    keys[_QUESTION].add(item, *document.locate([index, "qa", number]), f"[{index}].qa[{number}]")
                self._read_question(file, document, (index, "qa", number), shared)
        return name

    def _question_type(self, category: int) -> str:
        types = Taxonomy("question_types").load()["locomo"]
        names = _CATEGORY_NAMES if self.category_names == "locomo" else types["categories"]
        name: str = names.get(str(category), types["other_category"])
        return name

    def _answer(self, item: Mapping[str, Any]) -> str | None:
        """Return the text of the right answer, if any."""
        answer = item.get("answer")
        if item["category"] == _ADVERSARIAL:
            if self.adversarial == "none":
                return None
            answer = item["adversarial_answer"] if item.get("adversarial_answer") is not None else answer
        return "" if answer is None else json_text(answer)

    def _read_question(
        self, file: CaseFile, document: Document, path: tuple[int, str, int], shared: Mapping[str, Any]
    ) -> None:
        item = document.data[path[0]]["qa"][path[2]]
        if not isinstance(item, dict):
            file.faults.extend([document.fault(path, f"found {kind(item)}, expected an object")])
            return
        checks = (
            ("question", isinstance(item.get("question"), str), "text"),
            ("category", type(item.get("category")) is int, "a whole number"),
        )
        faults = wrong_values(item, checks)
        file.faults.extend(document.fault([*path, *steps], message) for steps, message in faults)
        if faults:
            return
        category = item["category"]
        line, column = document.locate(path)
        case = Case(
            id=f"{shared['conversation_id']}/{path[2]}",
            input={"question": item["question"], **shared},
            expected=self._answer(item),
            labels={
                "question_type": self._question_type(category),
                "category": str(category),
                "conversation_id": shared["conversation_id"],
            },
            line=line,
        )
        file.add(case, f"[{path[0]}].sample_id", column)


_SAMPLE: Final = "sample"
_QUESTION: Final = "question"
_SAMPLE_KEYS: Final = ("sample_id", "conversation", "qa", "event_summary", "observation", "session_summary")
_QUESTION_KEYS: Final = ("question", "answer", "category", "adversarial_answer", "evidence")
_PREDICTION: Final = "prediction"


def _key(question: str) -> str:
    """A memory question with its spaces normalized, by which predictions find their case."""
    return " ".join(question.split())


def _predicted_samples(path: Path) -> RecordedAnswers | None:
    """The answers of a file that LoCoMo's scripts write; ``None`` for any other file."""
    if path.suffix.lower() != ".json":
        return None
    try:
        document = InputFile(path).read_json(depth=3)
    except SuiteError:
        return None
    samples = document.data if isinstance(document.data, list) else []
    if not samples or not all(isinstance(sample, dict) and isinstance(sample.get("qa"), list) for sample in samples):
        return None
    answers = RecordedAnswers()
    for index, sample in enumerate(samples):
        for number, item in enumerate(sample["qa"]):
            key = next((key for key in item if key.endswith(_PREDICTION)), None) if isinstance(item, dict) else None
            if key is not None:
                name = f"{CaseId.read(sample.get('sample_id'))}/{number}"
                answers.add(name, item[key], *document.locate([index, "qa", number]))
    return answers


_HISTORY = ("haystack_dates", "haystack_session_ids", "haystack_sessions")
_LONGMEMEVAL_KEYS: Final = (
    *("question_id", "question_type", "question", "answer", "question_date"),
    *_HISTORY,
    "answer_session_ids",
)
_ABSTENTION = "_abs"
_EVIDENCE_MARK = "has_answer"


@dataclass(frozen=True)
class LongMemEvalSource(FileSource):
    """``{question_id, question_type, question, answer, question_date, haystack_sessions, ...}``: a list, or JSONL.

    Labels are ``question_type`` (with underscores), and ``abstention: "true"`` where the id ends in ``_abs``:
    there the right answer is that the sessions do not say. A question type that the benchmark does not have yet is
    kept unchanged.

    Attributes:
        history: Whether the input has the ``haystack_*`` lists besides ``question`` and ``question_date``,
            without the marks on turns that hold the answer. Not needed where the answers are recorded.
        question_types: The question types to read, with underscores; empty for all.
        ignore: Keys of the file that are not read on purpose.
    """

    format: ClassVar[str] = "longmemeval"

    history: bool = True
    question_types: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def selects(self, case: Case) -> bool:
        """Whether the question type is asked for."""
        return not self.question_types or case.labels["question_type"] in self.question_types

    def read(self, file: CaseFile) -> None:
        """Add the questions."""
        unread = UnreadKeys(_LONGMEMEVAL_KEYS, self.ignore)
        document = file.read_json(depth=2) if file.path.suffix.lower() == ".json" else None
        for row in file.rows(document, "a list of questions"):
            if isinstance(row.data, dict):
                unread.add(row.data, row.line, row.column, row.path)
            faults = list(self._faults(row.data))
            for steps, message in faults:
                file.faults.add(*row.locate(steps), row.path_to(*steps), message)
            if not faults:
                file.add(self._case(row.data, row.line), row.path_to("question_id"), row.column)
        unread.report(file.faults)
        known = {case.labels["question_type"] for case in file.cases.values()}
        known.update(Taxonomy("question_types").load()["longmemeval"]["question_types"])
        _check_names(file, "question_types", self.question_types, known)

    def _case(self, item: Mapping[str, Any], line: int) -> Case:
        name = str(CaseId.read(item["question_id"]))
        question_type = item["question_type"].replace("-", "_")
        labels = {"question_type": question_type}
        if name.endswith(_ABSTENTION):
            labels["abstention"] = "true"
        question = {key: item[key] for key in ("question", "question_date") if key in item}
        if self.history:
            question |= {key: _without_marks(item[key]) for key in _HISTORY if key in item}
        answer = item.get("answer")
        expected = "" if answer is None else json_text(answer)
        return Case(name, question, expected, labels=labels, line=line)

    def _faults(self, item: Any) -> Sequence[tuple[Sequence[str], str]]:
        """Return path and message of each fault of a question."""
        if not isinstance(item, dict):
            return [((), f"found {kind(item)}, expected an object")]
        sessions = isinstance(item.get("haystack_sessions"), list)
        checks = (
            ("question_id", CaseId.read(item.get("question_id")) is not None, "text"),
            ("question", isinstance(item.get("question"), str), "text"),
            ("haystack_sessions", sessions or not self.history, "a list (or `history: false`)"),
            ("question_type", isinstance(item.get("question_type"), str), "text"),
        )
        return wrong_values(item, checks)


def _without_marks(history: Any) -> Any:
    """A memory case's sessions without the marks of turns that hold the answer."""
    if isinstance(history, list):
        return [_without_marks(part) for part in history]
    if isinstance(history, dict) and _EVIDENCE_MARK in history:
        return {key: value for key, value in history.items() if key != _EVIDENCE_MARK}
    return history


_SOURCES: dict[str, type[FileSource]] = {"locomo": LocomoSource, "longmemeval": LongMemEvalSource}

_FILES = {"locomo": "locomo10.json", "longmemeval": "such as longmemeval_s.json"}


def load_dataset(name: str, path: str | Path | None = None, **options: Any) -> list[Sample]:
    """Return the samples of a benchmark's official file, as `run_eval` takes them.

    A sample of LoCoMo is a conversation with all of its questions; one of LongMemEval is a question with the sessions
    that came before it, and its date. Question ids are those of the cases that the source of the same name gives.

    Args:
        name: ``locomo`` or ``longmemeval``.
        path: The file, which is required: nothing is downloaded.
        options: Of the source, such as ``question_types=("temporal",)``.

    Raises:
        ValueError: The benchmark is unknown, or there is no path.
        TypeError: The source has no such option.
        SuiteError: No question can be read; all faults are listed. Those that cost single questions are a warning.
    """
    if name not in _SOURCES:
        raise ValueError(unknown_name("benchmark", name, _SOURCES))
    if path is None:
        raise ValueError(f"path is missing: load_dataset({name!r}, PATH) with the official file, {_FILES[name]}")
    source = _SOURCES[name](path=str(Path(path).absolute()), **options)
    faults: list[Fault] = []
    cases = source.load(Path(), faults)
    if faults and not cases:
        raise SuiteError(faults)
    if faults:
        warnings.warn(f"{name}: questions left out: {SuiteError(faults)}", stacklevel=2)
    return list(_samples(cases))


def _samples(cases: list[Case]) -> Iterator[Sample]:
    """Yield samples (a conversation and its questions) from the cases of an official memory file."""
    by_sample = grouped((case.input.get("conversation_id", case.id), case) for case in cases)
    for name, group in by_sample.items():
        question = group[0].input
        # What is left of a question of LongMemEval are its sessions and dates.
        history = question.get("conversation") or {key: value for key, value in question.items() if key != "question"}
        yield Sample(name, history, [_pair(case) for case in group])


def _pair(case: Case) -> QAPair:
    """The question and answer of a memory case, in the form of the original Python interface."""
    return QAPair(case.id, case.input["question"], case.expected or "", type_of(case.labels["question_type"]))


_OF_THE_QUESTION = ("question", "question_date")


@dataclass
class _Conversation:
    """A conversation history and the memory agent that has read it."""

    sample: Sample
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    agent: Agent | None = None
    failure: Exception | None = None

    async def prepare(self, make: Callable[[], Agent]) -> Agent:
        """Return the agent, once it has read the conversation; one that could not fails for every question alike."""
        if self.failure is not None:
            raise self.failure
        if self.agent is None:
            try:
                agent = await _called(make)
                await _called(agent.memory.reset)
                await _called(lambda: agent.ingest_sample(self.sample))
            except Exception as error:
                self.failure = error
                raise
            self.agent = agent
        return self.agent


def as_target(agent_factory: Callable[[], Agent], *, fresh: bool = False) -> Callable[[Any], Awaitable[Any]]:
    """Return a target for suites that answers questions by memory agents, as `run_eval` drives them.

    Each process makes an agent for each conversation: its memory is reset, it reads the conversation, and it answers
    the questions one after the other, in the order in which they are asked. Different conversations run at the same
    time. The input of a case holds ``question`` and either ``conversation`` with ``conversation_id``, as the source
    ``locomo`` gives them, or the history itself, as ``longmemeval`` does.

    Args:
        agent_factory: Makes an agent; its methods may be ``async``.
        fresh: Whether an agent is made anew for every question. For agents whose answers change what they remember:
            which questions a process asks, and so what such an agent remembers, differs with ``-n`` and ``-k``.
    """
    conversations: dict[str, _Conversation] = {}

    async def answer(value: Any) -> Any:
        question, sample = _parts(value)
        if fresh:
            agent = await _Conversation(sample).prepare(agent_factory)
            return await _called(lambda: agent.answer(question))
        conversation = conversations.setdefault(sample.sample_id, _Conversation(sample))
        async with conversation.turn:
            agent = await conversation.prepare(agent_factory)
            return await _called(lambda: agent.answer(question))

    answer.__module__ = sys._getframe(1).f_globals.get("__name__", __name__)  # noqa: SLF001 (as namedtuple: a suite may name only what its own module defines)
    return answer


def _parts(value: Any) -> tuple[str, Sample]:
    """The question of a memory case's input, and its conversation."""
    if not isinstance(value, Mapping) or not isinstance(value.get("question"), str):
        description = (
            f"an object with {', '.join(map(repr, value))}" if isinstance(value, Mapping) else type(value).__name__
        )
        raise PredictionError(f"found {description} as input, expected an object with 'question' and 'conversation'")
    history = {key: part for key, part in value.items() if key not in _OF_THE_QUESTION}
    if not history.keys() - {"conversation_id"}:
        raise PredictionError("found a question without a conversation, expected one (source: history is not false)")
    name = history.get("conversation_id")
    if name is None:
        name = hashlib.sha256(json.dumps(history, sort_keys=True).encode()).hexdigest()[:16]
    return value["question"], Sample(str(name), history.get("conversation", history), ())


async def _called(work: Callable[[], Any]) -> Any:
    """Call a memory agent's method in a thread, so that other conversations continue; await its result if needed."""
    result = await in_thread(work, "llmeval-agent")
    return await result if inspect.isawaitable(result) else result


def _check_names(file: CaseFile, option: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Add a fault for each unknown name under an option of a memory source."""
    known = sorted(known)
    for name in names:
        if name not in known:
            file.faults.add(0, 0, option, unknown_name(option[:-1].replace("_", " "), name, known))
