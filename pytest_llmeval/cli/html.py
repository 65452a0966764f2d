"""The command ``llmeval html``: JSON reports as one HTML page."""

__all__ = ("add_arguments",)

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from pytest_llmeval.cli.console import say, write_text
from pytest_llmeval.core.errors import SuiteError

if TYPE_CHECKING:
    from pytest_llmeval.gates.statistics.compare import Difference
    from pytest_llmeval.reports.form import Changes, RunReport, SuiteReport
    from pytest_llmeval.reports.html.data import PageRun

_HTML = (
    "Write JSON reports as one HTML page, which opens from disk without network. The first report is the run that the "
    "page is about; it is compared with the baseline, or else with the second report. The exit code is 0 if the page "
    "is written, whatever its content, and 2 if a file cannot be used."
)
_CONFIDENCE = 0.95


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _HTML
    parser.add_argument("reports", nargs="+", type=Path, metavar="RUN.json", help="JSON report of a run")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="page to write (default: RUN.html)")
    parser.add_argument("--baseline", type=Path, metavar="BASE.json", help="JSON report to compare with")
    parser.set_defaults(run=_html)


def _html(options: Namespace) -> int:
    from pytest_llmeval.reports.html.page import to_page

    output = options.output or options.reports[0].with_suffix(".html")
    try:
        page = to_page(_runs(options.reports, options.baseline))
        write_text(output, [page.html])
    except SuiteError as error:
        say(error.faults, error=True)
        return 2
    say([f"wrote {output}", *([f"{output}: {page.note}"] if page.note else [])])
    return 0


def _runs(reports: Sequence[Path], baseline: Path | None) -> "list[PageRun]":
    """Read reports as the runs of a page, the first one with its changes and history.

    Raises:
        SuiteError: One cannot be used.
    """
    from pytest_llmeval.reports.html.page import page_run
    from pytest_llmeval.reports.reading import read_report
    from pytest_llmeval.run.finishing import with_past

    paths = [*reports, *([] if baseline is None else [baseline])]
    read = [read_report(path) for path in paths]
    labels = _labels(paths) if len(paths) > 1 else [""]
    first = with_past(read[0], Path.cwd())  # reports name suites from the folder that has their history
    pairs: Sequence[int | None] = ()
    against = len(paths) - 1 if baseline is not None else 1
    if against < len(paths):
        start = sum(len(each.suites) for each in read[:against])
        first, pairs = _compared(first, read[against], labels[against], start)
    others = [
        page_run(report, label, is_baseline=baseline is not None and place == len(reports))
        for place, (report, label) in enumerate(zip(read, labels, strict=True))
        if place
    ]
    return [page_run(first, labels[0], pairs=pairs), *others]


def _labels(paths: Sequence[Path]) -> list[str]:
    """Return labels of runs: file names, or whole paths if names collide."""
    names = [path.name for path in paths]
    return [path.name if names.count(path.name) == 1 else str(path) for path in paths]


def _compared(
    here: "RunReport", there: "RunReport", label: str, start: int
) -> "tuple[RunReport, Sequence[int | None]]":
    """Return a run with the changes of its suites, and for each the index of its counterpart.

    Args:
        here: The run.
        there: The run to compare with.
        label: Its label.
        start: Index of its first suite among all suites of the page.
    """
    from pytest_llmeval.cli.paired import pair_suites

    counterparts = {id(one): other for one, other in pair_suites(here.suites, there.suites, named=False)[0]}
    places = {id(each): start + place for place, each in enumerate(there.suites)}
    found = [counterparts.get(id(each)) for each in here.suites]
    suites = [
        each if other is None else structs.replace(each, changes=_changes(each, other, label))
        for each, other in zip(here.suites, found, strict=True)
    ]
    return structs.replace(here, suites=suites), [None if other is None else places[id(other)] for other in found]


def _changes(here: "SuiteReport", there: "SuiteReport", label: str) -> "Changes":
    """Return what changed between two suites, over the cases that ran in both."""
    from pytest_llmeval.cli.paired import paired_scores
    from pytest_llmeval.core.results import PASS_RATE
    from pytest_llmeval.core.wording import counted
    from pytest_llmeval.gates.statistics.compare import differences
    from pytest_llmeval.reports.form import Changes

    paired = paired_scores(here, there)
    alone = zip(paired.alone, ("this run", label), strict=True)
    notes = [f"{counted(len(ids), 'case')} only in {which}" for ids, which in alone if ids]
    found: dict[str, Difference] = {}
    if paired.here.result.cases:
        names = [*paired.evaluator.metrics, PASS_RATE]
        rows = paired.pairing.everything()
        found = differences(paired.pairing, rows, names, confidence=_CONFIDENCE, cluster_by=paired.cluster_by)
    return Changes(label, found, [*notes, *_measured_otherwise(here, there)])


def _measured_otherwise(here: "SuiteReport", there: "SuiteReport") -> list[str]:
    """Return notes on metrics that the two runs compute in different ways."""
    now, then = here.result.metrics, there.result.metrics
    return [
        f"{name}: measured in different ways: {now[name].signature!r}, baseline {then[name].signature!r}"
        for name in now
        if name in then and now[name].signature != then[name].signature
    ]
