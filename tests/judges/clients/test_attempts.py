"""Attempts of judges over real HTTP: what is tried again, and what is told when none succeeds."""

import asyncio
import threading

import pytest
from msgspec.structs import replace
from scripted_judges import ASKED, PROVIDERS, Ask, Recorder, client_fault, once
from servers import (
    PATIENCE,
    Answer,
    Call,
    LlmServer,
    Sent,
    data,
    dropped,
    held,
    malformed,
    raw,
    reply,
    status,
    truncated,
)

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import JudgeConnection, JudgeReply, JudgeSpec, Message, Usage

PASSING = [
    *(status(code) for code in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
    dropped(),
    truncated(),
    malformed(),
    raw('{"choices": [{"message": {"content": "no", "content": "no"}}], "content": [{"type": "text", "text": "no"}]}'),
    raw('{"choices": [{"message": {"content": "no"}}], "content": [{"type": "text", "text": "no", "text": "no"}]}'),
    raw(""),
    raw("[]"),
    raw("null"),
    raw(b"\xff\xfe"),
    raw("[" * 100_000),
    data({}),
    data({"choices": [], "content": None}),
    data({"choices": [{}], "content": "x"}),
    data({"error": {"message": "upstream is down"}}),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("answer", PASSING)
def test_what_may_pass_is_tried_again(ask: Ask, between: Recorder, provider: str, answer: Answer) -> None:
    with LlmServer(answer, reply("yes")) as server:
        assert ask(server, provider=provider).text == "yes"
    assert len(server.calls) == 2
    assert len(between.slept) == 1


@pytest.mark.parametrize("code", [301, 307, 400, 401, 403, 404, 405, 413, 422])
def test_what_will_not_pass_is_not_tried_again(ask: Ask, between: Recorder, code: int) -> None:
    with LlmServer(status(code, "no", location="/elsewhere")) as server, pytest.raises(JudgeError, match=str(code)):
        ask(server)
    assert len(server.calls) == 1
    assert between.slept == []


def test_attempts_end_and_say_how_many_there_were(ask: Ask) -> None:
    with LlmServer(status(503, "overloaded")) as server, pytest.raises(JudgeError) as error:
        ask(server, retries=2)
    assert len(server.calls) == 3
    assert str(error.value) == (
        f"openai: {server.base_url}/chat/completions: status 503: overloaded; try again later, or raise the judge's "
        "retries (after 3 attempts)"
    )


def test_without_retries_there_is_one_attempt(ask: Ask) -> None:
    with LlmServer(status(503)) as server, pytest.raises(JudgeError) as error:
        ask(server, retries=0)
    assert len(server.calls) == 1
    assert "attempts" not in str(error.value)


@pytest.mark.parametrize(("asked", "shortest"), [("7", 7), ("0", 0), ("1.5", 1.5), ("100000", 120)])
def test_the_delay_that_a_server_asks_for_is_kept(ask: Ask, between: Recorder, asked: str, shortest: float) -> None:
    with LlmServer(status(503, retry_after=asked), reply("yes")) as server:
        ask(server)
    assert shortest <= between.slept[0] <= shortest * 1.1 + 0.05


def test_rate_limits_are_told_with_the_delay_asked_for(ask: Ask, between: Recorder) -> None:
    with LlmServer(status(429, retry_after="3"), status(503), status(429), reply("yes")) as server:
        ask(server)
    assert between.limits == [3, None]


def test_the_last_rate_limit_is_told_too(ask: Ask, between: Recorder) -> None:
    client_fault(ask, status(429, retry_after="3"), retries=1)
    assert between.limits == [3, 3]


def test_a_spent_quota_is_not_tried_again(ask: Ask, between: Recorder) -> None:
    spent = data({"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}}, 429)
    message = client_fault(ask, spent)
    assert message.endswith(
        "status 429: You exceeded your quota.; the account's quota is spent: check its plan and billing"
    )
    assert (between.limits, between.slept) == ([], [])


def test_a_request_that_the_provider_filters_is_told_as_a_refusal(ask: Ask, between: Recorder) -> None:
    filters = data({"error": {"message": "The prompt was filtered.", "code": "content_filter"}}, 400)
    message = client_fault(ask, filters)
    said = "status 400: The prompt was filtered.; found a refusal: the provider filtered the content of this case"
    assert message.endswith(said)
    assert between.slept == []


def test_an_attempt_that_takes_too_long_is_given_up_and_tried_again(ask: Ask, between: Recorder) -> None:
    never = threading.Event()
    try:
        with LlmServer(held(never, reply("late")), reply("yes")) as server:
            assert ask(server, timeout=0.5, retries=20).text == "yes"
    finally:
        never.set()
    assert between.slept


def test_a_timeout_is_told(ask: Ask) -> None:
    never = threading.Event()
    try:
        message = client_fault(ask, held(never, reply("late")), timeout=0.05, retries=0)
    finally:
        never.set()
    assert "took longer than 0.05 s; raise the judge's timeout" in message


def test_a_server_that_is_not_there_is_told(between: Recorder) -> None:
    with LlmServer() as server:
        gone = server.base_url
    client = JudgeConnection(JudgeSpec("openai:tiny", base_url=gone, retries=1)).open(sleep=between.sleep)
    with pytest.raises(
        JudgeError,
        match=rf"^openai: {gone}/chat/completions failed: no connection .Connection refused.; .*2 attempts",
    ):
        once(client)


def test_tokens_of_discarded_attempts_count(ask: Ask) -> None:
    charged = data({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 50}})
    with LlmServer(charged, status(500), charged, reply("yes")) as server:
        assert ask(server).usage == Usage(210, 105)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_answer_without_end_is_given_up(ask: Ask, provider: str) -> None:
    message = client_fault(ask, raw(b"x" * (10 * 1024 * 1024 + 1)), provider=provider)
    assert "returned more than 10485760 bytes, expected fewer; check the judge's base_url" in message


def test_redirects_are_not_followed(ask: Ask) -> None:
    with LlmServer(reply("no")) as other:
        message = client_fault(ask, status(307, "moved", location=f"{other.base_url}/chat/completions"))
        assert other.calls == []
    assert "redirects are not followed" in message


def test_a_cancelled_call_ends_at_once_and_leaves_the_client_usable() -> None:
    until = threading.Event()

    async def run() -> JudgeReply:
        client = JudgeConnection(JudgeSpec("openai:tiny", base_url=server.base_url)).open()
        task = asyncio.create_task(client.complete(ASKED))
        await asyncio.to_thread(server.wait_for_calls, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        answer = await client.complete(ASKED)
        await client.aclose()
        return answer

    with LlmServer(held(until, reply("late")), reply("yes")) as server:
        try:
            assert asyncio.run(run()).text == "yes"
        finally:
            until.set()


def test_calls_run_at_the_same_time_over_one_client() -> None:
    everybody = threading.Barrier(20)

    def answer(call: Call) -> Sent:
        everybody.wait(PATIENCE)
        return reply(call.prompt)(call)

    async def run() -> list[JudgeReply]:
        client = JudgeConnection(JudgeSpec("openai:tiny", base_url=server.base_url)).open()
        requests = [replace(ASKED, messages=(Message("user", str(number)),)) for number in range(20)]
        replies = await asyncio.gather(*(client.complete(each) for each in requests))
        await client.aclose()
        return replies

    with LlmServer(answer) as server:
        assert [each.text for each in asyncio.run(run())] == [str(number) for number in range(20)]
    assert server.most_in_flight == 20


def test_a_client_can_be_used_in_one_event_loop_after_another() -> None:
    with LlmServer(reply("yes")) as server:
        client = JudgeConnection(JudgeSpec("openai:tiny", base_url=server.base_url)).open()
        for _ in range(3):
            assert once(client).text == "yes"


def test_a_closed_client_may_be_closed_again_and_used_again() -> None:
    with LlmServer(reply("yes")) as server:
        client = JudgeConnection(JudgeSpec("openai:tiny", base_url=server.base_url)).open()
        asyncio.run(client.aclose())
        assert once(client).text == "yes"
        assert once(client).text == "yes"
