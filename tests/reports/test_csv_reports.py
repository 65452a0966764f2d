"""Scores as CSV: a row for each case, a column for each metric, and no cell that a spreadsheet would run."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.data import csv_lines
from pytest_llmeval.reports import RunReport, RunStart, SuiteReport
from pytest_llmeval.reports._csv import csv_rows, write_csv


def suite(name: str, metrics: list[str], *cases: Case, variant: str = "") -> SuiteReport:
    result = score(get_evaluator("text", metrics=metrics), cases)
    return SuiteReport.of_result(name, f"{name}.eval.yaml", result, [], len(cases), variant=variant)


def run_of(*suites: SuiteReport) -> RunReport:
    return RunReport(run=RunStart("now", 1.0, "1"), suites=suites)


RIGHT, HALF = Case("a", expected="x", prediction="x"), Case("b", expected="x y", prediction="x")
UNKNOWN = Case("c", prediction="x")


def test_cases_are_rows_and_metrics_of_all_suites_columns(tmp_path: Path) -> None:
    run = run_of(
        suite("one", ["f1"], RIGHT, HALF),
        suite("two[small]", ["exact_match", "f1"], RIGHT, UNKNOWN, variant="small"),
    )
    write_csv(run, tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_bytes().decode("utf-8").split("\n") == [
        "suite,path,variant,case,outcome,f1,exact_match",
        "one,one.eval.yaml,,a,passed,1.0,",
        "one,one.eval.yaml,,b,passed,0.6666666666666666,",
        "two,two[small].eval.yaml,small,a,passed,1.0,1.0",
        "two,two[small].eval.yaml,small,c,passed,,",
        "",
    ]


def test_a_run_without_suites_is_a_header(tmp_path: Path) -> None:
    write_csv(run_of(), tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_text(encoding="utf-8") == "suite,path,variant,case,outcome\n"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝"])
def test_text_that_begins_as_a_formula_is_quoted(start: str, tmp_path: Path) -> None:
    hostile = f"{start}cmd|'/c calc'!A0"
    write_csv(run_of(suite("s", ["f1"], Case(hostile, expected="x", prediction="x"))), tmp_path / "scores.csv")
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as file:
        _, row = csv.reader(file)
    assert row[3] == f"'{hostile}"


def test_negative_scores_stay_numbers() -> None:
    one = suite("s", ["f1"], RIGHT)
    cases = [structs.replace(one.cases[0], metrics={"f1": -0.5})]
    _, line = csv_lines(csv_rows(run_of(structs.replace(one, cases=cases))))
    assert line == "s,s.eval.yaml,,a,passed,-0.5\n"


def test_a_metric_with_the_name_of_a_column_has_another_header() -> None:
    one = suite("s", ["f1"], RIGHT)
    metrics = {"case": one.metrics["f1"]}
    header, _ = csv_rows(run_of(structs.replace(one, metrics=metrics)))
    assert header == ["suite", "path", "variant", "case", "outcome", "metric:case"]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@example("a\rb")
def test_any_id_is_one_cell_of_one_row(name: str) -> None:
    rows = csv_rows(run_of(suite("s", ["f1"], Case(name, expected="x", prediction="x"), RIGHT)))
    read = list(csv.reader(io.StringIO("".join(csv_lines(rows)), newline="")))
    assert [row[3] for row in read][2] == "a"
    assert read[1][3] in (name, f"'{name}")
    assert not read[1][3].startswith(("=", "+", "-", "@", "\t", "\r"))
