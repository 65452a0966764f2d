"""Where score files lie, when they change, and how they are written."""

__all__ = (
    "SCORES",
    "PendingFile",
    "approve",
    "approved_scores",
    "baseline_fault",
    "content_of",
    "is_orphan",
    "python_score_file",
    "read_if_there",
    "score_file",
    "statistics_file",
    "texts_of",
)

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.data.files.beside import OWN_FOLDER, own_file, stem_of
from pytest_llmeval.snapshots.comparable import fingerprint
from pytest_llmeval.snapshots.layout import line_of, parse, render
from pytest_llmeval.snapshots.scores import Approval, SuiteScores, TestScores
from pytest_llmeval.snapshots.stamp import Stamp
from pytest_llmeval.suite.suite import SuiteKey

SCORES = "scores.json"
STATISTICS = "cases.jsonl"

_Scores = TypeVar("_Scores", SuiteScores, TestScores)

_READABLE = 40
_DIGITS = 10


def score_file(key: SuiteKey) -> Path:
    """Return the score file of a suite, or of one variant of it.

    Ids of tests and variants hold any character, so a variant's file name is the readable part of its id and a
    fingerprint of the whole: no two share one, also where file names know no capitals.
    """
    suffix = SCORES
    if key.test or key.variant:
        whole = json.dumps([key.test, key.variant])
        name = key.variant or key.test.rpartition("::")[2]
        readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_READABLE]
        suffix = f"{readable}-{sha256(whole.encode()).hexdigest()[:_DIGITS]}.{SCORES}".lstrip("-")
    return own_file(Path(key.path), suffix)


def statistics_file(scores: Path) -> Path:
    """Return the file beside a score file that has what was counted in each case."""
    return scores.with_name(scores.name.removesuffix(SCORES) + STATISTICS)


def python_score_file(module: Path) -> Path:
    """Return the score file of a module of Python tests; a suite of the same stem keeps the short name."""
    rivals = (f"{module.stem}.eval{suffix}" for suffix in (".yaml", ".yml", ".json"))
    shared = any((module.parent / name).is_file() for name in rivals)
    return module.parent / OWN_FOLDER / f"{module.name if shared else module.stem}.{SCORES}"


def read_if_there(path: Path, shown: str, kind: type[_Scores]) -> _Scores | None:
    """Read a score file; ``None`` if there is none.

    Raises:
        SuiteError: It cannot be used; the text says how to get a good one.
    """
    if not path.exists():
        return None
    try:
        scores: _Scores = parse(path, shown, kind)
    except SuiteError as error:
        raise _with_remedy(error, shown) from None
    return scores


def _with_remedy(error: SuiteError, shown: str) -> SuiteError:
    remedy = "nothing was changed: restore the file from version control, or delete it and approve again"
    return SuiteError([*error.faults, Fault(shown, 0, 0, "", remedy)])


def approve(old: _Scores | None, new: _Scores, stamp: Stamp, remembered: int) -> _Scores:
    """Return what an approval makes of a file: the file as it was if nothing changed.

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
    """Return whether a score file belongs to a suite or test module that is gone; a file in doubt does not."""
    try:
        data = json.loads(path.read_bytes())
        owner = data.get("suite", data.get("module"))
    except (OSError, ValueError, AttributeError, RecursionError):
        return False
    # The name of a file, nothing else: a forged path must not decide what is deleted.
    if not isinstance(owner, str) or Path(owner).name != owner or owner == "":
        return False
    # A file that was renamed belongs to the suite that it is named after, whatever it says.
    named = path.name.startswith((f"{stem_of(owner)}.", f"{owner}."))
    return named and not (path.parent.parent / owner).exists()


def baseline_fault(path: Path, scores: SuiteScores) -> Fault | None:
    """Say what is wrong with the statistics beside a score file; a missing file is no fault: only gates need it."""
    try:
        text = path.read_text(encoding="utf-8")  # line ends are read as one character, whatever git made of them
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        return Fault(path.name, 0, 0, "", f"found no readable file ({error}), expected one; nothing was changed")
    found = fingerprint(text)
    if found == scores.cases.statistics:
        return None
    return Fault(
        path.name,
        0,
        0,
        "",
        f"found content with fingerprint {found}, expected {scores.cases.statistics}, which was approved; nothing was "
        "changed: restore the file from version control, or delete it and its scores and approve again",
    )


def approved_scores(path: Path, shown: str) -> SuiteScores | None:
    """Read the scores of a suite, whose statistics are then those that were approved; ``None`` if there are none.

    Raises:
        SuiteError: One of the two files cannot be used.
    """
    scores = read_if_there(path, shown, SuiteScores)
    if scores is not None and (fault := baseline_fault(statistics_file(path), scores)):
        raise SuiteError([fault])
    return scores


@dataclass
class PendingFile:
    """A score file that a run has judged, and may be about to write.

    Attributes:
        path: The file.
        before: Name of a snapshot to its text in the file.
        after: Name of a snapshot to its text in this run.
        holds: Names whose verdict is not a failure.
        content: Path to text of the files that an approval writes; empty if nothing is to be written.
        obsolete: Files that an approval deletes.
        fault: Why they could not be written.
    """

    path: Path
    before: Mapping[str, str]
    after: Mapping[str, str]
    holds: frozenset[str]
    content: Mapping[Path, str] = field(default_factory=dict)
    obsolete: tuple[Path, ...] = ()
    fault: str = ""

    def write(self) -> None:
        """Write the files that are not yet as they should be, each in one step.

        Raises:
            OSError: One could not be written; `fault` says which.
        """
        for path, text in self.content.items():
            try:
                _write(path, text)
            except OSError as error:
                self.fault = f"{path}: not written: {error.strerror}"
                raise
        for path in self.obsolete:
            path.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        scratch.write_bytes(data)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def texts_of(scores: SuiteScores | TestScores | None) -> dict[str, str]:
    """Return the lines by which two states of a file are told apart: one per metric."""
    if scores is None:
        return {}
    if isinstance(scores, SuiteScores):
        return {name: line_of(score) for name, score in scores.metrics.items()}
    return {name: json.dumps(value) for name, value in scores.values.items()}


def content_of(path: Path, scores: SuiteScores | TestScores) -> dict[Path, str]:
    """Return path and text of a score file."""
    return {path: render(scores)}
