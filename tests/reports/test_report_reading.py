"""JSON reports read back: what was written is written again, byte for byte, and every other report drawn from it."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from builders import gate_of, parse_gate
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from pytest_llmeval import Case, get_evaluator
from pytest_llmeval.core import (
    AnswerShown,
    CaseOutcome,
    CaseRecord,
    GateResult,
    JudgeCall,
    JudgingShown,
    MetricIndex,
    MetricValue,
    Result,
    SnapshotVerdict,
    SuiteError,
)
from pytest_llmeval.numbers import SystemTable, UsageReport, summarize
from pytest_llmeval.reports import (
    CaseReport,
    PageRun,
    ReportedTexts,
    RunReport,
    RunStart,
    SuiteReport,
    SystemsReport,
    published,
)
from pytest_llmeval.reports._form import BucketReport, WorstCases
from pytest_llmeval.reports._json import form_fields, write_data
from pytest_llmeval.reports._markdown import to_markdown
from pytest_llmeval.reports.html._data import entry_of

SAMPLE = Path(__file__).parent / "samples" / "report.json"
"""Written by version 0.1.0: suites of recorded answers, repeats, systems, a confusion matrix, strengths of systems."""

OUTCOMES: tuple[CaseOutcome, ...] = ("passed", "failed", "errored", "skipped", "not_run")
TEXT = get_evaluator("text", metrics=["exact_match", "f1"])
METRICS = MetricIndex.from_evaluators({"text": TEXT})


def records(cases: list[Case], outcomes: list[CaseOutcome]) -> Iterator[CaseRecord]:
    """Yield a record of each case that has all that reports show of one."""
    for number, (case, outcome) in enumerate(zip(cases, outcomes, strict=True)):
        record = CaseRecord(case.id, case.labels, outcome)
        if outcome in ("passed", "failed"):
            judging = JudgingShown("judge", "binary", {"question": "Is it?"}, "yes", 1.0, 0.25, "a:b" if number else "")
            call = JudgeCall(f"call{number}", True, 3, 4, None if number else 0.5, 0.25, "juror")
            record = structs.replace(
                record,
                observations={"text": TEXT.measure(case)},
                answers=[AnswerShown(case.prediction, 2), AnswerShown(None)][: 1 + number % 2],
                lines={"text": ["missing words: <b>"]},
                judgings=[judging],
                calls=[call],
                target_seconds=[0.5],
                duration_s=0.0625 * number,
                repeats={"times": 2, "status": "flaky", "passed": 1, "pass_rate": 0.5, "spread": {}},
            )
        elif outcome == "errored":
            record = structs.replace(record, errors={"": "no reply"}, reason="no reply")
        yield record


def cases_of(outcomes: list[CaseOutcome]) -> list[Case]:
    return [
        Case(
            f"c{number}",
            input=f"question {number}",
            expected="one two",
            prediction="one" if number % 3 else "one two",
            labels={"kind": "ab"[number % 2], **({"part": str(number // 2)} if number else {})},
            line=number,
        )
        for number in range(len(outcomes))
    ]


def result_of(outcomes: list[CaseOutcome]) -> Result:
    seen = list(records(cases_of(outcomes), outcomes))
    return summarize({"text": TEXT}, seen, group_by=["kind"], faulty=1, cluster_by="part")


def suite_of(
    name: str, outcomes: list[CaseOutcome], texts: ReportedTexts = "failing", variant: str = ""
) -> SuiteReport:
    """Return the report of a suite with all that a report can hold, but for tables of evaluators."""
    result = result_of(outcomes)
    gates: list[GateResult] = [
        parse_gate("f1 >= 0.5").judge(result),
        parse_gate("low(pass_rate) >= 0.5").judge(result, "2 of 3 cases ran"),
        gate_of({"metric": "f1", "min": 1, "by": "kind"}).judge(result),
        GateResult("drop(f1) <= 0.1", "failed", 0.25, 0.1, "f1 fell", 7, low=0.125, high=0.5),
    ]
    return SuiteReport.of_result(
        f"{name}[{variant}]" if variant else name,
        f"{name}.eval.yaml",
        result,
        gates,
        len(outcomes) + 1,
        description="Questions of <b>people</b>",
        usage=UsageReport.from_records(result.records),
        snapshot=[
            SnapshotVerdict("f1", "fell_beyond", "failed", 0.25, 0.5, "f1 fell"),
            SnapshotVerdict("*", "new", "passed"),
        ],
        buckets=[(each, False) for each, _ in BucketReport.of_result(METRICS, result)],
        lower_is_better=["exact_match"],
        shared_inputs=2,
        uncalibrated=["f1"],
        cases=CaseReport.of_result(result, cases_of(outcomes), texts, {"c0": "cases.jsonl"}),
        worst=WorstCases.of_result(result, METRICS, ["f1"]),
        left_out=3,
        variant=variant,
    )


def run_of(*suites: SuiteReport, **more: Any) -> RunReport:
    return RunReport(run=RunStart("2026-01-02T03:04:05+00:00", 1.25, "0.1.0", "c" * 40), suites=suites, **more)


def read_back(report: RunReport, folder: Path) -> RunReport:
    write_data(report, folder / "run.json")
    return RunReport.read(folder / "run.json")


def test_a_report_is_written_again_as_it_was(tmp_path: Path) -> None:
    write_data(RunReport.read(SAMPLE), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == SAMPLE.read_bytes()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=7), st.sampled_from(["none", "failing", "all"]))
def test_what_is_read_is_what_was_written(outcomes: list[CaseOutcome], texts: ReportedTexts) -> None:
    report = run_of(suite_of("s", outcomes, texts), faults={"b.eval.yaml": ["found x, expected y"]})
    with TemporaryDirectory() as folder:
        again = read_back(report, Path(folder))
        write_data(again, Path(folder) / "again.json")
        assert (Path(folder) / "again.json").read_bytes() == (Path(folder) / "run.json").read_bytes()
    assert again.suites[0].pass_rate == report.suites[0].pass_rate
    assert PageRun("", again).page() == PageRun("", report).page()


@pytest.mark.parametrize("texts", ["none", "failing", "all"])
def test_markdown_from_a_file_is_that_of_the_run(tmp_path: Path, texts: ReportedTexts) -> None:
    one = suite_of("one", ["passed", "failed", "errored", "passed", "not_run"], texts)
    small, big = (suite_of("two", ["passed", each, "passed"], texts, each) for each in ("passed", "failed"))
    middle: tuple[CaseOutcome, ...] = ("passed", "failed")
    results = {each: result_of(["passed", each, "passed"]) for each in middle}
    systems = SystemsReport.of_table("two", "two.eval.yaml", SystemTable.of_results(results, "passed", METRICS), ["f1"])
    report = run_of(one, small, big, systems=[systems])
    again = read_back(report, tmp_path)
    assert to_markdown(again) == to_markdown(report)
    assert published(again) == published(report)


def keys_of(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every key of objects whose keys are those of the format."""
    if isinstance(data, dict):
        for name, each in data.items():
            yield (*path, name)
            yield from keys_of(each, (*path, name))
    elif isinstance(data, list):
        for number, each in enumerate(data):
            yield from keys_of(each, (*path, number))


def without(data: Any, path: tuple[Any, ...]) -> Any:
    copied = deepcopy(data)
    parent = copied
    for part in path[:-1]:
        parent = parent[part]
    del parent[path[-1]]
    return copied


RICH = published(run_of(suite_of("s", ["passed", "failed", "errored"])))
WRONG = {
    "suites[0].gates[1].outcome": (["gates", 1, "outcome"], "maybe", "found the text 'maybe', expected one of"),
    "suites[0].metrics.f1.value": (["metrics", "f1", "value"], "high", "found the text 'high', expected a number"),
    "suites[0].metrics.f1.scored": (["metrics", "f1", "scored"], 1.5, "expected a whole number"),
    "suites[0].cases[0].outcome": (["cases", 0, "outcome"], "pass", "(did you mean 'passed'?)"),
    "suites[0].cases[0].metrics.f1": (["cases", 0, "metrics", "f1"], 1e200, "expected a number of at most"),
    "suites[0].cases[1].lines.text": (["cases", 1, "lines", "text"], "x", "found the text 'x', expected a list"),
    "suites[0].usage.calls": (["usage", "calls"], None, "found nothing (null), expected a whole number"),
    "suites[0].error_buckets[0].cases[0]": (
        ["error_buckets"],
        [{"bucket": "b", "cases": ["nobody"]}],
        "found 'nobody', expected the id of a case of the suite",
    ),
    "suites[0].tables[0].rows[0]": (
        ["tables"],
        [{"headers": ["a", "b"], "rows": [["x"]]}],
        "found 1 cells, expected 2 as in the headers",
    ),
}


@pytest.mark.parametrize("where", WRONG)
def test_a_malformed_report_is_refused_with_place_and_expectation(tmp_path: Path, where: str) -> None:
    path, value, message = WRONG[where]
    data = deepcopy(RICH)
    parent: Any = data["suites"][0]
    for part in path[:-1]:
        parent = parent[part]
    parent[path[-1]] = value
    (tmp_path / "r.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    with pytest.raises(SuiteError) as refused:
        RunReport.read(tmp_path / "r.json")
    fault = refused.value.faults[0]
    assert (fault.file, fault.path) == (str(tmp_path / "r.json"), where)
    assert fault.line > 1
    assert message in fault.message


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_a_report_holds_it_is_read_or_refused(data: st.DataObject) -> None:
    """Any value in any place: no error but that of a file, and what is read can be drawn."""
    path = data.draw(st.sampled_from([each for each in keys_of(RICH) if each[0] != "schema_version"]))
    value = data.draw(st.sampled_from([None, True, -1, 0.5, 10**30, "", "x", [], [1], {}, {"x": 1}, [[]], [{}]]))
    changed = deepcopy(RICH)
    parent: Any = changed
    for part in path[:-1]:
        parent = parent[part]
    parent[path[-1]] = value
    with TemporaryDirectory() as folder:
        (Path(folder) / "r.json").write_text(json.dumps(changed), encoding="utf-8")
        try:
            report = RunReport.read(Path(folder) / "r.json")
        except SuiteError:
            return
        assert to_markdown(read_back(report, Path(folder))) == to_markdown(report)
        PageRun("", report).page()


@pytest.mark.parametrize("form", [SuiteReport, MetricValue, UsageReport])
def test_the_published_schema_has_the_fields_of_the_form(form: type) -> None:
    schema = (Path(__file__).parents[2] / "docs" / "report.schema.json").read_text(encoding="utf-8")
    assert sorted(json.loads(schema)["$defs"][form.__name__]["properties"]) == sorted(form_fields(form))


def test_a_field_of_the_form_is_in_json_and_page_and_is_read(tmp_path: Path) -> None:
    report = run_of(suite_of("s", ["passed", "failed", "errored"]))
    entry = entry_of(read_back(report, tmp_path).suites[0], 0)
    written = published(report)["suites"][0]
    assert set(written) <= set(form_fields(SuiteReport))
    assert {name for name, value in written.items() if value} <= set(entry)
    assert entry["description"] == written["description"] == "Questions of <b>people</b>"
    assert r"Questions of \<b\>people\</b\>" in to_markdown(report)
