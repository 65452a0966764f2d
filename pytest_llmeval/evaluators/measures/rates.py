"""Rates of a yes/no judge against people, the share of right answers that they correct, and intervals of both.

An answer is positive if people take it for right. Several people may share an answer, and an answer may represent
several: each counts as a part of a label, and labels of unequal weights are worth the square of their sum over the sum
of their squares (Kish 1965).
"""

import math
from functools import partial
from typing import TYPE_CHECKING

from pytest_llmeval.core.evaluator import Basis
from pytest_llmeval.core.wording import counted
from pytest_llmeval.evaluators.measures.confusion import ratio
from pytest_llmeval.scoring.intervals import normal_quantile, wilson_interval

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

RATES = ("tpr", "tnr", "balanced_accuracy")
NEEDS_BOTH = "needs positive and negative labels"

LEAST_OF_EACH = 10
"""With fewer labels of either kind, the rates of a judge are too uncertain to correct a share by them."""

_SIDES = {"tpr": "positive", "tnr": "negative"}
_PRECISION = 0.1
_PLANNED = 0.95
_WORST = 0.5
_HIT, _SQUARE = "_hit", "_square"


def rate_counts(judge: float, positive: float, weight: float = 1.0) -> dict[str, float]:
    """Count an answer that a judge and people labelled.

    Args:
        judge: 1 if the judge takes it for right, else 0; of repeats, their mean.
        positive: The share of people who do.
        weight: How many cases it represents.
    """
    counts: dict[str, float] = {}
    for side, people, hit in (("positive", positive, judge), ("negative", 1 - positive, 1 - judge)):
        if label := weight * people:
            counts |= {side: label, side + _HIT: label * hit, side + _SQUARE: label**2}
    return counts


def missing_rates(positive: float) -> dict[str, str]:
    """Return the rates in which an answer has no part, each with the reason."""
    absent = {"tpr": "no positive label"} if positive <= 0 else {"tnr": "no negative label"} if positive >= 1 else {}
    return {**absent, "balanced_accuracy": NEEDS_BOTH}


def rates(sums: "Sums") -> "dict[str, FloatArray]":
    """Return `RATES`; not finite without labels of the kind."""
    tpr, tnr = (ratio(sums[side + _HIT], sums[side]) for side in _SIDES.values())
    return {"tpr": tpr, "tnr": tnr, "balanced_accuracy": (tpr + tnr) / 2}


def labels_worth(sums: "Sums", side: str) -> float:
    """Return how many equal labels those of a side are worth.

    Args:
        sums: One row.
        side: ``positive`` or ``negative``.
    """
    labels, square = float(sums[side][0]), float(sums[side + _SQUARE][0])
    return labels**2 / square if square else 0.0


def labels_needed(rate: float, precision: float = _PRECISION) -> int:
    """Return how many labels of a kind make the 95 % interval of a rate reach at most so far to either side.

    The rate is taken nearer to 1/2 by as much as `precision`, since it may be.
    """
    likely = max(_WORST, max(rate, 1 - rate) - precision)
    return math.ceil(normal_quantile((1 + _PLANNED) / 2) ** 2 * likely * (1 - likely) / precision**2)


def rates_basis(sums: "Sums") -> dict[str, Basis]:
    """Return what the rates rest on: Wilson's intervals, and their sum by the method of variance estimates recovery.

    Args:
        sums: One row.
    """
    values = {name: float(column[0]) for name, column in rates(sums).items()}
    worth = {name: labels_worth(sums, side) for name, side in _SIDES.items()}
    bases: dict[str, Basis] = {}
    more: list[str] = []
    for name, side in _SIDES.items():
        labels = worth[name]
        fault, note = f"no {side} label" if not labels else "", ""
        if labels and (needed := labels_needed(values[name]) - math.floor(labels)) > 0:
            note = f"{counted(needed, f'more {side} label')} for an interval of ±{_PRECISION:g}"
            more.append(note)
        bases[name] = Basis(labels, _unseen(labels), fault, note, interval=partial(_rate, values[name], labels))
    least = min(worth.values())
    both = partial(_balanced, tuple(values[name] for name in _SIDES), tuple(worth.values()))
    floor = math.hypot(*map(_unseen, worth.values())) / 2
    fault = "; ".join(bases[name].fault for name in _SIDES if bases[name].fault)
    bases["balanced_accuracy"] = Basis(least, floor, fault, "; ".join(more) if not fault else "", interval=both)
    return bases


def _unseen(labels: float) -> float:
    """Return the standard deviation of errors that so few labels cannot have shown (Bonett and Price 2012)."""
    return math.sqrt(2 / labels / (labels + 2)) if labels else 0.0


def _rate(rate: float, labels: float, confidence: float, independent: float) -> tuple[float, float]:
    drawn = labels * independent
    return wilson_interval(rate * drawn, drawn, confidence)


def _balanced(
    values: tuple[float, ...], labels: tuple[float, ...], confidence: float, independent: float
) -> tuple[float, float]:
    """Return the interval of the mean of two rates by their own ones (Zou and Donner 2008)."""
    bounds = [_rate(value, each, confidence, independent) for value, each in zip(values, labels, strict=True)]
    below = math.hypot(*(value - low for value, (low, _) in zip(values, bounds, strict=True)))
    above = math.hypot(*(high - value for value, (_, high) in zip(values, bounds, strict=True)))
    middle = sum(values) / 2
    return middle - below / 2, middle + above / 2


def share_by_rates(sums: "Sums") -> "FloatArray":
    """Return the share of right answers among those without labels: that of the judge, corrected by its rates.

    Not finite for a judge that is no better than chance (Rogan and Gladen 1978).
    """
    import numpy as np

    values = rates(sums)
    informed = values["tpr"] + values["tnr"] - 1
    seen = ratio(sums["unlabelled_score"], sums["unlabelled"])
    return np.where(informed > 0, ratio(seen + values["tnr"] - 1, informed), np.nan)


def share_basis(sums: "Sums") -> Basis:
    """Return what a share by rates rests on, with the interval of Lang and Reiczigel (2014).

    Args:
        sums: One row.
    """
    worth = {side: labels_worth(sums, side) for side in _SIDES.values()}
    values = rates(sums)
    tpr, tnr, cases = float(values["tpr"][0]), float(values["tnr"][0]), float(sums["unlabelled"][0])
    few = [counted(math.floor(labels), f"{side} label") for side, labels in worth.items() if labels < LEAST_OF_EACH]
    fault = f"{' and '.join(few)}, expected at least {LEAST_OF_EACH}" if few else ""
    if not fault and not cases:
        fault = "no case without a label, expected those whose share is corrected"
    if not fault and tpr + tnr <= 1:
        fault = f"tpr {tpr:.3g} and tnr {tnr:.3g} of the judge are no better than chance"
    if fault:
        return Basis(min(worth.values()), fault=fault)
    seen, share = float(sums["unlabelled_score"][0]) / cases, float(share_by_rates(sums)[0])
    parts = share * _unseen(worth["positive"]), (1 - share) * _unseen(worth["negative"])
    interval = partial(_lang_reiczigel, (seen, tpr, tnr), (cases, worth["positive"], worth["negative"]))
    return Basis(min(worth.values()), math.hypot(*parts) / (tpr + tnr - 1), interval=interval)


def _lang_reiczigel(
    values: tuple[float, float, float], sizes: tuple[float, float, float], confidence: float, independent: float
) -> tuple[float, float]:
    """Return the interval of a share that a judge of uncertain rates found."""
    z = normal_quantile((1 + confidence) / 2)
    cases, positive, negative = (size * independent for size in sizes)
    seen = (cases * values[0] + z**2 / 2) / (cases + z**2)
    tpr, tnr = (positive * values[1] + 1) / (positive + 2), (negative * values[2] + 1) / (negative + 2)
    informed = tpr + tnr - 1
    if informed <= 0:
        return 0.0, 1.0
    share = (seen + tnr - 1) / informed
    # Variances of the three estimates, each of a sample that is larger by the added cases.
    of_share = seen * (1 - seen) / (cases + z**2)
    of_tpr, of_tnr = tpr * (1 - tpr) / (positive + 2), tnr * (1 - tnr) / (negative + 2)
    middle = share + 2 * z**2 * (share * of_tpr - (1 - share) * of_tnr)
    half = z * math.sqrt(of_share + share**2 * of_tpr + (1 - share) ** 2 * of_tnr) / informed
    return min(1.0, max(0.0, middle - half)), max(0.0, min(1.0, middle + half))
