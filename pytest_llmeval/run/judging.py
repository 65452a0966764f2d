"""Judging a finished run: gates, snapshots and regression gates of its suites."""

__all__ = ("JudgedRun", "SuiteVerdict", "judge_run", "left_to_others")

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, structs

from pytest_llmeval.baselines.comparable import fingerprint
from pytest_llmeval.baselines.keeper import Keeper
from pytest_llmeval.baselines.mode import SnapshotMode
from pytest_llmeval.baselines.runs import SuiteRun
from pytest_llmeval.baselines.stamp import Stamp
from pytest_llmeval.core.case import Case
from pytest_llmeval.core.results import CaseRecord, CaseResult, Result
from pytest_llmeval.core.wording import suggest
from pytest_llmeval.gates.limits import EVERYTHING, GateResult, SnapshotVerdict
from pytest_llmeval.judge.panel import PanelSpec
from pytest_llmeval.reports.errors import fill_buckets
from pytest_llmeval.reports.form import Changes, FilledBucket, SuiteReport
from pytest_llmeval.reports.notes import ReportedTexts, case_notes, without_texts, worst_cases
from pytest_llmeval.reports.tables import fill_tables
from pytest_llmeval.run.collecting import RunTerms, fault_of
from pytest_llmeval.run.records import shown_value
from pytest_llmeval.run.run_record import RunRecord
from pytest_llmeval.run.side_by_side import judge_between, qualified, side_by_side, variants_of
from pytest_llmeval.scoring.summary import summarize
from pytest_llmeval.scoring.usage import TARGET_FIGURES, CascadeUse, Money, UsageEvaluator, money_of, usage_report
from pytest_llmeval.services.secrets import secret_values
from pytest_llmeval.suite.suite import CANNOT_FAIL, Suite, SuiteKey, stop_fault

if TYPE_CHECKING:
    from pytest_llmeval.reports.systems import SystemsReport

_MANY_SHARED = 10
_SHARE_SHARED = 0.1

JUDGES_OFF = "judges are off"


SuiteVerdict: TypeAlias = tuple[SuiteKey, GateResult | SnapshotVerdict]
"""A verdict on a suite: of a gate, of its snapshot, or that something failed as a whole."""


class JudgedRun(Struct, frozen=True):
    """The suites of a run with the verdicts on them.

    Attributes:
        suites: Those that could be judged.
        verdicts: On suites, sorted by path, test and variant; then on files.
        notes: Lines for people about suites that could not be judged, or that pass whatever they score.
        systems: Of suites that several systems answered, side by side.
    """

    suites: Sequence[SuiteRun]
    verdicts: Sequence[SuiteVerdict]
    notes: Sequence[str] = ()
    systems: "Sequence[SystemsReport]" = ()


def judge_run(
    suites: Iterable[SuiteRun],
    faults: Mapping[SuiteKey, str],
    run: RunRecord,
    terms: RunTerms,
    keeper: Keeper,
    stamp: Stamp,
) -> JudgedRun:
    """Judge every suite of a run.

    Args:
        suites: The suites with their records, as they were collected.
        faults: Those that could not be loaded, with the reason.
        run: How the run went.
        terms: The options.
        keeper: How snapshots are treated.
        stamp: Of approvals.

    Returns:
        The suites with their verdicts. A suite that cannot be judged, because its file or one of its evaluators fails,
        has its own failed verdict and does not affect other suites.
    """
    judged: list[SuiteRun] = []
    failures = dict(faults)
    for each in suites:
        try:
            _judge(each, run, terms, keeper, stamp)
        except Exception as error:  # noqa: BLE001 (an evaluator's bug costs its own suite, not the others)
            failures[each.key] = fault_of(error)
        else:
            judged.append(each)
    groups = variants_of(judged)
    for variants in groups:
        _judge_between(variants)
    verdicts: list[SuiteVerdict] = [
        (key, GateResult("summary", "failed", None, None, f"not judged: {why}")) for key, why in failures.items()
    ]
    verdicts += [verdict for each in judged for verdict in _verdicts(each, run.broken)]
    verdicts.sort(key=lambda verdict: (verdict[0].shown, verdict[0].test, verdict[0].variant))
    notes = [f"{key.shown}: not judged: {why}" for key, why in sorted(failures.items(), key=lambda each: each[0][1:])]
    toothless = (
        each.key.shown
        for each in judged
        # A Python test has assertions of its own.
        if not (each.key.test or each.suite.can_fail or keeper.settings(each.suite))
    )
    notes += [f"{each}: {CANNOT_FAIL}" for each in dict.fromkeys(toothless)]
    notes += dict.fromkeys(note for each in judged for note in _idle_thresholds(each))
    notes += dict.fromkeys(
        f"{each.key.shown}: runs to its end: {fault}"
        for each in judged
        if each.suite.stop is not None and (fault := stop_fault(each.suite))
    )
    notes += [
        f"{each.key.shown}: limits of {name.replace(EVERYTHING, 'all metrics')} changed since the approval: {moved}"
        for each in judged
        for name, moved in each.moved_limits.items()
    ]
    compared = []
    for variants in groups:
        try:
            found = side_by_side(variants)
        except Exception as error:  # noqa: BLE001 (as above: the verdicts do not depend on the table)
            notes.append(f"{next(iter(variants.values())).key.shown}: systems not compared: {fault_of(error)}")
        else:
            compared += [found] if found is not None else []
    return JudgedRun(judged, verdicts, notes, compared)


def left_to_others(run: RunRecord, terms: RunTerms, mode: SnapshotMode) -> int:
    """Return how many tests over cases were left out, neither by options nor as those of other shards."""
    return 0 if mode.selects or terms.shard else len(run.deselected)


def _idle_thresholds(judged: SuiteRun) -> Iterator[str]:
    """Yield the thresholds of a whole run that no case can miss, since none has a value: a label may be misspelt."""
    suite, result = judged.suite, judged.result
    if judged.incomplete or judged.off or not any(each.observations for each in judged.records):
        return
    for name in sorted({*suite.thresholds, *(name for case in suite.cases for name in case.thresholds)}):
        metric = result.find(name)
        if name not in TARGET_FIGURES and (metric is None or not (metric.scored or metric.errored)):
            near = suggest(name, (each for each, found in result.metrics.items() if found.scored))
            yield f"{judged.key.shown}: no case has a value of {name}, so none can miss its threshold{near}"


def _judge_between(variants: Mapping[str, SuiteRun]) -> None:
    """Add the verdicts of the gates between the systems of a suite."""
    if any(each.stop is not None for each in variants.values()):
        return  # they were judged with the others
    try:
        found = judge_between(variants)
    except Exception as error:  # noqa: BLE001 (an evaluator's bug costs its own suite, not the others)
        gate = GateResult("between systems", "failed", None, None, f"not judged: {fault_of(error)}")
        found = {next(iter(variants)): [gate]}
    for name, gates in found.items():
        report = variants[name].report
        variants[name].report = structs.replace(report, gates=[*report.gates, *gates])


def _verdicts(judged: SuiteRun, broken: str) -> Iterator[SuiteVerdict]:
    """Return the verdicts to be reported.

    A skipped report would take a failed gate off pytest's list for --lf, so gates of a run that leaves cases out on
    purpose are not reported at all.
    """
    on_purpose = not (broken or judged.suite.faults)
    verdicts: list[GateResult | SnapshotVerdict] = [*judged.report.gates, *judged.report.snapshot]
    return ((judged.key, each) for each in verdicts if each.outcome != "not_judged" or not on_purpose)


def _judge(judged: SuiteRun, run: RunRecord, terms: RunTerms, keeper: Keeper, stamp: Stamp) -> None:
    """Summarise a suite, and judge it."""
    suite, key, rows = judged.suite, judged.key, judged.records
    result = judged.result = summarize(
        suite.metrics,
        rows,
        group_by=suite.group_by,
        confidence=suite.confidence,
        faulty=suite.faulty,
        cluster_by=suite.cluster_by,
        sampled=suite.sample.share if suite.sample is not None else 0.0,
    )
    shown = _shown_result(result, terms.texts)
    cascades = _cascades(suite, rows)
    report = SuiteReport(
        suite.name + "".join(f"[{part}]" for part in (key.test, key.variant) if part),
        key.shown,
        shown,
        [],
        judged.total,
        suite.confidence,
        usage_report(rows, cascades),
        tables=fill_tables(suite.metrics, result),
        buckets=_with_cases(fill_buckets(suite.metrics, result.cases), shown.cases),
        lower_is_better=[name for name in result.metrics if suite.metrics.lower_is_better(name)],
        ranges=suite.metrics.ranges(result.metrics),
        shared_inputs=_shared_inputs(suite),
        left_out=suite.left_out,
        notes=case_notes(_shown_cases(suite, rows), rows, terms.texts, suite.files),
        worst=worst_cases(result, suite.metrics, suite.judged_metrics),
        variant=key.variant,
        stop=judged.stop,
        sample=None if suite.sample is None else suite.sample.report,
        money=_money(judged, cascades),
    )
    is_part = terms.is_kept and left_to_others(run, terms, keeper.mode) > 0
    incomplete = judged.incomplete = _incomplete(judged, report.run, run, terms, is_part=is_part)
    judged.off = _switched_off(suite, rows) if terms.judge == "off" and suite.judged else frozenset()
    unjudged = JUDGES_OFF if judged.off else ""
    if judged.stop is not None:  # scores of some cases are no scores of the suite
        judged.report = structs.replace(report, gates=judged.stopped)
        return
    snapshot = keeper.judge(judged, incomplete or unjudged, stamp)
    gates = [
        qualified(
            judged,
            gate.max_skipped,
            gate.judge(result, incomplete, unjudged if _declared(gate.metric, suite) in judged.off else ""),
        )
        for gate in suite.gates
    ]
    gates += _regressions(judged, keeper, snapshot, incomplete, unjudged)
    changes = _changes(judged) if terms.compares and keeper.settings(suite) else None
    judged.report = structs.replace(report, gates=gates, snapshot=snapshot, changes=changes)


def _cascades(suite: Suite, rows: Iterable[CaseRecord]) -> dict[str, CascadeUse]:
    """Return, by evaluator, what became of the questions to a cascade of judges, each repeat counted."""
    if not isinstance(suite.judge, PanelSpec) or suite.judge.cascade is None:
        return {}
    found = {}
    for label, evaluator in suite.evaluators.items():
        if evaluator.counts_verdicts_of:
            counts: Counter[str] = Counter()
            for row in rows:
                if label in row.observations:
                    times = suite.repeats.times  # whose counts are averaged
                    counts.update({name: count * times for name, count in row.observations[label].counts.items()})
            found[evaluator.counts_verdicts_of] = CascadeUse.of(suite.judge.cascade.audit, counts)
    return found


def _money(judged: SuiteRun, cascades: Mapping[str, CascadeUse]) -> Money | None:
    """Return what a suite spent and saved; what ran ahead before it stopped was paid for, too."""
    judge = judged.suite.judge
    large = judge.names[-1] if isinstance(judge, PanelSpec) else ""
    found = money_of([*judged.records, *judged.ran_ahead], cascades, large)
    return found if found is None or judged.stop is None else structs.replace(found, stop=judged.stop.cost_usd)


def _regressions(
    suite_run: SuiteRun, keeper: Keeper, snapshot: Sequence[SnapshotVerdict], incomplete: str, unjudged: str
) -> list[GateResult]:
    """Judge the gates against a baseline; what compares runs is loaded where there are any."""
    if not suite_run.suite.regressions:
        return []
    from pytest_llmeval.baselines.baselines import examine_regressions
    from pytest_llmeval.gates.regression_verdicts import judge_regressions

    evidence = examine_regressions(suite_run, keeper, snapshot, incomplete, unjudged)
    gates = []
    for each, verdict in zip(evidence, judge_regressions(evidence), strict=True):
        moved = suite_run.moved_limits.get(each.gate.metric)
        change = f"; limits changed since the approval: {moved}" if moved else ""
        marked = replace(verdict, reason=f"{verdict.reason}{change}")
        gates.append(qualified(suite_run, each.gate.max_skipped, marked))
    return gates


def _changes(suite_run: SuiteRun) -> Changes | None:
    from pytest_llmeval.run.approved_changes import approved_changes

    return approved_changes(suite_run)


def _shown_result(result: Result, texts: ReportedTexts) -> Result:
    """Return a result with the details that reports have."""
    if texts != "none":
        return result
    return replace(result, cases=[structs.replace(each, details=without_texts(each.details)) for each in result.cases])


def _with_cases(buckets: Iterable[FilledBucket], cases: Iterable[CaseResult]) -> list[FilledBucket]:
    """Return buckets with other results of the same cases."""
    by_id = {case.id: case for case in cases}
    return [structs.replace(each, cases=[by_id[case.id] for case in each.cases]) for each in buckets]


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


def _incomplete(judged: SuiteRun, ran: int, run: RunRecord, terms: RunTerms, *, is_part: bool) -> str:
    """Say why results are not those of the whole suite, or nothing."""
    total = judged.total
    if judged.stop is not None:
        return f"stopped when decided, after {ran} of {total} cases"
    if terms.shard:
        return f"shard {terms.shard} ran {ran} of {total} cases; run llmeval merge"
    reasons = [f"{ran} of {total} cases ran"] if ran < total else []
    if judged.suite.faults:
        reasons.append("the suite's files have faults")
    if reasons and run.broken:
        reasons.append(run.broken)
    elif ran < total and is_part:
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
