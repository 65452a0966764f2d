"""Verdicts of the gates against a baseline, which are judged together."""

__all__ = ("Finding", "examine", "judge_regressions")

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_llmeval.core.wording import counted, interval, limit, number
from pytest_llmeval.scoring.comparison.drop_tests import Evidence, Untestable, evidence
from pytest_llmeval.scoring.comparison.pairing import Pairing, Rows
from pytest_llmeval.scoring.comparison.significance import detectable_shift, holm, two_sided
from pytest_llmeval.scoring.gates import GateOutcome, GateResult
from pytest_llmeval.scoring.regression import RegressionGate

_SMALLEST_SHOWN = 0.0001


@dataclass(frozen=True, slots=True)
class _Examined:
    """One gate on one group of cases, or on all."""

    gate: RegressionGate
    group: str
    cases: int
    found: Evidence | None = None
    fault: str = ""

    @property
    def p_value(self) -> float:
        """Of the hypothesis that the rule wants to see refuted; doubled, so that it agrees with the interval."""
        if self.found is None or self.found.tails is None:
            return 1.0
        drops = self.gate.rule == "proven_drop"
        return two_sided(self.found.tails.above if drops else self.found.tails.below)

    def verdict(self, adjusted: float, tests: int) -> tuple[GateOutcome, float | None, str]:
        """Return outcome, drop and reason.

        Args:
            adjusted: The p-value, adjusted for the tests made together.
            tests: How many these were.
        """
        found, gate = self.found, self.gate
        drop = None if found is None else found.drop
        if found is None or self.fault:
            return "failed", drop, self.fault
        proven = adjusted <= 1 - gate.confidence
        holds = proven != (gate.rule == "proven_drop")
        return "passed" if holds else "failed", drop, "; ".join(self._said(found, proven, adjusted, tests))

    def _said(self, found: Evidence, proven: bool, adjusted: float, tests: int) -> list[str]:
        gate, data = self.gate, found.estimate
        paired = f"{counted(data.cases, 'paired case')}"
        cases = paired if data.changed is not None else f"{data.cases} against {counted(data.baseline_cases, 'case')}"
        between = "no interval" if found.interval is None else interval(*found.interval)
        name = "" if found.interval is None else f"{gate.confidence * 100:g}% interval "
        text = f"{gate.subject} {number(data.baseline)} -> {number(data.value)}, drop {number(found.drop)}"
        parts = [f"{text} ({name}{between}, {cases})"]
        p_value = f"p {_p(adjusted)}" + (f" by Holm over {tests} tests" if tests > 1 else "")
        if gate.rule == "proven_drop":
            parts.append(f"a drop beyond {limit(gate.max_drop)} is {'' if proven else 'not '}established, {p_value}")
        else:
            parts.append(f"a drop of {limit(gate.max_drop)} is {'' if proven else 'not '}ruled out, {p_value}")
        return [*parts, self._detectable(found, tests), *found.notes]

    def _detectable(self, found: Evidence, tests: int) -> str:
        if not found.deviation:
            return "smallest detectable drop unknown"
        shift = detectable_shift(found.deviation, 1 - (1 - self.gate.confidence) / tests)
        if self.gate.rule == "proven_drop":
            return f"smallest detectable drop {number(self.gate.max_drop + shift)}"
        return f"smallest max_drop that an equally good run meets {number(shift)}"


@dataclass(frozen=True, slots=True)
class Finding:
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


def judge_regressions(findings: Sequence[Finding]) -> list[GateResult]:
    """Judge the regression gates of a run together.

    The p-values of all tests of ``proven_drop`` are adjusted by Holm's method: the chance that a run without any drop
    beyond what is allowed fails, by any gate, stays at the level of the confidence. Those of ``proven_safe``
    are not: such a run passes only if all of them hold, which is no more likely than that one does.

    Args:
        findings: Of all suites.

    Returns:
        One verdict per finding.
    """
    tests = [each for finding in findings for each in finding.examined if each.gate.rule == "proven_drop"]
    family = [each for each in tests if not each.fault]
    adjusted = dict(zip(map(id, family), holm([each.p_value for each in family]), strict=True))
    return [_judged(finding, adjusted) for finding in findings]


def _judged(finding: Finding, adjusted: Mapping[int, float]) -> GateResult:
    found = _verdict(finding, adjusted)
    return replace(found, reason=f"{found.reason}; {finding.doubt}") if finding.doubt else found


def _verdict(finding: Finding, adjusted: Mapping[int, float]) -> GateResult:
    gate = finding.gate
    if not finding.examined:
        return GateResult(str(gate), finding.outcome, finding.value, gate.max_drop, finding.reason)
    tests = max(1, len(adjusted)) if gate.rule == "proven_drop" else 1
    verdicts = [(each.group, *each.verdict(adjusted.get(id(each), each.p_value), tests)) for each in finding.examined]
    if gate.by is None:
        _, outcome, drop, reason = verdicts[0]
        return GateResult(str(gate), outcome, drop, gate.max_drop, reason)
    note = f"; not judged, under {counted(gate.min_cases, 'case')}: {', '.join(finding.small)}" if finding.small else ""
    failed = [each for each in verdicts if each[1] == "failed"]
    group, outcome, drop, reason = max(failed or verdicts, key=lambda each: -math.inf if each[2] is None else each[2])
    if failed:
        listed = "; ".join(f"{each[0]}: {each[3]}" for each in failed)
        text = f"{len(failed)} of {len(verdicts)} groups fail: {listed}{note}"
    else:
        text = f"all {counted(len(verdicts), 'group')} pass, largest drop {group}: {reason}{note}"
    return GateResult(str(gate), outcome, drop, gate.max_drop, text)


def _p(value: float) -> str:
    return f"below {_SMALLEST_SHOWN}" if value < _SMALLEST_SHOWN else number(value)


def examine(gate: RegressionGate, pairing: Pairing | None, incomplete: str = "", absent: str = "") -> Finding:
    """Test the drop, without a verdict: that depends on how many gates are judged together.

    Args:
        gate: The gate.
        pairing: The run and its baseline; ``None`` if there is nothing to compare with.
        incomplete: Why the suite is incomplete; a gate is then judged only if it is ``partial``.
        absent: Why there is no baseline, and what to do.
    """
    if incomplete and not gate.partial:
        return Finding(gate, outcome="not_judged", reason=f"not judged: {incomplete}")
    if pairing is None:
        return Finding(gate, reason=absent or "there is no baseline")
    if gate.metric not in pairing.table.owner:
        return Finding(gate, reason=f"{gate.metric} does not occur in the results")
    if gate.cluster_by is not None and not pairing.has_label(gate.cluster_by):
        return Finding(gate, reason=f"no case has the label {gate.cluster_by!r} to cluster by")
    if gate.by is not None:
        return _examine_groups(gate, pairing, gate.by)
    return Finding(gate, (_examine(gate, "", pairing, pairing.everything()),))


def _examine_groups(gate: RegressionGate, pairing: Pairing, by: str) -> Finding:
    groups = [_examine(gate, name, pairing, rows) for name, rows in pairing.groups(by).items()]
    small = tuple(each.group for each in groups if each.cases < gate.min_cases)
    judged = tuple(each for each in groups if each.cases >= gate.min_cases)
    if not judged:
        return Finding(gate, reason=f"no group by {by!r} has {counted(gate.min_cases, 'case')} to compare")
    return Finding(gate, judged, small)


def _examine(gate: RegressionGate, group: str, pairing: Pairing, rows: Rows) -> _Examined:
    try:
        found = evidence(
            pairing,
            rows,
            gate.metric,
            statistic=gate.statistic,
            max_drop=gate.max_drop,
            confidence=gate.confidence,
            test=gate.test,
            cluster_by=gate.cluster_by,
        )
    except Untestable as error:
        return _Examined(gate, group, len(rows.current), fault=str(error))
    return _Examined(gate, group, found.estimate.cases, found, _fault(gate, found))


def _fault(gate: RegressionGate, found: Evidence) -> str:
    """Say what makes a gate fail whatever the numbers are, or nothing."""
    data = found.estimate
    if data.errored > gate.max_errors:
        allowed = f", {gate.max_errors} allowed" if gate.max_errors else ""
        return f"{counted(data.errored, 'case')} errored{allowed}"
    if found.drop is not None:
        return ""
    if not data.cases and data.dropped:
        return f"no case has {gate.subject} in both runs"
    if data.value is None:
        return f"{gate.subject} is undefined" + ("" if data.baseline is not None else ", in the baseline too")
    return f"{gate.subject} has no value in the baseline"
