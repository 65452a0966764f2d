"""Scores that people gave: how a case carries them beside the right answer, and what they correct."""

__all__ = (
    "OTHER_ANSWER",
    "answer_print",
    "corrected_basis",
    "corrected_mean",
    "excess_counts",
    "is_bound",
    "is_labelled",
    "is_stale",
    "people_fault",
    "people_of",
    "without_people",
)

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.evaluator import Basis
from pytest_llmeval.core.wording import counted
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.evaluators.measures.confusion import ratio

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_ANSWER = "scored_answer"
_KEYS = {"reference", "human", _ANSWER}

OTHER_ANSWER = "the scores of people are of another answer"

LEAST_LABELS = 10
"""With fewer labels, neither the mean of what people add nor its scatter is known well enough for an interval."""

_DIGITS = 32
_PRINT = re.compile(rf"sha256:[0-9a-f]{{{_DIGITS}}}")
_ROUNDING = 1e-9


def is_labelled(expected: Any) -> bool:
    """Return whether ground truth is ``{reference, human}``, perhaps with the ``scored_answer`` that people scored."""
    return isinstance(expected, Mapping) and {"human"} <= set(expected) <= _KEYS


def answer_print(answer: Any) -> str:
    """Return the fingerprint of an answer, text or JSON data, by which labels name it."""
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=True, sort_keys=True)
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


def is_bound(expected: Mapping[str, Any]) -> bool:
    """Return whether labels name the answer that people scored."""
    return expected.get(_ANSWER) is not None


def is_stale(expected: Any, answer: Any) -> bool:
    """Return whether labels are of another answer than this; those that name none are taken for it."""
    if not is_labelled(expected) or not is_bound(expected):
        return False
    named = expected[_ANSWER]
    is_print = isinstance(named, str) and _PRINT.fullmatch(named) is not None
    return answer_print(answer) != (named if is_print else answer_print(named))


def without_people(case: Case) -> Case:
    """Return the case as evaluator ``judge`` has it."""
    return replace(case, expected=case.expected.get("reference")) if isinstance(case.expected, Mapping) else case


def people_of(expected: Mapping[str, Any]) -> Sequence[Any]:
    """Return the scores of all people; one score stands for a list of it."""
    human = expected.get("human")
    return human if isinstance(human, list) else [human]


def people_fault(expected: Mapping[str, Any], scale: tuple[float, float]) -> str | None:
    """Say which score is not on the scale."""
    low, high = scale
    for score in people_of(expected):
        if type(score) not in (int, float) or not low <= score <= high:
            return (
                f"human: found {describe_found(score)}, expected a number from {low:g} to {high:g}, or a list of them"
            )
    return None


def corrected_mean(sums: "Sums", total: str, excess: str) -> "FloatArray":
    """Return the prediction-powered mean (Angelopoulos et al. 2023, "Prediction-powered inference").

    It is the mean of the judge over all cases, plus the mean of what people add to it over those that they labelled.
    """
    return ratio(sums[total], sums["n"]) + ratio(sums[excess], sums["labelled"])


def excess_counts(name: str, excess: float) -> dict[str, float]:
    """Count what people add to the score of a judge, and how large such errors are."""
    return {name: excess, f"{name}_size": abs(excess), f"{name}_square": excess**2}


def corrected_basis(sums: "Sums", excess: str) -> Basis:
    """Return what a prediction-powered mean rests on: the labels, however many other cases there are.

    So few labels cannot have shown every error of the judge. As Bonett and Price (2012) do for paired shares, two
    labels are added, an error in either direction of the size that errors have, which is 1 where none has been seen. To
    the variance of a mean of n labels, that adds 2 / n / (n + 2) times its square.

    Args:
        sums: One row.
        excess: Name of the count of what people add.
    """
    labels, stale, bound = (float(sums[name][0]) for name in ("labelled", "stale", "bound"))
    size, square = float(sums[f"{excess}_size"][0]), float(sums[f"{excess}_square"][0])
    error = square / size if size > _ROUNDING else 1.0
    note = f"{counted(round(stale), 'label')} of other answers left out" if stale else ""
    fault = ""
    if labels < LEAST_LABELS - _ROUNDING:
        fault = "; ".join(filter(None, [f"{counted(round(labels), 'label')}, expected at least {LEAST_LABELS}", note]))
    apart = ""
    if bound < labels - _ROUNDING:
        apart = f"{counted(round(labels - bound), 'label')} without the answer that people scored (expected.{_ANSWER})"
    floor = error * math.sqrt(2 / labels / (labels + 2)) if labels else 0.0
    return Basis(labels, floor, fault, note, apart)
