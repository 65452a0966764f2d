"""Verdicts of the gates against a baseline, which are judged together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.wording import MOST_LISTED, counted, interval, limit, number, several
from pytest_llmeval.gates.limits import GateOutcome, GateResult
from pytest_llmeval.gates.regression import RegressionGate
from pytest_llmeval.gates.statistics.drop_tests import (
    Evidence,
    Untestable,
    detectable_drop,
    detectable_gain,
    drop_power,
    evidence,
    safe_drop,
    units_of,
)
from pytest_llmeval.gates.statistics.estimation import Estimate
from pytest_llmeval.gates.statistics.inference import adjusted_gates, benjamini_hochberg, hochberg
from pytest_llmeval.gates.statistics.pairing import PairedRows, RunPairing
from pytest_llmeval.scoring.case_scores import TOLERANCE

_SMALLEST_SHOWN = 0.0001


@dataclass(frozen=True, slots=True)
class _Adjusted:
    """A p-value among the tests that are judged together.

    Attributes:
        p_value: Adjusted.
        groups: How many groups the gate judges.
        gates: How many gates are judged together.
    """

    p_value: float
    groups: int = 1
    gates: int = 1

    @property
    def tests(self) -> int:
        """By how much the level is divided if nothing else is found."""
        return self.groups * self.gates

    def method(self, gate: RegressionGate) -> str:
        """Say how it was adjusted."""
        within = "Benjamini-Hochberg" if gate.adjust == "fdr" else "Hochberg"
        parts = [f"{within} over {self.groups} groups"] if self.groups > 1 else []
        parts += [f"Holm over {self.gates} gates"] if self.gates > 1 else []
        return f" by {' and '.join(parts)}" if parts else ""


@dataclass(frozen=True, slots=True)
class _Examined:
    """One gate on one group of cases, or on all."""

    gate: RegressionGate
    group: str
    cases: int
    found: Evidence | None = None
    fault: str = ""
    metric: Metric = field(default=Metric(""))

    @property
    def p_value(self) -> float:
        """Of the hypothesis that the rule wants to see refuted; it agrees with the interval."""
        if self.found is None or self.found.tails is None:
            return 1.0
        drops = self.gate.rule == "proven_drop"
        return min(1.0, self.gate.sides * (self.found.tails.above if drops else self.found.tails.below))

    def verdict(self, adjusted: _Adjusted) -> tuple[GateOutcome, float | None, str]:
        """Return outcome, drop and reason."""
        found, gate = self.found, self.gate
        drop = None if found is None else found.drop
        if found is None or self.fault:
            return "failed", drop, self.fault
        proven = adjusted.p_value <= 1 - gate.confidence
        holds = proven != (gate.rule == "proven_drop")
        parts = self._said(found, proven, adjusted)
        if gate.rule != "proven_drop" or gate.gains or proven:
            return "passed" if holds else "failed", drop, "; ".join(parts)
        beyond = drop is not None and drop > gate.max_drop + TOLERANCE
        if not self.undecided(adjusted):
            return "passed", drop, "; ".join([*(["within chance"] if beyond else []), *parts])
        none = f"undecided: too little data ({units_of(found.estimate)})"
        if gate.undecided == "pass" or (gate.undecided == "observed" and not beyond):
            return "undecided", drop, "; ".join([none, *parts])
        counts = "the observed drop counts" if gate.undecided == "observed" else "such a gate fails"
        return "failed", drop, "; ".join([f"{none}, so {counts}", *parts])

    def undecided(self, adjusted: _Adjusted) -> bool:
        """Return whether a drop beyond the limit is possible, and none that is could have been established."""
        gate = self.gate
        if self.found is None or self.fault or gate.rule != "proven_drop" or gate.gains:
            return False
        power = drop_power(self.found, gate, self.metric, adjusted.tests)
        return power.room > gate.max_drop and not power.decides

    def _said(self, found: Evidence, proven: bool, adjusted: _Adjusted) -> list[str]:
        gate, data = self.gate, found.estimate
        clusters = f" in {counted(data.units, 'cluster')}" if data.units < data.cases and gate.cluster_by else ""
        paired = f"{counted(data.cases, 'paired case')}{clusters}"
        cases = paired if data.changed is not None else f"{data.cases} against {counted(data.baseline_cases, 'case')}"
        change, bounds = _change(gate, found.drop, found.interval)
        between = "no interval" if bounds is None else interval(*bounds)
        name = "" if found.interval is None else f"{100 * gate.interval_confidence:.6g}% interval "
        text = f"{gate.subject} {number(data.baseline)} -> {number(data.value)}, {change}"
        parts = [f"{text} ({name}{between}, {cases})"]
        p_value = f"p {_p(adjusted.p_value)}{adjusted.method(gate)}"
        if gate.gains:
            gain = (
                f"above {limit(gate.least_gain)}" if gate.rule == "proven_safe" else f"under {limit(gate.least_gain)}"
            )
            parts.append(f"a gain {gain} is {'' if proven else 'not '}established, {p_value}")
        elif gate.rule == "proven_drop":
            parts.append(f"a drop beyond {limit(gate.max_drop)} is {'' if proven else 'not '}established, {p_value}")
        else:
            parts.append(f"a drop of {limit(gate.max_drop)} is {'' if proven else 'not '}ruled out, {p_value}")
        if gate.rule == "proven_safe" and data.left_out:
            worst = "has no bound" if found.worst is None else f"drop {number(found.worst)}"
            parts.append(f"with the cases left out at their worst, {worst}")
        # What all groups show together is found where a single one could not show it.
        alone = " in one group alone" if adjusted.groups > 1 else ""
        return [*parts, self._detectable(found, adjusted.tests) + alone, *found.notes]

    def _detectable(self, found: Evidence, tests: int) -> str:
        if self.gate.gains:
            return detectable_gain(found, self.gate, self.metric, tests)
        if self.gate.rule == "proven_safe":
            return safe_drop(found, self.gate, self.metric)
        return detectable_drop(found, self.gate, self.metric, tests)


@dataclass(frozen=True, slots=True)
class GateEvidence:
    """A gate with its evidence.

    Attributes:
        gate: The gate.
        examined: Its tests: one, or one per group.
        small: Groups that are too small to be judged.
        outcome: The outcome if there is no test.
        reason: The reason then.
        doubt: Why the runs may not be comparable.
        value: The drop then, if it is known.
    """

    gate: RegressionGate
    examined: tuple[_Examined, ...] = ()
    small: tuple[str, ...] = ()
    outcome: GateOutcome = "failed"
    reason: str = ""
    doubt: str = ""
    value: float | None = None


def judge_regressions(findings: Sequence[GateEvidence]) -> list[GateResult]:
    """Judge the regression gates of a suite together.

    The p-values of ``proven_drop`` are adjusted, so that the chance that a run without any drop beyond what is allowed
    fails, through whichever gate, stays at what the confidence says: by Hochberg's method over the groups of a gate,
    which have no case in common, and by Holm's over gates. Primary gates have that level for themselves. So are those
    of gains over another system, each of which is a claim of its own. Those of drops that are to be ruled out are not
    adjusted: such a run passes only if all of them hold, which is no more likely than that one does.

    Args:
        findings: Of one suite.

    Returns:
        One verdict per finding.
    """
    claims = [finding for finding in findings if finding.gate.claims]
    adjusted: dict[int, _Adjusted] = {}
    for primary in (True, False):
        adjusted |= _adjusted([finding for finding in claims if finding.gate.primary is primary])
    return [_judged(finding, adjusted) for finding in findings]


def _adjusted(findings: Sequence[GateEvidence]) -> dict[int, _Adjusted]:
    """Return the adjusted p-values of the tests of gates that are judged together, by identity of the test."""
    tests = [[each for each in finding.examined if not each.fault] for finding in findings]
    tests = [group for group in tests if group]
    within = [
        (benjamini_hochberg if group[0].gate.adjust == "fdr" else hochberg)([each.p_value for each in group])
        for group in tests
    ]
    return {
        id(each): _Adjusted(p_value, len(group), len(tests))
        for group, p_values in zip(tests, adjusted_gates(within), strict=True)
        for each, p_value in zip(group, p_values, strict=True)
    }


def _judged(finding: GateEvidence, adjusted: Mapping[int, _Adjusted]) -> GateResult:
    found = _verdict(finding, adjusted)
    return replace(found, reason=f"{found.reason}; {finding.doubt}") if finding.doubt else found


def _verdict(finding: GateEvidence, adjusted: Mapping[int, _Adjusted]) -> GateResult:
    gate = finding.gate
    if not finding.examined:
        return _result(gate, finding.outcome, finding.value, finding.reason)
    among = [adjusted.get(id(each), _Adjusted(each.p_value)) for each in finding.examined]
    verdicts = [(each.group, *each.verdict(own)) for each, own in zip(finding.examined, among, strict=True)]
    undecided = any(each.undecided(own) for each, own in zip(finding.examined, among, strict=True))
    if gate.by is None:
        _, outcome, drop, reason = verdicts[0]
        found = finding.examined[0].found
        low, high = (found is not None and _change(gate, found.drop, found.interval)[1]) or (None, None)
        return replace(_result(gate, outcome, drop, reason), low=low, high=high, undecided=undecided)
    note = f"; not judged, under {counted(gate.min_cases, 'case')}: {several(finding.small)}" if finding.small else ""
    failed = [each for each in verdicts if each[1] == "failed"]
    worst_first = sorted(failed or verdicts, key=lambda each: math.inf if each[2] is None else -each[2])
    group, outcome, drop, reason = worst_first[0]
    if failed:
        told = worst_first if len(failed) > MOST_LISTED else failed
        listed = several([f"{each[0]}: {each[3]}" for each in told], "; ")
        text = f"{len(failed)} of {len(verdicts)} groups fail: {listed}{note}"
    else:
        worst = "smallest gain" if gate.gains else "largest drop"
        open_ = [each for each in verdicts if each[1] == "undecided"]
        outcome = "undecided" if open_ else outcome
        groups = counted(len(verdicts), "group")
        of_all = f"{len(open_)} of {groups} undecided" if open_ else f"all {groups} pass"
        text = f"{of_all}, {worst} {group}: {reason}{note}"
    return replace(_result(gate, outcome, drop, text), undecided=undecided)


def _change(
    gate: RegressionGate, drop: float | None, bounds: tuple[float, float] | None
) -> tuple[str, tuple[float, float] | None]:
    """Return the change that a gate is about as text, and its interval."""
    if not gate.gains:
        return f"drop {number(drop)}", bounds
    gain = None if drop is None else -drop
    return f"gain {number(gain)}", None if bounds is None else (-bounds[1], -bounds[0])


def _result(gate: RegressionGate, outcome: GateOutcome, drop: float | None, reason: str) -> GateResult:
    """Return the verdict on a gate, with the gain or the drop that it is about."""
    if gate.gains:
        return GateResult(str(gate), outcome, None if drop is None else -drop, gate.least_gain, reason, line=gate.line)
    return GateResult(str(gate), outcome, drop, gate.max_drop, reason, line=gate.line)


def _p(value: float) -> str:
    return f"below {_SMALLEST_SHOWN}" if value < _SMALLEST_SHOWN else number(value)


def examine(gate: RegressionGate, pairing: RunPairing | None, incomplete: str = "", absent: str = "") -> GateEvidence:
    """Test the drop, without a verdict: that depends on how many gates are judged together.

    Args:
        gate: The gate.
        pairing: The run and its baseline; ``None`` if there is nothing to compare with.
        incomplete: Why the suite is incomplete; a gate is then judged only if it is ``partial``.
        absent: Why there is no baseline, and what to do.
    """
    if incomplete and not gate.partial:
        return GateEvidence(gate, outcome="not_judged", reason=f"not judged: {incomplete}")
    if pairing is None:
        return GateEvidence(gate, reason=absent or "there is no baseline")
    if unfit := _unfit(gate, pairing):
        return GateEvidence(gate, reason=unfit)
    if gate.by is not None:
        return _examine_groups(gate, pairing, gate.by)
    return GateEvidence(gate, (_examine(gate, "", pairing, pairing.everything()),))


def _unfit(gate: RegressionGate, pairing: RunPairing) -> str:
    """Say why two runs do not have what a gate needs, or nothing."""
    if gate.metric not in pairing.table.owner:
        return f"{gate.metric} does not occur in the results"
    if gate.cluster_by is not None and not pairing.has_label(gate.cluster_by):
        return f"no case has the label {gate.cluster_by!r} to cluster by"
    shift = pairing.shifts.get(gate.subject)
    if shift is not None and shift.depends:
        return f"not comparable across the change of judge: {shift.depends}; approve a run of the new judge"
    if shift is not None and (gate.by is not None or gate.rule == "anytime"):
        parts = "for groups" if gate.by is not None else "for runs that are weighed together"
        return f"not comparable: the bridge from the former judge does not hold {parts}; approve a run of the new judge"
    return ""


def _examine_groups(gate: RegressionGate, pairing: RunPairing, by: str) -> GateEvidence:
    groups = [_examine(gate, name, pairing, rows) for name, rows in pairing.groups(by).items()]
    small = tuple(each.group for each in groups if each.cases < gate.min_cases)
    judged = tuple(each for each in groups if each.cases >= gate.min_cases)
    if not judged:
        return GateEvidence(gate, reason=f"no group by {by!r} has {counted(gate.min_cases, 'case')} to compare")
    return GateEvidence(gate, judged, small)


def _examine(gate: RegressionGate, group: str, pairing: RunPairing, rows: PairedRows) -> _Examined:
    try:
        found = evidence(
            pairing,
            rows,
            gate.metric,
            statistic=gate.statistic,
            max_drop=gate.max_drop,
            confidence=gate.interval_confidence,
            test=gate.test,
            cluster_by=gate.cluster_by,
            worst_case=gate.rule == "proven_safe",
        )
    except Untestable as error:
        return _Examined(gate, group, len(rows.current), fault=str(error))
    metric = pairing.table.metric(gate.metric)
    return _Examined(gate, group, found.estimate.cases, found, _fault(gate, found), metric)


def _fault(gate: RegressionGate, found: Evidence) -> str:
    """Say what makes a gate fail whatever the numbers are, or nothing."""
    data = found.estimate
    if data.errored > gate.max_errors:
        allowed = f", {gate.max_errors} allowed" if gate.max_errors else ""
        return f"{counted(data.errored, 'case')} errored{allowed}"
    if data.left_out > gate.left_out_limit:
        left_out = f"{counted(data.left_out, 'case')} left out of the comparison, errored or not run"
        return f"{left_out}; max_left_out is {gate.left_out_limit:g}"
    if data.cases < gate.min_scored:
        return f"{counted(data.cases, 'case')} compared, expected at least {gate.min_scored}"
    if data.apart:
        return f"not comparable: {data.apart}"
    return "" if found.drop is not None else _without_drop(gate, data)


def _without_drop(gate: RegressionGate, data: Estimate) -> str:
    if not data.cases and data.left_out:
        return f"no case has {gate.subject} in both runs"
    if data.fault:
        return f"{gate.subject} is undefined: {data.fault}"
    if data.value is None:
        return f"{gate.subject} is undefined" + ("" if data.baseline is not None else ", in the baseline too")
    return f"{gate.subject} has no value in the baseline"
