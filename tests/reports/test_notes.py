"""What reports say of single cases."""

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_llmeval import Case, get_evaluator
from pytest_llmeval.core import AnswerShown, CaseRecord, MetricIndex
from pytest_llmeval.numbers import summarize
from pytest_llmeval.reports import CaseReport, ReportedTexts, RunReport, RunStart, SuiteReport, published, render
from pytest_llmeval.reports._errors import to_errors
from pytest_llmeval.reports._form import BucketReport, WorstCases
from pytest_llmeval.reports._markdown import to_markdown

ANSWERS = {"right": "Paris", "wrong": "Lyon", "near": "in Paris"}


def report(texts: ReportedTexts, gated: tuple[str, ...] = (), answers: Mapping[str, str] = ANSWERS) -> RunReport:
    text = get_evaluator("text", metrics=("f1", "exact_match"))
    metrics = MetricIndex.from_evaluators({"text": text})
    cases = [Case(name, f"Where was {name}?", "Paris", line=number) for number, name in enumerate(answers, 1)]
    records = []
    for case in cases:
        answered = case.answered(answers[case.id])
        observation = text.measure(answered)
        lines = [f"said {line}" for line in text.explain(answered, observation)]
        records.append(
            CaseRecord(
                case.id,
                outcome="failed" if case.id == "wrong" else "passed",
                observations={"text": observation},
                reason="too low" if case.id == "wrong" else None,
                lines={"text": lines} if lines else {},
                answers=[AnswerShown(answered.prediction)],
            )
        )
    result = summarize(metrics, records, confidence=None)
    suite = SuiteReport.of_result(
        "s",
        "s.eval.yaml",
        result,
        [],
        len(cases),
        buckets=BucketReport.of_result(metrics, result),
        cases=CaseReport.of_result(result, cases, texts),
        worst=WorstCases.of_result(result, metrics, gated),
    )
    return RunReport(run=RunStart("2026-01-01", 0.1, "0"), suites=[suite])


@pytest.mark.parametrize(
    ("texts", "shown"), [("none", set()), ("failing", {"wrong"}), ("all", {"right", "wrong", "near"})]
)
def test_json_and_markdown_have_the_texts_of_the_cases_asked_for(texts: ReportedTexts, shown: set[str]) -> None:
    made = report(texts)
    cases = published(made)["suites"][0]["cases"]
    assert {each["id"] for each in cases if "prediction" in each} == shown
    markdown = to_markdown(made)
    assert {name for name in ANSWERS if f"input: Where was {name}?" in markdown} == shown
    assert {name for name, answer in ANSWERS.items() if f"- prediction: {answer}\n" in markdown} == shown


def test_without_texts_no_report_has_a_text_or_a_line_that_quotes_one() -> None:
    made = report("none")
    for written in (str(published(made)), to_markdown(made), str(to_errors(made))):
        assert "Where was" not in written
        assert "Lyon" not in written
        assert "lyon" not in written


def test_all_reports_have_the_lines_of_the_terminal() -> None:
    made = report("failing")
    line = "said missing words: paris"
    assert line in published(made)["suites"][0]["cases"][1]["lines"]["text"]
    assert f"- text: {line}\n" in to_markdown(made)
    assert f"  text: {line}" in [each.text for each in render(made, verbosity=1, width=80)]


@pytest.mark.parametrize(
    ("gated", "metric", "scores"),
    [((), "f1", ["wrong", "near"]), (("pass_rate", "exact_match"), "exact_match", ["wrong", "near"])],
)
def test_the_worst_cases_are_those_farthest_below_by_the_gated_metric_else_the_first(
    gated: tuple[str, ...], metric: str, scores: list[str]
) -> None:
    worst = published(report("failing", gated))["suites"][0]["worst"]
    assert (worst["metric"], [each["id"] for each in worst["cases"]]) == (metric, scores)


def test_five_worst_cases_are_listed_with_v_only() -> None:
    made = report("failing", answers={f"c{number}": "Lyon" for number in range(7)})
    assert [each.text for each in render(made, verbosity=1, width=80) if each.text.startswith("0.0000  c")] == [
        f"0.0000  c{number}" for number in range(5)
    ]
    assert not any("worst" in each.text for each in render(made, verbosity=0, width=80))
    table = to_markdown(made).partition("### Worst cases")[2].strip().partition("\n\n")[0]
    assert table.count("| c") == 5 + 1  # the head of the table


def test_nothing_is_worst_where_all_is_right() -> None:
    made = report("failing", answers={"a": "Paris"})
    assert made.suites[0].worst is None
    assert "Worst" not in to_markdown(made)


def test_the_error_analysis_of_an_evaluator_without_buckets_holds_imperfect_cases_with_their_texts() -> None:
    (bucket,) = to_errors(report("failing"))["suites"][0]["buckets"]
    assert (bucket["bucket"], bucket["limit"], bucket["count"]) == ("imperfect_f1", "< 1", 2)
    case: dict[str, Any] = bucket["cases"][1]
    assert (case["id"], case["input"], case["expected"], case["prediction"]) == (
        "near",
        "Where was near?",
        "Paris",
        "in Paris",
    )
    assert case["lines"] == ["said extra words: in"]
    assert not any("errors:" in each.text for each in render(report("failing"), verbosity=1, width=80))
