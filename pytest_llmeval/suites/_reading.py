"""One reading of a suite file."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core import (
    Case,
    Evaluator,
    Fault,
    Metric,
    MetricIndex,
    Parts,
    SuiteError,
    Turn,
    suggest,
    unknown_name,
)
from pytest_llmeval.data import DeclaredType, Document, InputFile
from pytest_llmeval.numbers import UsageEvaluator
from pytest_llmeval.suites._registry import Registry

if TYPE_CHECKING:
    from pytest_llmeval.evaluators import Check, CheckReader, Checks

SUITE_METRICS = (Metric.PASS_RATE, *(metric.name for metric in UsageEvaluator().describe()))
"""Metrics of every suite."""


class SuiteReading:
    """One reading of a suite file, which collects the faults of the file.

    Attributes:
        path: The suite file.
        registry: The evaluators and sources that it may name.
        document: Its content.
        root: Files of single cases, and those that judges are shown, may not lie outside this folder.
        entry: Its top level, validated.
        values: The keys read so far.
        faults: The faults so far.
        notes: Remarks of its source that are no faults.
        metrics: Those of the evaluators read so far.
        knows_metrics: False once it is not known which metrics an evaluator with a fault would have.
        possible: The metrics of evaluators with one faulty option, without it.
        on: Label of an evaluator to what it reads, where its entry has one.
        turns: Label of an evaluator to the turns that it reads, where its entry has one.
        systems: The names of the suite's systems.
        shared_checks: The suite's own checks, which hold for every case.
        checked: Whether the suite or one of its cases has checks.
    """

    entry: Any

    def __init__(self, path: Path, registry: Registry, document: Document, root: Path) -> None:
        self.path = path
        self.registry = registry
        self.document = document
        self.root = root
        self.values: dict[str, Any] = {}
        self.faults: list[Fault] = []
        self.notes: list[Fault] = []
        self.metrics = MetricIndex.from_evaluators({})
        self.knows_metrics = True
        self.possible: list[MetricIndex] = []
        self._owners = dict.fromkeys(SUITE_METRICS, "the suite")
        self.on: dict[str, str] = {}
        self.turns: dict[str, Turn] = {}
        self.systems: Sequence[str] = ()
        self.shared_checks: tuple[Check, ...] = ()
        self.checked = False

    def check(self, kind: Any, data: Any, path: Sequence[str | int]) -> Any:
        """A validated part of the suite's document; ``None`` if it has faults."""
        value, faults = DeclaredType(kind).check(data, self.document, path)
        self.faults += faults
        return value

    def fault(self, path: Sequence[str | int], message: str, *, key: bool = False) -> None:
        """Add a fault at a place of the suite's document."""
        self.faults.append(self.document.fault(path, message, key=key))

    def unknown(
        self, path: Sequence[str | int], kind: str, name: str, known: Sequence[str], *, key: bool = True
    ) -> None:
        """Add the fault of an unknown name, which a conftest.py may register if no known name was probably meant."""
        absent = "" if suggest(name, known) else f"{kind} {name}"
        self.faults.append(self.document.fault(path, unknown_name(kind, name, known), key=key, unregistered=absent))

    def fault_inside(self, path: Sequence[str | int], value: str, offset: int, message: str) -> None:
        """Add a fault of one character of a text in the suite file."""
        self.faults.append(self.document.fault_inside(path, value, offset, message))

    def is_expression(self, text: str, path: Sequence[str | int]) -> bool:
        """Whether a text is a JMESPath, after adding the fault if it is none."""
        fault = Parts.path_fault(text)
        if fault is not None:
            self.fault_inside(path, text, *fault)
        return fault is None

    def add_metrics(self, built: MetricIndex, path: tuple[str | int, ...]) -> None:
        """Add an evaluator, unless its name or one of its metrics is taken."""
        ((label, declared),) = built.declared.items()
        if label in self.metrics.evaluators:
            self.fault(path, f"found {label!r} twice, expected distinct names: rename one with 'as' (as_= in Python)")
            return
        self.metrics = self.metrics.extended(built)
        own = Counter(entry.metric.name for entry in declared)
        for entry in declared:
            bare, name = entry.metric.name, built.full_name(label, entry.metric.family)
            if self._owners.get(name, label) != label or own[bare] > 1:
                self.fault(
                    path,
                    f"found metric {bare!r}, which {self._owners[name]!r} reports too, expected distinct names: "
                    "rename this evaluator with 'as'",
                )
            self._owners.setdefault(name, label)

    def add_evaluator(self, evaluator: Evaluator, path: tuple[str | int, ...]) -> None:
        """Add an evaluator under its own name."""
        self.add_metrics(MetricIndex.from_evaluators({evaluator.name: evaluator}), path)

    def metric_fault(self, metric: str, extra: Collection[str] = (), after: Collection[str] = ()) -> str | None:
        """The fault of the name of a metric in the suite; ``None`` for known ones."""
        indices = (self.metrics, *self.possible)
        if metric in extra or not self.knows_metrics or any(index.find(metric) is not None for index in indices):
            return None
        declared = (entry.name for index in indices for metrics in index.declared.values() for entry in metrics)
        known = [*extra, *declared, *after]
        return unknown_name("metric", metric, known)

    def is_inside(self, name: str) -> bool:
        """Whether a file next to the suite file lies in the folder that it may name files of."""
        try:
            return (self.path.parent / name).resolve().is_relative_to(self.root.resolve())
        except ValueError:  # a NUL character: reading reports it
            return True

    def outside_fault(self, name: str) -> str:
        """The fault of a name of a file that is not inside."""
        return f"found {name!r}, which is outside the folder {self.root.name!r}, expected a file inside it"

    def read_file(self, name: str, place: tuple[str | int, ...]) -> Any:
        """The text or the JSON data of a file next to the suite file; ``None`` where it cannot be read."""
        try:
            target = (self.path.parent / name).resolve()
            if not self.is_inside(name):
                self.fault(place, self.outside_fault(name))
                return None
            file = InputFile(target, name)
            file.check_regular()
            return file.read_json().data if target.suffix == ".json" else target.read_text(encoding="utf-8-sig")
        except SuiteError as error:
            for fault in error.faults:
                self.faults.append(fault if fault.line else self.document.fault(place, f"{name!r}: {fault.message}"))
        except UnicodeDecodeError as error:
            self.fault(
                place,
                f"found {name!r} with byte 0x{error.object[error.start]:02x} at offset {error.start}, expected UTF-8",
            )
        except (OSError, RuntimeError, ValueError) as error:
            reason = "embedded null byte" if "\0" in name else error  # in words of no version of Python
            self.fault(place, f"found {name!r}, which cannot be read ({reason}), expected a file")
        return None

    @cached_property
    def _check_reader(self) -> "CheckReader":
        from pytest_llmeval.evaluators import CheckReader

        return CheckReader(self.registry.checks, self)

    def read_checks(self, entries: Any, place: tuple[str | int, ...]) -> "tuple[Check, ...]":
        """The checks under ``checks``, of the suite or of a case."""
        return () if entries in ([], ()) else self._check_reader.read(entries, place)

    def checks_evaluator(self, cases: Iterable[Case] = ()) -> "Checks":
        """The evaluator of the suite's checks, and of those of cases."""
        from pytest_llmeval.evaluators import Checks

        return Checks.of_checks(self.shared_checks, (check for case in cases for check in case.checks))
