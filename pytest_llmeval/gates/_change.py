"""Gates on a change, against a baseline or another system."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, get_args

from msgspec import Struct, structs

from pytest_llmeval.core import (
    ChangeWord,
    ComparingEvaluator,
    GateOutcome,
    GateResult,
    Metric,
    MetricIndex,
    SignificanceTest,
    Statistic,
    counted,
    interval,
    limit,
    listed,
    number,
)
from pytest_llmeval.gates._gate import (
    FIGURES,
    MAX_ERRORS,
    MIN_SCORED,
    MOST_GROUPS,
    Adjustment,
    Alternative,
    EarlyWords,
    Gate,
    GateKey,
    GateSource,
    ScoreSide,
    TextForm,
    gate_rule,
    owned,
)
from pytest_llmeval.numbers import TOLERANCE

if TYPE_CHECKING:
    from pytest_llmeval.numbers import Evidence, RunPairing, WatchedRun

_PAIRED_ONLY: tuple[SignificanceTest, ...] = ("mcnemar", "mcnemar_mid_p", "wilcoxon")
_SMALLEST_SHOWN = 0.0001
_FEW_UNITS = 12
"""With fewer cases or clusters, gates that are judged together may find no drop significant."""


class Adjusted(Struct, frozen=True):
    """The p-value of a gate's test, adjusted for the tests that are judged together.

    Attributes:
        p_value: Adjusted.
        groups: How many groups the gate judges.
        gates: How many gates are judged together.
        files: How many suite files have these, if there may be several.
        unjudged: How many of these gates have no test, since a part of their suite did not run.
        collapsed: Whether half of the cases fell, beyond what luck explains; see `FarChanges.is_collapse`.
    """

    p_value: float
    groups: int = 1
    gates: int = 1
    files: int = 0
    unjudged: int = 0
    collapsed: bool = False

    @property
    def tests(self) -> int:
        """By how much the level of a gate is divided if nothing else is evidence."""
        return self.groups * self.gates

    def method(self, adjust: Adjustment) -> str:
        """The name of the method by which p-values are adjusted."""
        within = "Benjamini-Hochberg" if adjust == "fdr" else "Hochberg"
        parts = [f"{within} over {self.groups} groups"] if self.groups > 1 else []
        among = f" in {self.files} files" if self.files > 1 else ""
        among += f", {self.unjudged} of them not evaluated" if self.unjudged else ""
        parts += [f"Holm over {self.gates} gates{among}"] if self.gates > 1 else []
        return f" by {' and '.join(parts)}" if parts else ""


@gate_rule
class ChangeGate(Gate):
    """A limit on how much a metric may have changed since the baseline, or differ from another system's.

    Attributes:
        max_drop: The drop that is allowed, in the metric's own unit; where less is better, a rise is the drop.
            Negative, where a gain is required.
        confidence: With which the rule requires its proof.
        cluster_by: A label; cases with the same value of it count as one.
        max_left_out: How many cases may be left out of the comparison; ``None``: as the rule has it.
        max_drift: The drop below the anchor that is allowed; ``None``: three times `max_drop`.
        test: The test of significance.
        alternative: ``two_sided``, as the interval; ``less`` spends the whole level on runs that are worse.
        primary: Whether the gate is judged at the full level, with other primary gates only.
        adjust: With `by`: ``familywise`` bounds the chance that any group fails by chance, ``fdr`` the expected share
            of such groups among those that fail.
        matters: The size of a drop that matters; ``None``: `max_drop`, or a share of the metric's range if that is 0.
    """

    max_drop: float = owned(kw_only=False)
    min_scored: int = owned(default=0, min_scored=MIN_SCORED)
    max_errors: int = owned(default=0, max_errors=MAX_ERRORS)
    confidence: float = owned(default=0.95, confidence=GateKey(float, "confidence level of the test"))
    cluster_by: str | None = owned(
        default=None,
        cluster_by=GateKey(
            str,
            "a label: cases with the same value, such as one conversation, are one unit",
            "`cluster_by` of the suite",
        ),
    )
    max_left_out: int | None = owned(
        default=None,
        max_left_out=GateKey(
            int,
            "most cases [left out](#what-is-compared) of the comparison",
            "0 for `non_inferiority`, else no limit",
            least=0,
        ),
    )
    max_drift: float | None = owned(default=None)
    test: SignificanceTest = owned(default="bootstrap")
    alternative: Alternative = owned(default="two_sided")
    primary: bool = owned(default=False)
    adjust: Adjustment = owned(default="familywise")
    matters: float | None = field(default=None, repr=False, compare=False, kw_only=True)

    label: ClassVar[str] = ""
    """The rule as the gate's text names it."""

    refutes: ClassVar[bool] = False
    """True if the gate fails when its claim is significant; others fail unless it is."""

    weighs_runs: ClassVar[bool] = False
    """True if all runs since the approval are weighed together."""

    watched_runs: ClassVar[tuple[int, ...]] = ()
    """Numbers of runs with a drop within which it is to be evidence, ascending; none if one test is to find it."""

    statistics: ClassVar[tuple[str, ...]] = get_args(Statistic)
    form: ClassVar[TextForm | None] = TextForm("drop", "<=", "max_drop")
    proof: ClassVar[str] = "significant"
    noun: ClassVar[str] = "drop"
    worst: ClassVar[str] = "largest drop"
    fewest_units: ClassVar[int] = _FEW_UNITS

    def __str__(self) -> str:
        extras = [
            f"against {self.against}" if self.against else "",
            self.label,
            self.test if self.test != "bootstrap" else "",
            f"confidence {limit(self.confidence)}" if self.confidence != 0.95 else "",  # noqa: PLR2004 (the default)
            self.alternative if self.alternative != "two_sided" else "",
            f"cluster_by {self.cluster_by}" if self.cluster_by else "",
            self.adjust if self.adjust != "familywise" else "",
        ]
        text = ", ".join([self.condition, *filter(None, extras)])
        return f"{text} by {self.by}" if self.by else text

    @property
    def source(self) -> GateSource:
        return "systems" if self.against else "baseline"

    @property
    def sides(self) -> int:
        """The number of sides of the difference on which the gate's test may err."""
        return 1 if self.alternative == "less" else 2

    @property
    def interval_confidence(self) -> float:
        """The confidence of the interval whose bound says the same as the test."""
        return 1 - 2 * (1 - self.confidence) / self.sides

    @property
    def counts_collapses(self) -> bool:
        """True if a collapse of half of the cases fails the gate without proof."""
        return False

    @property
    def explains_falls(self) -> bool:
        """Whether a drop beyond the allowed one is explained by the cases that fell."""
        return self.noun == "drop"

    @property
    def left_out_limit(self) -> float:
        if self.max_left_out is not None:
            return self.max_left_out
        return 0 if self.proves_safety else math.inf

    @property
    def allowed(self) -> float:
        return self.max_drop

    @property
    def tolerated(self) -> float:
        """The largest drop that this rule accepts."""
        return self.max_drop

    @property
    def unbridged(self) -> str:
        """The comparisons of this gate that a bridge between two judges cannot cover; empty if none."""
        return "for groups" if self.by is not None else ""

    def change_of(self, drop: float | None) -> float | None:
        """A drop as the change that the gate is about."""
        return drop

    def change_bounds(self, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
        """The interval of a drop as that of the change that the gate is about."""
        return bounds

    def claimed(self, whose: str = "") -> str:
        """The change that the gate's test is to show, or to rule out.

        Args:
            whose: What changes, if it is not the mean.
        """
        return f"a drop{whose} beyond {limit(self.max_drop)}"

    def claim(self, *, significant: bool, typical: bool = False) -> str:
        """The claim of the gate's test as text.

        Args:
            significant: Whether it holds.
            typical: Whether the test is about the typical case, and not about the mean.
        """
        claimed = self.claimed(" of the typical case" if typical else "")
        return f"{claimed} is {'' if significant else 'not '}{self.proof}"

    @property
    def contrary(self) -> str:
        """The statement about all cases that holds if the claim cannot become significant any more."""
        return f"not beyond {limit(self.max_drop)}"

    def detectable(self, evidence: "Evidence", metric: Metric, tests: int) -> str:
        """The smallest change that the gate finds in 80 of 100 runs."""
        return evidence.detectable_drop(self, metric, tests)

    def verdict(
        self, evidence: "Evidence", metric: Metric, *, proven: bool, collapsed: bool
    ) -> tuple[GateOutcome, str]:
        """The outcome of the gate, and the beginning of its reason, given whether the claim is significant.

        Args:
            evidence: The evidence.
            metric: The metric of the gate.
            proven: Whether the claim is significant.
            collapsed: Whether half of the cases fell, beyond what luck explains.
        """
        del evidence, metric, collapsed
        return "passed" if proven != self.refutes else "failed", ""

    def undecided_by(self, evidence: "Evidence", metric: Metric) -> bool:
        """Whether a change beyond the limit is possible, and only one far beyond it could have been found.

        It depends on this gate and its cases alone, not on others that it is judged with.
        """
        del evidence, metric
        return False

    def could_find(self, evidence: "Evidence", metric: Metric) -> bool:
        """Whether the rule could have found a drop: if it found none, because cases are few, the gate cannot tell."""
        del evidence, metric
        return True

    def weigh(
        self, finding: "GateEvidence", earlier: "Sequence[WatchedRun]"
    ) -> "tuple[GateEvidence, WatchedRun | None]":
        """The evidence together with that of earlier runs, if the rule weighs them, and what this run adds.

        Args:
            finding: The drop of this run.
            earlier: Runs since the baseline was approved, the last one last.
        """
        del earlier
        return finding, None

    def never_decides(self, units: Callable[[str | None], int]) -> str:
        """The reason why no change, however large, is significant to the gate; empty if one is.

        Args:
            units: Returns the number of clusters by a label, or of cases for ``None``.
        """
        del units
        return ""

    def result(self, outcome: GateOutcome, value: float | None, reason: str) -> GateResult:
        return GateResult(str(self), outcome, self.change_of(value), self.allowed, reason, line=self.line)

    @classmethod
    def check_values(cls, values: Mapping[str, Any]) -> None:
        super().check_values(values)
        tag = cls.tags[0]
        change, against, max_drift = values[tag], values.get("against"), values.get("max_drift")
        if not 0 <= change < math.inf:
            raise ValueError(f"found {tag} {change}, expected a finite number of at least 0")
        if against is not None and against == values.get("system"):
            raise ValueError(f"found {against!r} as system and as against, expected two systems")
        if against is not None and max_drift is not None:
            raise ValueError("found max_drift with against, expected neither: it is about a baseline")
        confidence = 0.95 if values.get("confidence") is None else values["confidence"]
        if not 0 < confidence < 1:
            raise ValueError(f"found confidence {confidence}, expected a number between 0 and 1, such as 0.95")
        if values.get("alternative") == "less" and confidence <= 0.5:  # noqa: PLR2004 (no interval is below)
            raise ValueError(f"found confidence {confidence} with alternative less, expected more than 0.5")
        if values.get("adjust") is not None and values.get("by") is None:
            raise ValueError("found adjust without by, expected both: it says how groups are judged together")
        if values.get("test") is not None and values.get("cluster_by") is not None:
            _check_test(values["test"])
        if cls.proves_safety and values.get("test") == "wilcoxon":
            known = "expected one of bootstrap, bca, permutation, or mcnemar for scores of 0 and 1"
            why = "wilcoxon is about the typical case, which may be as before while the mean collapses"
            claim = f"rule {values['rule']}" if values.get("rule") else cls.tags[0]
            raise ValueError(f"found test wilcoxon with {claim}, {known}: {why}")
        if max_drift is not None and not change <= max_drift < math.inf:
            raise ValueError(f"found max_drift {max_drift}, expected a finite number of at least max_drop")

    def clustered(self, cluster_by: str | None) -> Self:
        if cluster_by is None or self.cluster_by is not None:
            return self
        _check_test(self.test)
        return replace(self, cluster_by=cluster_by)

    def misfits(self, metrics: MetricIndex, text: str) -> Iterator[tuple[str, str]]:
        del text
        if self.metric in FIGURES:
            known = "expected a metric of an evaluator: costs and latencies have no approved value"
            yield "metric", f"found {self.metric!r} with a baseline, {known}"
        declared = metrics.find(self.metric)
        evaluator = None if declared is None else declared.evaluator
        if not self.against and isinstance(evaluator, ComparingEvaluator) and evaluator.APPROVED in evaluator.opponents:
            known = "expected a limit such as a min: it compares with the approved answers itself"
            yield "metric", f"found {self.metric!r} with a baseline, {known}"

    def early_fault(self, metric: Metric | None) -> str:
        return self.mean_fault(metric)

    def shortfalls(self, score: float, best: float | None) -> Sequence[float]:
        del score
        return [] if best is None else [best]

    def early_range(self, low: float, high: float) -> tuple[float, float]:
        return low - high, high - low

    def early_sides(self, low: float, high: float) -> Iterator[ScoreSide]:
        # Significance is about all cases that there might be; that it is out of reach, about these.
        low, high = self.early_range(low, high)
        finite = (self.refutes, not self.refutes)
        yield ScoreSide(self.max_drop, -1, high - self.max_drop, self.max_drop - low, finite, finite)

    def early_words(self, value: float | None, bound: tuple[str, float] | None, outcome: GateOutcome) -> EarlyWords:
        del bound
        change = self.change_of(value)
        significant = (outcome == "passed") != self.refutes
        claim = self.claim(significant=True) if significant else f"over all of them it is {self.contrary}"
        observed = f"{self.subject} {self.noun} {number(change, self.allowed)}"
        return EarlyWords(observed, change, self.allowed, claim)

    def without_test(self, outcome: GateOutcome, reason: str) -> "GateEvidence":
        """The evidence on a gate that is decided, or left open, without a test."""
        return GateEvidence(self, outcome=outcome, reason=reason)

    def examine(self, pairing: "RunPairing | None", incomplete: str = "", absent: str = "") -> "GateEvidence":
        """The test of the change, without a verdict: that depends on how many gates are judged together.

        Args:
            pairing: The run and its baseline; ``None`` if there is nothing to compare with.
            incomplete: Why the suite is incomplete; a gate is then judged only if it is ``partial``.
            absent: Why there is no baseline, and what to do.
        """
        if incomplete and not self.partial:
            return self.without_test("not_judged", f"not evaluated: {incomplete}")
        if pairing is None:
            return GateEvidence(self, reason=absent or "there is no baseline")
        if unfit := self._unfit(pairing):
            return GateEvidence(self, reason=unfit)
        if self.by is not None:
            return self._examine_groups(pairing, self.by)
        return GateEvidence(self, (self._examine(pairing),))

    def _unfit(self, pairing: "RunPairing") -> str:
        """The reason why two runs do not have what the gate needs; empty if they do."""
        if self.metric not in pairing.table.owner:
            return f"{self.metric} does not occur in the results"
        if self.cluster_by is not None and not pairing.has_label(self.cluster_by):
            return f"no case has the label {self.cluster_by!r} to cluster by"
        shift = pairing.shifts.get(self.subject)
        if shift is not None and shift.depends:
            return f"not comparable across the change of judge: {shift.depends}; approve a run of the new judge"
        scores = None if shift is None else pairing.table.scores[self.metric][pairing.everything().current]
        if shift is not None and scores is not None and (outside := shift.outside(scores)):
            return f"not comparable across the change of judge: {outside}; approve a run of the new judge"
        if shift is not None and (parts := self.unbridged):
            bridge = f"the bridge from the former judge does not hold {parts}"
            return f"not comparable: {bridge}; approve a run of the new judge"
        return ""

    def _examine_groups(self, pairing: "RunPairing", by: str) -> "GateEvidence":
        """The tests of the change in every group of cases."""
        groups = [self._examine(pairing, name) for name in pairing.groups(by)]
        small = tuple(group.group for group in groups if group.cases < self.min_cases)
        judged = tuple(group for group in groups if group.cases >= self.min_cases)
        if not judged:
            return GateEvidence(self, reason=f"no group by {by!r} has {counted(self.min_cases, 'case')} to compare")
        return GateEvidence(self, judged, small)

    def _examine(self, pairing: "RunPairing", group: str | None = None) -> "ExaminedChange":
        """The test of the change over all cases, or those of a group."""
        from pytest_llmeval.numbers import Evidence

        rows = pairing.everything() if group is None or self.by is None else pairing.groups(self.by)[group]
        evidence = Evidence.of_change(self, pairing, rows)
        if isinstance(evidence, str):
            return ExaminedChange(self, group or "", len(rows.current), fault=evidence)
        metric = evidence.scaled(pairing.table.metric(self.metric))
        ran = len(rows.current) + (0 if group else pairing.only_current)
        return ExaminedChange(
            self, group or "", evidence.estimate.cases, evidence, self._fault(evidence), metric, ran=ran
        )

    def _fault(self, evidence: "Evidence") -> str:
        """The reason why the gate fails regardless of the numbers; empty if it does not."""
        data = evidence.estimate
        if data.errored > self.max_errors:
            allowed = f", {self.max_errors} allowed" if self.max_errors else ""
            return f"{counted(data.errored, 'case')} errored{allowed}"
        if data.left_out > self.left_out_limit:
            left_out = f"{counted(data.left_out, 'case')} left out of the comparison, errored or not run"
            return f"{left_out}; max_left_out is {self.left_out_limit:g}"
        if data.cases < self.min_scored:
            return f"{counted(data.cases, 'case')} compared, expected at least {self.min_scored}"
        if data.apart:
            return f"not comparable: {data.apart}"
        return "" if evidence.drop is not None else self._without_drop(evidence)

    def _without_drop(self, evidence: "Evidence") -> str:
        data = evidence.estimate
        if not data.cases and data.left_out:
            return f"no case has {self.subject} in both runs"
        if data.fault:
            return f"{self.subject} is undefined: {data.fault}"
        if data.value is None:
            return f"{self.subject} is undefined" + ("" if data.baseline is not None else ", in the baseline too")
        return f"{self.subject} has no value in the baseline"


class WordedChange(NamedTuple):
    """A gate's statement on a change: a word, a sentence, and the move with which the sentence begins."""

    word: ChangeWord = ""
    known: str = ""
    moved: str = ""


class ExaminedChange(Struct, frozen=True):
    """The test of one change gate on one group of cases, or on all."""

    gate: ChangeGate
    group: str
    cases: int
    evidence: "Evidence | None" = None
    fault: str = ""
    metric: Metric = Metric("")
    ran: int = 0

    def cause(self, p_value: float) -> str:
        """The fall beyond the limit and its cases in two sentences; empty if the change has none.

        Args:
            p_value: Adjusted, of the claim of the gate.
        """
        evidence, gate = self.evidence, self.gate
        if evidence is None or evidence.worsened is None or self.fault or evidence.drop is None:
            return ""
        if evidence.drop <= gate.max_drop + TOLERANCE or evidence.estimate.chain is not None:
            return ""
        moved = "fell" if self.metric.higher_is_better else "rose"
        where = f" below {gate.against}" if gate.against and self.metric.higher_is_better else ""
        where = f" above {gate.against}" if gate.against and not where else where
        parts = [
            f"{gate.subject} {moved}{where} {_describe_move(evidence)} (limit {limit(gate.allowed)})",
            str(evidence.worsened),
            f"p {_p(p_value)}" if gate.refutes and p_value <= 1 - gate.confidence else "",
            self._compared,
        ]
        return f"{'. '.join(filter(None, parts))}."

    @property
    def fallen(self) -> Sequence[str]:
        """The ids of the cases that fell, if the change has a cause."""
        worsened = None if self.evidence is None else self.evidence.worsened
        return () if worsened is None else worsened.ids

    @property
    def p_value(self) -> float:
        """Of the hypothesis that the claim refutes; it agrees with the interval."""
        if self.evidence is None or self.evidence.tails is None or self._is_contradicted(self.evidence):
            return 1.0
        tails = self.evidence.tails
        return min(1.0, self.gate.sides * (tails.above if self.gate.refutes else tails.below))

    def _is_contradicted(self, evidence: "Evidence") -> bool:
        """Whether the observed mean is on the other side of the claim, which is about the mean."""
        observed = evidence.drop if evidence.worst is None else evidence.worst
        if evidence.typical or observed is None:
            return False
        allowed = self.gate.max_drop
        return observed < allowed - TOLERANCE if self.gate.refutes else observed > allowed + TOLERANCE

    def verdict(self, adjusted: Adjusted) -> tuple[GateOutcome, float | None, str]:
        """The outcome of a change gate, the drop and the reason."""
        evidence, gate = self.evidence, self.gate
        drop = None if evidence is None else evidence.drop
        if evidence is None or self.fault:
            return "failed", drop, self.fault
        proven = adjusted.p_value <= 1 - gate.confidence
        outcome, lead = gate.verdict(evidence, self.metric, proven=proven, collapsed=adjusted.collapsed)
        p_value = _p(adjusted.p_value)
        if outcome == "failed" and p_value == _p(1):  # which is no reason to fail
            p_value = ""
        parts = self._parts(evidence, adjusted, p_value, proven=proven)
        data = evidence.estimate
        if outcome == "passed" and data.changed == 0 and data.units and data.chain is None:
            alike = counted(data.units, "case" if data.units == data.cases else "cluster")
            same = f"{gate.subject} {number(data.value)}, {GateResult.UNCHANGED}{alike}"
            parts.insert(0, ", ".join(filter(None, [same, self._compared])))
        return outcome, drop, "; ".join([*([lead] if lead else []), *parts])

    def known(self, adjusted: Adjusted) -> WordedChange:
        """The verdict on the change; empty without a test."""
        evidence, gate = self.evidence, self.gate
        if evidence is None or self.fault or evidence.drop is None:
            return WordedChange()
        collapsed = adjusted.collapsed and evidence.drop > gate.max_drop
        fell = collapsed or (gate.noun == "drop" and gate.refutes and adjusted.p_value <= 1 - gate.confidence)
        known = evidence.known_change(gate, self.metric, fell=fell, tests=adjusted.tests)
        where = f"{self.group}: " if self.group else ""
        worsened = evidence.worsened
        tally = f" ({worsened.tally})" if worsened is not None and worsened.ids else ""
        moved = f"{where}{gate.subject} {_describe_move(evidence)}{tally}"
        return WordedChange(known.word, "; ".join(filter(None, [f"{moved}, {known.sentence}", self._compared])), moved)

    @property
    def _compared(self) -> str:
        """The number of cases of the run that the gate compares; empty if all are."""
        data = None if self.evidence is None else self.evidence.estimate
        if data is None or data.changed is None or data.chain is not None or data.cases >= self.ran:
            return ""
        return f"{data.cases} of {counted(self.ran, 'case')} compared"

    @property
    def undecided(self) -> bool:
        """True if a change beyond the limit is possible, and only one far beyond it could have been found."""
        if self.evidence is None or self.fault:
            return False
        return self.gate.undecided_by(self.evidence, self.metric)

    @property
    def could_find(self) -> bool:
        """True if the drop is allowed, or so many cases fell that the gate could have found it had no other risen."""
        if self.fault or self.evidence is None or self.evidence.drop is None:
            return True  # the gate fails
        return not self.undecided and self.gate.could_find(self.evidence, self.metric)

    def _parts(self, evidence: "Evidence", adjusted: Adjusted, p_value: str, *, proven: bool) -> list[str]:
        gate, data = self.gate, evidence.estimate
        clusters = f" in {counted(data.units, 'cluster')}" if data.units < data.cases and gate.cluster_by else ""
        of_all = f" of {self.ran}" if self._compared else ""
        paired = f"{counted(data.cases, 'paired case')}{of_all}{clusters}"
        cases = paired if data.changed is not None else f"{data.cases} against {counted(data.baseline_cases, 'case')}"
        bounds = gate.change_bounds(evidence.interval)
        between = "no interval" if bounds is None else interval(*bounds)
        name = "" if evidence.interval is None else f"{100 * gate.interval_confidence:.6g}% interval "
        change = f"{gate.noun} {number(gate.change_of(evidence.drop), gate.allowed)}"
        text = f"{gate.subject} {_describe_move(evidence)}, {change}"
        if data.chain is not None:
            steps = counted(data.chain.steps, "step")
            text = f"{gate.subject} {change} in {steps} over the cases that neighbouring runs share"
        claim = gate.claim(significant=proven, typical=evidence.typical)
        if p_value:
            claim += f", p {p_value}{adjusted.method(gate.adjust)}"
        parts = [f"{text} ({name}{between}, {cases})", claim]
        if gate.proves_safety and data.left_out:
            worst = "has no bound" if evidence.worst is None else f"drop {number(evidence.worst)}"
            parts.append(f"with the cases left out at their worst, {worst}")
        # All groups together may show what a single one cannot.
        alone = " in one group alone" if adjusted.groups > 1 else ""
        return [*parts, gate.detectable(evidence, self.metric, adjusted.tests) + alone, *evidence.notes]


class GateEvidence(Struct, frozen=True):
    """A change gate with its evidence.

    Attributes:
        gate: The gate.
        examined: Its tests: one, or one per group.
        small: Groups that are too small to be judged.
        outcome: The outcome if there is no test.
        reason: The reason then.
        doubt: Why the runs may not be comparable.
        value: The drop then, if it is known.
        forgone: Whether its test is not made, but counts among those that are judged together: then the others have
            the level that they have when it is made.
    """

    gate: ChangeGate
    examined: tuple[ExaminedChange, ...] = ()
    small: tuple[str, ...] = ()
    outcome: GateOutcome = "failed"
    reason: str = ""
    doubt: str = ""
    value: float | None = None
    forgone: bool = False

    @staticmethod
    def judge_together(findings: "Sequence[GateEvidence]", files: Sequence[str] = ()) -> list[GateResult]:
        """Judge change gates together: those of a suite, or those of all suites of a run.

        The p-values of claims are adjusted, so that the chance that a run without any drop beyond what is allowed
        fails, through whichever gate, stays at what the confidence says: by Hochberg's method over the groups of a
        gate, which have no case in common, and by Holm's over gates. Primary gates have that level for themselves. So
        are those of gains over another system, each of which is a claim of its own. Those of drops that are to be ruled
        out are not adjusted: such a run passes only if all of them hold, which is no more likely than that one does.

        Args:
            findings: Of gates that are a family.
            files: The suite file of each, if they are of several. Claims that are not evaluated then count as tests
                without any evidence: a suite that did not run makes no verdict on another one bolder.

        Returns:
            One verdict per finding.
        """
        from pytest_llmeval.numbers import Evidence, adjust_families

        adjusted: dict[int, Adjusted] = {}
        for primary in (True, False):
            places = [
                n for n, finding in enumerate(findings) if finding.gate.claims and finding.gate.primary is primary
            ]
            tests = [[change for change in findings[place].examined if not change.fault] for place in places]
            tests = [group for group in tests if group]
            among = {files[place] for place in places if files}
            unjudged = sum(findings[place].is_unjudged_claim for place in places) if len(among) > 1 else 0
            families = [(group[0].gate.adjust, [change.p_value for change in group]) for group in tests]
            families += [("familywise", [1.0])] * (unjudged + sum(findings[place].forgone for place in places))
            adjusted |= {
                id(change): Adjusted(p_value, len(group), len(families), len(among), unjudged)
                for group, p_values in zip(tests, adjust_families(families), strict=False)
                for change, p_value in zip(group, p_values, strict=True)
            }
        tested = {
            id(change): (change.evidence, change.metric, 1 - finding.gate.confidence)
            for finding in findings
            if finding.gate.counts_collapses
            for change in finding.examined
            if change.evidence is not None and not change.fault
        }
        for key, collapsed in zip(tested, Evidence.find_collapses([*tested.values()]), strict=True):
            if collapsed:
                adjusted[key] = structs.replace(adjusted[key], collapsed=True)
        return [finding.judge(adjusted) for finding in findings]

    @property
    def is_unjudged_claim(self) -> bool:
        """Whether a claim that is adjusted for others has no test, since a part of its suite did not run."""
        return self.gate.claims and not self.examined and self.outcome == "not_judged"

    def judge(self, adjusted: Mapping[int, Adjusted]) -> GateResult:
        """The verdict on the gate, with any doubt about comparability in the reason.

        Args:
            adjusted: Of each test, by the id of its object; others are judged alone.
        """
        verdict = self._verdict(adjusted)
        return replace(verdict, reason=f"{verdict.reason}; {self.doubt}") if self.doubt else verdict

    def _verdict(self, adjusted: Mapping[int, Adjusted]) -> GateResult:
        """The verdict by adjusted p-values; of several groups, one that fails or is undecided decides."""
        gate = self.gate
        if not self.examined:
            return gate.result(self.outcome, self.value, self.reason)
        among = [adjusted.get(id(change), Adjusted(change.p_value)) for change in self.examined]
        verdicts = [(change.group, *change.verdict(own)) for change, own in zip(self.examined, among, strict=True)]
        undecided = any(change.undecided for change in self.examined)
        if gate.by is None:
            _, outcome, drop, reason = verdicts[0]
            evidence = self.examined[0].evidence
            low, high = (evidence is not None and gate.change_bounds(evidence.interval)) or (None, None)
            verdict = replace(gate.result(outcome, drop, reason), low=low, high=high, undecided=undecided)
            verdict = replace(verdict, **self.examined[0].known(among[0])._asdict())
            return _with_cause(verdict, zip(self.examined, among, strict=True))
        small = f"; not evaluated, under {counted(gate.min_cases, 'case')}: {listed(self.small, MOST_GROUPS)}"
        note = small if self.small else ""
        failed = [judgement for judgement in verdicts if judgement[1] == "failed"]
        worst_first = sorted(
            failed or verdicts, key=lambda judgement: math.inf if judgement[2] is None else -judgement[2]
        )
        group, outcome, drop, reason = worst_first[0]
        if failed:
            ordered = worst_first if len(failed) > MOST_GROUPS else failed
            failures = listed((f"{judgement[0]}: {judgement[3]}" for judgement in ordered), MOST_GROUPS, separator="; ")
            text = f"{len(failed)} of {len(verdicts)} groups fail: {failures}{note}"
        else:
            open_ = [judgement for judgement in verdicts if judgement[1] == "undecided"]
            outcome = "undecided" if open_ else outcome
            groups = counted(len(verdicts), "group")
            of_all = f"{len(open_)} of {groups} undecided" if open_ else f"all {groups} pass"
            text = f"{of_all}, {gate.worst} {group}: {reason}{note}"
        falls = [
            pair
            for pair, judgement in zip(zip(self.examined, among, strict=True), verdicts, strict=True)
            if judgement in failed
        ]
        known = _known_of_groups([change.known(own) for change, own in zip(self.examined, among, strict=True)])
        verdict = replace(gate.result(outcome, drop, text), undecided=undecided, **known._asdict())
        return _with_cause(verdict, falls)


def _check_test(test: SignificanceTest) -> None:
    """Reject a change gate with ``cluster_by`` whose test knows only pairs of single cases, such as McNemar's."""
    if test in _PAIRED_ONLY:
        raise ValueError(f"found cluster_by with test {test}, expected one of bootstrap, bca, permutation")


def _known_of_groups(changes: Sequence[WordedChange]) -> WordedChange:
    """The known change of a gate on groups: that of the first group with the most important word."""
    ranks: Sequence[ChangeWord] = ("worse", "cannot tell", "better", "no drop", "")
    return min(changes, key=lambda change: ranks.index(change.word))


def _with_cause(verdict: GateResult, falls: Iterable[tuple[ExaminedChange, Adjusted]]) -> GateResult:
    """The verdict on a gate with the cause of the falls that failed it, of each group if it has any."""
    if verdict.outcome != "failed":
        return verdict
    causes, fallen = list[str](), list[str]()
    for change, adjusted in falls:
        if cause := change.cause(adjusted.p_value):
            causes.append(f"{change.group}: {cause}" if change.group else cause)
            fallen += change.fallen
    return replace(verdict, cause=listed(causes, MOST_GROUPS, separator=" "), fallen=tuple(fallen))


def _describe_move(evidence: "Evidence") -> str:
    """Both runs' values of a gate's metric as text, with the digits that tell one from the other."""
    data = evidence.estimate
    return f"{number(data.baseline, data.value)} -> {number(data.value, data.baseline)}"


def _p(value: float) -> str:
    """A p-value in the text of a gate's verdict; tiny ones are shown as below a bound."""
    return f"below {_SMALLEST_SHOWN}" if value < _SMALLEST_SHOWN else number(value)
