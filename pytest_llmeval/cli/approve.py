"""The command ``llmeval approve``: failures of a run that are known from now on."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_llmeval.cli.console import say
from pytest_llmeval.cli.options import OPTIONS, add_options
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.results import CaseResult
from pytest_llmeval.core.wording import suggest
from pytest_llmeval.data.files.places import display_path
from pytest_llmeval.reports.form import SuiteReport
from pytest_llmeval.suite.suite import SuiteKey


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Approve the failures of single cases, as a JSON report has them: from now on, such a case fails the run only "
        "if it misses another limit or check, or cannot be scored. Its scores count as before. The suite's file "
        "__llmeval__/NAME.failures.json keeps what is approved; commit it."
    )
    parser.add_argument("report", type=Path, metavar="REPORT", help="a JSON report of the run")
    parser.add_argument("--case", action="append", required=True, metavar="ID", help="a failed case; repeatable")
    parser.add_argument("--suite", help="the suite, where cases of several suites share the id")
    rootdir = OPTIONS["rootdir"]
    add_options(parser, rootdir._replace(default=Path(), help="pytest's rootdir; default: the current folder"))
    parser.set_defaults(run=_approve)


def _approve(options: Namespace) -> int:
    from pytest_llmeval.baselines.failures import failures_file, read_failures, write_failures
    from pytest_llmeval.reports.reading import read_report

    suites = [each for each in read_report(options.report).suites if options.suite in (None, each.suite, each.path)]
    if not suites:
        raise LlmevalError(f"{options.report}: found no suite {options.suite!r}, expected one of the report")
    failures: dict[SuiteKey, dict[str, Sequence[str]]] = {}
    for name in options.case:
        suite, case = _failed(name, suites, options.report)
        path = (options.rootdir / suite.path).resolve()
        if not path.is_file():
            raise LlmevalError(f"found no file {path}, expected the suite of the report: name pytest's --rootdir")
        key = SuiteKey(str(path), suite.path, variant=suite.variant)
        failures.setdefault(key, dict(read_failures(key)))[name] = sorted(set(case.unmet))
    for key, known in failures.items():
        write_failures(key, known)
        written = display_path(failures_file(key), options.rootdir.resolve())
        say(f"{written}: {name}: {', '.join(known[name])}" for name in options.case if name in known)
    return 0


def _failed(name: str, suites: Sequence[SuiteReport], report: Path) -> tuple[SuiteReport, CaseResult]:
    """Return the failed case of an id.

    Raises:
        LlmevalError: There is none, several suites have one, or it did not fail by limits and checks alone.
    """
    found = list(_named(name, suites))
    if not found:
        known = [case.id for suite in suites for case in suite.result.cases]
        raise LlmevalError(f"{report}: found no case {name!r}{suggest(name, known)}")
    failed = [each for each in found if each[1].unmet]
    if not failed:
        outcome = found[0][1].outcome.replace("_", " ")
        raise LlmevalError(
            f"{report}: case {name!r}: found the outcome {outcome!r}, expected a case that misses limits or checks"
        )
    if len(failed) > 1:
        names = ", ".join(suite.suite for suite, _ in failed)
        raise LlmevalError(f"{report}: case {name!r} failed in {names}: name one of them by --suite")
    return failed[0]


def _named(name: str, suites: Sequence[SuiteReport]) -> Iterator[tuple[SuiteReport, CaseResult]]:
    for suite in suites:
        yield from ((suite, case) for case in suite.result.cases if case.id == name)
