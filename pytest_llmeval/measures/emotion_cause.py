"""Emotion-cause pairs: counts of what is right, by emotion.

A pair is a tuple whose last item is its emotion. Before it stand the numbers of the emotion utterance and of the cause
utterance and, in Subtask 1 of SemEval-2024 Task 3, first token of the cause span and the token after its last.
"""

__all__ = (
    "ALL",
    "EMOTIONS",
    "FAMILIES",
    "FILTERED",
    "LISTED",
    "SCORED",
    "Columns",
    "SpanTuple",
    "UtteranceTuple",
    "count_name",
    "pair_counts",
    "span_counts",
    "step_counts",
)

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from pytest_llmeval.measures.matching import best_pairs

SpanTuple: TypeAlias = tuple[int, int, int, int, str]
UtteranceTuple: TypeAlias = tuple[int, int, str]
_Span: TypeAlias = tuple[int, int]

EMOTIONS = ("neutral", "anger", "disgust", "fear", "joy", "sadness", "surprise")
"""In the order of their numbers, 0 to 6."""

SCORED = EMOTIONS[1:]
"""The emotions that pairs are scored in; pairs of neutral utterances count nowhere."""


class Columns(NamedTuple):
    """Which groups of counts by emotion a family of scores is made of.

    Attributes:
        hits: What is right.
        predicted: What precision is a share of.
        gold: What recall is a share of.
        weight: What weighted averages weigh emotions by.
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
}
FILTERED = Columns("filtered", "filtered_predicted", "filtered_gold", "filtered_gold")
ALL = Columns("all", "all_predicted", "all_gold", "all_gold")

LISTED = "listed_gold"
"""Group of counts: all gold pairs, for recall of `FILTERED` and `ALL`."""


def count_name(group: str, emotion: str) -> str:
    """Return the name of a count, such as ``gold[joy]``."""
    return f"{group}[{emotion}]"


def span_counts(gold: Iterable[SpanTuple], predicted: Iterable[SpanTuple]) -> dict[str, int]:
    """Count the pairs of one conversation whose causes are spans (Subtask 1).

    Both sides are made unique. Only spans of the same emotion utterance, cause utterance and emotion meet:

    * strict: spans with the same ends;
    * fuzzy: spans that share a token, one-to-one, as many as possible, so that no order of pairs matters;
    * proportional: each predicted span with the gold span of which it covers the largest share; of equal ones the
      longest overlap; then the first in `gold`. The tokens that both share are right. A gold span counts all its tokens
      as often as it is chosen, and once if it never is.

    A span without token (empty or reversed) overlaps nothing.

    Returns:
        Counts by emotion for ``strict``, ``fuzzy`` and ``proportional`` of `FAMILIES`; absent ones are 0.
    """
    right, found = dict.fromkeys(gold), dict.fromkeys(predicted)
    groups = _by_key(right)
    counts = _by_emotion({"gold": right, "predicted": found, "strict": [pair for pair in found if pair in right]})
    tokens: Counter[str] = Counter()
    for key, spans in _by_key(found).items():
        there = groups.pop(key, [])
        tokens.update(_tokens(key[-1], there, spans))
        tokens[count_name("fuzzy", key[-1])] += _most_overlaps(there, spans)
    for key, spans in groups.items():
        tokens[count_name("gold_tokens", key[-1])] += sum(end - start for start, end in spans)
    return counts | {name: number for name, number in tokens.items() if number}


def pair_counts(gold: Iterable[UtteranceTuple], predicted: Iterable[UtteranceTuple]) -> dict[str, int]:
    """Count the pairs of one conversation whose causes are utterances (Subtask 2); both sides are made unique.

    Returns:
        Counts by emotion for ``pair`` of `FAMILIES`; absent ones are 0.
    """
    right, found = set(gold), set(predicted)
    return _by_emotion({"gold": right, "predicted": found, "pair": right & found})


def step_counts(
    gold: Collection[UtteranceTuple], candidates: Sequence[UtteranceTuple], keep: Sequence[bool]
) -> dict[str, int]:
    """Count the candidates of one conversation before and after a filter; neither side is made unique.

    Args:
        gold: The right pairs.
        candidates: What the first step proposes.
        keep: For each candidate whether the second step keeps it.

    Returns:
        Counts by emotion for `FILTERED` and `ALL`; absent ones are 0.
    """
    kept = [pair for pair, kept in zip(candidates, keep, strict=True) if kept]
    right = set(gold)
    counts = _by_emotion({LISTED: gold})
    for columns, pairs in ((FILTERED, kept), (ALL, candidates)):
        hits, proposed = [pair for pair in pairs if pair in right], set(pairs)
        missed = [pair for pair in gold if pair not in proposed]
        counts |= _by_emotion({columns.hits: hits, columns.predicted: pairs, columns.gold: [*hits, *missed]})
    return counts


def _by_emotion(groups: Mapping[str, Iterable[tuple[Any, ...]]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for group, pairs in groups.items():
        numbers: dict[str, int] = {}
        for pair in pairs:
            numbers[pair[-1]] = numbers.get(pair[-1], 0) + 1
        for emotion, number in numbers.items():
            counts[count_name(group, emotion)] = number
    return counts


def _by_key(pairs: Iterable[SpanTuple]) -> dict[tuple[int, int, str], list[_Span]]:
    """Group spans by what must be equal for two of them to meet."""
    groups: defaultdict[tuple[int, int, str], list[_Span]] = defaultdict(list)
    for utterance, cause, start, end, emotion in pairs:
        groups[utterance, cause, emotion].append((start, end))
    return groups


def _overlap(a: _Span, b: _Span) -> int:
    """Return how many tokens two spans share."""
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def _most_overlaps(gold: Sequence[_Span], predicted: Sequence[_Span]) -> int:
    """Return how many predicted spans can get a gold span of their own that they overlap."""
    edges: dict[tuple[int, int], tuple[int, ...]] = {
        (row, column): ()
        for row, right in enumerate(gold)
        for column, answered in enumerate(predicted)
        if _overlap(right, answered)
    }
    return len(best_pairs(edges))


def _tokens(emotion: str, gold: Sequence[_Span], predicted: Sequence[_Span]) -> Counter[str]:
    """Count tokens for proportional matching among spans that may meet."""
    shared = of_gold = 0
    free = set(gold)
    for span in predicted:
        overlaps = [(overlap, right) for right in gold if (overlap := _overlap(span, right))]
        if overlaps:
            overlap, (start, end) = max(overlaps, key=lambda each: (each[0] / (each[1][1] - each[1][0]), each[0]))
            shared += overlap
            of_gold += end - start
            free.discard((start, end))
    of_gold += sum(end - start for start, end in free)
    numbers = {
        "overlap": shared,
        "gold_tokens": of_gold,
        "predicted_tokens": sum(end - start for start, end in predicted),
    }
    return Counter({count_name(group, emotion): number for group, number in numbers.items()})
