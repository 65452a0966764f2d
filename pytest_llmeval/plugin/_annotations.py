"""Failures as annotations of a job of GitHub."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from pytest_llmeval.core import CaseRecord, counted
from pytest_llmeval.reports import RunReport

MOST: Final = 10
"""GitHub shows as many errors of a step."""
_PLACE = re.compile(r":(\d+)(?::\d+)?\s+")


class _Failure(NamedTuple):
    """A failure that GitHub shows at a line of a suite file or data file."""

    file: str
    line: int
    message: str


def annotation_lines(report: RunReport, folder: str = "") -> Iterator[str]:
    """Yield a workflow command for each faulty file, failed gate and failed case, ten at most, then their number.

    Args:
        report: The run.
        folder: Of pytest's rootdir in the repository.
    """
    failures = list(_failures(report))
    for failure in failures[:MOST]:
        file = _escape_text(str(PurePosixPath(folder, failure.file)), ":,")
        line = f",line={failure.line}" if failure.line else ""
        yield f"::error file={file}{line}::{_escape_text(failure.message)}"
    if len(failures) > MOST:
        yield f"::notice::and {counted(len(failures) - MOST, 'more failure')}"


def _failures(report: RunReport) -> Iterator[_Failure]:
    """Yield the failures of a run for GitHub: faulty files, gates, approved scores, then cases, declined ones first."""
    for path, faults in report.faults.items():
        for fault in faults:
            place_and_message = fault.removeprefix(path)
            place = _PLACE.match(place_and_message)
            yield _Failure(path, int(place[1]) if place else 0, place_and_message[place.end() :] if place else fault)
    for suite in report.suites:
        for gate in suite.gates:
            if gate.outcome == "failed":
                yield _Failure(suite.path, gate.line, f"{suite.suite}: {gate.gate}: {suite.gate_cause(gate)}")
        for score in suite.broken_scores:
            yield _Failure(suite.path, 0, f"{suite.suite}: snapshot {score.metric}: {score.reason}")
    fallen = {(suite.suite, name) for suite in report.suites for gate in suite.gates for name in gate.fallen}
    failing = [(suite, case) for suite in report.suites for case in suite.cases if case.outcome in CaseRecord.BAD]
    for suite, case in sorted(failing, key=lambda failure: (failure[0].suite, failure[1].id) not in fallen):
        message = f"{suite.suite}: {case.id}: {case.reason or case.outcome}"
        yield _Failure(case.file or suite.path, case.line, message)


def _escape_text(text: str, more: str = "") -> str:
    """A failure's text escaped for a GitHub workflow command; properties also escape the characters that end them."""
    return "".join(f"%{ord(character):02X}" if character in f"%\r\n{more}" else character for character in text)
