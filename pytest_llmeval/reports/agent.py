"""The report for coding agents: the verdict, a line for each thing that broke, and the command to run next."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_llmeval.core.codes import code_of
from pytest_llmeval.core.wording import excerpt
from pytest_llmeval.reports.form import CaseReport, RunReport, SuiteReport
from pytest_llmeval.reports.overview import run_outcome, totals

_MOST: Final = 40
"""Lines of a report, the first and the last among them."""
_WIDTH: Final = 240


def agent_lines(report: RunReport, notes: Sequence[str] = ()) -> list[str]:
    """Return the lines of the report, at most 40: faults, gates, snapshots and cases in this order.

    Args:
        report: The run.
        notes: What could not be judged or written.
    """
    counts = f"; {totals(report.suites).text}" if report.suites else ""
    first = f"llmeval {run_outcome(report)}{counts}"
    broken = [
        excerpt(" ".join(each.split()), _WIDTH) for each in (*_broken(report), *(f"note: {each}" for each in notes))
    ]
    room = _MOST - 2
    if len(broken) > room:
        broken = [
            *broken[: room - 1],
            f"{len(broken) - room + 1} more lines: --llmeval-report=report.json has everything",
        ]
    return [excerpt(first, _WIDTH), *broken, f"next: {_next(report)}"]


def _broken(report: RunReport) -> Iterator[str]:
    for path, faults in report.faults.items():
        for fault in faults:
            yield f"fault {code_of(fault)}: {fault if fault.startswith(path) else f'{path}: {fault}'}"
    for suite in report.suites:
        for gate in suite.gates:
            if gate.outcome != "passed":
                place = f"{suite.path}:{gate.line}" if gate.line else suite.path
                yield f"gate {gate.outcome}: {place}: {gate.gate}: {gate.headline}"
        for each in suite.snapshot:
            if each.outcome != "passed":
                yield f"snapshot {each.outcome}: {suite.path}: {each.metric}: {each.reason}"
    for suite in report.suites:
        yield from (f"case {case.outcome}: {_place(suite, case)}: {_reason(case)}" for case in _bad(suite))


def _bad(suite: SuiteReport) -> list[CaseReport]:
    return [each for each in suite.cases if each.outcome in ("failed", "errored")]


def _place(suite: SuiteReport, case: CaseReport) -> str:
    line = f":{case.line}" if case.line else ""
    return f"{case.file or suite.path}{line} {_item(suite, case)}"


def _item(suite: SuiteReport, case: CaseReport) -> str:
    return f"{case.id}[{suite.variant}]" if suite.variant else case.id


def _reason(case: CaseReport) -> str:
    details = [line for lines in case.lines.values() for line in lines]
    return "; ".join([*([case.reason] if case.reason else []), *details]) or "no reason is known"


def _next(report: RunReport) -> str:
    """Return the command that says more about what broke first, or what to do with a run that passed."""
    for path in report.faults:
        return f"llmeval validate {shlex.quote(path)}"
    for suite in report.suites:
        for case in _bad(suite):
            return f"pytest --llmeval {shlex.quote(f'{suite.path}::{_item(suite, case)}')} -v"
    for suite in report.suites:
        outcomes = {*(each.outcome for each in suite.gates), *(each.outcome for each in suite.snapshot)}
        if outcomes - {"passed"}:
            return f"pytest --llmeval {shlex.quote(suite.path)} -v"
    if not report.suites:
        return "llmeval init, or pytest --llmeval SUITE with a suite file"
    return f"llmeval mutate {shlex.quote(report.suites[0].path)}, then llmeval guard"
