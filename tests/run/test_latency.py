"""The latency of a target is the time that it took itself, however busy this process is."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import key_of, length_suite
from servers import LlmServer, Request, SearchAnswer, reply, serving, status

from pytest_llmeval import Case
from pytest_llmeval.judges import CachePlace, JudgeOptions
from pytest_llmeval.run import CaseRunner, EarlyCalls, Execution, FromFixtures, LoadedCase
from pytest_llmeval.services import _retrying as retrying
from pytest_llmeval.suites import LoadedSuite
from pytest_llmeval.suites._systems import ModelSpec, ModelSystem
from pytest_llmeval.targets import TargetSpec
from pytest_llmeval.targets._spec import HttpSpec

EARLY = EarlyCalls(target=True, judge=True)


class Clock:
    """Seconds that pass only where a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "perf_counter", made)
    return made


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[CaseRunner]:
    made = CaseRunner(JudgeOptions(cache=CachePlace(tmp_path / "cache.sqlite3")))
    yield made
    made.close(whole_run=True)


def asked(runner: CaseRunner, suite: LoadedSuite, target: Any = None, early: EarlyCalls = EARLY) -> list[float]:
    """Return the latencies of the first case of a suite; the target of a fixture goes before that of the suite."""
    loaded = LoadedCase(suite, suite.cases[0], key_of(suite))
    execution: Execution = runner.run(loaded, FromFixtures(target), early=early)
    assert execution.error is None
    return list(execution.record.target_seconds)


def one(**more: Any) -> LoadedSuite:
    return length_suite(Case("c", input="q", expected="x", **more.pop("case", {})), **more)


def test_a_function_is_timed_in_its_thread_while_the_event_loop_is_blocked(runner: CaseRunner, clock: Clock) -> None:
    def target(value: str) -> str:
        clock.advance(0.02)
        loop = runner.background._loop
        assert loop is not None
        loop.call_soon_threadsafe(block, threading.current_thread())
        return value

    def block(worker: threading.Thread) -> None:
        """Keep the loop from taking the answer until the worker has given it, and much longer."""
        worker.join()
        clock.advance(18.9)

    assert asked(runner, one(), target) == [pytest.approx(0.02)]


@pytest.mark.parametrize("early", [EARLY, EarlyCalls()])
def test_an_async_function_is_timed_from_its_first_step_to_its_last(
    runner: CaseRunner, clock: Clock, early: EarlyCalls
) -> None:
    async def target(value: str) -> str:
        clock.advance(0.02)
        asyncio.get_running_loop().call_soon(clock.advance, 18.9)
        return value

    assert asked(runner, one(), target, early) == [pytest.approx(0.02)]


def test_a_function_that_returns_an_awaitable_is_timed_in_both_parts(runner: CaseRunner, clock: Clock) -> None:
    def target(value: str) -> Any:
        async def later() -> str:
            clock.advance(0.5)
            return value

        clock.advance(0.25)
        return later()

    assert asked(runner, one(), target) == [pytest.approx(0.75)]
    assert asked(runner, one(), target, EarlyCalls()) == [pytest.approx(0.75)]


def test_the_turns_of_a_conversation_add_up_without_what_lies_between_them(
    runner: CaseRunner, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_llmeval.run._conversation import Dialogue

    add = Dialogue.add

    def slow(dialogue: Dialogue, answer: Any) -> None:
        clock.advance(5)
        add(dialogue, answer)

    monkeypatch.setattr(Dialogue, "add", slow)

    def target(_: Any) -> str:
        clock.advance(0.25)
        return "yes"

    talk = Case("c", input=[{"role": "user", "content": each} for each in "ab"], expected="x", conversation=True)
    assert asked(runner, length_suite(talk), target) == [pytest.approx(0.5)]
    assert asked(runner, length_suite(talk), target, EarlyCalls()) == [pytest.approx(0.5)]


def waiting(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let waits between attempts take 60 seconds of the clock, and no time."""
    pause = retrying._retry_delay

    def delay(*given: Any) -> float:
        pause(*given)
        clock.advance(60)
        return 0.0

    monkeypatch.setattr(retrying, "_retry_delay", delay)


def test_a_service_is_timed_from_sending_to_the_last_byte(
    runner: CaseRunner, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting(clock, monkeypatch)

    def behave(_: Request, number: int) -> SearchAnswer:
        clock.advance(0.25)
        return SearchAnswer("busy", status=503) if number == 0 else SearchAnswer("yes")

    with serving(behave) as server:
        spec = TargetSpec(http=HttpSpec(server.url, request={"q": {"$input": True}}, retries=1))
        assert asked(runner, one(target=spec)) == [pytest.approx(0.5)]
        assert len(server.requests) == 2


def test_a_model_is_timed_as_a_service_is(runner: CaseRunner, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting(clock, monkeypatch)

    def slowly(call: Any) -> Any:
        clock.advance(0.25)
        return (status(503) if call.number == 1 else reply("yes"))(call)

    with LlmServer(slowly) as server:
        spec = ModelSpec("openai:m", base_url=server.base_url, retries=1)
        assert asked(runner, one(model=ModelSystem(spec))) == [pytest.approx(0.5)]
