"""Progress of suites in bulk: a line that is rewritten on a terminal, one now and then in a log, or none."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_llmeval.plugin import progress as module
from pytest_llmeval.plugin.progress import Progress


@dataclass
class Reporter:
    """A terminal reporter that keeps what it is told."""

    verbosity: int = 0
    isatty: bool = True
    log: list[str] = field(default_factory=list)

    def rewrite(self, text: str, *, erase: bool) -> None:
        self.log.append(f"rewrite {text!r} {erase}")

    def ensure_newline(self) -> None:
        self.log.append("newline")

    def write_line(self, text: str) -> None:
        self.log.append(text)


@dataclass
class Clock:
    now: float = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    monkeypatch.delenv("CI", raising=False)
    return made


def progress(reporter: Reporter | None, **config: Any) -> Progress:
    plugins = {"terminalreporter": reporter}
    manager = SimpleNamespace(get_plugin=plugins.get)
    return Progress(SimpleNamespace(pluginmanager=manager, **config), "qa", 9)  # type: ignore[arg-type]  # all it reads


def run(shown: Progress, clock: Clock, step: float, count: int = 9) -> None:
    for done in range(1, count + 1):
        shown.show(done)
        clock.now += step
    shown.end()


def test_on_a_terminal_one_line_is_rewritten_and_taken_away(clock: Clock) -> None:
    reporter = Reporter()
    run(progress(reporter), clock, 1.0, 4)
    assert reporter.log == [
        "rewrite 'qa: 3 of 9 cases' True",
        "rewrite 'qa: 4 of 9 cases' True",
        "rewrite '' True",
    ]


def test_a_suite_that_is_done_soon_shows_nothing_and_a_fast_one_seldom(clock: Clock) -> None:
    reporter = Reporter()
    run(progress(reporter), clock, 0.2)
    assert reporter.log == []
    shown = progress(reporter)
    for done in range(100):
        shown.show(done)
        clock.now += 0.05
    assert 10 <= len(reporter.log) <= 15


@pytest.mark.parametrize("isatty", [True, False])
def test_in_a_log_there_is_a_line_now_and_then(clock: Clock, monkeypatch: pytest.MonkeyPatch, isatty: bool) -> None:
    if isatty:
        monkeypatch.setenv("CI", "true")
    reporter = Reporter(isatty=isatty)
    run(progress(reporter), clock, 5.0)
    assert reporter.log == [part for done in (3, 5, 7, 9) for part in ("newline", f"qa: {done} of 9 cases")]


@pytest.mark.parametrize("shown", [progress(Reporter(-1)), progress(None), progress(Reporter(), workerinput={})])
def test_quiet_runs_and_workers_show_nothing(clock: Clock, shown: Progress) -> None:
    run(shown, clock, 20.0)
    assert not shown._shown
