"""The suites of a process, and what runs their cases: targets, recordings, batches."""

__all__ = ("LoadedCase", "Suites")

import contextlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.judge.contract import JudgedEvaluator
from pytest_llmeval.judge.judges import SuiteJudges
from pytest_llmeval.judge.options import JudgeOptions
from pytest_llmeval.run.answering import Answering
from pytest_llmeval.run.execute import Execution, execute_repeats
from pytest_llmeval.run.job import Answer, Job
from pytest_llmeval.run.prefetch import EarlyCalls, Prefetch
from pytest_llmeval.run.score import measure_each
from pytest_llmeval.services.background import Background
from pytest_llmeval.suite.loading import load_suite
from pytest_llmeval.suite.registry import default_registry
from pytest_llmeval.suite.suite import Suite, SuiteKey
from pytest_llmeval.targets.connect import network_target
from pytest_llmeval.targets.contract import BatchTarget
from pytest_llmeval.targets.python import Predictor, Recordings, Target, load_target
from pytest_llmeval.targets.spec import TargetSpec

_WIDEST_WINDOW = 1_000
"""Every case of the window is looked at with each case that runs."""


@dataclass
class Suites:
    """The suites of a process, each file read once.

    Attributes:
        config: Of the session.
        recordings: Predictions of earlier runs, if the user named a file.
        record: Whether reports carry predictions for that file.
        options: What the user says about judges and concurrency.
        faulty_files: How many collectors reported faults.
    """

    config: pytest.Config
    recordings: Recordings | None = None
    record: bool = False
    options: JudgeOptions = field(default_factory=JudgeOptions)
    faulty_files: int = 0
    _loaded: dict[Path, Suite] = field(default_factory=dict)
    _targets: dict[Path, Target | BatchTarget | PredictionError] = field(default_factory=dict)
    _batched: dict[tuple[Path, str, str], Observation | Exception] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.background = Background()
        self.judges = SuiteJudges(self.options, self.background)
        answering = Answering(Predictor(self.background), self.judges.limit, self.recordings, self.judges.service)
        self.ahead = Prefetch(answering, 2 * self.options.concurrency)

    def close(self) -> None:
        """Stop what still runs in the background, and close the cache."""
        self.background.close()
        self.judges.close(whole_run=not hasattr(self.config, "workerinput"))

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
            if suite.judged:
                self.judges.judge_of(path, suite.judge, self.shown(path))
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

    def judges_of(self, suite: Suite) -> dict[str, dict[str, str]]:
        """Return, by evaluator, what decides the verdicts on a suite: the model, its parameters, how it is asked."""
        if not suite.judged:
            return {}
        suite_judge = self.judges.judge_of(suite.path, suite.judge, self.shown(suite.path))
        parameters = json.dumps(suite_judge.parameters, sort_keys=True)
        return {
            label: {
                "model": suite_judge.model,
                "parameters": parameters,
                "prompt": "; ".join(dict.fromkeys(metric.signature for metric in evaluator.describe())),
            }
            for label, evaluator in suite.evaluators.items()
            if isinstance(evaluator, JudgedEvaluator)
        }

    def key(self, suite: Suite, *, test: str = "", variant: str = "") -> SuiteKey:
        """Return what results are gathered under."""
        return SuiteKey(str(suite.path), self.shown(suite.path), test, variant)

    def run(
        self,
        loaded: "LoadedCase",
        target: Target | None,
        client: Callable[[], Any] = lambda: None,
        following: "Iterable[LoadedCase]" = (),
        look: EarlyCalls = EarlyCalls(),  # noqa: B008 (immutable)
    ) -> Execution:
        """Run one case.

        Args:
            loaded: The case.
            target: What the user's fixture gave; ``None`` for the suite's own target.
            client: Gives what the user's fixture ``judge_client`` returns.
            following: The next cases, whose answers can be sent for already.
            look: What may be asked for them.

        Raises:
            pytest.exit.Exception: The target wants the whole run to end.
        """
        __tracebackhide__ = True
        suite = loaded.suite
        # A Python test brings a prediction of its own, which no batch of the file's predictions holds.
        recorded = loaded.case.prediction is not MISSING and not loaded.key.test

        def measure(label: str, evaluator: Evaluator, answered: Case) -> Observation | Exception:
            if recorded and evaluator.batch > 1:
                return self._in_batch(suite, label, evaluator, answered)
            return measure_each(evaluator, [answered])[0]

        started = time.perf_counter()
        if recorded and not suite.judged:
            answers = [Answer(loaded.case)] * suite.repeats.times
        else:
            look = self._allowed(suite, look)
            jobs = self._jobs(loaded, target, client, look)
            ahead = (
                self._jobs(each, target, client, look)
                for each in itertools.islice(following if any(look) else (), self._window(suite))
                if not self.ahead.looked(suite.path, each.key.variant, each.case.id)
            )
            answers = self.ahead.take(jobs, ahead, look)
        execution = execute_repeats(suite, answers, measure)
        if isinstance(execution.error, pytest.exit.Exception | KeyboardInterrupt):
            raise execution.error
        if isinstance(execution.error, pytest.skip.Exception):
            execution.record.outcome, execution.record.errors = "skipped", {}
        execution.record.duration_s = time.perf_counter() - started
        return execution

    def _window(self, suite: Suite) -> int:
        """Return how many cases are looked at: enough of them to fill the batches that a service answers at once."""
        http = suite.target.http if suite.target is not None else None
        batched = http.batch * http.concurrency if http is not None else 0
        return max(self.ahead.window, min(batched, _WIDEST_WINDOW))

    def _allowed(self, suite: Suite, look: EarlyCalls) -> EarlyCalls:
        """Return what may be asked early: nothing where calls are made one by one, or a debugger may stop them."""
        if self.options.concurrency == 1 or self.config.getoption("usepdb", False):
            return EarlyCalls()
        one_by_one = suite.target is not None and suite.target.concurrency == 1
        return EarlyCalls(look.target and not one_by_one, look.judge)

    def _jobs(
        self, loaded: "LoadedCase", target: Target | None, client: Callable[[], Any], look: EarlyCalls
    ) -> Sequence[Job]:
        suite, key = loaded.suite, loaded.key
        suite_judge = self.judges.judge_of(suite.path, suite.judge, key.shown) if suite.judged else None

        def prepare(asks_target: bool) -> None:
            __tracebackhide__ = True
            if asks_target and target is None:
                with contextlib.suppress(PredictionError):  # raised again for every case that asks
                    self._target(suite)
            if suite_judge is not None and self.judges.service.asks:
                self.judges.open(suite.path, suite.judge, client)

        shared = self.options.shares and look.target and not key.test
        return [
            Job(
                suite,
                loaded.case,
                key.shown,
                key.variant,
                repeat,
                lambda: target or self._target(suite),
                suite_judge,
                shared,
                prepare,
                key.test,
            )
            for repeat in range(suite.repeats.times)
        ]

    def _target(self, suite: Suite) -> Target | BatchTarget:
        if suite.target is None:
            raise PredictionError(
                "the case carries no prediction and its suite no target: add 'prediction' to the case, an answer to "
                "the predictions of its source, 'target' to the suite, or define llmeval_target in a conftest.py"
            )
        if suite.path not in self._targets:
            try:
                self._targets[suite.path] = self._connected(suite.target, suite.path.parent)
            except PredictionError as error:
                self._targets[suite.path] = error
        found = self._targets[suite.path]
        if isinstance(found, PredictionError):
            raise found
        return found

    def _connected(self, spec: TargetSpec, folder: Path) -> Target | BatchTarget:
        if spec.python is not None:
            return load_target(spec.python, folder)
        target = network_target(spec, folder)
        self.background.closing.append(target.aclose)
        return target

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

    def run(self, target: Target | None, client: Callable[[], Any] = lambda: None) -> Execution:
        """Run the case by itself."""
        __tracebackhide__ = True
        return self.suites.run(self, target, client)
