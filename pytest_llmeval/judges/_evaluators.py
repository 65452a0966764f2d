"""The contract of evaluators that ask judges."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_llmeval.core import Case, Evaluator, EvaluatorError, JudgeError, Observation
from pytest_llmeval.judges._protocol import Question, Verdict

if TYPE_CHECKING:
    from pytest_llmeval.judges._spec import JudgeSpec
    from pytest_llmeval.judges.clients._base import AsyncJudge, Patience


@dataclass(frozen=True)
class JudgedEvaluator(Evaluator):
    """An evaluator some of whose counts come from a judge.

    It defines the questions and the meaning of the verdicts. Calls, caching and cost are handled elsewhere,
    so it stays as pure as any other.
    """

    asks = True

    decides: ClassVar[bool] = False
    """True if its verdicts are decisions, which have no mean."""

    @property
    def own_model(self) -> "JudgeSpec | None":
        """The model, such as one of embeddings, that is asked in place of the suite's judge; ``None`` for the judge."""
        return None

    def own_client(self, spec: "JudgeSpec", patience: "Patience") -> "AsyncJudge":
        """The client of the evaluator's `own_model`.

        Args:
            spec: That model.
            patience: The attempts of its calls.

        Raises:
            EvaluatorError: It asks no model of its own.
        """
        del spec, patience
        raise EvaluatorError(f"{type(self).__qualname__} asks no model of its own")

    @property
    def asks_judge(self) -> bool:
        """Whether the evaluator asks the suite's judge."""
        return self.asks and self.own_model is None

    @abstractmethod
    def questions(self, case: Case) -> Sequence[Question]:
        """The questions to judges about an answered case; empty if a rule decides."""

    def follow_up(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Sequence[Question]:
        """The questions that depend on what judges said before; empty ends the asking. Default: none.

        Args:
            case: As in `questions`.
            verdicts: One per question asked so far, in order; an error where the judge gave none.
        """
        del case, verdicts
        return ()

    def most_follow_ups(self, case: Case) -> int:
        """The largest number of questions that `follow_up` may ask about a case, in all rounds together. Default: none.

        Read where a run is planned and the first replies are not known.
        """
        del case
        return 0

    @property
    def follow_up_modes(self) -> Sequence[str]:
        """The names of the modes of questions of `follow_up`; default: none, what they will take is unknown.

        Read where a run is planned, to estimate tokens by stored calls of these modes.
        """
        return ()

    @property
    def calibrated_by(self) -> str | None:
        """The metric that has a value once people have labelled enough answers, by which the judge is calibrated.

        Empty for an evaluator that can read labels and reads none; default: ``None``, it cannot read any.
        """
        return None

    def panel_fault(self, reduce: str | None) -> str | None:
        """The reason why verdicts of several judges cannot become one in a certain way; ``None`` if they can.

        Args:
            reduce: ``mean``, ``median``, ``majority`` or ``unanimous``; ``None``: the majority of words such as yes and
                no, the mean of scores.
        """
        if not self.decides or reduce not in ("mean", "median"):
            return None
        return f"found {reduce}, expected majority or unanimous: its verdicts are decisions"

    @abstractmethod
    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Count one case by the verdicts of judges.

        Args:
            case: The case.
            verdicts: One per question of all rounds, in order; an error where the judge gave none. An evaluator that
                has other metrics counts those and names the ones that it could not compute in `Observation.errored`.

        Raises:
            JudgeError: Nothing could be counted.
        """

    def measure(self, case: Case) -> Observation:
        """Count one case about which no judge need be asked.

        Raises:
            EvaluatorError: A judge is needed.
        """
        if self.questions(case):
            raise EvaluatorError(
                f"evaluator {self.name!r} needs a judge: run it in a suite, or give score() a judge client"
            )
        return self.measure_judged(case, ())
