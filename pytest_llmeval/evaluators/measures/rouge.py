"""ROUGE-1, ROUGE-2 and ROUGE-L as F-measures, equal to those of the rouge-score package."""

__all__ = ("ROUGE", "rouge_scores")

from collections.abc import Sequence
from typing import Final

from pytest_llmeval.evaluators.measures.overlap import harmonic_mean, number_tokens, shared_ngrams

ROUGE: Final = ("rouge1", "rouge2", "rougeL")
"""The names that `rouge_scores` knows."""


def rouge_scores(prediction: Sequence[str], reference: Sequence[str], names: Sequence[str] = ROUGE) -> list[float]:
    """Return F-measures of the n-grams, or of the longest common subsequence, that two token lists share.

    With *c* shared units, P = c / units of the prediction, R = c / units of the reference, F = 2PR / (P + R).
    In [0, 1]; 0 where nothing is shared. Definitions: Lin 2004, "ROUGE: A Package for Automatic Evaluation of
    Summaries".

    Args:
        prediction: Tokens of the answer.
        reference: Tokens of the expected answer.
        names: Which of `ROUGE` to compute.

    Returns:
        One F-measure for each name.
    """
    left, right, size = number_tokens(prediction, reference)
    ones, twos = shared_ngrams(left, right, size, 2)
    scores = []
    for name in names:
        if name == "rouge1":
            shared, shorter = ones, 0
        elif name == "rouge2":
            shared, shorter = twos, 1
        else:
            shared, shorter = (_longest_common_subsequence(left, right) if ones else 0), 0
        scores.append(_f_measure(shared, len(left) - shorter, len(right) - shorter))
    return scores


def _f_measure(shared: int, left: int, right: int) -> float:
    return harmonic_mean(shared / left, shared / right) if shared else 0.0


def _longest_common_subsequence(left: Sequence[int], right: Sequence[int]) -> int:
    from rapidfuzz.distance import LCSseq

    return LCSseq.similarity(left, right)
