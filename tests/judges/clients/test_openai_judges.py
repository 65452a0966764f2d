"""The interface of OpenAI: what is sent, and what an answer means."""

from typing import Any

import pytest
from msgspec.structs import replace
from scripted_judges import ASKED, FORMED, LOCAL_KEY, SCHEMA, Ask
from servers import LlmServer, data, reply, weighed

from pytest_llmeval.judges import JudgeReply, Usage


def test_openai_gets_a_chat_completion_request(ask: Ask) -> None:
    with LlmServer(reply("yes")) as server:
        ask(server, replace(ASKED, parameters={"temperature": 0, "max_tokens": 9, "top_p": 0.5}))
        (call,) = server.calls
    assert call.path == "/v1/chat/completions"
    assert call.headers["authorization"] == f"Bearer {LOCAL_KEY}"
    assert call.headers["content-type"] == "application/json"
    assert call.body == {
        "model": "tiny",
        "messages": [{"role": "system", "content": "Be fair."}, {"role": "user", "content": "Is it right?"}],
        "temperature": 0,
        "max_tokens": 9,
        "top_p": 0.5,
    }


def test_openai_itself_gets_max_tokens_under_its_new_name() -> None:
    from pytest_llmeval.judges.clients._http import OpenAI

    body = OpenAI().body(replace(ASKED, parameters={"max_tokens": 9}), structured=False, base=OpenAI().base_url)
    assert body["max_completion_tokens"] == 9
    assert "max_tokens" not in body


def test_openai_replies_in_parts_are_joined(ask: Ask) -> None:
    parts = [{"type": "text", "text": "y"}, {"type": "image"}, {"type": "text", "text": "es"}]
    with LlmServer(data({"choices": [{"message": {"content": parts}}]})) as server:
        assert ask(server) == JudgeReply("yes")


@pytest.mark.parametrize("tokens", ["many", -1, None, True, 1.5, 10**30])
def test_tokens_that_are_no_count_are_unknown(ask: Ask, tokens: Any) -> None:
    body = {"choices": [{"message": {"content": "yes"}}], "usage": {"prompt_tokens": tokens, "completion_tokens": 2}}
    with LlmServer(data(body)) as server:
        assert ask(server).usage == Usage(None, 2)


def test_openai_is_asked_for_the_schema(ask: Ask) -> None:
    with LlmServer(reply("{}")) as server:
        ask(server, FORMED)
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}}
    assert server.calls[0].body["response_format"] == form


def test_the_users_response_format_comes_first(ask: Ask) -> None:
    with LlmServer(reply("{}")) as server:
        ask(server, replace(FORMED, parameters={"response_format": {"type": "json_object"}}))
    assert server.calls[0].body["response_format"] == {"type": "json_object"}


WEIGHED = replace(ASKED, expected_of="score")


def test_openai_is_asked_for_probabilities_and_gives_those_of_the_score(ask: Ask) -> None:
    with LlmServer(weighed('{"reasoning": "7", "score": 4}', {"4": 0.75, "5": 0.25})) as server:
        found = ask(server, WEIGHED)
        assert (server.calls[0].body["logprobs"], server.calls[0].body["top_logprobs"]) == (True, 20)
        assert "logprobs" not in (ask(server), server.calls[1].body)[1]
    assert found.probabilities == pytest.approx({"4": 0.75, "5": 0.25})
    assert found.text == '{"reasoning": "7", "score": 4}'


def test_the_user_may_ask_for_fewer_alternatives(ask: Ask) -> None:
    with LlmServer(weighed('{"score": 4}', {"4": 1.0})) as server:
        ask(server, replace(WEIGHED, parameters={"top_logprobs": 5}))
    assert server.calls[0].body["top_logprobs"] == 5


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        {"content": ["4"]},
        {"content": [{"token": '{"score": '}, {"token": "4", "logprob": 0}]},
        {"content": [{"token": '{"score": ', "logprob": 0}, {"token": "4", "logprob": "0"}]},
        {"content": [{"token": '{"score": ', "logprob": 0}, {"token": 4, "logprob": 0}]},
    ],
)
def test_an_answer_without_usable_probabilities_has_none(ask: Ask, logprobs: Any) -> None:
    body = {"choices": [{"message": {"content": '{"score": 4}'}, "logprobs": logprobs}]}
    with LlmServer(data(body)) as server:
        assert not ask(server, WEIGHED).probabilities


def test_alternatives_of_another_form_are_left_out(ask: Ask) -> None:
    top = [{"token": "5", "logprob": -9999.0}, {"token": "3"}, "2", None]
    tokens = [{"token": '{"score": ', "logprob": 0}, {"token": "4", "logprob": 0.0, "top_logprobs": top}]
    body = {"choices": [{"message": {"content": '{"score": 4}'}, "logprobs": {"content": tokens}}]}
    with LlmServer(data(body)) as server:
        assert ask(server, WEIGHED).probabilities == {"4": 1.0, "5": 0.0}


def test_anthropic_gives_no_probabilities(ask: Ask) -> None:
    with LlmServer(reply('{"score": 4}')) as server:
        assert ask(server, WEIGHED, "anthropic").probabilities is None
        assert "logprobs" not in server.calls[0].body
