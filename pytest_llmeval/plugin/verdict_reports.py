"""Test reports for the verdicts of gates, snapshots and recordings."""

__all__ = ("CATEGORIES", "VerdictReport", "category_of", "emit", "verdict_report")

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import pytest

from pytest_llmeval.scoring.gates import GateResult, SnapshotVerdict
from pytest_llmeval.suite.suite import SuiteKey

COLLECTING = ("llmeval_controller", "llmeval_scores")
"""Our own plugins that collect what tests report. Verdicts follow from that, so they must not get them as reports."""


_CATEGORY = "llmeval_category"
_KINDS = ("gate", "snapshot")
CATEGORIES = tuple(f"{kind}{plural} passed" for kind in _KINDS for plural in ("", "s"))
"""What pytest's last line counts verdicts as that pass. Those that fail are failed tests, which pytest lists."""


class VerdictReport(NamedTuple):
    """A verdict that is no test's.

    Attributes:
        path: The file that it is about.
        shown: The file as reports name it.
        name: Behind the file in the node id, such as ``gate[f1 >= 0.7]``.
        outcome: ``undecided`` and ``not_judged`` are reported as skipped.
        reason: One sentence for people.
        line: Where the file says it; 0 where it does not.
    """

    path: str
    shown: str
    name: str
    outcome: Literal["passed", "failed", "undecided", "not_judged"]
    reason: str
    line: int = 0


def verdict_report(key: SuiteKey, verdict: GateResult | SnapshotVerdict) -> VerdictReport:
    """Name a verdict on a suite as the suite's items are named: the variant in brackets behind it."""
    variant = "".join(f"[{part}]" for part in (key.test, key.variant) if part)
    if isinstance(verdict, GateResult):
        kind, subject, line = "gate", verdict.gate, verdict.line
    else:
        kind, subject, line = "snapshot", verdict.metric, 0
    failed = verdict.outcome == "failed"
    place = f"{key.shown}:{line}" if line else key.shown
    reason = f"{place}: {kind} {subject}: {verdict.reason}" if failed else verdict.reason
    return VerdictReport(key.path, key.shown, f"{kind}[{subject}]{variant}", verdict.outcome, reason, line)


def category_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    """Return what pytest's last line counts a report as; nothing for what is counted as a test."""
    category: str = getattr(report, _CATEGORY, "")
    return category


def _categories(verdicts: Sequence[VerdictReport]) -> list[str]:
    """Return the category of each verdict: gates and snapshots are counted apart from cases."""
    kinds = [each.name.partition("[")[0] for each in verdicts]
    words = {"passed": "passed", "undecided": "undecided", "not_judged": "not judged"}
    keys = [
        (kind, words.get(each.outcome, "")) if kind in _KINDS else ("", "")
        for kind, each in zip(kinds, verdicts, strict=True)
    ]
    seen = Counter(keys)
    return [f"{kind}{'s' if seen[kind, word] > 1 else ''} {word}" if word else "" for kind, word in keys]


def emit(session: pytest.Session, verdicts: Sequence[VerdictReport]) -> None:
    """Report verdicts to all plugins but our own, in the three phases of a test: pytest-html needs all of them."""
    manager = session.config.pluginmanager
    own = [manager.get_plugin(name) for name in COLLECTING if manager.has_plugin(name)]
    report_to_others = manager.subset_hook_caller("pytest_runtest_logreport", remove_plugins=own)
    for each, category in zip(verdicts, _categories(verdicts), strict=True):
        session.testscollected += 1  # all at once, they would take the percentage that pytest shows back from 100
        reason: str | tuple[str, int, str] | None = None
        outcome: Literal["passed", "failed", "skipped"] = "passed"
        if each.outcome == "failed":
            outcome, reason = "failed", each.reason
        elif each.outcome != "passed":
            outcome, reason = "skipped", (each.path, each.line, f"Skipped: {each.reason}")
        nodeid, location = f"{each.shown}::{each.name}", (each.shown, max(each.line, 1) - 1, each.name)
        verdict = pytest.TestReport(nodeid, location, {}, outcome, reason, "call")
        setattr(verdict, _CATEGORY, category)
        for phase in (
            pytest.TestReport(nodeid, location, {}, "passed", None, "setup"),
            verdict,
            pytest.TestReport(nodeid, location, {}, "passed", None, "teardown"),
        ):
            report_to_others(report=phase)
