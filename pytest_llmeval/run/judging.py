"""Judging a finished run: gates, snapshots and regression gates of its suites."""

__all__ = ("JudgedRun", "JudgedSuite", "SuiteVerdict", "judge_run")

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_llmeval._version import __version__
from pytest_llmeval.core.case import Case
from pytest_llmeval.core.results import CaseRecord, CaseResult, Result
from pytest_llmeval.core.wording import suggest
from pytest_llmeval.reports.buckets import FilledBucket, fill_buckets
from pytest_llmeval.reports.data import RunReport, SuiteReport
from pytest_llmeval.reports.notes import ReportedTexts, case_notes, without_texts, worst_cases
from pytest_llmeval.reports.tables import fill_tables
from pytest_llmeval.run.collected import CollectedRun, CollectedSuite, fault_of
from pytest_llmeval.run.explaining import shown_value
from pytest_llmeval.run.side_by_side import JudgedSuite, judge_between, side_by_side, variants_of
from pytest_llmeval.scoring.gates import GateResult, SnapshotVerdict
from pytest_llmeval.scoring.summary import summarize
from pytest_llmeval.scoring.usage import TARGET_FIGURES, UsageEvaluator, claim_calls, usage_report
from pytest_llmeval.services.secrets import secret_values
from pytest_llmeval.snapshots.comparable import fingerprint
from pytest_llmeval.snapshots.keeper import Keeper
from pytest_llmeval.snapshots.runs import SuiteRun
from pytest_llmeval.snapshots.stamp import Stamp, day_of
from pytest_llmeval.suite.suite import CANNOT_FAIL, Suite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.reports.changes import Changes
    from pytest_llmeval.reports.systems import SystemsReport

_MANY_SHARED = 10
_SHARE_SHARED = 0.1

JUDGES_OFF = "judges are off"


class SuiteVerdict(NamedTuple):
    """A verdict on a suite: of a gate, of its snapshot, or that something failed as a whole."""

    key: SuiteKey
    verdict: GateResult | SnapshotVerdict


@dataclass(frozen=True)
class JudgedRun:
    """A run with the verdicts on it.

    Attributes:
        suites: Those that could be judged.
        verdicts: On suites, sorted by path, test and variant.
        notes: Lines for people about suites that could not be judged, or that pass whatever they score.
        systems: Of suites that several systems answered, side by side.
    """

    suites: Sequence[JudgedSuite]
    verdicts: Sequence[SuiteVerdict]
    notes: Sequence[str] = ()
    systems: "Sequence[SystemsReport]" = ()

    def complete(self) -> set[tuple[str, str]]:
        """Return suites and variants all of whose cases ran; what a Python test scores is no recording."""
        return {
            (key.shown, key.variant)
            for key, _, report, *_ in self.suites
            if report.run == report.total and not key.test
        }

    def lacking(self) -> dict[Path, set[str]]:
        """Return the suite files of which all cases ran, with the cases that lack a score."""
        lacking: dict[Path, set[str]] = {}
        partial = {suite.path for _, suite, report, *_ in self.suites if report.run != report.total}
        for _, suite, report, *_ in self.suites:
            if suite.path not in partial:
                cases = lacking.setdefault(suite.path, set())
                cases |= {each.id for each in report.result.records if _lacks(each)}
        return lacking

    def report(self, run: CollectedRun, *, duration_s: float, faults: Mapping[str, Sequence[str]]) -> RunReport:
        """Return the report of the run.

        Args:
            run: What was collected.
            duration_s: How long the run took.
            faults: Suite file to what is wrong with it.
        """
        suites = [each.report for each in self.suites]
        listed = dict(sorted(faults.items()))
        return RunReport(run.started_at, duration_s, __version__, run.commit, suites, listed, self.systems)


def judge_run(run: CollectedRun, keeper: Keeper) -> JudgedRun:
    """Judge every suite of a run.

    Args:
        run: What was collected.
        keeper: The snapshots of the run.

    Returns:
        The suites with their verdicts. A suite that cannot be judged, because its file or one of its evaluators fails,
        has its own failed verdict and does not affect other suites.
    """
    suites: list[JudgedSuite] = []
    failures: dict[SuiteKey, str] = {}
    for each in run.suites:
        if each.suite is None:
            failures[each.results.key] = each.fault
            continue
        try:
            suites.append(_judge(each.suite, each, run, keeper))
        except Exception as error:  # noqa: BLE001 (an evaluator's bug costs its own suite, not the others)
            failures[each.results.key] = fault_of(error)
    groups = variants_of(suites)
    suites = _with_gates_between(suites, groups)
    verdicts = [
        SuiteVerdict(key, GateResult("summary", "failed", None, None, f"not judged: {why}"))
        for key, why in failures.items()
    ]
    verdicts += [verdict for judged in suites for verdict in _verdicts(judged, run.broken)]
    verdicts.sort(key=lambda verdict: (verdict.key.shown, verdict.key.test, verdict.key.variant))
    notes = [f"{key.shown}: not judged: {why}" for key, why in failures.items()]
    toothless = (
        key.shown
        for key, suite, *_ in suites
        if not (key.test or suite.can_fail or keeper.settings(suite))  # a Python test has assertions of its own
    )
    notes += [f"{each}: {CANNOT_FAIL}" for each in dict.fromkeys(toothless)]
    notes += dict.fromkeys(note for each in suites for note in _idle_thresholds(each))
    compared = []
    for variants in groups:
        try:
            found = side_by_side(variants)
        except Exception as error:  # noqa: BLE001 (as above: the verdicts do not depend on the table)
            notes.append(f"{next(iter(variants.values())).key.shown}: systems not compared: {fault_of(error)}")
        else:
            compared += [found] if found is not None else []
    return JudgedRun(suites, verdicts, notes, compared)


def _idle_thresholds(judged: JudgedSuite) -> Iterator[str]:
    """Yield the thresholds of a whole run that no case can miss, since none has a value: a label may be misspelt."""
    suite, result = judged.suite, judged.report.result
    if judged.incomplete or judged.off or not any(each.observations for each in result.records):
        return
    for name in sorted({*suite.thresholds, *(name for case in suite.cases for name in case.thresholds)}):
        metric = result.find(name)
        if name not in TARGET_FIGURES and (metric is None or not (metric.scored or metric.errored)):
            near = suggest(name, (each for each, found in result.metrics.items() if found.scored))
            yield f"{judged.key.shown}: no case has a value of {name}, so none can miss its threshold{near}"


def _with_gates_between(
    suites: Sequence[JudgedSuite], groups: Iterable[Mapping[str, JudgedSuite]]
) -> list[JudgedSuite]:
    """Return suites with the verdicts of the gates between their systems."""
    found: dict[SuiteKey, list[GateResult]] = {}
    for variants in groups:
        try:
            results = judge_between(variants)
        except Exception as error:  # noqa: BLE001 (an evaluator's bug costs its own suite, not the others)
            gate = GateResult("between systems", "failed", None, None, f"not judged: {fault_of(error)}")
            results = {next(iter(variants)): [gate]}
        found |= {variants[name].key: gates for name, gates in results.items()}
    return [
        each._replace(report=replace(each.report, gates=[*each.report.gates, *found.get(each.key, ())]))
        for each in suites
    ]


def _verdicts(judged: JudgedSuite, broken: str) -> Iterable[SuiteVerdict]:
    """Return the verdicts to be reported.

    A skipped report would take a failed gate off pytest's list for --lf, so gates of a run that leaves cases out on
    purpose are not reported at all.
    """
    on_purpose = not (broken or judged.suite.faults)
    verdicts: list[GateResult | SnapshotVerdict] = [*judged.report.gates, *judged.report.snapshot]
    return (SuiteVerdict(judged.key, each) for each in verdicts if each.outcome != "not_judged" or not on_purpose)


def _judge(suite: Suite, collected: CollectedSuite, run: CollectedRun, keeper: Keeper) -> JudgedSuite:
    """Summarise a suite, and judge it."""
    key, total = collected.results.key, collected.results.total or suite.total
    rows = list(claim_calls(_rows(suite, collected.results.records, run.broken)))
    result = summarize(
        suite.metrics,
        rows,
        group_by=suite.group_by,
        confidence=suite.confidence,
        faulty=suite.faulty,
        cluster_by=suite.cluster_by,
    )
    shown = _shown_result(result, run.texts)
    report = SuiteReport(
        suite.name + "".join(f"[{part}]" for part in (key.test, key.variant) if part),
        key.shown,
        shown,
        [],
        total,
        suite.confidence,
        usage_report(rows),
        tables=fill_tables(suite.metrics, result),
        buckets=_with_cases(fill_buckets(suite.metrics, result.cases), shown.cases),
        lower_is_better=[name for name in result.metrics if suite.metrics.lower_is_better(name)],
        ranges=suite.metrics.ranges(result.metrics),
        shared_inputs=_shared_inputs(suite),
        left_out=suite.left_out,
        notes=case_notes(_shown_cases(suite, rows), rows, run.texts, suite.files),
        worst=worst_cases(result, suite.metrics, suite.judged_metrics),
        variant=key.variant,
    )
    incomplete = _incomplete(suite, report.run, total, run)
    off = _switched_off(suite, rows) if run.judges_off and suite.judged else frozenset()
    unjudged = JUDGES_OFF if off else ""
    suite_run = SuiteRun(suite, key, result, rows, collected.judges, answers=collected.results.predictions)
    snapshot = keeper.judge(suite_run, incomplete or unjudged, Stamp(day_of(run.started), run.commit))
    gates = [
        gate.judge(result, incomplete, unjudged if _declared(gate.metric, suite) in off else "") for gate in suite.gates
    ]
    gates += _regressions(suite_run, keeper, snapshot, incomplete, unjudged)
    changes = _changes(suite_run) if run.compares and keeper.settings(suite) else None
    judged = replace(report, gates=gates, snapshot=snapshot, changes=changes)
    return JudgedSuite(key, suite, judged, incomplete, off)


def _regressions(
    suite_run: SuiteRun, keeper: Keeper, snapshot: Sequence[SnapshotVerdict], incomplete: str, unjudged: str
) -> list[GateResult]:
    """Judge the gates against a baseline; what compares runs is loaded where there are any."""
    if not suite_run.suite.regressions:
        return []
    from pytest_llmeval.scoring.regression_verdicts import judge_regressions
    from pytest_llmeval.snapshots.baselines import examine_regressions

    return judge_regressions(examine_regressions(suite_run, keeper, snapshot, incomplete, unjudged))


def _changes(suite_run: SuiteRun) -> "Changes | None":
    from pytest_llmeval.run.approved_changes import approved_changes

    return approved_changes(suite_run)


def _shown_result(result: Result, texts: ReportedTexts) -> Result:
    """Return a result with the details that reports have."""
    if texts != "none":
        return result
    return replace(result, cases=[replace(each, details=without_texts(each.details)) for each in result.cases])


def _with_cases(buckets: Iterable[FilledBucket], cases: Iterable[CaseResult]) -> list[FilledBucket]:
    """Return buckets with other results of the same cases."""
    by_id = {case.id: case for case in cases}
    return [replace(each, cases=[by_id[case.id] for case in each.cases]) for each in buckets]


def _shown_cases(suite: Suite, rows: Iterable[CaseRecord]) -> Iterator[Case]:
    """Yield the cases of a suite, with input and expected as reports show them where an answer is shown."""
    answered = {row.id for row in rows if row.answers}
    secrets = secret_values(suite.secret_variables)
    for case in suite.cases:
        if case.id in answered:
            given, expected = (shown_value(each, secrets) for each in (case.input, case.expected))
            yield replace(case, input=given, expected=expected)
        else:
            yield case


def _shared_inputs(suite: Suite) -> int:
    """Return how many cases have the input of an earlier one, if these are many and in no cluster that is named."""
    if suite.cluster_by or any(gate.cluster_by for gate in suite.regressions):
        return 0
    inputs = [fingerprint(case.input) for case in suite.cases if case.input is not None]
    shared = len(inputs) - len(set(inputs))
    return shared if shared >= max(_MANY_SHARED, _SHARE_SHARED * len(suite.cases)) else 0


def _rows(suite: Suite, records: Mapping[str, CaseRecord], broken: str) -> Iterable[CaseRecord]:
    """Yield a record for every case of the suite; one that has none did not run."""
    for case in suite.cases:
        record = records.get(case.id)
        if record is None:
            yield CaseRecord(case.id, case.labels, "not_run", reason=broken or "not selected")
        else:
            yield record if record.labels == case.labels else replace(record, labels=case.labels)


def _incomplete(suite: Suite, ran: int, total: int, run: CollectedRun) -> str:
    """Say why results are not those of the whole suite, or nothing."""
    if run.shard:
        return f"shard {run.shard} ran {ran} of {total} cases; run llmeval merge"
    reasons = [f"{ran} of {total} cases ran"] if ran < total else []
    if suite.faults:
        reasons.append("the suite's files have faults")
    if reasons and run.broken:
        reasons.append(run.broken)
    elif ran < total and run.is_part:
        reasons.append("run llmeval merge")
    return "; ".join(reasons)


def _switched_off(suite: Suite, rows: Iterable[CaseRecord]) -> frozenset[str]:
    """Return the metrics, as declared, that a run without judges cannot compute completely."""
    from pytest_llmeval.judge.service import JudgeOffError

    why = str(JudgeOffError())
    off = {metric.name for metric in UsageEvaluator().describe()}
    for row in rows:
        for label, observation in row.observations.items():
            names = (
                suite.metrics.full_name(label, name) for name, reason in observation.undefined.items() if reason == why
            )
            off |= {_declared(name, suite) for name in names}
    return frozenset(off)


def _declared(name: str, suite: Suite) -> str:
    """Return the declared name of a metric: that of its family, if it has one."""
    owned = suite.metrics.find(name)
    return name if owned is None else owned.name


def _lacks(record: CaseRecord) -> bool:
    """Return whether a case has no score, or not all of them, because something failed or it did not run."""
    return bool(record.errors) or not record.observations or any(each.errored for each in record.observations.values())
