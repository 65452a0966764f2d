"""The history of suites, from a local file with a line per judged suite and run, and from score files; a drawing."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

from msgspec import structs
from pydantic import Field

from pytest_llmeval._version import __version__
from pytest_llmeval.baselines.comparable import basis_of, fingerprint, moment_of
from pytest_llmeval.baselines.files import SCORES, python_score_file, read_if_there
from pytest_llmeval.baselines.runs import JudgedSuite, RunWatch
from pytest_llmeval.baselines.scores import SuiteScores, TestScores, parse
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import excerpt, interval, number, printable
from pytest_llmeval.data.files.documents import Document, read_jsonl
from pytest_llmeval.data.files.places import (
    MAX_LISTED,
    OWN_FOLDER,
    WORKING_FOLDER,
    display_path,
    make_working_folder,
    stem_of,
)
from pytest_llmeval.data.files.validation import check, describe
from pytest_llmeval.data.files.writing import append_text
from pytest_llmeval.reports.tables import Point, Timeline
from pytest_llmeval.suite.suite import SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.gates.statistics.anytime import WatchedRun


_WIDTH = 720
_LEFT, _RIGHT = 210, 590
_ROW = 64
_PLOT = 44
_TITLE = 30
_DAYS = 12
_LEGEND = 28
_LONGEST = 26
_TITLE_LONGEST = 90
_SMALLEST_SPAN = 1e-9

_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; } .muted { fill: #59636e; font-size: 10px; }
.line { fill: none; stroke: #0969da; stroke-width: 1.5; } .dot { fill: #0969da; } .band { fill: #0969da; opacity: .15; }
.approved { fill: #8250df; } .failed { fill: none; stroke: #cf222e; stroke-width: 1.5; }
.changed { stroke: #9a6700; stroke-dasharray: 2 3; } .frame { stroke: #8c959f; stroke-opacity: .4; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .muted { fill: #9198a1; }
.line { stroke: #58a6ff; } .dot, .band { fill: #58a6ff; } .band { opacity: .2; }
.approved { fill: #d2a8ff; } .failed { stroke: #ff7b72; } .changed { stroke: #d29922; }
}
"""


def timeline_of(suite: str, timelines: Iterable[Timeline]) -> Timeline | None:
    """Return the history of a suite, or of a variant of it, by its name with the variant in brackets."""
    named = [each for each in timelines if suite.endswith(each.variant)]
    return max(named, key=lambda each: len(each.variant), default=None)


def history_svg(timelines: Sequence[Timeline], metrics: Mapping[str, Sequence[str]]) -> str:
    """Return an SVG image with a small chart for each metric of each timeline.

    It has no scripts and no outside resources, and can be read in light and dark.

    Args:
        timelines: Timelines, with the points to draw.
        metrics: Title of a timeline to the metrics to draw.
    """
    parts = []
    top = 0
    for each in timelines:
        parts.append(f'<text class="title" x="8" y="{top + 20}">{_text(each.title, _TITLE_LONGEST)}</text>')
        top += _TITLE
        for name in metrics[each.title]:
            parts += _chart(each, name, top)
            top += _ROW
        parts += _days(each.points, top - 4)
        top += _DAYS
    parts += _legend(top + 14)
    label = ", ".join(_text(each.title, _TITLE_LONGEST) for each in timelines)
    height = top + _LEGEND
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
        f' role="img" aria-label="History of {label}">\n<style>\n{_STYLE}</style>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _text(text: str, longest: int | None = None) -> str:
    """Escape text for XML."""
    return escape(printable(text) if longest is None else excerpt(text, longest))


def _chart(timeline: Timeline, metric: str, top: int) -> Iterator[str]:
    points = timeline.points
    scale = _Scale(points, metric, top)
    last = next((each for each in reversed(points) if each.values.get(metric) is not None), None)
    yield f'<text x="8" y="{top + 24}">{_text(metric, _LONGEST)}</text>'
    for y, value in ((top + 6, scale.high), (top + _PLOT, scale.low)):
        yield f'<line class="frame" x1="{_LEFT}" x2="{_RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text class="muted" x="{_LEFT - 6}" y="{y + 3}" text-anchor="end">{number(value)}</text>'
    if last is not None:
        yield f'<text x="{_RIGHT + 14}" y="{top + 24}">{number(last.values[metric])}</text>'
        if bounds := last.intervals.get(metric):
            yield f'<text class="muted" x="{_RIGHT + 14}" y="{top + 38}">{interval(*bounds)}</text>'
    for place, changed in enumerate(timeline.changes()):
        if changed:
            x = f"{scale.x(place - 0.5):.1f}"
            yield (
                f'<line class="changed" x1="{x}" x2="{x}" y1="{top + 2}" y2="{top + _PLOT + 4}">'
                f"<title>changed: {', '.join(changed)}</title></line>"
            )
    bands = {place: ends for place in scale.values if (ends := points[place].intervals.get(metric))}
    for run in _unbroken(bands):
        there = [f"{scale.x(place):.1f},{scale.y(bands[place][1]):.1f}" for place in run]
        back = [f"{scale.x(place):.1f},{scale.y(bands[place][0]):.1f}" for place in reversed(run)]
        yield f'<polygon class="band" points="{" ".join([*there, *back])}"/>'
    for run in _unbroken(scale.values):
        line = " ".join(f"{scale.x(place):.1f},{scale.y(scale.values[place]):.1f}" for place in run)
        yield f'<polyline class="line" points="{line}"/>'
    for place, value in scale.values.items():
        yield _mark(points[place], metric, scale.x(place), scale.y(value))


class _Scale:
    """Coordinates of the points of a metric."""

    def __init__(self, points: Sequence[Point], metric: str, top: int) -> None:
        self.count, self.top = len(points), top
        self.values = {n: value for n, each in enumerate(points) if (value := each.values.get(metric)) is not None}
        bounds = [bound for n in self.values for bound in points[n].intervals.get(metric, ())]
        seen = [*self.values.values(), *bounds]
        self.low, self.high = min(seen, default=0.0), max(seen, default=1.0)

    def x(self, place: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (place + 0.5) / max(self.count, 1)

    def y(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span > _SMALLEST_SPAN else 0.5
        return self.top + _PLOT - (_PLOT - 6) * share


def _unbroken(places: Iterable[int]) -> Iterator[list[int]]:
    """Yield runs of consecutive positions."""
    run: list[int] = []
    for place in places:
        if run and place != run[-1] + 1:
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _days(points: Sequence[Point], y: int) -> Iterator[str]:
    """Yield the days of the first and the last point."""
    for point, x, anchor in ((points[0], _LEFT, "start"), (points[-1], _RIGHT, "end")) if points else ():
        yield f'<text class="muted" x="{x}" y="{y}" text-anchor="{anchor}">{point.time:%Y-%m-%d}</text>'


def _mark(point: Point, metric: str, x: float, y: float) -> str:
    parts = [f"{point.when} {point.commit[:7]}".rstrip(), f"{metric} {number(point.values[metric])}"]
    parts += [interval(*point.intervals[metric])] if metric in point.intervals else []
    parts += ["approved"] if point.approved else []
    parts += [f"failed: {gate}" for gate in point.failed_gates]
    ring = f'<circle class="failed" cx="{x:.1f}" cy="{y:.1f}" r="6"/>' if point.failed_gates else ""
    return f"<g>{_dot(x, y, approved=point.approved)}{ring}<title>{_text('; '.join(parts))}</title></g>"


def _dot(x: float, y: float, *, approved: bool = False) -> str:
    if approved:
        return f'<path class="approved" d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"/>'
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>'


def _legend(y: int) -> Iterator[str]:
    yield f'{_dot(14, y)}<text class="muted" x="24" y="{y + 3}">run</text>'
    yield f'{_dot(64, y, approved=True)}<text class="muted" x="74" y="{y + 3}">approved</text>'
    yield (
        f'<circle class="failed" cx="140" cy="{y}" r="5"/><text class="muted" x="150" y="{y + 3}">a gate failed</text>'
    )
    yield (
        f'<line class="changed" x1="234" x2="234" y1="{y - 7}" y2="{y + 7}"/>'
        f'<text class="muted" x="242" y="{y + 3}">data, evaluator or judge changed</text>'
    )


HISTORY = Path(WORKING_FOLDER, "history.jsonl")


def append_runs(
    root: Path,
    suites: Sequence[JudgedSuite],
    *,
    time: str,
    commit: str | None,
) -> None:
    """Append a line for each suite that a run has judged.

    Args:
        root: pytest's rootdir.
        suites: The suites.
        time: When the run started, ISO 8601, UTC.
        commit: What was checked out.

    Raises:
        OSError: The file cannot be written.
    """
    if not suites:
        return
    path = root / HISTORY
    if not path.parent.exists():
        make_working_folder(path.parent)
    append_text(path, "".join(_line(each, time, commit) + "\n" for each in suites))


def earlier_looks(root: Path | None, key: SuiteKey, watch: RunWatch) -> "dict[str, list[WatchedRun]]":
    """Return what earlier runs of a suite say of gates that weigh all runs since an approval.

    A run with the very answers of another one, such as a replay, says nothing more and is left out, and so is a line
    that cannot be read: the file is a local one that people cut.

    Args:
        root: The folder of the history; ``None`` if there is none.
        key: Of the suite.
        watch: The run that is to be judged.

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
            looks = {gate: _watched(*numbers) for gate, numbers in data["looks"].items()}
            seen.add(data["statistics"])
            for gate, watched in looks.items():
                runs.setdefault(gate, []).append(watched)
    return runs


def _watched(
    drop: float,
    deviation: float,
    units: int,
    step: float | None = None,
    two_steps: float | None = None,
    shares: Sequence[float] = (),
) -> "WatchedRun":
    """Return the evidence of a run; lines of earlier versions end with the units."""
    from pytest_llmeval.gates.statistics.anytime import WatchedRun

    before, two_before = (None if each is None else float(each) for each in (step, two_steps))
    return WatchedRun(float(drop), float(deviation), int(units), before, two_before, tuple(map(float, shares)))


def _lines(root: Path | None, holding: str) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of the history that hold a text."""
    try:
        text = "" if root is None else (root / HISTORY).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        if holding in line:
            with suppress(ValueError, RecursionError):
                data = json.loads(line)
                if isinstance(data, dict):
                    yield data


def _line(judged: JudgedSuite, time: str, commit: str | None) -> str:
    from pytest_llmeval.baselines.scores import rounded

    metrics = {**judged.result.metrics, "pass_rate": judged.result.pass_rate}
    if (cost := judged.result.usage.get("total_cost_usd")) is not None and cost.value is not None:
        metrics["total_cost_usd"] = cost
    data = {
        "time": time,
        "commit": commit,
        "version": __version__,
        "path": judged.key.display_path,
        "test": judged.key.test,
        "variant": judged.key.variant,
        "cases": len(judged.records),
        "errored": {name: metric.errored for name, metric in metrics.items() if metric.errored},
        "values": {name: rounded(metric.value) for name, metric in metrics.items()},
        "intervals": {
            name: [rounded(metric.low), rounded(metric.high)]
            for name, metric in metrics.items()
            if metric.low is not None and metric.high is not None
        },
        "gates": {gate.gate: gate.outcome for gate in judged.gates},
        "basis": basis_of(judged.measured.comparable),
    }
    if judged.watch is not None:
        data |= asdict(judged.watch)
    return json.dumps(data, allow_nan=False)


_Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
_Variant: TypeAlias = tuple[str, str]
"""Python test, and system or variant."""


class History(NamedTuple):
    """The known runs of a suite.

    Attributes:
        timelines: One for the suite, or for each of its variants; sorted.
        faults: Faults of lines and score files that were left out.
    """

    timelines: list[Timeline]
    faults: list[Fault]


@dataclass(frozen=True)
class _HistoryLine:
    """A line of the history of runs. Earlier versions wrote only the required keys."""

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


def read_history(suite: Path, root: Path) -> History:
    """Read the runs and approvals of a suite.

    Malformed content never raises: it is left out, and reported as a fault with its line.

    Args:
        suite: The suite file, which need not exist any more; or a module of tests that use ``score_snapshot``, of which
            only approvals are kept.
        root: pytest's rootdir, whose local history is read.
    """
    if suite.suffix == ".py":
        return _of_module(suite, root)
    faults: list[Fault] = []
    runs: dict[_Variant, list[Point]] = {}
    display = display_path(suite.resolve(), root.resolve())
    for line in _noted_lines(root, faults):
        if line.path == display:
            runs.setdefault((line.test, line.variant), []).append(_run(line))
    approvals = dict(_approvals(suite, root, faults))
    timelines = []
    for test, variant in sorted({*runs, *approvals}):
        approved, bridged = approvals.get((test, variant), ([], set()))
        points = _merged(runs.get((test, variant), []), approved)
        name = "".join(f"[{part}]" for part in (test, variant) if part)
        timelines.append(Timeline(display, name, points, frozenset(bridged)))
    return History(timelines, faults)


def _of_module(module: Path, root: Path) -> History:
    """Read the approvals of the scores that the tests of a module assert."""
    path = python_score_file(module)
    try:
        scores = read_if_there(path, display_path(path.resolve(), root.resolve()), TestScores)
    except SuiteError as error:
        return History([], list(error.faults))
    points = sorted(_approved(scores), key=lambda point: point.time) if scores is not None else []
    return History([Timeline(display_path(module.resolve(), root.resolve()), "", points)] if points else [], [])


def noted_paths(root: Path) -> set[str]:
    """Return the suite files, as reports name them, that the local history of a folder has runs of."""
    return {line.path for line in _noted_lines(root, [])}


def _noted_lines(root: Path, faults: list[Fault]) -> Iterator[_HistoryLine]:
    path = root / HISTORY
    display = HISTORY.as_posix()
    if not path.exists():
        return
    left_out = 0
    for place, data in read_jsonl(path, display, faults):
        read = _read(Document(display, data))
        if isinstance(read, _HistoryLine):
            yield read
        else:
            left_out += 1
            if left_out <= MAX_LISTED:
                faults.append(structs.replace(read, line=place, column=1))
    if left_out > MAX_LISTED:
        faults.append(Fault(display, 0, 0, "", f"... and {left_out - MAX_LISTED} more lines that are no runs"))


def _read(document: Document) -> "_HistoryLine | Fault":
    """Return the line of a document, or its first fault."""
    if not isinstance(document.data, Mapping):
        return document.fault((), f"found {describe(document.data)}, expected a run of a suite")
    line, faults = check(_HistoryLine, document.data, document, ())
    if faults:
        return faults[0]
    assert isinstance(line, _HistoryLine)
    if moment_of(line.time) is None:
        return document.fault(("time",), f"found {describe(line.time)}, expected a time in ISO 8601")
    return line


def _run(line: _HistoryLine) -> Point:
    time = moment_of(line.time)
    assert time is not None
    return Point(time, line.commit or "", line.values, line.intervals, line.gates, line.cases, line.basis)


def _approvals(
    suite: Path, root: Path, faults: list[Fault]
) -> Iterator[tuple[_Variant, tuple[list[Point], set[tuple[str, str]]]]]:
    """Yield the approvals of each score file of a suite, and its bridged changes of judges."""
    folder = suite.parent / OWN_FOLDER
    try:
        names = sorted(each.name for each in folder.iterdir())
    except OSError:
        return
    for name in names:
        if name.startswith((f"{stem_of(suite.name)}.", f"{suite.name}.")) and name.endswith(f".{SCORES}"):
            path = folder / name
            try:
                scores: SuiteScores = parse(path, display_path(path.resolve(), root.resolve()), SuiteScores)
            except SuiteError as error:
                faults += error.faults
                continue
            if scores.suite == suite.name:
                yield (scores.test, scores.variant), (list(_points(scores)), set(_bridged(scores)))


def _points(scores: SuiteScores) -> Iterator[Point]:
    for point in _approved(scores):
        yield _last(point, scores) if point.values is scores.history[-1].values else point


def _approved(scores: SuiteScores | TestScores) -> Iterator[Point]:
    for each in scores.history:
        time = moment_of(each.time)
        if time is not None:
            yield Point(time, each.commit or "", each.values, approved=True, noted=False)


def _bridged(scores: SuiteScores) -> Iterator[tuple[str, str]]:
    """Yield the fingerprints of all judges before and after each change: away from the approved ones, and to them."""
    approved = dict(scores.comparable.judges)
    for model in {each.new["model"] for each in scores.bridges}:
        ways = [each for each in scores.bridges if each.new["model"] == model]
        after = approved | {each.label: each.new for each in ways if approved.get(each.label) == each.old}
        before = approved | {each.label: each.old for each in ways if approved.get(each.label) == each.new}
        yield fingerprint(before), fingerprint(after)


def _last(point: Point, scores: SuiteScores) -> Point:
    """Return the last approval, for which a score file keeps all details."""
    bounds = {name: (each.low, each.high) for name, each in scores.metrics.items()}
    known = {name: (low, high) for name, (low, high) in bounds.items() if low is not None and high is not None}
    return replace(point, intervals=known, cases=scores.cases.count, basis=basis_of(scores.comparable))


def _merged(runs: Iterable[Point], approvals: Iterable[Point]) -> list[Point]:
    """Return runs and approvals in order of time; a run that was approved is one point, marked as such."""
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
    same = approval.time.date() == run.time.date() and approval.commit == run.commit
    values: Mapping[str, Any] = run.values
    return same and all(name in values and values[name] == value for name, value in approval.values.items())
