"""Two states of a project: loaded in processes of their own, and what these say compared as data."""

import os
import site
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import DecodeError, ValidationError
from msgspec.json import decode, encode

from pytest_llmeval.core import LlmevalError, counted, excerpt, listed
from pytest_llmeval.numbers import Limit, matched_by_content
from pytest_llmeval.workbench._collecting import (
    COLLECTED_FILE,
    Collected,
    CollectedCase,
    CollectedItem,
    CollectedSuite,
)
from pytest_llmeval.workbench._guarding import Loosening, loosened
from pytest_llmeval.workbench._project import run_pytest

_PATIENCE_S: Final = 600
_LONGEST: Final = 100
_PASSED_ON: Final = (
    *("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH"),
    *("SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP"),
)
"""Variables that a process needs to start, none of which holds a secret."""


def collect(folder: Path, top: Path, scratch: Path) -> tuple[Collected | None, str]:
    """Return what pytest collects in a state, or why that is not known.

    The code of the state runs in a process of its own, with an environment that has no secrets and an empty home.

    Args:
        folder: The folder that is compared, in that state.
        top: The folder of its repository, in that state.
        scratch: A folder that does not exist, for its home and what it says.
    """
    home = scratch / "home"
    home.mkdir(parents=True)
    file = scratch / "collected.json"
    places = dict.fromkeys([folder, folder / "src", top, top / "src"])
    inherited = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    variables = {
        COLLECTED_FILE: str(file),
        "HOME": str(home),
        "USERPROFILE": str(home),
        "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONPATH": os.pathsep.join(map(str, places)),
        "PYTHONHASHSEED": "0",
    }
    arguments = ["--collect-only", "-q", "--continue-on-collection-errors"]
    try:
        done = run_pytest(arguments, Collected.__module__, variables, _PATIENCE_S, folder=folder, inherited=inherited)
    except subprocess.TimeoutExpired:
        return None, f"pytest took longer than {_PATIENCE_S} s"
    printed = [line for line in (*done.stdout.splitlines(), *done.stderr.splitlines()) if line.strip()]
    try:
        return decode(file.read_bytes(), type=Collected), ""
    except OSError:
        return None, excerpt(printed[-1] if printed else f"pytest ended with exit code {done.returncode}", _LONGEST)
    except (DecodeError, ValidationError) as error:
        return None, excerpt(str(error), _LONGEST)


def answer_apart(folder: Path, function: str, question: Mapping[str, Any], scratch: Path) -> Any:
    """Call a function of data in a process of its own that imports the code of a folder, and return its answer.

    Args:
        folder: Whose code is imported.
        function: ``module:name``.
        question: Its argument, data.
        scratch: An existing folder.

    Raises:
        LlmevalError: The function did so, or the process ended otherwise.
    """
    asked, answered = scratch / "question.json", scratch / "answer.json"
    asked.write_bytes(encode(question))
    module, _, name = function.partition(":")
    code = f"from {__name__} import answer; from {module} import {name}; answer({name})"
    done = subprocess.run(  # noqa: S603 (our own interpreter)
        [sys.executable, "-c", code, str(asked), str(answered)],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if not answered.exists():
        last = done.stderr.strip().rpartition("\n")[2]
        raise LlmevalError(f"the base cannot be loaded: {last or f'exit code {done.returncode}'}")
    said = decode(answered.read_bytes())
    if "fault" in said:
        raise LlmevalError(said["fault"])
    return said["answer"]


def answer(function: Any) -> None:
    """Write what a function answers to the question of a file; the other side of `answer_apart`."""
    asked, answered = map(Path, sys.argv[1:3])
    try:
        said = {"answer": function(decode(asked.read_bytes()))}
    except LlmevalError as error:
        said = {"fault": str(error)}
    answered.write_bytes(encode(said))


def compare_collected(
    base: Collected, head: Collected, kept: Mapping[str, tuple[str, Mapping[str, str]]], files: Iterable[str]
) -> Iterator[Loosening]:
    """Yield what a later state collects no more, and what its suites in Python ask less of.

    Args:
        base: The earlier state.
        head: The later state.
        kept: Suite file to its later name, and earlier to later id of the cases that are in both states.
        files: Python files about evaluations that are in both states.
    """
    if base.enabled and not head.enabled:
        yield Loosening("pytest", 0, "option llmeval", "turned off", "true", "false")
    pairs = {name: (now, dict(cases)) for name, (now, cases) in kept.items()}
    for name, suite in base.suites.items():
        after = head.suites.get(name)
        if after is not None:
            same = _pairs(suite, after)
            pairs.setdefault(suite.file, (suite.file, {}))[1].update(same)
            yield from _compare_suite(suite, after, same)
        else:
            yield Loosening(suite.file, 0, f"suite {name.rpartition(':')[2]}", "no longer collected", gone=True)
    yield from _lost(base, head, pairs, {*files, *(each.file for each in base.suites.values())})
    for name, digest in base.code.items():
        if head.code.get(name, digest) != digest:
            file, _, test = name.partition("::")
            yield Loosening(file, 0, f"code of {test}", "changed")


def _lost(
    base: Collected, head: Collected, kept: Mapping[str, tuple[str, Mapping[str, str]]], files: Collection[str]
) -> Iterator[Loosening]:
    """Yield, by file, the tests that are there and are no longer collected."""
    now = {_key(each, each.file, each.case) for each in head.items}
    lost: dict[str, list[str]] = {}
    for item in base.items:
        file, cases = kept.get(item.file, (item.file, {}))
        is_there = item.case in cases if item.case else item.file in files
        if is_there and _key(item, file, cases.get(item.case, "")) not in now:
            lost.setdefault(item.file, []).append(item.name)
    for file, names in lost.items():
        tests = listed(dict.fromkeys(names))
        yield Loosening(file, 0, "tests", f"{counted(len(names), 'test')} no longer collected", tests)


def _key(item: CollectedItem, file: str, case: str) -> tuple[str, str, str]:
    """Return what an item is: a case of a suite file, that of a test in Python, or a test."""
    if not item.case:
        return file, item.name, ""
    return file, item.name.partition("[")[0] if file.endswith(".py") else "", case


def _pairs(base: CollectedSuite, head: CollectedSuite) -> dict[str, str]:
    """Return earlier to later id of each case that is in both; a renamed one is known by its content."""
    pairs = {name: name for name in base.cases if name in head.cases}
    old = {name: case.content for name, case in base.cases.items() if name not in head.cases}
    new = {name: case.content for name, case in head.cases.items() if name not in base.cases}
    return pairs | {before: now for now, before in matched_by_content(new, old).items()}


def _compare_suite(base: CollectedSuite, head: CollectedSuite, pairs: Mapping[str, str]) -> Iterator[Loosening]:
    yield from _compare_facts(base.file, base.facts, head.facts, "")
    yield from _compare_limits(base.file, base.limits, head.limits, "")
    for name, case in base.cases.items():
        if name not in pairs:
            yield Loosening(
                base.file, 0, f"case {name}", "removed", excerpt(case.parts.get("input", ""), _LONGEST), gone=True
            )
            continue
        yield from _compare_case(base.file, case, head.cases[pairs[name]], f" of case {pairs[name]}")


def _compare_case(file: str, base: CollectedCase, head: CollectedCase, whose: str) -> Iterator[Loosening]:
    demands = {name: text for name, text in base.parts.items() if not name.startswith("tag ")}
    yield from _compare_facts(file, demands, head.parts, whose)
    yield from _compare_limits(file, base.limits, head.limits, whose)
    for tag in ("tag skip", "tag xfail"):
        if tag in head.parts and tag not in base.parts:
            yield Loosening(file, 0, f"{tag}{whose}", "added")


def _compare_facts(file: str, base: Mapping[str, str], head: Mapping[str, str], whose: str) -> Iterator[Loosening]:
    for subject, before in base.items():
        if subject not in head:
            yield Loosening(file, 0, f"{subject}{whose}", "removed", excerpt(before, _LONGEST), gone=True)
        elif head[subject] != before:
            is_code = subject.startswith("code ")
            old, new = ("" if is_code else excerpt(text, _LONGEST) for text in (before, head[subject]))
            yield Loosening(file, 0, f"{subject}{whose}", "changed", old, new)


def _compare_limits(
    file: str,
    base: Mapping[str, tuple[float | None, float | None]],
    head: Mapping[str, tuple[float | None, float | None]],
    whose: str,
) -> Iterator[Loosening]:
    for metric, before in base.items():
        after = head.get(metric)
        old, new = Limit(*before), None if after is None else Limit(*after)
        if change := loosened(old, new):
            values = (str(old), "" if new is None else str(new))
            yield Loosening(file, 0, f"threshold {metric}{whose}", change, *values, gone=new is None)
