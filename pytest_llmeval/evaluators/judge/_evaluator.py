"""Evaluator ``judge``: a model grades the answer in one of several modes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import structs

from pytest_llmeval.core import (
    Basis,
    Case,
    EvaluatorError,
    FloatArray,
    JudgeError,
    Metric,
    Observation,
    Reads,
    ShownPrints,
    Sums,
)
from pytest_llmeval.evaluators._rubric import Rubric
from pytest_llmeval.evaluators.judge._criteria import GRADES, criteria_mode, numbered_steps, steps_question
from pytest_llmeval.evaluators.judge._human_labels import (
    OTHER_ANSWER,
    HumanLabels,
    PeopleScores,
    corrected_basis,
    corrected_mean,
    excess_counts,
    missing_counts,
    weight_counts,
)
from pytest_llmeval.evaluators.judge._judged_case import (
    GRADES_OF_FIELDS,
    CaseTexts,
    Defects,
    JudgedCase,
    prompt_texts,
    reason_lines,
)
from pytest_llmeval.evaluators.measures._confusion import rate_counts, share_basis, share_by_rates
from pytest_llmeval.judges import (
    JudgedEvaluator,
    Mode,
    ModeFile,
    Question,
    ReplyField,
    ReplyForm,
    TypedQuestion,
    Verdict,
)

if TYPE_CHECKING:
    from pytest_llmeval.judges import PromptFile

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
_CRITERIA, _STEPS = "criteria", "steps"
_RULE_VERSION = "2"
_RULE_FIELDS = ("answer",)
_TYPE_LABEL = "question_type"
_UNTYPED = "default_binary"
_LANGUAGE_LABEL = "language"
_OVER_CASES = "needs several cases"
_EXCESS = (("score", "excess"), ("pass", "pass_excess"))
BINARY = (0.0, 1.0)
_CONTINUOUS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_LEVELS = {"auto": _CONTINUOUS, "continuous": _CONTINUOUS, "explanation": (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)}


@dataclass(frozen=True)
class Judge(JudgedEvaluator):
    """Evaluator ``judge``: the score that a judge gives an answer.

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
    Angelopoulos et al. 2023). It may leave [0, 1], and exists for sets of cases only, with at least ten labels. Labels
    may name the ``scored_answer``, by its text or fingerprint; those of other answers are left out. With
    ``corrected: balanced``, labels are no random part of the cases, but some of either kind. The share of right answers
    among the other cases is then corrected by the rates at which the judge agrees with them (Lang and Reiczigel 2014).

    Attributes:
        mode: How to judge; ``auto``: by the label ``question_type``, ``abstention`` where the case's id ends in
            ``_abs``, and ``default_binary`` for cases without either.
        language: Of the instructions; ``auto``: by the label ``language`` of the case, or by the question's script.
        rubric: Criteria, levels and pass mark; with mode ``rubric`` only.
        corrected: Whether cases carry scores of people, and to report what these make of the judge's; ``balanced``:
            labels are of answers that were chosen to have enough of either kind.
        human: Files of labels that people gave in a review; with ``corrected``.
        prompt: File of the instructions, with placeholders such as ``{{ answer }}``, in place of a mode.
        prompts: Question type (``abstention`` for ids that end in ``_abs``) to a file of instructions in place of ours,
            with mode ``auto``; each asks for a reply of the form that its mode has.
        unanswerable: ``original``: the rule of HiMGA's judge for ``adversarial``, to the letter.
        criteria: What makes an answer good, in place of a mode: the judge writes steps once, and grades by them.
        steps: Of criteria: the steps, if the judge is not to write them.
        reply: Of a prompt or criteria: name of each field of the reply to what it is.
        score: ``given``: the score that the judge names. ``expected``: the mean over the probabilities of the tokens
            that could stand there; a reply without them is an error.

    Raises:
        ValueError: A rubric without mode ``rubric``, or that mode without a rubric; a prompt without a reply; more than
            one of prompt, criteria and mode; scores that have no expected value; or balanced labels of a judge that
            says more than yes or no.
    """

    name = "judge"
    reads = Reads("answer", objects=True)
    pools_undefined = True  # no single case has a corrected score, and together they do

    mode: ModeName = "auto"
    language: Literal["auto", "en", "zh"] = "auto"
    rubric: Rubric | None = None
    corrected: bool | Literal["balanced"] = False
    human: str | tuple[str, ...] | None = field(default=None, metadata={"path": True, "inside": True})
    prompt: str | None = field(default=None, metadata={"path": True, "inside": True})
    prompts: dict[str, str] | None = field(default=None, metadata={"path": True, "inside": True})
    unanswerable: Literal["auto", "original"] = "auto"
    criteria: str | None = None
    steps: tuple[str, ...] = ()
    reply: dict[str, ReplyField | Literal["text", "boolean"]] | None = None
    score: Literal["given", "expected"] = "given"

    def __post_init__(self) -> None:
        ways = {"prompt": self.prompt, "criteria": self.criteria, "mode": None if self.mode == "auto" else self.mode}
        chosen = [name for name, value in ways.items() if value is not None]
        if len(chosen) > 1:
            raise ValueError(f"found {' and '.join(chosen)}, expected one of prompt, criteria and mode")
        if self.prompts and chosen:
            raise ValueError(f"found {chosen[0]} and prompts, expected prompts with mode auto")
        if fault := TypedQuestion.prompts_fault(self.prompts or ()):
            raise ValueError(f"prompts: {fault}")
        if self.reply is not None and self.prompt is None and self.criteria is None:
            raise ValueError("found reply without prompt or criteria, expected it with one of them")
        if self.prompt is not None and self.reply is None:
            raise ValueError("found a prompt without reply, expected both: reply says what the judge replies")
        if self.criteria is not None and not self.criteria.strip():
            raise ValueError("criteria: found a blank text, expected what makes an answer good")
        if self.steps and (self.criteria is None or not all(step.strip() for step in self.steps)):
            raise ValueError("steps: expected texts that are not blank, with criteria")
        if self.score == "expected" and (unexpected := self._expected_fault()):
            raise ValueError(f"score: found 'expected', {unexpected}")
        _ = self.form
        if self.human and not self._reads_people:
            raise ValueError("human: found labels without corrected, expected it with corrected: true")
        if self._balanced and self.mode_levels != BINARY:
            levels = ", ".join(f"{level:g}" for level in self.mode_levels)
            raise ValueError(f"corrected: found balanced and the levels {levels}, expected a judge that says yes or no")
        if (self.mode == "rubric") != (self.rubric is not None):
            description = "no rubric with mode rubric" if self.rubric is None else f"a rubric with mode {self.mode}"
            raise ValueError(f"found {description}, expected both or neither")

    @property
    def _reads_people(self) -> bool:
        """Whether scores of people correct the judge's mean."""
        return bool(self.corrected)

    @cached_property
    def _labels(self) -> HumanLabels | None:
        return HumanLabels.read(self.human) if self.human else None

    def describe(self) -> Sequence[Metric]:
        """The metrics of the judge's mode.

        Raises:
            SuiteError: A file of labels, or of a prompt, cannot be read.
        """
        _ = self._labels, self._prompts
        signature = self.signature()
        metrics = [Metric("judge_score", signature=signature, averaged=True)]
        if self.rubric is not None:
            passes = f"pass_mark:{self.rubric.pass_mark}|{signature}"
            metrics.append(Metric("judge_pass", signature=passes, averaged=True))
        if self.mode == "explanation":
            metrics.append(Metric("defect[label]", higher_is_better=False, signature=signature))
        if self.form is not None and self.form.others:
            metrics.append(Metric("judge_field[name]", signature=signature))
        tuned = f"{'lang-reiczigel' if self._balanced else 'power-tuned'}|{signature}"
        metrics += [Metric(name, signature=tuned) for name in self._corrected()]
        return self._step_metrics(metrics)

    def _step_metrics(self, metrics: list[Metric]) -> list[Metric]:
        """Metrics that depend on the steps, if the judge writes them."""
        return metrics if not self._asks_for_steps else [structs.replace(metric, learned=_STEPS) for metric in metrics]

    @property
    def calibrated_by(self) -> str | None:
        """The mean that labels correct; empty without them."""
        return next(iter(self._corrected()), "")

    def _corrected(self) -> list[str]:
        names = ["judge_score", *(["judge_pass"] if self.rubric is not None else [])]
        return [f"corrected({name})" for name in names] if self.corrected else []

    def signature(self) -> str:
        """The settings by which the evaluator has cases judged: the modes with their versions."""
        routed = self._name == "auto"
        names = TypedQuestion.ALL_MODES if routed else [self._name]
        modes = ",".join(f"{name}@{_mode_version(self._mode(name))}" for name in names)
        text = "\n".join(filter(None, [self.criteria, *self.steps]))
        what = f"criteria:{sha256(text.encode()).hexdigest()[:8]}|" if text else ""
        if self._prompts:
            own = ",".join(f"{name}@{prompt.digest[:8]}" for name, prompt in sorted(self._prompts.items()))
            what += f"prompts:{own}|"
        if self.unanswerable == "original":
            what += "unanswerable:original|"
        return f"mode:{f'auto({modes})' if routed else modes}|{what}lang:{self.language}|v:{self.version}"

    @property
    def _asks_for_steps(self) -> bool:
        return self.criteria is not None and not self.steps

    @property
    def _name(self) -> str:
        if self.criteria is not None:
            return _CRITERIA
        return self.mode if self.prompt is None else _PROMPT

    @cached_property
    def form(self) -> ReplyForm | None:
        """The form of replies, of a prompt, criteria or a preset; ``None`` in other modes."""
        if self.reply is not None:
            return ReplyForm(self.reply)
        if self.criteria is not None:
            return GRADES
        return ModeFile.preset_form(self.mode)

    @property
    def _balanced(self) -> bool:
        return self.corrected == "balanced"

    @property
    def mode_levels(self) -> tuple[float, ...]:
        """The scores of the mode, lowest first; of scores with fractions, six at equal distances."""
        if self.form is not None:
            return self.form.graded[self.form.score].levels
        return self.rubric.scores if self.rubric is not None else _LEVELS.get(self.mode, BINARY)

    def _expected_fault(self) -> str | None:
        """The reason why the scores of the mode have no expected value; ``None`` if they have one."""
        if self.rubric is None and self.form is None:
            return "expected it with prompt, criteria, a rubric or a preset with whole numbers"
        return levels_fault(self._possible_scores)

    @property
    def _possible_scores(self) -> tuple[float, ...]:
        """The scores that can be given, if they are whole numbers."""
        if self.rubric is not None:
            return self.rubric.scores
        field = self.form.graded[self.form.score] if self.form is not None else None
        return field.levels if field is not None and field.integer else (math.inf,)

    @cached_property
    def _prompt(self) -> "PromptFile":
        from pytest_llmeval.judges import PromptFile

        assert self.prompt is not None
        return PromptFile.read(Path(self.prompt))

    @cached_property
    def _prompts(self) -> "Mapping[str, PromptFile]":
        if not self.prompts:
            return {}
        from pytest_llmeval.judges import PromptFile

        return {name: PromptFile.read(Path(file)) for name, file in self.prompts.items()}

    def _mode(self, name: str) -> Mode | None:
        """The mode of a name by which cases are judged; ``None`` where a rule decides."""
        if name == TypedQuestion.RULE:
            return None
        if self.rubric is not None:
            mode = self.rubric.mode
        elif self.form is not None and name in (_PROMPT, _CRITERIA):
            mode = self._prompt.mode(self.form) if name == _PROMPT else criteria_mode(self.form)
        else:
            mode = ModeFile.mode_named(name)
        if self.score == "given":
            return mode
        return mode.expecting(self.form.score if self.form is not None else "score", self._possible_scores)

    def _language(self, subject: str, label: str | None) -> str:
        return Question.instruction_language(subject, label) if self.language == "auto" else self.language

    def judged(self, case: Case) -> JudgedCase:
        """The texts by which a case is judged; scores of people are not shown to the judge.

        Raises:
            EvaluatorError: Mode ``auto`` does not know the question type of the case, or the ground truth is of the
                wrong form.
        """
        labelled = case.expected if self.corrected and PeopleScores.are_in(case.expected) else None
        if labelled is not None:
            case = PeopleScores.removed_from(case)
        name, typed = self._name, TypedQuestion(case.labels.get(_TYPE_LABEL), case.id)
        try:
            if name == "auto":
                name = typed.mode(_UNTYPED)
        except ValueError as error:
            raise EvaluatorError(f"labels.{_TYPE_LABEL}: {error}; or set the mode of the evaluator") from None
        mode = self._mode(name)
        own = self._prompts.get(typed.prompted_type)
        if own is not None and mode is not None:
            mode = own.in_mode(mode)
            texts = prompt_texts(case, own.placeholders, own.name)
            language = self._language(own.text, None)
        elif name == _PROMPT:
            texts = prompt_texts(case, self._prompt.placeholders, self._prompt.name)
            language = self._language(self._prompt.text, None)
        elif self.criteria is not None and mode is not None:
            fields = tuple(field for field in mode.fields if field not in (_CRITERIA, _STEPS))
            texts = CaseTexts.of_case(case, fields, optional_fields(name))
            language = self._language(self.criteria, None)
        else:
            texts = (
                CaseTexts.of_case(case, mode.fields, optional_fields(name))
                if mode
                else CaseTexts.of_case(case, _RULE_FIELDS)
            )
            language = self._language(texts.subject, case.labels.get(_LANGUAGE_LABEL))
        if texts.fault:
            raise EvaluatorError(texts.fault)
        question = None
        if mode is not None and texts.absent is None:
            question = Question(mode, texts.by_field, language)
        judged = JudgedCase(name, mode, texts, question, self.unanswerable == "original")
        if labelled is not None and (fault := PeopleScores.fault(labelled, judged.scale)):
            raise EvaluatorError(fault)
        return judged

    def check(self, case: Case) -> Iterable[str]:
        """Yield what keeps a case from being judged: its question type, its question, its expected answer, scores."""
        try:
            self.judged(case)
        except EvaluatorError as error:
            yield str(error)

    def questions(self, case: Case) -> Sequence[Question]:
        """The one question about a case; none if a rule decides, or if there is nothing to judge.

        With criteria, it is the one for the steps, which all cases share, unless the steps are given.
        """
        question = self.judged(case).question
        if question is None:
            return []
        if self._asks_for_steps and self.criteria is not None and self.form is not None:
            return [steps_question(self.criteria, self.form, question.language)]
        return [question if self.criteria is None else self._by_steps(question, self.steps)]

    def _by_steps(self, question: Question, steps: Sequence[str]) -> Question:
        """The question for the grade with criteria and steps."""
        texts = {_CRITERIA: str(self.criteria), _STEPS: numbered_steps(steps)}
        return structs.replace(question, texts=texts | dict(question.texts))

    def follow_up(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Sequence[Question]:
        """The question for the grade once there are steps."""
        steps, question = verdicts[0] if verdicts else None, self.judged(case).question
        if not self._asks_for_steps or question is None or len(verdicts) != 1 or not isinstance(steps, Verdict):
            return ()
        return [self._by_steps(question, steps.details[_STEPS])]

    def most_follow_ups(self, case: Case) -> int:
        """1 with criteria whose steps the judge writes, if there is something to judge; else 0."""
        return int(self._asks_for_steps and self.judged(case).question is not None)

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """The counts of a case by the judge's verdict: the score, and what the mode has besides.

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
            counts |= Defects(verdict.details).counts
        if self.form is not None:
            grades = verdict.details.get(GRADES_OF_FIELDS, {})
            counts |= {f"field.{name}": other.share(grades[name]) for name, other in self.form.others.items()}
        details = judged.details_of(verdict)
        details |= self._steps(verdicts)
        why = _OVER_CASES
        people = self._people_on(case, judged) if self.corrected else PeopleScores()
        if people.scores:
            counts |= self._excess(judged, verdict.score, people)
            details["human"] = list(people.scores)
        elif self._balanced and not people.stale:
            counts |= {"unlabelled": 1, "unlabelled_score": counts["score"]}
        elif people.stale:
            judged_scores = {excess: counts[total] for total, excess in _EXCESS if total in counts}
            counts |= missing_counts(judged_scores, people.stale)
            why = OTHER_ANSWER
        undefined = dict.fromkeys(self._corrected(), why)
        if judged.name == "explanation":
            undefined |= Defects(verdict.details).undefined
        return Observation(counts, details, undefined, judged.texts.malformed)

    def _steps(self, verdicts: Sequence[Verdict | JudgeError]) -> Mapping[str, Any]:
        """The steps by which a case was judged, as details."""
        return verdicts[0].details if self._asks_for_steps and isinstance(verdicts[0], Verdict) else {}

    def _people_on(self, case: Case, judged: JudgedCase) -> PeopleScores:
        """The scores that people gave the answer, in its ground truth and in files of labels."""
        own = PeopleScores.from_truth(case.expected, case.prediction)
        if self._labels is None:
            return own
        prints = ShownPrints.of_case(judged.texts.by_field, case.input, case.prediction)
        return own.joined(self._labels.scores_of(case.id, prints, judged.scale))

    def _excess(self, judged: JudgedCase, score: float, people: PeopleScores) -> dict[str, float]:
        """The counts of what people add to the judge's score."""
        counts: dict[str, float] = {"labelled": 1, **weight_counts(people.weight), "bound": float(people.bound)}
        mean = math.fsum(map(judged.share, people.scores)) / len(people.scores)
        if self._balanced:
            return rate_counts(judged.share(score), mean)
        counts |= excess_counts("excess", judged.share(score), mean, people.weight)
        if self.rubric is not None:
            mark = self.rubric.pass_mark
            passed = sum(score_of_person >= mark for score_of_person in people.scores) / len(people.scores)
            counts |= excess_counts("pass_excess", float(score >= mark), passed, people.weight)
        return counts

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say what the judge gave, its reasons, and the defects that it found; nothing for the highest score."""
        counts, details = observation.counts, observation.details
        if not counts.get("n") or (counts["score"] >= 1 and not details.get("flags")):
            return []
        low, high = self.judged(case).scale
        raw = details.get("raw_score", low + (high - low) * counts["score"])
        return [f"score {raw:g} on a scale from {low:g} to {high:g}", *reason_lines(details)]

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """The means over the judged cases."""
        metrics = {"judge_score": sums["score"] / sums["n"]}
        if self.rubric is not None:
            metrics["judge_pass"] = sums["pass"] / sums["n"]
        if self.mode == "explanation":
            metrics |= Defects.rates(sums, sums["n"])
        if self.form is not None:
            metrics |= {f"judge_field[{name}]": sums[f"field.{name}"] / sums["n"] for name in self.form.others}
        for name, (total, excess) in zip(self._corrected(), _EXCESS, strict=False):
            metrics[name] = share_by_rates(sums) if self._balanced else corrected_mean(sums, total, excess)
        return metrics

    def basis(self, sums: Sums) -> Mapping[str, Basis]:
        """The number of labels on which corrected means rest."""
        basis = share_basis(sums) if self._balanced else corrected_basis(sums)
        return dict.fromkeys(self._corrected(), basis)


def _mode_version(mode: Mode | None) -> str:
    """The version of a judge mode in the signatures of metrics; that of the rule for cases without a model."""
    return _RULE_VERSION if mode is None else mode.version


def optional_fields(name: str) -> frozenset[str]:
    """The fields of a judge mode, ``rubric`` included, that a question of evaluator ``judge`` may lack."""
    return frozenset(ModeFile(name).content.get("optional", ()))


_HIGHEST: Final = 9


def levels_fault(levels: Sequence[float]) -> str | None:
    """The reason why the scores of evaluator ``judge`` have no expected value: each must be one token."""
    if all(level.is_integer() and 0 <= level <= _HIGHEST for level in levels):
        return None
    return f"expected a score of whole numbers from 0 to {_HIGHEST} (integer: true), each of which is one token"
