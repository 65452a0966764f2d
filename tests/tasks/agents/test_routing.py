"""Routing: estimates, intervals and gates against a scripted model whose errors are known, and lists of tools."""

import json
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from project import cases_of, load_source, load_text

from pytest_llmeval import get_evaluator, score
from pytest_llmeval.core import Case, EvaluatorError, Observation
from pytest_llmeval.run._execute import execute
from pytest_llmeval.run._job import CaseAnswer
from pytest_llmeval.tasks.agents import read_catalogue
from pytest_llmeval.tasks.agents._routing import ToolsSource

TOOLS = [f"tool_{number:02}" for number in range(40)]
PER_TOOL, QUIET = 7, 20


def calls(*names: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name in names]}


def scripted() -> list[Case]:
    """Return 300 cases: tool N loses N // 10 of seven to the one before; 4 of 20 requests for nothing call tool 0."""
    cases = []
    for number, tool in enumerate(TOOLS):
        for row in range(PER_TOOL):
            fired = TOOLS[number - 1] if row < number // 10 else tool
            cases.append(Case(f"{tool} {row}", "ask", {"expect": tool}, calls(fired)))
    quiet = [calls(*TOOLS[:1] * (row < 4)) for row in range(QUIET)]
    return [*cases, *(Case(f"quiet {row}", "ask", {"expect": "none"}, each) for row, each in enumerate(quiet))]


def low(hits: int, cases: int, family: int) -> float:
    """Return the lower end of the score interval, as its definition says: where the test just accepts the share."""
    z = NormalDist().inv_cdf(1 - 0.025 / family)
    lower, upper = 0.0, hits / cases
    for _ in range(60):
        middle = (lower + upper) / 2
        accepts = abs(hits / cases - middle) <= z * (middle * (1 - middle) / cases) ** 0.5
        lower, upper = (lower, middle) if accepts else (middle, upper)
    return upper


def test_known_error_rates_are_estimated_with_intervals_of_the_whole_family() -> None:
    metrics = score(get_evaluator("routing"), scripted()).metrics
    for number, tool in enumerate(TOOLS):
        lost, won = number // 10, (number + 1) // 10 if number + 1 < len(TOOLS) else 0
        alarms = 4 if number == 0 else 0
        recall, precision = metrics[f"route_recall[{tool}]"], metrics[f"route_precision[{tool}]"]
        assert recall.value == pytest.approx((PER_TOOL - lost) / PER_TOOL)
        assert precision.value == pytest.approx((PER_TOOL - lost) / (PER_TOOL - lost + won + alarms))
        assert recall.low is None or recall.low <= recall.value
    assert metrics["worst_recall"].value == pytest.approx(4 / 7)
    assert metrics["worst_recall_low"].value == pytest.approx(low(4, 7, 41))
    assert metrics["worst_precision"].value == pytest.approx(4 / 7)
    assert metrics["false_alarms"].value == pytest.approx(0.2)
    assert (metrics["route_recall[(none)]"].value, metrics["route_precision[(none)]"].value) == (0.8, 1.0)
    assert metrics["routing_accuracy"].value == pytest.approx((300 - 60 - 4) / 300)


def test_silence_has_no_precision_to_be_proud_of() -> None:
    silent = [Case(str(n), "ask", {"expect": "refund"}, calls()) for n in range(40)]
    metrics = score(get_evaluator("routing"), silent).metrics
    assert metrics["worst_recall"].value == metrics["worst_precision"].value == 0.0


def observed(expected: Any, prediction: Any, **options: Any) -> Observation:
    return get_evaluator("routing", **options).measure(Case("a", "ask", expected, prediction))


def test_answer_without_calls_of_a_known_form_is_errored_and_not_quiet() -> None:
    assert observed({"expect": "none"}, "I would refund it").errored
    quiet = observed({"expect": "none"}, "null")
    assert (quiet.errored, quiet.counts["routing.right"]) == ({}, 1.0)
    reply = '{"tool": "refund", "arguments": {"order": 4, "x": 1}}'
    named = observed({"expect": "refund", "args": {"order": 4}}, reply)
    assert (named.counts["routing.right"], named.counts["arguments.right"]) == (1.0, 1.0)
    assert observed({"expect": "refund"}, '{"answer": 3}').errored


def test_only_siblings_are_wrong_where_others_are_allowed() -> None:
    both = calls("search", "refund", "cancel")
    assert observed({"expect": "refund", "not": ["cancel"]}, both).counts["routing.right"] == 0.0
    assert observed({"expect": "refund"}, both, others="allowed").counts["routing.right"] == 1.0
    assert observed({"expect": "refund", "not": ["cancel"]}, both, others="allowed").details == {
        "wrong": ["found search, refund, cancel, expected refund"]
    }
    assert observed({"expect": "refund"}, calls("search", "refund"), ignore=["sea*"]).counts["routing.right"] == 1.0


SCHEMA = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
FORMS = {
    "openai": [{"type": "function", "function": {"name": "refund", "description": "Pay back", "parameters": SCHEMA}}],
    "anthropic": [{"name": "refund", "description": "Pay back", "input_schema": SCHEMA}],
    "mcp": {"result": {"tools": [{"name": "refund", "description": "Pay back", "inputSchema": SCHEMA}]}},
}


def test_lists_of_tools_are_read_in_every_form(here: Path) -> None:
    for form, data in FORMS.items():
        (here / "tools.json").write_text(json.dumps(data), encoding="utf-8")
        (tool,) = read_catalogue(here / "tools.json").values()
        assert (tool.name, tool.description, tool.parameters) == ("refund", "Pay back", SCHEMA), form
    skill = here / "skills" / "pdf" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: pdf\ndescription: >\n  Reads PDF.\n---\n# PDF\n", encoding="utf-8")
    assert read_catalogue(here / "skills")["pdf"].description == "Reads PDF.\n"
    options = {"tools": str(here / "skills")}
    assert observed("pdf", calls("Skill", skill="pdf"), **options).counts["routing.right"] == 1.0
    assert observed("pdf", calls("Skill", command="/pdf"), **options).counts["routing.right"] == 1.0
    assert "'docx', which is no tool" in str(observed("pdf", calls("Skill", skill="docx"), **options).malformed)
    skill.write_text("# PDF\n", encoding="utf-8")
    with pytest.raises(EvaluatorError, match="name is missing at the top"):
        read_catalogue(here / "skills")


def test_arguments_must_be_valid_and_tools_of_the_list(here: Path) -> None:
    (here / "tools.json").write_text(json.dumps(FORMS["mcp"]), encoding="utf-8")
    options = {"tools": str(here / "tools.json")}
    assert observed("refund", calls("refund", order=4), **options).counts["arguments.right"] == 1.0
    assert observed("refund", calls("refund", order="four"), **options).counts["arguments.right"] == 0.0
    assert "no tool of the list" in str(observed("refund", calls("pay"), **options).malformed)
    unknown = get_evaluator("routing", **options).check(Case("a", "ask", {"expect": "refnd"}))
    assert list(unknown) == ["unknown tool refnd, did you mean refund?"]


def test_rows_name_tools_that_exist(here: Path) -> None:
    (here / "tools.json").write_text(json.dumps(FORMS["openai"]), encoding="utf-8")
    rows = [
        {"ask": "Pay back order 4", "expect": "refund", "args": {"order": 4}, "labels": {"hard": True}},
        {"ask": "Hello", "expect": "none"},
        {"ask": "", "expect": "refnd", "nott": 1},
        {"ask": "x", "expect": "refund", "not": ["refund"]},
        {"ask": "x"},
    ]
    (here / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    cases, faults = load_source("tools", here, path="rows.jsonl")
    assert [(each.labels, each.input["ask"]) for each in cases] == [
        ({"hard": "True", "tool": "refund"}, "Pay back order 4"),
        ({"tool": "none"}, "Hello"),
    ]
    assert cases[0].input["tools"] == [{"name": "refund", "description": "Pay back", "parameters": SCHEMA}]
    assert [each.partition("  ")[2][:45] for each in faults] == [
        "nott: unknown key nott, did you mean not?",
        "ask: found an empty text, expected a request",
        "expect: unknown tool refnd, did you mean refu",
        "not: found 'refund', which is expected, expec",
        "expect is missing",
    ]
    plain, _ = cases_of(ToolsSource(path="rows.jsonl", show=False), here)
    assert plain[0].input == "Pay back order 4"


def test_the_reason_of_a_missed_limit_begins_with_the_wrong_call(tmp_path: Path) -> None:
    text = "evaluators: [routing]\nthresholds: {routing_accuracy: 1}\ncases: [{id: a, input: x, expected: none}]\n"
    suite = load_text(text, tmp_path)
    record = execute(suite, CaseAnswer(suite.cases[0].answered(calls("pdf")))).record
    assert record.reason == "routing: found pdf, expected none; routing_accuracy 0.0000, limit >= 1"
