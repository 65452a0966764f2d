"""Streams on a Dask cluster of two processes, one of which is killed."""

import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from running import local_cluster

from pytest_llmeval import Case, get_evaluator, score, score_stream

if TYPE_CHECKING:
    from distributed import Client

F1 = get_evaluator("text", metrics=["f1"])


@pytest.fixture
def client() -> "Iterator[Client]":
    from distributed import Client

    with local_cluster(2) as cluster, Client(cluster) as client:
        yield client


def cases() -> list[Case]:
    answers = ("the red fox", "a fox", "a hen")
    return [Case(str(n), None, "the fox", answers[n % 3], {"kind": "xy"[n % 2]}) for n in range(3_000)]


@pytest.mark.release
def test_a_killed_worker_loses_no_case_and_counts_none_twice(client: "Client") -> None:
    before = client.run(os.getpid)

    def stream() -> Iterator[Case]:
        for number, each in enumerate(cases()):
            if number == 1_000:
                os.kill(next(iter(before.values())), signal.SIGKILL)
            yield each

    found = score_stream(F1, stream(), executor=client.get_executor(), group_by=["kind"], block=100)
    expected = score(F1, cases(), ["kind"], partial=True).result()
    assert found == expected
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != set(before.values())
