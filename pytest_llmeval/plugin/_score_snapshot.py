"""Score snapshots of Python tests: compared in the process of the test, approved in the main process."""

import json
import math
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from numbers import Real
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.baselines import (
    PendingFile,
    SnapshotMode,
    Stamp,
    TestScores,
    approve,
    compare_scores,
    day_of,
    head_commit,
    mark_suite,
    python_score_file,
    read_if_there,
    rounded,
    texts_of,
    vanished,
)
from pytest_llmeval.core import SnapshotVerdict, SuiteError, unknown_name
from pytest_llmeval.plugin._presentation import VerdictReport, emit
from pytest_llmeval.suites import Tolerance

_SCORED = pytest.StashKey["_AssertedScores"]()
_REMEMBERED = 20


@dataclass
class _AssertedScores:
    """What a Python test has asserted with its score snapshot, kept until the scores are approved."""

    path: str
    module: str
    test: str
    values: dict[str, float | None] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    passed: bool = False


class ScoreSnapshot:
    """Compares scores of a test with those that were approved."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._mode = SnapshotMode.from_config(item.config)
        module, _, self._test = item.nodeid.partition("::")
        self._path = python_score_file(item.path)
        self._display_path = (Path(module).parent / self._path.parent.name / self._path.name).as_posix()

    def assert_match(
        self,
        scores: Mapping[str, float | None],
        *,
        tolerance: "float | Mapping[str, float | Mapping[str, float]]" = 0.0,
        lower_is_better: "tuple[str, ...]" = (),
    ) -> None:
        """Assert that no score has fallen beyond its tolerance since it was approved.

        With ``--snapshot-update`` nothing is compared: the scores are approved.

        Args:
            scores: Metric name to value; ``None`` where it is undefined.
            tolerance: How far a score may fall, or metric name to that, as a number or ``{"relative": share}``.
            lower_is_better: Metrics of which less is better.

        Raises:
            pytest.fail.Exception: One has, or nothing is approved yet.
            TypeError: A score is no number, or its name no text.
            ValueError: A score is not finite or was given before; a tolerance is negative; a setting is of no score.
        """
        __tracebackhide__ = True
        scored = self._scored()
        _check_names(scores, (*(tolerance if isinstance(tolerance, Mapping) else ()), *lower_is_better))
        values = {name: _checked_score(name, value, scored) for name, value in scores.items()}
        tolerances = {name: _tolerance_of_score(tolerance, name) for name in values}
        scored.values.update(values)
        if self._mode.update:
            self._read()  # a file that cannot be used is not written
            return
        approved = self._approved(values)
        verdicts = [
            compare_scores(name, value, approved[name], tolerances[name], higher_is_better=name not in lower_is_better)
            if name in approved
            else SnapshotVerdict(name, "missing", "failed", value, None, f"is {value}; no value is approved")
            for name, value in values.items()
            if name in approved or not self._mode.new_only
        ]
        wrong = [verdict for verdict in verdicts if verdict.outcome == "failed"]
        scored.failed += [verdict.metric for verdict in wrong]
        if wrong:
            lines = [f"{verdict.metric} {verdict.reason}" for verdict in wrong]
            command = self._mode.command(self._item.nodeid, suites=False)
            lines.append(f"approved scores are in {self._display_path}; to approve these: {command}")
            raise pytest.fail.Exception("\n".join(lines), pytrace=False)

    def _scored(self) -> _AssertedScores:
        manager = self._item.config.pluginmanager
        if not manager.has_plugin(_Attach.__name__):
            manager.register(_Attach(), _Attach.__name__)
        return self._item.stash.setdefault(_SCORED, _AssertedScores(str(self._path), self._item.path.name, self._test))

    def _read(self) -> TestScores | None:
        __tracebackhide__ = True
        try:
            return read_if_there(self._path, self._display_path, TestScores)
        except SuiteError as error:
            del self._item.stash[_SCORED]
            raise pytest.fail.Exception(str(error), pytrace=False) from None

    def _approved(self, values: Mapping[str, float | None]) -> Mapping[str, float | None]:
        __tracebackhide__ = True
        scores = self._read()
        approved = scores.tests.get(self._test) if scores is not None else None
        if approved is None and not self._mode.new_only:
            self._item.stash[_SCORED].failed += values
            command = self._mode.command(self._item.nodeid, suites=False)
            raise pytest.fail.Exception(
                f"no snapshot of this test in {self._display_path}: create it with {command}", pytrace=False
            )
        return approved or {}


def _check_names(scores: Mapping[str, object], settings: Iterable[str]) -> None:
    for name in scores:
        if not isinstance(name, str):
            raise TypeError(f"score {name!r}: found a name that is {type(name).__name__}, expected text")
    for name in settings:
        if name not in scores:
            # A misspelt name would turn the direction round, or leave a score without its tolerance.
            raise ValueError(f"tolerance or direction: {unknown_name('score', name, scores)}")


def _checked_score(name: str, value: object, scored: _AssertedScores) -> float | None:
    if not isinstance(value, Real | None):
        raise TypeError(f"score {name!r}: found {type(value).__name__}, expected a number or None")
    if value is not None and not math.isfinite(value):
        raise ValueError(f"score {name!r}: found {value}, expected a finite number, or None where it is undefined")
    if name in scored.values:
        raise ValueError(f"score {name!r}: found it twice in this test, expected distinct names")
    return None if value is None else rounded(float(value))


def _tolerance_of_score(option: "float | Mapping[str, float | Mapping[str, float]]", name: str) -> Tolerance:
    own = option.get(name, 0.0) if isinstance(option, Mapping) else option
    relative = isinstance(own, Mapping)
    number = own.get("relative") if isinstance(own, Mapping) else own
    if not isinstance(number, Real) or not (math.isfinite(number) and number >= 0):
        raise ValueError(f"tolerance of {name!r}: found {own!r}, expected a number of at least 0, or relative: number")
    return Tolerance(relative=float(number)) if relative else Tolerance(absolute=float(number))


class _Attach:
    """Puts a test's scores on its report; registered once a test uses the fixture."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Forget what an earlier attempt has asserted."""
        if _SCORED in item.stash:
            del item.stash[_SCORED]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Hand over what the test has asserted."""
        report = yield
        scored = item.stash.get(_SCORED, None)
        if scored is not None and scored.values and report.when == "teardown":
            report.llmeval_scores = json.dumps(vars(scored))
        return report


class PythonScores:
    """The scores of a run's Python tests, in the process to which all reports come: it alone writes."""

    def __init__(self) -> None:
        self._seen: dict[str, _AssertedScores] = {}

    def take(self, nodeid: str, text: str, *, passed: bool) -> None:
        """Keep what a report carries; of a test that is run again the last scores count."""
        self._seen[nodeid] = _AssertedScores(**{**json.loads(text), "passed": passed})

    def settle(self, session: pytest.Session, *, uncollected: bool) -> None:
        """Have the scores counted, and written where they are approved.

        Args:
            session: The session.
            uncollected: Whether something could not be collected; then nothing is approved.
        """
        mode = SnapshotMode.from_config(session.config)
        if uncollected:
            mode = mode.read_only()
        stamp = Stamp(day_of(datetime.now(UTC)), head_commit(session.config.rootpath))
        files = []
        vanishings: list[VerdictReport] = []
        for path in sorted({scored.path for scored in self._seen.values()}):
            tests = [scored for scored in self._seen.values() if scored.path == path]
            try:
                files.append(_pending_tests(Path(path), tests, mode, stamp))
                vanishings += sorted(self._vanished(path, mode))
            except SuiteError:
                continue  # each test has failed with what is wrong
        mode.account(files, orphans=False)
        faults = [
            VerdictReport(str(file.path), file.path.name, "snapshot[*]", "failed", file.fault)
            for file in files
            if file.fault
        ]
        emit(session, [*vanishings, *faults])

    def _vanished(self, path: str, mode: SnapshotMode) -> Iterator[VerdictReport]:
        """Yield the scores that tests which ran to their end do not assert any more."""
        old = read_if_there(Path(path), Path(path).name, TestScores)
        if old is None or mode.update or mode.warn_unused:
            return
        for nodeid, scored in self._seen.items():
            if scored.path != path or not scored.passed:
                continue
            for name, approved in old.tests.get(scored.test, {}).items():
                if name not in scored.values:
                    file = nodeid.partition("::")[0]
                    reason = f"{nodeid}: snapshot {name}: {vanished(name, approved).reason}"
                    yield VerdictReport(file, file, f"snapshot[{scored.test}: {name}]", "failed", reason)


def _pending_tests(path: Path, tests: list[_AssertedScores], mode: SnapshotMode, stamp: Stamp) -> PendingFile:
    old = read_if_there(path, path.name, TestScores)
    known = dict(old.tests) if old is not None else {}
    gone = _gone(known, path, tests, mode)
    ran = {test.test for test in tests if test.passed} | gone
    before = texts_of(TestScores(tests[0].module, {test: known[test] for test in sorted(ran & known.keys())}))
    after = texts_of(TestScores(tests[0].module, {test.test: test.values for test in tests}))
    failed = {f"{test.test}: {name}" for test in tests for name in test.failed}
    pending = PendingFile(
        path, {**before, **_common_texts(texts_of(old), after)}, after, frozenset(after.keys() - failed)
    )
    if mode.update or mode.new_only:

        def approved() -> TestScores:
            there = read_if_there(path, path.name, TestScores)
            return approve(there, _added(there, path, tests, mode), stamp, _REMEMBERED)

        pending.approved = approved
        if mode.update and old is not None:
            mark_suite(pending, changed=set(_added(old, path, tests, mode).values) != set(old.values))
    return pending


def _added(there: TestScores | None, path: Path, tests: list[_AssertedScores], mode: SnapshotMode) -> TestScores:
    """Add what tests have asserted to what is approved."""
    known = dict(there.tests) if there is not None else {}
    gone = _gone(known, path, tests, mode)
    new = {test: values for test, values in known.items() if test not in gone}
    for each in tests:
        # A test that failed on its way has not asserted everything.
        approved = {} if each.passed and not mode.keep_unused else known.get(each.test, {})
        changes = {name: value for name, value in each.values.items() if mode.update or name not in approved}
        new[each.test] = {**approved, **changes}
    return TestScores(tests[0].module, new)


def _gone(known: Iterable[str], path: Path, tests: list[_AssertedScores], mode: SnapshotMode) -> set[str]:
    """Return the approved tests that their module does not define any more."""
    module = path.parent.parent / tests[0].module
    return set() if mode.keep_unused else {test for test in known if not _defines(module, test)}


def _common_texts(texts: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if name in names}


def _defines(module: Path, test: str) -> bool:
    """Whether a module has the function of a test; in doubt it has."""
    name = re.escape(test.partition("[")[0].rpartition("::")[2])
    try:
        return re.search(rf"\bdef\s+{name}\b", module.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return True
