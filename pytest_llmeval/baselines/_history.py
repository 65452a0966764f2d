"""The history of suites."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

from msgspec import structs
from pydantic import Field

from pytest_llmeval._version import __version__
from pytest_llmeval.baselines._comparable import Stamp, basis_of, fingerprint
from pytest_llmeval.baselines._files import ScoreFile, python_score_file
from pytest_llmeval.baselines._runs import RunWatch, SnapshotJudgement, SuiteRun
from pytest_llmeval.baselines._scores import SuiteScores, TestScores
from pytest_llmeval.core import Fault, GateResult, SuiteError
from pytest_llmeval.data import (
    DeclaredType,
    Document,
    FaultLog,
    InputFile,
    OutputFile,
    OutputFolder,
    OwnFiles,
    describe,
    display_path,
)
from pytest_llmeval.numbers import Shift
from pytest_llmeval.reports import Point, RunReport, Timeline
from pytest_llmeval.suites import SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.numbers import WatchedRun


_HISTORY = Path(OutputFolder.WORKING, "history.jsonl")


def earlier_looks(root: Path | None, key: SuiteKey, watch: RunWatch) -> "dict[str, list[WatchedRun]]":
    """The evidence in the local history for gates that weigh all runs since an approval.

    A run with the very answers of another one, such as a replay, says nothing more and is left out, and so is a line
    that cannot be read: the file is a local one that people cut.

    Args:
        root: The folder of the history; ``None`` if there is none.
        key: Of the suite.
        watch: The run that is to be run.

    Returns:
        Gate to looks, in the order of the runs.
    """
    runs: dict[str, list[WatchedRun]] = {}
    seen = {watch.statistics, watch.baseline}
    for data in _lines(root, watch.baseline):
        same = (data.get("path"), data.get("test"), data.get("variant")) == (key.display_path, key.test, key.variant)
        if not same or data.get("baseline") != watch.baseline or data.get("statistics") in seen:
            continue
        with suppress(AttributeError, TypeError, ValueError):
            looks = {gate: _read_watched(*numbers) for gate, numbers in data["looks"].items()}
            seen.add(data["statistics"])
            for gate, watched in looks.items():
                runs.setdefault(gate, []).append(watched)
    return runs


def _read_watched(
    drop: float,
    deviation: float,
    units: int,
    step: float | None,
    two_steps: float | None,
    shares: Sequence[float],
) -> "WatchedRun":
    """A run's evidence for gates that weigh many runs, from the numbers in its history line."""
    from pytest_llmeval.numbers import WatchedRun

    before, two_before = (None if spread is None else float(spread) for spread in (step, two_steps))
    return WatchedRun(float(drop), float(deviation), int(units), before, two_before, tuple(map(float, shares)))


def _lines(root: Path | None, holding: str) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of the local history, as JSON objects, that contain a text."""
    try:
        text = "" if root is None else (History.path_in(root)).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        if holding in line:
            with suppress(ValueError, RecursionError):
                data = json.loads(line)
                if isinstance(data, dict):
                    yield data


def _history_line(
    run: SuiteRun, gates: Sequence[GateResult], snapshot: SnapshotJudgement, time: str, commit: str | None
) -> str:
    """A suite's run as a line of the local history, with its scores and gate verdicts."""
    metrics = {**run.result.metrics, "pass_rate": run.result.pass_rate}
    if (cost := run.result.usage.get("total_cost_usd")) is not None and cost.value is not None:
        metrics["total_cost_usd"] = cost
    data = {
        "time": time,
        "commit": commit,
        "version": __version__,
        "path": run.key.display_path,
        "test": run.key.test,
        "variant": run.key.variant,
        "cases": len(run.records),
        "errored": {name: metric.errored for name, metric in metrics.items() if metric.errored},
        "values": {name: Shift.rounded(metric.value) for name, metric in metrics.items()},
        "intervals": {
            name: [Shift.rounded(metric.low), Shift.rounded(metric.high)]
            for name, metric in metrics.items()
            if metric.low is not None and metric.high is not None
        },
        "gates": {gate.gate: gate.outcome for gate in gates},
        "basis": basis_of(run.comparable),
    }
    if snapshot.watch is not None:
        data |= structs.asdict(snapshot.watch)
    return json.dumps(data, allow_nan=False)


_Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
_Variant: TypeAlias = tuple[str, str]
"""Python test, and system or variant."""


class History(NamedTuple):
    """The known runs and approvals of a suite, as timelines.

    Attributes:
        timelines: One for the suite, or for each of its variants; sorted.
        faults: Faults of lines and score files that were left out.
    """

    timelines: list[Timeline]
    faults: list[Fault]

    @staticmethod
    def path_in(root: Path) -> Path:
        """The path of the local history of a folder."""
        return root / _HISTORY

    @staticmethod
    def read(suite: Path, root: Path) -> "History":
        """The runs and approvals of a suite in its history.

        Malformed content never raises: it is left out, and reported as a fault with its line.

        Args:
            suite: The suite file, which need not exist any more; or a module of tests that use ``score_snapshot``, of
                which only approvals are kept.
            root: pytest's rootdir, whose local history is read.
        """
        if suite.suffix == ".py":
            return _of_module(suite, root)
        faults: list[Fault] = []
        runs: dict[_Variant, list[Point]] = {}
        display = display_path(suite.resolve(), root.resolve())
        for line in _noted_lines(root, faults):
            if line.path == display:
                runs.setdefault((line.test, line.variant), []).append(_point_of_run(line))
        approvals = dict(_approvals(suite, root, faults))
        timelines = []
        for test, variant in sorted({*runs, *approvals}):
            approved, bridged = approvals.get((test, variant), ([], set()))
            points = _merge_points(runs.get((test, variant), []), approved)
            name = "".join(f"[{part}]" for part in (test, variant) if part)
            timelines.append(Timeline(display, name, points, frozenset(bridged)))
        return History(timelines, faults)

    @staticmethod
    def extend_report(report: RunReport, root: Path) -> RunReport:
        """The report of a run with the history of its suites.

        Args:
            report: The report.
            root: pytest's rootdir, from which it names suites, and whose history is read.
        """
        known = {path: History.read(root / path, root) for path in {suite.path for suite in report.suites}}
        suites = [structs.replace(suite, past=known[suite.path].timeline_of(suite.suite)) for suite in report.suites]
        return structs.replace(report, suites=suites)

    def timeline_of(self, suite: str) -> Timeline | None:
        """The timeline of a suite, or of a variant of it, by its name in reports."""
        named = [timeline for timeline in self.timelines if suite.endswith(timeline.variant)]
        return max(named, key=lambda timeline: len(timeline.variant), default=None)

    @staticmethod
    def noted_paths(root: Path) -> set[str]:
        """The suite files, as reports name them, that the local history of a folder has runs of."""
        return {line.path for line in _noted_lines(root, [])}

    @staticmethod
    def append(
        root: Path,
        runs: Sequence[tuple[SuiteRun, Sequence[GateResult], SnapshotJudgement]],
        *,
        time: str,
        commit: str | None,
    ) -> None:
        """Append a line to the local history for each suite that a run has run.

        Args:
            root: pytest's rootdir.
            runs: The run of each suite, with the verdicts on its gates and approved scores.
            time: When the run started, ISO 8601, UTC.
            commit: What was checked out.

        Raises:
            OSError: The file cannot be written.
        """
        if not runs:
            return
        path = History.path_in(root)
        if not path.parent.exists():
            OutputFolder(path.parent).make()
        OutputFile(path).append_text("".join(_history_line(*run, time, commit) + "\n" for run in runs))


@dataclass(frozen=True)
class _HistoryLine:
    """A suite's run as a line of the local history."""

    time: str
    path: str
    values: dict[str, _Number | None]
    commit: str | None = None
    test: str = ""
    variant: str = ""
    cases: int | None = None
    intervals: dict[str, tuple[_Number, _Number]] = field(default_factory=dict)
    gates: dict[str, str] | None = None
    basis: dict[str, str] = field(default_factory=dict)


def _of_module(module: Path, root: Path) -> "History":
    """The approvals in the score file of a Python test module."""
    path = python_score_file(module)
    try:
        scores = ScoreFile(path, display_path(path.resolve(), root.resolve())).read_tests()
    except SuiteError as error:
        return History([], list(error.faults))
    points = sorted(_approved_points(scores), key=lambda point: point.time) if scores is not None else []
    return History([Timeline(display_path(module.resolve(), root.resolve()), "", points)] if points else [], [])


def _noted_lines(root: Path, faults: list[Fault]) -> Iterator[_HistoryLine]:
    """Yield the runs in the local history of a folder; faults of malformed lines are added to `faults`."""
    path = History.path_in(root)
    display = _HISTORY.as_posix()
    if not path.exists():
        return
    left_out = 0
    for place, data in InputFile(path, display).read_jsonl(faults):
        read = _read(Document(display, data))
        if isinstance(read, _HistoryLine):
            yield read
        else:
            left_out += 1
            if left_out <= FaultLog.MAX_LISTED:
                faults.append(structs.replace(read, line=place, column=1))
    if left_out > FaultLog.MAX_LISTED:
        faults.append(Fault(display, 0, 0, "", f"... and {left_out - FaultLog.MAX_LISTED} more lines that are no runs"))


def _read(document: Document) -> "_HistoryLine | Fault":
    """The run in a line of the local history, or its first fault."""
    if not isinstance(document.data, Mapping):
        return document.fault((), f"found {describe(document.data)}, expected a run of a suite")
    line, faults = DeclaredType(_HistoryLine).check(document.data, document)
    if faults:
        return faults[0]
    assert isinstance(line, _HistoryLine)
    if Stamp.moment_of(line.time) is None:
        return document.fault(("time",), f"found {describe(line.time)}, expected a time in ISO 8601")
    return line


def _point_of_run(line: _HistoryLine) -> Point:
    """The timeline point of a run in the local history."""
    time = Stamp.moment_of(line.time)
    assert time is not None
    return Point(time, line.commit or "", line.values, line.intervals, line.gates, line.cases, line.basis)


def _approvals(
    suite: Path, root: Path, faults: list[Fault]
) -> Iterator[tuple[_Variant, tuple[list[Point], set[tuple[str, str]]]]]:
    """Yield the approvals of each score file of a suite, and its bridged changes of judges."""
    own_files = OwnFiles(suite)
    try:
        names = sorted(file.name for file in own_files.folder.iterdir())
    except OSError:
        return
    for name in names:
        if own_files.include(name) and name.endswith(f".{ScoreFile.ENDING}"):
            path = own_files.folder / name
            try:
                scores = ScoreFile(path, display_path(path.resolve(), root.resolve())).parse(SuiteScores)
            except SuiteError as error:
                faults += error.faults
                continue
            if scores.suite == suite.name:
                yield (scores.test, scores.variant), (list(_points_of_scores(scores)), set(_yield_bridged(scores)))


def _points_of_scores(scores: SuiteScores) -> Iterator[Point]:
    """Yield the timeline points of a suite's approvals, the last one with the score file's details."""
    for point in _approved_points(scores):
        yield _last(point, scores) if point.values is scores.history[-1].values else point


def _approved_points(scores: SuiteScores | TestScores) -> Iterator[Point]:
    """Yield a timeline point for each dated approval in the history of a score file."""
    for approval in scores.history:
        time = Stamp.moment_of(approval.time)
        if time is not None:
            yield Point(time, approval.commit or "", approval.values, approved=True, noted=False)


def _yield_bridged(scores: SuiteScores) -> Iterator[tuple[str, str]]:
    """Yield the fingerprints of all judges before and after each change: away from the approved ones, and to them."""
    approved = dict(scores.comparable.judges)
    for model in {bridge.new["model"] for bridge in scores.bridges}:
        ways = [bridge for bridge in scores.bridges if bridge.new["model"] == model]
        after = approved | {way.label: way.new for way in ways if approved.get(way.label) == way.old}
        before = approved | {way.label: way.old for way in ways if approved.get(way.label) == way.new}
        yield fingerprint(before), fingerprint(after)


def _last(point: Point, scores: SuiteScores) -> Point:
    """The timeline point of the last approval, for which a score file keeps all details."""
    bounds = {name: (metric.low, metric.high) for name, metric in scores.metrics.items()}
    known = {name: (low, high) for name, (low, high) in bounds.items() if low is not None and high is not None}
    return replace(point, intervals=known, cases=scores.cases.count, basis=basis_of(scores.comparable))


def _merge_points(runs: Iterable[Point], approvals: Iterable[Point]) -> list[Point]:
    """A suite's runs and approvals in order of time; a run that was approved is one point, marked as such."""
    points = list(runs)
    alone = []
    for approval in approvals:
        place = next((n for n, run in enumerate(points) if not run.approved and _is_of(approval, run)), None)
        if place is None:
            alone.append(approval)
        else:
            points[place] = replace(points[place], approved=True)
    return sorted([*alone, *points], key=lambda point: point.time)


def _is_of(approval: Point, run: Point) -> bool:
    """Whether an approval is of this run in the history: same day, commit and approved values."""
    same = approval.time.date() == run.time.date() and approval.commit == run.commit
    values: Mapping[str, Any] = run.values
    return same and all(name in values and values[name] == value for name, value in approval.values.items())
