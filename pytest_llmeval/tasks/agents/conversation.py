"""Evaluators ``conversation``: lengths of conversations and why they end; ``user_drift``: the simulated user."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.core.evaluator import Evaluator, Metric, Reads
from pytest_llmeval.core.observation import FloatArray, Observation, Sums
from pytest_llmeval.core.wording import as_line, counted
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.judge.contract import JudgedEvaluator, Question, Verdict
from pytest_llmeval.judge.questions.modes import USER_ROLE, get_mode, instruction_language

_STOPS: Final = ("script", "target", "max_turns")
_STOPS_OF_USERS: Final = ("user", "recording")


@dataclass(frozen=True)
class Conversation(Evaluator):
    """Turns and stop reasons of conversations that a run has led.

    ``turns`` is the mean number of calls of the target. ``stop[script]``, ``stop[target]`` and ``stop[max_turns]`` are
    the shares of conversations that ended because the script did, because the target said so, or at the limit; of
    simulated users, ``stop[user]`` and ``stop[recording]`` are those that the user ended, or the end of its recording.
    ``stop_reason[goal_reached]`` and so on are the shares that the user ended for this reason.

    Attributes:
        reasons: For which a simulated user may end a conversation; empty where there is none. A suite with a simulated
            user sets them.
    """

    name = "conversation"

    reasons: tuple[str, ...] = ()

    @property
    def _stops(self) -> tuple[str, ...]:
        return (*_STOPS, *_STOPS_OF_USERS) if self.reasons else _STOPS

    def describe(self) -> Sequence[Metric]:
        """Return the number of turns, and the reasons to stop."""
        own = [Metric("stop_reason[reason]")] if self.reasons else []
        return [Metric("turns", higher_is_better=False, high=None), Metric("stop[reason]"), *own]

    def measure(self, case: Case) -> Observation:
        """Count one conversation; a prediction that is none is malformed."""
        prediction = case.prediction if isinstance(case.prediction, Mapping) else {}
        turns, stop = prediction.get("turns"), prediction.get("stop")
        if not isinstance(turns, int) or stop not in self._stops:
            names = [metric.name for metric in self.describe()]
            malformed = f"found {describe_found(case.prediction)}, expected a conversation with turns and stop"
            return Observation({}, {}, dict.fromkeys(names, "no conversation"), malformed, abstained=tuple(names))
        details = {"turns": turns, "stop": stop}
        for name, kind in (("stop_reason", str), ("stop_comment", str), ("unrecorded_from", int)):
            if isinstance(value := prediction.get(name), kind):
                details[name] = value
        counts = {"turns": turns, "n": 1, **{f"stop.{each}": int(stop == each) for each in self._stops}}
        reason = prediction.get("stop_reason") if stop == "user" else None
        return Observation({**counts, **{f"reason.{each}": int(reason == each) for each in self.reasons}}, details)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say how long the conversation was, and why it ended."""
        del case
        if "turns" not in observation.details:
            return []
        details = observation.details
        why = ": ".join(as_line(details[name]) for name in ("stop_reason", "stop_comment") if name in details)
        lines = [f"{counted(details['turns'], 'turn')}, ended by {details['stop']}{f' ({why})' if why else ''}"]
        if "unrecorded_from" in details:
            lines.append(f"the conversation left its recording in turn {details['unrecorded_from']}")
        return lines

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return means over conversations."""
        shares = {f"stop[{each}]": sums[f"stop.{each}"] / sums["n"] for each in self._stops}
        shares |= {f"stop_reason[{each}]": sums[f"reason.{each}"] / sums["n"] for each in self.reasons}
        return {"turns": sums["turns"] / sums["n"], **shares}


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
        conversation = _conversation(case)
        if conversation is None:
            return []
        wants, messages = conversation
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
            description = describe_found(case.prediction)
            why = f"found {description}, which no simulated user has led"
            return Observation({}, undefined={_METRIC: why}, abstained=(_METRIC,))
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

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return the share."""
        return {_METRIC: sums["drift"] / sums["n"]}


def _conversation(case: Case) -> tuple[Mapping[str, Any], Sequence[Any]] | None:
    """Return what the simulated user wanted, and the messages."""
    prediction = case.prediction if isinstance(case.prediction, Mapping) else {}
    wants, messages = prediction.get("user"), prediction.get("messages")
    return (wants, messages) if isinstance(wants, Mapping) and isinstance(messages, list) else None
