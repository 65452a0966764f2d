"""Reading JSON reports of earlier runs: case scores without counts."""

__all__ = (
    "RecordedCase",
    "RecordedRun",
    "RecordedScores",
    "RecordedSuite",
    "RecordedUsage",
    "read_document",
    "read_report",
    "read_run",
    "results_of",
    "score_records",
)

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import EvaluatorError, SuiteError
from pytest_llmeval.core.evaluator import Evaluator, Metric
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.results import CaseOutcome, CaseRecord, MetricValue
from pytest_llmeval.data.files.documents import load_json
from pytest_llmeval.data.files.validation import check, describe
from pytest_llmeval.reports.json import SCHEMA_VERSION

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums


_Score: TypeAlias = Annotated[float, Field(ge=-1e100, le=1e100)]
"""A score; the sums and squares of larger numbers would be none."""


@dataclass(frozen=True)
class RecordedCase:
    """A case of a report."""

    id: str
    outcome: CaseOutcome
    metrics: dict[str, _Score | None] = field(default_factory=dict)
    reason: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    cluster: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    line: int = 0
    lines: dict[str, list[str]] = field(default_factory=dict)

    @property
    def ran(self) -> bool:
        """Whether it has scores that can be compared."""
        return self.outcome not in ("skipped", "not_run")


@dataclass(frozen=True)
class RecordedGroup:
    """A group of a report."""

    cases: int
    metrics: dict[str, MetricValue]


@dataclass(frozen=True)
class RecordedClusters:
    """What a report says of the clusters of a suite."""

    label: str


@dataclass(frozen=True)
class RecordedGate:
    """The verdict on a gate."""

    gate: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True)
class RecordedVerdict:
    """The verdict on a metric against its approved value."""

    metric: str
    outcome: str
    reason: str = ""
    kind: str = ""


@dataclass(frozen=True)
class RecordedUsage:
    """What a report says of the cost of a suite; ``None`` where that is not known."""

    verdicts: int = 0
    calls: int = 0
    cost_usd: float | None = None
    target_cost_usd: float | None = None


@dataclass(frozen=True)
class RecordedSuite:
    """A suite of a report."""

    suite: str
    path: str
    counts: dict[str, int]
    metrics: dict[str, MetricValue]
    cases: tuple[RecordedCase, ...]
    groups: dict[str, dict[str, RecordedGroup]] = field(default_factory=dict)
    lower_is_better: tuple[str, ...] = ()
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    clusters: RecordedClusters | None = None
    variant: str = ""
    gates: tuple[RecordedGate, ...] = ()
    snapshot: tuple[RecordedVerdict, ...] = ()
    usage: RecordedUsage | None = None

    @property
    def bare_name(self) -> str:
        """The name without the variant."""
        return self.suite.removesuffix(f"[{self.variant}]") if self.variant else self.suite

    def is_variant(self, name: str) -> bool:
        """Return whether it is the system, or the variant of the target, of a name; earlier reports say so in names."""
        return self.variant == name if self.variant else self.suite == name or self.suite.endswith(f"[{name}]")

    def only(self, ids: AbstractSet[str]) -> "RecordedSuite":
        """Return the suite with some of its cases."""
        return replace(self, cases=tuple(case for case in self.cases if case.id in ids))


@dataclass(frozen=True)
class RecordedStart:
    """When and of what a run was; empty where the report does not say it."""

    started_at: str = ""
    commit: str | None = None


@dataclass(frozen=True)
class RecordedRun:
    """A report."""

    suites: tuple[RecordedSuite, ...]
    run: RecordedStart = RecordedStart()
    faults: dict[str, list[str]] = field(default_factory=dict)


def read_report(path: Path) -> tuple[RecordedSuite, ...]:
    """Read the suites of a JSON report; see `read_run`."""
    return read_run(path).suites


def read_document(path: Path) -> tuple[Mapping[str, Any], tuple[RecordedSuite, ...]]:
    """Read all that a JSON report says, and its suites as `read_report` returns them; see `read_run`."""
    data, run = _read(path)
    return data, run.suites


def read_run(path: Path) -> RecordedRun:
    """Read a JSON report.

    Raises:
        SuiteError: The file cannot be read, or it is no report of a version known here.
    """
    return _read(path)[1]


def _read(path: Path) -> tuple[Mapping[str, Any], RecordedRun]:
    document = load_json(path, str(path))
    data = document.data
    if not isinstance(data, Mapping) or "schema_version" not in data:
        raise SuiteError([document.fault((), f"found {describe(data)}, expected a report of --llmeval-report")])
    version = data["schema_version"]
    if version != SCHEMA_VERSION:
        message = f"found {version!r}, expected {SCHEMA_VERSION}, the version that this program reads"
        raise SuiteError([document.fault(("schema_version",), message)])
    run, faults = check(RecordedRun, data, document, ())
    if faults:
        raise SuiteError(faults)
    assert isinstance(run, RecordedRun)
    for place, suite in enumerate(run.suites):
        ids: set[str] = set()
        for number, case in enumerate(suite.cases):
            if case.id in ids:
                message = f"found {case.id!r} twice, expected it once"
                raise SuiteError([document.fault(("suites", place, "cases", number, "id"), message)])
            ids.add(case.id)
    return data, run


def results_of(suites: Sequence[RecordedSuite], path: Path) -> list[RecordedSuite]:
    """Return the results of a suite file: the report names it from the folder in which pytest ran."""
    whole = path.resolve().parts
    named = [suite for suite in suites if whole[-len(Path(suite.path).parts) :] == Path(suite.path).parts]
    longest = max((len(Path(suite.path).parts) for suite in named), default=0)
    return [suite for suite in named if len(Path(suite.path).parts) == longest]


@dataclass(frozen=True)
class RecordedScores(Evaluator):
    """The mean of the scores that a report has of its cases.

    Attributes:
        metrics: Their names.
        lower_is_better: Those of which less is better.
        ranges: Metric to its smallest and its largest value; reports of earlier versions have none.
    """

    name = "recorded"
    metrics: tuple[str, ...] = ()
    lower_is_better: frozenset[str] = frozenset()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def describe(self) -> Sequence[Metric]:
        """Return the metrics."""
        ranges = {name: self.ranges.get(name, (None, None)) for name in self.metrics}
        return [Metric(name, name not in self.lower_is_better, *ranges[name]) for name in self.metrics]

    def measure(self, case: Case) -> Observation:
        """Refuse: scores are recorded, not measured."""
        raise EvaluatorError(f"case {case.id!r}: scores are recorded, not measured")

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return the means."""
        return {name: sums[f"sum {name}"] / sums[f"cases {name}"] for name in self.metrics}


def score_records(suite: RecordedSuite, evaluator: RecordedScores) -> list[CaseRecord]:
    """Return the cases of a report as records, whose only counts are the scores."""
    label = suite.clusters.label if suite.clusters else ""
    return [
        replace(
            _record(case, evaluator), labels=case.labels | ({label: case.cluster} if case.cluster is not None else {})
        )
        for case in suite.cases
    ]


def _record(case: RecordedCase, evaluator: RecordedScores) -> CaseRecord:
    if not case.ran:
        return CaseRecord(case.id, outcome=case.outcome, reason=case.reason)
    counts: dict[str, Any] = {}
    for name in evaluator.metrics:
        score = case.metrics.get(name)
        if score is not None:
            counts |= {f"sum {name}": score, f"cases {name}": 1}
    absent = {name: "" for name in evaluator.metrics if case.metrics.get(name) is None}
    if case.outcome == "errored":
        observations = {evaluator.name: Observation(counts, errored=absent)}
    else:
        observations = {evaluator.name: Observation(counts, undefined=absent)}
    return CaseRecord(case.id, outcome=case.outcome, observations=observations, reason=case.reason)
