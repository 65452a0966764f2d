"""Runs that are cancelled or interrupted: no call begins afterwards, and answers that were paid for are not lost."""

import asyncio
import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pytest_llmeval as ev
from pytest_llmeval import JudgeRequest
from pytest_llmeval.services import Background

CASES = [{"id": f"c{number:02}", "input": f"q{number}", "expected": "Paris"} for number in range(30)]
AT_A_TIME = 4


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Calls:
    """Counts calls by name; those to one of them never end, from a number on."""

    def __init__(self, stuck: str = "", after: int = 0) -> None:
        self.begun, self.ended = Counter[str](), Counter[str]()
        self.worlds: list[str] = []
        self.is_stuck = asyncio.Event()
        self.released = asyncio.Event()
        self._stuck, self._after = stuck, after

    async def call(self, name: str) -> None:
        self.begun[name] += 1
        number = self.begun[name]
        await asyncio.sleep(0)
        if name == self._stuck and number > self._after:
            self.is_stuck.set()
            await self.released.wait()
        self.ended[name] += 1

    async def target(self, question: str) -> dict[str, Any]:
        await self.call("target")
        return {"answer": f"Paris {question}", "usage": {"cost_usd": 0.5}}

    async def other(self, question: str) -> dict[str, Any]:
        await self.call("other")
        return {"answer": f"Rome {question}"}

    async def judge(self, request: JudgeRequest) -> str:
        await self.call("judge")
        return json.dumps({"better": "first"} if "first" in request.messages[-1].content else {"score": 1})

    @contextmanager
    def world(self, case: Any) -> Iterator[Any]:
        self.worlds.append(case.id)
        try:
            yield self
        finally:
            self.worlds.remove(case.id)

    async def in_world(self, question: str, world: Any) -> dict[str, Any]:
        assert world is self
        return await self.target(question)


def _suite(calls: Calls, kind: str) -> tuple[Any, dict[str, Any]]:
    """Return a suite of a kind, and the arguments of its run."""
    keys: dict[str, Any] = {"evaluators": [ev.text(metrics=["f1"])]}
    target = {"python": calls.target, "concurrency": AT_A_TIME}
    options: dict[str, Any] = {}
    if kind == "systems":
        keys["systems"] = {"small": target, "large": {"python": calls.other, "concurrency": AT_A_TIME}}
        keys["evaluators"] = [ev.pairwise(against="large")]
        options = {"system": "small", "judge": calls.judge}
    elif kind == "judges":
        keys |= {"target": target, "evaluators": [ev.judge(mode="continuous")]}
        options = {"judge": calls.judge}
    elif kind == "repeats":
        keys |= {"target": target, "repeats": 3}
    elif kind == "worlds":
        keys["target"] = {"python": calls.in_world, "world": calls.world, "concurrency": AT_A_TIME}
    else:
        keys["target"] = target
    return ev.suite("capitals", cases=CASES, **keys), options


STUCK = [
    ("targets", "target"),
    ("systems", "target"),
    ("systems", "other"),
    ("systems", "judge"),
    ("judges", "target"),
    ("judges", "judge"),
    ("repeats", "target"),
    ("worlds", "target"),
]


@pytest.mark.parametrize(("kind", "stuck"), STUCK)
def test_a_cancelled_run_begins_no_call_and_loses_no_answer(kind: str, stuck: str, tmp_path: Path) -> None:
    async def script() -> tuple[Calls, Any]:
        calls = Calls(stuck, after=9)
        suite, options = _suite(calls, kind)
        task = asyncio.ensure_future(suite.arun(record=tmp_path / "answers.jsonl", progress=False, **options))
        await calls.is_stuck.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        before = calls.begun.copy()
        calls.released.set()
        for _ in range(50):
            await asyncio.sleep(0)
        assert calls.begun == before
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return calls, suite

    calls, suite = asyncio.run(script())
    assert calls.worlds == []
    outcomes = [case.outcome for case in suite.last_result.cases]
    assert len(outcomes) == len(CASES)
    assert outcomes.count("not_run") >= len(CASES) - 10
    # All answers that came are recorded, also those of cases that were not scored.
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len([row for row in rows if row["prediction"]["answer"].startswith("Paris")]) == calls.ended["target"]
    # Their cost is known too, also of those whose judge, opponent or other repeat was cut off.
    spent = [each.cost_usd for record in suite.last_result.records for each in record.target_usage]
    assert spent == [0.5] * calls.ended["target"]
    if stuck == "judge":
        costs = [case.cost_usd for case in suite.last_result.cases if case.outcome == "not_run"]
        assert 0.5 in costs


@pytest.mark.parametrize("kind", ["targets", "systems", "judges"])
def test_an_interrupt_of_the_user_keeps_what_had_run(kind: str, tmp_path: Path) -> None:
    class Interrupted(Calls):
        async def call(self, name: str) -> None:
            await super().call(name)
            if name == "target" and self.ended[name] == 9:
                signal.raise_signal(signal.SIGINT)  # as Ctrl-C does, while the main thread waits in `run`
                await asyncio.Event().wait()

    calls = Interrupted()
    suite, options = _suite(calls, kind)
    with pytest.raises(KeyboardInterrupt):
        suite.run(record=tmp_path / "answers.jsonl", progress=False, **options)
    begun = calls.begun.copy()
    outcomes = [case.outcome for case in suite.last_result.cases]
    assert (len(outcomes), set(outcomes)) == (len(CASES), {"passed", "not_run"})
    rows = (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert len([row for row in rows if '"Paris' in row]) >= 8
    assert Background.of_process().run(_count_of_tasks()) == 0
    assert calls.begun == begun


async def _count_of_tasks() -> int:
    return len(asyncio.all_tasks() - {asyncio.current_task()})


def test_a_run_cancelled_while_a_world_is_torn_down_keeps_the_answer(tmp_path: Path) -> None:
    leaving, may_leave = threading.Event(), threading.Event()

    @contextmanager
    def world(_case: Any) -> Iterator[None]:
        yield
        leaving.set()
        assert may_leave.wait(60)

    async def target(question: str) -> str:
        return f"Paris {question}"

    async def script() -> None:
        keys: dict[str, Any] = {"evaluators": [ev.text(metrics=["f1"])], "target": {"python": target, "world": world}}
        suite = ev.suite("capitals", cases=CASES[:1], **keys)
        task = asyncio.ensure_future(suite.arun(record=tmp_path / "answers.jsonl", progress=False))
        assert await asyncio.to_thread(leaving.wait, 60)
        task.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        may_leave.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(script())
    assert "Paris q0" in (tmp_path / "answers.jsonl").read_text(encoding="utf-8")
