"""What the fixture ``judge`` gives a Python test: verdicts from the same stores and judges that suites use."""

__all__ = ("AskJudge",)

from dataclasses import dataclass, replace
from typing import Any

import pytest

from pytest_llmeval.case import Case
from pytest_llmeval.collect import own_judge
from pytest_llmeval.errors import BudgetError, LlmevalError
from pytest_llmeval.handover import keep_judgements
from pytest_llmeval.judge.contract import Verdict
from pytest_llmeval.judge.service import Asked, Judgement, JudgeOffError
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.registry import get_evaluator
from pytest_llmeval.runtime import Suites


@dataclass(frozen=True)
class AskJudge:
    """Asks the judge about one answer at a time."""

    request: pytest.FixtureRequest
    suites: Suites

    def __call__(self, question: Any, answer: Any, reference: Any = None, **options: Any) -> Verdict:
        """Return a verdict, stored or new.

        Args:
            question: What was asked.
            answer: What was answered.
            reference: What is right.
            options: Of the evaluator ``judge``: ``mode`` (default ``continuous``), ``language``, ``rubric``.

        Returns:
            The verdict; its score is on the scale of the mode.

        Raises:
            EvaluatorError: An option is wrong.
            JudgeError: There is no verdict.
            pytest.skip.Exception: Judges are switched off, or the budget is spent.
        """
        __tracebackhide__ = True
        evaluator: Any = get_evaluator("judge", **{"mode": "continuous", **options})
        case = Case(self.request.node.name, question, reference, answer)
        verdicts = [
            self._ask(Asked(self._desk(), each, case.id, asker=self.request.node.nodeid))
            for each in evaluator.questions(case)
        ]
        judged = evaluator.judged(case)
        verdict = judged.verdict(verdicts)
        if verdict is None:
            raise LlmevalError(f"there is nothing to judge: {judged.shown.absent}")
        return verdict  # type: ignore[no-any-return]  # evaluators are made from names, which have no types

    def _desk(self) -> Any:
        path = self.request.path
        return self.suites.desks.desk(path, JudgeSpec(), self.suites.shown(path))

    def _ask(self, asked: Asked) -> Verdict | LlmevalError:
        desks = self.suites.desks
        told: Judgement | None = desks.service.known(asked)
        if told is None:
            desks.open(self.request.path, JudgeSpec(), own_judge(self.request))
            told = self.suites.background.run(desks.service.judge(asked))
        if told.entry is not None:
            keep_judgements(self.request.node, self.suites, self.request.path, [replace(told.entry, case=asked.case)])
        if isinstance(told.verdict, BudgetError):
            self.request.session.shouldstop = str(told.verdict)
        if isinstance(told.verdict, BudgetError | JudgeOffError):
            pytest.skip(str(told.verdict))
        return told.verdict
