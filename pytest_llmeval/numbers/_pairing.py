"""The cases of two runs in pairs."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from msgspec import structs

from pytest_llmeval.core import (
    Abstention,
    CaseLabels,
    CaseRecord,
    Evaluator,
    FloatArray,
    MetricIndex,
    Observation,
    Statistic,
    counted,
    interval,
    limit,
    listed,
    number,
)
from pytest_llmeval.numbers._case_statistics import CaseStatistics, Chain
from pytest_llmeval.numbers._intervals import normal_quantile
from pytest_llmeval.numbers._repeats import FALLEN
from pytest_llmeval.numbers._resample import SEED, BoolArray, IntArray
from pytest_llmeval.numbers._table import Table, unit_numbers

_DRAWS = 4_000
_MOST_OUTSIDE = 0.05
_ROUNDING = 1e-9

_APART = 7
"""Keeps the draws apart from those of cases, which begin with the same seed."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A metric by the new judge minus the same metric by the old one, on the same answers.

    Attributes:
        value: The difference.
        low: Lower bound.
        high: Upper bound.
        before: How the old judge's metric is computed, if the new one's is computed differently: by other steps, say.
        after: How the new judge's is.
        depends: How the difference depends on the score, so that it holds for no other scores; empty if it does not.
        rates: Of scores of 0 and 1: how many of the answers that the old judge passed the new one passes, how many
            those are, and the same two numbers of the answers that the old judge failed. Empty for other scores.
        measured: Smallest and largest score of the new judge where both were compared; empty for scores of 0 and 1.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    CONFIDENCE: ClassVar = 0.95
    """Of the interval."""

    DIGITS: ClassVar = 6
    """Decimals that are kept of approved values: fewer than the last digits in which two machines may differ."""

    @classmethod
    def rounded(cls, value: float | None) -> float | None:
        """A value with the digits that score files, the history and bridges store; never negative zero."""
        return None if value is None else round(float(value), cls.DIGITS) + 0.0

    value: float
    low: float
    high: float
    before: str = ""
    after: str = ""
    depends: str = ""
    rates: tuple[int, ...] = ()
    measured: tuple[float, ...] = ()

    def width(self, value: float) -> float:
        """The width of the interval of the bridge between two judges for a value by the new one."""
        import numpy as np

        if not self.rates:
            return self.high - self.low
        tail = (1 - self.CONFIDENCE) / 2
        low, high = np.quantile(self.former(np.full(_DRAWS, value)), (tail, 1 - tail))
        return float(high - low)

    def former_value(self, value: float) -> float:
        """A mean of 0/1 scores by the new judge as the old one would have it (Rogan and Gladen 1978).

        The difference of two judges depends on how many answers are right. Their two conditional rates do not: how
        often the new one passes what the old one passed, and what the old one failed.
        """
        passed, right, mistaken, wrong = self.rates
        high, low = (
            (hits + 0.5) / (cases + 1) if not cases else hits / cases
            for hits, cases in ((passed, right), (mistaken, wrong))
        )
        return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5

    def former(self, values: FloatArray) -> FloatArray:
        """Resampled means by the new judge as the old one may have them; the same in every process.

        The rates are drawn from their posterior distributions by Jeffreys' prior. Where the new judge does not tell
        what the old one passed from what it failed, the mean may be any.
        """
        import numpy as np

        passed, right, mistaken, wrong = self.rates
        rng = np.random.default_rng(SEED + _APART)
        high = rng.beta(passed + 0.5, right - passed + 0.5, values.size)
        low = rng.beta(mistaken + 0.5, wrong - mistaken + 0.5, values.size)
        anything = rng.random(values.size)
        apart = high - low > _ROUNDING
        former: FloatArray = np.where(apart, np.clip((values - low) / np.where(apart, high - low, 1.0), 0, 1), anything)
        return former

    @property
    def deviation(self) -> float:
        """The standard deviation of the shift, by the wider side of the interval."""
        return max(self.high - self.value, self.value - self.low, 0.0) / normal_quantile((1 + self.CONFIDENCE) / 2)

    def draws(self, count: int) -> FloatArray:
        """The possible values of the true shift, as many as are asked for; the same in every process."""
        import numpy as np

        drawn: FloatArray = self.value + self.deviation * np.random.default_rng(SEED + _APART).standard_normal(count)
        return drawn

    def outside(self, scores: FloatArray) -> str:
        """The number of scores that lie where the judges were not compared, in words, if more than one in twenty do."""
        import numpy as np

        known = scores[np.isfinite(scores)]
        if not self.measured or not known.size:
            return ""
        low, high = self.measured
        count = int(np.sum((known < low - _ROUNDING) | (known > high + _ROUNDING)))
        if count <= _MOST_OUTSIDE * known.size:
            return ""
        scores_outside = f"{count} of {counted(known.size, 'score')} lie outside {interval(low, high)}"
        return f"{scores_outside}, where the judges were compared"

    def __str__(self) -> str:
        sign = "+" if self.value >= 0 else ""
        return f"{sign}{number(self.value)} ({self.CONFIDENCE:.0%} interval {interval(self.low, self.high)})"

    @staticmethod
    def subject_of(metric: str, statistic: Statistic) -> str:
        """The name under which a statistic of a metric has its shift; gates name it alike."""
        return metric if statistic == "value" else f"{statistic}({metric})"


_NAMED = 5


class CaseMatching(NamedTuple):
    """The cases of two runs, by what can be compared; ids are sorted.

    Attributes:
        unchanged: In both runs, and the same as far as both say what they were.
        new: Only in the current run.
        gone: Only in the baseline.
        edited: In both, with another input, expectation or label, or skipped in one of them only.
        known: Whether both runs say what their cases were, so that edits can be seen.
        same_limits: Whether the unchanged cases have the thresholds that they had.
        by_content: Id of a case to its id in the baseline, where the ids differ and the content is equal.
        repeated: How many of those share their content with other cases, and are matched in order.
    """

    unchanged: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    edited: tuple[str, ...]
    known: bool
    same_limits: bool
    by_content: Mapping[str, str] = {}
    repeated: int = 0

    @property
    def whole(self) -> bool:
        """Whether every case of either run is compared."""
        return not (self.new or self.gone or self.edited)

    @staticmethod
    def match_contents(current: Mapping[str, str], baseline: Mapping[str, str]) -> dict[str, str]:
        """The matching of cases whose ids disagree by their content, such as rows named by their position.

        Cases with equal id and content stay together. Content that several cases of a run have identifies none of them,
        so it matches only ids that are positions: the first of one run belongs to the first of the other, and so on,
        as many as both have.

        Args:
            current: Id to content.
            baseline: As above.

        Returns:
            Id in the current run to id in the baseline.
        """
        if not current or not baseline:
            return {}
        same = {case for case, content in current.items() if baseline.get(case) == content}
        repeated = _repeated_contents(current.values()) | _repeated_contents(baseline.values())
        here, there = (
            sorted(
                (case for case in run.keys() - same if case.isdecimal() or run[case] not in repeated),
                key=_natural_order,
            )
            for run in (current, baseline)
        )
        waiting: dict[str, list[str]] = {}
        for case in reversed(here):
            waiting.setdefault(current[case], []).append(case)
        out = {}
        for case in there:
            if cases := waiting.get(baseline[case]):
                out[cases.pop()] = case
        return out

    @property
    def content_note(self) -> str:
        """How many cases are matched by content, in words; empty if all have their ids."""
        if not self.by_content:
            return ""
        text = f"{counted(len(self.by_content), 'case')} matched by content"
        return f"{text}, {self.repeated} of them in order among equal ones" if self.repeated else text

    def __str__(self) -> str:
        parts = [
            self.content_note,
            _named_cases("new", self.new),
            _named_cases("gone", self.gone),
            _named_cases("edited", self.edited),
        ]
        text = "; ".join(filter(None, parts))
        return f"{counted(len(self.unchanged), 'unchanged case')} compared" + (f"; {text}" if text else "")


def match(current: CaseStatistics, baseline: CaseStatistics) -> CaseMatching:
    """The matching of two runs' cases by id and digest, then by digest; without a digest, the id decides."""
    here, there = ({record.id for record in run.records} for run in (current, baseline))
    contents = [
        {case: run.digests[case].data for case in ids if case in run.digests}
        for run, ids in ((current, here), (baseline, there))
    ]
    by_content = CaseMatching.match_contents(*contents)
    before_of = {case: case for case in here & there - set(by_content.values()) if case not in by_content}
    before_of |= by_content
    digests = {
        case: (current.digests[case], baseline.digests[before])
        for case, before in before_of.items()
        if case in current.digests and before in baseline.digests
    }
    edited = {case for case, (now, before) in digests.items() if now.data != before.data}
    skipped, skipped_before = (
        {record.id for record in run.records if record.outcome == "skipped"} for run in (current, baseline)
    )
    edited |= {case for case, before in before_of.items() if (case in skipped) != (before in skipped_before)}
    by_content = {case: by_content[case] for case in sorted(by_content.keys() - edited)}
    frequent = _repeated_contents(contents[0].values()) | _repeated_contents(contents[1].values())
    return CaseMatching(
        tuple(sorted(before_of.keys() - edited)),
        tuple(sorted(here - before_of.keys())),
        tuple(sorted(there - set(before_of.values()))),
        tuple(sorted(edited)),
        bool(current.digests and baseline.digests),
        all(now.limits == before.limits for case, (now, before) in digests.items() if case not in edited),
        by_content,
        sum(contents[0][case] in frequent for case in by_content),
    )


def _natural_order(case: str) -> tuple[list[str | int], str]:
    """Sort key of case ids that orders numbers in them by value: ``case 9`` before ``case 10``."""
    parts = re.split(r"(\d+)", case)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], case


def _repeated_contents(contents: Iterable[str]) -> set[str]:
    """Content digests that several cases of a run share, which therefore identify none."""
    return {content for content, count in Counter(contents).items() if count > 1}


def _named_cases(word: str, ids: Sequence[str]) -> str:
    """The count of cases that two runs do not share, with the first ids; empty without such cases."""
    return f"{len(ids)} {word} ({listed(ids, _NAMED, ' and {} more')})" if ids else ""


def _find_falls(table: Table, size: int) -> dict[str, BoolArray]:
    """The fallen cases by metric: they abstain in the current run and had a score in the baseline.

    Args:
        table: Of both runs.
        size: How many of its rows are those of the current run.
    """
    import numpy as np

    fallen = {name: rows[:size] & np.isfinite(table.scores[name][size:]) for name, rows in table.abstained.items()}
    return {name: rows for name, rows in fallen.items() if rows.any()}


def _records_with_falls(
    records: Sequence[CaseRecord], table: Table, fallen: Mapping[str, BoolArray]
) -> Sequence[CaseRecord]:
    """The cases of two runs, of which those that fell count as the worst value of their metrics."""
    import numpy as np

    out = list(records)
    for name, rows in fallen.items():
        label = table.owner[name]
        own = name.removeprefix(table.index.full_name(label, ""))
        for row in np.flatnonzero(rows).tolist():
            seen = _fallen_case(table.evaluators[label], out[row].observations[label], own)
            out[row] = structs.replace(out[row], observations={**out[row].observations, label: seen})
    return out


def _fallen_case(evaluator: Evaluator, seen: Observation, name: str) -> Observation:
    """An observation of an abstained case in which a metric counts as fallen, not as undefined."""
    # Of an observation without counts nothing has a value, and now it has one.
    others = () if seen.counts else [metric.name for metric in evaluator.describe()]
    undefined = {**dict.fromkeys(others, ""), **seen.undefined}
    del undefined[name]
    abstained = tuple(metric for metric in seen.abstained if metric != name)
    return structs.replace(seen, counts={**seen.counts, FALLEN + name: 1}, undefined=undefined, abstained=abstained)


class PairedRows(NamedTuple):
    """Cases of two compared runs, as rows of their common table; row by row the same case if they are paired."""

    current: IntArray
    baseline: IntArray


class RunPairing:
    """The cases of two runs in one table, paired as far as both have them.

    Attributes:
        table: Rows of the current run, then those of the baseline, each sorted by id.
        matching: Which cases the runs share.
        paired: Whether they share any: then these are compared in pairs, and the others not at all.
        common: How many cases they share.
        only_current: How many only the current run has; an edited case is another one.
        only_baseline: How many only the baseline has.
        fallen: Metric to the paired cases that had a score in the baseline and abstain now, one truth value each. They
            have the worst value in `table`, unless the suite allows it.
        shifts: Metric, or statistic of it, to how far a change of judge since the baseline moves it.
        chains: Name of a chain to the steps before the baseline, which differences then count.
        estimates: What has been computed from it, by what was asked.
    """

    def __init__(
        self,
        current: CaseStatistics,
        baseline: CaseStatistics,
        evaluators: Mapping[str, Evaluator] | MetricIndex,
        shifts: Mapping[str, Shift] | None = None,
        abstained: Abstention = "fell",
    ) -> None:
        self.abstained = abstained
        self.shifts = shifts or {}
        self.matching = match(current, baseline)
        same = frozenset(self.matching.unchanged)
        self.paired = bool(same) or not (current.records or baseline.records)
        if self.paired:
            current = current.only(same)
            baseline = baseline.renamed(self.matching.by_content).only(same)
        weights = {record.id: record.weight for record in current.records if record.weight != 1}
        before = baseline.records
        if weights and self.paired:  # of the run, which may be a sample of what was approved
            before = tuple(structs.replace(record, weight=weights.get(record.id, 1.0)) for record in before)
        self._records: tuple[CaseRecord, ...] = (*current.records, *before)
        self._size = len(current.records)
        self.table = Table(evaluators, self._records)
        self.fallen = _find_falls(self.table, self._size) if self.paired else {}
        if self.fallen and abstained == "fell":
            self.table = Table(evaluators, _records_with_falls(self._records, self.table, self.fallen), self._size)
        self.common = len(same)
        self.only_current = len(self.matching.new) + len(self.matching.edited)
        self.only_baseline = len(self.matching.gone) + len(self.matching.edited)
        self.chains: Mapping[str, Chain] = {}
        self.estimates: dict[Hashable, Any] = {}
        self._groups: dict[str, dict[str, PairedRows]] = {}

    def everything(self) -> PairedRows:
        """All cases of two runs that are compared."""
        import numpy as np

        return PairedRows(np.arange(self._size), np.arange(self._size, len(self._records)))

    def silent_in_one(self, name: str, rows: PairedRows) -> BoolArray:
        """The pairs that are not compared, since one of the runs abstains and the suite allows that."""
        import numpy as np

        if not self.paired or self.abstained == "fell" or name not in self.table.abstained:
            return np.zeros(len(rows.current), dtype=bool)
        silent = self.table.abstained[name]
        apart: BoolArray = silent[rows.current] != silent[rows.baseline]
        return apart

    def describe_falls(self, name: str, rows: PairedRows) -> str:
        """The number of cases that abstain and had a score in the baseline, or the reverse, in words."""
        parts = [self._describe_fallen(name, rows), self._describe_answered(name, rows)]
        return "; ".join(filter(None, parts))

    def _describe_answered(self, name: str, rows: PairedRows) -> str:
        """The number of cases with a score that abstained in the baseline, in words."""
        import numpy as np

        if not self.paired or name not in self.table.abstained:
            return ""
        scored = np.isfinite(self.table.scores[name][rows.current])
        count = int((self.table.abstained[name][rows.baseline] & scored).sum())
        return f"{counted(count, 'case')} with a score abstained before" if count else ""

    def _describe_fallen(self, name: str, rows: PairedRows) -> str:
        """The number of cases that abstain and had a score in the baseline, in words."""
        count = int(self.fallen[name][rows.current].sum()) if name in self.fallen else 0
        if not count:
            return ""
        silent = f"{counted(count, 'case')} {'abstains' if count == 1 else 'abstain'} that had a score"
        if self.abstained == "allowed":
            return f"{silent}, which the suite allows"
        return f"{silent}, counted as {limit(self.table.worst(name))}"

    def groups(self, label: str) -> dict[str, PairedRows]:
        """The paired cases by the value of a label, which they have from the current run."""
        import numpy as np

        if label in self._groups:
            return self._groups[label]
        everything = self.everything()
        here = self._members(everything.current, label)
        there = here if self.paired else self._members(everything.baseline, label)
        none = np.zeros(0, dtype=np.intp)
        self._groups[label] = {
            name: PairedRows(everything.current[here.get(name, none)], everything.baseline[there.get(name, none)])
            for name in sorted({*here, *there})
        }
        return self._groups[label]

    def _members(self, rows: IntArray, label: str) -> dict[str, IntArray]:
        """The places of the cases of each group."""
        import numpy as np

        members: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            for name in CaseLabels(self._records[row].labels).groups(label):
                members.setdefault(name, []).append(place)
        return {name: np.array(places, dtype=np.intp) for name, places in members.items()}

    def has_label(self, label: str) -> bool:
        """Whether any case of the current run has a label."""
        return any(label in record.labels for record in self._records[: self._size])

    def clusters_by(self, label: str | None) -> str | None:
        """A label of clusters; ``None`` if no case has it."""
        return label if label and self.has_label(label) else None

    def units(self, rows: IntArray, cluster_by: str | None) -> IntArray:
        """The cluster number of each case; a case without the label is a cluster of its own."""
        return unit_numbers([self._records[row] for row in rows], cluster_by)

    def count_left_out(self, name: str, rows: PairedRows) -> "LeftOut":
        """The cases that the comparison leaves out, bounded by their worst case.

        A case that one run has measured falls from its score, or to it; of others only the metric's range is known.
        """
        import numpy as np

        table, metric = self.table, self.table.metric(name)
        failed = [table.failed[name][part] for part in rows]
        if not self.paired:
            count = sum(int(part.sum()) for part in failed)
            return LeftOut(
                count, None if metric.low is None or metric.high is None else count * (metric.high - metric.low)
            )
        missing = [table.missing[part] for part in rows]
        left_out = failed[0] | failed[1] | (missing[0] != missing[1])
        if metric.low is None or metric.high is None:
            return LeftOut(int(left_out.sum()), None)
        best, worst = (metric.high, metric.low) if metric.higher_is_better else (metric.low, metric.high)

        def bounded(run: int, otherwise: float) -> FloatArray:
            scores = table.scores[name][rows[run]][left_out]
            return np.where(np.isfinite(scores), scores, otherwise)

        return LeftOut(int(left_out.sum()), float(np.abs(bounded(1, best) - bounded(0, worst)).sum()))


class LeftOut(NamedTuple):
    """Cases that the comparison of two runs leaves out.

    Attributes:
        cases: How many errored in either run, or ran in one of them only.
        drop: How far they would have fallen at most, added up; ``None`` if the metric is unbounded.
    """

    cases: int
    drop: float | None
