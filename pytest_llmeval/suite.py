"""A suite: what a suite file says, checked and ready to run."""

__all__ = ("CaseEntry", "GateEntry", "LimitEntry", "Suite", "SuiteEntry", "TargetSpec")

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from pytest_llmeval.case import Case
from pytest_llmeval.errors import Problem
from pytest_llmeval.evaluator import Evaluator
from pytest_llmeval.gates import Gate
from pytest_llmeval.thresholds import Limit

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
        problems: Faults that do not concern every case; the good cases run, but gates are not judged.
        faulty: How many cases cannot run because of them.
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
