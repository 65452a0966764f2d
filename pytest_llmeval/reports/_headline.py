"""The first sentence on a run that failed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_llmeval.core import BAD, EVERYTHING, GateResult, counted, excerpt
from pytest_llmeval.numbers import TOLERANCE
from pytest_llmeval.reports._failures import cause_of
from pytest_llmeval.reports._form import NO_CASE, CaseReport, RunReport, SuiteReport, gated_metrics

_LONGEST = 100
"""Characters of a cause, or of an id, where the headline is one line."""


class Headline(NamedTuple):
    """The first sentence on a failed run: its cause, the label that worse cases share, and the case to begin with.

    Attributes:
        cause: The first faulty file, failed gate or approved score, else the failing cases.
        shared: How many of the worse cases share a label; empty if no label explains them.
        place: Of the suite in the run.
        case: Id of a case of this suite; empty if no case shows the cause.
    """

    cause: str
    shared: str = ""
    place: int = 0
    case: str = ""

    def __str__(self) -> str:
        start = f"start with {excerpt(self.case, _LONGEST)}" if self.case else ""
        return "; ".join(filter(None, [excerpt(self.cause, _LONGEST), self.shared, start]))

    @classmethod
    def of_run(cls, run: RunReport, before: Sequence[Mapping[str, CaseReport]]) -> "Headline | None":
        """The headline of a run that failed; ``None`` for any other run.

        Args:
            run: The run.
            before: Cases of each suite in the approved run or baseline, by id; empty if it is not there.
        """
        if run.verdict != "failed":
            return None
        for path, faults in run.faults.items():
            return cls(faults[0] if faults and faults[0].startswith(path) else f"{path}: {next(iter(faults), '')}")
        gates = [
            (place, gate) for place, suite in enumerate(run.suites) for gate in suite.gates if gate.outcome == "failed"
        ]
        for place, gate in sorted(gates, key=lambda judged: not judged[1].fallen):
            return _headline_of_gate(run, place, gate, before[place])
        for place, suite in enumerate(run.suites):
            for score in suite.snapshot:
                if score.outcome == "failed":
                    metric = "" if score.metric == EVERYTHING else f"{score.metric} "
                    worse = fallen_cases(suite, before[place], score.metric)
                    return _headline(run, place, f"{metric}{score.reason.partition(';')[0]}", worse, "worse case")
        failing = [_failing(suite, before[place]) for place, suite in enumerate(run.suites)]
        place = max(range(len(failing)), key=lambda at: len(failing[at]), default=0)
        if not failing or not failing[place]:
            return None
        suite = run.suites[place]
        metric = next(iter((*failing[place][0].unmet, *suite.gated)), "")
        worse = _worst_first(suite, failing[place], before[place], metric)
        alike = sum(case.reason == worse[0].reason for case in worse)
        which = f", {alike} with" if alike < len(worse) else ":"
        reason = f"{which} {worse[0].reason}" if worse[0].reason else ""
        return _headline(run, place, f"{len(worse)} of {counted(suite.total, 'case')} failed{reason}", worse, "failure")


def undecided_text(run: RunReport) -> str:
    """A sentence on how many gates of an undecided run could not decide; empty for any other run."""
    outcomes = Counter(gate.outcome for suite in run.suites for gate in suite.gates)
    if run.verdict != "undecided" or not outcomes["undecided"]:
        return ""
    of_all = f"{outcomes['undecided']} of {counted(outcomes.total(), 'gate')} could not decide"
    return f"Passed; {of_all}" if outcomes["passed"] else of_all


def _headline_of_gate(run: RunReport, place: int, gate: GateResult, before: Mapping[str, CaseReport]) -> Headline:
    """The headline of a run that failed at a gate: the gate's cause and its worst case."""
    suite = run.suites[place]
    if gate.fallen:
        cause = gate.cause.partition(". ")[0]
        return _headline(run, place, cause, [suite.case(name) for name in gate.fallen], "worse case")
    errored = [case for case in suite.cases if case.outcome == "errored"]
    if errored and "errored" in gate.reason:
        reason = f": {errored[0].reason}" if errored[0].reason else ""
        cause = f"{len(errored)} of {counted(suite.total, 'case')} errored{reason}"
        return _headline(run, place, cause, errored, "error")
    worse = _failing(suite, before) or suite.cases
    metric = next(iter(gated_metrics([gate.gate])), "")
    scored = [case for case in worse if case.metrics.get(metric) is not None]
    scored = _worst_first(suite, scored, before, metric)
    noun = "failure" if worse is not suite.cases else ""
    return _headline(run, place, gate.headline.partition(". ")[0], scored or (worse if noun else []), noun)


def _headline(run: RunReport, place: int, cause: str, worse: Sequence[CaseReport], noun: str) -> Headline:
    """The headline of a failed run, with the label that its worse cases share and the first of these cases."""
    suite = run.suites[place]
    alone = len({(suite.path, suite.base_name) for suite in run.suites}) == 1
    name = suite.variant if alone else suite.suite
    shared = ""
    if noun:
        common = cause_of([suite], [(suite, case) for case in worse])
        shared = f"{common.shared} of {counted(common.failures, noun)} have {common.label}" if common.label else ""
    return Headline(f"{name}{' ' if name else ''}{cause}", shared, place, worse[0].id if worse else "")


def _failing(suite: SuiteReport, before: Mapping[str, CaseReport]) -> list[CaseReport]:
    """Cases of a suite that newly fail, or else all that fail, for the headline of a failed run."""
    failing = [case for case in suite.cases if case.outcome in BAD]
    return [case for case in failing if before.get(case.id, NO_CASE).outcome not in BAD] or failing


def _worst_first(
    suite: SuiteReport, cases: Sequence[CaseReport], before: Mapping[str, CaseReport], metric: str
) -> list[CaseReport]:
    """A suite's cases by their fall in a metric, then by its score; cases without a score are last."""
    sign = -1 if metric in suite.lower_is_better else 1

    def rank(case: CaseReport) -> tuple[bool, float, float]:
        now, then = case.metrics.get(metric), before.get(case.id, NO_CASE).metrics.get(metric)
        if now is None:
            return True, 0.0, 0.0
        return False, 0.0 if then is None else sign * (now - then), sign * now

    return sorted(cases, key=rank)


def fallen_cases(suite: SuiteReport, before: Mapping[str, CaseReport], metric: str) -> list[CaseReport]:
    """A suite's cases whose score of a metric got worse since an earlier run, the largest fall first."""
    sign = -1 if metric in suite.lower_is_better else 1
    falls = []
    for case in suite.cases:
        now, then = case.metrics.get(metric), before.get(case.id, NO_CASE).metrics.get(metric)
        if now is not None and then is not None and sign * (then - now) > TOLERANCE:
            falls.append((sign * (then - now), case))
    return [case for _, case in sorted(falls, key=lambda fall: -fall[0])]
