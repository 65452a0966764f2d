"""Progress: a line below pytest's own on a terminal, a line a minute in a log, nothing with -q."""

import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running import WITHOUT_UNUSED, Started
from servers import held, reply, status

from pytest_llmeval.plugin._progress import Progress, Termination, described
from pytest_llmeval.services import Snapshot

if TYPE_CHECKING:
    from scripted_judges import Judged

WORDS = [f"w{number:02}" for number in range(12)]


@dataclass
class Screen:
    """A pipe in the place of a terminal or log, with a clock and a run that the test moves."""

    now: float = 100.0
    snapshot: Snapshot = field(default_factory=Snapshot)
    file: int = 0
    read: int = 0
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self.read, self.file = os.pipe()
        os.set_blocking(self.read, False)
        self.progress = Progress(None, lambda: self.snapshot, lambda: self.now)  # type: ignore[arg-type]  # not asked

    def after(self, seconds: float, *counts: int, waits: str = "") -> str:
        """Let time pass, and return what was written."""
        self.now += seconds
        self.snapshot = Snapshot(9, *counts, *[0] * (3 - len(counts)), None, waits)
        self.progress.tick()
        return self.written()

    def written(self) -> str:
        try:
            return os.read(self.read, 65536).decode()
        except BlockingIOError:
            return ""


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    for name in ("CI", "TERM"):
        monkeypatch.delenv(name, raising=False)
    made = Screen()
    yield made
    os.close(made.read)
    os.close(made.file)


def test_on_a_terminal_one_line_is_rewritten_and_taken_away(screen: Screen) -> None:
    screen.progress.begin(screen.file, terminal=True)
    assert screen.after(1, 1) == ""
    assert "llmeval: 2 of 9 cases, 3 in flight, 1 retry, about 4 s left\x1b8" in screen.after(1, 2, 3, 1)
    assert screen.after(0.1, 3) == ""
    waits = "retrying, 3rd of 5, status 500"
    assert f"3 of 9 cases, {waits}, 0 in flight" in screen.after(1, 3, waits=waits)
    screen.progress.erase()
    assert screen.written() == "\x1b7\x1b[1B\r\x1b[2K\x1b8"
    screen.progress.erase()
    assert screen.written() == ""


def test_what_is_done_never_runs_backwards(screen: Screen) -> None:
    screen.progress.begin(screen.file, terminal=True)
    shown = "".join(screen.after(5, done) for done in (1, 4, 3, 5, 0, 9))
    assert re.findall(r"(\d) of 9", shown) == ["1", "4", "4", "5", "5", "9"]


@pytest.mark.parametrize("variable", [None, "CI", "TERM"])
def test_in_a_log_there_is_at_most_a_line_a_minute(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, variable: str | None
) -> None:
    if variable is not None:
        monkeypatch.setenv(variable, "dumb")
    screen.progress.begin(screen.file, terminal=variable is not None)
    lines = [screen.after(1, second // 20, waits="retrying" if second > 70 else "") for second in range(180)]
    assert [second for second, line in enumerate(lines) if line] == [59, 119, 179]
    assert lines[119] == "\nllmeval: 5 of 9 cases, retrying, 0 in flight, about 95 s left\n"


def test_in_a_log_a_call_that_waits_is_told_before_the_first_minute_has_passed(screen: Screen) -> None:
    screen.progress.begin(screen.file, terminal=False)
    waits = "waiting for another run"
    lines = [screen.after(1, 0, waits=waits) for _ in range(62)]
    assert [second for second, line in enumerate(lines) if line] == [0, 60]
    assert lines[0] == f"\nllmeval: 0 of 9 cases, {waits}, 0 in flight\n"


def test_without_cases_nothing_is_shown(screen: Screen) -> None:
    screen.progress.begin(screen.file, terminal=True)
    screen.progress.activity = Snapshot
    screen.now += 99
    screen.progress.tick()
    assert screen.written() == ""


@pytest.mark.parametrize(
    ("elapsed", "left"), [(4, "36 s"), (20, "3 min"), (600, "90 min"), (7200, "18.0 h"), (0, "1 s")]
)
def test_the_rest_is_estimated_in_round_figures(elapsed: float, left: str) -> None:
    assert described(Snapshot(10, 1), elapsed).endswith(f", about {left} left")


def test_workers_add_up_but_for_their_totals() -> None:
    parts = [Snapshot(9, 1, 2, 3, 0.5), Snapshot(9, 1, 0, 0, None, "retrying"), Snapshot(9, 0, 1, 0, 0.25)]
    assert Snapshot.of_all(parts) == Snapshot(9, 2, 3, 3, 0.75, "retrying")
    assert Snapshot.of_all([]) == Snapshot()


@pytest.mark.parametrize(("mode", "workers"), [("items", 0), ("bulk", 2)])
def test_who_waits_at_a_real_terminal_sees_what_is_done_and_under_way(
    judged: "Judged", mode: str, workers: int
) -> None:
    pty = pytest.importorskip("pty")
    until = threading.Event()
    judged.server.script(*[reply("yes")] * 3, held(until, reply("yes")))
    judge = judged.judge(price={"input": 1000, "output": 1000})
    judged.suite("s.eval.yaml", WORDS, mode=mode, judge=judge)
    ours, theirs = pty.openpty()
    line = ["-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "-pno:cacheprovider", "--llmeval-concurrency=4"]
    line += [f"-n{workers}"] if workers else []
    terminal = Path(os.ttyname(theirs))
    run = Started(line, {**os.environ, "TERM": "xterm"}, Path.cwd(), terminal, terminal, workers=workers)
    text = _until(ours, b"in flight, 0.0")
    os.close(theirs)
    until.set()
    text += _until(ours, b" passed")
    run.wait()
    os.close(ours)
    assert re.search(r"llmeval: \d+ of 12 cases, [1-4] in flight, 0\.0\d+ USD", text)
    done = [int(each) for each in re.findall(r"llmeval: (\d+) of", text)]
    percent = [int(each) for each in re.findall(r"(\d+)%", text)]
    assert done == sorted(done)
    assert percent == sorted(percent)


def _until(file: int, sign: bytes) -> str:
    """Read a terminal until something shows."""
    text = b""
    while sign not in text:
        try:
            text += os.read(file, 65536)
        except OSError:  # Linux: the run has ended
            break
    assert sign in text, text.decode(errors="replace")
    return text.decode(errors="replace")


def test_a_pipe_gets_one_line_at_most_and_it_says_what_is_retried(judged: "Judged") -> None:
    judged.server.script(status(500, **{"retry-after": "1"}), reply("yes"))
    judged.suite("s.eval.yaml", WORDS, judge=judged.judge(retries=5))
    text = judged.project.run("--llmeval-concurrency=1").text
    assert re.findall(r"(?m)^llmeval: .*$", text) == [
        "llmeval: 0 of 12 cases, retrying, 1st of 5, status 500, 1 in flight"
    ]


@pytest.mark.parametrize(("raised", "expected"), [(KeyboardInterrupt(), KeyboardInterrupt), (OSError(), RuntimeError)])
def test_an_interrupt_inside_a_wait_for_a_lock_is_an_interrupt(
    raised: BaseException, expected: type[BaseException]
) -> None:
    queue = threading.Condition()

    def waits() -> None:
        with queue:
            queue.release()  # as `wait` does; the interrupt comes before it acquires the lock again
            raise raised

    loop = Termination().pytest_runtestloop()
    next(loop)
    with pytest.raises(RuntimeError, match="lock") as failure:
        waits()
    with pytest.raises(expected):
        loop.throw(failure.value)


def without_line() -> None:
    raise KeyboardInterrupt("SIGTERM")


def test_an_interrupt_where_python_has_no_line_can_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(without_line, "__code__", without_line.__code__.replace(co_linetable=b""))
    with pytest.raises(KeyboardInterrupt) as interrupt:
        without_line()
    assert interrupt.traceback[-1]._rawentry.tb_lineno is None
    loop = Termination().pytest_runtestloop()
    next(loop)
    with pytest.raises(KeyboardInterrupt, match="SIGTERM") as kept:
        loop.throw(interrupt.value)
    assert kept.traceback[-1].name == "without_line"
    assert kept.traceback[-1].lineno + 1 == without_line.__code__.co_firstlineno
