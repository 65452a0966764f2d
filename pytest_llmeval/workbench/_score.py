"""The command ``llmeval score``: the predictions of a suite, scored on any executor."""

import os
import re
import signal
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from msgspec import structs

from pytest_llmeval.cli import OPTIONS, CommandResult, say
from pytest_llmeval.core import LlmevalError, MissingExtraError, SuiteError
from pytest_llmeval.data import FaultLog, RecordedAnswers
from pytest_llmeval.run import run_predicted
from pytest_llmeval.suites import LoadedSuite
from pytest_llmeval.workbench._console import notes

if TYPE_CHECKING:
    from pytest_llmeval.reports import RunReport
    from pytest_llmeval.run import Checkout, RunRecord
    from pytest_llmeval.suites import SuiteKey
    from pytest_llmeval.targets import Recordings

_EXECUTOR = re.compile(r"processes:(?P<processes>[1-9][0-9]*)|dask://(?P<dask>[^/\s]+:[0-9]+)")


@contextmanager
def open_executor(name: str) -> Iterator[Executor | None]:
    """Open the executor of ``llmeval score``: ``processes:N``, ``dask://HOST:PORT``, or none for this process.

    Raises:
        LlmevalError: The name is another one, or the cluster cannot be reached.
        MissingExtraError: Dask is not installed.
    """
    if not name:
        yield None
        return
    match = _EXECUTOR.fullmatch(name)
    if match is None:
        raise LlmevalError(f"executor: found {name!r}, expected processes:N or dask://HOST:PORT")
    if match["processes"]:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        count, context = int(match["processes"]), get_context("spawn")
        with ProcessPoolExecutor(count, mp_context=context, initializer=_follow_parent) as pool:
            try:
                yield pool
            finally:
                pool.shutdown(cancel_futures=True)
        return
    with MissingExtraError.unless_installed("a Dask cluster", "dask"):
        from distributed import Client
    try:
        client = Client(f"tcp://{match['dask']}")
    except OSError as error:
        raise LlmevalError(f"executor: {name}: the scheduler cannot be reached ({error})") from None
    with client:
        yield client.get_executor()


def _follow_parent() -> None:
    """Prepare a scoring worker: leave interrupts to the parent process, and end when the parent ends."""
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    Thread(target=follow, daemon=True).start()


def with_answers(suite: LoadedSuite, path: Path) -> LoadedSuite:
    """Return a suite whose cases have the predictions of a file, with the faults of that file.

    Raises:
        LlmevalError: The suite has systems, or the file has no prediction of any case.
    """
    if suite.systems:
        raise LlmevalError(f"{suite.path}: found systems, expected one system for a file of predictions")
    faults = FaultLog(str(path))
    cases = {case.id: case for case in suite.cases}
    RecordedAnswers.read(path, faults).fill(cases, cases, faults, short_ids=True)
    if not any(
        case.prediction is not before.prediction for case, before in zip(cases.values(), suite.cases, strict=True)
    ):
        faults.check()
    return structs.replace(suite, cases=tuple(cases.values()), faults=(*suite.faults, *faults.listed()))


_LISTED = 20


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval score``."""
    parser.description = (
        "Score the predictions of a suite in this process, in several or on a cluster, judge its gates, and write "
        "reports as a run of pytest does. No target is called. Judges are asked as in a run, by this process. The exit "
        "code is that of a run: 1 if a case or a gate failed, 2 if verdicts are pending."
    )
    parser.add_argument("suite", type=Path, metavar="SUITE", help="the suite file")
    predictions = OPTIONS["predictions"]._replace(
        help="predictions by id of case, JSONL or JSON, or what --llmeval-predictions of pytest has recorded"
    )
    parser.add_argument(
        "--executor", default="", metavar="NAME", help="processes:N or dask://HOST:PORT; default: this process"
    )
    OPTIONS.add_to(parser, predictions, "judge", "concurrency", "budget", "cache", "report", "verbose")
    parser.set_defaults(run=_score, bulk=True)


_CANNOT_TELL = 2


def _score(options: Namespace) -> CommandResult:
    """Run ``llmeval score``: score the recorded predictions of a suite, without calling its target."""
    from pytest_llmeval.baselines import SnapshotMode
    from pytest_llmeval.run import Checkout, RunTerms, finish_run

    here, path = Path.cwd(), options.suite.resolve()
    checkout = Checkout(here if path.is_relative_to(here) else path.parent, {})
    run, pending = _record(options, path, checkout)
    compares = any(report.suffix == ".html" for report in options.report)
    terms = RunTerms(
        judge=options.judge,
        compares=compares,
        concurrency=options.concurrency,
        fingerprints=bool(options.report),
    )
    finished = finish_run(run, terms, checkout, SnapshotMode())
    result = CommandResult.of_run(finished, options, checkout.root, head=[*_not_passed(finished.report)])
    if not pending:
        return result
    if result.code:
        return result._replace(errors=[*result.errors, pending])
    return result._replace(code=_CANNOT_TELL, errors=[*result.errors, f"exit code {_CANNOT_TELL}: {pending}"])


def _not_passed(report: "RunReport") -> Iterator[str]:
    """Yield a line of ``llmeval score`` for each of the first cases that did not pass."""
    from pytest_llmeval.core import CaseRecord

    lines = [
        f"{suite.path}::{case.id}{f'[{suite.variant}]' if suite.variant else ''} {case.outcome}: {case.reason}"
        for suite in report.suites
        for case in suite.cases
        if case.outcome in CaseRecord.BAD
    ]
    yield from lines[:_LISTED]
    if len(lines) > _LISTED:
        yield f"... and {len(lines) - _LISTED} more: see a report"


def _record(options: Namespace, path: Path, checkout: "Checkout") -> "tuple[RunRecord, str]":
    """Score all cases of all systems of a suite, and return what waits for replies of judges.

    Raises:
        LlmevalError: The suite or the predictions have faults, or a worker is lost.
    """
    from pytest_llmeval.data import display_path
    from pytest_llmeval.run import RunRecord
    from pytest_llmeval.suites import SuiteKey
    from pytest_llmeval.targets import Recordings

    try:
        suite = checkout.read(path)
    except SuiteError as error:
        say(notes(path, error.faults), error=True)
        raise
    recordings = None
    if options.predictions is not None and Recordings.are_in(options.predictions):
        recordings = Recordings.open(options.predictions, "replay")
    elif options.predictions is not None:
        suite = with_answers(suite, options.predictions)
        checkout.loaded = {path: suite}
    if not any(suite.for_variant(name).cases for name in suite.systems or [""]):
        if suite.all_faults:
            raise SuiteError(suite.all_faults)
        raise LlmevalError(f"{options.suite} has no cases")
    file = display_path(path, checkout.root)
    run = RunRecord(selected={str(path)})
    if faults := suite.all_faults:
        say([*notes(path, faults), *faults], error=True)
        run.faults[file] = list(map(str, faults))
    systems = {SuiteKey(str(path), file, variant=name): suite.for_variant(name) for name in suite.systems or [""]}
    if suite.judged:
        return run, _ask_judges(options, systems, run, checkout, recordings)
    _measure(options, systems, run, recordings)
    return run, ""


def _measure(
    options: Namespace,
    systems: "Mapping[SuiteKey, LoadedSuite]",
    run: "RunRecord",
    recordings: "Recordings | None",
) -> None:
    """Score the cases of a suite without judges, possibly on an executor."""
    from pytest_llmeval.reports import shows_passed_cases

    explains = shows_passed_cases(options.report, options.verbose)
    with open_executor(options.executor) as executor:
        for key, system in systems.items():
            for part in run_predicted(system, key, executor, recordings, explains_all=explains):
                run.add_part(part)


def _ask_judges(
    options: Namespace,
    systems: "Mapping[SuiteKey, LoadedSuite]",
    run: "RunRecord",
    checkout: "Checkout",
    recordings: "Recordings | None",
) -> str:
    """Score the cases of a suite by stored, live or deferred judge verdicts; return what waits for replies.

    Raises:
        LlmevalError: There is an executor, the judge cannot be used, or the budget is spent.
    """
    from pytest_llmeval.run import CaseRunner
    from pytest_llmeval.workbench._judge import judge_options

    if options.executor:
        raise LlmevalError(
            f"executor: found {options.executor!r} for evaluators that ask a judge, expected none: this process asks"
        )
    judging = structs.replace(judge_options(options, "score"), mode=options.judge)
    runner = CaseRunner(judging, recordings)
    try:
        for key, system in systems.items():
            runner.run_judged(system, key, run)
            checkout.known = {**checkout.known, key: system.judge_identities(runner.judges, key.display_path)}
        return runner.judges.list_pending().text(Path.cwd()) if options.judge == "defer" else ""
    finally:
        runner.close(whole_run=True)
