"""The payload of a test report: results of cases as one line of text."""

__all__ = ("Payload", "decode", "encode")

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core.case import MISSING
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.results import AnswerShown, CaseRecord, JudgeCall, JudgingShown, TargetUsage
from pytest_llmeval.run.execute import Execution
from pytest_llmeval.run.explaining import shown_value
from pytest_llmeval.services.secrets import secret_values
from pytest_llmeval.suite.suite import SuiteKey


@dataclass(slots=True)
class Payload:
    """The decoded content of a report."""

    key: SuiteKey
    total: int
    records: list[CaseRecord]
    predictions: list[dict[str, Any]]


def encode(
    key: SuiteKey,
    total: int,
    executions: Sequence[Execution],
    *,
    predictions: bool,
    secrets: Sequence[str] = (),
    all_answers: bool = False,
) -> str:
    """Write executed cases as one line of ASCII.

    Args:
        key: What their results are gathered under.
        total: How many cases the suite has.
        executions: The cases.
        predictions: Whether to add what is recorded of predictions.
        secrets: Environment variables whose values no answer shows.
        all_answers: Whether to add the answers of cases with which nothing is wrong.
    """
    entries = []
    hidden: Collection[str] | None = None
    for execution in executions:
        record = execution.record
        entry = _entry(record)
        if all_answers or record.lines or record.outcome != "passed":
            hidden = secret_values(secrets) if hidden is None else hidden
            entry |= _shown(record, hidden)
        if predictions:
            from pytest_llmeval.targets.python import recording

            made = [
                recording(key.shown, key.variant, case, repeat)
                for repeat, case in enumerate(execution.answered)
                if case.prediction is not MISSING
            ]
            if made:
                entry["recordings"] = made
        entries.append(entry)
    return json.dumps([key, total, entries])


def _entry(record: CaseRecord) -> dict[str, Any]:
    """Return the result of a case as JSON data; empty parts are left out."""
    entry: dict[str, Any] = {"id": record.id, "outcome": record.outcome}
    if record.reason is not None:
        entry["reason"] = record.reason
    optional = {
        "obs": {label: each.to_json() for label, each in record.observations.items()},
        "errors": record.errors,
        "s": record.duration_s,
        "calls": record.calls,
        "target_s": record.target_seconds,
        "target_usage": record.target_usage,
        "repeats": record.repeats,
    }
    return entry | {name: value for name, value in optional.items() if value}


def _shown(record: CaseRecord, secrets: Collection[str]) -> dict[str, Any]:
    """Return what people see of a case with which something is wrong."""
    answers = [(shown_value(each.value, secrets), each.times) for each in record.answers]
    judgings = [
        each._replace(
            question={name: shown_value(text, secrets) for name, text in each.question.items()},
            reply=shown_value(each.reply, secrets),
        )
        for each in record.judgings
    ]
    optional = {"lines": record.lines, "answers": answers, "judgings": judgings}
    return {name: value for name, value in optional.items() if value}


def decode(text: str) -> Payload:
    """Read what `encode` wrote."""
    key, total, entries = json.loads(text)
    records = [
        CaseRecord(
            entry["id"],
            outcome=entry["outcome"],
            observations={label: Observation.from_json(data) for label, data in entry.get("obs", {}).items()},
            errors=entry.get("errors", {}),
            reason=entry.get("reason"),
            duration_s=entry.get("s", 0.0),
            calls=tuple(JudgeCall(*call) for call in entry.get("calls", ())),
            target_seconds=tuple(entry.get("target_s", ())),
            target_usage=tuple(TargetUsage(*each) for each in entry.get("target_usage", ())),
            repeats=entry.get("repeats"),
            lines=entry.get("lines", {}),
            answers=tuple(AnswerShown(*each) for each in entry.get("answers", ())),
            judgings=tuple(JudgingShown(*each) for each in entry.get("judgings", ())),
        )
        for entry in entries
    ]
    return Payload(SuiteKey(*key), total, records, [row for entry in entries for row in entry.get("recordings", ())])
