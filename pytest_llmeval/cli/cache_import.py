"""Import of scores that another program computed, ``{question_id: score}``, as judgements."""

__all__ = ("Imported", "SuiteQuestion", "SuiteQuestions", "import_scores", "suite_questions")

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.cli.suite_file import open_suite
from pytest_llmeval.core.case import MISSING
from pytest_llmeval.core.errors import EvaluatorError, JudgeError, LlmevalError, PredictionError
from pytest_llmeval.judge.bound_question import BoundQuestion, SuiteJudge
from pytest_llmeval.judge.contract import JudgedEvaluator, Mode
from pytest_llmeval.judge.judges import OWN_JUDGE
from pytest_llmeval.judge.options import JudgeOptions
from pytest_llmeval.judge.panel import jurors_of
from pytest_llmeval.judge.recordings import Judgements, judgements_of
from pytest_llmeval.judge.score_file import scored_ids
from pytest_llmeval.judge.stored_judgement import StoredJudgement
from pytest_llmeval.run.rounds import Rounds

if TYPE_CHECKING:
    from pytest_llmeval.core.case import Case
    from pytest_llmeval.judge.spec import JudgeSpec
    from pytest_llmeval.suite.suite import Suite


@dataclass(frozen=True)
class SuiteQuestion:
    """One question.

    Attributes:
        case: That it is about.
        evaluator: Label of the evaluator that asks.
        asked: The question, its key included.
    """

    case: "Case"
    evaluator: str
    asked: BoundQuestion


@dataclass(frozen=True)
class SuiteQuestions:
    """All questions of a suite.

    Attributes:
        suite: The suite.
        recordings: Its recorded judgements.
        models: Of its judge, or of the jurors of its panel.
        questions: In file order, with one entry per juror and repeat.
        unknown: Case id to the reason why its questions are known only in a run.
    """

    suite: "Suite"
    recordings: Judgements
    models: list[str] = field(default_factory=list)
    questions: list[SuiteQuestion] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)


def suite_questions(path: Path, model: str | None = None) -> SuiteQuestions:
    """Read a suite file and work out what it asks.

    Args:
        path: The suite file; its evaluators are shipped with this package or with an installed one.
        model: ``PROVIDER:NAME``; overrides the suite.

    Raises:
        SuiteError: The suite, or its recorded judgements, have faults.
        LlmevalError: The model is none.
    """
    suite = open_suite(path)
    try:
        chosen = JudgeOptions(model=model).chosen(suite.judge)
    except ValueError as error:
        raise LlmevalError(str(error)) from None
    recordings = Judgements.read(judgements_of(path))
    jurors = [_single(spec, recordings) for spec in jurors_of(chosen)]
    found = SuiteQuestions(suite, recordings, [each.model for each in jurors])
    for case in suite.cases:
        if case.prediction is MISSING:
            found.unknown[case.id] = "its prediction is made during a run"
            continue
        for label, evaluator in suite.evaluators.items():
            if not isinstance(evaluator, JudgedEvaluator):
                continue
            try:
                questions = Rounds.of(evaluator, case, suite.readings[label]).next()
            except (EvaluatorError, PredictionError) as error:
                found.unknown[case.id] = str(error)
                continue
            found.questions.extend(
                SuiteQuestion(case, label, suite_judge.bind(question, case.id, repeat))
                for question in questions
                for suite_judge in ([_single(evaluator.own_model, recordings)] if evaluator.own_model else jurors)
                for repeat in range(suite.repeats.times)
            )
    return found


def _single(spec: "JudgeSpec", recordings: Judgements) -> SuiteJudge:
    return SuiteJudge(spec.model or OWN_JUDGE, spec.request_parameters(), recordings)


@dataclass
class Imported:
    """What became of scores.

    Attributes:
        entries: Judgements of the questions that have a score.
        ruled: Ids of scores that are not needed, because a rule decides the case.
        faults: Scores that could not be used, and why.
        without: Ids of cases with a question and without a score.
    """

    entries: list[StoredJudgement] = field(default_factory=list)
    ruled: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)


def import_scores(asked: SuiteQuestions, scores: Mapping[str, float], source: str) -> Imported:
    """Turn scores into judgements of a suite's questions, as if its judge had given them for the present answers.

    A score belongs to the case whose id, or label ``question_id``, it is given for; files of `batch_judge` name the
    conversation as well. The reply is made up, so that the
    mode reads it as just this score.

    Args:
        asked: The questions of the suite.
        scores: Id to score, from 0 to 1, as a share of the mode's scale.
        source: Where they come from; becomes the reasoning of the reply, where the mode has one.
    """
    imported = Imported()
    questions: dict[str, list[SuiteQuestion]] = defaultdict(list)
    for each in asked.questions:
        if each.asked.repeat == 0:
            questions[each.case.id].append(each)
    given: dict[str, list[str]] = defaultdict(list)
    for case in asked.suite.cases:
        for name in {case.id, case.labels.get("question_id", case.id)}:
            given[name].append(case.id)
    used = set()
    for name, share in sorted(scores.items()):
        ids = next((given[each] for each in scored_ids(name) if each in given), [])
        if len(ids) != 1:
            imported.faults.append(_unmatched(name, ids))
            continue
        (case_id,) = ids
        if case_id in used:
            imported.faults.append(f"{name}: found a second score of case {case_id}, expected one")
            continue
        used.add(case_id)
        if case_id in asked.unknown:
            imported.faults.append(f"{name}: {asked.unknown[case_id]}")
        elif not questions[case_id]:
            imported.ruled.append(name)
        elif len(questions[case_id]) > 1:
            number = len(questions[case_id])
            imported.faults.append(f"{name}: found {number} questions about the case, expected exactly one")
        else:
            _add(imported, questions[case_id][0], share, f"imported from {source}")
    imported.without = sorted(case_id for case_id in questions if questions[case_id] and case_id not in used)
    return imported


def _unmatched(name: str, ids: list[str]) -> str:
    if ids:
        return f"{name}: found {len(ids)} cases of this question_id, expected one"
    return f"{name}: found no case of this id or label question_id"


def _add(imported: Imported, question: SuiteQuestion, share: float, reasoning: str) -> None:
    asked = question.asked
    mode = asked.question.mode
    low, high = mode.scale
    score = low + share * (high - low)
    reply = _reply(mode, score, reasoning)
    if reply is None:
        imported.faults.append(
            f"{question.case.id}: found the score {share:g}, which is not a complete verdict of mode {mode.name!r}"
        )
        return
    imported.entries.append(StoredJudgement(asked.key, question.case.id, asked.components(), reply, score))


def _reply(mode: Mode, score: float, reasoning: str) -> str | None:
    """Return a reply that a mode reads as a score; ``None`` where there is none."""
    whole = int(score) if score.is_integer() else score
    for reply in (json.dumps({"reasoning": reasoning, "score": whole}), "yes", "no"):
        try:
            if math.isclose(mode.read(reply).score, score, abs_tol=1e-9):
                return reply
        except JudgeError:
            continue
    return None
