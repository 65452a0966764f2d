"""The list of many runs as a static site."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from pytest_llmeval.core import Fault, MetricValue, SuiteError, number
from pytest_llmeval.reports import RunReport, SuiteReport, rendered_page

_WIDTH, _HEIGHT, _MARGIN = 640, 96, 6
_UNREAD = frozenset({"cases", "tables", "groups", "worst", "error_buckets", "usage", "money", "changes"})
"""Parts of a suite in a report that no list needs; they stay unparsed."""

_SHORT_COMMIT = 8
_PAGES = Path("runs")


class ListedRun(NamedTuple):
    """A run in the list of a static site of reports.

    Attributes:
        path: Its JSON report, relative to the folder of all reports.
        report: The report without its cases.
    """

    path: Path
    report: RunReport

    @property
    def order(self) -> tuple[str, str]:
        """The place among the runs of a folder: by time."""
        return self.report.run.started_at, self.path.as_posix()

    @property
    def page(self) -> Path:
        """The page of the run, relative to the folder of the site: in a folder, since a report may be called index."""
        return _PAGES / self.path.with_suffix(".html")


class _Whole(Struct):
    """The parts of a JSON report, unparsed, so that the run list of a site skips its cases."""

    run: Raw
    schema_version: int = 0
    suites: list[dict[str, Raw]] = []
    faults: Raw = Raw(b"{}")
    conclusion: Raw = Raw(b"null")


def list_report(path: Path, root: Path) -> ListedRun:
    """Read a JSON report without its cases, for the list of a site.

    Args:
        path: The report.
        root: The folder of all reports.

    Raises:
        SuiteError: It cannot be read, or is no report of this version.
    """
    try:
        whole = msgspec.json.decode(path.read_bytes(), type=_Whole)
        suites = [_without_cases(suite) for suite in whole.suites]
        parts = {"run": whole.run, "faults": whole.faults, "conclusion": whole.conclusion}
        report = msgspec.json.decode(_joined(parts), type=RunReport)
    except OSError as error:
        raise _report_fault(path, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise _report_fault(path, f"no JSON report of a run: {error}") from None
    if whole.schema_version != RunReport.SCHEMA_VERSION:
        raise _report_fault(
            path, f"found the schema version {whole.schema_version}, expected {RunReport.SCHEMA_VERSION}"
        )
    return ListedRun(path.relative_to(root), msgspec.structs.replace(report, suites=suites))


def _report_fault(path: Path, why: str) -> SuiteError:
    """The error about a JSON report that the site of runs cannot list."""
    return SuiteError([Fault(str(path), 0, 0, "", why)])


def _without_cases(suite: Mapping[str, Raw]) -> SuiteReport:
    """Parse a suite of a JSON report without its cases."""
    parts = {name: value for name, value in suite.items() if name not in _UNREAD}
    return msgspec.json.decode(_joined({**parts, "cases": Raw(b"[]")}), type=SuiteReport)


def _joined(parts: Mapping[str, Raw]) -> bytes:
    """Compose a JSON object from parsed names and unparsed values."""
    return b"{%s}" % b",".join(msgspec.json.encode(name) + b":" + bytes(value) for name, value in parts.items())


class _Trend(NamedTuple):
    """A metric of a suite over the runs of a site, as a drawing.

    Attributes:
        metric: Its name.
        last: Its last value with the interval.
        line: Points of the values.
        band: Points of the intervals, there and back; empty without intervals.
        lowest: Number at the lower end of the drawing.
        highest: Number at the upper end.
        runs: How many runs have a value.
    """

    metric: str
    last: str
    line: str
    band: str
    lowest: str
    highest: str
    runs: int


def to_index(runs: Sequence[ListedRun], linked: Collection[Path], faults: Sequence[str] = ()) -> str:
    """The HTML page that lists the runs of a site.

    Args:
        runs: The runs, from the first to the last.
        linked: The pages that there are, relative to the folder of the site.
        faults: Files that could not be used, a line each.
    """
    names = list(dict.fromkeys(suite.suite for run in reversed(runs) for suite in run.report.suites))
    suites = [{"name": name, "trends": list(_trends(name, runs))} for name in sorted(names)]
    rows = [_run_row(run, is_linked=run.page in linked) for run in reversed(runs)]
    assets = files(__package__) / "assets"
    return rendered_page(assets, "site.html.jinja", "site.css", (), None, suites=suites, rows=rows, faults=faults)


def _run_row(run: ListedRun, *, is_linked: bool) -> dict[str, Any]:
    """The data of a run in the table of a site's list of runs."""
    start = run.report.run
    metrics = [
        f"{suite.suite}: {name} {_with_interval(suite.metrics[name])}"
        for suite in run.report.suites
        for name in _followed(suite)
        if name in suite.metrics
    ]
    return {
        "page": run.page.as_posix() if is_linked else "",
        "time": start.started_at[:16].replace("T", " ") or run.path.as_posix(),
        "commit": (start.commit or "")[:_SHORT_COMMIT],
        "branch": start.branch,
        "verdict": run.report.verdict,
        "metrics": metrics,
    }


def _followed(suite: SuiteReport) -> Sequence[str]:
    """The metrics of a suite that a site's list shows: those of its gates, or else those of comparisons."""
    return suite.gated or list(suite.compared) or list(suite.metrics)[:1]


def _with_interval(value: MetricValue) -> str:
    """A metric value with its confidence interval, if it has one, in the list of runs."""
    interval = "" if value.low is None or value.high is None else f" ({number(value.low)}..{number(value.high)})"
    return f"{number(value.value)}{interval}"


def _trends(suite: str, runs: Sequence[ListedRun]) -> Iterator[_Trend]:
    """Yield the trends of a suite's metrics that have values in two runs or more."""
    reports = [report for run in runs for report in run.report.suites if report.suite == suite]
    for metric in dict.fromkeys(name for report in reversed(reports) for name in _followed(report)):
        values = [report.metrics[metric] for report in reports if metric in report.metrics]
        values = [value for value in values if value.value is not None]
        if len(values) > 1:
            yield _draw_trend(metric, values)


def _draw_trend(metric: str, values: Sequence[MetricValue]) -> _Trend:
    """The line and interval band of a metric over the runs of a suite, as SVG coordinates."""
    middle = [float(value.value) for value in values if value.value is not None]
    lows = [value if bounds.low is None else float(bounds.low) for bounds, value in zip(values, middle, strict=True)]
    highs = [value if bounds.high is None else float(bounds.high) for bounds, value in zip(values, middle, strict=True)]
    lowest, highest = min(lows), max(highs)
    span = highest - lowest if highest > lowest else 1.0

    def points(numbers: Sequence[float]) -> list[str]:
        step = (_WIDTH - 2 * _MARGIN) / (len(numbers) - 1)
        inner = _HEIGHT - 2 * _MARGIN
        return [
            f"{_MARGIN + place * step:.1f},{_HEIGHT - _MARGIN - (figure - lowest) / span * inner:.1f}"
            for place, figure in enumerate(numbers)
        ]

    band = " ".join([*points(highs), *reversed(points(lows))]) if lows != highs else ""
    line = " ".join(points(middle))
    return _Trend(metric, _with_interval(values[-1]), line, band, number(lowest), number(highest), len(values))
