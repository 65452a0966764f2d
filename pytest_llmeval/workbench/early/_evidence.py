"""Gates that are judged while cases still run, with evidence that is right whenever one looks.

A gate on a mean is a question about a total: of what the scores of all cases have beyond the limit, added up. Cases
come in a random order, so those that have run are drawn without replacement from a list that is fixed, and what the
next one adds on average follows from what the total would have to be. Anyone who bets at these odds that the total is
above 0, and never more than there is, has a capital that is a supermartingale if it is not: the probability that it
ever reaches x is 1 / x at most, however often one looks (Ville 1939; Waudby-Smith and Ramdas 2020, "Confidence
sequences for sampling without replacement", and 2023, "Estimating means of bounded random variables by betting").
Nothing is assumed of the scores but their bounds, and nothing of the cases: they need neither be many, nor
independent, nor alike.

The bets are shares of what could be lost at most, from all of it to very little. The capital is the mean of what
becomes of each share, so that no variance has to be known beforehand.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from pytest_llmeval.core import FloatArray, GateResult, Metric, counted
from pytest_llmeval.gates import Gate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_SHARES = 12
_SMALLEST_SHARE = 0.02
_ROUNDING = 1e-9
_MOST = 600.0
"""What `exp` can take."""


def evidence_above(
    sums: FloatArray,
    sizes: FloatArray,
    reach: float,
    known: float = 0.0,
    *,
    finite: bool = True,
    inclusive: bool = False,
) -> FloatArray:
    """The evidence that the total score of all cases is above 0, after each unit that ran, for early stopping.

    Args:
        sums: What these units add to the total, in their order.
        sizes: Number of cases of every unit, those to come included, in their order.
        reach: How far below 0 a single case may be, 0 or more.
        known: What is in the total besides the units: of cases that always run.
        finite: Whether the total is that of the units listed; if not, that of as many units that are drawn where
            these were drawn, so that chance in the choice of the cases counts.
        inclusive: Whether the evidence may be for a total of 0.

    Returns:
        The largest evidence up to each unit, from 1 on; infinite once the rest cannot make the total anything else.
        Where the total is not above 0, one random order in x ever reaches x.
    """
    import numpy as np

    seen, units = len(sums), len(sizes)
    if not seen:
        return np.ones(0)
    totals = known + np.cumsum(sums)
    # What a unit would add on average, were the total 0.
    fair = -(totals - sums) / (units - np.arange(seen)) if finite else np.full(seen, -known / units)
    worst = reach * np.maximum.accumulate(sizes[::-1])[::-1][:seen]
    room = fair + worst
    shares = np.geomspace(1.0, _SMALLEST_SHARE, _SHARES)[:, np.newaxis]
    with np.errstate(divide="ignore"):
        # Without room, a total of 0 is possible only if all other units are as bad as can be.
        gains = np.where(room > _ROUNDING, (sums + worst) / np.where(room > _ROUNDING, room, 1.0), 1.0)
        capital = np.cumsum(np.log1p(shares * (np.maximum(gains, 0.0) - 1)), axis=1)
    ratios: FloatArray = np.exp(np.minimum(_MOST, np.logaddexp.reduce(capital, axis=0) - np.log(_SHARES)))
    if finite:
        to_come = sizes.sum() - np.cumsum(sizes[:seen])
        ratios = np.where(totals - reach * to_come > _ROUNDING * (-1 if inclusive else 1), np.inf, ratios)
    return np.maximum(np.maximum.accumulate(ratios), 1.0)


def first_reached(
    excess: FloatArray,
    members: "npt.NDArray[np.bool_]",
    units: "npt.NDArray[np.intp]",
    reach: float,
    needed: float,
    *,
    finite: bool = True,
    inclusive: bool = False,
) -> tuple[int | None, float]:
    """The number of cases after which the evidence that a total is above 0 suffices, and the evidence by now.

    Args:
        excess: What each case that has run adds to the total, in the order of the cases; whole units.
        members: Which of all cases the total is of.
        units: Number of the unit, a cluster or the case alone, of each of all cases in their order, ascending from 0;
            -1 where a case always runs, which is no part of the sample.
        reach: How far below 0 a case may be.
        needed: The number.
        finite: See `evidence_above`.
        inclusive: See `evidence_above`.

    Returns:
        The number of cases, or ``None``; and the evidence, at least 1.
    """
    import numpy as np

    seen = len(excess)
    always = members & (units < 0)
    drawn = np.flatnonzero(members & (units >= 0))
    names, place, sizes = np.unique(units[drawn], return_inverse=True, return_counts=True)
    ran = drawn < seen
    count = int(place[ran].max()) + 1 if ran.any() else 0
    sums = np.zeros(count)
    np.add.at(sums, place[ran], excess[drawn[ran]])
    known = float(excess[always[:seen]].sum())
    if not drawn.size:  # all of them are known as soon as they have run
        certain = bool(members.any()) and known > _ROUNDING * (-1 if inclusive else 1)
        return (int(always.sum()), math.inf) if certain and finite else (None, 1.0)
    ratios = evidence_above(
        sums, sizes.astype(float), max(reach, 0.0), known, finite=finite, inclusive=finite and inclusive
    )
    reached = np.flatnonzero(ratios >= needed)
    at = None
    if reached.size:
        last = names[reached[0]]
        at = int(np.flatnonzero(units == last)[-1]) + 1
    return at, float(ratios[-1]) if count else 1.0


_SLACK = 1e-9


class PartScores(NamedTuple):
    """The scores of a suite's cases, or of a group of them, in the order in which the cases run.

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
    scores: FloatArray
    errored: "npt.NDArray[np.bool_]"
    left_out: "npt.NDArray[np.bool_]"


class EarlyVerdict(Struct, frozen=True):
    """The verdict on a gate before all cases of its suite have run.

    Attributes:
        result: As reports show it.
        cases: After how many cases it was decided.
    """

    result: GateResult
    cases: int


def decide_gate(
    gate: Gate, parts: Sequence[PartScores], units: "npt.NDArray[np.intp]", metric: Metric, level: float
) -> EarlyVerdict | None:
    """Judge a gate by the cases that have run so far, for early stopping.

    A gate that holds everywhere is wrong only if the part that does not hold is taken for one that does. One that fails
    somewhere may be wrong in any part, so that each has its share of the level (Bonferroni).

    Args:
        gate: One whose `early_fault` is empty.
        parts: All cases, or each group that the gate judges.
        units: As in `first_reached`.
        metric: Of the gate.
        level: The probability that the verdict differs from that of a complete run; of drops that are significant, from
            what holds of all cases that there might be.

    Returns:
        The verdict; ``None`` while there is none.
    """
    findings = [
        finding
        for part in parts
        if part.members.any()
        for finding in _findings(gate, part, units, metric, level, parts)
    ]
    if not findings:
        return None
    failed = [finding for finding in findings if finding.failed is not None]
    if failed:
        first = min(failed, key=lambda each: each.failed or 0)
        passed = _all_passed(findings)
        if passed is None or (first.failed or 0) <= passed:
            return EarlyVerdict(_result(gate, first, "failed"), first.failed or 0)
    passed = _all_passed(findings)
    if passed is None:
        return None
    last = max(findings, key=lambda each: each.passed or 0)
    return EarlyVerdict(_result(gate, last, "passed", len({finding.group for finding in findings})), passed)


class _Finding(NamedTuple):
    """The finding about one bound of a gate in one part of the cases, before all cases have run.

    Attributes:
        group: Name of the part.
        value: Mean of its scores so far.
        cases: How many of its cases have run.
        total: How many it has.
        passed: After how many cases of the suite it was decided that it holds; ``None`` while it is not.
        failed: Likewise, that it does not hold.
        evidence: For the bound, and against it.
        needed: Likewise.
        bound: Of the comparison, as text and number; ``None`` for a gate on a change, and where nothing is known.
        fault: Why it fails with any scores.
    """

    group: str
    value: float | None
    cases: int
    total: int
    passed: int | None
    failed: int | None
    evidence: tuple[float, float]
    needed: tuple[float, float]
    bound: tuple[str, float] | None = None
    fault: str = ""


def _all_passed(findings: Sequence[_Finding]) -> int | None:
    """The number of cases after which all parts of a gate passed; ``None`` if one has not."""
    times = [finding.passed for finding in findings if finding.passed is not None]
    return max(times) if len(times) == len(findings) else None


def _findings(
    gate: Gate,
    part: PartScores,
    units: "npt.NDArray[np.intp]",
    metric: Metric,
    level: float,
    parts: Sequence[PartScores],
) -> Iterator[_Finding]:
    """Yield what each bound of a gate says of one part of the cases, to decide the gate early."""
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
        yield base._replace(failed=errors, fault=fault)
        return
    if np.unique(units[part.members]).size < gate.fewest_units:
        yield base  # a complete run may be undecided, too
        return
    low, high = gate.early_range(metric.low, metric.high)
    if known.size and (known.min() < low - _SLACK or known.max() > high + _SLACK):
        yield base  # an evaluator may declare a range that it does not keep; then nothing is known of other cases
        return
    sides = list(gate.early_sides(metric.low, metric.high))
    needed = (1 / level, len(parts) * len(sides) / level)
    for side in sides:
        excess = np.where(exists, side.sign * (part.scores - side.at), 0.0)
        passed, above = first_reached(
            excess, part.members, units, side.below, needed[0], finite=side.finite[0], inclusive=side.inclusive[0]
        )
        failed, below = first_reached(
            -excess, part.members, units, side.above, needed[1], finite=side.finite[1], inclusive=side.inclusive[1]
        )
        if least is None or part.left_out.sum() > gate.left_out_limit:
            passed = None
        elif passed is not None:
            passed = max(passed, least)
        yield base._replace(passed=passed, failed=failed, evidence=(above, below), needed=needed, bound=side.bound)


def _place_of(seen: "npt.NDArray[np.bool_]", count: int) -> int | None:
    """The number of cases after which so many of a kind, such as errored ones, have occurred."""
    import numpy as np

    places = np.flatnonzero(seen)
    return int(places[count - 1]) + 1 if 0 < count <= places.size else None


def _result(gate: Gate, finding: _Finding, outcome: Literal["passed", "failed"], groups: int = 1) -> GateResult:
    """The result of a gate that was decided early, with its evidence in words."""
    cases = f"{finding.cases} of {counted(finding.total, 'case')}"
    where = f"{finding.group}: " if gate.by and outcome == "failed" else ""
    if gate.by and outcome == "passed":
        where = f"all {counted(groups, 'group')} pass, the last one {finding.group}: "
    side = 0 if outcome == "passed" else 1
    weight = f"evidence {_evidence(finding.evidence[side])} of {_evidence(finding.needed[side])} needed"
    words = gate.early_words(finding.value, finding.bound, outcome)
    text = f"{where}{words.state} in {cases}; {finding.fault or f'{words.claim}, {weight}'}"
    return GateResult(str(gate), outcome, words.value, words.limit, text, line=gate.line)


def _evidence(value: float) -> str:
    """The weight of evidence as a text; "certain" if nothing can change the verdict."""
    return "certain" if math.isinf(value) else f"{value:.3g}"
