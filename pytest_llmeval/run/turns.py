"""Observations of the turns of a conversation as one."""

__all__ = ("of_turns",)

from collections.abc import Sequence

from pytest_llmeval.core.errors import EvaluatorError, format_error
from pytest_llmeval.core.observation import Observation, Totals


def of_turns(measured: Sequence[Observation | Exception]) -> Observation | Exception:
    """Add the observations of turns up; a turn that could not be measured is the error of the case."""
    observations = []
    for number, each in enumerate(measured, 1):
        if isinstance(each, Exception):
            return each if len(measured) == 1 else EvaluatorError(f"turn {number}: {format_error(each)}")
        observations.append(each)
    if len(observations) == 1:
        return observations[0]
    wrong = [f"turn {number}: {each.malformed}" for number, each in enumerate(observations, 1) if each.malformed]
    nowhere = [name for name in observations[0].undefined if all(name in each.undefined for each in observations)]
    return Observation(
        dict(Totals.of(observations)),
        details={"turns": [dict(each.details) for each in observations]},
        undefined={name: observations[0].undefined[name] for name in nowhere},
        malformed=wrong[0] if wrong else None,
        errored={name: why for each in observations for name, why in each.errored.items()},
    )
