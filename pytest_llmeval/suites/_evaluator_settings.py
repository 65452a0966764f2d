"""The evaluators of a suite file."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from pytest_llmeval.core import (
    AnyError,
    ComparingEvaluator,
    Evaluator,
    EvaluatorError,
    MetricIndex,
    MissingExtraError,
    Parts,
    Reading,
    SuiteError,
    shown_path,
    unknown_name,
)
from pytest_llmeval.data import describe
from pytest_llmeval.suites._reading import SuiteReading
from pytest_llmeval.suites._registry import build, using, widest

if TYPE_CHECKING:
    from pytest_llmeval.suites._settings import SimulatedUser

_BESIDE = ("as", "on", "turn")


def read_evaluators(reading: SuiteReading, entries: Sequence[Any]) -> Mapping[str, Evaluator]:
    """Read ``evaluators`` of a suite file, adding those of its checks and of its simulated user."""
    judged = reading.entry.judge is not None or reading.entry.judges is not None
    listed = _with_user_metrics(entries, reading.values["conversation"].user, judged=judged)
    if not listed and not reading.checked:
        reading.knows_metrics = False
        if not reading.faults and "evaluators" in reading.document.data:
            reading.fault(("evaluators",), "found an empty list, expected at least one evaluator")
        elif not reading.faults:
            reading.fault((), "evaluators or checks is missing")
    for number, entry in enumerate(listed):
        path: tuple[str | int, ...] = ("evaluators", number)
        known = len(reading.possible)
        built = _evaluator(reading, entry, path)
        if built is not None:
            reading.add_metrics(built, path)
        elif known == len(reading.possible):
            reading.knows_metrics = False
    if reading.checked:
        reading.add_evaluator(reading.checks_evaluator(), ("checks",))
    return reading.metrics.evaluators


def _with_user_metrics(entries: Sequence[Any], user: "SimulatedUser | None", *, judged: bool) -> list[Any]:
    """A suite's evaluators with those about its simulated user: how conversations end, and drift.

    Args:
        entries: Of the suite file.
        user: Its simulated user; ``None`` for none.
        judged: Whether it has a judge.
    """
    if user is None:
        return list(entries)
    names = [entry if isinstance(entry, str) else next(iter(entry), None) for entry in entries if entry]
    listed = list(entries)
    if "conversation" not in names:
        listed.append("conversation")
    if judged and user.checks_role and "user_drift" not in names:
        listed.append("user_drift")
    reasons = {"reasons": list(user.stop)}
    for place, entry in enumerate(listed):
        if entry == "conversation":
            listed[place] = {"conversation": reasons}
        elif isinstance(entry, Mapping) and isinstance(options := entry.get("conversation", 0), Mapping | None):
            listed[place] = {**entry, "conversation": {**reasons, **(options or {})}}
    return listed


def _evaluator(reading: SuiteReading, entry: Any, path: tuple[str | int, ...]) -> MetricIndex | None:
    """Read an entry of ``evaluators`` as the index of its metrics; ``None`` after adding its faults."""
    beside: dict[str, Any] = {}
    if isinstance(entry, Mapping):
        beside = {key: entry[key] for key in _BESIDE if key in entry}
    if isinstance(entry, str):
        name, own_options = entry, None
    elif isinstance(entry, Mapping) and len(entry) == len(beside) + 1:
        ((name, own_options),) = ((key, value) for key, value in entry.items() if key not in beside)
        path = (*path, name)
    else:
        reading.fault(path, f"found {describe(entry)}, expected NAME or {{NAME: options}}")
        return None
    if own_options is not None and not isinstance(own_options, Mapping):
        reading.fault(path, f"found {describe(own_options)}, expected a mapping of options")
        return None
    options: dict[str, Any] = dict(own_options or {})
    where = {key: path[:-1] if key in beside else path for key in _BESIDE}
    if twice := [key for key in beside if key in options]:
        reading.fault((*path, twice[0]), f"found {twice[0]!r} here and beside {name!r}, expected it once", key=True)
    beside = {key: options.pop(key) for key in _BESIDE if key in options} | beside
    label = beside.get("as", name)
    if not isinstance(label, str) or not label.isprintable() or not label:
        reading.fault((*where["as"], "as"), f"found {describe(label)}, expected a name")
        return None
    if "turn" in beside:
        _read_turn(reading, label, beside["turn"], (*where["turn"], "turn"))
    if "on" in beside:
        _read_on(reading, label, beside["on"], (*where["on"], "on"))
    try:
        evaluator = reading.registry.get(name)
    except EvaluatorError as error:
        if name in reading.registry:
            reading.fault(path, str(error), key=True)
        else:
            reading.unknown(path, "evaluator", name, list(reading.registry))
        return None
    return _build_evaluator(reading, label, evaluator, options, path)


def _note_possible(reading: SuiteReading, label: str, evaluator: type[Evaluator], options: Mapping[str, Any]) -> None:
    """Note the metrics of an evaluator without its one faulty option, so that other names are still checked."""
    for name in options:
        others = {key: value for key, value in options.items() if key != name}
        with suppress(Exception), using(reading.registry):
            built = widest(evaluator, others) if name == "metrics" else build(evaluator, others)
            reading.possible.append(MetricIndex.from_evaluators({label: built}))
            return


def _build_evaluator(
    reading: SuiteReading,
    label: str,
    evaluator: type[Evaluator],
    options: Mapping[str, Any],
    path: tuple[str | int, ...],
) -> MetricIndex | None:
    """Build a suite's evaluator, as the index of its metrics; ``None`` after adding its faults."""
    try:
        with using(reading.registry):
            metrics = _index_metrics(reading, label, evaluator, options, path)
    except SuiteError as error:  # of a file that the options name
        named = [structs.replace(fault, file=shown_path(Path(fault.file))) for fault in error.faults]
        placed = [fault if fault.line else reading.document.fault(path, str(fault)) for fault in named]
        reading.faults += [fault for fault in placed if fault not in reading.faults]
        metrics = None
    except MissingExtraError as error:
        reading.fault(path, str(error))
        return None  # the option that needs the extra may bring metrics, so no name is refused for want of it
    except EvaluatorError as error:
        reading.fault(path, str(error))
        metrics = None
    except Exception as error:  # noqa: BLE001 (an evaluator's bug is a fault of the files that use it)
        reading.fault(path, f"evaluator {evaluator.name!r} cannot be built: {AnyError(error).full_text}")
        metrics = None
    if metrics is None:
        _note_possible(reading, label, evaluator, options)
    return metrics


def _index_metrics(
    reading: SuiteReading,
    label: str,
    evaluator: type[Evaluator],
    options: Mapping[str, Any],
    path: tuple[str | int, ...],
) -> MetricIndex | None:
    """Index the metrics of an evaluator; ``None`` after adding faults of its options."""
    own = options
    if evaluator.asks:
        from pytest_llmeval.suites._judge_settings import without_judge

        own = without_judge(reading, evaluator, options, path)
    built: Evaluator | None = reading.check(evaluator, own, path)
    if built is None or _names_files_outside(reading, built, path):
        return None
    systems_known = not any(fault.path.partition(".")[0] == "systems" for fault in reading.faults)
    if isinstance(built, ComparingEvaluator) and systems_known:
        built = built.among(reading.systems)
    metrics = MetricIndex.from_evaluators({label: _with_paths(built, reading.path.parent).resolve()})
    _check_names(metrics)
    return metrics


def _names_files_outside(reading: SuiteReading, evaluator: Evaluator, path: tuple[str | int, ...]) -> bool:
    """Whether an evaluator's option names a file outside the root folder, after adding the fault."""
    named = {field.name: getattr(evaluator, field.name) for field in fields(evaluator) if field.metadata.get("inside")}
    files = [(name, file) for name, value in named.items() for file in _files(value)]
    outside = {name: file for name, file in files if not reading.is_inside(file)}
    for name, value in outside.items():
        reading.fault((*path, name), reading.outside_fault(value))
    return bool(outside)


def _read_on(reading: SuiteReading, label: str, entry: Any, place: tuple[str | int, ...]) -> None:
    """Read ``on`` of an evaluator's entry: the part of a prediction that it evaluates."""
    if not isinstance(entry, str):
        reading.fault(place, f"found {describe(entry)}, expected a part ({', '.join(Parts.NAMES)}) or a JMESPath")
    elif entry in (Parts.WHOLE, *Parts.NAMES) or reading.is_expression(entry, place):
        reading.on[label] = entry


def _read_turn(reading: SuiteReading, label: str, entry: Any, place: tuple[str | int, ...]) -> None:
    """Read ``turn`` of an evaluator's entry: the turns of a conversation that it evaluates."""
    if Reading.is_turn(entry):
        reading.turns[label] = entry
    else:
        reading.fault(place, f"found {describe(entry)}, expected {Reading.TURNS}")


def _with_paths(evaluator: Evaluator, folder: Path) -> Evaluator:
    """An evaluator whose options name files from the suite file's folder, as all keys of the file do."""
    named = {field.name: getattr(evaluator, field.name) for field in fields(evaluator) if field.metadata.get("path")}
    changes = {name: _place_files(value, folder) for name, value in named.items() if value is not None}
    return replace(evaluator, **changes)


def _place_files(value: Any, folder: Path) -> Any:
    """The files in an evaluator's option, named from the suite file's folder."""
    if isinstance(value, Mapping):
        return {name: _place_files(file, folder) for name, file in value.items()}
    return tuple(_place_files(file, folder) for file in value) if isinstance(value, tuple) else str(folder / value)


def _files(value: str | tuple[str, ...] | Mapping[str, str] | None) -> tuple[str, ...]:
    """The file names in an evaluator's option that names a file, several or none."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return tuple(value.values())
    return value if isinstance(value, tuple) else (value,)


def _check_names(metrics: MetricIndex) -> None:
    """Refuse an evaluator's error buckets and tables of metrics that nobody reports: they would stay empty.

    Raises:
        ValueError: One is about a metric that its evaluator does not declare.
    """
    for label, evaluator in metrics.evaluators.items():
        names = [(f"error bucket {bucket.name!r}", bucket.metric) for bucket in evaluator.error_buckets()]
        names += [(f"table {table.title!r}", name) for table in evaluator.tables() for name in table.metric_names()]
        for what, name in names:
            if metrics.find(metrics.full_name(label, name)) is None:
                known = [entry.metric.name for entry in metrics.declared[label]]
                raise ValueError(f"{what}: {unknown_name('metric', name, known)}")
