"""The command ``llmeval html``: JSON reports as one HTML page."""

__all__ = ("add_arguments",)

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.cli.console import say, write_text
from pytest_llmeval.core.errors import SuiteError

if TYPE_CHECKING:
    from pytest_llmeval.cli.report_file import RecordedSuite
    from pytest_llmeval.reports.html.data import PageRun
    from pytest_llmeval.scoring.comparison.compare import Difference

_HTML = (
    "Write JSON reports as one HTML page, which opens from disk without network. The first report is the run that the "
    "page is about; it is compared with the baseline, or else with the second report. The exit code is 0 if the page "
    "is written, whatever it says, and 2 if a file cannot be used."
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
    """Read reports as the runs of a page, the first one with its changes.

    Raises:
        SuiteError: One cannot be used.
    """
    from pytest_llmeval.cli.report_file import read_document
    from pytest_llmeval.reports.html.data import PageRun

    paths = [*reports, *([] if baseline is None else [baseline])]
    documents = [read_document(path) for path in paths]
    labels = _labels(paths) if len(paths) > 1 else [""]
    runs = [
        PageRun(label, data, is_baseline=baseline is not None and place == len(reports))
        for place, (label, (data, _)) in enumerate(zip(labels, documents, strict=True))
    ]
    runs[0] = _with_history(runs[0])
    against = len(paths) - 1 if baseline is not None else 1
    if against < len(paths):
        first = sum(len(suites) for _, suites in documents[:against])
        runs[0] = _compared(runs[0], documents[0][1], documents[against][1], labels[against], first)
    return runs


def _with_history(run: "PageRun") -> "PageRun":
    """Return a run whose suites have their history: reports name suites from the folder that has it."""
    from pytest_llmeval.reports.html.data import past_points
    from pytest_llmeval.reports.timeline import timeline_of
    from pytest_llmeval.snapshots.timelines import read_history

    root = Path.cwd()
    found = {path: read_history(root / path, root).timelines for path in {each["path"] for each in run.suites}}
    suites = [{**each, "history": past_points(timeline_of(each["suite"], found[each["path"]]))} for each in run.suites]
    return replace(run, data={**run.data, "suites": suites})


def _labels(paths: Sequence[Path]) -> list[str]:
    """Return what tells the runs apart: the name of the file, or all of its path where names are the same."""
    names = [path.name for path in paths]
    return [path.name if names.count(path.name) == 1 else str(path) for path in paths]


def _compared(
    run: "PageRun", here: "Sequence[RecordedSuite]", there: "Sequence[RecordedSuite]", label: str, first: int
) -> "PageRun":
    """Return a run whose suites say what changed.

    Args:
        run: The run.
        here: Its suites.
        there: Those to compare with.
        label: What the run that these are of is called.
        first: Place of the first of these among all suites of the page.
    """
    from pytest_llmeval.cli.paired import pair_suites

    pairs = {id(one): other for one, other in pair_suites(here, there, named=False)[0]}
    places = {id(each): first + place for place, each in enumerate(there)}
    suites = [
        {**suite, "changes": _changes(each, pairs[id(each)], label)} if id(each) in pairs else suite
        for each, suite in zip(here, run.suites, strict=True)
    ]
    found = [places[id(pairs[id(each)])] if id(each) in pairs else None for each in here]
    return replace(run, data={**run.data, "suites": suites}, pairs=found)


def _changes(here: "RecordedSuite", there: "RecordedSuite", label: str) -> dict[str, Any]:
    """Return what changed between two suites, over the cases that ran in both."""
    from pytest_llmeval.cli.paired import paired_scores
    from pytest_llmeval.core.results import PASS_RATE
    from pytest_llmeval.core.wording import counted
    from pytest_llmeval.reports.data import Changes
    from pytest_llmeval.reports.html.data import changes_json
    from pytest_llmeval.scoring.comparison.compare import differences

    paired = paired_scores(here, there)
    alone = zip(paired.alone, ("this run", label), strict=True)
    notes = [f"{counted(len(ids), 'case')} only in {which}" for ids, which in alone if ids]
    found: dict[str, Difference] = {}
    if paired.here.cases:
        names = [*paired.evaluator.metrics, PASS_RATE]
        rows = paired.pairing.everything()
        found = differences(paired.pairing, rows, names, confidence=_CONFIDENCE, cluster_by=paired.cluster_by)
    return changes_json(Changes(label, found, [*notes, *_measured_otherwise(here, there)]))


def _measured_otherwise(here: "RecordedSuite", there: "RecordedSuite") -> list[str]:
    """Say which metrics the two runs compute in different ways."""
    both = ((name, each, there.metrics[name]) for name, each in here.metrics.items() if name in there.metrics)
    return [
        f"{name}: measured in different ways: {now.signature!r}, baseline {then.signature!r}"
        for name, now, then in both
        if now.signature != then.signature
    ]
