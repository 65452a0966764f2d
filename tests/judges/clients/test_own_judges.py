"""A user's own judge, whatever its shape."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_judges import ASKED, LOCAL_KEY, once
from servers import PATIENCE

from pytest_llmeval import Panel
from pytest_llmeval.core import BudgetError, JudgeError
from pytest_llmeval.judges import JudgeReply, JudgeRequest, Usage
from pytest_llmeval.judges.clients import as_client


class Plain:
    def complete(self, request: JudgeRequest) -> str:
        return f"{request.messages[-1].content} yes"


class Async:
    async def complete(self, request: JudgeRequest) -> JudgeReply:
        await asyncio.sleep(0)
        return JudgeReply(f"{request.messages[-1].content} yes", Usage(1, 2))


class Returns:
    def complete(self, request: JudgeRequest) -> Awaitable[JudgeReply]:
        return Async().complete(request)


class CallableObject:
    async def __call__(self, request: JudgeRequest) -> str:
        return f"{request.messages[-1].content} yes"


class Chat:
    """As clients of chat models are: options that the judge leaves to them."""

    def chat(self, messages: list[dict[str, str]], *, max_tokens: int = 1024) -> str:
        assert max_tokens == 1024
        assert all(each.keys() == {"role", "content"} for each in messages)
        return f"{messages[-1]['content']} yes"


class AsyncChat:
    async def chat(self, messages: list[dict[str, str]]) -> str:
        return Chat().chat(messages)


@pytest.mark.parametrize(
    "judge",
    [
        Plain(),
        Async(),
        Returns(),
        CallableObject(),
        Chat(),
        AsyncChat(),
        Plain().complete,
        Async().complete,
        Returns().complete,
    ],
)
def test_any_shape_of_judge_answers(judge: Any) -> None:
    assert once(as_client(judge)).text == "Is it right? yes"


def test_a_reply_of_ones_own_is_passed_on_whole() -> None:
    answer = JudgeReply("x", Usage(1, 2), "length")
    assert once(as_client(lambda _: answer)) is answer


def test_plain_judges_run_at_the_same_time() -> None:
    everybody = threading.Barrier(20)

    def judge(_: JudgeRequest) -> str:
        everybody.wait(PATIENCE)
        return "yes"

    async def run() -> list[JudgeReply]:
        client = as_client(judge)
        return await asyncio.gather(*(client.complete(ASKED) for _ in range(20)))

    assert len(asyncio.run(run())) == 20


@pytest.mark.parametrize("answer", [None, 1, {"score": 1}, b"yes"])
def test_what_is_neither_text_nor_reply_is_told(answer: Any) -> None:
    with pytest.raises(
        JudgeError, match=rf"^the judge returned {type(answer).__name__}, expected text or a JudgeReply$"
    ):
        once(as_client(lambda _: answer))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (JudgeReply(None), "NoneType as text, expected text"),  # type: ignore[arg-type]  # wrong values are the point
        (JudgeReply("yes", None), "NoneType as usage, expected a Usage"),  # type: ignore[arg-type]  # as above
        (JudgeReply("yes", Usage(-1, 2)), "input_tokens -1, expected a whole number from 0, or None"),
        (JudgeReply("yes", Usage(1, 2.5)), "output_tokens 2.5, expected a whole"),  # type: ignore[arg-type]  # as above
        (JudgeReply("yes", Usage(10**400)), "input_tokens 1000"),
        (JudgeReply("yes", stopped="end"), "stopped 'end', expected one of stop, length, refusal, tool, thoughts"),  # type: ignore[arg-type]  # as above
    ],
)
def test_a_reply_of_ones_own_that_could_not_be_kept_is_told(answer: JudgeReply, said: str) -> None:
    with pytest.raises(JudgeError, match=f"^the judge returned a JudgeReply with {said}"):
        once(as_client(lambda _: answer))


@pytest.mark.parametrize(
    ("judge", "found"),
    [(None, "NoneType as the judge"), ("openai:x", "str as the judge"), (Plain, "the class Plain")],
)
def test_what_cannot_be_asked_is_told(judge: Any, found: str) -> None:
    with pytest.raises(JudgeError, match=rf"^found {found}, expected an "):
        as_client(judge)


@pytest.mark.parametrize("several", [[Plain(), Plain()], Panel([Plain(), Plain()])], ids=["list", "Panel"])
def test_several_judges_in_the_place_of_one_are_told_where_a_panel_stands(several: Any) -> None:
    with pytest.raises(JudgeError, match=r"as the judge, .*; a panel is 'judges' of a suite, or Panel in Python"):
        as_client(several)


def raiser(error: BaseException) -> Callable[[JudgeRequest], str]:
    def judge(_: JudgeRequest) -> str:
        raise error

    return judge


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError(f"bad {LOCAL_KEY}"), r"^the judge raised ValueError: bad \*\*\*$"),
        (TimeoutError("slow"), r"^the judge raised TimeoutError: slow$"),
        (SystemExit(3), r"^the judge raised SystemExit: 3$"),
        (StopIteration("x"), r"^the judge raised "),
    ],
)
def test_what_a_judge_raises_is_told(error: BaseException, message: str) -> None:
    with pytest.raises(JudgeError, match=message):
        once(as_client(raiser(error)))


@pytest.mark.parametrize("error", [JudgeError("mine", "reply"), BudgetError("spent")])
def test_errors_of_this_package_pass_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        once(as_client(raiser(error)))
    assert caught.value is error


def test_a_judge_that_hangs_is_given_up() -> None:
    never = threading.Event()
    try:
        with pytest.raises(JudgeError, match=r"^the judge took longer than 0\.01 s$"):
            once(as_client(lambda _: never.wait(), timeout=0.01))
    finally:
        never.set()


@pytest.fixture(params=[True, False])
def closable(request: pytest.FixtureRequest) -> tuple[Any, list[str]]:
    closed: list[str] = []

    class Waits(Plain):
        async def aclose(self) -> None:
            closed.append("closed")

    class Direct(Plain):
        def aclose(self) -> None:
            closed.append("closed")

    return (Waits() if request.param else Direct()), closed


def test_a_judge_that_can_be_closed_is_closed(closable: tuple[Any, list[str]]) -> None:
    judge, closed = closable
    once(as_client(judge))
    assert closed == ["closed"]
