"""The measuring of cases that carry their predictions, and the records of what was measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from pytest_llmeval.core import (
    MISSING,
    AnyError,
    Case,
    CaseOutcome,
    CaseRecord,
    Evaluator,
    EvaluatorError,
    JudgeError,
    MissingDataError,
    MissingExtraError,
    Observation,
    PredictionError,
    Reading,
    Totals,
    as_line,
    grouped,
    printable,
)
from pytest_llmeval.services import Secrets
from pytest_llmeval.suites import LoadedSuite

if TYPE_CHECKING:
    from pytest_llmeval.judges import JudgedEvaluator, Verdict

_MOST_KINDS = 10_000
_PLAIN = frozenset({int, float, bool})
_MOST_LINES = 20


def measure_each(
    evaluator: Evaluator,
    cases: Sequence[Case],
    reading: Reading,
    *,
    remeasures: bool = False,
) -> list[Observation | Exception]:
    """Measure cases in the evaluator's batches; a case that cannot be measured gives its error and affects no other.

    Args:
        evaluator: Measures.
        cases: With their whole predictions.
        reading: What of them the evaluator sees.
        remeasures: Whether a case is measured again when its lazy details are read, and nothing else of it is kept: for
            many cases, most of whose details nobody reads.
    """
    views: list[Sequence[Case] | PredictionError] = []
    for case in cases:
        try:
            views.append(reading.views(case))
        except PredictionError as error:
            views.append(error)
    seen = [view for views_of_case in views if not isinstance(views_of_case, PredictionError) for view in views_of_case]
    measured = iter(_measure_views(evaluator, seen, remeasures))
    return [view if isinstance(view, PredictionError) else _of_turns([next(measured) for _ in view]) for view in views]


def _measure_views(evaluator: Evaluator, cases: Sequence[Case], remeasures: bool) -> list[Observation | Exception]:
    """Measure cases in batches of an evaluator; if a batch fails, measure each of its cases alone."""
    out: list[Observation | Exception] = []
    size = max(1, evaluator.batch)
    for start in range(0, len(cases), size):
        batch = cases[start : start + size]
        if len(batch) == 1:
            alone = _measure_alone(evaluator, batch[0])
            if remeasures and isinstance(alone, Observation) and (details := alone.lazy_details) is not None:
                details.make_by(partial(_measured_details, evaluator, batch[0]))
            out.append(alone)
            continue
        try:
            measured = [_usable(observation) for observation in evaluator.measure_many(batch)]
        except Exception:  # noqa: BLE001 (one bad case must not cost the others theirs)
            measured = []
        out.extend(measured if len(measured) == len(batch) else [_measure_alone(evaluator, case) for case in batch])
    return out


def _measure_alone(evaluator: Evaluator, case: Case) -> Observation | Exception:
    """Measure one case with an evaluator; its exception becomes the error of this case only."""
    try:
        return _usable(evaluator.measure(case))
    except SystemExit as error:
        return EvaluatorError(f"evaluator {evaluator.name!r} called sys.exit({error.code!r})")
    except Exception as error:  # noqa: BLE001 (an error of an evaluator concerns this case only)
        return error


def _measured_details(evaluator: Evaluator, case: Case) -> Mapping[str, Any]:
    """The details of a view of a case, measured again."""
    return evaluator.measure(case).details


def measure_answered(
    evaluator: "JudgedEvaluator",
    case: Case,
    reading: Reading,
    verdicts: "Sequence[Sequence[Verdict | JudgeError]]",
) -> Observation | Exception:
    """Measure an answered case with an evaluator that asks judges, by their verdicts.

    Args:
        evaluator: Measures.
        case: With its whole prediction.
        reading: What of it the evaluator sees.
        verdicts: `Asking.verdicts`; empty where there was nobody to ask.
    """
    from pytest_llmeval.judges import CascadeVerdict

    try:
        views = reading.views(case)
    except PredictionError as error:
        return error
    replies = verdicts or [()] * len(views)

    def measured_by(replies_of_case: "Sequence[Sequence[Verdict | JudgeError]]") -> Observation | Exception:
        return _of_turns(
            [
                _measure_judged(evaluator, view, verdicts_of_view)
                for view, verdicts_of_view in zip(views, replies_of_case, strict=True)
            ]
        )

    observation = measured_by(replies)
    is_cascade = any(isinstance(reply, CascadeVerdict) for of_view in replies for reply in of_view)
    if isinstance(observation, Exception) or not is_cascade:
        return observation
    from pytest_llmeval.evaluators import Cascaded

    return Cascaded.with_audit(observation, replies, measured_by)


def _measure_judged(
    evaluator: "JudgedEvaluator", case: Case, verdicts: "Sequence[Verdict | JudgeError]"
) -> Observation | Exception:
    """Measure one view of a case by a judge's verdicts on it.

    What a run does not ask judges is undefined rather than an error.
    """
    from pytest_llmeval.judges import UnaskedError

    unasked = next((verdict for verdict in verdicts if isinstance(verdict, UnaskedError)), None)
    try:
        measured = _usable(evaluator.measure_judged(case, list(verdicts)))
    except Exception as error:  # noqa: BLE001 (an error of an evaluator concerns this case only)
        measured = error
    if unasked is None:
        return measured
    if isinstance(measured, Observation):
        lost = dict.fromkeys(measured.errored, str(unasked))
        return structs.replace(measured, undefined={**measured.undefined, **lost}, errored={})
    return evaluator.absent(str(unasked))


def _usable(measured: Any) -> Observation | Exception:
    """An evaluator's observation if it can be added up, or its fault: evaluators are users' code."""
    if not isinstance(measured, Observation):
        return EvaluatorError(f"measure returned {type(measured).__name__}, expected an Observation")
    fault = measured.fault()
    return measured if fault is None else EvaluatorError(fault)


def _of_turns(measured: Sequence[Observation | Exception]) -> Observation | Exception:
    """The sum of an evaluator's observations over a conversation's turns, or the error of the first one without."""
    observations = []
    for number, turn in enumerate(measured, 1):
        if isinstance(turn, Exception):
            return turn if len(measured) == 1 else EvaluatorError(f"turn {number}: {AnyError(turn).text}")
        observations.append(turn)
    if len(observations) == 1:
        return observations[0]
    wrong = [
        f"turn {number}: {observation.malformed}"
        for number, observation in enumerate(observations, 1)
        if observation.malformed
    ]
    nowhere = [
        name for name in observations[0].undefined if all(name in observation.undefined for observation in observations)
    ]
    return Observation(
        dict(Totals.add_up(observations)),
        details={"turns": [dict(observation.details) for observation in observations]},
        undefined={name: observations[0].undefined[name] for name in nowhere},
        malformed=wrong[0] if wrong else None,
        errored={name: why for observation in observations for name, why in observation.errored.items()},
        abstained=Observation.abstained_of(nowhere, observations),
    )


@dataclass
class MeasuredBlocks:
    """The observations that a process has measured ahead of the cases that want them."""

    _measured: dict[tuple[tuple[Path, str], str, str], Observation | Exception] = field(default_factory=dict)
    _cut: dict[tuple[tuple[Path, str], str], Mapping[str, Sequence[Case]]] = field(default_factory=dict)

    def measure(self, suite: LoadedSuite, label: str, evaluator: Evaluator, case: Case) -> Observation | Exception:
        """The observations of a case, measured together with its neighbours in the file.

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
            for case_of_block, measured in zip(
                block, measure_each(evaluator, block, suite.readings[label]), strict=True
            ):
                self._measured[suite.place, label, case_of_block.id] = measured
        return self._measured.pop(place)

    def _blocks(self, suite: LoadedSuite, label: str, size: int) -> Mapping[str, Sequence[Case]]:
        """The blocks of a suite's cases that an evaluator measures together."""
        if (suite.place, label) not in self._cut:
            self._cut[suite.place, label] = cut_in_blocks(
                [case for case in suite.cases if case.prediction is not MISSING], size
            )
        return self._cut[suite.place, label]


def cut_in_blocks(cases: Sequence[Case], size: int) -> Mapping[str, Sequence[Case]]:
    """The block of cases, by case id, that an evaluator measures together."""
    blocks = [cases[start : start + size] for start in range(0, len(cases), size)]
    return {case.id: block for block in blocks for case in block}


def record_of(case: Case, measured: Mapping[str, Observation | Exception]) -> CaseRecord:
    """The case record of a run, from the observations of its evaluators.

    Args:
        case: The case.
        measured: Evaluator label to the observation, or why there is none.

    Raises:
        MissingExtraError: An optional dependency is not installed.
        MissingDataError: Language data is not installed.
    """
    observed: dict[str, Observation] = {}
    errors: dict[str, str] = {}
    for label, result in measured.items():
        if isinstance(result, MissingDataError | MissingExtraError):
            raise result
        if isinstance(result, Observation):
            observed[label] = result
        else:
            errors[label] = Secrets.of_variables().presentable(AnyError(result).full_text)
    malformed = [observation.malformed for observation in observed.values() if observation.malformed is not None]
    errored = [observation.errored for observation in observed.values() if observation.errored]
    failed = [*errors.values(), *chain(*map(not_computed, errored))]
    outcome: CaseOutcome = "errored" if failed else "failed" if malformed else "passed"
    reason = next(iter([*failed, *malformed]), None)
    return CaseRecord(case.id, case.labels, outcome, observed, errors=errors, reason=reason)


def not_computed(errored: Mapping[str, str]) -> Iterator[str]:
    """Yield lines on the metrics that an error left without value, each reason once."""
    for why, (first, *others) in grouped((why, name) for name, why in errored.items()).items():
        yield f"{first}{f' and {len(others)} more' if others else ''}: {why}"


class SharedRecords:
    """Makes case records that share equal observations: kept once, these take a tenth of the memory."""

    def __init__(self) -> None:
        self._known: dict[Any, CaseRecord] = {}

    def record(self, case: Case, measured: Mapping[str, Observation | Exception]) -> CaseRecord:
        """The `record_of` a case, with the observations of an earlier record that is alike."""
        kinds = tuple(map(_kind, measured.values()))
        if None in kinds:
            return record_of(case, measured)
        alike = self._known.get(kinds)
        if alike is None:
            alike = record_of(case, measured)
            if len(self._known) < _MOST_KINDS:
                self._known[kinds] = alike
            return alike
        parts = alike.outcome, alike.observations, alike.errors, alike.reason
        return CaseRecord(case.id, case.labels, *parts, lines=alike.lines)


def _kind(measured: Observation | Exception) -> tuple[Any, ...] | None:
    """The key by which equal observations in case records are kept once; ``None`` for those with details or errors."""
    if isinstance(measured, Exception) or measured.has_details or measured.errored:
        return None
    numbers = measured.counts.values()
    types = tuple(map(type, numbers))  # 1, 1.0 and True are equal
    if not _PLAIN.issuperset(types):
        return None
    undefined = repr((measured.undefined, measured.abstained)) if measured.undefined else None
    return (*measured.counts, *numbers, types, undefined, measured.malformed)


def explained(suite: LoadedSuite, case: Case, observations: Mapping[str, Observation]) -> dict[str, list[str]]:
    """The lines of evaluators on an answer for its case record, by label."""
    reasons = {
        label: list(_lines(suite.evaluators[label], suite.readings[label], case, observation))
        for label, observation in observations.items()
    }
    if not any(reasons.values()):
        return {}
    secrets = Secrets.of_variables(suite.secret_variables)
    return {label: _presentable(lines, secrets) for label, lines in reasons.items() if lines}


def _lines(evaluator: Evaluator, reading: Reading, case: Case, observation: Observation) -> Iterator[str]:
    """Yield an evaluator's lines for a failed case's record; an exception is a line, since the case has been scored."""
    try:
        views = reading.views(case)
        if len(views) == 1:
            yield from evaluator.explain(views[0], observation)
            return
        for number, (view, details) in enumerate(zip(views, observation.details["turns"], strict=True), 1):
            for line in evaluator.explain(view, Observation({}, details)):
                yield f"turn {number}: {line}"
    except Exception as error:  # noqa: BLE001 (evaluators are users' code)
        yield f"explain() failed: {AnyError(error).text}"


def _presentable(lines: Sequence[str], secrets: Secrets) -> list[str]:
    """The lines of an evaluator for a failed case's record: redacted, and cut after a few."""
    printed = [printable(secrets.without(as_line(line))) for line in lines[:_MOST_LINES]]
    return [*printed, f"... and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else printed
