"""The JSON report: versioned, stable, full precision."""

__all__ = ("SCHEMA_VERSION", "to_json", "write_json")

import json
from collections.abc import Mapping
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import structs, to_builtins

from pytest_llmeval.core.results import JudgingShown, MetricValue
from pytest_llmeval.data.files.json import visible_json
from pytest_llmeval.data.files.writing import write_text
from pytest_llmeval.gates.limits import GateResult
from pytest_llmeval.reports.errors import bucket_names
from pytest_llmeval.reports.form import RunReport, SuiteReport
from pytest_llmeval.reports.mutation import survival_json
from pytest_llmeval.reports.notes import CaseNote, WorstCases
from pytest_llmeval.reports.systems import systems_json
from pytest_llmeval.reports.tables import FilledTable
from pytest_llmeval.scoring.usage import Money, UsageReport, total_money

SCHEMA_VERSION = 1

_METRIC = ("value", "mean", "low", "high", "scored", "undefined", "errored", "missing", "signature")


def to_json(report: RunReport) -> dict[str, Any]:
    """Return the report as JSON data."""
    money = total_money(each.money for each in report.suites)
    return {
        "schema_version": SCHEMA_VERSION,
        "run": {
            "started_at": report.started_at,
            "duration_s": report.duration_s,
            "version": report.version,
            "commit": report.commit,
        },
        "suites": [_suite(each) for each in report.suites],
        **({"money": _money(money)} if money is not None else {}),
        **({"systems": [systems_json(each) for each in report.systems]} if report.systems else {}),
        **({"mutation": list(map(survival_json, report.mutation))} if report.mutation else {}),
        **({"faults": {path: list(lines) for path, lines in report.faults.items()}} if report.faults else {}),
    }


def _suite(suite: SuiteReport) -> dict[str, Any]:
    groups = {
        key: {name: {"cases": group.cases, "metrics": _metrics(group.metrics)} for name, group in members.items()}
        for key, members in suite.result.groups.items()
    }
    label = suite.result.clusters.label if suite.result.clusters else ""
    labels = {each.id: dict(each.labels) for each in suite.result.records}
    clusters = {each.id: each.labels[label] for each in suite.result.records if label in each.labels}
    return {
        "suite": suite.suite,
        "path": suite.path,
        **({"variant": suite.variant} if suite.variant else {}),
        "counts": suite.counts,
        "metrics": _metrics(suite.result.metrics),
        **({"lower_is_better": list(suite.lower_is_better)} if suite.lower_is_better else {}),
        **({"clusters": structs.asdict(suite.result.clusters)} if suite.result.clusters else {}),
        **({"shared_inputs": suite.shared_inputs} if suite.shared_inputs else {}),
        **({"left_out": suite.left_out} if suite.left_out else {}),
        **({"sample": structs.asdict(suite.sample)} if suite.sample is not None else {}),
        **({"stop": structs.asdict(suite.stop)} if suite.stop is not None else {}),
        **({"usage": _usage(suite.usage)} if suite.usage is not None else {}),
        **({"money": _money(suite.money)} if suite.money is not None else {}),
        **({"stability": suite.stability} if suite.stability else {}),
        "groups": groups,
        **({"tables": [_table(each) for each in suite.tables]} if suite.tables else {}),
        "gates": [_gate(gate) for gate in suite.gates],
        **({"snapshot": [asdict(verdict) for verdict in suite.snapshot]} if suite.snapshot else {}),
        "cases": [
            {
                "id": case.id,
                "outcome": case.outcome,
                **({"cluster": clusters[case.id]} if case.id in clusters else {}),
                "metrics": dict(case.metrics),
                "details": dict(case.details),
                "reason": case.reason,
                "duration_s": round(case.duration_s, 6),
                **({"labels": labels[case.id]} if labels[case.id] else {}),
                **({"unmet": list(case.unmet)} if case.unmet else {}),
                **_note(suite.note(case.id)),
            }
            for case in suite.result.cases
        ],
        **({"ranges": {name: list(each) for name, each in suite.ranges.items()}} if suite.ranges else {}),
        **({"worst": _worst(suite.worst)} if suite.worst else {}),
        "error_buckets": [
            {**bucket_names(each), "cases": [case.id for case in each.cases]} for each in suite.named_buckets
        ],
    }


def _gate(gate: GateResult) -> dict[str, Any]:
    """Write a gate, with the bounds of its interval if the gate has one of its own."""
    written = asdict(gate)
    bounds = written.pop("interval")
    if not written["undecided"]:
        del written["undecided"]
    return written if bounds is None else written | {"low": bounds[0], "high": bounds[1]}


def _table(table: FilledTable) -> dict[str, Any]:
    """Write a table as reports draw it; a confusion matrix has the cases behind its cells."""
    return {
        "title": table.title,
        "headers": list(table.headers),
        "rows": [list(row) for row in table.rows],
        **({"cases": [[*place, list(ids)] for place, ids in table.cases.items()]} if table.cases else {}),
        **({"left_out": table.left_out} if table.left_out else {}),
        **({"note": table.note} if table.note else {}),
    }


def _worst(worst: WorstCases) -> dict[str, Any]:
    return {"metric": worst.metric, "cases": [{"id": case, "score": score} for case, score in worst.scores.items()]}


def _note(note: CaseNote) -> dict[str, Any]:
    """Return location, findings and texts of a case, leaving out what is empty."""
    lines = {label: list(lines) for label, lines in note.lines.items()}
    known = {name: value for name, value in (("line", note.line), ("file", note.file), ("lines", lines)) if value}
    judgings = {"judgings": [_judging(each) for each in note.judgings]} if note.judgings else {}
    return known | ({**note.texts(), **judgings} if note.has_texts else {})


def _judging(judging: JudgingShown) -> dict[str, Any]:
    """Write a question with its reply, and the juror if there is a panel."""
    written = judging._asdict()
    return written if judging.judge else {name: value for name, value in written.items() if name != "judge"}


def _usage(usage: UsageReport) -> dict[str, Any]:
    """Write the usage, with that of the target if it is known."""
    written: dict[str, Any] = to_builtins(usage)
    if usage.target_tokens is None and usage.target_cost_usd is None:
        del written["target_tokens"], written["target_cost_usd"]
    for name in ("jurors", "cascades"):
        if not written[name]:
            del written[name]
    return written


def _money(money: Money) -> dict[str, Any]:
    """Write what was spent, what was saved, and what a full run would have cost."""
    spent = {"judges": money.judges, "users": money.users, "targets": money.targets, "total": money.spent}
    saved = {"stored": money.stored, "stop": money.stop, "cascade": money.cascade, "total": money.saved}
    return {"spent": spent, "saved": saved, "full": money.full}


def _metrics(metrics: Mapping[str, MetricValue]) -> dict[str, Any]:
    return {
        name: {
            **{field: getattr(value, field) for field in _METRIC},
            **({"reason": value.reason} if value.reason else {}),
        }
        for name, value in metrics.items()
    }


def write_json(report: RunReport, path: Path) -> None:
    """Stream the report to a file; lone surrogates are written as escapes."""
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=1)
    write_text(path, visible_json(chain(encoder.iterencode(to_json(report)), ["\n"])))
