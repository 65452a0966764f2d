"""The questions of one evaluator about one case, in rounds: what is asked next may depend on what was said before."""

__all__ = ("Rounds", "as_judge_errors")

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import EvaluatorError, JudgeError, LlmevalError
from pytest_llmeval.core.views import Reading
from pytest_llmeval.judge.judged_evaluator import JudgedEvaluator

if TYPE_CHECKING:
    from pytest_llmeval.judge.contract import Question, Verdict

_MOST_ROUNDS = 8


@dataclass
class Rounds:
    """What is asked about the views of a case, and what was said.

    Attributes:
        evaluator: Asks.
        views: What it sees of the case: one, or one for each turn that it reads.
        verdicts: View by view, what was said to its questions, in order.
    """

    evaluator: JudgedEvaluator
    views: Sequence[Case]
    verdicts: "list[list[Verdict | LlmevalError]]" = field(init=False)
    _asked: list[int] = field(init=False)
    """How many questions about each view are not answered yet."""
    _rounds: int = 0

    def __post_init__(self) -> None:
        self.verdicts = [[] for _ in self.views]
        self._asked = [1] * len(self.views)

    @classmethod
    def of(cls, evaluator: JudgedEvaluator, case: Case, reading: Reading) -> "Rounds":
        """Return the rounds about a case, of which none has been asked.

        Raises:
            PredictionError: The prediction lacks what the evaluator reads.
        """
        return cls(evaluator, reading.views(case))

    def next(self) -> "list[Question]":
        """Return the questions of the next round; empty where nothing more is to be asked.

        Raises:
            EvaluatorError: There is no end of rounds, which would be paid for.
        """
        put = [
            list(self._questions(view, told)) if asked else []
            for view, told, asked in zip(self.views, self.verdicts, self._asked, strict=True)
        ]
        if any(put) and self._rounds == _MOST_ROUNDS:
            raise EvaluatorError(f"evaluator {self.evaluator.name!r} asks in more than {_MOST_ROUNDS} rounds")
        self._rounds += 1
        self._asked = [len(each) for each in put]
        return list(chain(*put))

    def _questions(self, view: Case, told: "Sequence[Verdict | LlmevalError]") -> "Sequence[Question]":
        if not self._rounds:
            return self.evaluator.questions(view)
        return self.evaluator.follow_up(view, as_judge_errors(told))

    def add(self, verdicts: "Sequence[Verdict | LlmevalError]") -> None:
        """Add what was said to the questions that `next` returned, in order."""
        told = iter(verdicts)
        for each, asked in zip(self.verdicts, self._asked, strict=True):
            each.extend(next(told) for _ in range(asked))


def as_judge_errors(verdicts: "Sequence[Verdict | LlmevalError]") -> "list[Verdict | JudgeError]":
    """Return verdicts as evaluators see them: whatever there is in place of one is an error of the judge."""
    return [
        JudgeError(str(each)) if isinstance(each, LlmevalError) and not isinstance(each, JudgeError) else each
        for each in verdicts
    ]
