"""Suites of reports: those of one file, pairs from two reports, and their case scores prepared for comparisons."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from msgspec import structs

from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.results import PASS_RATE, CaseRecord
from pytest_llmeval.core.wording import counted
from pytest_llmeval.evaluators.functions import RecordedScores
from pytest_llmeval.gates.contract import Statistic
from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics
from pytest_llmeval.gates.statistics.pairing import RunPairing, matched_by_content
from pytest_llmeval.reports.form import CaseReport, Changes, SuiteReport

SuitePairs: TypeAlias = Sequence[tuple[SuiteReport, SuiteReport]]
Alone: TypeAlias = tuple[Sequence[SuiteReport], Sequence[SuiteReport]]


def results_of(suites: Sequence[SuiteReport], path: Path) -> list[SuiteReport]:
    """Return the results of a suite file: a report names it from the folder in which pytest ran."""
    whole = path.resolve().parts
    named = [suite for suite in suites if whole[-len(Path(suite.path).parts) :] == Path(suite.path).parts]
    longest = max((len(Path(suite.path).parts) for suite in named), default=0)
    return [suite for suite in named if len(Path(suite.path).parts) == longest]


class PairedScores(NamedTuple):
    """Two suites over the cases that ran in both.

    Attributes:
        here: The run.
        there: The baseline.
        alone: Ids of the cases that ran in one of them only.
        evaluator: Their metrics, as an evaluator.
        pairing: Their scores, paired.
        cluster_by: The label of clusters; ``None`` if there is none.
        by_content: How many cases have another id in the baseline, and are matched by their content.
    """

    here: SuiteReport
    there: SuiteReport
    alone: tuple[set[str], set[str]]
    evaluator: RecordedScores
    pairing: RunPairing
    cluster_by: str | None
    by_content: int = 0

    @property
    def vanished(self) -> list[str]:
        """Metrics that have a value in the baseline and none in the run."""
        return [name for name in self.evaluator.metrics if _scored(self.there, name) and not _scored(self.here, name)]

    def compared(self, metrics: Sequence[str] | None = None) -> list[str]:
        """Return the metrics to compare: by default those that comparisons of the suite are about."""
        every = (*self.evaluator.metrics, PASS_RATE)
        family = (self.here.compared or every) if metrics is None else metrics
        return [name for name in every if name in family]

    def means(self, names: Iterable[str]) -> dict[str, Statistic]:
        """Return the metrics whose value over the cases is not the mean of their scores, which is compared here."""
        return {name: "mean" for name in names if _pooled(self.here, name) or _pooled(self.there, name)}


def _scored(suite: SuiteReport, metric: str) -> bool:
    return any(case.metrics.get(metric) is not None for case in suite.cases)


def paired_scores(here: SuiteReport, there: SuiteReport, metrics: Sequence[str] | None = None) -> PairedScores:
    """Return the scores of two suites over the cases that ran in both, which may be none.

    Args:
        here: The run.
        there: The baseline.
        metrics: Names of metrics; default: all.
    """
    there, by_content = with_ids_of(here, there)
    left, right = ({case.id for case in suite.cases if case.ran} for suite in (here, there))
    here, there = _only(here, left & right), _only(there, left & right)
    every = dict.fromkeys([*here.metrics, *there.metrics])
    chosen = tuple(name for name in every if metrics is None or name in metrics)
    lower = frozenset({*here.lower_is_better, *there.lower_is_better})
    evaluator = RecordedScores(chosen, lower, {**there.ranges, **here.ranges})
    run, baseline = (CaseStatistics.exact(_records(suite, evaluator)) for suite in (here, there))
    pairing = RunPairing(run, baseline, {evaluator.name: evaluator}, abstained=here.abstained)
    cluster_by = here.clusters.label if here.clusters else None
    return PairedScores(here, there, (left - right, right - left), evaluator, pairing, cluster_by, by_content)


def report_changes(
    pair: PairedScores, label: str, confidence: float | None = None, metrics: Sequence[str] | None = None
) -> Changes:
    """Return the changes between two suites over the cases that ran in both.

    They are those that the run itself reports, if the baseline is the run that it was compared with.

    Args:
        pair: The suites.
        label: Name of the baseline.
        confidence: Of intervals and verdicts; default: that of the run's own comparison, or 0.95.
        metrics: Names of metrics; default: those that comparisons are about.
    """
    from pytest_llmeval.gates.statistics.compare import metric_changes

    here, there = pair.here, pair.there
    alone = zip(pair.alone, ("this run", label), strict=True)
    notes = [f"{counted(len(ids), 'case')} only in {which}" for ids, which in alone if ids]
    if confidence is None:
        confidence = here.changes.confidence if here.changes is not None else 0.95
    own = here.changes if metrics is None else None
    if own is not None and own.confidence == confidence and own.is_against(there):
        return structs.replace(own, against=label, notes=notes)
    if not here.cases:
        return Changes(label, {}, confidence, notes)
    names = pair.compared(metrics)
    rows, clusters = pair.pairing.everything(), pair.cluster_by
    changes = metric_changes(
        pair.pairing, rows, names, confidence=confidence, statistics=pair.means(names), cluster_by=clusters
    )
    return Changes(label, changes, confidence, notes)


def _pooled(suite: SuiteReport, name: str) -> bool:
    """Return whether the value of a metric differs from the mean of the scores of its cases."""
    metric = suite.find(name)
    return metric is not None and None not in (metric.value, metric.mean) and metric.value != metric.mean


def with_ids_of(here: SuiteReport, there: SuiteReport) -> tuple[SuiteReport, int]:
    """Return a suite of a baseline with the ids that its cases have in the run, by their content.

    Args:
        here: The run.
        there: The baseline. Other cases of it whose ids the run gives to different cases get a mark.

    Returns:
        The suite, and how many of its cases have another id now.
    """
    moved = matched_by_content(_contents(here), _contents(there))
    names = {before: now for now, before in moved.items()}
    names |= {case.id: f"{case.id} (before)" for case in there.cases if case.id in moved and case.id not in names}
    cases = [structs.replace(case, id=names.get(case.id, case.id)) for case in there.cases]
    return (structs.replace(there, cases=cases), len(moved)) if moved else (there, 0)


def _contents(suite: SuiteReport) -> dict[str, str]:
    """Return the content of the cases that ran; nothing if a report of an earlier version does not have it."""
    return {case.id: case.content for case in suite.cases if case.ran and case.content}


def _only(suite: SuiteReport, ids: AbstractSet[str]) -> SuiteReport:
    """Return a suite with some of its cases."""
    return structs.replace(suite, cases=[case for case in suite.cases if case.id in ids])


def _records(suite: SuiteReport, evaluator: RecordedScores) -> list[CaseRecord]:
    """Return the cases of a report as records whose only counts are the scores."""
    return [_record(case, evaluator) for case in suite.cases]


def _record(case: CaseReport, evaluator: RecordedScores) -> CaseRecord:
    counts: dict[str, Any] = {}
    for name in evaluator.metrics:
        score = case.metrics.get(name)
        if score is not None:
            counts |= {f"sum {name}": score, f"cases {name}": 1}
    absent = {name: "" for name in evaluator.metrics if case.metrics.get(name) is None}
    if case.outcome == "errored":
        seen = Observation(counts, errored=absent)
    else:
        abstained = tuple(name for name in case.details.get("abstained", ()) if name in absent)
        seen = Observation(counts, undefined=absent, abstained=abstained)
    return CaseRecord(case.id, case.labels, case.outcome, {evaluator.name: seen}, reason=case.reason)


def pair_suites(here: Sequence[SuiteReport], there: Sequence[SuiteReport], *, named: bool) -> tuple[SuitePairs, Alone]:
    """Return the suites to compare, and those that are in one report only.

    Suites with the same name and file form a pair, and so do systems of the same suite that were chosen by name. If
    each report has one suite, these form a pair under any names.
    """
    left, right = list(here), list(there)
    pairs: list[tuple[SuiteReport, SuiteReport]] = []
    for bare in (False, True) if named else (False,):
        by_name = {_name(each, bare=bare): each for each in right}
        for each in list(left):
            if other := by_name.pop(_name(each, bare=bare), None):
                pairs.append((each, other))
                left.remove(each)
                right.remove(other)
    if len(left) == len(right) == 1 and not pairs:
        return [(left[0], right[0])], ([], [])
    return pairs, (left, right)


def _name(suite: SuiteReport, *, bare: bool) -> tuple[str, str]:
    return suite.path, suite.base_name if bare else suite.suite
