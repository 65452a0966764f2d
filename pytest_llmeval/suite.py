"""The suite file: its model, and reading it with every fault named."""

__all__ = ("Suite", "TargetSpec", "load_suite")

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pytest_llmeval.case import MISSING, Case
from pytest_llmeval.errors import EvaluatorError, Problem, SuiteError
from pytest_llmeval.evaluator import Evaluator
from pytest_llmeval.gates import PASS_RATE, Gate, gate_from_mapping, parse_gate
from pytest_llmeval.reading import Document, read_document, read_json, suggest
from pytest_llmeval.registry import Registry
from pytest_llmeval.sources import SOURCES, get_source
from pytest_llmeval.summary import metric_prefix
from pytest_llmeval.thresholds import Limit
from pytest_llmeval.validation import check, describe

if TYPE_CHECKING:
    from pytest_llmeval.sources.base import Source

STRICT = {"extra": "forbid"}
"""Pydantic configuration of everything that a suite file can say."""


@dataclass(frozen=True)
class TargetSpec:
    """Where predictions come from: ``module:name`` of a Python callable.

    Attributes:
        python: The callable; it receives the case's input and returns (or awaits) the prediction.
        timeout: Seconds that one call may take; ``None`` waits for ever.
    """

    __pydantic_config__: ClassVar = STRICT

    python: str
    timeout: float | None = None


@dataclass(frozen=True)
class CaseEntry:
    """A case as a suite file writes it."""

    __pydantic_config__: ClassVar = STRICT

    id: str | int | None = None
    input: Any = None
    expected: Any = None
    expected_file: str | None = None
    prediction: Any = None
    prediction_file: str | None = None
    labels: dict[str, str | int | float | bool] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    thresholds: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GateEntry:
    """A gate in its mapping form."""

    __pydantic_config__: ClassVar = STRICT

    metric: str
    min: float | None = None
    max: float | None = None
    by: str | None = None
    min_cases: int = 1
    max_errors: int = 0
    partial: bool = False


@dataclass(frozen=True)
class LimitEntry:
    """A threshold in its mapping form."""

    __pydantic_config__: ClassVar = STRICT

    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class SuiteEntry:
    """The top level of a suite file; parts with a grammar of their own are validated one by one."""

    __pydantic_config__: ClassVar = STRICT

    evaluators: list[Any]
    suite: str | None = None
    description: str | None = None
    target: Any = None
    group_by: tuple[str, ...] = ()
    mode: Literal["items", "bulk"] = "items"
    confidence: float | None = 0.95
    thresholds: dict[str, Any] = field(default_factory=dict)
    gates: list[Any] = field(default_factory=list)
    cases: list[Any] = field(default_factory=list)
    source: Any = None


@dataclass(frozen=True)
class Suite:
    """A suite that can run.

    Attributes:
        name: Of the suite, in reports.
        path: The file.
        evaluators: Label to evaluator; the label is the evaluator's name unless the file renames it.
        cases: Those without fault, in file order.
        thresholds: Metric name to limit, for cases that do not set their own.
        gates: Limits on the whole suite.
        target: Where predictions come from, for cases that carry none.
        group_by: Labels to report by; those that gates judge by are among them.
        bulk: Whether all cases run in one test item.
        confidence: Of intervals; ``None`` for none.
        problems: Faults of single cases; the others run, but gates are not judged.
        faulty: How many cases have faults.
    """

    name: str
    path: Path
    evaluators: Mapping[str, Evaluator]
    cases: tuple[Case, ...]
    thresholds: Mapping[str, Limit] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()
    target: TargetSpec | None = None
    group_by: tuple[str, ...] = ()
    bulk: bool = False
    confidence: float | None = 0.95
    description: str = ""
    problems: tuple[Problem, ...] = ()
    faulty: int = 0

    @property
    def total(self) -> int:
        """How many cases the file has, faulty ones included."""
        return len(self.cases) + self.faulty

    def limits(self, case: Case) -> Mapping[str, Limit]:
        """Return the limits of a case: the suite's, replaced by its own."""
        return {**self.thresholds, **case.thresholds} if case.thresholds else self.thresholds


def load_suite(path: Path, registry: Registry, *, root: Path, shown: str | None = None) -> Suite:
    """Read a suite file and the files that it names.

    Args:
        path: The suite file.
        registry: The evaluators that it may name.
        root: Files of single cases may not lie outside this folder.
        shown: How to call the file in messages; default: its path.

    Returns:
        The suite. Faults of single cases are in `Suite.problems`.

    Raises:
        SuiteError: The file cannot be read, or something that concerns every case is wrong; all faults are listed.
    """
    return _Loader(path, registry, root, shown or str(path)).load()


class _Loader:
    """One reading of one suite file; collects every fault."""

    def __init__(self, path: Path, registry: Registry, root: Path, shown: str) -> None:
        self.path = path
        self.registry = registry
        self.root = root
        self.document: Document = read_document(path, shown)
        self.problems: list[Problem] = []

    def load(self) -> Suite:
        entry = self._check(SuiteEntry, self.document.data, ())
        if entry is None:
            raise SuiteError(self.problems)
        evaluators = self._evaluators(entry.evaluators)
        suite = Suite(
            name=entry.suite or self.path.name.split(".eval.")[0],
            path=self.path,
            evaluators=evaluators,
            cases=(),
            thresholds=self._limits(entry.thresholds, ("thresholds",), evaluators),
            gates=self._gates(entry.gates, evaluators),
            target=self._target(entry.target),
            bulk=entry.mode == "bulk",
            confidence=self._confidence(entry.confidence),
            description=entry.description or "",
        )
        by = [gate.by for gate in suite.gates if gate.by]
        suite = replace(suite, group_by=tuple(dict.fromkeys([*entry.group_by, *by])))
        source = self._source(entry.source)
        if self.problems:
            raise SuiteError(self.problems)
        return self._with_cases(suite, entry, source)

    def _with_cases(self, suite: Suite, entry: SuiteEntry, source: "Source | None") -> Suite:
        inline = [self._case(each, number, suite) for number, each in enumerate(entry.cases)]
        found = [each for each in inline if each is not None]
        faulty = len(inline) - len(found)
        if source is not None:
            before = len(self.problems)
            found += source.load(self.path.parent, self.problems)
            faulty += len(self.problems) - before
        cases = []
        taken: dict[str, Case] = {}
        for case in found:
            fault = self._case_fault(case, taken, suite)
            if fault is None:
                taken[case.id] = case
                cases.append(case)
            else:
                self.problems.append(fault)
                faulty += 1
        if not found and not self.problems:
            self.problems.append(self.document.problem((), "found no case, expected cases or a source that has some"))
        if not cases:
            raise SuiteError(self.problems)
        return replace(suite, cases=tuple(cases), problems=tuple(self.problems), faulty=faulty)

    def _check(self, kind: Any, data: Any, path: Sequence[str | int]) -> Any:
        from pydantic import TypeAdapter

        value, problems = check(TypeAdapter(kind), kind, data, self.document, path)
        self.problems += problems
        return value

    def _fault(self, path: Sequence[str | int], message: str, *, key: bool = False) -> None:
        self.problems.append(self.document.problem(path, message, key=key))

    def _evaluators(self, entries: Sequence[Any]) -> dict[str, Evaluator]:
        if not entries:
            self._fault(("evaluators",), "found an empty list, expected at least one evaluator")
        evaluators: dict[str, Evaluator] = {}
        owner: dict[str, str] = {}
        for number, entry in enumerate(entries):
            path: tuple[str | int, ...] = ("evaluators", number)
            built = self._evaluator(entry, path)
            if built is None:
                continue
            label, evaluator = built
            if label in evaluators:
                self._fault(path, f"found {label!r} a second time, expected another name: give it one with 'as'")
                continue
            evaluators[label] = evaluator
            for metric in evaluator.describe():
                name = metric_prefix(label, evaluator) + metric.family
                if name in owner:
                    self._fault(
                        path, f"found metric {metric.name!r}, which {owner[name]!r} reports too, expected distinct names: "
                        "give this evaluator a name with 'as'"
                    )
                owner.setdefault(name, label)
        return evaluators

    def _evaluator(self, entry: Any, path: tuple[str | int, ...]) -> tuple[str, Evaluator] | None:
        if isinstance(entry, str):
            name, options = entry, {}
        elif isinstance(entry, Mapping) and len(entry) == 1:
            name, options = next(iter(entry.items()))
            path = (*path, name)
        else:
            self._fault(path, f"found {describe(entry)}, expected NAME or {{NAME: options}}")
            return None
        if options is not None and not isinstance(options, Mapping):
            self._fault(path, f"found {describe(options)}, expected a mapping of options")
            return None
        options = dict(options or {})
        label = options.pop("as", name)
        if not isinstance(label, str) or not label.isprintable() or not label:
            self._fault((*path, "as"), f"found {describe(label)}, expected a name")
            return None
        try:
            evaluator = self.registry.get(name)
        except EvaluatorError as error:
            self._fault(path, str(error), key=True)
            return None
        built = self._check(evaluator, options, path)
        return None if built is None else (label, built)

    def _metric_fault(self, metric: str, evaluators: Mapping[str, Evaluator], extra: Iterable[str] = ()) -> str | None:
        known = list(extra)
        for label, evaluator in evaluators.items():
            prefix = metric_prefix(label, evaluator)
            for each in evaluator.describe():
                known.append(prefix + each.name)
                if "[" in each.name and metric.startswith(prefix + each.family) and metric.endswith("]"):
                    return None
        if metric in known or not evaluators:
            return None
        return f"found the unknown metric {metric!r}, expected one of {', '.join(known)}{suggest(metric, known)}"

    def _lower_is_better(self, metric: str, evaluators: Mapping[str, Evaluator]) -> bool:
        return any(
            not each.higher_is_better and metric == metric_prefix(label, evaluator) + each.name
            for label, evaluator in evaluators.items()
            for each in evaluator.describe()
        )

    def _limits(
        self, entries: Mapping[str, Any], path: tuple[str | int, ...], evaluators: Mapping[str, Evaluator]
    ) -> dict[str, Limit]:
        limits = {}
        for metric, entry in entries.items():
            place = (*path, metric)
            if fault := self._metric_fault(metric, evaluators):
                self._fault(place, fault, key=True)
            limit = self._limit(entry, place)
            if limit is None:
                continue
            if not isinstance(entry, Mapping) and self._lower_is_better(metric, evaluators):
                self._fault(place, f"found a bare number, which is a minimum, but lower is better here, expected {{max: {entry}}}")
            limits[metric] = limit
        return limits

    def _limit(self, entry: Any, place: tuple[str | int, ...]) -> Limit | None:
        if isinstance(entry, int | float) and not isinstance(entry, bool):
            return Limit(min=float(entry))
        if not isinstance(entry, Mapping):
            self._fault(place, f"found {describe(entry)}, expected a number or {{min, max}}")
            return None
        checked = self._check(LimitEntry, entry, place)
        if checked is None:
            return None
        if checked.min is None and checked.max is None:
            self._fault(place, "found neither min nor max, expected at least one of them")
        elif checked.min is not None and checked.max is not None and checked.min > checked.max:
            self._fault(place, f"found min {checked.min} above max {checked.max}, expected min <= max")
        return Limit(checked.min, checked.max)

    def _gates(self, entries: Sequence[Any], evaluators: Mapping[str, Evaluator]) -> tuple[Gate, ...]:
        gates: dict[str, Gate] = {}
        for number, entry in enumerate(entries):
            place: tuple[str | int, ...] = ("gates", number)
            gate = self._gate(entry, place)
            if gate is None:
                continue
            if fault := self._metric_fault(gate.metric, evaluators, extra=(PASS_RATE,)):
                self._fault((*place, "metric") if isinstance(entry, Mapping) else place, fault)
            if str(gate) in gates:
                self._fault(place, f"found the gate {str(gate)!r} a second time, expected it once")
            gates[str(gate)] = gate
        return tuple(gates.values())

    def _gate(self, entry: Any, place: tuple[str | int, ...]) -> Gate | None:
        try:
            if isinstance(entry, str):
                return parse_gate(entry)
            if isinstance(entry, Mapping):
                checked = self._check(GateEntry, entry, place)
                return None if checked is None else gate_from_mapping(vars(checked))
        except ValueError as error:
            self._fault(place, str(error))
            return None
        self._fault(place, f"found {describe(entry)}, expected text such as 'f1 >= 0.7' or a mapping with 'metric'")
        return None

    def _target(self, entry: Any) -> TargetSpec | None:
        if entry is None:
            return None
        spec = TargetSpec(entry) if isinstance(entry, str) else self._check(TargetSpec, entry, ("target",))
        if spec is None:
            return None
        module, colon, name = spec.python.partition(":")
        if not (colon and name and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))):
            self._fault(("target",), f"found {spec.python!r}, expected MODULE:NAME such as 'my_app.answers:answer'")
        if spec.timeout is not None and spec.timeout <= 0:
            self._fault(("target", "timeout"), f"found {spec.timeout}, expected seconds above 0")
        return spec

    def _confidence(self, value: float | None) -> float | None:
        if value is not None and not 0 < value < 1:
            self._fault(("confidence",), f"found {value}, expected a number between 0 and 1, such as 0.95")
        return value

    def _source(self, entry: Any) -> "Source | None":
        if entry is None:
            return None
        if not isinstance(entry, Mapping):
            self._fault(("source",), f"found {describe(entry)}, expected a mapping with 'format' and 'path'")
            return None
        options = dict(entry)
        name = options.pop("format", None)
        if name not in SOURCES:
            known = ", ".join(SOURCES)
            place = ("source", "format") if name is not None else ("source",)
            found = describe(name) if name is not None else "no 'format'"
            self._fault(place, f"found {found}, expected one of {known}{suggest(str(name), SOURCES)}")
            return None
        source: Source | None = self._check(get_source(name), options, ("source",))
        return source

    def _case(self, data: Any, number: int, suite: Suite) -> Case | None:
        before = len(self.problems)
        path = ("cases", number)
        entry = self._check(CaseEntry, data, path)
        if entry is None:
            return None
        for name in ("expected", "prediction"):
            if name in data and f"{name}_file" in data:
                self._fault((*path, f"{name}_file"), f"found both {name!r} and '{name}_file', expected one of them", key=True)
        prediction = data.get("prediction", MISSING)
        if entry.prediction_file is not None:
            prediction = self._file(entry.prediction_file, (*path, "prediction_file"))
        expected = entry.expected
        if entry.expected_file is not None:
            expected = self._file(entry.expected_file, (*path, "expected_file"))
        case = Case(
            id=str(entry.id) if entry.id is not None else str(number + 1),
            input=entry.input,
            expected=expected,
            prediction=prediction,
            labels={key: _label(value) for key, value in entry.labels.items()},
            tags=entry.tags,
            thresholds=self._limits(entry.thresholds, (*path, "thresholds"), suite.evaluators),
            line=self.document.locate(path)[0],
        )
        return case if len(self.problems) == before else None

    def _file(self, name: str, place: tuple[str | int, ...]) -> Any:
        target = (self.path.parent / name).resolve()
        if not target.is_relative_to(self.root.resolve()):
            self._fault(place, f"found {name!r}, which leaves the folder {self.root.name!r}, expected a file inside it")
            return None
        if target.suffix == ".json":
            try:
                return read_json(target, name)
            except SuiteError as error:
                self.problems += error.problems
                return None
        try:
            return target.read_text(encoding="utf-8-sig")
        except OSError as error:
            self._fault(place, f"found {name!r}, which cannot be read ({error.strerror}), expected a file")
        except UnicodeDecodeError as error:
            self._fault(place, f"found {name!r} with byte 0x{error.object[error.start]:02x} at offset {error.start}, expected UTF-8")
        return None

    def _case_fault(self, case: Case, taken: Mapping[str, Case], suite: Suite) -> Problem | None:
        place = ("cases",)
        fault = id_fault(case.id) or tag_fault(case.tags)
        if fault is None and case.id in taken:
            fault = f"found the id {case.id!r} a second time (first in line {taken[case.id].line}), expected distinct ids"
        if fault is None:
            for evaluator in suite.evaluators.values():
                fault = next(iter(evaluator.check(case)), None)
                if fault is not None:
                    fault = f"case {case.id!r}, {evaluator.name}: {fault}"
                    break
        if fault is None:
            return None
        located = self.document.problem(place, fault)
        return replace(located, line=case.line, column=1) if case.line else located


def _label(value: str | float | bool) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def id_fault(name: str) -> str | None:
    """Say what is wrong with a case id, which must be usable as the name of a test and on the command line."""
    if not name or name != name.strip():
        return f"found the id {name!r}, expected text without white space at its ends"
    if "::" in name:
        return f"found '::' in the id {name!r}, expected none: pytest splits names there"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return f"found a control character in the id {name!r}, expected printable text"
    if (name.startswith("__") and name.endswith("__")) or name.startswith("gate["):
        return f"found the id {name!r}, which is reserved, expected another"
    return None


_MARKS_WITH_ARGUMENTS = ("parametrize", "usefixtures", "filterwarnings", "llmeval")


def tag_fault(tags: Iterable[str]) -> str | None:
    """Say what is wrong with tags, which become pytest marks."""
    for tag in tags:
        if not tag.replace("-", "_").isidentifier() or tag.startswith("_"):
            return f"found the tag {tag!r}, expected letters, digits, '-' and '_'"
        if tag in _MARKS_WITH_ARGUMENTS:
            return f"found the tag {tag!r}, which means something else to pytest, expected another"
    return None
