"""Repeated cases."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec import structs

from pytest_llmeval.core import (
    Basis,
    Evaluator,
    FieldsError,
    FloatArray,
    Metric,
    Observation,
    RecordedCounts,
    Sums,
    WrappedEvaluator,
)
from pytest_llmeval.numbers._case_scores import TOLERANCE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_llmeval.core import ReportTable


Reducer: TypeAlias = Literal["mean", "median", "majority", "min", "max", "pass_at_k", "all_of_k"]
Status: TypeAlias = Literal["stable pass", "flaky", "stable fail", "error"]

_SUM, _COUNT = "sum ", "n "
_PASSED = "passed"

FALLEN, SCORED = "\x00fallen ", "\x00scored "
"""Counts of a metric that no evaluator has: the share of a case that counts as the worst value, and the share with a
score. A table adds the latter, and multiplies both by the weight of the case."""

_WEIGHT_DIGITS = 12


@dataclass(frozen=True)
class Repeats:
    """The number of runs of a case, and the reduction of their scores to one.

    Attributes:
        times: Runs of target and judge per case.
        reduce: ``mean`` averages the counts, so that pooled metrics stay pooled. The others reduce every metric of a
            case to one number, and the suite's value is then the mean of those: ``median``, ``min``, ``max``;
            ``majority``, the most frequent score, of equally frequent ones the worst; ``pass_at_k``, the probability
            that at least one of ``k`` runs succeeds, and ``all_of_k``, that all of them do, estimated without bias
            from all runs (Chen et al. 2021, "Evaluating Large Language Models Trained on Code", equation 1). These two
            reduce metrics with a largest value of which more is better; of others, such as a number of turns, no score
            is a success, and they are averaged.
        k: For the last two; at most ``times``.
        success: The score from which on a run succeeds, for the last two.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    RELIABILITY: ClassVar = "repeats"
    """The label of the metrics of a suite whose cases are repeated."""

    times: int = 1
    reduce: Reducer = "mean"
    k: int = 1
    success: float = 1.0

    def __post_init__(self) -> None:
        if self.times < 1:
            raise FieldsError([("times", f"found {self.times}, expected at least 1")])
        if not 1 <= self.k <= self.times:
            raise FieldsError([("k", f"found {self.k}, expected 1 to {self.times}, the number of times")])

    @property
    def reliability(self) -> "RecordedCounts":
        """The evaluator of how probably repeated cases pass, whose name is its label."""
        return _Reliability(self.times)

    def reliability_of(self, passed: Iterable[bool]) -> Observation:
        """The observation of a case by whether each of its runs passed."""
        return self.reliability.reduce([Observation({_PASSED: int(is_met)}) for is_met in passed])

    def over(self, evaluators: Mapping[str, Evaluator], *, counts_abstained: bool) -> dict[str, Evaluator]:
        """The evaluators by label with reduced observations, and that of reliability.

        Args:
            evaluators: Label to the evaluator that measures each repeat.
            counts_abstained: Whether a repeat that abstains, where others have a score, counts as the worst value.
        """
        reduced = {
            label: Reduced(evaluator, self, counts_abstained=counts_abstained)
            for label, evaluator in evaluators.items()
        }
        return {**reduced, self.RELIABILITY: self.reliability}

    @staticmethod
    def summary(passed: Sequence[bool | None], scores: Sequence[Mapping[str, float | None]]) -> dict[str, Any]:
        """The figures of a case's repeats that reports show.

        Args:
            passed: Whether each passed; ``None`` if it could not be scored.
            scores: Metric to score of each.
        """
        return {
            "times": len(passed),
            "passed": passed.count(True),
            "pass_rate": passed.count(True) / len(passed),
            "status": status_of(passed),
            "flakiness": flakiness_of(passed),
            "spread": spread_of(scores),
        }

    def __str__(self) -> str:
        k = f"|k:{self.k}|success:{self.success:g}" if self.reduce.endswith("_k") else ""
        return f"repeats:{self.times}|reduce:{self.reduce}{k}"


def status_of(passed: Sequence[bool | None]) -> Status:
    """The status of a repeated case: every repeat passed or failed; ``None`` if one could not be scored."""
    if None in passed:
        return "error"
    if all(passed):
        return "stable pass"
    return "flaky" if any(passed) else "stable fail"


def flakiness_of(passed: Sequence[bool | None]) -> float | None:
    """The probability that two repeats of a case, drawn at random, come out differently.

    Returns:
        0 if all repeats came out alike, 1 for two that did not, and at most a little above 0.5 for many; ``None``
        if one could not be scored.
    """
    if None in passed or len(passed) < 2:  # noqa: PLR2004 (a pair)
        return None
    successes = passed.count(True)
    return successes * (len(passed) - successes) / math.comb(len(passed), 2)


def _median_of_repeats(scores: Sequence[float], metric: Metric, repeats: Repeats) -> float:
    """The median score of a case's repeats."""
    del metric, repeats
    ordered = sorted(scores)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _majority_of_repeats(scores: Sequence[float], metric: Metric, repeats: Repeats) -> float:
    """The most frequent score of a case's repeats; of equally frequent ones, the worst."""
    del repeats
    often = Counter(scores)
    most = max(often.values())
    winners = [score for score, count in often.items() if count == most]
    return min(winners) if metric.higher_is_better else max(winners)


def _pass_at_k(n: int, successes: int, k: int) -> float:
    """Estimate, without bias, the probability that one of k runs succeeds, from n runs."""
    return 1.0 - math.comb(n - successes, k) / math.comb(n, k)


def _all_of_k(n: int, successes: int, k: int) -> float:
    """Estimate, without bias, the probability that all of k runs succeed (Yao et al. 2024, "tau-bench", section 3)."""
    return math.comb(successes, k) / math.comb(n, k)


def _estimate_by_successes(
    estimate: Callable[[int, int, int], float],
) -> Callable[[Sequence[float], Metric, Repeats], float]:
    """A reduction of a case's repeats, such as ``pass@k``, by an estimate from runs and successes."""

    def reduce(scores: Sequence[float], metric: Metric, repeats: Repeats) -> float:
        del metric
        return estimate(len(scores), sum(score >= repeats.success - TOLERANCE for score in scores), repeats.k)

    return reduce


REDUCERS: Mapping[str, Callable[[Sequence[float], Metric, Repeats], float]] = {
    "median": _median_of_repeats,
    "majority": _majority_of_repeats,
    "min": lambda scores, *_: min(scores),
    "max": lambda scores, *_: max(scores),
    "pass_at_k": _estimate_by_successes(_pass_at_k),
    "all_of_k": _estimate_by_successes(_all_of_k),
}


@dataclass(frozen=True)
class Reduced(WrappedEvaluator):
    """An evaluator over repeated cases: its observations are reduced ones, its values means over cases.

    Attributes:
        evaluator: The evaluator that measures each repeat.
        repeats: How often, and how to reduce.
        counts_abstained: Whether a repeat that abstains, where others have a score, counts as the worst value. To a
            metric without one the whole case abstains.
    """

    origin = "repeats are reduced"

    repeats: Repeats
    counts_abstained: bool = True

    @property
    def pools_undefined(self) -> bool:  # type: ignore[override]  # a class variable of evaluators that measure
        """As the evaluator that measures, whose formula it is for ``mean``."""
        return self.evaluator.pools_undefined and self.repeats.reduce == "mean"

    def describe(self) -> Sequence[Metric]:
        """The metrics of the evaluator, with the repeats in their signatures."""
        return [
            structs.replace(
                metric,
                signature=f"{metric.signature}|{self.repeats}".lstrip("|"),
                averaged=metric.averaged or (self.repeats.reduce != "mean" and not self._averages(metric.name)),
            )
            for metric in self.evaluator.describe()
        ]

    def reduce(self, observations: Sequence[Observation]) -> Observation:
        """The observation of a case from those of all its repeats.

        A metric that is undefined in some of them is reduced over the others, and over those that abstain.
        """
        mean = self.evaluator.reduce(observations)
        averages = self.repeats.reduce == "mean"
        silent = any(observation.abstained for observation in observations)
        if averages and not (silent and self.counts_abstained):
            return mean
        counts, undefined = dict(mean.counts) if averages or self._averaged else {}, dict(mean.undefined)
        scores = [self.evaluator.scores(observation) for observation in observations]
        for name in dict.fromkeys(name for score in scores for name in score):
            known = [value for score in scores if (value := score.get(name)) is not None]
            abstained = [observation.undefined[name] for observation in observations if name in observation.abstained]
            if name in mean.errored or not known:
                continue
            worst = self._metric(name).worst
            if abstained and self.counts_abstained and worst is None:
                undefined[name] = abstained[0]
                continue
            silent_count = len(abstained) if self.counts_abstained else 0
            if self._averages(name):
                counts |= {FALLEN + name: silent_count / (silent_count + len(known))} if silent_count else {}
                continue
            known += [] if worst is None else [worst] * silent_count
            if len(known) >= self.repeats.k:
                counts[_SUM + name] = REDUCERS[self.repeats.reduce](known, self._metric(name), self.repeats)
                counts[_COUNT + name] = 1
            else:
                undefined.setdefault(name, f"fewer than {self.repeats.k} repeats have a score")
        return structs.replace(
            mean, counts=counts, undefined=undefined, abstained=Observation.abstained_of(undefined, observations)
        )

    def basis(self, sums: Sums) -> Mapping[str, Basis]:
        """The number of cases behind averaged repeats; other reductions have none."""
        return self.evaluator.basis(measured_counts(sums)) if self.repeats.reduce == "mean" else {}

    def tables(self) -> "Sequence[ReportTable]":
        """The tables of the evaluator that measures; counts are kept only where repeats are averaged."""
        return [table for table in self.evaluator.tables() if self.repeats.reduce == "mean" or not table.has_counts]

    @cached_property
    def _averaged(self) -> frozenset[str]:
        """The families of metrics of which no score is a success."""
        if not self.repeats.reduce.endswith("_k"):
            return frozenset()
        metrics = self.evaluator.describe()
        return frozenset(
            _metric_family(metric.name) for metric in metrics if metric.high is None or not metric.higher_is_better
        )

    def _averages(self, name: str) -> bool:
        """Whether a metric's value is a mean over repeats."""
        return self.repeats.reduce == "mean" or _metric_family(name) in self._averaged

    def _metric(self, name: str) -> Metric:
        """The declared metric of a name or family."""
        return next(
            metric for metric in self.evaluator.describe() if _metric_family(metric.name) == _metric_family(name)
        )

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """The evaluator's own formula for ``mean``, else means over cases."""
        fallen = [name.removeprefix(FALLEN) for name in sums if name.startswith(FALLEN)]
        worst = {name: worst_value for name in fallen if (worst_value := self._metric(name).worst) is not None}
        return values_with_falls(self._summarize, sums, worst)

    def _summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Means over repeated cases, or the evaluator's own formula."""
        if self.repeats.reduce == "mean":
            return self.evaluator.summarize(sums)
        names = [name.removeprefix(_COUNT) for name in sums if name.startswith(_COUNT)]
        metrics = [metric.name for metric in self.evaluator.describe() if "[" not in metric.name]
        single = [name for name in metrics if not self._averages(name)]
        reduced = {name: sums[_SUM + name] / sums[_COUNT + name] for name in dict.fromkeys([*single, *names])}
        if not self._averaged:
            return reduced
        whole = self.evaluator.summarize(sums)
        return {name: reduced.get(name, column) for name, column in whole.items() if self._averages(name)} | reduced


@dataclass(frozen=True)
class WithFalls(WrappedEvaluator):
    """An evaluator by which cases, or a part of their runs, that leave nothing to score count as the worst value.

    A value over `scored` cases with a score and `fallen` ones is the mean of the value and the worst one, by their
    weights; for the mean of case scores that is the mean of all scores.

    Attributes:
        evaluator: The evaluator that measures.
        worst: Metric, as it names it, to the worst value.
    """

    origin = "falls are counted"

    worst: Mapping[str, float]

    def basis(self, sums: Sums) -> Mapping[str, Basis]:
        """The number of cases behind values, by the counts that the evaluator has."""
        return self.evaluator.basis(measured_counts(sums))

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """The evaluator's values, moved towards the worst ones."""
        return values_with_falls(self.evaluator.summarize, sums, self.worst)


def values_with_falls(
    formula: Callable[[Sums], Mapping[str, FloatArray]], sums: Sums, worst: Mapping[str, float]
) -> Mapping[str, FloatArray]:
    """The values of a formula, of which the share of cases that fell is the worst value.

    Args:
        formula: Of an evaluator, over its own counts.
        sums: With the counts of cases that fell; without numbers of cases that have a score, each row is one case.
        worst: Metric to the worst value, of metrics that fell.
    """
    import numpy as np

    if not worst:
        return formula(measured_counts(sums))
    values = dict(formula(measured_counts(sums)))
    for name in worst.keys() & values.keys():
        fallen = sums[FALLEN + name]
        scored = sums[SCORED + name] if SCORED + name in sums else 1 - fallen
        total = np.where(scored > 0, values[name], 0.0) * scored + worst[name] * fallen
        values[name] = np.where(fallen > 0, total / (scored + fallen), values[name])
    return values


def case_weights(
    evaluator: Evaluator | None, sums: Sums, name: str, scores: FloatArray, fallen: FloatArray, former: int
) -> FloatArray:
    """The weight of each case in a value over several, such as the number of its claims.

    Args:
        evaluator: Its formula, over its own counts; ``None`` if the value is the mean of scores.
        sums: One row per case.
        name: The metric.
        scores: Of the cases; NaN for those that have none.
        fallen: The share of each case that fell. A case that fell as a whole weighs what it weighed before.
        former: How many rows further on a case is as it was before; 0: nowhere.

    Returns:
        All 1 if the scores do not differ, or the value is no mean by weights.
    """
    import numpy as np

    weights = np.ones(len(scores))
    with np.errstate(all="ignore"):
        own = None if evaluator is None else _weights(evaluator, sums, name, scores)
        if own is not None:  # counts of repeats are means over all of them, silent ones included
            weights = np.where(np.isfinite(own) & (fallen < 1), own / (1 - fallen), 1.0)
    rows = np.flatnonzero(fallen[:former] >= 1)
    weights[rows] = weights[former:][rows]
    return weights


def _weights(evaluator: Evaluator, sums: Sums, name: str, scores: FloatArray) -> FloatArray | None:
    """The weights of cases, whose mean is 1, if they can be derived.

    A ratio of sums is the mean of scores by its denominators: a case that is added to others of another score moves
    their value by its weight.
    """
    import numpy as np

    known = np.isfinite(scores)
    if not known.any() or np.ptp(scores[known]) <= TOLERANCE:
        return None
    low, high = scores[known].min(), scores[known].max()
    worst, best = scores == low, scores == high

    def weighed(reference: "npt.NDArray[np.bool_]", value: float) -> FloatArray:
        added = {count: column + column[reference].mean() for count, column in sums.items()}
        moved = evaluator.summarize(Sums(added, sums.length))[name]
        return (moved - value) / (scores - moved)

    by_worst = weighed(worst, low)
    by_best = weighed(best, high) * by_worst[best].mean()
    weights: FloatArray = np.where(scores > (low + high) / 2, by_worst, by_best)
    if not (np.isfinite(weights[known]) & (weights[known] > 0)).all():
        return None
    rounded: FloatArray = np.round(weights / weights[known].mean(), _WEIGHT_DIGITS)
    return rounded


def measured_counts(sums: Sums) -> Sums:
    """The counts that an evaluator itself has measured, without those of fallen cases."""
    columns = {name: column for name, column in sums.items() if _without_mark(name) == name}
    return sums if len(columns) == len(sums) else Sums(columns, sums.length, sums.metrics)


def _without_mark(name: str) -> str:
    """The name of a count or metric without the prefix that marks fallen or scored cases."""
    return name.removeprefix(FALLEN).removeprefix(SCORED)


@dataclass(frozen=True)
class _Reliability(RecordedCounts):
    """The probability that cases pass when they run again.

    * ``pass@k``: the probability that at least one of k runs of a case passes; ``pass@1`` is the share that passes;
    * ``pass^k``: the probability that all of k runs pass.

    Both are estimated without bias from all runs of a case, and are means over cases: the runs of a case are no
    evidence about others, so intervals draw whole cases.

    Attributes:
        times: How often each case runs.
    """

    name = Repeats.RELIABILITY
    origin = "repeats are counted"

    times: int

    def describe(self) -> Sequence[Metric]:
        """Both reliability metrics for each k up to the number of runs, 10 at most."""
        signature = f"repeats:{self.times}"
        return [Metric(f"pass{mark}{k}", signature=signature, averaged=True) for mark, k in self._named]

    @cached_property
    def _named(self) -> Sequence[tuple[str, int]]:
        """The name and k of each reliability metric."""
        return [(mark, k) for mark in _ESTIMATES for k in range(1, min(self.times, _MOST_TRIES) + 1)]

    def reduce(self, observations: Sequence[Observation]) -> Observation:
        """The observation of a case from those of its runs, made by `Repeats.reliability_of`."""
        n, successes = len(observations), sum(observation.counts[_PASSED] == 1 for observation in observations)
        counts = {f"pass{mark}{k}": _ESTIMATES[mark](n, successes, k) for mark, k in self._named}
        return Observation({**counts, "n": 1})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """The reliability metrics as means over cases."""
        return {metric.name: sums[metric.name] / sums["n"] for metric in self.describe()}


_MOST_TRIES = 10
_ESTIMATES: Mapping[str, Callable[[int, int, int], float]] = {"@": _pass_at_k, "^": _all_of_k}


def _metric_family(metric: str) -> str:
    """The name of a metric without its member in brackets: ``f1`` of ``f1[joy]``."""
    return metric.partition("[")[0]


def spread_of(scores: Sequence[Mapping[str, float | None]]) -> dict[str, Any]:
    """The scores of all repeats per metric, with their smallest, largest and standard deviation."""
    spread: dict[str, Any] = {}
    for name in dict.fromkeys(name for score in scores for name in score):
        values = [score.get(name) for score in scores]
        known = [value for value in values if value is not None]
        if not known:
            continue
        mean = math.fsum(known) / len(known)
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / len(known))
        spread[name] = {"scores": values, "min": min(known), "max": max(known), "sd": deviation}
    return spread
