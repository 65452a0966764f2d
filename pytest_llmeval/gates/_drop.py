"""Rules on the drop between two runs, and on the gain of one system over another."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import structs

from pytest_llmeval.core import GateOutcome, Metric, SignificanceTest, counted, limit, number
from pytest_llmeval.gates._change import ChangeGate, GateEvidence
from pytest_llmeval.gates._gate import (
    BY,
    MIN_CASES,
    PARTIAL,
    Adjustment,
    Alternative,
    GateKey,
    TextForm,
    Undecided,
    gate_rule,
    owned,
)
from pytest_llmeval.numbers import TOLERANCE

if TYPE_CHECKING:
    from pytest_llmeval.numbers import Evidence, WatchedRun


_DRIFT = 3
"""The number of drops of the size of `max_drop` that may add up."""

MAX_DROP = GateKey(
    float,
    "largest drop allowed, in the unit of the metric; where lower is better, largest rise",
    looser="more",
    unit="change",
)
MAX_DRIFT = GateKey(
    float,
    "largest drop allowed [below the anchor](#slow-drift)",
    "three times `max_drop`",
    looser="more",
    unit="change",
)
_SIDES = "`two_sided`, or `less`: [only drops are tested](#sides-and-families)"
_ADJUST = (
    "with `by`: `familywise` bounds the chance of any false alarm, `fdr` the share of false alarms among failed groups"
)


@gate_rule
class TestedGate(ChangeGate):
    """A change gate that one significance test of two runs decides."""

    by: str | None = owned(default=None, by=BY)
    min_cases: int = owned(default=1, min_cases=MIN_CASES)
    partial: bool = owned(default=False, partial=PARTIAL)
    against: str = owned(
        default="",
        against=GateKey(str, "[system](systems.md#gates) to compare with", "the approved run"),
    )
    test: SignificanceTest = owned(default="bootstrap", test=GateKey(SignificanceTest, "the [test](#tests)"))
    alternative: Alternative = owned(default="two_sided", alternative=GateKey(Alternative, _SIDES))


@gate_rule
class ClaimGate(TestedGate):
    """A gate on a claim of its own, which is adjusted for the claims of other gates."""

    primary: bool = owned(
        default=False,
        primary=GateKey(bool, "adjust only [for other primary gates](#sides-and-families)"),
    )
    adjust: Adjustment = owned(default="familywise", adjust=GateKey(Adjustment, _ADJUST))

    claims: ClassVar = True


_COUNTS = {
    "observed": "the gate fails if half of the cases get worse",
    "pass": "the gate never fails",
    "fail": "the gate always fails",
}


@gate_rule
class DropGate(ClaimGate):
    """A gate that fails if a drop beyond `max_drop` is significant, or half of the cases got worse beyond luck.

    Attributes:
        undecided: What counts without proof: ``observed``, a collapse of half of the cases that luck does not explain;
            ``pass``, nothing; ``fail``, as ``observed``, and a gate fails that could find a drop far beyond its limit
            only.
    """

    max_drop: float = owned(kw_only=False, max_drop=MAX_DROP)
    max_drift: float | None = owned(default=None, max_drift=MAX_DRIFT)
    undecided: Undecided = owned(
        default="observed",
        undecided=GateKey(
            Undecided,
            "what to do [without proof](#when-a-gate-cannot-decide): `observed`, `pass` or `fail`",
            looser=("fail", "observed", "pass"),
        ),
    )

    tags: ClassVar = ("max_drop",)
    rule: ClassVar = "significant_drop"
    meaning: ClassVar = "fail if a larger drop is significant"
    title: ClassVar = "a gate with max_drop"
    refutes: ClassVar = True

    def verdict(
        self, evidence: "Evidence", metric: Metric, *, proven: bool, collapsed: bool
    ) -> tuple[GateOutcome, str]:
        if proven:
            return "failed", ""
        beyond = evidence.drop is not None and evidence.drop > self.max_drop + TOLERANCE
        if open_ := _wide_bridge(evidence, self.max_drop):
            return ("failed", f"failed without proof: {open_}") if self.undecided == "fail" else ("undecided", open_)
        if beyond and collapsed and evidence.made_up_tail(metric) <= 1 - self.confidence:
            return "failed", f"failed without proof: {self._worse(evidence, metric)}"
        if not self.undecided_by(evidence, metric):
            return "passed", "not significant" if beyond else ""
        open_ = self._cannot_tell(evidence, metric)
        return ("failed", f"failed without proof: {open_}") if self.undecided == "fail" else ("undecided", open_)

    @property
    def counts_collapses(self) -> bool:
        """True if a collapse of half of the cases fails the gate without proof."""
        return self.undecided != "pass"

    def undecided_by(self, evidence: "Evidence", metric: Metric) -> bool:
        if evidence.lacks_scale:
            return True
        power = evidence.drop_power(self, metric)
        if evidence.typical and evidence.drop is not None and evidence.drop > max(self.max_drop, power.smallest or 0.0):
            return True  # the mean fell by more than a test of it would find
        if power.possible <= self.max_drop or (power.decides and not power.scatters) or self._rules_out(evidence):
            return False
        detectable = self._finds(evidence, metric)
        return detectable is None or detectable > power.far_limit(self)

    def _rules_out(self, evidence: "Evidence") -> bool:
        """Whether the interval, of cases that suffice for one, excludes every drop beyond the limit."""
        enough = evidence.estimate.units >= self.fewest_units
        return enough and evidence.interval is not None and evidence.interval[1] <= self.max_drop

    def could_find(self, evidence: "Evidence", metric: Metric) -> bool:
        allowed = evidence.drop is not None and evidence.drop <= self.max_drop + TOLERANCE
        return allowed or evidence.could_find(self, metric)

    def _finds(self, evidence: "Evidence", metric: Metric) -> float | None:
        return evidence.found_drop(self, metric, collapses=self.counts_collapses)

    def _worse(self, evidence: "Evidence", metric: Metric) -> str:
        """The number of cases that got worse, in words."""
        data = evidence.estimate
        far = evidence.far_changes(metric)
        if far is None:
            return "the score collapsed"
        noun = "case" if data.units == data.cases else "cluster"
        how = "" if data.binary and data.units == data.cases else " by half of the score or more"
        rose = f", {far.better} better" if far.better else ""
        return f"{far.worse} of {counted(far.units, noun)} got worse{how}{rose}"

    def _cannot_tell(self, evidence: "Evidence", metric: Metric) -> str:
        """The sentence on what the gate cannot find, and what to do about it; no other code writes such sentences."""
        data = evidence.estimate
        if evidence.typical and evidence.drop is not None and evidence.drop > self.max_drop:
            return f"cannot tell: the mean fell by {number(evidence.drop)}, and test {self.test} is not about it"
        detectable = self._finds(evidence, metric)
        far = evidence.drop_power(self, metric).far_limit(self)
        if evidence.lacks_scale:
            scale = f"{self.metric} has no range, and without one 12 show its scale"
            return f"cannot tell: {evidence.units_text}, and {scale}. Declare the range of {self.metric}"
        target = _two_digits(far)
        needed = evidence.units_to_decide(self, metric, collapses=self.counts_collapses)
        clusters = " clusters" if data.units < data.cases else ""
        steps = []
        if needed is not None and needed > data.units:
            more = f"{needed - data.units} more{clusters}"
            steps.append(f"{more} would be enough to find a drop of {target} in 9 of 10 runs")
        if detectable is not None and (wider := self._wider(detectable, evidence, metric)):
            steps.append(f"set max_drop to {wider}")
        if self.undecided != "pass":
            steps.append("`undecided: pass`")
        text = "; or ".join(steps)
        return f"cannot tell: {evidence.units_text}" + (f". {text[0].upper()}{text[1:]}" if text else "")

    def _wider(self, detectable: float, evidence: "Evidence", metric: Metric) -> str:
        """A `max_drop` with which the gate decides, to two digits; empty if there is none."""
        for least in (detectable / 2, detectable - self.max_drop):
            wider = _two_digits(least, up=True)
            gate = replace(self, max_drop=float(wider))
            if self.max_drop < gate.max_drop < detectable and not gate.undecided_by(evidence, metric):
                return wider
        return ""

    def never_decides(self, units: Callable[[str | None], int]) -> str:
        """The reason why no drop is significant to the gate; that of groups is not known beforehand.

        If each of n independent cases falls, a sign test has the one-sided p-value 2^-n, and no test a smaller one.
        """
        level = (1 - self.confidence) / self.sides
        count = units(self.cluster_by)
        if self.by is not None or 0.5 ** (count + (self.test == "mcnemar_mid_p")) <= level:
            return ""
        drawn = counted(count, "cluster" if self.cluster_by else "case")
        return f"with {drawn} no drop can be significant: {_COUNTS[self.undecided]}"


@gate_rule
class DriftGate(DropGate):
    """A gate on what is lost since the anchor: what `max_drift` of another gate represents."""

    form: ClassVar = TextForm("drift", "<=", "max_drop")

    @classmethod
    def from_gate(cls, gate: ChangeGate) -> "DriftGate":
        """The gate on what many drops within `max_drop` of another gate add up to."""
        values = {field.name: getattr(gate, field.name) for field in fields(ChangeGate)}
        most = _DRIFT * gate.max_drop if gate.max_drift is None else gate.max_drift
        return cls(**values | {"max_drop": most, "max_drift": None})


@gate_rule
class SafeGate(TestedGate):
    """A gate that fails unless a drop of `max_drop` is ruled out.

    It is undecided if the observed drop is allowed, and the bridge between the judges leaves more open than that.
    """

    max_drop: float = owned(kw_only=False, max_drop=MAX_DROP)
    max_drift: float | None = owned(default=None, max_drift=MAX_DRIFT)

    tags: ClassVar = ("max_drop",)
    rule: ClassVar = "non_inferiority"
    label: ClassVar = "non_inferiority"
    meaning: ClassVar = "fail unless a larger drop is ruled out"
    title: ClassVar = "a gate with rule non_inferiority"
    proves_safety: ClassVar = True
    proof: ClassVar = "ruled out"

    @property
    def tolerated(self) -> float:
        return 0.0

    def verdict(
        self, evidence: "Evidence", metric: Metric, *, proven: bool, collapsed: bool
    ) -> tuple[GateOutcome, str]:
        allowed = evidence.drop is not None and evidence.drop <= self.max_drop + TOLERANCE
        if not proven and allowed and (open_ := _wide_bridge(evidence, self.max_drop)):
            return "undecided", open_
        return super().verdict(evidence, metric, proven=proven, collapsed=collapsed)

    def claimed(self, whose: str = "") -> str:
        return f"a drop{whose} of {limit(self.max_drop)}"

    @property
    def contrary(self) -> str:
        return f"at least {limit(self.max_drop)}"

    def detectable(self, evidence: "Evidence", metric: Metric, tests: int) -> str:
        del tests
        return evidence.safe_drop(self, metric)


def _wide_bridge(evidence: "Evidence", max_drop: float) -> str:
    """The note that a bridge between judges leaves more open than a gate allows; empty if it does not."""
    bridge = evidence.estimate.bridge
    if bridge <= max_drop + TOLERANCE:
        return ""
    wide = f"cannot tell: the interval of the bridge between the judges is {number(bridge)} wide, above max_drop"
    return f"{wide}. Approve a run of the new judge, or compare both on more cases"


def _two_digits(value: float, *, up: bool = False) -> str:
    """A number in a drop gate's reason with two digits, rounded down, or up."""
    if value <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    steps = value / unit
    return limit((math.ceil(steps - TOLERANCE) if up else math.floor(steps + TOLERANCE)) * unit)


@gate_rule
class AnytimeGate(ChangeGate):
    """A gate that fails if the runs since the approval, weighed together, show a significant drop beyond `max_drop`.

    Its level holds however many runs follow.
    """

    max_drop: float = owned(kw_only=False, max_drop=MAX_DROP)
    max_drift: float | None = owned(default=None, max_drift=MAX_DRIFT)

    tags: ClassVar = ("max_drop",)
    rule: ClassVar = "anytime"
    label: ClassVar = "anytime"
    meaning: ClassVar = (
        "fail if a larger drop is significant over [all runs since the approval](#watching-every-commit)"
    )
    title: ClassVar = "a gate with rule anytime"
    refutes: ClassVar = True
    weighs_runs: ClassVar = True
    watched_runs: ClassVar = (1, 3, 10)

    @property
    def unbridged(self) -> str:
        return "for runs that are weighed together"

    def early_fault(self, metric: Metric | None) -> str:
        del metric
        return "rule anytime weighs whole runs"

    def weigh(self, finding: GateEvidence, earlier: "Sequence[WatchedRun]") -> "tuple[GateEvidence, WatchedRun | None]":
        """Judge the gate, whose drop has been examined.

        It fails if the drop is significant over all runs, and in this run by itself, as if nobody had looked before.

        Args:
            finding: The drop of this run.
            earlier: Runs since the baseline was approved, the last one last.

        Returns:
            The finding with its verdict, and what this run adds to the history; ``None`` if nothing.
        """
        from statistics import NormalDist

        from pytest_llmeval.numbers import WatchedRun

        if not finding.examined:
            return finding, None
        (examined,) = finding.examined
        evidence = examined.evidence
        if examined.fault or evidence is None or evidence.drop is None:
            return structs.replace(finding, examined=(), outcome="failed", reason=examined.fault), None
        shares = tuple(float(f"{round(contribution, 9):.4g}") for contribution in evidence.estimate.contributions)
        run = WatchedRun(evidence.drop, evidence.deviation, evidence.estimate.units, shares=shares).after(earlier)
        seen = WatchedRun.weigh([*earlier, run], self.max_drop)
        needed = 1 / (1 - self.confidence)
        alone = NormalDist().inv_cdf((1 + self.confidence) / 2)
        # What was fixed is no drop any more; and a fall from better runs need not be one below the baseline.
        proven = seen.evidence >= needed and seen.alone >= alone
        data = evidence.estimate
        stretch = f"the last {seen.looks} of {counted(len(earlier) + 1, 'run')} since the approval"
        drop = number(evidence.drop, self.max_drop)
        values = f"{self.subject} {number(data.baseline)} -> {number(data.value)}, drop {drop}"
        weight = f"evidence {seen.evidence:.3g} of {needed:.3g}, this run {seen.alone:.2f} of {alone:.2f} deviations"
        parts = (
            f"{values}, {number(seen.drop)} in {stretch} ({counted(data.cases, 'case')})",
            f"{self.claim(significant=proven)}, {weight}",
            *evidence.notes,
        )
        outcome: GateOutcome = "failed" if proven else "passed"
        return structs.replace(finding, examined=(), outcome=outcome, reason="; ".join(parts), value=evidence.drop), run


@gate_rule
class GainGate(ClaimGate):
    """A gate that fails unless a gain over the baseline, or over another system, is significant."""

    max_drop: float = owned(
        kw_only=False,
        min_gain=GateKey(float, "the gain over the baseline or another system", looser="less", unit="change"),
    )
    """The gain as a drop: less than nothing."""

    tags: ClassVar = ("min_gain",)
    rule: ClassVar = "non_inferiority"
    meaning: ClassVar = "fail unless the gain is significant"
    title: ClassVar = "a gate with min_gain"
    proves_safety: ClassVar = True
    form: ClassVar = TextForm("gain", ">=", "min_gain")
    noun: ClassVar = "gain"
    worst: ClassVar = "smallest gain"

    @property
    def allowed(self) -> float:
        return abs(self.max_drop)

    @classmethod
    def arguments(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().arguments(values), "max_drop": -float(values["min_gain"])}

    def change_of(self, drop: float | None) -> float | None:
        return None if drop is None else -drop

    def change_bounds(self, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
        return None if bounds is None else (-bounds[1], -bounds[0])

    def claimed(self, whose: str = "") -> str:
        return f"a gain{whose} above {limit(self.allowed)}"

    @property
    def contrary(self) -> str:
        return f"no more than {limit(self.allowed)}"

    def detectable(self, evidence: "Evidence", metric: Metric, tests: int) -> str:
        return evidence.detectable_gain(self, metric, tests)


@gate_rule
class GainLackGate(GainGate):
    """A gate that fails if the gain over another system that is required is ruled out."""

    rule: ClassVar = "significant_drop"
    label: ClassVar = "significant_drop"
    meaning: ClassVar = "fail if the gain is ruled out"
    title: ClassVar = "a gate with min_gain and rule significant_drop"
    refutes: ClassVar = True
    proves_safety: ClassVar = False
    proof: ClassVar = "ruled out"

    def claimed(self, whose: str = "") -> str:
        return f"a gain{whose} of {limit(self.allowed)}"

    @property
    def contrary(self) -> str:
        return f"at least {limit(self.allowed)}"


@gate_rule
class LiftGate(GainGate):
    """A gate that passes if the gain is significant, fails if it is ruled out, and else cannot tell."""

    rule: ClassVar = "decided"
    meaning: ClassVar = "pass if the gain is significant, fail if it is ruled out, else undecided"
    title: ClassVar = "a gate with min_gain and rule decided"
    proves_safety: ClassVar = False
    form: ClassVar = TextForm("lift", ">=", "min_gain")
    noun: ClassVar = "lift"

    @classmethod
    def text_defaults(cls, reference: str) -> dict[str, Any]:
        return {"against": reference, "rule": cls.rule}

    def verdict(
        self, evidence: "Evidence", metric: Metric, *, proven: bool, collapsed: bool
    ) -> tuple[GateOutcome, str]:
        del collapsed
        if proven:
            return "passed", ""
        beyond = evidence.drop is not None and evidence.drop > self.max_drop
        if beyond and evidence.tails is not None and self.sides * evidence.tails.above <= 1 - self.confidence:
            return "failed", f"a gain of {limit(self.allowed)} is ruled out"
        return "undecided", self._cannot_tell(evidence, metric)

    def undecided_by(self, evidence: "Evidence", metric: Metric) -> bool:
        del metric
        tails = evidence.tails
        return tails is None or self.sides * min(tails.below, tails.above) > 1 - self.confidence

    def _cannot_tell(self, evidence: "Evidence", metric: Metric) -> str:
        data = evidence.estimate
        text = f"cannot tell: {evidence.units_text}"
        observed = 0.0 if evidence.drop is None else -evidence.drop
        if observed <= self.allowed:
            return f"{text}, and the gain that is observed is not above {limit(self.allowed)}"
        if guard := evidence.gain_guard(self, metric):
            text += f": {guard}"
        needed = evidence.units_to_gain(observed, self, metric)
        if needed is None or needed <= data.units:
            return text
        clusters = " clusters" if data.units < data.cases else ""
        return f"{text}. {needed - data.units} more{clusters} would make the observed gain significant, if it is true"
