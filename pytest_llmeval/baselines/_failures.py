"""The failures of cases that are known and approved."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from pytest_llmeval.baselines._comparable import digests_of, shown_beside
from pytest_llmeval.core import CaseRecord, Fault, SuiteError, decode
from pytest_llmeval.data import OWN_FOLDER, read_bytes, rewrite
from pytest_llmeval.suites import Suite, SuiteKey

KnownFailures: TypeAlias = Mapping[str, Sequence[str]]
"""Case id to the names of the limits and checks that the case is approved not to meet."""

_FAILURES = "failures.json"
_RAN = ("passed", "failed", "xfailed", "known_failure")


class _FailuresFile(Struct, forbid_unknown_fields=True):
    schema: int
    cases: dict[str, list[str]]
    content: dict[str, str]


def failures_file(key: SuiteKey) -> Path:
    """Return the file of the known failures of a suite, or of one variant of it."""
    from pytest_llmeval.baselines._files import file_beside, score_file

    return file_beside(score_file(key), _FAILURES)


def contents_of(suite: Suite) -> dict[str, str]:
    """Return the fingerprint of the content of each case of a suite, by id."""
    return {case: each.data for case, each in digests_of(suite).items()}


def read_failures(key: SuiteKey, contents: Callable[[], Mapping[str, str]]) -> KnownFailures:
    """Return the known failures of a suite; empty where none were approved.

    Args:
        key: Of the suite.
        contents: Returns id to content of its cases: a case whose id has changed is known by its content.

    Raises:
        SuiteError: The file cannot be read.
    """
    if not any((Path(key.path).parent / OWN_FOLDER).glob(f"*{_FAILURES}")):
        return {}  # which most runs find out without what reads and writes approved scores
    return _named_as_now(_read_failures(key), contents())


def _named_as_now(file: _FailuresFile, contents: Mapping[str, str]) -> KnownFailures:
    """Return the known failures by the ids that their cases have now.

    Content decides where ids are positions or gone: an edited case keeps its known failure by a name only.
    """
    from pytest_llmeval.numbers import matched_by_content

    movable = {case: each for case, each in file.content.items() if case.isdecimal() or case not in contents}
    before_of = matched_by_content(contents, movable)
    others = {case for case, each in movable.items() if contents.get(case, each) != each}
    stayed = {case: names for case, names in file.cases.items() if case not in {*before_of.values(), *others}}
    return stayed | {case: file.cases[before] for case, before in before_of.items() if before in file.cases}


def _read_failures(key: SuiteKey) -> _FailuresFile:
    path = failures_file(key)
    if not path.exists():
        return _FailuresFile(1, {}, {})
    display_path = shown_beside(key, path)
    try:
        return decode(read_bytes(path, display_path), _FailuresFile)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        message = f"found no list of known failures ({error}), expected one: restore the file, or delete it"
        raise SuiteError([Fault(display_path, 0, 0, "", message)]) from None


def next_failures(known: KnownFailures, records: Iterable[CaseRecord]) -> dict[str, list[str]]:
    """Return the failures that a run approves: those of the cases that ran, and the known ones of the others."""
    following = {case: list(names) for case, names in known.items()}
    for record in records:
        if record.carried:
            continue
        if record.outcome in _RAN:
            following.pop(record.id, None)
        if record.outcome in ("failed", "known_failure") and record.unmet:
            following[record.id] = sorted(set(record.unmet))
    return following


def mended(known: KnownFailures, records: Iterable[CaseRecord]) -> list[str]:
    """Return the cases that are known to fail and passed."""
    return [record.id for record in records if record.id in known and record.outcome == "passed"]


def write_failures(key: SuiteKey, failures: KnownFailures, contents: Mapping[str, str]) -> bool:
    """Write the known failures of a suite; without any, there is no file.

    Args:
        key: Of the suite.
        failures: By the ids that the cases have now.
        contents: Id to content of its cases; that of a case which the suite has no more stays as it was.

    Returns:
        Whether the file had to change.

    Raises:
        OSError: It cannot be written; then it is as it was.
    """
    known = {**_read_failures(key).content, **contents}
    of_cases = {case: known[case] for case in sorted(failures) if known.get(case)}
    content = {"cases": dict(sorted(failures.items())), "content": of_cases, "schema": 1}
    text = f"{json.dumps(content, ensure_ascii=False, indent=1)}\n" if failures else ""
    if not failures and not failures_file(key).exists():
        return False
    return rewrite(failures_file(key), lambda: text)
