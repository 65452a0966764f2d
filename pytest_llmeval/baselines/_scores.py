"""Score files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from pytest_llmeval.baselines._comparable import Comparable, Stamp, fingerprint
from pytest_llmeval.core import Fault, Metric, MetricValue, Result, SuiteError
from pytest_llmeval.data import DeclaredType, Document, InputFile, describe
from pytest_llmeval.numbers import Chain, Shift
from pytest_llmeval.suites import SnapshotSettings


@dataclass(frozen=True)
class Bridge:
    """A measured change of the judge of one evaluator, kept in the score file.

    Attributes:
        label: Of the evaluator.
        old: What was known of the judge that approved scores come from.
        new: What is known of the one that takes its place.
        time: The day on which it was approved, ISO 8601, UTC.
        commit: What was checked out.
        shifts: Metric, or statistic of it, to how far the change moves it.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    label: str
    old: Mapping[str, str]
    new: Mapping[str, str]
    time: str
    commit: str | None
    shifts: Mapping[str, Shift]


def bridge_of(bridges: Sequence[Bridge], label: str, old: Mapping[str, str], new: Mapping[str, str]) -> Bridge | None:
    """The bridge from one judge of an evaluator to another, and to no other; the last one approved."""
    return next(
        (bridge for bridge in reversed(bridges) if (bridge.label, bridge.old, bridge.new) == (label, old, new)), None
    )


def shifts_between(bridges: Sequence[Bridge], old: Comparable, new: Comparable) -> dict[str, Shift]:
    """The distance by which a change of judges moves metrics, as far as it is known."""
    shifts: dict[str, Shift] = {}
    for label, judge in new.judges.items():
        bridge = bridge_of(bridges, label, old.judges.get(label, {}), judge)
        shifts |= {} if bridge is None or bridge.old == judge else bridge.shifts
    return shifts


SCHEMA = 1
"""Version of the file's form."""

_STRICT = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class ApprovedScore:
    """One metric in a score file; the fields are those of `MetricValue`."""

    __pydantic_config__: ClassVar = _STRICT

    value: float | None
    low: float | None
    high: float | None
    scored: int
    undefined: int
    errored: int
    missing: int
    signature: str = ""
    abstained: int = 0

    @classmethod
    def from_value(cls, metric: MetricValue, *, of_group: bool = False) -> "ApprovedScore":
        """A metric of a run, rounded for the score file; groups do not repeat how it is computed."""
        stored = {attribute.name: getattr(metric, attribute.name) for attribute in fields(cls)}
        stored |= {name: Shift.rounded(stored[name]) for name in ("value", "low", "high")}
        stored |= {"signature": ""} if of_group else {}
        return cls(**stored)


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval in the history of a score file.

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
        values: Metric name to value, of the metric.
    """

    __pydantic_config__: ClassVar = _STRICT

    time: str
    commit: str | None
    statistics: str
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases behind the scores of a score file.

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
        pool: Fingerprints of the files that have what was counted in earlier approved runs of the same data, which are
            the baseline together with the last one; the latest last.
        anchors: Metric to the run below which it may not drift; without those for which that is the one approved last.
        bridges: Changes of judges across which it may be compared, and those of earlier approvals; the latest last.
        limits: Metric to the gates and the tolerance that limited its fall; ``*`` represents all metrics.
        chains: Name of a chain to what a metric moved from its anchor to the run approved last, if cases are others.
    """

    __pydantic_config__: ClassVar = _STRICT

    suite: str
    test: str
    variant: str
    cases: Cases
    comparable: Comparable
    metrics: Mapping[str, ApprovedScore]
    groups: Mapping[str, Mapping[str, Mapping[str, ApprovedScore]]] = field(default_factory=dict)
    history: tuple[Approval, ...] = ()
    schema: int = SCHEMA
    pool: tuple[str, ...] = ()
    bridges: tuple[Bridge, ...] = ()
    anchors: Mapping[str, Anchor] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    chains: Mapping[str, Chain] = field(default_factory=dict)

    def earlier_runs(self, size: int) -> tuple[str, ...]:
        """The runs before the last one that are pooled with it, if as many as ``size`` are."""
        return self.pool[-(size - 1) :] if size > 1 else ()

    def with_bridges(
        self,
        old: Mapping[str, Mapping[str, str]],
        new: Mapping[str, Mapping[str, str]],
        shifts: Mapping[str, Mapping[str, Shift]],
        stamp: Stamp,
    ) -> "SuiteScores":
        """The scores with a bridge between two judges of each evaluator, in place of an earlier one between them.

        Args:
            old: Label of an evaluator to the judge that the scores come from.
            new: Label of an evaluator to the judge in its place.
            shifts: Label of an evaluator to how far the change moves each metric.
            stamp: Of the approval.
        """
        bridges = [
            Bridge(label, dict(old[label]), dict(new[label]), stamp.day, stamp.commit, dict(moved))
            for label, moved in shifts.items()
        ]
        ways = [(bridge.label, bridge.old, bridge.new) for bridge in bridges]
        earlier = (bridge for bridge in self.bridges if (bridge.label, bridge.old, bridge.new) not in ways)
        return replace(self, bridges=(*earlier, *bridges))

    def anchor_of(self, metric: str) -> Anchor | None:
        """The anchor of a metric; ``None`` where that is the run approved last."""
        return self.anchors.get(metric)

    @property
    def values(self) -> dict[str, float | None]:
        """Metric name to value."""
        return {name: score.value for name, score in self.metrics.items()}

    @property
    def text(self) -> str:
        """The text of the score file."""
        return _text_of_scores(self)

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        """The place of each metric's value in the score file."""
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

    suite: ClassVar = ""
    """Scores of Python tests are of no suite file."""

    module: str
    tests: Mapping[str, Mapping[str, float | None]]
    history: tuple[Approval, ...] = ()
    schema: int = SCHEMA

    @property
    def values(self) -> dict[str, float | None]:
        """Test and metric name to value."""
        return {f"{test}: {name}": value for test, scores in self.tests.items() for name, value in scores.items()}

    @property
    def text(self) -> str:
        """The text of the score file."""
        return _text_of_scores(self)

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        """The place of each test's and metric's value in the score file."""
        return {f"{test}: {name}": ("tests", test, name) for test, scores in self.tests.items() for name in scores}


def metrics_of(result: Result, settings: SnapshotSettings) -> dict[str, ApprovedScore]:
    """The metrics that a suite's score file keeps, pass rate included."""
    every = {**result.metrics, Metric.PASS_RATE: result.pass_rate}
    return {name: ApprovedScore.from_value(metric) for name, metric in every.items() if settings.keeps(name)}


def groups_of(result: Result, settings: SnapshotSettings) -> dict[str, dict[str, dict[str, ApprovedScore]]]:
    """The metrics of a suite's groups that its score file keeps."""
    return {
        label: {
            name: {
                metric: ApprovedScore.from_value(value, of_group=True)
                for metric, value in {**group.metrics, Metric.PASS_RATE: group.pass_rate}.items()
                if settings.keeps(metric)
            }
            for name, group in groups.items()
        }
        for label, groups in result.groups.items()
    }


_INDENT = "  "
_CHECKSUM = "checksum"
_SCORE = {attribute.name for attribute in fields(ApprovedScore)}


def _text_of_scores(scores: SuiteScores | TestScores) -> str:
    """The text of a score file: keys sorted, numbers finite, the same bytes everywhere.

    Its checksum is that of everything else, so it does not depend on line ends and blanks.
    """
    return _scores_text({**_data(scores), _CHECKSUM: _scores_checksum(scores)})


def _scores_checksum(scores: SuiteScores | TestScores) -> str:
    """The checksum of a score file, by which an edit by hand or a merge line by line is noticed."""
    return fingerprint(_scores_text(_data(scores)))


def _data(scores: SuiteScores | TestScores) -> dict[str, Any]:
    """The content of a score file as JSON data, without empty fields."""
    data = asdict(scores)
    if isinstance(scores, SuiteScores):
        for name in ("anchors", "bridges", "pool", "limits", "chains"):
            if not data[name]:
                del data[name]
        if not scores.cases.errored:
            del data["cases"]["errored"]
    return data


def _scores_text(data: Mapping[str, Any]) -> str:
    """The data of a score file as JSON, with one line per metric."""
    return "".join(_block(data, "")) + "\n"


def line_of(score: ApprovedScore) -> str:
    """The line of a metric in a score file, without its name."""
    return _score_line(asdict(score))


def _score_line(value: Any) -> str:
    """A value of a score file as one line of JSON; a metric's line begins with its value."""
    if isinstance(value, Mapping) and value.keys() == _SCORE:
        # The value first, signature and abstentions only where there are some: this is the line that people compare.
        known = {name: part for name, part in value.items() if part != "" and not (name == "abstained" and part == 0)}
        return json.dumps(known, allow_nan=False)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)


def _block(value: Any, indent: str) -> Iterator[str]:
    """Yield the JSON text of a value of a score file: a mapping of plain values on one line, an item of a list."""
    deeper = indent + _INDENT
    if isinstance(value, Mapping) and any(isinstance(member, Mapping | tuple) for member in value.values()):
        yield "{\n"
        for number, key in enumerate(sorted(value)):
            yield f"{',' + chr(10) if number else ''}{deeper}{_score_line(key)}: "
            yield from _block(value[key], deeper)
        yield f"\n{indent}}}"
    elif isinstance(value, tuple) and value:
        items = f",\n{deeper}".join(_score_line(entry) for entry in value)
        yield f"[\n{deeper}{items}\n{indent}]"
    else:
        yield _score_line(value)


def parse_scores(path: Path, display_path: str, kind: type[SuiteScores] | type[TestScores]) -> Any:
    """The scores in the text of a score file.

    Args:
        path: The file.
        display_path: Its name in errors.
        kind: What it must hold.

    Raises:
        SuiteError: It cannot be read, or is not what an approval wrote; the faults have line and column.
    """
    document = InputFile(path, display_path).read_json()
    _check_version(document)
    data = {name: value for name, value in document.data.items() if name != _CHECKSUM}
    scores, faults = DeclaredType(kind).check(data, document)
    faults = faults or list(_contradictions(document, scores)) or list(_edits(document, scores))
    if faults:
        raise SuiteError(faults)
    return scores


def _check_version(document: Document) -> None:
    """Check that the JSON data of a score file has the schema number of this version."""
    data = document.data
    if not isinstance(data, Mapping):
        raise SuiteError([document.fault((), f"found {describe(data)}, expected approved scores")])
    schema = data.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        newer = (
            f"found {schema}, expected {SCHEMA}: the file is from a newer version of pytest-llmeval-suite: upgrade it"
        )
        raise SuiteError([document.fault(("schema",), newer)])
    if schema != SCHEMA or isinstance(schema, bool):
        raise SuiteError([document.fault(("schema",), f"found {describe(schema)}, expected {SCHEMA}")])


def _contradictions(document: Document, scores: SuiteScores | TestScores) -> Iterator[Fault]:
    """Yield the faults of a score file edited by hand: values unlike the last approval's, and negative counts."""
    if not scores.history:
        yield document.fault(("history",), "an approval is missing")
        return
    last = ("history", len(scores.history) - 1, "values")
    approved = scores.history[-1].values
    values = scores.values
    for name in sorted({*values, *approved}):
        if name not in approved:
            yield document.fault(last, f"the value of {name!r} is missing, expected {values[name]}")
        elif name not in values:
            yield document.fault((*last, name), f"found {approved[name]}, expected no value: {name!r} is not recorded")
        elif values[name] != approved[name]:
            yield document.fault(
                scores.places[name],
                f"found {values[name]}, expected {approved[name]}, which was approved last (see 'history')",
            )
    if isinstance(scores, SuiteScores):
        for name, score in scores.metrics.items():
            if min(score.scored, score.undefined, score.errored, score.missing, score.abstained) < 0:
                yield document.fault(("metrics", name), "found a negative count, expected at least 0")


def _edits(document: Document, scores: SuiteScores | TestScores) -> Iterator[Fault]:
    """Yield a fault if a score file's checksum is wrong: it was edited by hand or merged line by line."""
    checksum, expected = document.data.get(_CHECKSUM), _scores_checksum(scores)
    if checksum != expected:
        fault = (
            f"found {describe(checksum)}, expected {expected!r}: the file was changed by hand or merged line by line"
        )
        yield document.fault((_CHECKSUM,), fault)
