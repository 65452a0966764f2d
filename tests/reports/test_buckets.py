import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import Case, ErrorBucket, Evaluator, Metric, Observation, Sums, get_evaluator
from pytest_llmeval.core import GateResult, MetricIndex
from pytest_llmeval.numbers import summarize
from pytest_llmeval.numbers._table import CaseRecord
from pytest_llmeval.reports import ReportFormat, RunReport, RunStart, SuiteReport, published, render
from pytest_llmeval.reports._errors import to_errors, write_errors
from pytest_llmeval.reports._files import ERROR_ANALYSIS
from pytest_llmeval.reports._form import BucketReport
from pytest_llmeval.reports._markdown import to_markdown
from pytest_llmeval.suites import Registry


@dataclass(frozen=True)
class Length(Evaluator):
    name = "length"

    def describe(self) -> Sequence[Metric]:
        return [Metric("words", high=None)]

    def measure(self, case: Case) -> Observation:
        return Observation({"words": len(case.prediction.split()), "n": 1}, {"text": case.prediction})

    def summarize(self, sums: Sums) -> Mapping[str, Any]:
        return {"words": sums["words"] / sums["n"]}

    def error_buckets(self) -> Sequence[ErrorBucket]:
        return [ErrorBucket("silent", "words", below=1), ErrorBucket("extreme", "words", below=1, above=3)]


def report(texts: Mapping[str, str], *labels: str) -> RunReport:
    evaluators = dict.fromkeys(labels or ("length",), Length())
    records = [
        CaseRecord(
            name,
            observations={label: each.measure(Case(name, prediction=text)) for label, each in evaluators.items()},
        )
        for name, text in texts.items()
    ]
    records.append(CaseRecord("broken", outcome="errored", errors=dict.fromkeys(evaluators, "no"), reason="no answer"))
    result = summarize(evaluators, records, confidence=None)
    buckets = BucketReport.of_result(MetricIndex.from_evaluators(evaluators), result)
    suite = SuiteReport.of_result("s", "s.eval.yaml", result, list[GateResult](), len(records), None, buckets=buckets)
    return RunReport(run=RunStart("2026-01-01", 0.1, "0"), suites=[suite])


TEXTS = {"none": "", "some": "one two", "many": "one two three four"}


@pytest.mark.parametrize(
    ("bucket", "score", "holds"),
    [
        (ErrorBucket("b", "m", below=0.3), 0.29, True),
        (ErrorBucket("b", "m", below=0.3), 0.3, False),
        (ErrorBucket("b", "m", below=0.3), 0.1 + 0.2 - 1e-15, False),
        (ErrorBucket("b", "m", below=0.3), None, False),
        (ErrorBucket("b", "m", above=5), 5, False),
        (ErrorBucket("b", "m", above=5), 5.1, True),
        (ErrorBucket("b", "m", below=1, above=5), 0, True),
        (ErrorBucket("b", "m"), 0, False),
    ],
)
def test_a_bucket_holds_what_lies_outside_its_limits(bucket: ErrorBucket, score: float | None, holds: bool) -> None:
    assert bucket.holds(score) == holds


def test_limits_are_written_as_people_do() -> None:
    assert ErrorBucket("b", "m", below=0.3).limit == "< 0.3"
    assert ErrorBucket("b", "m", below=1, above=5).limit == "< 1 or > 5"


def test_evaluators_name_no_bucket_unless_they_do() -> None:
    assert list(get_evaluator("text").error_buckets()) == []


@pytest.mark.parametrize(("label", "metric"), [("length", "words"), ("mine", "mine.words")])
def test_cases_are_sorted_into_buckets_under_the_names_of_the_suite(label: str, metric: str) -> None:
    errors = to_errors(report(TEXTS, label))
    assert errors["schema_version"] == 1
    (suite,) = errors["suites"]
    assert list(suite) == ["suite", "path", "buckets", "errored"]
    silent, extreme = suite["buckets"]
    assert silent == {
        "bucket": "silent",
        "evaluator": label,
        "metric": metric,
        "limit": "< 1",
        "count": 1,
        "cases": [{"id": "none", "score": 0.0, "outcome": "passed", "reason": None, "details": {"text": ""}}],
    }
    assert [case["id"] for case in extreme["cases"]] == ["none", "many"]
    assert suite["errored"] == [{"id": "broken", "reason": "no answer"}]


def test_the_file_can_be_read_whatever_models_said(tmp_path: Path) -> None:
    write_errors(report({"odd": ""} | {"half \ud800": ""}), tmp_path / "errors.json")
    read = json.loads((tmp_path / "errors.json").read_text(encoding="utf-8"))
    assert [case["id"] for case in read["suites"][0]["buckets"][0]["cases"]] == ["odd", "half \ud800"]


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("errors.json", True),
        ("out/errors.json", True),
        ("nightly.errors.json", True),
        ("my-errors.json", True),
        ("my_errors.json", True),
        ("2errors.json", True),
        ("error_analysis.json", False),
        ("terror_analysis.json", False),
        ("analysis.json", False),
        ("terrors.json", False),
        ("errors.md", False),
        ("errors.json/report.json", False),
        ("errors.report.json", False),
    ],
)
def test_the_name_of_the_file_asks_for_the_error_analysis(name: str, asked: bool) -> None:
    assert (ReportFormat.of_path(Path(name)) is ReportFormat.KNOWN[ERROR_ANALYSIS]) == asked


def test_the_name_of_a_file_that_has_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match=r"found the name 'my-error_analysis.json', expected one that ends in errors"):
        Registry.installed().report_path("out/my-error_analysis.json")
    assert Registry.installed().report_path("terror_analysis.json") == Path("terror_analysis.json")


def test_the_json_report_lists_buckets_with_the_ids_of_their_cases() -> None:
    (suite,) = published(report(TEXTS))["suites"]
    assert suite["error_buckets"][1] == {
        "bucket": "extreme",
        "evaluator": "length",
        "metric": "words",
        "limit": "< 1 or > 3",
        "cases": ["none", "many"],
    }


def test_the_markdown_report_has_a_table_of_buckets_that_hold_cases() -> None:
    text = to_markdown(report({"<b>": "", "some": "one"}))
    (row,) = [line for line in text.splitlines() if line.startswith("| silent")]
    assert [cell.strip() for cell in row.strip("|").split("|")] == ["silent", r"words \< 1", "1", r"\<b\>"]
    assert "### Error analysis" in text
    assert "### Error analysis" not in to_markdown(report({"some": "one"}))


def test_the_markdown_report_lists_a_part_of_many_cases() -> None:
    text = to_markdown(report({f"c{number}": "" for number in range(60)}))
    assert "and 10 more" in text


def test_the_terminal_counts_the_cases_of_buckets() -> None:
    lines = [line.text for line in render(report(TEXTS), verbosity=0, width=80)]
    assert "errors: 1 silent, 2 extreme" in lines
    assert not [line for line in render(report({"some": "one"}), verbosity=0, width=80) if "errors: 1" in line.text]


def test_the_terminal_says_whose_a_bucket_is_if_two_evaluators_have_it() -> None:
    lines = [line.text for line in render(report({"many": TEXTS["many"]}, "length", "mine"), verbosity=0, width=80)]
    assert "errors: 1 length.extreme, 1 mine.extreme" in lines
