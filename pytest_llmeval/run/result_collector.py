"""Collection of item results by suite, in the main process."""

__all__ = ("Item", "ItemResult", "Reported", "ResultCollector")

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.run.collected import SuiteResults
from pytest_llmeval.run.payload import decode
from pytest_llmeval.suite.suite import SuiteKey


class Reported(Protocol):
    """What is read of a test report."""

    location: tuple[str, int | None, str]
    nodeid: str
    when: Any
    outcome: Any
    duration: float


class Item(NamedTuple):
    """The name of an item: node ids of files outside rootdir lack the file's name."""

    file: str
    nodeid: str


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What one item reported last.

    Attributes:
        payload: The results of its cases.
        outcome: pytest's verdict on it: ``passed``, ``failed``, ``skipped``, or ``error`` of its teardown.
        duration: Seconds that it took.
    """

    payload: str
    outcome: str
    duration: float


class ResultCollector:
    """The results of all items; of one that is run again, the last result counts."""

    def __init__(self, results: Mapping[Item, ItemResult] | None = None) -> None:
        self._results = dict(results or {})

    @property
    def results(self) -> Mapping[Item, ItemResult]:
        """Item to what it reported, in order of arrival."""
        return self._results

    def take(self, report: Reported, payload: str | None) -> None:
        """Keep the result in a report, if there is one, with the outcome and duration of the report."""
        item = Item(report.location[0], report.nodeid)
        if report.when == "setup":
            self._results.pop(item, None)
        if payload is not None:
            self._results[item] = ItemResult(payload, report.outcome, report.duration)
        elif report.when == "teardown" and report.outcome == "failed" and item in self._results:
            self._results[item] = replace(self._results[item], outcome="error")

    def has(self, report: Reported) -> bool:
        """Return whether the item of a report has a result."""
        return Item(report.location[0], report.nodeid) in self._results

    def salvage(self, file: str, nodeid: str, payload: str) -> None:
        """Keep the result of an item that finished without a report."""
        self._results[Item(file, nodeid)] = ItemResult(payload, "passed", 0.0)

    def suites(self, silent: Iterable[SuiteKey] = (), dropped: Iterable[SuiteKey] = ()) -> Iterator[SuiteResults]:
        """Yield suites sorted by path, test and variant, so that the order in which workers report does not show.

        Args:
            silent: Suites to yield even if nothing was heard of any suite in their files, or of their system.
            dropped: Suites and variants to yield even if nothing was heard of them.
        """
        totals: dict[SuiteKey, int] = {}
        records: defaultdict[SuiteKey, dict[str, CaseRecord]] = defaultdict(dict)
        predictions: defaultdict[SuiteKey, list[dict[str, Any]]] = defaultdict(list)
        for result in self._results.values():
            payload = decode(result.payload)
            totals.setdefault(payload.key, payload.total)
            for record in payload.records:
                records[payload.key][record.id] = _settled(record, result) if len(payload.records) == 1 else record
            predictions[payload.key] += payload.predictions
        heard = {key.path for key in totals}
        absent = [key for key in silent if (key.variant or key.path not in heard) and key not in totals] + [
            key for key in dropped if key not in totals
        ]
        totals |= dict.fromkeys(absent, 0)
        for key in sorted(totals, key=lambda key: (key.shown, key.test, key.variant)):
            yield SuiteResults(key, totals[key], records[key], predictions[key])


def _settled(record: CaseRecord, result: ItemResult) -> CaseRecord:
    """Let pytest's verdict on an item decide its case's: marks and other plugins may have changed it."""
    if not record.duration_s:
        record = replace(record, duration_s=result.duration)
    if result.outcome == "skipped" and record.outcome != "not_run":
        # By skip or xfail: what was scored on the way counts nowhere.
        return replace(record, outcome="skipped", observations={}, errors={})
    if result.outcome == "error" and record.outcome == "passed":
        return replace(record, outcome="errored", reason="teardown failed")
    if result.outcome == "failed" and record.outcome == "passed":
        return replace(record, outcome="failed", reason="the test failed after scoring")
    return record
