"""The interface of Gemini: what is sent, and what an answer means."""

from typing import Any

import pytest
from msgspec.structs import replace
from scripted_judges import ASKED, FORMED, LOCAL_KEY, SCHEMA, Ask
from servers import LlmServer, data, reply, status

from pytest_llmeval.judges import JudgeReply, Usage


def candidate(*parts: dict[str, Any], stopped: str = "STOP", **more: Any) -> Any:
    return data({"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": stopped}], **more})


def test_gemini_gets_contents(ask: Ask) -> None:
    with LlmServer(reply("yes")) as server:
        parameters = {"temperature": 0, "max_tokens": 7, "topK": 3}
        answer = ask(server, replace(ASKED, parameters=parameters), "gemini", base_url=server.url)
        (call,) = server.calls
    assert answer == JudgeReply("yes", Usage(10, 5))
    assert call.path == "/models/tiny:generateContent"
    assert call.headers["x-goog-api-key"] == LOCAL_KEY
    assert "authorization" not in call.headers
    assert call.body == {
        "contents": [{"role": "user", "parts": [{"text": "Is it right?"}]}],
        "systemInstruction": {"parts": [{"text": "Be fair."}]},
        "generationConfig": {"temperature": 0, "maxOutputTokens": 7, "topK": 3},
    }


def test_gemini_is_asked_for_the_form_of_the_reply_unless_it_refuses_it(ask: Ask) -> None:
    refused = status(400, "Invalid JSON payload received. Unknown name responseJsonSchema")
    with LlmServer(refused, reply('{"score": 1}')) as server:
        assert ask(server, FORMED, "gemini", base_url=server.url).text == '{"score": 1}'
        first, second = server.calls
    expected = {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
    assert first.body["generationConfig"] == expected
    assert "generationConfig" not in second.body


@pytest.mark.parametrize(
    ("answer", "text", "stopped"),
    [
        (candidate({"text": "y"}, {"text": "es"}), "yes", "stop"),
        (candidate({"text": "hm", "thought": True}, {"text": "yes"}), "yes", "stop"),
        (candidate({"text": "hm", "thought": True}), "hm", "thoughts"),
        (candidate({"functionCall": {"name": "grade", "args": {"score": 1}}}), "grade({'score': 1})", "tool"),
        (candidate({"text": "ye"}, stopped="MAX_TOKENS"), "ye", "length"),
        (candidate(stopped="SAFETY"), "", "refusal"),
        (data({"promptFeedback": {"blockReason": "SAFETY"}}), "SAFETY", "refusal"),
    ],
)
def test_what_gemini_answers(ask: Ask, answer: Any, text: str, stopped: str) -> None:
    with LlmServer(answer) as server:
        read = ask(server, provider="gemini", base_url=server.url)
    assert (read.text, read.stopped) == (text, stopped)


def test_gemini_counts_thoughts_as_written(ask: Ask) -> None:
    used = {"promptTokenCount": 3, "candidatesTokenCount": 4, "thoughtsTokenCount": 50}
    with LlmServer(candidate({"text": "yes"}, usageMetadata=used)) as server:
        assert ask(server, provider="gemini", base_url=server.url).usage == Usage(3, 54)
