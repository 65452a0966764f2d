"""The evaluator ``tools``: names, order, arguments, limits and schemas."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import Case, EvaluatorError, get_evaluator, score
from pytest_llmeval.core import Reading
from pytest_llmeval.evaluators import _patterns as patterns
from pytest_llmeval.evaluators import _schemas as schemas
from pytest_llmeval.tasks.agents._tools import Tools


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def evaluated(expected: Any, made: Any, **options: Any) -> dict[str, Any]:
    return get_evaluator("tools", **options).evaluate(made, expected)


def test_names_are_compared_as_multisets() -> None:
    result = evaluated(["a", "a", "b"], [call("a"), call("c"), call("b"), call("d")])
    assert (result["tool_precision"], result["tool_recall"], result["tool_f1"]) == (2 / 4, 2 / 3, 4 / 7)
    assert result["tool_calls"] == 4


def test_rates_are_pooled_over_calls() -> None:
    cases = [
        Case("1", expected=["a", "b", "c"], prediction=[call("a"), call("b"), call("c")]),
        Case("2", expected=["a"], prediction=[call("b")]),
        Case("3", expected=[], prediction=[]),
    ]
    metrics = score(get_evaluator("tools"), cases, confidence=None).metrics
    assert metrics["tool_precision"].value == metrics["tool_recall"].value == 3 / 4
    assert metrics["trajectory_match"].value == 2 / 3
    assert metrics["tool_f1"].mean == 2 / 3


@pytest.mark.parametrize(
    ("order", "matching"),
    [
        ("exact", {"ab"}),
        ("in_order", {"ab", "acb", "abb"}),
        ("any_order", {"ab", "ba"}),
        ("superset", {"ab", "ba", "acb", "abb", "bca"}),
        ("subset", {"ab", "ba", "a", "b", ""}),
    ],
)
def test_the_trajectory_matches_by_order(order: str, matching: set[str]) -> None:
    traces = ["ab", "ba", "acb", "abb", "bca", "a", "b", "", "aa", "cd"]
    evaluator = get_evaluator("tools", order=order)
    found = {
        trace for trace in traces if evaluator.evaluate([call(each) for each in trace], ["a", "b"])["trajectory_match"]
    }
    assert found == matching


def test_a_recall_without_expected_calls_is_one_whatever_was_called() -> None:
    result = evaluated([], [call("a")])
    assert (result["tool_precision"], result["tool_recall"], result["tool_f1"]) == (0, 1, 0)


@pytest.mark.parametrize("expected", [None, "an answer", {"answer": "x"}])
def test_without_expected_calls_only_counts_are_defined(expected: Any) -> None:
    result = evaluated(expected, [call("a"), call("a"), {"name": "b", "status": "error"}])
    defined = {name for name, value in result.items() if value is not None}
    assert defined == {"tool_calls", "tool_errors", "loops"}
    assert (result["tool_calls"], result["tool_errors"], result["loops"]) == (3, 1, 1)


@pytest.mark.parametrize(
    ("prediction", "reason"),
    [
        (None, "found null, expected a list of tool calls or messages"),
        ("I looked it up.", "found text 'I looked it up.', expected a list of tool calls or messages"),
        ({"answer": "x"}, "found an object with answer, expected a list of tool calls, or tool_calls or messages"),
    ],
)
def test_a_missing_trace_is_an_error_of_every_metric(prediction: Any, reason: str) -> None:
    evaluator = get_evaluator("tools", max_calls=3)
    observation = evaluator.measure(Case("a", expected=["a"], prediction=prediction))
    assert observation.errored == {metric.name: reason for metric in evaluator.describe()}
    assert observation.counts == {}


def test_a_call_of_another_form_fails_its_case() -> None:
    calls = [3, {"arguments": {}}, {"name": "a", "arguments": [1]}, {"name": "a", "arguments": '{"x": '}]
    observation = get_evaluator("tools").measure(Case("a", expected=["a"], prediction=calls))
    assert observation.malformed is not None
    assert observation.malformed.split("; ") == [
        "tool_calls[0]: found number 3, expected an object with name and arguments",
        "tool_calls[1].name: found null, expected the name of a tool",
        "tool_calls[2].arguments: found a list, expected an object",
        "tool_calls[3].arguments: found truncated JSON (the text ends with '{\"x\":'), expected all of it",
    ]


@pytest.mark.parametrize(
    ("options", "expected", "made", "agrees"),
    [
        ({}, {"a": 1}, {"a": 1}, True),
        ({}, {"a": 1}, {"a": 1.0}, True),
        ({}, {"a": 1}, {"a": 1, "b": 2}, False),
        ({}, {"a": 1, "b": 2}, {"a": 1}, False),
        ({}, {"a": True}, {"a": 1}, False),
        ({}, {}, {}, True),
        ({"arguments": "partial"}, {"a": {"x": 1}}, {"a": {"x": 1, "y": 2}, "b": 2}, True),
        ({"arguments": "partial"}, {"a": 1, "b": 2}, {"a": 1}, False),
        ({"arguments": "partial"}, {"a": {}}, {"a": []}, False),
        ({"arguments": "partial"}, {"a": {"b": None}}, {"a": "x"}, False),
        ({"arguments": "partial"}, {"a": {}}, {"a": {"x": 1}}, True),
        ({"arguments": "partial", "compare": {"t": {"a": "list"}}}, {"a": []}, {"a": {}}, False),
        ({"arguments": "partial", "compare": {"t": {"a": "list"}}}, {"a": []}, {"a": [1]}, True),
        ({"arguments": "partial", "ignore_arguments": ["a"]}, {"a": {}}, {"a": []}, True),
        ({}, {"a": None}, {}, True),
        ({"arguments": "partial"}, {"a": None}, {"a": 1}, True),
        ({"null_arguments": "value"}, {"a": None, "b": {"c": None}}, {"a": None, "b": {"c": None}}, True),
        ({"null_arguments": "value"}, {"a": None}, {}, False),
        ({"null_arguments": "value"}, {}, {"a": None}, False),
        ({"null_arguments": "value"}, {"b": {"a": None}}, {"b": {}}, False),
        ({"null_arguments": "value", "arguments": "partial"}, {"a": None}, {"a": 1}, False),
        ({"null_arguments": "value", "arguments": "partial"}, {}, {"a": None}, True),
        ({"null_arguments": "value", "ignore_arguments": ["a"]}, {"a": None}, {}, True),
        ({"null_arguments": "value", "compare": {"t": {"a": "text"}}}, {"a": None}, {"a": "null"}, False),
        ({"null_arguments": "value", "defaults": {"t": {"a": None}}}, {"a": None}, {}, True),
        ({"ignore_arguments": ["*_id"]}, {"a": 1}, {"a": 1, "trace_id": 7}, True),
        ({"ignore_arguments": ["a"]}, {"a": 1, "b": 2}, {"a": 3, "b": 2}, True),
        ({"ignore_arguments": ["meta"]}, {"meta": {"x": 1}}, {"meta": {"x": 2}}, True),
        ({"ignore_arguments": ["meta.x"]}, {"meta": {"x": 1, "y": 1}}, {"meta": {"x": 2, "y": 1}}, True),
        ({"ignore_arguments": ["meta.x"]}, {"meta": {"x": 1, "y": 1}}, {"meta": {"x": 2, "y": 2}}, False),
        ({"defaults": {"t": {"limit": 10}}}, {"q": "x"}, {"q": "x", "limit": 10}, True),
        ({"defaults": {"t*": {"limit": 10}}}, {"q": "x", "limit": 10}, {"q": "x"}, True),
        ({"defaults": {"t": {"limit": 10}}}, {"q": "x"}, {"q": "x", "limit": 20}, False),
        ({"defaults": {"u": {"limit": 10}}}, {"q": "x"}, {"q": "x", "limit": 10}, False),
        ({"compare": {"*": {"q": "text"}}}, {"q": "Big  Ben"}, {"q": "big ben"}, True),
        ({"compare": {"t": {"when": "date", "n": {"number": {"tolerance": 1}}}}},
         {"when": "2024-03-05", "n": 3}, {"when": "5 March 2024", "n": 4}, True),
        ({"compare": {"t": {"tags": "list"}}}, {"tags": [1, 2]}, {"tags": [2, 1]}, True),
    ],
)  # fmt: skip
def test_arguments_agree(options: Any, expected: Any, made: Any, agrees: bool) -> None:
    result = evaluated([{"name": "t", "arguments": expected}], [{"name": "t", "arguments": made}], **options)
    assert result["argument_accuracy"] == agrees
    # A second pair takes the way through the pairing.
    other = call("t", zzz=1)
    two = evaluated([{"name": "t", "arguments": expected}, other], [other, {"name": "t", "arguments": made}], **options)
    assert two["argument_accuracy"] == (1 + agrees) / 2


def test_lines_name_types_that_clash_and_nulls() -> None:
    partial = evaluated([call("t", a={})], [call("t", a=[])], arguments="partial")
    assert partial["wrong"] == ["t: a: extra, found []"]
    distinct = evaluated([call("t", a=None, b=1)], [call("t", b=None)], null_arguments="value")
    assert distinct["wrong"] == ["t: b: found null, expected 1", "t: a: missing, expected null"]


def test_calls_are_paired_so_that_most_arguments_agree() -> None:
    expected = [call("s", q="a"), call("s", q="b"), call("s", q="c")]
    made = [call("s", q="c"), call("s", q="x"), call("s", q="a")]
    for options in ({}, {"arguments": "partial"}):
        result = evaluated(expected, made, **options)
        assert result["argument_accuracy"] == 2 / 3
        assert result["wrong"] == ['s: q: found "x", expected "b"']


def test_expected_calls_that_state_no_arguments_are_not_compared() -> None:
    result = evaluated([{"name": "s"}, call("s", q="a")], [call("s", q="a"), call("s", q="z")])
    assert result["argument_accuracy"] == 1
    assert evaluated(["s"], [call("s", q="a")])["argument_accuracy"] is None


def test_every_unpaired_call_and_wrong_order_is_listed() -> None:
    result = evaluated([call("a", x=1), "b"], [call("b"), call("c", y="ü")])
    assert result["wrong"] == ['missing call: a("x": 1)', 'extra call: c("y": "ü")']
    assert evaluated(["a", "b"], [call("b"), call("a")])["wrong"] == ["order: found b, a, expected a, b"]


def test_failed_calls_count_as_calls_but_are_not_compared() -> None:
    made = [{"name": "a", "status": "error"}, {"name": "a", "status": "success"}]
    result = evaluated(["a"], made)
    assert (result["trajectory_match"], result["tool_calls"], result["tool_errors"]) == (1, 2, 1)
    assert evaluated(["a"], made, include_failed=True)["trajectory_match"] == 0


def test_ignored_tools_are_no_calls() -> None:
    made = [call("a", x=1), call("log_step"), call("log_step"), call("final_result", answer="a")]
    result = evaluated([call("a", x=1), "log_step"], made, ignore=("log_*", "final_result"))
    assert (result["trajectory_match"], result["tool_f1"], result["tool_calls"], result["loops"]) == (1, 1, 1, 0)
    assert evaluated([call("a", x=1)], made)["trajectory_match"] == 0


def test_loops_are_calls_made_again_with_the_same_arguments() -> None:
    made = [call("a", x=1), call("b"), call("a", x=2), call("a", x=1), call("b"), call("b"), call("a", x=True)]
    assert evaluated(None, made)["loops"] == 3
    assert evaluated(None, [call("a", n=1, r_id=1), call("a", n=1, r_id=2)])["loops"] == 0
    nested = [call("a", at={"x": 1}), call("a", at={"x": 2})]
    assert [evaluated(None, calls)["loops"] for calls in (nested, [*nested, call("a", at={"x": 1.0})])] == [0, 1]
    ignored = {"ignore_arguments": ["*_id"]}
    assert evaluated(None, [call("a", n=1, r_id=1), call("a", n=1, r_id=2)], **ignored)["loops"] == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_calls": 2}, "found 3 tool calls, expected at most 2"),
        ({"max_calls": 3}, None),
        ({"forbidden": ["delete_*"]}, 'found delete_user("id": 7), expected no call of delete_*'),
        ({"forbidden": ["drop_*"], "required": ["look?p"]}, None),
        ({"required": ["book"]}, "found lookup, delete_user, expected a call of book"),
        ({"required": ["pay"]}, "found lookup, delete_user, expected a call of pay"),
    ],
)
def test_a_limit_that_is_not_kept_fails_the_case(options: Any, reason: str | None) -> None:
    made = [call("lookup"), call("delete_user", id=7), {"name": "pay", "status": "failed"}]
    evaluator = get_evaluator("tools", **options)
    observation = evaluator.measure(Case("a", prediction=made))
    assert observation.malformed == reason
    assert evaluator.scores(observation)["tool_limits"] == (reason is None)


SCHEMAS = {"s": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}


def test_calls_are_valid_by_the_schema_of_their_tool() -> None:
    result = evaluated(None, [call("s", q="x"), call("s", q=3), call("s"), call("t")], schemas=SCHEMAS)
    assert result["tools_valid"] == 1 / 4
    assert result["wrong"] == [
        "not valid: s.q: 3 is not of type 'string'",
        "not valid: s: 'q' is a required property",
        "not valid: unknown tool t, expected one of s",
    ]
    assert evaluated(None, [], schemas=SCHEMAS)["tools_valid"] is None


@pytest.mark.parametrize(
    "content",
    [
        SCHEMAS,
        [{"type": "function", "function": {"name": "s", "parameters": SCHEMAS["s"]}}],
        [{"name": "s", "input_schema": SCHEMAS["s"]}],
        [{"name": "s", "inputSchema": SCHEMAS["s"]}],
        {"instructions": "", "tools": [{"name": "s", "inputSchema": SCHEMAS["s"]}]},
    ],
    ids=["by-name", "openai", "anthropic", "mcp", "mcp-snapshot"],
)
def test_schemas_are_read_from_a_file(content: Any, tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(content))
    assert evaluated(None, [call("s", q="x"), call("s")], schemas_file=str(path))["tools_valid"] == 1 / 2


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"order": "inorder"}, "found the text 'inorder' (did you mean 'in_order'?), expected"),
        ({"max_calls": -1}, "found max_calls -1, expected at least 0"),
        ({"schemas": {"s": {"type": "strin"}}}, "s.type: 'strin' is not valid"),
        ({"schemas": {"s": 3}}, "s: found number 3, expected a JSON Schema"),
        ({"schemas": SCHEMAS, "schemas_file": "x"}, "found both schemas and schemas_file, expected one of them"),
        ({"compare": {"s": {"a": "text", "a.b": "text"}}}, "found 'a.b' inside 'a'"),
    ],
)
def test_faulty_options_are_named(options: Any, fault: str) -> None:
    with pytest.raises(EvaluatorError) as raised:
        get_evaluator("tools", **options)
    assert fault in str(raised.value)


def test_a_schema_fetches_nothing() -> None:
    evaluator = get_evaluator("tools", schemas={"s": {"$ref": "https://example.org/schema.json"}})
    with pytest.raises(EvaluatorError, match=r"schema of 's': the schema refers to 'https://example\.org"):
        evaluator.measure(Case("a", prediction=[call("s")]))


def test_a_slow_pattern_in_the_schema_of_a_tool_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (patterns, schemas):
        monkeypatch.setattr(module, "SEARCH_S", 0.01)
    evaluator = get_evaluator("tools", schemas={"s": {"properties": {"q": {"pattern": "(a|aa)+$"}}}})
    with pytest.raises(EvaluatorError, match=r"schema of 's': the pattern .* searched for 0\.01 s without result"):
        evaluator.measure(Case("c", prediction=[call("s", q="a" * 60 + "b")]))


def test_faulty_expected_calls_and_schema_files_are_faults(tmp_path: Path) -> None:
    case = Case("a", expected=["", {"name": 3}, {"name": "a", "arguments": []}, call("ok")])
    assert list(get_evaluator("tools").check(case)) == [
        "tool_calls[0]: found an empty text, expected a name",
        "tool_calls[1].name: found number 3, expected the name of a tool",
        "tool_calls[2].arguments: found a list, expected an object",
    ]
    (tmp_path / "tools.json").write_text("3")
    evaluator = get_evaluator("tools", schemas_file=str(tmp_path / "tools.json"))
    (fault,) = evaluator.check(Case("a"))
    assert fault == "schemas: tools.json: found number 3, expected tools by name, or a list of definitions"


def test_schemas_reach_other_processes() -> None:
    tools = get_evaluator("tools", schemas={"search": {"required": ["q"]}})
    made = Case("a", expected=["search"], prediction=[call("search")])
    assert pickle.loads(pickle.dumps(tools)).measure(made) == tools.measure(made)


def test_lines_about_calls_of_a_conversation_name_the_turn() -> None:
    def called(name: str, **arguments: Any) -> dict[str, Any]:
        return {"role": "assistant", "tool_calls": [{"name": name, "arguments": arguments}]}

    said = [{"role": "user", "content": each} for each in ("Look.", "Book it.", "And this.")]
    messages = [said[0], called("look", at=1), said[1], called("book", train=2), said[2], called("pay")]
    expected = [{"name": "look", "arguments": {"at": 1}}, {"name": "book", "arguments": {"train": 1}}]
    for prediction in (
        messages,
        {"messages": messages, "tool_calls": [each["tool_calls"][0] for each in messages[1::2]]},
    ):
        (view,) = Reading.for_evaluator(Tools()).views(Case("a", expected=expected, prediction=prediction))
        wrong = Tools().measure(view).details["wrong"]
        assert wrong == ["turn 3: extra call: pay()", "turn 2: book: train: found 2, expected 1"]
    (view,) = Reading.for_evaluator(Tools()).views(Case("a", expected=expected, prediction={"messages": messages[:2]}))
    assert Tools().measure(view).details["wrong"] == ['missing call: book("train": 1)']
