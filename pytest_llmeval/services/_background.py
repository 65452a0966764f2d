"""An event loop in a background thread, for waiting on the network while tests run, and the activity of its calls."""

import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Self, TypeVar, cast
from weakref import WeakSet

from msgspec import Struct

from pytest_llmeval.core import with_value

if TYPE_CHECKING:
    import asyncio


_T = TypeVar("_T")

_WAKE_S = 0.5
"""Seconds between checks for signals during a wait."""

_ending: "WeakSet[asyncio.AbstractEventLoop]" = WeakSet()
"""Loops that stop once the plain functions that they wait for have returned, or their time is over."""

_TURNS = 5
"""Turns of the loop from a reply to the next call in its place, and to the result that another thread waits for."""


class Pending(Generic[_T]):
    """The outcome of a coroutine in the background event loop, for a thread that waits for it.

    A signal handler raises between any two instructions of the main thread. Raised inside the condition of a
    `concurrent.futures.Future`, the error leaves it locked: the event loop would wait for it, and the run for the loop.
    The queue in here is one instruction long.

    Args:
        wakes: Gets ``None`` once the coroutine has ended.
    """

    def __init__(self, wakes: "SimpleQueue[Any] | None" = None) -> None:
        self._wakes: SimpleQueue[Any] = SimpleQueue() if wakes is None else wakes
        self._outcome: tuple[_T | None, BaseException | None] | None = None

    @property
    def is_done(self) -> bool:
        """Whether the coroutine has ended."""
        return self._outcome is not None

    def settle(self, value: _T | None, error: BaseException | None = None) -> None:
        """Set the outcome, in the thread of the coroutine."""
        self._outcome = value, error
        self._wakes.put(None)

    def ended(self, within_s: float | None = None) -> bool:
        """Wait for the end of the coroutine, and return whether it came in that time.

        The wait is in slices: a signal that comes at the moment before a wait is only seen once that wait has ended.
        """
        until = None if within_s is None else time.monotonic() + within_s
        while self._outcome is None:
            left = _WAKE_S if until is None else min(_WAKE_S, until - time.monotonic())
            if left <= 0:
                return False
            with suppress(Empty):
                self._wakes.get(timeout=left)
        return True

    def result(self) -> _T:
        """Wait for the result of the coroutine.

        Raises:
            BaseException: Any error of the coroutine; `concurrent.futures.CancelledError` if it was cancelled.
        """
        __tracebackhide__ = True
        self.ended()
        assert self._outcome is not None
        value, error = self._outcome
        if error is not None:
            raise error
        return cast("_T", value)


class Background(Struct):
    """An event loop that starts with the first coroutine given to it.

    Attributes:
        closing: Coroutine functions that run in the loop before it stops.
        grace_s: How long to wait in the end for plain functions: what they return is kept. Others are cancelled.
    """

    closing: list[Callable[[], Coroutine[Any, Any, None]]] = []
    grace_s: float = 0.0
    _tasks: "set[asyncio.Future[Any]]" = set()  # the loop itself refers to them weakly
    _loop: "asyncio.AbstractEventLoop | None" = None
    _thread: threading.Thread | None = None

    @staticmethod
    def of_process() -> "Background":
        """The loop of the process: clients of users keep connections that belong to the loop."""
        return _PROCESS

    def submit(self, work: Coroutine[Any, Any, _T]) -> Pending[_T]:
        """Run a coroutine; its result can be waited for from any thread, and the wait can be interrupted."""
        result: Pending[_T] = Pending()
        self.submit_all([(work, result)])
        return result

    def submit_all(self, work: Sequence[tuple[Coroutine[Any, Any, _T], Pending[_T]]]) -> None:
        """Run coroutines at the same time, each for a result; the loop is woken once for all of them."""
        self._running().call_soon_threadsafe(_start_tasks, work, self._tasks)

    def _running(self) -> "asyncio.AbstractEventLoop":
        """The event loop, which is started with its thread if it does not run yet."""
        import asyncio

        if self._loop is None:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, daemon=True, name="llmeval")
            thread.start()  # interrupted, it may leave a thread that never runs: nothing refers to it
            self._loop, self._thread = loop, thread
        return self._loop

    def give_way(self) -> None:
        """Let the loop do what it can do at once.

        A thread that computes takes the interpreter whenever the loop sends or receives, and keeps it for up to 5 ms
        (`sys.getswitchinterval`): replies would wait, and calls that could be made in their place.
        """
        if self._loop is not None:
            idle: Pending[None] = Pending()
            self._loop.call_soon_threadsafe(_call_after_turns, self._loop, _TURNS, partial(idle.settle, None))
            idle.ended(_WAKE_S)

    def run(self, work: Awaitable[_T]) -> _T:
        """Run something to its end and return its result; a wait that is interrupted cancels it first.

        Raises:
            BaseException: Any error of it, without the frames of the event loop.
        """
        __tracebackhide__ = True
        result: Pending[tuple[_T | None, BaseException | None]] = Pending()
        loop, coroutine = self._running(), caught(work)
        try:
            self.submit_all([(coroutine, result)])
            value, error = result.result()
        except BaseException:
            loop.call_soon_threadsafe(_cancel_task, coroutine, result, self._tasks)
            result.ended()
            raise
        if error is not None:
            raise error
        return cast("_T", value)

    def close(self) -> None:
        """Cancel what still runs, release what `closing` names, and stop."""
        loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            return

        over: Pending[None] = Pending()
        loop.call_soon_threadsafe(_start_tasks, [(self._wind_up(), over)], self._tasks)
        over.result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    @staticmethod
    def _give_up(tasks: "Iterable[asyncio.Task[Any]]") -> None:
        """Cancel the tasks of an ending loop once more, after its time of grace."""
        import asyncio

        _ending.discard(asyncio.get_running_loop())
        for task in tasks:
            task.cancel()

    async def release(self) -> None:
        """Release what `closing` names, in the running loop."""
        closing, self.closing = self.closing, []
        for close in closing:
            with suppress(Exception):  # what cannot be closed any more is gone with the process
                await close()

    async def _wind_up(self) -> None:
        """Cancel what runs in the loop, wait for its end, and release what `closing` names."""
        import asyncio

        loop, running = asyncio.get_running_loop(), asyncio.all_tasks() - {asyncio.current_task()}
        if self.grace_s:
            _ending.add(loop)
            loop.call_later(self.grace_s, self._give_up, running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self.release()
        await asyncio.get_running_loop().shutdown_asyncgens()


def _start_tasks(
    work: Sequence[tuple[Coroutine[Any, Any, _T], Pending[_T]]], tasks: "set[asyncio.Future[Any]]"
) -> None:
    """Start coroutines as tasks of the background event loop; each passes its outcome to a waiting thread."""
    import asyncio

    for coroutine, result in work:
        task = asyncio.ensure_future(coroutine)
        tasks.add(task)
        task.add_done_callback(partial(_pass_on, result))
        task.add_done_callback(tasks.discard)


def _cancel_task(coroutine: Coroutine[Any, Any, Any], result: Pending[Any], tasks: "set[asyncio.Future[Any]]") -> None:
    """Cancel the task of a coroutine in the background event loop, also before the task has started."""
    task = next((future for future in tasks if getattr(future, "get_coro", lambda: None)() is coroutine), None)
    if task is not None:
        task.cancel()
    elif not result.is_done:  # interrupted before it was submitted
        coroutine.close()
        result.settle(None, CancelledError())


def _pass_on(result: Pending[_T], task: "asyncio.Future[_T]") -> None:
    """Pass the outcome of a task in the background event loop to the thread that waits for it."""
    if task.cancelled():
        result.settle(None, CancelledError())
    else:
        error = task.exception()
        result.settle(None if error else task.result(), error)


def _call_after_turns(loop: "asyncio.AbstractEventLoop", turns: int, then: Callable[[], None]) -> None:
    """Call a function after some turns of the background event loop, in which ready calls run first."""
    if turns:
        loop.call_soon(_call_after_turns, loop, turns - 1, then)
    else:
        then()


async def caught(work: Awaitable[_T]) -> tuple[_T | None, BaseException | None]:
    """Await a call or another coroutine, and return its error as a value.

    Raised through a future an error would gather the frames of two threads, and some would end the event loop.
    """
    import asyncio

    try:
        return await work, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 (for the waiting thread)
        return None, error


async def together(work: Sequence[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Run coroutines at the same time and return their results in order; a single one needs no task of its own."""
    import asyncio

    return [await work[0]] if len(work) == 1 else await asyncio.gather(*work)


class SharedTask(Generic[_T]):
    """A task that several coroutines wait for; it is cancelled with the last of them.

    Args:
        work: Of the task.
    """

    def __init__(self, work: Awaitable[_T]) -> None:
        import asyncio

        self.task = asyncio.ensure_future(work)
        self._waiting = 0

    @property
    def is_cancelled(self) -> bool:
        """Whether it was cancelled, or will be: the next caller needs another."""
        return self.task.cancelled() or (not self.task.done() and self.task.cancelling() > 0)

    async def result(self) -> _T:
        """The result of the task, for one more coroutine that waits.

        Raises:
            BaseException: Any error of the task.
        """
        import asyncio

        self._waiting += 1
        try:
            return await asyncio.shield(self.task)
        except asyncio.CancelledError:
            if self._waiting == 1:
                self.task.cancel()
            raise
        finally:
            self._waiting -= 1


class ThisThread:
    """Lets coroutines call plain functions in the thread that waits for them, where debuggers and Ctrl-C work."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._waits = True
        self._changes = threading.Lock()

    async def call(self, work: Callable[[], _T]) -> _T:
        """Call a function in the waiting thread, or in another one if that waits no more: a run that ends tidies up.

        Raises:
            BaseException: Any error of the function.
        """
        call, done = _make_passing_call(work)
        with self._changes:
            if self._waits:
                self._calls.put(call)
            else:
                threading.Thread(target=call, daemon=True, name="llmeval-end").start()
        return await done

    def run(self, background: Background, work: Coroutine[Any, Any, _T]) -> _T:
        """Wait for a coroutine that calls functions here, and return its result."""
        __tracebackhide__ = True
        result: Pending[_T] = Pending(self._calls)
        try:
            background.submit_all([(work, result)])
            while True:
                with suppress(Empty):  # in slices, as in `Pending`
                    call = self._calls.get(timeout=_WAKE_S)
                    if call is None:
                        return result.result()
                    call()
        finally:
            with self._changes:
                self._waits = False


class OwnThread:
    """A daemon thread in which plain functions are called one after the other, until `end`.

    Args:
        name: Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._under_way = 0

    @property
    def is_free(self) -> bool:
        """Whether a call would begin at once."""
        return not self._under_way

    async def call(self, work: Callable[[], _T]) -> _T:
        """Call a function in this thread, after those that were given to it before.

        Raises:
            BaseException: Any error of the function.
        """
        import asyncio

        def counted() -> _T:
            try:
                return work()
            finally:
                self._under_way -= 1

        call, done = _make_passing_call(counted)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True, name=self._name)
            self._thread.start()
        self._under_way += 1
        context = copy_context()
        context.run(_callers_loop.set, asyncio.get_running_loop())
        self._calls.put(partial(context.run, call))
        return await _wait_for_function(done)

    def _serve(self) -> None:
        """Make the calls that are given to the thread, until `end`."""
        while (call := self._calls.get()) is not None:
            call()

    def end(self) -> None:
        """Let the thread end when it has done what it was given."""
        self._calls.put(None)


_PROCESS: Final = Background()

_callers_loop: "ContextVar[asyncio.AbstractEventLoop | None]" = ContextVar("_callers_loop", default=None)
"""Of the coroutine that waits for this thread."""

_users_loop: "ContextVar[asyncio.AbstractEventLoop | None]" = ContextVar("_users_loop", default=None)
"""Where coroutines of users run, if they have a loop of their own."""


class UsersLoop(NamedTuple):
    """The event loop that coroutines of users belong to.

    Attributes:
        loop: The loop; ``None`` if users' code has none for itself.
    """

    loop: "asyncio.AbstractEventLoop | None"

    @classmethod
    def current(cls) -> "UsersLoop":
        """The loop for the coroutines that this thread or task gets from users' code."""
        return cls(_users_loop.get())

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the loop in a thread for the length of the block; coroutines of users that it starts run in there."""
        assert self.loop is not None
        thread = threading.Thread(target=self.loop.run_forever, daemon=True, name="llmeval-users-loop")
        thread.start()
        try:
            with with_value(_users_loop, self.loop):
                yield
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            thread.join()

    async def result(self, work: Awaitable[_T]) -> _T:
        """Await something of users' code in this loop, and return its result.

        Raises:
            BaseException: Any error of it.
        """
        import asyncio

        if self.loop is None or self.loop is asyncio.get_running_loop():
            return await work
        value, error = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(caught(work), self.loop))
        if error is not None:
            raise error
        return cast("_T", value)

    def wait_for(self, work: Awaitable[_T]) -> _T:
        """Wait in a plain function for something that users' code would await, and return its result.

        It is awaited in this loop, else in that of the coroutine that waits for this thread, or else in the one of the
        process.

        Raises:
            BaseException: Any error of it.
        """
        import asyncio

        loop = self.loop or _callers_loop.get()
        if loop is None or not loop.is_running():
            return Background.of_process().run(work)
        value, error = asyncio.run_coroutine_threadsafe(caught(work), loop).result()  # signals reach no such thread
        if error is not None:
            raise error
        return cast("_T", value)


async def in_thread(work: Callable[[], _T], name: str) -> _T:
    """Run a plain function in a daemon thread, which is left behind if it hangs: Python cannot stop it.

    Raises:
        BaseException: Any error of the function.
    """
    run, done = _make_passing_call(work)
    threading.Thread(target=copy_context().run, args=(run,), daemon=True, name=name).start()
    return await _wait_for_function(done)


async def _wait_for_function(done: "asyncio.Future[_T]") -> _T:
    """Wait for the result of a plain function in a thread; a loop that ends ignores one cancellation.

    Raises:
        BaseException: Any error of the function.
    """
    import asyncio

    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or asyncio.get_running_loop() not in _ending:
            done.cancel()
            raise
        await asyncio.wait({done})
        # What is done is not lost: the cancellation comes again, at the next wait.
        task.uncancel()
        task.cancel()
        return done.result()


def _make_passing_call(work: Callable[[], _T]) -> "tuple[Callable[[], None], asyncio.Future[_T]]":
    """A function that runs work in any thread, and the future of the running loop that gets its outcome."""
    import asyncio

    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.done():  # the waiting coroutine has given up
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)

    def run() -> None:
        result: Any = None
        failure: BaseException | None = None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 (passed to the waiting coroutine)
            # A future refuses StopIteration, and SystemExit would end the event loop.
            failure = RuntimeError(f"StopIteration: {error}") if isinstance(error, StopIteration) else error
        with suppress(RuntimeError):  # the loop is closed: the run is over
            loop.call_soon_threadsafe(settle, result, failure)

    return run, done


class Snapshot(NamedTuple):
    """The progress of a run at one moment: cases, calls and cost; counts of several processes add up.

    Attributes:
        total: Cases that are to run. Each process has the same ones, so totals do not add up.
        done: Cases that have run.
        in_flight: Calls of targets and judges that are under way.
        retries: Attempts that were repeated.
        cost_usd: Of calls with a known price; ``None`` where there was none.
        waits: What a call waits for, such as its next attempt.
        judge_calls: Calls of judges and simulated users that were made, those that were cut off included.
        judge_tokens: Tokens of those that said so.
        target_calls: Calls of targets that were made.
    """

    total: int = 0
    done: int = 0
    in_flight: int = 0
    retries: int = 0
    cost_usd: float | None = None
    waits: str = ""
    judge_calls: int = 0
    judge_tokens: int = 0
    target_calls: int = 0

    @classmethod
    def of_all(cls, parts: Iterable[Self]) -> Self:
        """The counts of several processes, added up."""
        every = list(parts)
        costs = [part.cost_usd for part in every if part.cost_usd is not None]
        return cls(
            max((part.total for part in every), default=0),
            sum(part.done for part in every),
            sum(part.in_flight for part in every),
            sum(part.retries for part in every),
            sum(costs) if costs else None,
            next((part.waits for part in every if part.waits), ""),
            sum(part.judge_calls for part in every),
            sum(part.judge_tokens for part in every),
            sum(part.target_calls for part in every),
        )

    def calls_line(self, *, complete: bool) -> str:
        """The line on the calls and cost of an interrupted run, of finished cases or not; empty without calls.

        Args:
            complete: Whether these are all calls; workers report theirs twice a second.

        Example:
            >>> Snapshot(judge_calls=155, judge_tokens=51200, cost_usd=0.12, target_calls=60).calls_line(complete=True)
            'calls before the run ended: judges 155 (51,200 tokens, 0.1200 USD), targets 60'
        """
        used = [f"{self.judge_tokens:,} tokens"] if self.judge_tokens else []
        used += [f"{self.cost_usd:.4f} USD"] if self.cost_usd is not None else []
        usage = f" ({', '.join(used)})" if used else ""
        parts = [f"judges {self.judge_calls}{usage}"] if self.judge_calls else []
        parts += [f"targets {self.target_calls}"] if self.target_calls else []
        return f"calls before the run ended: {'' if complete else 'at least '}{', '.join(parts)}" if parts else ""


class Activity(Struct):
    """Counts of one process. `done` and `total` belong to the thread of the tests, the others to the event loop."""

    total: int = 0
    done: int = 0
    in_flight: int = 0
    retries: int = 0
    cost_usd: float | None = None
    judge_calls: int = 0
    judge_tokens: int = 0
    target_calls: int = 0
    _waits: dict[object, str] = {}

    def snapshot(self) -> Snapshot:
        """The present counts of the process; of several calls that wait, the one that began last is shown."""
        waits = next(reversed(self._waits.values()), "")
        calls = self.judge_calls, self.judge_tokens, self.target_calls
        return Snapshot(self.total, self.done, self.in_flight, self.retries, self.cost_usd, waits, *calls)

    def spend(self, tokens: int, usd: float | None) -> None:
        """Add a call of a judge: its tokens and cost, as far as known."""
        self.judge_calls += 1
        self.judge_tokens += tokens
        if usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + usd

    @contextmanager
    def waiting(self) -> Iterator[Callable[[str], None]]:
        """Yield a function that sets what a call waits for, until the end of the block."""
        call = object()
        try:
            yield lambda text: self._waits.__setitem__(call, text)
        finally:
            self._waits.pop(call, None)


_running: "ContextVar[Stopwatch | None]" = ContextVar("_running", default=None)


class Stopwatch:
    """Adds up the seconds of the calls that are made while it runs; calls that overlap count once.

    The event loop may be busy when an answer arrives, so the clock is read where a call is made: in the worker thread
    of a function, around the exchange of a request.

    Attributes:
        seconds: So far.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since = 0.0
        self._under_way = 0

    @classmethod
    def current(cls) -> "Stopwatch":
        """The stopwatch of the calls of a target or judge, or one that nobody reads."""
        return _running.get() or cls()

    def running(self) -> AbstractContextManager[None]:
        """Time the calls that are made in here."""
        return with_value(_running, self)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Time one call; calls within it are a part of it."""
        token = _running.set(None)
        if not self._under_way:
            self._since = time.perf_counter()
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self.seconds += time.perf_counter() - self._since
            _running.reset(token)


_RESERVED_FILES: Final = 64
"""Files that Python, libraries and the judge cache have open."""

_FILES_PER_CALL: Final = 3
"""A connection and two more, or the pipes of a command."""


def calls_that_fit(calls: int) -> int:
    """The number of judge and target calls that this process may make at a time, by its limit of open files.

    The limit is raised as far as they need, and as the machine allows.
    """
    try:
        import resource
    except ImportError:  # Windows, where sockets are no files
        return calls
    needed = _RESERVED_FILES + _FILES_PER_CALL * calls
    allowed, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY or allowed >= needed:
        return calls
    with suppress(OSError, ValueError):  # macOS permits less than it says
        raised = needed if highest == resource.RLIM_INFINITY else min(needed, highest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, highest))
        allowed = raised
    return max(1, min(calls, (allowed - _RESERVED_FILES) // _FILES_PER_CALL))
