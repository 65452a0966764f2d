"""The answers of a report as people review them: each once, with what a label of it would teach."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as dc_replace
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_llmeval.core import (
    MISSING,
    Case,
    CaseOutcome,
    LlmevalError,
    MediaForm,
    Parts,
    ShownPrints,
    counted,
    grouped,
    suggest,
)
from pytest_llmeval.data import CaseFile, InputFile, display_path, json_text
from pytest_llmeval.evaluators import HumanLabel, HumanLabels, LabelScale
from pytest_llmeval.gates import LimitGate
from pytest_llmeval.reports import CaseReport, RunReport, SuiteReport
from pytest_llmeval.suites import Registry
from pytest_llmeval.targets import Recordings
from pytest_llmeval.workbench._console import open_noted
from pytest_llmeval.workbench.reviews.draws import drawn, shuffled
from pytest_llmeval.workbench.reviews.modes import Draw, ModeNote

FAILED: Final = ("failed", "known_failure", "xfailed")
"""Outcomes of cases whose answer is wrong to the suite."""

_ANSWERED = ("passed", "failed", "xfailed", "known_failure")
_FIELDS_OF_ANSWER = ("question", "answer", "reference")
_OF_THE_JUDGE = ("steps",)
"""Fields of questions to a judge that say nothing about the answer."""

_NEAR: Final = 0.25
"""Scores that are farther from a limit, as a share of the scale, are not near it."""


class ReviewItem(Struct, frozen=True):
    """An answer that people review, possibly of several cases or systems.

    Attributes:
        prints: Fingerprints of its texts, by which labels name it.
        cases: Ids of the cases.
        question: The question.
        answer: The answer.
        reference: The right answer; empty where there is none.
        more: What else is shown, such as passages, by name.
        media: The images, sounds and documents of ``question``, ``reference`` and ``answer``.
        scores: What judges gave it, from 0 to 1.
        near: How near its scores are to the limits of gates, from 0 to 1.
        probability: With which it was picked.
        again: The review that picked its case, if the answer has changed since.
        others: Fingerprints of the other answers of its cases, by other systems.
        outcomes: Id and outcome of each case, of every system.
        systems: The systems that gave it; empty where there is only one.
        labels: Labels of its cases, as ``key=value``.
    """

    prints: ShownPrints
    cases: tuple[str, ...]
    question: str
    answer: str
    reference: str = ""
    more: Mapping[str, str] = {}
    media: Mapping[str, Sequence[Any]] = {}
    scores: tuple[float, ...] = ()
    near: float = 0.0
    probability: float = 1.0
    again: str = ""
    others: tuple[str, ...] = ()
    outcomes: tuple[tuple[str, CaseOutcome], ...] = ()
    systems: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The fingerprints as one text."""
        return " ".join(self.prints)

    @property
    def worth(self) -> float:
        """What a label would teach: how far judges are apart, and how near its scores are to limits."""
        return (max(self.scores) - min(self.scores) if self.scores else 0.0) + self.near

    @property
    def failed(self) -> bool:
        """Whether a case with it failed."""
        return any(outcome in FAILED for _, outcome in self.outcomes)


class Review(Struct, frozen=True):
    """The answers that people are to label, in the order in which the review page shows them.

    Attributes:
        items: The answers.
        scale: What people can say.
        ask: The question to them.
        total: How many answers there are to pick from.
        cut: How many are left out because the report has only their beginnings.
        draw: How they were drawn.
        suite: Name of the suite.
    """

    items: tuple[ReviewItem, ...]
    scale: LabelScale
    ask: str
    total: int
    cut: int = 0
    draw: Draw = "all"
    suite: str = ""

    @property
    def id(self) -> str:
        """The name of the review: the same answers, probabilities, order and scale have the same."""
        items = [[*item.prints, *item.cases, item.probability, *filter(None, [item.again])] for item in self.items]
        return ShownPrints.fingerprint([self.scale, self.ask, items])

    def label(self, item: int, annotator: str, label: str | int | None, note: str = "") -> HumanLabel:
        """The label of a person on an item, as files have it."""
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

    def note(self, item: int, annotator: str, at: str, modes: Sequence[str], note: str = "", run: str = "") -> ModeNote:
        """The note of a person about an item, as files have it."""
        each = self.items[item]
        return ModeNote(
            annotator,
            at,
            *each.prints,
            tuple(modes),
            note,
            self.suite,
            each.cases,
            each.systems,
            each.labels,
            each.probability,
            self.draw,
            self.id,
            run,
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
    draw: Draw = "uncertain",
) -> Review:
    """Choose the answers of a report that people review.

    Args:
        suites: Its results, one for each system.
        pick: How many answers to pick; ``None``: all.
        seed: Of the picks, and of the order.
        evaluator: Label of the judge that is reviewed; ``None``: ``judge``, or else the first that asks about answers.
        scale: What people can say; ``None``: yes or no where the judge says nothing else, or else a grade from 1 to 5.
        ask: The question to people; ``None``: whether the answer is right, or how good it is.
        again: Earlier labels: only the answers of their cases that have changed since are picked, each for the one that
            it replaces.
        draw: How to pick; with each, half of the probability is even over all answers.

    Raises:
        LlmevalError: The report has not the texts of all answers, or there is nothing to review.
    """
    items, cut = review_items(suites, evaluator)
    if again is not None:
        items = list(_changed(items, again))
        if not items:
            raise LlmevalError("every label is of today's answer: no labelled case has another one")
    if not items:
        raise LlmevalError(f"suite {suites[0].base_name!r} has no answer to review")
    if scale is None:
        decided = {score for item in items for score in item.scores} <= {0.0, 1.0}
        scale = "yesno" if decided and any(item.scores for item in items) else "1-5"
    names = [item.name for item in items]
    if again is None:
        size = len(items) if pick is None else min(pick, len(items))
        draw = "all" if size == len(items) else draw
        failed, worth = [item.failed for item in items], [item.worth for item in items]
        texts = [f"{item.question}\n{item.answer}" for item in items]
        places, probabilities = drawn(draw, size, names, seed, failed=failed, worth=worth, texts=texts)
        chosen = [replace(items[place], probability=probabilities[place]) for place in places]
    else:
        chosen = [items[place] for place in shuffled(names, seed, "order")[:pick]]
    order = shuffled([item.name for item in chosen], seed, "shown")
    question = ask or ("Is the answer right?" if scale == "yesno" else "How good is the answer?")
    ordered = tuple(chosen[place] for place in order)
    return Review(ordered, scale, question, len(items), cut, draw, suites[0].base_name)


def _changed(items: Iterable[ReviewItem], labels: Iterable[HumanLabel]) -> Iterator[ReviewItem]:
    """Yield unlabelled answers of cases whose earlier answers have labels, with the choice of these."""
    human = HumanLabels(labels)
    for item in items:
        earlier = human.of_other_answers(item.cases, item.prints)
        if earlier and not human.matching(item.cases, item.prints):
            yield replace(item, again=earlier[0].choice, probability=earlier[0].probability)


def review_items(suites: Sequence[SuiteReport], evaluator: str | None = None) -> tuple[list[ReviewItem], int]:
    """The distinct answers of a report for a review, and the number of answers that the report has shortened.

    Raises:
        LlmevalError: Some cases have no texts or several answers, or no judge has the label.
    """
    label = _reviewed(suites, evaluator)
    _check_texts(suites)
    limits = [_limits(suite) for suite in suites]
    judgings = [judging for suite in suites for case in suite.cases for judging in case.judgings]
    low, high = _scale([judging.score for judging in judgings if judging.evaluator == label])
    by_prints: dict[ShownPrints, ReviewItem] = {}
    cut = set()
    for suite, known in zip(suites, limits, strict=True):
        for case in suite.cases:
            near = _near(case, known)
            for case_item in _of_case(case, label, (low, high)) if case.answers else ():
                item = replace(
                    case_item,
                    near=near,
                    outcomes=((case.id, case.outcome),),
                    systems=tuple(filter(None, [suite.variant])),
                    labels=tuple(f"{name}={value}" for name, value in sorted(case.labels.items())),
                )
                if any(map(_is_cut, (item.question, item.answer, item.reference))):
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
    """The label of the judge that a review checks; ``None`` if no judge scores answers."""
    judgings = (judging for suite in suites for case in suite.cases for judging in case.judgings)
    labels = list(dict.fromkeys(judging.evaluator for judging in judgings if "answer" in judging.question))
    if evaluator is not None and evaluator not in labels:
        known = (
            f", expected one of {', '.join(labels)}" if labels else ", expected a judge that was asked about answers"
        )
        raise LlmevalError(f"unknown judge {evaluator!r}{known}{suggest(evaluator, labels)}")
    return evaluator or ("judge" if "judge" in labels else next(iter(labels), None))


def _check_texts(suites: Sequence[SuiteReport]) -> None:
    """Refuse reports without the full texts of answers, or with several answers to a case, which cannot be reviewed."""
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
    """Yield the answer to a case, or those of its turns, as items of a review."""
    prediction = case.answers[0].value
    judgings_of_answers = [
        judging for judging in case.judgings if judging.evaluator == label and "answer" in judging.question
    ]
    by_question = grouped((json.dumps(report.question, sort_keys=True), report) for report in judgings_of_answers)
    if not by_question:
        part = Parts().find("answer", prediction)
        answer = prediction if part is MISSING else part
        parts = {name: Parts().find(name, prediction) for name in ("contexts", "messages", "tool_calls")}
        more = {name: _step_lines(part) for name, part in parts.items() if part not in (MISSING, None, [])}
        yield _item(case, {}, answer, more)
    low, high = scale
    for judgings in by_question.values():
        fields = judgings[0].question
        more = {name: text for name, text in fields.items() if name not in (*_FIELDS_OF_ANSWER, *_OF_THE_JUDGE)}
        scores = tuple((judging.score - low) / (high - low) for judging in judgings if judging.score is not None)
        yield replace(_item(case, fields, prediction, more), scores=scores)


def _step_lines(part: Any) -> str:
    """The passages, messages or calls of an answer on the review page, one a line."""
    return "\n".join(map(_text_of, part)) if isinstance(part, list) else _text_of(part)


def _text_of(value: Any) -> str:
    """A value of an answer as text on the review page; nothing as empty text."""
    return "" if value is None else json_text(value)


def _item(case: CaseReport, fields: Mapping[str, str], answer: Any, more: Mapping[str, str]) -> ReviewItem:
    """An answer of a report as an item of a review, with the texts that a judge was shown."""
    case_input = case.input
    question = case_input.get("question", case_input) if isinstance(case_input, Mapping) else case_input
    expected = _expected(case.expected)
    values = {"question": case_input, "reference": expected, "answer": answer}
    return ReviewItem(
        ShownPrints.of_case(fields, case_input, answer),
        (case.id,),
        _readable_text(fields.get("question") or None, question),
        _readable_text(fields.get("answer"), answer),
        _readable_text(fields.get("reference") or None, expected),
        more,
        {name: [form.data for form in MediaForm.find_all(value)] for name, value in values.items()},
    )


def _readable_text(text: str | None, value: Any) -> str:
    """The text that a judge was shown, or else a value as text; a line about it if it is a medium."""
    if MediaForm.matches(value):
        return MediaForm(value).line
    return _text_of(MediaForm.describe_all(value)) if text is None else text


def _expected(expected: Any) -> Any:
    """The expected answer of a case for the review page, without human scores."""
    if not isinstance(expected, Mapping):
        return expected
    return expected.get("reference") if "human" in expected else expected.get("answer", expected)


def _joined(before: ReviewItem | None, item: ReviewItem) -> ReviewItem:
    """Merge the review items of an answer that several cases or systems have."""
    if before is None:
        return item
    scores = before.scores if len(before.scores) >= len(item.scores) else item.scores
    more = {
        name: tuple(dict.fromkeys([*getattr(before, name), *getattr(item, name)]))
        for name in ("cases", "outcomes", "systems", "labels")
    }
    return replace(before, scores=scores, near=max(before.near, item.near), **more)


def _scale(scores: Iterable[float | None]) -> tuple[float, float]:
    """The ends of the scale of judge scores in a report: 0 and 1, unless scores lie beyond."""
    known = [score for score in scores if score is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high if high > low else low + 1)


def _limits(suite: SuiteReport) -> dict[str, list[float]]:
    """The score limits of a suite by metric, near which labels teach most; yes-or-no metrics have none."""
    limits_by_metric: dict[str, list[float]] = {}
    for gate in suite.gates:
        try:
            parsed = LimitGate.from_text(gate.gate.rpartition(" by ")[0] or gate.gate)
        except ValueError:
            continue
        if parsed is None:
            continue
        name = parsed.metric.removeprefix("corrected(").removesuffix(")") if "(" in parsed.metric else parsed.metric
        limits_by_metric.setdefault(name, []).extend(bound.limit for bound in parsed.bounds)
    scores = {name: {case.metrics.get(name) for case in suite.cases} - {None} for name in limits_by_metric}
    return {name: limits for name, limits in limits_by_metric.items() if scores[name] - {0.0, 1.0}}


def _near(case: CaseReport, limits: Mapping[str, Sequence[float]]) -> float:
    """The nearness of a case's scores to limits of the suite, from 0 to 1, for the choice of review answers."""
    known = [(case.metrics.get(name), limit) for name, metric_limits in limits.items() for limit in metric_limits]
    return max([0.0, *(1 - abs(score - limit) / _NEAR for score, limit in known if score is not None)])


_SPANS = (b'"spans"', b'"traceId"', b'"trace_id"')
_JSON = (".json", ".jsonl", ".ndjson")


def read_answers(path: Path, predictions: Path | None = None) -> RunReport:
    """Read the answers to review from a report, a file of traces, or a suite file whose cases have answers.

    Args:
        path: A JSON report, a file of traces, or a suite file whose cases have answers.
        predictions: Recorded answers to the cases of a suite file.

    Raises:
        SuiteError: A file cannot be read, or has faults.
        LlmevalError: `predictions` without a suite file.
    """
    if InputFile(path).looks_like_suite() or path.suffix not in _JSON:
        suite = open_noted(path)
        results = []
        if predictions is not None and not predictions.exists():
            raise LlmevalError(f"--predictions: {predictions} does not exist: record answers first")
        recordings = Recordings.open(predictions, "auto") if predictions is not None else None
        for variant in suite.systems or [""]:
            cases: Sequence[Case] = suite.for_variant(variant).cases
            if recordings is not None:
                recorded = ((case, recordings.get(display_path(path, Path.cwd()), variant, case)) for case in cases)
                cases = [case if known is MISSING else dc_replace(case, prediction=known) for case, known in recorded]
            results.append(_unjudged(suite.name, path, variant, cases))
        return RunReport(suites=results)
    if predictions is not None:
        raise LlmevalError(f"--predictions: found answers in {path} already, expected a suite file")
    if path.suffix != ".json" or not path.is_file() or not _has_spans(path):
        return RunReport.read(path) if path.suffix == ".json" else _traced(path)
    return _traced(path)


def _has_spans(path: Path) -> bool:
    """Whether a file of answers holds OpenTelemetry spans, and is no report."""
    with path.open("rb") as file:
        beginning = file.read(1 << 16)
    return any(span in beginning for span in _SPANS) and b'"schema_version"' not in beginning


def _traced(path: Path) -> RunReport:
    """The traces in a file that have an answer, as a report with one case each."""
    source: Any = Registry.installed().source("traces")
    file = CaseFile(path, str(path))
    source(path=str(path)).read(file)
    file.faults.check()
    return RunReport(suites=[_unjudged(path.stem, path, "", file.cases.values())])


def _unjudged(name: str, path: Path, variant: str, cases: Iterable[Case]) -> SuiteReport:
    """Recorded answers of cases as results of a suite that nothing has judged, for a review."""
    answered = [case for case in cases if case.prediction is not MISSING]
    return SuiteReport(
        suite=f"{name}[{variant}]" if variant else name,
        path=str(path),
        variant=variant,
        counts={"total": len(answered)},
        metrics={},
        cases=[
            CaseReport(
                id=case.id,
                outcome="not_run",
                input=case.input,
                expected=case.expected,
                prediction=case.prediction,
                labels={label: str(value) for label, value in case.labels.items()},
            )
            for case in answered
        ],
    )


_COUNT_OF_REMAINDER = re.compile(r"\.\.\. \([\d,]+ more characters?\)\Z")


def _is_cut(text: str) -> bool:
    """Whether `excerpt` has shortened a text and counted what is left out.

    >>> _is_cut("abcd... (2 more characters)"), _is_cut("abcdef")
    (True, False)
    """
    return _COUNT_OF_REMAINDER.search(text) is not None
