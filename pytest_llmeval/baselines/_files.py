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
from typing import Any, TypeVar

from pytest_llmeval.baselines._comparable import Stamp, fingerprint, shown_beside
from pytest_llmeval.baselines._scores import Approval, SuiteScores, TestScores, line_of, parse, render
from pytest_llmeval.core import Case, Fault, NoAnswer, SuiteError, format_error, input_digest
from pytest_llmeval.data import (
    IN_MODULE,
    OWN_FOLDER,
    FaultLog,
    decode,
    has_text,
    locked,
    own_file,
    put_in_place,
    read_bytes,
    rewrite,
    stem_of,
    write_text,
)
from pytest_llmeval.suites import SuiteKey

SCORES = "scores.json"
STATISTICS = "cases.jsonl"
ANCHOR = "anchor"
POOL = "pool"
ANSWERS = "answers.jsonl"
INPUTS = "inputs.json"

RESULTS = ".results"
"""What the names end with that stand in the place of a suite file: another runner's results own the approved files."""

_Scores = TypeVar("_Scores", SuiteScores, TestScores)

_READABLE = 40
_DIGITS = 10


def score_file(key: SuiteKey) -> Path:
    """The path of the score file of a suite, or of one variant of it.

    Ids of tests and variants hold any character, so a variant's file name is the readable part of its id and a
    fingerprint of the whole: no two share one, also where file names know no capitals.
    """
    suffix = SCORES
    if key.test or key.variant:
        module, _, test = key.test.partition("::")
        declared_there = key.display_path.startswith(f"{module}{IN_MODULE}")  # the file's name says which module it is
        whole = json.dumps([test if declared_there else key.test, key.variant])
        name = key.variant or key.test.rpartition("::")[2]
        readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_READABLE]
        suffix = f"{readable}-{sha256(whole.encode()).hexdigest()[:_DIGITS]}.{SCORES}".lstrip("-")
    return own_file(Path(key.path), suffix)


def statistics_file(scores: Path) -> Path:
    """The path of the case statistics that belong to a score file."""
    return file_beside(scores, STATISTICS)


def file_beside(scores: Path, name: str) -> Path:
    """The path of a score file's companion, such as its statistics or answers, by the end of its name."""
    return scores.with_name(scores.name.removesuffix(SCORES) + name)


def _file_ending(digest: str) -> str:
    """The end of a file name of an anchor or pooled run, from the digest of its case statistics."""
    return f"{digest.rpartition(':')[2]}.jsonl"


def anchor_file(scores: Path, digest: str) -> Path:
    """The path of an anchor's case statistics next to the score file.

    It is named by its fingerprint, so it is never overwritten.
    """
    return file_beside(scores, f"{ANCHOR}-{_file_ending(digest)}")


def anchor_text(scores: Path, digest: str) -> str:
    """The text of an anchor's case statistics.

    Raises:
        OSError: They are not there, or cannot be read.
        UnicodeDecodeError: As above.
        SuiteError: They are not those that were approved.
    """
    return _text_of(anchor_file(scores, digest), digest)


def pool_text(scores: Path, digest: str) -> str:
    """The text of the case statistics of an earlier approved run in the pool.

    Raises:
        OSError: They are not there, or cannot be read.
        UnicodeDecodeError: As above.
        SuiteError: They are not those that were approved.
    """
    return _text_of(pool_file(scores, digest), digest, ": restore the file from version control")


def _text_of(path: Path, digest: str, remedy: str = "") -> str:
    """The case statistics of an anchor or pooled run, which must have the digest that the score file names."""
    text = path.read_text(encoding="utf-8")
    if (computed := fingerprint(text)) != digest:
        fault = f"found content with fingerprint {computed}, expected {digest}{remedy}"
        raise SuiteError([Fault(path.name, 0, 0, "", fault)])
    return text


def answers_file(scores: Path) -> Path:
    """The file beside a score file that has the approved answers, if some evaluator compares with them."""
    return file_beside(scores, ANSWERS)


def inputs_file(scores: Path) -> Path:
    """The file beside a score file that has fingerprints of all that the approved run depended on."""
    return file_beside(scores, INPUTS)


def pool_file(scores: Path, digest: str) -> Path:
    """The path of a pooled run's case statistics next to the score file.

    It is named by its fingerprint, so it is never overwritten.
    """
    return file_beside(scores, f"{POOL}-{_file_ending(digest)}")


def _remembered_files(scores: Path) -> list[Path]:
    """The case statistics next to a score file that belong to earlier runs: anchors and the pool."""
    stem = re.escape(scores.name.removesuffix(SCORES))
    own = re.compile(rf"{stem}({POOL}|{ANCHOR})-[0-9a-f]+\.jsonl")
    return [path for path in scores.parent.iterdir() if own.fullmatch(path.name)]


def remove_files(scores: Path) -> None:
    """Remove a score file and its companions, such as statistics and anchors."""
    for path in (
        scores,
        statistics_file(scores),
        answers_file(scores),
        inputs_file(scores),
        *_remembered_files(scores),
    ):
        path.unlink(missing_ok=True)


def python_score_file(module: Path) -> Path:
    """The score file of a module of Python tests; a suite of the same stem keeps the short name."""
    rivals = (f"{module.stem}.eval{suffix}" for suffix in (".yaml", ".yml", ".json"))
    shared = any((module.parent / name).is_file() for name in rivals)
    return module.parent / OWN_FOLDER / f"{module.name if shared else module.stem}.{SCORES}"


def read_if_there(path: Path, display_path: str, kind: type[_Scores]) -> _Scores | None:
    """The content of a score file; ``None`` if there is none.

    Raises:
        SuiteError: It cannot be used; the message says how to restore it.
    """
    if not path.exists():
        return None
    try:
        scores: _Scores = parse(path, display_path, kind)
    except SuiteError as error:
        raise _with_remedy(error, display_path) from None
    return scores


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
    if not isinstance(owner, str) or Path(owner).name != owner or owner == "" or owner.endswith(RESULTS):
        return False
    # A renamed file belongs to the suite that it is named after.
    named = path.name.startswith((f"{stem_of(owner)}.", f"{owner}."))
    return named and not (path.parent.parent / owner).exists()


def read_statistics(path: Path, scores: SuiteScores) -> str:
    """The text of the case statistics that were approved with a score file.

    An approval that was killed half-way has written them under another name, which only its scores know.

    Args:
        path: The file beside the score file.
        scores: What the score file holds.

    Raises:
        OSError: They are not there, or cannot be read.
        UnicodeDecodeError: As above.
        SuiteError: They are not those that were approved.
    """
    digest = ""
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
        f"found content with fingerprint {digest}, expected {scores.cases.statistics}, which was approved; nothing was "
        "changed: restore the file from version control, or delete it and its scores and approve again"
    )
    raise SuiteError([Fault(path.name, 0, 0, "", fault)])


def _waiting_statistics(statistics: Path, digest: str) -> Path:
    """The path where new case statistics wait until the score file that names their digest is written."""
    return statistics.with_name(f".{statistics.name}.{digest.rpartition(':')[2]}")


def baseline_fault(path: Path, scores: SuiteScores) -> Fault | None:
    """The fault of the statistics of a score file; a missing file is no fault: only gates need it."""
    try:
        read_statistics(path, scores)
    except FileNotFoundError:
        return None
    except SuiteError as error:
        return error.faults[0]
    except (OSError, UnicodeDecodeError) as error:
        return Fault(path.name, 0, 0, "", f"cannot be read: {error}; nothing was changed")
    return None


def approved_scores(path: Path, display_path: str) -> SuiteScores | None:
    """The score file of a suite, checked against its case statistics; ``None`` without one.

    Raises:
        SuiteError: One of the two files cannot be used.
    """
    scores = read_if_there(path, display_path, SuiteScores)
    while scores is not None and (fault := baseline_fault(statistics_file(path), scores)):
        again = read_if_there(path, display_path, SuiteScores)
        if again == scores:
            raise SuiteError([fault])
        scores = again  # another run has approved its scores meanwhile
    return scores


@dataclass
class PendingFile:
    """A score file that a run has judged, and may be about to write.

    Attributes:
        path: The file.
        before: Name of a snapshot to its text in the file.
        after: Name of a snapshot to its text in this run.
        holds: Names whose verdict is not a failure.
        approved: Reads the file and returns what an approval makes of it; ``None`` if nothing is to be written.
        statistics: The text of the file beside it; nothing where there is none.
        named: File to text, of other files beside it: those of the anchor, of the pool, and of the answers.
        fault: Why they could not be written.
    """

    path: Path
    before: Mapping[str, str]
    after: Mapping[str, str]
    holds: frozenset[str]
    approved: Callable[[], SuiteScores | TestScores] | None = None
    statistics: str = ""
    named: Mapping[Path, str] = field(default_factory=dict)
    fault: str = ""

    def write(self) -> None:
        """Write scores and statistics, if they are not yet as they should be.

        Raises:
            OSError: They could not be written; `fault` has the reason.
            SuiteError: The score file has been damaged meanwhile; as above.
        """
        if self.approved is None:
            return
        try:
            _write(self.path, self.approved, self.statistics, self.named)
        except OSError as error:
            self.fault = f"{self.path}: not written: {error.strerror}"
            raise
        except SuiteError as error:
            self.fault = f"{self.path}: not written: {error}"
            raise


def _write(
    path: Path, approved: Callable[[], SuiteScores | TestScores], statistics: str, named: Mapping[Path, str]
) -> None:
    """Write a score file and its statistics so that any reader, also after a kill, finds both old or both new.

    The new statistics wait under a name of their own until the scores, which name them, are there. Other files are
    there before scores name them, and go when they do not any more; one anchor never follows another without that.
    """
    beside = statistics_file(path)

    def content() -> str:
        return render(approved())

    if not statistics:
        rewrite(path, content)
        return
    if has_text(beside, statistics) and has_texts(path, named) and has_text(path, content()):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(beside):
        if beside.is_dir():  # found out only after the scores were written, it would leave them without statistics
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(beside))
        waiting = _waiting_statistics(beside, fingerprint(statistics))
        missing = {file: text for file, text in named.items() if not has_text(file, text)}
        new = [waiting, *(file for file in missing if not file.exists())]
        try:
            write_text(waiting, [statistics])
            for file, text in missing.items():
                write_text(file, [text])
            rewrite(path, content)
        except BaseException:
            for file in new:
                file.unlink(missing_ok=True)
            raise
        put_in_place(waiting, beside)
        for file in _find_unnamed(path, named):
            file.unlink(missing_ok=True)
        for file in path.parent.iterdir():
            if file.name.startswith(f".{beside.name}."):
                file.unlink(missing_ok=True)


def has_texts(path: Path, named: Mapping[Path, str]) -> bool:
    """Whether the companions that a score file names have their expected texts, and no earlier one is left."""
    return all(has_text(file, text) for file, text in named.items()) and not any(
        file.exists() for file in _find_unnamed(path, named)
    )


def _find_unnamed(path: Path, named: Mapping[Path, str]) -> list[Path]:
    """The companions of a score file, such as old anchors, that its new content no longer names."""
    return [file for file in (answers_file(path), *_remembered_files(path)) if file not in named]


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
        path = answers_file(score_file(key))
        if not path.exists():
            return cls(None)
        display_path = shown_beside(key, path)
        faults = FaultLog(display_path)
        lines: dict[tuple[str, int], int] = {}
        rows = {}
        # Texts may hold other line separators.
        for number, line in enumerate(decode(read_bytes(path, display_path), display_path).split("\n"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                place = str(row["case"]), int(row["repeat"])
                rows[place] = {"input": row["input"], "prediction": row["prediction"]}
            except (KeyError, RecursionError, TypeError, ValueError) as error:
                faults.add(number, 1, "", f"the approved answer cannot be read ({format_error(error)}): {_REPAIR}")
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
        inputs = {case.id: input_digest(case.input) for case in cases}
        answers: dict[str, list[Any]] = {}
        for (case, _), row in sorted((self.rows or {}).items(), key=lambda pair: pair[0]):
            if inputs.get(case) == row["input"]:
                answers.setdefault(case, []).append(row["prediction"])
        for case in inputs.keys() - answers.keys():
            if inputs[case] != _NO_INPUT and (moved := self.by_input.get(inputs[case])):
                answers[case] = list(moved.values())
        return answers
