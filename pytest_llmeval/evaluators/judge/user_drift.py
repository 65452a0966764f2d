"""Evaluator ``user_drift``: whether the simulated users of conversations kept to their roles."""

__all__ = ("UserDrift",)

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.core.evaluator import Metric, Reads
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.wording import as_line
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.judge.contract import Question, Verdict
from pytest_llmeval.judge.judged_evaluator import JudgedEvaluator
from pytest_llmeval.judge.questions.modes import USER_ROLE, get_mode, instruction_language

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_METRIC = "user_drift"


@dataclass(frozen=True)
class UserDrift(JudgedEvaluator):
    """The share of conversations in which the simulated user did not keep to its role, as a judge sees it.

    A user that wants something else than its goal, invents what it does not know, or does the agent's work makes every
    other score of the conversation one of another task. A conversation counts 1 if that changed it, 0.5 if a message
    was out of role and changed nothing, else 0. One without a simulated user is undefined.

    Attributes:
        language: Of the question to the judge; ``auto``: by the script of the goal.
    """

    name = _METRIC
    reads = Reads(expected=True)

    language: Literal["auto", "en", "zh"] = "auto"

    def describe(self) -> Sequence[Metric]:
        """Return the share."""
        signature = f"mode:{USER_ROLE}@{get_mode(USER_ROLE).version}|lang:{self.language}|v:{self.version}"
        return [Metric(_METRIC, higher_is_better=False, signature=signature)]

    def questions(self, case: Case) -> Sequence[Question]:
        """Return the question about a conversation with a simulated user; none about another prediction."""
        found = _conversation(case)
        if found is None:
            return []
        wants, messages = found
        lines = (f"{number}. {json.dumps(each, ensure_ascii=False)}" for number, each in enumerate(messages, 1))
        goal = str(wants.get("goal", ""))
        language = instruction_language(goal) if self.language == "auto" else self.language
        texts = {"goal": json.dumps(wants, ensure_ascii=False), "trajectory": "\n".join(lines)}
        return [Question(get_mode(USER_ROLE), texts, language)]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Count one conversation.

        Raises:
            JudgeError: The judge gave no verdict.
        """
        if _conversation(case) is None:
            found = describe_found(case.prediction)
            return Observation({}, undefined={_METRIC: f"found {found}, which no simulated user has led"})
        (verdict,) = verdicts
        if isinstance(verdict, JudgeError):
            raise verdict
        details = {"reason": verdict.reasoning} if verdict.score < 1 else {}
        return Observation({"drift": 1 - verdict.score, "n": 1}, details)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say where the user left its role."""
        del case
        if "reason" not in observation.details:
            return []
        return [f"the simulated user did not keep to its role: {as_line(observation.details['reason'])}"]

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return the share."""
        return {_METRIC: sums["drift"] / sums["n"]}


def _conversation(case: Case) -> tuple[Mapping[str, Any], Sequence[Any]] | None:
    """Return what the simulated user wanted, and the messages."""
    found = case.prediction if isinstance(case.prediction, Mapping) else {}
    wants, messages = found.get("user"), found.get("messages")
    return (wants, messages) if isinstance(wants, Mapping) and isinstance(messages, list) else None
