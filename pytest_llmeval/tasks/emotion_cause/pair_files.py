"""Files of emotion-cause pairs: official files and internal lists."""

__all__ = ("CANDIDATES", "ID", "KEEP", "PAIRS", "PairConversation", "PairFile", "read_pair_file")

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.data.files.documents import Document, load_json
from pytest_llmeval.data.files.places import FaultLog, render_path
from pytest_llmeval.tasks.emotion_cause.pairs import Pair, PairFault, Rule, quoted
from pytest_llmeval.tasks.emotion_cause.submission import SubmissionFault, conversation_number

ID: Final = "conversation_ID"
PAIRS: Final = "emotion-cause_pairs"

CANDIDATES: Final = ("candidates", "candidate_pairs")
"""What a file of a second step calls its pairs; which of them it keeps is beside them."""

KEEP: Final = "keep"
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
        faults: What is wrong with it.
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
        told = SubmissionFault(number, position, pair, rule, message)
        self.faults.add(*self.document.locate(place), render_path(place), str(told))

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
            found = quoted(conversation.entry[PAIRS]) if PAIRS in conversation.entry else f"no key {PAIRS}"
            place = (*conversation.place, PAIRS)
            self.fault(place, conversation.number, "pair list", f"found {found}, expected a list of pairs")

    def _add_candidates(self, key: str, data: dict[str, Any]) -> None:
        """Add the candidates of all conversations in one list, and which of them are kept."""
        self.internal = True
        rows, keep = data[key], data.get(KEEP)
        if not isinstance(rows, list) or not isinstance(keep, list) or len(rows) != len(keep):
            message = f"found {quoted(keep)} as {KEEP}, expected a list with 0 or 1 for each of {key}"
            self.fault((), None, "submission form", message)
            return
        for position, (row, kept) in enumerate(zip(rows, keep, strict=True)):
            self._add_row((key, position), row, [kept])

    def _add_entry(self, place: Steps, entry: Any) -> None:
        if not isinstance(entry, dict) or ID not in entry:
            found = f"no key {ID}" if isinstance(entry, dict) else quoted(entry)
            self.fault(place, None, "conversation form", f"found {found}, expected an object with {ID} and {PAIRS}")
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

    Pairs are not looked at.

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
