"""Evaluators some of whose counts come from a judge."""

__all__ = ("JudgedEvaluator", "as_judge_errors")

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import EvaluatorError, JudgeError, LlmevalError
from pytest_llmeval.core.evaluator import Evaluator

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import Observation
    from pytest_llmeval.judge.contract import Question, Verdict
    from pytest_llmeval.judge.spec import JudgeSpec


@dataclass(frozen=True)
class JudgedEvaluator(Evaluator):
    """An evaluator some of whose counts come from a judge.

    It defines the questions and the meaning of the verdicts. Calls, caching and cost are handled elsewhere,
    so it stays as pure as any other.
    """

    asks = True

    decides: ClassVar[bool] = False
    """Whether its verdicts are decisions, of which there is no mean."""

    @property
    def own_model(self) -> "JudgeSpec | None":
        """The model of embeddings that is asked in place of the suite's judge; ``None`` for the judge."""
        return None

    @abstractmethod
    def questions(self, case: Case) -> "Sequence[Question]":
        """Return the questions about an answered case; empty if a rule decides."""

    def follow_up(self, case: Case, verdicts: "Sequence[Verdict | JudgeError]") -> "Sequence[Question]":
        """Return the questions that depend on what was said before; empty ends the asking. Default: none.

        Args:
            case: As in `questions`.
            verdicts: One per question asked so far, in order; an error where the judge gave none.
        """
        return super().follow_up(case, verdicts)

    def panel_fault(self, reduce: str | None) -> str | None:
        """Say why the verdicts of several judges cannot become one in a certain way; ``None`` if they can.

        Args:
            reduce: ``mean``, ``median``, ``majority`` or ``unanimous``; ``None``: the majority of words such as yes and
                no, the mean of scores.
        """
        if not self.decides or reduce not in ("mean", "median"):
            return None
        return f"found {reduce}, expected majority or unanimous: its verdicts are decisions"

    @abstractmethod
    def measure_judged(self, case: Case, verdicts: "Sequence[Verdict | JudgeError]") -> "Observation":
        """Count one case.

        Args:
            case: The case.
            verdicts: One per question of all rounds, in order; an error where the judge gave none. An evaluator that
                has other metrics counts those and names the ones that it could not compute in `Observation.errored`.

        Raises:
            JudgeError: Nothing could be counted.
        """

    def measure(self, case: Case) -> "Observation":
        """Count one case about which no judge need be asked.

        Raises:
            EvaluatorError: A judge is needed.
        """
        if self.questions(case):
            raise EvaluatorError(
                f"evaluator {self.name!r} needs a judge: run it in a suite, or give score() a judge client"
            )
        return self.measure_judged(case, ())


def as_judge_errors(verdicts: "Sequence[Verdict | LlmevalError]") -> "list[Verdict | JudgeError]":
    """Return verdicts as evaluators see them: whatever there is in place of one is an error of the judge."""
    return [
        JudgeError(str(each)) if isinstance(each, LlmevalError) and not isinstance(each, JudgeError) else each
        for each in verdicts
    ]
