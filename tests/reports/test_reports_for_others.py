"""Reports for other tools: the Common Test Report Format, and Parquet."""

import builtins
import json
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from msgspec import structs

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import GateResult
from pytest_llmeval.reports import RunReport, RunStart, SuiteReport, WrittenReports
from pytest_llmeval.reports._ctrf import to_ctrf

CASES = [
    Case("right", expected="x", prediction="x", labels={"topic": "a"}),
    Case("half \ud800", expected="x y", prediction="x"),
    Case("unknown", prediction="x"),
]

_TEXT: dict[str, Any] = {"type": "string"}
_WHOLE: dict[str, Any] = {"type": "integer"}
_STATUS: dict[str, Any] = {"enum": ["passed", "failed", "skipped", "pending", "other"]}
_COUNTS = ("tests", "passed", "failed", "skipped", "pending", "other", "suites", "start", "stop")


def _closed(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


CTRF = _closed(
    ("reportFormat", "specVersion", "results"),
    reportFormat={"const": "CTRF"},
    specVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
    generatedBy=_TEXT,
    results=_closed(
        ("tool", "summary", "tests"),
        tool=_closed(("name",), name=_TEXT, version=_TEXT),
        summary=_closed(_COUNTS, **dict.fromkeys(_COUNTS, _WHOLE)),
        environment=_closed((), commit=_TEXT),
        tests={
            "type": "array",
            "items": _closed(
                ("name", "status", "duration"),
                name={"type": "string", "minLength": 1},
                status=_STATUS,
                duration=_WHOLE,
                suite={"type": "array", "minItems": 1, "items": _TEXT},
                rawStatus=_TEXT,
                message=_TEXT,
                filePath=_TEXT,
                line=_WHOLE,
                tags={"type": "array", "items": _TEXT},
                labels={"type": "object", "additionalProperties": _TEXT},
                flaky={"type": "boolean"},
                extra={"type": "object"},
            ),
        },
    ),
)
"""What the published schema requires and allows of the parts that are written."""


def run() -> RunReport:
    result = score(get_evaluator("text", metrics=["f1"]), CASES)
    failed = structs.replace(result.cases[1], outcome="failed", reason="f1: 0.67 < 0.9")
    cases = [result.cases[0], failed, result.cases[2]]
    object.__setattr__(result, "cases", cases)
    gates = [GateResult("f1 >= 0.9", "undecided", 0.8, 0.9, "not enough cases")]
    suite = SuiteReport.of_result("s[gpt]", "s.eval.yaml", result, gates, 3, variant="gpt")
    return RunReport(
        run=RunStart("2026-01-02T03:04:05+00:00", 1.5, "1", "abc"), suites=[suite], faults={"t.eval.yaml": ["wrong"]}
    )


def test_every_case_gate_and_faulty_file_is_a_test_of_ctrf(tmp_path: Path) -> None:
    written = WrittenReports.write(run(), [tmp_path / "out" / "ctrf-report.json"])
    assert written.missing == []
    report = json.loads((tmp_path / "out" / "ctrf-report.json").read_text(encoding="utf-8"))
    assert report == json.loads(json.dumps(to_ctrf(run())))
    jsonschema.validate(report, CTRF)
    summary = report["results"]["summary"]
    assert summary["start"] == 1767323045000
    assert (summary["stop"] - summary["start"], summary["suites"], summary["tests"]) == (1500, 1, 5)
    assert {status: summary[status] for status in _STATUS["enum"]} == {
        "passed": 2,
        "failed": 2,
        "skipped": 0,
        "pending": 0,
        "other": 1,
    }
    right, half, _, gate, faulty = report["results"]["tests"]
    assert (right["name"], right["suite"], right["labels"]) == ("right", ["s.eval.yaml", "s[gpt]"], {"topic": "a"})
    assert right["extra"] == {"metrics": {"f1": 1.0}}
    assert (half["status"], half["message"]) == ("failed", "f1: 0.67 < 0.9")
    assert (gate["name"], gate["rawStatus"], gate["tags"]) == ("gate[f1 >= 0.9]", "undecided", ["gate"])
    assert (faulty["name"], faulty["status"], faulty["message"]) == ("t.eval.yaml", "failed", "wrong")


@pytest.mark.parametrize(("name", "is_ctrf"), [("ctrf.json", True), ("my-ctrf.json", True), ("notctrf.json", False)])
def test_the_name_of_a_file_says_that_it_is_ctrf(tmp_path: Path, name: str, is_ctrf: bool) -> None:
    WrittenReports.write(run(), [tmp_path / name])
    assert ("reportFormat" in json.loads((tmp_path / name).read_text(encoding="utf-8"))) is is_ctrf


def test_scores_are_rows_of_a_parquet_file(tmp_path: Path) -> None:
    cases = [Case("a", expected="x", prediction="x", labels={"topic": "t"}), Case("b", prediction="x")]
    result = score(get_evaluator("text", metrics=["f1"]), cases)
    suite = SuiteReport.of_result("s[gpt]", "s.eval.yaml", result, [], 2, variant="gpt")
    WrittenReports.write(RunReport(run=RunStart("now", 1.0, "1"), suites=[suite]), [tmp_path / "scores.parquet"])
    rows = pq.read_table(tmp_path / "scores.parquet").to_pylist()
    assert rows == [
        {
            "suite": "s",
            "path": "s.eval.yaml",
            "case": case,
            "outcome": "passed",
            "system": "gpt",
            "repeat": 0,
            "metric": "f1",
            "value": value,
            "reason": reason,
            "label.topic": topic,
        }
        for case, value, reason, topic in (("a", 1.0, None, "t"), ("b", None, "no expected answer", None))
    ]


def test_without_pyarrow_the_other_reports_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without_pyarrow(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "pyarrow":
            raise ImportError(name)
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    written = WrittenReports.write(run(), [tmp_path / "s.parquet", tmp_path / "r.md"])
    assert written.written == [tmp_path / "r.md"]
    (line,) = written.missing
    assert "s.parquet: a report in Parquet needs the extra 'parquet' (pyarrow" in line
    assert line.endswith("): pip install 'pytest-llmeval-suite[parquet]'")
