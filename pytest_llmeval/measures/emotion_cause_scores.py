"""Emotion-cause pairs: scores from summed counts."""

__all__ = ("FOUR", "PARTS", "keep_rate", "pair_scores", "score_names", "step_scores")

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from pytest_llmeval.measures.emotion_cause import (
    ALL,
    EMOTIONS,
    FILTERED,
    LISTED,
    SCORED,
    Columns,
    count_name,
)

if TYPE_CHECKING:
    from pytest_llmeval.observation import FloatArray

PARTS = ("precision", "recall", "f1")

FOUR = ("anger", "joy", "sadness", "surprise")
"""The emotions without the two rare ones, disgust and fear."""

_EPSILON = 1e-8
"""The official script adds it to every denominator, so that a perfect score is a little less than 1."""


@cache
def score_names(name: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the names of a family's micro scores, of its weighted ones, and of those weighted over four emotions."""
    stem = "weighted" if name == "pair" else f"weighted_{name}"
    forms = (f"{name}_{{}}", f"{stem}_{{}}", f"{stem}_{{}}_4class")
    micro, weighted, four = (tuple(form.format(part) for part in PARTS) for form in forms)
    return micro, weighted, four


def pair_scores(sums: "Mapping[str, FloatArray]", columns: Columns, name: str) -> "dict[str, FloatArray]":
    """Return the scores of a family, each a column like those of `sums`, by the formulas of the official script.

    Args:
        sums: Summed counts.
        columns: Which of them.
        name: Of the family; stands in the names of scores, but ``pair`` in none of weighted ones.

    Returns:
        ``NAME_f1``, ``weighted_NAME_f1``, ``weighted_NAME_f1_4class`` and ``NAME_f1[joy]``, and precision and recall of
        all but the last; in [0, 1) where spans end after they start. Micro scores are 0 where nothing is counted.
        Weighted ones are NaN without gold, those of an emotion without gold and prediction.
    """
    import numpy as np

    hits, predicted, gold, weight = (_rows(sums, group, SCORED) for group in columns)
    each = _prf(hits, predicted, gold)
    micro = _prf(*(rows.sum(axis=0) for rows in (hits, predicted, gold)))
    scores = _named(name, (micro, *_weighted(each, weight)))
    absent = (weight == 0) & (predicted == 0)
    values = np.where(absent, np.nan, each[-1])
    return scores | {f"{name}_f1[{emotion}]": row for emotion, row in zip(SCORED, values, strict=True)}


def step_scores(sums: "Mapping[str, FloatArray]", columns: Columns, name: str) -> "dict[str, FloatArray]":
    """Return the scores of `FILTERED` or `ALL`, by the formulas of the project MECPE-Enhanced.

    Micro scores are of all pairs, neutral ones among them. Weights are hits and misses of each emotion. An emotion
    without gold and prediction has F1 0. Names and ranges are as in `pair_scores`.
    """
    micro = (_rows(sums, group, EMOTIONS).sum(axis=0) for group in (columns.hits, columns.predicted, LISTED))
    hits, predicted, gold, weight = (_rows(sums, group, SCORED) for group in columns)
    each = _prf(hits, predicted, gold)
    scores = _named(name, (_prf(*micro), *_weighted(each, weight)))
    return scores | {f"{name}_f1[{emotion}]": row for emotion, row in zip(SCORED, each[-1], strict=True)}


def keep_rate(sums: "Mapping[str, FloatArray]") -> "FloatArray":
    """Return kept candidates over all candidates, in [0, 1); 0 where there are none."""
    kept, candidates = (_rows(sums, each.predicted, EMOTIONS).sum(axis=0) for each in (FILTERED, ALL))
    rate: FloatArray = kept / (candidates + _EPSILON)
    return rate


def _rows(sums: "Mapping[str, FloatArray]", group: str, emotions: Sequence[str]) -> "FloatArray":
    import numpy as np

    rows: FloatArray = np.array([sums[count_name(group, emotion)] for emotion in emotions])
    return rows


def _prf(hits: "FloatArray", predicted: "FloatArray", gold: "FloatArray") -> "tuple[FloatArray, ...]":
    """Return precision, recall and F1."""
    precision, recall = hits / (predicted + _EPSILON), hits / (gold + _EPSILON)
    return precision, recall, 2 * precision * recall / (precision + recall + _EPSILON)


def _weighted(each: "Sequence[FloatArray]", weight: "FloatArray") -> "list[list[FloatArray]]":
    """Average scores by emotion, over all emotions and over four."""
    import numpy as np

    averages = []
    for chosen in (SCORED, FOUR):
        rows = [SCORED.index(emotion) for emotion in chosen]
        total = weight[rows].sum(axis=0)
        share = np.divide(weight[rows], total, out=np.full(np.shape(weight[rows]), np.nan), where=total != 0)
        averages.append([(values[rows] * share).sum(axis=0) for values in each])
    return averages


def _named(name: str, families: "Iterable[Iterable[FloatArray]]") -> "dict[str, FloatArray]":
    """Give micro scores and both kinds of weighted ones their names."""
    pairs = zip(score_names(name), families, strict=True)
    return {each: column for names, columns in pairs for each, column in zip(names, columns, strict=True)}
