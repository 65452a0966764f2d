"""The media of reported cases, and their files."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.core import MediaError, media_in, media_of
from pytest_llmeval.reports._form import CaseReport, SuiteReport


def values_of(case: CaseReport) -> Sequence[Any]:
    """Return what may hold media in a case."""
    return [case.input, case.expected, case.prediction, *(answer.value for answer in case.several)]


def media_paths(suites: Iterable[SuiteReport], root: Path) -> dict[str, str]:
    """Return digest to path of the media of some suites whose files are here.

    Args:
        suites: Their cases have the forms of media.
        root: Paths are relative to it; what lies outside has none.
    """
    paths: dict[str, str] = {}
    values = (value for suite in suites for case in suite.cases for value in values_of(case))
    for form in (form for value in values for form in media_in(value)):
        if "sha256" not in form or form["sha256"] in paths:
            continue
        try:
            path = media_of(form).path
        except MediaError:
            continue  # the report has its type, size and digest
        if path is not None and path.is_relative_to(root):
            paths[form["sha256"]] = path.relative_to(root).as_posix()
    return paths
