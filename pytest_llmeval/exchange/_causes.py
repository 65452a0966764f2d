"""The causes of verdicts on results."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from pytest_llmeval.core import counted, listed

_LISTED: Final = 5


class Situation(Struct, frozen=True):
    """The facts about results, their baseline and the options of ``llmeval gate``, before results are judged.

    Attributes:
        files: The files of results.
        itself: The file that is compared with itself; empty if none is.
        suites: The suite here, and that of the baseline, if none is in common.
        cases: The first case here, and in the baseline, if none is in common.
        gone: Metrics that only the baseline has.
        new: Metrics that only the results have.
        rescaled: Sentences about metrics on another scale.
        moved: The sentence about ids that are positions, of which the runs have other numbers.
        skipped: Cases that were skipped, and have a score in the baseline.
        missing: Sentences about what else is missing.
        errored: Cases that errored in what gates read.
        again: The runner's own command that repeats these; empty if it is not known.
        approving: What makes results the baseline; empty beside a baseline that is a file.
        approves: Whether the results are approved.
        reasons: Those of gates that are undecided.
        alike: Labels whose cases change alike, although nothing is clustered by them.
        pages: Reports that are written.
        options: Names of options that were given.
    """

    files: Sequence[str] = ()
    itself: str = ""
    suites: tuple[str, str] | None = None
    cases: tuple[str, str] | None = None
    gone: Sequence[str] = ()
    new: Sequence[str] = ()
    rescaled: Sequence[str] = ()
    moved: str = ""
    skipped: Sequence[str] = ()
    missing: Sequence[str] = ()
    errored: Sequence[str] = ()
    again: str = ""
    approving: str = ""
    approves: bool = False
    reasons: Sequence[str] = ()
    alike: Sequence[str] = ()
    pages: Sequence[str] = ()
    options: frozenset[str] = frozenset()

    @property
    def opens(self) -> Iterator[str]:
        """The sentences of all causes that keep the verdict open."""
        for cause in CAUSES.values():
            if cause.opens and cause.holds(self):
                yield cause.sentence(self)

    @property
    def is_measured(self) -> bool:
        """Whether all is there that the verdict needs, so that only chance can keep it open."""
        return not any(cause.hides and cause.holds(self) for cause in CAUSES.values())


class VerdictCause(NamedTuple):
    """A cause of a verdict on results, with its condition, its sentence and its next step.

    Attributes:
        holds: Whether it is one.
        sentence: What it is.
        step: What to do about it.
        opens: Whether it keeps a verdict open.
        hides: Whether something was not measured, which no option accepts.
    """

    holds: Callable[[Situation], object]
    sentence: Callable[[Situation], str]
    step: Callable[[Situation], str]
    opens: bool = True
    hides: bool = True


def _suites(facts: Situation) -> str:
    """The sentence for results whose suite is not that of the baseline."""
    here, there = facts.suites or ("", "")
    return f"the suite is {here!r} here and {there!r} in the baseline"


def _cases(facts: Situation) -> str:
    """The sentence for results that have no case in common with the baseline."""
    here, there = facts.cases or ("", "")
    return f"no case is in common: the first is {here!r} here and {there!r} in the baseline"


def _gone(facts: Situation) -> str:
    """The sentence for metrics of the baseline that the results lack."""
    gone, new = listed(facts.gone, _LISTED), listed(facts.new, _LISTED)
    verb = "is" if len(facts.gone) == 1 else "are"
    if facts.new and len(facts.gone) == len(facts.new):
        return f"{gone} {verb} gone, {new} {verb} new: renamed?"
    return f"{gone} {verb} gone: the baseline has scores of it" if verb == "is" else f"{gone} are gone"


def _measure_again(facts: Situation) -> str:
    """The next step for metrics that the results lack: rename or measure them."""
    gone, new = listed(facts.gone, _LISTED), listed(facts.new, _LISTED)
    if facts.new and len(facts.gone) == len(facts.new):
        return f"call {new} as in the baseline, {gone}, if it is the same"
    return f"measure {gone} again"


def _new(facts: Situation) -> str:
    """The sentence for metrics that the baseline does not have."""
    return f"{listed(facts.new, _LISTED)} {'is' if len(facts.new) == 1 else 'are'} new: nothing to compare with yet"


def _approve_new(facts: Situation) -> str:
    """The next step for new metrics: approve them, or take them into the baseline."""
    names = listed(facts.new, _LISTED)
    return f"approve {names}: {facts.approving}" if facts.approving else f"take {names} into the baseline of later runs"


def _again(facts: Situation) -> str:
    """The next step for errored cases: run them again, with the tool's own command if it is known."""
    names = listed(map(repr, facts.errored), _LISTED)
    own = f": {facts.again.format(files=shlex.join(facts.files))}" if facts.again else ""
    return f"run the cases that errored again ({names}){own}"


CAUSES: Final[Mapping[str, VerdictCause]] = {
    "itself": VerdictCause(
        lambda facts: facts.itself,
        lambda facts: f"{facts.itself} is compared with itself",
        lambda facts: f"pass the results of another run than {facts.itself}",
        opens=False,
        hides=False,
    ),
    "suites": VerdictCause(
        lambda facts: facts.suites,
        _suites,
        lambda facts: f"pass a baseline of the suite {facts.suites[0]!r}" if facts.suites else "",
    ),
    "cases": VerdictCause(
        lambda facts: facts.cases,
        _cases,
        lambda _: "pass a baseline of the same data set, with the same ids",
    ),
    "moved": VerdictCause(
        lambda facts: facts.moved,
        lambda facts: facts.moved,
        lambda _: "give the cases ids of their own, such as pytest.param(..., id='refund'), in both runs",
    ),
    "gone": VerdictCause(lambda facts: facts.gone, _gone, _measure_again),
    "rescaled": VerdictCause(
        lambda facts: facts.rescaled,
        lambda facts: "; ".join(facts.rescaled),
        lambda _: "write the scores of both runs on one scale",
    ),
    "skipped": VerdictCause(
        lambda facts: facts.skipped,
        lambda facts: f"skipped: {counted(len(facts.skipped), 'case')}",
        lambda facts: f"run the skipped cases: {listed(map(repr, facts.skipped), _LISTED)}",
        opens=False,  # what is missing names them
    ),
    "missing": VerdictCause(
        lambda facts: facts.missing,
        lambda facts: "; ".join(facts.missing),
        lambda _: "run what is missing, and judge all results together",
        opens=False,  # as above
    ),
    "errored": VerdictCause(
        lambda facts: facts.errored,
        lambda facts: f"no score: {counted(len(facts.errored), 'case')} errored",
        _again,
    ),
    "new": VerdictCause(lambda facts: facts.new and not facts.gone, _new, _approve_new, hides=False),
    "alike": VerdictCause(
        lambda facts: facts.alike,
        lambda facts: f"cases with the same {facts.alike[0]} change alike",
        lambda facts: f"set cluster_by: {facts.alike[0]}, a key of gates and of their file",
        opens=False,  # it widens intervals, and only they can keep a verdict open
        hides=False,
    ),
}
"""What keeps results from being compared, the cause that explains others before them."""


_OPEN_STEPS: Final[Mapping[str, str]] = {
    r"Declare the range of ([^;]+)": r"declare the range of \1: --range \1=LOW..HIGH",
    r"if the others have the worst score": "have the cases answered that abstain, or set abstained: allowed",
    r"test (\w+) is not about it": "set test: bootstrap, which is about the mean",
}
"""What the reason of an undecided gate says to what to do about it, if more cases do not help."""


def _ways_of(facts: Situation) -> list[str]:
    """The next steps that can decide an undecided verdict on results: more cases, or another tolerance."""
    for pattern, step in _OPEN_STEPS.items():
        for reason in facts.reasons:
            if match := re.search(pattern, reason):
                return [match.expand(step)]
    tolerance = [] if "tolerance" in facts.options else ["set the drop that matters with --tolerance"]
    return ["add as many cases as the verdict says", *tolerance]


def step_of(facts: Situation, outcome: str) -> str:
    """The one next step that ``llmeval gate`` prints below a verdict.

    Args:
        facts: The situation.
        outcome: ``failed``, ``passed``, ``approved``, ``first`` of a run without a baseline, ``few`` of cases that
            cannot tell, or ``open`` for another reason.
    """
    if outcome == "failed":
        alike = f"{CAUSES['alike'].step(facts)}, then " if facts.alike else ""
        page = f"; {facts.pages[0]} shows each of them" if facts.pages else "; --report page.html shows each of them"
        return f"{alike}look at the cases above{page}"
    cause = next((cause for cause in CAUSES.values() if cause.holds(facts)), None)
    if cause is not None and not facts.approves:
        return cause.step(facts)
    if outcome == "approved":
        return "compare later results: llmeval gate NEW"
    if outcome == "first":
        return f"make these results the baseline: {facts.approving}"
    if outcome in ("few", "open"):
        accept = outcome == "open" and "undecided" not in facts.options
        return ", or ".join(_ways_of(facts)) + ("; --undecided pass accepts an undecided result" if accept else "")
    return "nothing to do"
