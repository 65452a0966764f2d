"""The record of results: its form, its schema and its faults."""

import json
from pathlib import Path

import pytest

from pytest_llmeval.core import LlmevalError, SuiteError
from pytest_llmeval.exchange._readers import read_results, results_of
from pytest_llmeval.exchange.results import FIELDS, ResultRow, results_schema

ROWS = [
    ResultRow("a", "accuracy", 1, labels={"topic": "tax"}, cost=0.5, latency=2, system="with"),
    ResultRow("a", "accuracy", 0.25, repeat=2, labels={"topic": "tax"}, system="with"),
    ResultRow("01", "accuracy", error="rate limit", signature=""),
    ResultRow("01", error="crashed", repeat=2),
    ResultRow("b", "accuracy", abstained="no claim", suite="other"),
]


def data_of(row: ResultRow) -> dict[str, object]:
    data = {name: getattr(row, name) for name in ("case", *FIELDS)}
    return {name: value for name, value in data.items() if value not in (None, "", {})}


def cells_of(row: ResultRow) -> dict[str, object]:
    data = data_of(row)
    labels = data.pop("labels", {})
    assert isinstance(labels, dict)
    return data | {f"label.{name}": value for name, value in labels.items()}


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_every_form_gives_the_same_rows(tmp_path: Path) -> None:
    lines = written(tmp_path / "rows.jsonl", *(json.dumps(data_of(row)) for row in ROWS))
    listed = written(tmp_path / "rows.json", json.dumps([data_of(row) for row in ROWS]))
    columns = ["case", *(name for name in FIELDS if name not in ("case", "labels")), "label.topic"]
    cells = [[str(cells_of(row).get(name, "")) for name in columns] for row in ROWS]
    table = written(tmp_path / "rows.csv", *(",".join(line) for line in [columns, *cells]))
    assert read_results(lines, "rows.jsonl") == read_results(listed, "rows.json") == ROWS
    assert read_results(table, "rows.csv") == ROWS == results_of([cells_of(row) for row in ROWS])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([cells_of(row) for row in ROWS])
    assert results_of(frame) == ROWS == results_of(ROWS)
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "rows.parquet")
    assert read_results(tmp_path / "rows.parquet", "rows.parquet") == ROWS


def test_a_whole_number_is_the_same_case_with_and_without_a_fraction(tmp_path: Path) -> None:
    texts = ("case,metric,score", "264.0,f1,1", "265,f1,1", "1.50,f1,1")
    assert [row.case for row in read_results(written(tmp_path / "rows.csv", *texts), "rows.csv")] == [
        "264",
        "265",
        "1.50",
    ]
    frame = [{"case": 264.0, "metric": "f1", "score": 1}, {"case": "265.0", "metric": "f1", "score": 1}]
    assert [row.case for row in results_of(frame)] == ["264", "265"]


def test_rows_fit_the_published_schema() -> None:
    validator = pytest.importorskip("jsonschema").Draft202012Validator(results_schema())
    assert [each for row in ROWS for each in validator.iter_errors(data_of(row))] == []
    for wrong in ({"case": "a", "metric": "m"}, {"case": "a", "score": 1}, {"case": "a", "metric": "m", "score": "1"}):
        assert not validator.is_valid(wrong), wrong
    both = {"case": "a", "metric": "m", "score": 1, "error": "rate limit"}
    assert not validator.is_valid(both)
    assert validator.is_valid({**both, "error": None})


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"case": "a", "metric": "m"}', "rows.jsonl:1:1  found none of score, error, abstained and skipped, expected"),
        (
            '{"case": "a", "metric": "m", "score": 0, "error": "x"}',
            "found score and error of score, error,",
        ),
        ('{"case": "a", "metric": "m", "score": "1"}', "1:1  score: found the text '1', expected a finite number"),
        ('{"case": "a", "metric": "m", "score": 1e999}', "rows.jsonl:1:"),
        ('{"case": "", "metric": "m", "score": 1}', "case: found the text '', expected a text without control"),
        ('{"case": "a", "score": 1}', "metric is missing"),
        ('{"case": "a", "metric": "m", "score": 1, "repeat": 1.5}', "repeat: found the number 1.5, expected a whole"),
        ('{"case": "a", "metric": "m", "score": 1, "cost": -1}', "cost: found the number -1, expected a number of at"),
        ('{"case": "a", "metric": "m", "score": 1, "labels": {"a": []}}', "labels: found a mapping with 'a', expected"),
        ('{"case": "a", "metric": "m", "error": " "}', "error: found the text ' ', expected a text that is not empty"),
    ],
)
def test_faults_name_the_place_and_what_was_expected(tmp_path: Path, line: str, fault: str) -> None:
    good = '{"case": "z", "metric": "m", "score": 1}'
    with pytest.raises(SuiteError) as caught:
        read_results(written(tmp_path / "rows.jsonl", line, good), "rows.jsonl")
    assert fault in str(caught.value)


def test_a_row_is_said_once_and_a_metric_is_computed_in_one_way(tmp_path: Path) -> None:
    row = '{"case": "a", "metric": "m", "score": 1}'
    with pytest.raises(SuiteError) as caught:
        read_results(
            written(
                tmp_path / "rows.jsonl",
                row,
                "",
                row,
                '{"case": "b", "metric": "m", "score": 1, "signature": "v2"}',
                "7",
            ),
            "rows.jsonl",
        )
    first, second, third = str(caught.value).splitlines()
    assert (
        "rows.jsonl:3:1  case: found case 'a', metric 'm', repeat 1 twice, expected it once (first in line 1)" in first
    )
    assert "rows.jsonl:4:1  signature: found 'v2', expected ''" in second
    assert "rows.jsonl:5:1  found the number 7, expected an object" in third
    with pytest.raises(SuiteError, match=r"\[1\]\.case: found case 'a'.* twice"):
        results_of([json.loads(row)] * 2)


def test_unknown_columns_are_ignored_in_one_line(tmp_path: Path) -> None:
    lines = [
        f'{{"case": "{case}", "metric": "m", "score": 1, "labls": {{}}, "model": "m", "answer": ""}}' for case in "ab"
    ]
    rows = read_results(written(tmp_path / "rows.jsonl", *lines), "rows.jsonl")
    assert [row.case for row in rows] == ["a", "b"]
    ignored = "'labls' (did you mean 'labels'?), 'model', 'answer' (did you mean 'output'?)"
    assert rows.notes == [f"rows.jsonl: ignored 3 columns: {ignored}"]


def test_columns_are_mapped_to_fields(tmp_path: Path) -> None:
    table = written(tmp_path / "rows.csv", "id;correct;f1;latency;question", "q1;1;0,5;2;Why?", "q2;0;;2;Who?")
    with pytest.raises(
        SuiteError,
        match=r"are not those of llmeval schema results: name the columns with --map id=case,correct=score,f1=score$",
    ):
        read_results(table, "rows.csv")
    columns = {"id": "case", "correct": "score", "f1": "score", "question": "input"}
    rows = read_results(table, "rows.csv", columns=columns)
    assert [(row.case, row.metric, row.score, row.error, row.input) for row in rows] == [
        ("q1", "correct", 1, "", "Why?"),
        ("q1", "f1", 0.5, "", "Why?"),
        ("q2", "correct", 0, "", "Who?"),
        ("q2", "f1", None, "no value", "Who?"),
    ]
    with pytest.raises(SuiteError, match=r"unknown column ids, did you mean id"):
        read_results(table, "rows.csv", columns={"ids": "case"})


def test_a_folder_of_logs_is_the_newest_or_a_choice(tmp_path: Path) -> None:
    for day in (1, 2):
        line = f'{{"case": "a", "metric": "m", "score": {day}}}'
        written(tmp_path / f"2026-11-0{day}T10-00-00_shop.jsonl", line)
    rows = read_results(tmp_path, "logs")
    assert ([row.score for row in rows], rows.notes) == ([2], ["logs: read 2026-11-02T10-00-00_shop.jsonl"])
    written(tmp_path / "other.jsonl", line)
    with pytest.raises(SuiteError, match="3 files are in this folder: pass one, such as 2026-11-01"):
        read_results(tmp_path, "logs")


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"expected results of one of promptfoo.* or rows with case"):
        read_results(written(tmp_path / "rows.jsonl", '{"id": 1}'), "rows.jsonl")
    with pytest.raises(SuiteError, match="found an empty file"):
        read_results(written(tmp_path / "rows.jsonl"), "rows.jsonl")
    with pytest.raises(SuiteError, match="the file has no result"):
        read_results(written(tmp_path / "rows.csv", "case,metric,score"), "rows.csv", "results")
    with pytest.raises(LlmevalError, match="found the columns id, expected case, metric and one of score"):
        results_of([{"id": 1}])


def test_what_is_wrong_in_the_same_way_in_many_rows_is_listed_three_times_and_counted(tmp_path: Path) -> None:
    lines = (json.dumps({"case": f"c{number}", "metric": "m", "score": "x"}) for number in range(50))
    with pytest.raises(SuiteError) as caught:
        read_results(written(tmp_path / "rows.jsonl", *lines), "rows.jsonl")
    assert [each.line for each in caught.value.faults] == [1, 2, 3, 0]
    assert caught.value.faults[-1].message == "... and 47 more"


def test_repeats_may_be_counted_from_0(tmp_path: Path) -> None:
    lines = (json.dumps({"case": "a", "repeat": number, "metric": "m", "score": 1}) for number in range(3))
    rows = read_results(written(tmp_path / "rows.jsonl", *lines), "rows.jsonl")
    assert [each.repeat for each in rows] == [0, 1, 2]
