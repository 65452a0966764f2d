"""Cases from the files of SemEval-2024 Task 3: conversations with their emotion-cause pairs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pytest_llmeval.core import MISSING, Case, Fault, shown_path
from pytest_llmeval.data import FaultLog, Source, render_path
from pytest_llmeval.tasks._rows import UnreadKeys
from pytest_llmeval.tasks.emotion_cause._conversation import (
    OBJECT_KEYS,
    checked_order,
    gold_pair,
    read_gold_texts,
    utterance_texts,
)
from pytest_llmeval.tasks.emotion_cause._pair_files import PairConversation, PairFile, read_pair_file
from pytest_llmeval.tasks.emotion_cause._pairs import (
    CANDIDATES,
    ID,
    KEEP,
    PAIRS,
    Pair,
    PairFault,
    Subtask,
    format_pair,
    parse_internal,
    quoted,
)

_UTTERANCES = "conversation"


@dataclass(frozen=True)
class EcacSource(Source):
    """Files of gold pairs and of predicted pairs; each official, an internal list, or what a step of MECPE writes.

    A case is a conversation, and its id is the number of the conversation.

    Attributes:
        gold: The gold file; relative to the suite file's folder, or absolute.
        subtask: 1: causes are spans of tokens. 2: causes are utterances.
        predictions: The file of predictions, or ``None`` where a target answers.
        ignore: Keys of conversations that are not read on purpose.
    """

    format: ClassVar[str] = "ecac"
    beyond_gold: ClassVar[Any] = []

    gold: str
    subtask: Subtask
    predictions: str | None = None
    ignore: tuple[str, ...] = ()

    def load(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """Return the conversations of the gold file, in its order.

        A fault of gold stops its own conversation only. Anything a model wrote is a prediction; faults of the file
        of predictions are only those that belong to no single conversation.
        """
        log = FaultLog(shown_path(folder / self.gold))
        gold = read_pair_file(folder / self.gold, log)
        cases = list(_cases(gold, self.subtask)) if gold is not None else []
        if gold is not None:
            self._report_unread(gold)
        faults.extend(log.listed())
        if self.predictions is not None:
            log = FaultLog(shown_path(folder / self.predictions))
            answers = read_pair_file(folder / self.predictions, log, predicted=True)
            if answers is not None:
                self._report_unread(answers)
            faults.extend(log.listed())
            if gold is not None and answers is not None:
                cases = [case.answered(_answer(answers, int(case.id), self.subtask)) for case in cases]
                cases += _without_gold(gold, answers, self.subtask)
        if not cases and not faults:
            message = "the file has no conversation"
            faults.append(Fault(shown_path(folder / self.gold), 0, 0, "", message))
        return cases

    def _report_unread(self, file: PairFile) -> None:
        unread = UnreadKeys((ID, _UTTERANCES, *OBJECT_KEYS, KEEP), self.ignore)
        for conversation in file.conversations.values():
            place = conversation.place
            unread.add(conversation.entry, *file.document.locate(place), render_path(place))
        unread.report(file.faults)

    def faulty(self, faults: Iterable[Fault]) -> int:
        """The number of conversations of gold, or rows of an internal list, with faults."""
        others = Path(self.predictions or "")
        ours = [
            fault.path
            for fault in faults
            if fault.line
            and not fault.spares_case
            and 0 < _alike(Path(self.gold), fault.file) >= _alike(others, fault.file)
        ]
        return len({path.partition("]")[0] for path in ours})

    def file_of(self, case: Case) -> str:
        """Return the gold file."""
        del case
        return self.gold


@dataclass(frozen=True)
class EmotionCauseSource(EcacSource):
    """The source `ecac` under the name of the evaluator."""

    format: ClassVar[str] = "emotion_cause"


def _alike(option: Path, file: str) -> int:
    """The number of equal parts, from the end, of a file's path and the name in an option; 0 for another file."""
    parts = option.parts
    return len(parts) if parts and Path(file).absolute().parts[-len(parts) :] == parts else 0


def _cases(gold: PairFile, subtask: Subtask) -> Iterator[Case]:
    """Yield the cases of an official gold file; a conversation with faults yields none."""
    for conversation in gold.conversations.values():
        before = gold.faults.count
        case = _case(gold, conversation, subtask)
        if gold.faults.count == before:
            yield case


def _case(gold: PairFile, conversation: PairConversation, subtask: Subtask) -> Case:
    """The case of an official conversation; its faults are added to those of the file."""
    texts = utterance_texts(conversation.entry)
    if texts is None and _UTTERANCES in conversation.entry:
        excerpt = quoted(conversation.entry[_UTTERANCES])
        message = f"found {excerpt}, expected a list of utterances with `text`"
        gold.fault((*conversation.place, _UTTERANCES), conversation.number, "conversation form", message)
    gold.check_list(conversation)

    def read(raw: Any) -> Pair:
        return checked_order(parse_internal(raw, subtask)[1] if gold.internal else gold_pair(raw, subtask, texts))

    rows = [raw for _, raw in conversation.rows]
    right = None if gold.internal else read_gold_texts(rows, texts, subtask)
    if right is None:
        pairs = list(gold.parse(conversation, read))
    else:
        pairs = [(position, raw, pair) for position, (raw, pair) in enumerate(zip(rows, right, strict=True), start=1)]
    gold.note_absent_words(conversation, pairs)
    return Case(
        id=str(conversation.number),
        input=_utterances(conversation.entry.get(_UTTERANCES)),
        expected=[format_pair(pair) if gold.internal else raw for _, raw, pair in pairs],
        line=gold.document.locate(conversation.place)[0],
    )


def _utterances(conversation: Any) -> Any:
    """A case's utterances without their emotions, which are part of the expected answer."""
    if not isinstance(conversation, list):
        return None
    return [
        {key: value for key, value in utterance.items() if key != "emotion"}
        if isinstance(utterance, dict)
        else utterance
        for utterance in conversation
    ]


def _answer(answers: PairFile, number: int, subtask: Subtask) -> Any:
    """The predicted emotion-cause pairs of a conversation; an internal list leaves out conversations without any."""
    conversation = answers.conversations.get(number)
    if conversation is None:
        return [] if answers.internal else MISSING
    if answers.internal:
        pairs = [_official(raw, subtask) for _, raw in conversation.rows]
        return {CANDIDATES[0]: pairs, KEEP: conversation.keep} if conversation.keep else pairs
    entry = conversation.entry
    return entry[PAIRS] if PAIRS in entry and CANDIDATES[0] not in entry else entry


def _official(row: list[Any], subtask: Subtask) -> Any:
    """Write a row of an internal list as an official emotion-cause pair; one that breaks a rule is unchanged."""
    try:
        return format_pair(parse_internal(row, subtask)[1])
    except PairFault:
        return row


def _without_gold(gold: PairFile, answers: PairFile, subtask: Subtask) -> Iterator[Case]:
    """Yield the predicted conversations that an internal gold list does not have, because they have no gold pair.

    An official gold file has all conversations, and predictions for others are ignored.
    """
    if gold.internal:
        for number in answers.conversations:
            if number not in gold.conversations:
                yield Case(id=str(number), expected=[], prediction=_answer(answers, number, subtask))
