"""Confusion counts, agreement of raters, and rates of a yes/no judge against people, with metrics and intervals.

Everything is computed for many confusion matrices at once: each cell is a column with one entry per matrix.

For rates, an answer is positive if people take it for right. Several people may share an answer, and an answer may
represent several: each counts as a part of a label. Labels of unequal weights are worth the square of their sum over
the sum of their squares (Kish 1965).
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_llmeval.core import Basis, FloatArray, LabelKey, Sums, counted

MERGED = "true"
"""Key that `merged` gives to the labels it merges."""


def merged(cells: Mapping[tuple[str, str], Any], chosen: Callable[[str], bool]) -> dict[tuple[str, str], Any]:
    """A confusion matrix with all chosen labels merged into `MERGED`, and all others into `NO_LABEL`."""
    out: dict[tuple[str, str], Any] = {}
    for (gold, predicted), value in cells.items():
        cell = (MERGED if chosen(gold) else LabelKey.NONE, MERGED if chosen(predicted) else LabelKey.NONE)
        out[cell] = out.get(cell, 0.0) + value
    return out


@dataclass(frozen=True, slots=True)
class Margins:
    """Margins and hits of confusion matrices; arrays have one row per label and one column per matrix.

    Attributes:
        labels: Keys of the labels, sorted.
        gold: How often each label is right.
        predicted: How often each label is predicted.
        hits: How often both at once.
    """

    labels: tuple[str, ...]
    gold: FloatArray
    predicted: FloatArray
    hits: FloatArray

    @classmethod
    def from_cells(
        cls, cells: Mapping[tuple[str, str], FloatArray], length: int, only: Collection[str] | None = None
    ) -> "Margins":
        """The margins of cells, each a column of `length` entries; for some of the labels `only`."""
        import numpy as np

        present = {label for cell in cells for label in cell if only is None or label in only}
        labels = tuple(sorted(present, key=lambda key: LabelKey(key).order))
        position = {label: index for index, label in enumerate(labels)}
        gold, predicted, hits = (np.zeros((len(labels), length)) for _ in range(3))
        for (right, answered), column in cells.items():
            if right in position:
                gold[position[right]] += column
            if answered in position:
                predicted[position[answered]] += column
            if right == answered:
                hits[position[right]] += column
        return cls(labels, gold, predicted, hits)

    def only(self, labels: Iterable[str]) -> "Margins":
        """The rows of some labels."""
        chosen = frozenset(labels)
        rows = [index for index, label in enumerate(self.labels) if label in chosen]
        if len(rows) == len(self.labels):
            return self
        chosen_labels = tuple(self.labels[row] for row in rows)
        return Margins(chosen_labels, self.gold[rows], self.predicted[rows], self.hits[rows])

    def average(self, kind: str) -> dict[str, FloatArray]:
        """Averages of precision, recall and F1 over labels, as scikit-learn's ``precision_recall_fscore_support``.

        Args:
            kind: ``micro`` (ratio of sums), ``macro`` (mean; recall of a label without gold counts as 0, as in
                scikit-learn) or ``weighted`` (mean weighted by gold).

        Returns:
            ``precision``, ``recall`` and ``f1``; NaN where no label takes part. Without gold, recall of ``micro``
            and everything of ``weighted`` are also NaN.
        """
        import numpy as np

        hits, predicted, gold = self.hits, self.predicted, self.gold
        if kind == "micro":
            hits, predicted, gold = (counts.sum(axis=0) for counts in (hits, predicted, gold))
        by_metric = {
            "precision": precision(hits, predicted, gold),
            "recall": recall(hits, gold),
            "f1": f1(hits, predicted, gold),
        }
        if kind == "micro":
            return by_metric
        weights = gold if kind == "weighted" else ((gold + predicted) > 0).astype(np.float64)
        total = weights.sum(axis=0)
        for values in by_metric.values():
            np.copyto(values, 0.0, where=np.isnan(values))
            np.multiply(values, weights, out=values)
        return {name: ratio(values.sum(axis=0), total) for name, values in by_metric.items()}

    def cohen_kappa(self) -> FloatArray:
        """Cohen's kappa, (observed - expected) / (1 - expected) agreement, in [-1, 1] (Cohen 1960).

        NaN where gold and predictions hold one and the same label only, so that agreement by chance is certain.
        """
        gold, predicted = self.gold.sum(axis=0), self.predicted.sum(axis=0)
        by_chance = (self.gold * self.predicted).sum(axis=0)
        disagreements = gold - self.hits.sum(axis=0)
        return 1.0 - ratio(disagreements * predicted, gold * predicted - by_chance)


def ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """The ratio of two columns of counts as a metric, NaN where `whole` is 0."""
    import numpy as np

    out: FloatArray = np.full(np.shape(whole), np.nan)
    return np.divide(part, whole, out=out, where=whole != 0)


def precision(hits: FloatArray, predicted: FloatArray, gold: FloatArray) -> FloatArray:
    """The precision of a label, hits / predicted; 0 where only gold has the label, NaN where neither side has it."""
    import numpy as np

    return np.where((predicted == 0) & (gold != 0), 0.0, ratio(hits, predicted))


def recall(hits: FloatArray, gold: FloatArray) -> FloatArray:
    """The recall of a label, hits / gold; NaN where there is no gold."""
    return ratio(hits, gold)


def f1(hits: FloatArray, predicted: FloatArray, gold: FloatArray) -> FloatArray:
    """The F1 of a label, 2 hits / (predicted + gold): harmonic mean of precision and recall; NaN where both are 0."""
    return ratio(2 * hits, predicted + gold)


def per_label(margins: Margins, labels: Iterable[str]) -> dict[str, FloatArray]:
    """The metrics ``precision[x]``, ``recall[x]``, ``f1[x]`` and ``support[x]`` of each label x.

    Support is how often x is gold. A label that does not occur has support 0 and no other value.
    """
    import numpy as np

    hits, predicted, gold = margins.hits, margins.predicted, margins.gold
    columns = {
        "precision": precision(hits, predicted, gold),
        "recall": recall(hits, gold),
        "f1": f1(hits, predicted, gold),
        "support": gold,
    }
    rows = {label: row for row, label in enumerate(margins.labels)}
    absent = {**dict.fromkeys(columns, np.full(gold.shape[1], np.nan)), "support": np.zeros(gold.shape[1])}
    metrics: dict[str, FloatArray] = {}
    for label in labels:
        row, name = rows.get(label), LabelKey(label).name
        for measure, column in columns.items():
            metrics[f"{measure}[{name}]"] = absent[measure] if row is None else column[row]
    return metrics


def matthews(margins: Margins) -> FloatArray:
    """Matthews' correlation coefficient of gold and predicted labels, any number of them, in [-1, 1] (Gorodkin 2004).

    As in scikit-learn it is 0 where gold or predictions hold one label only; NaN where nothing is counted.
    """
    import numpy as np

    # Gold and predictions have the same total; each is summed by itself, so that a single label leaves
    # exactly 0 despite the rounding of weighted counts.
    gold, predicted = margins.gold.sum(axis=0), margins.predicted.sum(axis=0)
    covariance = margins.hits.sum(axis=0) * gold - (margins.gold * margins.predicted).sum(axis=0)
    spread = (gold**2 - (margins.gold**2).sum(axis=0)) * (predicted**2 - (margins.predicted**2).sum(axis=0))
    return np.where((spread == 0) & (gold != 0), 0.0, ratio(covariance, np.sqrt(spread)))


_ROUNDING = 1e-12
"""Share of a sum of squares that is rounding, not spread."""


def unit_moments(values: Sequence[float]) -> dict[str, float]:
    """The sums for Krippendorff's alpha of one judged unit: the scores that raters gave it, two or more."""
    total, squares = sum(values), sum(value * value for value in values)
    differences = sum((left - right) ** 2 for left in values for right in values)
    return {
        "values": len(values),
        "value": total,
        "value_squares": squares,
        "within": differences / (len(values) - 1),
    }


def spread_of(count: FloatArray, total: FloatArray, squares: FloatArray) -> FloatArray:
    """The spread of scores for correlation and alpha, ``count * squares - total ** 2``, set to 0 very near 0."""
    import numpy as np

    spread = count * squares - total * total
    return np.where(spread > _ROUNDING * count * squares, spread, 0.0)


def krippendorff_alpha(sums: Sums) -> FloatArray:
    """Krippendorff's alpha of scores as interval data, ``1 - observed / expected`` disagreement; at most 1.

    With n scores in all, the observed disagreement is the mean over scores of the squared difference to the other
    scores of the same unit, and the expected one that of all pairs of scores (Krippendorff 2011). NaN where all scores
    are the same.
    """
    count = sums["values"]
    spread = spread_of(count, sums["value"], sums["value_squares"])
    # Expected: 2 spread / (n (n - 1)); observed: within / n.
    return 1.0 - ratio(sums["within"] * (count - 1), 2 * spread)


def weighted_kappa(cells: Mapping[tuple[float, float], FloatArray], length: int) -> FloatArray:
    """Cohen's kappa of judge and people with squared differences of levels as weights, in [-1, 1] (Cohen 1968).

    Args:
        cells: ``(level of the people, level of the judge)`` to a column of counts.
        length: Of the columns.

    Returns:
        ``1 - observed / expected`` disagreement; NaN where all counts are in one and the same level.
    """
    import numpy as np

    levels = sorted({level for cell in cells for level in cell})
    row = {level: number for number, level in enumerate(levels)}
    people, judge = np.zeros((len(levels), length)), np.zeros((len(levels), length))
    observed = np.zeros(length)
    for (left, right), column in cells.items():
        people[row[left]] += column
        judge[row[right]] += column
        observed += (left - right) ** 2 * column
    weights = np.subtract.outer(levels, levels) ** 2
    expected = np.einsum("il,ij,jl->l", people, weights, judge)
    return 1.0 - ratio(observed * people.sum(axis=0), expected)


LEAST_OF_EACH = 10
"""With fewer labels of either kind, the rates of a judge are too uncertain to correct a share by them."""

SIDES = {"tpr": "positive", "tnr": "negative"}
_HIT, _SQUARE = "_hit", "_square"


def rate_counts(judge: float, positive: float, weight: float = 1.0) -> dict[str, float]:
    """The counts of an answer that a judge and people labelled, for the judge's true rates.

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


def rates(sums: Sums) -> dict[str, FloatArray]:
    """The judge's true positive rate, true negative rate and their mean; not finite without labels of the kind."""
    tpr, tnr = (ratio(sums[side + _HIT], sums[side]) for side in SIDES.values())
    return {"tpr": tpr, "tnr": tnr, "balanced_accuracy": (tpr + tnr) / 2}


def labels_worth(sums: Sums, side: str) -> float:
    """The number of equally weighted human labels that a side's labels are worth.

    Args:
        sums: One row.
        side: ``positive`` or ``negative``.
    """
    labels, square = float(sums[side][0]), float(sums[side + _SQUARE][0])
    return labels**2 / square if square else 0.0


def unseen_error(labels: float) -> float:
    """The standard deviation of judge errors that so few labels cannot have shown (Bonett and Price 2012)."""
    return math.sqrt(2 / labels / (labels + 2)) if labels else 0.0


def share_by_rates(sums: Sums) -> FloatArray:
    """The share of right answers among those without labels: the judge's share, corrected by its rates.

    Not finite for a judge that is no better than chance (Rogan and Gladen 1978).
    """
    import numpy as np

    values = rates(sums)
    informed = values["tpr"] + values["tnr"] - 1
    seen = ratio(sums["unlabelled_score"], sums["unlabelled"])
    return np.where(informed > 0, ratio(seen + values["tnr"] - 1, informed), np.nan)


def share_basis(sums: Sums) -> Basis:
    """The number of cases on which a judge-corrected share rests, with the interval of Lang and Reiczigel (2014).

    Args:
        sums: One row.
    """
    worth = {side: labels_worth(sums, side) for side in SIDES.values()}
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
    parts = share * unseen_error(worth["positive"]), (1 - share) * unseen_error(worth["negative"])
    interval = partial(_lang_reiczigel, (seen, tpr, tnr), (cases, worth["positive"], worth["negative"]))
    return Basis(min(worth.values()), math.hypot(*parts) / (tpr + tnr - 1), interval=interval)


def _lang_reiczigel(
    values: tuple[float, float, float], sizes: tuple[float, float, float], confidence: float, independent: float
) -> tuple[float, float]:
    """The interval of a share of right answers that a judge of uncertain rates found."""
    from statistics import NormalDist

    z = NormalDist().inv_cdf((1 + confidence) / 2)
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
