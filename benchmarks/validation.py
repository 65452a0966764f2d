"""How often intervals of a judge's rates, and of the share that they correct, hold the truth with few labels.

Run: ``python benchmarks/tables.py validation``. Half of the labels are positive, half are negative; 200 other answers
have none, and 30 or 80 in 100 of them are right. The usual interval takes the rates of the judge to be known exactly.
"""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from tables import Row, mean, rows, share, table

from pytest_llmeval.core import Sums
from pytest_llmeval.evaluators.judge._agreement import rates_basis
from pytest_llmeval.evaluators.measures._confusion import share_basis, share_by_rates

_CASES = 200
_SHARES = (0.3, 0.8)
_JUDGES = ((0.7, 0.7), (0.7, 0.98), (0.9, 0.9), (0.98, 0.7), (0.98, 0.98))
"""Rates of true positives and of true negatives."""
_Z = 1.959964
_HEADERS = (
    "tpr / tnr",
    "labels",
    "tpr held",
    "balanced accuracy held",
    "share of 0.3 held",
    "share of 0.8 held",
    "width, 0.8",
    "the usual interval, 0.8",
)


def _drawn(rng: np.random.Generator, labels: int, right: float, tpr: float, tnr: float) -> Sums:
    """Return the sums of a labelled set and of unlabelled answers."""
    half = labels // 2
    positives = rng.binomial(_CASES, right)
    seen = rng.binomial(positives, tpr) + rng.binomial(_CASES - positives, 1 - tnr)
    counts = {
        **dict.fromkeys(("positive", "negative", "positive_square", "negative_square"), half),
        "positive_hit": rng.binomial(half, tpr),
        "negative_hit": rng.binomial(half, tnr),
        "unlabelled": _CASES,
        "unlabelled_score": seen,
    }
    return Sums({name: np.array([float(count)]) for name, count in counts.items()}, 1)


def _holds(interval: tuple[float, float] | None, truth: float) -> bool:
    return interval is not None and interval[0] <= truth <= interval[1]


def _usual(sums: Sums) -> tuple[float, float]:
    """Return the interval of a corrected share whose judge is taken to have exactly the rates that it showed."""
    value = float(share_by_rates(sums)[0])
    seen = float(sums["unlabelled_score"][0]) / _CASES
    hits = float(sums["positive_hit"][0] / sums["positive"][0]) + float(sums["negative_hit"][0] / sums["negative"][0])
    half = _Z * math.sqrt(seen * (1 - seen) / _CASES) / (hits - 1)
    return value - half, value + half


@table("validation", "../benchmarks/calibration.md", _HEADERS, simulations=1000)
def validation(simulations: int, seed: int) -> Iterator[Row]:
    """Yield a row for each judge and number of labels."""
    for (tpr, tnr), labels in rows(product(_JUDGES, (20, 40, 100))):
        rng = np.random.default_rng([seed, labels, round(100 * tpr), round(100 * tnr)])
        held: dict[str, list[bool]] = {"tpr": [], "balanced_accuracy": [], "usual": []}
        shares: dict[float, list[bool]] = {right: [] for right in _SHARES}
        widths = []
        truths = {"tpr": tpr, "balanced_accuracy": (tpr + tnr) / 2}
        for _ in range(simulations):
            for right in _SHARES:
                sums = _drawn(rng, labels, right, tpr, tnr)
                # A judge that looks no better than chance has no corrected share: nothing is claimed.
                basis = share_basis(sums)
                if basis.interval is None:
                    continue
                bounds = basis.interval(0.95, 1.0)
                shares[right].append(_holds(bounds, right))
            rests = rates_basis(sums)
            for name, truth in truths.items():
                interval = rests[name].interval
                held[name].append(interval is not None and _holds(interval(0.95, 1.0), truth))
            if basis.interval is not None:
                widths.append(bounds[1] - bounds[0])
                held["usual"].append(_holds(_usual(sums), _SHARES[-1]))
        yield (
            f"{tpr:g} / {tnr:g}",
            labels,
            share(held["tpr"]),
            share(held["balanced_accuracy"]),
            *(share(each) for each in shares.values()),
            mean(widths),
            share(held["usual"]),
        )
