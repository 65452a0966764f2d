"""The survival of mutants, and its report as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from msgspec import Struct, field

from pytest_llmeval.core import counted, printable

_MOST_NAMED: Final = 5


class KindOutcome(Struct, frozen=True):
    """The mutants of one kind in a report on mutation, by outcome.

    Attributes:
        name: The mutator.
        why: Why its result is wrong; for rewrites, why it is not.
        advice: A check or metric that would notice it.
        mutants: How many there are.
        survived: How many the suite does not notice: the case passes, and no metric that gates or approved scores judge
            gets worse. For rewrites, how many it takes for errors: the case fails.
        undecided: How many only a judge could notice, who was not asked; they have neither survived nor been noticed.
        low: Lower bound of the share that survived, by Wilson at 95 %; ``None`` if all are undecided.
        high: Upper bound.
        by_evaluator: Evaluator to how many mutants make none of its metrics worse; without those that only a judge
            could notice.
    """

    name: str
    why: str = ""
    advice: str = ""
    mutants: int = 0
    survived: int = 0
    undecided: int = 0
    low: float | int | None = None
    high: float | int | None = None
    by_evaluator: Mapping[str, int] = field(default_factory=dict)

    COMPUTED: ClassVar = {"rate": "by_evaluator"}

    @property
    def decided(self) -> int:
        """The number of mutants that either survived or were noticed."""
        return self.mutants - self.undecided

    @property
    def rate(self) -> float | None:
        """The share of decided mutants that survived, in [0, 1]; ``None`` if there are none."""
        return self.survived / self.decided if self.decided else None


class GateNotice(Struct, frozen=True):
    """The share of broken answers from which a gate fails, in a report on mutation.

    Attributes:
        gate: The gate.
        share: The smallest share of broken answers, in (0, 1], from which on it fails in half of the mixtures; ``None``
            if it passes in most of them even if all answers are broken.
        sure_share: As above, from which on it fails in `POWER` of them.
        never: Whether it passes even if every answer is the mutant that is worst for it.
        power: Share of broken answers to the share of mixtures in which it fails.
        unjudged: Why it cannot be judged on mutants; empty if it can.
    """

    gate: str
    share: float | int | None = None
    sure_share: float | int | None = None
    never: bool = False
    power: Mapping[str, float | int] = field(default_factory=dict)
    unjudged: str = ""

    POWER: ClassVar = 0.8
    """The share of mixtures in which a gate has to fail, to notice a share of broken answers with power."""


class Survival(Struct, frozen=True):
    """The report on mutation of a suite, or of one of its systems: the mutants that it would notice.

    Attributes:
        suite: Its name, with the system in brackets.
        path: The file, relative to pytest's rootdir; empty if the command was given it.
        kinds: Of mutants, those that survive most first.
        rewrites: Equivalent answers, with how many the suite takes for errors.
        gates: The sensitivity of each gate.
        blind_cases: Cases of which every mutant survives.
        idle_limits: Thresholds that no mutant misses.
        left_out: Why cases, metrics or evaluators are left out.
        constant: The class that a system may always say without failing a gate; ``None`` if a gate fails, or there are
            no gates or classes.
        answers: How many answers were changed.
        seed: Of everything random.
    """

    SHOWN_FROM: ClassVar = 0.2
    """The share of a kind of mutants that may survive before that is a finding."""

    suite: str
    path: str = ""
    kinds: Sequence[KindOutcome] = ()
    rewrites: Sequence[KindOutcome] = ()
    gates: Sequence[GateNotice] = ()
    blind_cases: Sequence[str] = ()
    idle_limits: Sequence[str] = ()
    left_out: Sequence[str] = ()
    constant: str | None = None
    answers: int = 0
    seed: int = 0

    COMPUTED: ClassVar = {"mutants": "seed", "undecided": "mutants", "rate": "undecided", "findings": "rate"}

    @property
    def findings(self) -> list[str]:
        """Weaknesses of the suite that mutants show, a sentence each."""
        return list(self.weaknesses(self.SHOWN_FROM))

    @property
    def mutants(self) -> int:
        """The number of mutants in the report on mutation."""
        return sum(kind.mutants for kind in self.kinds)

    @property
    def undecided(self) -> int:
        """The number of mutants that only a judge could notice."""
        return sum(kind.undecided for kind in self.kinds)

    @property
    def rate(self) -> float | None:
        """The share of decided mutants that survived, in [0, 1]; ``None`` without any."""
        decided = self.mutants - self.undecided
        return sum(kind.survived for kind in self.kinds) / decided if decided else None

    def weaknesses(self, limit: float) -> Iterator[str]:
        """Yield the weaknesses of a suite that mutants show, a sentence each, with advice.

        Args:
            limit: The share of a kind of mutants that may survive.
        """
        for kind in self.kinds:
            if kind.rate is not None and kind.rate > limit:
                share = f"{kind.survived} of {kind.decided}"
                advice = f": try {kind.advice}" if kind.advice else ""
                yield f"{kind.name}: {share} pass although {kind.why}{advice}"
        for gate in self.gates:
            if gate.never:
                yield f"gate {gate.gate}: passes even if all answers are broken: raise it, or judge another metric"
        if self.constant is not None:
            yield f"no gate fails if every answer is {self.constant!r}: try a gate on macro F1, or on each class"
        if self.blind_cases:
            named = _few_of(self.blind_cases)
            yield f"cases that pass with every answer: {named}: give them an expectation or checks"
        if self.idle_limits:
            yield f"thresholds that no broken answer misses: {_few_of(self.idle_limits)}: raise them"
        for kind in self.rewrites:
            if kind.rate is not None and kind.rate > limit:
                yield f"{kind.name}: {kind.survived} of {kind.mutants} fail although {kind.why}: the suite cries wolf"

    def lines(self, limit: float = SHOWN_FROM) -> Iterator[str]:
        """Yield the terminal's report on mutation: which mutants survive in a suite, and its weaknesses.

        Args:
            limit: The share of a kind of mutants that may survive.
        """
        return map(printable, _lines(self, limit))


def _few_of(names: Sequence[str]) -> str:
    """The first names of cases or limits in a report's sentence on surviving mutants, and how many more there are."""
    more = [f"and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return ", ".join([*names[:_MOST_NAMED], *more])


def _lines(survival: Survival, limit: float) -> Iterator[str]:
    """Yield the lines of the report on mutation before control characters are escaped."""
    from tabulate import tabulate

    yield f"{survival.suite}: {counted(survival.mutants, 'mutant')}, {_survival_rate(survival)}"
    yield from (f"  {reason}" for reason in survival.left_out)
    judged = survival.undecided > 0
    for title, kinds, word in (
        ("wrong answers", survival.kinds, "survive"),
        ("equivalent answers, taken for wrong", survival.rewrites, "fail"),
    ):
        if not kinds:
            continue
        headers = ["", "made", word, "95% interval"]
        rows = [[kind.name, kind.mutants, _survivor_share(kind.rate), _survivor_interval(kind)] for kind in kinds]
        if kinds is survival.kinds:
            headers += [*(["undecided"] if judged else []), "and no metric fell of"]
            for row, outcome in zip(rows, kinds, strict=True):
                row += [*([outcome.undecided] if judged else []), _blind_evaluators(outcome)]
        table = tabulate(rows, headers, tablefmt="plain", disable_numparse=True)
        yield from ("", title, *map(str.rstrip, table.splitlines()))
    if survival.gates:
        yield ""
    yield from (f"gate {gate.gate}: {_gate_notice(gate)}" for gate in survival.gates)
    yield ""
    faults = list(survival.weaknesses(limit))
    if faults:
        yield from (f"- {fault}" for fault in faults)
    elif survival.rate is None:
        yield "so nothing is known of what the suite would notice"
    else:
        yield "nothing to fix was found"


def _survival_rate(survival: Survival) -> str:
    """The share of a suite's mutants that survive, in the words of the report on mutation."""
    if not survival.mutants:
        return "no answer could be changed"
    if survival.rate is None:
        return "only a judge could notice them"
    return f"{_survivor_share(survival.rate)} survive"


def _survivor_share(rate: float | None) -> str:
    """A share of surviving mutants in per cent; ``-`` if it is unknown."""
    return "-" if rate is None else f"{rate:.0%}"


def _survivor_interval(kind: KindOutcome) -> str:
    """The confidence interval of a mutant kind's survival rate; ``-`` if it is unknown."""
    return "-" if kind.low is None or kind.high is None else f"{kind.low:.0%}..{kind.high:.0%}"


def _blind_evaluators(kind: KindOutcome) -> str:
    """Labels of the evaluators that noticed no mutant of a kind."""
    return ", ".join(label for label, unmoved in kind.by_evaluator.items() if unmoved == kind.mutants)


def _gate_notice(gate: GateNotice) -> str:
    """The share of broken answers from which a gate fails, in the words of the report on mutation."""
    if gate.unjudged:
        return gate.unjudged
    if gate.never:
        return "never fails"
    if gate.share is None:
        return "fails only if all answers are broken badly"
    sure = (
        "never with more certainty"
        if gate.sure_share is None
        else f"with {gate.POWER:.0%} power from {gate.sure_share:.0%}"
    )
    return f"fails from {gate.share:.0%} broken answers on, {sure}"
