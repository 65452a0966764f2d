"""Exact match and token F1."""

__all__ = ("exact_match", "harmonic_mean", "token_f1")

from collections.abc import Sequence

from pytest_llmeval.measures.ngrams import shared_count


def exact_match(prediction: str, reference: str) -> float:
    """Return 1.0 if both texts are the same but for case and outer white space, else 0.0."""
    return float(prediction.strip().lower() == reference.strip().lower())


def token_f1(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Return F1 of the two multisets of tokens.

    With *c* tokens in common, P = c / len(prediction), R = c / len(reference), F1 = 2PR / (P + R). In [0, 1]; 0
    where a side has no token. It is SQuAD's answer score (Rajpurkar et al. 2016) without dropping articles.
    """
    common = shared_count(prediction, reference)
    return harmonic_mean(common / len(prediction), common / len(reference)) if common else 0.0


def harmonic_mean(precision: float, recall: float) -> float:
    """Return 2PR / (P + R), and 0 where both are 0."""
    total = precision + recall
    return 2 * precision * recall / total if total > 0 else 0.0
