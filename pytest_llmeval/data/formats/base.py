"""The source contract: options of a case format, and reading its files into cases."""

__all__ = ("CaseFile", "FileSource", "Source", "check_names", "shown_path")

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import suggest
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.formats.fields import id_fault

if TYPE_CHECKING:
    from pytest_llmeval.data.formats.predictions import RecordedAnswer


class CaseFile:
    """The data file of a source, with the cases and faults found in it so far.

    Attributes:
        path: Where it is.
        shown: Its name in errors.
        cases: By id, in the order of the file.
        faults: What is wrong with it; ``faults.add(line, column, path, "found ..., expected ...")`` adds to them.
    """

    def __init__(self, path: Path, shown: str) -> None:
        self.path = path
        self.shown = shown
        self.cases: dict[str, Case] = {}
        self.faults = FaultLog(shown)

    def add(self, case: Case, path: str = "", column: int = 1) -> None:
        """Add a case, or a fault if its id cannot be used or is taken.

        Args:
            case: With its `line`, counted from 1.
            path: The field of its id, for that fault; empty where it has none.
            column: Where the case begins in its line.
        """
        wrong = id_fault(case.id)
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

    @abstractmethod
    def load(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """Return the selected cases, in the order of the data.

        Args:
            folder: The folder of the suite file.
            faults: Gets the log; good cases survive them.
        """

    def load_recorded(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """Return the selected cases as `load` does, but without predictions that the data itself may have."""
        return self.load(folder, faults)

    def load_systems(self, folder: Path, systems: Sequence["Source"]) -> list[tuple[list[Case], list[Fault]]]:
        """Return the cases and faults of sources that differ from this one in their predictions; see `load_recorded`.

        Args:
            folder: The folder of the suite file.
            systems: The sources. A format whose cases are costly to read may read them once for all.
        """
        found: list[tuple[list[Case], list[Fault]]] = []
        for source in systems:
            faults: list[Fault] = []
            found.append((source.load_recorded(folder, faults), faults))
        return found

    @abstractmethod
    def faulty(self, faults: Iterable[Fault]) -> int:
        """Return how many cases cannot run because of the faults that `load` found."""

    @abstractmethod
    def file_of(self, case: Case) -> str:
        """Return the file of a case, for a fault in its row."""


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

    path: str
    predictions: str | None = None

    @abstractmethod
    def read(self, file: CaseFile) -> None:
        """Add the cases and the faults of the data file.

        Raises:
            SuiteError: The file cannot be read at all; its faults are taken over.
        """

    def selects(self, case: Case) -> bool:
        """Return whether the options select a case; answers to the other cases are passed over."""
        del case
        return True

    def answers(self, path: Path, cases: Mapping[str, Case], faults: FaultLog) -> "list[RecordedAnswer]":
        """Return the recorded answers of a file to cases, which are given by id."""
        from pytest_llmeval.data.formats.predictions import read_answers

        del cases
        return read_answers(path, faults)

    def load(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """Return the selected cases, in the order of the file; see `Source.load`."""
        return self._answered(self._data(folder), folder, faults)

    def load_recorded(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """Return the selected cases with the predictions of the file of answers; see `Source.load_recorded`."""
        return self._answered(_without_predictions(self._data(folder)), folder, faults)

    def load_systems(self, folder: Path, systems: Sequence[Source]) -> list[tuple[list[Case], list[Fault]]]:
        """Read the data file once for all systems; see `Source.load_systems`."""
        data = _without_predictions(self._data(folder))
        found: list[tuple[list[Case], list[Fault]]] = []
        for source in systems:
            assert isinstance(source, FileSource)
            faults: list[Fault] = []
            found.append((source._answered(data, folder, faults), faults))  # noqa: SLF001 (its own class)
        return found

    def _data(self, folder: Path) -> CaseFile:
        """Read the data file."""
        file = CaseFile(folder / self.path, shown_path(folder / self.path))
        try:
            self.read(file)
        except SuiteError as error:
            file.faults.extend(error.faults)
        if not file.faults.found and not any(map(self.selects, file.cases.values())):
            file.faults.add(0, 0, "", "found no case selected by the options, expected at least one")
        return file

    def _answered(self, file: CaseFile, folder: Path, faults: list[Fault]) -> list[Case]:
        """Return the selected cases of the data file, with recorded answers if there are any."""
        faults.extend(file.faults.listed())
        selected = {name: case for name, case in file.cases.items() if self.selects(case)}
        if self.predictions is not None:
            from pytest_llmeval.data.formats.predictions import add_predictions

            log = FaultLog(shown_path(folder / self.predictions))
            answers = self.answers(folder / self.predictions, file.cases, log)
            if selected:
                add_predictions(selected, answers, file.cases, log, short_ids=self.short_ids)
            faults.extend(log.listed())
        return list(selected.values())

    def faulty(self, faults: Iterable[Fault]) -> int:
        """Return how many lines of the data file have faults that keep their case from running."""
        data, costly = Path(self.path).name, (fault for fault in faults if fault.line and not fault.spares_case)
        return len({fault.line for fault in costly if Path(fault.file).name == data})

    def file_of(self, case: Case) -> str:
        """Return the data file."""
        del case
        return self.path


def _without_predictions(file: CaseFile) -> CaseFile:
    file.cases = {name: case.answered(MISSING) for name, case in file.cases.items()}
    return file


def check_names(file: CaseFile, option: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Add a fault for each name under `option` that is not known."""
    known = sorted(known)
    for name in names:
        if name not in known:
            message = f"found {name!r}, expected one of: {', '.join(known)}{suggest(name, known)}"
            file.faults.add(0, 0, option, message)


def shown_path(path: Path) -> str:
    """Name a file as a user in the current directory would."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
