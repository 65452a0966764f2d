"""A judge that is scripted, and services that ask it over one working cache."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_judges import OneJudge, Scripted

from pytest_llmeval.judges import CachePlace, Judgements, JudgeMode, Price
from pytest_llmeval.judges._panel import Juror
from pytest_llmeval.judges._run_store import RunStore, WorkingCache
from pytest_llmeval.judges._service import CallLimit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite3"


@pytest.fixture
def judge() -> Scripted:
    return Scripted()


@pytest.fixture
def juror(judge: Scripted, tmp_path: Path) -> Juror:
    return Juror("openai:m", {"temperature": 0}, Judgements(tmp_path / "s.judgements.jsonl"), judge, Price(100, 1000))


@pytest.fixture
def serve(path: Path) -> Iterator[Callable[..., OneJudge]]:
    made: list[WorkingCache] = []

    def make(mode: JudgeMode = "auto", owner: str = "me", run: str = "run", **more: Any) -> OneJudge:
        made.append(WorkingCache(CachePlace(path), run, owner))
        return OneJudge(RunStore(mode, more.pop("limit", CallLimit(4)), made[-1], **more))

    yield make
    for each in made:
        each.close()
