"""Regression gates: comparison of a run with the approved case statistics."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pytest_llmeval.baselines.anchors import anchored_gates, drift_findings
from pytest_llmeval.baselines.comparable import fingerprint
from pytest_llmeval.baselines.files import PendingFile, score_file, statistics_file
from pytest_llmeval.baselines.history import earlier_looks
from pytest_llmeval.baselines.judged_scores import deciding_labels
from pytest_llmeval.baselines.keeper import Keeper
from pytest_llmeval.baselines.pool import pool_of, pooled_baseline
from pytest_llmeval.baselines.runs import MeasuredSuite, RunWatch, SnapshotJudgement, shown_beside
from pytest_llmeval.baselines.scores import SuiteScores
from pytest_llmeval.baselines.verdicts import alike, changed_cases, changed_measure, changed_signature, not_comparable
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.gates.change import ChangeGate, GateEvidence
from pytest_llmeval.gates.contract import EVERYTHING, SnapshotVerdict
from pytest_llmeval.gates.statistics.pairing import CaseMatching, RunPairing
from pytest_llmeval.suite.run_settings import SnapshotSettings


class _Baseline(NamedTuple):
    """What a run is compared with, or why there is nothing; why they may not be comparable, and what tells it apart.

    Attributes:
        pairing: With the last approved run.
        pooled: With the last approved runs as one; ``None`` where these are not pooled.
        absent: Why there is nothing to compare with.
        doubts: Why the runs may not be comparable.
        approved: The approved scores.
        runs: How many runs are pooled.
    """

    pairing: RunPairing | None = None
    pooled: RunPairing | None = None
    absent: str = ""
    doubts: Sequence[SnapshotVerdict] = ()
    approved: SuiteScores | None = None
    runs: int = 1


def examine_regressions(
    measured: MeasuredSuite, keeper: Keeper, snapshot: SnapshotJudgement, incomplete: str, unjudged: str = ""
) -> tuple[list[GateEvidence], RunWatch | None]:
    """Examine the regression gates of a suite.

    Args:
        measured: The suite with its metrics.
        keeper: The snapshots of the run; nothing has been written yet.
        snapshot: Its comparison with the approved scores.
        incomplete: Why the run is not one of the whole suite.
        unjudged: Why the run has nothing to compare.

    Returns:
        The evidence, and the part of the run in gates that weigh many runs.
    """
    gates = measured.suite.regressions
    if unjudged:
        return [GateEvidence(gate, outcome="not_judged", reason=f"not judged: {unjudged}") for gate in gates], None
    kinds = {verdict.kind for verdict in snapshot.verdicts}
    if "approved" in kinds or (keeper.mode.update and kinds and not kinds & {"unreadable", "not_judged"}):
        reason = "approved: this run is the new baseline"
        passed = [GateEvidence(gate, outcome="passed", reason=reason) for gate in gates]
        return [*passed, *_approved_drift(gates, measured, snapshot.pending)], None
    unread = incomplete and not any(gate.partial for gate in gates)
    baseline = _Baseline() if unread else _baseline(measured, keeper)
    # Which cases differ, the comparison itself says; a snapshot says it once more, with what to do about it.
    found = [*(each for each in snapshot.verdicts if each.metric != EVERYTHING), *baseline.doubts]
    findings = [_examined(gate, baseline, found, incomplete) for gate in gates]
    if baseline.approved is None:
        return findings, None
    findings, watch = _watched(findings, measured, keeper, baseline.approved.cases.statistics)
    if incomplete:
        return findings, watch
    doubted = {each.metric for each in found if each.kind == "not_comparable"}
    sure = [gate for gate in gates if not doubted & {EVERYTHING, gate.metric}]
    scores = score_file(measured.key)
    return [*findings, *drift_findings(sure, measured, baseline.approved, scores)], watch


def early_pairings(measured: MeasuredSuite, keeper: Keeper) -> Iterator[tuple[ChangeGate, RunPairing | None]]:
    """Yield the gates against a baseline, those on drift among them, each with the runs that it compares.

    Args:
        measured: The suite so far; cases that have yet to run are in it.
        keeper: The snapshots of the run.

    Yields:
        A gate, and ``None`` where there is nothing to compare with, or runs may not be comparable by its metric.
    """
    gates = measured.suite.regressions
    baseline = _baseline(measured, keeper)
    doubted = {each.metric for each in baseline.doubts} - {EVERYTHING}
    for gate in gates:
        yield gate, None if gate.metric in doubted else baseline.pooled or baseline.pairing
    if baseline.approved is not None:
        for gate, pairing in anchored_gates(gates, measured, baseline.approved, score_file(measured.key)):
            yield gate, None if isinstance(pairing, str) else pairing


def _approved_drift(
    gates: Sequence[ChangeGate], measured: MeasuredSuite, pending: PendingFile | None
) -> Iterator[GateEvidence]:
    """Yield the drift of a run that is being approved: what an approval accepts since the last one, it does not forget.

    Otherwise runs that approve themselves, night by night, would never see a gate on drift fail.
    """
    if pending is None or pending.approved is None:
        return
    scores = pending.approved()
    if isinstance(scores, SuiteScores):
        for each in drift_findings(gates, measured, scores, score_file(measured.key), pending.named):
            remedy = "the approval keeps the anchor; --llmeval-new-anchor with --snapshot-update gives it up"
            yield replace(each, doubt="; ".join(filter(None, [each.doubt, remedy])))


def _watched(
    findings: Sequence[GateEvidence], measured: MeasuredSuite, keeper: Keeper, approval: str
) -> tuple[list[GateEvidence], RunWatch | None]:
    """Judge the gates that weigh all runs since the approval; return this run's part in them."""
    if not any(finding.gate.weighs_runs and finding.examined for finding in findings):
        return list(findings), None
    watch = RunWatch(approval, fingerprint(measured.statistics.text))
    earlier = earlier_looks(keeper.root, measured.key, watch)
    out = []
    looks = {}
    for finding in findings:
        judged, look = finding.gate.weigh(finding, earlier.get(str(finding.gate), ()))
        out.append(judged)
        if look is not None:
            looks[str(finding.gate)] = look
    return out, replace(watch, looks=looks)


def _examined(
    gate: ChangeGate, baseline: _Baseline, verdicts: Sequence[SnapshotVerdict], incomplete: str
) -> GateEvidence:
    doubts = [each for each in verdicts if each.kind == "not_comparable" and each.metric in (EVERYTHING, gate.metric)]
    refused = [each.reason for each in doubts if each.metric == gate.metric and each.outcome == "failed"]
    if refused and (gate.partial or not incomplete):
        return GateEvidence(gate, reason=refused[0])
    # Runs that are weighed together already tell how lucky the last approved one was.
    pooled = None if gate.weighs_runs else baseline.pooled
    found = gate.examine(pooled or baseline.pairing, incomplete, baseline.absent)
    notes = [f"the baseline is the mean of the last {baseline.runs} approved runs"] if pooled else []
    return replace(found, doubt="; ".join(dict.fromkeys([*notes, *(each.reason for each in doubts)])))


def _baseline(measured: MeasuredSuite, keeper: Keeper) -> _Baseline:
    settings = keeper.settings(measured.suite)
    if settings is None:
        return _Baseline(absent="there is no baseline: set 'snapshot: true' in the suite, and approve a run")
    scores = score_file(measured.key)
    path = statistics_file(scores)
    shown = shown_beside(measured.key, path)
    missing = _Baseline(absent=f"no baseline {shown}: create it with {keeper.mode.command(measured.key.runs)}")
    try:
        approved, last = measured.approved_scores, measured.approved
        if approved is None or last is None:
            return missing
        earlier = len(pool_of(approved, settings.pool))
        pool = pooled_baseline(last.statistics, approved, scores, settings.pool) if earlier else None
    except FileNotFoundError as error:
        gone = Path(error.filename or path)
        return missing if gone == path else _Baseline(absent=f"the baseline cannot be used: {gone.name} is missing")
    except (OSError, UnicodeDecodeError) as error:
        return _Baseline(absent=f"the baseline {shown} cannot be read: {error}")
    except SuiteError as error:
        return _Baseline(absent=f"the baseline cannot be used: {error.faults[0]}")
    shifts = measured.shifts(approved)
    pooled = None if pool is None else RunPairing(measured.statistics, pool, measured.suite.metrics, shifts)
    doubts = list(_doubts(measured, approved, last.pairing.matching, settings))
    return _Baseline(last.pairing, pooled, doubts=doubts, approved=approved, runs=1 + earlier)


def _doubts(
    measured: MeasuredSuite, approved: SuiteScores, matching: CaseMatching, settings: SnapshotSettings
) -> Iterator[SnapshotVerdict]:
    """Yield why metrics of gates cannot be compared: no snapshot may keep them, and none judges part of a suite."""
    comparable, deciding = measured.comparable, deciding_labels(measured.suite)
    approved = replace(approved, comparable=alike(approved.comparable, comparable, matching))
    if changed := changed_cases(approved, comparable, len(measured.records)):
        yield not_comparable(EVERYTHING, changed, settings)
    for metric in dict.fromkeys(gate.metric for gate in measured.suite.regressions):
        here, there = measured.result.find(metric), approved.metrics.get(metric)
        changed = changed_measure(metric, deciding(metric), approved, comparable, measured.key.display_path)
        if not changed and here is not None and there is not None:
            changed = changed_signature(there.signature, here.signature, measured.shifts(approved).get(metric))
        if changed:
            yield not_comparable(metric, changed, settings)
