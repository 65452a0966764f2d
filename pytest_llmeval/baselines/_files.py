"""The files of a suite with approved scores and answers."""

import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pytest_llmeval.baselines._comparable import Stamp, fingerprint
from pytest_llmeval.baselines._scores import Approval, SuiteScores, TestScores, line_of, parse_scores
from pytest_llmeval.core import AnyError, Case, Fault, LlmevalError, NoAnswer, SuiteError, input_digest
from pytest_llmeval.data import FaultLog, InputFile, OutputFile, OwnFiles
from pytest_llmeval.suites import SuiteKey

_Scores = TypeVar("_Scores", SuiteScores, TestScores)

_READABLE = 40
_DIGITS = 10
_ANCHOR = "anchor"
_POOL = "pool"


@dataclass(frozen=True)
class ScoreFile:
    """A file of approved scores, and the files beside it that belong to the same approval.

    Attributes:
        path: The score file.
        display_path: The score file as messages name it.
    """

    ENDING: ClassVar = "scores.json"
    RESULTS: ClassVar = ".results"
    """The ending of the name in place of a suite file if another runner's results own the scores."""

    path: Path
    display_path: str

    @classmethod
    def of_suite(cls, key: SuiteKey) -> "ScoreFile":
        """The score file of a suite, or of one variant of it.

        Ids of tests and variants hold any character, so a variant's file name is the readable part of its id and a
        fingerprint of the whole: no two share one, also where file names know no capitals.
        """
        suffix = cls.ENDING
        if key.test or key.variant:
            module, _, test = key.test.partition("::")
            file = OwnFiles(Path(key.display_path))
            declared_there = file.is_declared and file.source.as_posix() == module  # so the name has the module
            whole = json.dumps([test if declared_there else key.test, key.variant])
            name = key.variant or key.test.rpartition("::")[2]
            readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_READABLE]
            suffix = f"{readable}-{sha256(whole.encode()).hexdigest()[:_DIGITS]}.{suffix}".lstrip("-")
        path = OwnFiles(Path(key.path)).path(suffix)
        return cls(path, key.display_beside(path))

    @classmethod
    def in_folder(cls, folder: Path) -> "list[ScoreFile]":
        """The score files of a folder, by name."""
        return [cls(path, path.name) for path in sorted(folder.glob(f"*.{cls.ENDING}"))]

    def beside(self, name: str) -> Path:
        """The path of a companion of the score file, such as its statistics or answers, by the ending of its name."""
        return self.path.with_name(self.path.name.removesuffix(self.ENDING) + name)

    @property
    def statistics(self) -> Path:
        """The path of the counts of the approved run's cases."""
        return self.beside("cases.jsonl")

    @property
    def answers(self) -> Path:
        """The path of the approved answers, which exist if some evaluator compares with them."""
        return self.beside("answers.jsonl")

    @property
    def inputs(self) -> Path:
        """The path of the fingerprints of all that the approved run depended on."""
        return self.beside("inputs.json")

    def anchor(self, digest: str) -> Path:
        """The path of an anchor's case statistics, named by their digest so that it is never overwritten."""
        return self.beside(f"{_ANCHOR}-{_file_ending(digest)}")

    def pooled(self, digest: str) -> Path:
        """The path of a pooled run's case statistics, named by their digest so that it is never overwritten."""
        return self.beside(f"{_POOL}-{_file_ending(digest)}")

    def remembered(self) -> list[Path]:
        """The case statistics of earlier runs: anchors and the pool."""
        stem = re.escape(self.path.name.removesuffix(self.ENDING))
        own = re.compile(rf"{stem}({_POOL}|{_ANCHOR})-[0-9a-f]+\.jsonl")
        return [path for path in self.path.parent.iterdir() if own.fullmatch(path.name)]

    def remove(self) -> None:
        """Remove the score file and its companions."""
        for path in (self.path, self.statistics, self.answers, self.inputs, *self.remembered()):
            path.unlink(missing_ok=True)

    def parse(self, kind: type[_Scores]) -> _Scores:
        """The scores in the file.

        Args:
            kind: What the file must hold.

        Raises:
            SuiteError: It cannot be read, or is not what an approval wrote; the faults have line and column.
        """
        scores: _Scores = parse_scores(self.path, self.display_path, kind)
        return scores

    def find(self) -> SuiteScores | TestScores | None:
        """The scores of a suite or of a module of Python tests; ``None`` if the file cannot be used."""
        try:
            of_tests = "module" in InputFile(self.path, self.display_path).read_json().data
            return self.parse(TestScores) if of_tests else self.parse(SuiteScores)
        except (LlmevalError, TypeError):
            return None

    def read_suite(self) -> SuiteScores | None:
        """The scores of a suite; ``None`` if there is no file.

        Raises:
            SuiteError: It cannot be used; the message says how to restore it.
        """
        return self._read(SuiteScores)

    def read_tests(self) -> TestScores | None:
        """The scores of a module of Python tests; ``None`` if there is no file.

        Raises:
            SuiteError: It cannot be used; the message says how to restore it.
        """
        return self._read(TestScores)

    def _read(self, kind: type[_Scores]) -> _Scores | None:
        if not self.path.exists():
            return None
        try:
            return self.parse(kind)
        except SuiteError as error:
            raise _with_remedy(error, self.display_path) from None

    def read_checked(self) -> SuiteScores | None:
        """The scores of a suite, checked against its case statistics; ``None`` if there is no file.

        Raises:
            SuiteError: One of the two files cannot be used.
        """
        scores = self.read_suite()
        while scores is not None and (fault := self.statistics_fault(scores)):
            again = self.read_suite()
            if again == scores:
                raise SuiteError([fault])
            scores = again  # another run has approved its scores meanwhile
        return scores

    def read_statistics(self, scores: SuiteScores) -> str:
        """The text of the case statistics that were approved with scores.

        An approval that was killed half-way has written them under another name, which only its scores know.

        Args:
            scores: What the score file holds.

        Raises:
            OSError: They are not there, or cannot be read.
            UnicodeDecodeError: As above.
            SuiteError: They are not those that were approved.
        """
        path, digest = self.statistics, ""
        for file in (
            path,
            _waiting_statistics(path, scores.cases.statistics),
            path,
        ):  # once more: an approval may just have ended
            with suppress(FileNotFoundError):
                text = file.read_text(encoding="utf-8")  # line ends are read as one character, even if git changed them
                digest = fingerprint(text)
                if digest == scores.cases.statistics:
                    return text
        if not digest:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        fault = (
            f"found content with fingerprint {digest}, expected {scores.cases.statistics}, which was approved; nothing "
            "was changed: restore the file from version control, or delete it and its scores and approve again"
        )
        raise SuiteError([Fault(path.name, 0, 0, "", fault)])

    def statistics_fault(self, scores: SuiteScores) -> Fault | None:
        """The fault of the case statistics; a missing file is no fault: only gates need it."""
        try:
            self.read_statistics(scores)
        except FileNotFoundError:
            return None
        except SuiteError as error:
            return error.faults[0]
        except (OSError, UnicodeDecodeError) as error:
            return Fault(self.statistics.name, 0, 0, "", f"cannot be read: {error}; nothing was changed")
        return None

    def read_anchor(self, digest: str) -> str:
        """The text of an anchor's case statistics.

        Raises:
            OSError: They are not there, or cannot be read.
            UnicodeDecodeError: As above.
            SuiteError: They are not those that were approved.
        """
        return _text_of(self.anchor(digest), digest)

    def read_pooled(self, digest: str) -> str:
        """The text of the case statistics of an earlier approved run in the pool.

        Raises:
            OSError: They are not there, or cannot be read.
            UnicodeDecodeError: As above.
            SuiteError: They are not those that were approved.
        """
        return _text_of(self.pooled(digest), digest, ": restore the file from version control")

    def has_companions(self, named: Mapping[Path, str]) -> bool:
        """Whether the companions that scores name have their expected texts, and no earlier one is left."""
        return all(OutputFile(file).has_text(text) for file, text in named.items()) and not any(
            file.exists() for file in self.unnamed(named)
        )

    def unnamed(self, named: Mapping[Path, str]) -> list[Path]:
        """The companions, such as old anchors, that new scores no longer name."""
        return [file for file in (self.answers, *self.remembered()) if file not in named]


def _file_ending(digest: str) -> str:
    """The end of a file name of an anchor or pooled run, from the digest of its case statistics."""
    return f"{digest.rpartition(':')[2]}.jsonl"


def _text_of(path: Path, digest: str, remedy: str = "") -> str:
    """The case statistics of an anchor or pooled run, which must have the digest that the score file names."""
    text = path.read_text(encoding="utf-8")
    if (computed := fingerprint(text)) != digest:
        fault = f"found content with fingerprint {computed}, expected {digest}{remedy}"
        raise SuiteError([Fault(path.name, 0, 0, "", fault)])
    return text


def python_score_file(module: Path) -> Path:
    """The score file of a module of Python tests; a suite of the same stem keeps the short name."""
    rivals = (f"{module.stem}.eval{suffix}" for suffix in (".yaml", ".yml", ".json"))
    shared = any((module.parent / name).is_file() for name in rivals)
    return OwnFiles(module).folder / f"{module.name if shared else module.stem}.{ScoreFile.ENDING}"


def _with_remedy(error: SuiteError, display_path: str) -> SuiteError:
    """The faults of a score file with how to restore it."""
    remedy = "nothing was changed: restore the file from version control, or delete it and approve again"
    return SuiteError([*error.faults, Fault(display_path, 0, 0, "", remedy)])


def approve(old: _Scores | None, new: _Scores, stamp: Stamp, remembered: int) -> _Scores:
    """The content of a score file after an approval: the file as it was if nothing changed.

    Args:
        old: The file; ``None`` if there is none.
        new: This run's scores.
        stamp: Of the approval, which is added to the history if something changed.
        remembered: How many approvals the history keeps.
    """
    if old is not None and replace(old, history=()) == replace(new, history=()):
        return old
    approval = Approval(stamp.day, stamp.commit, new.values)
    history = (*(old.history if old is not None else ()), approval)
    return replace(new, history=history[-remembered:])


def is_orphan(path: Path) -> bool:
    """Whether a score file belongs to a suite or test module that is gone; in doubt it does not."""
    try:
        data = json.loads(path.read_bytes())
        owner = data.get("suite", data.get("module"))
    except (OSError, ValueError, AttributeError, RecursionError):
        return False
    # The name of a file, nothing else: a forged path must not decide what is deleted.
    if not isinstance(owner, str) or Path(owner).name != owner or owner == "" or owner.endswith(ScoreFile.RESULTS):
        return False
    # A renamed file belongs to the suite that it is named after.
    named = OwnFiles(Path(owner)).include(path.name)
    return named and not (path.parent.parent / owner).exists()


def _waiting_statistics(statistics: Path, digest: str) -> Path:
    """The path where new case statistics wait until the score file that names their digest is written."""
    return statistics.with_name(f".{statistics.name}.{digest.rpartition(':')[2]}")


@dataclass
class PendingFile:
    """A score file that a run has judged, and may be about to write.

    Attributes:
        file: The file.
        before: Name of a snapshot to its text in the file.
        after: Name of a snapshot to its text in this run.
        holds: Names whose verdict is not a failure.
        approved: Reads the file and returns what an approval makes of it; ``None`` if nothing is to be written.
        statistics: The text of the file beside it; nothing where there is none.
        named: File to text, of other files beside it: those of the anchor, of the pool, and of the answers.
        fault: Why they could not be written.
    """

    file: ScoreFile
    before: Mapping[str, str]
    after: Mapping[str, str]
    holds: frozenset[str]
    approved: Callable[[], SuiteScores | TestScores] | None = None
    statistics: str = ""
    named: Mapping[Path, str] = field(default_factory=dict)
    fault: str = ""

    @property
    def path(self) -> Path:
        """The path of the score file."""
        return self.file.path

    def write(self) -> None:
        """Write scores and statistics, if they are not yet as they should be.

        Raises:
            OSError: They could not be written; `fault` has the reason.
            SuiteError: The score file has been damaged meanwhile; as above.
        """
        if self.approved is None:
            return
        try:
            _write(self.file, self.approved, self.statistics, self.named)
        except OSError as error:
            self.fault = f"{self.path}: not written: {error.strerror}"
            raise
        except SuiteError as error:
            self.fault = f"{self.path}: not written: {error}"
            raise


def _write(
    file: ScoreFile, approved: Callable[[], SuiteScores | TestScores], statistics: str, named: Mapping[Path, str]
) -> None:
    """Write a score file and its statistics so that any reader, also after a kill, finds both old or both new.

    The new statistics wait under a name of their own until the scores, which name them, are there. Other files are
    there before scores name them, and go when they do not any more; one anchor never follows another without that.
    """
    scores, beside = OutputFile(file.path), OutputFile(file.statistics)

    def content() -> str:
        return approved().text

    if not statistics:
        scores.rewrite(content)
        return
    if beside.has_text(statistics) and file.has_companions(named) and scores.has_text(content()):
        return
    file.path.parent.mkdir(parents=True, exist_ok=True)
    with beside.locked():
        if beside.path.is_dir():  # found out only after the scores were written, it would leave them without statistics
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(beside.path))
        waiting = _waiting_statistics(beside.path, fingerprint(statistics))
        missing = {companion: text for companion, text in named.items() if not OutputFile(companion).has_text(text)}
        new = [waiting, *(companion for companion in missing if not companion.exists())]
        try:
            OutputFile(waiting).write_text([statistics])
            for companion, text in missing.items():
                OutputFile(companion).write_text([text])
            scores.rewrite(content)
        except BaseException:
            for written in new:
                written.unlink(missing_ok=True)
            raise
        beside.replace(waiting)
        for companion in file.unnamed(named):
            companion.unlink(missing_ok=True)
        for left in file.path.parent.iterdir():
            if left.name.startswith(f".{beside.path.name}."):
                left.unlink(missing_ok=True)


def texts_of(scores: SuiteScores | TestScores | None) -> dict[str, str]:
    """The lines by which two states of a score file are compared: one per metric."""
    if scores is None:
        return {}
    if isinstance(scores, SuiteScores):
        return {name: line_of(score) for name, score in scores.metrics.items()}
    return {name: json.dumps(value) for name, value in scores.values.items()}


_NONE = "no answer is approved: set 'snapshot: true' in the suite, and run pytest --llmeval --snapshot-update"
_REPAIR = "restore the file from version control, or delete it and approve again"


def answers_text(cases: Iterable[Case], rows: Iterable[Mapping[str, Any]]) -> str:
    """The text of the file of approved answers: a line for each, sorted.

    Args:
        cases: Of the suite.
        rows: Recordings of the answers to them.
    """
    inputs = {case.id: input_digest(case.input) for case in cases}
    lines = {}
    for row in rows:
        if row["case"] in inputs and not row.get("withheld"):
            place = row["case"], row.get("repeat", 0)
            stored = {"case": place[0], "input": inputs[place[0]], "prediction": row["prediction"], "repeat": place[1]}
            lines[place] = _scores_line(stored)
    return "".join(f"{lines[place]}\n" for place in sorted(lines))


def _scores_line(row: Mapping[str, Any]) -> str:
    """An approved answer as a line of JSON, in ASCII if it holds half of a surrogate pair."""
    text = json.dumps(row, ensure_ascii=False, sort_keys=True)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair, which models do emit
        return json.dumps(row, sort_keys=True)
    return text


_NO_INPUT = input_digest(None)


@dataclass(frozen=True)
class ApprovedAnswers:
    """The approved answers of one suite, or of one of its systems.

    Attributes:
        rows: Case and repeat to its line; ``None`` where none were approved.
    """

    rows: Mapping[tuple[str, int], Mapping[str, Any]] | None

    @classmethod
    def read(cls, key: SuiteKey) -> "ApprovedAnswers":
        """The answers that were approved with the scores of a suite.

        Raises:
            SuiteError: The file cannot be read, or lines are no answers; all of them are listed.
        """
        path = ScoreFile.of_suite(key).answers
        if not path.exists():
            return cls(None)
        display_path = key.display_beside(path)
        faults = FaultLog(display_path)
        lines: dict[tuple[str, int], int] = {}
        rows = {}
        # Texts may hold other line separators.
        for number, line in enumerate(InputFile(path, display_path).read_lines(), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                place = str(row["case"]), int(row["repeat"])
                rows[place] = {"input": row["input"], "prediction": row["prediction"]}
            except (KeyError, RecursionError, TypeError, ValueError) as error:
                faults.add(number, 1, "", f"the approved answer cannot be read ({AnyError(error).text}): {_REPAIR}")
                continue
            if (first := lines.setdefault(place, number)) != number:
                faults.add(number, 1, "case", f"found the answer of line {first} again, expected one: {_REPAIR}")
        faults.check()
        return cls(rows)

    def find(self, case: Case, repeat: int) -> Any:
        """The approved answer to a case, or why there is none."""
        if self.rows is None:
            return NoAnswer(_NONE)
        row = self.rows.get((case.id, repeat))
        if row is not None and row["input"] == input_digest(case.input):
            return row["prediction"]
        moved = self.by_input.get(input_digest(case.input), {})
        if case.input is not None and repeat in moved:
            return moved[repeat]
        if row is None:
            return NoAnswer("no answer to this case is approved")
        return NoAnswer("the approved answer is one to another input")

    @cached_property
    def by_input(self) -> Mapping[str, Mapping[int, Any]]:
        """The approved answers of the first case with an input, by its digest; for cases with other ids now."""
        answers: dict[str, dict[int, Any]] = {}
        first: dict[str, str] = {}
        for (case, repeat), row in sorted((self.rows or {}).items(), key=lambda pair: pair[0]):
            if first.setdefault(row["input"], case) == case:
                answers.setdefault(row["input"], {})[repeat] = row["prediction"]
        return answers

    def by_case(self, cases: Iterable[Case]) -> dict[str, list[Any]]:
        """The approved answers to cases by id, those of repeats in order; none where the input has changed."""
        if not self.rows:
            return {}
        inputs = {case.id: input_digest(case.input) for case in cases}
        answers: dict[str, list[Any]] = {}
        for (case, _), row in sorted(self.rows.items(), key=lambda pair: pair[0]):
            if inputs.get(case) == row["input"]:
                answers.setdefault(case, []).append(row["prediction"])
        for case in inputs.keys() - answers.keys():
            if inputs[case] != _NO_INPUT and (moved := self.by_input.get(inputs[case])):
                answers[case] = list(moved.values())
        return answers
