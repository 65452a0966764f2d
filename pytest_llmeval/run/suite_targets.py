"""The targets of suites, each loaded or connected once per process."""

__all__ = ("SuiteTarget", "SuiteTargets")

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.services.background import Background
from pytest_llmeval.services.retrying import RunCalls
from pytest_llmeval.suite.models import ModelSystem
from pytest_llmeval.suite.suite import Suite
from pytest_llmeval.targets.callables import load_target
from pytest_llmeval.targets.connect import network_target
from pytest_llmeval.targets.contract import BatchTarget
from pytest_llmeval.targets.python import Target
from pytest_llmeval.targets.spec import TargetSpec


@dataclass
class SuiteTargets:
    """The targets of a process.

    Attributes:
        background: Closes connections and processes in the end.
        calls: Of the run.
        slow_down: Called when a model is asked too often.
    """

    background: Background
    calls: RunCalls = field(default_factory=RunCalls)
    slow_down: Callable[[], None] = lambda: None
    _targets: dict[tuple[Path, str], Target | BatchTarget | PredictionError] = field(default_factory=dict)

    def load(self, suite: Suite) -> Target | BatchTarget:
        """Return the target of a suite.

        Raises:
            PredictionError: The suite has none, or it cannot be loaded.
        """
        if suite.system and suite.target is None and suite.model is None:
            raise PredictionError(f"the system {suite.system!r} has no prediction for this case")
        if suite.model is None and (suite.target is None or suite.target.is_for_fixture):
            raise PredictionError(
                "no prediction and no target: add 'prediction' to the case, an answer to the predictions of its "
                "source, or 'target' to the suite, or define llmeval_target in a conftest.py"
            )
        if suite.place not in self._targets:
            try:
                self._targets[suite.place] = self._connect(suite)
            except PredictionError as error:
                self._targets[suite.place] = error
        found = self._targets[suite.place]
        if isinstance(found, PredictionError):
            raise found
        return found

    def _connect(self, suite: Suite) -> Target | BatchTarget:
        if suite.model is not None:
            return self._connect_model(suite.model)
        spec, folder = suite.target or TargetSpec(), suite.path.parent
        if spec.python is not None:
            return load_target(spec.python, folder)
        target = network_target(spec, folder, self.calls)
        self.background.closing.append(target.aclose)
        return target

    def _connect_model(self, model: ModelSystem) -> Target:
        from pytest_llmeval.judge.clients import connect
        from pytest_llmeval.run.model_target import ModelTarget

        client = connect(model.spec, on_rate_limit=lambda _: self.slow_down(), calls=self.calls)
        self.background.closing.append(client.aclose)
        return ModelTarget(model, client).answer


@dataclass(frozen=True)
class SuiteTarget:
    """Implements `pytest_llmeval.run.job.TargetSource` by the target that a suite names."""

    targets: SuiteTargets
    suite: Suite

    def load(self) -> Target | BatchTarget:
        """Return the target.

        Raises:
            PredictionError: There is none.
        """
        return self.targets.load(self.suite)
