"""A pair of reports: the suites that both have, and what changed between them."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import structs

from pytest_llmeval.core import CaseRecord, Metric, Observation, counted
from pytest_llmeval.evaluators import RecordedScores
from pytest_llmeval.numbers import CaseMatching, CaseStatistics, Difference, RunPairing
from pytest_llmeval.reports import CaseReport, Changes, SuiteReport


@dataclass(frozen=True)
class ReportPair:
    """The suites of a report and of its baseline, matched; every comparison of reports is based on it.

    Attributes:
        run: The suites of the run.
        both: Suites of the run, each with the one of the baseline that it is compared with.
        alone: Suites of the run, and of the baseline, that the other report does not have.
    """

    run: Sequence[SuiteReport]
    both: Sequence[tuple[SuiteReport, SuiteReport]]
    alone: tuple[Sequence[SuiteReport], Sequence[SuiteReport]]

    @classmethod
    def from_suites(
        cls, run: Sequence[SuiteReport], baseline: Sequence[SuiteReport], *, named: bool = False
    ) -> "ReportPair":
        """Pair suites with the same name and file.

        If each report has one suite, these form a pair under any names.

        Args:
            run: The suites of the run.
            baseline: The suites of the baseline.
            named: Whether systems were chosen by name; those of the same suite then form a pair.
        """
        left, right = list(run), list(baseline)
        both: list[tuple[SuiteReport, SuiteReport]] = []
        for bare in (False, True) if named else (False,):
            by_name = {_name(suite, bare=bare): suite for suite in right}
            for suite in list(left):
                if other := by_name.pop(_name(suite, bare=bare), None):
                    both.append((suite, other))
                    left.remove(suite)
                    right.remove(other)
        if len(left) == len(right) == 1 and not both:
            return cls(run, [(left[0], right[0])], ([], []))
        return cls(run, both, (left, right))

    @cached_property
    def earlier_cases(self) -> Sequence[tuple[SuiteReport, Mapping[str, CaseReport]]]:
        """Each suite of the run with its cases that ran in the baseline, by the id that they have in the run."""
        known = [
            (here, {case.id: case for case in with_ids_of(here, there)[0].cases if case.ran})
            for here, there in self.both
        ]
        return [*known, *((here, {}) for here in self.alone[0])]

    def counterpart(self, suite: SuiteReport) -> SuiteReport | None:
        """Return the suite of the baseline that a suite of the run is compared with."""
        return next((there for here, there in self.both if here is suite), None)


def _name(suite: SuiteReport, *, bare: bool) -> tuple[str, str]:
    """The identity of a suite in a report, by which the suites of two reports are matched."""
    return suite.path, suite.base_name if bare else suite.suite


def remeasured(here: SuiteReport, there: SuiteReport) -> list[str]:
    """The metrics that the same suite computes differently in two reports."""
    now, then = here.metrics, there.metrics
    return [name for name in now if name in then and now[name].signature != then[name].signature]


class PairedScores(NamedTuple):
    """The scores of a suite in two reports, over the cases that ran in both.

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
        every = (*self.evaluator.metrics, Metric.PASS_RATE)
        family = (self.here.compared or every) if metrics is None else metrics
        return [name for name in every if name in family]

    def means(self, names: Iterable[str]) -> list[str]:
        """Return the metrics whose value over the cases is not the mean of their scores, which is compared here."""
        return [name for name in names if _pooled(self.here, name) or _pooled(self.there, name)]


def _scored(suite: SuiteReport, metric: str) -> bool:
    """Whether a case of a suite in a report has a score of a metric."""
    return any(case.metrics.get(metric) is not None for case in suite.cases)


_BALANCED = "balanced_accuracy"


def with_balanced_parts(suite: SuiteReport) -> SuiteReport:
    """Give the cases of a suite in a report their contributions to balanced accuracies, so that cases can be paired.

    The part of a labelled answer is its hit, weighted so that positive and negative ones count the same in sum. Where
    people differ about an answer, there are none.
    """
    cases = list(suite.cases)
    values = dict(suite.metrics)
    for name in suite.metrics:
        prefix, _, end = name.rpartition(_BALANCED)
        sides = [[case.metrics.get(f"{prefix}{rate}") for case in cases] for rate in ("tpr", "tnr")]
        counts = [sum(hit is not None for hit in side) for side in sides]
        is_split = all(None in pair for pair in zip(*sides, strict=True))
        if end or _BALANCED not in name or not is_split or not all(counts):
            continue
        weights = [sum(counts) / (2 * count) for count in counts]
        for place, hits in enumerate(zip(*sides, strict=True)):
            for weight, hit in zip(weights, hits, strict=True):
                if hit is not None:
                    cases[place] = structs.replace(cases[place], metrics={**cases[place].metrics, name: weight * hit})
        values[name] = structs.replace(values[name], mean=values[name].value)
    ranges = {name: range_ for name, range_ in suite.ranges.items() if _BALANCED not in name}
    return structs.replace(suite, cases=cases, metrics=values, ranges=ranges)


def paired_scores(
    here: SuiteReport, there: SuiteReport, metrics: Sequence[str] | None = None, *, balanced: bool = False
) -> PairedScores:
    """Pair the scores of a suite in two reports over the cases that ran in both, possibly none.

    Args:
        here: The run.
        there: The baseline.
        metrics: Names of metrics; default: all.
        balanced: Whether to include balanced accuracies.
    """
    there, by_content = with_ids_of(here, there)
    left, right = ({case.id for case in suite.cases if case.ran} for suite in (here, there))
    here, there = _only(here, left & right), _only(there, left & right)
    if balanced:
        here, there = with_balanced_parts(here), with_balanced_parts(there)
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
    """The changes of a suite's metrics between two reports, over the cases that ran in both.

    They are those that the run itself reports, if the baseline is the run that it was compared with.

    Args:
        pair: The suites.
        label: Name of the baseline.
        confidence: Of intervals and verdicts; default: that of the run's own comparison, or 0.95.
        metrics: Names of metrics; default: those that comparisons are about.
    """
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
    changes = Difference.judge_family(
        pair.pairing, rows, names, confidence=confidence, means=pair.means(names), cluster_by=clusters
    )
    return Changes(label, changes, confidence, notes)


def _pooled(suite: SuiteReport, name: str) -> bool:
    """Whether the value of a metric in a report differs from the mean of the scores of its cases."""
    metric = suite.find(name)
    return metric is not None and None not in (metric.value, metric.mean) and metric.value != metric.mean


def with_ids_of(here: SuiteReport, there: SuiteReport) -> tuple[SuiteReport, int]:
    """Return a baseline's suite with the case ids of the run, matched by content.

    Args:
        here: The run.
        there: The baseline. Other cases of it whose ids the run gives to different cases get a mark.

    Returns:
        The suite, and how many of its cases have another id now.
    """
    moved = CaseMatching.match_contents(_contents(here), _contents(there))
    names = {before: now for now, before in moved.items()}
    names |= {case.id: f"{case.id} (before)" for case in there.cases if case.id in moved and case.id not in names}
    cases = [structs.replace(case, id=names.get(case.id, case.id)) for case in there.cases]
    return (structs.replace(there, cases=cases), len(moved)) if moved else (there, 0)


def _contents(suite: SuiteReport) -> dict[str, str]:
    """The content fingerprints of the cases of a report that ran."""
    return {case.id: case.content for case in suite.cases if case.ran and case.content}


def _only(suite: SuiteReport, ids: AbstractSet[str]) -> SuiteReport:
    """Return a suite of a report with some of its cases."""
    return structs.replace(suite, cases=[case for case in suite.cases if case.id in ids])


def _records(suite: SuiteReport, evaluator: RecordedScores) -> list[CaseRecord]:
    """The cases of a report as records whose counts are their scores, for the comparison of two reports."""
    return [_record(case, evaluator) for case in suite.cases]


def _record(case: CaseReport, evaluator: RecordedScores) -> CaseRecord:
    """A case of a report as a record whose counts are its scores, for the comparison of two reports."""
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
