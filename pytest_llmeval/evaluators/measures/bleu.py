"""Sentence BLEU with smoothing method 1, equal to NLTK's to the last bit."""

__all__ = ("BLEU", "bleu_scores")

import math
from collections.abc import Sequence
from typing import Final

from pytest_llmeval.evaluators.measures.overlap import number_tokens, shared_ngrams

BLEU: Final = {"bleu1": 1, "bleu2": 2, "bleu4": 4}
"""The names that `bleu_scores` knows, with the highest order of n-grams, all weighted equally."""

_EPSILON = 0.1
"""What smoothing method 1 (Chen and Cherry 2014) puts in place of a count of 0."""


def bleu_scores(prediction: Sequence[str], reference: Sequence[str], names: Sequence[str] = tuple(BLEU)) -> list[float]:
    """Return BLEU of one sentence against one reference.

    BLEU-N = BP · exp(Σ log(p_n) / N) with clipped n-gram precisions p_n and brevity penalty
    BP = min(1, exp(1 - len(reference) / len(prediction))); a p_n of 0 / k becomes 0.1 / k. In [0, 1]; 0 where no
    token is shared. Definitions: Papineni et al. 2002; NLTK's ``sentence_bleu``, whose order of operations is kept.

    Args:
        prediction: Tokens of the answer.
        reference: Tokens of the expected answer.
        names: Which of `BLEU` to compute.

    Returns:
        One score for each name.
    """
    longest = max(BLEU[name] for name in names)
    left, right, size = number_tokens(prediction, reference)
    shared = shared_ngrams(left, right, size, longest)
    if not shared[0]:
        return [0.0] * len(names)
    penalty = 1.0 if len(left) > len(right) else math.exp(1 - len(right) / len(left))
    logs = [math.log((count or _EPSILON) / max(1, len(left) - order)) for order, count in enumerate(shared)]
    return [penalty * math.exp(_mean_log(logs, BLEU[name])) for name in names]


def _mean_log(logs: Sequence[float], orders: int) -> float:
    weight = 1 / orders
    return math.fsum(weight * log for log in logs[:orders])
