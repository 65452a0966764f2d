"""Progress of a run on a terminal or in a log, a note on the overhead of workers, and runs that end early."""

import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

from pytest_llmeval.baselines import Keeper, SnapshotMode, Stamp
from pytest_llmeval.core import MISSING, WINDOWS, Case, CaseRecord, LlmevalError, PredictionError, counted
from pytest_llmeval.plugin._options import WorkerTerms, option_value, shard_of_run
from pytest_llmeval.plugin._payload import (
    RUNNER,
    SUSPECT,
    UNNEEDED,
    SuiteLoader,
    carried_records,
    carry,
    case_of,
    keys_of,
)
from pytest_llmeval.plugin._pytest_private import tear_down, terminal_file, worker_process
from pytest_llmeval.plugin._session import Run, SessionSuites
from pytest_llmeval.run import CaseRunner, ChoiceTerms
from pytest_llmeval.services import Activity, Snapshot, UseRecord
from pytest_llmeval.suites import LoadedSuite, Registry, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.plugin._extensions import RunWatcher

_FIRST_S: Final = 2.0
_EVERY_S: Final = 0.5
_IN_LOGS_S: Final = 60.0
_MINUTE: Final = 60
_HOUR: Final = 3600

# The line below the cursor is made first (IND, up), so that the saved position holds at the bottom of the screen.
_BELOW: Final = "\x1bD\x1b[1A\x1b7\x1b[1B\r\x1b[2K"
_BACK: Final = "\x1b8"
_ERASE: Final = f"\x1b7\x1b[1B\r\x1b[2K{_BACK}"


class CaseCounter(msgspec.Struct, eq=False):
    """Hooks that count the cases of a run and those that are done, in every process."""

    activity: Activity
    _left: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the cases; those of a suite in bulk are counted as they run."""
        every = [item for item in session.items if case_of(item) is not None]
        bulk = [cases for item in every if (cases := getattr(item, "bulk", ()))]
        self._left = {item.nodeid for item in every if not getattr(item, "bulk", ())}
        self.activity.total = len(self._left) + sum(map(len, bulk))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case once, even if it is rerun."""
        if report.when == "teardown" and report.nodeid in self._left:
            self._left.remove(report.nodeid)
            self.activity.done += 1


class Progress(msgspec.Struct, eq=False):
    """Hooks of the main process that show the progress of a run. Not registered with ``-q``.

    Attributes:
        config: Of the session.
        activity: Returns what the processes of the run do.
        clock: Seconds.
    """

    config: pytest.Config
    activity: Callable[[], Snapshot]
    clock: Callable[[], float] = time.monotonic
    _file: int | None = None
    _rewrites: bool = False
    _started: float = 0.0
    _next: float = 0.0
    _counts_since: float = 0.0
    _done: int = 0
    _is_drawn: bool = False
    _lock: Any = msgspec.field(default_factory=threading.Lock)
    _over: threading.Event = msgspec.field(default_factory=threading.Event)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Show progress while tests run; erase it before verdicts are printed."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if session.config.option.collectonly or reporter is None or reporter.verbosity < 0:
            return (yield)
        # Tests run with another file in the place of the terminal's.
        with suppress(OSError, ValueError, AttributeError):
            self.begin(os.dup(terminal_file(reporter).fileno()), terminal=bool(reporter.isatty))
        if self._file is None:
            return (yield)
        watch = threading.Thread(target=self._watch, daemon=True, name="llmeval-progress")
        watch.start()
        try:
            return (yield)
        finally:
            self._over.set()
            watch.join()
            self.erase()
            os.close(self._file)

    def begin(self, file: int, *, terminal: bool) -> None:
        """Show progress in a file from now on.

        Args:
            file: A descriptor.
            terminal: Whether a line can be rewritten there; logs of CI claim to be terminals.
        """
        self._file = file
        # A console of Windows may show the sequences that move the cursor as text.
        self._rewrites = terminal and not (WINDOWS or os.environ.get("CI") or os.environ.get("TERM") == "dumb")
        self._started = self.clock()
        self._next = self._started + (_FIRST_S if self._rewrites else _IN_LOGS_S)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Erase the line before pytest writes."""
        self.erase()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self) -> None:
        """Erase the line before pytest writes."""
        self.erase()

    def erase(self) -> None:
        """Erase the progress line; the next tick redraws it."""
        with self._lock:
            if self._is_drawn:
                self._is_drawn = False
                self._write(_ERASE)

    def _watch(self) -> None:
        """Show progress from time to time, in a thread."""
        while not self._over.wait(_EVERY_S):
            with suppress(OSError, LlmevalError):  # progress is worth no failure
                self.tick()

    def tick(self) -> None:
        """Show progress if it is time to; in a log, a call that waits is a reason not to let the first minute pass."""
        now = self.clock()
        snapshot = self.activity()
        self._done = max(self._done, snapshot.done)
        first = self._next == self._started + _IN_LOGS_S
        if snapshot.total and not self._counts_since:
            self._counts_since = now  # workers take their time to start
        if not snapshot.total or (now < self._next and not (first and not self._rewrites and snapshot.waits)):
            return
        self._next = now + (_EVERY_S if self._rewrites else _IN_LOGS_S)
        text = described(snapshot._replace(done=self._done), now - self._counts_since)
        with self._lock:
            if not self._rewrites:
                self._write(f"\n{text}\n")
            elif not self._over.is_set():
                self._is_drawn = True
                self._write(f"{_BELOW}{text[: _console_width() - 1]}{_BACK}")

    def _write(self, text: str) -> None:
        """Write to the terminal of the progress line."""
        if self._file is not None:
            os.write(self._file, text.encode("ascii", "replace"))


def _console_width() -> int:
    """The width of the terminal that the progress line of a run may fill."""
    return shutil.get_terminal_size().columns


def described(snapshot: Snapshot, elapsed_s: float) -> str:
    """The line that shows the progress of a pytest run.

    Args:
        snapshot: What it does.
        elapsed_s: Since its start; the rest is estimated by it.

    Example:
        >>> described(Snapshot(200, 50, 16, 3, 0.0123, "retrying, 3rd of 5"), 60)
        'llmeval: 50 of 200 cases, retrying, 3rd of 5, 16 in flight, 3 retries, 0.0123 USD, about 3 min left'
    """
    # What a narrow terminal cuts off is what matters least.
    parts = [f"{snapshot.done} of {counted(snapshot.total, 'case')}", *([snapshot.waits] if snapshot.waits else [])]
    parts.append(f"{snapshot.in_flight} in flight")
    if snapshot.retries:
        parts.append(f"{snapshot.retries} {'retry' if snapshot.retries == 1 else 'retries'}")
    if snapshot.cost_usd is not None:
        parts.append(f"{snapshot.cost_usd:.4f} USD")
    if 0 < snapshot.done < snapshot.total:
        parts.append(f"about {_rounded_duration(elapsed_s / snapshot.done * (snapshot.total - snapshot.done))} left")
    return f"llmeval: {', '.join(parts)}"


def _rounded_duration(seconds: float) -> str:
    """The estimated rest of a run, as the progress line shows it."""
    if seconds < 2 * _MINUTE:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / _MINUTE)} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.1f} h"


_OUTSIDE: Final = 1.4
"""In one process, tests of half a millisecond or more take at most about so many times what pytest measures for them.

Shorter ones take more, but handling their reports keeps the main process of a run with workers busy for longer still.
"""


@dataclass(eq=False)
class WorkerTime:
    """Hooks of the main process that note the overhead of xdist's workers in a run with ``-n``.

    Attributes:
        run: Gets the line among its notes.
        workers: How many there are.
        clock: Seconds.
    """

    run: Run
    workers: int
    clock: Callable[[], float] = time.monotonic
    _begun: float = field(init=False)
    _ready: float = 0.0
    _first: float | None = None
    _last: float = 0.0
    _tests_s: float = 0.0
    _lost: bool = False

    def __post_init__(self) -> None:
        self._begun = self.clock()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self) -> None:
        """Note that a worker has started."""
        self._ready = self.clock()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error: object) -> None:
        """Note a crashed worker, since restarting takes time."""
        self._lost = self._lost or bool(error)

    def pytest_runtest_logstart(self) -> None:
        """Note when tests began."""
        if self._first is None:
            self._first = self.clock()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what tests took in workers; verdicts come from this process."""
        if hasattr(report, "worker_id"):
            self._tests_s += report.duration
            self._last = self.clock()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Note it if the run would clearly be faster without workers; collection takes one process no longer."""
        complete = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not self._lost
        if not complete or self._first is None or not self.run.record.items:
            return
        spent_s = (self._ready - self._begun) + (self._last - self._first)
        if spent_s > _OUTSIDE * self._tests_s and session.config.get_verbosity() >= 0:
            self.run.notes.append(
                f"this run is faster without -n: its tests took {self._tests_s:.2f} s together, starting "
                f"{counted(self.workers, 'worker')} and running tests in them {spent_s:.2f} s"
            )


_ENDED = "llmeval_ended"
"""Attribute of the last report of a case whose suite may stop."""

_SEEDS = pytest.StashKey[str | None]()
_ITEMS = "items"
"""Name of the file with the tests over cases that workers have collected."""


def ordered(suite: LoadedSuite, config: pytest.Config, *, unasked: bool) -> LoadedSuite:
    """A suite with its cases in the order in which pytest runs them.

    All cases run, in the order of the file, where scores are to be approved and where judges are not asked. So do
    those of a shard, which does not know the results of the others.

    Args:
        suite: As loaded.
        config: Of the session.
        unasked: Whether judges are off, or their questions deferred.
    """
    suite = suite.stopping(config.option.llmeval_stop)
    approves = config.getoption("update_snapshots", False) or config.getoption("update_new_snapshots_only", False)
    if suite.stop is None or approves or shard_of_run(config) is not None or (unasked and suite.judged):
        return suite
    return suite.in_order(seed_of_order(config), option_value(config, "family"))


def seed_of_order(config: pytest.Config) -> str | None:
    """The seed of the order in which pytest runs cases: the checked-out commit, as the main process knows it."""
    if _SEEDS not in config.stash:
        is_worker = hasattr(config, "workerinput")
        config.stash[_SEEDS] = WorkerTerms.of_process(config).seed if is_worker else Stamp.head_commit(config.rootpath)
    return config.stash[_SEEDS]


@dataclass
class StopBoard:
    """A board of pytest's processes on one machine: suites that stop, each with its number of cases.

    A process that cannot read the board runs cases that are not needed, and changes nothing else. Workers post which
    Python tests run over cases: the main process, which collects nothing, can then miss their reports. It posts tests
    that run again, with nothing beside them, after the end of a worker.

    Attributes:
        folder: Where processes read it; ``None`` if there is one process.
    """

    folder: Path | None = None
    _known: dict[SuiteKey, int] = field(default_factory=dict)

    def share(self) -> str:
        """The folder in which other pytest processes read the board, made for the first of them."""
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="llmeval-"))
        return str(self.folder)

    def post(self, group: SuiteKey, cases: int) -> None:
        """Note that a group of suites stops."""
        self._known[group] = cases
        if self.folder is not None:
            with suppress(OSError):
                written = self._file(group).with_suffix(".part")
                written.write_text(str(cases), encoding="ascii")
                written.replace(self._file(group))

    def post_items(self, nodeids: Collection[str]) -> None:
        """Note the tests over cases that a worker has collected; all workers collect the same."""
        if self.folder is not None:
            with suppress(OSError):
                written = self.folder / f"{_ITEMS}.{os.getpid()}.part"
                written.write_text(json.dumps(sorted(nodeids)), encoding="ascii")
                written.replace(self.folder / _ITEMS)

    def items(self) -> list[str]:
        """The tests over cases that workers have collected."""
        if self.folder is not None:
            with suppress(OSError, ValueError):
                return list(json.loads((self.folder / _ITEMS).read_text(encoding="ascii")))
        return []

    def isolate(self, nodeid: str) -> bool:
        """Have a test run again with nothing beside it; return whether that is new, and was noted."""
        if self.folder is None or self.isolates(nodeid):
            return False
        with suppress(OSError):
            self._file((nodeid,)).touch()
        return self.isolates(nodeid)

    def isolates(self, nodeid: str) -> bool:
        """Whether a test runs with nothing beside it."""
        return self.folder is not None and self._file((nodeid,)).exists()

    def needs(self, key: SuiteKey, suite: LoadedSuite, case: str) -> bool:
        """Whether pytest has to run a case, as far as the board says."""
        if suite.order is None or case not in suite.order.ranks:
            return True
        cases = self._read(key.stop_group(suite))
        return cases is None or suite.order.ranks[case] < cases

    def _read(self, group: SuiteKey) -> int | None:
        """The number of cases after which a group stops, as far as is known."""
        if group not in self._known and self.folder is not None:
            with suppress(OSError, ValueError):
                self._known[group] = int(self._file(group).read_text(encoding="ascii"))
        return self._known.get(group)

    def _file(self, group: Sequence[str]) -> Path:
        """The file of the board on which a group is noted as stopping."""
        assert self.folder is not None
        return self.folder / sha256("\n".join(group).encode("utf-8", "surrogatepass")).hexdigest()


class StopHooks:
    """Hooks that skip the rest of a suite once its gates are decided, in every process that runs items."""

    def __init__(self, config: pytest.Config) -> None:
        folder = WorkerTerms.of_process(config).stops
        self.board = StopBoard(Path(folder) if folder else None)
        self._is_worker = bool(folder)

    @pytest.hookimpl(tryfirst=True)  # before xdist tells the main process that this one has collected
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Let the main process know which tests run over cases."""
        if self._is_worker:
            self.board.post_items(keys_of(session.items))

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
        """Skip a case that is not needed any more; run one alone that may have ended a worker."""
        if self._is_worker and self.board.isolates(item.nodeid):
            item.stash[SUSPECT] = True
            item.config.stash[RUNNER].finish()
        loaded = case_of(item)
        if loaded is not None and not self.board.needs(loaded.key, loaded.suite, loaded.case.id):
            item.stash[UNNEEDED] = True
            pytest.skip(CaseRecord.NOT_NEEDED)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Mark the last report of a case whose suite may stop: the main process need not load other suites for it."""
        report = yield
        if call.when == "teardown" and (loaded := case_of(item)) is not None and loaded.suite.order is not None:
            setattr(report, _ENDED, True)
        return report


class CarryHooks:
    """Hooks that carry over unaffected cases' records in a run of affected cases, in every process."""

    def __init__(self, config: pytest.Config, runner: "CaseRunner", loader: SuiteLoader) -> None:
        self._config = config
        self._runner = runner
        self._loader = loader
        self._encoded = hasattr(config, "workerinput")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Find the approved run to compare with."""
        from pytest_llmeval.plugin._extensions import CaseChooser

        terms = ChoiceTerms(
            self._config.option.llmeval_affected,
            option_value(self._config, "refresh"),
            bool(self._config.option.llmeval_mutate),
            self._replays,
            lambda: {loaded.key: loaded.suite for item in session.items if (loaded := case_of(item)) is not None},
        )
        if (used := UseRecord.current()) is not None and self._encoded:
            used.environment = WorkerTerms.of_process(self._config).environment
        try:
            chosen = Registry.installed().extensions("chosen")[-1]
            self._loader.chooser = chosen.make(CaseChooser, SessionSuites(session), terms)
        except LlmevalError as error:
            raise pytest.UsageError(f"--llmeval-affected: {error}") from None

    def _replays(self, key: SuiteKey, suite: LoadedSuite, case: Case) -> bool:
        """Whether a case would get the answer, and the verdicts of judges, that it had before."""
        if suite.judged and self._runner.options.mode not in ("replay", "off"):
            return False
        recorded = self._runner.recordings
        if case.prediction is not MISSING or recorded is None:
            return case.prediction is not MISSING
        try:
            repeats = range(suite.repeats.times)
            answers = [recorded.get(key.display_path, key.variant, case, repeat) for repeat in repeats]
        except PredictionError:
            return False
        return all(answer is not MISSING for answer in answers)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Report the results of the approved run in place of running an item that no change affects."""
        records = carried_records(item)
        if records is None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in carry(item, records, encoded=self._encoded):
            if report.when == "teardown" and (loaded := case_of(item)) is not None and loaded.suite.order is not None:
                setattr(report, _ENDED, True)
            item.ihook.pytest_runtest_logreport(report=report)
        tear_down(item.session, nextitem)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


class StopWatchHooks:
    """Hooks of the main process that watch suites which may stop early."""

    def __init__(self, run: Run, board: StopBoard) -> None:
        self._run = run
        self._board = board
        self._session: pytest.Session | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the session, whose folders have hooks for evaluators."""
        self._session = session

    @cached_property
    def _watches(self) -> "list[tuple[RunWatcher, Callable[[Exception], str]]]":
        """The watchers that extensions bring, with their messages on errors; one that cannot be made fails the run."""
        from pytest_llmeval.plugin._extensions import RunWatcher

        assert self._session is not None
        config = self._run.config
        keeper = Keeper(SnapshotMode.from_config(config), config.getini("llmeval_snapshots"), config.rootpath)
        suites = SessionSuites(self._session)
        watches: list[tuple[RunWatcher, Callable[[Exception], str]]] = []
        for extension in Registry.installed_extensions("watched"):
            try:
                watcher = extension.make(RunWatcher, suites, keeper, self._board.post)
                watches.append((watcher, extension.failure))
            except LlmevalError as error:
                self._run.shortfalls.append(str(error))
        return watches

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Look at the gates of a suite once the cases of its next block have run."""
        if not report.__dict__.pop(_ENDED, False):
            return
        result = self._run.record.result_of(report)
        if result is None:
            return
        for watch in list(self._watches):
            watcher, failure = watch
            try:
                watcher.take(self._run.record, result.part.key, [record.id for record in result.part.records])
            except Exception as error:  # noqa: BLE001 (a plugin's bug costs what the plugin adds, and no results)
                self._run.shortfalls.append(failure(error))
                self._watches.remove(watch)

    def pytest_unconfigure(self) -> None:
        """Remove what was posted on the board."""
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

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, Any, Any]:
        """Keep an interrupt that came inside a wait for a lock, as of the queues of xdist: leaving it fails then."""
        try:
            return (yield)
        except KeyboardInterrupt as error:
            raise error.with_traceback(_with_lines(error.__traceback__)) from None
        except RuntimeError as error:
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise

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
        """End the run as a keyboard interrupt does, workers of xdist included."""
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


def _with_lines(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback whose entries all have a line: a signal can arrive where Python has none, and pytest needs one."""
    entries: list[TracebackType] = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    for entry in reversed(entries):
        # Python says None there, unlike typeshed.
        line = entry.tb_lineno or entry.tb_frame.f_code.co_firstlineno
        traceback = TracebackType(traceback, entry.tb_frame, entry.tb_lasti, line)
    return traceback
