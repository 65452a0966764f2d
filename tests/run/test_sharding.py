"""Which shard has which case."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Case
from pytest_llmeval.judges import Budget
from pytest_llmeval.run import Shard
from pytest_llmeval.run._shards import groups_of
from pytest_llmeval.suites import LoadedSuite
from pytest_llmeval.suites._systems import System
from pytest_llmeval.targets import TargetSpec
from pytest_llmeval.targets._spec import HttpSpec

SLURM = {"SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_COUNT": "5"}


def suite(cases: Sequence[Case], **more: Any) -> LoadedSuite:
    return LoadedSuite("s", Path("s.eval.yaml"), evaluators={}, cases=tuple(cases), **more)


def batched(size: int) -> TargetSpec:
    return TargetSpec(http=HttpSpec(url="http://localhost", request={}, response="answer", batch=size))


def cases(count: int, talks: int = 0) -> list[Case]:
    return [Case(f"c{n}", n, labels={"talk": f"t{n % talks}"} if talks else {}) for n in range(count)]


def together(groups: dict[str, str]) -> list[list[str]]:
    return [[name for name in groups if groups[name] == group] for group in dict.fromkeys(groups.values())]


@pytest.mark.parametrize(
    ("text", "environment", "shard"),
    [
        ("2/5", {}, Shard(2, 5)),
        ("1/1", {}, Shard(1, 1)),
        ("2/5", {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "9"}, Shard(2, 5)),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "0"}, Shard(1, 5)),
        ("auto/5", {**SLURM, "SLURM_ARRAY_TASK_ID": "8"}, Shard(5, 5)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_COUNT": "3"}, Shard(3, 3)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "5"}, Shard(2, 5)),
        ("auto", {"CI_NODE_INDEX": "4", "CI_NODE_TOTAL": "4"}, Shard(4, 4)),
        ("auto/3", {"JOB_COMPLETION_INDEX": "2"}, Shard(3, 3)),
    ],
)
def test_a_shard_is_given_or_read_from_the_scheduler(text: str, environment: dict[str, str], shard: Shard) -> None:
    assert Shard.read(text, environment) == shard


@pytest.mark.parametrize(
    ("text", "environment", "found"),
    [
        ("0/5", {}, "found 0/5, expected I/N"),
        ("6/5", {}, "found 6/5, expected I/N"),
        ("2", {}, "found '2', expected I/N"),
        ("-1/5", {}, "found '-1/5', expected I/N"),
        ("1/0", {}, "found 1/0, expected I/N"),
        ("٢/5", {}, "found '٢/5', expected I/N"),
        ("", {}, "found '', expected I/N"),
        ("auto", {}, "found none of SLURM_ARRAY_TASK_ID, CI_NODE_INDEX, JOB_COMPLETION_INDEX"),
        ("auto", {"JOB_COMPLETION_INDEX": "0"}, "without the number of shards, expected auto/N"),
        ("auto/2", {"JOB_COMPLETION_INDEX": "2"}, "shard 3 of 2 by JOB_COMPLETION_INDEX=2"),
        ("auto", {"CI_NODE_INDEX": "0", "CI_NODE_TOTAL": "4"}, "shard 0 of 4 by CI_NODE_INDEX=0"),
        ("auto/5", {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "4"}, "found 4 shards in the environment, expected 5"),
        ("auto", {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "x"}, "found CI_NODE_TOTAL='x', expected a whole number"),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "3"}, "expected an array in even steps"),
        ("auto", {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "5"}, "shard 0 of 5 by SLURM_ARRAY_TASK_ID=0"),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "20"}, "shard 11 of 5"),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "2", "CI_NODE_INDEX": "1"}, "SLURM_ARRAY_TASK_ID and CI_NODE_INDEX"),
    ],
)
def test_what_is_no_shard_is_refused(text: str, environment: dict[str, str], found: str) -> None:
    with pytest.raises(ValueError, match=r"found|auto") as caught:
        Shard.read(text, environment)
    assert found in str(caught.value)


@given(st.text(), st.text(), st.integers(1, 40))
def test_every_group_is_in_one_shard(file: str, name: str, count: int) -> None:
    assert sum(Shard(index, count).has(file, name) for index in range(1, count + 1)) == 1


def test_many_cases_are_spread_evenly() -> None:
    found = [sum(Shard(index, 5).has("s", f"case {n}") for n in range(5000)) for index in range(1, 6)]
    assert min(found) > 900


@pytest.mark.parametrize("more", [{}, {"cluster_by": "talk"}, {"target": batched(3)}])
@pytest.mark.parametrize("count", [1, 5, 9])
def test_a_case_that_is_added_moves_no_other(more: dict[str, Any], count: int) -> None:
    before, after = (groups_of(suite(cases(number, talks=4), **more)) for number in (count, count + 1))
    assert {name: after[name] for name in before} == before


def test_clusters_stay_together() -> None:
    groups = groups_of(suite([*cases(4, talks=2), Case("alone")], cluster_by="talk"))
    assert together(dict(groups)) == [["c0", "c2"], ["c1", "c3"], ["alone"]]


def test_a_cluster_that_is_named_like_a_case_is_another_group() -> None:
    groups = groups_of(suite([Case("t0"), Case("a", labels={"talk": "t0"})], cluster_by="talk"))
    assert len(set(groups.values())) == 2


def test_batches_stay_together_without_cases_that_nobody_asks() -> None:
    known = Case("known", prediction="x")
    groups = groups_of(suite([known, *cases(5)], target=batched(2)))
    assert together(dict(groups)) == [["known"], ["c0", "c1"], ["c2", "c3"], ["c4"]]


def test_batches_and_clusters_that_overlap_are_one_group() -> None:
    groups = groups_of(suite(cases(6, talks=3), cluster_by="talk", target=batched(2)))
    assert together(dict(groups)) == [["c0", "c1", "c2", "c3", "c4", "c5"]]


def test_the_batches_of_all_systems_of_a_suite_count() -> None:
    whole = tuple(cases(4))
    systems = {"two": System(whole, batched(2)), "from the second on": System(whole[1:], batched(2))}
    groups = groups_of(suite(whole, systems=systems))
    assert together(dict(groups)) == [["c0", "c1", "c2", "c3"]]
    assert groups_of(suite(whole, systems=systems).for_variant("two")) == groups


@given(st.integers(0, 10_000), st.integers(1, 30))
def test_the_budgets_of_shards_add_up(amount: int, count: int) -> None:
    parts = [Budget(calls=amount, usd=3.0).part(index, count) for index in range(1, count + 1)]
    assert sum(part.calls or 0 for part in parts) == amount
    assert sum(part.usd or 0 for part in parts) == pytest.approx(3.0)
    assert {part.tokens for part in parts} == {None}
