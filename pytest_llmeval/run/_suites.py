"""Suites at the stages of a run: collected, measured, judged."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from pytest_llmeval.baselines import RunWatch, SnapshotJudgement, SuiteRun
from pytest_llmeval.core import CaseRecord, GateResult, Result
from pytest_llmeval.suites import Suite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.reports import StopReport


class EarlyStop(Struct, frozen=True):
    """The end of a suite that stopped because its gates were decided.

    Attributes:
        report: Counts and savings, for reports.
        gates: The verdicts on its gates.
        ran_ahead: Records of cases that were not needed and had run by then; they count nowhere, but cost.
    """

    report: "StopReport"
    gates: Sequence[GateResult] = ()
    ran_ahead: Sequence[CaseRecord] = ()


class CollectedSuite(Struct, frozen=True):
    """A suite with the records of its cases: the first stage.

    Attributes:
        key: The key of its results.
        suite: The suite; that of another system, or of a Python test, if the key names one.
        records: A record for each case.
        total: Number of cases in the suite, faulty ones included.
        judges: Label of an evaluator to what decides its verdicts.
        known: Case id to limits and checks that the case is approved not to meet.
        reruns: Number of its items that failed and ran again.
        stop: Its early end; ``None`` if it ran to its end.
        baseline: The records of the run that it is compared with, in place of the approved one.
    """

    key: SuiteKey
    suite: Suite
    records: Sequence[CaseRecord] = ()
    total: int = 0
    judges: Mapping[str, Mapping[str, str]] = {}
    known: Mapping[str, Sequence[str]] = {}
    reruns: int = 0
    stop: EarlyStop | None = None
    baseline: Sequence[CaseRecord] | None = None


class MeasuredSuite(Struct, frozen=True, dict=True):
    """A collected suite with its metrics.

    Attributes:
        collected: The suite and its records.
        result: Its metrics.
    """

    collected: CollectedSuite
    result: Result

    @property
    def key(self) -> SuiteKey:
        """The key of its results."""
        return self.collected.key

    @property
    def suite(self) -> Suite:
        """The suite."""
        return self.collected.suite

    @property
    def ran(self) -> int:
        """Number of cases that ran."""
        return sum(record.outcome != "not_run" for record in self.result.records)

    @cached_property
    def run(self) -> SuiteRun:
        """Its run, beside the approved one."""
        ran = self.collected
        return SuiteRun(ran.key, ran.suite, ran.records, self.result, ran.judges, ran.baseline)


class JudgedSuite(Struct, frozen=True):
    """A collected suite with the verdicts on it: the second stage.

    Attributes:
        measured: The suite, its records and its metrics.
        incomplete: Why the metrics are not those of the whole suite, or nothing.
        off: The metrics, as declared, that a run without judges cannot compute completely.
        snapshot: The comparison with its approved scores.
        gates: The verdicts on its gates.
        watch: Its part in gates that weigh many runs; ``None`` if there is none.
        uncalibrated: Metrics with limits whose judge no labels of people confirm.
    """

    measured: MeasuredSuite
    incomplete: str = ""
    off: frozenset[str] = frozenset()
    snapshot: SnapshotJudgement = SnapshotJudgement()
    gates: Sequence[GateResult] = ()
    watch: RunWatch | None = None
    uncalibrated: Sequence[str] = ()

    @property
    def collected(self) -> CollectedSuite:
        """The suite and its records."""
        return self.measured.collected

    @property
    def key(self) -> SuiteKey:
        """The key of its results."""
        return self.collected.key

    @property
    def suite(self) -> Suite:
        """The suite."""
        return self.collected.suite

    @property
    def records(self) -> Sequence[CaseRecord]:
        """A record for each case."""
        return self.collected.records

    @property
    def result(self) -> Result:
        """Its metrics."""
        return self.measured.result
