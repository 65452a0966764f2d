"""The answers of a report as people review them: each once, with what a label of it would teach."""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_llmeval.core.case import MISSING, Parts, ShownPrints, answer_print, shown_prints, shown_text
from pytest_llmeval.core.codec import decode
from pytest_llmeval.core.errors import LlmevalError, SuiteError
from pytest_llmeval.core.results import CaseOutcome
from pytest_llmeval.core.wording import counted, is_cut, suggest
from pytest_llmeval.data.files.writing import rewrite
from pytest_llmeval.data.formats.human_labels import SCALES, HumanLabel, LabelScale, label_line, read_labels
from pytest_llmeval.evaluators.judge.judged_case import HumanLabels
from pytest_llmeval.gates.limit import GateFormError, parse_gate
from pytest_llmeval.reports.form import CaseReport, JudgingReport, SuiteReport
from pytest_llmeval.services.loopback import RefusedError

BASE: Final = 0.5
"""Share of the picks that is spread evenly: no answer weighs more than twice as much as in an even choice."""


def inclusion_probabilities(worth: Sequence[float], size: int) -> list[float]:
    """Return the probability with which each answer is picked: half of it even, half in proportion to its worth.

    Args:
        worth: What a label of each would teach, at least 0.
        size: How many are picked.

    Returns:
        Numbers above 0, at most 1, whose sum is `size`, or 1 each where there are no more answers.

    >>> inclusion_probabilities([0, 0, 1, 3], 2)
    [0.25, 0.25, 0.5, 1.0]
    """
    count = len(worth)
    if size >= count:
        return [1.0] * count
    total = sum(worth)
    shares = [BASE / count + (1 - BASE) * each / total if total else 1 / count for each in worth]
    certain: set[int] = set()
    while True:
        remainder = sum(share for place, share in enumerate(shares) if place not in certain)
        factor = (size - len(certain)) / remainder
        more = {place for place, share in enumerate(shares) if place not in certain and factor * share >= 1}
        if not more:
            return [1.0 if place in certain else factor * share for place, share in enumerate(shares)]
        certain |= more


def picked(probabilities: Sequence[float], names: Sequence[str], seed: int) -> list[int]:
    """Pick answers with these probabilities: systematic sampling of answers in random order (Goodman and Kish 1950).

    Args:
        probabilities: Their sum is the number that is picked.
        names: Of the answers, each once. The picks depend on names and seed alone, not on the order.
        seed: Any whole number.

    Returns:
        Places of the picks, in rising order.
    """
    order = shuffled(names, seed, "order")
    ends = list(accumulate(probabilities[place] for place in order))
    start = _number(seed, "start", "") / 2**256
    chosen = (bisect_left(ends, start + step) for step in range(round(ends[-1]) if ends else 0))
    return sorted({order[min(place, len(order) - 1)] for place in chosen})


def shuffled(names: Sequence[str], seed: int, purpose: str) -> list[int]:
    """Return the places of names in a random order, which depends on names, seed and purpose alone."""
    return sorted(range(len(names)), key=lambda place: (_number(seed, purpose, names[place]), names[place]))


def _number(seed: int, purpose: str, name: str) -> int:
    text = f"{seed} {purpose} {name}"
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest())


_ANSWERED = ("passed", "failed", "xfailed", "known_failure")
_FIELDS_OF_ANSWER = ("question", "answer", "reference")
_OF_THE_JUDGE = ("steps",)
"""Fields of questions to a judge that say nothing about the answer."""

_NEAR: Final = 0.25
"""Scores that are farther from a limit, as a share of the scale, are not near it."""


class ReviewItem(Struct, frozen=True):
    """One answer, which may be that of several cases or systems.

    Attributes:
        prints: Fingerprints of its texts, by which labels name it.
        cases: Ids of the cases.
        question: The question.
        answer: The answer.
        reference: The right answer; empty where there is none.
        more: What else is shown, such as passages, by name.
        scores: What judges gave it, from 0 to 1.
        near: How near its scores are to the limits of gates, from 0 to 1.
        probability: With which it was picked.
        again: The review that picked its case, if the answer has changed since.
        others: Fingerprints of the other answers of its cases, by other systems.
        outcomes: Id and outcome of each case, of every system.
    """

    prints: ShownPrints
    cases: tuple[str, ...]
    question: str
    answer: str
    reference: str = ""
    more: Mapping[str, str] = {}
    scores: tuple[float, ...] = ()
    near: float = 0.0
    probability: float = 1.0
    again: str = ""
    others: tuple[str, ...] = ()
    outcomes: tuple[tuple[str, CaseOutcome], ...] = ()

    @property
    def name(self) -> str:
        """The fingerprints as one text."""
        return " ".join(self.prints)

    @property
    def worth(self) -> float:
        """What a label would teach: how far judges are apart, and how near its scores are to limits."""
        return (max(self.scores) - min(self.scores) if self.scores else 0.0) + self.near


class Review(Struct, frozen=True):
    """Answers that people are to label, in the order in which they see them.

    Attributes:
        items: The answers.
        scale: What people can say.
        ask: The question to them.
        total: How many answers there are to pick from.
        cut: How many are left out because the report has only their beginnings.
    """

    items: tuple[ReviewItem, ...]
    scale: LabelScale
    ask: str
    total: int
    cut: int = 0

    @property
    def id(self) -> str:
        """The name of the review: the same answers, probabilities, order and scale have the same."""
        items = [[*each.prints, *each.cases, each.probability, *filter(None, [each.again])] for each in self.items]
        return answer_print([self.scale, self.ask, items])

    def label(self, item: int, annotator: str, label: str | int | None, note: str = "") -> HumanLabel:
        """Return what a person says of an item, as files have it."""
        chosen = self.items[item]
        question, answer, reference = chosen.prints
        return HumanLabel(
            question,
            answer,
            annotator,
            self.scale,
            label,
            note,
            chosen.cases,
            reference,
            chosen.probability,
            self.id,
            chosen.again,
            chosen.others,
        )


def review_of(
    suites: Sequence[SuiteReport],
    *,
    pick: int | None = None,
    seed: int = 0,
    evaluator: str | None = None,
    scale: LabelScale | None = None,
    ask: str | None = None,
    again: Sequence[HumanLabel] | None = None,
) -> Review:
    """Return the review of a suite.

    Args:
        suites: Its results, one for each system.
        pick: How many answers to pick; ``None``: all.
        seed: Of the picks, and of the order.
        evaluator: Label of the judge that is reviewed; ``None``: ``judge``, or else the first that asks about answers.
        scale: What people can say; ``None``: yes or no where the judge says nothing else, or else a grade from 1 to 5.
        ask: The question to people; ``None``: whether the answer is right, or how good it is.
        again: Earlier labels: only the answers of their cases that have changed since are picked, each for the one that
            it replaces.

    Raises:
        LlmevalError: The report has not the texts of all answers, or there is nothing to review.
    """
    items, cut = review_items(suites, evaluator)
    if again is not None:
        items = list(_changed(items, again))
        if not items:
            raise LlmevalError(
                "found no changed answer of a labelled case, expected one: every label is of today's answer"
            )
    if not items:
        raise LlmevalError(f"found no answer to review in suite {suites[0].base_name!r}, expected at least one")
    if scale is None:
        decided = {score for each in items for score in each.scores} <= {0.0, 1.0}
        scale = "yesno" if decided and any(each.scores for each in items) else "1-5"
    names = [each.name for each in items]
    if again is None:
        probabilities = inclusion_probabilities([each.worth for each in items], len(items) if pick is None else pick)
        places = picked(probabilities, names, seed)
        chosen = [replace(items[place], probability=probabilities[place]) for place in places]
    else:
        chosen = [items[place] for place in shuffled(names, seed, "order")[:pick]]
    order = shuffled([each.name for each in chosen], seed, "shown")
    question = ask or ("Is the answer right?" if scale == "yesno" else "How good is the answer?")
    return Review(tuple(chosen[place] for place in order), scale, question, len(items), cut)


def _changed(items: Iterable[ReviewItem], labels: Iterable[HumanLabel]) -> Iterator[ReviewItem]:
    """Yield the answers without a label whose cases have labels of earlier answers, with the choice of these."""
    human = HumanLabels(labels)
    for each in items:
        earlier = human.of_other_answers(each.cases, each.prints)
        if earlier and not human.matching(each.cases, each.prints):
            yield replace(each, again=earlier[0].choice, probability=earlier[0].probability)


def review_items(suites: Sequence[SuiteReport], evaluator: str | None = None) -> tuple[list[ReviewItem], int]:
    """Return each answer once, and how many are left out because the report has only their beginnings.

    Raises:
        LlmevalError: Some cases have no texts or several answers, or no judge has the label.
    """
    label = _reviewed(suites, evaluator)
    _check_texts(suites)
    limits = [_limits(suite) for suite in suites]
    judgings = [each for suite in suites for case in suite.cases for each in case.judgings]
    low, high = _scale([each.score for each in judgings if each.evaluator == label])
    by_prints: dict[ShownPrints, ReviewItem] = {}
    cut = set()
    for suite, known in zip(suites, limits, strict=True):
        for case in suite.cases:
            near = _near(case, known)
            for each in _of_case(case, label, (low, high)) if case.answers else ():
                item = replace(each, near=near, outcomes=((case.id, case.outcome),))
                if any(map(is_cut, (item.question, item.answer, item.reference))):
                    cut.add(item.prints)
                else:
                    by_prints[item.prints] = _joined(by_prints.get(item.prints), item)
    answers: dict[str, set[str]] = {}
    for item in by_prints.values():
        for case_id in item.cases:
            answers.setdefault(case_id, set()).add(item.prints.answer)
    items = []
    for item in by_prints.values():
        others = {answer for case_id in item.cases for answer in answers[case_id]} - {item.prints.answer}
        items.append(replace(item, others=tuple(sorted(others))))
    return items, len(cut)


def _reviewed(suites: Sequence[SuiteReport], evaluator: str | None) -> str | None:
    """Return the label of the judge that is reviewed; ``None`` where no judge asks about answers."""
    judgings = (each for suite in suites for case in suite.cases for each in case.judgings)
    labels = list(dict.fromkeys(each.evaluator for each in judgings if "answer" in each.question))
    if evaluator is not None and evaluator not in labels:
        known = (
            f", expected one of {', '.join(labels)}" if labels else ", expected a judge that was asked about answers"
        )
        raise LlmevalError(f"found no judge {evaluator!r}{known}{suggest(evaluator, labels)}")
    return evaluator or ("judge" if "judge" in labels else next(iter(labels), None))


def _check_texts(suites: Sequence[SuiteReport]) -> None:
    cases = [case for suite in suites for case in suite.cases if case.outcome in _ANSWERED]
    lacking = sum(not case.answers for case in cases)
    if lacking:
        raise LlmevalError(
            f"found {lacking} of {counted(len(cases), 'answered case')} without texts, expected those of all, so that "
            "every answer can be picked: run with --llmeval-texts=all"
        )
    if any("repeats" in case.details for case in cases):
        raise LlmevalError("found repeated cases, expected one answer to each: run without repeats")


def _of_case(case: CaseReport, label: str | None, scale: tuple[float, float]) -> Iterator[ReviewItem]:
    """Yield the answer to a case, or those of its turns."""
    prediction = case.answers[0].value
    by_question: dict[str, list[JudgingReport]] = {}
    for each in case.judgings:
        if each.evaluator == label and "answer" in each.question:
            by_question.setdefault(json.dumps(each.question, sort_keys=True), []).append(each)
    if not by_question:
        part = Parts().find("answer", prediction)
        answer = prediction if part is MISSING else part
        contexts = Parts().find("contexts", prediction)
        more = {} if contexts is MISSING else {"contexts": shown_text(contexts)}
        yield _item(case, {}, answer, more)
    low, high = scale
    for judgings in by_question.values():
        fields = judgings[0].question
        more = {name: text for name, text in fields.items() if name not in (*_FIELDS_OF_ANSWER, *_OF_THE_JUDGE)}
        scores = tuple((each.score - low) / (high - low) for each in judgings if each.score is not None)
        yield replace(_item(case, fields, prediction, more), scores=scores)


def _item(case: CaseReport, fields: Mapping[str, str], answer: Any, more: Mapping[str, str]) -> ReviewItem:
    case_input = case.input
    question = case_input.get("question", case_input) if isinstance(case_input, Mapping) else case_input
    return ReviewItem(
        shown_prints(fields, case_input, answer),
        (case.id,),
        fields.get("question") or shown_text(question),
        fields.get("answer", shown_text(answer)),
        fields.get("reference") or shown_text(_expected(case.expected)),
        more,
    )


def _expected(expected: Any) -> Any:
    """Return what is expected as an answer, without the scores of people."""
    if not isinstance(expected, Mapping):
        return expected
    return expected.get("reference") if "human" in expected else expected.get("answer", expected)


def _joined(before: ReviewItem | None, item: ReviewItem) -> ReviewItem:
    """Return an answer that several cases or systems have."""
    if before is None:
        return item
    cases = tuple(dict.fromkeys([*before.cases, *item.cases]))
    scores = before.scores if len(before.scores) >= len(item.scores) else item.scores
    outcomes = tuple(dict.fromkeys([*before.outcomes, *item.outcomes]))
    return replace(before, cases=cases, scores=scores, near=max(before.near, item.near), outcomes=outcomes)


def _scale(scores: Iterable[float | None]) -> tuple[float, float]:
    """Return the ends of the scale of scores: 0 and 1, or those that occur where some are beyond."""
    known = [score for score in scores if score is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high if high > low else low + 1)


def _limits(suite: SuiteReport) -> dict[str, list[float]]:
    """Return the limits by which cases are near or far, by metric; yes or no is near to none."""
    limits_by_metric: dict[str, list[float]] = {}
    for gate in suite.gates:
        try:
            parsed = parse_gate(gate.gate.rpartition(" by ")[0] or gate.gate)
        except (GateFormError, ValueError):
            continue
        name = parsed.metric.removeprefix("corrected(").removesuffix(")") if "(" in parsed.metric else parsed.metric
        limits_by_metric.setdefault(name, []).extend(bound.limit for bound in parsed.bounds)
    scores = {name: {case.metrics.get(name) for case in suite.cases} - {None} for name in limits_by_metric}
    return {name: limits for name, limits in limits_by_metric.items() if scores[name] - {0.0, 1.0}}


def _near(case: CaseReport, limits: Mapping[str, Sequence[float]]) -> float:
    """Return how near the scores of a case are to limits, from 0 to 1."""
    known = [(case.metrics.get(name), limit) for name, some in limits.items() for limit in some]
    return max([0.0, *(1 - abs(score - limit) / _NEAR for score, limit in known if score is not None)])


class _SentLabel(Struct, frozen=True, forbid_unknown_fields=True):
    item: int
    label: str | int | None
    note: str = ""


class _SentLabels(Struct, frozen=True, forbid_unknown_fields=True):
    annotator: str
    labels: list[_SentLabel]


class LabelFile:
    """The labels of a review in a file, beside those of other reviews.

    Args:
        review: What is labelled; a page can only say which of its items it means.
        path: The file, which need not be there yet.
    """

    def __init__(self, review: Review, path: Path) -> None:
        self.review = review
        self.path = path

    def labels(self) -> Sequence[HumanLabel]:
        """Return what the file has.

        Raises:
            SuiteError: It has faults.
        """
        return read_labels([(self.path, str(self.path))]) if self.path.exists() else []

    def read(self, annotator: str) -> str:
        """Return the lines of one person in this review: people do not see those of others.

        Raises:
            RefusedError: The file has faults.
        """
        try:
            labels = self.labels()
        except SuiteError as error:
            raise RefusedError(str(error)) from None
        return "".join(map(label_line, (each for each in labels if self._is_own(each, annotator))))

    def save(self, body: bytes) -> None:
        """Write what a person says, in place of what the person has said before.

        Args:
            body: JSON: the annotator, and the labels by number of the item.

        Raises:
            RefusedError: It says something that the page does not, or the file has faults.
            OSError: The file cannot be written; then it is as it was.
        """
        try:
            sent = decode(body, _SentLabels)
        except (ValueError, RecursionError) as error:
            raise RefusedError(f"found no labels ({error})") from None
        if not sent.annotator.strip():
            raise RefusedError("annotator: found an empty text, expected a name")
        new = [self._label(sent.annotator, each) for each in sent.labels]

        def make() -> str:
            others = [each for each in self.labels() if not self._is_own(each, sent.annotator)]
            return "".join(map(label_line, [*others, *new]))

        try:
            rewrite(self.path, make)
        except SuiteError as error:
            raise RefusedError(str(error)) from None

    def _is_own(self, label: HumanLabel, annotator: str) -> bool:
        return label.annotator == annotator and label.review == self.review.id

    def _label(self, annotator: str, sent: _SentLabel) -> HumanLabel:
        if not 0 <= sent.item < len(self.review.items):
            raise RefusedError(f"item: found {sent.item}, expected less than {len(self.review.items)}")
        known = SCALES[self.review.scale]
        if sent.label is not None and (sent.label not in known or isinstance(sent.label, bool)):
            raise RefusedError(f"label: found {sent.label!r}, expected one of {', '.join(map(str, known))}, or null")
        return self.review.label(sent.item, annotator, sent.label, sent.note)
