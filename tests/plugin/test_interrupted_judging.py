"""Runs that end before their time: what had been paid for is kept, and the next run asks for the rest only."""

import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import pytest
from running import WITHOUT_UNUSED, Started, wait_for_group
from scripted_judges import ClaimJudge, case, shown_to
from servers import PATIENCE, Answer, Call, Sent, reply

if TYPE_CHECKING:
    from scripted_judges import Judged

WORDS = [f"w{number:02}" for number in range(20)]
ANSWERED = 5
"""So few that a window of cases to come holds as many more as there may be calls, whichever are answered."""

WATCH = """\
import os
import pathlib
import sys
import threading

ANSWERED = pathlib.Path("answered.txt")
BACKGROUND = "pytest_llmeval.services._background"


def watch():
    main = threading.main_thread().ident
    while not (ANSWERED.exists() and waits(sys._current_frames().get(main), ANSWERED.read_text().split())):
        threading.Event().wait(0.01)
    pathlib.Path(f"waits.{os.getpid()}").touch()


def waits(frame, answered):
    if frame is None or frame.f_code.co_name != "ended" or frame.f_globals.get("__name__") != BACKGROUND:
        return False
    while frame is not None:
        if frame.f_code.co_name == "_wait" and frame.f_globals.get("__name__") == "pytest_llmeval.run._answering":
            return frame.f_locals["job"].case.id not in answered
        frame = frame.f_back
    return False


threading.Thread(target=watch, daemon=True).start()
"""
"""Tells when the thread of the tests waits for a case that gets no answer. Only then is Ctrl-C sent: Python loses an
interrupt that arrives in the callback of a weak reference, and pytest has code of its own that takes none."""

HOLD = """

def pytest_keyboard_interrupt():
    pathlib.Path(f"interrupted.{os.getpid()}").touch()
    while not pathlib.Path("over").exists():
        threading.Event().wait(0.01)
"""
"""Stays where pytest shows what was interrupted, as it does for seconds, until a file exists."""

YES = reply("yes")


class Stuck:
    """Answers the first calls, and no others before `over` is set."""

    def __init__(self, answered: int, answer: Answer) -> None:
        self.over = threading.Event()
        self._answered, self._answer = answered, answer

    def __call__(self, call: Call) -> Sent:
        if call.number > self._answered:
            self.over.wait(PATIENCE)
        return self._answer(call)


def _interrupted(
    judged: "Judged",
    with_signal: signal.Signals,
    *,
    workers: int,
    replies: int = ANSWERED,
    answer: Answer = YES,
    finished: Callable[[Sequence[Call]], Iterable[str]] = lambda calls: (shown_to(each)["answer"] for each in calls),
    conftest: str = WATCH,
    meanwhile: Callable[[Stuck], None] = lambda _: None,
) -> str:
    """Run pytest until it waits for calls that are under way; end it, and return what it printed.

    Args:
        judged: The project.
        with_signal: Sent to all processes of the run.
        workers: Of xdist.
        replies: How many calls are answered.
        answer: How.
        finished: Returns the cases that these calls finish.
        conftest: Of the project.
        meanwhile: What happens between the signal and the end.
    """
    stuck = Stuck(replies, answer)
    judged.server.script(stuck)
    judged.project.write("conftest.py", conftest)
    line = ["-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "-pno:cacheprovider", "--llmeval-concurrency=4"]
    line += [*([f"-n{workers}"] if workers else []), "--llmeval-report=report.json", "--llmeval-judge=record"]
    said = judged.project.write("said.txt", "")
    # A group of its own: Ctrl-C reaches workers as well.
    run = Started([*line, "s.eval.yaml"], os.environ, judged.project.path, said, said, workers=workers, group=True)
    try:
        # Of the last calls answered the replies may still be on their way when as many more have arrived.
        judged.server.wait_for_calls(replies + 4)
        answered = finished(judged.server.calls[:replies])
        judged.project.write("answered.new", " ".join(answered)).rename(judged.project.path / "answered.txt")
        _wait_for(lambda: len(list(judged.project.path.glob("waits.*"))) == max(workers, 1))
        os.killpg(run.pid, with_signal)
        meanwhile(stuck)
        run.wait()
    finally:
        stuck.over.set()
        if run.code is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
        wait_for_group(run.pid)
        (judged.project.path / "conftest.py").unlink()
    return said.read_text(encoding="utf-8")


def _wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        threading.Event().wait(0.01)


def _leases(judged: "Judged") -> list[object]:
    from pytest_llmeval.judges._coordination import Coordination

    with Coordination(judged.cache) as shared:
        return [*shared._rows("SELECT key FROM leases"), *shared._rows("SELECT slot FROM slots")]


def _half_a_minute_later(judged: "Judged") -> None:
    """Let all leases end, as they do by themselves if nobody renews them."""
    from pytest_llmeval.judges._coordination import Coordination
    from pytest_llmeval.judges._run_store import LEASE_S

    with Coordination(judged.cache) as shared:
        shared._rows("UPDATE leases SET expires = expires - ?", (LEASE_S,))


@pytest.fixture
def suite(judged: "Judged") -> "Judged":
    judged.suite("s.eval.yaml", WORDS)
    return judged


def test_ctrl_c_keeps_every_finished_verdict(suite: "Judged", workers: int) -> None:
    said = _interrupted(suite, signal.SIGINT, workers=workers)
    assert "KeyboardInterrupt" in said
    assert "Traceback" not in said
    kept = suite.kept()
    assert _leases(suite) == []  # or else the next run would wait for them to expire
    assert len(kept) >= ANSWERED - workers  # each may have been about to keep one
    # xdist's workers are cut off with what they had not reported, and the first case may be among those not answered.
    if not workers and "no tests ran" not in said:
        assert re.search(r"cases: \d+ passed, \d+ not run", said)
        assert suite.recordings().exists()
    suite.server.script(reply("yes"))
    suite.asked()
    again = suite.project.run()
    assert (again.code, again.counts) == (0, {"passed": 20})
    assert suite.asked() == dict.fromkeys(sorted({*WORDS} - {*kept}), 1)


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_worker_ends_its_calls_and_begins_no_other(suite: "Judged", with_signal: signal.Signals) -> None:
    """One that begins some more begins those that another worker has given up, a second time in one run."""
    under_way = ANSWERED + 4

    def end_calls(stuck: Stuck) -> None:
        _wait_for(lambda: len(list(suite.project.path.glob("interrupted.*"))) == 3)  # the main process, too
        stuck.over.set()
        _wait_for(lambda: len(suite.kept()) >= under_way)
        suite.project.write("over", "")

    _interrupted(suite, with_signal, workers=2, conftest=WATCH + HOLD, meanwhile=end_calls)
    assert len(suite.server.calls) == len(suite.kept()) == under_way


def test_a_killed_run_is_taken_up_where_it_ended(suite: "Judged", workers: int) -> None:
    _interrupted(suite, signal.SIGKILL, workers=workers)
    kept = suite.kept()  # which also verifies that nothing in the cache is broken
    assert len(kept) >= ANSWERED - workers  # as above
    assert not suite.recordings().exists()
    _half_a_minute_later(suite)
    suite.server.script(reply("yes"))
    suite.asked()
    again = suite.project.run(workers=workers)
    assert (again.code, again.counts) == (0, {"passed": 20})
    assert suite.asked() == dict.fromkeys(sorted({*WORDS} - {*kept}), 1)


def test_ctrl_c_leaves_finished_cases_and_says_what_was_paid(judged: "Judged") -> None:
    """Each case takes two calls, one after the other, and many cases are asked about at a time."""
    judge, replies = ClaimJudge(), 40

    def answer(call: Call) -> Sent:
        return reply(judge.reply(*(each["content"] for each in call.body["messages"])))(call)

    def finished(calls: Sequence[Call]) -> Iterable[str]:
        asked = Counter(match for each in calls for match in {*re.findall(r"w\d\d", each.prompt)})
        return [word for word, times in asked.items() if times == 2]

    words = [f"w{number:02}" for number in range(40)]
    rows = [case(word) | {"prediction": {"answer": f"{word}.", "contexts": [f"{word}."]}} for word in words]
    judged.suite("s.eval.yaml", rows, evaluators=[{"claims": {"metrics": ["faithfulness"]}}])
    said = _interrupted(judged, signal.SIGINT, workers=0, replies=replies, answer=answer, finished=finished)
    ended = re.search(r"cases: (\d+) passed, (\d+) not run", said)
    assert ended is not None
    # Cases are reported in their order, up to the first that waits for a call; which one that is may differ.
    answered = (judged.project.path / "answered.txt").read_text(encoding="utf-8").split()
    assert int(ended[1]) >= next(place for place, word in enumerate(words) if word not in answered)
    assert f"calls before the run ended: judges {replies + 4} ({replies * 15} tokens)" in said


def test_ctrl_c_ends_a_bulk_suite_with_what_it_had(suite: "Judged") -> None:
    suite.suite("s.eval.yaml", WORDS, mode="bulk", gates=["judge_score >= 1"])
    said = _interrupted(suite, signal.SIGINT, workers=0)
    assert "KeyboardInterrupt" in said
    assert len(suite.kept()) >= ANSWERED
    # The first case may wait for a later call than those that were answered: then nothing is finished, but all is paid.
    assert re.search(r"^(judge|calls before the run ended): ", said, re.MULTILINE), said
    assert "not evaluated" in said
