"""Known failures: limits and checks that cases are approved not to meet, in a committed file beside the suite."""

__all__ = ("KnownFailures", "failures_file", "mended", "next_failures", "read_failures", "write_failures")

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from pytest_llmeval.baselines.runs import shown_beside
from pytest_llmeval.core.codec import decode
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.data.files.documents import read_bytes
from pytest_llmeval.data.files.folders import OWN_FOLDER
from pytest_llmeval.data.files.writing import rewrite
from pytest_llmeval.suite.suite import SuiteKey

KnownFailures: TypeAlias = Mapping[str, Sequence[str]]
"""Case id to the names of the limits and checks that the case is approved not to meet."""

_FAILURES = "failures.json"
_RAN = ("passed", "failed", "xfailed", "known_failure")


class _FailuresFile(msgspec.Struct, forbid_unknown_fields=True):
    schema: int
    cases: dict[str, list[str]]


def failures_file(key: SuiteKey) -> Path:
    """Return the file of the known failures of a suite, or of one variant of it."""
    from pytest_llmeval.baselines.files import SCORES, score_file

    scores = score_file(key)
    return scores.with_name(scores.name.removesuffix(SCORES) + _FAILURES)


def read_failures(key: SuiteKey) -> KnownFailures:
    """Return the known failures of a suite; empty where none were approved.

    Raises:
        SuiteError: The file cannot be read.
    """
    if not any((Path(key.path).parent / OWN_FOLDER).glob(f"*{_FAILURES}")):
        return {}  # which most runs find out without what reads and writes approved scores
    path = failures_file(key)
    if not path.exists():
        return {}
    shown = shown_beside(key, path)
    try:
        found = decode(read_bytes(path, shown), _FailuresFile)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        message = f"found no list of known failures ({error}), expected one: restore the file, or delete it"
        raise SuiteError([Fault(shown, 0, 0, "", message)]) from None
    return found.cases


def next_failures(known: KnownFailures, records: Iterable[CaseRecord]) -> dict[str, list[str]]:
    """Return the failures that a run approves: those of the cases that ran, and the known ones of the others."""
    following = {case: list(names) for case, names in known.items()}
    for record in records:
        if record.outcome in _RAN:
            following.pop(record.id, None)
        if record.outcome in ("failed", "known_failure") and record.unmet:
            following[record.id] = sorted(set(record.unmet))
    return following


def mended(known: KnownFailures, records: Iterable[CaseRecord]) -> list[str]:
    """Return the cases that are known to fail and passed."""
    return [record.id for record in records if record.id in known and record.outcome == "passed"]


def write_failures(key: SuiteKey, failures: KnownFailures) -> bool:
    """Write the known failures of a suite; without any, there is no file.

    Returns:
        Whether the file had to change.

    Raises:
        OSError: It cannot be written; then it is as it was.
    """
    content = {"cases": dict(sorted(failures.items())), "schema": 1}
    text = f"{json.dumps(content, ensure_ascii=False, indent=1)}\n" if failures else ""
    if not failures and not failures_file(key).exists():
        return False
    return rewrite(failures_file(key), lambda: text)
