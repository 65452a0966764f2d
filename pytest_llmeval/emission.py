"""Verdicts as test reports: verbose output, counts, JUnit and exit code follow, as they do for tests."""

__all__ = ("Emitted", "emit")

from collections.abc import Sequence
from typing import Literal, NamedTuple

import pytest


class Emitted(NamedTuple):
    """A verdict that is no test's.

    Attributes:
        path: The file that it is about.
        shown: The file as reports name it.
        name: Behind the file in the node id, such as ``gate[f1 >= 0.7]``.
        outcome: ``not_judged`` is reported as skipped.
        reason: One sentence for people.
    """

    path: str
    shown: str
    name: str
    outcome: Literal["passed", "failed", "not_judged"]
    reason: str


def emit(session: pytest.Session, verdicts: Sequence[Emitted]) -> None:
    """Report verdicts the way pytest reports tests: three phases each."""
    session.testscollected += len(verdicts)
    for each in verdicts:
        reason: str | tuple[str, int, str] | None = None
        outcome: Literal["passed", "failed", "skipped"] = "passed"
        if each.outcome == "failed":
            outcome, reason = "failed", each.reason
        elif each.outcome == "not_judged":
            outcome, reason = "skipped", (each.path, 0, f"Skipped: {each.reason}")
        nodeid, location = f"{each.shown}::{each.name}", (each.shown, 0, each.name)
        for phase in (
            pytest.TestReport(nodeid, location, {}, "passed", None, "setup"),
            pytest.TestReport(nodeid, location, {}, outcome, reason, "call"),
            pytest.TestReport(nodeid, location, {}, "passed", None, "teardown"),
        ):
            session.config.hook.pytest_runtest_logreport(report=phase)
