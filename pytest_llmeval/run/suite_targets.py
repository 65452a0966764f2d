"""The targets of suites, each loaded or connected once per process; models with prompts among them."""

__all__ = (
    "ModelTarget",
    "SuiteTarget",
    "SuiteTargets",
)

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.errors import JudgeError, PredictionError
from pytest_llmeval.judge.contract import JudgeRequest
from pytest_llmeval.judge.prices import cost_usd, price_of
from pytest_llmeval.services.background import Background
from pytest_llmeval.services.retrying import RunCalls
from pytest_llmeval.suite.suite import Suite
from pytest_llmeval.suite.systems import ModelSystem
from pytest_llmeval.targets.callables import load_target, network_target
from pytest_llmeval.targets.python import Target
from pytest_llmeval.targets.spec import BatchTarget, TargetSpec

if TYPE_CHECKING:
    from pytest_llmeval.judge.clients import AsyncJudge


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


class ModelTarget:
    """Answers inputs by a model: the text as ``answer``, and what it took as ``usage``."""

    def __init__(self, system: ModelSystem, client: "AsyncJudge") -> None:
        self.system = system
        self.client = client
        self._price = price_of(system.spec)

    async def answer(self, value: Any) -> dict[str, Any]:
        """Return the prediction for an input.

        Raises:
            PredictionError: The model gave no reply, or the input lacks something that a prompt names.
        """
        spec = self.system.spec
        messages = tuple(self.system.messages(value))
        try:
            reply = await self.client.complete(JudgeRequest(messages, spec.name, spec.request_parameters()))
        except JudgeError as error:
            raise PredictionError(str(error)) from None
        usage = {
            "input_tokens": reply.usage.input_tokens,
            "output_tokens": reply.usage.output_tokens,
            "cost_usd": cost_usd(self._price, reply.usage),
        }
        return {"answer": reply.text, "usage": {name: value for name, value in usage.items() if value is not None}}

    # Waits between attempts are not the model's: the exchange of each request is timed.
    answer.clocks_itself = True  # type: ignore[attr-defined]  # functions take attributes
