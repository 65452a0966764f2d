"""Judges behind pydantic-ai."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from scripted_judges import FORMED, LOCAL_KEY, SCHEMA, Recorder, once

from pytest_llmeval.core import JudgeError, MissingExtraError
from pytest_llmeval.judges import JudgeConnection, JudgeSpec, Patience
from pytest_llmeval.judges.clients._pydantic_ai import PydanticAiJudge


def pydantic_ai_judge(between: Recorder, model: Any, **spec: Any) -> PydanticAiJudge:
    class Judge(PydanticAiJudge):
        def _make(self) -> Any:
            return model

    made = JudgeSpec("pydantic-ai:test", **spec)
    return Judge(made, Patience("pydantic-ai", made.retries, between.limits.append, between.sleep))


def test_pydantic_ai_models_are_asked(between: Recorder) -> None:
    answer = once(JudgeConnection(JudgeSpec("pydantic-ai:test")).open(sleep=between.sleep))
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


def test_pydantic_ai_says_what_came_in_place_of_text(between: Recorder, seen: list[Any]) -> None:
    from pydantic_ai.messages import ModelResponse, ThinkingPart, ToolCallPart

    parts = [ThinkingPart("Hm."), ToolCallPart("grade", {"score": 1})]
    for number, expected in ((2, ('grade({"score":1})', "tool")), (1, ("Hm.", "thoughts"))):
        reply = once(pydantic_ai_judge(between, function_model(seen, lambda _, n=number: ModelResponse(parts[:n]))))
        assert (reply.text, reply.stopped) == expected


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

    for error in (http_error(401, f"wrong {LOCAL_KEY}"), UserError(f"wrong {LOCAL_KEY}")):
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

    with pytest.raises(JudgeError, match=r"^pydantic-ai: took longer than 0\.01 s; raise the judge's timeout"):
        once(pydantic_ai_judge(between, FunctionModel(hang), timeout=0.01, retries=0))


@pytest.mark.parametrize("name", ["nonsense", "nonsense:model"])
def test_an_unknown_pydantic_ai_model_is_told(name: str) -> None:
    with pytest.raises(JudgeError, match=rf"^pydantic-ai: .*{name}.*; check the judge's model$"):
        once(JudgeConnection(JudgeSpec(f"pydantic-ai:{name}")).open())


def test_a_provider_whose_package_is_missing_is_told_with_what_pydantic_ai_says_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "groq", None)
    told = r"^the judge pydantic-ai:groq:m needs the extra 'pydantic-ai': .*pip install \"pydantic-ai-slim\[groq\]\""
    with pytest.raises(MissingExtraError, match=told):
        once(JudgeConnection(JudgeSpec("pydantic-ai:groq:m")).open())


def test_without_pydantic_ai_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pydantic_ai", "pydantic_ai.exceptions", "pydantic_ai.models"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pytest-llmeval-suite\[pydantic-ai\]'"):
        once(JudgeConnection(JudgeSpec("pydantic-ai:test")).open())
