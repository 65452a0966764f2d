"""The command ``llmeval decide``: thresholds and gates of a suite file applied to the scores of a report."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from pytest_llmeval.cli.console import CommandResult
from pytest_llmeval.cli.suite_file import open_noted
from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.results import PASS_RATE, CaseOutcome, CaseRecord, GroupResult, Result
from pytest_llmeval.core.wording import counted
from pytest_llmeval.gates.contract import GateResult, ScoreGate
from pytest_llmeval.reports.form import CaseReport, SuiteReport
from pytest_llmeval.scoring.case_scores import Abstained, abstained_metrics, unmet
from pytest_llmeval.scoring.table import summarize
from pytest_llmeval.suite.suite import Suite

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray


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
        bad = any(outcome in ("failed", "errored") for outcome in self.cases.values())
        return bad or any(gate.outcome == "failed" for gate in self.gates)


def decide(recorded: SuiteReport, suite: Suite) -> Decision:
    """Apply the thresholds and gates of a suite to a report of it."""
    return _Deciding(recorded, suite).decision()


class _Deciding:
    """One suite of a report and its current file."""

    def __init__(self, recorded: SuiteReport, suite: Suite) -> None:
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
        missed = [str(each) for each in unmet(limits, recorded.metrics, self._abstained(recorded))]
        reasons = [*_other_reasons(recorded), *missed]
        if reasons:
            self.reasons[case.id] = "; ".join(reasons)
        return "failed" if reasons else "passed"

    def _abstained(self, case: CaseReport) -> Mapping[str, Abstained]:
        if self.suite.abstained == "allowed":
            return {}
        return abstained_metrics(
            self.suite.metrics, case.details.get("abstained", ()), case.details.get("undefined", {})
        )

    def _unknown(self, metric: str) -> str:
        """Return why the report lacks a metric; empty if it has it."""
        if metric != PASS_RATE and metric not in self.recorded.metrics:
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
            scores[metric] = np.array([np.nan if each is None else each for each in listed], dtype=float)
        groups = {label: self._groups(label, group_results) for label, group_results in passed.groups.items()}
        return replace(
            passed, metrics=self.recorded.metrics, groups=groups, case_scores={**passed.case_scores, **scores}
        )

    def _groups(self, label: str, groups: Mapping[str, GroupResult]) -> dict[str, GroupResult]:
        recorded = self.recorded.groups.get(label, {})
        return {
            name: replace(group, metrics=recorded[name].metrics if name in recorded else {})
            for name, group in groups.items()
        }


def _other_reasons(case: CaseReport) -> list[str]:
    """Return why a case failed besides thresholds: a malformed prediction, a test's own assertion."""
    if case.outcome != "failed":
        return []
    parts = (case.reason or "failed in the report").split("; ")
    return [part for part in parts if not _UNMET.fullmatch(part)]


def _other_cases(recorded: SuiteReport, suite: Suite) -> str:
    here, there = {case.id for case in suite.cases}, {case.id for case in recorded.cases}
    parts = []
    if here - there:
        parts.append(f"{counted(len(here - there), 'case')} of the suite not in the report")
    if there - here:
        parts.append(f"{counted(len(there - here), 'case')} of the report not in the suite")
    if suite.faulty:
        parts.append(f"{counted(suite.faulty, 'case')} of the suite cannot be read")
    return "; ".join(parts)


def _remeasured(recorded: SuiteReport, suite: Suite) -> Iterator[tuple[str, str]]:
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


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _DECIDE
    parser.add_argument("report", type=Path, help="JSON report of a run of the suite")
    parser.add_argument("suite", type=Path, help="suite file, with the thresholds and gates to apply")
    parser.set_defaults(run=_decide, code_of_faults=2)


def _decide(options: Namespace) -> CommandResult:
    from pytest_llmeval.cli.paired import results_of
    from pytest_llmeval.reports.reading import read_report

    recorded = results_of(read_report(options.report).suites, options.suite)
    suite = open_noted(options.suite)
    if not recorded:
        raise LlmevalError(f"{options.report}: found no results of {options.suite}, expected some")
    decisions = [decide(each, suite) for each in recorded]
    pairs = list(zip(recorded, decisions, strict=True))
    data = [{"suite": each.suite, "path": each.path, **to_builtins(asdict(decision))} for each, decision in pairs]
    lines = [line for pair in pairs for line in _lines(*pair)]
    failed, undecided = (any(getattr(each, name) for each in decisions) for name in ("failed", "undecided"))
    return CommandResult(1 if failed else _UNDECIDED if undecided else 0, {"suites": data}, lines)


def _lines(recorded: SuiteReport, decision: Decision) -> Iterator[str]:
    outcomes = list(decision.cases.values())
    counts = ", ".join(f"{outcomes.count(each)} {each.replace('_', ' ')}" for each in dict.fromkeys(outcomes))
    yield f"{recorded.suite} ({recorded.path}): {counted(len(outcomes), 'case')}: {counts or 'none'}"
    for number, (name, before) in enumerate(decision.changed.items()):
        if number == _MOST_LISTED:
            yield f"and {len(decision.changed) - _MOST_LISTED} more that changed"
            break
        reason = f"  ({decision.reasons[name]})" if name in decision.reasons else ""
        yield f"case {name}: {before} -> {decision.cases[name]}{reason}"
    for gate in decision.gates:
        yield f"gate {gate.outcome.upper()}  {gate.gate}  ({gate.reason})"
    yield from (f"UNDECIDED  {each}" for each in decision.undecided)
