"""Suite files as pytest items: real test functions, one per case, so that everything pytest can do to a test works."""

__all__ = ("EvalModule", "LoadedCase", "Suites")

import contextlib
import time
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.case import MISSING, Case
from pytest_llmeval.errors import PredictionError, SuiteError
from pytest_llmeval.evaluator import Evaluator
from pytest_llmeval.execute import Execution, execute
from pytest_llmeval.explain import explain
from pytest_llmeval.observation import Observation
from pytest_llmeval.predict import Predictor, Recordings, Target, load_target
from pytest_llmeval.registry import default_registry
from pytest_llmeval.suite import Suite, load_suite
from pytest_llmeval.summary import CaseRecord, measure_each
from pytest_llmeval.transport import SuiteKey, encode

PAYLOAD = pytest.StashKey[str]()
"""What an item hands to its report."""

OWN_FOLDER = "__llmeval__"
_LISTED = 20


@dataclass
class Suites:
    """The suites of a process, each file read once, and what runs their cases.

    Attributes:
        config: Of the session.
        recordings: Predictions of earlier runs, if the user named a file.
        record: Whether reports carry predictions for that file.
    """

    config: pytest.Config
    recordings: Recordings | None = None
    record: bool = False
    predictor: Predictor = field(default_factory=Predictor)
    faulty_files: int = 0
    _loaded: dict[Path, Suite] = field(default_factory=dict)
    _targets: dict[Path, Target | PredictionError] = field(default_factory=dict)
    _batched: dict[tuple[Path, str, str], Observation | Exception] = field(default_factory=dict)

    def load(self, path: Path, collector: pytest.Session | pytest.Collector) -> Suite:
        """Read a suite file, with the evaluators that the conftests above it register.

        Raises:
            SuiteError: The file has faults.
        """
        if path not in self._loaded:
            registry = default_registry()
            session = collector if isinstance(collector, pytest.Session) else collector.session
            session.gethookproxy(path.parent).pytest_llmeval_register(registry=registry)
            self._loaded[path] = load_suite(path, registry, root=self.config.rootpath, shown=self.shown(path))
        return self._loaded[path]

    def shown(self, path: Path) -> str:
        """Return how reports name a file."""
        with contextlib.suppress(ValueError):
            return path.relative_to(self.config.rootpath).as_posix()
        return path.as_posix()

    def key(self, suite: Suite, *, test: str = "", variant: str = "") -> SuiteKey:
        """Return what results are gathered under."""
        return SuiteKey(str(suite.path), self.shown(suite.path), test, variant)

    def run(self, suite: Suite, case: Case, key: SuiteKey, target: Target | None) -> Execution:
        """Run one case."""
        __tracebackhide__ = True

        def predict(asked: Case) -> Any:
            __tracebackhide__ = True
            if self.recordings is not None:
                known = self.recordings.get(key.shown, key.variant, asked)
                if known is not MISSING:
                    return known
            timeout = suite.target.timeout if suite.target else None
            return self.predictor(target or self._target(suite), asked.input, timeout)

        def measure(label: str, evaluator: Evaluator, answered: Case) -> Observation | Exception:
            if evaluator.batch > 1 and case.prediction is not MISSING:
                return self._in_batch(suite, label, evaluator, answered)
            return measure_each(evaluator, [answered])[0]

        started = time.perf_counter()
        execution = execute(suite, case, predict, measure)
        execution.record.duration_s = time.perf_counter() - started
        return execution

    def _target(self, suite: Suite) -> Target:
        if suite.target is None:
            raise PredictionError(
                "the case carries no prediction and its suite no target: add 'prediction' to the case, 'target' to the suite, "
                "or define the fixture llmeval_target in a conftest.py"
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

        Blocks are cut by position in the file, not by what this process happens to run, so that every process measures a case
        in the same company and gets the same number.
        """
        place = (suite.path, label, case.id)
        if place not in self._batched:
            answered = [each for each in suite.cases if each.prediction is not MISSING]
            position = next(i for i, each in enumerate(answered) if each.id == case.id)
            start = position - position % evaluator.batch
            block = answered[start : start + evaluator.batch]
            for each, measured in zip(block, measure_each(evaluator, block), strict=True):
                self._batched[suite.path, label, each.id] = measured
        return self._batched.pop(place)


@dataclass(frozen=True)
class LoadedCase:
    """What the function of a case knows: its suite and its place in it."""

    suites: Suites
    suite: Suite
    case: Case

    def key(self, item: pytest.Item) -> SuiteKey:
        """Return what the results of an item are gathered under."""
        return self.suites.key(self.suite, variant=variant_of(item))

    def run(self, item: pytest.Item, target: Target | None) -> None:
        """Run the case as an item."""
        __tracebackhide__ = True
        key = self.key(item)
        execution = self.suites.run(self.suite, self.case, key, target)
        conclude(item, self.suites, self.suite, key, execution)


@dataclass(frozen=True)
class BulkRun:
    """All cases of a suite in one item."""

    suites: Suites
    suite: Suite

    def run(self, item: pytest.Item, target: Target | None) -> None:
        """Run every case; the item fails if one of them does, and lists the first of them."""
        __tracebackhide__ = True
        key = self.suites.key(self.suite, variant=variant_of(item))
        executions = [self.suites.run(self.suite, case, key, target) for case in self.suite.cases]
        item.stash[PAYLOAD] = encode(key, self.suite.total, executions, predictions=self.suites.record)
        failed = [each for each in executions if each.record.reason is not None]
        if failed:
            lines = [f"{len(failed)} of {len(executions)} cases failed"]
            lines += [f"{each.record.id}: {each.record.reason}" for each in failed[:_LISTED]]
            if len(failed) > _LISTED:
                lines.append(f"... and {len(failed) - _LISTED} more, all of them in the reports")
            raise pytest.fail.Exception("\n".join(lines), pytrace=False)


def variant_of(item: pytest.Item) -> str:
    """Return the id of an item's parameters, which name a variant of the target."""
    callspec = getattr(item, "callspec", None)
    return callspec.id if callspec is not None else ""


def conclude(item: pytest.Item, suites: Suites, suite: Suite, key: SuiteKey, execution: Execution) -> None:
    """Hand an execution to the item's report, and fail the item where the case failed.

    Raises:
        pytest.fail.Exception: A limit was not met, the prediction is malformed, or the case could not be measured.
        BaseException: What the target raised.
    """
    __tracebackhide__ = True
    error = execution.error
    if isinstance(error, pytest.skip.Exception):
        execution.record.outcome, execution.record.errors = "skipped", {}
    item.stash[PAYLOAD] = encode(key, suite.total, [execution], predictions=suites.record)
    if suites.config.getoption("xmlpath", None):
        item.user_properties += [(f"llmeval.{name}", "" if score is None else repr(score)) for name, score in execution.scores(suite).items()]
    if error is not None and not isinstance(error, PredictionError):
        raise error
    if execution.record.reason is not None:
        raise pytest.fail.Exception(explain(execution.case, execution.record, execution.unmet), pytrace=False)


def payload_of(item: pytest.Item, call: "pytest.CallInfo[None]", report: pytest.TestReport) -> str | None:
    """Return what an item hands to its report; a case whose fixtures failed or skipped it is counted too."""
    if call.when == "call" or report.outcome == "passed":
        return item.stash.get(PAYLOAD, None) if call.when == "call" else None
    loaded = getattr(getattr(item, "function", None), "llmeval_loaded", None)
    if not isinstance(loaded, LoadedCase):
        return None
    reason = call.excinfo.exconly() if call.excinfo else report.outcome
    errors = {} if report.skipped else {"": reason}
    record = CaseRecord(loaded.case.id, outcome="skipped" if report.skipped else "errored", errors=errors, reason=reason)
    return encode(loaded.key(item), loaded.suite.total, [Execution(loaded.case, record)], predictions=False)


# The bodies are one line each: a traceback then starts at the line of the case in its file.
# fmt: off
def _case(request: pytest.FixtureRequest, loaded: Any = None) -> None: loaded.run(request.node, None)  # noqa: E704
def _case_with_target(request: pytest.FixtureRequest, llmeval_target: Any, loaded: Any = None) -> None: loaded.run(request.node, llmeval_target)  # noqa: E501, E704
# fmt: on


class EvalModule(pytest.Module):
    """A suite file. Its module is made up: one function per case."""

    _module: types.ModuleType | None = None
    _faults: SuiteError | None = None

    def _getobj(self) -> types.ModuleType:
        if self._module is None:
            self._module = self._build()
        return self._module

    def _build(self) -> types.ModuleType:
        suites = self.config.stash[SUITES]
        module = types.ModuleType("llmeval_" + "".join(c if c.isalnum() else "_" for c in self.name))
        module.__file__ = str(self.path)
        module.__dict__["pytestmark"] = [pytest.mark.llmeval]
        try:
            suite = suites.load(self.path, self)
        except SuiteError as error:
            suites.faulty_files += 1
            raise self.CollectError(str(error)) from None
        if suite.problems:
            suites.faulty_files += 1
            self._faults = SuiteError(suite.problems)
        for tag in sorted({tag for case in suite.cases for tag in case.tags}):
            self.config.addinivalue_line("markers", f"{tag}: a tag of evaluation cases")
        asked = any(case.prediction is MISSING for case in suite.cases)
        template = (_case_with_target if asked else _case).__code__
        if suite.bulk:
            self._add(module, template, "bulk", 1, BulkRun(suites, suite), ())
        else:
            for case in suite.cases:
                self._add(module, template, case.id, case.line or 1, LoadedCase(suites, suite, case), case.tags)
        return module

    def _add(
        self, module: types.ModuleType, template: types.CodeType, name: str, line: int, loaded: Any, tags: Sequence[str]
    ) -> None:
        code = template.replace(co_filename=str(self.path), co_firstlineno=line, co_name=name)
        function = types.FunctionType(code, globals(), name, (loaded,))
        function.__module__ = module.__name__
        function.__dict__["__test__"] = True
        function.__dict__["llmeval_loaded"] = loaded
        if tags:
            function.__dict__["pytestmark"] = [getattr(pytest.mark, tag).mark for tag in tags]
        module.__dict__[name] = function

    def collect(self) -> "Iterable[pytest.Item | pytest.Collector]":
        """Yield the items, and last a collector that reports faulty cases."""
        yield from super().collect()
        if self._faults is not None:
            yield Faults.from_parent(self, name="<faults>", faults=self._faults)


class Faults(pytest.Collector):
    """Reports the faults of single cases, so that the other cases still run."""

    def __init__(self, *, faults: SuiteError, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.faults = faults

    def collect(self) -> "Iterable[pytest.Item | pytest.Collector]":
        """Raise them."""
        raise self.CollectError(str(self.faults))


SUITES = pytest.StashKey[Suites]()


