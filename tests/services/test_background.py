"""The event loop beside the tests: results and errors come out of it, and nothing keeps it from ending."""

import asyncio
import gc
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, wait

import pytest
from servers import PATIENCE

from pytest_llmeval.services import background as module
from pytest_llmeval.services.background import Background, in_thread, together, waited


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
    found = (background.run(name_of_thread()), background.submit(name_of_thread()).result(PATIENCE))
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
    gc.collect()
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
    assert running.cancelled()


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
    assert waiting.cancelled()
    over.set()  # what it answers now finds the loop closed
    hanging = next((each for each in threading.enumerate() if each.name == "hangs"), None)
    if hanging is not None:
        hanging.join(PATIENCE)


class Slow(Future[str]):
    """A future that is done once it has been waited for twice; a wait without end fails."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def result(self, timeout: float | None = None) -> str:
        if self.done():
            return super().result()
        assert timeout is not None
        self.waits += 1
        if self.waits > 1:
            self.set_result("done")
        raise TimeoutError


def test_a_wait_wakes_up_for_signals() -> None:
    slow = Slow()
    assert waited(slow) == "done"
    assert slow.waits == 2


def test_a_timeout_of_the_work_itself_ends_the_wait() -> None:
    failed: Future[str] = Future()
    failed.set_exception(TimeoutError("too slow"))
    with pytest.raises(TimeoutError, match="too slow"):
        waited(failed)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_works_run_together_and_their_results_are_in_order(number: int, background: Background) -> None:
    async def work(each: int) -> int:
        await asyncio.sleep(0)
        return each

    assert background.run(together([work(each) for each in range(number)])) == list(range(number))


def test_what_is_submitted_together_gives_results_errors_and_ends_when_the_loop_does() -> None:
    background = Background()
    work = [name_of_thread(), fails(ValueError("no")), asyncio.sleep(PATIENCE, "never")]
    results: list[Future[str | None]] = [Future() for _ in work]
    background.submit_all(list(zip(work, results, strict=True)))
    assert results[0].result(PATIENCE) == "llmeval"
    with pytest.raises(ValueError, match="no"):
        results[1].result(PATIENCE)
    background.close()
    assert results[2].cancelled()
    assert wait(results, PATIENCE).not_done == set()


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
    assert not blocked.done()
    free.set()
    assert waited(blocked)
