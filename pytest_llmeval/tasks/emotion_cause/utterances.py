"""Which utterances have an emotion, and which are causes: precision, recall and F1, as `cal_prf` of MECPE-Enhanced."""

__all__ = ("SIDES", "UTTERANCE_METRICS", "LabelCounts", "count_utterances", "label_faults", "utterance_scores")

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.tasks.emotion_cause.conversation import LABELS
from pytest_llmeval.tasks.emotion_cause.pairs import Pair
from pytest_llmeval.tasks.emotion_cause.scores import PARTS, prf

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray

SIDES: Final = ("emotion", "cause")
"""Stems of the metrics, in the order of `LABELS`."""

UTTERANCE_METRICS: Final = tuple(f"{side}_{part}" for side in SIDES for part in PARTS)

_NONE: Final = frozenset(("", "0", "neutral", "none", "null"))


@dataclass
class LabelCounts:
    """What the utterances of one conversation count.

    Attributes:
        counts: Hits, predicted and gold utterances of each side.
        undefined: Metric to the reason why there is none.
        fault: What is wrong with predicted labels.
    """

    counts: dict[str, int] = field(default_factory=dict)
    undefined: dict[str, str] = field(default_factory=dict)
    fault: str | None = None


def label_faults(expected: Any) -> Iterator[str]:
    """Yield what is wrong with gold labels of utterances."""
    for key in LABELS:
        fault = _fault(_listed(expected, key), key, None)
        if fault is not None:
            yield fault


def count_utterances(
    expected: Any, prediction: Any, gold: Sequence[Pair] | None, predicted: Sequence[Pair]
) -> LabelCounts:
    """Count utterances with an emotion, and utterances that are causes.

    Args:
        expected: An object may have a label for each utterance as ``emotions`` and ``causes``: numbers, names, true or
            false; 0, null, false and ``neutral`` are none. What it does not have comes from the pairs.
        prediction: The same.
        gold: The right pairs.
        predicted: The predicted pairs.
    """
    out = LabelCounts()
    for place, (side, key) in enumerate(zip(SIDES, LABELS, strict=True)):
        labels, theirs = _listed(expected, key), _listed(prediction, key)
        if labels is None and gold is None:
            out.undefined |= {f"{side}_{part}": f"no expected {key} and no expected pairs" for part in PARTS}
            continue
        fault = _fault(theirs, key, None if labels is None else len(labels))
        out.fault = out.fault or fault
        right = _numbers(gold or (), place) if labels is None else _labelled(labels)
        found = _numbers(predicted, place) if theirs is None else set() if fault is not None else _labelled(theirs)
        out.counts |= {
            f"{side}.n": 1,
            f"{side}.hits": len(right & found),
            f"{side}.predicted": len(found),
            f"{side}.gold": len(right),
        }
    return out


def utterance_scores(sums: "Mapping[str, FloatArray]") -> "dict[str, FloatArray]":
    """Return precision, recall and F1 of both sides; NaN where no conversation has ground truth."""
    import numpy as np

    scores: dict[str, FloatArray] = {}
    for side in SIDES:
        columns = prf(*(sums[f"{side}.{name}"] for name in ("hits", "predicted", "gold")))
        there = sums[f"{side}.n"] > 0
        scores |= {
            f"{side}_{part}": np.where(there, column, np.nan) for part, column in zip(PARTS, columns, strict=True)
        }
    return scores


def _listed(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _fault(labels: Any, key: str, length: int | None) -> str | None:
    if labels is None:
        return None
    if not isinstance(labels, (list, tuple)):
        return f"{key}: found {describe_found(labels)}, expected a list with a label for each utterance"
    wrong = next((each for each in labels if not (each is None or isinstance(each, (str, int)))), None)
    if wrong is not None:
        return f"{key}: found {describe_found(wrong)} as a label, expected a number or a name"
    if length is not None and len(labels) != length:
        return f"{key}: found {len(labels)} labels, expected {length}, one for each utterance"
    return None


def _labelled(labels: Sequence[Any]) -> set[int]:
    return {number for number, each in enumerate(labels, 1) if _is_label(each)}


def _is_label(label: Any) -> bool:
    return label.strip().lower() not in _NONE if isinstance(label, str) else bool(label)


def _numbers(pairs: Sequence[Pair], place: int) -> set[int]:
    """Return the utterances of pairs that have an emotion, or are causes."""
    return {pair[place] for pair in pairs if pair.emotion not in _NONE}  # type: ignore[misc]  # both are numbers
