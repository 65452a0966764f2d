"""Gates that are judged while cases still run: which of them can be, and what is decided after how many cases."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.wording import counted, limit, number
from pytest_llmeval.gates.early.evidence import CaseUnits, first_reached
from pytest_llmeval.gates.limits import Gate, GateResult, ScoreLimit
from pytest_llmeval.gates.regression import RegressionGate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_llmeval.core.observation import FloatArray

_MEANS = ("value", "mean")
_SLACK = 1e-9
_FEW_UNITS = 12
"""With fewer cases or clusters, gates that are judged together may not establish any drop."""


class PartScores(NamedTuple):
    """The cases of a suite, or of one group of it, in the order in which they run.

    Attributes:
        group: Its name; empty for all cases.
        members: Which of all cases it has.
        scores: Of the cases that have run; not finite where a case has none, or is no member. Of a gate on a change:
            how much worse each case is than the one that it is paired with.
        errored: Which of these could not be measured.
        left_out: Which of these cannot be compared, errored ones included; of gates on a change.
    """

    group: str
    members: "npt.NDArray[np.bool_]"
    scores: "FloatArray"
    errored: "npt.NDArray[np.bool_]"
    left_out: "npt.NDArray[np.bool_]"


class EarlyVerdict(Struct, frozen=True):
    """The verdict on a gate before all cases have run.

    Attributes:
        result: As reports show it.
        cases: After how many cases it was decided.
    """

    result: GateResult
    cases: int


def early_fault(gate: Gate | RegressionGate, metric: Metric | None) -> str:
    """Say why a gate cannot be judged before all cases have run, or nothing.

    Args:
        gate: The gate.
        metric: The declaration of its metric; ``None`` where it has none, as a member of a family.
    """
    if isinstance(gate, RegressionGate):
        if gate.rule == "anytime":
            return "rule anytime weighs whole runs"
    elif gate.statistic not in _MEANS:
        return f"{gate.statistic}({gate.metric}) is no mean of scores"
    elif any(bound.operator == "==" for bound in gate.bounds):
        return "a mean of some cases says nothing about equality"
    if metric is None or metric.per_case is not None or metric.low is None or metric.high is None:
        return f"the scores of single cases in {gate.metric} have no bounds"
    if gate.statistic == "value" and not metric.averaged:
        return f"{gate.metric} is not declared to be a mean over cases; mean({gate.metric}) can be judged early"
    return ""


def decide_gate(
    gate: Gate | RegressionGate, parts: Sequence[PartScores], units: CaseUnits, metric: Metric, level: float
) -> EarlyVerdict | None:
    """Judge a gate by the cases that have run.

    A gate that holds everywhere is wrong only if the part that does not hold is taken for one that does. One that fails
    somewhere may be wrong in any part, so that each has its share of the level (Bonferroni).

    Args:
        gate: One that `early_fault` says nothing about.
        parts: All cases, or each group that the gate judges.
        units: The order of the cases.
        metric: Of the gate.
        level: The probability that the verdict differs from that of a complete run; of drops that are established, from
            what holds of all cases that there might be.

    Returns:
        The verdict; ``None`` while there is none.
    """
    findings = [
        each for part in parts if part.members.any() for each in _findings(gate, part, units, metric, level, parts)
    ]
    if not findings:
        return None
    failed = [each for each in findings if each.failed is not None]
    if failed:
        first = min(failed, key=lambda each: each.failed or 0)
        passed = _all_passed(findings)
        if passed is None or (first.failed or 0) <= passed:
            return EarlyVerdict(_result(gate, first, "failed"), first.failed or 0)
    passed = _all_passed(findings)
    if passed is None:
        return None
    last = max(findings, key=lambda each: each.passed or 0)
    return EarlyVerdict(_result(gate, last, "passed", len({each.group for each in findings})), passed)


class _Finding(NamedTuple):
    """What one bound says of one part.

    Attributes:
        group: Name of the part.
        value: Mean of its scores so far.
        cases: How many of its cases have run.
        of: How many it has.
        passed: After how many cases of the suite it was decided that it holds; ``None`` while it is not.
        failed: Likewise, that it does not hold.
        evidence: For the bound, and against it.
        needed: Likewise.
        bound: What is to hold; ``None`` for gates on a change.
        fault: Why it fails whatever its scores are.
    """

    group: str
    value: float | None
    cases: int
    of: int
    passed: int | None
    failed: int | None
    evidence: tuple[float, float]
    needed: tuple[float, float]
    bound: ScoreLimit | None = None
    fault: str = ""


def _all_passed(findings: Sequence[_Finding]) -> int | None:
    times = [each.passed for each in findings if each.passed is not None]
    return max(times) if len(times) == len(findings) else None


def _findings(
    gate: Gate | RegressionGate,
    part: PartScores,
    units: CaseUnits,
    metric: Metric,
    level: float,
    parts: Sequence[PartScores],
) -> Iterator[_Finding]:
    import numpy as np

    assert metric.low is not None
    assert metric.high is not None
    exists = np.isfinite(part.scores)
    known = part.scores[exists]
    value = math.fsum(known) / known.size if known.size else None
    ran = int(part.members[: len(part.scores)].sum())
    least = _place_of(exists, gate.min_scored) if gate.min_scored else 0
    errors = _place_of(part.errored, gate.max_errors + 1)
    base = _Finding(part.group, value, ran, int(part.members.sum()), None, None, (1.0, 1.0), (1.0, 1.0))
    if errors is not None:
        allowed = f", {gate.max_errors} allowed" if gate.max_errors else ""
        fault = f"{counted(int(part.errored.sum()), 'case')} errored{allowed}"
        bound = gate.bounds[0] if isinstance(gate, Gate) else None
        yield base._replace(failed=errors, bound=bound, fault=fault)
        return
    if isinstance(gate, RegressionGate) and np.unique(units.numbers[part.members]).size < _FEW_UNITS:
        yield base  # a complete run may be undecided, too
        return
    if known.size and (
        known.min() < _range(gate, metric)[0] - _SLACK or known.max() > _range(gate, metric)[1] + _SLACK
    ):
        yield base  # an evaluator may declare a range that it does not keep; then nothing is known of other cases
        return
    sides = list(_sides(gate, metric))
    needed = (1 / level, len(parts) * len(sides) / level)
    for side in sides:
        excess = np.where(exists, side.sign * (part.scores - side.at), 0.0)
        passed, above = first_reached(
            excess, part.members, units, side.below, needed[0], finite=side.finite[0], inclusive=side.inclusive[0]
        )
        failed, below = first_reached(
            -excess, part.members, units, side.above, needed[1], finite=side.finite[1], inclusive=side.inclusive[1]
        )
        if least is None or (isinstance(gate, RegressionGate) and part.left_out.sum() > gate.left_out_limit):
            passed = None
        elif passed is not None:
            passed = max(passed, least)
        yield base._replace(passed=passed, failed=failed, evidence=(above, below), needed=needed, bound=side.bound)


class _LimitSide(NamedTuple):
    """One comparison of a gate as a question: do scores times `sign`, beyond `at`, add up to more than 0?

    Attributes:
        at: The limit.
        sign: 1 where scores are to be above it, -1 where they are to be below.
        below: How far a case may be on the wrong side.
        above: How far it may be on the right side.
        inclusive: Whether a total of 0 is right, and whether it is wrong.
        finite: Whether what is right is asked of these cases only, and likewise what is wrong.
        bound: The comparison.
    """

    at: float
    sign: int
    below: float
    above: float
    inclusive: tuple[bool, bool]
    finite: tuple[bool, bool] = (True, True)
    bound: ScoreLimit | None = None


def _sides(gate: Gate | RegressionGate, metric: Metric) -> Iterator[_LimitSide]:
    low, high = _range(gate, metric)
    if isinstance(gate, RegressionGate):
        # What is to be established is asked of all cases that there might be; that it cannot be any more, of these.
        finite = (True, False) if gate.rule == "proven_drop" else (False, True)
        at = gate.max_drop
        yield _LimitSide(at, -1, high - at, at - low, finite, finite)
        return
    for bound in gate.bounds:
        strict = bound.operator in ("<", ">")
        at, sign = bound.limit, 1 if ">" in bound.operator else -1
        below, above = (at - low, high - at) if sign > 0 else (high - at, at - low)
        yield _LimitSide(at, sign, below, above, (not strict, strict), bound=bound)


def _range(gate: Gate | RegressionGate, metric: Metric) -> tuple[float, float]:
    assert metric.low is not None
    assert metric.high is not None
    if isinstance(gate, RegressionGate):
        return metric.low - metric.high, metric.high - metric.low
    return metric.low, metric.high


def _place_of(seen: "npt.NDArray[np.bool_]", count: int) -> int | None:
    """Return after how many cases so many of a kind have been seen."""
    import numpy as np

    places = np.flatnonzero(seen)
    return int(places[count - 1]) + 1 if 0 < count <= places.size else None


def _result(
    gate: Gate | RegressionGate, found: _Finding, outcome: Literal["passed", "failed"], groups: int = 1
) -> GateResult:
    subject = gate.subject if isinstance(gate, RegressionGate) else _subject(gate)
    cases = f"{found.cases} of {counted(found.of, 'case')}"
    where = f"{found.group}: " if gate.by and outcome == "failed" else ""
    if gate.by and outcome == "passed":
        where = f"all {counted(groups, 'group')} pass, the last one {found.group}: "
    side = 0 if outcome == "passed" else 1
    sure = f"evidence {_evidence(found.evidence[side])} of {_evidence(found.needed[side])} needed"
    if isinstance(gate, RegressionGate):
        drop = found.value
        shown = None if drop is None else -drop if gate.gains else drop
        at = gate.least_gain if gate.gains else gate.max_drop
        said = found.fault or f"{_claim(gate, outcome)}, {sure}"
        text = f"{where}{subject} {'gain' if gate.gains else 'drop'} {number(shown)} in {cases}; {said}"
        return GateResult(str(gate), outcome, shown, at, text, line=gate.line)
    bound = found.bound or gate.bounds[0]
    said = found.fault or f"over all of them it {'meets' if outcome == 'passed' else 'misses'} {bound}, {sure}"
    text = f"{where}{subject} is {number(found.value)} in {cases}; {said}"
    return GateResult(str(gate), outcome, found.value, bound.limit, text, line=gate.line)


def _claim(gate: RegressionGate, outcome: str) -> str:
    """Say what is known of a change."""
    if gate.gains:
        gain = limit(gate.least_gain)
        established = (outcome == "passed") == (gate.rule == "proven_safe")
        if gate.rule == "proven_safe":
            return (
                f"a gain above {gain} is established" if established else f"over all of them it is no more than {gain}"
            )
        return f"a gain under {gain} is established" if established else f"over all of them it is at least {gain}"
    drop = limit(gate.max_drop)
    if gate.rule == "proven_drop":
        failed = outcome == "failed"
        return f"a drop beyond {drop} is established" if failed else f"over all of them it is not beyond {drop}"
    safe = outcome == "passed"
    return f"a drop of {drop} is ruled out" if safe else f"over all of them it is at least {drop}"


def _subject(gate: Gate) -> str:
    return gate.metric if gate.statistic == "value" else f"{gate.statistic}({gate.metric})"


def _evidence(value: float) -> str:
    return "certain" if math.isinf(value) else f"{value:.3g}"
