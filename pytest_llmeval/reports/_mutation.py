"""The survival of mutants as text."""

from collections.abc import Iterator

from pytest_llmeval.core import counted, printable
from pytest_llmeval.reports._form import GateNotice, KindOutcome, Survival


def survival_lines(survival: Survival, limit: float = Survival.SHOWN_FROM) -> Iterator[str]:
    """Yield the terminal's report on mutation: which mutants survive in a suite, and its weaknesses.

    Args:
        survival: Of a suite.
        limit: The share of a kind of mutants that may survive.
    """
    yield from (printable(line) for line in _survival_lines(survival, limit))


def _survival_lines(survival: Survival, limit: float) -> Iterator[str]:
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
