"""The end of a run, without pytest."""

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import repeat
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from pytest_llmeval._version import __version__
from pytest_llmeval.baselines import Keeper, SnapshotMode, Stamp
from pytest_llmeval.core import (
    AnswerShown,
    AnyError,
    Case,
    CaseLabels,
    CaseRecord,
    ChangeVerdict,
    ComparingEvaluator,
    GateResult,
    Metric,
    Result,
    Strengths,
    SuiteError,
    counted,
    number,
)
from pytest_llmeval.judges import PanelSpec
from pytest_llmeval.numbers import Money, Table, UsageReport
from pytest_llmeval.reports import (
    CaseReport,
    Changes,
    RunReport,
    RunStart,
    SuiteReport,
    SystemsReport,
)
from pytest_llmeval.run._execute import different_answers
from pytest_llmeval.run._judging import can_fail, judge, left_to_others
from pytest_llmeval.run._run_record import RunRecord, shown_value
from pytest_llmeval.run._stages import (
    Judged,
    JudgedSuite,
    MeasuredSuite,
    Reported,
    RunScope,
    RunTerms,
    Suites,
    SuiteVerdict,
    collect,
    extended,
    iso_time,
    persist,
)
from pytest_llmeval.services import Secrets
from pytest_llmeval.suites import LoadedSuite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.numbers import CaseStatistics, RunPairing
    from pytest_llmeval.targets import Recordings


_MANY_SHARED = 10
_SHARE_SHARED = 0.1
_CONFIDENCE = 0.95
"""Of differences, where the suite wants no intervals of its own."""


def report(judged: Judged, scope: RunScope) -> Reported:
    """The report of a judged run: its suites, the systems of each, and the faults of files.

    A suite that cannot be reported has a failed verdict of its own, as one that cannot be judged, and does not affect
    other suites.
    """
    notes, failures = list(judged.notes), list[SuiteVerdict]()
    reported: list[tuple[JudgedSuite, SuiteReport]] = []
    for suite in judged.suites:
        try:
            reported.append((suite, report_suite(suite, scope)))
        except Exception as error:  # noqa: BLE001 (an evaluator's bug costs its own suite: changes are summarized here)
            why = f"not reported: {AnyError(error).message()}"
            failures.append((suite.key, GateResult("summary", "failed", None, None, why)))
            notes.append(f"{suite.key.display_path}: {why}")
    if scope.keeper.mode.update and not scope.keeper.mode.refused:
        notes += [note for own, suite in reported for note in _floor_notes(own, suite)]
    compared = []
    for variants in JudgedSuite.by_variant(judged.suites):
        try:
            systems = compare_variants(variants)
        except Exception as error:  # noqa: BLE001 (an evaluator's bug costs its own table; no verdict depends on it)
            notes.append(
                f"{next(iter(variants.values())).key.display_path}: systems not compared: {AnyError(error).message()}"
            )
        else:
            compared += [systems] if systems is not None else []
    commit = scope.stamp.commit
    origin = origin_of(scope.suites.root, os.environ) if commit else ()
    run = RunReport(
        run=RunStart(iso_time(scope.run), round(scope.run.duration, 3), __version__, commit, *origin),
        suites=[suite for _, suite in reported],
        faults=dict(sorted(scope.run.faults.items())),
        systems=compared,
    ).with_media(scope.suites.root)
    if failures:
        judged = structs.replace(judged, suites=[suite for suite, _ in reported])
    return Reported(judged, run, [*judged.verdicts, *failures], notes)


def _floor_notes(judged: JudgedSuite, reported: SuiteReport) -> Iterator[str]:
    """Yield a note on a run for each metric of a suite that is approved at its worst possible value."""
    is_approved = any(verdict.outcome == "passed" for verdict in judged.snapshot.verdicts)
    for name in reported.compared if is_approved else ():
        owned, value = judged.suite.metrics.find(name), reported.metrics.get(name, reported.pass_rate).value
        worst = 0.0 if owned is None else owned.metric.worst
        if value is not None and value == worst:
            yield (
                f"{judged.key.display_path}: {name} is approved at {number(value)}, the worst that it can be, so no "
                "later fall can be found: approve a run whose answers are scored better"
            )


def report_suite(judged: JudgedSuite, scope: RunScope) -> SuiteReport:
    """The report on one judged suite of a run: its gates, scores, cases and changes."""
    suite, key, records, result = judged.suite, judged.key, judged.records, judged.result
    usage = _usage(suite, records)
    stop = judged.collected.stop
    contents = judged.measured.run.contents if scope.terms.fingerprints else {}
    compared = compared_metrics(suite, result)
    has_baseline = judged.collected.baseline is not None or scope.keeper.settings(suite) is not None
    compares = stop is None and not judged.incomplete and has_baseline
    fell = any(verdict.outcome == "failed" for verdict in judged.snapshot.verdicts)
    return SuiteReport.complete(
        suite.name + "".join(f"[{part}]" for part in (key.test, key.variant) if part),
        key.display_path,
        result,
        judged.gates,
        judged.collected.total,
        suite.confidence,
        metrics=suite.metrics,
        cases=_shown_cases(suite, records),
        texts=scope.terms.texts,
        files=suite.files,
        contents=contents,
        gated=suite.judged_metrics,
        description=suite.description,
        usage=usage,
        snapshot=judged.snapshot.verdicts,
        shared_inputs=_shared_inputs(judged),
        uncalibrated=judged.uncalibrated,
        can_fail=can_fail(judged, scope),
        left_out=suite.left_out,
        abstained=suite.abstained,
        variant=key.variant,
        compared=compared,
        changes=approved_changes(judged, compared, cases=scope.terms.compares or fell) if compares else None,
        stop=None if stop is None else stop.report,
        sample=None if suite.sample is None else suite.sample.report,
        money=_money(judged, usage),
    )


def _usage(suite: LoadedSuite, rows: Sequence[CaseRecord]) -> UsageReport | None:
    """The usage of a suite's judges, with the counts of a cascade by evaluator, each repeat counted."""
    if not isinstance(suite.judge, PanelSpec) or suite.judge.cascade is None:
        return UsageReport.from_records(rows)
    from pytest_llmeval.evaluators import VerdictStatistics

    cascades = {}
    for label, evaluator in suite.evaluators.items():
        if isinstance(evaluator, VerdictStatistics):
            counts: Counter[str] = Counter()
            for row in rows:
                if label in row.observations:
                    times = suite.repeats.times  # whose counts are averaged
                    counts.update({name: count * times for name, count in row.observations[label].counts.items()})
            cascades[evaluator.of] = counts
    return UsageReport.from_records(rows, cascades, suite.judge.cascade.audit)


def _money(judged: JudgedSuite, usage: UsageReport | None) -> Money | None:
    """The cost and the savings of a suite in its run; calls that ran ahead before it stopped were paid for."""
    panel, stop = judged.suite.judge, judged.collected.stop
    large = panel.names[-1] if isinstance(panel, PanelSpec) else ""
    cascades = {} if usage is None else usage.cascades
    if stop is None:
        return Money.of_records(judged.records, cascades, large)
    money = Money.of_records([*judged.records, *stop.ran_ahead], cascades, large)
    return money if money is None else money.with_stop(stop.report.cost_usd)


def _shown_cases(suite: LoadedSuite, rows: Iterable[CaseRecord]) -> Iterator[Case]:
    """Yield the cases of a suite for its report, with redacted input and expectation where an answer is shown."""
    answered = {row.id for row in rows if row.answers}
    secrets = Secrets.of_variables(suite.secret_variables)
    for case in suite.cases:
        if case.id in answered:
            question, expected = (shown_value(part, secrets) for part in (case.input, case.expected))
            is_whole = question is case.input and expected is case.expected
            yield case if is_whole else replace(case, input=question, expected=expected)
        else:
            yield case


def _shared_inputs(judged: JudgedSuite) -> int:
    """The number of cases with the input of an earlier one, if these are many and in no cluster that is named."""
    suite = judged.suite
    if suite.cluster_by or any(gate.cluster_by for gate in suite.regressions):
        return 0
    shared = judged.measured.run.repeated_inputs
    return shared if shared >= max(_MANY_SHARED, _SHARE_SHARED * len(suite.cases)) else 0


def compare_variants(variants: Mapping[str, JudgedSuite]) -> "SystemsReport | None":
    """The comparison of a finished suite's systems; ``None`` unless several of them ran."""
    ran = {name: variant for name, variant in variants.items() if variant.measured.ran}
    if len(ran) < 2:  # noqa: PLR2004 (one system is compared with nobody)
        return None
    from pytest_llmeval.numbers import SystemTable

    first = next(iter(ran.values()))
    suite = first.suite
    reference = suite.reference if suite.reference in ran else next(iter(ran))
    results = {name: variant.result for name, variant in ran.items()}
    table = SystemTable.of_results(
        results,
        reference,
        suite.metrics,
        family=suite.compared_by or compared_metrics(suite, first.result),
        confidence=_confidence(suite),
        cluster_by=suite.cluster_by,
        abstained=suite.abstained,
    )
    name = suite.name + (f"[{first.key.test}]" if first.key.test else "")
    metrics = {name: variant.suite.metrics for name, variant in ran.items()}
    compared_by = suite.compared_by or table.metrics[:1]
    strengths = list(_strengths(suite, results))
    return SystemsReport.of_table(name, first.key.display_path, table, compared_by, metrics, strengths)


def _strengths(suite: LoadedSuite, results: Mapping[str, Result]) -> Iterator[Strengths]:
    """Yield how strong the systems are by each evaluator that compared them in pairs."""
    for label, evaluator in suite.evaluators.items():
        if isinstance(evaluator, ComparingEvaluator):
            strengths = evaluator.strengths(label, results, suite.cluster_by, _confidence(suite))
            if strengths is not None:
                yield strengths


def _confidence(suite: LoadedSuite) -> float:
    """The confidence of the intervals in a comparison of a suite's systems: the suite's own, or the default."""
    return _CONFIDENCE if suite.confidence is None else suite.confidence


def compared_metrics(suite: LoadedSuite, result: Result) -> list[str]:
    """The metrics that comparisons of a suite are about: of gates and limits, and those that evaluators report.

    An evaluator that names none is represented by its first metric; the pass rate counts if a case can fail.
    """
    limits = {name for case in suite.cases for name in suite.limits(case)}
    names = {gate.metric for gate in (*suite.score_gates, *suite.regressions)} | limits
    for label, evaluator in suite.evaluators.items():
        declared = [metric.name for metric in suite.metrics.declared[label]]
        option = getattr(evaluator, "metrics", None)  # of users' evaluators it may be anything
        named = option if isinstance(option, list | tuple) else ()
        chosen = {suite.metrics.full_name(label, name) for name in named} & set(declared)
        names |= chosen or (set() if names & set(declared) else set(declared[:1]))
    rate = [Metric.PASS_RATE] if suite.checked or limits or Metric.PASS_RATE in names else []
    return [name for name in result.metrics if name in names] + rate


def approved_changes(judged: JudgedSuite, compared: Sequence[str], *, cases: bool) -> Changes | None:
    """The changes of a finished suite since its approval; ``None`` if no approved case is known.

    Args:
        judged: The suite.
        compared: The metrics that comparisons are about.
        cases: Whether to also return the approved cases.
    """
    from pytest_llmeval.numbers import Difference

    measured = judged.measured
    try:
        approved = measured.run.approved
    except (OSError, UnicodeDecodeError, SuiteError):
        return None  # the verdict on the snapshot says why
    if approved is None or not approved.pairing.common:
        return None
    suite, pairing = measured.suite, approved.pairing
    names = [name for name in compared if name in pairing.table.owner]
    clusters = suite.cluster_by if suite.cluster_by and pairing.has_label(suite.cluster_by) else None
    confidence = _confidence(suite)
    decided, rows = changes_by_gates(judged.gates), pairing.everything()
    changes = Difference.judge_family(pairing, rows, names, decided, confidence=confidence, cluster_by=clusters)
    before = list(_cases(approved.statistics, pairing, suite, _answers(measured))) if cases else []
    against = "approved scores" if judged.collected.baseline is None else "baseline"
    returned = []
    if any(CaseLabels(record.labels).modes for record in judged.records):
        earlier = approved.statistics.renamed(pairing.matching.by_content)
        returned = [*Changes.returned_modes(judged.records, earlier.records)]
    return Changes(against, changes, confidence, list(_notes(pairing)), returned, before)


def changes_by_gates(gates: Iterable[GateResult]) -> dict[str, ChangeVerdict]:
    """The metrics of a finished suite whose gate failed by a drop (``declined``) or did not decide (``undecided``)."""
    verdicts: dict[str, ChangeVerdict] = {}
    for gate in gates:
        if " by " in gate.gate or not gate.metric:
            continue  # a group is not the metric over all cases
        if gate.fallen:
            verdicts[gate.metric] = "declined"
        elif gate.outcome == "undecided":
            verdicts.setdefault(gate.metric, "undecided")
    return verdicts


def _answers(measured: MeasuredSuite) -> dict[str, list[AnswerShown]]:
    """The approved answers of a finished suite for its report; none where they were not kept or are damaged."""
    from pytest_llmeval.baselines import ApprovedAnswers

    try:
        approved = ApprovedAnswers.read(measured.key).by_case(measured.suite.cases)
    except (OSError, UnicodeDecodeError, SuiteError):
        return {}  # where answers are compared with these, the file is a fault of the suite
    hidden = Secrets.of_variables(measured.suite.secret_variables)
    return {
        case: different_answers([shown_value(value, hidden) for value in values]) for case, values in approved.items()
    }


def _notes(pairing: "RunPairing") -> Iterator[str]:
    """Yield how many cases of a finished run and of the approved run have no counterpart in the other."""
    if pairing.only_current:
        yield f"{counted(pairing.only_current, 'case')} only in this run, or edited"
    if pairing.only_baseline:
        yield f"{counted(pairing.only_baseline, 'case')} only in the approved run, or edited"


def _cases(
    statistics: "CaseStatistics",
    pairing: "RunPairing",
    suite: LoadedSuite,
    answers: Mapping[str, Sequence[AnswerShown]],
) -> Iterator[CaseReport]:
    """Yield the cases of an approved run with their scores and answers, for the report of the run that finished."""
    records, table = statistics.records, pairing.table
    start = len(table.records) - len(records)
    if pairing.fallen or start < 0 or not all(map(is_, records, table.records[start:])):
        table, start = Table(suite.metrics, records), 0
    names = [name for name in table.scores if name != Metric.PASS_RATE]
    columns = [table.scores[name][start:].tolist() for name in names]  # unpacked once
    scores = [[None if math.isnan(score) else score for score in column] for column in columns]
    of_cases = zip(*scores, strict=True) if scores else repeat(())
    for record, values in zip(records, of_cases, strict=False):
        texts = CaseReport.answer_fields(answers[record.id]) if record.id in answers else {}
        metrics = dict(zip(names, values, strict=True))
        yield CaseReport(id=record.id, outcome=record.outcome, metrics=metrics, **texts)


REQUIRE_GATES = "--llmeval-require-gates"
_LISTED = 5


def finish_run(
    run: RunRecord,
    terms: RunTerms,
    suites: Suites,
    mode: SnapshotMode,
    *,
    recordings: "Recordings | None" = None,
    baselines: Mapping[SuiteKey, Sequence[CaseRecord]] = {},
) -> Reported:
    """End a run: turn its record into verdicts, files and its report.

    Args:
        run: The record.
        terms: The options.
        suites: Of the run.
        mode: The snapshot options.
        recordings: Predictions; ``None`` if they are not recorded.
        baselines: The records that suites are compared with, in place of their approved runs.
    """
    stamp = Stamp.of_checkout(datetime.fromtimestamp(run.started, UTC), suites.root)
    keeper = Keeper(mode.read_only() if run.ended or run.uncollected else mode, terms.snapshots, suites.root)
    scope = RunScope(run, terms, suites, keeper, stamp, baselines)
    collected = collect(scope)
    reported = persist(report(judge(collected, scope), scope), scope, recordings=recordings)
    shortfalls = [*collected.shortfalls, *_shortfalls(reported.judged, scope)]
    reported = structs.replace(reported, shortfalls=shortfalls)
    return extended("reported", reported, scope)


def _shortfalls(judged: Judged, scope: RunScope) -> Iterator[str]:
    """Yield reasons why a run without failures does not pass: it was cut short, or gates were not evaluated."""
    run, terms = scope.run, scope.terms
    if run.unfinished:
        why = run.broken or "they sent no report"
        yield f"{counted(len(run.unfinished), 'selected test')} of eval suites did not run: {why}"
    yield from _find_unsettled(judged)
    if run.broken:
        yield from _failures(judged)
    gates = [(suite.key.display_path, gate) for suite in judged.suites for gate in suite.gates]
    waiting = [
        f"{suite_path}: {gate.gate} ({gate.reason})" for suite_path, gate in gates if gate.outcome == "not_judged"
    ]
    elsewhere = 0 if terms.is_kept else left_to_others(scope)
    if elsewhere and waiting:
        yield (
            f"{counted(len(waiting), 'gate')} not evaluated: a plugin deselected {counted(elsewhere, 'test')} of eval "
            "suites. If these run elsewhere, keep the results of each part with --llmeval-report=PART.llmeval, and "
            "judge them together with 'llmeval merge'"
        )
    if not terms.require_gates or terms.shard or (terms.is_kept and run.deselected):
        return
    snapshots = [(suite.key.display_path, verdict) for suite in judged.suites for verdict in suite.snapshot.verdicts]
    if not (gates or snapshots):
        yield f"{REQUIRE_GATES}: no gate was judged: no suite has gates or a snapshot"
    waiting += [
        f"{suite.key.display_path}: {counted(suite.collected.reruns, 'case')} failed and ran again: the best of "
        "several results decides nothing, so run without --reruns"
        for suite in judged.suites
        if suite.collected.reruns
    ]
    waiting += [
        f"{suite_path}: snapshot {verdict.reason}"
        for suite_path, verdict in snapshots
        if verdict.outcome == "not_judged"
    ]
    yield from (f"{REQUIRE_GATES}: {note}" for note in waiting[:_LISTED])
    if len(waiting) > _LISTED:
        yield f"{REQUIRE_GATES}: ... and {len(waiting) - _LISTED} more"


def _find_unsettled(judged: Judged) -> Iterator[str]:
    """Yield the suites that stopped early on results that changed afterwards, as when a case is run again."""
    for suite in judged.suites:
        if waiting := sum(record.reason == CaseRecord.NOT_NEEDED for record in suite.records):
            skipped = counted(waiting, "case")
            yield f"{suite.key.display_path}: {skipped} not run, though not all gates are decided: run again"


def _failures(judged: Judged) -> Iterator[str]:
    """Yield the failures of a run that was asked to end, since its exit code does not show them."""
    records = [record for suite in judged.suites for record in suite.records]
    if failed := sum(record.outcome in CaseRecord.BAD for record in records):
        yield f"{counted(failed, 'case')} failed before the run ended early"
    if failed := sum(verdict.outcome == "failed" for _, verdict in judged.verdicts):
        yield f"{counted(failed, 'verdict')} on gates and snapshots failed in a run that ended early"


def origin_of(root: Path, environment: Mapping[str, str]) -> tuple[str, str]:
    """The branch and the pull request number that a finished run is about; empty where they are not known.

    In a job of GitHub or GitLab, the environment names both: what is checked out there has no branch.

    Args:
        root: A folder of the repository.
        environment: Of the process.
    """
    from pytest_llmeval.services import GitError, run_git

    pull = re.fullmatch(r"refs/pull/(\d+)/.*", environment.get("GITHUB_REF", ""))
    number = pull[1] if pull else environment.get("CI_MERGE_REQUEST_IID", "")
    named = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_REF_NAME")
    branch = next((environment[name] for name in named if environment.get(name)), "")
    if not branch:
        try:
            branch = run_git(root, "symbolic-ref", "--quiet", "--short", "HEAD").strip()
        except GitError:
            branch = ""
    return branch, number
