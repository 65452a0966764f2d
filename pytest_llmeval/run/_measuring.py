"""The measuring of cases that carry their predictions, alone and in blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from pytest_llmeval.core import (
    MISSING,
    Case,
    Evaluator,
    EvaluatorError,
    LlmevalError,
    Observation,
    PredictionError,
    Reading,
    Totals,
    abstained_of,
    format_error,
)
from pytest_llmeval.suites import LoadedSuite

if TYPE_CHECKING:
    from pytest_llmeval.judges import JudgedEvaluator, Verdict


def measure_each(
    evaluator: Evaluator,
    cases: Sequence[Case],
    reading: Reading,
) -> list[Observation | Exception]:
    """Measure cases in the evaluator's batches; a case that cannot be measured gives its error and affects no other.

    Args:
        evaluator: Measures.
        cases: With their whole predictions.
        reading: What of them the evaluator sees.
    """
    views: list[Sequence[Case] | PredictionError] = []
    for case in cases:
        try:
            views.append(reading.views(case))
        except PredictionError as error:
            views.append(error)
    seen = [view for each in views if not isinstance(each, PredictionError) for view in each]
    measured = iter(_measure_views(evaluator, seen))
    return [each if isinstance(each, PredictionError) else _of_turns([next(measured) for _ in each]) for each in views]


def _measure_views(evaluator: Evaluator, cases: Sequence[Case]) -> list[Observation | Exception]:
    out: list[Observation | Exception] = []
    size = max(1, evaluator.batch)
    for start in range(0, len(cases), size):
        batch = cases[start : start + size]
        if len(batch) == 1:
            out.append(_measure_alone(evaluator, batch[0]))
            continue
        try:
            measured = [_usable(each) for each in evaluator.measure_many(batch)]
        except Exception:  # noqa: BLE001 (one bad case must not cost the others theirs)
            measured = []
        out.extend(measured if len(measured) == len(batch) else [_measure_alone(evaluator, case) for case in batch])
    return out


def _measure_alone(evaluator: Evaluator, case: Case) -> Observation | Exception:
    try:
        return _usable(evaluator.measure(case))
    except SystemExit as error:
        return EvaluatorError(f"evaluator {evaluator.name!r} called sys.exit({error.code!r})")
    except Exception as error:  # noqa: BLE001 (an error of an evaluator concerns this case only)
        return error


def measure_answered(
    evaluator: "JudgedEvaluator",
    case: Case,
    reading: Reading,
    verdicts: "Sequence[Sequence[Verdict | LlmevalError]]",
) -> Observation | Exception:
    """Measure a case.

    Args:
        evaluator: Measures.
        case: With its whole prediction.
        reading: What of it the evaluator sees.
        verdicts: `Asking.verdicts`; empty where there was nobody to ask.
    """
    from pytest_llmeval.evaluators import with_audit

    try:
        views = reading.views(case)
    except PredictionError as error:
        return error
    replies = verdicts or [()] * len(views)

    def measured_by(replies_of_case: "Sequence[Sequence[Verdict | LlmevalError]]") -> Observation | Exception:
        return _of_turns(
            [_measure_judged(evaluator, view, each) for view, each in zip(views, replies_of_case, strict=True)]
        )

    observation = measured_by(replies)
    return observation if isinstance(observation, Exception) else with_audit(observation, replies, measured_by)


def _measure_judged(
    evaluator: "JudgedEvaluator", case: Case, verdicts: "Sequence[Verdict | LlmevalError]"
) -> Observation | Exception:
    """Measure a case with what a judge said of it.

    What a run does not ask judges is undefined rather than an error.
    """
    from pytest_llmeval.judges import UnaskedError, as_judge_errors

    seen = as_judge_errors(verdicts)
    unasked = next((each for each in seen if isinstance(each, UnaskedError)), None)
    try:
        measured = _usable(evaluator.measure_judged(case, seen))
    except Exception as error:  # noqa: BLE001 (an error of an evaluator concerns this case only)
        measured = error
    if unasked is None:
        return measured
    if isinstance(measured, Observation):
        lost = dict.fromkeys(measured.errored, str(unasked))
        return structs.replace(measured, undefined={**measured.undefined, **lost}, errored={})
    return evaluator.absent(str(unasked))


def _usable(measured: Any) -> Observation | Exception:
    """Return an observation that can be added up, or why it is none: evaluators are users' code."""
    if not isinstance(measured, Observation):
        return EvaluatorError(f"measure returned {type(measured).__name__}, expected an Observation")
    fault = measured.fault()
    return measured if fault is None else EvaluatorError(fault)


def _of_turns(measured: Sequence[Observation | Exception]) -> Observation | Exception:
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
        dict(Totals.add_up(observations)),
        details={"turns": [dict(each.details) for each in observations]},
        undefined={name: observations[0].undefined[name] for name in nowhere},
        malformed=wrong[0] if wrong else None,
        errored={name: why for each in observations for name, why in each.errored.items()},
        abstained=abstained_of(nowhere, observations),
    )


@dataclass
class MeasuredBlocks:
    """What a process has measured ahead of the cases that want it."""

    _measured: dict[tuple[tuple[Path, str], str, str], Observation | Exception] = field(default_factory=dict)
    _cut: dict[tuple[tuple[Path, str], str], Mapping[str, Sequence[Case]]] = field(default_factory=dict)

    def measure(self, suite: LoadedSuite, label: str, evaluator: Evaluator, case: Case) -> Observation | Exception:
        """Measure a case together with its neighbours in the file.

        Blocks are cut by position in the file, not by what this process happens to run, so that every process measures
        a case in the same company and gets the same number.

        Args:
            suite: The suite.
            label: Of the evaluator.
            evaluator: Measures.
            case: One of the suite that carries its prediction.
        """
        if evaluator.batch <= 1:
            return measure_each(evaluator, [case], suite.readings[label])[0]
        place = (suite.place, label, case.id)
        if place not in self._measured:
            block = self._blocks(suite, label, evaluator.batch)[case.id]
            for each, measured in zip(block, measure_each(evaluator, block, suite.readings[label]), strict=True):
                self._measured[suite.place, label, each.id] = measured
        return self._measured.pop(place)

    def _blocks(self, suite: LoadedSuite, label: str, size: int) -> Mapping[str, Sequence[Case]]:
        if (suite.place, label) not in self._cut:
            self._cut[suite.place, label] = cut_in_blocks(
                [each for each in suite.cases if each.prediction is not MISSING], size
            )
        return self._cut[suite.place, label]


def cut_in_blocks(cases: Sequence[Case], size: int) -> Mapping[str, Sequence[Case]]:
    """Cut cases into blocks; return the id of each case with its block."""
    blocks = [cases[start : start + size] for start in range(0, len(cases), size)]
    return {each.id: block for block in blocks for each in block}
