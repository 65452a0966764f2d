"""Rules on the drop or the gain between two runs, and the verdicts on gates that are judged together."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, ClassVar

from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.wording import MOST_LISTED, counted, limit, number, several
from pytest_llmeval.gates.change import Adjusted, ChangeGate, ExaminedChange, GateEvidence
from pytest_llmeval.gates.contract import (
    BY,
    MIN_CASES,
    PARTIAL,
    Adjustment,
    Alternative,
    GateKey,
    GateOutcome,
    GateResult,
    SignificanceTest,
    Undecided,
    gate_rule,
    owned,
)
from pytest_llmeval.scoring.case_scores import TOLERANCE

if TYPE_CHECKING:
    from pytest_llmeval.gates.statistics.anytime import WatchedRun
    from pytest_llmeval.gates.statistics.drop_tests import Evidence


_DRIFT = 3
"""The number of drops of the size of `max_drop` that may add up."""

MAX_DROP = GateKey(
    float,
    "the largest drop allowed, in the unit of the metric; where lower is better, a rise counts as a drop",
)
MAX_DRIFT = GateKey(float, "the largest drop allowed [below the anchor](#slow-drift)", "three times `max_drop`")
_SIDES = "`two_sided`: the level is shared by drops and rises. `less`: [it is spent on drops](#sides-and-families)"
_ADJUST = (
    "with `by`: `familywise` bounds the chance of any false alarm among the groups, `fdr` the expected share of false "
    "alarms among the groups that fail"
)


@gate_rule
class TestedGate(ChangeGate):
    """A gate that one test of two runs decides."""

    by: str | None = owned(default=None, by=BY)
    min_cases: int = owned(default=1, min_cases=MIN_CASES)
    partial: bool = owned(default=False, partial=PARTIAL)
    against: str = owned(
        default="",
        against=GateKey(str, "the [system](systems.md#gates) that it is compared with", "the approved run"),
    )
    test: SignificanceTest = owned(default="bootstrap", test=GateKey(SignificanceTest, "the [test](#tests)"))
    alternative: Alternative = owned(default="two_sided", alternative=GateKey(Alternative, _SIDES))


@gate_rule
class ClaimGate(TestedGate):
    """A gate on a claim of its own, which is adjusted for the claims of other gates."""

    primary: bool = owned(
        default=False,
        primary=GateKey(bool, "whether the gate is [judged at the full level](#sides-and-families)"),
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
            "what counts [without proof](#when-a-gate-cannot-decide): `observed`, that half of the cases got worse; "
            "`pass`, nothing; `fail`, also that the gate cannot tell",
        ),
    )

    tags: ClassVar = ("max_drop",)
    rule: ClassVar = "significant_drop"
    former: ClassVar = "proven_drop"
    meaning: ClassVar = "fail if a larger drop is significant"
    title: ClassVar = "a gate with max_drop"
    refutes: ClassVar = True

    def verdict(
        self, evidence: "Evidence", metric: Metric, *, proven: bool, collapsed: bool
    ) -> tuple[GateOutcome, str]:
        from pytest_llmeval.gates.statistics.inference import made_up_tail

        if proven:
            return "failed", ""
        beyond = evidence.drop is not None and evidence.drop > self.max_drop + TOLERANCE
        if open_ := _wide_bridge(evidence, self.max_drop):
            return ("failed", f"failed without proof: {open_}") if self.undecided == "fail" else ("undecided", open_)
        if beyond and collapsed and made_up_tail(evidence.estimate, metric) <= 1 - self.confidence:
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
        from pytest_llmeval.gates.statistics.drop_tests import drop_power, far_limit

        power = drop_power(evidence, self, metric)
        if power.room <= self.max_drop or (power.decides and not power.scatters) or self._rules_out(evidence):
            return False
        detectable = self._finds(evidence, metric)
        return detectable is None or detectable > far_limit(self, power)

    def _rules_out(self, evidence: "Evidence") -> bool:
        """Return whether the interval, of cases that suffice for one, excludes every drop beyond the limit."""
        enough = evidence.estimate.units >= self.fewest_units
        return enough and evidence.interval is not None and evidence.interval[1] <= self.max_drop

    def could_find(self, evidence: "Evidence", metric: Metric) -> bool:
        from pytest_llmeval.gates.statistics.drop_tests import units_needed
        from pytest_llmeval.gates.statistics.inference import fallen_units

        fallen = fallen_units(evidence.estimate, metric)
        allowed = evidence.drop is not None and evidence.drop <= self.max_drop + TOLERANCE
        return allowed or fallen is None or fallen >= units_needed(self)

    def _finds(self, evidence: "Evidence", metric: Metric) -> float | None:
        from pytest_llmeval.gates.statistics.drop_tests import found_drop

        return found_drop(evidence, self, metric, collapses=self.counts_collapses)

    def _worse(self, evidence: "Evidence", metric: Metric) -> str:
        """Say how many cases got worse."""
        from pytest_llmeval.gates.statistics.inference import far_changes

        data = evidence.estimate
        far = far_changes(data, metric)
        if far is None:
            return "the score collapsed"
        noun = "case" if data.units == data.cases else "cluster"
        how = "" if data.binary and data.units == data.cases else " by half of the score or more"
        rose = f", {far.better} better" if far.better else ""
        return f"{far.worse} of {counted(far.units, noun)} got worse{how}{rose}"

    def _cannot_tell(self, evidence: "Evidence", metric: Metric) -> str:
        """Say what the gate cannot find, and what to do about it: the only writer of such sentences."""
        from pytest_llmeval.gates.statistics.drop_tests import drop_power, far_limit, units_of, units_to_find

        data = evidence.estimate
        detectable = self._finds(evidence, metric)
        far = far_limit(self, drop_power(evidence, self, metric))
        if not math.isfinite(far):  # comparisons without a limit
            return f"cannot tell: {units_of(data)}"
        target = _two_digits(far)
        needed = units_to_find(float(target), evidence, self, metric, collapses=self.counts_collapses)
        clusters = " clusters" if data.units < data.cases else ""
        steps = []
        if needed is not None and needed > data.units:
            steps.append(f"{needed - data.units} more{clusters} would find a drop of {target}")
        if detectable is not None and (wider := self._wider(detectable, evidence, metric)):
            steps.append(f"set max_drop to {wider}")
        if self.undecided != "pass":
            steps.append("`undecided: pass`")
        text = "; or ".join(steps)
        return f"cannot tell: {units_of(data)}" + (f". {text[0].upper()}{text[1:]}" if text else "")

    def _wider(self, detectable: float, evidence: "Evidence", metric: Metric) -> str:
        """Return a `max_drop` with which the gate decides, to two digits; an empty text if there is none."""
        for least in (detectable / 2, detectable - self.max_drop):
            wider = _two_digits(least, up=True)
            gate = replace(self, max_drop=float(wider))
            if self.max_drop < gate.max_drop < detectable and not gate.undecided_by(evidence, metric):
                return wider
        return ""

    def never_decides(self, units: Callable[[str | None], int]) -> str:
        """Say why no drop is significant to the gate, or nothing; that of groups is not known beforehand.

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

    @classmethod
    def from_gate(cls, gate: ChangeGate) -> "DriftGate":
        """Return the gate on what many drops within `max_drop` of another gate add up to."""
        values = {each.name: getattr(gate, each.name) for each in fields(ChangeGate)}
        most = _DRIFT * gate.max_drop if gate.max_drift is None else gate.max_drift
        return cls(**values | {"max_drop": most, "max_drift": None})

    @property
    def condition(self) -> str:
        return f"drift({self.subject}) <= {limit(self.max_drop)}"


@gate_rule
class SafeGate(TestedGate):
    """A gate that fails unless a drop of `max_drop` is ruled out.

    It is undecided if the observed drop is allowed, and the bridge between the judges leaves more open than that.
    """

    max_drop: float = owned(kw_only=False, max_drop=MAX_DROP)
    max_drift: float | None = owned(default=None, max_drift=MAX_DRIFT)

    tags: ClassVar = ("max_drop",)
    rule: ClassVar = "non_inferiority"
    former: ClassVar = "proven_safe"
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
        from pytest_llmeval.gates.statistics.drop_tests import safe_drop

        del tests
        return safe_drop(evidence, self, metric)


def _wide_bridge(evidence: "Evidence", max_drop: float) -> str:
    """Say that a bridge between judges leaves more open than a gate allows, and what to do; empty if it does not."""
    bridge = evidence.estimate.bridge
    if bridge <= max_drop + TOLERANCE:
        return ""
    wide = f"cannot tell: the interval of the bridge between the judges is {number(bridge)} wide, above max_drop"
    return f"{wide}. Approve a run of the new judge, or compare both on more cases"


def _two_digits(value: float, *, up: bool = False) -> str:
    """Write a number with two digits, rounded down, or up."""
    if value <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    steps = value / unit
    return limit((math.ceil(steps - TOLERANCE) if up else math.floor(steps + TOLERANCE)) * unit)


WATCHED_RUNS = (1, 3, 10)
"""Runs that have the drop, within which a gate that weighs runs is to find it."""


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
    watched_runs: ClassVar = WATCHED_RUNS[-1]

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
        from pytest_llmeval.gates.statistics.anytime import WatchedRun, watch
        from pytest_llmeval.scoring.intervals import normal_quantile

        if not finding.examined:
            return finding, None
        (examined,) = finding.examined
        evidence = examined.evidence
        if examined.fault or evidence is None or evidence.drop is None:
            return replace(finding, examined=(), outcome="failed", reason=examined.fault), None
        shares = tuple(float(f"{round(each, 9):.4g}") for each in evidence.estimate.contributions)
        run = WatchedRun(evidence.drop, evidence.deviation, evidence.estimate.units, shares=shares).after(earlier)
        seen = watch([*earlier, run], self.max_drop)
        needed = 1 / (1 - self.confidence)
        alone = normal_quantile((1 + self.confidence) / 2)
        # What was fixed is no drop any more; and a fall from better runs need not be one below the baseline.
        proven = seen.evidence >= needed and seen.alone >= alone
        data = evidence.estimate
        stretch = f"the last {seen.looks} of {counted(len(earlier) + 1, 'run')} since the approval"
        values = f"{self.subject} {number(data.baseline)} -> {number(data.value)}, drop {number(evidence.drop)}"
        weight = f"evidence {seen.evidence:.3g} of {needed:.3g}, this run {seen.alone:.2f} of {alone:.2f} deviations"
        parts = (
            f"{values}, {number(seen.drop)} in {stretch} ({counted(data.cases, 'case')})",
            f"{self.claim(significant=proven)}, {weight}",
            *evidence.notes,
        )
        outcome: GateOutcome = "failed" if proven else "passed"
        return replace(finding, examined=(), outcome=outcome, reason="; ".join(parts), value=evidence.drop), run


def never_decided(gates: Sequence[ChangeGate], units: Callable[[str | None], int]) -> Iterator[str]:
    """Yield the gates to which no drop is significant, however large, with the reason; those by groups aside.

    Args:
        gates: Of a suite.
        units: Returns the number of clusters by a label, or of cases for ``None``.
    """
    yield from (f"{gate}: {why}" for gate in gates if (why := gate.never_decides(units)))


def judge_together(findings: Sequence[GateEvidence], files: Sequence[str] = ()) -> list[GateResult]:
    """Judge gates on changes together: those of a suite, or those of all suites of a run.

    The p-values of claims are adjusted, so that the chance that a run without any drop beyond what is allowed
    fails, through whichever gate, stays at what the confidence says: by Hochberg's method over the groups of a gate,
    which have no case in common, and by Holm's over gates. Primary gates have that level for themselves. So are those
    of gains over another system, each of which is a claim of its own. Those of drops that are to be ruled out are not
    adjusted: such a run passes only if all of them hold, which is no more likely than that one does.

    Args:
        findings: Of gates that are a family.
        files: The suite file of each, if they are of several. Claims that are not evaluated then count as tests without
            any evidence: a suite that did not run makes no verdict on another one bolder.

    Returns:
        One verdict per finding.
    """
    from pytest_llmeval.gates.statistics.inference import adjusted_gates, benjamini_hochberg, hochberg

    adjusted: dict[int, Adjusted] = {}
    for primary in (True, False):
        places = [n for n, each in enumerate(findings) if each.gate.claims and each.gate.primary is primary]
        tests = [[each for each in findings[place].examined if not each.fault] for place in places]
        tests = [group for group in tests if group]
        among = {files[place] for place in places if files}
        unjudged = sum(is_unjudged_claim(findings[place]) for place in places) if len(among) > 1 else 0
        within = [
            (benjamini_hochberg if group[0].gate.adjust == "fdr" else hochberg)([each.p_value for each in group])
            for group in tests
        ] + [[1.0]] * unjudged
        adjusted |= {
            id(each): Adjusted(p_value, len(group), len(within), len(among), unjudged)
            for group, p_values in zip(tests, adjusted_gates(within), strict=False)
            for each, p_value in zip(group, p_values, strict=True)
        }
    far = {
        id(each): (far, 1 - finding.gate.confidence)
        for finding in findings
        if isinstance(finding.gate, DropGate) and finding.gate.counts_collapses
        for each in finding.examined
        if (far := each.far) is not None
    }
    for key, (changes, level) in far.items():
        if changes.is_collapse([other for at, (other, _) in far.items() if at != key], level):
            adjusted[key] = replace(adjusted[key], collapsed=True)
    return [_judged(finding, adjusted) for finding in findings]


def is_unjudged_claim(finding: GateEvidence) -> bool:
    """Return whether a claim that is adjusted for others has no test, since a part of its suite did not run."""
    return finding.gate.claims and not finding.examined and finding.outcome == "not_judged"


def _judged(finding: GateEvidence, adjusted: Mapping[int, Adjusted]) -> GateResult:
    verdict = _verdict(finding, adjusted)
    return replace(verdict, reason=f"{verdict.reason}; {finding.doubt}") if finding.doubt else verdict


def _verdict(finding: GateEvidence, adjusted: Mapping[int, Adjusted]) -> GateResult:
    gate = finding.gate
    if not finding.examined:
        return gate.result(finding.outcome, finding.value, finding.reason)
    among = [adjusted.get(id(each), Adjusted(each.p_value)) for each in finding.examined]
    verdicts = [(each.group, *each.verdict(own)) for each, own in zip(finding.examined, among, strict=True)]
    undecided = any(each.undecided for each in finding.examined)
    if gate.by is None:
        _, outcome, drop, reason = verdicts[0]
        evidence = finding.examined[0].evidence
        low, high = (evidence is not None and gate.change_bounds(evidence.interval)) or (None, None)
        verdict = replace(gate.result(outcome, drop, reason), low=low, high=high, undecided=undecided)
        return _with_cause(verdict, zip(finding.examined, among, strict=True))
    small = f"; not evaluated, under {counted(gate.min_cases, 'case')}: {several(finding.small)}"
    note = small if finding.small else ""
    failed = [each for each in verdicts if each[1] == "failed"]
    worst_first = sorted(failed or verdicts, key=lambda each: math.inf if each[2] is None else -each[2])
    group, outcome, drop, reason = worst_first[0]
    if failed:
        ordered = worst_first if len(failed) > MOST_LISTED else failed
        listed = several([f"{each[0]}: {each[3]}" for each in ordered], "; ")
        text = f"{len(failed)} of {len(verdicts)} groups fail: {listed}{note}"
    else:
        open_ = [each for each in verdicts if each[1] == "undecided"]
        outcome = "undecided" if open_ else outcome
        groups = counted(len(verdicts), "group")
        of_all = f"{len(open_)} of {groups} undecided" if open_ else f"all {groups} pass"
        text = f"{of_all}, {gate.worst} {group}: {reason}{note}"
    falls = [
        pair for pair, each in zip(zip(finding.examined, among, strict=True), verdicts, strict=True) if each in failed
    ]
    return _with_cause(replace(gate.result(outcome, drop, text), undecided=undecided), falls)


def _with_cause(verdict: GateResult, falls: "Iterable[tuple[ExaminedChange, Adjusted]]") -> GateResult:
    """Return the verdict on a gate with the cause of the falls that failed it, of each group if it has any."""
    if verdict.outcome != "failed":
        return verdict
    causes, fallen = list[str](), list[str]()
    for each, adjusted in falls:
        if cause := each.cause(adjusted.p_value):
            causes.append(f"{each.group}: {cause}" if each.group else cause)
            fallen += each.worsened.ids if each.worsened is not None else ()
    return replace(verdict, cause=several(causes, " "), fallen=tuple(fallen))
