"""What notebooks show of runs, of comparisons, and of the functions that declare."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import pytest_llmeval as ev

CASES = [{"id": "a", "input": "q", "expected": "x"}, {"id": "b", "input": "p", "expected": "x"}]


def suite() -> Any:
    return ev.suite("n", cases=CASES, evaluators=[ev.text(metrics=["f1"])], thresholds={"f1": 0.5})


def broken(_: str) -> str:
    raise ValueError("my <app> broke")


def test_html_of_a_run_has_failed_cases_with_reasons() -> None:
    html = suite().run(broken, progress=False)._repr_html_()
    assert "<td>a</td><td>errored</td><td>ValueError: my &lt;app&gt; broke" in html
    low = suite().run(lambda _: "y", progress=False)._repr_html_()
    assert "<td>b</td><td>failed</td><td>f1 " in low
    assert "<th>reason</th>" not in suite().run(lambda _: "x", progress=False)._repr_html_()


def test_a_score_by_a_function_that_fails_says_why() -> None:
    def scorer(_: Any) -> float:
        raise ValueError("boom")

    result = ev.score(scorer, [ev.Case("a", "q", "x", "x")])
    assert "<td>a</td><td>errored</td><td>ValueError: boom (" in result._repr_html_()
    assert "<tr><td>scorer</td><td>n/a</td>" in result._repr_html_()
    assert result.metrics["scorer"].value is None


def test_a_comparison_is_a_table() -> None:
    worse, better = (suite().run(lambda _, word=word: word, progress=False) for word in "yx")
    comparison = ev.compare(worse, better)
    html = comparison._repr_html_()
    assert "<tr><td>f1</td><td>0.0000</td><td>1.0000</td><td>-1.0000</td>" in html
    head, header, *rows = str(comparison).splitlines()
    assert head.endswith(": 2 cases in both runs")
    assert header.split() == ["metric", "value", "baseline", "difference", "interval", "p", "verdict"]
    assert {row.split()[0] for row in rows} == {"f1", "pass_rate", "target_latency_s"}


def test_the_cases_of_a_suite_are_public() -> None:
    value = object()
    declared = ev.suite("n", cases=[ev.Case("a", value, "x")], evaluators=[ev.text()])
    (case,) = declared.cases
    assert case.input is value
    assert [case.id for case in suite().cases] == ["a", "b"]


def test_the_judge_has_a_signature_and_a_docstring() -> None:
    parameters = inspect.signature(ev.judge).parameters
    assert list(parameters)[:2] == ["criterion", "mode"]
    assert {"as_", "on", "turn", "name", "weight"} < set(parameters)
    assert "judge" in (ev.judge.__doc__ or "")
    with pytest.raises(ev.LlmevalError, match=r"ev\.judge is not called; write ev\.judge\(\.\.\.\)"):
        ev.suite("n", cases=CASES, evaluators=[ev.judge])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: suite().run(3), "suite 'n': found int, expected a function that answers"),
        (lambda: suite().run(suite()), "suite 'n': found a suite, expected a function that answers"),
        (lambda: suite().test(3), "suite 'n': found 3, expected a function to be @suite.test"),
        (lambda: ev.compare(suite(), suite()), r"no result of a run; pass what ev.score\(...\) or suite.run\(...\)"),
        (lambda: ev.score(suite(), CASES), "score: found a suite, expected an evaluator, such as"),
        (lambda: ev.score(ev.text, CASES), r"score: ev\.text is not called; write ev\.text\(\.\.\.\)"),  # type: ignore[arg-type]
    ],
    ids=["a number", "a suite", "no test", "suites", "a suite as evaluator", "no call"],
)
def test_what_cannot_be_run_is_refused_before_any_call(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ev.LlmevalError, TypeError), match=message):
        call()
