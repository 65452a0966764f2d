"""Verdicts on metrics."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, Self, TypeAlias

from msgspec import Struct

from pytest_llmeval.core._codec import AnyNumber, WrittenField
from pytest_llmeval.core.wording import printable

_COMPARED: Final = re.compile(r" (?:>=|<=|==|>|<) ")
_SUBJECT: Final = re.compile(r"(?:\w+\()*(?P<metric>.+?)\)*")
"""The metric of a gate, perhaps inside a statistic or drop such as ``drop(mean(f1))``."""

_SLACK: Final = 1e-9

GateOutcome = Literal["passed", "failed", "undecided", "not_judged"]

ChangeWord: TypeAlias = Literal["worse", "better", "no drop", "cannot tell", ""]
"""What is known about a change: a fall is significant, a rise is, a drop that matters is ruled out, or none of them."""

SignificanceTest: TypeAlias = Literal["bootstrap", "bca", "mcnemar", "mcnemar_mid_p", "wilcoxon", "permutation"]

Statistic: TypeAlias = Literal["value", "mean"]

Abstention: TypeAlias = Literal["fell", "allowed"]

ChangeVerdict: TypeAlias = Literal["improved", "declined", "not_significant", "undecided"]


@dataclass(frozen=True, slots=True)
class GateResult:
    """The verdict on a gate.

    Attributes:
        gate: The gate as text.
        outcome: ``passed``, ``failed``, ``undecided`` (no drop that is possible could have been significant) or
            ``not_judged`` (part of the suite did not run).
        value: What was compared; with ``by``, the group that is furthest from its limit.
        limit: The number that it was compared with.
        reason: One sentence for people.
        line: Of the gate in its file; 0 if it has none.
        undecided: Whether nothing could have been significant; such a gate may have failed by the observed drop.
        low: Lower bound of the interval of `value`, where that is a change against another run; else the interval is
            that of the metric.
        high: Upper bound.
        cause: The fall in one sentence, with the cases and the label that explain it; empty unless a fall failed the
            gate.
        fallen: Ids of the cases that got worse, those that explain the fall first; empty without a `cause`.
        word: What is known about the change; empty for gates that compare nothing.
        known: The same in one sentence.
        moved: What the sentence begins with: the values before and now, and how many cases changed.
    """

    UNCHANGED: ClassVar = "unchanged in all "
    """In the reason of a gate on a change, before the number of cases."""

    gate: str
    outcome: GateOutcome
    value: AnyNumber | None = None
    limit: AnyNumber | None = None
    reason: str = ""
    line: int = 0
    undecided: Annotated[bool, WrittenField.IF_KNOWN] = False
    low: Annotated[AnyNumber | None, WrittenField.IF_KNOWN] = None
    high: Annotated[AnyNumber | None, WrittenField.IF_KNOWN] = None
    cause: Annotated[str, WrittenField.IF_KNOWN] = ""
    fallen: Annotated[Sequence[str], WrittenField.IF_KNOWN] = ()
    word: Annotated[ChangeWord, WrittenField.IF_KNOWN] = ""
    known: Annotated[str, WrittenField.IF_KNOWN] = ""
    moved: Annotated[str, WrittenField.IF_KNOWN] = ""

    @property
    def headline(self) -> str:
        """The cause of a fall, else the reason; of a gate that passed with all cases unchanged only that."""
        first = self.reason.partition("; ")[0]
        return first if self.outcome == "passed" and self.UNCHANGED in first else self.cause or self.reason

    @property
    def metric(self) -> str:
        """The metric that the gate is about, read from its text; empty if it names none.

        >>> [GateResult(gate, "passed").metric for gate in ("drop(mean(f1)) <= 0.02", "em >= 0.5 by language")]
        ['f1', 'em']
        """
        subject = _SUBJECT.fullmatch(_COMPARED.split(self.gate, maxsplit=1)[0])
        return "" if subject is None else subject["metric"]

    @property
    def is_past_limit(self) -> bool:
        """Whether a gate on a drop passed although the drop exceeds its limit, as it is not significant."""
        is_drop = bool(self.known) and "<=" in self.gate
        past = is_drop and self.value is not None and self.limit is not None and self.value > self.limit + _SLACK
        return past and self.outcome == "passed"

    def verdict_line(self, suite: str = "", why: str | None = None) -> str:
        """The verdict in one line for the terminal.

        Args:
            suite: Name of the suite, if several are listed.
            why: The reason; default: the headline.

        >>> GateResult("f1 >= 0.8", "failed", reason="f1 is 0.7").verdict_line("qa")
        'gate FAILED  qa: f1 >= 0.8  (f1 is 0.7)'
        """
        verdict = "NOT EVALUATED" if self.outcome == "not_judged" else self.outcome.upper()
        why = self.headline if why is None else why
        return printable(f"gate {verdict}  {f'{suite}: ' if suite else ''}{self.gate}{f'  ({why})' if why else ''}")


class MetricChange(Struct, frozen=True, omit_defaults=True):
    """The change of a metric between two runs, with its verdict: every report shows this one.

    Attributes:
        verdict: ``declined`` or ``improved`` if the change is significant, by Holm's method over the metrics of the
            comparison. A gate on a drop decides: ``declined`` if a fall failed it, ``undecided`` if it is undecided.
        baseline: Value in the baseline, over the cases compared; ``None`` if it has none.
        value: Likewise, of the run.
        difference: `value` minus `baseline`.
        low: Lower bound of the interval of `difference`; ``None`` if there is no interval.
        high: Upper bound.
        p_value: Of no difference, adjusted; ``None`` without a test.
        cases: Cases compared.
        statistic: ``value``, over summed counts, or ``mean``, of the scores of cases.
        detectable: The smallest true drop that is found in 80 of 100 runs, at the level that `p_value` is adjusted to.
            ``None`` if there is none, or it is not known.
        notes: Reasons to doubt the numbers.
    """

    verdict: ChangeVerdict
    baseline: Annotated[AnyNumber | None, WrittenField.ALWAYS] = None
    value: Annotated[AnyNumber | None, WrittenField.ALWAYS] = None
    difference: Annotated[AnyNumber | None, WrittenField.ALWAYS] = None
    low: Annotated[AnyNumber | None, WrittenField.ALWAYS] = None
    high: Annotated[AnyNumber | None, WrittenField.ALWAYS] = None
    p_value: Annotated[AnyNumber | None, WrittenField.ALWAYS] = None
    cases: Annotated[int, WrittenField.ALWAYS] = 0
    statistic: Statistic = "value"
    detectable: AnyNumber | None = None
    notes: Sequence[str] = ()

    def name_of(self, metric: str) -> str:
        """The name of the value that was compared, such as ``mean(f1)``."""
        return metric if self.statistic == "value" else f"mean({metric})"


class SystemDifference(Struct, frozen=True):
    """A metric of a system against the reference, over the cases of both.

    Attributes:
        value: Of the system.
        baseline: Of the reference.
        difference: `value` minus `baseline`.
        low: Lower bound of the interval of `difference`.
        high: Upper bound.
        cases: Cases compared.
        notes: What to keep in mind when reading the numbers.
        p_value: Of no difference, adjusted by Holm's method; ``None`` without a test.
        wins: Cases that score better than those of the reference.
        ties: Cases that score the same.
        losses: Cases that score worse.
    """

    value: AnyNumber | None
    baseline: AnyNumber | None
    difference: AnyNumber | None
    low: AnyNumber | None
    high: AnyNumber | None
    cases: int
    notes: Sequence[str]
    p_value: AnyNumber | None
    wins: int
    ties: int
    losses: int


ChangeKind: TypeAlias = Literal[
    "unchanged",
    "improved",
    "rose_within",
    "fell_within",
    "fell_beyond",
    "new",
    "vanished",
    "not_comparable",
    "missing",
    "unreadable",
    "not_written",
    "approved",
    "not_judged",
    "",
]


@dataclass(frozen=True, slots=True)
class SnapshotVerdict:
    """The verdict on one metric, or on the whole snapshot.

    Attributes:
        metric: The metric, or ``*``.
        kind: The change; empty if it is unknown.
        outcome: ``passed``, ``failed`` or ``not_judged`` (part of the suite did not run).
        value: In this run.
        approved: In the snapshot.
        reason: One sentence for people.
    """

    EVERYTHING: ClassVar = "*"
    """In place of a metric: the verdict is about the whole snapshot."""

    metric: str
    kind: ChangeKind = ""
    outcome: Literal["passed", "failed", "not_judged"] = "not_judged"
    value: AnyNumber | None = None
    approved: AnyNumber | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Strength:
    """The strength of one system, from comparisons of its answers with those of other systems.

    Attributes:
        system: Its name.
        value: Logarithm of its strength; the mean of all systems is 0.
        low: Lower bound of the interval; ``None`` if there is one case only.
        high: Upper bound.
    """

    system: str
    value: float | int
    low: float | int | None = None
    high: float | int | None = None


@dataclass(frozen=True, slots=True)
class Strengths:
    """The systems of a suite, compared in pairs.

    Attributes:
        label: Of the evaluator that compared them.
        systems: The strongest first.
        ties: How readily two equal systems tie: their ties are ``ties / (2 + ties)`` of all their pairs.
        pairs: How many comparisons there are.
        cases: How many cases have some.
    """

    label: str
    systems: Sequence[Strength]
    ties: float | int
    pairs: int
    cases: int

    @classmethod
    def rank(
        cls,
        label: str,
        systems: Iterable[tuple[str, float, float | None, float | None]],
        ties: float,
        pairs: int,
        cases: int,
    ) -> Self:
        """The comparison with the strongest system first.

        Args:
            label: Of the evaluator that compared them.
            systems: Name, strength and the bounds of its interval.
            ties: How readily two equal systems tie.
            pairs: How many comparisons there are.
            cases: How many cases have some.
        """
        strengths = [Strength(*system) for system in systems]
        return cls(label, sorted(strengths, key=lambda strength: -strength.value), ties, pairs, cases)
