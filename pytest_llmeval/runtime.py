"""The suites of a process, and what runs their cases: targets, recordings, batches."""

__all__ = ("LoadedCase", "Suites")

import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.case import MISSING, Case
from pytest_llmeval.errors import PredictionError
from pytest_llmeval.evaluator import Evaluator
from pytest_llmeval.execute import Execution, execute
from pytest_llmeval.loading import load_suite
from pytest_llmeval.observation import Observation
from pytest_llmeval.predict import Predictor, Recordings, Target, load_target
from pytest_llmeval.registry import default_registry
from pytest_llmeval.scoring import measure_each
from pytest_llmeval.suite import Suite
from pytest_llmeval.transport import SuiteKey


@dataclass
class Suites:
    """The suites of a process, each file read once.

    Attributes:
        config: Of the session.
        recordings: Predictions of earlier runs, if the user named a file.
        record: Whether reports carry predictions for that file.
        predictor: Calls targets.
        faulty_files: How many collectors reported faults.
    """

    config: pytest.Config
    recordings: Recordings | None = None
    record: bool = False
    predictor: Predictor = field(default_factory=Predictor)
    faulty_files: int = 0
    _loaded: dict[Path, Suite] = field(default_factory=dict)
    _targets: dict[Path, Target | PredictionError] = field(default_factory=dict)
    _batched: dict[tuple[Path, str, str], Observation | Exception] = field(default_factory=dict)

    def load(self, path: Path, session: pytest.Session) -> Suite:
        """Read a suite file, with the evaluators that the conftests above it register.

        Raises:
            SuiteError: The file has faults.
            EvaluatorError: An evaluator cannot be registered.
        """
        if path not in self._loaded:
            registry = default_registry()
            self._load_conftests(path.parent)
            session.gethookproxy(path.parent).pytest_llmeval_register(registry=registry)
            suite = load_suite(path, registry, root=self.config.rootpath, shown=self.shown(path))
            for tag in sorted({tag for case in suite.cases for tag in case.tags}):
                self.config.addinivalue_line("markers", f"{tag}: a tag of evaluation cases")
            self._loaded[path] = suite
        return self._loaded[path]

    def _load_conftests(self, folder: Path) -> None:
        """Load the conftests at and above a suite, which register evaluators.

        pytest has loaded them where it collects the folder: not in xdist's main process, nor for a suite elsewhere that
        a Python test names.
        """
        options: dict[str, Any] = {"rootpath": self.config.rootpath}
        if pytest.version_tuple >= (8, 1):
            options["consider_namespace_packages"] = self.config.getini("consider_namespace_packages")
        load = self.config.pluginmanager._loadconftestmodules  # noqa: SLF001 (pytest has no public way)
        load(folder, self.config.getoption("importmode"), **options)

    def shown(self, path: Path) -> str:
        """Return how reports name a file: relative to pytest's rootdir where it lies inside, with forward slashes."""
        with contextlib.suppress(ValueError):
            return path.relative_to(self.config.rootpath).as_posix()
        return path.as_posix()

    def key(self, suite: Suite, *, test: str = "", variant: str = "") -> SuiteKey:
        """Return what results are gathered under."""
        return SuiteKey(str(suite.path), self.shown(suite.path), test, variant)

    def run(self, suite: Suite, case: Case, key: SuiteKey, target: Target | None) -> Execution:
        """Run one case.

        Args:
            suite: Its suite.
            case: The case.
            key: What its result is gathered under.
            target: What the user's fixture gave; ``None`` for the suite's own target.

        Raises:
            pytest.exit.Exception: The target wants the whole run to end.
        """
        __tracebackhide__ = True
        # A Python test brings a prediction of its own, which no batch of the file's predictions holds.
        recorded = case.prediction is not MISSING and not key.test

        def predict(asked: Case) -> Any:
            __tracebackhide__ = True
            return self._predict(suite, asked, key, target)

        def measure(label: str, evaluator: Evaluator, answered: Case) -> Observation | Exception:
            if recorded and evaluator.batch > 1:
                return self._in_batch(suite, label, evaluator, answered)
            return measure_each(evaluator, [answered])[0]

        started = time.perf_counter()
        execution = execute(suite, case, predict, measure)
        if isinstance(execution.error, pytest.exit.Exception):
            raise execution.error
        if isinstance(execution.error, pytest.skip.Exception):
            execution.record.outcome, execution.record.errors = "skipped", {}
        execution.record.duration_s = time.perf_counter() - started
        return execution

    def _predict(self, suite: Suite, case: Case, key: SuiteKey, target: Target | None) -> Any:
        __tracebackhide__ = True
        if self.recordings is not None:
            known = self.recordings.get(key.shown, key.variant, case)
            if known is not MISSING:
                return known
        timeout = suite.target.timeout if suite.target else None
        return self.predictor(target or self._target(suite), case.input, timeout)

    def _target(self, suite: Suite) -> Target:
        if suite.target is None:
            raise PredictionError(
                "the case carries no prediction and its suite no target: add 'prediction' to the case, "
                "'target' to the suite, or define the fixture llmeval_target in a conftest.py"
            )
        if suite.path not in self._targets:
            try:
                self._targets[suite.path] = load_target(suite.target.python, suite.path.parent)
            except PredictionError as error:
                self._targets[suite.path] = error
        found = self._targets[suite.path]
        if isinstance(found, PredictionError):
            raise found
        return found

    def _in_batch(self, suite: Suite, label: str, evaluator: Evaluator, case: Case) -> Observation | Exception:
        """Measure a case together with its neighbours in the file.

        Blocks are cut by position in the file, not by what this process happens to run, so that every process measures
        a case in the same company and gets the same number.
        """
        place = (suite.path, label, case.id)
        if place not in self._batched:
            answered = [each for each in suite.cases if each.prediction is not MISSING]
            position = next(index for index, each in enumerate(answered) if each.id == case.id)
            start = position - position % evaluator.batch
            block = answered[start : start + evaluator.batch]
            for each, measured in zip(block, measure_each(evaluator, block), strict=True):
                self._batched[suite.path, label, each.id] = measured
        return self._batched.pop(place)


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A case with all that running it needs."""

    suites: Suites
    suite: Suite
    case: Case
    key: SuiteKey

    def run(self, target: Target | None) -> Execution:
        """Run the case."""
        __tracebackhide__ = True
        return self.suites.run(self.suite, self.case, self.key, target)
