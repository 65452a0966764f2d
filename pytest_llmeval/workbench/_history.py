"""The command ``llmeval history``."""

import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from unicodedata import east_asian_width

from msgspec import to_builtins

from pytest_llmeval.baselines import History
from pytest_llmeval.cli import CommandResult, NumberArgument, say
from pytest_llmeval.core import (
    LlmevalError,
    SuiteError,
    counted,
    excerpt,
    interval,
    number,
    printable,
    suggest,
    unknown_name,
)
from pytest_llmeval.data import InputFile, OutputFile, OwnFiles
from pytest_llmeval.reports import Timeline
from pytest_llmeval.workbench._console import suite_files, table_lines

_WIDTH = 80
_LAST = 20
_TABLES = 3
_CHARTS = 6
_COMMIT = 7


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval history``."""
    parser.description = (
        "Print the last runs and approvals of a suite: values, intervals, gates, commits, and where data, evaluator or "
        "judge changed. Runs are read from .llmeval/history.jsonl, approvals from the suite's score file. The exit "
        "code is 1 if there are none, and 2 if there is no such suite or metric."
    )
    parser.add_argument(
        "suite",
        metavar="SUITE",
        help="a suite file, the name of a suite below this folder, or a module of Python tests",
    )
    parser.add_argument("--metric", action="append", metavar="NAME", help="show only this metric; can be repeated")
    parser.add_argument(
        "--last",
        type=NumberArgument(least=1, whole=True),
        default=_LAST,
        metavar="N",
        help=f"how many runs and approvals (default: {_LAST})",
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw them to this file as well")
    parser.set_defaults(run=_history, code_of_faults=2)


def _history(options: Namespace) -> CommandResult:
    """Run ``llmeval history``: print or draw the metrics of a suite over its noted runs and approvals."""
    suite = _suite(options.suite)
    history = History.read(suite, _root(suite))
    if history.faults:
        say([f"left out for {counted(len(history.faults), 'fault')}:", *history.faults], error=True)
    if not history.timelines:
        reason = _wrapped(f"{suite}: no runs and no approvals: they are noted for suites with 'snapshot'")
        return CommandResult(1, {"timelines": []}, errors=reason)
    known = dict.fromkeys(name for timeline in history.timelines for name in timeline.metrics)
    unknown = [name for name in options.metric or () if name not in known]
    if unknown:
        raise LlmevalError("\n".join(unknown_name("metric", name, known) for name in unknown))
    drawn = [replace(timeline, points=timeline.points[-options.last :]) for timeline in history.timelines]
    if options.svg is not None:
        metrics = {timeline.title: _chosen(timeline, options.metric, _CHARTS) for timeline in drawn}
        OutputFile(options.svg).save_text([history_svg(drawn, metrics)])
    lines = [line for timeline in history.timelines for line in _lines(timeline, options.metric, options.last)]
    return CommandResult(0, {"timelines": to_builtins(drawn)}, lines)


def _suite(name: str) -> Path:
    """The suite file that ``llmeval history`` is asked about, by its path or name.

    Raises:
        LlmevalError: There is none of this name, or there are several.
    """
    if Path(name).is_file():
        return Path(name)

    files = {path: {path.name, OwnFiles(path).stem, _name(path)} - {""} for path in suite_files(Path())}
    matches = [path for path, names in files.items() if name in names]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise LlmevalError(f"found {len(matches)} suites {name!r}, expected one: {', '.join(map(str, matches))}")
    if name in History.noted_paths(Path.cwd()):
        return Path(name)  # the file is gone, its history is not
    near = suggest(name, {known_name for names in files.values() for known_name in names})
    raise LlmevalError(f"no suite {name!r} here{near}: name a suite, or its file")


def _name(path: Path) -> str:
    """The name that a suite file declares; empty if it cannot be read."""
    try:
        data = InputFile(path).read_document().data
    except SuiteError:
        return ""
    name = data.get("suite") if isinstance(data, Mapping) else None
    return name if isinstance(name, str) else ""


def _root(suite: Path) -> Path:
    """The folder that has the history of a suite: the nearest one above it, or else the current folder."""
    folders = suite.resolve().parents
    return next((folder for folder in folders if History.path_in(folder).exists()), Path.cwd())


def _chosen(timeline: Timeline, names: Sequence[str] | None, most: int) -> list[str]:
    """The metrics of a suite's history to show: the named ones, or else the first few."""
    return [name for name in timeline.metrics if name in names] if names else timeline.metrics[:most]


def _lines(timeline: Timeline, names: Sequence[str] | None, last: int) -> Iterator[str]:
    """Yield the text of ``llmeval history``: a table for each metric, and the gates that failed."""
    points = timeline.points[-last:]
    noted, approved = sum(point.noted for point in timeline.points), sum(point.approved for point in timeline.points)
    cut = f"; the last {last}" if len(points) < len(timeline.points) else ""
    yield from _wrapped(f"{timeline.title}: {counted(noted, 'run')}, {counted(approved, 'approval')}{cut}")
    metrics = _chosen(timeline, names, _TABLES)
    for name in metrics:
        yield ""
        yield from _wrapped(name)
        yield from _table(timeline, name, last)
    failed = [f"{point.when}  {gate}" for point in points for gate in point.failed_gates]
    if failed:
        yield ""
        yield "failed gates"
        for failure in failed:
            yield from _wrapped(failure)
    others = [name for name in timeline.metrics if name not in metrics]
    if others and not names:
        yield ""
        yield from _wrapped(f"{counted(len(others), 'more metric')} (--metric NAME): {', '.join(others)}")


def _table(timeline: Timeline, metric: str, last: int) -> Iterator[str]:
    """Yield the table of one metric over the last runs of a suite, with changes of basis between the rows."""
    rows = [
        (
            point.when,
            printable(point.commit).encode("ascii", "backslashreplace").decode()[:_COMMIT],
            _short(point.values.get(metric)),
            interval(*point.intervals[metric]) if metric in point.intervals else "",
            _gates(point.gates),
            "approved" if point.approved else "",
        )
        for point in timeline.points[-last:]
    ]
    headers = ("when", "commit", "value", "interval", "gates", "")
    header, *lines = table_lines([headers, *rows], "llrrll")
    yield header.rstrip()
    for line, changed in zip(lines, timeline.changes()[-last:], strict=True):
        if changed:
            yield f"-- changed: {', '.join(changed)} --"
        yield line.rstrip()


def _short(value: float | None) -> str:
    """A metric value that fits the column of a history table."""
    return number(value) if value is None or abs(value) < 1e5 else f"{value:.3g}"  # noqa: PLR2004 (wider than a column)


def _gates(outcomes: Mapping[str, str] | None) -> str:
    """The cell of a history table that sums up the outcomes of a run's gates."""
    if not outcomes:
        return ""
    judged = sum(outcome != "not_judged" for outcome in outcomes.values())
    if failed := sum(outcome == "failed" for outcome in outcomes.values()):
        return f"FAILED {failed}/{judged}"
    return f"passed {judged}" if judged else "not evaluated"


def _wrapped(text: str) -> list[str]:
    """Wrap a line of ``llmeval history``; East Asian characters and emoji take two columns."""
    wide = any(east_asian_width(character) in "WF" for character in text)
    return textwrap.wrap(
        printable(text), _WIDTH // 2 if wide else _WIDTH, subsequent_indent="  ", break_on_hyphens=False
    ) or [""]


_IMAGE_WIDTH = 720
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


def history_svg(timelines: Sequence[Timeline], metrics: Mapping[str, Sequence[str]]) -> str:
    """An SVG image of suite histories, with a small chart for each metric.

    It has no scripts and no outside resources, and can be read in light and dark.

    Args:
        timelines: Timelines, with the points to draw.
        metrics: Title of a timeline to the metrics to draw.
    """
    parts = []
    top = 0
    for timeline in timelines:
        parts.append(f'<text class="title" x="8" y="{top + 20}">{_text(timeline.title, _TITLE_LONGEST)}</text>')
        top += _TITLE
        for name in metrics[timeline.title]:
            parts += _chart(timeline, name, top)
            top += _ROW
        parts += _days(timeline, top - 4)
        top += _DAYS
    parts += _legend(top + 14)
    label = ", ".join(_text(timeline.title, _TITLE_LONGEST) for timeline in timelines)
    height = top + _LEGEND
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_IMAGE_WIDTH}" height="{height}"'
        f' viewBox="0 0 {_IMAGE_WIDTH} {height}"'
        f' role="img" aria-label="History of {label}">\n<style>\n{_STYLE}</style>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _text(text: str, longest: int | None = None) -> str:
    """Escape a text for the XML of a history chart."""
    return escape(printable(text) if longest is None else excerpt(text, longest))


def _chart(timeline: Timeline, metric: str, top: int) -> Iterator[str]:
    """Yield the SVG elements of the chart of one metric in a suite's history."""
    points = timeline.points
    scale = _Scale(timeline, metric, top)
    last = next((point for point in reversed(points) if point.values.get(metric) is not None), None)
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
        yield _mark(timeline, place, metric, scale.x(place), scale.y(value))


class _Scale:
    """The coordinates of the points of a metric in a history chart."""

    def __init__(self, timeline: Timeline, metric: str, top: int) -> None:
        points = timeline.points
        self.count, self.top = len(points), top
        self.values = {n: value for n, point in enumerate(points) if (value := point.values.get(metric)) is not None}
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
    """Yield the runs of consecutive positions at which a history chart has values."""
    run: list[int] = []
    for place in places:
        if run and place != run[-1] + 1:
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _days(timeline: Timeline, y: int) -> Iterator[str]:
    """Yield the SVG elements for the days of the first and the last point of a history chart."""
    points = timeline.points
    for point, x, anchor in ((points[0], _LEFT, "start"), (points[-1], _RIGHT, "end")) if points else ():
        yield f'<text class="muted" x="{x}" y="{y}" text-anchor="{anchor}">{point.time:%Y-%m-%d}</text>'


def _mark(timeline: Timeline, place: int, metric: str, x: float, y: float) -> str:
    """The SVG mark of one run in a history chart, with a tooltip."""
    point = timeline.points[place]
    parts = [f"{point.when} {point.commit[:7]}".rstrip(), f"{metric} {number(point.values[metric])}"]
    parts += [interval(*point.intervals[metric])] if metric in point.intervals else []
    parts += ["approved"] if point.approved else []
    parts += [f"failed: {gate}" for gate in point.failed_gates]
    ring = f'<circle class="failed" cx="{x:.1f}" cy="{y:.1f}" r="6"/>' if point.failed_gates else ""
    return f"<g>{_dot(x, y, approved=point.approved)}{ring}<title>{_text('; '.join(parts))}</title></g>"


def _dot(x: float, y: float, *, approved: bool = False) -> str:
    """The SVG shape of a run in a history chart: a circle, or a diamond if its scores were approved."""
    if approved:
        return f'<path class="approved" d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"/>'
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>'


def _legend(y: int) -> Iterator[str]:
    """Yield the SVG elements of the legend of the history charts."""
    yield f'{_dot(14, y)}<text class="muted" x="24" y="{y + 3}">run</text>'
    yield f'{_dot(64, y, approved=True)}<text class="muted" x="74" y="{y + 3}">approved</text>'
    yield (
        f'<circle class="failed" cx="140" cy="{y}" r="5"/><text class="muted" x="150" y="{y + 3}">a gate failed</text>'
    )
    yield (
        f'<line class="changed" x1="234" x2="234" y1="{y - 7}" y2="{y + 7}"/>'
        f'<text class="muted" x="242" y="{y + 3}">data, evaluator or judge changed</text>'
    )
