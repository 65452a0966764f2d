"""Checks of spans and tool calls: which are meant, how many there are, and what is said where they are not."""

from typing import Any

import pytest
from examples import met, observed, unmet

SPANS = [
    {"name": "chat gpt-5", "duration_s": 1.5, "attributes": {"gen_ai.usage.input_tokens": 30, "stream": True}},
    {"name": "execute_tool refund", "duration_s": 0.2, "failed": True, "attributes": {"gen_ai.tool.name": "refund"}},
    {"name": "execute_tool refund", "duration_s": 0.3, "attributes": {"gen_ai.tool.name": "refund"}},
    {"name": "db", "attributes": {}, "left_out": ["db.statement"]},
]
PREDICTION: dict[str, Any] = {"tool_calls": [], "trace": {"spans": SPANS}}


@pytest.mark.parametrize(
    "argument",
    [
        "db",
        "execute_tool *",
        {"name": "execute_tool *", "count": 2},
        {"name": "execute_tool *", "failed": True, "count": 1},
        {"name": "execute_tool *", "failed": False, "count": 1},
        {"attributes": {"gen_ai.tool.name": "ref*"}, "count": 2},
        {"attributes": {"gen_ai.usage.input_tokens": 30}},
        {"attributes": {"stream": True}, "max_duration_s": 1.5},
        {"name": "delete_*", "count": 0},
        {"name": "delete_*", "count": 0, "max_duration_s": 1},
    ],
)
def test_a_span_that_is_there_meets_its_check(argument: Any) -> None:
    assert met({"span": argument}, PREDICTION) is True
    assert met({"not_span": argument}, PREDICTION) is False


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("delete_*", "no span of this kind among 'chat gpt-5', 'execute_tool refund', 'db'"),
        ("DB", "no span of this kind"),
        ({"name": "execute_tool *", "count": 1}, "2 spans of this kind: 'execute_tool refund'"),
        ({"name": "chat*", "max_duration_s": 1}, "'chat gpt-5' took 1.5 s"),
        ({"attributes": {"stream": 1}}, "no span of this kind"),
        ({"attributes": {"gone": "*"}}, "no span of this kind"),
    ],
)
def test_what_is_there_instead_is_said(argument: Any, said: str) -> None:
    assert said in unmet({"span": argument}, PREDICTION)


@pytest.mark.parametrize(
    ("argument", "prediction", "why"),
    [
        ("db", "text", "the prediction has no spans (trace.spans)"),
        ("db", {"answer": "a", "trace": {"spans": 3}}, "the prediction has no spans (trace.spans)"),
        ({"name": "db", "max_duration_s": 1}, PREDICTION, "the span 'db' does not say how long it took"),
        ({"attributes": {"db.statement": "*"}, "name": "db"}, PREDICTION, "'db.statement' is too long to be kept"),
    ],
)
def test_what_cannot_be_looked_at_is_an_error(argument: Any, prediction: Any, why: str) -> None:
    for key in ("span", "not_span"):
        assert why in observed({key: argument}, prediction).errored["check_rate"]


@pytest.mark.parametrize("argument", [{"name": "a", "count": -1}, {"max_duration_s": -1.0}, {"nam": "a"}, 3])
def test_a_pattern_that_cannot_be_meant_is_refused(argument: Any) -> None:
    with pytest.raises(Exception, match="found"):
        observed({"span": argument}, PREDICTION)


CALLS = [
    {"name": "Skill", "arguments": {"skill": "plan:map", "args": "é"}},
    {"name": "Bash", "arguments": {"command": "git checkout -b fix"}},
    {"name": "Bash", "arguments": {"command": "git commit -m x"}, "status": "error"},
]
COMMIT = {"name": "Bash", "arguments": "git commit"}


@pytest.mark.parametrize(
    ("argument", "is_met"),
    [
        ("Skill", True),
        ("skill", False),
        ("B*", True),
        ({"name": "Skill", "arguments": '"skill":"(?:[\\w-]+:)?map","args":"é"'}, True),
        ({"name": "Bash", "min": 2, "max": 2}, True),
        ({"name": "Bash", "max": 1}, False),
        ({"name": "Write", "min": 0, "max": 0}, True),
        ({"name": "Bash", "arguments": "push", "min": 0}, True),
        ({"name": "Bash", "arguments": "-b", "before": COMMIT}, True),
        ({**COMMIT, "before": {"arguments": "checkout"}}, False),
        ({**COMMIT, "before": "Write"}, False),
        ({"name": "Write", "min": 0, "before": "Bash"}, False),
        ({"name": "Bash", "before": "Bash"}, False),
    ],
)
def test_calls_of_tools_are_counted_and_ordered(argument: Any, is_met: bool) -> None:
    for prediction in (
        {"tool_calls": CALLS},
        {"messages": [{"role": "assistant", "content": "", "tool_calls": CALLS}]},
    ):
        assert met({"tool_call": argument}, prediction) is is_met
        assert met({"not_tool_call": argument}, prediction) is not is_met


def test_unmet_and_unreadable_calls_are_told_apart() -> None:
    assert "0 calls of this kind; called: Skill, Bash" in unmet({"tool_call": "Write"}, {"tool_calls": CALLS})
    assert "called: no tools" in unmet({"tool_call": "Write"}, {"tool_calls": []})
    for prediction in (
        "text",
        {"answer": "a"},
        {"tool_calls": 3},
        {"tool_calls": [{"name": "Bash", "arguments": "{"}]},
    ):
        assert met({"not_tool_call": "Bash"}, prediction) is None
    for argument in ({"min": 2, "max": 1}, {"arguments": "("}, {"before": {"arguments": "("}}, {"tool": "Bash"}):
        with pytest.raises(ValueError, match="found"):
            observed({"tool_call": argument}, {"tool_calls": []})
