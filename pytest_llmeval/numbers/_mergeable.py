"""Statistics of one evaluator that merge by addition, whose size does not grow with the cases, and their metrics."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, TypeAlias

from pytest_llmeval.core import (
    CaseRecord,
    Evaluator,
    FloatArray,
    IntervalMethod,
    Metric,
    MetricIndex,
    MetricValue,
    Observation,
    Sums,
    Totals,
)
from pytest_llmeval.numbers._intervals import (
    CountedMetric,
    binary_interval,
    delta_interval,
    partial_interval,
    resampled_deviation,
    value_interval,
)
from pytest_llmeval.numbers._resample import multinomial_totals
from pytest_llmeval.numbers._table import OUTCOME, Table

_NUMBERS = ("cases", "unmeasured", "absent", "failed", "unjudged", "scored", "binary", "abstained")

_STEP = 1e-5
"""Step of the central differences, relative to a total."""

_COLUMNS = 256
"""Columns to differentiate at once."""

_CANCELLED = 1e-9
"""A variance below this share of the sum of its absolute terms is rounding."""


@dataclass(frozen=True)
class Moments:
    """Exact sums of an evaluator's counts over cases; any order and any split give the same.

    Attributes:
        cases: How many.
        unmeasured: Cases without an observation.
        absent: Cases that have no part in any value: unmeasured, or undefined without counts.
        failed: Metric name to the measured cases for which it could not be computed.
        unjudged: Metric name to the cases that have no part in its value, `absent` ones not counted.
        totals: Sums of counts.
        products: Count name to the sums of its products with itself and with later names.
        scores: Metric name to the sum of the cases' own scores.
        scored: Metric name to the cases that have a score.
        binary: Metric name to the cases whose score is 0 or 1.
        abstained: Metric name to the cases whose answers leave nothing to score.
    """

    cases: int
    unmeasured: int
    absent: int
    failed: Mapping[str, int]
    unjudged: Mapping[str, int]
    totals: Totals = field(default_factory=Totals)
    products: Mapping[str, Totals] = field(default_factory=dict)
    scores: Totals = field(default_factory=Totals)
    scored: Mapping[str, int] = field(default_factory=dict)
    binary: Mapping[str, int] = field(default_factory=dict)
    abstained: Mapping[str, int] = field(default_factory=dict)

    def with_sums(
        self, names: Sequence[str], matrix: FloatArray, scores: Mapping[str, FloatArray], weights: Sequence[int]
    ) -> "Moments":
        """These counts of cases with the sums of rows.

        Args:
            names: Of the columns.
            matrix: One row of counts per kind of case.
            scores: Metric name to the score of each row; NaN if it has none.
            weights: How many cases have each row.
        """
        import numpy as np

        number = np.array(weights, dtype=np.int64)
        products: dict[str, Totals] = {}
        for left, name in enumerate(names):
            held = np.flatnonzero(matrix[:, left])
            others = [right for right in range(left, len(names)) if matrix[held, right].any()]
            products[name] = Totals(
                {
                    names[right]: _weight_numbers(matrix[held, left] * matrix[held, right], number[held])
                    for right in others
                }
            )
        finite = {name: np.isfinite(column) for name, column in scores.items()}
        return replace(
            self,
            totals=Totals({name: _weight_numbers(matrix[:, column], number) for column, name in enumerate(names)}),
            products=products,
            scores=Totals(
                {name: _weight_numbers(column[finite[name]], number[finite[name]]) for name, column in scores.items()}
            ),
            scored={name: int(number[rows].sum()) for name, rows in finite.items()},
            binary={name: int(number[np.isin(column, (0.0, 1.0))].sum()) for name, column in scores.items()},
        )

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            **{
                attribute.name: _add_fields(getattr(self, attribute.name), getattr(other, attribute.name))
                for attribute in fields(self)
            }
        )

    def deviations(
        self, formula: Callable[[FloatArray], Mapping[str, FloatArray]], names: Sequence[str]
    ) -> Mapping[str, float]:
        """Standard deviations of values over samples of this size, by the delta method.

        The variance of a function of sums is that of its linear part, whose slopes are central differences.

        Returns:
            Metric name to the standard deviation; not finite if the formula has no slope.
        """
        import numpy as np

        totals = np.array([self.totals.get(name, 0.0) for name in names])
        squares = np.array([self.products[name].get(name, 0.0) if name in self.products else 0.0 for name in names])
        steps = _STEP * np.maximum(np.abs(totals), np.sqrt(squares))
        slopes = _slopes(formula, totals, steps)
        place = {name: column for column, name in enumerate(names)}
        deviations = {}
        for metric, slope in slopes.items():
            terms = [
                (1 if left == right else 2) * product * slope[place[left]] * slope[place[right]]
                for left, row in self.products.items()
                for right, product in row.items()
            ]
            terms.append(-(float(slope @ totals) ** 2) / self.cases)
            variance, size = sum(terms), sum(map(abs, terms))
            deviations[metric] = 0.0 if variance <= _CANCELLED * size else float(np.sqrt(variance))
        return deviations

    def to_json(self) -> dict[str, Any]:
        """The moments as JSON data."""
        return {
            **{name: getattr(self, name) for name in _NUMBERS},
            "totals": self.totals.to_json(),
            "products": {name: row.to_json() for name, row in self.products.items()},
            "scores": self.scores.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Moments":
        """Read what `to_json` wrote; the round trip is identity."""
        numbers = {name: data[name] for name in _NUMBERS}
        return cls(
            totals=Totals.from_json(data["totals"]),
            products={name: Totals.from_json(row) for name, row in data["products"].items()},
            scores=Totals.from_json(data["scores"]),
            **numbers,
        )


def _add_fields(left: Any, right: Any) -> Any:
    """Add fields of two `Moments`: numbers, exact sums, or mappings of these, whose absent keys add nothing."""
    if isinstance(left, Totals) or not isinstance(left, Mapping):
        return left + right
    either = {**left, **right}
    return {
        name: _add_fields(left[name], right[name]) if name in left and name in right else either[name]
        for name in sorted(either)
    }


def _weight_numbers(values: FloatArray, number: Any) -> list[float]:
    """Numbers whose exact sum is that of `values`, each counted for so many equal cases.

    A product with a whole number would be rounded; products with powers of two are not.
    """
    parts: list[float] = []
    for bit in range(int(number.max(initial=0)).bit_length()):
        parts.extend((values[number >> bit & 1 == 1] * 2.0**bit).tolist())
    return parts


def _slopes(
    formula: Callable[[FloatArray], Mapping[str, FloatArray]], totals: FloatArray, steps: FloatArray
) -> Mapping[str, FloatArray]:
    """The partial derivatives of every metric by the summed counts, for intervals by the delta method."""
    import numpy as np

    parts: dict[str, list[FloatArray]] = {}
    columns = np.flatnonzero(steps)
    for start in range(0, len(columns), _COLUMNS):
        chosen = columns[start : start + _COLUMNS]
        moved = np.repeat(totals[np.newaxis], 2 * len(chosen), axis=0)
        rows = np.arange(len(chosen))
        moved[rows, chosen] += steps[chosen]
        moved[rows + len(chosen), chosen] -= steps[chosen]
        for metric, values in formula(moved).items():
            apart = moved[rows, chosen] - moved[rows + len(chosen), chosen]
            parts.setdefault(metric, []).append((values[: len(chosen)] - values[len(chosen) :]) / apart)
    slopes = {}
    for metric, pieces in parts.items():
        slopes[metric] = np.zeros(len(totals))
        slopes[metric][columns] = np.concatenate(pieces)
    return slopes


FEW = 250
"""Up to this many distinct rows are kept; more are reduced to sums."""

CountsRow: TypeAlias = tuple[tuple[tuple[str, float], ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The parts of an observation that metrics depend on: counts, undefined, errored and abstained metrics, sorted."""

Formula: TypeAlias = "Callable[[FloatArray], Mapping[str, FloatArray]]"

_UNMEASURED: CountsRow = ((), (), ("",), ())
"""The row of a case without an observation; no metric has an empty name."""


@dataclass(frozen=True)
class Statistics:
    """The number of cases with each distinct row of counts, or the sums of the rows if there are too many.

    Which of the two depends on the set of cases alone, not on the order or grouping of additions.

    Attributes:
        rows: Row to the number of cases that have it; empty if `moments` are kept.
        moments: Sums; ``None`` if `rows` are kept.
    """

    rows: Mapping[CountsRow, int]
    moments: Moments | None = None

    @classmethod
    def from_observations(
        cls, label: str, evaluator: Evaluator, observations: Iterable[Observation | None]
    ) -> "Statistics":
        """The statistics of observations; ``None`` is a case that could not be measured."""
        listed = list(observations)
        shared = {id(observation): observation for observation in listed}  # most cases of a block share theirs
        counts: Counter[Any] = Counter()
        for number, cases in Counter(map(id, listed)).items():
            seen = shared[number]
            parts = () if seen is None else (seen.undefined, seen.errored, seen.abstained)
            counts[None if seen is None else (tuple(seen.counts.items()), *map(tuple, parts))] += cases
        rows: Counter[CountsRow] = Counter()
        for counts_key, cases in counts.items():
            rows[_UNMEASURED if counts_key is None else _sorted_row(*counts_key)] += cases
        return _bounded_statistics(rows, label, evaluator)

    def plus(self, other: "Statistics", label: str, evaluator: Evaluator) -> "Statistics":
        """The statistics of these and other cases."""
        if self.moments is None and other.moments is None:
            return _bounded_statistics(Counter(self.rows) + Counter(other.rows), label, evaluator)
        return Statistics({}, self.summed(label, evaluator) + other.summed(label, evaluator))

    @property
    def cases(self) -> int:
        """The number of cases in the statistics."""
        return sum(self.rows.values()) if self.moments is None else self.moments.cases

    @property
    def names(self) -> Sequence[str]:
        """The names of the counts, sorted."""
        if self.moments is not None:
            return list(self.moments.totals)
        return sorted({name for counts, *_ in self.rows for name, _ in counts})

    def summed(self, label: str, evaluator: Evaluator, names: Sequence[str] = ()) -> Moments:
        """The sums over all cases, those in distinct rows included.

        Args:
            label: The evaluator's name in the suite.
            evaluator: Has the formula.
            names: Of counts that other cases have; some formulas give more metrics with them.
        """
        if self.moments is not None:
            return self.moments
        rows, weights = self._list_rows()
        table = Table(
            _of_suite(label, evaluator), [*(_record_of_counts(label, row) for row in rows), _padding(label, names)]
        )
        scores = {name: table.scores[name][:-1] for name, owner in table.owner.items() if owner == label}
        cases = self._cases(label, table.index, pools=evaluator.pools_undefined)
        return cases.with_sums(table.names[label], table.columns(label)[:-1], scores, weights)

    def _cases(self, label: str, index: MetricIndex, *, pools: bool) -> Moments:
        """The numbers of cases, without the sums of their counts."""
        failed: Counter[str] = Counter()
        unjudged: Counter[str] = Counter()
        silent: Counter[str] = Counter()
        unmeasured = self.rows.get(_UNMEASURED, 0)
        absent = unmeasured
        for row, cases in self.rows.items():
            if row == _UNMEASURED:
                continue
            counts, undefined, errored, abstained = row
            for name in errored:
                failed[index.full_name(label, name)] += cases
            for name in abstained:
                silent[index.full_name(label, name)] += cases
            if undefined and not counts:
                absent += cases
                continue
            for name in {*errored, *(() if pools else undefined)}:
                unjudged[index.full_name(label, name)] += cases
        return Moments(sum(self.rows.values()), unmeasured, absent, failed, unjudged, abstained=silent)

    def resampled(self, formula: Formula, names: Sequence[str]) -> Mapping[str, FloatArray]:
        """Metrics of bootstrap resamples, drawn as numbers of cases of each distinct row."""
        import numpy as np

        rows, cases = self._list_rows()
        place = {name: column for column, name in enumerate(names)}
        matrix = np.zeros((len(rows), len(names)))
        for number, (counts, *_) in enumerate(rows):
            for name, count in counts:
                matrix[number, place[name]] = count
        return formula(multinomial_totals(matrix, np.array(cases)))

    def _list_rows(self) -> tuple[list[CountsRow], list[int]]:
        """The distinct rows of counts, sorted, and the number of cases with each."""
        rows = sorted(self.rows)
        return rows, [self.rows[row] for row in rows]

    def to_json(self) -> dict[str, Any]:
        """The statistics as JSON data."""
        if self.moments is not None:
            return {"moments": self.moments.to_json()}
        rows, cases = self._list_rows()
        return {
            "rows": [
                [dict(counts), list(undefined), list(errored), number, *([list(abstained)] if abstained else [])]
                for (counts, undefined, errored, abstained), number in zip(rows, cases, strict=True)
            ]
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Statistics":
        """Read what `to_json` wrote; the round trip is identity."""
        if "moments" in data:
            return cls({}, Moments.from_json(data["moments"]))
        return cls(
            {
                _sorted_row(tuple(counts.items()), undefined, errored, *abstained): int(cases)
                for counts, undefined, errored, cases, *abstained in data["rows"]
            }
        )

    def values_of(
        self,
        label: str,
        evaluator: Evaluator,
        names: Sequence[str],
        confidence: float | None,
        missing: int = 0,
    ) -> tuple[dict[str, MetricValue], dict[str, IntervalMethod]]:
        """An evaluator's metrics, and how the intervals of those that have one were computed.

        Args:
            label: The evaluator's name in the suite.
            evaluator: Has the formula.
            names: Of all counts that the evaluator has in the whole suite, those of `statistics` among them.
            confidence: Of the intervals; ``None`` leaves them out.
            missing: Cases that did not run, which are not in `statistics`' errors.
        """
        import numpy as np

        formula = label_formula(label, evaluator, names)
        sums = self.summed(label, evaluator, names)
        index = MetricIndex.from_evaluators({label: evaluator})

        @cache
        def resampled() -> Mapping[str, FloatArray]:
            return self.resampled(formula, names)

        @cache
        def deviations() -> Mapping[str, float]:
            with np.errstate(all="ignore"):
                return sums.deviations(formula, names)

        totals = {count: np.array([sums.totals.get(count, 0.0)]) for count in names}
        rests = {index.full_name(label, name): basis for name, basis in evaluator.basis(Sums(totals, 1)).items()}

        def bounds(
            name: str, counted: CountedMetric, level: float
        ) -> tuple[tuple[float, float] | None, IntervalMethod]:
            known = counted.pooled, counted.drawn, counted.ranged, level
            if counted.basis is not None:
                if (closed := counted.closed_interval(level)) is not None:
                    return closed, "closed_form"
                if self.moments is None:
                    return partial_interval(resampled_deviation(resampled()[name]), counted.basis, *known), "bootstrap"
                return partial_interval(deviations()[name], counted.basis, *known), "delta"
            if counted.scored and sums.binary[name] == counted.scored:
                wilson = binary_interval(counted.pooled, int(counted.total), counted.scored, *known[1:])
                if wilson is not None:
                    return wilson, "wilson"
            if self.moments is None:
                return value_interval(resampled()[name], *known), "bootstrap"
            return delta_interval(deviations()[name], *known), "delta"

        values: dict[str, MetricValue] = {}
        methods: dict[str, IntervalMethod] = {}
        for name, column in formula(np.array([[sums.totals.get(count, 0.0) for count in names]])).items():
            owned = index.find(name)
            metric = Metric(Metric.PASS_RATE) if owned is None else owned.metric
            counted = CountedMetric(
                metric=metric,
                signature=metric.signature,
                pooled=float(column[0]),
                total=sums.scores.get(name, 0.0),
                cases=sums.cases,
                judged=sums.cases - sums.absent - sums.unjudged.get(name, 0),
                scored=sums.scored.get(name, 0),
                errored=sums.failed.get(name, 0) + (0 if label == OUTCOME else sums.unmeasured - missing),
                missing=missing,
                abstained=sums.abstained.get(name, 0),
                basis=rests.get(name),
            )
            interval = None
            if confidence is not None and counted.has_interval:
                interval, method = bounds(name, counted, confidence)
                if interval:
                    methods[name] = method
            values[name] = counted.metric_value(interval)
        return values, methods


def _bounded_statistics(rows: Mapping[CountsRow, int], label: str, evaluator: Evaluator) -> Statistics:
    """An evaluator's statistics with distinct count rows, or their sums if the rows are too many."""
    statistics = Statistics(rows)
    return statistics if len(rows) <= FEW else Statistics({}, statistics.summed(label, evaluator))


def label_formula(label: str, evaluator: Evaluator, names: Sequence[str]) -> Formula:
    """The formula of an evaluator for rows of totals, with the columns `names`."""
    import numpy as np

    table = Table(_of_suite(label, evaluator), [_padding(label, names)])

    def formula(matrix: FloatArray) -> Mapping[str, FloatArray]:
        # The evaluator's own columns come first, those of the outcome last.
        whole = np.zeros((len(matrix), table.matrix.shape[1]))
        whole[:, : len(names)] = matrix
        return {name: values for name, values in table.summarize(whole).items() if table.owner.get(name) == label}

    return formula


def _of_suite(label: str, evaluator: Evaluator) -> Mapping[str, Evaluator]:
    """The evaluators for a table of one evaluator; every table also has that of the outcome."""
    return {} if label == OUTCOME else {label: evaluator}


def _sorted_row(
    counts: Iterable[tuple[str, float]],
    undefined: Iterable[str],
    errored: Iterable[str],
    abstained: Iterable[str] = (),
) -> CountsRow:
    """A case's counts as a sorted row, so that statistics merge equal cases in any order."""
    return (
        tuple(sorted((name, float(count)) for name, count in counts)),
        tuple(sorted(undefined)),
        tuple(sorted(errored)),
        tuple(sorted(abstained)),
    )


def _record_of_counts(label: str, row: CountsRow) -> CaseRecord:
    """A case record with the counts of a row of merged statistics, for tables."""
    if row == _UNMEASURED:
        return CaseRecord("", errors={label: ""})
    counts, undefined, errored, abstained = row
    seen = Observation(
        dict(counts),
        undefined=dict.fromkeys(undefined, ""),
        errored=dict.fromkeys(errored, ""),
        abstained=abstained,
    )
    return CaseRecord("", observations={label: seen})


def _padding(label: str, names: Sequence[str]) -> CaseRecord:
    """A case record that adds nothing to merged statistics but the names of counts."""
    return CaseRecord("", observations={label: Observation(dict.fromkeys(names, 0.0))})
