"""Policies of the evaluator ``tools``: approval before action, and no claim of what was not done."""

from pathlib import Path
from typing import Any

import pytest
from project import load_text

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import EvaluatorError, SuiteError
from pytest_llmeval.evaluators import MessageStep
from pytest_llmeval.evaluators import _patterns as patterns

CONFIRMED = {"tool": "refund", "needs": "confirm"}
APPROVED = {"tool": "refund", "needs": {"user": "^(yes|go ahead)"}}
CLAIM = {"refund": "refund(ed)? (is|was|has been)|have refunded"}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str, *calls: Any) -> dict[str, Any]:
    made = [{"name": each, "arguments": {}} if isinstance(each, str) else each for each in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def failing(name: str) -> dict[str, Any]:
    return {"name": name, "arguments": {}, "status": "error"}


def reason(prediction: Any, **options: Any) -> str | None:
    """Return why a case fails by its policies; ``None`` where it keeps them."""
    (measured,) = score(get_evaluator("tools", **options), [Case("c", prediction=prediction)], confidence=None).cases
    if measured.reason is None:
        assert measured.metrics["tool_limits"] == 1
        return None
    assert measured.metrics["tool_limits"] in (0, None)
    return measured.reason


def talk(*messages: Any) -> dict[str, Any]:
    return {"messages": [user(each) if isinstance(each, str) else each for each in messages]}


WITHOUT = "refund() without an approval by the user that matches '^(yes|go ahead)'"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (["refund it", said("Shall I refund?"), "Yes, please", said("Done.", "refund")], None),
        (["refund it", said("Shall I?"), "yes", said("", "lookup"), said("", "refund"), said("Done.")], None),
        (["refund it", said("Shall I?"), "yes", said("One moment."), said("", "refund")], None),
        (["refund it", said("Shall I?"), "Hm.", "Yes", said("", "refund")], None),
        (["hello", said("Hello."), "bye", said("Bye.", "lookup")], None),
        (["Yes, refund it", said("Done.", "refund")], f"turn 1: found {WITHOUT}"),
        (["refund it", said("Shall I?"), "no", said("Done.", "refund")], f"turn 2: found {WITHOUT}"),
        (
            ["a", said("Shall I?"), "yes", said("To your card?"), "what else", said("Done.", "refund")],
            f"turn 3: found {WITHOUT}",
        ),
        (
            ["a", said("Shall I?"), "yes", said("", "refund"), said("", "refund"), said("", "refund")],
            f"turn 2: found {WITHOUT}: that of turn 2 was for an earlier call (and 1 more)",
        ),
        (["a", said("Shall I?"), "yes", said("", failing("refund")), said("", "refund")], None),
        (["a", said("", failing("refund"))], f"turn 1: found {WITHOUT}"),
    ],
)
def test_the_user_approves_after_the_last_proposal_and_every_call_needs_that(
    messages: Any, expected: str | None
) -> None:
    assert reason(talk(*messages), before=APPROVED) == expected


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (["confirm", "refund"], None),
        (["confirm", "confirm", "refund", "refund"], None),
        (["refund"], "call 1: found refund() without an earlier confirm"),
        (["refund", "confirm"], "call 1: found refund() without an earlier confirm"),
        ([failing("confirm"), "refund"], "call 2: found refund() without an earlier confirm"),
        (
            ["confirm", "refund", "refund"],
            "call 3: found refund() without an earlier confirm of its own: 1 served earlier calls",
        ),
        (["confirm", failing("refund"), "refund"], None),
        (["lookup"], None),
    ],
)
def test_the_call_of_a_tool_that_must_come_first_is_found_in_lists_of_calls(calls: Any, expected: str | None) -> None:
    made = [{"name": each, "arguments": {}} if isinstance(each, str) else each for each in calls]
    assert reason({"tool_calls": made}, before=CONFIRMED) == expected


def test_a_line_names_the_turn_and_the_arguments() -> None:
    messages = talk(
        "hello", said("Hello."), "refund", said("Which?"), "7", said("", {"name": "refund", "arguments": {"order": 7}})
    )
    assert reason(messages, before=[CONFIRMED]) == 'turn 3: found refund("order": 7) without an earlier confirm'


def test_rules_are_patterns_of_tools_and_may_be_several() -> None:
    rules = [{"tool": "delete_*", "needs": "confirm_*"}, {"tool": "refund", "needs": "lookup"}]
    made = talk("a", said("", "confirm_it", "delete_all", "refund"))
    assert reason(made, before=rules) == "turn 1: found refund() without an earlier lookup"


CLAIMED = "found the claim 'refund has been' without an earlier successful refund"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (["a", said("Your refund has been issued.", "refund")], None),
        (["a", said("", "refund"), said("ok"), "b", said("Your Refund has been issued.")], None),
        (["a", said("I can refund it.")], None),
        (["refund has been issued?", said("No.")], None),
        (["a", said("Your refund has been issued.")], f"turn 1: {CLAIMED}"),
        (["a", said("hm"), "b", said("The refund has been issued."), "c", said("", "refund")], f"turn 2: {CLAIMED}"),
        (["a", said("Your refund has been issued.", failing("refund"))], f"turn 1: {CLAIMED}: an earlier call failed"),
        (["a", said("Your refund has been issued.", "lookup")], f"turn 1: {CLAIMED}"),
    ],
)
def test_what_was_not_done_may_not_be_claimed(messages: Any, expected: str | None) -> None:
    assert reason(talk(*messages), says_did_not=CLAIM) == expected


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        ({"answer": "Your refund has been made.", "tool_calls": []}, f"answer: {CLAIMED}"),
        ({"answer": "Your refund has been made.", "tool_calls": [{"name": "refund"}]}, None),
        ({"answer": "No.", "tool_calls": []}, None),
        (
            {"tool_calls": []},
            "undecided: says_did_not refund: the prediction has no messages and no answer",
        ),
        (
            {"answer": "Done.", "messages": [user("a"), said("Done.")], "tool_calls": [{"name": "refund"}]},
            "undecided: says_did_not refund: the messages have 0 of 1 tool calls",
        ),
    ],
)
def test_an_answer_comes_after_all_calls(prediction: Any, expected: str | None) -> None:
    assert reason(prediction, says_did_not=CLAIM) == expected


def test_a_rule_about_messages_is_undecided_without_messages_and_the_case_fails() -> None:
    evaluator = get_evaluator("tools", before=APPROVED)
    cases = [
        Case("calls", prediction={"tool_calls": [{"name": "refund"}]}),
        Case("other", prediction={"tool_calls": [{"name": "lookup"}]}),
    ]
    result = score(evaluator, cases, confidence=None)
    assert [each.outcome for each in result.cases] == ["failed", "passed"]
    why = "before refund: the prediction has no messages"
    assert result.cases[0].absent["tool_limits"] == why
    assert result.cases[0].reason == f"undecided: {why}"
    metric = result.metrics["tool_limits"]
    assert (metric.value, metric.scored, metric.abstained, metric.undefined) == (1, 1, 1, 0)


def test_a_broken_rule_counts_though_another_is_undecided() -> None:
    evaluator = get_evaluator("tools", before=APPROVED, forbidden=["refund"])
    observed = evaluator.measure(Case("c", prediction={"tool_calls": [{"name": "refund"}]}))
    assert evaluator.scores(observed)["tool_limits"] == 0
    assert not observed.undefined.keys() & {"tool_limits"}


def test_the_rules_are_a_part_of_the_signature() -> None:
    def signature(**options: Any) -> str:
        return next(
            each.signature for each in get_evaluator("tools", **options).describe() if each.name == "tool_limits"
        )

    found = [signature(forbidden=["x"], **more) for more in ({}, {"before": CONFIRMED}, {"says_did_not": CLAIM})]
    assert len(set(found)) == 3


ANTHROPIC = [
    {"role": "user", "content": "Refund it."},
    {"role": "assistant", "content": [{"type": "text", "text": "Shall I?"}]},
    {"role": "user", "content": [{"type": "text", "text": "Yes."}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "refund", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "ok"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Your refund has been made."}]},
]
OPENAI = [
    {"role": "system", "content": "You work for a shop."},
    user("Refund it."),
    {"role": "assistant", "content": "Shall I?"},
    user("Yes."),
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "refund", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "ok"},
    {"role": "assistant", "content": "Your refund has been made."},
]
RESPONSES = [
    user("Refund it."),
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Shall I?"}]},
    user("Yes."),
    {"type": "function_call", "call_id": "1", "name": "refund", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "1", "output": "ok"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Your refund has been made."}],
    },
]
GEMINI = [
    {"role": "user", "parts": [{"text": "Refund it."}]},
    {"role": "model", "parts": [{"text": "Shall I?"}]},
    {"role": "user", "parts": [{"text": "Yes."}]},
    {"role": "model", "parts": [{"functionCall": {"name": "refund", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "refund", "response": {}}}]},
    {"role": "model", "parts": [{"text": "Your refund has been made."}]},
]
LANGCHAIN = [
    {"type": "human", "content": "Refund it."},
    {"type": "ai", "content": "Shall I?"},
    {"type": "human", "content": "Yes."},
    {"type": "ai", "content": "", "tool_calls": [{"name": "refund", "args": {}, "id": "1"}]},
    {"type": "tool", "content": "ok", "tool_call_id": "1"},
    {"type": "ai", "content": "Your refund has been made."},
]


def pydantic_ai_messages() -> Any:
    from pydantic_ai.messages import (
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    messages = [
        ModelRequest([UserPromptPart("Refund it.")]),
        ModelResponse([TextPart("Shall I?")]),
        ModelRequest([UserPromptPart("Yes.")]),
        ModelResponse([ToolCallPart("refund", {}, "1")]),
        ModelRequest([ToolReturnPart("refund", "ok", "1")]),
        ModelResponse([TextPart("Your refund has been made.")]),
    ]
    return ModelMessagesTypeAdapter.dump_python(messages, mode="json")


FORMS = {
    "anthropic": ANTHROPIC,
    "openai": OPENAI,
    "responses": RESPONSES,
    "gemini": GEMINI,
    "langchain": LANGCHAIN,
    "pydantic-ai": pydantic_ai_messages(),
}


@pytest.mark.parametrize("form", FORMS)
def test_policies_read_all_forms_of_messages(form: str) -> None:
    messages: Any = FORMS[form]
    kept = [(step.role, step.text) for step in MessageStep.read_messages(messages) if step.role and step.text]
    assert kept == [
        ("user", "Refund it."),
        ("assistant", "Shall I?"),
        ("user", "Yes."),
        ("assistant", "Your refund has been made."),
    ]
    assert reason(messages, before=APPROVED, says_did_not=CLAIM) is None
    denied = [each for each in messages if "Yes." not in str(each)]
    assert reason(denied, before=APPROVED) == f"turn 1: found {WITHOUT}"
    *others, _, _, last = messages
    undone = [*others, last]
    assert str(reason(undone, says_did_not=CLAIM)).startswith("turn 2: found the claim 'refund has been'")


def test_a_pattern_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SEARCH_S", 0.01)
    evaluator = get_evaluator("tools", says_did_not={"refund": "(a|aa)+$"})
    with pytest.raises(EvaluatorError, match=r"searched for 0\.01 s without result"):
        evaluator.measure(Case("c", prediction=talk("a", said("a" * 60 + "b"))))


def test_faults_have_their_places(tmp_path: Path) -> None:
    text = """\
evaluators:
  - tools: {before: {tool: refund, needs: {user: "(yes"}}}
  - tools: {before: [{tool: a, need: b}, {tool: 3, needs: b}]}
    as: b
  - tools: {says_did_not: {refund: "["}}
    as: c
cases: [{id: a, prediction: []}]
"""
    with pytest.raises(SuiteError) as caught:
        load_text(text, tmp_path)
    found = [str(each).removeprefix("s.eval.yaml:") for each in caught.value.faults]
    unknown = "unknown key need, did you mean needs?"
    no_pattern = "which does not compile ({}), expected a regular expression"
    first = no_pattern.format("missing ) at character 5")
    last = no_pattern.format("unterminated character set at character 2")
    assert found == [
        f"2:50  evaluators[0].tools.before.needs.user: found the pattern '(yes', {first}",
        f"3:32  evaluators[1].tools.before[0].need: {unknown}",
        "3:49  evaluators[1].tools.before[1].tool: found the number 3, expected text",
        f"5:27  evaluators[2].tools.says_did_not: refund: found the pattern '[', {last}",
    ]
