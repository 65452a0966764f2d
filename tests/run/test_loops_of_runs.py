"""Event loops of `run` and `arun`, and runs that are cut short."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
import pytest

import pytest_llmeval as ev
from pytest_llmeval.core import LlmevalError
from pytest_llmeval.services import Background
from tests.servers import SearchServer, serving

CASES = [{"id": f"c{number:03}", "input": f"q{number}", "expected": "Paris"} for number in range(20)]


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with serving() as running:
        yield running


def suite(cases: Any = CASES, **more: Any) -> Any:
    return ev.suite("capitals", cases=cases, evaluators=[ev.text(metrics=["f1"])], **more)


class Client:
    """A client of a module: made once, it keeps its connections open."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session: aiohttp.ClientSession | None = None

    async def answer(self, question: str) -> str:
        if self.session is None:
            self.session = aiohttp.ClientSession()
        async with self.session.post(self.url, json={"queries": [question]}) as response:
            await response.read()
        return "Paris"


async def closed(client: Client) -> None:
    assert client.session is not None
    await client.session.close()


def test_a_client_with_open_connections_answers_every_run(server: SearchServer) -> None:
    client = Client(server.url)
    capitals = suite()
    for _ in range(2):
        assert [case.outcome for case in capitals.run(client.answer).cases] == ["passed"] * 20
    assert capitals.run(lambda _: "Paris").pass_rate.value == 1
    from pytest_llmeval.services import Background

    Background.of_process().run(closed(client))


def test_arun_awaits_on_the_loop_of_the_caller(server: SearchServer) -> None:
    async def script() -> list[str]:
        client = Client(server.url)
        outcomes = [await client.answer("before")]
        result = await suite().arun(client.answer)
        outcomes += [case.outcome for case in result.cases]
        outcomes.append(await client.answer("after"))
        await closed(client)
        return outcomes

    assert asyncio.run(script()) == ["Paris", *["passed"] * 20, "Paris"]


def test_run_works_inside_a_running_loop_and_leaves_its_clients_alone(server: SearchServer) -> None:
    async def notebook() -> tuple[float | None, str]:
        own, other = Client(server.url), Client(server.url)
        await own.answer("before")
        result = suite().run(other.answer)
        reply = await own.answer("after")
        await closed(own)
        from pytest_llmeval.services import Background

        Background.of_process().run(closed(other))
        return result.pass_rate.value, reply

    assert asyncio.run(notebook()) == (1.0, "Paris")


def test_trio_is_refused_in_words() -> None:
    trio = pytest.importorskip("trio")
    with pytest.raises(LlmevalError, match=r"arun needs the event loop of asyncio, and does not run under trio"):
        trio.run(suite().arun, lambda _: "Paris")


class Counting:
    """Answers ten questions; the eleventh and those after it never."""

    def __init__(self) -> None:
        self.calls = 0
        self.stuck = asyncio.Event()

    async def answer(self, _: str) -> str:
        self.calls += 1
        if self.calls > 10:
            self.stuck.set()
            await asyncio.Event().wait()
        return "Paris"


def test_a_cancelled_run_makes_no_call_more_and_keeps_what_had_run() -> None:
    cases = [{"id": f"c{number:03}", "input": "q", "expected": "Paris"} for number in range(100)]
    capitals = suite(cases, target={"python": f"{__name__}:paris", "concurrency": 4})

    async def script() -> int:
        counting = Counting()
        task = asyncio.ensure_future(capitals.arun(counting.answer))
        await counting.stuck.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        before = counting.calls
        await asyncio.sleep(0)
        assert counting.calls == before
        return before

    assert asyncio.run(script()) <= 14
    outcomes = [case.outcome for case in capitals.last_result.cases]
    assert (outcomes.count("passed"), outcomes.count("not_run")) == (10, 90)
    assert capitals.last_result.metrics["f1"].missing == 90


def paris(_: str) -> str:
    return "Paris"


def test_a_target_that_cancels_itself_costs_its_case() -> None:
    async def later(question: str) -> str:
        return at_once(question)

    def at_once(question: str) -> str:
        if question == "q1":
            raise asyncio.CancelledError
        return "Paris"

    for answer in (later, at_once):
        cases = suite(CASES[:3]).run(answer).cases
        assert [case.outcome for case in cases] == ["passed", "errored", "passed"]
        assert "cancelled itself" in str(cases[1].reason)


def test_an_interrupted_run_keeps_what_had_run() -> None:
    capitals = suite(target={"python": f"{__name__}:paris", "concurrency": 1})

    async def answer(question: str) -> str:
        if question == "q7":
            raise KeyboardInterrupt
        return "Paris"

    with pytest.raises(KeyboardInterrupt):
        capitals.run(answer)
    outcomes = [case.outcome for case in capitals.last_result.cases]
    assert (outcomes.count("passed"), outcomes.count("not_run")) == (7, 13)


def test_as_many_calls_at_a_time_as_the_suite_says() -> None:
    cases = [{"id": f"c{number:03}", "input": "q", "expected": "Paris"} for number in range(64)]

    async def script() -> float | None:
        calls, everyone = 0, asyncio.Event()

        async def answer(_: str) -> str:
            nonlocal calls
            calls += 1
            if calls == 64:
                everyone.set()
            await everyone.wait()
            return "Paris"

        several = suite(cases, target={"python": f"{__name__}:paris", "concurrency": 64})
        return (await asyncio.wait_for(several.arun(answer), 60)).pass_rate.value

    assert asyncio.run(script()) == 1.0


def test_a_case_takes_its_own_time() -> None:
    async def script() -> list[float]:
        async def answer(_: str) -> str:
            await asyncio.sleep(0.02)
            return "Paris"

        return [case.duration_s for case in (await suite().arun(answer)).cases]

    assert all(each >= 0.02 for each in asyncio.run(script()))


def test_options_without_a_target_hold_for_the_one_of_the_script() -> None:
    async def answer(question: str) -> str:
        if question == "q1":
            await asyncio.Event().wait()
        return "Paris"

    result = suite(CASES[:3], target={"timeout": 0.2}).run(answer)
    assert [case.outcome for case in result.cases] == ["passed", "errored", "passed"]
    assert "0.2" in str(result.cases[1].reason)


@contextmanager
def city(case: Any) -> Iterator[str]:
    yield f"{case.id}!"


def test_a_world_without_a_target_is_that_of_the_script() -> None:
    def answer(question: str, world: str) -> str:
        return f"{question} {world}"

    result = suite(CASES[:1], target={"world": f"{__name__}:city"}).run(answer)
    assert result.records[0].answers[0].value == "q0 c000!"


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_a_client_of_httpx_answers_every_run_and_on_the_loop_of_the_caller(server: SearchServer, library: str) -> None:
    httpx = pytest.importorskip(library)

    def answering(client: Any) -> Any:
        async def answer(question: str) -> str:
            response = await client.post(server.url, json={"queries": [question]})
            response.raise_for_status()
            return "Paris"

        return answer

    shared = httpx.AsyncClient()
    try:
        runs = [suite().run(answering(shared)) for _ in range(2)]
    finally:
        Background.of_process().run(shared.aclose())
    assert [case.reason for run in runs for case in run.cases] == [None] * 40

    async def script() -> list[str | None]:
        async with httpx.AsyncClient() as client:
            await answering(client)("before")
            result = await suite().arun(answering(client))
            await answering(client)("after")
        return [case.reason for case in result.cases]

    assert asyncio.run(script()) == [None] * 20
