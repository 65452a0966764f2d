"""The report of a run for coding agents."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_llmeval.core import CaseRecord, Fault, excerpt
from pytest_llmeval.reports import CaseReport, RunReport, SuiteReport

_MOST: Final = 40
"""Lines of a report, the first and the last among them."""
_WIDTH: Final = 240


def agent_lines(report: RunReport, notes: Sequence[str] = ()) -> list[str]:
    """Lines of the report for coding agents, at most 40: faults, gates, approved scores, then cases.

    Args:
        report: The run.
        notes: What could not be judged or written.
    """
    counts = f"; {report.totals.text}" if report.suites else ""
    first = f"llmeval {report.verdict_text}{counts}"
    broken = [
        excerpt(" ".join(line.split()), _WIDTH) for line in (*_broken(report), *(f"note: {note}" for note in notes))
    ]
    room = _MOST - 2
    if len(broken) > room:
        broken = [
            *broken[: room - 1],
            f"{len(broken) - room + 1} more lines: --llmeval-report=report.json has everything",
        ]
    return [excerpt(first, _WIDTH), *broken, f"next: {_next_of_agent(report)}"]


def _broken(report: RunReport) -> Iterator[str]:
    """Yield what did not pass in the report for coding agents: faults, gates, approved scores, then cases."""
    for path, faults in report.faults.items():
        for fault in faults:
            yield f"fault {Fault.code_of(fault)}: {fault if fault.startswith(path) else f'{path}: {fault}'}"
    for suite in report.suites:
        for gate in suite.gates:
            if gate.outcome != "passed":
                place = f"{suite.path}:{gate.line}" if gate.line else suite.path
                yield f"gate {gate.outcome}: {place}: {gate.gate}: {gate.headline}"
        for verdict in suite.snapshot:
            if verdict.outcome != "passed":
                yield f"snapshot {verdict.outcome}: {suite.path}: {verdict.metric}: {verdict.reason}"
    for suite in report.suites:
        yield from (f"case {case.outcome}: {_place(suite, case)}: {_reason(case)}" for case in _bad(suite))


def _bad(suite: SuiteReport) -> list[CaseReport]:
    """The failing cases of a suite, for the report for coding agents."""
    return [case for case in suite.cases if case.outcome in CaseRecord.BAD]


def _place(suite: SuiteReport, case: CaseReport) -> str:
    """Location and item name of a failing case in the report for coding agents."""
    line = f":{case.line}" if case.line else ""
    return f"{case.file or suite.path}{line} {_item(suite, case)}"


def _item(suite: SuiteReport, case: CaseReport) -> str:
    """The pytest item name of a case: its id, with the variant in brackets."""
    return f"{case.id}[{suite.variant}]" if suite.variant else case.id


def _reason(case: CaseReport) -> str:
    """Why a case failed, in the report for coding agents: its reason and the evaluators' findings."""
    details = [line for lines in case.lines.values() for line in lines]
    return "; ".join([*([case.reason] if case.reason else []), *details]) or "no reason is known"


def _next_of_agent(report: RunReport) -> str:
    """The command that coding agents run next: about what broke first, or after a run that passed."""
    for path in report.faults:
        return f"llmeval validate {shlex.quote(path)}"
    for suite in report.suites:
        for case in _bad(suite):
            return f"pytest --llmeval {shlex.quote(f'{suite.path}::{_item(suite, case)}')} -v"
    for suite in report.suites:
        outcomes = {*(gate.outcome for gate in suite.gates), *(verdict.outcome for verdict in suite.snapshot)}
        if outcomes - {"passed"}:
            return f"pytest --llmeval {shlex.quote(suite.path)} -v"
    if not report.suites:
        return "llmeval init, or pytest --llmeval SUITE with a suite file"
    return f"llmeval mutate {shlex.quote(report.suites[0].path)}, then llmeval guard"
