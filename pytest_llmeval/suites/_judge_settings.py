"""The judge of a suite: one model, a panel or a cascade."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from pytest_llmeval.core import Evaluator, FieldsError, RecordedCounts
from pytest_llmeval.data import describe
from pytest_llmeval.judges import CascadeRule, JudgeSpec, PanelSpec
from pytest_llmeval.numbers import Repeats
from pytest_llmeval.suites._reading import SuiteReading

_PLACES: Final = {
    "judges": "at the top level of the suite, in place of 'judge'",
    **dict.fromkeys(("reduce", "min_judges"), "at the top level of the suite, beside 'judges'"),
    **dict.fromkeys(("mode", "prompt", "reply", "criteria", "rubric"), "in an evaluator: {judge: {mode: ...}}"),
}


_CASCADE: Final = frozenset(("first", "then", "when", "audit"))


def read_judge(reading: SuiteReading, entry: Any) -> JudgeSpec | PanelSpec:
    """Read ``judge`` of a suite file, which may be a cascade, or ``judges`` with ``reduce`` and ``min_judges``.

    Metrics of a faulty panel are not checked further.
    """
    whole = reading.entry
    several = whole.judges is not None or reading.document.data.get("judges") is not None
    if not several:
        for name in ("reduce", "min_judges"):
            if getattr(whole, name) is not None:
                reading.fault((name,), f"found {name!r} without 'judges', expected a panel of judges", key=True)
        if not (isinstance(entry, Mapping) and _CASCADE.intersection(entry)):
            return JudgeSpec() if entry is None else _spec(reading, entry, ("judge",)) or JudgeSpec()
    panel = _panel(reading) if several else _cascade(reading, entry)
    if panel is None:
        reading.knows_metrics = False
        return JudgeSpec()
    _add_agreement(reading, panel)
    reading.values["evaluators"] = reading.metrics.evaluators
    return panel


def _add_agreement(reading: SuiteReading, panel: PanelSpec) -> None:
    """Add the agreement of a panel of judges, or the errors of a cascade, for each evaluator that asks.

    Checks of single cases, which a judge may decide, are read later; see `without_unasked`.
    """
    from pytest_llmeval.evaluators import VerdictStatistics
    from pytest_llmeval.judges import JudgedEvaluator

    key, audit = ("judges", None) if panel.cascade is None else ("judge", panel.cascade.audit)
    for label, evaluator in reading.metrics.evaluators.items():
        if evaluator.asserts or (isinstance(evaluator, JudgedEvaluator) and evaluator.asks_judge):
            reading.add_evaluator(VerdictStatistics.of_judges(label, panel.names, audit), (key,))


def _cascade(reading: SuiteReading, data: Mapping[str, Any]) -> PanelSpec | None:
    """Read a cascade under ``judge``: ``first``, and ``then``, a second judge that is asked only if need be."""
    known = len(reading.faults)
    settings = {name: value for name, value in data.items() if name not in ("first", "then")}
    rule = reading.check(CascadeRule, _without_misplaced(reading, settings, ("judge",)), ("judge",))
    specs = []
    for name in ("first", "then"):
        spec = _spec(reading, data[name], ("judge", name)) if name in data else None
        specs.append(spec or JudgeSpec())
        if name not in data:
            reading.fault(("judge",), f"{name} is missing")
        elif spec is not None and spec.model is None:
            reading.fault(("judge", name), "found a judge without a model, expected PROVIDER:NAME")
    if len(reading.faults) > known or rule is None:
        return None
    try:
        return PanelSpec(tuple(specs), cascade=rule)
    except FieldsError as error:
        for _, fault in error.faults:
            reading.fault(("judge", "then"), fault)
        return None


def _spec(reading: SuiteReading, entry: Any, path: tuple[str | int, ...]) -> JudgeSpec | None:
    """Read a judge of a suite file: a model, or a mapping of settings."""
    data = {"model": entry} if isinstance(entry, str) else entry
    if not isinstance(data, Mapping):
        several = "; several judges stand under 'judges'" if isinstance(data, list) and path == ("judge",) else ""
        reading.fault(path, f"found {describe(data)}, expected PROVIDER:NAME or a mapping{several}")
        return None
    spec: JudgeSpec | None = reading.check(JudgeSpec, _without_misplaced(reading, data, path), path)
    return spec


def _without_misplaced(reading: SuiteReading, data: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    """A judge's settings without keys that belong elsewhere in a suite file, after adding the faults."""
    misplaced = {name: _PLACES[name] for name in data if name in _PLACES}
    for name, place in misplaced.items():
        reading.fault((*path, name), f"found {name!r} inside {path[0]!r}, expected it {place}", key=True)
    reading.knows_metrics = reading.knows_metrics and not misplaced
    return {name: value for name, value in data.items() if name not in misplaced}


def without_judge(
    reading: SuiteReading, evaluator: type[Evaluator], options: Mapping[str, Any], path: tuple[str | int, ...]
) -> dict[str, Any]:
    """An asking evaluator's options without settings of the judge, which all evaluators share; adds faults."""
    own = {field.name for field in fields(evaluator)}
    named = {*(field.name for field in fields(JudgeSpec)), "judges", "reduce", "min_judges"} - own
    misplaced = [name for name in options if name in named]
    for name in misplaced:
        place = _PLACES.get(name, "under 'judge', at the top level of the suite")
        why = "the evaluators of a suite share its judge"
        reading.fault((*path, name), f"found {name!r} inside an evaluator, expected it {place}: {why}", key=True)
    return {name: value for name, value in options.items() if name not in misplaced}


def _panel(reading: SuiteReading) -> PanelSpec | None:
    """Read the panel of judges under ``judges``; ``None`` if it has faults."""
    entry = reading.entry
    if entry.judges is None:  # a fault of the top level
        return None
    if entry.judge is not None:
        reading.fault(("judges",), "found both 'judge' and 'judges', expected one of them", key=True)
    read = [_spec(reading, judge, ("judges", number)) for number, judge in enumerate(entry.judges)]
    specs = [spec for spec in read if spec is not None]
    if len(specs) < len(read):
        return None
    try:
        return PanelSpec(tuple(specs), entry.reduce, entry.min_judges)
    except FieldsError as error:
        for name, fault in error.faults:
            reading.fault((name,), fault)
        return None


def check_reduction(
    reading: SuiteReading, judge: PanelSpec, repeats: Repeats, evaluators: Mapping[str, Evaluator]
) -> None:
    """Refuse a panel of judges or a reduction that an evaluator cannot use, or that an audit cannot correct."""
    if judge.cascade is not None:
        if judge.cascade.audit and repeats.times > 1 and repeats.reduce != "mean":
            expected = "expected mean with a cascade of judges, whose audit corrects means; or set 'audit: 0'"
            reading.fault(("repeats", "reduce"), f"found {repeats.reduce}, {expected}")
        return
    from pytest_llmeval.judges import JudgedEvaluator

    for label, evaluator in evaluators.items():
        fault = evaluator.panel_fault(judge.reduce) if isinstance(evaluator, JudgedEvaluator) else None
        if fault:
            reading.fault(("reduce",) if judge.reduce is not None else ("judges",), f"evaluator {label!r}: {fault}")


def without_unasked(evaluators: Mapping[str, Evaluator]) -> dict[str, Evaluator]:
    """A suite's evaluators without statistics on several judges' verdicts about evaluators that ask nothing."""
    counts = {label: evaluator for label, evaluator in evaluators.items() if isinstance(evaluator, RecordedCounts)}
    if not counts:
        return dict(evaluators)
    from pytest_llmeval.evaluators import VerdictStatistics

    unasked = {
        label
        for label, count in counts.items()
        if isinstance(count, VerdictStatistics) and not evaluators[count.of].asks
    }
    return {label: evaluator for label, evaluator in evaluators.items() if label not in unasked}
