"""Scores that Python tests assert with a snapshot."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path

from pytest_llmeval.baselines._baselines import mark_suite
from pytest_llmeval.baselines._comparable import Stamp
from pytest_llmeval.baselines._files import PendingFile, ScoreFile, approve, python_score_file, texts_of
from pytest_llmeval.baselines._runs import SnapshotMode
from pytest_llmeval.baselines._scores import TestScores
from pytest_llmeval.baselines._verdicts import compare_scores, vanished
from pytest_llmeval.core import SnapshotVerdict, unknown_name
from pytest_llmeval.numbers import Shift
from pytest_llmeval.suites import Tolerance

_REMEMBERED = 20


@dataclass
class AssertedScores:
    """The scores that one test asserts, kept until they are approved.

    Attributes:
        path: The score file of its module.
        module: Name of the file of the module.
        test: The test, without its module.
        values: Metric name to value.
        failed: Names of the scores that are not as approved.
        passed: Whether the test ran to its end.
    """

    path: str
    module: str
    test: str
    values: dict[str, float | None] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    passed: bool = False

    @classmethod
    def of_test(cls, module: Path, test: str) -> "AssertedScores":
        """The scores of a Python test that has not asserted anything yet."""
        return cls(str(python_score_file(module)), module.name, test)

    def add(
        self,
        scores: Mapping[str, float | None],
        tolerance: "float | Mapping[str, float | Mapping[str, float]]",
        lower_is_better: tuple[str, ...],
    ) -> dict[str, Tolerance]:
        """Add asserted scores, and return the tolerance of each.

        Raises:
            TypeError: A score is no number, or its name no text.
            ValueError: A score is not finite or was given before; a tolerance is negative; a setting is of no score.
        """
        _check_names(scores, (*(tolerance if isinstance(tolerance, Mapping) else ()), *lower_is_better))
        values = {name: self._check_score(name, value) for name, value in scores.items()}
        tolerances = {name: _tolerance_of_score(tolerance, name) for name in values}
        self.values.update(values)
        return tolerances

    def _check_score(self, name: str, value: object) -> float | None:
        """A score that a Python test asserts, as it is kept."""
        if not isinstance(value, Real | None):
            raise TypeError(f"score {name!r}: found {type(value).__name__}, expected a number or None")
        if value is not None and not math.isfinite(value):
            raise ValueError(f"score {name!r}: found {value}, expected a finite number, or None where it is undefined")
        if name in self.values:
            raise ValueError(f"score {name!r}: found it twice in this test, expected distinct names")
        return None if value is None else Shift.rounded(float(value))

    def compare(
        self,
        approved: Mapping[str, float | None],
        tolerances: Mapping[str, Tolerance],
        lower_is_better: tuple[str, ...],
        *,
        new_only: bool,
    ) -> list[SnapshotVerdict]:
        """Compare added scores with the approved ones; note and return those that fail.

        Args:
            approved: Metric name to value.
            tolerances: Of the scores to compare.
            lower_is_better: Metrics of which less is better.
            new_only: Whether scores without approved ones are approved.
        """
        failed = []
        for name, tolerance in tolerances.items():
            value = self.values[name]
            if name in approved:
                better = name not in lower_is_better
                verdict = compare_scores(name, value, approved[name], tolerance, higher_is_better=better)
            else:
                verdict = SnapshotVerdict(name, "missing", "failed", value, None, f"is {value}; no value is approved")
            if verdict.outcome == "failed" and (name in approved or not new_only):
                failed.append(verdict)
        self.failed += [verdict.metric for verdict in failed]
        return failed

    def vanished(self, approved: TestScores) -> Iterator[SnapshotVerdict]:
        """Yield a verdict for each approved score that the test does not assert any more."""
        for name, value in approved.tests.get(self.test, {}).items():
            if name not in self.values:
                yield vanished(name, value)

    @staticmethod
    def pending(path: Path, tests: "list[AssertedScores]", mode: SnapshotMode, stamp: Stamp) -> PendingFile:
        """The score file of a Python module, as its tests leave it.

        Args:
            path: The file.
            tests: Those of the module that have asserted scores.
            mode: The snapshot options.
            stamp: Of an approval.

        Raises:
            SuiteError: The file cannot be used.
        """
        file = ScoreFile(path, path.name)
        old = file.read_tests()
        known = dict(old.tests) if old is not None else {}
        gone = _find_gone_tests(known, path, tests, mode)
        ran = {test.test for test in tests if test.passed} | gone
        before = texts_of(TestScores(tests[0].module, {test: known[test] for test in sorted(ran & known.keys())}))
        after = texts_of(TestScores(tests[0].module, {test.test: test.values for test in tests}))
        failed = {f"{test.test}: {name}" for test in tests for name in test.failed}
        pending = PendingFile(
            file, {**before, **_common_texts(texts_of(old), after)}, after, frozenset(after.keys() - failed)
        )
        if mode.update or mode.new_only:

            def approved() -> TestScores:
                there = file.read_tests()
                return approve(there, _add_asserted(there, path, tests, mode), stamp, _REMEMBERED)

            pending.approved = approved
            if mode.update and old is not None:
                mark_suite(pending, changed=set(_add_asserted(old, path, tests, mode).values) != set(old.values))
        return pending


def _check_names(scores: Mapping[str, object], settings: Iterable[str]) -> None:
    """Check that scores asserted by a Python test have text names, and that each tolerance or direction names one."""
    for name in scores:
        if not isinstance(name, str):
            raise TypeError(f"score {name!r}: found a name that is {type(name).__name__}, expected text")
    for name in settings:
        if name not in scores:
            # A misspelt name would turn the direction round, or leave a score without its tolerance.
            raise ValueError(f"tolerance or direction: {unknown_name('score', name, scores)}")


def _tolerance_of_score(option: "float | Mapping[str, float | Mapping[str, float]]", name: str) -> Tolerance:
    """The tolerance of one score that a Python test asserts, absolute or relative; 0 if it has none."""
    own = option.get(name, 0.0) if isinstance(option, Mapping) else option
    relative = isinstance(own, Mapping)
    number = own.get("relative") if isinstance(own, Mapping) else own
    if not isinstance(number, Real) or not (math.isfinite(number) and number >= 0):
        raise ValueError(f"tolerance of {name!r}: found {own!r}, expected a number of at least 0, or relative: number")
    return Tolerance(relative=float(number)) if relative else Tolerance(absolute=float(number))


def _add_asserted(
    there: TestScores | None, path: Path, tests: "list[AssertedScores]", mode: SnapshotMode
) -> TestScores:
    """A module's approved scores with the scores that its Python tests have asserted."""
    known = dict(there.tests) if there is not None else {}
    gone = _find_gone_tests(known, path, tests, mode)
    new = {test: values for test, values in known.items() if test not in gone}
    for asserted in tests:
        # A test that failed on its way has not asserted everything.
        approved = {} if asserted.passed and not mode.keep_unused else known.get(asserted.test, {})
        changes = {name: value for name, value in asserted.values.items() if mode.update or name not in approved}
        new[asserted.test] = {**approved, **changes}
    return TestScores(tests[0].module, new)


def _find_gone_tests(known: Iterable[str], path: Path, tests: "list[AssertedScores]", mode: SnapshotMode) -> set[str]:
    """The tests with approved scores that their Python module does not define any more."""
    module = path.parent.parent / tests[0].module
    return set() if mode.keep_unused else {test for test in known if not _defines(module, test)}


def _common_texts(texts: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """The approved snapshot lines of scores that Python tests still have."""
    return {name: text for name, text in texts.items() if name in names}


def _defines(module: Path, test: str) -> bool:
    """Whether a Python module still defines the function of a test with approved scores; in doubt it does."""
    name = re.escape(test.partition("[")[0].rpartition("::")[2])
    try:
        return re.search(rf"\bdef\s+{name}\b", module.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return True
