"""What a suite asks judges, worked out without running it."""

__all__ = ("SuiteQuestion", "SuiteQuestions", "suite_questions")

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.case import MISSING
from pytest_llmeval.errors import EvaluatorError, LlmevalError
from pytest_llmeval.evaluator import JudgedEvaluator
from pytest_llmeval.judge.desks import OWN_JUDGE
from pytest_llmeval.judge.options import JudgeOptions
from pytest_llmeval.judge.recordings import Judgements, judgements_of
from pytest_llmeval.judge.service import Asked, Desk
from pytest_llmeval.loading import load_suite
from pytest_llmeval.registry import default_registry

if TYPE_CHECKING:
    from pytest_llmeval.case import Case
    from pytest_llmeval.suite import Suite


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
    asked: Asked


@dataclass(frozen=True)
class SuiteQuestions:
    """All questions of a suite.

    Attributes:
        suite: The suite.
        recordings: Its recorded judgements.
        questions: In file order, every repeat of its own.
        unknown: Case id to the reason why its questions are known only in a run.
    """

    suite: "Suite"
    recordings: Judgements
    questions: list[SuiteQuestion] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)


def suite_questions(path: Path, model: str | None = None) -> SuiteQuestions:
    """Read a suite file and work out what it asks.

    Args:
        path: The suite file; its evaluators are shipped with this package or with an installed one.
        model: ``PROVIDER:NAME``, instead of what the suite says.

    Raises:
        SuiteError: The suite, or its recorded judgements, have faults.
        LlmevalError: The model is none.
    """
    suite = load_suite(path, default_registry(), root=Path.cwd(), shown=str(path))
    try:
        chosen = JudgeOptions(model=model).spec(suite.judge)
    except ValueError as error:
        raise LlmevalError(str(error)) from None
    recordings = Judgements.read(judgements_of(path))
    desk = Desk(chosen.model or OWN_JUDGE, chosen.request_parameters(), recordings)
    found = SuiteQuestions(suite, recordings)
    for case in suite.cases:
        if case.prediction is MISSING:
            found.unknown[case.id] = "its prediction is made during a run"
            continue
        for label, evaluator in suite.evaluators.items():
            if not isinstance(evaluator, JudgedEvaluator):
                continue
            try:
                questions = evaluator.questions(case)
            except EvaluatorError as error:
                found.unknown[case.id] = str(error)
                continue
            found.questions.extend(
                SuiteQuestion(case, label, Asked(desk, question, case.id, repeat))
                for question in questions
                for repeat in range(suite.repeats.times)
            )
    return found
