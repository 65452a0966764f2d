"""Memory agents as targets: an agent per conversation, which answers one question at a time."""

import asyncio
import threading
from typing import Any

import pytest

from pytest_llmeval.core import PredictionError
from pytest_llmeval.qa import Sample, as_target
from pytest_llmeval.targets import PythonTarget


class Notebook:
    """An agent that would mix up conversations if two questions met in it."""

    made: "list[Notebook]"

    def __init__(self) -> None:
        self.memory = self
        self.log: list[str] = ["made"]
        self.busy = threading.Lock()

    def reset(self) -> None:
        self.log.append("reset")

    def ingest_sample(self, sample: Sample) -> None:
        self.log.append(f"ingest {sample.sample_id}")
        if sample.conversation == "broken":
            raise ValueError("cannot be read")
        self.text = sample.conversation

    def answer(self, question: str) -> str:
        assert self.busy.acquire(blocking=False), "two questions at a time"
        self.log.append(question)
        asked = len(self.log) - 3
        self.busy.release()
        return f"{self.text} {question} {asked}"


@pytest.fixture
def made() -> list[Notebook]:
    return []


def asked(target: Any, *inputs: Any) -> list[Any]:
    async def run() -> list[Any]:
        return await asyncio.gather(*map(target, inputs), return_exceptions=True)

    return asyncio.run(run())


def question(name: str, text: str, conversation: Any = None) -> dict[str, Any]:
    return {"question": text, "conversation_id": name, "conversation": conversation or f"text of {name}"}


def maker(made: list[Notebook]) -> Any:
    def make() -> Notebook:
        made.append(Notebook())
        return made[-1]

    return make


def test_every_conversation_has_an_agent_that_is_reset_reads_it_once_and_answers_in_order(made: list[Notebook]) -> None:
    target = as_target(maker(made))
    inputs = [question(name, f"q{number}") for number in range(20) for name in ("a", "b")]
    answers = asked(target, *inputs)
    assert answers == [f"text of {name} q{number} {number + 1}" for number in range(20) for name in ("a", "b")]
    logs = [["made", "reset", f"ingest {name}", *(f"q{number}" for number in range(20))] for name in ("a", "b")]
    assert sorted(each.log for each in made) == logs


def test_a_fresh_agent_answers_every_question_as_if_it_were_the_first(made: list[Notebook]) -> None:
    target = as_target(maker(made), fresh=True)
    assert asked(target, question("a", "q"), question("a", "q")) == ["text of a q 1"] * 2
    assert len(made) == 2


def test_a_conversation_that_cannot_be_read_costs_its_own_questions_and_is_read_once(made: list[Notebook]) -> None:
    target = as_target(maker(made))
    *broken, good = asked(target, question("x", "q", "broken"), question("x", "r", "broken"), question("a", "q"))
    assert [str(each) for each in broken] == ["cannot be read"] * 2
    assert good == "text of a q 1"
    assert len(made) == 2


def test_a_history_without_an_id_is_told_apart_by_its_content(made: list[Notebook]) -> None:
    target = as_target(maker(made))
    inputs = [{"question": "q", "question_date": str(each), "haystack_sessions": [each // 2]} for each in range(4)]
    assert [answer.rpartition(" ")[2] for answer in asked(target, *inputs)] == ["1", "2", "1", "2"]
    assert [each.text for each in made] == [{"haystack_sessions": [0]}, {"haystack_sessions": [1]}]


@pytest.mark.parametrize(
    "value", ["text", {}, {"question": 5}, {"question": "q"}, {"question": "q", "conversation_id": "a"}]
)
def test_an_input_that_is_no_question_about_a_conversation_is_an_error(made: list[Notebook], value: Any) -> None:
    [error] = asked(as_target(maker(made)), value)
    assert isinstance(error, PredictionError)
    assert "expected" in str(error)
    assert not made


def test_methods_may_be_async() -> None:
    class Waiting(Notebook):
        async def answer(self, question: str) -> str:  # type: ignore[override]  # what is tested
            await asyncio.sleep(0)
            return question

    assert asked(as_target(Waiting), question("a", "q")) == ["q"]


def test_the_module_that_makes_a_target_defines_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "memory_app_of_test.py").write_text(
        "from collections import OrderedDict\n"
        "from pytest_llmeval.qa import as_target\n"
        "answer = as_target(OrderedDict)\n"
    )
    assert callable(PythonTarget.load("memory_app_of_test:answer", tmp_path).function)
