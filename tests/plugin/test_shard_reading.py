"""Shards that read only their own rows, judged together, are one run."""

import csv
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet
from running import run_python

from pytest_llmeval.run import ShardFile

if TYPE_CHECKING:
    from conftest import Project

SHARDS = 2
ROWS = [
    {"id": f"c{number}", "input": "w", "expected": "w", "prediction": "wx"[number % 3 == 0], "labels": {"kind": kind}}
    for number, kind in enumerate("aabbcc" * 3)
]
TARGET = """\
import pytest

@pytest.fixture(params=["one", "two"])
def llmeval_target(request):
    return lambda text: text if request.param == "one" else "other"
"""
OVER = """\
import pytest

@pytest.mark.llmeval("over.yaml")
def test_over(case):
    case.score("w")
"""


def write_rows(folder: Path) -> None:
    """Write the rows in three formats, and once with a row that has to be answered."""
    lines = [json.dumps(row) for row in ROWS]
    (folder / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    answered = json.dumps({"id": "open", "input": "w", "expected": "w"})
    (folder / "open.jsonl").write_text("\n".join([*lines, answered]), encoding="utf-8")
    parquet.write_table(pa.Table.from_pylist(ROWS), folder / "rows.parquet", row_group_size=5)
    with (folder / "rows.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["input", "expected", "prediction", "labels.kind"])  # without ids, rows are counted
        writer.writerows([row["input"], row["expected"], row["prediction"], row["labels"]["kind"]] for row in ROWS)


def essence(path: Path) -> Any:
    """Return the suites of a report without their times."""
    times = ("duration_s", "latency", "usage")
    data = json.loads(
        path.read_text(encoding="utf-8"),
        object_hook=lambda each: {name: value for name, value in each.items() if name not in times},
    )
    return data["suites"]


def test_shards_of_three_formats_merge_into_the_report_of_one_run(project: "Project") -> None:
    write_rows(project.path)
    keys = {"group_by": ["kind"], "gates": ["f1 >= 0.5", {"metric": "exact_match", "min": 0.9}]}
    for kind, file in {"jsonl": "rows.jsonl", "csv": "rows.csv", "arrow": "rows.parquet"}.items():
        text = {"evaluators": ["text"], "source": {"format": kind, "path": file}, **keys}
        project.write(f"{kind}.eval.json", json.dumps(text))
    rows = {"evaluators": ["text"], "source": {"format": "jsonl", "path": "rows.jsonl"}}
    project.write("bulk.eval.json", json.dumps({**rows, "mode": "bulk"}))
    project.write("over.yaml", json.dumps(rows))
    project.write("test_over.py", OVER)
    project.write("sub/open.eval.json", json.dumps({**rows, "source": {"format": "jsonl", "path": "../open.jsonl"}}))
    project.write("sub/conftest.py", TARGET)
    for number in range(1, SHARDS + 1):
        how = (f"--llmeval-shard={number}/{SHARDS}", f"--llmeval-report=parts/{number}.llmeval")
        ran = project.run(*how, workers=2 * (number == 1), report="part.json")
        assert "llmeval merge" in ran.text
    origins = [ShardFile.read(each, project.path).origin for each in sorted((project.path / "parts").iterdir())]
    # Six suites or tests of as many rows, of which the one with the fixture has a row more and runs twice.
    assert {each.items for each in origins} == {4 * len(ROWS) + len(ROWS) + 2 * (len(ROWS) + 1)}
    line = ["-m", "pytest_llmeval", "merge", "parts", "--report=merged.json"]
    merged = run_python(line, os.environ, project.path)
    whole = project.run()
    assert merged.code == whole.code == 1, merged.out + merged.err
    assert essence(project.path / "merged.json") == essence(project.path / "report.json")
    assert len(whole.report["suites"]) == 7


def test_a_merge_refuses_shards_of_other_versions_of_a_file(project: "Project") -> None:
    source = {"format": "jsonl", "path": "rows.jsonl"}
    project.write("s.eval.json", json.dumps({"evaluators": ["text"], "source": source}))
    for number, last in ((1, "c17"), (2, "other")):
        rows = [*ROWS[:-1], {**ROWS[-1], "id": last}]
        project.write("rows.jsonl", "\n".join(map(json.dumps, rows)))
        project.run(f"--llmeval-shard={number}/{SHARDS}", f"--llmeval-report=parts/{number}.llmeval")
    merged = run_python(["-m", "pytest_llmeval", "merge", "parts"], os.environ, project.path)
    assert merged.code == 1
    assert "1.llmeval: found a run of s.eval.json that differs in data, expected what is checked out here" in merged.err
    project.write("rows.jsonl", "\n".join(map(json.dumps, ROWS)))
    merged = run_python(["-m", "pytest_llmeval", "merge", "parts"], os.environ, project.path)
    assert "found all tests over cases '18 tests with fingerprint" in merged.err
