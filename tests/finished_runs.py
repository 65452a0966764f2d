"""Runs that end without pytest: records and suites go in, verdicts, files and a report come out."""

__all__ = ("KnownSuites", "finished", "recorded")

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lengths import key_of

from pytest_llmeval.baselines.mode import SnapshotMode
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.run.finishing import finish_run
from pytest_llmeval.run.run_record import Item, ItemResult, RunRecord, SuitePart
from pytest_llmeval.run.stages import Reported, RunTerms
from pytest_llmeval.suite.suite import Suite, SuiteKey


@dataclass
class KnownSuites:
    """Implements `pytest_llmeval.run.stages.Suites` for suites at hand; the file of any other one has gone."""

    root: Path
    suites: Mapping[Path, Suite]
    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def read(self, path: Path) -> Suite:
        if path not in self.suites:
            raise LlmevalError("the file has gone")
        return self.suites[path]

    def judges(self, key: SuiteKey, suite: Suite) -> Mapping[str, Mapping[str, str]]:
        del key, suite
        return self.known


def recorded(suite: Suite, *records: CaseRecord, into: RunRecord | None = None, **key: str) -> RunRecord:
    """Return the record of a run, or add to one, in which each case of a suite was an item that passed."""
    run = RunRecord(started=1_767_312_000.0, seconds=1.5) if into is None else into
    for each in records:
        part = SuitePart(key_of(suite, **key), suite.total, [each])
        run.items[Item(suite.path.name, f"{suite.path.name}::{key}::{each.id}")] = ItemResult(part, "passed", 0.5)
    return run


def finished(
    run: RunRecord,
    suites: Iterable[Suite],
    root: Path = Path("/root"),
    *,
    recordings: Any = None,
    update: bool = False,
    **terms: Any,
) -> Reported:
    """Judge, write and report a run."""
    known = KnownSuites(root, {each.path: each for each in suites})
    return finish_run(run, RunTerms(**terms), known, SnapshotMode(update=update), recordings=recordings)
