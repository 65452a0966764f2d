"""Score snapshots of Python tests: compared in the process of the test, approved in the main process."""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.baselines import AssertedScores, ScoreFile, SnapshotMode, Stamp
from pytest_llmeval.core import SuiteError
from pytest_llmeval.plugin._presentation import VerdictReport, emit

_SCORED = pytest.StashKey[AssertedScores]()


class ScoreSnapshot:
    """The fixture ``score_snapshot``: compares scores of a test with those that were approved."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._mode = SnapshotMode.from_config(item.config)
        module, _, self._test = item.nodeid.partition("::")
        self._path = Path(AssertedScores.of_test(item.path, self._test).path)
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
        scored = self._asserted_scores()
        tolerances = scored.add(scores, tolerance, lower_is_better)
        if self._mode.update:
            self._read()  # a file that cannot be used is not written
            return
        approved = self._approved_of_test(tolerances)
        wrong = scored.compare(approved, tolerances, lower_is_better, new_only=self._mode.new_only)
        if wrong:
            lines = [f"{verdict.metric} {verdict.reason}" for verdict in wrong]
            command = self._mode.command(self._item.nodeid, suites=False)
            lines.append(f"approved scores are in {self._display_path}; to approve these: {command}")
            raise pytest.fail.Exception("\n".join(lines), pytrace=False)

    def _asserted_scores(self) -> AssertedScores:
        """The scores that the test has asserted so far."""
        manager = self._item.config.pluginmanager
        if not manager.has_plugin(_Attach.__name__):
            manager.register(_Attach(), _Attach.__name__)
        return self._item.stash.setdefault(_SCORED, AssertedScores.of_test(self._item.path, self._test))

    def _read(self) -> Mapping[str, float | None] | None:
        """The approved scores of the test; ``None`` if there are none."""
        __tracebackhide__ = True
        try:
            scores = ScoreFile(self._path, self._display_path).read_tests()
            return None if scores is None else scores.tests.get(self._test)
        except SuiteError as error:
            del self._item.stash[_SCORED]
            raise pytest.fail.Exception(str(error), pytrace=False) from None

    def _approved_of_test(self, names: Iterable[str]) -> Mapping[str, float | None]:
        """The approved scores of the test; without any, a test fails that may not write them."""
        __tracebackhide__ = True
        approved = self._read()
        if approved is None and not self._mode.new_only:
            self._item.stash[_SCORED].failed += names
            command = self._mode.command(self._item.nodeid, suites=False)
            raise pytest.fail.Exception(
                f"no snapshot of this test in {self._display_path}: create it with {command}", pytrace=False
            )
        return approved or {}


class _Attach:
    """Puts the scores of the fixture ``score_snapshot`` on a test's report; registered once a test uses it."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Forget what an earlier attempt at a test has asserted."""
        if _SCORED in item.stash:
            del item.stash[_SCORED]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Hand over what the test has asserted with ``score_snapshot``."""
        report = yield
        scored = item.stash.get(_SCORED, None)
        if scored is not None and scored.values and report.when == "teardown":
            report.llmeval_scores = json.dumps(vars(scored))
        return report


class PythonScores:
    """The scores of tests with ``score_snapshot``, in the process to which all reports come: it alone writes."""

    def __init__(self) -> None:
        self._seen: dict[str, AssertedScores] = {}

    def take(self, nodeid: str, text: str, *, passed: bool) -> None:
        """Keep what a test's report carries; of a test that is run again the last scores count."""
        self._seen[nodeid] = AssertedScores(**{**json.loads(text), "passed": passed})

    def settle(self, session: pytest.Session, *, uncollected: bool) -> None:
        """Have the scores of tests counted, and written where they are approved.

        Args:
            session: The session.
            uncollected: Whether something could not be collected; then nothing is approved.
        """
        mode = SnapshotMode.from_config(session.config)
        if uncollected:
            mode = mode.read_only()
        stamp = Stamp.of_checkout(datetime.now(UTC), session.config.rootpath)
        files = []
        vanishings: list[VerdictReport] = []
        for path in sorted({scored.path for scored in self._seen.values()}):
            tests = [scored for scored in self._seen.values() if scored.path == path]
            try:
                files.append(AssertedScores.pending(Path(path), tests, mode, stamp))
                vanishings += sorted(self._vanished_scores(path, mode))
            except SuiteError:
                continue  # each test has failed with what is wrong
        mode.account(files, orphans=False)
        faults = [
            VerdictReport(str(file.path), file.path.name, "snapshot[*]", "failed", file.fault)
            for file in files
            if file.fault
        ]
        emit(session, [*vanishings, *faults])

    def _vanished_scores(self, path: str, mode: SnapshotMode) -> Iterator[VerdictReport]:
        """Yield the scores that tests which ran to their end do not assert any more."""
        old = ScoreFile(Path(path), Path(path).name).read_tests()
        if old is None or mode.update or mode.warn_unused:
            return
        for nodeid, scored in self._seen.items():
            if scored.path != path or not scored.passed:
                continue
            for verdict in scored.vanished(old):
                file = nodeid.partition("::")[0]
                reason = f"{nodeid}: snapshot {verdict.metric}: {verdict.reason}"
                yield VerdictReport(file, file, f"snapshot[{scored.test}: {verdict.metric}]", "failed", reason)
