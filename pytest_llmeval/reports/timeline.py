"""The history of a suite: runs and approvals with values, intervals and gates, what changed between them; a drawing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from pytest_llmeval.core.wording import excerpt, interval, number, printable
from pytest_llmeval.reports.tables import Point, Timeline

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
