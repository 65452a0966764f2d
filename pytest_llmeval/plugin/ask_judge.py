"""The object behind the fixture ``judge``, with the stores and judges that suites use."""

__all__ = ("AskJudge",)

from dataclasses import dataclass, replace
from typing import Any

import pytest

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import BudgetError, LlmevalError
from pytest_llmeval.judge.contract import Verdict
from pytest_llmeval.judge.judges import JudgeAccess
from pytest_llmeval.judge.panel import Bound
from pytest_llmeval.judge.service import Judgement, JudgeOffError
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.plugin.collect import FixtureJudge
from pytest_llmeval.plugin.payload import keep_judgements
from pytest_llmeval.plugin.suite_loader import LOADER, RUNNER
from pytest_llmeval.run.rounds import Rounds
from pytest_llmeval.suite.registry import get_evaluator


@dataclass(frozen=True)
class AskJudge:
    """Asks the judge about one answer at a time."""

    request: pytest.FixtureRequest

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
        access = self._access()
        rounds = Rounds(evaluator, [case])
        while put := rounds.next():
            asked = [access.suite_judge.bind(each, case.id, asker=self.request.node.nodeid) for each in put]
            rounds.add([self._ask(each, case.id, access) for each in asked])
        judged = evaluator.judged(case)
        verdict = judged.verdict(rounds.verdicts[0])
        if verdict is None:
            raise LlmevalError(f"there is nothing to judge: {judged.texts.absent}")
        return verdict  # type: ignore[no-any-return]  # evaluators are made from names, which have no types

    def _access(self) -> JudgeAccess:
        stash, path = self.request.config.stash, self.request.path
        judges = stash[RUNNER].judges
        suite_judge = judges.judge_of(path, JudgeSpec(), stash[LOADER].display_path(path))
        return JudgeAccess(suite_judge, judges, path, JudgeSpec(), FixtureJudge(self.request))

    def _ask(self, asked: Bound, case: str, access: JudgeAccess) -> Verdict | LlmevalError:
        runner = self.request.config.stash[RUNNER]
        told: Judgement | None = runner.judges.service.known(asked)
        if told is None:
            access.open()
            told = runner.background.run(runner.judges.service.judge(asked))
        if told.entry is not None:
            keep_judgements(self.request.node, self.request.path, [replace(told.entry, case=case)])
        if isinstance(told.verdict, BudgetError):
            self.request.session.shouldstop = str(told.verdict)
        if isinstance(told.verdict, BudgetError | JudgeOffError):
            pytest.skip(str(told.verdict))
        return told.verdict
