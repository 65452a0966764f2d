"""Evaluator ``judge``: a model grades the answer in one of several modes."""

__all__ = ("Judge", "JudgedCase", "ModeName", "reason_lines", "verdict_details")

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import EvaluatorError, JudgeError
from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.explanations import as_line, listed
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.evaluators.judge.people import (
    corrected_mean,
    is_labelled,
    people_fault,
    people_of,
    without_people,
)
from pytest_llmeval.evaluators.judge.prompt_texts import prompt_texts
from pytest_llmeval.evaluators.judge.texts import CaseTexts, case_texts
from pytest_llmeval.judge.contract import JudgedEvaluator, Mode, Question, Verdict
from pytest_llmeval.judge.questions.forms import ReplyField, ReplyForm
from pytest_llmeval.judge.questions.modes import PRESETS, get_mode, preset_form
from pytest_llmeval.judge.questions.prompt_files import PromptFile, prompt_mode, read_prompt
from pytest_llmeval.judge.questions.replies import FLAGS, shortened
from pytest_llmeval.judge.questions.rubric import Rubric, rubric_mode
from pytest_llmeval.judge.questions.rules import ADVERSARIAL, MODE_OF_TYPE, instruction_language, is_unanswerable, route
from pytest_llmeval.judge.reduction import juror_lines

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

ModeName: TypeAlias = Literal[
    "auto",
    "continuous",
    "adversarial",
    "temporal_reasoning",
    "knowledge_update",
    "preference",
    "default_binary",
    "abstention",
    "explanation",
    "rubric",
    "tone",
    "toxicity",
    "bias",
    "personal_data",
    "advice_limits",
    "goal_reached",
    "summary_coverage",
]

_PROMPT = "prompt"
_RULE_VERSION = "1"
_RULE_FIELDS = ("answer",)
_TYPE_LABEL = "question_type"
_LANGUAGE_LABEL = "language"
_YES_NO = (0.0, 1.0)
_OVER_CASES = "needs several cases"
_EXCESS = (("score", "excess"), ("pass", "pass_excess"))
_GRADES = "grades"
_SHOWN = 2000
"""Characters of the judge's reasons that details keep."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """How one case is judged.

    Attributes:
        name: Of the mode.
        mode: The mode; ``None`` for the rule.
        texts: What the judge is shown.
        question: What it is asked; ``None`` where a rule decides, or where there is nothing to judge.
    """

    name: str
    mode: Mode | None
    texts: CaseTexts
    question: Question | None

    def verdict(self, verdicts: Sequence[Verdict | JudgeError]) -> Verdict | None:
        """Return the verdict, of the rule or of the judge; ``None`` where there is nothing to judge.

        Raises:
            JudgeError: The judge gave none.
        """
        if self.texts.absent is not None:
            return None
        if self.question is None:
            return Verdict(float(is_unanswerable(self.texts.by_field["answer"])))
        given = verdicts[0]
        if isinstance(given, JudgeError):
            raise given
        return given

    @property
    def scale(self) -> tuple[float, float]:
        """The smallest and the largest score."""
        return _YES_NO if self.mode is None else self.mode.scale

    def share(self, score: float) -> float:
        """Return a score on a scale from 0 to 1."""
        low, high = self.scale
        return (score - low) / (high - low)


@dataclass(frozen=True)
class Judge(JudgedEvaluator):
    """The score that a judge gives an answer.

    ``input`` is the question, or an object that has it as ``question``; ``expected`` is the right answer, or a list of
    right answers; ``prediction`` is the answer. Lists and objects are shown to the judge as JSON, and null as the empty
    answer, which is malformed. A blank answer is judged like any other. In mode ``explanation`` the input is a claim,
    ``prediction`` a justification or ``{verdict, justification}``, and so is ``expected``, which may be absent.

    ``judge_score`` is the mean score, in [0, 1]: grades from 0 to 100 and levels of a rubric are brought to that range,
    lowest level 0, highest 1. A case without expected answer is undefined, except in the modes ``adversarial``,
    ``abstention``, ``explanation`` and ``rubric``, which can do without. A reply without a verdict is an error.

    With ``corrected``, some cases carry the scores of people: their ``expected`` is ``{reference, human}``, as in
    evaluator ``judge_agreement``. ``corrected(judge_score)``, of a rubric ``corrected(judge_pass)`` too, is the mean of
    the judge over all cases plus the mean of what people add to it over those cases (prediction-powered inference,
    Angelopoulos et al. 2023). It may leave [0, 1], and exists for sets of cases only.

    Attributes:
        mode: How to judge; ``auto``: by the label ``question_type``, and ``abstention`` where the case's id ends in
            ``_abs``.
        language: Of the instructions; ``auto``: by the label ``language`` of the case, or by the question's script.
        rubric: Criteria, levels and pass mark; with mode ``rubric`` only.
        corrected: Whether cases carry scores of people, and to report what these make of the judge's.
        prompt: File of the instructions, with placeholders such as ``{{ answer }}``, in place of a mode.
        reply: Of a prompt: name of each field of the reply to what it is.

    Raises:
        ValueError: A rubric without mode ``rubric``, or that mode without a rubric; a prompt without a reply, or with a
            mode.
    """

    name = "judge"
    part = "answer"
    reads_objects = True
    pools_undefined = True  # no single case has a corrected score, and together they do

    mode: ModeName = "auto"
    language: Literal["auto", "en", "zh"] = "auto"
    rubric: Rubric | None = None
    corrected: bool = False
    prompt: str | None = field(default=None, metadata={"path": True, "inside": True})
    reply: dict[str, ReplyField | Literal["text", "boolean"]] | None = None

    def __post_init__(self) -> None:
        if (self.prompt is None) != (self.reply is None):
            found = "no prompt with reply" if self.prompt is None else "a prompt without reply"
            raise ValueError(f"found {found}, expected both or neither")
        if self.prompt is not None and self.mode != "auto":
            raise ValueError(f"found a prompt with mode {self.mode}, expected one of them")
        _ = self.form
        if (self.mode == "rubric") != (self.rubric is not None):
            found = "no rubric with mode rubric" if self.rubric is None else f"a rubric with mode {self.mode}"
            raise ValueError(f"found {found}, expected both or neither")

    def describe(self) -> Sequence[Metric]:
        """Return the metrics of the mode."""
        signature = self.signature()
        metrics = [Metric("judge_score", signature=signature)]
        if self.rubric is not None:
            metrics.append(Metric("judge_pass", signature=f"pass_mark:{self.rubric.pass_mark}|{signature}"))
        if self.mode == "explanation":
            metrics.append(Metric("defect[label]", higher_is_better=False, signature=signature))
        if self.form is not None and self.form.others:
            metrics.append(Metric("judge_field[name]", signature=signature))
        powered = f"prediction-powered|{signature}"
        return [*metrics, *(Metric(name, low=None, high=None, signature=powered) for name in self._corrected())]

    def _corrected(self) -> list[str]:
        names = ["judge_score", *(["judge_pass"] if self.rubric is not None else [])]
        return [f"corrected({name})" for name in names] if self.corrected else []

    def signature(self) -> str:
        """Return how cases are judged: the modes with their versions."""
        routed = self.mode == "auto" and self.prompt is None
        names = sorted({*MODE_OF_TYPE.values(), "abstention"}) if routed else [self._name]
        modes = ",".join(f"{name}@{_version(self._mode(name))}" for name in names)
        return f"mode:{f'auto({modes})' if routed else modes}|lang:{self.language}|v:{self.version}"

    @property
    def _name(self) -> str:
        return self.mode if self.prompt is None else _PROMPT

    @cached_property
    def form(self) -> ReplyForm | None:
        """The form of replies, of a prompt or a preset; ``None`` in other modes."""
        if self.reply is not None:
            return ReplyForm(self.reply)
        return preset_form(self.mode) if self.mode in PRESETS else None

    @cached_property
    def _prompt(self) -> PromptFile:
        assert self.prompt is not None
        return read_prompt(Path(self.prompt))

    def _mode(self, name: str) -> Mode | None:
        if name == _PROMPT:
            assert self.form is not None
            return prompt_mode(self._prompt, self.form)
        if name == ADVERSARIAL:
            return None
        if self.rubric is not None:
            return rubric_mode(self.rubric.criteria, self.rubric.levels)
        return get_mode(name)

    def _language(self, subject: str, label: str | None) -> str:
        return instruction_language(subject, label) if self.language == "auto" else self.language

    def judged(self, case: Case) -> JudgedCase:
        """Return how a case is judged; scores of people are not shown to the judge.

        Raises:
            EvaluatorError: Mode ``auto`` does not know the question type, or the ground truth is of the wrong form.
        """
        labelled = case.expected if self.corrected and is_labelled(case.expected) else None
        if labelled is not None:
            case = without_people(case)
        try:
            name = route(case.labels.get(_TYPE_LABEL), case.id) if self._name == "auto" else self._name
        except ValueError as error:
            raise EvaluatorError(f"labels.{_TYPE_LABEL}: {error}; or set the mode of the evaluator") from None
        mode = self._mode(name)
        if name == _PROMPT:
            texts = prompt_texts(case, self._prompt.placeholders, self._prompt.name)
            language = self._language(self._prompt.text, None)
        else:
            texts = case_texts(case, name, mode.fields if mode else _RULE_FIELDS)
            language = self._language(texts.subject, case.labels.get(_LANGUAGE_LABEL))
        if texts.fault:
            raise EvaluatorError(texts.fault)
        question = None
        if mode is not None and texts.absent is None:
            question = Question(mode, texts.by_field, language)
        judged = JudgedCase(name, mode, texts, question)
        if labelled is not None and (fault := people_fault(labelled, judged.scale)):
            raise EvaluatorError(fault)
        return judged

    def check(self, case: Case) -> Iterable[str]:
        """Yield what keeps a case from being judged: its question type, its question, its expected answer, scores."""
        try:
            self.judged(case)
        except EvaluatorError as error:
            yield str(error)

    def questions(self, case: Case) -> Sequence[Question]:
        """Return the one question about a case; none where a rule decides, or where there is nothing to judge."""
        question = self.judged(case).question
        return [] if question is None else [question]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Count the score, and what the mode has besides.

        Raises:
            JudgeError: The judge gave no verdict.
        """
        judged = self.judged(case)
        verdict = judged.verdict(verdicts)
        if verdict is None:
            names = [metric.name for metric in self.describe() if "[" not in metric.name]
            why = str(judged.texts.absent)
            return Observation({}, undefined=dict.fromkeys(names, why), malformed=judged.texts.malformed)
        counts: dict[str, float] = {"score": judged.share(verdict.score), "n": 1}
        if self.rubric is not None:
            counts["pass"] = float(verdict.score >= self.rubric.pass_mark)
        if judged.name == "explanation":
            counts |= {f"defect.{flag}": float(verdict.details[flag]) for flag in FLAGS}
        if self.form is not None:
            counts |= {
                f"field.{name}": each.share(verdict.details[_GRADES][name]) for name, each in self.form.others.items()
            }
        details = verdict_details(judged, verdict)
        if self.corrected and is_labelled(case.expected):
            counts |= self._excess(judged, verdict.score, people_of(case.expected))
            details["human"] = list(people_of(case.expected))
        undefined = dict.fromkeys(self._corrected(), _OVER_CASES)
        return Observation(counts, details, undefined, judged.texts.malformed)

    def _excess(self, judged: JudgedCase, score: float, people: Sequence[float]) -> dict[str, float]:
        """Count what people add to the judge's score."""
        counts: dict[str, float] = {"labelled": 1}
        counts["excess"] = math.fsum(map(judged.share, people)) / len(people) - judged.share(score)
        if self.rubric is not None:
            mark = self.rubric.pass_mark
            counts["pass_excess"] = sum(each >= mark for each in people) / len(people) - (score >= mark)
        return counts

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say what the judge gave, its reasons, and the defects that it found; nothing for the highest score."""
        counts, details = observation.counts, observation.details
        if not counts.get("n") or (counts["score"] >= 1 and not details.get("flags")):
            return []
        low, high = self.judged(case).scale
        raw = details.get("raw_score", low + (high - low) * counts["score"])
        return [f"score {raw:g} on a scale from {low:g} to {high:g}", *reason_lines(details)]

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return means over the judged cases."""
        metrics = {"judge_score": sums["score"] / sums["n"]}
        if self.rubric is not None:
            metrics["judge_pass"] = sums["pass"] / sums["n"]
        if self.mode == "explanation":
            metrics |= {f"defect[{flag}]": sums[f"defect.{flag}"] / sums["n"] for flag in FLAGS}
        if self.form is not None:
            metrics |= {f"judge_field[{name}]": sums[f"field.{name}"] / sums["n"] for name in self.form.others}
        for name, (total, excess) in zip(self._corrected(), _EXCESS, strict=False):
            metrics[name] = corrected_mean(sums, total, excess)
        return metrics


def reason_lines(details: Mapping[str, Any]) -> list[str]:
    """Return the reasons of a judge, the defects that it found, and what else it replied, as lines."""
    flags = [f"defects: {listed(flags)}"] if (flags := details.get("flags")) else []
    others = [f"{name}: {as_line(value)}" for name, value in details.get("reply", {}).items()]
    reasons = juror_lines(details["jurors"]) if "jurors" in details else filter(None, [details.get("reasoning")])
    return [*reasons, *flags, *others]


def verdict_details(judged: JudgedCase, verdict: Verdict) -> dict[str, Any]:
    """Return what people want to see of a verdict; what there is none of is left out."""
    rest = {name: value for name, value in verdict.details.items() if name not in (*FLAGS, _GRADES)}
    flags = [flag for flag in FLAGS if verdict.details.get(flag)]
    details: dict[str, Any] = {
        "mode": judged.name,
        "reasoning": shortened(verdict.reasoning, _SHOWN),
        "flags": flags,
        **rest,
    }
    if judged.mode is not None and judged.mode.scale != (0.0, 1.0):
        details["raw_score"] = verdict.score
    return {name: value for name, value in details.items() if value not in ("", [])}


def _version(mode: Mode | None) -> str:
    return _RULE_VERSION if mode is None else mode.version
