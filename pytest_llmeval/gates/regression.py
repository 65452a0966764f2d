"""Gates against a baseline: allowed drop, rule and test."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast, get_args

from pytest_llmeval.core.wording import counted, limit
from pytest_llmeval.gates.limits import check_counts, split_statistic

SignificanceTest: TypeAlias = Literal["bootstrap", "bca", "mcnemar", "mcnemar_mid_p", "wilcoxon", "permutation"]
Statistic: TypeAlias = Literal["value", "mean"]
Undecided: TypeAlias = Literal["observed", "pass", "fail"]
GateRule: TypeAlias = Literal["proven_drop", "proven_safe", "anytime"]

Alternative: TypeAlias = Literal["two_sided", "less"]
Adjustment: TypeAlias = Literal["familywise", "fdr"]

REGRESSION_KEYS = (
    "max_drop",
    "max_drift",
    "against",
    "min_gain",
    "rule",
    "test",
    "confidence",
    "alternative",
    "cluster_by",
    "primary",
    "adjust",
    "max_left_out",
    "undecided",
)
"""Keys of gates against a baseline or another system only."""


_DRIFT = 3
"""How many drops of the size of `max_drop` may add up."""

_SINGLE_RUN = ("test", "by", "partial", "alternative", "primary")
"""What has no meaning for a rule that weighs many runs."""

_PAIRED_ONLY: tuple[SignificanceTest, ...] = ("mcnemar", "mcnemar_mid_p", "wilcoxon")


@dataclass(frozen=True, slots=True)
class RegressionGate:
    """A limit on how much a metric may have fallen since the baseline.

    Attributes:
        metric: A metric of the suite, or ``pass_rate``.
        max_drop: The drop that is allowed, in the metric's own unit; where less is better, a rise is the drop.
        confidence: With which the rule wants its proof.
        rule: ``proven_drop`` fails if it is established that the drop is larger; ``proven_safe`` fails unless it is
            established that it is smaller; ``anytime`` fails if the runs since the approval, weighed together,
            establish that it is larger, at a level that holds however many runs follow.
        test: How that is established.
        statistic: ``value`` or ``mean``.
        cluster_by: A label; cases with the same value of it count as one.
        by: Judge every group of this label on its own.
        min_cases: Groups of which fewer cases can be compared are not judged.
        max_errors: How many errored cases are tolerated.
        max_skipped: How many cases may be skipped at run time, by a target, a fixture or a mark; tags are free.
        partial: Judge even if some cases did not run.
        alternative: ``two_sided``, as the interval; ``less`` spends the whole level on runs that are worse.
        primary: Whether the gate is judged at the full level, beside other primary gates only.
        adjust: With `by`: ``familywise`` bounds the chance that any group fails by chance, ``fdr`` the expected share
            of such groups among those that fail.
        min_scored: How many cases must be compared; with fewer, the gate fails.
        max_left_out: How many cases may be left out of the comparison; ``None``: none for ``proven_safe``, else any.
        max_drift: The drop below the anchor that is allowed; ``None``: three times `max_drop`.
        anchored: Whether the gate is about the anchor instead of the last approval.
        system: The system that the gate is about; empty for every one.
        against: The system that it is compared with; empty for the baseline.
        gains: Whether the metric must have risen, by the negative of `max_drop`.
        undecided: What counts where no drop that is possible could have been established: the ``observed`` one, or
            the gate does ``pass`` or ``fail``.
        line: In its file; 0 where it has none.
    """

    metric: str
    max_drop: float
    confidence: float = 0.95
    rule: GateRule = "proven_drop"
    test: SignificanceTest = "bootstrap"
    statistic: Statistic = "value"
    cluster_by: str | None = None
    by: str | None = None
    min_cases: int = 1
    max_errors: int = 0
    max_skipped: int = 0
    partial: bool = False
    alternative: Alternative = "two_sided"
    primary: bool = False
    adjust: Adjustment = "familywise"
    min_scored: int = 0
    max_left_out: int | None = None
    max_drift: float | None = None
    anchored: bool = False
    system: str = ""
    against: str = ""
    gains: bool = False
    undecided: Undecided = "observed"
    line: int = field(default=0, repr=False, compare=False)

    def __str__(self) -> str:
        text = f"{'drift' if self.anchored else 'drop'}({self.subject}) <= {limit(self.max_drop)}"
        if self.gains:
            text = f"gain({self.subject}) >= {limit(self.least_gain)}"
        extras = [
            f"against {self.against}" if self.against else "",
            self.rule if self.rule != _default_rule(gains=self.gains) else "",
            self.test if self.test != "bootstrap" else "",
            f"confidence {limit(self.confidence)}" if self.confidence != 0.95 else "",  # noqa: PLR2004 (the default)
            self.alternative if self.alternative != "two_sided" else "",
            f"cluster_by {self.cluster_by}" if self.cluster_by else "",
            self.adjust if self.adjust != "familywise" else "",
        ]
        text = ", ".join([text, *filter(None, extras)])
        return f"{text} by {self.by}" if self.by else text

    @property
    def subject(self) -> str:
        """The metric as the gate names it."""
        return self.metric if self.statistic == "value" else f"{self.statistic}({self.metric})"

    @property
    def claims(self) -> bool:
        """Whether what the gate establishes is a claim of its own, to be adjusted with those of the gates beside it."""
        return self.rule == "proven_drop" or self.gains

    @property
    def sides(self) -> int:
        """On how many sides of the difference the test may err."""
        return 1 if self.alternative == "less" else 2

    @property
    def interval_confidence(self) -> float:
        """The confidence of the interval whose bound says the same as the test."""
        return 1 - 2 * (1 - self.confidence) / self.sides

    @property
    def left_out_limit(self) -> float:
        """How many cases may be left out."""
        if self.max_left_out is not None:
            return self.max_left_out
        return 0 if self.rule == "proven_safe" else math.inf

    @property
    def least_gain(self) -> float:
        """The gain that is wanted."""
        return abs(self.max_drop)

    @property
    def drift(self) -> "RegressionGate":
        """The gate on what is lost since the anchor, which many drops within `max_drop` add up to."""
        allowed = _DRIFT * self.max_drop if self.max_drift is None else self.max_drift
        return replace(self, max_drop=allowed, rule="proven_drop", max_drift=None, anchored=True)


def clustered(gate: RegressionGate, cluster_by: str | None) -> RegressionGate:
    """Return a gate with the clusters of its suite, unless it names others.

    Raises:
        ValueError: Its test supports no clusters.
    """
    if cluster_by is None or gate.cluster_by is not None:
        return gate
    _check_test(gate.test)
    return replace(gate, cluster_by=cluster_by)


def _check_test(test: SignificanceTest) -> None:
    if test in _PAIRED_ONLY:
        raise ValueError(f"found cluster_by with test {test}, expected one of bootstrap, bca, permutation")


def regression_from_mapping(data: Mapping[str, Any]) -> RegressionGate:
    """Build a gate from its mapping form, whose types have been checked.

    Raises:
        ValueError: A number is out of range, or keys exclude each other.
    """
    gains = data.get("min_gain") is not None
    key = "min_gain" if gains else "max_drop"
    change = data.get(key)
    if change is None:
        given = next(key for key in REGRESSION_KEYS if data.get(key) is not None)
        raise ValueError(f"found {given} without max_drop, expected both: {given} applies to drops")
    for other in ("min", "max", "max_drop"):
        if other != key and data.get(other) is not None:
            raise ValueError(f"found {other} beside {key}, expected only one of them: write two gates")
    if not 0 <= change < math.inf:
        raise ValueError(f"found {key} {change}, expected a finite number of at least 0")
    _check_systems(data)
    confidence = 0.95 if data.get("confidence") is None else data["confidence"]
    if not 0 < confidence < 1:
        raise ValueError(f"found confidence {confidence}, expected a number between 0 and 1, such as 0.95")
    if data.get("alternative") == "less" and confidence <= 0.5:  # noqa: PLR2004 (no interval is below)
        raise ValueError(f"found confidence {confidence} with alternative less, expected more than 0.5")
    if data.get("adjust") is not None and data.get("by") is None:
        raise ValueError("found adjust without by, expected both: it says how groups are judged together")
    statistic, metric = split_statistic(data["metric"])
    if statistic not in get_args(Statistic):
        raise ValueError(f"found {data['metric']!r} with max_drop, expected a metric or its mean, such as mean(f1)")
    if data.get("test") is not None and data.get("cluster_by") is not None:
        _check_test(data["test"])
    if data.get("rule") == "anytime" and (strange := [key for key in _SINGLE_RUN if data.get(key)]):
        raise ValueError(f"found {strange[0]} with rule anytime, expected neither: it watches whole suites run by run")
    max_drift = data.get("max_drift")
    if max_drift is not None and not change <= max_drift < math.inf:
        raise ValueError(f"found max_drift {max_drift}, expected a finite number of at least max_drop")
    check_counts(data)
    if data.get("undecided") is not None and (gains or data.get("rule") not in (None, "proven_drop")):
        raise ValueError("found undecided with a gate that wants proof, expected it with rule proven_drop only")
    optional = (
        *("test", "cluster_by", "by", "alternative", "primary", "adjust", "max_left_out", "system", "against"),
        "undecided",
    )
    others = {key: data[key] for key in optional if data.get(key) is not None}
    return RegressionGate(
        metric,
        -float(change) if gains else float(change),
        float(confidence),
        data.get("rule") or _default_rule(gains=gains),
        gains=gains,
        statistic=cast("Statistic", statistic),
        min_cases=int(data.get("min_cases") or 1),
        max_errors=int(data.get("max_errors") or 0),
        max_skipped=int(data.get("max_skipped") or 0),
        partial=bool(data.get("partial")),
        min_scored=int(data.get("min_scored") or 0),
        max_drift=None if max_drift is None else float(max_drift),
        **others,
    )


def _default_rule(*, gains: bool) -> GateRule:
    """Return the rule of a gate that names none: a gain that is asked for has to be proven."""
    return "proven_safe" if gains else "proven_drop"


def _check_systems(data: Mapping[str, Any]) -> None:
    """Check what a gate says about systems.

    Raises:
        ValueError: It contradicts itself.
    """
    against = data.get("against")
    if against is None:
        if data.get("min_gain") is not None:
            raise ValueError("found min_gain without against, expected both: a gain is one over another system")
        return
    if against == data.get("system"):
        raise ValueError(f"found {against!r} as system and as against, expected two systems")
    if data.get("max_drift") is not None or data.get("rule") == "anytime":
        strange = "max_drift" if data.get("max_drift") is not None else "rule anytime"
        raise ValueError(f"found {strange} with against, expected neither: it is about a baseline")


_COUNTS = {"observed": "the observed drop counts", "pass": "the gate never fails", "fail": "the gate always fails"}


def never_decided(gates: Sequence[RegressionGate], units: Callable[[str | None], int]) -> Iterator[str]:
    """Yield the gates that cannot establish any drop, however large, with the reason; those by groups aside.

    If each of n independent cases falls, a sign test has the one-sided p-value 2^-n, and no test a smaller one.

    Args:
        gates: Of a suite; they are judged together.
        units: Returns the number of clusters by a label, or of cases for ``None``.
    """
    judged = [gate for gate in gates if gate.rule == "proven_drop" and not gate.gains]
    for gate in judged:
        among = sum(other.primary is gate.primary for other in judged)
        level = (1 - gate.confidence) / gate.sides / among
        count = units(gate.cluster_by)
        if gate.by is None and 0.5 ** (count + (gate.test == "mcnemar_mid_p")) > level:
            drawn = counted(count, "cluster" if gate.cluster_by else "case")
            beside = f" beside {counted(among - 1, 'other gate')}" if among > 1 else ""
            yield f"{gate}: with {drawn}{beside} no drop can be established: {_COUNTS[gate.undecided]}"
