"""Labels that people give to answers."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct, ValidationError, convert, to_builtins

from pytest_llmeval.core import Basis, Case, Fault, FloatArray, ShownPrints, SuiteError, Sums, counted
from pytest_llmeval.data import FaultLog, InputFile
from pytest_llmeval.evaluators._answers import AnswerValue
from pytest_llmeval.evaluators.measures._confusion import ratio

LabelScale: TypeAlias = Literal["yesno", "1-5"]
"""The scales of labels: yes or no, or a grade from 1 (worst) to 5."""


_SCALES: Final[Mapping[LabelScale, Sequence[str | int]]] = {"yesno": ("no", "yes"), "1-5": (1, 2, 3, 4, 5)}


class HumanLabel(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The label that one person gives one answer in a review.

    Attributes:
        question: Fingerprint of the question, as of `ShownPrints.fingerprint`.
        answer: Fingerprint of the answer.
        annotator: Who says so.
        scale: What could be said.
        label: What is said; ``None`` where the person could not tell.
        note: The comment of the person.
        cases: Ids of the cases that had this question and answer.
        reference: Fingerprint of the right answer that was shown; that of the empty text where there was none.
        probability: With which the answer was chosen to be labelled; 1 where all were.
        review: Which choice of answers it belongs to.
        again: The review that chose the case, if its answer has changed since, and this is the label of the new one.
        others: Fingerprints of the other answers that these cases had then: systems answer differently.
    """

    question: str
    answer: str
    annotator: str
    scale: LabelScale
    label: str | int | None
    note: str = ""
    cases: tuple[str, ...] = ()
    reference: str = ""
    probability: float = 1.0
    review: str = ""
    again: str = ""
    others: tuple[str, ...] = ()

    @staticmethod
    def labels_of(scale: LabelScale) -> Sequence[str | int]:
        """The labels of a scale, the worst first."""
        return _SCALES[scale]

    @property
    def choice(self) -> str:
        """The review whose random choice of cases it belongs to."""
        return self.again or self.review

    @property
    def share(self) -> float | None:
        """The label as a number from 0 (worst) to 1; ``None`` where the person could not tell."""
        return None if self.label is None else share_of(self.scale, self.label)

    @property
    def prints(self) -> ShownPrints:
        """The fingerprints of what was shown."""
        return ShownPrints(self.question, self.answer, self.reference)

    @property
    def subject(self) -> tuple[str, ShownPrints, str]:
        """The key by which a later label of the same person replaces this one."""
        return self.review, self.prints, self.annotator

    def line(self) -> str:
        """The label as a line of a file; equal labels give equal lines."""
        return f"{json.dumps(to_builtins(self), ensure_ascii=False)}\n"

    @classmethod
    def read_all(cls, paths: Iterable[tuple[Path, str]]) -> "list[HumanLabel]":
        """The labels in files; where a person labelled an answer of a review twice, the last line counts.

        Args:
            paths: The files, each with its name in errors.

        Raises:
            SuiteError: Some cannot be read, or a line is no label; all faults are listed.
        """
        labels: dict[Any, HumanLabel] = {}
        faults: list[Fault] = []
        for path, display_path in paths:
            log = FaultLog(display_path)
            for line, row in InputFile(path, display_path).read_jsonl(faults):
                try:
                    label = _label(row)
                except ValueError as error:
                    log.add(line, 1, "", str(error))
                else:
                    labels.pop(label.subject, None)
                    labels[label.subject] = label
            faults += log.listed()
        if faults:
            raise SuiteError(faults)
        return list(labels.values())


def share_of(scale: LabelScale, label: str | int) -> float:
    """A human label as a number from 0 (worst) to 1.

    >>> share_of("yesno", "yes"), share_of("1-5", 4)
    (1.0, 0.75)
    """
    labels = HumanLabel.labels_of(scale)
    return labels.index(label) / (len(labels) - 1)


def _label(row: Any) -> HumanLabel:
    """The human label in a line of a JSON Lines file.

    Raises:
        ValueError: It is none.
    """
    try:
        label = convert(row, HumanLabel)
    except ValidationError as error:
        raise ValueError(f"the label cannot be read ({error}), expected a line that the review page exports") from None
    known = HumanLabel.labels_of(label.scale)
    if label.label is not None and (label.label not in known or isinstance(label.label, bool)):
        raise ValueError(f"label: found {label.label!r}, expected one of {', '.join(map(str, known))}, or null")
    if not 0 < label.probability <= 1:
        raise ValueError(f"probability: found {label.probability!r}, expected a number above 0, at most 1")
    if not label.annotator:
        raise ValueError("annotator: found an empty text, expected a name")
    return label


_ANSWER = "scored_answer"
_KEYS = {"reference", "human", _ANSWER}

OTHER_ANSWER = "the scores of people are of another answer"

_OVER, _OVER_SQUARE = "overweight", "overweight_square"
"""Counts of labelled cases that represent more than themselves: their weights and the squares of these, less 1 each."""

_STALE_OVER = "stale_overweight"
"""Count of cases whose labels are of other answers, by how much they represent more than themselves."""

REVIEW_AGAIN = "llmeval review --again"

LEAST_LABELS = 10
"""With fewer labels, neither the mean of what people add nor its scatter is known well enough for an interval."""

_PRINT = re.compile(r"sha256:[0-9a-f]{32}")
_ROUNDING = 1e-9


def is_stale(expected: Any, answer: Any) -> bool:
    """Whether human labels are of another answer than this; those that name none count for it."""
    if not PeopleScores.are_in(expected) or expected.get(_ANSWER) is None:
        return False
    named = expected[_ANSWER]
    is_print = isinstance(named, str) and _PRINT.fullmatch(named) is not None
    return ShownPrints.fingerprint(answer) != (named if is_print else ShownPrints.fingerprint(named))


def people_of(expected: Mapping[str, Any]) -> Sequence[Any]:
    """The scores that people gave an answer; a single score counts as a list of it."""
    human = expected.get("human")
    return human if isinstance(human, list) else [human]


class PeopleScores(NamedTuple):
    """The scores that people gave the answer to one case, for evaluators that compare a judge with them.

    Attributes:
        scores: One per person, on the scale of the mode; empty where nobody scored this answer.
        weight: How many cases it represents: the inverse of the probability with which it was chosen.
        bound: Whether all of the scores name the answer.
        stale: How many cases it represents if all of its scores are of another answer; 0 if not.
    """

    scores: Sequence[float] = ()
    weight: float = 1.0
    bound: bool = False
    stale: float = 0.0

    @staticmethod
    def are_in(expected: Any) -> bool:
        """Whether ground truth is ``{reference, human}``, perhaps with the ``scored_answer`` of people."""
        return isinstance(expected, Mapping) and {"human"} <= set(expected) <= _KEYS

    @staticmethod
    def removed_from(case: Case) -> Case:
        """The case as evaluator ``judge`` has it, without the scores of people."""
        return replace(case, expected=case.expected.get("reference")) if isinstance(case.expected, Mapping) else case

    @staticmethod
    def fault(expected: Mapping[str, Any], scale: tuple[float, float]) -> str | None:
        """The fault of a human score that is not on the scale."""
        low, high = scale
        for score in people_of(expected):
            if type(score) not in (int, float) or not low <= score <= high:
                expected_text = f"expected a number from {low:g} to {high:g}, or a list of them"
                return f"human: found {AnswerValue(score).kind}, {expected_text}"
        return None

    @classmethod
    def from_truth(cls, expected: Any, answer: Any) -> "PeopleScores":
        """The scores that ground truth has; they weigh as one case."""
        if not PeopleScores.are_in(expected):
            return cls()
        if is_stale(expected, answer):
            return cls(stale=1.0)
        return cls([float(score) for score in people_of(expected)], bound=expected.get(_ANSWER) is not None)

    def joined(self, other: "PeopleScores") -> "PeopleScores":
        """The scores of both: a case that was chosen twice represents as many as both together."""
        if self.scores and other.scores:
            scores = [*self.scores, *other.scores]
            return PeopleScores(scores, self.weight + other.weight, self.bound and other.bound)
        people = self if self.scores else other
        if people.scores:
            return people._replace(weight=people.weight + self.stale + other.stale)
        return PeopleScores(stale=self.stale + other.stale)


class HumanLabels:
    """The human labels of files, by question and answer."""

    def __init__(self, labels: Iterable[HumanLabel]) -> None:
        self._by_answer: dict[tuple[str, str], list[HumanLabel]] = {}
        self._by_case: dict[str, list[HumanLabel]] = {}
        for label in labels:
            if label.share is not None:
                self._by_answer.setdefault((label.question, label.answer), []).append(label)
                for case in label.cases:
                    self._by_case.setdefault(case, []).append(label)

    @classmethod
    def read(cls, files: str | Sequence[str]) -> "HumanLabels":
        """The labels of one file, or several.

        Raises:
            SuiteError: One cannot be read, or has faults.
        """
        return cls(HumanLabel.read_all((Path(file), file) for file in ([files] if isinstance(files, str) else files)))

    def matching(self, cases: Sequence[str], prints: ShownPrints) -> list[HumanLabel]:
        """The labels of an answer.

        Labels that name a case go before others of the same texts, which a case under another id has.

        Args:
            cases: Ids of the cases that have the answer.
            prints: Of their texts.
        """
        alike = self._by_answer.get((prints.question, prints.answer), ())
        named = [label for label in alike if not set(label.cases).isdisjoint(cases)]
        return named or [label for label in alike if label.reference in ("", prints.reference)]

    def of_other_answers(self, cases: Sequence[str], prints: ShownPrints) -> list[HumanLabel]:
        """The labels of answers that cases had before they changed.

        Args:
            cases: Ids of the cases.
            prints: Of their texts today.
        """
        named = (label for case in cases for label in self._by_case.get(case, ()))
        return [
            label
            for label in named
            if (label.question, label.answer) != prints[:2] and prints.answer not in label.others
        ]

    def scores_of(self, case: str, prints: ShownPrints, scale: tuple[float, float]) -> PeopleScores:
        """The scores that people gave the answer to a case.

        A case that a review picked stays picked when its answer changes: what people would say now is missing then,
        until a label of the new answer fills the gap.

        Args:
            case: Its id.
            prints: Of its texts.
            scale: On which the scores are returned.
        """
        matches = self.matching([case], prints)
        chosen = {label.choice: label.probability for label in (*self.of_other_answers([case], prints), *matches)}
        weight = math.fsum(1 / probability for probability in chosen.values())
        if not matches:
            return PeopleScores(stale=weight)
        low, high = scale
        shares = {match.annotator: match.share or 0.0 for match in matches}
        return PeopleScores([low + (high - low) * share for share in shares.values()], weight, bound=True)


def weight_counts(weight: float) -> dict[str, float]:
    """The counts of a labelled case's weight beyond 1, where answers were sampled for labels; none at weight 1."""
    return {} if weight == 1 else {_OVER: weight - 1, _OVER_SQUARE: weight**2 - 1}


def _labels_weight(sums: Sums) -> FloatArray:
    """The number of cases that the cases with human labels represent."""
    return sums["labelled"] + sums[_OVER]


def _missing_weight(sums: Sums) -> FloatArray:
    """The number of cases represented by chosen ones whose human labels are of other answers."""
    return sums["stale"] + sums[_STALE_OVER]


def corrected_mean(sums: Sums, total: str, excess: str) -> FloatArray:
    """The mean judge score corrected by human labels, power-tuned (PPI++: Angelopoulos, Duchi and Zrnic 2023).

    It is a share of the mean of the judge over all cases, plus the mean of what people add to that share over those
    that they labelled, each with its weight (Hájek 1971): labels may be chosen with unequal probabilities, if these are
    known. The share is the slope of people's scores on the judge's, from 0 to 1: nothing is left of a judge that has
    nothing to do with people.

    Chosen cases whose labels are of other answers have no label. Their answers are taken to be as bad as possible.
    """
    import numpy as np

    weight = _labels_weight(sums)
    mean, added = ratio(sums[f"{excess}_judge"], weight), ratio(sums[excess], weight)
    variance = ratio(sums[f"{excess}_judge_square"], weight) - mean**2
    slope = ratio(sums[f"{excess}_cross"], weight) - mean * added
    varied = variance > _ROUNDING
    tuned = np.where(varied, np.clip(1 + ratio(slope, np.where(varied, variance, 1.0)), 0, 1), 1.0)
    # What people give, less the share of the judge's scores.
    own = sums[excess] + (1 - tuned) * sums[f"{excess}_judge"] - tuned * sums[f"{excess}_missing_judge"]
    corrected: FloatArray = tuned * ratio(sums[total], sums["n"]) + ratio(own, weight + _missing_weight(sums))
    return corrected


def excess_counts(name: str, judge: float, people: float, weight: float = 1.0) -> dict[str, float]:
    """The counts for correcting a judge's score by human labels: what people add, and how it goes with the score.

    Args:
        name: Of the counts.
        judge: The judge's score, from 0 to 1.
        people: That of people, from 0 to 1.
        weight: How many cases the labelled one represents.
    """
    excess = people - judge
    return {
        name: weight * excess,
        f"{name}_judge": weight * judge,
        f"{name}_judge_square": weight * judge**2,
        f"{name}_cross": weight * judge * excess,
    }


def missing_counts(scores: Mapping[str, float], weight: float) -> dict[str, float]:
    """The counts of a chosen case whose human labels are of another answer.

    Args:
        scores: Name of the counts of `excess_counts` to the judge's score of this answer, from 0 to 1.
        weight: How many cases it represents.
    """
    over = {} if weight == 1 else {_STALE_OVER: weight - 1}
    return {"stale": 1, **over, **{f"{name}_missing_judge": weight * judge for name, judge in scores.items()}}


def corrected_basis(sums: Sums) -> Basis:
    """The number of labels on which a prediction-powered mean rests, however many other cases there are.

    So few labels cannot have shown every error of the judge. As Bonett and Price (2012) do for paired shares, two
    labels are added, an error in either direction by the whole scale: small errors that were seen say nothing about
    large ones that were not. To the variance of a mean of n labels, that adds 2 / n / (n + 2). Labels of unequal
    weights are worth the square of their sum over the sum of their squares (Kish 1965).

    Labels that survive because their answers did not change say nothing about answers that did. For the share of
    these, the scores of people may be anything.

    Args:
        sums: One row.
    """
    labels, stale, bound = (float(sums[name][0]) for name in ("labelled", "stale", "bound"))
    weight, missing = float(_labels_weight(sums)[0]), float(_missing_weight(sums)[0])
    note = fault = apart = ""
    if stale:
        of_others = f"{round(stale)} of {counted(round(labels + stale), 'label')} are of answers that have changed"
        note = f"{of_others} and count as the worst: label {'it' if stale == 1 else 'them'} again ({REVIEW_AGAIN})"
        apart = f"{of_others}: label {'it' if stale == 1 else 'them'} again ({REVIEW_AGAIN})"
    if labels < LEAST_LABELS - _ROUNDING:
        few = f"{counted(round(labels), 'label')}, expected at least {LEAST_LABELS}"
        fault, apart = "; ".join(filter(None, [few, apart])), ""
    if bound < labels - _ROUNDING:
        apart = f"{counted(round(labels - bound), 'label')} without the answer that people scored (expected.{_ANSWER})"
    square_sum = labels + float(sums[_OVER_SQUARE][0])
    worth = weight**2 / square_sum if labels else 0.0
    floor = unseen_errors(1.0, worth)
    unknown = missing / (weight + missing) if stale else 0.0
    return Basis(worth, floor, fault, note, apart, unknown)


def unseen_errors(error: float, labels: float) -> float:
    """The standard deviation of judge errors that so few labels cannot have shown; see `corrected_basis`.

    Args:
        error: The size of an error.
        labels: How many.
    """
    return error * math.sqrt(2 / labels / (labels + 2)) if labels else 0.0
