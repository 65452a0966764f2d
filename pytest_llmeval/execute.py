"""One case, from prediction to verdict. Knows nothing of pytest: items, bulk suites and Python tests all end here."""

__all__ = ("Execution", "execute", "json_like", "unanswered")

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_llmeval.case import MISSING, Case
from pytest_llmeval.errors import PredictionError, said
from pytest_llmeval.evaluator import Evaluator
from pytest_llmeval.observation import Observation
from pytest_llmeval.results import CaseRecord
from pytest_llmeval.scoring import measure_each
from pytest_llmeval.suite import Suite
from pytest_llmeval.table import metric_prefix
from pytest_llmeval.thresholds import Unmet, unmet

_NOT_USERS = ("asyncio", "pytest_llmeval")


@dataclass
class Execution:
    """What running a case gave.

    Attributes:
        case: The case, with its prediction where there is one.
        record: What summaries read.
        unmet: Limits that it did not meet.
        error: What the target raised.
    """

    case: Case
    record: CaseRecord
    unmet: list[Unmet] = field(default_factory=list)
    error: BaseException | None = None

    def scores(self, suite: Suite) -> dict[str, float | None]:
        """Return the case's metrics by their names in the suite."""
        return _scores(suite, self.record.observations)


def execute(
    suite: Suite,
    case: Case,
    predict: Callable[[Case], Any],
    measure: "Callable[[str, Evaluator, Case], Observation | Exception] | None" = None,
) -> Execution:
    """Run one case.

    Args:
        suite: Its suite.
        case: The case.
        predict: Gives the prediction of a case that carries none.
        measure: Measures with one evaluator; default: the case alone.

    Returns:
        The execution. Nothing is raised for what the target or an evaluator did: it is in the record.
    """
    try:
        if case.prediction is MISSING:
            case = case.answered(json_like(predict(case)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (whatever the target did concerns this case only)
        return unanswered(case, error)
    observations: dict[str, Observation] = {}
    errors: dict[str, str] = {}
    for label, evaluator in suite.evaluators.items():
        measured = measure(label, evaluator, case) if measure else measure_each(evaluator, [case])[0]
        if isinstance(measured, Observation):
            observations[label] = measured
        else:
            errors[label] = said(measured)
    limits = suite.limits(case)
    missed = unmet(limits, _scores(suite, observations)) if limits else []
    record = CaseRecord(case.id, case.labels, observations=observations, errors=errors)
    reasons = [f"{label}: {why}" for label, why in errors.items()]
    reasons += [f"{label}: {each.malformed}" for label, each in observations.items() if each.malformed is not None]
    reasons += map(str, missed)
    if reasons:
        record.outcome = "errored" if errors else "failed"
        record.reason = "; ".join(reasons)
    return Execution(case, record, missed)


def unanswered(case: Case, error: BaseException) -> Execution:
    """Return the execution of a case for which there is no prediction, because of an error."""
    reason = str(error) if isinstance(error, PredictionError) else said(error)
    record = CaseRecord(case.id, case.labels, "errored", errors={"": reason}, reason=reason)
    return Execution(case, record, error=_from_users_frames(error))


def _from_users_frames(error: BaseException) -> BaseException:
    """Cut off what stands above the user's first frame in a traceback: this package and the event loop."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_USERS:
        frames = frames.tb_next
    return error.with_traceback(frames)


def _scores(suite: Suite, observations: Mapping[str, Observation]) -> dict[str, float | None]:
    scores: dict[str, float | None] = {}
    for label, observation in observations.items():
        evaluator = suite.evaluators[label]
        prefix = metric_prefix(label, evaluator)
        scores.update({prefix + name: value for name, value in evaluator.scores(observation).items()})
    return scores


def json_like(prediction: Any) -> Any:
    """Return the prediction as JSON data, so that a recorded one and a fresh one are scored alike.

    Raises:
        PredictionError: It holds something that JSON cannot carry.
    """
    if prediction is None or type(prediction) is str:
        return prediction
    try:
        return json.loads(json.dumps(prediction, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise PredictionError(
            f"the target returned {type(prediction).__name__}, expected text or JSON data ({error})"
        ) from None
