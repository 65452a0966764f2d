"""Collection of item results by suite, in the main process."""

__all__ = ("ResultCollector",)

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.plugin.payload import decode
from pytest_llmeval.run.collected import SuiteResults
from pytest_llmeval.suite.suite import SuiteKey

if TYPE_CHECKING:
    import pytest


@dataclass(slots=True)
class _Seen:
    """What one item reported last."""

    payload: str
    outcome: str
    duration: float


class ResultCollector:
    """The results of all items; of one that is run again, the last result counts."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], _Seen] = {}

    def take(self, report: "pytest.TestReport", payload: str | None) -> None:
        """Keep the result in a report, if there is one, with the outcome and duration of the report."""
        # Node ids of files outside rootdir lack the file's name.
        item = (report.location[0], report.nodeid)
        if report.when == "setup":
            self._seen.pop(item, None)
        if payload is not None:
            self._seen[item] = _Seen(payload, report.outcome, report.duration)
        elif report.when == "teardown" and report.failed and item in self._seen:
            self._seen[item].outcome = "error"

    def salvage(self, item: "pytest.Item", payload: str) -> None:
        """Keep the result of an item that finished without a report."""
        self._seen[item.location[0], item.nodeid] = _Seen(payload, "passed", 0.0)

    def suites(self, silent: Iterable[SuiteKey] = (), dropped: Iterable[SuiteKey] = ()) -> Iterator[SuiteResults]:
        """Yield suites sorted by path, test and variant, so that the order in which workers report does not show.

        Args:
            silent: Suites to yield even if nothing was heard of any suite in their files, or of their system.
            dropped: Suites and variants to yield even if nothing was heard of them.
        """
        totals: dict[SuiteKey, int] = {}
        records: defaultdict[SuiteKey, dict[str, CaseRecord]] = defaultdict(dict)
        predictions: defaultdict[SuiteKey, list[dict[str, Any]]] = defaultdict(list)
        for seen in self._seen.values():
            payload = decode(seen.payload)
            totals.setdefault(payload.key, payload.total)
            for record in payload.records:
                records[payload.key][record.id] = _settled(record, seen) if len(payload.records) == 1 else record
            predictions[payload.key] += payload.predictions
        heard = {key.path for key in totals}
        absent = [key for key in silent if (key.variant or key.path not in heard) and key not in totals] + [
            key for key in dropped if key not in totals
        ]
        totals |= dict.fromkeys(absent, 0)
        for key in sorted(totals, key=lambda key: (key.shown, key.test, key.variant)):
            yield SuiteResults(key, totals[key], records[key], predictions[key])


def _settled(record: CaseRecord, seen: _Seen) -> CaseRecord:
    """Let pytest's verdict on an item decide its case's: marks and other plugins may have changed it."""
    record = replace(record, duration_s=record.duration_s or seen.duration)
    if seen.outcome == "skipped" and record.outcome != "not_run":
        # By skip or xfail: what was scored on the way counts nowhere.
        return replace(record, outcome="skipped", observations={}, errors={})
    if seen.outcome == "error" and record.outcome == "passed":
        return replace(record, outcome="errored", reason="teardown failed")
    if seen.outcome == "failed" and record.outcome == "passed":
        return replace(record, outcome="failed", reason="the test failed after scoring")
    return record
