"""Judges over real HTTP: keys, replies, forms and messages, whoever the provider is."""

import asyncio
import json
import threading

import pytest
from msgspec.structs import replace
from scripted_judges import ASKED, FORMED, LOCAL_KEY, PROVIDERS, Ask, Recorder, client_fault, once
from servers import Answer, Call, LlmServer, Sent, beside, cut_off, data, filtered, held, raw, refusal, reply, status

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import JudgeConnection, JudgeReply, JudgeRequest, JudgeSpec, Message, Usage


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
    client = JudgeConnection(JudgeSpec(f"{provider}:tiny")).open()
    with pytest.raises(JudgeError, match=f"^{provider}: the environment variable {variable} is missing: set"):
        once(client)


def test_a_variable_that_the_user_named_must_hold_a_key(ask: Ask) -> None:
    assert "environment variable NO_SUCH_KEY" in client_fault(ask, reply("yes"), api_key_env="NO_SUCH_KEY")


@pytest.mark.parametrize("key", ["two\nlines-of-key", "ключ-secret-key"])
def test_a_key_that_no_header_can_carry_is_told_without_showing_it(
    ask: Ask, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    message = client_fault(ask, reply("yes"))
    assert "characters in the environment variable OPENAI_API_KEY that are not allowed in an HTTP header" in message
    assert "key" not in message.partition(", expected")[0].replace("OPENAI_API_KEY", "")


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
        (beside("tool"), JudgeReply('grade({"score": 1})', Usage(10, 5), "tool")),
        (beside("thoughts"), JudgeReply("It is good.", Usage(10, 5), "thoughts")),
    ],
)
def test_an_answer_becomes_a_reply(ask: Ask, provider: str, answer: Answer, expected: JudgeReply) -> None:
    with LlmServer(answer) as server:
        assert ask(server, provider=provider) == expected
    assert len(server.calls) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("request_", "structured"), [(ASKED, "auto"), (FORMED, "off")])
def test_no_form_is_asked_for_without_a_schema_or_when_off(
    ask: Ask, provider: str, request_: JudgeRequest, structured: str
) -> None:
    with LlmServer(reply("yes")) as server:
        ask(server, request_, provider, structured=structured)
    assert not {"response_format", "tools", "tool_choice"} & server.calls[0].body.keys()


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
        client = JudgeConnection(JudgeSpec(f"{provider}:tiny", base_url=server.base_url)).open(sleep=between.sleep)
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


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (data({"error": {"message": "no such model"}}, 404), "status 404: no such model; check the judge's model and"),
        (data({"error": "no such model"}, 404), "status 404: no such model; "),
        (data({"message": "no such model"}, 404), "status 404: no such model; "),
        (data({"detail": [{"msg": "x", "message": "bad field"}]}, 422), "status 422: bad field; "),
        (raw("<html>\n\x1b[31mBad   gateway</html>", 404), r"status 404: <html> \x1b[31mBad gateway</html>; "),
        (raw("", 404), "status 404; "),
        (data({"error": {"message": "x" * 9999}}, 404), "status 404: " + "x" * 300 + "...; "),
        (data({"error": {"message": "denied"}}, 401), "status 401: denied; check the key in OPENAI_API_KEY"),
    ],
)
def test_a_message_has_the_status_the_servers_words_and_what_to_do(ask: Ask, answer: Answer, said: str) -> None:
    message = client_fault(ask, answer)
    assert message.startswith("openai: http://127.0.0.1:")
    assert f"/v1/chat/completions: {said}" in message


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("code", [200, 400, 401, 500])
@pytest.mark.parametrize(
    "echo",
    ["{key}", "wrong key: {key}.", "{head}***********{tail}", "...{tail}", "Bearer {key}", '{{"error": "{key}"}}'],
)
def test_the_key_is_never_shown(ask: Ask, provider: str, code: int, echo: str) -> None:
    text = echo.format(key=LOCAL_KEY, head=LOCAL_KEY[:8], tail=LOCAL_KEY[-4:])
    message = client_fault(ask, raw(text, code), provider=provider, retries=0)
    assert LOCAL_KEY not in message
    assert LOCAL_KEY[:8] not in message
    assert LOCAL_KEY[-4:] not in message
    assert "***" in message


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_with_the_key_loses_it_before_it_is_kept(ask: Ask, provider: str) -> None:
    with LlmServer(reply(f"yes, sk-other and {LOCAL_KEY}")) as server:
        assert ask(server, provider=provider).text == "yes, sk-other and ***"


def test_no_exception_that_is_shown_has_frames_with_the_key(ask: Ask) -> None:
    with LlmServer(status(401, "no")) as server, pytest.raises(JudgeError) as error:
        ask(server)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None
    trace = error.value.__traceback__
    while trace is not None:
        if "pytest_llmeval" in trace.tb_frame.f_code.co_filename:
            assert LOCAL_KEY not in repr(trace.tb_frame.f_locals)
        trace = trace.tb_next


def test_a_spec_without_model_cannot_be_connected() -> None:
    with pytest.raises(JudgeError, match=r"^judge has no model: set one, such as"):
        JudgeConnection(JudgeSpec()).open()


def test_a_fixtures_judge_cannot_be_connected() -> None:
    with pytest.raises(JudgeError, match=r"'fixture:mine' without a fixture judge_client"):
        JudgeConnection(JudgeSpec("fixture:mine")).open()


def test_the_server_of_these_tests_counts_calls_in_flight() -> None:
    until = threading.Event()

    async def run() -> None:
        client = JudgeConnection(JudgeSpec("openai:tiny", base_url=server.base_url)).open()
        calls = [asyncio.create_task(client.complete(ASKED)) for _ in range(3)]
        await asyncio.to_thread(server.wait_for_calls, 3)
        until.set()
        await asyncio.gather(*calls)
        await client.aclose()

    with LlmServer(held(until, reply("yes"))) as server:
        asyncio.run(run())
    assert (len(server.calls), server.most_in_flight) == (3, 3)
    assert json.dumps(server.calls[0].body)
