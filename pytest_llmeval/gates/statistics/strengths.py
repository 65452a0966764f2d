"""Strengths of several systems from comparisons in pairs: the Bradley-Terry model with ties."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, TypeAlias

from pytest_llmeval.core.tables import Strength, Strengths
from pytest_llmeval.scoring.resample import by_unit, resample_count, resampled_totals

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray
    from pytest_llmeval.scoring.resample import IntArray

PairCounts: TypeAlias = Mapping[tuple[str, str], tuple[float, float, float]]
"""Two systems to how often the first won, tied and lost."""

RIDGE: Final = 0.1
"""Of all parameters: a normal prior with a standard deviation of 3.2, that of a system which wins 96 of 100 pairs."""

_FEWEST = 3
_CURVATURE = math.sqrt(2)
_MOST_STEPS = 200
_EXACT = 1e-10
_MOST_RESAMPLES = 2_000
"""Each of them is fitted."""
_DIGITS = 9
"""Decimals of a parameter that do not depend on the machine."""


def strengths_of(
    label: str, cases: Sequence[PairCounts], units: "IntArray | None" = None, *, confidence: float = 0.95
) -> Strengths | None:
    """Fit the model of Davidson (1970, "On extending the Bradley-Terry model to accommodate ties").

    A system with strength ``a`` wins against one with strength ``b`` with the weight ``a``, loses with ``b``, and ties
    with ``ties * sqrt(a * b)``. The logarithms of all parameters have a ridge penalty, so that they are finite also for
    a system that never loses. The interval holds the percentiles of resampled cases, and that of the normal
    approximation at the maximum: resamples of a system that wins every pair would all agree.

    Args:
        label: Of the evaluator.
        cases: What came of the pairs of each case.
        units: Number of the cluster of each case, if these are drawn together.
        confidence: Of the intervals.

    Returns:
        The strengths; ``None`` for fewer than three systems, or if some of them are compared with none of the others.
    """
    import numpy as np

    names = list(dict.fromkeys(name for case in cases for pair in case for name in pair))
    pairs = [
        (first, second) for first, second in combinations(names, 2) if any(_has(each, first, second) for each in cases)
    ]
    if len(names) < _FEWEST or not _connected(names, pairs):
        return None
    matrix = np.array([[count for pair in pairs for count in _counts(case, *pair)] for case in cases])
    outcomes = _outcomes(names, pairs)
    value, hessian = _fit(matrix.sum(axis=0, keepdims=True), outcomes)
    drawn = matrix if units is None else by_unit(matrix, units)
    low: FloatArray | list[None] = [None] * len(names)
    high: FloatArray | list[None] = [None] * len(names)
    if len(drawn) > 1:
        tail = (1 - confidence) / 2
        totals = resampled_totals(drawn, min(_MOST_RESAMPLES, resample_count(len(drawn))))
        resampled, _ = _fit(totals, outcomes, start=value)
        ends = np.quantile(_centred(resampled), [tail, 1 - tail], axis=0)
        reach = NormalDist().inv_cdf(1 - tail) * _errors(hessian[0])
        centre = _centred(value)[0]
        low, high = np.minimum(ends[0], centre - reach), np.maximum(ends[1], centre + reach)
    strengths = [
        Strength(name, _rounded(estimate), *(None if end is None else _rounded(end) for end in ends))
        for name, estimate, *ends in zip(names, _centred(value)[0], low, high, strict=True)
    ]
    strengths.sort(key=lambda each: -each.value)
    compared = int((matrix.sum(axis=1) > 0).sum())
    return Strengths(label, strengths, _rounded(np.exp(value[0, -1])), round(float(matrix.sum())), compared)


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS) + 0.0


def _has(case: PairCounts, first: str, second: str) -> bool:
    return (first, second) in case or (second, first) in case


def _counts(case: PairCounts, first: str, second: str) -> tuple[float, float, float]:
    """Return wins, ties and losses of the first: each pair counts once, in either order."""
    if (first, second) in case:
        return case[first, second]
    wins, ties, losses = case.get((second, first), (0.0, 0.0, 0.0))
    return losses, ties, wins


def _connected(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> bool:
    reached = {names[0]}
    for _ in names:
        reached |= {name for pair in pairs if reached.intersection(pair) for name in pair}
    return len(reached) == len(names)


def _outcomes(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> "FloatArray":
    """Return what each outcome adds to the logarithm of its weight: shape ``(pairs, 3, parameters)``."""
    import numpy as np

    features = np.zeros((len(pairs), 3, len(names) + 1))
    for row, pair in enumerate(pairs):
        first, second = map(names.index, pair)
        features[row, 0, first] = features[row, 2, second] = features[row, 1, -1] = 1.0
        features[row, 1, [first, second]] = 0.5
    return features


def _fit(
    totals: "FloatArray", features: "FloatArray", start: "FloatArray | None" = None
) -> "tuple[FloatArray, FloatArray]":
    """Maximise the penalised likelihood of each row of totals by damped Newton steps.

    The damping is that of generalised self-concordant functions (Sun and Tran-Dinh 2019), which never overshoots.

    Returns:
        The parameters, shape ``(rows, parameters)``, and minus the second derivatives there.
    """
    import numpy as np

    pairs, _, size = features.shape
    counts = totals.reshape(len(totals), pairs, 3)
    played = counts.sum(axis=2)
    parameters = np.zeros((len(totals), size)) if start is None else np.repeat(start, len(totals), axis=0)
    for _ in range(_MOST_STEPS):
        weights = np.exp(parameters @ features.reshape(-1, size).T).reshape(counts.shape)
        shares = weights / weights.sum(axis=2, keepdims=True)
        gradient = np.einsum("rpo,pof->rf", counts - played[..., None] * shares, features) - RIDGE * parameters
        mean = np.einsum("rpo,pof->rpf", shares, features)
        hessian = np.einsum("rp,rpo,pof,pog->rfg", played, shares, features, features, optimize=True)
        hessian -= np.einsum("rp,rpf,rpg->rfg", played, mean, mean, optimize=True)
        hessian += RIDGE * np.eye(size)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        length = _CURVATURE * np.linalg.norm(step, axis=1, keepdims=True)
        if length.max() < _EXACT:
            break
        parameters = parameters + step * np.log1p(length) / np.maximum(length, _EXACT)
    return parameters, hessian


def _centred(parameters: "FloatArray") -> "FloatArray":
    centred: FloatArray = parameters[:, :-1] - parameters[:, :-1].mean(axis=1, keepdims=True)
    return centred


def _errors(hessian: "FloatArray") -> "FloatArray":
    """Return the standard errors of the centred strengths."""
    import numpy as np

    size = len(hessian) - 1
    centre = np.eye(size) - 1 / size
    covariance = centre @ np.linalg.inv(hessian)[:size, :size] @ centre
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))
