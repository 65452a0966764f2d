"""A judge that is scripted, and services that ask it over one working cache."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from judge_service import Scripted

from pytest_llmeval.judge.bound_question import SuiteJudge
from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.judge.options import JudgeMode
from pytest_llmeval.judge.recordings import Judgements
from pytest_llmeval.judge.service import JudgeService
from pytest_llmeval.judge.spec import Price
from pytest_llmeval.judge.store.working import WorkingCache


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite3"


@pytest.fixture
def judge() -> Scripted:
    return Scripted()


@pytest.fixture
def suite_judge(judge: Scripted, tmp_path: Path) -> SuiteJudge:
    return SuiteJudge(
        "openai:m", {"temperature": 0}, Judgements(tmp_path / "s.judgements.jsonl"), judge, Price(100, 1000)
    )


@pytest.fixture
def serve(path: Path) -> Iterator[Callable[..., JudgeService]]:
    made: list[WorkingCache] = []

    def make(mode: JudgeMode = "auto", owner: str = "me", run: str = "run", **more: Any) -> JudgeService:
        made.append(WorkingCache(path))
        return JudgeService(mode, more.pop("limit", CallLimit(4)), made[-1], run, owner, **more)

    yield make
    for each in made:
        each.close()
