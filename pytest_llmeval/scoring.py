"""Measuring cases, and scoring a set of them in Python."""

__all__ = ("measure_each", "score")

from collections.abc import Iterable, Sequence
from typing import Any

from pytest_llmeval.case import Case
from pytest_llmeval.errors import EvaluatorError, MissingDataError, MissingExtraError, said
from pytest_llmeval.evaluator import Evaluator
from pytest_llmeval.observation import Observation
from pytest_llmeval.results import CaseRecord, Outcome, Result
from pytest_llmeval.summary import summarize


def score(
    evaluator: Evaluator,
    cases: Iterable[Case],
    group_by: Sequence[str] = (),
    confidence: float | None = 0.95,
) -> Result:
    """Score cases that carry their predictions.

    Args:
        evaluator: From `get_evaluator`, or one of your own.
        cases: The cases; ids must be unique.
        group_by: Names of labels to group by.
        confidence: Of the intervals; ``None`` leaves them out and is faster.

    Returns:
        Metrics of the set, its groups and every case. A case that the evaluator could not measure counts as errored.

    Raises:
        MissingExtraError: An optional dependency is not installed.
        MissingDataError: Language data is not installed.
    """
    listed = list(cases)
    records = []
    for case, measured in zip(listed, measure_each(evaluator, listed), strict=True):
        if isinstance(measured, MissingDataError | MissingExtraError):
            raise measured
        if isinstance(measured, Observation):
            outcome: Outcome = "passed" if measured.malformed is None else "failed"
            observed = {evaluator.name: measured}
            records.append(CaseRecord(case.id, case.labels, outcome, observed, reason=measured.malformed))
        else:
            reason = said(measured)
            records.append(CaseRecord(case.id, case.labels, "errored", errors={evaluator.name: reason}, reason=reason))
    return summarize({evaluator.name: evaluator}, records, group_by=group_by, confidence=confidence)


def measure_each(evaluator: Evaluator, cases: Sequence[Case]) -> list[Observation | Exception]:
    """Measure cases in the evaluator's batches; a case that cannot be measured gives its error and costs no other."""
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
    except Exception as error:  # noqa: BLE001 (whatever an evaluator raises concerns this case only)
        return error


def _usable(measured: Any) -> Observation | Exception:
    """Return an observation that can be added up, or why it is none: evaluators are users' code."""
    if not isinstance(measured, Observation):
        return EvaluatorError(f"measure returned {type(measured).__name__}, expected an Observation")
    fault = measured.fault()
    return measured if fault is None else EvaluatorError(fault)
