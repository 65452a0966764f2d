"""Clients of judges, over real HTTP against a local server."""

import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from llm_server import (
    PATIENCE,
    Answer,
    Call,
    LlmServer,
    Sent,
    cut_off,
    data,
    dropped,
    filtered,
    held,
    malformed,
    raw,
    refusal,
    reply,
    status,
    tool,
    truncated,
)

from pytest_llmeval.core.errors import BudgetError, JudgeError, MissingExtraError
from pytest_llmeval.judge.clients import as_client, connect
from pytest_llmeval.judge.clients.attempts import Patience
from pytest_llmeval.judge.clients.base import AsyncJudge
from pytest_llmeval.judge.clients.pydantic_ai import PydanticAiJudge
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Message, Usage
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.services.retrying import delay_asked_for
from pytest_llmeval.services.secrets import mask, presentable

SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
ASKED = JudgeRequest((Message("system", "Be fair."), Message("user", "Is it right?")), "tiny")
FORMED = replace(ASKED, reply_schema=SCHEMA)
KEY = "local-key-0123456789-tail"
PROVIDERS = ["openai", "anthropic"]


class Recorder:
    """What happens between attempts."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.limits: list[float | None] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def between() -> Recorder:
    return Recorder()


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)


Ask = Callable[..., JudgeReply]


@pytest.fixture
def ask(between: Recorder) -> Ask:
    def ask_server(
        server: LlmServer, request: JudgeRequest = ASKED, provider: str = "openai", **spec: Any
    ) -> JudgeReply:
        async def run() -> JudgeReply:
            made = JudgeSpec(f"{provider}:tiny", **{"base_url": server.base_url} | spec)
            client = connect(made, on_rate_limit=between.limits.append, sleep=between.sleep)
            try:
                return await client.complete(request)
            finally:
                await client.aclose()

        return asyncio.run(run())

    return ask_server


def once(client: AsyncJudge, request: JudgeRequest = ASKED) -> JudgeReply:
    async def run() -> JudgeReply:
        try:
            return await client.complete(request)
        finally:
            await client.aclose()

    return asyncio.run(run())


def fault(ask: Ask, *answers: Answer, **options: Any) -> str:
    """Return the message of the JudgeError that ends a call."""
    with LlmServer(*answers) as server, pytest.raises(JudgeError) as error:
        ask(server, **options)
    return str(error.value)


# What is sent.


def test_openai_gets_a_chat_completion_request(ask: Ask) -> None:
    with LlmServer(reply("yes")) as server:
        ask(server, replace(ASKED, parameters={"temperature": 0, "max_tokens": 9, "top_p": 0.5}))
        (call,) = server.calls
    assert call.path == "/v1/chat/completions"
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert call.headers["content-type"] == "application/json"
    assert call.body == {
        "model": "tiny",
        "messages": [{"role": "system", "content": "Be fair."}, {"role": "user", "content": "Is it right?"}],
        "temperature": 0,
        "max_tokens": 9,
        "top_p": 0.5,
    }


def test_openai_itself_gets_max_tokens_under_its_new_name() -> None:
    from pytest_llmeval.judge.clients.openai import OpenAI

    body = OpenAI().body(replace(ASKED, parameters={"max_tokens": 9}), structured=False, base=OpenAI().base_url)
    assert body["max_completion_tokens"] == 9
    assert "max_tokens" not in body


def test_anthropic_gets_a_messages_request(ask: Ask) -> None:
    with LlmServer(reply("yes")) as server:
        ask(server, replace(ASKED, parameters={"temperature": 0}), "anthropic")
        (call,) = server.calls
    assert call.path == "/v1/messages"
    assert call.headers["x-api-key"] == KEY
    assert call.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in call.headers
    assert call.body == {
        "model": "tiny",
        "max_tokens": 1024,
        "system": "Be fair.",
        "messages": [{"role": "user", "content": "Is it right?"}],
        "temperature": 0,
    }


def test_anthropic_max_tokens_of_the_user_replace_the_default(ask: Ask) -> None:
    with LlmServer(reply("yes")) as server:
        ask(server, replace(ASKED, parameters={"max_tokens": 7}), "anthropic")
    assert server.calls[0].body["max_tokens"] == 7


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_anthropic_understands_addresses_with_and_without_version(ask: Ask, suffix: str) -> None:
    with LlmServer(reply("yes")) as server:
        ask(server, provider="anthropic", base_url=server.url + suffix)
    assert server.calls[0].path == "/v1/messages"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_any_text_can_be_asked_and_answered(ask: Ask, provider: str) -> None:
    text = 'quote " newline \n 北京 😀 half a pair \ud800'
    with LlmServer(lambda call: reply(call.prompt)(call)) as server:
        answer = ask(server, replace(ASKED, messages=(Message("user", text),)), provider)
    assert server.calls[0].prompt == text
    assert answer.text == text.replace("\ud800", "\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_server_of_ones_own_needs_no_key(ask: Ask, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with LlmServer(reply("yes")) as server:
        assert ask(server, provider=provider).text == "yes"
    assert not {"authorization", "x-api-key"} & server.calls[0].headers.keys()


def test_the_key_may_stand_in_another_variable(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_JUDGE", " other-key\n")
    with LlmServer(reply("yes")) as server:
        ask(server, api_key_env="MY_JUDGE")
    assert server.calls[0].headers["authorization"] == "Bearer other-key"


@pytest.mark.parametrize(("provider", "variable"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")])
def test_a_missing_key_is_told_at_the_first_call(provider: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable)
    client = connect(JudgeSpec(f"{provider}:tiny"))
    with pytest.raises(JudgeError, match=f"^{provider}: found no key in the environment variable {variable}, expected"):
        once(client)


def test_a_variable_that_the_user_named_must_hold_a_key(ask: Ask) -> None:
    assert "environment variable NO_SUCH_KEY" in fault(ask, reply("yes"), api_key_env="NO_SUCH_KEY")


@pytest.mark.parametrize("key", ["two\nlines-of-key", "ключ-secret-key"])
def test_a_key_that_no_header_can_carry_is_told_without_showing_it(
    ask: Ask, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    message = fault(ask, reply("yes"))
    assert "characters in the environment variable OPENAI_API_KEY that no HTTP header can carry" in message
    assert "key" not in message.partition("carry, ")[0].replace("OPENAI_API_KEY", "")


# What is answered.


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (reply("yes"), JudgeReply("yes", Usage(10, 5))),
        (reply(""), JudgeReply("", Usage(10, 5))),
        (reply(None), JudgeReply("", Usage(10, 5))),
        (reply("yes", tokens=None), JudgeReply("yes", Usage())),
        (reply("yes", "some_new_reason"), JudgeReply("yes", Usage(10, 5))),
        (cut_off("ye"), JudgeReply("ye", Usage(10, 5), "length")),
        (refusal("I will not."), JudgeReply("I will not.", Usage(10, 5), "refusal")),
        (filtered(), JudgeReply("", Usage(10, 5), "refusal")),
    ],
)
def test_an_answer_becomes_a_reply(ask: Ask, provider: str, answer: Answer, expected: JudgeReply) -> None:
    with LlmServer(answer) as server:
        assert ask(server, provider=provider) == expected
    assert len(server.calls) == 1


def test_openai_replies_in_parts_are_joined(ask: Ask) -> None:
    parts = [{"type": "text", "text": "y"}, {"type": "image"}, {"type": "text", "text": "es"}]
    with LlmServer(data({"choices": [{"message": {"content": parts}}]})) as server:
        assert ask(server) == JudgeReply("yes")


def test_anthropic_tokens_of_the_prompt_cache_count(ask: Ask) -> None:
    used = {"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300, "output_tokens": 4}
    with LlmServer(data({"content": [], "usage": used})) as server:
        assert ask(server, provider="anthropic").usage == Usage(321, 4)


@pytest.mark.parametrize("tokens", ["many", -1, None, True, 1.5, 10**30])
def test_tokens_that_are_no_count_are_unknown(ask: Ask, tokens: Any) -> None:
    body = {"choices": [{"message": {"content": "yes"}}], "usage": {"prompt_tokens": tokens, "completion_tokens": 2}}
    with LlmServer(data(body)) as server:
        assert ask(server).usage == Usage(None, 2)


# The form of replies.


def test_openai_is_asked_for_the_schema(ask: Ask) -> None:
    with LlmServer(reply("{}")) as server:
        ask(server, FORMED)
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}}
    assert server.calls[0].body["response_format"] == form


def test_anthropic_is_asked_to_use_a_tool_whose_input_is_the_reply(ask: Ask) -> None:
    with LlmServer(tool({"score": 1, "reasoning": "é"})) as server:
        answer = ask(server, FORMED, "anthropic")
    body = server.calls[0].body
    assert body["tool_choice"] == {"type": "tool", "name": body["tools"][0]["name"]}
    assert body["tools"][0]["input_schema"] == SCHEMA
    assert answer == JudgeReply('{"score": 1, "reasoning": "é"}', Usage(10, 5))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("request_", "structured"), [(ASKED, "auto"), (FORMED, "off")])
def test_no_form_is_asked_for_without_a_schema_or_when_off(
    ask: Ask, provider: str, request_: JudgeRequest, structured: str
) -> None:
    with LlmServer(reply("yes")) as server:
        ask(server, request_, provider, structured=structured)
    assert not {"response_format", "tools", "tool_choice"} & server.calls[0].body.keys()


def test_the_users_response_format_comes_first(ask: Ask) -> None:
    with LlmServer(reply("{}")) as server:
        ask(server, replace(FORMED, parameters={"response_format": {"type": "json_object"}}))
    assert server.calls[0].body["response_format"] == {"type": "json_object"}


def formless(code: int, message: str) -> Answer:
    """Answer as a server does that cannot enforce a form."""

    def answer(call: Call) -> Sent:
        wants = {"response_format", "tools"} & call.body.keys()
        return (status(code, message) if wants else reply("score: 1"))(call)

    return answer


@pytest.mark.parametrize(
    ("provider", "code", "message"),
    [
        ("openai", 400, "This response_format type is unavailable now"),
        ("openai", 422, "unknown variant `json_schema`"),
        ("openai", 400, "Structured outputs are not supported by this model"),
        ("anthropic", 400, "Thinking may not be enabled when tool_choice forces tool use."),
    ],
)
def test_a_server_that_cannot_enforce_a_form_is_asked_once_more_without_and_remembered(
    between: Recorder, provider: str, code: int, message: str
) -> None:
    async def run() -> list[JudgeReply]:
        client = connect(JudgeSpec(f"{provider}:tiny", base_url=server.base_url), sleep=between.sleep)
        replies = [await client.complete(FORMED) for _ in range(3)]
        await client.aclose()
        return replies

    with LlmServer(formless(code, message)) as server:
        assert [each.text for each in asyncio.run(run())] == ["score: 1"] * 3
    asked = [bool({"response_format", "tools"} & call.body.keys()) for call in server.calls]
    assert asked == [True, False, False, False]
    assert between.slept == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_other_bad_requests_are_not_asked_again_without_the_form(ask: Ask, provider: str) -> None:
    with LlmServer(status(400, "temperature does not apply")) as server, pytest.raises(JudgeError, match="temperature"):
        ask(server, FORMED, provider)
    assert len(server.calls) == 1


# Attempts.

PASSING = [
    *(status(code) for code in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
    dropped(),
    truncated(),
    malformed(),
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


def test_delays_grow_and_have_jitter(ask: Ask, between: Recorder) -> None:
    with LlmServer(status(500)) as server, pytest.raises(JudgeError):
        ask(server, retries=9)
    floors = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert all(floor <= delay <= floor + 0.5 for floor, delay in zip(floors, between.slept, strict=True))
    assert len({delay - floor for floor, delay in zip(floors, between.slept, strict=True)}) > 1


@pytest.mark.parametrize(("asked", "shortest"), [("7", 7), ("0", 0), ("1.5", 1.5), ("100000", 120)])
def test_the_delay_that_a_server_asks_for_is_kept(ask: Ask, between: Recorder, asked: str, shortest: float) -> None:
    with LlmServer(status(503, retry_after=asked), reply("yes")) as server:
        ask(server)
    assert shortest <= between.slept[0] <= shortest * 1.1 + 0.05


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "delay"),
    [
        ({}, None),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=9), usegmt=True)}, 9),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:09 -0000"}, 9),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=9), usegmt=True)}, 0),
        ({"retry-after": format_datetime(NOW + timedelta(days=9), usegmt=True)}, 120),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "inf"}, 120),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 99 Jan 2026 00:00:00 GMT"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
    ],
)
def test_retry_after_is_a_number_or_a_date(headers: dict[str, str], delay: float | None) -> None:
    assert delay_asked_for(headers, NOW) == delay


def test_rate_limits_are_told_with_the_delay_asked_for(ask: Ask, between: Recorder) -> None:
    with LlmServer(status(429, retry_after="3"), status(503), status(429), reply("yes")) as server:
        ask(server)
    assert between.limits == [3, None]


def test_the_last_rate_limit_is_told_too(ask: Ask, between: Recorder) -> None:
    fault(ask, status(429, retry_after="3"), retries=1)
    assert between.limits == [3, 3]


def test_a_spent_quota_is_not_tried_again(ask: Ask, between: Recorder) -> None:
    spent = data({"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}}, 429)
    message = fault(ask, spent)
    assert message.endswith(
        "status 429: You exceeded your quota.; the account's quota is spent: check its plan and billing"
    )
    assert (between.limits, between.slept) == ([], [])


def test_a_request_that_the_provider_filters_is_told_as_a_refusal(ask: Ask, between: Recorder) -> None:
    filters = data({"error": {"message": "The prompt was filtered.", "code": "content_filter"}}, 400)
    message = fault(ask, filters)
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
        message = fault(ask, held(never, reply("late")), timeout=0.05, retries=0)
    finally:
        never.set()
    assert "within 0.05 s; raise the judge's timeout" in message


def test_a_server_that_is_not_there_is_told(between: Recorder) -> None:
    with LlmServer() as server:
        gone = server.base_url
    client = connect(JudgeSpec("openai:tiny", base_url=gone, retries=1), sleep=between.sleep)
    with pytest.raises(
        JudgeError,
        match=rf"^openai: no response from {gone}/chat/completions: no connection .Connection refused.; .*2 attempts",
    ):
        once(client)


def test_tokens_of_discarded_attempts_count(ask: Ask) -> None:
    charged = data({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 50}})
    with LlmServer(charged, status(500), charged, reply("yes")) as server:
        assert ask(server).usage == Usage(210, 105)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_answer_without_end_is_given_up(ask: Ask, provider: str) -> None:
    message = fault(ask, raw(b"x" * (10 * 1024 * 1024 + 1)), provider=provider)
    assert "found a response above 10 MB" in message


def test_redirects_are_not_followed(ask: Ask) -> None:
    with LlmServer(reply("no")) as other:
        message = fault(ask, status(307, "moved", location=f"{other.base_url}/chat/completions"))
        assert other.calls == []
    assert "redirects are not followed" in message


def test_a_cancelled_call_ends_at_once_and_leaves_the_client_usable() -> None:
    until = threading.Event()

    async def run() -> JudgeReply:
        client = connect(JudgeSpec("openai:tiny", base_url=server.base_url))
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
        client = connect(JudgeSpec("openai:tiny", base_url=server.base_url))
        requests = [replace(ASKED, messages=(Message("user", str(number)),)) for number in range(20)]
        replies = await asyncio.gather(*(client.complete(each) for each in requests))
        await client.aclose()
        return replies

    with LlmServer(answer) as server:
        assert [each.text for each in asyncio.run(run())] == [str(number) for number in range(20)]
    assert server.most_in_flight == 20


def test_a_client_can_be_used_in_one_event_loop_after_another() -> None:
    with LlmServer(reply("yes")) as server:
        client = connect(JudgeSpec("openai:tiny", base_url=server.base_url))
        for _ in range(3):
            assert once(client).text == "yes"


def test_a_closed_client_may_be_closed_again_and_used_again() -> None:
    with LlmServer(reply("yes")) as server:
        client = connect(JudgeSpec("openai:tiny", base_url=server.base_url))
        asyncio.run(client.aclose())
        assert once(client).text == "yes"
        assert once(client).text == "yes"


# Messages.


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (data({"error": {"message": "no such model"}}, 404), "status 404: no such model; check the judge's model and"),
        (data({"error": "no such model"}, 404), "status 404: no such model; "),
        (data({"message": "no such model"}, 404), "status 404: no such model; "),
        (data({"detail": [{"msg": "x", "message": "bad field"}]}, 422), "status 422: bad field; "),
        (raw("<html>\n\x1b[31mBad   gateway</html>", 404), "status 404: <html> [31mBad gateway</html>; "),
        (raw("", 404), "status 404; "),
        (data({"error": {"message": "x" * 9999}}, 404), "status 404: " + "x" * 300 + "...; "),
        (data({"error": {"message": "denied"}}, 401), "status 401: denied; check the key in OPENAI_API_KEY"),
    ],
)
def test_a_message_has_the_status_the_servers_words_and_what_to_do(ask: Ask, answer: Answer, said: str) -> None:
    message = fault(ask, answer)
    assert message.startswith("openai: http://127.0.0.1:")
    assert f"/v1/chat/completions: {said}" in message


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("code", [200, 400, 401, 500])
@pytest.mark.parametrize(
    "echo",
    ["{key}", "wrong key: {key}.", "{head}***********{tail}", "...{tail}", "Bearer {key}", '{{"error": "{key}"}}'],
)
def test_the_key_is_never_shown(ask: Ask, provider: str, code: int, echo: str) -> None:
    text = echo.format(key=KEY, head=KEY[:8], tail=KEY[-4:])
    message = fault(ask, raw(text, code), provider=provider, retries=0)
    assert KEY not in message
    assert KEY[:8] not in message
    assert KEY[-4:] not in message
    assert "***" in message


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_with_the_key_loses_it_before_it_is_kept(ask: Ask, provider: str) -> None:
    with LlmServer(reply(f"yes, sk-other and {KEY}")) as server:
        assert ask(server, provider=provider).text == "yes, sk-other and ***"


def test_no_exception_that_is_shown_has_frames_with_the_key(ask: Ask) -> None:
    with LlmServer(status(401, "no")) as server, pytest.raises(JudgeError) as error:
        ask(server)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None
    trace = error.value.__traceback__
    while trace is not None:
        if "pytest_llmeval" in trace.tb_frame.f_code.co_filename:
            assert KEY not in repr(trace.tb_frame.f_locals)
        trace = trace.tb_next


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sk-proj-abcdefgh12345678 is wrong", "*** is wrong"),
        ("Authorization: Bearer abcdefgh12345", "Authorization: ***"),
        ("key ending in ...wxyz", "key ending in ***"),
        ("AIzaSyA1234567890abcdefghijk", "***"),
        ("the skill is task-oriented", "the skill is task-oriented"),
        ("InvalidURL: http://me:hunter2@bad proxy:1", "InvalidURL: http://***@bad proxy:1"),
        ("http://localhost/v1 said: write to me@home", "http://localhost/v1 said: write to me@home"),
        ("hush-hush-token", "***"),
    ],
)
def test_what_looks_like_a_key_is_masked(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "hush-hush-token")
    assert mask(text) == shown


@pytest.mark.parametrize("part", [KEY[:12], KEY[-12:]])
def test_long_parts_of_a_known_key_are_masked(part: str) -> None:
    assert mask(f"not {part}!", KEY) == "not ***!"


def test_text_is_masked_before_it_is_cut() -> None:
    assert KEY[:12] not in presentable("x" * 285 + KEY, KEY)


# Which client.


def test_a_spec_without_model_cannot_be_connected() -> None:
    with pytest.raises(JudgeError, match=r"^found no judge model, expected one such as"):
        connect(JudgeSpec())


def test_a_fixtures_judge_cannot_be_connected() -> None:
    with pytest.raises(JudgeError, match=r"'fixture:mine' and no fixture judge_client"):
        connect(JudgeSpec("fixture:mine"))


# pydantic-ai.


def pydantic_ai_judge(between: Recorder, model: Any, **spec: Any) -> PydanticAiJudge:
    class Judge(PydanticAiJudge):
        def _make(self) -> Any:
            return model

    made = JudgeSpec("pydantic-ai:test", **spec)
    return Judge(made, Patience("pydantic-ai", made.retries, between.limits.append, between.sleep))


def test_pydantic_ai_models_are_asked(between: Recorder) -> None:
    answer = once(connect(JudgeSpec("pydantic-ai:test"), sleep=between.sleep))
    assert answer.text == "success (no tool calls)"
    assert answer.stopped == "stop"
    assert answer.usage.input_tokens


@pytest.fixture
def seen() -> list[Any]:
    return []


Respond = Callable[[int], Any]


def function_model(seen: list[Any], respond: Respond) -> Any:
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: Any, info: Any) -> Any:
        seen.append((messages, info))
        return respond(len(seen))

    return FunctionModel(answer)


def said_by_model(text: str, **options: Any) -> Any:
    from pydantic_ai.messages import ModelResponse, TextPart

    return ModelResponse(parts=[TextPart(text)], **options)


def test_pydantic_ai_models_get_messages_parameters_and_schema(between: Recorder, seen: list[Any]) -> None:
    model = function_model(seen, lambda _: said_by_model("{}"))
    once(pydantic_ai_judge(between, model), replace(FORMED, parameters={"temperature": 0.5}))
    ((messages, info),) = seen
    assert [(part.part_kind, part.content) for part in messages[0].parts] == [
        ("system-prompt", "Be fair."),
        ("user-prompt", "Is it right?"),
    ]
    assert info.model_settings["temperature"] == 0.5
    assert info.model_request_parameters.output_object.json_schema == SCHEMA


@pytest.mark.parametrize(("reason", "stopped"), [("stop", "stop"), ("length", "length"), ("content_filter", "refusal")])
def test_pydantic_ai_says_why_a_model_stopped(between: Recorder, seen: list[Any], reason: str, stopped: str) -> None:
    model = function_model(seen, lambda _: said_by_model("x", finish_reason=reason))
    assert once(pydantic_ai_judge(between, model)).stopped == stopped


def http_error(code: int, text: str = "no", **headers: str) -> Exception:
    from pydantic_ai.exceptions import ModelHTTPError

    return ModelHTTPError(
        code, "m", {"message": text}, headers={name.replace("_", "-"): v for name, v in headers.items()}
    )


def raising(*errors: Exception) -> Respond:
    """Raise the errors in turn, then answer."""

    def respond(number: int) -> Any:
        if number <= len(errors):
            raise errors[number - 1]
        return said_by_model("yes")

    return respond


def test_pydantic_ai_is_tried_again_for_what_may_pass(between: Recorder, seen: list[Any]) -> None:
    from pydantic_ai.exceptions import ModelAPIError

    errors = [http_error(500), http_error(429, retry_after="3"), ModelAPIError("m", "connection lost")]
    assert once(pydantic_ai_judge(between, function_model(seen, raising(*errors)))).text == "yes"
    assert between.limits == [3]
    assert 3 <= between.slept[1] <= 3.3


def test_pydantic_ai_is_not_tried_again_for_what_will_not_pass(between: Recorder, seen: list[Any]) -> None:
    from pydantic_ai.exceptions import UserError

    for error in (http_error(401, f"wrong {KEY}"), UserError(f"wrong {KEY}")):
        seen.clear()
        with pytest.raises(JudgeError, match=r"wrong \*\*\*") as caught:
            once(pydantic_ai_judge(between, function_model(seen, raising(error))))
        assert len(seen) == 1
        assert caught.value.__context__ is None
    assert between.slept == []


def test_pydantic_ai_tells_filtered_requests_as_refusals(between: Recorder, seen: list[Any]) -> None:
    from pydantic_ai.exceptions import ContentFilterError

    for error in (http_error(400, "content_filter"), ContentFilterError("filtered")):
        seen.clear()
        with pytest.raises(JudgeError, match=r"; found a refusal: the provider filtered the content of this case$"):
            once(pydantic_ai_judge(between, function_model(seen, raising(error))))
        assert len(seen) == 1


def test_pydantic_ai_is_asked_without_a_schema_where_it_is_refused(between: Recorder, seen: list[Any]) -> None:
    judge = pydantic_ai_judge(between, function_model(seen, raising(http_error(400, "json_schema is not supported"))))
    assert [once(judge, FORMED).text for _ in range(2)] == ["yes", "yes"]
    assert [info.model_request_parameters.output_mode for _, info in seen] == ["native", "text", "text"]


def test_pydantic_ai_is_given_up_after_the_timeout(between: Recorder) -> None:
    from pydantic_ai.models.function import FunctionModel

    async def hang(*_: Any) -> Any:
        await asyncio.Event().wait()

    with pytest.raises(JudgeError, match=r"^pydantic-ai: no answer within 0\.01 s; raise the judge's timeout"):
        once(pydantic_ai_judge(between, FunctionModel(hang), timeout=0.01, retries=0))


@pytest.mark.parametrize("name", ["nonsense", "nonsense:model"])
def test_an_unknown_pydantic_ai_model_is_told(name: str) -> None:
    with pytest.raises(JudgeError, match=rf"^pydantic-ai: .*{name}.*; check the judge's model$"):
        once(connect(JudgeSpec(f"pydantic-ai:{name}")))


def test_without_pydantic_ai_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pydantic_ai", "pydantic_ai.exceptions", "pydantic_ai.models"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pytest-llmeval-suite\[pydantic-ai\]'"):
        once(connect(JudgeSpec("pydantic-ai:test")))


# A user's own judge.


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


@pytest.mark.parametrize(
    "judge", [Plain(), Async(), Returns(), CallableObject(), Plain().complete, Async().complete, Returns().complete]
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
        (JudgeReply("yes", stopped="end"), "stopped 'end', expected one of stop, length, refusal"),  # type: ignore[arg-type]  # as above
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


def raiser(error: BaseException) -> Callable[[JudgeRequest], str]:
    def judge(_: JudgeRequest) -> str:
        raise error

    return judge


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError(f"bad {KEY}"), r"^the judge raised ValueError: bad \*\*\*$"),
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


def test_the_server_of_these_tests_counts_calls_in_flight() -> None:
    until = threading.Event()

    async def run() -> None:
        client = connect(JudgeSpec("openai:tiny", base_url=server.base_url))
        calls = [asyncio.create_task(client.complete(ASKED)) for _ in range(3)]
        await asyncio.to_thread(server.wait_for_calls, 3)
        until.set()
        await asyncio.gather(*calls)
        await client.aclose()

    with LlmServer(held(until, reply("yes"))) as server:
        asyncio.run(run())
    assert (len(server.calls), server.most_in_flight) == (3, 3)
    assert json.dumps(server.calls[0].body)
