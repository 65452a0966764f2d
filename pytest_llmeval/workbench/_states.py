"""Two states of a project."""

import os
import site
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from msgspec import DecodeError, ValidationError
from msgspec.json import decode, encode

from pytest_llmeval.core import LlmevalError, counted, excerpt, listed
from pytest_llmeval.data import OwnFiles, repository_top
from pytest_llmeval.workbench._collecting import COLLECTED_FILE, FOLDERS, SEAL_FILE, ItemDump, StateDump
from pytest_llmeval.workbench._loosening import Loosening, case_pairs, compare_suites
from pytest_llmeval.workbench._project import run_pytest

_PATIENCE_S: Final = 600
_LONGEST: Final = 100
_DEMANDS: Final = frozenset({"require-gates", "snapshots", "xfail_strict"})
"""Options that ask for more; other ones that are on or off ask for less, or for something else."""

_PASSED_ON: Final = (
    *("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH"),
    *("SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP"),
)
"""Variables that a process needs to start, none of which holds a secret."""


def collect(folder: Path, top: Path, scratch: Path, *, enabled: bool = False) -> tuple[StateDump | None, str]:
    """Collect the tests of a project's state with pytest, or return the reason why that fails.

    The code of the state runs in a process of its own, with an environment that has no secrets and an empty home.

    Args:
        folder: The folder that is compared, in that state.
        top: The folder of its repository, in that state.
        scratch: A folder that does not exist, for its home and what it says.
        enabled: Whether settings of the project make plain ``pytest`` run suites.
    """
    environment = _environment(folder, top, scratch / "home")
    file, seal = scratch / "collected.json", token_hex()
    (scratch / SEAL_FILE).write_text(seal, encoding="utf-8")
    variables = {**environment, COLLECTED_FILE: str(file), FOLDERS: environment["PYTHONPATH"], "PYTHONSAFEPATH": "1"}
    del variables["PYTHONPATH"]
    code = f"import sys, pytest; from {StateDump.__module__} import begin; sys.exit(pytest.main(plugins=[begin()]))"
    arguments = ["--collect-only", "-q", "--continue-on-collection-errors", *([] if enabled else ["--llmeval"])]
    try:
        done = run_pytest(arguments, variables, _PATIENCE_S, start=["-c", code], folder=folder)
    except subprocess.TimeoutExpired:
        return None, f"pytest took longer than {_PATIENCE_S} s"
    printed = [line for line in (*done.stderr.splitlines(), *done.stdout.splitlines()) if line.strip()]
    printed = [line for line in printed if line.startswith(("E  ", "ERROR", "INTERNALERROR"))] or printed
    try:
        stamp, state = decode(file.read_bytes(), type=tuple[str, StateDump])
    except OSError:
        return None, excerpt(printed[-1] if printed else f"pytest ended with exit code {done.returncode}", _LONGEST)
    except (DecodeError, ValidationError) as error:
        return None, excerpt(str(error), _LONGEST)
    return (state, "") if stamp == seal else (None, "other code than pytest's wrote what was collected")


def _environment(folder: Path, top: Path, home: Path) -> dict[str, str]:
    """The environment variables of a process that runs a state's code: no secrets, and an empty home."""
    home.mkdir(parents=True)
    here = repository_top(Path.cwd()) or Path.cwd()
    ours = [Path(entry).resolve() for entry in sys.path if entry]
    moved = [top / path.relative_to(here) for path in ours if _is_project(path, here)]
    places = dict.fromkeys([folder, folder / "src", top, top / "src", *moved])
    return {
        **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        "HOME": str(home),
        "USERPROFILE": str(home),
        "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONPATH": os.pathsep.join(map(str, places)),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _is_project(path: Path, top: Path) -> bool:
    """Whether a path is the project's own code, and not an environment or installed packages inside of it."""
    return path.is_relative_to(top) and not path.is_relative_to(sys.prefix) and "site-packages" not in path.parts


def answer_apart(folder: Path, top: Path, function: str, question: Mapping[str, Any], scratch: Path) -> Any:
    """Call a function of data in a process that imports the code of a project's state, and return its result.

    Args:
        folder: Whose code is imported.
        top: The folder of its repository.
        function: ``module:name``.
        question: Its argument, data.
        scratch: A folder that does not exist.

    Raises:
        LlmevalError: The function did so, or the process ended early.
    """
    environment = _environment(folder, top, scratch / "home")
    question_file, answer_file = scratch / "question.json", scratch / "answer.json"
    question_file.write_bytes(encode(question))
    module, _, name = function.partition(":")
    code = f"from {__name__} import answer; from {module} import {name}; answer({name})"
    done = subprocess.run(  # noqa: S603 (our own interpreter)
        [sys.executable, "-c", code, str(question_file), str(answer_file)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if not answer_file.exists():
        last = done.stderr.strip().rpartition("\n")[2]
        raise LlmevalError(f"the base cannot be loaded: {last or f'exit code {done.returncode}'}")
    response = decode(answer_file.read_bytes())
    if "fault" in response:
        raise LlmevalError(response["fault"])
    return response["answer"]


def answer(function: Any) -> None:
    """Write the result of a function for the question of a file; the other process of `answer_apart`."""
    question_file, answer_file = map(Path, sys.argv[1:3])
    try:
        response = {"answer": function(decode(question_file.read_bytes()))}
    except LlmevalError as error:
        response = {"fault": str(error)}
    answer_file.write_bytes(encode(response))


def compare_collected(
    base: StateDump,
    head: StateDump,
    matched: Mapping[str, tuple[str, Mapping[str, str]]],
    files: Collection[str],
    known: Collection[str],
    names: Collection[str] = (),
) -> Iterator[Loosening]:
    """Yield the tests that a pull request no longer collects, and lowered requirements of its suites in Python.

    Args:
        base: The earlier state.
        head: The later state.
        matched: Suite file to its later name, and earlier to later id of the cases that are in both states.
        files: Python files about evaluations that are in both states.
        known: Names of findings in the text of Python files: ``FILE::assertion in TEST``, ``FILE::mark of TEST``.
        names: Those of findings in suite files, which are not found again in what they are loaded as.
    """
    pairs = {name: (now, dict(cases)) for name, (now, cases) in matched.items()}
    for name, suite in base.suites.items():
        if not OwnFiles(Path(name)).is_declared and name not in matched:
            continue  # a file that is gone, or has a sample
        after = head.suites.get(matched[name][0] if name in matched else name)
        if after is not None:
            pairs.setdefault(name, (name, case_pairs(suite.contents, after.contents)))
            yield from (loosening for loosening in compare_suites(suite, after) if loosening.name not in names)
        elif name not in matched:
            yield Loosening(suite.file, 0, f"suite {name.rpartition(':')[2]}", "no longer collected", gone=True)
    yield from compare_items(base, head, pairs, files, known)
    yield from _compare_code(base, head, {name: now for name, (now, _) in pairs.items()}, files, known)
    for name in dict.fromkeys(base.failed):
        yield Loosening(name, 0, "tests", "could not be collected, so they are not compared", gone=True, note=True)
    for name in {*head.replaced} - {*base.replaced}:
        yield Loosening("pytest", 0, name, "replaced by other code")
    for name in head.plugins:
        if name not in base.plugins and not name.endswith("conftest.py"):
            yield Loosening(name, 0, "plugin of pytest", "new")


def _compare_code(
    base: StateDump, head: StateDump, suites: Mapping[str, str], files: Collection[str], known: Collection[str]
) -> Iterator[Loosening]:
    """Yield the code that judges answers, and tests about evaluations, that a pull request has changed."""
    for name, digest in base.code.items():
        file, _, subject = name.partition("::code of ")
        now = suites.get(file)
        if now is not None and now in head.code and head.code.get(f"{now}::code of {subject}", "") != digest:
            yield Loosening(now.partition("::")[0], 0, f"code of {subject}", "changed")
    for name, digest in base.tests.items():
        file, _, test = name.partition("::")
        if file in files and head.tests.get(name, digest) != digest and not _is_known(file, test, known):
            yield Loosening(file, 0, f"code of {test}", "changed")


def _is_known(file: str, test: str, known: Collection[str]) -> bool:
    """Whether a finding already names a test, so that the change of its code is no further finding."""
    within = test.partition("[")[0].replace("::", ".")
    return any(name.startswith(f"{file}::") and name.endswith(f" {within}") for name in known)


def compare_items(
    base: StateDump,
    head: StateDump,
    matched: Mapping[str, tuple[str, Mapping[str, str]]],
    files: Collection[str] = (),
    known: Collection[str] = (),
) -> Iterator[Loosening]:
    """Yield the tests that a pull request no longer collects although their file exists, or excuses.

    Args:
        base: The earlier state.
        head: The later state.
        matched: Suite to its later name, and earlier to later id of the cases that are in both states.
        files: Python files about evaluations that are in both states.
        known: Names of findings in the text of Python files.
    """
    for option, before in base.options.items():
        after = head.options.get(option, "")
        if before != after and _asks_less(option, before, after):
            yield Loosening("pytest", 0, f"option {option}", "changed", before, after)
    renamed = {digest: name for name, digest in head.tests.items() if name not in base.tests}
    now = {_key(dump, dump.suite, dump.case, {}): dump for dump in head.items}
    lost, excused = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    moved = {
        name: renamed[digest] for name, digest in base.tests.items() if name not in head.tests and digest in renamed
    }
    for item in base.items:
        suite, cases = matched.get(item.suite, (item.suite, {}))
        if _is_known(item.file, item.name, known) or not (item.case in cases if item.suite else item.file in files):
            continue
        later = now.get(_key(item, suite, cases.get(item.case, ""), moved))
        if later is None:
            lost[item.file].append(item.name)
        elif {*later.excuses} - {*item.excuses}:
            excused[item.file].append(item.name)
    for names_by_file, change in ((lost, "no longer collected"), (excused, "excused by a mark")):
        for file, names in names_by_file.items():
            text = f"{counted(len(names), 'test')} {change}"
            yield Loosening(file, 0, "tests", text, excerpt(listed(dict.fromkeys(names)), _LONGEST))


def _asks_less(option: str, before: str, after: str) -> bool:
    """Whether a changed pytest option or setting asks less of answers than before."""
    if option == "addopts":
        return not {*after.split()} <= {*before.split()}
    return before == "True" if option in _DEMANDS else after != "False"


def _key(item: ItemDump, suite: str, case: str, moved: Mapping[str, str]) -> tuple[str, ...]:
    """The identity of a collected test in both states: a case of a suite file or of a Python test, or a test."""
    if not item.suite:
        return item.file, item.name
    test = f"{item.file}::{item.name.partition('[')[0]}" if item.file.endswith(".py") else ""
    return suite, moved.get(test, test), item.variant, case
