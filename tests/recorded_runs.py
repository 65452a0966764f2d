"""JSON reports of runs as files, without running anything."""

__all__ = ("recorded_case", "recorded_suite", "write_run")

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def recorded_case(name: str, outcome: str = "passed", **scores: float | None) -> dict[str, Any]:
    """Return a case of a report."""
    return {"id": name, "outcome": outcome, "metrics": scores, "details": {}, "reason": None, "duration_s": 0.1}


def recorded_suite(cases: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a suite of a report whose metrics are those of its cases."""
    nothing = {"value": None, "mean": None, "low": None, "high": None}
    counts = {"scored": len(cases), "undefined": 0, "errored": 0, "missing": 0, "signature": ""}
    outcomes = [case["outcome"] for case in cases]
    return {
        "suite": "s",
        "path": "s.eval.yaml",
        "counts": {"total": len(cases), **{each: outcomes.count(each) for each in dict.fromkeys(outcomes)}},
        "metrics": {name: {**nothing, **counts} for case in cases for name in case["metrics"]},
        "groups": {},
        "gates": [],
        "cases": list(cases),
        **more,
    }


def write_run(path: Path, *suites: Mapping[str, Any], day: int = 2, **more: Any) -> Path:
    """Write the report of a run in January."""
    run = {"started_at": f"2026-01-{day:02d}T10:00:00+00:00", "duration_s": 1.0, "version": "1", "commit": "c" * 40}
    path.write_text(json.dumps({"schema_version": 1, "run": run, "suites": suites, **more}), encoding="utf-8")
    return path
