"""How results travel from a test item to the controller: one JSON string on the item's report.

A string is the only thing that xdist carries fast and whole, and a worker that dies takes only its unreported cases
with it.
"""

__all__ = ("Payload", "SuiteKey", "decode", "encode")

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_llmeval.case import MISSING
from pytest_llmeval.execute import Execution
from pytest_llmeval.observation import Observation
from pytest_llmeval.predict import recording
from pytest_llmeval.results import CaseRecord
from pytest_llmeval.usage import Call


class SuiteKey(NamedTuple):
    """What results are gathered under.

    Attributes:
        path: The suite file.
        shown: The file as reports name it: relative to pytest's rootdir, with forward slashes.
        test: Name of the Python test that ran the suite's cases; empty for the suite's own items.
        variant: Id of the parameters of ``llmeval_target``; empty where it has none.
    """

    path: str
    shown: str
    test: str = ""
    variant: str = ""


@dataclass(slots=True)
class Payload:
    """The decoded content of a report."""

    key: SuiteKey
    total: int
    records: list[CaseRecord]
    predictions: list[dict[str, Any]]


def encode(key: SuiteKey, total: int, executions: Sequence[Execution], *, predictions: bool) -> str:
    """Write executed cases as one line of ASCII."""
    entries = []
    for execution in executions:
        record = execution.record
        entry: dict[str, Any] = {"id": record.id, "outcome": record.outcome}
        if record.observations:
            entry["obs"] = {label: each.to_json() for label, each in record.observations.items()}
        if record.errors:
            entry["errors"] = record.errors
        if record.reason is not None:
            entry["reason"] = record.reason
        if record.duration_s:
            entry["s"] = record.duration_s
        if record.calls:
            entry["calls"] = record.calls
        if record.target_seconds:
            entry["target_s"] = record.target_seconds
        if record.repeats is not None:
            entry["repeats"] = record.repeats
        if predictions:
            made = [
                recording(key.shown, key.variant, case, repeat)
                for repeat, case in enumerate(execution.answered)
                if case.prediction is not MISSING
            ]
            if made:
                entry["recordings"] = made
        entries.append(entry)
    return json.dumps([key, total, entries])


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
            calls=tuple(Call(*call) for call in entry.get("calls", ())),
            target_seconds=tuple(entry.get("target_s", ())),
            repeats=entry.get("repeats"),
        )
        for entry in entries
    ]
    return Payload(SuiteKey(*key), total, records, [row for entry in entries for row in entry.get("recordings", ())])
