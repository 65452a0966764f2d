"""Scores that people gave: how a case carries them beside the right answer, and what they correct."""

__all__ = ("corrected_mean", "is_labelled", "people_fault", "people_of", "without_people")

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.evaluators.measures.confusion import ratio

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_KEYS = {"reference", "human"}


def is_labelled(expected: Any) -> bool:
    """Return whether ground truth is ``{reference, human}``."""
    return isinstance(expected, Mapping) and {"human"} <= set(expected) <= _KEYS


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
