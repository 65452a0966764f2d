"""Options of shards, and selections of other plugins."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running import run_python
from scripted_judges import Judged

from pytest_llmeval.run import Shard, ShardFile

if TYPE_CHECKING:
    from conftest import Project, Ran

SPLIT = """\
import pytest

def pytest_addoption(parser):
    parser.addoption("--half", type=int, default=None)

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    half = config.getoption("--half")
    if half is not None:
        config.hook.pytest_deselected(items=items[1 - half :: 2])
        items[:] = items[half::2]
"""

WORDS = ("ant", "bee", "cat", "dog", "eel")


def write_suite(project: "Project", name: str = "s.eval.yaml") -> Path:
    cases = [{"id": word, "expected": word, "prediction": word} for word in WORDS]
    return project.suite(name, cases, gates=["f1 >= 1"])


def merged(project: "Project", *args: str) -> str:
    done = run_python(["-m", "pytest_llmeval", "merge", *args], {**os.environ, "COLUMNS": "100"}, project.path)
    return f"{done.code} {done.out}{done.err}"


@pytest.fixture
def split(project: "Project") -> "Project":
    """A project whose conftest deselects every other test if it is asked to."""
    project.write("conftest.py", SPLIT)
    write_suite(project)
    return project


def halves(project: "Project", workers: int, *args: str) -> list["Ran"]:
    return [project.run(f"--half={half}", *(each.format(half) for each in args), workers=workers) for half in (0, 1)]


def test_a_part_that_nobody_keeps_does_not_pass(split: "Project", workers: int) -> None:
    for ran, left in zip(halves(split, workers), (2, 3), strict=True):
        assert ran.code == 1
        assert f"exit code 1: 1 gate not evaluated: a plugin deselected {left} tests of eval suites" in ran.text
        assert "--llmeval-report=PART.llmeval" in ran.text


def test_parts_that_are_kept_pass_and_leave_required_gates_to_the_merge(split: "Project") -> None:
    for ran in halves(split, 2, "--llmeval-require-gates", "--llmeval-report=parts/{}.llmeval"):
        assert ran.code == 0
        assert "of 5 cases ran; run llmeval merge" in ran.text
    assert merged(split, "parts").startswith("0 ")
    missing = merged(split, "parts/0.llmeval")
    assert missing.startswith("1 ")
    assert "no file has s.eval.yaml::bee, s.eval.yaml::dog: name the files of all parts" in missing


def test_what_options_of_pytest_leave_out_of_all_parts_is_not_missed(split: "Project", workers: int) -> None:
    for ran in halves(split, workers, "-knot cat", "--llmeval-report=parts/{}.llmeval"):
        assert ran.code == 0
    assert merged(split, "parts").startswith("0 ")
    parts = [ShardFile.read(split.path / "parts" / f"{half}.llmeval", split.path).run for half in (0, 1)]
    assert [part.unwanted for part in parts] == [{"s.eval.yaml::cat"}] * 2
    assert all(part.deselected > part.unwanted for part in parts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--llmeval-shard=6/5",), "--llmeval-shard: found 6/5, expected I/N with 1 <= I <= N"),
        (("--llmeval-shard=auto",), "--llmeval-shard: auto: found none of SLURM_ARRAY_TASK_ID"),
        (("--llmeval-shard=1/5", "--snapshot-update"), "found --snapshot-update with --llmeval-shard"),
    ],
)
def test_wrong_shards_are_usage_errors(project: "Project", arguments: tuple[str, ...], message: str) -> None:
    write_suite(project)
    ran = project.run(*arguments, without=("rerunfailures", "xdist", "xdist.looponfail"))
    assert ran.code == 4
    assert message in ran.text


def test_a_shard_without_cases_passes(project: "Project", workers: int) -> None:
    count = 97
    write_suite(project)
    shards = [Shard(index, count) for index in range(1, count + 1)]
    empty = next(each for each in shards if not any(each.has("s.eval.yaml", f"case {word}") for word in WORDS))
    ran = project.run(f"--llmeval-shard={empty}", "--llmeval-report=e.llmeval", workers=workers)
    assert ran.code == 0
    assert "the file of shard" in merged(project, "e.llmeval")
    project.write("s.eval.yaml", "").unlink()
    assert project.run(f"--llmeval-shard={empty}").code == 5


def test_workers_are_told_the_shard_that_the_scheduler_names(
    project: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(project)
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")
    chosen = {word for word in WORDS if Shard(2, 2).has("s.eval.yaml", f"case {word}")}
    ran = project.run("--llmeval-shard=auto/2", workers=2)
    assert {name for name, outcome in ran.outcomes("s").items() if outcome == "passed"} == chosen
    assert ran.code == 0


def test_other_tests_run_once_with_their_file_and_fail_the_merge(project: "Project") -> None:
    write_suite(project)
    for name in "abc":
        project.write(f"test_{name}.py", f"def test_one(): pass\ndef test_two(): assert {name != 'a'}\n")
    parts = [
        project.run("-v", f"--llmeval-shard={index}/2", f"--llmeval-report=parts/{index}.llmeval") for index in (1, 2)
    ]
    assert sorted(ran.code for ran in parts) == [0, 1]
    listed = [[each for each in ran.verdicts() if each.startswith("test_")] for ran in parts]
    assert sorted(listed[0] + listed[1]) == [
        f"test_{name}.py::test_{each}" for name in "abc" for each in ("one", "two")
    ]
    assert all(len(part) % 2 == 0 for part in listed)
    assert "exit code 1: 1 other test failed in the shards" in merged(project, "parts")


def test_a_shard_has_its_part_of_the_budget(judged: Judged) -> None:
    judged.suite("s.eval.yaml", [*WORDS])
    chosen = [word for word in WORDS if Shard(1, 2).has("s.eval.yaml", f"case {word}")]
    assert len(chosen) > 1
    judged.project.run("--llmeval-shard=1/2", "--llmeval-budget=calls=2")
    assert len(judged.asked()) == 1
