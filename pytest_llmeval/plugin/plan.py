"""``--llmeval-plan``: say what the collected cases would call, and run none of them."""

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_llmeval.baselines.runs import Keeper, SnapshotMode
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.wording import counted, printable
from pytest_llmeval.data.files.writing import write_text
from pytest_llmeval.plugin.collect import CaseItem
from pytest_llmeval.plugin.options import report_paths
from pytest_llmeval.plugin.payload import carried_records
from pytest_llmeval.plugin.pytest_private import fixture_info, terminal_width
from pytest_llmeval.run.case_runner import CaseRunner
from pytest_llmeval.run.execute import is_skipped
from pytest_llmeval.run.job import LoadedCase
from pytest_llmeval.run.stages import PlanReport
from pytest_llmeval.suite.registry import default_registry

if TYPE_CHECKING:
    from pytest_llmeval.plugin.payload import SuiteLoader

_ASKING = frozenset({"eval_case", "judge"})
_EVERYTHING = 2
"""The verbosity at which no column is left out."""


def refuse_without_meaning(config: pytest.Config) -> None:
    """Stop if options ask for what only a run can give.

    Raises:
        pytest.UsageError: They do.
    """
    if config.option.update_snapshots:
        raise pytest.UsageError(
            "found --snapshot-update with --llmeval-plan, expected one of them: a plan has no scores"
        )
    for path in report_paths(config):
        if path.suffix != ".json" or path.name.endswith("errors.json"):
            raise pytest.UsageError(f"--llmeval-report={path}: a plan can be written as JSON only: name a .json file")


def stay_in_one_process(config: pytest.Config) -> None:
    """Keep pytest-xdist from starting workers, which would have nothing to run."""
    if hasattr(config.option, "dist"):
        config.option.dist, config.option.tx, config.option.numprocesses = "no", [], 0


class PlanHooks:
    """Hooks of a session that plans a run."""

    def __init__(self, config: pytest.Config, runner: CaseRunner, loader: "SuiteLoader") -> None:
        self._config = config
        self._runner = runner
        self._loader = loader
        self._keeper = Keeper(SnapshotMode.from_config(config), config.getini("llmeval_snapshots"), config.rootpath)
        self._plan: PlanReport | None = None
        self._others = 0
        self._written: list[Path] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Plan in place of the loop that runs tests."""
        self._others = sum(_asks(item) for item in session.items)
        try:
            planned = default_registry().extensions("planned")[-1].load()
            self._plan = planned(self._runner, list(planned_cases(session.items)), self._keeper)
        except LlmevalError as error:
            raise pytest.UsageError(str(error)) from None
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the plan where a report is asked for; fail if the plan exceeds the budget."""
        if self._plan is None:
            return
        text = json.dumps(self._plan.data(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        for path in report_paths(self._config):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, [text])
            self._written.append(path)
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._loader.collected:
            session.exitstatus = pytest.ExitCode.OK  # an empty shard
        if self._plan.exceeds_budget and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Print the plan."""
        if self._plan is None:
            return
        terminalreporter.section("llmeval plan: nothing was called")
        width, everything = terminal_width(terminalreporter), terminalreporter.verbosity >= _EVERYTHING
        for line in self._plan.lines(width, everything=everything):
            terminalreporter.write_line(printable(line.text), **({line.colour: True} if line.colour else {}))
        if self._others:
            known = "what Python tests ask is known only when they run"
            terminalreporter.write_line(f"{counted(self._others, 'Python test')} not planned: {known}", yellow=True)
        if self._loader.refused:
            refused = counted(self._loader.refused, "file")
            terminalreporter.write_line(f"{refused} not planned or only in part, because of faults", red=True)
        for path in self._written:
            terminalreporter.write_line(f"plan written to {path}")


def _asks(item: pytest.Item) -> bool:
    return not isinstance(item, CaseItem) and bool(_ASKING & set(getattr(item, "fixturenames", ())))


def planned_cases(items: Iterable[pytest.Item]) -> Iterator[tuple[LoadedCase, bool]]:
    """Yield the cases that will run, each with whether a fixture of the user answers it."""
    for item in items:
        if isinstance(item, CaseItem) and item.get_closest_marker("skip") is None and carried_records(item) is None:
            defined = fixture_info(item).name2fixturedefs.get("llmeval_target", ())[-1:]
            own = any(not each.func.__module__.startswith("pytest_llmeval.") for each in defined)
            for case in itertools.filterfalse(is_skipped, item.bulk or (item.loaded.case,)):
                yield LoadedCase(item.loaded.suite, case, item.loaded.key), own
