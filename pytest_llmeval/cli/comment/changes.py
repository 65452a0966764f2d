"""What differs between a run and its baseline: metrics, cases that got worse, and failures old and new."""

__all__ = ("BAD", "CaseFates", "Change", "Regressed", "ReportComparison", "case_fates", "compare_runs")

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from pytest_llmeval.cli.paired import PairedScores, pair_suites, paired_scores, ran
from pytest_llmeval.core.results import PASS_RATE, CaseResult
from pytest_llmeval.core.wording import counted, number
from pytest_llmeval.gates.statistics.compare import Difference, differences
from pytest_llmeval.gates.statistics.inference import holm
from pytest_llmeval.reports.form import EXCUSED, RunReport, SuiteReport
from pytest_llmeval.reports.notes import CaseNote
from pytest_llmeval.scoring.case_scores import TOLERANCE

BAD = ("failed", "errored")
"""Outcomes of cases that make a run fail."""
_CONFIDENCE = 0.95

SuiteCase: TypeAlias = tuple[SuiteReport, CaseResult]


class Change(NamedTuple):
    """A metric of a suite in both runs."""

    suite: SuiteReport
    metric: str
    found: Difference
    p_value: float


class Regressed(NamedTuple):
    """A case that is worse than in the baseline, or that fails and has no counterpart there.

    Attributes:
        suite: Of the case.
        case: Its result now.
        change: Outcome and score, before and now.
        rank: Sorts the worst first: new failures, then what gates look at, then shares of a metric's range; metrics
            without a range, such as seconds, come last.
        before: What the report of the baseline shows of it.
    """

    suite: SuiteReport
    case: CaseResult
    change: str
    rank: tuple[bool, bool, bool, float]
    before: CaseNote = CaseNote()


class CaseFates(NamedTuple):
    """The cases of a run that fail, are excused, or pass again.

    Attributes:
        new: Fail, and did not in the baseline; without a baseline, all that fail.
        still: Fail now as in the baseline.
        known: Fail as was approved or expected.
        mended: Pass, and did not in the baseline.
    """

    new: Sequence[SuiteCase] = ()
    still: Sequence[SuiteCase] = ()
    known: Sequence[SuiteCase] = ()
    mended: Sequence[SuiteCase] = ()


@dataclass(frozen=True)
class ReportComparison:
    """A run beside its baseline.

    Attributes:
        fell: Metrics that fell significantly, by Holm's method over the metrics of a suite.
        rose: Metrics that rose significantly.
        unclear: Metrics that moved within chance.
        regressed: Cases that got worse, the worst first.
        notes: What was not compared.
    """

    fell: list[Change] = field(default_factory=list)
    rose: list[Change] = field(default_factory=list)
    unclear: list[Change] = field(default_factory=list)
    regressed: list[Regressed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def case_fates(run: RunReport, baseline: RunReport | None) -> CaseFates:
    """Sort cases by whether they fail now, and did in the baseline."""
    found = CaseFates([], [], [], [])
    for suite, before in _with_earlier(run, baseline):
        for case in suite.result.cases:
            was = before[case.id].outcome if case.id in before else ""
            if case.outcome in BAD:
                kept = found.still if was in BAD else found.new
            elif case.outcome in EXCUSED:
                kept = found.known
            elif case.outcome == "passed" and was in (*BAD, *EXCUSED):
                kept = found.mended
            else:
                continue
            assert isinstance(kept, list)
            kept.append((suite, case))
    return found


def _with_earlier(run: RunReport, baseline: RunReport | None) -> Iterator[tuple[SuiteReport, Mapping[str, CaseResult]]]:
    """Yield each suite with its cases that ran in the baseline, by id."""
    pairs, (alone, _) = pair_suites(run.suites, () if baseline is None else baseline.suites, named=False)
    for here, there in pairs:
        yield here, {case.id: case for case in there.result.cases if ran(case)}
    for here in alone:
        yield here, {}


def compare_runs(run: RunReport, baseline: RunReport) -> ReportComparison:
    """Compare two runs over the cases that ran in both; failing cases of one alone got worse, too."""
    found = ReportComparison()
    pairs, alone = pair_suites(run.suites, baseline.suites, named=False)
    for suites, where in zip(alone, ("this run", "the baseline"), strict=True):
        found.notes.extend(f"{each.suite} ({each.path}) is only in {where}" for each in suites)
    for here, there in pairs:
        now, then = here.result.metrics, there.result.metrics
        measured = [name for name in now if name in then]
        changed = [name for name in measured if now[name].signature != then[name].signature]
        pair = paired_scores(here, there, [name for name in measured if name not in changed])
        found.notes.extend(f"{here.suite}: {name} is computed in another way" for name in changed)
        found.notes.extend(f"{here.suite}: {name} no longer has a value" for name in pair.vanished)
        found.notes.extend(f"{here.suite}: {each}" for each in _left_out(pair))
        if pair.here.result.cases:
            _sort(found, pair)
            found.regressed.extend(_regressed(pair))
    for suite, before in _with_earlier(run, baseline):
        alone_here = (each for each in suite.result.cases if each.outcome in BAD and each.id not in before)
        new = (True, False, False, 0.0)
        found.regressed.extend(
            Regressed(suite, each, f"{each.outcome}; not in the baseline", new) for each in alone_here
        )
    found.regressed.sort(key=lambda each: each.rank, reverse=True)
    return found


def _left_out(pair: PairedScores) -> Iterator[str]:
    for ids, where in zip(pair.alone, ("this run", "the baseline"), strict=True):
        if ids:
            yield f"{counted(len(ids), 'case')} ran only in {where}"
    if not pair.here.result.cases:
        yield "no case ran in both"


def _sort(found: ReportComparison, pair: PairedScores) -> None:
    """Sort the metrics of a suite into those that fell, rose, or moved within chance."""
    names = [*pair.evaluator.metrics, PASS_RATE]
    rows = pair.pairing.everything()
    compared = differences(pair.pairing, rows, names, confidence=_CONFIDENCE, cluster_by=pair.cluster_by)
    metrics = {name: each for name, each in compared.items() if each.difference is not None}
    adjusted = holm([1.0 if each.p_value is None else each.p_value for each in metrics.values()])
    for (name, each), p_value in zip(metrics.items(), adjusted, strict=True):
        change = Change(pair.here, name, each, p_value)
        if not each.difference:
            continue
        if p_value > 1 - _CONFIDENCE:
            found.unclear.append(change)
        else:
            (found.fell if (each.drop or 0) > 0 else found.rose).append(change)


def _regressed(pair: PairedScores) -> Iterator[Regressed]:
    before = {case.id: case for case in pair.there.result.cases}
    gated = set(pair.here.gated)
    for case in pair.here.result.cases:
        old = before[case.id]
        newly = case.outcome in BAD and old.outcome not in BAD
        drops: list[tuple[bool, bool, float, str]] = []
        for name in pair.evaluator.metrics:
            now, then = case.metrics.get(name), old.metrics.get(name)
            if now is not None and then is not None:
                drop = now - then if name in pair.evaluator.lower_is_better else then - now
                low, high = pair.evaluator.ranges.get(name, (0.0, 0.0))
                if drop > TOLERANCE:
                    drops.append((name in gated, high > low, drop / (high - low) if high > low else drop, name))
        looked_at, bounded, share, metric = max(drops, default=(False, False, 0.0, ""))
        if newly or metric:
            parts = [f"{old.outcome} -> {case.outcome}"] if case.outcome != old.outcome else []
            if metric:
                parts.append(f"{metric} {number(old.metrics[metric])} -> {number(case.metrics[metric])}")
            rank = newly, looked_at, bounded, share
            yield Regressed(pair.here, case, "; ".join(parts), rank, pair.there.note(case.id))
