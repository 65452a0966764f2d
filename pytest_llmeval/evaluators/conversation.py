"""Evaluator ``conversation``: how long conversations are, and why they end."""

__all__ = ("Conversation",)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.evaluator import Evaluator, Metric
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.wording import counted
from pytest_llmeval.evaluators.answers import describe_found

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_STOPS: Final = ("script", "target", "max_turns")


@dataclass(frozen=True)
class Conversation(Evaluator):
    """Turns and stop reasons of conversations that a run has led.

    ``turns`` is the mean number of calls of the target. ``stop[script]``, ``stop[target]`` and ``stop[max_turns]`` are
    the shares of conversations that ended because the script did, because the target said so, or at the limit.
    """

    name = "conversation"

    def describe(self) -> Sequence[Metric]:
        """Return the number of turns, and the reasons to stop."""
        return [Metric("turns", higher_is_better=False, high=None), Metric("stop[reason]")]

    def measure(self, case: Case) -> Observation:
        """Count one conversation; a prediction that is none is malformed."""
        prediction = case.prediction if isinstance(case.prediction, Mapping) else {}
        turns, stop = prediction.get("turns"), prediction.get("stop")
        if not isinstance(turns, int) or stop not in _STOPS:
            names = [metric.name for metric in self.describe()]
            found = f"found {describe_found(case.prediction)}, expected a conversation with turns and stop"
            return Observation({}, undefined=dict.fromkeys(names, "no conversation"), malformed=found)
        details = {"turns": turns, "stop": stop}
        if isinstance(reason := prediction.get("stop_reason"), str):
            details["stop_reason"] = reason
        return Observation({"turns": turns, "n": 1, **{f"stop.{each}": int(stop == each) for each in _STOPS}}, details)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say how long the conversation was, and why it ended."""
        del case
        if "turns" not in observation.details:
            return []
        details = observation.details
        reason = f" ({details['stop_reason']})" if "stop_reason" in details else ""
        return [f"{counted(details['turns'], 'turn')}, ended by {details['stop']}{reason}"]

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return means over conversations."""
        shares = {f"stop[{each}]": sums[f"stop.{each}"] / sums["n"] for each in _STOPS}
        return {"turns": sums["turns"] / sums["n"], **shares}
