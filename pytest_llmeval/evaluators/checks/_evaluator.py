"""Evaluator ``checks``: the share of assertions that answers meet."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from pytest_llmeval.core import Case, Evaluator, FloatArray, JudgeError, Metric, Observation, Sums
from pytest_llmeval.evaluators.checks._check import (
    MET,
    Check,
    CheckFinding,
    CheckKind,
    CheckLeaf,
    CheckNode,
    Composed,
    InTurns,
    View,
    not_made,
)
from pytest_llmeval.evaluators.checks._kinds import SHIPPED, Criterion
from pytest_llmeval.evaluators.checks._reading import CheckReader
from pytest_llmeval.judges import JudgedEvaluator, Question, Verdict

_RATE = "check_rate"
_MET, _TOTAL = "met[", "made["
_MOST_LISTS = 256


@dataclass(frozen=True)
class Checks(Evaluator):
    """Assertions on single answers: those of the suite, and those that a case carries itself.

    A case with an unmet check fails, with what was found. A check that cannot be made, because a part of the prediction
    is missing or a pattern takes too long, makes the case errored.

    * ``check_rate``: weights of the checks that are met over the weights of all, over all cases;
    * ``check[NAME]``: checks of a name, or else of a kind, that are met among those made.

    Attributes:
        checks: As ``checks`` of a suite file.

    Raises:
        ValueError: A check has faults; all of them are listed.
    """

    name = "checks"
    asserts = True

    checks: tuple[Any, ...] = ()
    ready: tuple[Check, ...] = field(default=(), repr=False, compare=False)
    """The same, read already."""
    names: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """Of all checks in a suite, those of single cases among them."""

    def __post_init__(self) -> None:
        if len(self.ready) != len(self.checks):
            object.__setattr__(self, "ready", _read(self.checks))

    def describe(self) -> Sequence[Metric]:
        """The rate over all checks, and the family of those by name."""
        signature = f"v:{self.version}"
        alike = self.names.issubset([check.name for check in self.ready])
        return [
            Metric(_RATE, signature=f"weighted|{signature}", averaged=alike),
            Metric("check[name]", signature=signature),
        ]

    def measure(self, case: Case) -> Observation:
        """Make the checks of the suite and the case."""
        return self._observe_view(View(case))

    @staticmethod
    def metric_of(name: str) -> str:
        """The metric of the checks of a name."""
        return f"check[{name}]"

    def checks_of(self, case: Case) -> Sequence[Check]:
        """The checks of a case: the suite's, then its own."""
        return self._list_of(case).checks

    def _list_of(self, case: Case) -> "_CheckList":
        """The list of checks of a case. Cases of a suite file that share their own checks have one object of them."""
        known = self._lists.get(id(case.checks))
        if known is None or known.own is not case.checks:
            if len(self._lists) >= _MOST_LISTS:
                self._lists.clear()
            checks = (*self.ready, *_read(case.checks))
            others = self.names.difference([check.name for check in checks])
            absent = {self.metric_of(name): "no such check" for name in sorted(others)}
            all_met = _tally((check, MET) for check in checks)
            known = self._lists[id(case.checks)] = _CheckList(case.checks, checks, all_met, absent)
        return known

    @cached_property
    def _lists(self) -> "dict[int, _CheckList]":
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is remembered of the cases of this process."""
        return {name: value for name, value in vars(self).items() if name != "_lists"}

    def _observe_view(self, view: View) -> Observation:
        """The observation of a case by its checks."""
        listed = self._list_of(view.case)
        if not listed.checks:
            return Observation({}, undefined={_RATE: "no check"})
        findings = [check.node.find(view) for check in listed.checks]
        if all(finding.met for finding in findings):
            return Observation(listed.all_met, undefined=listed.absent)
        outcomes = list(zip(listed.checks, findings, strict=True))
        unmet = [check.line(finding) for check, finding in outcomes if finding.met is False]
        unknown = [
            (self.metric_of(check.name), finding._replace(text=check.line(finding)))
            for check, finding in outcomes
            if finding.met is None
        ]
        errors = _errors(unknown)
        counts = _tally(outcomes)
        return Observation(
            _without(counts, errors) if errors else counts,
            details={"wrong": unmet} if unmet else {},
            undefined=listed.absent,
            malformed=_summary(unmet) if unmet else None,
            errored=errors,
        )

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """The shares of the checks made that are met."""
        totals = (name.removeprefix(_TOTAL)[:-1] for name in sums if name.startswith(_TOTAL))
        names = sorted(self.names.union(totals))
        by_name = {self.metric_of(name): sums[f"{_MET}{name}]"] / sums[f"{_TOTAL}{name}]"] for name in names}
        return {_RATE: sums["met"] / sums["weight"], **by_name}

    def takes_objects_of(self, case: Case) -> bool:
        """Whether a check of a case gets users' objects, and not their JSON forms alone."""
        return any(check.takes_objects for check in self.checks_of(case))

    @staticmethod
    def kinds(more: Mapping[str, CheckKind] = {}) -> dict[str, CheckKind]:
        """The kinds of checks by name: those that ship, and more."""
        return dict(sorted({**SHIPPED, **more}.items()))

    @staticmethod
    def of_checks(checks: Iterable[Check], of_cases: Iterable[Check] = ()) -> "Checks":
        """The evaluator ``checks`` of checks that have been read.

        Args:
            checks: For every case.
            of_cases: Those of single cases.
        """
        ready = tuple(checks)
        known = (*ready, *of_cases)
        entries, names = tuple(check.entry for check in ready), frozenset(check.name for check in known)
        if not any(check.judged for check in known):
            return Checks(entries, ready, names)
        return JudgedChecks(entries, ready, names, any(_has_criterion(check.node) for check in known))


@dataclass(frozen=True, slots=True)
class _CheckList:
    """The checks that apply to a group of cases: the suite's, and the group's own.

    Attributes:
        own: Those of the cases alone, as they stand there.
        checks: All of them.
        all_met: What is counted in a case that meets all of them, as most do.
        absent: Metrics in which the cases have no part, since only others have these checks.
    """

    own: Sequence[Any]
    checks: Sequence[Check]
    all_met: Mapping[str, float]
    absent: Mapping[str, str]


@dataclass(frozen=True)
class JudgedChecks(Checks, JudgedEvaluator):
    """Checks some of which a judge decides.

    Attributes:
        criteria: Whether some of them, those of single cases among them, are criteria.
    """

    criteria: bool = field(default=False, repr=False, compare=False)

    def panel_fault(self, reduce: str | None) -> str | None:
        """The fault of a panel of judges that averages the yes and no of checks."""
        if not self.criteria or reduce not in ("mean", "median"):
            return None
        return f"found {reduce}, expected majority or unanimous: a check 'judge' is met or not"

    def questions(self, case: Case) -> Sequence[Question]:
        """The questions of the checks, in their order."""
        view = View(case)
        return [question for check in self.checks_of(case) if check.judged for question in check.node.questions(view)]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Make the checks, with the verdicts in the order of the questions."""
        return self._observe_view(View(case, iter(verdicts)))

    def measure(self, case: Case) -> Observation:
        """Make the checks of a case about which no judge need be asked.

        Raises:
            EvaluatorError: A judge is needed.
        """
        return JudgedEvaluator.measure(self, case)


def _has_criterion(node: CheckNode) -> bool:
    """Whether a check, or a part of it, is a criterion that a judge decides."""
    match node:
        case CheckLeaf(test=Criterion()):
            return True
        case Composed(parts=parts):
            return any(map(_has_criterion, parts))
        case InTurns(node=part):
            return _has_criterion(part)
    return False


def _read(entries: Iterable[Any]) -> tuple[Check, ...]:
    """The checks that entries of a suite file or a call declare.

    Raises:
        ValueError: An entry has faults.
    """
    listed = tuple(entries)
    if all(isinstance(check, Check) for check in listed):
        return listed
    read, faults = CheckReader.read_alone(listed)
    if faults:
        raise ValueError("; ".join(faults))
    return read


def _tally(outcomes: Iterable[tuple[Check, CheckFinding]]) -> dict[str, float]:
    """The counts and weights of a case's checks; those that could not be made are left out."""
    counts: dict[str, float] = defaultdict(float)
    for check, finding in outcomes:
        if finding.met is None:
            continue
        total, met = _count_names(check.name)
        counts["weight"] += check.weight
        counts[total] += 1
        if finding.met:
            counts["met"] += check.weight
            counts[met] += 1
    return counts


@lru_cache(maxsize=1024)
def _count_names(name: str) -> tuple[str, str]:
    """The names of the counts of a check with a name: how many were made, and how many were met."""
    return f"{_TOTAL}{name}]", f"{_MET}{name}]"


def _summary(unmet: Sequence[str]) -> str:
    """The reason why a case failed its checks: the first unmet one; reports list the others."""
    return f"{unmet[0]}; and {len(unmet) - 1} more" if unmet[1:] else unmet[0]


def _errors(unknown: Sequence[tuple[str, CheckFinding]]) -> dict[str, str]:
    """The reasons why a case's check rate and single checks have no value, one for checks that lack the same part."""
    if not unknown:
        return {}
    causes = not_made(finding for _, finding in unknown)
    why = [(name, f"{causes[finding.cause]}: {finding.cause}") for name, finding in unknown]
    return {_RATE: why[0][1], **dict(reversed(why))}


def _without(counts: Mapping[str, float], errors: Iterable[str]) -> dict[str, float]:
    """The counts of a case some of whose checks could not be made: without the rate, and without these."""
    left_out = {f"{kind}{name.removeprefix('check[')}" for name in errors for kind in (_MET, _TOTAL)}
    return {name: count for name, count in counts.items() if "[" in name and name not in left_out}
