"""Files of notes on failure modes.

A file is a log: lines are added, none is changed. It says the same in any order of its lines, so two branches of a
project join theirs as the union of the lines.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from pytest_llmeval.core import Fault, LlmevalError, ShownPrints, SuiteError, unknown_name
from pytest_llmeval.data import FaultLog, InputFile, OutputFile

Draw: TypeAlias = Literal["all", "random", "spread", "failing", "uncertain"]
"""How answers were drawn: all of them, evenly, or with a preference."""

MODES_FILE: Final = "modes.jsonl"
"""The file beside a suite."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
"""One width for all, so that the order of the texts is that of the times."""


class _BookLine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="event"):
    """A line of a file of notes on failure modes.

    Attributes:
        by: Who says so: a person; of a proposal, the judge.
        at: When: UTC as ISO 8601 writes it, such as ``2026-11-26T10:41:07.123Z``. Later lines count over earlier ones.
    """

    by: str
    at: str


class ModeNote(_BookLine, frozen=True, omit_defaults=True, tag="note"):
    """The note of one reviewer on one answer, with its failure modes.

    A later note of the same person about the same answer of the same draw replaces it.

    Attributes:
        question: Fingerprint of the question, as of `ShownPrints.fingerprint`.
        answer: Fingerprint of the answer.
        reference: Fingerprint of the right answer; that of the empty text if there is none.
        modes: The failure modes of the answer; none: nothing went wrong.
        note: What went wrong, in words.
        suite: Name of the suite.
        cases: Ids of the cases that had the answer.
        systems: The systems that gave it, where there are several.
        labels: Labels of these cases, as ``key=value``.
        probability: With which the answer was drawn; 1 where all were.
        draw: How answers were drawn.
        review: The draw that it belongs to.
        run: When the run began whose answers were drawn; empty if unknown.
    """

    question: str
    answer: str
    reference: str = ""
    modes: tuple[str, ...] = ()
    note: str = ""
    suite: str = ""
    cases: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    probability: float = 1.0
    draw: Draw = "all"
    review: str = ""
    run: str = ""

    @property
    def prints(self) -> ShownPrints:
        """The fingerprints of what was shown."""
        return ShownPrints(self.question, self.answer, self.reference)

    @property
    def subject(self) -> tuple[str, ShownPrints]:
        """The answer as it was drawn; two people may say something of it."""
        return self.review, self.prints


class ModeCreated(_BookLine, frozen=True, omit_defaults=True, tag="create"):
    """A failure mode that a reviewer created.

    Attributes:
        mode: Its name. Lines may name a mode by any name that it has had.
        text: What belongs to it.
    """

    mode: str
    text: str = ""


class ModeRenamed(_BookLine, frozen=True, tag="rename"):
    """A failure mode with a new name; a mode that gets the name of another is merged with it."""

    mode: str
    name: str


class ModesMerged(_BookLine, frozen=True, tag="merge"):
    """A failure mode that became part of another one."""

    mode: str
    into: str


class ModeSplit(_BookLine, frozen=True, tag="split"):
    """A part of a failure mode that became a mode of its own, with the earlier notes on its answers.

    Attributes:
        mode: The mode.
        into: The name of the new one.
        answers: Fingerprints of question, answer and right answer.
    """

    mode: str
    into: str
    answers: tuple[ShownPrints, ...]


class ModeProposed(_BookLine, frozen=True, omit_defaults=True, tag="propose"):
    """A failure mode that a judge proposed from notes; it counts only once a person creates it.

    Attributes:
        mode: The proposed name.
        text: What would belong to it.
        answers: Fingerprints of question, answer and right answer.
    """

    mode: str
    text: str = ""
    answers: tuple[ShownPrints, ...] = ()


class SplitOpened(_BookLine, frozen=True, tag="open"):
    """A record that the test split of a failure mode's answers was opened to test an evaluator.

    Attributes:
        mode: The mode.
        answers: Fingerprints of the answers of the split.
    """

    mode: str
    answers: tuple[str, ...]


ModeLine: TypeAlias = ModeNote | ModeCreated | ModeRenamed | ModesMerged | ModeSplit | ModeProposed | SplitOpened


def mode_line(line: ModeLine) -> str:
    """The text of a line in a file of notes; equal lines have equal texts."""
    return f"{json.dumps(to_builtins(line), ensure_ascii=False)}\n"


class ModeBook:
    """The notes and failure modes of files of notes, under the current names of the modes.

    Args:
        lines: In any order; repeated ones count once.
    """

    def __init__(self, lines: Iterable[ModeLine] = ()) -> None:
        in_order = {mode_line(line): line for line in lines}
        self.lines: Sequence[ModeLine] = [
            line for _, line in sorted(in_order.items(), key=lambda item: (item[1].at, item[0]))
        ]
        self._known: dict[str, str] = {}
        self._joined: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for line in self.lines:
            self._read(line)

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of the modes, those that were made first before others."""
        return list(dict.fromkeys(self._names[self._root(name)] for name in self._names))

    @cached_property
    def notes(self) -> Sequence[ModeNote]:
        """The last note of each person about each answer of each draw, with the modes that count now."""
        last = {(line.subject, line.by): line for line in self.lines if isinstance(line, ModeNote)}
        splits = [line for line in self.lines if isinstance(line, ModeSplit)]
        return [replace(note, modes=self._modes(note, splits)) for note in last.values()]

    @cached_property
    def proposals(self) -> Sequence[ModeProposed]:
        """What judges proposed and nobody has made yet."""
        proposed = {line.mode: line for line in self.lines if isinstance(line, ModeProposed)}
        return [proposal for name, proposal in proposed.items() if name not in self._known]

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Name of each mode to what belongs to it, where somebody said so."""
        created = (line for line in self.lines if isinstance(line, ModeCreated) and line.text)
        return {self.name_of(line.mode): line.text for line in created}

    def name_of(self, name: str) -> str:
        """The present name of a mode.

        Args:
            name: Its name, or one that it has had.

        Raises:
            LlmevalError: There is no such mode.
        """
        if name not in self._known:
            raise LlmevalError(unknown_name("failure mode", name, self.names))
        return self._names[self._root(name)]

    def labelled(self, mode: str) -> Iterator[tuple[ModeNote, bool]]:
        """Yield each note with whether the answer has the mode, of every person.

        Args:
            mode: Its name, or one that it has had.

        Raises:
            LlmevalError: There is no such mode.
        """
        name = self.name_of(mode)
        for note in self.notes:
            yield note, name in note.modes

    def _read(self, line: ModeLine) -> None:
        match line:
            case ModeNote():
                for name in line.modes:
                    self._mode(name)
            case ModeCreated():
                self._mode(line.mode)
            case ModeSplit():
                self._mode(line.mode)
                self._mode(line.into)
            case ModesMerged():
                self._join(self._mode(line.mode), self._mode(line.into))
            case ModeRenamed():
                mode = self._mode(line.mode)
                self._known.setdefault(line.name, mode)
                self._join(mode, self._root(line.name))
                self._names[self._root(mode)] = line.name

    def _mode(self, name: str) -> str:
        """Return the first name of a mode, which is made if no mode has ever had this name."""
        if name not in self._known:
            self._known[name] = self._names[name] = name
        return self._root(name)

    def _join(self, mode: str, into: str) -> None:
        if mode != into:
            self._joined[mode] = into

    def _root(self, name: str) -> str:
        mode = self._known[name]
        while mode in self._joined:
            mode = self._joined[mode]
        return mode

    def _modes(self, note: ModeNote, splits: Iterable[ModeSplit]) -> tuple[str, ...]:
        modes = list(note.modes)
        for split in splits:
            if split.at >= note.at and note.prints in split.answers:
                modes = [split.into if self._root(mode) == self._root(split.mode) else mode for mode in modes]
        return tuple(dict.fromkeys(self._names[self._root(mode)] for mode in modes))


def read_modes(paths: Iterable[Path]) -> ModeBook:
    """Read files of notes on failure modes.

    Raises:
        SuiteError: Some cannot be read, or a line is none of such a file; all faults are listed.
    """
    lines: list[ModeLine] = []
    faults: list[Fault] = []
    for path in paths:
        log = FaultLog(str(path))
        if path.suffix == ".json":
            log.add(0, 0, "", "found a JSON file, expected lines of notes, which llmeval review --modes writes")
            faults += log.listed()
            continue
        for number, row in InputFile(path).read_jsonl(faults):
            try:
                lines.append(read_line(row))
            except ValueError as error:
                log.add(number, 1, "", str(error))
        faults += log.listed()
    if faults:
        raise SuiteError(faults)
    return ModeBook(lines)


def add_lines(path: Path, lines: Iterable[ModeLine]) -> None:
    """Add lines to a file, except those that it has; a full disk leaves it as it was.

    Raises:
        SuiteError: The file has faults.
        OSError: It cannot be written.
    """
    new = dict.fromkeys(map(mode_line, lines))

    def make() -> str:
        if not path.exists():
            return "".join(new)
        read_modes([path])
        before = path.read_text(encoding="utf-8")
        before += "" if before.endswith("\n") or not before else "\n"
        known = {*before.splitlines(keepends=True)}
        return before + "".join(line for line in new if line not in known)

    OutputFile(path).rewrite(make)


def read_line(row: Any) -> ModeLine:
    """Parse a line of a file of notes on failure modes.

    Raises:
        ValueError: It is none.
    """
    try:
        line: ModeLine = convert(row, ModeLine)
    except ValidationError as error:
        raise ValueError(f"cannot be read ({error}), expected a line that the review page writes") from None
    if not _TIME.fullmatch(line.at):
        raise ValueError(f"at: found {line.at!r}, expected a time such as 2026-11-26T10:41:07.123Z")
    names = [("modes", mode) for mode in getattr(line, "modes", ())]
    names += [(name, getattr(line, name, "any")) for name in ("by", "mode", "name", "into")]
    for key, name in names:
        if not name.strip():
            raise ValueError(f"{key}: found an empty text, expected a name")
    if isinstance(line, ModeNote) and not 0 < line.probability <= 1:
        raise ValueError(f"probability: found {line.probability!r}, expected a number above 0, at most 1")
    return line
