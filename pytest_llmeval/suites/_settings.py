"""The settings of a suite file: evaluators, limits, gates, repeats, checks, files next to it. Collects all faults."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args, get_type_hints

from msgspec import structs

from pytest_llmeval.core import (
    PASS_RATE,
    Case,
    Evaluator,
    EvaluatorError,
    MetricIndex,
    MissingExtraError,
    SuiteError,
    expected_name,
    format_error,
    metric_names,
    origin,
    shown_path,
    unknown_name,
)
from pytest_llmeval.data import STRICT, Document, check_regular, describe, input_files, read_json, searching_within
from pytest_llmeval.gates import (
    Gate,
    LimitGate,
    gate_form_fault,
    is_plain_limit,
    limit_form_fault,
    mapping_form_fault,
    range_fault,
    subject_fault,
)
from pytest_llmeval.judges import PanelSpec
from pytest_llmeval.numbers import RELIABILITY, TARGET_FIGURES, Limit, Reliability, Repeats, UsageEvaluator
from pytest_llmeval.suites._model_settings import JudgeReader, MessageEntry, script_fault, script_of
from pytest_llmeval.suites._registry import Registry, build, using

if TYPE_CHECKING:
    from pytest_llmeval.evaluators import Check, CheckReader, Checks
    from pytest_llmeval.targets import TargetSpec


SUITE_METRICS = (PASS_RATE, *(metric.name for metric in UsageEvaluator().describe()))
"""Metrics of every suite."""

_MOST_REPEATS = 1000

_REFERENCE = "without"
_BESIDE = ("as", "on", "turn")
"""Keys of an entry of ``evaluators`` that are no options: they stand next to the name or among the options."""


@dataclass(frozen=True)
class CaseEntry:
    """A case as a suite file writes it."""

    __pydantic_config__: ClassVar = STRICT

    id: str | int | None = None
    input: Any = None
    messages: list[str | MessageEntry] | None = None
    expected: Any = None
    expected_file: str | None = None
    prediction: Any = None
    prediction_file: str | None = None
    labels: dict[str, str | int | float | bool] = field(default_factory=dict)
    modes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    thresholds: dict[str, Any] = field(default_factory=dict)
    checks: list[Any] = field(default_factory=list)
    always: bool = False


@dataclass(frozen=True)
class LimitEntry:
    """A threshold in its mapping form."""

    __pydantic_config__: ClassVar = STRICT

    min: float | None = None
    max: float | None = None


class SettingsReader(JudgeReader):
    """One reading of one suite file, as far as its settings go; collects faults.

    Attributes:
        path: The suite file.
        registry: The evaluators and sources that it may name.
        root: Files of single cases, and those that judges are shown, may not lie outside this folder.
        metrics: Those of the evaluators read so far.
        knows_metrics: False once it is not known which metrics an evaluator with a fault would have.
        possible: The metrics of evaluators with one faulty option, without it.
        systems: The names of the suite's systems.
        shared_checks: The suite's own checks, which hold for every case.
    """

    def __init__(self, path: Path, registry: Registry, document: Document, root: Path) -> None:
        super().__init__(document)
        self.path = path
        self.registry = registry
        self.root = root
        self.metrics = MetricIndex.from_evaluators({})
        self.knows_metrics = True
        self.possible: list[MetricIndex] = []
        self.systems: Sequence[str] = ()
        self.shared_checks: tuple[Check, ...] = ()

    def read_evaluators(self, entries: Sequence[Any], checks: Evaluator | None = None) -> Mapping[str, Evaluator]:
        """Read ``evaluators``: label to evaluator, with names of metrics that do not clash.

        Args:
            entries: The entries.
            checks: The evaluator of the suite's checks, where it has some.
        """
        if not entries and checks is None:
            self.knows_metrics = False
            if not self.faults and "evaluators" in self.document.data:
                self.fault(("evaluators",), "found an empty list, expected at least one evaluator")
            elif not self.faults:
                self.fault((), "found nothing, expected 'evaluators' or 'checks'")
        owner = dict.fromkeys(SUITE_METRICS, "the suite")
        for number, entry in enumerate(entries):
            path: tuple[str | int, ...] = ("evaluators", number)
            known = len(self.possible)
            built = self._evaluator(entry, path)
            if built is not None:
                self._add(built, path, owner)
            elif known == len(self.possible):
                self.knows_metrics = False
        if checks is not None:
            self._add(MetricIndex.from_evaluators({checks.name: checks}), ("checks",), owner)
        return self.metrics.evaluators

    def with_agreement(self, panel: PanelSpec, evaluators: Mapping[str, Evaluator]) -> Mapping[str, Evaluator]:
        """Return evaluators with the agreement of the panel, or the errors of the cascade, about what each asks.

        Checks of single cases, which a judge may decide, are read later; see `without_unasked`.
        """
        from pytest_llmeval.evaluators import CascadeErrors, PanelAgreement, VerdictStatistics
        from pytest_llmeval.judges import JudgedEvaluator

        owner = self._owners()
        for label, evaluator in evaluators.items():
            asks_judge = isinstance(evaluator, JudgedEvaluator) and evaluator.asks_judge
            if asks_judge or evaluator.asserts:
                agreement: VerdictStatistics = PanelAgreement(label, panel.names)
                if panel.cascade is not None:
                    agreement = CascadeErrors(label, panel.cascade.audit)
                place = "judges" if panel.cascade is None else "judge"
                self._add(MetricIndex.from_evaluators({agreement.name: agreement}), (place,), owner)
        return self.metrics.evaluators

    def add_reliability(self, times: int) -> None:
        """Add the metrics of repeated cases to those that limits and gates may name."""
        owner = self._owners()
        self._add(MetricIndex.from_evaluators({RELIABILITY: Reliability(times)}), ("repeats",), owner)

    def _owners(self) -> dict[str, str]:
        """Return the label of the evaluator of each metric."""
        return {
            self.metrics.full_name(label, each.metric.family): label
            for label, declared in self.metrics.declared.items()
            for each in declared
        }

    def _add(self, built: MetricIndex, path: tuple[str | int, ...], owner: dict[str, str]) -> None:
        """Add an evaluator, unless its name or one of its metrics is taken."""
        ((label, declared),) = built.declared.items()
        if label in self.metrics.evaluators:
            self.fault(path, f"found {label!r} twice, expected distinct names: rename one with 'as' (as_= in Python)")
            return
        self.metrics = self.metrics.extended(built)
        for each in declared:
            bare, name = each.metric.name, built.full_name(label, each.metric.family)
            if name in owner:
                self.fault(
                    path,
                    f"found metric {bare!r}, which {owner[name]!r} reports too, expected distinct names: "
                    "rename this evaluator with 'as'",
                )
            owner.setdefault(name, label)

    def _evaluator(self, entry: Any, path: tuple[str | int, ...]) -> MetricIndex | None:
        """Return the index of one evaluator."""
        beside: dict[str, Any] = {}
        if isinstance(entry, Mapping):
            beside = {key: entry[key] for key in _BESIDE if key in entry}
        if isinstance(entry, str):
            name, own_options = entry, None
        elif isinstance(entry, Mapping) and len(entry) == len(beside) + 1:
            ((name, own_options),) = ((key, value) for key, value in entry.items() if key not in beside)
            path = (*path, name)
        else:
            self.fault(path, f"found {describe(entry)}, expected NAME or {{NAME: options}}")
            return None
        if own_options is not None and not isinstance(own_options, Mapping):
            self.fault(path, f"found {describe(own_options)}, expected a mapping of options")
            return None
        options: dict[str, Any] = dict(own_options or {})
        where = {key: path[:-1] if key in beside else path for key in _BESIDE}
        if twice := [key for key in beside if key in options]:
            self.fault((*path, twice[0]), f"found {twice[0]!r} here and beside {name!r}, expected it once", key=True)
        beside = {key: options.pop(key) for key in _BESIDE if key in options} | beside
        label = beside.get("as", name)
        if not isinstance(label, str) or not label.isprintable() or not label:
            self.fault((*where["as"], "as"), f"found {describe(label)}, expected a name")
            return None
        if "turn" in beside:
            self.read_turn(label, beside["turn"], (*where["turn"], "turn"))
        if "on" in beside:
            self.read_on(label, beside["on"], (*where["on"], "on"))
        try:
            evaluator = self.registry.get(name)
        except EvaluatorError as error:
            self.fault(path, str(error), key=True)
            return None
        built = self._built(label, evaluator, options, path)
        if built is None:
            self._note_possible(label, evaluator, options)
        return built

    def _note_possible(self, label: str, evaluator: type[Evaluator], options: Mapping[str, Any]) -> None:
        """Note the metrics of an evaluator without its one faulty option, so that other names are still checked."""
        for name in options:
            others = {key: value for key, value in options.items() if key != name}
            if name == "metrics" and (every := metric_choices(evaluator)):
                others[name] = every
            with suppress(Exception), using(self.registry):
                self.possible.append(MetricIndex.from_evaluators({label: build(evaluator, others)}))
                return

    def _built(
        self, label: str, evaluator: type[Evaluator], options: Mapping[str, Any], path: tuple[str | int, ...]
    ) -> MetricIndex | None:
        try:
            with using(self.registry):
                built: Evaluator | None = self.check(evaluator, self.without_judge(evaluator, options, path), path)
                if built is None or self._names_files_outside(built, path):
                    return None
                if not any(fault.path.partition(".")[0] == "systems" for fault in self.faults):
                    built = built.among(self.systems)
                metrics = MetricIndex.from_evaluators({label: _with_paths(built, self.path.parent).resolve()})
            _check_names(metrics)
        except SuiteError as error:  # of a file that the options name
            named = [structs.replace(each, file=shown_path(Path(each.file))) for each in error.faults]
            placed = [each if each.line else self.document.fault(path, str(each)) for each in named]
            self.faults += [each for each in placed if each not in self.faults]
            return None
        except (EvaluatorError, MissingExtraError) as error:
            self.fault(path, str(error))
            return None
        except Exception as error:  # noqa: BLE001 (an evaluator's bug is a fault of the files that use it)
            self.fault(path, f"evaluator {evaluator.name!r} cannot be built: {format_error(error)}{origin(error)}")
            return None
        return metrics

    def _names_files_outside(self, evaluator: Evaluator, path: tuple[str | int, ...]) -> bool:
        """Return whether an option names a file that must not be read, after adding the fault."""
        named = {each.name: getattr(evaluator, each.name) for each in fields(evaluator) if each.metadata.get("inside")}
        files = [(name, file) for name, value in named.items() for file in _files(value)]
        outside = {name: file for name, file in files if not self.is_inside(file)}
        for name, value in outside.items():
            self.fault((*path, name), self.outside_fault(value))
        return bool(outside)

    def is_inside(self, name: str) -> bool:
        """Return whether a file next to the suite file lies in the folder that it may name files of."""
        try:
            return (self.path.parent / name).resolve().is_relative_to(self.root.resolve())
        except ValueError:  # a NUL character: reading reports it
            return True

    def outside_fault(self, name: str) -> str:
        """Return what is wrong with the name of a file that is not inside."""
        return f"found {name!r}, which is outside the folder {self.root.name!r}, expected a file inside it"

    def metric_fault(self, metric: str, extra: Collection[str] = (), after: Collection[str] = ()) -> str | None:
        """Return the fault of the name of a metric; ``None`` for known ones."""
        indices = (self.metrics, *self.possible)
        if metric in extra or not self.knows_metrics or any(each.find(metric) is not None for each in indices):
            return None
        declared = (each.name for index in indices for metrics in index.declared.values() for each in metrics)
        known = [*extra, *declared, *after]
        return f"found the unknown metric {metric!r}{expected_name(metric, known)}"

    def read_limits(self, entries: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Limit]:
        """Read ``thresholds``, of the suite or of a case."""
        limits = {}
        for metric, entry in entries.items():
            place = (*path, metric)
            if metric not in TARGET_FIGURES and (fault := self.metric_fault(metric, after=TARGET_FIGURES)):
                self.fault(place, fault, key=True)
            limit = self._limit(entry, place)
            if limit is None:
                continue
            for key, value in (("min", limit.min), ("max", limit.max)):
                if value is not None and (fault := range_fault(metric, value, self.metrics)):
                    self.fault((*place, key), fault)
            if not isinstance(entry, Mapping) and self._lower_is_better(metric):
                self.fault(
                    place,
                    f"found a bare number, which is a minimum, but lower is better here, expected {{max: {entry}}}",
                )
            limits[metric] = limit
        return limits

    def _lower_is_better(self, metric: str) -> bool:
        return metric in TARGET_FIGURES or self.metrics.lower_is_better(metric)

    def _limit(self, entry: Any, place: tuple[str | int, ...]) -> Limit | None:
        if isinstance(entry, int | float) and not isinstance(entry, bool):
            entry = {"min": entry}
        if not isinstance(entry, Mapping):
            self.fault(place, limit_form_fault(entry))
            return None
        checked = self.check(LimitEntry, entry, place)
        if checked is None:
            return None
        if checked.min is None and checked.max is None:
            self.fault(place, "found neither min nor max, expected at least one of them")
        elif checked.min is not None and checked.max is not None and checked.min > checked.max:
            self.fault(place, f"found min {checked.min} above max {checked.max}, expected min <= max")
        return Limit(checked.min, checked.max)

    def read_gates(self, entries: Sequence[Any], cluster_by: str | None) -> "tuple[Gate, ...]":
        """Read ``gates``; those against a baseline have the clusters of the suite."""
        gates: dict[str, Gate] = {}
        for number, entry in enumerate(entries):
            place: tuple[str | int, ...] = ("gates", number)
            gate = self._gate(entry, place, cluster_by)
            if gate is None:
                continue
            self._check_gate(gate, entry, place)
            name = f"{gate}[{gate.system}]" if gate.system else str(gate)
            if name in gates:
                self.fault(place, f"found the gate {name!r} twice, expected it once")
            gates[name] = replace(gate, line=self.document.locate(place)[0])
        return tuple(gates.values())

    def _check_gate(self, gate: "Gate", entry: Any, place: tuple[str | int, ...]) -> None:
        """Refuse a gate on an unknown metric, or with a limit that its metric cannot reach."""
        subject = (*place, "metric") if isinstance(entry, Mapping) else place
        judged = any(each.asks for each in self.metrics.evaluators.values())
        extra = SUITE_METRICS if judged or gate.metric in SUITE_METRICS else (PASS_RATE,)
        if fault := self.metric_fault(gate.metric, extra):
            text = gate.metric if isinstance(entry, Mapping) else entry
            self.fault(subject, subject_fault(text, gate.metric, self.metrics) or fault)
            return
        for key, fault in gate.misfits(self.metrics, entry if isinstance(entry, str) else ""):
            self.fault((*place, key) if key else place, fault)

    def _gate(self, entry: Any, place: tuple[str | int, ...], cluster_by: str | None) -> "Gate | None":
        if isinstance(entry, str):
            return self._text_gate(entry, place, cluster_by)
        from pytest_llmeval.gates import GateFault, known_keys, read_gate

        if isinstance(entry, Mapping) and (fault := mapping_form_fault(entry, list(known_keys()), self.metrics)):
            self.fault(place, fault)
            return None
        try:
            return read_gate(entry, lambda kind, values: self.check(kind, values, place), cluster_by)
        except GateFault as error:
            for key, fault in error.faults:
                self.fault((*place, key) if key else place, fault, key=error.at_key)
        except ValueError as error:
            self.fault(place, str(error))
        return None

    def _text_gate(self, text: str, place: tuple[str | int, ...], cluster_by: str | None) -> "Gate | None":
        try:
            gate = self._parse_gate(text)
            if gate is not None:
                return gate.clustered(cluster_by)
            self.fault(place, gate_form_fault(text, self.metrics))
        except ValueError as error:
            self.fault(place, str(error))
        return None

    def _parse_gate(self, text: str) -> "Gate | None":
        """Return the gate of a text; the other rules are loaded for texts that begin with a call only."""
        if is_plain_limit(text):
            return LimitGate.from_text(text)
        from pytest_llmeval.gates import gate_of_text

        return gate_of_text(text, self._reference())

    def _reference(self) -> str:
        """Return the system over which a lift is a gain: the one that the suite names, or the one called so."""
        named = self.document.data.get("reference") if isinstance(self.document.data, Mapping) else None
        return named if isinstance(named, str) else _REFERENCE

    def read_target(self, entry: Any) -> "TargetSpec | None":
        """Read ``target``."""
        if entry is None:
            return None
        from pytest_llmeval.targets import TargetSpec, target_faults

        spec = TargetSpec(entry) if isinstance(entry, str) else self.check(TargetSpec, entry, ("target",))
        if spec is None:
            return None
        for path, message in target_faults(spec, self.document.objects):
            self.fault(("target", *path), message)
        return spec

    def read_repeats(self, entry: Any) -> Repeats:
        """Read ``repeats``: a number, or a mapping."""
        if isinstance(entry, int) and not isinstance(entry, bool):
            if not 1 <= entry <= _MOST_REPEATS:
                self.fault(("repeats",), f"found {entry}, expected 1 to {_MOST_REPEATS}")
                return Repeats()
            return Repeats(entry)
        if not isinstance(entry, Mapping):
            self.fault(("repeats",), f"found {describe(entry)}, expected a whole number or a mapping with 'times'")
            return Repeats()
        repeats: Repeats | None = self.check(Repeats, entry, ("repeats",))
        if repeats is not None and repeats.times > _MOST_REPEATS:
            self.fault(("repeats", "times"), f"found {repeats.times}, expected 1 to {_MOST_REPEATS}")
        return repeats or Repeats()

    def read_confidence(self, value: float | None) -> float | None:
        """Read ``confidence``."""
        if value is not None and not 0 < value < 1:
            self.fault(("confidence",), f"found {value}, expected a number between 0 and 1, such as 0.95")
        return value

    def read_compared(self, metrics: tuple[str, ...]) -> tuple[str, ...]:
        """Read ``compare_by``."""
        for number, name in enumerate(metrics):
            if fault := self.metric_fault(name, (PASS_RATE,)):
                self.fault(("compare_by", number), fault)
        return metrics

    def read_inputs(self, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Read ``inputs``, each of which must match a file."""
        for number, pattern in enumerate(patterns):
            try:
                with searching_within(self.root):
                    files = input_files(self.path.parent, pattern)
            except ValueError as error:
                self.fault(("inputs", number), str(error))
                continue
            if Path(pattern).is_absolute() or not files:
                self.fault(("inputs", number), f"found {pattern!r}, expected a relative pattern that matches a file")
        return patterns

    @cached_property
    def _reader(self) -> "CheckReader":
        from pytest_llmeval.evaluators import CheckReader

        return CheckReader(self.registry.checks, self)

    def read_checks(self, entries: Any, place: tuple[str | int, ...]) -> "tuple[Check, ...]":
        """Read ``checks``, of the suite or of a case."""
        return () if entries in ([], ()) else self._reader.read(entries, place)

    def checks_evaluator(self, cases: Iterable[Case] = ()) -> "Checks":
        """Return the evaluator of the suite's checks, and of those of cases."""
        from pytest_llmeval.evaluators import checks_evaluator

        return checks_evaluator(self.shared_checks, (check for case in cases for check in case.checks))

    def read_script(self, messages: Any) -> list[dict[str, str]]:
        """Read ``messages`` of a source's row."""
        entry = self.check(CaseEntry, {"messages": messages}, ())
        if entry is None:
            return []
        if fault := script_fault(entry.messages):
            self.fault(("messages",), fault)
        return script_of(entry.messages)

    def read_file(self, name: str, place: tuple[str | int, ...]) -> Any:
        """Return the text or the JSON data of a file next to the suite file; ``None`` where it cannot be read."""
        try:
            target = (self.path.parent / name).resolve()
            if not self.is_inside(name):
                self.fault(place, self.outside_fault(name))
                return None
            check_regular(target, name)
            return read_json(target, name) if target.suffix == ".json" else target.read_text(encoding="utf-8-sig")
        except SuiteError as error:
            for each in error.faults:
                self.faults.append(each if each.line else self.document.fault(place, f"{name!r}: {each.message}"))
        except UnicodeDecodeError as error:
            self.fault(
                place,
                f"found {name!r} with byte 0x{error.object[error.start]:02x} at offset {error.start}, expected UTF-8",
            )
        except (OSError, RuntimeError, ValueError) as error:
            reason = "embedded null byte" if "\0" in name else error  # in words of no version of Python
            self.fault(place, f"found {name!r}, which cannot be read ({reason}), expected a file")
        return None


def _with_paths(evaluator: Evaluator, folder: Path) -> Evaluator:
    """Read options that name files or folders from the suite file's folder, as everything in it is."""
    named = {each.name: getattr(evaluator, each.name) for each in fields(evaluator) if each.metadata.get("path")}
    changes = {name: _placed(value, folder) for name, value in named.items() if value is not None}
    return replace(evaluator, **changes)


def _placed(value: Any, folder: Path) -> Any:
    if isinstance(value, Mapping):
        return {name: _placed(file, folder) for name, file in value.items()}
    return tuple(_placed(file, folder) for file in value) if isinstance(value, tuple) else str(folder / value)


def _files(value: str | tuple[str, ...] | Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the names in an option that names a file, several or none."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return tuple(value.values())
    return value if isinstance(value, tuple) else (value,)


def _check_names(metrics: MetricIndex) -> None:
    """Refuse error buckets and tables of metrics that nobody reports: they would stay empty.

    Raises:
        ValueError: One is about a metric that its evaluator does not declare.
    """
    for label, evaluator in metrics.evaluators.items():
        names = [(f"error bucket {bucket.name!r}", bucket.metric) for bucket in evaluator.error_buckets()]
        names += [(f"table {table.title!r}", name) for table in evaluator.tables() for name in metric_names(table)]
        for what, name in names:
            if metrics.find(metrics.full_name(label, name)) is None:
                known = [each.metric.name for each in metrics.declared[label]]
                raise ValueError(f"{what}: {unknown_name('metric', name, known)}")


def check_name_faults(
    entry: Any, gates: "Sequence[Gate]", checks: "Checks"
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield place and message of each limit on ``check[NAME]`` for a name that no check has: nothing would miss it.

    Args:
        entry: A suite file without faults.
        gates: Its gates.
        checks: The evaluator of its checks.
    """
    known = [checks.metric_of(name) for name in sorted(checks.names)]
    limited: dict[tuple[str | int, ...], str] = {}
    for number, gate in enumerate(gates):
        form = ("metric",) if isinstance(entry.gates[number], Mapping) else ()
        limited["gates", number, *form] = gate.metric
    limited |= {("thresholds", metric): metric for metric in entry.thresholds}
    for number, case in enumerate(entry.cases):
        limited |= {("cases", number, "thresholds", metric): metric for metric in case.get("thresholds") or ()}
    for place, metric in limited.items():
        if metric.startswith("check[") and metric not in known:
            yield place, f"found the unknown metric {metric!r}{expected_name(metric, known)}"


def metric_choices(kind: type[Evaluator]) -> tuple[str, ...]:
    """Return all values of the option ``metrics``; empty if there is no such option, or it takes any text."""
    if "metrics" not in {each.name for each in fields(kind)}:
        return ()
    try:
        items, *_ = get_args(get_type_hints(kind).get("metrics"))
    except (NameError, TypeError, ValueError):  # hints of users that only type checkers can resolve
        return ()
    choices: tuple[str, ...] = get_args(items)
    return choices
