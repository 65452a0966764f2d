"""Recorded predictions."""

import json
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import ValidationError, convert, to_builtins

from pytest_llmeval.core import (
    MISSING,
    Case,
    Fault,
    Opaque,
    PredictionError,
    SuiteError,
    WrittenObject,
    input_digest,
)
from pytest_llmeval.data import InputFile, JsonText, OutputFile, OutputFolder, display_path
from pytest_llmeval.services import Secrets

RecordingMode: TypeAlias = Literal["auto", "replay", "record", "refresh"]
RecordingPlace: TypeAlias = tuple[str, str, str, int]
RecordedRows: TypeAlias = dict[RecordingPlace, dict[str, Any]]
_FIGURES = ("cost_usd", "latency_s")
WITHHELD = "withheld"
"""Key of a recorded prediction that is left out, since it has a secret."""
UNWRITTEN = "unwritten"
"""Key of one that is left out, since JSON cannot say it."""
OBJECT = "object"
"""Key of what is recorded of an object beside its form."""


class NotRecorded(NamedTuple):
    """Cases whose predictions are not recorded, by id and sorted.

    Attributes:
        unreadable: No later run could read them.
        secret: They have the value of a secret variable.
        unwritten: They hold what JSON cannot say, such as bytes.
    """

    unreadable: Sequence[str] = ()
    secret: Sequence[str] = ()
    unwritten: Sequence[str] = ()


MODES: tuple[RecordingMode, ...] = ("auto", "replay", "record", "refresh")


def recording_mode(mode: RecordingMode) -> tuple[bool, bool]:
    """Whether a mode of recorded predictions replays them, and whether it calls the target.

    ``auto`` replays what is recorded and calls the target for the rest; ``replay`` never calls it; ``record`` calls it
    for every case; ``refresh`` does too, and then forgets recordings of the suite that this run did not make.
    """
    return mode in ("auto", "replay"), mode != "replay"


@dataclass
class Recordings:
    """Recorded predictions of earlier runs, in a JSONL file that is sorted and reads well in a diff.

    Attributes:
        path: The file.
        mode: What to do with it.
        journal: Where the answers of this run are kept as they arrive.
    """

    path: Path
    mode: RecordingMode
    journal: "Journal | None" = None
    _rows: RecordedRows = field(default_factory=dict)
    _arrived: RecordedRows = field(default_factory=dict)
    """Answers of other processes of this run: of a crashed one, the others take over the cases."""
    _by_input: RecordedRows = field(default_factory=dict)

    @classmethod
    def open(
        cls, path: Path, mode: RecordingMode, journal: "Journal | None" = None, *, merges: bool = False
    ) -> "Recordings":
        """Read the file; an absent one is empty, except in mode ``replay``.

        Args:
            path: The file.
            mode: What to do with it.
            journal: Where the answers of this run are kept as they arrive.
            merges: Whether to take over first what killed runs left in their journals: only the main process does.

        Raises:
            SuiteError: A line of the file is no recording.
            PredictionError: The file is absent and the mode is ``replay``.
            OSError: Answers of killed runs cannot be taken over.
        """
        if mode == "replay":
            journal = None
            if not path.exists():
                raise PredictionError(
                    f"predictions file {path} does not exist; create it with --llmeval-predictions-mode=record"
                )
        recordings = cls(path, mode, journal)
        if merges and journal is not None:
            with journal.take_over(others=True) as left:
                if left:
                    recordings._merge(left)
            if left:
                journal.remove()
        recordings._rows = _read_rows(path)
        return recordings

    @classmethod
    def of_run(cls, path: Path, mode: RecordingMode, root: Path, run: str, *, merges: bool) -> "Recordings":
        """Read the file for a run, whose answers are kept in a journal as they arrive; see `open`.

        Args:
            path: The file.
            mode: What to do with it.
            root: Has the working folder with the journal.
            run: Id of the run.
            merges: As in `open`.
        """
        return cls.open(path, mode, Journal.of_file(path, root, run), merges=merges)

    def get(self, suite: str, variant: str, case: Case, repeat: int = 0) -> Any:
        """The recorded prediction of a case, or `MISSING` where it must be asked for.

        Raises:
            PredictionError: Nothing is recorded for the case, or for another input, and the mode is ``replay``.
        """
        replays, asks = recording_mode(self.mode)
        row = self._row(suite, variant, case, repeat) if replays else None
        if row is None and self.journal is not None:
            arrived = [row for row in self.journal.read_new() if _is_recording(row) and not _is_left_out(row)]
            self._arrived |= {_place(row): row for row in arrived}
            row = self._arrived_row(suite, variant, case, repeat)
        if row is not None:
            return row["prediction"]
        if asks:
            return MISSING
        by_id = (suite, variant, case.id, repeat) in self._rows
        why = "was recorded for another input" if by_id else "is not recorded"
        raise PredictionError(
            f"case {case.id!r} {why} in {self.path.name}; "
            "run once with --llmeval-predictions-mode=auto to call the target"
        )

    def figures(self, suite: str, variant: str, case: Case, repeat: int = 0) -> dict[str, float]:
        """The time, tokens and cost of a recorded prediction."""
        figures: dict[str, float] = self._known_row(suite, variant, case, repeat).get("figures", {})
        return figures

    def written(self, suite: str, variant: str, case: Case, repeat: int = 0) -> WrittenObject | None:
        """The recorded form of the object that a prediction was; ``None`` if it is JSON data."""
        return convert(self._known_row(suite, variant, case, repeat).get(OBJECT), WrittenObject | None)

    def _known_row(self, suite: str, variant: str, case: Case, repeat: int) -> Mapping[str, Any]:
        row = self._arrived_row(suite, variant, case, repeat) or self._row(suite, variant, case, repeat)
        return row or self._rows[suite, variant, case.id, repeat]

    def _arrived_row(self, suite: str, variant: str, case: Case, repeat: int) -> Mapping[str, Any] | None:
        row = self._arrived.get((suite, variant, case.id, repeat)) if self._arrived else None
        return row if row is not None and row["input"] == _case_digest(case) else None

    def _row(self, suite: str, variant: str, case: Case, repeat: int) -> Mapping[str, Any] | None:
        """The row of a case, by its id; where that is a position, which an edit moves, also by its input."""
        digest = _case_digest(case)
        row = self._rows.get((suite, variant, case.id, repeat))
        if row is not None and row["input"] == digest:
            return row
        if case.input is None or not case.id.isdecimal():
            return None
        if not self._by_input:
            for place, recorded in sorted(self._rows.items()):
                self._by_input.setdefault((*place[:2], recorded["input"], place[3]), recorded)
        return self._by_input.get((suite, variant, digest, repeat))

    def of_cases(self, suite: str, variant: str, cases: Iterable[Case], repeats: int) -> "Recordings":
        """The recordings of some cases alone, which another process can have."""
        rows = {}
        for case in cases:
            for repeat in range(repeats):
                place = suite, variant, case.id, repeat
                row = self._row(*place[:2], case, repeat) or self._rows.get(place)
                if row is not None:
                    rows[place] = dict(row)
        return Recordings(self.path, self.mode, None, rows)

    def rows_of(self, suite: str, variant: str) -> Iterator[Mapping[str, Any]]:
        """Yield all rows of recorded predictions of a suite or of one variant of it in every mode."""
        yield from (row for place, row in self._rows.items() if place[:2] == (suite, variant))

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield all rows of recorded predictions in every mode."""
        yield from self._rows.values()

    def keep(self, row: Mapping[str, Any]) -> None:
        """Write a prediction to the journal, so that a killed run does not lose it."""
        if self.journal is not None:
            # What cannot be kept now is written with everything else at the end of the run, which reports a failure.
            with suppress(OSError, RecursionError, ValueError):
                self.journal.append(row)

    def update(
        self, predictions: Iterable[Mapping[str, Any]], complete: Collection[tuple[str, str]] = ()
    ) -> NotRecorded:
        """Take over what a run predicted and write the file, sorted, in one step; mode ``replay`` writes nothing.

        What other runs have written meanwhile stays. A prediction that no later run could read would cost that run all
        the others; it is left out, and so asked for again: half of a surrogate pair, which models do emit, deep
        nesting, or a line without measure. So is one with a secret, since recordings are committed.

        Args:
            predictions: Rows of `recording`; they replace those of the journal.
            complete: Suites and variants all of whose cases ran; mode ``refresh`` forgets what else there is
                of them.

        Returns:
            The cases that were left out.

        Raises:
            OSError: The file cannot be written.
            SuiteError: It has been damaged in the meantime, and is left unchanged.
        """
        if self.mode == "replay":
            return NotRecorded()
        arriving: AbstractContextManager[list[dict[str, Any]]]
        arriving = nullcontext([]) if self.journal is None else self.journal.take_over()
        with arriving as arrived:
            return self._merge([*arrived, *predictions], complete if self.mode == "refresh" else ())

    def close(self) -> None:
        """Take over what has arrived since `update`, and remove the journal.

        Raises:
            OSError: The file cannot be written; the journal stays for the next run.
            SuiteError: As `update` does.
        """
        if self.journal is not None:
            if self.journal.has_more():
                with self.journal.take_over() as arrived:
                    self._merge(arrived)
            self.journal.remove()

    def _merge(self, rows: Iterable[Mapping[str, Any]], forget: Collection[tuple[str, str]] = ()) -> NotRecorded:
        recordings = {_place(row): row for row in rows if _is_recording(row)}
        secret = {place for place, row in recordings.items() if row.get(WITHHELD)}
        unwritten = {place for place, row in recordings.items() if row.get(UNWRITTEN)}
        new_lines = {place: _line(row) for place, row in recordings.items() if place not in secret | unwritten}
        unreadable = {place for place, line in new_lines.items() if not _is_readable(line)}

        def merged() -> str:
            stored_lines = {
                place: _line(row) for place, row in _read_rows(self.path).items() if place[:2] not in forget
            }
            lines = {**stored_lines, **new_lines}
            return "".join(f"{lines[place]}\n" for place in sorted(lines.keys() - unreadable - secret - unwritten))

        OutputFile(self.path).rewrite(merged)
        return NotRecorded(_cases(unreadable), _cases(secret), tuple(_cases(unwritten)))

    @staticmethod
    def is_withheld(row: Mapping[str, Any]) -> bool:
        """Whether a row has no prediction since it held a secret."""
        return bool(row.get(WITHHELD))

    @staticmethod
    def row(suite: str, variant: str, case: Case, repeat: int = 0, hidden: Secrets | None = None) -> dict[str, Any]:
        """The row that records a case's prediction; the first of several has no number of the repeat.

        Args:
            suite: The file, as reports name it.
            variant: Of the suite, or its system.
            case: With its prediction.
            repeat: Which of several answers it is.
            hidden: Secrets that it does not show. A row whose prediction has one says so, and nothing else of it.
        """
        row: dict[str, Any] = {
            "suite": suite,
            "variant": variant,
            "case": case.id,
            "input": _case_digest(case),
            "prediction": case.prediction,
        }
        if hidden and _has_secret(case.prediction, hidden):
            row |= {"prediction": None, WITHHELD: True}
        elif has_opaque(case.prediction) or has_opaque(case.input, inexact=True):
            row |= {"prediction": None, UNWRITTEN: True}
        elif (written := case.written_object()) is not None:
            row[OBJECT] = to_builtins(written)
        if figures := Recordings.figures_of(case):
            row["figures"] = figures
        return {**row, "repeat": repeat} if repeat else row

    @staticmethod
    def figures_of(case: Case) -> dict[str, float]:
        """The time, tokens and cost of a prediction that are recorded with it."""
        known: Mapping[str, Any] = case.origin.figures if case.origin is not None else {}
        return {name: known[name] for name in _FIGURES if known.get(name) is not None}

    @staticmethod
    def are_in(path: Path) -> bool:
        """Whether the first line of a file is a recorded prediction, and not a prediction by the case's id alone."""
        try:
            with path.open("rb") as file:
                return _is_recording(_parse_line(file.readline(InputFile.MAX_LINE_BYTES)))
        except OSError:
            return False


def _read_rows(path: Path) -> RecordedRows:
    """Read a file of recorded predictions; an absent one is empty.

    Raises:
        SuiteError: A line of the file is no recording.
    """
    if not path.exists():
        return {}
    rows: RecordedRows = {}
    faults: list[Fault] = []
    for line, row in InputFile(path).read_jsonl(faults):
        if _is_recording(row):
            rows[_place(row)] = row
        else:
            expected = "expected an object with suite, variant, case, input and prediction"
            faults.append(Fault(str(path), line, 1, "", expected))
    if faults:
        raise SuiteError(faults)
    return rows


def _is_left_out(row: Mapping[str, Any]) -> bool:
    """Whether a recording lacks its prediction, which holds a secret or a value that JSON cannot say."""
    return bool(row.get(WITHHELD) or row.get(UNWRITTEN))


def _cases(places: Iterable[RecordingPlace]) -> list[str]:
    """The sorted ids of the cases with these keys of recorded predictions."""
    return sorted({case for _, _, case, _ in places})


def _line(row: Mapping[str, Any]) -> str:
    """A recorded prediction as a line of its file."""
    return json.dumps(row, ensure_ascii=False, sort_keys=True)


def _is_readable(line: str) -> bool:
    """Whether later runs can read a line of recorded predictions."""
    try:
        size = len(line.encode("utf-8"))
    except UnicodeEncodeError:
        return False
    return size < InputFile.MAX_LINE_BYTES and JsonText(line).is_readable()


def _is_recording(row: Any) -> bool:
    """Whether a row of a JSONL file is a recorded prediction."""
    texts = ("suite", "variant", "case", "input")
    if not isinstance(row, dict) or not isinstance(row.get("repeat", 0), int):
        return False
    figures = row.get("figures", {})
    if not isinstance(figures, dict) or not all(isinstance(figures.get(name, 0), int | float) for name in _FIGURES):
        return False
    if OBJECT in row:
        try:
            convert(row[OBJECT], WrittenObject)
        except ValidationError:
            return False
    return "prediction" in row and all(isinstance(row.get(key), str) for key in texts)


def _place(row: Mapping[str, Any]) -> RecordingPlace:
    """The key of a recorded prediction: suite, variant, case and repeat."""
    return row["suite"], row["variant"], row["case"], row.get("repeat", 0)


def _case_digest(case: Case) -> str:
    """A digest of all in a case that its answer depends on: a recording is replayed only for the same."""
    return input_digest([case.input, case.way] if case.way else case.input)


def _has_secret(prediction: Any, hidden: Secrets) -> bool:
    """Whether a prediction holds a secret, and so must not be recorded."""
    text = prediction if isinstance(prediction, str) else json.dumps(prediction, ensure_ascii=False, default=str)
    return hidden.without(text) != text


@dataclass
class Journal:
    """The predictions of a run that are not yet in the file of recorded predictions.

    Attributes:
        folder: Holds the files of all processes; each is named after its run and its process.
        run: Id of the run.
    """

    folder: Path
    run: str
    _merged: dict[Path, int] = field(default_factory=dict)
    """File to how many of its bytes have been taken over."""
    _seen: dict[Path, int] = field(default_factory=dict)

    @classmethod
    def of_file(cls, predictions: Path, root: Path, run: str) -> "Journal":
        """The journal of a file of predictions, in the working folder under pytest's rootdir."""
        name = sha256(display_path(predictions.absolute(), root).encode(errors="surrogateescape")).hexdigest()[:16]
        return cls(root / OutputFolder.WORKING / "answers" / name, run)

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a recorded prediction on its own line.

        Raises:
            OSError: It cannot be written.
        """
        file = OutputFolder(self.folder).own_file(self.run, "jsonl")
        text = f"{json.dumps(row, sort_keys=True)}\n"
        try:
            file.append_text(text)
        except FileNotFoundError:
            OutputFolder(self.folder.parent.parent).make()
            self.folder.mkdir(parents=True, exist_ok=True)
            file.append_text(text)

    @contextmanager
    def take_over(self, *, others: bool = False) -> Iterator[list[dict[str, Any]]]:
        """A context that merges the recorded lines, oldest file first, without a line that a kill cut off.

        They are taken over once it ends: after an error or an interrupt in it they are read again, and not removed.

        Args:
            others: Whether to take over the answers of other runs as well: those of killed ones, whose workers may not
                have noticed yet.
        """
        rows, sizes = [], {}
        for path, _ in self._files(others=others):
            with suppress(FileNotFoundError):  # another run has merged it
                data = path.read_bytes()
                sizes[path] = len(data)
                rows += [row for line in data.split(b"\n") if (row := _parse_line(line)) is not None]
        yield rows
        self._merged |= sizes

    def read_new(self) -> list[dict[str, Any]]:
        """The lines that processes of this run have added since the last call, ended ones included.

        Living processes pass their answers on themselves, as answers of this run and not as recorded ones.
        """
        rows = []
        for path, status in self._files(others=False):
            seen = self._seen.get(path, 0)
            process = OutputFile(path).writer
            if status.st_size > seen and not process.is_current and process.has_ended():
                with suppress(FileNotFoundError), path.open("rb") as file:  # another process may have merged it
                    file.seek(seen)
                    lines = file.read(status.st_size - seen)
                    whole = lines[: lines.rfind(b"\n") + 1]
                    self._seen[path] = seen + len(whole)
                    rows += [row for line in whole.split(b"\n") if (row := _parse_line(line)) is not None]
        return rows

    def has_more(self) -> bool:
        """Whether there are answers of this run that have not been taken over."""
        return any(status.st_size != self._merged.get(path) for path, status in self._files(others=False))

    def remove(self) -> None:
        """Remove the files that were taken over and whose process has ended."""
        for path, status in self._files(others=True):
            process = OutputFile(path).writer
            ended = process.is_current or process.has_abandoned(status)
            if ended and self._merged.get(path) == status.st_size:
                path.unlink(missing_ok=True)
        with suppress(OSError):  # not empty, or not there
            self.folder.rmdir()

    def _files(self, *, others: bool) -> list[tuple[Path, os.stat_result]]:
        files = []
        for path in self.folder.glob("*.*.jsonl" if others else f"{self.run}.*.jsonl"):
            with suppress(FileNotFoundError):
                files.append((path, path.lstat()))
        regular = (file for file in files if stat.S_ISREG(file[1].st_mode))
        return sorted(regular, key=lambda file: (file[1].st_mtime_ns, file[0]))


def _parse_line(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line of recorded predictions; ``None`` if there is none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def has_opaque(form: Any, *, inexact: bool = False) -> bool:
    """Whether a prediction or input has parts that JSON cannot say, so that a recording cannot be read back.

    Args:
        form: The form.
        inexact: Count those alone whose texts do not tell them apart either.
    """
    if isinstance(form, dict):
        return any(has_opaque(part, inexact=inexact) for pair in form.items() for part in pair)
    if isinstance(form, list):
        return any(has_opaque(part, inexact=inexact) for part in form)
    return isinstance(form, Opaque) and not (inexact and form.is_exact)
