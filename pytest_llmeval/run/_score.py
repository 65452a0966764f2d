"""The scoring of cases in Python."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from pytest_llmeval.core import (
    Case,
    CaseRecord,
    Evaluator,
    EvaluatorError,
    LlmevalError,
    Observation,
    Parts,
    Reading,
    Result,
)
from pytest_llmeval.numbers import summarize
from pytest_llmeval.run._measuring import SharedRecords, measure_answered, measure_each
from pytest_llmeval.suites import Registry

if TYPE_CHECKING:
    from pytest_llmeval.evaluators import VerdictStatistics
    from pytest_llmeval.judges import Judgeable, JudgedEvaluator, Panel, SuiteJudges
    from pytest_llmeval.run._entries import NamedEvaluator
    from pytest_llmeval.run._partial import PartialResult


OneEvaluator: TypeAlias = "Evaluator | NamedEvaluator | Callable[[Any], Any] | Mapping[str, Any]"
"""An evaluator, an entry of a suite such as ``ev.fields()``, or a function of a case, which returns its score."""

Evaluators: TypeAlias = "OneEvaluator | Iterable[OneEvaluator] | Mapping[str, OneEvaluator]"
"""One evaluator, several, or label to evaluator."""

_BLOCK = 1_000
_CASE = "Case(id, input, expected, prediction); ev.suite takes mappings and data frames"


@overload
def score(
    evaluators: Evaluators,
    cases: Iterable[Case],
    group_by: Sequence[str] = (),
    confidence: float | None = 0.95,
    *,
    judge: "Judgeable | Panel | None" = None,
    max_workers: int = 8,
    cluster_by: str | None = None,
    parts: Parts | None = None,
    on: str | None = None,
    partial: Literal[False] = False,
) -> Result: ...


@overload
def score(
    evaluators: Evaluators,
    cases: Iterable[Case],
    group_by: Sequence[str] = (),
    confidence: float | None = 0.95,
    *,
    judge: "Judgeable | Panel | None" = None,
    max_workers: int = 8,
    cluster_by: str | None = None,
    parts: Parts | None = None,
    on: str | None = None,
    partial: Literal[True],
) -> "PartialResult": ...


def score(
    evaluators: Evaluators,
    cases: Iterable[Case],
    group_by: Sequence[str] = (),
    confidence: float | None = 0.95,
    *,
    judge: "Judgeable | Panel | None" = None,
    max_workers: int = 8,
    cluster_by: str | None = None,
    parts: Parts | None = None,
    on: str | None = None,
    partial: bool = False,
) -> "Result | PartialResult":
    """Score cases that carry their predictions.

    Args:
        evaluators: One, from `get_evaluator`, `get_checks` or of your own; several of distinct names; or label to
            evaluator, where the metrics of a renamed one have the label before their name, as in a suite.
        cases: The cases; ids must be unique. Inputs, expectations and predictions may be objects of dataclasses and
            pydantic models.
        group_by: Names of labels to group by.
        confidence: Of the intervals; ``None`` leaves them out and is faster.
        judge: Whom evaluators such as `judge` ask: ``PROVIDER:NAME``, a client, or a function of the request; or a
            `Panel` of several, whose agreement is then among the metrics. Nothing is cached here; suites are.
        max_workers: Most calls of the judge at a time.
        cluster_by: A label; intervals draw cases with the same value of it together.
        parts: Where the parts of the predictions are; default: the keys of the same names.
        on: What a single evaluator reads in place of its own part: another part, or a JMESPath.
        partial: Return a `PartialResult`, to which the results of other cases can be added.

    Returns:
        Metrics of the set, its groups and every case. A case that an evaluator could not measure counts as errored.

    Raises:
        EvaluatorError: There is no evaluator, or two have one name.
        LlmevalError: `partial` and `cluster_by` are both given: a cluster may have cases elsewhere. Or `partial` and
            criteria without steps, which may differ elsewhere. Or `on` with several evaluators.
        MissingExtraError: An optional dependency is not installed.
        MissingDataError: Language data is not installed.
    """
    from pytest_llmeval.run._partial import PartialResult

    named = by_name(evaluators, "score")
    if on is not None and len(named) > 1:
        raise LlmevalError("score: found on with several evaluators, expected it with one")
    if partial and cluster_by is not None:
        raise LlmevalError("score: partial=True with cluster_by: a cluster may have cases in other parts")
    if partial:
        check_divisible(named, "score: partial=True")
    listed = cases_in_forms(cases)
    readings = {label: Reading.for_evaluator(evaluator, on, parts or Parts()) for label, evaluator in named.items()}
    named, records = measured_records(named, listed, readings, judge, max_workers)
    if partial:
        return PartialResult.of(named, records, group_by)
    result = summarize(named, records, group_by=group_by, confidence=confidence, cluster_by=cluster_by)
    return replace(result, answered=listed)


def check_divisible(named: Mapping[str, Evaluator], caller: str) -> None:
    """Refuse evaluators in a stream or partial result whose judge writes shared steps anew for every part.

    Raises:
        EvaluatorError: There is one.
    """
    if learned := [metric.learned for evaluator in named.values() for metric in evaluator.describe() if metric.learned]:
        raise EvaluatorError(
            f"{caller} with {learned[0]} that the judge writes anew for every part: give them as an option"
        )


def measured_records(
    named: Mapping[str, Evaluator],
    cases: Sequence[Case],
    readings: Mapping[str, Reading],
    judge: "Judgeable | Panel | None",
    max_workers: int,
    judges: "SuiteJudges | None" = None,
) -> tuple[dict[str, Evaluator], list[CaseRecord]]:
    """The evaluators of `score` with those of juror agreement, and a record of each measured case.

    Args:
        named: Label to evaluator.
        cases: In their JSON forms.
        readings: Label to what the evaluator reads.
        judge: Whom evaluators ask that have no model of their own.
        max_workers: Most calls at a time.
        judges: Keep the verdicts; ``None``: nothing is kept.
    """
    evaluators = dict(named)
    measured: dict[str, Sequence[Observation | Exception | None]] = {}
    for label, evaluator in named.items():
        asking = _as_judged(evaluator)
        if asking is not None and (asks := _whom(asking, judge)) is not None:
            agreement = _agreement_of(label, asking, asks)
            both = _measure_asking(asking, agreement, cases, readings[label], asks, max_workers, judges)
            measured[label] = [own for own, _ in both]
            if agreement is not None:
                evaluators[agreement.name] = agreement
                measured[agreement.name] = [agreed for _, agreed in both]
    return evaluators, list(_records(evaluators, measured, cases, readings))


def by_name(evaluators: Evaluators, caller: str) -> dict[str, Evaluator]:
    """The evaluators of a call such as `score` by label: their names, unless labels are given.

    Args:
        evaluators: One, several, or label to evaluator.
        caller: The function that a message names.

    Raises:
        EvaluatorError: There is none, two have one name, or something else is among them.
    """
    from pytest_llmeval.run._entries import listed

    if isinstance(evaluators, Mapping) and not _is_one_entry(evaluators):
        labelled = [(label, _label_evaluator(evaluator, caller)[1]) for label, evaluator in evaluators.items()]
    else:
        several = listed(evaluators) if isinstance(evaluators, Iterable) else [evaluators]
        labelled = [_label_evaluator(evaluator, caller) for evaluator in several]
    named = dict(labelled)
    if len(named) < len(labelled):
        raise EvaluatorError(
            f"{caller}: found two evaluators of one name, expected distinct names: ev.evaluator(..., name='short')"
        )
    if not named:
        raise EvaluatorError(f"{caller}: an evaluator is missing")
    return named


def _is_one_entry(evaluators: Mapping[str, Any]) -> bool:
    """Whether an argument of `score` is an entry such as ``{"text": {...}}``, and not label to evaluator."""
    return any(name in Registry.installed() and isinstance(options, Mapping) for name, options in evaluators.items())


def _label_evaluator(evaluator: Any, caller: str) -> tuple[str, Evaluator]:
    """An evaluator that was passed to a function such as `score`, with its label."""
    from pytest_llmeval.evaluators import evaluator_of
    from pytest_llmeval.run._entries import NamedEvaluator

    try:
        label, evaluator = NamedEvaluator.label(evaluator)
    except EvaluatorError as error:
        raise EvaluatorError(f"{caller}: {error}") from None
    if callable(evaluator) and not isinstance(evaluator, type | Evaluator):
        evaluator = evaluator_of(evaluator)
    if not isinstance(evaluator, Evaluator):
        from pytest_llmeval.run._declared import Suite

        kind = evaluator.__name__ if isinstance(evaluator, type) else type(evaluator).__name__
        kind = "a suite" if isinstance(evaluator, Suite) else kind
        raise EvaluatorError(
            f"{caller}: found {kind}, expected an evaluator, such as get_evaluator('text'), or a function"
        )
    return label or evaluator.required_name(), evaluator


def cases_in_forms(cases: Iterable[Case]) -> list[Case]:
    """The cases of a call such as `score`, with the JSON forms of their objects, which they keep.

    Raises:
        LlmevalError: Something else is among them.
    """
    listed = []
    for number, case in enumerate(cases, 1):
        if not isinstance(case, Case):
            raise LlmevalError(f"found {type(case).__name__} as case {number}, expected a Case: {_CASE}")
        listed.append(case.in_forms())
    return listed


def _records(
    evaluators: Mapping[str, Evaluator],
    judged: Mapping[str, Sequence[Observation | Exception | None]],
    cases: Sequence[Case],
    readings: Mapping[str, Reading],
) -> Iterator[CaseRecord]:
    """Yield the records of cases for `score`, measured in blocks to bound the memory."""
    shared = SharedRecords()
    most = max(evaluator.batch for evaluator in evaluators.values())
    size = _BLOCK if most == 1 else max(1, len(cases))
    for start in range(0, len(cases), size):
        block = cases[start : start + size]
        columns = [
            judged[label][start : start + size]
            if label in judged
            else measure_each(evaluator, block, readings[label], remeasures=True)
            for label, evaluator in evaluators.items()
        ]
        for case, *row in zip(block, *columns, strict=True):
            measured = zip(evaluators, row, strict=True)
            yield shared.record(
                case, {label: observation for label, observation in measured if observation is not None}
            )


def _as_judged(evaluator: Evaluator) -> "JudgedEvaluator | None":
    """An evaluator that asks judges; ``None`` for one that asks none."""
    if not evaluator.asks:
        return None
    from pytest_llmeval.judges import JudgedEvaluator

    return evaluator if isinstance(evaluator, JudgedEvaluator) else None


def _whom(evaluator: "JudgedEvaluator", judge: "Judgeable | Panel | None") -> "Judgeable | Panel | None":
    """The judge of an evaluator in `score`: a model of its own, or else the argument ``judge``."""
    spec = evaluator.own_model
    if spec is None:
        return judge

    from pytest_llmeval.judges import JudgeConnection

    return JudgeConnection(spec).open(own=evaluator)


def _agreement_of(label: str, evaluator: "JudgedEvaluator", judge: "Judgeable | Panel") -> "VerdictStatistics | None":
    """The evaluator of juror agreement in `score`, if a panel judges.

    Raises:
        LlmevalError: Their verdicts cannot become one.
    """
    from pytest_llmeval.evaluators import VerdictStatistics
    from pytest_llmeval.judges import Panel

    if not isinstance(judge, Panel):
        return None
    if fault := evaluator.panel_fault(judge.reduce):
        raise LlmevalError(f"evaluator {evaluator.name!r}: {fault}")
    return VerdictStatistics.of_judges(label, tuple(judge.named))


def _measure_asking(
    evaluator: "JudgedEvaluator",
    agreement: "VerdictStatistics | None",
    cases: Sequence[Case],
    reading: Reading,
    judge: "Judgeable | Panel",
    workers: int,
    judges: "SuiteJudges | None",
) -> list[tuple[Observation | Exception, Observation | None]]:
    """The observations of an evaluator in `score` that asks judges, each with the jurors' agreement."""
    from pytest_llmeval.judges import Asking, JudgePanel

    panel = JudgePanel.from_python(judge, writes=evaluator.own_model is None)
    askings = [Asking.about(evaluator, case, reading, panel) for case in cases]
    store = None if judges is None else judges.store
    Asking.ask_all(askings, panel, workers, store)
    measured: list[tuple[Observation | Exception, Observation | None]] = []
    for case, asking in zip(cases, askings, strict=True):
        verdicts = [] if asking.error is not None else asking.verdicts
        own = asking.error or measure_answered(evaluator, case, reading, verdicts)
        agreed = None
        if agreement is not None and asking.error is None:
            agreed = agreement.measure_verdicts(list(chain(*verdicts)))
        measured.append((own, agreed))
    return measured
