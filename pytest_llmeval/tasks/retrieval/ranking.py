"""Counts of one ranked list, and scores from summed counts."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import compress, count
from math import log2
from typing import TYPE_CHECKING

from pytest_llmeval.evaluators.measures.overlap import harmonic_mean

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray

SET_MEASURES = ("precision", "recall", "hit_rate", "macro_f1", "micro_precision", "micro_recall", "micro_f1")
"""Measures of the first k results that do not depend on their order."""

LISTED_MEASURES = ("recall", "macro_f1", "micro_recall", "micro_f1")
"""Measures among them that need the number of positives."""

RANKED_MEASURES = ("ndcg", "map")
"""Measures of the first k results that depend on their order; ``mrr`` is another one, but has no k."""

UNLISTED = "unlisted_"
"""Prefix of the counts of queries without a list of positives: these have a precision, but no recall."""

PLAIN = "plain_"
"""Prefix of the counts of queries without attributes: these have a list of positives only."""


@lru_cache(maxsize=8192)
def set_counts(
    task: str, ranks: tuple[int, ...], cutoffs: tuple[int, ...], positives: int | None
) -> Mapping[str, float]:
    """Return the counts of a query for a task; the result is shared, and must not be changed.

    Args:
        task: Name of the relevance rule.
        ranks: Of the relevant results, counted from 1.
        cutoffs: The values of k at which the query counts.
        positives: Number of positives; ``None`` if unknown.

    Returns:
        Per k the hits, whether there is any, and recall and F1 of the query, if above 0. Recall is
        hits / positives, and 0 without positives; it exceeds 1 where more is relevant than was listed.
    """
    counts: dict[str, float] = {}
    prefix = f"{UNLISTED if positives is None else ''}{task}"
    for k in cutoffs:
        hits = sum(rank <= k for rank in ranks)
        if hits:
            counts |= {f"{prefix}_hits@{k}": hits, f"{prefix}_hit@{k}": 1}
        if hits and positives:
            recall = hits / positives
            counts |= {f"{task}_recall@{k}": recall, f"{task}_f1@{k}": harmonic_mean(hits / k, recall)}
    return counts


@lru_cache(maxsize=4096)
def size_counts(
    retrieved: int, cutoffs: tuple[int, ...], positives: int | None, *, attributes: bool
) -> Mapping[str, float]:
    """Return the counts of a query for all tasks; the result is shared, and must not be changed.

    Args:
        retrieved: Length of the list of results.
        cutoffs: The values of k at which the query counts.
        positives: Number of positives; ``None`` if unknown.
        attributes: Whether the query has attributes, which its results can be compared with.
    """
    if positives is None and not attributes:
        return {}
    prefix = UNLISTED if positives is None else "" if attributes else PLAIN
    counts: dict[str, float] = {}
    for k in cutoffs:
        counts |= {f"{prefix}queries@{k}": 1, f"{prefix}retrieved@{k}": min(k, retrieved)}
        if positives:
            counts[f"{prefix}positives@{k}"] = positives
    return counts


def unknown_counts(task: str, retrieved: int, cutoffs: tuple[int, ...], positives: int | None) -> Mapping[str, float]:
    """Return the counts of a query whose results cannot be judged for a task: `set_scores` leaves it out there.

    Args:
        task: Name of the relevance rule.
        retrieved: Length of the list of results.
        cutoffs: The values of k at which the query counts.
        positives: Number of positives; ``None`` if unknown.
    """
    sizes = size_counts(retrieved, cutoffs, positives, attributes=True)
    return {f"{task}_unknown_{name}": number for name, number in sizes.items()}


def relevant_ranks(keys: Sequence[str | None], gains: Mapping[str, float], most: int) -> tuple[int, ...]:
    """Return the ranks, counted from 1, of the relevant documents among the first `most` results."""
    return tuple(compress(count(1), map(gains.__contains__, keys[:most])))


def relevant_gains(
    keys: Sequence[str | None], gains: Mapping[str, float], ranks: tuple[int, ...], most: int, *, complete: bool
) -> tuple[tuple[int, float], ...] | None:
    """Return rank and gain of the relevant documents among results, each document at its first place only.

    Args:
        keys: Keys of the results, best first; ``None`` is a document unlike any other. At least the
            first `most` results, if there are so many.
        gains: Relevant documents and their gains.
        ranks: What `relevant_ranks` returns for these.
        most: The largest k. Of documents behind it only the first relevant one is looked for, where none is before it.
        complete: Whether no result follows.

    Returns:
        In the order of ranks; ``None`` where results behind these may change it: one of them may be the first relevant
        one, or move up to a place within `most` that repetitions left.
    """
    head = keys[:most]
    if len(set(head)) < len(head):
        keys = distinct_keys(keys)
        head, ranks = keys[:most], relevant_ranks(keys, gains, most)
        if len(head) < most and not complete:
            return None
    if ranks:
        return tuple([(rank, gains[head[rank - 1]]) for rank in ranks])  # type: ignore[index]  # None is no gain
    first = next(compress(count(), map(gains.__contains__, keys)), None)
    if first is None:
        return () if complete else None
    before = keys[:first]
    unknown = before.count(None)
    distinct = len(set(before)) - bool(unknown) + unknown
    return ((distinct + 1, gains[keys[first]]),)  # type: ignore[index]  # as above


def distinct_keys(keys: Sequence[str | None]) -> list[str | None]:
    """Return keys without repeated ones; each ``None`` is a different document."""
    if None not in keys:
        return list(dict.fromkeys(keys))
    seen: set[str] = set()
    return [key for key in keys if key is None or not (key in seen or seen.add(key))]  # type: ignore[func-returns-value]  # add gives None


@lru_cache(maxsize=8192)
def ranked_counts(
    task: str, gains: tuple[tuple[int, float], ...], ideal: tuple[float, ...], cutoffs: tuple[int, ...]
) -> Mapping[str, float]:
    """Return the scores of one query that depend on the order of results, by the definitions of trec_eval.

    Args:
        task: Name of the relevance rule.
        gains: Rank, counted from 1, and gain of each relevant result, in the order of ranks; each document once.
        ideal: Gains of all relevant documents, largest first; not empty.
        cutoffs: The values of k.

    Returns:
        ``TASK_ndcg@k`` (gain / log2(rank + 1), summed, over the largest possible sum), ``TASK_map@k`` (precision at
        each relevant result within k, summed, over the number of relevant documents) and ``TASK_mrr`` (1 / first
        relevant rank); all in [0, 1], if above 0. ``TASK_ranked`` counts the query. The result is
        shared, and must not be changed.
    """
    counts: dict[str, float] = {f"{task}_ranked": 1}
    if gains:
        counts[f"{task}_mrr"] = 1 / gains[0][0]
    for k in cutoffs:
        within = [(rank, gain) for rank, gain in gains if rank <= k]
        if within:
            counts[f"{task}_ndcg@{k}"] = _discounted(within) / _ideal(ideal[:k])
            precisions = sum(number / rank for number, (rank, _) in enumerate(within, 1))
            counts[f"{task}_map@{k}"] = precisions / len(ideal)
    return counts


def _discounted(gains: Iterable[tuple[int, float]]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in gains)


@lru_cache(maxsize=4096)
def _ideal(gains: tuple[float, ...]) -> float:
    return _discounted(enumerate(gains, 1))


def set_scores(sums: "Mapping[str, FloatArray]", task: str, k: int, *, gold: bool) -> "dict[str, FloatArray]":
    """Return the measures of `SET_MEASURES` under their names, such as ``gold_recall@5``.

    Args:
        sums: Summed counts.
        task: Name of the relevance rule.
        k: How many results count.
        gold: Whether the rule is the list of positives, so that the queries with such a list count. For other rules
            those with attributes do, and for recall and F1 those with both.

    Returns:
        Columns. ``precision`` is the mean of hits / k over queries, ``hit_rate`` the share of queries with a hit; both
        in [0, 1]. ``recall`` and ``macro_f1`` are means over queries. The micro scores are hits / results retrieved
        within k, in [0, 1], hits / positives, and their F1. Recall and F1 are at least 0 and may exceed 1. A ratio
        whose denominator is 0 is 0; without queries the value is NaN.
    """
    import numpy as np

    def shared(name: str, *groups: str) -> "FloatArray":
        return sum((sums[f"{group}{name}@{k}"] for group in groups), start=np.zeros(1))

    def sizes(name: str, *groups: str) -> "FloatArray":
        """Return a size of all queries, without those whose results cannot be judged."""
        return shared(name, *groups) - sum((sums[f"{task}_unknown_{each}{name}@{k}"] for each in groups), start=0.0)

    listed = ("", PLAIN) if gold else ("",)
    judged = listed if gold else ("", UNLISTED)
    own = ("",) if gold else ("", UNLISTED)
    hits, hit = shared(f"{task}_hits", *own), shared(f"{task}_hit", *own)
    queries, known = sizes("queries", *judged), sizes("queries", *listed)
    precision, recall = (_ratio(sums[f"{task}_hits@{k}"], sizes(name, *listed)) for name in ("retrieved", "positives"))
    values = (
        hits / (k * queries),
        sums[f"{task}_recall@{k}"] / known,
        hit / queries,
        sums[f"{task}_f1@{k}"] / known,
        np.where(queries > 0, _ratio(hits, sizes("retrieved", *judged)), np.nan),
        np.where(known > 0, recall, np.nan),
        np.where(known > 0, _ratio(2 * precision * recall, precision + recall), np.nan),
    )
    return {f"{task}_{name}@{k}": value for name, value in zip(SET_MEASURES, values, strict=True)}


def ranked_scores(sums: "Mapping[str, FloatArray]", task: str, cutoffs: Sequence[int]) -> "dict[str, FloatArray]":
    """Return the means of the scores of `ranked_counts`; NaN where no query has a positive."""
    names = [f"{task}_{name}@{k}" for name in RANKED_MEASURES for k in cutoffs]
    return {name: sums[name] / sums[f"{task}_ranked"] for name in [*names, f"{task}_mrr"]}


def _ratio(part: "FloatArray", whole: "FloatArray") -> "FloatArray":
    import numpy as np

    ratio: FloatArray = np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0)
    return ratio
