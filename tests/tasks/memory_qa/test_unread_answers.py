"""Answers that are no text: those of systems, which have it inside, and those that have none."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from builders import Scripted, scored

from pytest_llmeval import qa
from pytest_llmeval.tasks.memory_qa import EvalResult, QAPair, QuestionType, Sample

LOG = "pytest_llmeval.tasks.memory_qa._answers"
NO_ANSWERS: list[Any] = [None, {}, ["Paris"], {"text": "Paris"}, {"answer": None}]


def answered(prediction: Any, kind: str = "adversarial", number: int = 0) -> EvalResult:
    return EvalResult("s", f"q{number}", QuestionType(kind), f"Where? {number}", "Paris", prediction)


@pytest.mark.parametrize("prediction", NO_ANSWERS, ids=repr)
@pytest.mark.parametrize("kind", ["adversarial", "single_hop"])
def test_what_is_no_answer_has_no_score_and_is_logged(
    prediction: Any, kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    judge = Scripted([AssertionError("asked"), *scored(0.4)])
    results = [answered(prediction, kind), answered("In Paris", "single_hop", 1)]
    with caplog.at_level(logging.WARNING, LOG):
        assert qa.batch_judge(results, llm=judge, cache_path=tmp_path / "scores.json") == [None, 0.4]
    assert "1 of 2 predictions are no answer; the first: q0: found " in caplog.text
    with pytest.raises(ValueError, match="as the prediction, expected text"):
        qa.judge_answer("Where?", "Paris", prediction, mode="adversarial")


def test_the_answer_of_a_system_is_judged_and_measured() -> None:
    results = [
        answered({"answer": "Not mentioned.", "usage": {"input_tokens": 3}}),
        answered({"answer": "In Paris"}, "single_hop", 1),
        answered({"answer": 7}, "single_hop", 2),
    ]
    judge = Scripted(["", *scored(1, 0)])
    assert qa.batch_judge(results, llm=judge) == [1.0, 1.0, 0.0]
    assert '"answer": "In Paris"' in judge.prompts[0]
    metrics = qa.compute_metrics(results, [None] * 3, metrics=["f1"], tokenizer="words")
    assert metrics["by_type"]["single_hop"]["f1"] == pytest.approx((2 / 3 + 0) / 2)
    assert qa.judge_answer("Where?", "Paris", {"answer": "N/A."}, mode="adversarial") == 1.0  # type: ignore[arg-type]


class Agent:
    def __init__(self, answer: Any) -> None:
        self.given = answer
        self.memory = self

    def reset(self) -> None:
        """Nothing is remembered."""

    def ingest_sample(self, sample: Sample) -> None:
        """Nothing is read."""

    def answer(self, question: str) -> Any:
        del question
        return self.given


SAMPLE = Sample("s", {}, [QAPair("q0", "Where?", "Paris", QuestionType.ADVERSARIAL)])


@pytest.mark.parametrize(
    ("given", "prediction", "error"),
    [
        ({"answer": "Rome", "usage": {}}, "Rome", ""),
        (None, "", "the agent returned null, expected text"),
        (["Rome"], "", "the agent returned a list, expected text"),
    ],
)
def test_an_agent_answers_with_text(given: Any, prediction: str, error: str) -> None:
    (found,) = qa.run_eval([SAMPLE], Agent(given), show_progress=False)
    assert (found.prediction, found.error) == (prediction, error)
    assert qa.batch_judge([found], llm=None) == [None if error else 0.0]


@pytest.mark.parametrize("given", [{"answer": "Rome", "usage": {}}, None, "Rome"])
def test_a_target_of_agents_passes_on_what_they_return(given: Any) -> None:
    value = {"question": "Where?", "conversation_id": "c", "conversation": {}}
    assert asyncio.run(_awaited(qa.as_target(lambda: Agent(given)), value)) == given


async def _awaited(target: Any, value: Any) -> Any:
    return await target(value)
