"""The interface of Anthropic: what is sent, and what an answer means."""

import pytest
from msgspec.structs import replace
from scripted_judges import ASKED, FORMED, LOCAL_KEY, SCHEMA, Ask
from servers import LlmServer, data, reply, tool

from pytest_llmeval.judges import JudgeReply, Usage


def test_anthropic_gets_a_messages_request(ask: Ask) -> None:
    with LlmServer(reply("yes")) as server:
        ask(server, replace(ASKED, parameters={"temperature": 0}), "anthropic")
        (call,) = server.calls
    assert call.path == "/v1/messages"
    assert call.headers["x-api-key"] == LOCAL_KEY
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


def test_anthropic_tokens_of_the_prompt_cache_count(ask: Ask) -> None:
    used = {"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300, "output_tokens": 4}
    with LlmServer(data({"content": [], "usage": used})) as server:
        assert ask(server, provider="anthropic").usage == Usage(321, 4)


@pytest.mark.parametrize("length", [100, 4000])
def test_anthropic_may_keep_a_long_beginning_that_other_calls_have_too(ask: Ask, length: int) -> None:
    shared = "p" * length
    question = replace(ASKED.messages[-1], content=f"{shared} Is it right?", shared=length)
    with LlmServer(reply("yes")) as server:
        ask(server, replace(ASKED, messages=(*ASKED.messages[:-1], question)), "anthropic")
    content = server.calls[0].body["messages"][0]["content"]
    marked = {"type": "text", "text": shared, "cache_control": {"type": "ephemeral"}}
    assert content == (question.content if length == 100 else [marked, {"type": "text", "text": " Is it right?"}])


def test_anthropic_is_asked_to_use_a_tool_whose_input_is_the_reply(ask: Ask) -> None:
    with LlmServer(tool({"score": 1, "reasoning": "é"})) as server:
        answer = ask(server, FORMED, "anthropic")
    body = server.calls[0].body
    assert body["tool_choice"] == {"type": "tool", "name": body["tools"][0]["name"]}
    assert body["tools"][0]["input_schema"] == SCHEMA
    assert answer == JudgeReply('{"score": 1, "reasoning": "é"}', Usage(10, 5))
