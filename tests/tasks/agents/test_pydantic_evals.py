"""The same numbers as pydantic-evals on a table of traces."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_evals.evaluators import ToolCorrectness, TrajectoryMatch
from pydantic_evals.otel.span_tree import SpanNode, SpanTree

from pytest_llmeval import Evaluator, get_evaluator

TRACES = (
    # What is expected, and what was called; a tool is a letter, ! after it says that the call failed.
    *(("", ""), ("", "a"), ("a", ""), ("a", "a"), ("a", "b"), ("a", "aa"), ("aa", "a"), ("aa", "aa")),
    *(("ab", "ab"), ("ab", "ba"), ("ab", "a"), ("ab", "b"), ("ab", "abc"), ("ab", "acb"), ("ab", "cab"), ("ab", "bca")),
    *(("abc", "abc"), ("abc", "cba"), ("abc", "acb"), ("abc", "ab"), ("abc", "abcabc"), ("abc", "xaybzc")),
    *(("aab", "aba"), ("aab", "abab"), ("aab", "baa"), ("abab", "abba"), ("abab", "aabb"), ("aabb", "abab")),
    *(("abcd", "badc"), ("abcd", "dcba"), ("abcde", "ace"), ("ace", "abcde"), ("aaaa", "aa"), ("abcd", "efgh")),
    *(
        ("a", "a!"),
        ("a", "a!a"),
        ("ab", "a!ab"),
        ("ab", "ab!"),
        ("aa", "aa!"),
        ("", "a!"),
        ("abc", "ab!bc"),
        ("ab", "b!a!"),
    ),
)


def calls(trace: str) -> Iterator[tuple[str, bool]]:
    for place, letter in enumerate(trace):
        if letter != "!":
            yield f"tool_{letter}", trace[place + 1 : place + 2] == "!"


def spans(trace: str) -> Any:
    """Return a trace as pydantic-evals reads it, later calls first."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    nodes = [
        SpanNode(
            name=f"execute_tool {name}",
            trace_id=1,
            span_id=number,
            parent_span_id=None,
            start_timestamp=start + timedelta(seconds=number),
            end_timestamp=start + timedelta(seconds=number + 1),
            attributes={"gen_ai.tool.name": name},
            status="error" if failed else "ok",
        )
        for number, (name, failed) in enumerate(calls(trace), 1)
    ]
    tree = SpanTree()
    tree.add_spans(nodes[::-1])
    return SimpleNamespace(span_tree=tree)


def ours(evaluator: Evaluator, expected: str, trace: str) -> dict[str, Any]:
    made = [{"name": name, "arguments": {}, "status": "error" if failed else "ok"} for name, failed in calls(trace)]
    return evaluator.evaluate(made, [{"name": name} for name, _ in calls(expected)])


def test_the_table_has_at_least_40_traces() -> None:
    assert len(set(TRACES)) >= 40


@pytest.mark.parametrize("include_failed", [False, True], ids=["succeeded", "all"])
def test_numbers_are_those_of_tool_correctness_and_trajectory_match(include_failed: bool) -> None:
    orders = ("exact", "any_order", "superset")
    evaluators = {each: get_evaluator("tools", order=each, include_failed=include_failed) for each in orders}
    for expected, trace in TRACES:
        names, context = [name for name, _ in calls(expected)], spans(trace)
        correct = [
            ToolCorrectness(names, allow_extra, include_failed).evaluate(context).value for allow_extra in (False, True)
        ]
        exact, in_order, any_order = (
            TrajectoryMatch(names, order, include_failed).evaluate(context).value
            for order in ("exact", "in_order", "any_order")
        )
        scores = {order: ours(evaluator, expected, trace) for order, evaluator in evaluators.items()}
        place = f"{expected} {trace}"
        assert [scores["any_order"]["trajectory_match"], scores["superset"]["trajectory_match"]] == correct, place
        assert scores["exact"]["trajectory_match"] == exact, place
        assert scores["exact"]["trajectory_f1"] == pytest.approx(in_order, abs=1e-12), place
        assert scores["exact"]["tool_f1"] == pytest.approx(any_order, abs=1e-12), place
