"""The event loop beside the tests: results and errors come out of it, and nothing keeps it from ending."""

import asyncio
import gc
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from queue import Empty
from types import FrameType
from typing import Any

import pytest
from servers import PATIENCE

from pytest_llmeval.services import Background, Pending, SharedTask, ThisThread, caught, in_thread, together
from pytest_llmeval.services import _background as module


@pytest.fixture
def background() -> Iterator[Background]:
    made = Background()
    yield made
    made.close()


async def name_of_thread() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


async def fails(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


def test_it_starts_with_the_first_work_and_all_work_shares_its_thread(background: Background) -> None:
    before = set(threading.enumerate())
    found = (background.run(name_of_thread()), background.submit(name_of_thread()).result())
    assert found == ("llmeval", "llmeval")
    assert [each.name for each in threading.enumerate() if each not in before] == ["llmeval"]


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt()])
def test_errors_reach_whoever_waits_without_frames_of_the_loop_and_the_loop_lives_on(
    background: Background, error: BaseException
) -> None:
    with pytest.raises(type(error)) as found:
        background.run(fails(error))
    assert found.value is error
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    assert not any("concurrent" in name or name.endswith("base_events.py") for name in frames)
    assert background.run(name_of_thread()) == "llmeval"


def test_work_that_nothing_else_refers_to_goes_on(background: Background) -> None:
    started, ended = threading.Event(), threading.Event()

    async def waits_for_itself() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    background.submit(waits_for_itself())
    assert started.wait(PATIENCE)
    background.run(name_of_thread())
    gc.collect(1)  # what is young: of all that other tests left, nothing matters here
    background.run(name_of_thread())
    assert not ended.is_set()
    background.close()
    assert ended.is_set()


def test_closing_cancels_what_runs_then_releases_and_can_be_done_twice() -> None:
    done: list[str] = []
    started = threading.Event()

    async def waits() -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            done.append("cancelled")

    async def breaks() -> None:
        done.append("broke")
        raise OSError

    async def releases() -> None:
        done.append("released")

    background = Background([breaks, releases])
    running = background.submit(waits())
    assert started.wait(PATIENCE)
    background.close()
    background.close()
    assert done == ["cancelled", "broke", "released"]
    with pytest.raises(CancelledError):
        running.result()


def test_closing_what_never_ran_does_nothing() -> None:
    Background([lambda: fails(AssertionError("ran"))]).close()


def test_it_can_be_used_again_after_it_was_closed(background: Background) -> None:
    background.run(name_of_thread())
    background.close()
    assert background.run(name_of_thread()) == "llmeval"


def test_a_plain_function_runs_in_a_thread_of_its_own(background: Background) -> None:
    assert background.run(in_thread(lambda: threading.current_thread().name, "mine")) == "mine"


@pytest.mark.parametrize(
    ("error", "expected"),
    [(ValueError("no"), ValueError), (SystemExit(3), SystemExit), (StopIteration(4), RuntimeError)],
)
def test_what_a_function_in_a_thread_raises_reaches_whoever_waits(
    background: Background, error: BaseException, expected: type[BaseException]
) -> None:
    def work() -> None:
        raise error

    with pytest.raises(expected, match=str(error)):
        background.run(in_thread(work, "mine"))


def test_a_function_that_hangs_keeps_nobody_from_closing() -> None:
    background = Background()
    started, over = threading.Event(), threading.Event()

    def hangs() -> None:
        started.set()
        over.wait(PATIENCE)

    waiting = background.submit(in_thread(hangs, "hangs"))
    assert started.wait(PATIENCE)
    background.close()
    with pytest.raises(CancelledError):
        waiting.result()
    over.set()  # what it answers now finds the loop closed
    hanging = next((each for each in threading.enumerate() if each.name == "hangs"), None)
    if hanging is not None:
        hanging.join(PATIENCE)


def _is_interrupted(wait: Callable[[], object], line: int) -> bool:
    """Raise an interrupt in this thread before the given line that a wait runs through, and return whether it came."""
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        if event == "line" and lines == line:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        wait()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


async def _says(word: str) -> str:
    return await in_thread(lambda: word, "says")


def _calls(background: Background) -> None:
    here = ThisThread()
    _, error = here.run(background, caught(here.call(lambda: "called")))
    if error is not None:
        raise error


WAITS: dict[str, Callable[[Background], object]] = {
    "run": lambda background: background.run(_says("yes")),
    "submit": lambda background: background.submit(_says("yes")).result(),
    "ended": lambda background: background.submit(_says("yes")).ended(PATIENCE),
    "give_way": lambda background: background.give_way(),
    "this thread": _calls,
    "slices": lambda background: background.run(asyncio.sleep(0.02)),
}


@pytest.mark.filterwarnings("ignore:coroutine '.*' was never awaited")
@pytest.mark.parametrize("name", WAITS)
def test_an_interrupt_at_any_line_of_a_wait_leaves_a_loop_that_works_and_ends(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "slices":
        monkeypatch.setattr(module, "_WAKE_S", 0.008)
    background = Background()
    background.run(name_of_thread())

    def interrupts() -> None:
        line = 1
        while _is_interrupted(partial(WAITS[name], background), line):
            assert background.run(name_of_thread()) == "llmeval"
            line += 1
        background.close()
        lines.append(line)

    lines: list[int] = []
    interrupted = threading.Thread(target=interrupts, daemon=True)
    interrupted.start()
    interrupted.join(PATIENCE)
    assert lines
    assert lines[0] > 5


def test_an_interrupt_while_the_loop_starts_leaves_the_next_wait_another(
    background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    def interrupted(thread: threading.Thread) -> None:
        loops.append(thread._target.__self__)  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            background.submit(waiting := name_of_thread())
    waiting.close()
    loops[0].close()
    assert background.run(name_of_thread()) == "llmeval"


def test_a_wait_ends_with_its_time(background: Background) -> None:
    free = asyncio.Event()

    async def waits() -> str:
        await free.wait()
        return "free"

    async def frees() -> None:
        free.set()

    waiting = background.submit(waits())
    assert not waiting.ended(0.001)
    background.run(frees())
    assert waiting.ended(PATIENCE)
    assert waiting.result() == waiting.result() == "free"


def test_an_interrupt_before_a_coroutine_starts_ends_the_wait(
    background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Background, "submit_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        background.run(waiting := name_of_thread())
    waiting.close()


def test_a_wait_wakes_up_for_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    slow: Pending[str] = Pending()

    class Wakes:
        def get(self, timeout: float) -> None:
            waits.append(timeout)
            if len(waits) > 1:
                slow.settle("done")
            raise Empty

        def put(self, _item: None) -> None:
            pass

    monkeypatch.setattr(slow, "_wakes", Wakes())
    assert slow.result() == "done"
    assert waits == [module._WAKE_S] * 2


def test_a_timeout_of_the_work_itself_ends_the_wait(background: Background) -> None:
    with pytest.raises(TimeoutError, match="too slow"):
        background.submit(fails(TimeoutError("too slow"))).result()


@pytest.mark.parametrize("number", [0, 1, 3])
def test_works_run_together_and_their_results_are_in_order(number: int, background: Background) -> None:
    async def work(each: int) -> int:
        await asyncio.sleep(0)
        return each

    assert background.run(together([work(each) for each in range(number)])) == list(range(number))


def test_what_is_submitted_together_gives_results_errors_and_ends_when_the_loop_does() -> None:
    background = Background()
    work = [name_of_thread(), fails(ValueError("no")), asyncio.sleep(PATIENCE, "never")]
    results: list[Pending[str | None]] = [Pending() for _ in work]
    background.submit_all(list(zip(work, results, strict=True)))
    assert results[0].result() == "llmeval"
    with pytest.raises(ValueError, match="no"):
        results[1].result()
    background.close()
    with pytest.raises(CancelledError):
        results[2].result()


def test_a_thread_that_gives_way_lets_the_loop_do_all_that_it_can_do_at_once(background: Background) -> None:
    told = []

    async def reply() -> None:
        for each in ("read", "stored", "told"):
            await asyncio.sleep(0)
            told.append(each)

    background.give_way()  # there is no loop yet
    for _ in range(3):
        told.clear()
        background.submit(reply())
        background.give_way()
        assert told == ["read", "stored", "told"]


def test_a_loop_that_is_blocked_does_not_block_the_thread_that_gives_way(
    background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WAKE_S", 0.01)
    free = threading.Event()

    async def blocks() -> bool:
        return free.wait(PATIENCE)

    blocked = background.submit(blocks())
    background.give_way()
    assert not blocked.is_done
    free.set()
    assert blocked.result()


def test_who_comes_while_a_shared_task_is_being_cancelled_needs_another() -> None:
    async def ends_slowly() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(9):
                await asyncio.sleep(0)

    async def cancels() -> list[bool]:
        shared = SharedTask(ends_slowly())
        waiting = asyncio.ensure_future(shared.result())
        await asyncio.sleep(0)
        seen = [shared.is_cancelled]
        waiting.cancel()
        await asyncio.wait([waiting])
        seen += [shared.task.done(), shared.is_cancelled]
        await asyncio.wait([shared.task])
        return [*seen, shared.is_cancelled]

    assert asyncio.run(cancels()) == [False, False, True, True]
