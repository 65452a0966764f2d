"""The review of runs against approved scores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from pytest_llmeval.baselines._comparable import Stamp, fingerprint
from pytest_llmeval.baselines._files import PendingFile, ScoreFile, answers_text, approve, texts_of
from pytest_llmeval.baselines._history import earlier_looks
from pytest_llmeval.baselines._runs import Keeper, RunWatch, SnapshotJudgement, SnapshotMode, SuiteRun
from pytest_llmeval.baselines._scores import Cases, SuiteScores, groups_of, metrics_of
from pytest_llmeval.baselines._verdicts import (
    UnchangedPart,
    alike,
    changed_cases,
    changed_measure,
    changed_signature,
    describe_falls,
    first_approved,
    judge_scores,
    not_comparable,
    told_shifts,
    unchanged_part,
    with_falls,
)
from pytest_llmeval.core import CaseRecord, SnapshotVerdict, SuiteError, counted, interval
from pytest_llmeval.data import OutputFile
from pytest_llmeval.gates import ChangeGate, GateEvidence
from pytest_llmeval.numbers import CaseMatching, Difference, RunPairing
from pytest_llmeval.suites import LoadedSuite, SnapshotSettings

SUITE_SNAPSHOT = "(suite)"
"""The snapshot of what a score file holds besides the metrics; it is counted only when an approval changes it."""


class SnapshotReview(NamedTuple):
    """The review of a suite's run against its approved scores.

    Attributes:
        run: The suite with its metrics.
        keeper: The keeper of the run's approved scores.
    """

    run: SuiteRun
    keeper: Keeper

    def judge(self, stamp: Stamp) -> SnapshotJudgement:
        """Judge the scores against the approved ones; an empty judgement for a suite without a snapshot.

        Args:
            stamp: Of the approval, if the scores are approved.
        """
        settings = self.keeper.settings(self.run.suite)
        if settings is None:
            return SnapshotJudgement()
        return _judge_snapshot(self.run, settings, self.keeper.mode, stamp)

    def examine(
        self, snapshot: SnapshotJudgement, incomplete: str, unjudged: str = ""
    ) -> tuple[list[GateEvidence], SnapshotJudgement]:
        """Examine the regression gates against the approved run.

        Args:
            snapshot: The judgement of the scores; nothing has been written yet.
            incomplete: Why the run is not one of the whole suite.
            unjudged: Why the run has nothing to compare.

        Returns:
            The evidence, and the judgement with the part of the run in gates that weigh many runs.
        """
        evidence, watch = _examine_regressions(self.run, self.keeper, snapshot, incomplete, unjudged)
        return evidence, replace(snapshot, watch=watch)

    def pairings(self) -> Iterator[tuple[ChangeGate, RunPairing | None]]:
        """Yield the gates against a baseline, drift gates included, each with the runs that it compares so far.

        Cases that have yet to run are in the run.

        Yields:
            A gate, and ``None`` where there is nothing to compare with, or runs may not be comparable by its metric.
        """
        run = self.run
        gates = run.suite.regressions
        baseline = _baseline_of_run(run, self.keeper)
        doubted = {doubt.metric for doubt in baseline.doubts} - {SnapshotVerdict.EVERYTHING}
        for gate in gates:
            yield gate, None if gate.metric in doubted else baseline.pooled or baseline.pairing
        if baseline.approved is not None and baseline.approved.anchors:
            from pytest_llmeval.baselines._anchors import anchored_gates

            for gate, pairing in anchored_gates(gates, run, baseline.approved, ScoreFile.of_suite(run.key)):
                yield gate, None if isinstance(pairing, str) else pairing


def _judge_snapshot(run: SuiteRun, settings: SnapshotSettings, mode: SnapshotMode, stamp: Stamp) -> SnapshotJudgement:
    """Judge the scores of a suite against the approved ones.

    Args:
        run: The suite with its metrics.
        settings: Of the snapshot.
        mode: What the command line asks for.
        stamp: Of the approval, if the scores are approved.

    Returns:
        The verdicts, and the score file, to be counted and perhaps written; none if it cannot be read.
    """
    file = ScoreFile.of_suite(run.key)
    try:
        old = run.approved_scores
    except SuiteError as error:
        return _unreadable_scores(str(error))
    new, statistics = _scores(run, settings)
    if old is not None:
        new = replace(new, bridges=old.bridges)
    writes = mode.update or (mode.new_only and old is None)
    moved = {}
    if old is not None and not writes:
        moved = {
            name: f"{before} -> {new.limits.get(name, 'none')}"
            for name, before in old.limits.items()
            if new.limits.get(name) != before
        }
    if writes and mode.keep_unused and old is not None:
        new = replace(new, metrics={**old.metrics, **new.metrics})
    verdicts = _verdicts(mode, old, new, settings, run, file.display_path, writes=writes)
    if writes:
        from pytest_llmeval.baselines._anchors import next_anchors

        anchored = next_anchors(old, new, run, file, keep=settings.anchor == "keep", anew=mode.anchor)
        if anchored.fault:
            return _unreadable_scores(anchored.fault, moved)
        verdicts += [
            SnapshotVerdict(SnapshotVerdict.EVERYTHING, "approved", "passed", reason=reason)
            for reason in anchored.discarded
        ]
    pending = _pending_scores(file, old, new, verdicts, writes=writes)
    if writes:
        from pytest_llmeval.baselines._anchors import next_pool

        pool, named = next_pool(old, new, file, settings.pool)
        remembering = replace(new, pool=pool, anchors=anchored.anchors, chains=anchored.chains)
        pending.named = {**named, **anchored.texts}
        if run.suite.against_approved:
            text = answers_text(run.suite.cases, (row for record in run.records for row in record.recordings))
            pending.named = {**pending.named, file.answers: text}
        pending.statistics = statistics
        pending.approved = lambda: approve(file.read_suite(), remembering, stamp, settings.history)
        if old is not None:
            there = OutputFile(file.statistics).has_text(statistics) and file.has_companions(pending.named)
            mark_suite(pending, changed=not there or _besides_metrics(old) != _besides_metrics(remembering))
    return SnapshotJudgement(verdicts, remembered=True, moved_limits=moved, pending=pending)


def _unreadable_scores(why: str, moved_limits: Mapping[str, str] = {}) -> SnapshotJudgement:
    """The failed judgement of a suite's snapshot whose score file, or an anchor of it, cannot be used."""
    verdict = SnapshotVerdict(SnapshotVerdict.EVERYTHING, "unreadable", "failed", reason=why)
    return SnapshotJudgement([verdict], remembered=True, moved_limits=moved_limits)


def _verdicts(
    mode: SnapshotMode,
    old: SuiteScores | None,
    new: SuiteScores,
    settings: SnapshotSettings,
    run: SuiteRun,
    display_path: str,
    *,
    writes: bool,
) -> list[SnapshotVerdict]:
    """Judge a run's scores by the approved score file, whose absence fails unless the run writes it."""
    if old is None and not writes:
        command = mode.command(run.key.runs)
        return [
            SnapshotVerdict(
                SnapshotVerdict.EVERYTHING,
                "missing",
                "failed",
                reason=f"no snapshot {display_path}: create it with {command}",
            )
        ]
    warned = list(_warn_of_errors(new))
    if old is None:
        return [*warned, *(first_approved(name, score.value) for name, score in new.metrics.items())]
    part = _unchanged_part(old, new, settings, run)
    if part is not None:
        old, new = part.old, part.new
    elif run.pairing is not None:
        new = with_falls(new, run.pairing, settings)
    verdicts = judge_scores(
        old,
        new,
        settings,
        run.suite.metrics,
        deciding=run.suite.deciding_labels,
        gated=_make_gate_test(run),
        warn_unused=mode.warn_unused,
        display_path=run.key.display_path,
    )
    verdicts = told_shifts(weigh_rises(verdicts, run.pairing, run.suite), run.shifts(old))
    if run.pairing is not None or run.suite.abstained == "fell":
        verdicts = describe_falls(verdicts, run.pairing, old, new)
    if part is not None:
        over = f"over the {counted(len(part.matching.unchanged), 'unchanged case')}"
        over = ", ".join(filter(None, [over, part.matching.content_note]))
        verdicts = [replace(verdict, reason=f"{verdict.reason}; {over}") for verdict in verdicts]
        if not part.matching.whole:
            verdicts = [not_comparable(SnapshotVerdict.EVERYTHING, str(part.matching), settings), *verdicts]
    if writes:
        return [*warned, *map(_approve_verdict, verdicts)]
    command = mode.command(run.key.runs)
    return [_with_command(verdict, command) for verdict in verdicts]


def _pending_scores(
    file: ScoreFile, old: SuiteScores | None, new: SuiteScores, verdicts: Sequence[SnapshotVerdict], *, writes: bool
) -> PendingFile:
    """The score file that a run may write, with the lines by which syrupy counts its snapshots."""
    before, after = texts_of(old), texts_of(new)
    if old is not None and not writes:
        after = {name: text for name, text in after.items() if name in before}  # a new metric fails nothing
    failed = {_syrupy_name(verdict) for verdict in verdicts if verdict.outcome == "failed"}
    if not writes and any(verdict.metric == SnapshotVerdict.EVERYTHING for verdict in verdicts):
        # What concerns the file is one line of the report, and counts as one snapshot.
        judged = {verdict.metric for verdict in verdicts}
        before, after = ({name: texts[name] for name in texts if name in judged} for texts in (before, after))
        before |= {SUITE_SNAPSHOT: "approved"} if old is not None else {}
        after[SUITE_SNAPSHOT] = "of this run"
    return PendingFile(file, before, after, frozenset(after.keys() - failed))


def _scores(run: SuiteRun, settings: SnapshotSettings) -> tuple[SuiteScores, str]:
    """The score file content of a run, without history, and the text of the statistics of its cases."""
    statistics = run.statistics.text
    scores = SuiteScores(
        suite=Path(run.key.path).name,
        test=run.key.test,
        variant=run.key.variant,
        cases=Cases(len(run.records), fingerprint(statistics), sum(map(_has_errors, run.records))),
        comparable=run.comparable,
        metrics=metrics_of(run.result, settings),
        groups=groups_of(run.result, settings),
        limits=_limits(run.suite, settings),
    )
    return scores, statistics


def _limits(suite: LoadedSuite, settings: SnapshotSettings) -> dict[str, str]:
    """The drop gates and tolerances of each metric, kept with approved scores so that a wider limit leaves a trace."""
    limits: dict[str, list[str]] = {}
    for gate in suite.regressions:
        limits.setdefault(gate.metric, []).append(str(gate))
    shared = {SnapshotVerdict.EVERYTHING: settings.tolerance} if settings.tolerance is not None else {}
    for name, tolerance in {**shared, **settings.tolerances}.items():
        limits.setdefault(name, []).append(f"tolerance {tolerance}")
    return {name: "; ".join(sorted(texts)) for name, texts in sorted(limits.items())}


def _has_errors(record: CaseRecord) -> bool:
    """Whether a case of a run that may be approved has an error, wholly or in one evaluator's observation."""
    return bool(record.errors) or any(observation.errored for observation in record.observations.values())


def _make_gate_test(run: SuiteRun) -> Callable[[str], bool]:
    """A predicate of metrics whose fall below the approved score a regression gate decides.

    Gates on groups, or on the mean over cases, do not; nor does one that has to leave cases out of its comparison, or
    that could not have found such a fall.
    """
    gated = [gate for gate in run.suite.regressions if gate.by is None and gate.statistic == "value"]

    def decides(metric: str) -> bool:
        gates = [gate for gate in gated if gate.metric == metric]
        if not gates or _leaves_out(run, metric):
            return False
        return any(change.could_find for gate in gates for change in gate.examine(run.pairing).examined)

    return decides


def _leaves_out(run: SuiteRun, metric: str) -> bool:
    """Whether the comparison of a metric with the approved run leaves cases out, or has no approved run."""
    pairing = run.pairing
    if pairing is None:
        return True
    return metric in pairing.table.owner and pairing.count_left_out(metric, pairing.everything()).cases > 0


def _warn_of_errors(scores: SuiteScores) -> Iterator[SnapshotVerdict]:
    """Yield a note of an approval whose run has errored cases: later drops in these go unseen."""
    if scores.cases.errored:
        errored = counted(scores.cases.errored, "case")
        reason = (
            f"approved with {errored} that errored: later runs have nothing to compare there; repair and approve again"
        )
        yield SnapshotVerdict(SnapshotVerdict.EVERYTHING, "approved", "passed", reason=reason)


def _unchanged_part(
    old: SuiteScores, new: SuiteScores, settings: SnapshotSettings, run: SuiteRun
) -> UnchangedPart | None:
    """The approved and new scores over unchanged cases, if others changed and the approved run says which."""
    pairing = run.pairing
    changed = changed_cases(old, new.comparable, new.cases.count) or (pairing is not None and pairing.matching.edited)
    return None if pairing is None or not changed else unchanged_part(old, new, pairing, run.suite.metrics, settings)


def _with_command(verdict: SnapshotVerdict, command: str) -> SnapshotVerdict:
    """A snapshot verdict on changed cases with the approval command."""
    if (verdict.metric, verdict.kind) != (SnapshotVerdict.EVERYTHING, "not_comparable"):
        return verdict
    return replace(verdict, reason=f"{verdict.reason}; approve this run with {command}")


def _syrupy_name(verdict: SnapshotVerdict) -> str:
    """The name under which syrupy counts a snapshot verdict: its metric, or the suite for a verdict on the file."""
    return SUITE_SNAPSHOT if verdict.metric == SnapshotVerdict.EVERYTHING else verdict.metric


def _approve_verdict(verdict: SnapshotVerdict) -> SnapshotVerdict:
    """The passed verdict that an approval makes of a snapshot verdict; unchanged scores keep theirs."""
    if verdict.kind == "unchanged":
        return verdict
    return replace(verdict, kind="approved", outcome="passed", reason=f"approved: {verdict.reason}")


def _besides_metrics(scores: SuiteScores) -> tuple[SuiteScores, list[str]]:
    """Everything in a score file that an approval can change besides metric values: metric names, and the rest."""
    return replace(scores, metrics={}, history=()), sorted(scores.metrics)


def mark_suite(pending: PendingFile, *, changed: bool) -> None:
    """Count a change of a score file besides its metrics as a snapshot; with equal lines syrupy would not write it."""
    if changed:
        pending.before = {**pending.before, SUITE_SNAPSHOT: "approved"}
        pending.after = {**pending.after, SUITE_SNAPSHOT: "of this run"}
        pending.holds |= {SUITE_SNAPSHOT}


_CONFIDENCE = 0.95


def weigh_rises(
    verdicts: Sequence[SnapshotVerdict], pairing: RunPairing | None, suite: LoadedSuite
) -> list[SnapshotVerdict]:
    """The snapshot verdicts in which rises that may be chance are no significant improvements.

    Args:
        verdicts: On the scores of a run.
        pairing: The run beside the approved one; without it, nothing is known of chance.
        suite: Of the scores.
    """
    rises = [verdict.metric for verdict in verdicts if verdict.kind == "improved"]
    if not rises or pairing is None:
        return list(verdicts)
    by_label: dict[str | None, list[str]] = {}
    for name in rises:
        if name in pairing.table.owner:
            by_label.setdefault(pairing.clusters_by(suite.gate_clusters(name)), []).append(name)
    by_metric: dict[str, Difference] = {}
    for clusters, names in by_label.items():
        by_metric |= Difference.between(
            pairing, pairing.everything(), names, confidence=_CONFIDENCE, cluster_by=clusters
        )
    return [
        _weigh_rise(verdict, by_metric[verdict.metric]) if verdict.metric in by_metric else verdict
        for verdict in verdicts
    ]


def _weigh_rise(verdict: SnapshotVerdict, difference: Difference) -> SnapshotVerdict:
    """A snapshot verdict of improvement as a rise that may be chance, unless its difference is significant."""
    if verdict.kind != "improved":
        return verdict
    if difference.p_value is not None and difference.p_value <= 1 - _CONFIDENCE:
        return verdict
    moved = verdict.reason.removesuffix(": improved")
    change = interval(difference.low, difference.high)
    return replace(verdict, kind="rose_within", reason=f"{moved}: may be chance (95% interval of the change {change})")


class _Baseline(NamedTuple):
    """The baseline of a suite's regression gates, or the reason why it has none.

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


def _examine_regressions(
    run: SuiteRun, keeper: Keeper, snapshot: SnapshotJudgement, incomplete: str, unjudged: str
) -> tuple[list[GateEvidence], RunWatch | None]:
    """Examine the regression gates of a suite against the approved run.

    Args:
        run: The suite with its metrics.
        keeper: The snapshots of the run; nothing has been written yet.
        snapshot: Its comparison with the approved scores.
        incomplete: Why the run is not one of the whole suite.
        unjudged: Why the run has nothing to compare.

    Returns:
        The evidence, and the part of the run in gates that weigh many runs.
    """
    gates = run.suite.regressions
    if unjudged:
        return [gate.without_test("not_judged", f"not evaluated: {unjudged}") for gate in gates], None
    kinds = {verdict.kind for verdict in snapshot.verdicts}
    if "approved" in kinds or (keeper.mode.update and kinds and not kinds & {"unreadable", "not_judged"}):
        reason = "approved: this run is the new baseline"
        drifts = list(_approved_drift(gates, run, snapshot.pending))
        passed = [
            GateEvidence(gate, outcome="passed", reason=reason, forgone=gate.claims and bool(drifts)) for gate in gates
        ]
        return [*passed, *drifts], None
    if run.is_unchanged and not incomplete:
        reason = "no case ran, since nothing that the suite depends on has changed"
        return [gate.without_test("passed", reason) for gate in gates], None
    unread = incomplete and not any(gate.partial for gate in gates)
    baseline = _Baseline() if unread else _baseline_of_run(run, keeper)
    # Which cases differ, the comparison itself says; a snapshot says it once more, with what to do about it.
    compared = [
        *(verdict for verdict in snapshot.verdicts if verdict.metric != SnapshotVerdict.EVERYTHING),
        *baseline.doubts,
    ]
    findings = [_examine_gate(gate, baseline, compared, incomplete) for gate in gates]
    if baseline.approved is None:
        return findings, None
    findings, watch = _examine_watched(findings, run, keeper, baseline.approved.cases.statistics)
    if incomplete or not baseline.approved.anchors:
        return findings, watch
    doubted = {verdict.metric for verdict in compared if verdict.kind == "not_comparable"}
    sure = [gate for gate in gates if not doubted & {SnapshotVerdict.EVERYTHING, gate.metric}]
    from pytest_llmeval.baselines._anchors import drift_findings

    file = ScoreFile.of_suite(run.key)
    return [*findings, *drift_findings(sure, run, baseline.approved, file)], watch


def _approved_drift(gates: Sequence[ChangeGate], run: SuiteRun, pending: PendingFile | None) -> Iterator[GateEvidence]:
    """Yield the drift of a run that is being approved: an approval does not forget what earlier ones accepted.

    If not, runs that approve themselves, night by night, would never see a gate on drift fail.
    """
    if pending is None or pending.approved is None:
        return
    scores = pending.approved()
    if isinstance(scores, SuiteScores) and scores.anchors:
        from pytest_llmeval.baselines._anchors import drift_findings

        for finding in drift_findings(gates, run, scores, ScoreFile.of_suite(run.key), pending.named):
            remedy = "the approval keeps the anchor; --llmeval-new-anchor with --snapshot-update gives it up"
            yield structs.replace(finding, doubt="; ".join(filter(None, [finding.doubt, remedy])))


def _examine_watched(
    findings: Sequence[GateEvidence], run: SuiteRun, keeper: Keeper, approval: str
) -> tuple[list[GateEvidence], RunWatch | None]:
    """The evidence for gates that weigh all runs since the approval, and this run's part for the history."""
    if not any(finding.gate.weighs_runs and finding.examined for finding in findings):
        return list(findings), None
    watch = RunWatch(approval, fingerprint(run.statistics.text))
    earlier = earlier_looks(keeper.root, run.key, watch)
    out = []
    looks = {}
    for finding in findings:
        judged, watched = finding.gate.weigh(finding, earlier.get(str(finding.gate), ()))
        out.append(judged)
        if watched is not None:
            looks[str(finding.gate)] = watched
    return out, structs.replace(watch, looks=looks)


def _examine_gate(
    gate: ChangeGate, baseline: _Baseline, verdicts: Sequence[SnapshotVerdict], incomplete: str
) -> GateEvidence:
    """Examine one regression gate against the baseline, with the snapshot's doubts about comparability."""
    doubts = [
        verdict
        for verdict in verdicts
        if verdict.kind == "not_comparable" and verdict.metric in (SnapshotVerdict.EVERYTHING, gate.metric)
    ]
    refused = [doubt.reason for doubt in doubts if doubt.metric == gate.metric and doubt.outcome == "failed"]
    if refused and (gate.partial or not incomplete):
        return GateEvidence(gate, reason=refused[0])
    # Runs that are weighed together already tell how lucky the last approved one was.
    pooled = None if gate.weighs_runs else baseline.pooled
    evidence = gate.examine(pooled or baseline.pairing, incomplete, baseline.absent)
    notes = [f"the baseline is the mean of the last {baseline.runs} approved runs"] if pooled else []
    return structs.replace(evidence, doubt="; ".join(dict.fromkeys([*notes, *(doubt.reason for doubt in doubts)])))


def _baseline_of_run(run: SuiteRun, keeper: Keeper) -> _Baseline:
    """The baseline of a suite's gates: the run that was set in its place, or the approved run."""
    return _Baseline(run.pairing) if run.baseline is not None else _approved_run(run, keeper)


def _approved_run(run: SuiteRun, keeper: Keeper) -> _Baseline:
    """The last approved run as the baseline of a suite's gates, or the reason why it cannot be used."""
    settings = keeper.settings(run.suite)
    if settings is None:
        return _Baseline(absent="there is no baseline: set 'snapshot: true' in the suite, and approve a run")
    file = ScoreFile.of_suite(run.key)
    path = file.statistics
    display_path = run.key.display_beside(path)
    missing = _Baseline(absent=f"no baseline {display_path}: create it with {keeper.mode.command(run.key.runs)}")
    try:
        approved, last = run.approved_scores, run.approved
        if approved is None or last is None:
            return missing
        earlier, pool = len(approved.earlier_runs(settings.pool)), None
        if earlier:
            from pytest_llmeval.baselines._anchors import pooled_baseline

            pool = pooled_baseline(last.statistics, approved, file, settings.pool, run.suite.abstained)
    except FileNotFoundError as error:
        gone = Path(error.filename or path)
        return missing if gone == path else _Baseline(absent=f"the baseline cannot be used: {gone.name} is missing")
    except (OSError, UnicodeDecodeError) as error:
        return _Baseline(absent=f"the baseline {display_path} cannot be read: {error}")
    except SuiteError as error:
        return _Baseline(absent=f"the baseline cannot be used: {error.faults[0]}")
    shifts = run.shifts(approved)
    pooled = None if pool is None else run.pair(pool, shifts)
    doubts = list(_doubts(run, approved, last.pairing.matching, settings))
    return _Baseline(last.pairing, pooled, doubts=doubts, approved=approved, runs=1 + earlier)


def _doubts(
    run: SuiteRun, approved: SuiteScores, matching: CaseMatching, settings: SnapshotSettings
) -> Iterator[SnapshotVerdict]:
    """Yield the verdicts that gate metrics are not comparable with the approved run.

    Those of the snapshot do not suffice: it may leave a metric out, and does not judge part of a suite.
    """
    comparable, deciding = run.comparable, run.suite.deciding_labels
    approved = replace(approved, comparable=alike(approved.comparable, comparable, matching))
    if changed := changed_cases(approved, comparable, len(run.records)):
        yield not_comparable(SnapshotVerdict.EVERYTHING, changed, settings)
    for metric in dict.fromkeys(gate.metric for gate in run.suite.regressions):
        here, there = run.result.find(metric), approved.metrics.get(metric)
        changed = changed_measure(metric, deciding(metric), approved, comparable, run.key.display_path)
        if not changed and here is not None and there is not None:
            changed = changed_signature(there.signature, here.signature, run.shifts(approved).get(metric))
        if changed:
            yield not_comparable(metric, changed, settings)
