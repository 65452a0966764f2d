"""The commands on reports ``llmeval approve`` and ``llmeval html``."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec import structs

from pytest_llmeval.baselines import FailuresFile, History
from pytest_llmeval.cli import OPTIONS, CommandResult, NumberArgument
from pytest_llmeval.core import (
    Fault,
    LlmevalError,
    OptionError,
    SuiteError,
    counted,
    suggest,
    unknown_name,
)
from pytest_llmeval.data import OutputFile, display_path
from pytest_llmeval.reports import (
    CaseReport,
    Changes,
    PageRun,
    RunReport,
    SuiteReport,
)
from pytest_llmeval.suites import SuiteKey
from pytest_llmeval.workbench._report_pair import ReportPair, paired_scores, remeasured, report_changes
from pytest_llmeval.workbench._site import ListedRun, list_report, to_index


def read_suites(report: str) -> list[SuiteReport]:
    """Read the suites of a JSON report; ``FILE#NAME`` selects one system.

    Raises:
        SuiteError: The report cannot be read, or has no such system.
    """
    file, separator, name = report.partition("#") if not Path(report).exists() else (report, "", "")
    suites = list(RunReport.read(Path(file)).suites)
    chosen = [suite for suite in suites if (suite.variant or suite.suite) == name] if separator else suites
    if not chosen:
        known = [suite.variant or suite.suite for suite in suites]
        raise SuiteError([Fault(file, 0, 0, "", unknown_name("system", name, known))])
    return chosen


def results_of(suites: Sequence[SuiteReport], path: Path) -> list[SuiteReport]:
    """The results of a suite file in a report, which names it from the folder in which pytest ran."""
    whole = path.resolve().parts
    named = [suite for suite in suites if whole[-len(Path(suite.path).parts) :] == Path(suite.path).parts]
    longest = max((len(Path(suite.path).parts) for suite in named), default=0)
    return [suite for suite in named if len(Path(suite.path).parts) == longest]


def add_approve(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval approve``."""
    parser.description = (
        "Approve the failures of single cases in a JSON report. An approved case fails the run only if it misses "
        "another limit or check, or cannot be scored. Its scores count as before. The suite's file "
        "__llmeval__/NAME.failures.json stores what is approved: commit it."
    )
    parser.add_argument("report", type=Path, metavar="REPORT", help="a JSON report of the run")
    parser.add_argument("--case", action="append", required=True, metavar="ID", help="a failed case; repeatable")
    parser.add_argument("--suite", help="the suite, where cases of several suites share the id")
    rootdir = OPTIONS["rootdir"]
    OPTIONS.add_to(parser, rootdir._replace(default=Path(), help="pytest's rootdir; default: the current folder"))
    parser.set_defaults(run=_approve)


def _approve(options: Namespace) -> CommandResult:
    """Run ``llmeval approve``: note failed cases of a report as known failures of their suite."""
    report = RunReport.read(options.report)
    suites = [suite for suite in report.suites if options.suite in (None, suite.suite, suite.path)]
    if not suites:
        raise LlmevalError(f"{options.report} has no suite {options.suite!r}")
    failures: dict[SuiteKey, dict[str, Sequence[str]]] = {}
    contents: dict[SuiteKey, dict[str, str]] = {}
    for name in options.case:
        suite, case = _failed(name, suites, options.report)
        path = (options.rootdir / suite.path).resolve()
        if not path.is_file():
            raise LlmevalError(f"{path}, the suite of the report, does not exist: name pytest's --rootdir")
        key = SuiteKey(str(path), suite.path, variant=suite.variant)
        contents[key] = {suite_case.id: suite_case.content for suite_case in suite.cases if suite_case.content}
        known = failures.setdefault(key, dict(FailuresFile(key).read(partial(contents.__getitem__, key))))
        known[name] = sorted(set(case.unmet))
    approved = []
    for key, known in failures.items():
        file = FailuresFile(key)
        file.write(known, contents[key])
        written = display_path(file.path, options.rootdir.resolve())
        named = [name for name in options.case if name in known]
        approved += [{"file": written, "case": name, "unmet": known[name]} for name in named]
    lines = [f"{approval['file']}: {approval['case']}: {', '.join(approval['unmet'])}" for approval in approved]
    return CommandResult(0, {"approved": approved}, lines)


def _failed(name: str, suites: Sequence[SuiteReport], report: Path) -> tuple[SuiteReport, CaseReport]:
    """The failed case of a report that ``llmeval approve --case`` names.

    Raises:
        LlmevalError: There is none, several suites have one, or it did not fail by limits and checks alone.
    """
    named = list(_named(name, suites))
    if not named:
        known = [case.id for suite in suites for case in suite.cases]
        raise LlmevalError(f"{report}: unknown case {name!r}{suggest(name, known)}")
    failed = [pair for pair in named if pair[1].unmet]
    if not failed:
        outcome = named[0][1].outcome.replace("_", " ")
        raise LlmevalError(
            f"{report}: case {name!r}: found the outcome {outcome!r}, expected a case that misses limits or checks"
        )
    if len(failed) > 1:
        names = ", ".join(suite.suite for suite, _ in failed)
        raise LlmevalError(f"{report}: case {name!r} failed in {names}: name one of them by --suite")
    return failed[0]


def _named(name: str, suites: Sequence[SuiteReport]) -> Iterator[tuple[SuiteReport, CaseReport]]:
    """Yield the cases of an id in the suites of a report, each with its suite."""
    for suite in suites:
        yield from ((suite, case) for case in suite.cases if case.id == name)


_HTML = (
    "Write JSON reports as one HTML page, which opens from disk without network. The first report is the run that the "
    "page is about; it is compared with the baseline, or else with the second report. Of a folder of reports, write a "
    "folder: a list of the runs with trends, and a page for each. The exit code is 0 if all is written, and 2 if a "
    "file cannot be used."
)


def add_html(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval html``."""
    parser.description = _HTML
    parser.add_argument(
        "reports", nargs="+", type=Path, metavar="RUN.json", help="JSON report of a run, or a folder of them"
    )
    help_text = "page to write (default: RUN.html), or folder of the pages of a folder (default: FOLDER/site)"
    parser.add_argument("-o", "--output", type=Path, metavar="PATH", help=help_text)
    parser.add_argument("--baseline", type=Path, metavar="BASE.json", help="JSON report to compare with")
    parser.add_argument(
        "--pages",
        type=NumberArgument(least=1, whole=True),
        metavar="N",
        help="of a folder: pages for the newest N runs (default: all)",
    )
    parser.set_defaults(run=_html, bulk=True, code_of_faults=2)


def _html(options: Namespace) -> CommandResult:
    """Run ``llmeval html``: write the HTML page of reports, or the site of a folder of reports."""
    if any(path.is_dir() for path in options.reports):
        return _site(options)
    output = options.output or options.reports[0].with_suffix(".html")
    run, *others = page_runs(options.reports, options.baseline)
    page = run.page(*others, folder=output.absolute().parent)
    OutputFile(output).save_text([page.html])
    lines = [f"wrote {output}", *([f"{output}: {page.note}"] if page.note else [])]
    return CommandResult(0, {"written": [str(output)], "note": page.note}, lines)


def _site(options: Namespace) -> CommandResult:
    """Write the HTML site of a folder of JSON reports; pages newer than their report stay."""
    if len(options.reports) > 1 or options.baseline is not None:
        raise OptionError("a folder of reports stands alone: leave out --baseline and the other reports")
    (root,) = options.reports
    site = options.output or root / "site"
    faults: list[str] = []
    runs: list[ListedRun] = []
    for path in root.rglob("*.json"):
        if not path.is_relative_to(site):
            try:
                runs.append(list_report(path, root))
            except SuiteError as error:
                faults += map(str, error.faults)
    if not runs:
        absent = f"there is no JSON report in {root}: pytest --llmeval-report=FILE.json writes one"
        raise LlmevalError("\n".join([absent, *sorted(faults)]))
    runs.sort(key=lambda run: run.order)
    new = 0
    for run in runs[-options.pages :] if options.pages else runs:
        try:
            new += _write_page(site / run.page, root / run.path)
        except SuiteError as error:
            faults += map(str, error.faults)
    linked = {run.page for run in runs if (site / run.page).exists()}
    site.mkdir(parents=True, exist_ok=True)
    OutputFile(site / "index.html").save_text([to_index(runs, linked, sorted(faults))])
    lines = [f"wrote {site / 'index.html'}: {counted(len(runs), 'run')}, {counted(new, 'new page')}"]
    data = {"written": str(site / "index.html"), "runs": len(runs), "pages": new, "faults": sorted(faults)}
    return CommandResult(2 if faults else 0, data, lines, sorted(faults))


def _write_page(page: Path, report: Path) -> bool:
    """Write the HTML page of a JSON report unless it is newer; return whether it was written."""
    if page.exists() and page.stat().st_mtime_ns > report.stat().st_mtime_ns:
        return False
    read = RunReport.read(report)
    read.begin_media(Path.cwd())
    html = PageRun("", read).page(folder=page.absolute().parent).html
    page.parent.mkdir(parents=True, exist_ok=True)
    OutputFile(page).save_text([html])
    return True


def page_runs(reports: Sequence[Path], baseline: Path | None) -> list[PageRun]:
    """Read JSON reports as the runs of an HTML page, the first one with its changes and history.

    Raises:
        SuiteError: One cannot be used.
    """
    paths = [*reports, *([] if baseline is None else [baseline])]
    read = [RunReport.read(path) for path in paths]
    read[0].begin_media(Path.cwd(), *read[1:])
    labels = _labels(paths) if len(paths) > 1 else [""]
    first = History.extend_report(read[0], Path.cwd())  # reports name suites from the folder that has their history
    pairs: Sequence[int | None] = ()
    against = len(paths) - 1 if baseline is not None else 1
    if against < len(paths):
        start = sum(len(report.suites) for report in read[:against])
        first, pairs = _compared(first, read[against], labels[against], start)
    others = [
        PageRun(label, report, is_baseline=baseline is not None and place == len(reports))
        for place, (report, label) in enumerate(zip(read, labels, strict=True))
        if place
    ]
    return [PageRun(labels[0], first, pairs=pairs), *others]


def _labels(paths: Sequence[Path]) -> list[str]:
    """Short labels of runs on an HTML page: file names, or whole paths if names collide."""
    names = [path.name for path in paths]
    return [path.name if names.count(path.name) == 1 else str(path) for path in paths]


def _compared(here: RunReport, there: RunReport, label: str, start: int) -> tuple[RunReport, Sequence[int | None]]:
    """A run of an HTML page with the changes of its suites since another run, and the index of each counterpart.

    Args:
        here: The run.
        there: The run to compare with.
        label: Its label.
        start: Index of its first suite among all suites of the page.
    """
    pair = ReportPair.from_suites(here.suites, there.suites)
    places = {id(suite): start + place for place, suite in enumerate(there.suites)}
    others = [pair.counterpart(suite) for suite in here.suites]
    suites = [
        suite if other is None else structs.replace(suite, changes=_changes(suite, other, label))
        for suite, other in zip(here.suites, others, strict=True)
    ]
    return structs.replace(here, suites=suites), [None if other is None else places[id(other)] for other in others]


def _changes(here: SuiteReport, there: SuiteReport, label: str) -> Changes:
    """The changes of a suite between two reports of an HTML page, over the cases that ran in both."""
    changes = report_changes(paired_scores(here, there), label)
    now, then = here.metrics, there.metrics
    notes = [
        f"{name}: measured in different ways: {now[name].signature!r}, baseline {then[name].signature!r}"
        for name in remeasured(here, there)
    ]
    return structs.replace(changes, notes=[*changes.notes, *notes])
