"""Rows of data frames and tables, and files of Arrow and Parquet."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from pydantic import BaseModel

from pytest_llmeval.core import Case, LlmevalError
from pytest_llmeval.data import rows_of
from pytest_llmeval.suites import Registry, load_suite

COLUMNS = {
    "id": ["a", "b"],
    "n": [3, None],
    "share": [0.5, float("nan")],
    "when": [datetime.datetime(2026, 1, 2, 3, 4, 5), None],
    "tags": [["x", "y"], []],
}
ROWS = [
    {"id": "a", "n": 3, "share": 0.5, "when": "2026-01-02T03:04:05", "tags": ["x", "y"]},
    {"id": "b", "tags": []},
]


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, lambda data: pl.DataFrame(data).lazy(), pa.table, datasets.Dataset.from_dict],
    ids=["pandas", "polars", "lazy", "arrow", "datasets"],
)
def test_rows_are_plain_and_absent_cells_are_left_out(make: Callable[[Any], Any]) -> None:
    assert list(rows_of(make(COLUMNS))) == ROWS


def test_rows_may_be_mappings_cases_and_typed_objects() -> None:
    @dataclass
    class Point:
        id: str
        input: int

    class Model(BaseModel):
        id: str
        when: datetime.date

    rows = rows_of(
        [{"id": np.int64(3), "x": Decimal("1.5")}, Case("c", "q", "e"), Point("p", 2), Model(id="m", when="2026-01-02")]
    )  # type: ignore[arg-type]
    assert list(rows) == [
        {"id": 3, "x": 1.5},
        {"id": "c", "input": "q", "expected": "e"},
        {"id": "p", "input": 2},
        {"id": "m", "when": "2026-01-02"},
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "found int, expected a data frame"),
        ({"train": 1, "test": 2}, "found dict with the keys train, test: choose one"),
        ([1], "row 0: found int, expected a data frame"),
        ([{"a": {1, 2}}], "row 0, a: found set, expected JSON data"),
    ],
)
def test_what_has_no_rows_is_refused(data: Any, message: str) -> None:
    with pytest.raises(LlmevalError, match=message):
        list(rows_of(data))


def write(folder: Path, kind: str) -> str:
    table = pa.table({"id": ["a", "b"], "input": ["q", "r"], "expected": ["x", None], "prediction": ["x", "y"]})
    path = folder / f"data.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path)
    elif kind == "saved":
        datasets.Dataset(table).save_to_disk(path)
    elif kind == "splits":
        datasets.DatasetDict({"test": datasets.Dataset(table)}).save_to_disk(path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    return path.name


@pytest.mark.parametrize(("kind", "more"), [("parquet", ""), ("arrow", ""), ("saved", ""), ("splits", ", split: test")])
def test_files_and_saved_datasets_are_sources(tmp_path: Path, kind: str, more: str) -> None:
    name = write(tmp_path, kind)
    suite = tmp_path / "s.eval.yaml"
    suite.write_text(f"evaluators: [text]\nsource: {{format: arrow, path: {name}{more}}}\n")
    cases = load_suite(suite, Registry.installed(), root=tmp_path).cases
    assert [(case.id, case.input, case.expected, case.prediction, case.line) for case in cases] == [
        ("a", "q", "x", "x", 1),
        ("b", "r", None, "y", 2),
    ]


def test_a_table_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "data.parquet").write_text("no table")
    write(tmp_path, "splits")
    suite = tmp_path / "s.eval.yaml"
    for path, fault in (
        ("data.parquet", "cannot be read as Arrow or Parquet"),
        ("data.splits", "found split None, expected one of test"),
    ):
        suite.write_text(f"evaluators: [text]\nsource: {{format: arrow, path: {path}}}\n")
        with pytest.raises(LlmevalError, match=fault):
            load_suite(suite, Registry.installed(), root=tmp_path)
