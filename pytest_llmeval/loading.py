"""Reading a suite file and the files that it names, with every fault told."""

__all__ = ("load_suite",)

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from pytest_llmeval.case import MISSING, Case
from pytest_llmeval.errors import EvaluatorError, Problem, SuiteError
from pytest_llmeval.evaluator import Evaluator, Metric
from pytest_llmeval.gates import PASS_RATE, Gate, gate_from_mapping, parse_gate
from pytest_llmeval.naming import suggest
from pytest_llmeval.reading import Document, read_document, read_json, render_path
from pytest_llmeval.registry import Registry
from pytest_llmeval.sources import SOURCES, get_source
from pytest_llmeval.sources.values import case_id, id_fault, json_text
from pytest_llmeval.suite import CaseEntry, GateEntry, LimitEntry, Suite, SuiteEntry, TargetSpec
from pytest_llmeval.summary import metric_prefix
from pytest_llmeval.text_file import check_regular
from pytest_llmeval.thresholds import Limit
from pytest_llmeval.validation import check, describe

if TYPE_CHECKING:
    from pytest_llmeval.sources.base import Source


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
        self.knows_metrics = True  # false once an evaluator could not be built: its metrics would be called unknown

    def load(self) -> Suite:
        entry = self._top_level()
        evaluators = self._evaluators(entry.evaluators)
        gates = self._gates(entry.gates, evaluators)
        suite = Suite(
            name=entry.suite or self.path.stem.removesuffix(".eval"),
            path=self.path,
            evaluators=evaluators,
            cases=(),
            thresholds=self._limits(entry.thresholds, ("thresholds",), evaluators),
            gates=gates,
            target=self._target(entry.target),
            group_by=tuple(dict.fromkeys([*entry.group_by, *(gate.by for gate in gates if gate.by)])),
            bulk=entry.mode == "bulk",
            confidence=self._confidence(entry.confidence),
            description=entry.description or "",
        )
        source = self._source(entry.source)
        broken = bool(self.problems)
        suite = self._with_cases(suite, entry, source)
        if broken or not suite.cases:
            raise SuiteError(suite.problems)
        return suite

    def _top_level(self) -> SuiteEntry:
        """Check the top level; what is wrong there is left out, so that faults further down are told as well."""
        data = self.document.data
        if not isinstance(data, Mapping):
            self._fault((), f"found {describe(data)}, expected a mapping with 'evaluators' and 'cases' or 'source'")
            raise SuiteError(self.problems)
        data = {key: value for key, value in data.items() if key != "$schema"}  # how JSON files name theirs to editors
        entry = self._check(SuiteEntry, data, ())
        if entry is None:
            wrong = [problem.path for problem in self.problems]
            kept = {key: value for key, value in data.items() if not any(_leads_through(key, path) for path in wrong)}
            entry, _ = check(TypeAdapter(SuiteEntry), SuiteEntry, {"evaluators": [], **kept}, self.document, ())
        assert isinstance(entry, SuiteEntry)
        return entry

    def _with_cases(self, suite: Suite, entry: SuiteEntry, source: "Source | None") -> Suite:
        inline = [self._case(each, number, suite) for number, each in enumerate(entry.cases)]
        found = [each for each in inline if each is not None]
        faulty = len(inline) - len(found)
        if source is not None:
            loaded, bad_rows = self._from_source(source, suite)
            found += loaded
            faulty += bad_rows
        cases: dict[str, Case] = {}
        for case in found:
            fault = self._case_fault(case, cases, suite)
            if fault is None:
                cases[case.id] = case
            else:
                place = self.document.problem(("cases",), fault)
                self.problems.append(replace(place, line=case.line, column=1) if case.line else place)
                faulty += 1
        if not found and not self.problems:
            self._fault((), "found no case, expected cases or a source that has some")
        problems = sorted(self.problems, key=lambda each: (each.file != self.document.file, each))
        return replace(suite, cases=tuple(cases.values()), problems=tuple(problems), faulty=faulty)

    def _from_source(self, source: "Source", suite: Suite) -> tuple[list[Case], int]:
        """Return the cases of a source, and how many of its rows have faults."""
        problems: list[Problem] = []
        cases = [self._with_limits(case, source, suite) for case in source.load(self.path.parent, problems)]
        self.problems += problems
        data = Path(source.path).name
        bad_rows = {problem.line for problem in problems if problem.line and Path(problem.file).name == data}
        return cases, len(bad_rows)

    def _with_limits(self, case: Case, source: "Source", suite: Suite) -> Case:
        """Check the thresholds that a row of a source carries; their faults are told with the row's line."""
        if not case.thresholds:
            return case
        before = len(self.problems)
        limits = self._limits(case.thresholds, ("thresholds",), suite.evaluators)
        self.problems[before:] = [
            replace(problem, file=source.path, line=case.line, column=1) for problem in self.problems[before:]
        ]
        return replace(case, thresholds=limits)

    def _check(self, kind: Any, data: Any, path: Sequence[str | int]) -> Any:
        value, problems = check(TypeAdapter(kind), kind, data, self.document, path)
        self.problems += problems
        return value

    def _fault(self, path: Sequence[str | int], message: str, *, key: bool = False) -> None:
        self.problems.append(self.document.problem(path, message, key=key))

    def _evaluators(self, entries: Sequence[Any]) -> dict[str, Evaluator]:
        if not entries:
            self.knows_metrics = False
        if not entries and not self.problems:
            self._fault(("evaluators",), "found an empty list, expected at least one evaluator")
        evaluators: dict[str, Evaluator] = {}
        owner = {PASS_RATE: "the suite"}
        for number, entry in enumerate(entries):
            path: tuple[str | int, ...] = ("evaluators", number)
            built = self._evaluator(entry, path)
            if built is None:
                self.knows_metrics = False
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
                        path,
                        f"found metric {metric.name!r}, which {owner[name]!r} reports too, expected distinct names: "
                        "give this evaluator a name with 'as'",
                    )
                owner.setdefault(name, label)
        return evaluators

    def _evaluator(self, entry: Any, path: tuple[str | int, ...]) -> tuple[str, Evaluator] | None:
        if isinstance(entry, str):
            name, given = entry, None
        elif isinstance(entry, Mapping) and len(entry) == 1:
            name, given = next(iter(entry.items()))
            path = (*path, name)
        else:
            self._fault(path, f"found {describe(entry)}, expected NAME or {{NAME: options}}")
            return None
        if given is not None and not isinstance(given, Mapping):
            self._fault(path, f"found {describe(given)}, expected a mapping of options")
            return None
        options: dict[str, Any] = dict(given or {})
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
        return None if built is None else (label, _with_paths(built, self.path.parent))

    def _metric_fault(self, metric: str, evaluators: Mapping[str, Evaluator], extra: Iterable[str] = ()) -> str | None:
        known = list(extra)
        for label, evaluator in evaluators.items():
            prefix = metric_prefix(label, evaluator)
            for each in evaluator.describe():
                known.append(prefix + each.name)
                if _names(metric, prefix, each):
                    return None
        if metric in known or not self.knows_metrics:
            return None
        return f"found the unknown metric {metric!r}, expected one of {', '.join(known)}{suggest(metric, known)}"

    def _lower_is_better(self, metric: str, evaluators: Mapping[str, Evaluator]) -> bool:
        return any(
            not each.higher_is_better and _names(metric, metric_prefix(label, evaluator), each)
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
                self._fault(
                    place,
                    f"found a bare number, which is a minimum, but lower is better here, expected {{max: {entry}}}",
                )
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
                self._fault(
                    (*path, f"{name}_file"),
                    f"found both {name!r} and '{name}_file', expected one of them",
                    key=True,
                )
        prediction = data.get("prediction", MISSING)
        if entry.prediction_file is not None:
            prediction = self._file(entry.prediction_file, (*path, "prediction_file"))
        expected = entry.expected
        if entry.expected_file is not None:
            expected = self._file(entry.expected_file, (*path, "expected_file"))
        case = Case(
            id=case_id(entry.id) or "" if entry.id is not None else str(number + 1),
            input=entry.input,
            expected=expected,
            prediction=prediction,
            labels={key: json_text(value) for key, value in entry.labels.items()},
            tags=entry.tags,
            thresholds=self._limits(entry.thresholds, (*path, "thresholds"), suite.evaluators),
            line=self.document.locate(path)[0],
        )
        return case if len(self.problems) == before else None

    def _file(self, name: str, place: tuple[str | int, ...]) -> Any:
        try:
            target = (self.path.parent / name).resolve()
            if not target.is_relative_to(self.root.resolve()):
                self._fault(
                    place,
                    f"found {name!r}, which leaves the folder {self.root.name!r}, expected a file inside it",
                )
                return None
            check_regular(target, name)
            return read_json(target, name) if target.suffix == ".json" else target.read_text(encoding="utf-8-sig")
        except SuiteError as error:
            for each in error.problems:
                self.problems.append(each if each.line else self.document.problem(place, f"{name!r}: {each.message}"))
        except UnicodeDecodeError as error:
            self._fault(
                place,
                f"found {name!r} with byte 0x{error.object[error.start]:02x} at offset {error.start}, expected UTF-8",
            )
        except (OSError, RuntimeError, ValueError) as error:
            self._fault(place, f"found {name!r}, which cannot be read ({error}), expected a file")
        return None

    def _case_fault(self, case: Case, taken: Mapping[str, Case], suite: Suite) -> str | None:
        fault = id_fault(case.id) or _tag_fault(case.tags)
        if fault is not None:
            return fault
        if case.id.startswith("gate["):
            return f"found the id {case.id!r}, expected one that does not read like a gate"
        if case.id in taken:
            return f"found the id {case.id!r} twice, expected it once (first in line {taken[case.id].line})"
        for evaluator in suite.evaluators.values():
            for wrong in evaluator.check(case):
                return f"case {case.id!r}, evaluator {evaluator.name!r}: {wrong}"
        return None


def _with_paths(evaluator: Evaluator, folder: Path) -> Evaluator:
    """Read options that name files or folders from the suite file's folder, as everything in it is."""
    named = {each.name: getattr(evaluator, each.name) for each in fields(evaluator) if each.metadata.get("path")}
    return replace(evaluator, **{name: str(folder / value) for name, value in named.items() if value is not None})


def _names(metric: str, prefix: str, declared: Metric) -> bool:
    """Return whether a name is that of a declared metric, or of a member of a declared family."""
    in_family = "[" in declared.name and metric.startswith(prefix + declared.family) and metric.endswith("]")
    return in_family or metric == prefix + declared.name


def _leads_through(key: str, path: str) -> bool:
    """Return whether a path as text begins with a key."""
    top = render_path([key])
    return path == top or path.startswith((f"{top}.", f"{top}["))


_MARKS_WITH_ARGUMENTS = ("parametrize", "usefixtures", "filterwarnings", "llmeval")


def _tag_fault(tags: Iterable[str]) -> str | None:
    """Say what is wrong with tags, which become pytest marks."""
    for tag in tags:
        if not tag.replace("-", "_").isidentifier() or tag.startswith("_"):
            return f"found the tag {tag!r}, expected letters, digits, '-' and '_'"
        if tag in _MARKS_WITH_ARGUMENTS:
            return f"found the tag {tag!r}, which means something else to pytest, expected another"
    return None
