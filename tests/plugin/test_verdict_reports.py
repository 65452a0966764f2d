"""Verdicts as test reports: every other plugin gets them, and those that collect results do not."""

from types import SimpleNamespace
from typing import Any

import pytest
from builders import key_of, length_suite

from pytest_llmeval.core import GateResult, SnapshotVerdict
from pytest_llmeval.plugin._presentation import COLLECTING, VerdictReport, category_of, emit, verdict_report

KEY = key_of(length_suite(), test="test_it", variant="gpt")


class Hearing:
    """A plugin that keeps what is reported."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        assert report.when is not None
        self.heard.append((report.nodeid, report.when, report.outcome))


def emitted(*verdicts: VerdictReport, own: tuple[str, ...] = COLLECTING) -> tuple[Any, dict[str, Hearing]]:
    manager = pytest.PytestPluginManager()
    plugins = {name: Hearing() for name in (*own, "other")}
    for name, plugin in plugins.items():
        manager.register(plugin, name)
    session: Any = SimpleNamespace(config=SimpleNamespace(pluginmanager=manager), testscollected=5)
    emit(session, verdicts)
    return session, plugins


@pytest.mark.parametrize("own", [COLLECTING, COLLECTING[1:]])
def test_a_verdict_reaches_every_plugin_but_those_that_collect_results(own: tuple[str, ...]) -> None:
    session, plugins = emitted(VerdictReport("/s", "s", "gate[f1]", "failed", "too low"), own=own)
    nodeid = "s::gate[f1]"
    assert plugins.pop("other").heard == [
        (nodeid, "setup", "passed"),
        (nodeid, "call", "failed"),
        (nodeid, "teardown", "passed"),
    ]
    assert [each.heard for each in plugins.values()] == [[]] * len(own)
    assert session.testscollected == 6


def test_what_is_not_judged_counts_as_skipped() -> None:
    _, plugins = emitted(VerdictReport("/s", "s", "gate[f1]", "not_judged", "2 of 3 cases ran"))
    assert [outcome for _, _, outcome in plugins["other"].heard] == ["passed", "skipped", "passed"]


def test_what_passes_is_counted_by_kind_and_what_fails_as_a_failed_test() -> None:
    kept: list[str] = []

    class Counting:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.when == "call":
                kept.append(category_of(report))

    manager = pytest.PytestPluginManager()
    manager.register(Counting())
    session: Any = SimpleNamespace(config=SimpleNamespace(pluginmanager=manager), testscollected=5)
    found: list[tuple[str, Any]] = [
        ("gate[f1]", "passed"),
        ("gate[f2]", "passed"),
        ("gate[f3]", "failed"),
        ("gate[f4]", "not_judged"),
        ("snapshot[f1]", "passed"),
        ("recording", "passed"),
    ]
    emit(session, [VerdictReport("/s", "s", name, outcome, "why") for name, outcome in found])
    assert kept == ["gates passed", "gates passed", "", "gate not evaluated", "snapshot passed", ""]


@pytest.mark.parametrize(
    ("verdict", "name", "reason"),
    [
        (GateResult("f1 >= 1", "failed", 0.5, 1, "low"), "gate[f1 >= 1]", "low\ns.eval.yaml"),
        (GateResult("f1 >= 1", "failed", 0.5, 1, "low", line=7), "gate[f1 >= 1]", "low\ns.eval.yaml:7"),
        (GateResult("f1 >= 1", "passed", 1, 1, "fine"), "gate[f1 >= 1]", "fine"),
        (
            SnapshotVerdict("f1", "fell_beyond", "failed", reason="fell"),
            "snapshot[f1]",
            "fell\ns.eval.yaml",
        ),
    ],
)
def test_a_verdict_is_named_as_the_items_of_its_suite_are(
    verdict: GateResult | SnapshotVerdict, name: str, reason: str
) -> None:
    report = verdict_report(KEY, verdict)
    assert (report.display_path, report.name, report.reason) == ("s.eval.yaml", f"{name}[test_it][gpt]", reason)
