"""Outcomes: the state that an agent leaves behind, beside its answer, of single answers and of conversations."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project, Ran

AGENT = """
def _state(word):
    return {"orders": [{"id": 7, "status": "refunded" if word == "refund" else "open", "total": 12.5}], "log": [word]}


def answer(word):
    return {"answer": f"Done: {word}.", "state": _state(word)}


def reply(messages):
    done = [each["content"] for each in messages if each["role"] == "user"]
    return {"answer": f"Done: {done[-1]}.", "state": _state(done[-1]) | {"log": done}}
"""

SUITE = """
suite: s
target: agent:TARGET
parts: {outcome: state}
evaluators:
  - text: {metrics: [exact_match]}
  - fields: {"orders": {list: {key: id}}}
    on: outcome
    as: state
checks:
  - {json_subset: {orders: [{id: 7}]}, on: outcome}
  - {regex: '^(open|refunded)$', on: "state.orders[0].status"}
  - {equals: refunded, on: "outcome.orders[0].status", name: refunded}
thresholds: {exact_match: 1}
cases:
  - id: refund
    CASE: refund
    expected:
      answer: "Done: refund."
      outcome: {orders: [{id: 7, status: refunded, total: 12.5}]}
  - id: order
    CASE: order
    expected: {outcome: {orders: [{id: 7, status: refunded, total: 12.5}]}}
"""


def ran(project: "Project", target: str, entry: str, *args: str, workers: int = 0) -> "Ran":
    project.write("agent.py", AGENT)
    text = SUITE.replace("TARGET", target)
    for word in ("refund", "order"):
        text = text.replace(f"CASE: {word}", f"{entry}: " + (word if entry == "input" else f"[hello, {word}]"))
    if entry == "input":  # a plain answer has the state where the target put it; a transcript has it as a part, too
        text = text.replace('"outcome.orders', '"state.orders')
    project.write("s.eval.yaml", text)
    return project.run(*args, workers=workers)


@pytest.mark.parametrize(("target", "entry"), [("answer", "input"), ("reply", "messages")])
def test_the_state_beside_the_answer_is_read_by_checks_and_fields(
    project: "Project", target: str, entry: str, workers: int
) -> None:
    found = ran(project, target, entry, "--llmeval-predictions=p.jsonl", workers=workers)
    assert found.outcomes("s") == {"refund": "passed", "order": "failed"}
    cases = {each["id"]: each for each in found.suites["s"]["cases"]}
    assert cases["refund"]["metrics"]["exact_match"] == 1
    assert cases["order"]["metrics"]["exact_match"] is None  # nothing is expected of its answer
    fields = {name: value for name, value in cases["order"]["metrics"].items() if "status" in name}
    assert fields
    assert set(fields.values()) == {0}
    place = "state" if entry == "input" else "outcome"
    assert f"refunded: found 'open' at {place}.orders[0].status, expected equals: 'refunded'" in found.text
    again = project.run("--llmeval-predictions=p.jsonl", "--llmeval-predictions-mode=replay", workers=workers)
    assert again.suites["s"]["cases"] != []
    assert [each["metrics"] for each in again.suites["s"]["cases"]] == [each["metrics"] for each in cases.values()]


def test_a_missing_outcome_is_an_error_and_not_a_failure(project: "Project") -> None:
    project.write("agent.py", "def answer(word):\n    return {'answer': word}\n")
    checks = [{"json_subset": {"a": 1}, "on": "outcome"}]
    project.suite("s.eval.yaml", [{"id": "a", "input": "a"}], target="agent:answer", checks=checks)
    found = project.run()
    assert found.outcomes("s") == {"a": "errored"}
    assert "the prediction has the keys answer; no 'outcome'; set parts.outcome" in found.text


CLERK = """
def clerk(messages):
    *_, last = messages
    turn = sum(each["role"] == "user" for each in messages)
    goal, word = messages[0]["content"], last["content"]
    refund = {"name": "refund", "arguments": {"order": 7}}
    if turn == 1 and goal != "rash":
        return "Shall I refund order 7?"
    if goal == "rash" or word == "yes" and goal != "liar":
        return {"answer": "Your refund has been made.", "tool_calls": [refund]}
    return "Your refund has been made." if goal == "liar" else "As you wish."
"""


def test_an_agent_that_skips_the_approval_or_lies_fails_with_turn_and_reason(project: "Project", workers: int) -> None:
    project.write("agent.py", CLERK)
    rules = {"before": {"tool": "refund", "needs": {"user": "^yes"}}, "says_did_not": {"refund": "refund has been"}}
    cases = [{"id": goal, "messages": [goal, "yes"]} for goal in ("honest", "rash", "liar")]
    evaluators = [{"tools": rules}]
    project.suite("s.eval.yaml", cases, target="agent:clerk", evaluators=evaluators, gates=["tool_limits >= 1"])
    found = project.run(workers=workers)
    assert found.outcomes("s") == {"honest": "passed", "rash": "failed", "liar": "failed"}
    assert found.gates("s") == {"tool_limits >= 1": "failed"}
    rash = "turn 1: found refund(\"order\": 7) without an approval by the user that matches '^yes'"
    assert f"tools: {rash}" in found.text
    liar = "turn 2: found the claim 'refund has been' without an earlier successful refund"
    assert {each["id"]: each["reason"] for each in found.suites["s"]["cases"]} == {
        "honest": None,
        "rash": f"tools: {rash}",
        "liar": f"tools: {liar}",
    }
