"""The basic scoring rules as plain functions, for evaluators of other fields of JSON v3.

They take empty literally: null, ``""``, ``[]`` and ``{}``; blank text is a value here.
"""

__all__ = (
    "Resolver",
    "calculate_precision_recall_f1",
    "calculate_set_metrics",
    "handle_missing_ground_truth",
    "listed",
    "name_key",
    "nearest",
    "split_names",
)

import re
import unicodedata
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

from pytest_llmeval.evaluators.measures.overlap import harmonic_mean


def handle_missing_ground_truth(prediction_value: Any, ground_truth_value: Any, field_name: str) -> dict[str, Any]:
    """Say what becomes of a field that one side may lack.

    Returns:
        ``status`` (``matched``: both are empty; ``extra``: only the ground truth is; ``missing``: only the prediction
        is; ``mismatch``: neither is, so that they have to be compared), ``count_as_error`` (``None`` where the
        comparison decides) and ``reason``.
    """
    match _is_empty(prediction_value), _is_empty(ground_truth_value):
        case True, True:
            status, is_error, reason = "matched", False, "both sides are empty"
        case False, True:
            status, is_error, reason = "extra", False, "the ground truth is empty, the prediction is not"
        case True, False:
            status, is_error, reason = "missing", True, "the prediction is empty, the ground truth is not"
        case _:
            return {"status": "mismatch", "count_as_error": None, "reason": f"{field_name}: both sides have a value"}
    return {"status": status, "count_as_error": is_error, "reason": f"{field_name}: {reason}"}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, dict)) and not value)


def calculate_precision_recall_f1(
    true_positives: int, false_positives: int, false_negatives: int, gt_incomplete_count: int = 0
) -> tuple[float, float, float]:
    """Return precision, recall and F1, each in [0, 1]; 0.0 where a denominator is 0.

    `gt_incomplete_count`, the number of values that the ground truth lacks, is for reports: it changes nothing.
    """
    del gt_incomplete_count
    predicted, gold = true_positives + false_positives, true_positives + false_negatives
    precision = true_positives / predicted if predicted else 0.0
    recall = true_positives / gold if gold else 0.0
    return precision, recall, harmonic_mean(precision, recall)


def calculate_set_metrics(
    prediction_set: Collection[Hashable], ground_truth_set: Collection[Hashable], gt_incomplete: bool = False
) -> dict[str, float | bool | None]:
    """Return ``precision``, ``recall`` and ``f1`` of a set, and ``gt_incomplete``.

    Args:
        prediction_set: What was found.
        ground_truth_set: What is right.
        gt_incomplete: Whether there may be more that is right. Then precision and F1 are ``None``, and so is recall
            where nothing is known to be right.
    """
    predicted, gold = set(prediction_set), set(ground_truth_set)
    hits = len(predicted & gold)
    precision, recall, f1 = calculate_precision_recall_f1(hits, len(predicted) - hits, len(gold) - hits)
    if gt_incomplete:
        return {"precision": None, "recall": recall if gold else None, "f1": None, "gt_incomplete": True}
    return {"precision": precision, "recall": recall, "f1": f1, "gt_incomplete": False}


_SHOWN = 3


def listed(items: Sequence[str], separator: str = ", ") -> str:
    """Write the first few of some things.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = len(items) - _SHOWN
    return separator.join(items[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


_SEPARATOR = re.compile("[;；,，、/／]")


def name_key(name: str) -> str:
    """Return what equal names have in common: NFKC, case folded, trimmed, white space joined.

    >>> name_key("  Ｍｅｎｇ　 Jiang ")
    'meng jiang'
    """
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def split_names(text: str) -> list[str]:
    """Split a text at ``;``, ``,``, ``、`` and ``/``, of any width, into trimmed names, blank ones left out."""
    return [name for part in _SEPARATOR.split(text) if (name := part.strip())]


def nearest(key: str, others: Iterable[str], least: float) -> str | None:
    """Return the first of the keys most like `key`; ``None`` if none is at least so like it.

    Likeness is that of rapidfuzz's ``fuzz.ratio``: twice the longest common subsequence over both lengths.

    Args:
        key: From `name_key`.
        others: From `name_key`.
        least: In (0, 1].
    """
    from rapidfuzz import fuzz, process

    found = process.extractOne(key, others, scorer=fuzz.ratio, score_cutoff=100 * least)
    return None if found is None else found[0]


class Resolver:
    """Resolves names to characters. Unknown names resolve to themselves."""

    def __init__(self, fuzzy: float | None = None) -> None:
        self._fuzzy = fuzzy
        self._owner: dict[str, str] = {}
        self._guessed: dict[str, str] = {}

    def add(self, key: str, owner: str) -> None:
        """Let a name mean `owner`, unless it means somebody already."""
        self._owner.setdefault(key, owner)

    def __call__(self, key: str) -> str:
        """Return the owner of a name, or with `fuzzy` of the name most like it."""
        if key in self._owner or self._fuzzy is None:
            return self._owner.get(key, key)
        if key not in self._guessed:
            near = nearest(key, self._owner, self._fuzzy)
            self._guessed[key] = key if near is None else self._owner[near]
        return self._guessed[key]
