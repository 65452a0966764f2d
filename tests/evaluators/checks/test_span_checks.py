"""Checks of spans: which are meant, how many there are, how long they took, and what is said where they are not."""

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
