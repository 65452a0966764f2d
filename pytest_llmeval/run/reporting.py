"""The third stage of a run's end: the report of judged suites."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pytest_llmeval._version import __version__
from pytest_llmeval.baselines.comparable import fingerprint
from pytest_llmeval.baselines.runs import JudgedSuite, MeasuredSuite
from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.core.results import PASS_RATE, AnswerShown, CaseRecord, Result
from pytest_llmeval.core.wording import counted
from pytest_llmeval.judge.spec import PanelSpec
from pytest_llmeval.reports.form import CaseReport, Changes, RunReport, RunStart, SuiteReport
from pytest_llmeval.reports.making import (
    answer_fields,
    case_reports,
    join_tables,
    suite_report,
    worst_cases,
)
from pytest_llmeval.run.judging import variants_of
from pytest_llmeval.run.records import different_answers, shown_value
from pytest_llmeval.run.run_record import RunRecord
from pytest_llmeval.run.stages import Judged, Reported, RunScope, fault_of
from pytest_llmeval.scoring.usage import CascadeUse, Money, money_of, usage_report
from pytest_llmeval.services.secrets import secret_values
from pytest_llmeval.suite.suite import Suite

if TYPE_CHECKING:
    from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics
    from pytest_llmeval.gates.statistics.pairing import RunPairing
    from pytest_llmeval.gates.statistics.strengths import Strengths
    from pytest_llmeval.reports.tables import SystemsReport

_MANY_SHARED = 10
_SHARE_SHARED = 0.1
_CONFIDENCE = 0.95
"""Of differences, where the suite wants no intervals of its own."""


def report(judged: Judged, scope: RunScope) -> Reported:
    """Report a judged run: its suites, the systems of each, and the faults of files."""
    notes = list(judged.notes)
    compared = []
    for variants in variants_of(judged.suites):
        try:
            systems = compare_variants(variants)
        except Exception as error:  # noqa: BLE001 (an evaluator's bug costs its own table; no verdict depends on it)
            notes.append(f"{next(iter(variants.values())).key.display_path}: systems not compared: {fault_of(error)}")
        else:
            compared += [systems] if systems is not None else []
    run = RunReport(
        run=RunStart(iso_time(scope.run), round(scope.run.duration, 3), __version__, scope.stamp.commit),
        suites=[report_suite(each, scope) for each in judged.suites],
        faults=dict(sorted(scope.run.faults.items())),
        systems=compared,
    )
    return Reported(judged, run, judged.verdicts, notes)


def iso_time(run: RunRecord) -> str:
    """Return when a run started, ISO 8601, UTC."""
    return datetime.fromtimestamp(run.started, UTC).isoformat(timespec="seconds")


def report_suite(judged: JudgedSuite, scope: RunScope) -> SuiteReport:
    """Report a judged suite."""
    suite, key, records, result = judged.suite, judged.key, judged.records, judged.result
    cascades = _cascades(suite, records)
    stop = judged.collected.stop
    compares = stop is None and scope.terms.compares and scope.keeper.settings(suite)
    return suite_report(
        suite.name + "".join(f"[{part}]" for part in (key.test, key.variant) if part),
        key.display_path,
        result,
        judged.gates,
        judged.collected.total,
        suite.confidence,
        cases=case_reports(result, _shown_cases(suite, records), scope.terms.texts, suite.files),
        description=suite.description,
        usage=usage_report(records, cascades),
        snapshot=judged.snapshot.verdicts,
        tables=judged.tables,
        buckets=judged.buckets,
        lower_is_better=[name for name in result.metrics if suite.metrics.lower_is_better(name)],
        ranges=suite.metrics.ranges(result.metrics),
        shared_inputs=_shared_inputs(suite),
        left_out=suite.left_out,
        worst=worst_cases(result, suite.metrics, suite.judged_metrics),
        variant=key.variant,
        changes=approved_changes(judged.measured) if compares else None,
        stop=None if stop is None else stop.report,
        sample=None if suite.sample is None else suite.sample.report,
        money=_money(judged, cascades),
    )


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
            found[evaluator.counts_verdicts_of] = CascadeUse.from_counts(suite.judge.cascade.audit, counts)
    return found


def _money(judged: JudgedSuite, cascades: Mapping[str, CascadeUse]) -> Money | None:
    """Return what a suite spent and saved; what ran ahead before it stopped was paid for, too."""
    panel, stop = judged.suite.judge, judged.collected.stop
    large = panel.names[-1] if isinstance(panel, PanelSpec) else ""
    if stop is None:
        return money_of(judged.records, cascades, large)
    money = money_of([*judged.records, *stop.ran_ahead], cascades, large)
    return money if money is None else money.with_stop(stop.report.cost_usd)


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


def compare_variants(variants: Mapping[str, JudgedSuite]) -> "SystemsReport | None":
    """Compare the systems of a suite; ``None`` unless several of them ran."""
    ran = {name: each for name, each in variants.items() if each.measured.ran}
    if len(ran) < 2:  # noqa: PLR2004 (one system is compared with nobody)
        return None
    from pytest_llmeval.gates.statistics.compare import compare_systems
    from pytest_llmeval.reports.making import systems_report

    first = next(iter(ran.values()))
    suite = first.suite
    reference = suite.reference if suite.reference in ran else next(iter(ran))
    results = {name: each.result for name, each in ran.items()}
    table = compare_systems(
        results, reference, suite.metrics, confidence=suite.confidence or _CONFIDENCE, cluster_by=suite.cluster_by
    )
    name = suite.name + (f"[{first.key.test}]" if first.key.test else "")
    joined = join_tables({name: each.tables for name, each in ran.items()})
    compared_by = suite.compared_by or table.metrics[:1]
    return systems_report(name, first.key.display_path, table, compared_by, joined, list(_strengths(suite, results)))


def _strengths(suite: Suite, results: Mapping[str, Result]) -> "Iterator[Strengths]":
    """Yield how strong the systems are by each evaluator that compared them in pairs."""
    for label, evaluator in suite.evaluators.items():
        if evaluator.opponents:
            from pytest_llmeval.evaluators.judge.pairwise import pairs_of_systems
            from pytest_llmeval.gates.statistics.strengths import strengths_of
            from pytest_llmeval.scoring.resample import unit_numbers

            cases = pairs_of_systems(results, label)
            units = unit_numbers([record for record, _ in cases], suite.cluster_by)
            confidence = suite.confidence or _CONFIDENCE
            found = strengths_of(label, [pairs for _, pairs in cases], units, confidence=confidence)
            if found is not None:
                yield found


def approved_changes(measured: MeasuredSuite) -> Changes | None:
    """Return what changed since the approval; ``None`` where nothing is known of the cases that were approved."""
    from pytest_llmeval.gates.statistics.compare import differences

    try:
        approved = measured.approved
    except (OSError, UnicodeDecodeError, SuiteError):
        return None  # the verdict on the snapshot says why
    if approved is None or not approved.pairing.common:
        return None
    suite, pairing = measured.suite, approved.pairing
    names = [name for name in (*measured.result.metrics, PASS_RATE) if name in pairing.table.owner]
    clusters = suite.cluster_by if suite.cluster_by and pairing.has_label(suite.cluster_by) else None
    confidence = suite.confidence or _CONFIDENCE
    found = differences(pairing, pairing.everything(), names, confidence=confidence, cluster_by=clusters)
    cases = list(_cases(approved.statistics, suite, _answers(measured)))
    return Changes("approved scores", found, list(_notes(pairing)), cases)


def _answers(measured: MeasuredSuite) -> dict[str, list[AnswerShown]]:
    """Return the approved answers as reports show them; none where they were not kept, or their file is damaged."""
    from pytest_llmeval.baselines.answers import ApprovedAnswers

    try:
        kept = ApprovedAnswers.read(measured.key).by_case(measured.suite.cases)
    except (OSError, UnicodeDecodeError, SuiteError):
        return {}  # where answers are compared with these, the file is a fault of the suite
    hidden = secret_values(measured.suite.secret_variables)
    return {case: different_answers([shown_value(each, hidden) for each in values]) for case, values in kept.items()}


def _notes(pairing: "RunPairing") -> Iterator[str]:
    if pairing.only_current:
        yield f"{counted(pairing.only_current, 'case')} only in this run, or edited"
    if pairing.only_baseline:
        yield f"{counted(pairing.only_baseline, 'case')} only in the approved run, or edited"


def _cases(
    statistics: "CaseStatistics", suite: Suite, answers: Mapping[str, Sequence[AnswerShown]]
) -> Iterator[CaseReport]:
    """Yield the cases of the approved run with their scores and answers."""
    from pytest_llmeval.scoring.table import Table

    scores = Table(suite.metrics, statistics.records).scores
    for row, record in enumerate(statistics.records):
        found = {name: float(column[row]) for name, column in scores.items()}
        metrics = {name: None if math.isnan(score) else score for name, score in found.items() if name != PASS_RATE}
        fields = answer_fields(answers.get(record.id, ()))
        yield CaseReport(id=record.id, outcome=record.outcome, metrics=metrics, **fields)
