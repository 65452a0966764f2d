"""Evaluator ``judge_agreement``: how well the scores of a judge agree with those of people."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec import structs

from pytest_llmeval.core import (
    Basis,
    Case,
    ConfusionMatrix,
    EvaluatorError,
    FloatArray,
    JudgeError,
    LabelKey,
    Metric,
    Observation,
    Sums,
    Totals,
    counted,
    listed,
)
from pytest_llmeval.evaluators._answers import AnswerValue
from pytest_llmeval.evaluators.judge._evaluator import Judge
from pytest_llmeval.evaluators.judge._human_labels import OTHER_ANSWER, PeopleScores
from pytest_llmeval.evaluators.judge._judged_case import JudgedCase, reason_lines
from pytest_llmeval.evaluators.measures._confusion import (
    SIDES,
    Margins,
    krippendorff_alpha,
    labels_worth,
    rate_counts,
    rates,
    ratio,
    spread_of,
    unit_moments,
    unseen_error,
    weighted_kappa,
)
from pytest_llmeval.judges import Question, Verdict
from pytest_llmeval.numbers import mid_p_interval, wilson_interval

_BEYOND_CHANCE = ("cohen_kappa", "weighted_kappa")
_LEAST_OF_THE_OTHER = 5
"""With fewer labels besides the most frequent one, kappa rests on next to nothing: its interval covers a half."""

_OVER_CASES = ("cohen_kappa", "weighted_kappa", "krippendorff_alpha", "pearson")
_ONE_CASE = "needs several cases"
_ABSENT = "no human score"
_NEEDS_BOTH = "needs positive and negative labels"
_FEWEST_LEVELS = 2
_CONFUSION = "confusion[human->judge]"

_TIE = 9
"""Decimals to which distances from two levels are compared."""


@dataclass(frozen=True)
class JudgeAgreement(Judge):
    """Agreement of a judge with people who scored the same answers.

    A case is one of evaluator ``judge``, but ``expected`` is ``{reference, human}``: the right answer, and the score of
    a person or a list with the scores of several, on the scale of the mode. Scores are put into the nearest level, of
    two equally near ones the lower. Where several people scored a case, each of them counts as a part of the case, so
    that every case has the same weight.

    * ``agreement``: share of people who have the judge's level;
    * ``cohen_kappa``, ``weighted_kappa``: agreement of levels beyond chance, without and with squared differences as
      weights (Cohen 1960, 1968);
    * ``krippendorff_alpha``: for interval data, of the unrounded scores; the judge is one of the raters;
    * ``pearson``, ``bias``, ``mae``: correlation, mean difference (above 0: the judge is milder) and mean absolute
      difference of the judge's score and the mean score of the people;
    * ``tpr``, ``tnr``, ``balanced_accuracy``: share of the positive (negative) human labels that the judge gives, and
      the mean of both; a level from `pass_mark` up is positive. They exist if the levels are two, or have a pass mark;
    * ``confusion[human->judge]``: how many cases people put into one level and the judge into the other.

    Kappas, alpha and correlation exist for sets of cases only, and where scores do not vary they are undefined.

    Attributes:
        levels: Two or more different numbers on the scale of the mode; empty: 0, 0.2 to 1 for ``continuous`` and
            ``auto``, 0, 20 to 100 for ``explanation``, the levels of a rubric, the grades of a prompt
            or preset, 0 and 1 otherwise.
        pass_mark: The lowest level that is positive; default: that of the rubric, or the upper one of two.

    Raises:
        ValueError: The levels are fewer than two, not different, or not finite. The pass mark is none of the levels
            above the lowest. Or ``corrected`` is given, which is for evaluator ``judge``.
    """

    name = "judge_agreement"
    pools_undefined = True  # no single case has a kappa or a correlation, and together they do

    levels: tuple[float, ...] = ()
    pass_mark: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.corrected:
            raise ValueError("found corrected, expected it with evaluator judge, which reports the corrected score")
        known = set(self.levels)
        if self.levels and (len(known) < max(_FEWEST_LEVELS, len(self.levels)) or not all(map(math.isfinite, known))):
            raise ValueError(f"found levels {list(self.levels)}, expected two or more different numbers")
        if self.pass_mark is not None and self.pass_mark not in self._levels()[1:]:
            expected = listed([f"{level:g}" for level in self._levels()[1:]])
            raise ValueError(f"found pass_mark {self.pass_mark:g}, expected a level above the lowest: {expected}")

    def _levels(self) -> tuple[float, ...]:
        return tuple(sorted(self.levels)) if self.levels else self.mode_levels

    @property
    def _positive(self) -> float | None:
        """The lowest level of a judge that is positive; ``None`` if nothing says so."""
        if self.pass_mark is not None:
            return self.pass_mark
        levels = self._levels()
        if self.rubric is not None and self.rubric.pass_mark in levels:
            return self.rubric.pass_mark
        return levels[1] if len(levels) == _FEWEST_LEVELS else None

    def describe(self) -> Sequence[Metric]:
        """The metrics of agreement; for bias, 0 is best, and neither direction is better."""
        listed = ",".join(f"{level:g}" for level in self._levels())
        signature = f"levels:{listed}|{self.signature()}"
        ranges: dict[str, tuple[float | None, float | None]] = {
            "agreement": (0.0, 1.0),
            "cohen_kappa": (-1.0, 1.0),
            "weighted_kappa": (-1.0, 1.0),
            "krippendorff_alpha": (None, 1.0),
            "pearson": (-1.0, 1.0),
            "bias": (None, None),
        }
        metrics = [Metric(name, low=low, high=high, signature=signature) for name, (low, high) in ranges.items()]
        metrics.append(Metric("mae", higher_is_better=False, high=None, signature=signature))
        if self._positive is not None:
            marked = signature if self.pass_mark is None else f"{signature}|positive:{self.pass_mark:g}"
            metrics += [Metric(name, signature=marked) for name in RATES]
        return self._step_metrics([*metrics, Metric(_CONFUSION, high=None, signature=signature)])

    def tables(self) -> Sequence[ConfusionMatrix]:
        """The confusion matrix of the levels of judge and people."""
        return [ConfusionMatrix("Levels: people by row, judge by column", self._levels(), metrics=_CONFUSION)]

    @property
    def calibrated_by(self) -> str | None:
        """The agreement, as every case with a label has a part in it."""
        return "agreement"

    @property
    def _reads_people(self) -> bool:
        return True

    def _judged_case(self, case: Case) -> Case:
        """The case without the scores of people; where these are in files, its ground truth may be plain."""
        return case if self.human and not PeopleScores.are_in(case.expected) else PeopleScores.removed_from(case)

    def check(self, case: Case) -> Iterable[str]:
        """Yield what is wrong with the human scores, and what `Judge.check` finds."""
        faults = list(super().check(self._judged_case(case)))
        if not faults and (fault := self._fault(case)):
            faults.append(fault)
        return faults

    def _fault(self, case: Case) -> str | None:
        """The fault of the human scores of a case that can be judged."""
        expected = case.expected
        if expected is None or (self.human and not PeopleScores.are_in(expected)):
            return None
        if not PeopleScores.are_in(expected):
            is_object = isinstance(expected, Mapping)
            form = f"an object with {sorted(expected)}" if is_object else AnswerValue(expected).kind
            return f"found {form}, expected {{reference, human}}"
        return PeopleScores.fault(expected, self.judged(self._judged_case(case)).scale)

    def _people(self, case: Case) -> PeopleScores:
        """The scores of the people, if any of them are of this answer."""
        if fault := self._fault(case):
            raise EvaluatorError(fault)
        if self.human is None:
            return PeopleScores.from_truth(case.expected, case.prediction)
        return self._people_on(case, self.judged(self._judged_case(case)))

    def questions(self, case: Case) -> Sequence[Question]:
        """The question about the answer; none without a human score."""
        return super().questions(self._judged_case(case)) if self._people(case).scores else []

    def follow_up(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Sequence[Question]:
        """The questions of `Judge.follow_up`."""
        return super().follow_up(self._judged_case(case), verdicts)

    def most_follow_ups(self, case: Case) -> int:
        """The number of questions that `follow_up` asks."""
        return super().most_follow_ups(self._judged_case(case)) if self._people(case).scores else 0

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Count what the judge and the people have in common.

        Raises:
            JudgeError: The judge gave no verdict.
            EvaluatorError: The human scores are not what they should be.
        """
        people = self._people(case)
        if not people.scores:
            why = OTHER_ANSWER if people.stale else _ABSENT
            return Observation({}, undefined=dict.fromkeys(self._fixed_names(), why))
        judged = self.judged(self._judged_case(case))
        verdict = judged.verdict(verdicts)
        if verdict is None:
            why = str(judged.texts.absent)
            return Observation({}, undefined=dict.fromkeys(self._fixed_names(), why), malformed=judged.texts.malformed)
        observation = self._observation(judged, verdict, people)
        return structs.replace(observation, details={**observation.details, **self._steps(verdicts)})

    def _observation(self, judged: JudgedCase, verdict: Verdict, people: PeopleScores) -> Observation:
        """The counts of a case in which judge and people scored the answer."""
        level, scores = level_of(verdict.score, self._levels()), people.scores
        undefined = dict.fromkeys(_OVER_CASES, _ONE_CASE)
        cells = Counter(level_of(score, self._levels()) for score in scores)
        counts = {
            **pair_moments(verdict.score, math.fsum(scores) / len(scores)),
            **unit_moments([verdict.score, *scores]),
            **{
                ConfusionMatrix.cell_name(_key(human), _key(level)): count / len(scores)
                for human, count in cells.items()
            },
        }
        if people.weight != 1:
            counts = {name: people.weight * count for name, count in counts.items()}
        if self._positive is not None:
            positive = sum(level_of(score, self._levels()) >= self._positive for score in scores) / len(scores)
            counts |= rate_counts(float(level >= self._positive), positive, people.weight)
            undefined |= missing_rates(positive)
        details = {**judged.details_of(verdict), "judge": verdict.score, "human": list(scores)}
        return Observation(counts, details, undefined, judged.texts.malformed)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say what the judge gave and what people did, where their levels differ, and the judge's reasons."""
        del case
        details = observation.details
        if "judge" not in details:
            return []
        level = level_of(details["judge"], self._levels())
        if all(level_of(score, self._levels()) == level for score in details["human"]):
            return []
        people = listed([f"{score:g}" for score in details["human"]])
        return [f"score {details['judge']:g} of the judge, {people} of people", *reason_lines(details)]

    def _fixed_names(self) -> list[str]:
        return [metric.name for metric in self.describe() if "[" not in metric.name]

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """The coefficients of agreement from summed cells and moments."""
        cells = ConfusionMatrix.read_cells(sums)
        margins = Margins.from_cells(cells, sums.length)
        numbers = {(json.loads(people), json.loads(judge)): column for (people, judge), column in cells.items()}
        return {
            "agreement": ratio(margins.hits.sum(axis=0), margins.gold.sum(axis=0)),
            "cohen_kappa": margins.cohen_kappa(),
            "weighted_kappa": weighted_kappa(numbers, sums.length),
            "krippendorff_alpha": krippendorff_alpha(sums),
            "pearson": pearson(sums),
            "bias": ratio(sums["x"] - sums["y"], sums["pairs"]),
            "mae": ratio(sums["distance"], sums["pairs"]),
            **(rates(sums) if self._positive is not None else {}),
            **{f"confusion[{people:g}->{judge:g}]": column for (people, judge), column in numbers.items()},
        }

    def basis(self, sums: Sums) -> Mapping[str, Basis]:
        """The number of labels on which the rates rest, by kind; kappas have none if one kind is rare."""
        labels = Margins.from_cells(ConfusionMatrix.read_cells(sums), sums.length).gold[:, 0]
        others = round(float(labels.sum() - labels.max())) if labels.size else 0
        rare = {}
        if others < _LEAST_OF_THE_OTHER:
            fault = f"{counted(others, 'label')} besides the most frequent one, expected at least {_LEAST_OF_THE_OTHER}"
            rare = {name: Basis(float(labels.sum()), 0.0, fault) for name in _BEYOND_CHANCE}
        return {**rare, **(rates_basis(sums) if self._positive is not None else {})}

    @staticmethod
    def alpha_of(units: Iterable[Sequence[float]]) -> float:
        """Krippendorff's alpha of the scores that two or more raters gave to each unit; NaN if all are the same."""
        sums = Totals.add_up(Observation(unit_moments(scores)) for scores in units).sums()
        return float(krippendorff_alpha(sums)[0])

    @staticmethod
    def rates_of(answers: Iterable[tuple[float, float]]) -> dict[str, tuple[float, Basis]]:
        """The rates at which a yes/no judge agrees with people, each with the labels that it rests on.

        Args:
            answers: For each answer, 1 if the judge takes it for right, else 0, and the share of people who do.
        """
        sums = Totals.add_up(Observation(rate_counts(judge, positive)) for judge, positive in answers).sums()
        values = rates(sums)
        return {name: (float(values[name][0]), basis) for name, basis in rates_basis(sums).items()}


def _key(level: float) -> str:
    """The key of a score level in the counts of human labels and judge levels."""
    return LabelKey.of_value(level) or LabelKey.NONE


def level_of(score: float, levels: Sequence[float]) -> float:
    """The level nearest to a judge's or person's score; of two equally near ones the lower."""
    return min(levels, key=lambda level: (round(abs(score - level), _TIE), level))


def pair_moments(judge: float, people: float) -> dict[str, float]:
    """The sums of one pair of scores for Pearson's correlation, bias and mean absolute error.

    Args:
        judge: The judge's score.
        people: The mean score of the people.
    """
    return {
        "pairs": 1,
        "x": judge,
        "y": people,
        "xx": judge * judge,
        "yy": people * people,
        "xy": judge * people,
        "distance": abs(judge - people),
    }


def pearson(sums: Sums) -> FloatArray:
    """Pearson's correlation of judge and people in [-1, 1]; NaN where either side does not vary (Pearson 1895)."""
    import numpy as np

    spread = spread_of(sums["pairs"], sums["x"], sums["xx"]) * spread_of(sums["pairs"], sums["y"], sums["yy"])
    return np.clip(ratio(sums["pairs"] * sums["xy"] - sums["x"] * sums["y"], np.sqrt(spread)), -1.0, 1.0)


def missing_rates(positive: float) -> dict[str, str]:
    """The rates of agreement with people in which an answer has no part, each with the reason."""
    absent = {"tpr": "no positive label"} if positive <= 0 else {"tnr": "no negative label"} if positive >= 1 else {}
    return {**absent, "balanced_accuracy": _NEEDS_BOTH}


_PRECISION = 0.1
_PLANNED = 0.95
_WORST = 0.5


def _labels_needed(rate: float) -> int:
    """The number of human labels that brings the 95 % interval of a judge's rate to `_PRECISION` on either side.

    The rate is taken nearer to 1/2 by as much, since it may be.
    """
    from statistics import NormalDist

    likely = max(_WORST, max(rate, 1 - rate) - _PRECISION)
    return math.ceil(NormalDist().inv_cdf((1 + _PLANNED) / 2) ** 2 * likely * (1 - likely) / _PRECISION**2)


def rates_basis(sums: Sums) -> dict[str, Basis]:
    """The number of labels on which the rates rest: Wilson's intervals, and their mean by recovered variances.

    Args:
        sums: One row.
    """
    values = {name: float(column[0]) for name, column in rates(sums).items()}
    worth = {name: labels_worth(sums, side) for name, side in SIDES.items()}
    bases: dict[str, Basis] = {}
    more: list[str] = []
    for name, side in SIDES.items():
        labels = worth[name]
        fault, note = f"no {side} label" if not labels else "", ""
        if labels and (needed := _labels_needed(values[name]) - math.floor(labels)) > 0:
            note = f"{counted(needed, f'more {side} label')} for an interval of ±{_PRECISION:g}"
            more.append(note)
        bases[name] = Basis(labels, unseen_error(labels), fault, note, interval=partial(_rate, values[name], labels))
    least = min(worth.values())
    both = partial(_balanced_interval, tuple(values[name] for name in SIDES), tuple(worth.values()))
    floor = math.hypot(*map(unseen_error, worth.values())) / 2
    fault = "; ".join(bases[name].fault for name in SIDES if bases[name].fault)
    bases["balanced_accuracy"] = Basis(least, floor, fault, "; ".join(more) if not fault else "", interval=both)
    return bases


def _rate(rate: float, labels: float, confidence: float, independent: float) -> tuple[float, float]:
    """Wilson's interval of a rate at which a judge agrees with human labels."""
    drawn = labels * independent
    return wilson_interval(rate * drawn, drawn, confidence)


def _balanced_interval(
    values: tuple[float, ...], labels: tuple[float, ...], confidence: float, independent: float
) -> tuple[float, float]:
    """The interval of a judge's balanced accuracy, the mean of two rates, by one of each (Zou and Donner 2008).

    Those are exact mid-p intervals. Wilson's have no room beyond 1: of two rates of 0.98, they would hold the mean in
    0.88 of the reviews with 20 labels of each kind.
    """
    drawn = [label * independent for label in labels]
    bounds = [mid_p_interval(value * size, size, confidence) for value, size in zip(values, drawn, strict=True)]
    below = math.hypot(*(value - low for value, (low, _) in zip(values, bounds, strict=True)))
    above = math.hypot(*(high - value for value, (_, high) in zip(values, bounds, strict=True)))
    middle = sum(values) / 2
    return middle - below / 2, middle + above / 2


RATES = ("tpr", "tnr", "balanced_accuracy")
