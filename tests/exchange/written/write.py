"""Write the files of this folder by their tools: ``python write.py TOOL FOLDER`` where the tool is installed.

Paths of the machine, tracebacks of its files and its name are then taken out by hand. Not written by this script:

- ``ctrf-pytest-json-ctrf-*``: ``pytest --ctrf FILE``, with and without ``--reruns 1``, of tests that pass, fail, are
  skipped, are expected to fail, and lack a fixture;
- ``ctrf-jest-ctrf-json-reporter-*``: jest with ``retryTimes(1)`` and tests that pass, fail, pass at the second attempt,
  are skipped, and are still to be written;
- ``promptfoo-*``: ``promptfoo eval`` with the provider ``echo``, and assertions of which one is no JavaScript;
- ``every-eval-ever-*``: ``every_eval_ever convert inspect`` of the log of Inspect, with another name of the model.
"""

# The tools call these functions with arguments of their own names, and need not be installed.
# ruff: noqa: A002, A004, ARG001, ARG002, T201
# mypy: ignore-errors

import asyncio
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def braintrust(folder: Path) -> None:
    from braintrust import Eval

    def task(number: int) -> int:
        if number == 3:
            raise RuntimeError("429")
        return 2 * number if number != 1 else 0

    def accuracy(input: int, output: int, expected: int) -> int:
        return int(output == expected)

    def broken(input: int, output: int, expected: int) -> float:
        if input == 2:
            raise RuntimeError("503")
        return 0.5

    def silent(input: int, output: int, expected: int) -> None: ...

    data = [{"input": n, "expected": 2 * n, "metadata": {"topic": "odd" if n % 2 else "even"}} for n in range(4)]
    result = Eval("shop", data=data, task=task, scores=[accuracy, broken, silent], no_send_logs=True)
    plain = {"summary": result.summary.as_dict(), "results": [vars(each) for each in result.results]}
    (folder / "braintrust.json").write_text(json.dumps(plain, default=str, indent=1))


def deepeval(folder: Path) -> None:
    os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_RESULTS_FOLDER": str(folder)}
    from deepeval import evaluate
    from deepeval.evaluate.configs import AsyncConfig, ErrorConfig
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase

    class Exact(BaseMetric):
        threshold, async_mode = 0.5, False

        def measure(self, case: Any, *args: Any, **options: Any) -> float:
            self.score = self.scored(case)
            self.success = self.score >= self.threshold
            return self.score

        def scored(self, case: Any) -> float:
            return float(case.actual_output == case.expected_output)

        def is_successful(self) -> bool:
            return self.success

        @property
        def __name__(self) -> str:
            return type(self).__name__

    class Broken(Exact):
        def scored(self, case: Any) -> float:
            if case.input.endswith("2?"):
                raise RuntimeError("503")
            return 0.5

    cases = [
        LLMTestCase(
            name="order-1" if n == 1 else None,
            input=f"What does order {n}?",
            actual_output=str(n),
            expected_output=str(n if n != 3 else 5),
        )
        for n in range(1, 5)
    ]
    errors, one_by_one = ErrorConfig(ignore_errors=True), AsyncConfig(run_async=False)
    result = evaluate(cases, [Exact(), Broken()], error_config=errors, async_config=one_by_one)
    (folder / "deepeval.json").write_text(result.model_dump_json(indent=1))


def harbor(folder: Path) -> None:
    from datetime import UTC, datetime
    from uuid import UUID

    from harbor.models.agent.context import AgentContext
    from harbor.models.job.result import JobStats
    from harbor.models.task.id import LocalTaskId
    from harbor.models.trial.config import TaskConfig, TrialConfig
    from harbor.models.trial.result import AgentInfo, ExceptionInfo, ModelInfo, TrialResult
    from harbor.models.verifier.result import VerifierResult

    day = datetime(2026, 11, 26, tzinfo=UTC)
    late = ExceptionInfo(
        exception_type="AgentTimeoutError", exception_message="timed out", exception_traceback="", occurred_at=day
    )
    rewards = [("fix-git", 1.0), ("fix-git", 0.0), ("add-tax", 1.0), ("add-tax", None)]
    trials = [
        TrialResult(
            id=UUID(int=number),
            task_name=task,
            trial_name=f"{task}__{number}",
            trial_uri=f"file:///jobs/{number}",
            task_id=LocalTaskId(path=Path("tasks") / task),
            source="shop-bench",
            task_checksum="00000000",
            config=TrialConfig(task=TaskConfig(path=Path("tasks") / task)),
            agent_info=AgentInfo(name="oracle", version="1", model_info=ModelInfo(name="m", provider="p")),
            agent_result=AgentContext(cost_usd=0.5),
            verifier_result=None if reward is None else VerifierResult(rewards={"reward": reward}),
            exception_info=late if reward is None else None,
            started_at=day,
            finished_at=day,
        )
        for number, (task, reward) in enumerate(rewards, 1)
    ]
    listed = [json.loads(each.model_dump_json()) for each in trials]
    (folder / "harbor.json").write_text(json.dumps(listed, indent=1))
    print(JobStats.from_trial_results(trials).model_dump_json(indent=1))


def inspect(folder: Path) -> None:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import Score, includes, mean, scorer
    from inspect_ai.solver import generate

    @scorer(metrics=[mean()])
    def half() -> Any:
        async def score(state: Any, target: Any) -> Score:
            return Score(value=0.5)

        return score

    outputs = [ModelOutput.from_content("mockllm/model", text) for text in ("It costs 1.", "no idea", "It costs 3.")]
    for each in outputs:
        each.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    samples = [Sample(id=f"order-{n}", input=f"What does order {n} cost?", target=str(n)) for n in (1, 2, 3)]
    task = Task(dataset=samples, solver=generate(), scorer=[includes(), half()], name="shop")
    eval(task, model=get_model("mockllm/model", custom_outputs=outputs), log_dir=str(folder), max_samples=1)


def langsmith(folder: Path) -> None:
    os.environ |= {"LANGSMITH_TRACING": "false", "LANGSMITH_API_KEY": "none"}
    from datetime import UTC, datetime
    from uuid import UUID

    from langsmith import evaluate
    from langsmith.schemas import Example

    def target(inputs: dict[str, int]) -> dict[str, int]:
        if inputs["n"] == 3:
            raise RuntimeError("429")
        return {"answer": 2 * inputs["n"] if inputs["n"] != 1 else 0}

    def accuracy(outputs: Any, reference_outputs: Any) -> dict[str, Any]:
        return {"key": "accuracy", "score": int(outputs["answer"] == reference_outputs["answer"])}

    def broken(inputs: Any, outputs: Any) -> dict[str, Any]:
        if inputs["n"] == 2:
            raise RuntimeError("503")
        return {"key": "broken", "score": 0.5}

    day = datetime(2026, 11, 26, tzinfo=UTC)
    examples = [
        Example(id=UUID(int=n + 1), dataset_id=UUID(int=99), inputs={"n": n}, outputs={"answer": 2 * n}, created_at=day)
        for n in range(4)
    ]
    result = evaluate(target, data=examples, evaluators=[accuracy, broken], upload_results=False, max_concurrency=0)
    rows = json.dumps(list(result), default=lambda each: each.model_dump(mode="json"), indent=1)
    (folder / "langsmith.json").write_text(rows)
    result.to_pandas().to_csv(folder / "langsmith.csv", index=False)


def ragas(folder: Path) -> None:
    from ragas import EvaluationDataset, SingleTurnSample, evaluate
    from ragas.metrics import ExactMatch
    from ragas.metrics.base import MetricType, SingleTurnMetric

    @dataclass
    class Broken(SingleTurnMetric):
        name: str = "broken"
        _required_columns: dict = field(default_factory=lambda: {MetricType.SINGLE_TURN: {"response"}})

        def init(self, run_config: Any) -> None: ...

        async def _single_turn_ascore(self, sample: Any, callbacks: Any) -> float:
            await asyncio.sleep(0)
            if sample.response == "3":
                raise RuntimeError("503")
            return 0.5

    samples = [
        SingleTurnSample(user_input=f"What does order {n} cost?", response=str(n), reference=str(n if n != 2 else 5))
        for n in range(1, 5)
    ]
    result = evaluate(EvaluationDataset(samples=samples), metrics=[ExactMatch(), Broken()], raise_exceptions=False)
    print(result)
    result.to_pandas().to_csv(folder / "ragas.csv", index=False)


if __name__ == "__main__":
    {each.__name__: each for each in (braintrust, deepeval, harbor, inspect, langsmith, ragas)}[sys.argv[1]](
        Path(sys.argv[2])
    )
