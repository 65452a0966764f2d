"""One case as a judge sees it: its texts, the values of a prompt, reasons, and the scores that people gave."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_llmeval.core.case import MISSING, Case, ShownPrints, answer_print
from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.core.evaluator import Basis
from pytest_llmeval.core.wording import as_line, counted, excerpt, listed
from pytest_llmeval.data.formats.base import ABSENT, json_text, pick
from pytest_llmeval.data.formats.human_labels import HumanLabel, read_labels
from pytest_llmeval.evaluators.answers import as_references, as_text, describe_found
from pytest_llmeval.evaluators.measures.confusion import ratio
from pytest_llmeval.evaluators.measures.pieces import listed as listed_sources
from pytest_llmeval.judge.contract import Mode, Question, Verdict
from pytest_llmeval.judge.panel import juror_lines
from pytest_llmeval.judge.questions.modes import is_unanswerable, optional_fields
from pytest_llmeval.judge.questions.replies import FLAGS, UNNAMED_DEFECTS

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums


_SUBJECTS = ("claim", "goal", "source", "question")
_ABSENT = {"reference": "no expected answer", **{name: f"no {name}" for name in _SUBJECTS}}


@dataclass(frozen=True, slots=True)
class CaseTexts:
    """The texts of one case.

    Attributes:
        by_field: Field name to text; what the case lacks is absent.
        malformed: What is wrong with the prediction.
        absent: Why there is nothing to judge; ``None`` where the mode has all that it needs.
        fault: What is wrong with the ground truth or the input.
    """

    by_field: Mapping[str, str]
    malformed: str | None = None
    absent: str | None = None
    fault: str | None = None

    @property
    def subject(self) -> str:
        """The question, claim, goal or source, or else the answer; it determines the language."""
        names = ("question", "claim", "goal", "source", "answer")
        return next((text for name in names if (text := self.by_field.get(name))), "")


def case_texts(case: Case, mode: str, fields: tuple[str, ...]) -> CaseTexts:
    """Return what a judge is shown of a case.

    Args:
        case: The case.
        mode: Name of the mode.
        fields: Those of the mode; ``claim`` among them makes the case one of fact checking.
    """
    is_claim = "claim" in fields
    expected, fault = _gold(case.expected) if is_claim else _reference(case.expected)
    answer, malformed = _explanation(case.prediction) if is_claim else _answer(case.prediction)
    if "trajectory" in fields:
        answer, malformed = _trajectory(case)
    if not is_claim and "reference" not in fields:
        fault = None
    subject = next((name for name in _SUBJECTS if name in fields), "question")
    available = {subject: _subject(case.input, subject), **expected, **answer}
    texts = {name: text for name in fields if (text := available.get(name)) is not None}
    lacking = [name for name in fields if name not in texts and name not in optional_fields(mode)]
    if subject in lacking and fault is None:
        fault = f"found {describe_found(case.input)} as input, expected the {subject} as text"
    return CaseTexts(texts, malformed, _ABSENT[lacking[0]] if lacking else None, fault)


def _subject(value: Any, key: str) -> str | None:
    """Return the question or claim of an input: a text, the text under `key`, or else the input as JSON."""
    if value is None or value == "":
        return None
    if isinstance(value, Mapping) and (text := as_text(value.get(key))) is not None:
        return text
    return json_text(value)


def _reference(expected: Any) -> tuple[dict[str, str], str | None]:
    """Return the right answer, several as a list; blank ones are none."""
    references = as_references(expected)
    if references is None:
        return {}, f"found {describe_found(expected)} as expected, expected text or a list of texts"
    references = [each for each in references if each.strip()]
    if not references:
        return {}, None
    text = references[0] if len(references) == 1 else "\n".join(f"- {each}" for each in references)
    return {"reference": text}, None


def _answer(prediction: Any) -> tuple[dict[str, str], str | None]:
    """Return the answer; lists and objects are shown as JSON, null and nothing as the empty answer."""
    if prediction is None or prediction is MISSING:
        return {"answer": ""}, f"found {describe_found(prediction)}, expected an answer"
    return {"answer": json_text(prediction)}, None


def _trajectory(case: Case) -> tuple[dict[str, str], str | None]:
    """Return the steps of an agent, numbered, one a line: its messages, or its calls of tools and the answer."""
    steps = case.prediction if isinstance(case.prediction, list) else case.parts.get("messages")
    if not isinstance(steps, list):
        steps = case.parts.get("tool_calls")
        if isinstance(steps, list) and case.prediction not in (None, MISSING):
            steps = [*steps, {"answer": case.prediction}]
    if not isinstance(steps, list):
        description = describe_found(case.prediction)
        return {"trajectory": ""}, f"found {description} without messages and tool_calls, expected a trajectory"
    lines = (f"{number}. {json.dumps(step, ensure_ascii=False)}" for number, step in enumerate(steps, 1))
    return {"trajectory": "\n".join(lines)}, None


def _gold(expected: Any) -> tuple[dict[str, str], str | None]:
    """Return what people wrote: of ``{verdict, justification, evidence_sources}``; a text is the justification."""
    if expected is None:
        return {}, None
    if isinstance(expected, Mapping):
        return {f"gold_{name}": text for name, text in _parts(expected).items()}, None
    text = as_text(expected)
    if text is None:
        return {}, f"found {describe_found(expected)} as expected, expected text or {{verdict, justification}}"
    return {"gold_justification": text}, None


def _explanation(prediction: Any) -> tuple[dict[str, str], str | None]:
    """Return the parts of ``{verdict, justification, evidence_sources}``; a text is the justification."""
    parts = _parts(prediction) if isinstance(prediction, Mapping) else {}
    text = as_text(prediction)
    if text is not None:
        parts = {"justification": text}
    if "justification" in parts:
        return parts, None
    description = "an object without a justification" if isinstance(prediction, Mapping) else describe_found(prediction)
    return {**parts, "justification": ""}, f"found {description}, expected text or {{verdict, justification}}"


def _parts(value: Mapping[str, Any]) -> dict[str, str]:
    texts = {name: as_text(value.get(name)) for name in ("verdict", "justification")}
    texts["sources"] = listed_sources(value.get("evidence_sources")) or None
    return {name: text for name, text in texts.items() if text is not None}


_REQUIRED: Final = ("input", "labels", "question")
"""Parts that every case must have."""

_TRUTH: Final = ("expected", "reference")


def prompt_texts(case: Case, names: Iterable[str], file: str) -> CaseTexts:
    """Return the texts that a prompt names.

    Args:
        case: The case.
        names: Of placeholders, such as ``input.question``.
        file: The prompt, for messages.
    """
    texts: dict[str, str] = {}
    malformed = absent = fault = None
    for name in names:
        value = _placeholder_value(case, name)
        root = name.partition(".")[0]
        if value is not ABSENT and value is not None and value is not MISSING:
            texts[name] = json_text(value)
        elif root in _REQUIRED:
            fault = fault or f"found no {name}, expected it, as {file} names it"
        elif root in _TRUTH:
            absent = absent or f"no {name}"
        else:
            texts[name] = ""
            what = describe_found(case.prediction) if name == "answer" else f"a prediction without {name}"
            malformed = malformed or f"found {what}, expected {name}, as {file} names it"
    return CaseTexts(texts, malformed, absent, fault)


def _placeholder_value(case: Case, name: str) -> Any:
    root, _, path = name.partition(".")
    if root in ("question", "reference"):
        return case_texts(case, "rubric", (root,)).by_field.get(root)
    values = {
        "answer": case.prediction,
        "expected": case.expected,
        "input": case.input,
        "labels": case.labels,
        "prediction": case.prediction if case.origin is None else case.origin.prediction,
    }
    value = values[root] if root in values else case.parts.get(root)
    if not path:
        return value
    return pick(value, path) if isinstance(value, Mapping) else pick({"": value}, f".{path}")


GRADES_OF_FIELDS: Final = "grades"
"""The detail of a verdict that has the grades of further fields; they are metrics, and not shown again."""

_KNOWN: Final = frozenset((*FLAGS, UNNAMED_DEFECTS, GRADES_OF_FIELDS))

_YES_NO = (0.0, 1.0)
_LONGEST_REASONING = 2000
"""Characters of the judge's reasons that details keep."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """The mode, the texts and the question by which one case is judged.

    Attributes:
        name: Of the mode.
        mode: The mode; ``None`` for the rule.
        texts: What the judge is shown.
        question: What it is asked; ``None`` if a rule decides, or if there is nothing to judge.
        original_rule: Apply the original's rule to the letter.
    """

    name: str
    mode: Mode | None
    texts: CaseTexts
    question: Question | None
    original_rule: bool = False

    def verdict(self, verdicts: Sequence[Verdict | JudgeError]) -> Verdict | None:
        """Return the verdict, of the rule or of the judge; ``None`` if there is nothing to judge.

        Raises:
            JudgeError: The judge gave none.
        """
        if self.texts.absent is not None:
            return None
        if self.question is None:
            answer = self.texts.by_field["answer"]
            return Verdict(float(is_unanswerable(answer, original=self.original_rule)))
        for each in verdicts:
            if isinstance(each, JudgeError):
                raise each
        return verdicts[-1]  # type: ignore[return-value]  # no error is left

    @property
    def scale(self) -> tuple[float, float]:
        """The smallest and the largest score."""
        return _YES_NO if self.mode is None else self.mode.scale

    def share(self, score: float) -> float:
        """Return a score on a scale from 0 to 1."""
        low, high = self.scale
        return (score - low) / (high - low)


def reason_lines(details: Mapping[str, Any]) -> list[str]:
    """Return the reasons of a judge, the defects that it found, and what else it replied, as lines."""
    flags = [f"defects: {listed(flags)}"] if (flags := details.get("flags")) else []
    others = [f"{name}: {as_line(value)}" for name, value in details.get("reply", {}).items()]
    reasons = juror_lines(details["jurors"]) if "jurors" in details else filter(None, [details.get("reasoning")])
    return [*reasons, *flags, *others]


def verdict_details(judged: JudgedCase, verdict: Verdict) -> dict[str, Any]:
    """Return what people want to see of a verdict; what there is none of is left out."""
    others = {name: value for name, value in verdict.details.items() if name not in _KNOWN}
    flags = [flag for flag in FLAGS if verdict.details.get(flag)]
    details: dict[str, Any] = {
        "mode": judged.name,
        "reasoning": excerpt(verdict.reasoning, _LONGEST_REASONING, lines=True),
        "flags": flags,
        **others,
    }
    if judged.mode is not None and judged.mode.scale != (0.0, 1.0):
        details["raw_score"] = verdict.score
    return {name: value for name, value in details.items() if value not in ("", [])}


def defect_counts(details: Mapping[str, Any]) -> dict[str, float]:
    """Count the defects of an explanation that a verdict finds, and those of which it says nothing."""
    unnamed = details.get(UNNAMED_DEFECTS, ())
    return {f"defect.{flag}": float(bool(details.get(flag))) for flag in FLAGS if flag not in unnamed} | {
        f"defect.{flag}.unnamed": 1.0 for flag in unnamed
    }


def unnamed_defects(details: Mapping[str, Any]) -> dict[str, str]:
    """Return metric to reason for the defects of which a verdict says nothing: they are neither found nor absent."""
    return {f"defect[{flag}]": "the judge did not say" for flag in details.get(UNNAMED_DEFECTS, ())}


def defect_rates(sums: "Sums", judged: "FloatArray") -> "dict[str, FloatArray]":
    """Return the share of explanations that have each defect, of those of which a judge says whether they have it."""
    return {f"defect[{flag}]": ratio(sums[f"defect.{flag}"], judged - sums[f"defect.{flag}.unnamed"]) for flag in FLAGS}


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
    """Return the scores of all people; one score represents a list of it."""
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
    """The scores that people gave the answer to one case.

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

    @classmethod
    def from_truth(cls, expected: Any, answer: Any) -> "PeopleScores":
        """Return the scores that ground truth has; they weigh as one case."""
        if not is_labelled(expected):
            return cls()
        if is_stale(expected, answer):
            return cls(stale=1.0)
        return cls([float(score) for score in people_of(expected)], bound=expected.get(_ANSWER) is not None)

    def joined(self, other: "PeopleScores") -> "PeopleScores":
        """Return the scores of both: a case that was chosen twice represents as many as both together."""
        if self.scores and other.scores:
            scores = [*self.scores, *other.scores]
            return PeopleScores(scores, self.weight + other.weight, self.bound and other.bound)
        people = self if self.scores else other
        if people.scores:
            return people._replace(weight=people.weight + self.stale + other.stale)
        return PeopleScores(stale=self.stale + other.stale)


class HumanLabels:
    """The labels of files, by what they are of."""

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
        named = [each for each in alike if not set(each.cases).isdisjoint(cases)]
        return named or [each for each in alike if each.reference in ("", prints.reference)]

    def of_other_answers(self, cases: Sequence[str], prints: ShownPrints) -> list[HumanLabel]:
        """Return the labels of answers that cases had before they changed.

        Args:
            cases: Ids of the cases.
            prints: Of their texts today.
        """
        named = (each for case in cases for each in self._by_case.get(case, ()))
        return [
            each for each in named if (each.question, each.answer) != prints[:2] and prints.answer not in each.others
        ]

    def scores_of(self, case: str, prints: ShownPrints, scale: tuple[float, float]) -> PeopleScores:
        """Return what people said of the answer to a case.

        A case that a review picked stays picked when its answer changes: what people would say now is missing then,
        until a label of the new answer fills the gap.

        Args:
            case: Its id.
            prints: Of its texts.
            scale: On which the scores are returned.
        """
        matches = self.matching([case], prints)
        chosen = {each.choice: each.probability for each in (*self.of_other_answers([case], prints), *matches)}
        weight = math.fsum(1 / probability for probability in chosen.values())
        if not matches:
            return PeopleScores(stale=weight)
        low, high = scale
        shares = {each.annotator: each.share or 0.0 for each in matches}
        return PeopleScores([low + (high - low) * share for share in shares.values()], weight, bound=True)


def weight_counts(weight: float) -> dict[str, float]:
    """Count by how much a case represents more than itself; nothing where it does not."""
    return {} if weight == 1 else {_OVER: weight - 1, _OVER_SQUARE: weight**2 - 1}


def _labels_weight(sums: "Sums") -> "FloatArray":
    """Return how many cases the labelled ones represent."""
    return sums["labelled"] + sums[_OVER]


def _missing_weight(sums: "Sums") -> "FloatArray":
    """Return how many cases those represent whose labels are of other answers."""
    return sums["stale"] + sums[_STALE_OVER]


def corrected_mean(sums: "Sums", total: str, excess: str) -> "FloatArray":
    """Return the power-tuned prediction-powered mean (PPI++: Angelopoulos, Duchi and Zrnic 2023).

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
    """Count what people add to the score of a judge, how large such errors are, and how they go with the score.

    Args:
        name: Of the counts.
        judge: The judge's score, from 0 to 1.
        people: That of people, from 0 to 1.
        weight: How many cases the labelled one represents.
    """
    excess = people - judge
    return {
        name: weight * excess,
        f"{name}_size": weight * abs(excess),
        f"{name}_square": weight * excess**2,
        f"{name}_judge": weight * judge,
        f"{name}_judge_square": weight * judge**2,
        f"{name}_cross": weight * judge * excess,
    }


def missing_counts(scores: Mapping[str, float], weight: float) -> dict[str, float]:
    """Count a chosen case whose labels are of another answer.

    Args:
        scores: Name of the counts of `excess_counts` to the judge's score of this answer, from 0 to 1.
        weight: How many cases it represents.
    """
    over = {} if weight == 1 else {_STALE_OVER: weight - 1}
    return {"stale": 1, **over, **{f"{name}_missing_judge": weight * judge for name, judge in scores.items()}}


def corrected_basis(sums: "Sums", excess: str) -> Basis:
    """Return what a prediction-powered mean rests on: the labels, however many other cases there are.

    So few labels cannot have shown every error of the judge. As Bonett and Price (2012) do for paired shares, two
    labels are added, an error in either direction of the size that errors have, which is 1 where none has been seen. To
    the variance of a mean of n labels, that adds 2 / n / (n + 2) times its square. Labels of unequal weights are worth
    the square of their sum over the sum of their squares (Kish 1965).

    Labels that survive because their answers did not change say nothing about answers that did. For the share of
    these, the scores of people may be anything.

    Args:
        sums: One row.
        excess: Name of the count of what people add.
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
    size, square = float(sums[f"{excess}_size"][0]), float(sums[f"{excess}_square"][0])
    floor = unseen_errors(square / size if size > _ROUNDING else 1.0, worth)
    unknown = missing / (weight + missing) if stale else 0.0
    return Basis(worth, floor, fault, note, apart, unknown)


def unseen_errors(error: float, labels: float) -> float:
    """Return the standard deviation of what so few labels cannot have shown; see `corrected_basis`.

    Args:
        error: The size of an error.
        labels: How many.
    """
    return error * math.sqrt(2 / labels / (labels + 2)) if labels else 0.0
