"""The object behind the fixture ``judge``, with the stores and judges that suites use."""

__all__ = ("AskJudge",)

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import structs

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import BudgetError, LlmevalError
from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.core.views import Reading
from pytest_llmeval.judge.asking import Asking, Judgement
from pytest_llmeval.judge.contract import Verdict
from pytest_llmeval.judge.judges import JudgeAccess
from pytest_llmeval.judge.service import JudgeOffError
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.plugin.collect import FixtureJudge
from pytest_llmeval.plugin.payload import keep_judgements
from pytest_llmeval.plugin.suite_loader import LOADER, RUNNER
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
        verdicts = self.about(evaluator, case, None)
        judged = evaluator.judged(case)
        verdict = judged.verdict(verdicts[0])
        if verdict is None:
            raise LlmevalError(f"there is nothing to judge: {judged.texts.absent}")
        return verdict  # type: ignore[no-any-return]  # evaluators are made from names, which have no types

    def about(
        self, evaluator: Evaluator, case: Case, reading: Reading | None
    ) -> "Sequence[Sequence[Verdict | LlmevalError]]":
        """Return the verdicts that an evaluator needs about a case, stored or new.

        Args:
            evaluator: Asks.
            case: The case.
            reading: What the evaluator reads of it; ``None`` where the prediction is the answer itself.

        Raises:
            Exception: Its questions cannot be put.
            pytest.skip.Exception: Judges are switched off, or the budget is spent.
        """
        __tracebackhide__ = True
        access = self._access()
        views = [case] if reading is None else reading.views(case)
        asking = Asking(evaluator, views, access.panel, case.id, asker=self.request.node.nodeid)
        judges = access.judges
        if not asking.is_known(judges.service):
            access.open()
            judges.background.run(asking.ask(judges.service))
        if asking.error is not None:
            raise asking.error
        for _, judgement in asking.judged:
            self._conclude(judgement, case.id)
        return asking.verdicts

    def _access(self) -> JudgeAccess:
        stash, path = self.request.config.stash, self.request.path
        judges = stash[RUNNER].judges
        panel = judges.judge_of(path, JudgeSpec(), stash[LOADER].display_path(path))
        return JudgeAccess(panel, judges, path, JudgeSpec(), FixtureJudge(self.request))

    def _conclude(self, judgement: Judgement, case: str) -> None:
        """Keep what can be recorded; skip the test where a verdict was not to be asked for."""
        verdict = judgement.verdict
        if judgement.entries:
            entries = [structs.replace(each, case=case) for each in judgement.entries]
            keep_judgements(self.request.node, self.request.path, entries)
        if isinstance(verdict, BudgetError):
            self.request.session.shouldstop = str(verdict)
        if isinstance(verdict, BudgetError | JudgeOffError):
            pytest.skip(str(verdict))
