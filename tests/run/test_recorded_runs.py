"""Recordings of runs in scripts, which are those of pytest."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import pytest_llmeval as ev
from pytest_llmeval.core import LlmevalError

ROWS = "".join(f"  - {{id: c{n}, input: q{n}, expected: Paris}}\n" for n in range(10))


@pytest.fixture
def capitals(tmp_path: Path) -> Any:
    path = tmp_path / "capitals.eval.yaml"
    (tmp_path / "pytest.ini").touch()
    path.write_text(f"suite: capitals\nevaluators: [{{text: {{metrics: [f1]}}}}]\ncases:\n{ROWS}", encoding="utf-8")
    return ev.suite.from_file(path)


class Answering:
    """Counts its calls; from one of them on, it waits for ever."""

    def __init__(self, stuck_after: int = 100) -> None:
        self.calls = 0
        self.stuck_after = stuck_after
        self.stuck = asyncio.Event()

    async def answer(self, question: str) -> str:
        self.calls += 1
        if self.calls > self.stuck_after:
            self.stuck.set()
            await asyncio.Event().wait()
        return "Paris" if question != "q3" else "Rome"


def test_recorded_answers_are_replayed_without_a_call(capitals: Any) -> None:
    first, second = Answering(), Answering()
    recorded = capitals.run(first.answer, record=True)
    file = capitals.path.parent / "__llmeval__" / "capitals.predictions.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(row["suite"], row["case"]) for row in rows] == [("capitals.eval.yaml", f"c{n}") for n in range(10)]
    replayed = capitals.run(second.answer, replay=file)
    assert (first.calls, second.calls) == (10, 0)
    assert [case.metrics for case in replayed.cases] == [case.metrics for case in recorded.cases]
    assert capitals.run(replay=True).metrics["f1"].value == 0.9


def test_a_cancelled_run_keeps_what_was_answered_and_the_next_one_asks_for_what_is_missing(capitals: Any) -> None:
    stuck, after = Answering(stuck_after=6), Answering()

    async def cancelled() -> None:
        task = asyncio.ensure_future(capitals.arun(stuck.answer, record=True))
        await stuck.stuck.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    result = capitals.run(after.answer, record=True, replay=True)
    assert (after.calls, result.pass_rate.value) == (4, 1.0)
    assert capitals.run(replay=True).metrics["f1"].value == 0.9


def test_what_cannot_be_replayed_is_an_error(capitals: Any, tmp_path: Path) -> None:
    with pytest.raises(LlmevalError, match=r"suite 'capitals': replay: .* does not exist: run with record first"):
        capitals.run(replay=True)
    with pytest.raises(LlmevalError, match=r"found record and replay with .*, expected one file"):
        capitals.run(lambda _: "Paris", record=tmp_path / "a.jsonl", replay=tmp_path / "b.jsonl")
    capitals.run(lambda _: "Paris", record=tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(lines[:9]), encoding="utf-8")
    outcomes = [case.outcome for case in capitals.run(replay=tmp_path / "a.jsonl").cases]
    assert outcomes == ["passed"] * 9 + ["errored"]
