"""Results of pydantic-ai, the SDK of OpenAI and LangGraph as predictions: answer, messages, calls of tools, usage."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from running import own_loop

import pytest_llmeval as ev
from pytest_llmeval.core import PredictionError
from pytest_llmeval.run import json_like

PARTS = ("answer", "tool_calls", "usage")


class City(BaseModel):
    """A structured answer."""

    city: str


def foreign(package: str, name: str, *, base: str = "", **values: Any) -> Any:
    """Return an object of a class as a library has it; its JSON data are the values that are no functions."""
    kind = type(base or name, (BaseModel,), {"__module__": f"{package}.types"})
    kind = type(name, (kind,), {"__module__": f"{package}.types", "model_config": {"extra": "allow"}})
    return kind(**values)


def agent() -> "Agent[None, City]":
    made = Agent(TestModel(call_tools=["lookup"]), output_type=City, system_prompt="Be brief.")

    @made.tool_plain
    def lookup(query: str) -> str:
        return f"found {query}"

    return made


def test_a_result_of_pydantic_ai_is_its_output_with_messages_calls_and_usage() -> None:
    with own_loop():
        result = agent().run_sync("Where?")
    prediction = json_like(result)
    assert prediction["answer"] == {"city": "a"}
    assert [each["name"] for each in prediction["tool_calls"]] == ["lookup"]
    assert prediction["tool_calls"][0]["result"] == "found a"
    assert [each["role"] for each in prediction["messages"][:2]] == ["system", "user"]
    usage = result.usage() if callable(result.usage) else result.usage
    assert prediction["usage"]["input_tokens"] == usage.input_tokens
    usage.cost = Decimal("0.25")
    assert json_like(result)["usage"]["cost_usd"] == 0.25


def test_an_agent_is_scored_by_its_output_its_tools_and_its_tokens() -> None:
    async def answer(question: str) -> Any:
        return await agent().run(question)

    expected = {"answer": {"city": "a"}, "tool_calls": [{"name": "lookup"}]}
    suite = ev.suite(
        "cities",
        cases=[{"id": "a", "input": "Where?", "expected": expected}],
        evaluators=[ev.fields(), ev.tools()],
    )
    result = suite.run(answer)
    assert result.cases[0].outcome == "passed"
    assert result.metrics["field_f1"].value == 1
    assert result.cases[0].tokens is not None


def test_a_response_of_openai_is_its_text_with_calls_and_usage() -> None:
    call = {"type": "function_call", "name": "lookup", "arguments": '{"q": "x"}', "call_id": "c1", "id": "f1"}
    text = {"type": "message", "content": [{"type": "output_text", "text": "Paris"}], "role": "assistant"}
    usage = {"input_tokens": 7, "output_tokens": 3}
    response = foreign("openai", "Response", output=[call, text], output_text="Paris", usage=usage, model="m-1")
    prediction = json_like(response)
    assert prediction["output"] == [call, text]
    assert {name: prediction[name] for name in PARTS} == {
        "answer": "Paris",
        "tool_calls": [{"id": "f1", "name": "lookup", "arguments": {"q": "x"}}],
        "usage": {**usage, "model": "m-1"},
    }
    parsed = foreign(
        "openai",
        "ParsedResponse",
        base="Response",
        output=[],
        output_text="{}",
        output_parsed=City(city="b"),
        model="m",
    )
    assert json_like(parsed)["answer"] == {"city": "b"}


def test_a_chat_completion_of_openai_is_its_text_with_calls_and_usage() -> None:
    function = {"name": "lookup", "arguments": '{"q": "x"}'}
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": function}]}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    completion = foreign("openai", "ChatCompletion", choices=[{"message": message}], usage=usage, model="m-1")
    object.__setattr__(completion, "choices", [SimpleNamespace(message=SimpleNamespace(content=None))])
    completion.__class__.model_dump = lambda *_, **__: {
        "choices": [{"message": message}],
        "usage": usage,
        "model": "m-1",
    }
    prediction = json_like(completion)
    assert prediction["choices"] == [{"message": message}]
    assert {name: prediction[name] for name in PARTS} == {
        "answer": "",
        "tool_calls": [{"id": "c1", "name": "lookup", "arguments": {"q": "x"}}],
        "usage": {**usage, "model": "m-1"},
    }


def test_a_state_of_langgraph_is_its_last_reply_with_messages_calls_and_usage() -> None:
    def message(kind: str, content: str, **more: Any) -> Any:
        name = f"{kind.title()}Message"
        return foreign("langchain_core", name, base="BaseMessage", type=kind, content=content, **more)

    spent = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    call = {"name": "lookup", "args": {"q": "x"}, "id": "c1", "type": "tool_call"}
    state = {
        "messages": [
            message("human", "Where?"),
            message("ai", "", tool_calls=[call], usage_metadata=spent),
            message("tool", "in France", tool_call_id="c1"),
            message("ai", "Paris", usage_metadata=spent),
        ],
        "step": 2,
    }
    prediction = json_like(state)
    assert (prediction["answer"], prediction["step"]) == ("Paris", 2)
    assert prediction["usage"] == {"input_tokens": 10, "output_tokens": 4}
    assert prediction["tool_calls"] == [{"id": "c1", "name": "lookup", "arguments": {"q": "x"}, "result": "in France"}]
    assert [each["role"] for each in prediction["messages"]] == ["user", "assistant", "tool", "assistant"]
    del state["messages"][3].__pydantic_extra__["usage_metadata"]
    assert "usage" not in json_like(state)


def test_objects_of_the_same_names_elsewhere_and_other_mappings_stay_what_they_are() -> None:
    assert json_like(foreign("my_app", "Response", text="x")) == {"text": "x"}
    assert json_like({"messages": []}) == {"messages": []}
    assert json_like({"messages": [{"role": "user", "content": "x"}]}) == {
        "messages": [{"role": "user", "content": "x"}]
    }


def test_a_broken_result_is_the_error_of_its_case() -> None:
    with pytest.raises(PredictionError, match="the returned Response cannot be read"):
        json_like(foreign("openai", "Response", output=None))


def test_calls_of_remote_and_custom_tools_in_a_response_are_calls() -> None:
    known = {"type": "mcp_call", "id": "m1", "server_label": "atlas", "name": "find", "arguments": '{"town": "Orrin"}'}
    output = [
        {**known, "output": "Orrin Bay", "error": None},
        {**known, "id": "m2", "output": None, "error": "timed out"},
        {"type": "custom_tool_call", "id": "t1", "call_id": "x", "name": "sql", "input": "select 1"},
        {"type": "mcp_list_tools", "id": "l1", "server_label": "atlas", "tools": []},
        {"type": "mcp_approval_request", "id": "a1", "name": "find", "arguments": "{}", "server_label": "atlas"},
    ]
    response = foreign("openai", "Response", output=output, output_text="", usage=None, model="m-1")
    find = {"name": "find", "arguments": {"town": "Orrin"}}
    assert json_like(response)["tool_calls"] == [
        {"id": "m1", **find, "result": "Orrin Bay"},
        {"id": "m2", **find, "result": "timed out", "status": "error"},
        {"id": "t1", "name": "sql", "arguments": "select 1"},
    ]


def test_a_plugin_reads_results_of_another_library(monkeypatch: pytest.MonkeyPatch) -> None:
    result = SimpleNamespace(final="Paris")
    registry = ev.Registry()
    registry.extend("read", lambda value: {"answer": value.final} if value is result else value)
    monkeypatch.setattr("pytest_llmeval.suites._registry.Registry.installed", lambda: registry)
    assert json_like(result) == {"answer": "Paris"}
    assert json_like(City(city="Oslo")) == {"city": "Oslo"}


def test_a_tool_that_failed_in_a_state_of_langgraph_is_a_failed_call() -> None:
    def message(kind: str, content: str, **more: Any) -> Any:
        name = f"{kind.title()}Message"
        return foreign("langchain_core", name, base="BaseMessage", type=kind, content=content, **more)

    call = {"name": "book", "args": {"seats": 40}, "id": "c1", "type": "tool_call"}
    failed = message("tool", "Error: too many seats", tool_call_id="c1", status="error")
    messages = [message("ai", "", tool_calls=[call]), failed, message("ai", "Booked.")]
    for state in ({"messages": messages}, {"answer": "Booked.", "messages": messages}):
        prediction = json_like(state)
        assert [each["status"] for each in prediction["tool_calls"]] == ["error"]
        assert prediction["messages"][1]["status"] == "error"


def test_a_run_of_openai_agents_is_its_output_with_messages_calls_and_usage() -> None:
    items = [
        {"role": "user", "content": "Book four seats"},
        {"type": "function_call", "id": "f1", "call_id": "c1", "name": "book", "arguments": '{"seats": 4}'},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Booked."}]},
    ]
    run = foreign("agents", "RunResult", base="RunResultBase", final_output="Booked.")
    run.to_input_list = lambda: items
    run.context_wrapper = SimpleNamespace(usage=SimpleNamespace(input_tokens=10, output_tokens=5))
    prediction = json_like(run)
    assert prediction["answer"] == "Booked."
    assert prediction["tool_calls"] == [{"id": "c1", "name": "book", "arguments": {"seats": 4}, "result": "ok"}]
    assert [each["role"] for each in prediction["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert prediction["usage"] == {"input_tokens": 10, "output_tokens": 5}
