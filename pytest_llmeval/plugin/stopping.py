"""Runs that end early: on SIGTERM, or when the gates of suites are decided."""

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.baselines.comparable import head_commit
from pytest_llmeval.baselines.runs import Keeper, SnapshotMode
from pytest_llmeval.plugin.options import option_value, shard_of_run
from pytest_llmeval.plugin.payload import UNNEEDED, case_of
from pytest_llmeval.plugin.pytest_private import worker_process
from pytest_llmeval.run.run_record import Item
from pytest_llmeval.suite.registry import extensions_of
from pytest_llmeval.suite.run_settings import NOT_NEEDED
from pytest_llmeval.suite.suite import StopGroup, Suite, SuiteKey, group_of, in_order, stopping

if TYPE_CHECKING:
    from pytest_llmeval.plugin.session import Run
    from pytest_llmeval.run.stages import RunWatcher

_ENDED = "llmeval_ended"
"""Attribute of the last report of a case whose suite may stop."""

_FOLDER = "llmeval_stops"
"""Key under which xdist workers learn where stops are posted."""


_SEED = "llmeval_order"
"""Key under which xdist workers receive the seed of the order of cases."""

_SEEDS = pytest.StashKey[str | None]()


def ordered(suite: Suite, config: pytest.Config, *, judges_off: bool) -> Suite:
    """Return a suite as a run orders its cases.

    All cases run, in the order of the file, where scores are to be approved, of a shard, which does not know the
    results of the others, and where judges are off.

    Args:
        suite: As loaded.
        config: Of the session.
        judges_off: Whether no judge is asked.
    """
    suite = stopping(suite, config.option.llmeval_stop)
    approves = config.getoption("update_snapshots", False) or config.getoption("update_new_snapshots_only", False)
    if suite.stop is None or approves or shard_of_run(config) is not None or (judges_off and suite.judged):
        return suite
    return in_order(suite, _seed(config), option_value(config, "family"))


def _seed(config: pytest.Config) -> str | None:
    """Return the commit that is checked out, as the main process knows it."""
    if _SEEDS not in config.stash:
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        config.stash[_SEEDS] = worker[_SEED] if _SEED in worker else head_commit(config.rootpath)
    return config.stash[_SEEDS]


@dataclass
class StopBoard:
    """The suites that stop, each with its number of cases, for all processes of a run on one machine.

    A process that cannot read the board runs cases that are not needed, and changes nothing else.

    Attributes:
        folder: Where processes read it; ``None`` if there is one process.
    """

    folder: Path | None = None
    _known: dict[StopGroup, int] = field(default_factory=dict)

    def post(self, group: StopGroup, cases: int) -> None:
        """Note that a group stops."""
        self._known[group] = cases
        if self.folder is not None:
            with suppress(OSError):
                written = self._file(group).with_suffix(".part")
                written.write_text(str(cases), encoding="ascii")
                written.replace(self._file(group))

    def needs(self, key: SuiteKey, suite: Suite, case: str) -> bool:
        """Return whether a case has to run, as far as is known."""
        if suite.order is None or case not in suite.order.ranks:
            return True
        cases = self._read(group_of(key, suite))
        return cases is None or suite.order.ranks[case] < cases

    def _read(self, group: StopGroup) -> int | None:
        if group not in self._known and self.folder is not None:
            with suppress(OSError, ValueError):
                self._known[group] = int(self._file(group).read_text(encoding="ascii"))
        return self._known.get(group)

    def _file(self, group: StopGroup) -> Path:
        assert self.folder is not None
        return self.folder / sha256("\n".join(group).encode("utf-8", "surrogatepass")).hexdigest()


class StopHooks:
    """Hooks of every process that runs items."""

    def __init__(self, config: pytest.Config) -> None:
        folder = getattr(config, "workerinput", {}).get(_FOLDER)
        self.board = StopBoard(Path(folder) if folder else None)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the items of suites that may stop into the order of their cases, in the places that they have."""
        places: dict[tuple[str, str], list[int]] = {}
        ranks: dict[int, int] = {}
        for place, item in enumerate(items):
            loaded = case_of(item)
            if loaded is not None and loaded.suite.order is not None:
                ranks[place] = loaded.suite.order.ranks.get(loaded.case.id, 0)
                places.setdefault((loaded.key.path, loaded.key.test), []).append(place)
        for own in places.values():
            in_order = [items[place] for place in sorted(own, key=lambda place: (ranks[place], place))]
            for place, item in zip(own, in_order, strict=True):
                items[place] = item

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a case that is not needed any more."""
        loaded = case_of(item)
        if loaded is not None and not self.board.needs(loaded.key, loaded.suite, loaded.case.id):
            item.stash[UNNEEDED] = True
            pytest.skip(NOT_NEEDED)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: "pytest.CallInfo[None]") -> Generator[None, Any, Any]:
        """Mark the last report of a case whose suite may stop: the main process need not load other suites for it."""
        report = yield
        if call.when == "teardown" and (loaded := case_of(item)) is not None and loaded.suite.order is not None:
            setattr(report, _ENDED, True)
        return report


class StopWatchHooks:
    """Hooks of the main process."""

    def __init__(self, run: "Run", board: StopBoard) -> None:
        self._run = run
        self._board = board
        self._session: pytest.Session | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the session, whose folders have hooks for evaluators."""
        self._session = session

    @cached_property
    def _watches(self) -> "list[RunWatcher]":
        assert self._session is not None
        config = self._run.config
        keeper = Keeper(SnapshotMode.from_config(config), config.getini("llmeval_snapshots"), config.rootpath)
        suites = self._run.suites(self._session)
        return [each.load()(suites, keeper, self._board.post) for each in extensions_of("watched")]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the seed of the order, and where stops are posted."""
        if self._board.folder is None:
            self._board.folder = Path(tempfile.mkdtemp(prefix="llmeval-"))
        node.workerinput[_SEED] = _seed(self._run.config)
        node.workerinput[_FOLDER] = str(self._board.folder)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Look at the gates of a suite once the cases of its next block have run."""
        if not report.__dict__.pop(_ENDED, False):
            return
        result = self._run.record.items.get(Item(report.location[0], report.nodeid))
        if result is not None:
            for each in self._watches:
                each.take(self._run.record, result.part.key, [record.id for record in result.part.records])

    def pytest_unconfigure(self) -> None:
        """Remove what was posted."""
        if self._board.folder is not None:
            shutil.rmtree(self._board.folder, ignore_errors=True)


class Termination:
    """Turns SIGTERM into a keyboard interrupt, in every process of a run."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._workers: dict[str, int] = {}
        self._session: pytest.Session | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Install the handler, unless there is one already or signals are not available."""
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._session = session
            signal.signal(signal.SIGTERM, self._end)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Note a worker on this machine."""
        process = worker_process(node)
        if process is not None:
            self._workers[node.gateway.id] = process

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Forget a worker that has ended, since another process may get its id."""
        self._workers.pop(node.gateway.id, None)

    def pytest_unconfigure(self) -> None:
        """Restore the default handler."""
        if self._session is not None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a process that the target forked
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        assert self._session is not None
        if self._session.shouldstop == "SIGTERM":
            return  # the run ends already: a second interrupt would cut off what it writes
        # Where Python loses an exception, as in the callback of a weak reference, the run ends after this test.
        self._session.shouldstop = "SIGTERM"
        for process in self._workers.values():
            with suppress(ProcessLookupError):
                os.kill(process, number)
        raise KeyboardInterrupt("SIGTERM")
