"""The comparison of JSON reports finds every difference but times."""

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from project import ROOT

REPORT = {
    "schema_version": 1,
    "run": {"started_at": "2026-01-01", "duration_s": 1.5, "version": "1", "commit": "a"},
    "suites": [{"metrics": {"f1": {"value": 0.5}}, "cases": [{"id": "a"}], "usage": {"latency_s": {"p50": 1.0}}}],
}


def compared(folder: Path, change: Callable[[Any], object]) -> tuple[int, list[str]]:
    changed = copy.deepcopy(REPORT)
    change(changed)
    paths = [folder / "old.json", folder / "new.json"]
    for path, report in zip(paths, (REPORT, changed), strict=True):
        path.write_text(json.dumps(report), encoding="utf-8")
    script = ROOT / "benchmarks" / "same_reports.py"
    done = subprocess.run([sys.executable, script, *paths], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_times_commit_and_version_may_differ(tmp_path: Path) -> None:
    def later(report: Any) -> None:
        report["run"] = {"started_at": "2027", "duration_s": 9, "version": "2", "commit": None}
        report["suites"][0]["usage"]["latency_s"] = {"p50": 2.0}

    assert compared(tmp_path, later) == (0, ["1 suites, no difference"])


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda report: report["suites"][0]["metrics"]["f1"].update(value=0.25),
            "$.suites[0].metrics.f1.value: 0.5 -> 0.25",
        ),
        (
            lambda report: report["suites"][0]["cases"].append({"id": "b"}),
            '$.suites[0].cases[1]: absent -> {"id": "b"}',
        ),
        (lambda report: report.update(faults={}), "$.faults: absent -> {}"),
        (lambda report: report["suites"][0].pop("cases"), '$.suites[0].cases: [{"id": "a"}] -> absent'),
        (lambda report: report.update(schema_version=True), "$.schema_version: 1 -> true"),
        (
            lambda report: report.update(suites=report.pop("suites"), run=report.pop("run")),
            "$: the order of keys: schema_version, run, suites -> schema_version, suites, run",
        ),
    ],
)
def test_any_other_difference_is_printed_with_its_path(
    tmp_path: Path, change: Callable[[Any], object], line: str
) -> None:
    assert compared(tmp_path, change) == (1, [line])
