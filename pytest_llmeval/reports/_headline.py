"""Whether a run can be merged, and the first sentence on a run that failed."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_llmeval.core import CaseRecord, GateResult, SnapshotVerdict, counted, excerpt
from pytest_llmeval.reports._form import CaseReport, FailureCause, RunReport, RunVerdict, SuiteReport
from pytest_llmeval.reports._overview import fallen_cases

_LONGEST = 100
"""Characters of a cause, or of an id, where the headline is one line."""
_NUMBER = re.compile(r"(?<![\w.])-?[0-9]{1,9}\.[0-9]{4}(?![\w.])")
_LIMIT = re.compile(r"\S{1,200} is \S{1,20}, expected [<>]=? \S{1,20}")
_CASE_LIMIT = re.compile(r"\S{1,200} \S{1,20}, limit [<>]=? \S{1,20}")
_WORD = re.compile(r"[^\W\d_]+")


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
        start = f"start with {named_case(excerpt(self.case, _LONGEST))}" if self.case else ""
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
                    metric = "" if score.metric == SnapshotVerdict.EVERYTHING else f"{score.metric} "
                    worse = fallen_cases(suite, before[place], score.metric)
                    return _headline(run, place, f"{metric}{score.reason.partition(';')[0]}", worse, "worse case")
        failing = [_find_failing_cases(suite, before[place]) for place, suite in enumerate(run.suites)]
        place = max(range(len(failing)), key=lambda at: len(failing[at]), default=0)
        if not failing or not failing[place]:
            return None
        suite = run.suites[place]
        metric = next(iter((*failing[place][0].unmet, *suite.gated)), "")
        worse = _worst_first(suite, failing[place], before[place], metric)
        alike = sum(case.reason == worse[0].reason for case in worse)
        which = f", {alike} with" if alike < len(worse) else ":"
        reason = f"{which} {_of_a_case(worse[0].reason)}" if worse[0].reason else ""
        return _headline(run, place, f"{len(worse)} of {counted(suite.total, 'case')} failed{reason}", worse, "failure")


class MergeAnswer(NamedTuple):
    """Whether a run can be merged, in the words of all reports.

    Attributes:
        words: The answer, such as ``Do not merge``.
        why: The reason in one line.
        doubt: What speaks against a run that passed; empty if nothing does.
        headline: The reason of a failed run in its parts; ``None`` for any other run.
    """

    words: str
    why: str = ""
    doubt: str = ""
    headline: Headline | None = None

    def __str__(self) -> str:
        answer = f"{self.words}: {self.why}" if self.why else self.words
        return f"{answer}, but {self.doubt}" if self.doubt else answer

    @property
    def markdown(self) -> str:
        """The answer as Markdown."""
        from pytest_llmeval.reports._markdown_text import text

        more = str(self).removeprefix(self.words)
        return f"**{self.words}**{more[:2]}{text(more[2:], cell=False)}"

    @classmethod
    def of_run(
        cls, run: RunReport, before: Sequence[Mapping[str, CaseReport]] | None = None, declined: int = 0
    ) -> "MergeAnswer":
        """Return the answer on a run.

        Args:
            run: The run.
            before: Cases of each suite in the approved run or baseline, by id; default: the approved cases.
            declined: Number of metrics that declined significantly although no gate failed.
        """
        words = _ANSWERS[run.verdict]
        match run.verdict:
            case "failed":
                headline = Headline.of_run(run, run.approved_cases() if before is None else before)
                return cls(words, "" if headline is None else str(headline), headline=headline)
            case "undecided":
                return cls(words, _undecided(run))
            case "incomplete":
                return cls(words, _incomplete(run))
            case "passed":
                if run.suites and not any(suite.can_fail for suite in run.suites):
                    return cls(_ANSWERS["incomplete"], "no limit, check, gate or approved score can fail")
                return cls(words, run.totals.text, _doubt(run, declined))


_ANSWERS: Mapping[RunVerdict, str] = {
    "passed": "Merge",
    "failed": "Do not merge",
    "undecided": "Check before you merge",
    "incomplete": "No answer",
}


def _doubt(run: RunReport, declined: int) -> str:
    """What speaks against a run although it passed."""
    past = sum(len(suite.past_limits) for suite in run.suites)
    limits = "its limit" if past == 1 else "their limits"
    counts = [(past, f"{counted(past, 'gate')} past {limits}, not significant")]
    counts += [(declined, f"{counted(declined, 'metric')} declined")]
    return ", ".join(words for count, words in counts if count)


def _undecided(run: RunReport) -> str:
    """How many gates of an undecided run could not decide."""
    outcomes = Counter(gate.outcome for suite in run.suites for gate in suite.gates)
    if not outcomes["undecided"]:
        return next(iter(run.conclusion.why), "") if run.conclusion is not None else ""
    failed = any(suite.counts.get(outcome) for suite in run.suites for outcome in CaseRecord.BAD)
    of_all = f"{outcomes['undecided']} of {counted(outcomes.total(), 'gate')} could not decide"
    return of_all if failed else f"nothing failed, but {of_all}"


def _incomplete(run: RunReport) -> str:
    """What an incomplete run lacks."""
    if not run.suites:
        return "no suite ran"
    gates = [gate for suite in run.suites for gate in suite.gates]
    if waiting := [gate for gate in gates if gate.outcome == "not_judged"]:
        return f"{len(waiting)} of {counted(len(gates), 'gate')} {waiting[0].reason or 'not evaluated'}"
    if absent := min(run.LARGEST_COUNT, sum(suite.counts.get("not_run", 0) for suite in run.suites)):
        return f"{absent} of {counted(run.total, 'case')} did not run"
    return "no case was scored" if any(suite.counts.get("not_scored") for suite in run.suites) else ""


def named_case(name: str) -> str:
    """A case's id in a sentence, quoted if it reads as a word of it.

    >>> named_case("a"), named_case("billing-028")
    ('"a"', 'billing-028')
    """
    return f'"{name}"' if _WORD.fullmatch(name) else name


def _short_numbers(text: str) -> str:
    """A sentence with three decimals at most, unless two of its numbers would become equal.

    >>> _short_numbers("f1 is 0.8940, expected >= 0.92"), _short_numbers("f1 is 0.8499, expected >= 0.85")
    ('f1 is 0.894, expected >= 0.92', 'f1 is 0.8499, expected >= 0.85')
    """
    numbers = set(re.findall(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?", text))
    shorter = {long: f"{float(long):.3f}".rstrip("0").rstrip(".") for long in _NUMBER.findall(text)}
    shorter = {long: "0" if short == "-0" else short for long, short in shorter.items()}
    values = {float(shorter.get(figure, figure)) for figure in numbers}
    if len(values) < len({float(figure) for figure in numbers}):
        return text
    return _NUMBER.sub(lambda match: shorter[match[0]], text)


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
    worse = _find_failing_cases(suite, before) or suite.cases
    metric = gate.metric
    scored = [case for case in worse if case.metrics.get(metric) is not None]
    scored = _worst_first(suite, scored, before, metric)
    noun = "failure" if worse is not suite.cases else ""
    cause = gate.headline.partition(". ")[0]
    whole = " for the suite" if _LIMIT.fullmatch(cause) else ""
    return _headline(run, place, f"{cause}{whole}", scored or (worse if noun else []), noun)


def _headline(run: RunReport, place: int, cause: str, worse: Sequence[CaseReport], noun: str) -> Headline:
    """The headline of a failed run, with the label that its worse cases share and the first case with this label."""
    suite = run.suites[place]
    alone = len({(suite.path, suite.base_name) for suite in run.suites}) == 1
    name = suite.variant if alone else suite.suite
    shared, first = "", worse[0].id if worse else ""
    if noun:
        common = FailureCause.of_cases([suite], [(suite, case) for case in worse])
        if common.label:
            several = counted(common.failures, noun)
            every = {1: f"the {noun}", 2: f"both {noun}s"}.get(common.failures, f"all {several}")
            share = every if common.shared == common.failures else f"{common.shared} of {several}"
            shared = f"{share} have {common.label}"
            key, _, value = common.label.partition("=")
            first = next((case.id for case in worse if case.labels.get(key) == value), first)
    return Headline(f"{name}{' ' if name else ''}{_short_numbers(cause)}", shared, place, first)


def _of_a_case(reason: str) -> str:
    """A failing case's reason in the headline, where a limit of each case differs from one of the suite."""
    return f"{reason} per case" if _CASE_LIMIT.fullmatch(reason) else reason


def _find_failing_cases(suite: SuiteReport, before: Mapping[str, CaseReport]) -> list[CaseReport]:
    """Cases of a suite that newly fail, or else all that fail, for the headline of a failed run."""
    failing = [case for case in suite.cases if case.outcome in CaseRecord.BAD]
    return [
        case for case in failing if before.get(case.id, CaseReport.not_run()).outcome not in CaseRecord.BAD
    ] or failing


def _worst_first(
    suite: SuiteReport, cases: Sequence[CaseReport], before: Mapping[str, CaseReport], metric: str
) -> list[CaseReport]:
    """A suite's cases by their fall in a metric, then by its score; cases without a score are last."""
    sign = -1 if metric in suite.lower_is_better else 1

    def rank(case: CaseReport) -> tuple[bool, float, float]:
        now, then = case.metrics.get(metric), before.get(case.id, CaseReport.not_run()).metrics.get(metric)
        if now is None:
            return True, 0.0, 0.0
        return False, 0.0 if then is None else sign * (now - then), sign * now

    return sorted(cases, key=rank)
