"""Counts and scores of emotion-cause pairs, by emotion.

A pair is a tuple whose last item is its emotion. Before it are the numbers of the emotion utterance and of the cause
utterance and, in Subtask 1 of SemEval-2024 Task 3, first token of the cause span and the token after its last.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import compress
from typing import Any, Literal, NamedTuple, TypeAlias

from pytest_llmeval.core import FloatArray, grouped
from pytest_llmeval.tasks._matching import best_pairs

SpanTuple: TypeAlias = tuple[int, int, int, int, str]
UtteranceTuple: TypeAlias = tuple[int, int, str]
_Span: TypeAlias = tuple[int, int]

Matching: TypeAlias = Literal["most", "original"]
"""Pairing of spans in fuzzy matching: as many as possible, or each in order with the first one left."""

EMOTIONS = ("neutral", "anger", "disgust", "fear", "joy", "sadness", "surprise")
"""In the order of their numbers, 0 to 6."""

SCORED = EMOTIONS[1:]
"""The emotions that pairs are scored in; pairs of neutral utterances count nowhere."""


class Columns(NamedTuple):
    """The groups of pair counts by emotion from which a family of emotion-cause scores is computed.

    Attributes:
        hits: Right pairs.
        predicted: The denominator of precision.
        gold: The denominator of recall.
        weight: The weights of emotions in weighted averages.
    """

    hits: str
    predicted: str
    gold: str
    weight: str


FAMILIES = {
    "strict": Columns("strict", "predicted", "gold", "gold"),
    "proportional": Columns("overlap", "predicted_tokens", "gold_tokens", "gold"),
    "fuzzy": Columns("fuzzy", "predicted", "gold", "gold"),
    "pair": Columns("pair", "predicted", "gold", "gold"),
    "utterances": Columns("utterances", "utterances_predicted", "utterances_gold", "utterances_gold"),
}
FILTERED = Columns("filtered", "filtered_predicted", "filtered_gold", "filtered_gold")
ALL = Columns("all", "all_predicted", "all_gold", "all_gold")

LISTED = "listed_gold"
"""Group of counts: all gold pairs, for recall of `FILTERED` and `ALL`."""


@cache
def count_name(group: str, emotion: str) -> str:
    """The name of a count of emotion-cause pairs, such as ``gold[joy]``."""
    return f"{group}[{emotion}]"


def span_counts(
    gold: Iterable[SpanTuple], predicted: Iterable[SpanTuple], matching: Matching = "most"
) -> dict[str, int]:
    """Count the pairs of one conversation whose causes are spans (Subtask 1).

    Both sides are made unique. Only spans of the same emotion utterance, cause utterance and emotion meet:

    * strict: spans with the same ends;
    * fuzzy: spans that share a token, one-to-one, as many as possible, so that no order of pairs matters; or, with
      ``original`` matching, each predicted span in order with the first gold span that is left;
    * proportional: each predicted span with the gold span of which it covers the largest share; of equal ones the
      longest overlap; then the first in `gold`. The tokens that both share are right. A gold span counts all its tokens
      as often as it is chosen, and once if it never is.

    A span without token (empty or reversed) overlaps nothing.

    Returns:
        Counts by emotion for ``strict``, ``fuzzy`` and ``proportional`` of `FAMILIES`; absent ones are 0.
    """
    right, answers = dict.fromkeys(gold), dict.fromkeys(predicted)
    groups = _by_key(right)
    counts = _by_emotion({"gold": right, "predicted": answers, "strict": [pair for pair in answers if pair in right]})
    tokens: defaultdict[tuple[str, str], int] = defaultdict(int)
    for key, spans in _by_key(answers).items():
        there, emotion = groups.pop(key, []), key[-1]
        for group, number in _tokens(there, spans).items():
            tokens[group, emotion] += number
        overlaps = _first_overlaps if matching == "original" else _most_overlaps
        tokens["fuzzy", emotion] += overlaps(there, spans) if there else 0
    for key, spans in groups.items():
        tokens["gold_tokens", key[-1]] += sum(map(_length, spans))
    return counts | {count_name(*name): number for name, number in tokens.items() if number}


def pair_counts(
    gold: Iterable[UtteranceTuple], predicted: Iterable[UtteranceTuple], family: str = "pair"
) -> dict[str, int]:
    """Count the pairs of one conversation whose causes are utterances (Subtask 2); both sides are made unique.

    Returns:
        Counts by emotion for ``pair`` of `FAMILIES`, or for ``utterances``; absent ones are 0.
    """
    right, answers, columns = set(gold), set(predicted), FAMILIES[family]
    return _by_emotion({columns.gold: right, columns.predicted: answers, columns.hits: right & answers})


def step_counts(
    gold: Collection[UtteranceTuple], candidates: Sequence[UtteranceTuple], keep: Sequence[bool]
) -> dict[str, int]:
    """Count the candidates of one conversation before and after a filter; neither side is made unique.

    Args:
        gold: The right pairs.
        candidates: The proposals of the first step.
        keep: For each candidate whether the second step keeps it.

    Returns:
        Counts by emotion for `FILTERED` and `ALL`; absent ones are 0.
    """
    filtered = list(compress(candidates, keep))
    right = set(gold)
    counts = _by_emotion({LISTED: gold})
    for columns, pairs in ((FILTERED, filtered), (ALL, candidates)):
        hits, proposed = [pair for pair in pairs if pair in right], set(pairs)
        missed = [pair for pair in gold if pair not in proposed]
        counts |= _by_emotion({columns.hits: hits, columns.predicted: pairs, columns.gold: [*hits, *missed]})
    return counts


def _by_emotion(groups: Mapping[str, Iterable[tuple[Any, ...]]]) -> dict[str, int]:
    """The counts of emotion-cause pairs by group (such as predicted or gold) and emotion."""
    totals = {group: Counter(pair[-1] for pair in pairs) for group, pairs in groups.items()}
    return {count_name(group, emotion): n for group, numbers in totals.items() for emotion, n in numbers.items()}


def _by_key(pairs: Iterable[SpanTuple]) -> dict[tuple[int, int, str], list[_Span]]:
    """Group cause spans by the values that must be equal for two of them to meet."""
    return grouped(((utterance, cause, emotion), (start, end)) for utterance, cause, start, end, emotion in pairs)


def _length(span: _Span) -> int:
    """The number of tokens of a cause span; one that ends before it starts has none."""
    return max(0, span[1] - span[0])


def _overlap(a: _Span, b: _Span) -> int:
    """The number of tokens that two cause spans share."""
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def _most_overlaps(gold: Sequence[_Span], predicted: Sequence[_Span]) -> int:
    """The largest number of predicted cause spans that overlap a gold span of their own."""
    if min(len(gold), len(predicted)) == 1:
        return int(any(_overlap(right, answered) for right in gold for answered in predicted))
    edges: dict[tuple[int, int], tuple[int, ...]] = {
        (row, column): ()
        for row, right in enumerate(gold)
        for column, answered in enumerate(predicted)
        if _overlap(right, answered)
    }
    return len(best_pairs(edges))


def _first_overlaps(gold: Sequence[_Span], predicted: Sequence[_Span]) -> int:
    """The number of predicted cause spans with a gold span, where each takes the first one that it overlaps."""
    left = list(gold)
    for span in predicted:
        match = next((right for right in left if _overlap(right, span)), None)
        if match is not None:
            left.remove(match)
    return len(gold) - len(left)


def _tokens(gold: Sequence[_Span], predicted: Sequence[_Span]) -> dict[str, int]:
    """Count tokens of cause spans that may meet, for proportional matching."""
    predicted_tokens = sum([end - start for start, end in predicted if end > start])
    if not gold:
        return {"overlap": 0, "gold_tokens": 0, "predicted_tokens": predicted_tokens}
    shared = of_gold = 0
    free = set(gold)
    for span in predicted:
        overlaps = [(overlap, right) for right in gold if (overlap := _overlap(span, right))]
        if overlaps:
            overlap, (start, end) = max(overlaps, key=lambda each: (each[0] / (each[1][1] - each[1][0]), each[0]))
            shared += overlap
            of_gold += end - start
            free.discard((start, end))
    of_gold += sum(map(_length, free))
    return {"overlap": shared, "gold_tokens": of_gold, "predicted_tokens": predicted_tokens}


PARTS = ("precision", "recall", "f1")

FOUR = ("anger", "joy", "sadness", "surprise")
"""The emotions without the two rare ones, disgust and fear."""

_EPSILON = 1e-8
"""The official script adds it to every denominator, so that a perfect score is a little less than 1."""


@cache
def score_names(name: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The metric names of a family of emotion-cause scores: micro, weighted, and weighted over four emotions."""
    stem = "weighted" if name == "pair" else f"weighted_{name}"
    forms = (f"{name}_{{}}", f"{stem}_{{}}", f"{stem}_{{}}_4class")
    micro, weighted, four = (tuple(form.format(part) for part in PARTS) for form in forms)
    return micro, weighted, four


def pair_scores(sums: Mapping[str, FloatArray], columns: Columns, name: str) -> dict[str, FloatArray]:
    """The emotion-cause scores of a family, as columns like those of `sums`, by the official script's formulas.

    Args:
        sums: Summed counts.
        columns: The groups to use.
        name: Of the family; part of the names of scores, except ``pair`` in weighted ones.

    Returns:
        ``NAME_f1``, ``weighted_NAME_f1``, ``weighted_NAME_f1_4class`` and ``NAME_f1[joy]``, and precision and recall of
        each; in [0, 1). Micro scores are 0 where nothing is counted.
        Weighted ones are NaN without gold, those of an emotion without gold and prediction.
    """
    import numpy as np

    hits, predicted, gold, weight = (_rows(sums, group, SCORED) for group in columns)
    each = prf(hits, predicted, gold)
    micro = prf(*(rows.sum(axis=0) for rows in (hits, predicted, gold)))
    scores = _named(name, (micro, *_weighted(each, weight)))
    absent = (weight == 0) & (predicted == 0)
    return scores | _by_label(name, [np.where(absent, np.nan, values) for values in each])


def step_scores(sums: Mapping[str, FloatArray], columns: Columns, name: str) -> dict[str, FloatArray]:
    """The emotion-cause scores of `FILTERED` or `ALL` candidates, by the formulas of MECPE-Enhanced.

    Micro scores are of all pairs, neutral ones among them. Weights are hits and misses of each emotion. An emotion
    without gold and prediction has F1 0. Names and ranges are as in `pair_scores`.
    """
    micro = (_rows(sums, group, EMOTIONS).sum(axis=0) for group in (columns.hits, columns.predicted, LISTED))
    hits, predicted, gold, weight = (_rows(sums, group, SCORED) for group in columns)
    each = prf(hits, predicted, gold)
    scores = _named(name, (prf(*micro), *_weighted(each, weight)))
    return scores | _by_label(name, each)


def support(sums: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """The number of gold emotion-cause pairs of each emotion; NaN for one that neither side has."""
    import numpy as np

    gold, predicted = (_rows(sums, group, SCORED) for group in ("gold", "predicted"))
    rows = np.where((gold == 0) & (predicted == 0), np.nan, gold)
    return {f"support[{emotion}]": row for emotion, row in zip(SCORED, rows, strict=True)}


def keep_rate(sums: Mapping[str, FloatArray]) -> FloatArray:
    """The share of candidate emotion-cause pairs that the filter keeps, in [0, 1); 0 if there are none."""
    filtered, candidates = (_rows(sums, columns.predicted, EMOTIONS).sum(axis=0) for columns in (FILTERED, ALL))
    rate: FloatArray = filtered / (candidates + _EPSILON)
    return rate


def _by_label(name: str, each: Sequence[FloatArray]) -> dict[str, FloatArray]:
    """Name the precision, recall and F1 of each emotion in the emotion-cause metrics."""
    parts = zip(PARTS, each, strict=True)
    return {f"{name}_{part}[{emotion}]": row for part, rows in parts for emotion, row in zip(SCORED, rows, strict=True)}


def _rows(sums: Mapping[str, FloatArray], group: str, emotions: Sequence[str]) -> FloatArray:
    """The summed pair counts of a group as an array, one row for each emotion."""
    import numpy as np

    rows: FloatArray = np.array([sums[count_name(group, emotion)] for emotion in emotions])
    return rows


def prf(hits: FloatArray, predicted: FloatArray, gold: FloatArray) -> tuple[FloatArray, ...]:
    """Precision, recall and F1 of emotion-cause pairs, each in [0, 1)."""
    precision, recall = hits / (predicted + _EPSILON), hits / (gold + _EPSILON)
    return precision, recall, 2 * precision * recall / (precision + recall + _EPSILON)


def _weighted(each: Sequence[FloatArray], weight: FloatArray) -> list[list[FloatArray]]:
    """Average emotion-cause scores over all emotions and over four, weighted by gold pairs."""
    import numpy as np

    averages = []
    for chosen in (SCORED, FOUR):
        rows = [SCORED.index(emotion) for emotion in chosen]
        total = weight[rows].sum(axis=0)
        share = np.divide(weight[rows], total, out=np.full(np.shape(weight[rows]), np.nan), where=total != 0)
        averages.append([(values[rows] * share).sum(axis=0) for values in each])
    return averages


def _named(name: str, families: Iterable[Iterable[FloatArray]]) -> dict[str, FloatArray]:
    """Give the micro and weighted emotion-cause scores their metric names."""
    pairs = zip(score_names(name), families, strict=True)
    return {metric_name: column for names, columns in pairs for metric_name, column in zip(names, columns, strict=True)}
