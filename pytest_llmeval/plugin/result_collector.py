"""Results of items put together by suite, in the process to which all reports come."""

__all__ = ("Gathered", "ResultCollector")

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.plugin.payload import decode
from pytest_llmeval.suite.suite import SuiteKey

if TYPE_CHECKING:
    import pytest


class Gathered(NamedTuple):
    """What was heard of one suite.

    Attributes:
        key: What it is gathered under.
        total: How many cases it has; 0 if nothing was heard of it.
        records: Case id to result.
        predictions: To be recorded.
    """

    key: SuiteKey
    total: int
    records: dict[str, CaseRecord]
    predictions: list[dict[str, Any]]


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
        """Keep the result that a report carries, if it carries one, and what the report says about it."""
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

    def suites(self, silent: Iterable[SuiteKey] = ()) -> Iterator[Gathered]:
        """Yield suites sorted by path, test and variant, so that the order in which workers report does not show.

        Args:
            silent: Suites to yield even if nothing was heard of any suite in their files.
        """
        gathered: dict[SuiteKey, Gathered] = {}
        for seen in self._seen.values():
            payload = decode(seen.payload)
            suite = gathered.setdefault(payload.key, Gathered(payload.key, payload.total, {}, []))
            for record in payload.records:
                if len(payload.records) == 1:
                    record.duration_s = record.duration_s or seen.duration
                    _settle(record, seen.outcome)
                suite.records[record.id] = record
            suite.predictions.extend(payload.predictions)
        heard = {key.path for key in gathered}
        gathered |= {key: Gathered(key, 0, {}, []) for key in silent if key.path not in heard}
        for key in sorted(gathered, key=lambda key: (key.shown, key.test, key.variant)):
            yield gathered[key]


def _settle(record: CaseRecord, outcome: str) -> None:
    """Let pytest's verdict on an item decide its case's: marks and other plugins may have changed it."""
    if outcome == "skipped" and record.outcome != "not_run":
        # By skip or xfail: what was scored on the way counts nowhere.
        record.outcome, record.observations, record.errors = "skipped", {}, {}
    elif outcome == "error" and record.outcome == "passed":
        record.outcome, record.reason = "errored", "teardown failed"
    elif outcome == "failed" and record.outcome == "passed":
        record.outcome, record.reason = "failed", "the test failed after scoring"
