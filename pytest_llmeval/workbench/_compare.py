"""The commands ``llmeval compare``, for two JSON reports, and ``decide``, for a report and other gates."""

import re
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from msgspec import to_builtins

from pytest_llmeval.cli import CommandResult, NumberArgument, say
from pytest_llmeval.core import (
    Case,
    CaseOutcome,
    CaseRecord,
    FloatArray,
    GateResult,
    LlmevalError,
    Metric,
    MetricChange,
    MetricValue,
    Result,
    counted,
    grouped,
    interval,
    number,
    printable,
    unknown_name,
)
from pytest_llmeval.gates import DropGate, GateEvidence, ScoreGate
from pytest_llmeval.numbers import Difference, summarize
from pytest_llmeval.reports import CaseReport, RunReport, SuiteReport, published
from pytest_llmeval.suites import LoadedSuite
from pytest_llmeval.workbench._console import open_noted, table_lines
from pytest_llmeval.workbench._report_pair import PairedScores, ReportPair, paired_scores, report_changes
from pytest_llmeval.workbench._reports import read_suites, results_of

_COMPARE = (
    "Compare two runs over the cases that ran in both, by the metrics that the suite gates or names. The exit code is "
    "1 if a drop larger than --max-drop is significant. It is 2 if a report cannot be used, a metric is unknown, or a "
    "suite has nothing to compare."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval compare``."""
    parser.description = _COMPARE
    which = "; FILE#NAME takes the system, or the variant of the target, of this name"
    parser.add_argument("report", metavar="NEW", help=f"JSON report of the run to compare{which}")
    parser.add_argument("second", metavar="OLD", nargs="?", help=SUPPRESS)  # in place of --baseline
    parser.add_argument("--baseline", metavar="OLD", help=f"JSON report of the run to compare with{which}")
    parser.add_argument(
        "--confidence",
        type=NumberArgument(share=True),
        default=0.95,
        metavar="SHARE",
        help="confidence level of the intervals (default: 0.95)",
    )
    parser.add_argument(
        "--max-drop",
        type=NumberArgument(least=0),
        metavar="NUMBER",
        help="fail if a larger drop of a metric is significant",
    )
    parser.add_argument("--metric", action="append", metavar="NAME", help="compare only this metric; can be repeated")
    parser.add_argument("--by", metavar="LABEL", help="compare the groups of this label as well")
    parser.add_argument(
        "--show", type=int, default=0, metavar="N", help="list the N cases that changed most (default: none)"
    )
    parser.set_defaults(run=_compare, bulk=True, code_of_faults=2)


def _compare(options: Namespace) -> CommandResult:
    """Run ``llmeval compare``: compare the metrics of two JSON reports, suite by suite."""
    if (options.baseline is None) == (options.second is None):
        named = "one" if options.baseline is None else "three"
        raise LlmevalError(f"found {named} reports, expected two: llmeval compare --baseline OLD NEW")
    reports = (options.report, options.baseline or options.second)
    pair = ReportPair.from_suites(*map(read_suites, reports), named=any("#" in name for name in reports))
    lines = [f"run {reports[0]} against baseline {reports[1]}"]
    for suites, report in zip(pair.alone, reports, strict=True):
        lines += [f"{suite.suite} ({suite.path}): only in {report}" for suite in suites]
    if not pair.both:
        say(lines)
        raise LlmevalError("the reports have no suite in common")
    known = dict.fromkeys(name for suites in pair.both for suite in suites for name in suite.metrics)
    unknown = [name for name in dict.fromkeys(options.metric or ()) if name not in (*known, Metric.PASS_RATE)]
    if unknown:
        raise LlmevalError("\n".join(unknown_name("metric", name, (*known, Metric.PASS_RATE)) for name in unknown))
    verdicts: list[GateResult] = []
    every: list[_ComparedSuite] = []
    labels = {label for here, _ in pair.both for case in here.cases for label in case.labels}
    if options.by is not None and options.by not in labels:
        raise LlmevalError(unknown_name("label", options.by, labels) if labels else "no case has labels")
    for here, there in pair.both:
        compared = _suite(here, there, reports, options)
        lines += compared.lines
        verdicts += GateEvidence.judge_together(compared.tests)
        every.append(compared)
    failed = [verdict for verdict in verdicts if verdict.outcome == "failed"] if options.max_drop is not None else []
    lines += [f"FAILED  {result.gate}  ({result.reason})" for result in failed]
    uncompared = [suite.name for suite in every if not suite.tests and not suite.vanished]
    gone = options.max_drop is not None and any(suite.vanished for suite in every)
    code = 1 if failed or gone else 2 if uncompared else 0
    if code != 1:
        say((f"{name}: nothing compared" for name in uncompared), error=True)
    rows = [{"suite": suite.name, "metrics": published(suite.changes), "vanished": suite.vanished} for suite in every]
    return CommandResult(code, {"reports": reports, "suites": rows, "failed": to_builtins(failed)}, lines)


class _ComparedSuite(NamedTuple):
    """The comparison of a suite in two JSON reports, as ``llmeval compare`` prints it.

    Attributes:
        name: Suite and file.
        lines: Text to print.
        changes: Of each compared metric.
        tests: Evidence on each of them.
        vanished: Metrics of the baseline that are gone.
    """

    name: str
    lines: Sequence[str]
    changes: Mapping[str, MetricChange] = MappingProxyType({})
    tests: Sequence[GateEvidence] = ()
    vanished: Sequence[str] = ()


def _suite(here: SuiteReport, there: SuiteReport, reports: tuple[str, str], options: Namespace) -> _ComparedSuite:
    """Compare the cases of a suite that ran in both reports of ``llmeval compare``."""
    title = f"{here.suite} ({here.path})"
    if (here.path, here.suite) != (there.path, there.suite):
        title += f" against {there.suite} ({there.path})"
    paired = paired_scores(here, there, options.metric, balanced=True)
    here, there, ran_alone, evaluator, pairing, label, by_content = paired
    counts = [counted(len(here.cases), "case") + " in both reports"]
    alone = zip(reports, ran_alone, strict=True)
    counts += [f"{len(ids)} only in {report}" for report, ids in alone if ids]
    counts += [f"{counted(by_content, 'case')} matched by content"] if by_content else []
    heading = f"{title}: {', '.join(counts)}"
    if not here.cases:
        return _ComparedSuite(title, [heading])
    by_metric = report_changes(paired, reports[1], options.confidence, options.metric).metrics
    if here.changes is None or by_metric is not here.changes.metrics:
        heading += "; means of case scores"
    groups = _groups(paired, list(by_metric), options) if options.by is not None else ()
    changed = _most_changed(here, there, evaluator.metrics, options.show)
    vanished = paired.vanished
    lines = [
        heading,
        *_table(by_metric, options),
        *(
            [f"{counted(more, 'more metric')}: --metric NAME"]
            if (more := len(set(evaluator.metrics) - by_metric.keys())) > 0 and options.metric is None
            else []
        ),
        *(f"{name}: no longer has a value" for name in vanished),
        *groups,
        *changed,
    ]
    judged = [name for name, change in by_metric.items() if change.difference is not None]
    limit, errors = options.max_drop or 0.0, len(here.cases)
    gates = [
        DropGate(name, limit, confidence=options.confidence, cluster_by=label, max_errors=errors) for name in judged
    ]
    return _ComparedSuite(title, lines, by_metric, [gate.examine(pairing) for gate in gates], vanished)


def _groups(pair: PairedScores, names: Sequence[str], options: Namespace) -> Iterator[str]:
    """Yield the comparison tables of the groups of a case label."""
    means, clusters = pair.means(names), pair.cluster_by
    for name, rows in pair.pairing.groups(options.by).items():
        by_metric = Difference.judge_family(
            pair.pairing, rows, names, confidence=options.confidence, means=means, cluster_by=clusters
        )
        yield f"{options.by}: {name}"
        yield from _table(by_metric, options)


def _most_changed(here: SuiteReport, there: SuiteReport, metrics: Sequence[str], count: int) -> Iterator[str]:
    """Yield the cases whose scores changed most, each with the metric that changed most."""
    before = {case.id: case.metrics for case in there.cases}
    changes = []
    for case in here.cases:
        values = [(case.metrics.get(name), before[case.id].get(name), name) for name in metrics]
        ranked = [
            (abs(now - then), name, then, now) for now, then, name in values if now is not None and then is not None
        ]
        if ranked and (most := max(ranked, key=lambda each: each[0]))[0] > 0:
            changes.append((case.id, *most))
    for name, _, metric, then, now in sorted(changes, key=lambda each: -each[1])[:count]:
        yield printable(f"{name}: {metric} {number(then)} -> {number(now)}")


def _table(by_metric: Mapping[str, MetricChange], options: Namespace) -> Iterator[str]:
    """Yield the table of ``llmeval compare``: each metric with both values, difference, interval and verdict."""
    rows = [
        (
            change.name_of(name),
            number(change.baseline),
            number(change.value),
            number(change.difference),
            interval(change.low, change.high),
            number(change.p_value),
            change.cases,
            number(change.detectable),
            change.verdict.replace("_", " "),
        )
        for name, change in by_metric.items()
    ]
    between = f"{options.confidence * 100:g}% interval"
    headers = ("metric", "baseline", "value", "change", between, "p", "cases", "MDE", "verdict")
    yield from table_lines([headers, *rows], "lrrrrrrrl")
    notes = grouped((note, name) for name, change in by_metric.items() for note in change.notes)
    yield from (f"{note}: {_listed(names, by_metric)}" for note, names in notes.items())
    if len(by_metric) > 1 and any(change.detectable is not None for change in by_metric.values()):
        yield f"MDE: the drop that is found in 80 of 100 runs, as one of {len(by_metric)} metrics"


def _listed(names: Sequence[str], by_metric: Mapping[str, MetricChange]) -> str:
    """The names of metrics that a line of ``llmeval compare`` is about, or "all metrics"."""
    return "all metrics" if len(names) == len(by_metric) else ", ".join(names)


_UNMET = re.compile(r".+ (-?\d+(\.\d+)?|not met), limit (>= \S+|<= \S+)( and <= \S+)?")
"""A missed threshold in the reason of a case."""


@dataclass(frozen=True)
class Decision:
    """The decision of thresholds and gates of a suite file about recorded scores.

    Attributes:
        cases: Case id to its outcome under the file's thresholds.
        reasons: Case id to the thresholds that it misses and other reasons to fail.
        changed: Case id to its outcome in the report, if that differs.
        gates: Verdicts.
        undecided: Decisions that the report lacks data for, with the reason.
    """

    cases: Mapping[str, CaseOutcome]
    reasons: Mapping[str, str]
    changed: Mapping[str, CaseOutcome]
    gates: Sequence[GateResult]
    undecided: Sequence[str]

    @property
    def failed(self) -> bool:
        """Whether a case or a gate fails."""
        bad = any(outcome in CaseRecord.BAD for outcome in self.cases.values())
        return bad or any(gate.outcome == "failed" for gate in self.gates)


def decide(recorded: SuiteReport, suite: LoadedSuite) -> Decision:
    """Apply the thresholds and gates of a suite to a report of it."""
    return _Deciding(recorded, suite).decision()


class _Deciding:
    """The decision of a current suite file about its cases in a report, for ``llmeval decide``."""

    def __init__(self, recorded: SuiteReport, suite: LoadedSuite) -> None:
        self.recorded, self.suite = recorded, suite
        self.by_id = {case.id: case for case in recorded.cases}
        self.remeasured = dict(_remeasured(recorded, suite))
        self.other_cases = _other_cases(recorded, suite)
        self.undecided = [self.other_cases] if self.other_cases else []
        self.reasons: dict[str, str] = {}

    def decision(self) -> Decision:
        """Decide everything that can be."""
        outcomes = {case.id: self._outcome(case) for case in self.suite.cases if case.id in self.by_id}
        gates = [verdict for verdict in self._gates(outcomes) if verdict is not None]
        self.undecided += [
            f"gate {gate}: a report has no counts of cases to compare with a baseline: run the suite, or compare the "
            "report with that of another run by 'llmeval compare'"
            for gate in self.suite.regressions
        ]
        before = {name: self.by_id[name].outcome for name in outcomes}
        changed = {name: before[name] for name, outcome in outcomes.items() if before[name] != outcome}
        return Decision(outcomes, self.reasons, changed, gates, list(dict.fromkeys(self.undecided)))

    def _outcome(self, case: Case) -> CaseOutcome:
        recorded = self.by_id[case.id]
        if recorded.outcome not in ("passed", "failed"):
            return recorded.outcome
        limits = {}
        for metric, limit in self.suite.limits(case).items():
            if why := self._unknown(metric):
                self.undecided.append(f"threshold {metric}: {why}")
            else:
                limits[metric] = limit
        silent, why_absent = recorded.details.get("abstained", ()), recorded.details.get("undefined", {})
        missed = self.suite.find_unmet(limits, recorded.metrics, silent, why_absent)
        reasons = [*_other_reasons(recorded), *map(str, missed)]
        if reasons:
            self.reasons[case.id] = "; ".join(reasons)
        return "failed" if reasons else "passed"

    def _unknown(self, metric: str) -> str:
        """The reason why the report lacks a metric; empty if it has it."""
        if metric != Metric.PASS_RATE and metric not in self.recorded.metrics:
            return "the report has no such metric: run the suite"
        return self.remeasured.get(metric, "")

    def _gates(self, outcomes: Mapping[str, CaseOutcome]) -> Iterator[GateResult | None]:
        if self.other_cases or not self.suite.score_gates:
            self.undecided += [f"gate {gate}: {self.other_cases}" for gate in self.suite.score_gates]
            return
        result = self._result(outcomes)
        total, run = self.recorded.total, self.recorded.run
        incomplete = f"{run} of {total} cases ran" if run < total else ""
        for gate in self.suite.score_gates:
            why = self._unknown(gate.metric) or self._unknown_groups(gate, result)
            verdict = None if why else gate.judge(result, incomplete)
            if verdict is not None and verdict.outcome == "not_judged":
                why, verdict = verdict.reason, None
            if why:
                self.undecided.append(f"gate {gate}: {why}")
            yield verdict

    def _unknown_groups(self, gate: ScoreGate, result: Result) -> str:
        if gate.by is None:
            return ""
        there = {name: group.cases for name, group in self.recorded.groups.get(gate.by, {}).items()}
        here = {name: group.cases for name, group in result.groups[gate.by].items()}
        if not there:
            return f"the report has no groups by {gate.by!r}: run the suite"
        return "" if here == there else f"the report has other groups by {gate.by!r}: run the suite"

    def _result(self, outcomes: Mapping[str, CaseOutcome]) -> Result:
        """Return the report's metrics as a result, with the pass rate of the new outcomes."""
        import numpy as np

        # An error marks a case as run; its scores are in the report.
        records = [
            CaseRecord(case.id, case.labels, outcome, errors={} if outcome in ("skipped", "not_run") else {"": ""})
            for case in self.suite.cases
            for outcome in [outcomes[case.id]]
        ]
        passed = summarize(
            {},
            records,
            group_by=self.suite.group_by,
            confidence=self.suite.confidence,
            cluster_by=self.suite.cluster_by,
        )
        scores: dict[str, FloatArray] = {}
        for metric in self.recorded.metrics:
            listed = [self.by_id[case.id].metrics.get(metric) for case in self.suite.cases]
            scores[metric] = np.array([np.nan if score is None else score for score in listed], dtype=float)
        groups = {
            label: {
                name: replace(group, metrics=self._recorded_metrics(label, name)) for name, group in by_value.items()
            }
            for label, by_value in passed.groups.items()
        }
        return replace(
            passed, metrics=self.recorded.metrics, groups=groups, case_scores={**passed.case_scores, **scores}
        )

    def _recorded_metrics(self, label: str, name: str) -> Mapping[str, MetricValue]:
        recorded = self.recorded.groups.get(label, {})
        return recorded[name].metrics if name in recorded else {}


def _other_reasons(case: CaseReport) -> list[str]:
    """The reasons for a failure besides thresholds: a malformed prediction, a test's own assertion."""
    if case.outcome != "failed":
        return []
    parts = (case.reason or "failed in the report").split("; ")
    return [part for part in parts if not _UNMET.fullmatch(part)]


def _other_cases(recorded: SuiteReport, suite: LoadedSuite) -> str:
    """The message about cases that only the report or only the suite file has; empty if there are none."""
    here, there = {case.id for case in suite.cases}, {case.id for case in recorded.cases}
    parts = []
    if here - there:
        parts.append(f"{counted(len(here - there), 'case')} of the suite not in the report")
    if there - here:
        parts.append(f"{counted(len(there - here), 'case')} of the report not in the suite")
    if suite.faulty:
        parts.append(f"{counted(suite.faulty, 'case')} of the suite cannot be read")
    return "; ".join(parts)


def _remeasured(recorded: SuiteReport, suite: LoadedSuite) -> Iterator[tuple[str, str]]:
    """Yield metrics that suite and report measure in different ways, with a message."""
    for name, value in recorded.metrics.items():
        owned = suite.metrics.find(name)
        if owned is not None and not owned.metric.describes(value.signature):
            yield name, f"measured as {value.signature!r}, the suite says {owned.metric.signature!r}: run the suite"


_DECIDE = (
    "Apply the thresholds and gates of a suite file to the scores of a report, without running anything. The exit code "
    "is 0 if all cases and gates pass, 1 if one fails, and 2 if a file cannot be used. It is 3 if nothing fails but "
    "the report lacks data for some decisions: new metrics, other cases, or a baseline."
)
_UNDECIDED = 3
_MOST_LISTED = 20


def add_decide(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval decide``."""
    parser.description = _DECIDE
    parser.add_argument("report", type=Path, help="JSON report of a run of the suite")
    parser.add_argument("suite", type=Path, help="suite file, with the thresholds and gates to apply")
    parser.set_defaults(run=_decide, bulk=True, code_of_faults=2)


def _decide(options: Namespace) -> CommandResult:
    """Run ``llmeval decide``: apply the gates and thresholds of a suite file to the scores of a report."""
    recorded = results_of(RunReport.read(options.report).suites, options.suite)
    suite = open_noted(options.suite)
    if not recorded:
        raise LlmevalError(f"{options.report} has no results of {options.suite}")
    decisions = [decide(report, suite) for report in recorded]
    pairs = list(zip(recorded, decisions, strict=True))
    data = [{"suite": report.suite, "path": report.path, **to_builtins(asdict(decision))} for report, decision in pairs]
    lines = [line for pair in pairs for line in _lines(*pair)]
    failed, undecided = (any(getattr(decision, name) for decision in decisions) for name in ("failed", "undecided"))
    return CommandResult(1 if failed else _UNDECIDED if undecided else 0, {"suites": data}, lines)


def _lines(recorded: SuiteReport, decision: Decision) -> Iterator[str]:
    """Yield the lines of ``llmeval decide``: changed outcomes of cases, gates, and what is undecided."""
    outcomes = list(decision.cases.values())
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome.replace('_', ' ')}" for outcome in dict.fromkeys(outcomes))
    yield f"{recorded.suite} ({recorded.path}): {counted(len(outcomes), 'case')}: {counts or 'none'}"
    for place, (name, before) in enumerate(decision.changed.items()):
        if place == _MOST_LISTED:
            yield f"and {len(decision.changed) - _MOST_LISTED} more that changed"
            break
        reason = f"  ({decision.reasons[name]})" if name in decision.reasons else ""
        yield f"case {name}: {before} -> {decision.cases[name]}{reason}"
    for gate in decision.gates:
        yield f"gate {gate.outcome.upper()}  {gate.gate}  ({gate.reason})"
    yield from (f"UNDECIDED  {line}" for line in decision.undecided)
