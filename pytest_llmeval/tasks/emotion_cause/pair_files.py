"""Files of emotion-cause pairs: their forms, conversion, and the command ``llmeval emotion-cause``."""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pytest_llmeval.cli.console import say, write_text
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import counted
from pytest_llmeval.data.files.documents import Document, load_json
from pytest_llmeval.data.files.places import FaultLog, render_path
from pytest_llmeval.tasks.emotion_cause.conversation import gold_pair, utterance_texts
from pytest_llmeval.tasks.emotion_cause.pairs import (
    CANDIDATES,
    ID,
    KEEP,
    PAIRS,
    Pair,
    PairFault,
    Rule,
    SpanPair,
    SubmissionFault,
    Subtask,
    conversation_number,
    format_pair,
    parse_internal,
    parse_pair,
    quoted,
    validate_submission,
)
from pytest_llmeval.tasks.emotion_cause.scores import EMOTIONS

_DEPTH = 4

Steps: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class PairConversation:
    """A conversation of a file.

    Attributes:
        number: Its ``conversation_ID``.
        place: Where it begins, as a path in the file.
        entry: Its object in an official file; empty in an internal one.
        rows: Path and unchanged value of each pair.
        keep: Whether each is kept, in a file of candidates; else empty.
    """

    number: int
    place: Steps
    entry: dict[str, Any] = field(default_factory=dict)
    rows: list[tuple[Steps, Any]] = field(default_factory=list)
    keep: list[Any] = field(default_factory=list)


class PairFile:
    """A file that has been read, with the faults found in it so far.

    Attributes:
        document: The data, with its places.
        faults: Its faults.
        internal: Whether it is an internal list of pairs.
        conversations: By number, in the order of the file.
    """

    def __init__(self, document: Document, faults: FaultLog) -> None:
        self.document = document
        self.faults = faults
        self.conversations: dict[int, PairConversation] = {}
        self.internal = False
        data = document.data
        if isinstance(data, dict) and ID in data:
            self._add_entry((), data)
        elif isinstance(data, dict) and (key := next((key for key in CANDIDATES if key in data), None)):
            self._add_candidates(key, data)
        elif not isinstance(data, list):
            self.fault((), None, "submission form", f"found {quoted(data)}, expected a list")
        else:
            self.internal = bool(data) and isinstance(data[0], list)
            for index, each in enumerate(data):
                (self._add_row if self.internal else self._add_entry)((index,), each)

    def fault(
        self, place: Steps, number: Any, rule: Rule, message: str, *, position: int = 0, pair: Any = None
    ) -> None:
        """Add a fault at a path, which says conversation, pair and rule."""
        fault = SubmissionFault(number, position, pair, rule, message)
        self.faults.add(*self.document.locate(place), render_path(place), str(fault))

    def parse(self, conversation: PairConversation, read: Callable[[Any], Pair]) -> Iterator[tuple[Any, Pair]]:
        """Yield each pair, unchanged and as parsed by `read`; pairs that it cannot parse are faults."""
        for position, (place, raw) in enumerate(conversation.rows, start=1):
            try:
                yield raw, read(raw)
            except PairFault as wrong:
                self.fault(place, conversation.number, wrong.rule, str(wrong), position=position, pair=raw)

    def check_list(self, conversation: PairConversation) -> None:
        """Add a fault if an official conversation has no list of pairs."""
        if not self.internal and not isinstance(conversation.entry.get(PAIRS), list):
            excerpt = quoted(conversation.entry[PAIRS]) if PAIRS in conversation.entry else f"no key {PAIRS}"
            place = (*conversation.place, PAIRS)
            self.fault(place, conversation.number, "pair list", f"found {excerpt}, expected a list of pairs")

    def _add_candidates(self, key: str, data: dict[str, Any]) -> None:
        """Add the candidates of all conversations in one list, and which of them are kept."""
        self.internal = True
        rows, keep = data[key], data.get(KEEP)
        if not isinstance(rows, list) or not isinstance(keep, list) or len(rows) != len(keep):
            message = f"found {quoted(keep)} as {KEEP}, expected a list with 0 or 1 for each of {key}"
            self.fault((), None, "submission form", message)
            return
        for position, (row, flag) in enumerate(zip(rows, keep, strict=True)):
            self._add_row((key, position), row, [flag])

    def _add_entry(self, place: Steps, entry: Any) -> None:
        if not isinstance(entry, dict) or ID not in entry:
            excerpt = f"no key {ID}" if isinstance(entry, dict) else quoted(entry)
            self.fault(place, None, "conversation form", f"found {excerpt}, expected an object with {ID} and {PAIRS}")
            return
        number = conversation_number(entry[ID])
        if number is None:
            self.fault((*place, ID), entry[ID], "conversation id", "found a value that is not a whole number")
            return
        first = self.conversations.get(number)
        if first is not None:
            message = f"found it twice, expected it once (first in line {self.document.locate(first.place)[0]})"
            self.fault((*place, ID), number, "conversation repeated", message)
            return
        pairs = entry.get(PAIRS)
        rows = pairs if isinstance(pairs, list) else []
        places: list[tuple[Steps, Any]] = [((*place, PAIRS, position), row) for position, row in enumerate(rows)]
        self.conversations[number] = PairConversation(number, place, entry, places)

    def _add_row(self, place: Steps, row: Any, keep: Sequence[Any] = ()) -> None:
        number = conversation_number(row[0]) if isinstance(row, list) and row else None
        if number is None:
            expected = "a list that begins with the number of its conversation"
            self.fault(place, None, "pair form", f"found {quoted(row)}, expected {expected}")
            return
        conversation = self.conversations.setdefault(number, PairConversation(number, place))
        conversation.rows.append((place, row))
        conversation.keep.extend(keep)


def read_pair_file(path: Path, faults: FaultLog) -> PairFile | None:
    """Read a file of pairs; a list whose first item is a list is an internal one.

    Pairs are not parsed.

    Args:
        path: The file.
        faults: Gets the faults; good conversations survive them.

    Returns:
        What it holds; ``None`` if it cannot be read.
    """
    try:
        return PairFile(load_json(path, faults.file, depth=_DEPTH), faults)
    except SuiteError as error:
        faults.extend(error.faults)
        return None


Form: TypeAlias = Literal["internal", "official", "text"]
"""Spelling of pairs: as numbers, as in a submission, or with the words of their spans as in official gold files."""


@dataclass
class Converted:
    """Pairs that have been read.

    Attributes:
        pairs: Conversation to its pairs, in the order of the file.
        notes: Conversions that may not be intended.
    """

    pairs: dict[int, list[Pair]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def convert_pairs(file: PairFile, form: Form, subtask: Subtask, conversations: PairFile | None = None) -> Converted:
    """Read the pairs of a file.

    The words of spans become positions by the rule of the official script: a span whose words the utterance does not
    have gets the positions 0 to 0, and a note.

    Args:
        file: Gets the faults of its pairs.
        form: Their spelling.
        subtask: 1 or 2.
        conversations: An official file with the utterances that `file` has not. Its conversations come first, in its
            order, also those without pairs.
    """
    if file.conversations and file.internal != (form == "internal"):
        form_name = "an internal list of pairs" if file.internal else "conversations instead of an internal list"
        file.fault((), None, "submission form", f"found {form_name}, expected the form {form!r}")
        return Converted()
    known = conversations.conversations if conversations is not None else {}
    converted = Converted({number: [] for number in known})
    for conversation in file.conversations.values():
        file.check_list(conversation)
        texts = _texts(conversation, known.get(conversation.number))
        pairs = converted.pairs.setdefault(conversation.number, [])
        for position, (raw, pair) in enumerate(file.parse(conversation, _reader(form, subtask, texts)), start=1):
            pairs.append(pair)
            if form == "text" and isinstance(pair, SpanPair) and pair.start == pair.end:
                place = f"conversation {conversation.number}, pair {position} {quoted(raw)}"
                converted.notes.append(
                    f"{place}: utterance {pair.cause_utterance} does not contain these words; the span is empty"
                )
    return converted


def _reader(form: Form, subtask: Subtask, texts: list[str] | None) -> Callable[[Any], Pair]:
    if form == "internal":
        return lambda raw: parse_internal(raw, subtask)[1]
    if form == "text":
        return partial(gold_pair, subtask=subtask, texts=texts, absent=(0, 0))
    return partial(parse_pair, subtask=subtask)


def _texts(conversation: PairConversation, known: PairConversation | None) -> list[str] | None:
    own = utterance_texts(conversation.entry)
    return own if own is not None or known is None else utterance_texts(known.entry)


def official_text(pairs: Mapping[int, Sequence[Pair]]) -> str:
    """Return the text of a submission, with a line for each conversation."""
    return _lines({ID: number, PAIRS: [format_pair(pair) for pair in each]} for number, each in pairs.items())


def internal_text(pairs: Mapping[int, Sequence[Pair]], *, with_spans: bool = False) -> str:
    """Return the text of an internal list, with a line for each pair.

    Args:
        pairs: By conversation.
        with_spans: Whether to write six numbers for a pair with a span; otherwise pairs that differ in their spans only
            become one.
    """
    rows: list[tuple[int, ...]] = []
    for number, each in pairs.items():
        if with_spans:
            rows += [(number, *pair[:-1], EMOTIONS.index(pair.emotion)) for pair in each]
            continue
        plain = [(number, pair.emotion_utterance, pair.cause_utterance, EMOTIONS.index(pair.emotion)) for pair in each]
        spans = any(isinstance(pair, SpanPair) for pair in each)
        rows += dict.fromkeys(plain) if spans else plain
    return _lines(rows)


def _lines(rows: Iterable[Any]) -> str:
    lines = [json.dumps(row) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    convert = actions.add_parser("convert", help="convert between the forms of files", description=_CONVERT)
    convert.add_argument("file", type=Path, help="gold or predictions")
    convert.add_argument(
        "--from", dest="source", required=True, choices=("internal", "official", "text"), help="the form of the file"
    )
    convert.add_argument(
        "--to", required=True, choices=("internal", "internal-spans", "official"), help="the form to convert to"
    )
    _add_subtask(convert)
    convert.add_argument(
        "--conversations",
        type=Path,
        metavar="FILE",
        help="official file with the utterances that spans are located in; all its conversations are written",
    )
    convert.add_argument("-o", "--output", type=Path, metavar="FILE", help="output file (default: standard output)")
    convert.set_defaults(run=_convert, refuse=convert.error)
    validate = actions.add_parser("validate", help="list every fault of a submission", description=_VALIDATE)
    validate.add_argument("file", type=Path, metavar="submission", help="the JSON file to submit")
    _add_subtask(validate)
    validate.add_argument("--gold", type=Path, metavar="FILE", help="official gold file, to find missing conversations")
    validate.set_defaults(run=_validate)


_CONVERT = (
    "internal: a list of [conversation, emotion utterance, cause utterance, number of the emotion]. "
    "internal-spans: the same with first token and the token after the last before the emotion. "
    "official: a submission. text: a file with the words of spans, such as official gold."
)
_VALIDATE = "The exit code is 1 if there is a fault."


def _add_subtask(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--subtask", type=int, required=True, choices=(1, 2), help="1: cause spans; 2: cause utterances"
    )


def _convert(options: Namespace) -> int:
    file = _read(options.file)
    conversations = _read_official(options.conversations) if options.conversations is not None else None
    converted = convert_pairs(file, options.source, options.subtask, conversations)
    file.faults.check()
    if options.to == "official":
        text = official_text(converted.pairs)
    else:
        text = internal_text(converted.pairs, with_spans=options.to == "internal-spans")
    if options.output is not None:
        write_text(options.output, [text])
    say((f"note: {each}" for each in converted.notes), error=True)
    if options.output is None:
        sys.stdout.write(text)
    return 0


def _validate(options: Namespace) -> int:
    file = _read(options.file)
    gold = _read_official(options.gold) if options.gold is not None else None
    expected = [{ID: number} for number in gold.conversations] if gold is not None else None
    faults = validate_submission(file.document.data, options.subtask, expected)
    if faults:
        say(_placed(file, each) for each in faults)
        say([counted(len(faults), "fault")])
        return 1
    pairs = [raw for each in file.conversations.values() for _, raw in each.rows]
    summary = f"{counted(len(file.conversations), 'conversation')}, {counted(len(pairs), 'pair')}"
    say([f"{options.file}: no fault in {summary}"])
    say(_respelled(pairs, options.subtask))
    return 0


def _placed(file: PairFile, fault: SubmissionFault) -> Fault:
    """Return a fault, with its place in the file if it is about one pair."""
    line = column = 0
    if fault.position and not file.internal:
        place, _ = file.conversations[fault.conversation].rows[fault.position - 1]
        line, column = file.document.locate(place)
    return Fault(file.document.file, line, column, "", str(fault))


def _respelled(pairs: Iterable[Any], subtask: Subtask) -> Iterator[str]:
    """Yield a note if pairs are spelled otherwise than in official files: the official script may not read them."""
    variants = []
    for raw in pairs:
        with suppress(PairFault):  # of a conversation without gold, which is not scored
            if format_pair(parse_pair(raw, subtask)) != raw:
                variants.append(raw)
    if variants:
        advice = f"llmeval emotion-cause convert --from official --to official --subtask {subtask}"
        like = f"{counted(len(variants), 'pair')} such as {quoted(variants[0])}"
        yield f"note: found {like}, which {advice} writes as official files do"


def _read(path: Path) -> PairFile:
    faults = FaultLog(str(path))
    file = read_pair_file(path, faults)
    if file is None:
        raise SuiteError(faults.listed())
    return file


def _read_official(path: Path) -> PairFile:
    """Read a file that has to be official.

    Raises:
        SuiteError: It is not, or it has faults.
    """
    file = _read(path)
    if file.internal:
        file.fault((), None, "submission form", "found an internal list of pairs, expected conversations")
    file.faults.check()
    return file
