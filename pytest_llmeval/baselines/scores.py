"""The content of a score file, and its creation from a result."""

__all__ = (
    "SCHEMA",
    "Anchor",
    "Approval",
    "Cases",
    "Score",
    "SuiteScores",
    "TestScores",
    "groups_of",
    "metrics_of",
    "rounded",
)

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pytest_llmeval.baselines.bridges import Bridge
from pytest_llmeval.baselines.comparable import Comparable
from pytest_llmeval.core.results import PASS_RATE, MetricValue, Result
from pytest_llmeval.suite.run_settings import SnapshotSettings

SCHEMA = 1
"""Version of the file's form."""

DIGITS = 6
"""Decimals that are kept: fewer than the last digits in which two machines may differ."""

_STRICT = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class Score:
    """One metric; the fields are those of `MetricValue`."""

    __pydantic_config__: ClassVar = _STRICT

    value: float | None
    low: float | None
    high: float | None
    scored: int
    undefined: int
    errored: int
    missing: int
    signature: str = ""

    @classmethod
    def of(cls, metric: MetricValue, *, of_group: bool = False) -> "Score":
        """Round a metric of a run; groups do not repeat how it is computed."""
        return cls(
            rounded(metric.value),
            rounded(metric.low),
            rounded(metric.high),
            metric.scored,
            metric.undefined,
            metric.errored,
            metric.missing,
            "" if of_group else metric.signature,
        )


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval.

    Attributes:
        time: The day, ISO 8601, UTC: finer times would make equal files differ.
        commit: What was checked out.
        values: Metric name to value.
    """

    __pydantic_config__: ClassVar = _STRICT

    time: str
    commit: str | None
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Anchor:
    """The approved run below which a metric may not drift.

    Attributes:
        time: The day of its approval.
        commit: What was checked out.
        statistics: Fingerprint of the file that has what was counted in each of its cases.
        values: Metric name to value, of the metric; files of earlier versions have those of all.
    """

    __pydantic_config__: ClassVar = _STRICT

    time: str
    commit: str | None
    statistics: str
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases behind the scores.

    Attributes:
        count: How many.
        statistics: Fingerprint of the file beside this one that has what was counted in each of them.
        errored: How many could not be scored, or not wholly; no later run can be compared with it in these.
    """

    __pydantic_config__: ClassVar = _STRICT

    count: int
    statistics: str
    errored: int = 0


@dataclass(frozen=True)
class SuiteScores:
    """The score file of a suite, or of one variant of it.

    Attributes:
        suite: Name of the suite file, beside whose folder this one lies.
        test: The Python test that ran the cases, or nothing.
        variant: The variant of the target, or nothing.
        cases: Behind the scores.
        comparable: What must be the same for two runs to be compared.
        metrics: Metric name to score.
        groups: Label, group, metric name to score.
        history: Approvals, the last one last.
        anchor: The one that files of earlier versions have for all metrics.
        pool: Fingerprints of the files that have what was counted in earlier approved runs of the same data, which are
            the baseline together with the last one; the latest last.
        anchors: Metric to the run below which it may not drift; without those for which that is the one approved last.
        bridges: Changes of judges across which it may be compared, and those of earlier approvals; the latest last.
        limits: Metric to the gates and the tolerance that limited its fall; ``*`` stands for all metrics.
    """

    __pydantic_config__: ClassVar = _STRICT

    suite: str
    test: str
    variant: str
    cases: Cases
    comparable: Comparable
    metrics: Mapping[str, Score]
    groups: Mapping[str, Mapping[str, Mapping[str, Score]]] = field(default_factory=dict)
    history: tuple[Approval, ...] = ()
    schema: int = SCHEMA
    anchor: Anchor | None = None
    pool: tuple[str, ...] = ()
    bridges: tuple[Bridge, ...] = ()
    anchors: Mapping[str, Anchor] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)

    def anchor_of(self, metric: str) -> Anchor | None:
        """Return the anchor of a metric; ``None`` where that is the run approved last."""
        return self.anchors.get(metric, self.anchor)

    @property
    def values(self) -> dict[str, float | None]:
        """Metric name to value."""
        return {name: score.value for name, score in self.metrics.items()}

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        """Metric name to the place of its value in the file."""
        return {name: ("metrics", name, "value") for name in self.metrics}


@dataclass(frozen=True)
class TestScores:
    """The score file of a module of Python tests.

    Attributes:
        module: Name of the test module.
        tests: Test, metric name to value.
        history: Approvals; their values are named ``test: metric``.
    """

    __test__: ClassVar = False
    __pydantic_config__: ClassVar = _STRICT

    module: str
    tests: Mapping[str, Mapping[str, float | None]]
    history: tuple[Approval, ...] = ()
    schema: int = SCHEMA

    @property
    def values(self) -> dict[str, float | None]:
        """Test and metric name to value."""
        return {f"{test}: {name}": value for test, scores in self.tests.items() for name, value in scores.items()}

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        """Test and metric name to the place of its value in the file."""
        return {f"{test}: {name}": ("tests", test, name) for test, scores in self.tests.items() for name in scores}


def rounded(value: float | None) -> float | None:
    """Return a number as files carry it."""
    return None if value is None else round(float(value), DIGITS) + 0.0


def metrics_of(result: Result, settings: SnapshotSettings) -> dict[str, Score]:
    """Return the scores of a suite, its pass rate included."""
    every = {**result.metrics, PASS_RATE: result.pass_rate}
    return {name: Score.of(metric) for name, metric in every.items() if settings.keeps(name)}


def groups_of(result: Result, settings: SnapshotSettings) -> dict[str, dict[str, dict[str, Score]]]:
    """Return the scores of a suite's groups."""
    return {
        label: {
            name: {
                metric: Score.of(value, of_group=True)
                for metric, value in {**group.metrics, PASS_RATE: group.pass_rate}.items()
                if settings.keeps(metric)
            }
            for name, group in groups.items()
        }
        for label, groups in result.groups.items()
    }
