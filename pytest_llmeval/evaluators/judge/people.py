"""Scores that people gave: how a case carries them beside the right answer, and what they correct."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_llmeval.core.case import Case, ShownPrints, answer_print
from pytest_llmeval.core.evaluator import Basis
from pytest_llmeval.core.wording import counted
from pytest_llmeval.data.formats.human_labels import HumanLabel, read_labels
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.evaluators.measures.confusion import ratio

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_ANSWER = "scored_answer"
_KEYS = {"reference", "human", _ANSWER}

OTHER_ANSWER = "the scores of people are of another answer"

_OVER, _OVER_SQUARE = "overweight", "overweight_square"
"""Counts of labelled cases that stand for more than themselves: their weights and the squares of these, less 1 each."""

LEAST_LABELS = 10
"""With fewer labels, neither the mean of what people add nor its scatter is known well enough for an interval."""

_PRINT = re.compile(r"sha256:[0-9a-f]{32}")
_ROUNDING = 1e-9


def is_labelled(expected: Any) -> bool:
    """Return whether ground truth is ``{reference, human}``, perhaps with the ``scored_answer`` that people scored."""
    return isinstance(expected, Mapping) and {"human"} <= set(expected) <= _KEYS


def is_stale(expected: Any, answer: Any) -> bool:
    """Return whether labels are of another answer than this; those that name none are taken for it."""
    if not is_labelled(expected) or expected.get(_ANSWER) is None:
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


class PeopleScores(NamedTuple):
    """What people say of the answer to one case.

    Attributes:
        scores: One per person, on the scale of the mode; empty where nobody scored this answer.
        weight: How many cases it stands for: the inverse of the probability with which it was chosen.
        bound: Whether all of the scores name the answer.
        stale: Whether there are scores, of another answer only.
    """

    scores: Sequence[float] = ()
    weight: float = 1.0
    bound: bool = False
    stale: bool = False

    @classmethod
    def of(cls, expected: Any, answer: Any) -> "PeopleScores":
        """Return the scores that ground truth has; they weigh as one case."""
        if not is_labelled(expected):
            return cls()
        if is_stale(expected, answer):
            return cls(stale=True)
        return cls([float(score) for score in people_of(expected)], bound=expected.get(_ANSWER) is not None)

    def joined(self, other: "PeopleScores") -> "PeopleScores":
        """Return the scores of both: a case that was chosen twice stands for as many as both together."""
        if self.scores and other.scores:
            scores = [*self.scores, *other.scores]
            return PeopleScores(scores, self.weight + other.weight, self.bound and other.bound)
        found = self if self.scores else other
        return found if found.scores else PeopleScores(stale=self.stale or other.stale)


class HumanLabels:
    """The labels of files, by what they are of."""

    def __init__(self, labels: Iterable[HumanLabel]) -> None:
        self._by_answer: dict[tuple[str, str], list[HumanLabel]] = {}
        self._named: set[str] = set()
        for label in labels:
            if label.share is not None:
                self._by_answer.setdefault((label.question, label.answer), []).append(label)
                self._named.update(label.cases)

    @classmethod
    def read(cls, files: str | Sequence[str]) -> "HumanLabels":
        """Read one file, or several.

        Raises:
            SuiteError: One cannot be read, or has faults.
        """
        return cls(read_labels((Path(each), each) for each in ([files] if isinstance(files, str) else files)))

    def matching(self, cases: Sequence[str], prints: ShownPrints) -> list[HumanLabel]:
        """Return the labels of an answer.

        Labels that name a case go before others of the same texts, which a case under another id has.

        Args:
            cases: Ids of the cases that have the answer.
            prints: Of their texts.
        """
        alike = self._by_answer.get((prints.question, prints.answer), ())
        found = [each for each in alike if not set(each.cases).isdisjoint(cases)]
        return found or [each for each in alike if each.reference in ("", prints.reference)]

    def of(self, case: str, prints: ShownPrints, scale: tuple[float, float]) -> PeopleScores:
        """Return what people said of the answer to a case.

        Args:
            case: Its id.
            prints: Of its texts.
            scale: On which the scores are returned.
        """
        found = self.matching([case], prints)
        if not found:
            return PeopleScores(stale=case in self._named)
        low, high = scale
        shares = {each.annotator: each.share or 0.0 for each in found}
        chosen = {each.review: each.probability for each in found}
        return PeopleScores(
            [low + (high - low) * share for share in shares.values()],
            math.fsum(1 / probability for probability in chosen.values()),
            bound=True,
        )


def weight_counts(weight: float) -> dict[str, float]:
    """Count by how much a case stands for more than itself; nothing where it does not."""
    return {} if weight == 1 else {_OVER: weight - 1, _OVER_SQUARE: weight**2 - 1}


def _labels_weight(sums: "Sums") -> "FloatArray":
    """Return how many cases the labelled ones stand for."""
    return sums["labelled"] + sums[_OVER]


def corrected_mean(sums: "Sums", total: str, excess: str) -> "FloatArray":
    """Return the prediction-powered mean (Angelopoulos et al. 2023, "Prediction-powered inference").

    It is the mean of the judge over all cases, plus the mean of what people add to it over those that they labelled,
    each with its weight (Hájek 1971): labels may be chosen with unequal probabilities, if these are known.
    """
    return ratio(sums[total], sums["n"]) + ratio(sums[excess], _labels_weight(sums))


def excess_counts(name: str, excess: float, weight: float = 1.0) -> dict[str, float]:
    """Count what people add to the score of a judge, and how large such errors are."""
    return {name: weight * excess, f"{name}_size": weight * abs(excess), f"{name}_square": weight * excess**2}


def corrected_basis(sums: "Sums", excess: str) -> Basis:
    """Return what a prediction-powered mean rests on: the labels, however many other cases there are.

    So few labels cannot have shown every error of the judge. As Bonett and Price (2012) do for paired shares, two
    labels are added, an error in either direction of the size that errors have, which is 1 where none has been seen. To
    the variance of a mean of n labels, that adds 2 / n / (n + 2) times its square. Labels of unequal weights are worth
    the square of their sum over the sum of their squares (Kish 1965).

    Args:
        sums: One row.
        excess: Name of the count of what people add.
    """
    labels, stale, bound = (float(sums[name][0]) for name in ("labelled", "stale", "bound"))
    note = f"{counted(round(stale), 'label')} of other answers left out" if stale else ""
    fault = ""
    if labels < LEAST_LABELS - _ROUNDING:
        fault = "; ".join(filter(None, [f"{counted(round(labels), 'label')}, expected at least {LEAST_LABELS}", note]))
    apart = ""
    if bound < labels - _ROUNDING:
        apart = f"{counted(round(labels - bound), 'label')} without the answer that people scored (expected.{_ANSWER})"
    square_sum = labels + float(sums[_OVER_SQUARE][0])
    worth = float(_labels_weight(sums)[0]) ** 2 / square_sum if labels else 0.0
    size, square = float(sums[f"{excess}_size"][0]), float(sums[f"{excess}_square"][0])
    floor = unseen_errors(square / size if size > _ROUNDING else 1.0, worth)
    return Basis(worth, floor, fault, note, apart)


def unseen_errors(error: float, labels: float) -> float:
    """Return the standard deviation of what so few labels cannot have shown; see `corrected_basis`.

    Args:
        error: The size of an error.
        labels: How many.
    """
    return error * math.sqrt(2 / labels / (labels + 2)) if labels else 0.0
