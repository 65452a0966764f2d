"""Targets whose spans are a part of their answers: an instrumented agent needs no parts."""

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Project

AGENT = """\
import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.test import TestModel

agent = Agent(TestModel(custom_output_text="It is shipped."), instructions="Be kind.")
Agent.instrument_all(InstrumentationSettings())


@agent.tool_plain
def find_order(number: int) -> str:
    return "shipped"


class Reply(BaseModel):
    answer: str
    order: int


structured = Agent(TestModel(custom_output_args={"answer": "It is shipped.", "order": 7}), output_type=Reply)
structured.tool_plain(find_order)


async def reply(question):
    return (await structured.run(question)).output


async def ask(question):
    return (await agent.run(question)).output


def ask_here(question):
    return agent.run_sync(question).output


def ask_later(question):
    return ask(question)


async def record(question):
    return {"answer": (await agent.run(question)).output, "order": 7}


async def bare_record(question):
    await agent.run(question)
    return {"order": 7, "state": "shipped"}


async def own(question):
    return {"answer": "mine", "tool_calls": [], "said": (await agent.run(question)).output}
"""
EXPECTED = {"answer": "It is shipped.", "tool_calls": [{"name": "find_order"}]}
TOOLS: dict[str, Any] = {"evaluators": [{"tools": {"order": "in_order"}}, {"text": {"metrics": ["exact_match"]}}]}


def write(project: "Project", before: str = "") -> None:
    project.libraries = ("pydantic_ai.models.test", "opentelemetry.sdk.trace.export")
    project.write("bot.py", before + AGENT)


def predictions(project: "Project") -> list[dict[str, Any]]:
    lines = (project.path / "p.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(each)["prediction"] for each in lines]


def test_checks_look_at_the_spans_of_an_agent_live_and_replayed(project: "Project", workers: int) -> None:
    write(project)
    tool = {"attributes": {"gen_ai.tool.name": "find_order"}, "count": 1}
    checks = [{"span": tool}, {"not_span": {"failed": True}}, {"span": {"name": "pay"}, "name": "pays"}]
    cases = [{"id": "a", "input": "Where is order 7?", "expected": EXPECTED}]
    project.suite("s.eval.yaml", cases, target={"python": "bot:ask", "traces": True}, checks=checks, **TOOLS)
    for options in ([], ["--llmeval-predictions-mode=replay"]):
        ran = project.run("--llmeval-predictions=p.jsonl", *options, workers=workers)
        (case,) = ran.suites["s"]["cases"]
        assert case["reason"].startswith("checks: pays: found no span of this kind among"), ran.text
        assert ran.suites["s"]["metrics"]["check_rate"]["value"] == pytest.approx(2 / 3)
        spans = predictions(project)[0]["trace"]["spans"]
        assert all(each["duration_s"] > 0 for each in spans), spans


def test_the_tool_by_which_a_model_gives_its_answer_is_no_call(project: "Project") -> None:
    write(project)
    expected = {"answer": {"answer": "It is shipped.", "order": 7}, "tool_calls": [{"name": "find_order"}]}
    case = {"id": "a", "input": "Where is order 7?", "expected": expected}
    evaluators = [{"tools": {"order": "exact"}}, {"fields": {}}]
    project.suite("s.eval.yaml", [case], target={"python": "bot:reply", "traces": True}, evaluators=evaluators)
    ran = project.run("--llmeval-predictions=p.jsonl")
    assert ran.suites["s"]["metrics"]["trajectory_match"]["value"] == 1, ran.text
    assert ran.suites["s"]["metrics"]["field_f1"]["value"] == 1, ran.text
    assert [each["name"] for each in predictions(project)[0]["tool_calls"]] == ["find_order"]


@pytest.mark.parametrize("name", ["ask", "ask_here", "ask_later"])
def test_an_instrumented_agent_is_scored_by_its_spans(project: "Project", name: str, workers: int) -> None:
    write(project)
    words = ["Where is order 7?", "And order 8?", "And 9?"]
    cases = [{"id": f"c{at}", "input": word, "expected": EXPECTED} for at, word in enumerate(words)]
    target = {"python": f"bot:{name}", "traces": True}
    project.suite("s.eval.yaml", cases, target=target, gates=["trajectory_match >= 1", "exact_match >= 1"], **TOOLS)
    ran = project.run("--llmeval-predictions=p.jsonl", workers=workers)
    assert ran.code == 0, ran.text
    assert ran.suites["s"]["usage"]["target_tokens"] > 0
    for word, each in zip(words, predictions(project), strict=True):
        assert [message["content"] for message in each["messages"] if message["role"] == "user"] == [word]
        assert [call["name"] for call in each["tool_calls"]] == ["find_order"]
        assert set(each["usage"]) == {"input_tokens", "output_tokens", "model"}
    again = project.run("--llmeval-predictions=p.jsonl", "--llmeval-predictions-mode=replay")
    assert again.suites["s"]["metrics"] == ran.suites["s"]["metrics"]


def test_what_a_target_says_itself_counts(project: "Project") -> None:
    write(project)
    case = {"id": "a", "input": "Where?", "expected": EXPECTED}
    project.suite("s.eval.yaml", [case], target={"python": "bot:own", "traces": True}, **TOOLS)
    project.run("--llmeval-predictions=p.jsonl")
    (found,) = predictions(project)
    assert (found["answer"], found["tool_calls"], found["said"]) == ("mine", [], "It is shipped.")
    assert len(found["messages"]) == 5


@pytest.mark.parametrize(
    ("name", "expected"),
    [("record", {"answer": "It is shipped.", "order": 7}), ("bare_record", {"order": 7, "state": "shipped"})],
)
def test_spans_next_to_a_record_change_no_field(project: "Project", name: str, expected: Any) -> None:
    write(project)
    case = {"id": "a", "input": "Where?", "expected": expected}
    target = {"python": f"bot:{name}", "traces": True}
    project.suite("s.eval.yaml", [case], target=target, evaluators=[{"fields": {}}])
    ran = project.run()
    assert ran.suites["s"]["metrics"]["field_f1"]["value"] == 1, ran.text
    assert ran.suites["s"]["metrics"]["extra_fields"]["value"] == 0


def test_a_target_without_spans_answers_as_it_does(project: "Project") -> None:
    project.write("bot.py", "def answer(word):\n    return word\n")
    project.asking("s.eval.yaml", {"python": "bot:answer", "traces": True}, "a")
    project.run("--llmeval-predictions=p.jsonl")
    assert predictions(project) == ["a"]


def test_spans_go_where_the_application_sends_them_too(project: "Project") -> None:
    own = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=open("spans.txt", "w"))))
trace.set_tracer_provider(provider)
"""
    write(project, own)
    case = {"id": "a", "input": "Where?", "expected": EXPECTED}
    project.suite("s.eval.yaml", [case], target={"python": "bot:ask", "traces": True}, **TOOLS)
    ran = project.run("--llmeval-predictions=p.jsonl")
    assert ran.counts == {"passed": 1}
    assert "find_order" in (project.path / "spans.txt").read_text(encoding="utf-8")


def test_without_the_extra_every_case_says_what_to_install(project: "Project") -> None:
    project.write("conftest.py", "import sys\nsys.modules['opentelemetry.sdk.trace'] = None\n")
    project.write("bot.py", "def answer(word):\n    return word\n")
    project.asking("s.eval.yaml", {"python": "bot:answer", "traces": True}, "a")
    ran = project.run()
    assert "a target with 'traces: true' needs the extra 'otel' (" in ran.text
    assert "pytest-llmeval-suite[otel]" in ran.text


def test_only_a_python_target_has_traces(project: "Project") -> None:
    project.asking("s.eval.yaml", {"command": ["cat"], "traces": True}, "a")
    assert "target.traces: found traces beside command, expected a python target" in project.run().text
