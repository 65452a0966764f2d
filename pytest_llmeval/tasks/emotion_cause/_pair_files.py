"""Files of emotion-cause pairs."""

import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pytest_llmeval.cli import CommandResult, say
from pytest_llmeval.core import Fault, SuiteError, counted, parse_digits
from pytest_llmeval.data import Document, FaultLog, InputFile, OutputFile, render_path
from pytest_llmeval.tasks.emotion_cause._conversation import gold_pair, has_absent_words, utterance_texts
from pytest_llmeval.tasks.emotion_cause._pairs import (
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
    format_pair,
    parse_internal,
    parse_pair,
    quoted,
    validate_submission,
    whole_number,
)
from pytest_llmeval.tasks.emotion_cause._scores import EMOTIONS

_DEPTH = 4

Steps: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class PairConversation:
    """A conversation in a file of emotion-cause pairs.

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
    """A file of emotion-cause pairs that was read, with its faults so far.

    Attributes:
        document: The data, with its places.
        faults: Its faults.
        steps: Whether it has the lines of MECPE-Enhanced: its pairs are internal ones, in conversations.
        internal: Whether its pairs are internal ones.
        conversations: By number, in the order of the file.
    """

    def __init__(self, document: Document, faults: FaultLog, *, steps: bool = False) -> None:
        self.document = document
        self.faults = faults
        self.conversations: dict[int, PairConversation] = {}
        self.steps = self.internal = steps
        data = document.data
        if steps:
            for index, entry in enumerate(data):
                self._add_entry((index,), entry)
        elif isinstance(data, dict) and ID in data:
            self._add_entry((), data)
        elif isinstance(data, dict) and (key := next((key for key in CANDIDATES if key in data), None)):
            self._add_candidates(key, data)
        elif not isinstance(data, list):
            self.fault((), None, "submission form", f"found {quoted(data)}, expected a list")
        else:
            self.internal = bool(data) and isinstance(data[0], list)
            for index, entry in enumerate(data):
                (self._add_row if self.internal else self._add_entry)((index,), entry)

    def fault(
        self, place: Steps, number: Any, rule: Rule, message: str, *, position: int = 0, pair: Any = None
    ) -> None:
        """Add a fault at a path, which says conversation, pair and rule."""
        fault = SubmissionFault(number, position, pair, rule, message)
        self.faults.add(*self.document.locate(place), render_path(place), str(fault))

    def parse(self, conversation: PairConversation, read: Callable[[Any], Pair]) -> Iterator[tuple[int, Any, Pair]]:
        """Yield position, unchanged value and parsed form of each pair; what `read` cannot parse is a fault."""
        for position, (place, raw) in enumerate(conversation.rows, start=1):
            try:
                yield position, raw, read(raw)
            except PairFault as wrong:
                self.fault(place, conversation.number, wrong.rule, str(wrong), position=position, pair=raw)

    def note_absent_words(self, conversation: PairConversation, pairs: Iterable[tuple[int, Any, Pair]]) -> list[str]:
        """Note, and return, which of the pairs that `parse` yielded quote words that their utterance does not have."""
        notes = []
        for position, raw, pair in pairs:
            if has_absent_words(raw, pair):
                where = f"conversation {conversation.number}, pair {position} {quoted(raw)}"
                note = f"{where}: utterance {pair.cause_utterance} does not contain these words; the span is empty"
                place, _ = conversation.rows[position - 1]
                self.faults.note(*self.document.locate(place), render_path(place), note)
                notes.append(note)
        return notes

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
        number = whole_number(entry[ID])
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
        number = whole_number(row[0]) if isinstance(row, list) and row else None
        if number is None:
            expected = "a list that begins with the number of its conversation"
            self.fault(place, None, "pair form", f"found {quoted(row)}, expected {expected}")
            return
        conversation = self.conversations.setdefault(number, PairConversation(number, place))
        conversation.rows.append((place, row))
        conversation.keep.extend(keep)


_HEADER = re.compile(r"\s*(\d{1,9})\s+(\d{1,9})\s*")
_UTTERANCE = re.compile(r"\s*\d+ \| ")
_NUMPY = re.compile(r"np\.\w+\((\w+)\)")
_ITEMS = re.compile(r"[\[(]([^\[\]()]*)[\])]")
_STEPPED = re.compile(r"\d+")


class _StepReader:
    """Reader of the text files that the steps of MECPE-Enhanced write.

    A conversation is a line with its number and its length; a line with the gold pairs; in what Step 2 writes, a line
    with the predicted pairs, which may be empty; and a line for each utterance. A pair is ``(emotion utterance, cause
    utterance)``, perhaps with first token and the token after the last, and with the name of its emotion. One without
    has the annotated emotion of its utterance, as in the original.
    """

    def __init__(self, text: str, faults: FaultLog, *, predicted: bool) -> None:
        self._lines = text.split("\n")
        self._faults = faults
        self._predicted = predicted
        self._at = 0

    def document(self) -> Document:
        """Return the conversations, with internal pairs."""
        entries = {}
        while self._at < len(self._lines):
            start = self._at + 1
            entry = self._conversation() if self._lines[self._at].strip() else None
            if entry is not None:
                entries[start] = entry
            self._at += 1
        return Document.of_lines(self._faults.file, entries)

    def _conversation(self) -> dict[str, Any] | None:
        line, header = self._lines[self._at], _HEADER.fullmatch(self._lines[self._at])
        if header is None:
            self._fault(f"found {quoted(line)}, expected the number of a conversation and its length, such as 1 5")
            self._at = len(self._lines)
            return None
        number, length = map(int, header.groups())
        texts = [self._next()]
        if not _UTTERANCE.match(self._peek()):
            texts.append(self._next())
        pairs = self._pairs(texts)
        utterances: list[dict[str, Any]] = []
        while len(utterances) < length and _UTTERANCE.match(self._peek()):
            utterances.append(_utterance(len(utterances) + 1, self._next()))
        if len(utterances) < length:
            self._fault(f"conversation {number}: found {counted(len(utterances), 'utterance')}, expected {length}")
        emotions = {utterance["utterance_ID"]: utterance["emotion"] for utterance in utterances}
        rows = [[number, *_with_emotion(pair, emotions)] for pair in pairs]
        return {ID: number, "conversation": utterances, PAIRS: rows}

    def _pairs(self, texts: Sequence[str]) -> list[list[Any]]:
        if self._predicted and len(texts) == 1:
            self._fault("the line of predicted pairs is missing after the gold pairs, where Step 2 writes it")
            return []
        text = _NUMPY.sub(r"\1", texts[-1] if self._predicted else texts[0])
        if _ITEMS.sub("", text).strip("[](), \t"):
            self._fault(f"found {quoted(text)}, expected a list of pairs")
            return []
        groups = ([item.strip(" '\"") for item in items.split(",")] for items in _ITEMS.findall(text) if items.strip())
        return [[_read_item(item) for item in group] for group in groups]

    def _peek(self) -> str:
        return self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""

    def _next(self) -> str:
        line = self._peek()
        self._at += 1
        return line

    def _fault(self, message: str) -> None:
        self._faults.add(min(self._at + 1, len(self._lines)), 1, "", message)


def _read_item(text: str) -> int | str:
    """A number or a name in an emotion-cause pair of a MECPE text file."""
    number = parse_digits(text)
    return text if number is None else number


def _with_emotion(pair: Sequence[Any], emotions: Mapping[int, str]) -> list[Any]:
    """An emotion-cause pair of a text file, completed with its utterance's emotion if it names none."""
    named = bool(pair) and isinstance(pair[-1], str)
    return [*pair] if named or not pair else [*pair, emotions.get(pair[0])]


def _utterance(number: int, line: str) -> dict[str, Any]:
    """Read ``1 | speaker | emotion | text``; the steps put predicted emotion and cause before the speaker."""
    _, *cells = line.strip().split(" | ")
    stepped = len(cells) > 4 and all(_STEPPED.fullmatch(cell.strip()) for cell in cells[:2])  # noqa: PLR2004
    speaker, emotion, text = [*(cells[2:5] if stepped else cells[:3]), "", "", ""][:3]
    return {"utterance_ID": number, "speaker": speaker.strip(), "emotion": emotion.strip(), "text": text}


def read_pair_file(path: Path, faults: FaultLog, *, predicted: bool = False) -> PairFile | None:
    """Read a file of pairs: JSON, where a list whose first item is a list is an internal one, or the lines of a step.

    Pairs are not parsed.

    Args:
        path: The file.
        faults: Gets the faults; good conversations survive them.
        predicted: Whether to read the predicted pairs of a file that has both, in place of the gold pairs.

    Returns:
        What it holds; ``None`` if it cannot be read.
    """
    try:
        if _begins_a_step(path):
            text = InputFile(path, faults.file).read_text("conversations")
            return PairFile(_StepReader(text, faults, predicted=predicted).document(), faults, steps=True)
        return PairFile(InputFile(path, faults.file).read_json(depth=_DEPTH), faults)
    except SuiteError as error:
        faults.extend(error.faults)
        return None


def _begins_a_step(path: Path) -> bool:
    """Whether the first line of a file is that of a pair file which MECPE's Step 1 or Step 2 writes."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            return _HEADER.fullmatch(lines.readline(100)) is not None
    except OSError:
        return False  # who reads it says why


Form: TypeAlias = Literal["internal", "official", "text", "step2", "step2-gold"]
"""Spelling of pairs: as numbers, as in a submission, or with the words of their spans, as in official gold files.
Of what Step 2 writes: the predicted or the gold pairs.
"""


@dataclass
class Converted:
    """The emotion-cause pairs of a file in parsed form, by conversation, with notes for the user.

    Attributes:
        pairs: Conversation to its pairs, in the order of the file.
        notes: Conversions that may not be intended.
    """

    pairs: dict[int, list[Pair]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def convert_pairs(file: PairFile, form: Form, subtask: Subtask, conversations: PairFile | None = None) -> Converted:
    """Read the emotion-cause pairs of a file, for conversion into another form.

    The words of spans become positions by the rule of the official script. A span whose words the utterance does not
    have gets the positions 0 to 0, and a note.

    Args:
        file: Gets the faults of its pairs.
        form: Their spelling.
        subtask: 1 or 2.
        conversations: An official file with the utterances that `file` has not. Its conversations come first, in its
            order, also those without pairs.
    """
    kind = "the lines of a step" if file.steps else "an internal list of pairs" if file.internal else "conversations"
    if file.conversations and kind != _KINDS.get(form, "conversations"):
        file.fault((), None, "submission form", f"found {kind}, expected the form {form!r}")
        return Converted()
    known = conversations.conversations if conversations is not None else {}
    converted = Converted({number: [] for number in known})
    for conversation in file.conversations.values():
        file.check_list(conversation)
        texts = _texts(conversation, known.get(conversation.number))
        pairs = list(file.parse(conversation, _reader(form, subtask, texts)))
        converted.pairs.setdefault(conversation.number, []).extend(pair for *_, pair in pairs)
        if form == "text":
            converted.notes += file.note_absent_words(conversation, pairs)
    return converted


_KINDS = {
    "internal": "an internal list of pairs",
    "step2": "the lines of a step",
    "step2-gold": "the lines of a step",
}


def _reader(form: Form, subtask: Subtask, texts: list[str] | None) -> Callable[[Any], Pair]:
    """The function that reads one emotion-cause pair in a form of pair files."""
    if form in _KINDS:
        return lambda raw: parse_internal(raw, subtask)[1]
    if form == "text":
        return partial(gold_pair, subtask=subtask, texts=texts)
    return partial(parse_pair, subtask=subtask)


def _texts(conversation: PairConversation, known: PairConversation | None) -> list[str] | None:
    """The utterance texts of a conversation in a pair file, or those of the same conversation in an official file."""
    own = utterance_texts(conversation.entry)
    return own if own is not None or known is None else utterance_texts(known.entry)


def official_text(pairs: Mapping[int, Sequence[Pair]]) -> str:
    """The text of an emotion-cause submission, with a line for each conversation."""
    return _lines({ID: number, PAIRS: [format_pair(pair) for pair in own_pairs]} for number, own_pairs in pairs.items())


def internal_text(pairs: Mapping[int, Sequence[Pair]], *, with_spans: bool = False) -> str:
    """The text of an internal list of emotion-cause pairs, with a line for each pair.

    Args:
        pairs: By conversation.
        with_spans: Whether to write six numbers for a pair with a span; if not, pairs that differ in their spans only
            become one.
    """
    rows: list[tuple[int, ...]] = []
    for number, own_pairs in pairs.items():
        if with_spans:
            rows += [(number, *pair[:-1], EMOTIONS.index(pair.emotion)) for pair in own_pairs]
            continue
        plain = [
            (number, pair.emotion_utterance, pair.cause_utterance, EMOTIONS.index(pair.emotion)) for pair in own_pairs
        ]
        spans = any(isinstance(pair, SpanPair) for pair in own_pairs)
        rows += dict.fromkeys(plain) if spans else plain
    return _lines(rows)


def _lines(rows: Iterable[Any]) -> str:
    """The text of a JSON list with one line for each conversation or emotion-cause pair."""
    lines = [json.dumps(row) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions of ``llmeval emotion-cause``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    convert = actions.add_parser("convert", help="convert between the forms of files", description=_CONVERT)
    convert.add_argument("file", type=Path, help="gold or predictions")
    convert.add_argument("--from", dest="source", required=True, choices=get_args(Form), help="the form of the file")
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
    "official: a submission. text: a file with the words of spans, such as official gold. "
    "step2, step2-gold: the predicted and the gold pairs of a text file that Step 2 of MECPE-Enhanced writes."
)
_VALIDATE = "The exit code is 1 if there is a fault."


def _add_subtask(parser: ArgumentParser) -> None:
    """Add the option ``--subtask`` to an action of ``llmeval emotion-cause``."""
    parser.add_argument(
        "--subtask", type=int, required=True, choices=(1, 2), help="1: cause spans; 2: cause utterances"
    )


def _convert(options: Namespace) -> CommandResult:
    """Run ``llmeval emotion-cause convert``: write a file of emotion-cause pairs in another form."""
    file = _read(options.file, predicted=options.source == "step2")
    conversations = _read_official(options.conversations) if options.conversations is not None else None
    converted = convert_pairs(file, options.source, options.subtask, conversations)
    file.faults.check()
    if options.to == "official":
        text = official_text(converted.pairs)
    else:
        text = internal_text(converted.pairs, with_spans=options.to == "internal-spans")
    if options.output is not None:
        OutputFile(options.output).save_text([text])
    say((f"note: {note}" for note in converted.notes), error=True)
    written = [] if options.output is None else [str(options.output)]
    data = {"pairs": json.loads(text), "written": written, "notes": [*map(str, converted.notes)]}
    return CommandResult(0, data, text="" if written else text)


def _validate(options: Namespace) -> CommandResult:
    """Run ``llmeval emotion-cause validate``: report the faults of a submission by the rules of the shared task."""
    file = _read(options.file)
    gold = _read_official(options.gold) if options.gold is not None else None
    expected = [{ID: number} for number in gold.conversations] if gold is not None else None
    faults = validate_submission(file.document.data, options.subtask, expected)
    if gold is not None and options.subtask == 1:
        say((f"note: {options.gold}: {note}" for note in convert_pairs(gold, "text", 1).notes), error=True)
    if faults:
        say(_placed(file, fault) for fault in faults)
        return CommandResult(1, {"faults": len(faults)}, [counted(len(faults), "fault")])
    pairs = [raw for conversation in file.conversations.values() for _, raw in conversation.rows]
    summary = f"{counted(len(file.conversations), 'conversation')}, {counted(len(pairs), 'pair')}"
    counts = {"faults": 0, "conversations": len(file.conversations), "pairs": len(pairs)}
    return CommandResult(0, counts, [f"{options.file}: no fault in {summary}", *_respelled(pairs, options.subtask)])


def _placed(file: PairFile, fault: SubmissionFault) -> Fault:
    """A submission's fault, with its place in the file if it is about one pair."""
    line = column = 0
    if fault.position and not file.internal:
        place, _ = file.conversations[fault.conversation].rows[fault.position - 1]
        line, column = file.document.locate(place)
    return Fault(file.document.file, line, column, "", str(fault))


def _respelled(pairs: Iterable[Any], subtask: Subtask) -> Iterator[str]:
    """Yield a note if a submission's pairs are spelled in a way that the official script may reject."""
    variants = []
    for raw in pairs:
        with suppress(PairFault):  # of a conversation without gold, which is not scored
            if format_pair(parse_pair(raw, subtask)) != raw:
                variants.append(raw)
    if variants:
        advice = f"llmeval emotion-cause convert --from official --to official --subtask {subtask}"
        like = f"{counted(len(variants), 'pair')} such as {quoted(variants[0])}"
        yield f"note: found {like}, which {advice} writes as official files do"


def _read(path: Path, *, predicted: bool = False) -> PairFile:
    """Read a file of emotion-cause pairs for a command; faults of the file end the command."""
    faults = FaultLog(str(path))
    file = read_pair_file(path, faults, predicted=predicted)
    if file is None:
        raise SuiteError(faults.listed())
    return file


def _read_official(path: Path) -> PairFile:
    """Read a file of conversations that has to be in the official form of the shared task.

    Raises:
        SuiteError: It is not, or it has faults.
    """
    file = _read(path)
    if file.internal:
        file.fault((), None, "submission form", "found an internal list of pairs, expected conversations")
    file.faults.check()
    return file
