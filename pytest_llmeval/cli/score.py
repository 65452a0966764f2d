"""The command ``llmeval score``: a suite whose predictions are known, on any executor, without pytest."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.cli.console import say
from pytest_llmeval.cli.options import OPTIONS, add_options
from pytest_llmeval.cli.suite_file import notes
from pytest_llmeval.core.errors import LlmevalError, SuiteError

if TYPE_CHECKING:
    from pytest_llmeval.reports.form import RunReport
    from pytest_llmeval.run.checkout import Checkout
    from pytest_llmeval.run.run_record import RunRecord


_LISTED = 20


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Score the predictions of a suite in this process, in several or on a cluster, judge its gates, and write "
        "reports as a run of pytest does. No target is called and no judge is asked. The exit code is that of a run: "
        "1 if a case or a gate failed."
    )
    parser.add_argument("suite", type=Path, metavar="SUITE", help="the suite file")
    predictions = OPTIONS["predictions"]._replace(help="predictions by id of case, JSONL or JSON")
    parser.add_argument(
        "--executor", default="", metavar="NAME", help="processes:N or dask://HOST:PORT; default: this process"
    )
    add_options(parser, predictions, "report", "verbose")
    parser.set_defaults(run=_score)


def _score(options: Namespace) -> int:
    from pytest_llmeval.baselines.mode import SnapshotMode
    from pytest_llmeval.cli.finished import say_finished
    from pytest_llmeval.run.checkout import Checkout
    from pytest_llmeval.run.collecting import RunTerms
    from pytest_llmeval.run.finishing import finish_run, write_run

    here, path = Path.cwd(), options.suite.resolve()
    checkout = Checkout(here if path.is_relative_to(here) else path.parent, {})
    run = _record(options, path, checkout)
    compares = any(each.suffix == ".html" for each in options.report)
    finished = finish_run(run, RunTerms(compares=compares), checkout, SnapshotMode())
    written, missing, lines = write_run(finished.report, options.report, checkout.root)
    say(_not_passed(finished.report))
    say_finished(finished, options.verbose)
    say(f"report written to {each}" for each in written)
    say(lines)
    lacking = [*finished.shortfalls, *missing]
    say((f"exit code 1: {each}" for each in lacking), error=True)
    return 1 if lacking or finished.failed else 0


def _not_passed(report: "RunReport") -> Iterator[str]:
    """Yield a line for each of the first cases that did not pass."""
    found = [
        f"{suite.path}::{case.id}{f'[{suite.variant}]' if suite.variant else ''} {case.outcome}: {case.reason}"
        for suite in report.suites
        for case in suite.result.cases
        if case.outcome in ("failed", "errored")
    ]
    yield from found[:_LISTED]
    if len(found) > _LISTED:
        yield f"... and {len(found) - _LISTED} more: see a report"


def _record(options: Namespace, path: Path, checkout: "Checkout") -> "RunRecord":
    """Score all cases of all systems.

    Raises:
        LlmevalError: The suite or the predictions have faults, or a worker is lost.
    """
    from pytest_llmeval.data.files.places import display_path
    from pytest_llmeval.run.run_record import Item, ItemResult, RunRecord
    from pytest_llmeval.run.streams.predicted_suite import open_executor, run_predicted, with_answers
    from pytest_llmeval.suite.suite import SuiteKey

    try:
        suite = checkout.read(path)
    except SuiteError as error:
        say(notes(path, error.faults), error=True)
        raise
    if options.predictions is not None:
        suite = with_answers(suite, options.predictions)
    if suite.all_faults:
        raise SuiteError(suite.all_faults)
    if not any(suite.of(name).cases for name in suite.systems or [""]):
        raise LlmevalError(f"{options.suite}: found no case, expected at least one")
    shown = display_path(path, checkout.root)
    run = RunRecord(selected={str(path)})
    with open_executor(options.executor) as executor:
        for name in suite.systems or [""]:
            key = SuiteKey(str(path), shown, variant=name)
            for part in run_predicted(suite.of(name), key, executor):
                run.items[Item(shown, f"{name}::{len(run.items)}")] = ItemResult(part, "passed", 0.0)
    return run
