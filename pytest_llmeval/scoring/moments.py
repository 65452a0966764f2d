"""Sums of counts, of their products and of scores: what values, means and delta intervals are computed from."""

__all__ = ("Moments",)

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.observation import Totals

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray

_NUMBERS = ("cases", "unmeasured", "absent", "failed", "unjudged", "scored", "binary")

_STEP = 1e-5
"""Step of the central differences, relative to a total."""

_COLUMNS = 256
"""Columns to differentiate at once."""

_CANCELLED = 1e-9
"""A variance below this share of the sum of its absolute terms is rounding."""


@dataclass(frozen=True)
class Moments:
    """Exact sums over cases; any order and any split give the same.

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

    def with_sums(
        self, names: Sequence[str], matrix: "FloatArray", scores: "Mapping[str, FloatArray]", weights: Sequence[int]
    ) -> "Moments":
        """Return these counts of cases with the sums of rows.

        Args:
            names: Of the columns.
            matrix: One row of counts per kind of case.
            scores: Metric name to the score of each row; NaN where it has none.
            weights: How many cases have each row.
        """
        import numpy as np

        number = np.array(weights, dtype=np.int64)
        products: dict[str, Totals] = {}
        for left, name in enumerate(names):
            held = np.flatnonzero(matrix[:, left])
            others = [right for right in range(left, len(names)) if matrix[held, right].any()]
            products[name] = Totals(
                {names[right]: _weighted(matrix[held, left] * matrix[held, right], number[held]) for right in others}
            )
        finite = {name: np.isfinite(column) for name, column in scores.items()}
        return Moments(
            self.cases,
            self.unmeasured,
            self.absent,
            self.failed,
            self.unjudged,
            Totals({name: _weighted(matrix[:, column], number) for column, name in enumerate(names)}),
            products,
            Totals({name: _weighted(column[finite[name]], number[finite[name]]) for name, column in scores.items()}),
            {name: int(number[rows].sum()) for name, rows in finite.items()},
            {name: int(number[np.isin(column, (0.0, 1.0))].sum()) for name, column in scores.items()},
        )

    def __add__(self, other: "Moments") -> "Moments":
        empty = Totals()
        pairs = sorted({*self.products, *other.products})
        return Moments(
            self.cases + other.cases,
            self.unmeasured + other.unmeasured,
            self.absent + other.absent,
            _added(self.failed, other.failed),
            _added(self.unjudged, other.unjudged),
            self.totals + other.totals,
            {name: self.products.get(name, empty) + other.products.get(name, empty) for name in pairs},
            self.scores + other.scores,
            _added(self.scored, other.scored),
            _added(self.binary, other.binary),
        )

    def deviations(
        self, formula: "Callable[[FloatArray], Mapping[str, FloatArray]]", names: Sequence[str]
    ) -> "Mapping[str, float]":
        """Return standard deviations of values over samples of this size, by the delta method.

        The variance of a function of sums is that of its linear part, whose slopes are central differences.

        Returns:
            Metric name to the standard deviation; not finite where the formula has no slope.
        """
        import numpy as np

        totals = np.array([self.totals.get(name, 0.0) for name in names])
        squares = np.array([self.products[name].get(name, 0.0) if name in self.products else 0.0 for name in names])
        steps = _STEP * np.maximum(np.abs(totals), np.sqrt(squares))
        slopes = _slopes(formula, totals, steps)
        place = {name: column for column, name in enumerate(names)}
        found = {}
        for metric, slope in slopes.items():
            terms = [
                (1 if left == right else 2) * product * slope[place[left]] * slope[place[right]]
                for left, row in self.products.items()
                for right, product in row.items()
            ]
            terms.append(-(float(slope @ totals) ** 2) / self.cases)
            variance, size = sum(terms), sum(map(abs, terms))
            found[metric] = 0.0 if variance <= _CANCELLED * size else float(np.sqrt(variance))
        return found

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
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


def _added(left: Mapping[str, int], right: Mapping[str, int]) -> Mapping[str, int]:
    return {name: left.get(name, 0) + right.get(name, 0) for name in sorted({*left, *right})}


def _weighted(values: "FloatArray", number: Any) -> list[float]:
    """Return numbers whose exact sum is that of `values`, each taken so many times.

    A product with a whole number would be rounded; products with powers of two are not.
    """
    parts: list[float] = []
    for bit in range(int(number.max(initial=0)).bit_length()):
        parts.extend((values[number >> bit & 1 == 1] * 2.0**bit).tolist())
    return parts


def _slopes(
    formula: "Callable[[FloatArray], Mapping[str, FloatArray]]", totals: "FloatArray", steps: "FloatArray"
) -> "Mapping[str, FloatArray]":
    """Return the partial derivatives of every metric."""
    import numpy as np

    found: dict[str, list[FloatArray]] = {}
    columns = np.flatnonzero(steps)
    for start in range(0, len(columns), _COLUMNS):
        some = columns[start : start + _COLUMNS]
        moved = np.repeat(totals[np.newaxis], 2 * len(some), axis=0)
        rows = np.arange(len(some))
        moved[rows, some] += steps[some]
        moved[rows + len(some), some] -= steps[some]
        for metric, values in formula(moved).items():
            apart = moved[rows, some] - moved[rows + len(some), some]
            found.setdefault(metric, []).append((values[: len(some)] - values[len(some) :]) / apart)
    slopes = {}
    for metric, parts in found.items():
        slopes[metric] = np.zeros(len(totals))
        slopes[metric][columns] = np.concatenate(parts)
    return slopes
