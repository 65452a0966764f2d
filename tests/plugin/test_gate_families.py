"""Gates of all suites of a run as one family: many equally good suites are no redder than one of them."""

import json
import os
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from running import run_python

if TYPE_CHECKING:
    from conftest import Project

MANY, CASES = range(20, 45), 60
WITHOUT = ("rerunfailures",)
HINT = (
    "gates in {0} files are {0} families, judged apart: up to {1}% of equally good runs fail. llmeval_family = project "
    "makes them one family; = suite keeps them, without this line"
)
ALL = "25 gates in 25 files are one family (llmeval_family = project)"


def write_suites(
    project: "Project", seed: int, files: Sequence[int] = MANY, broken: Sequence[int] = (), **top: Any
) -> None:
    """Write suites whose answers are right with the same chances in each run; those of `broken` lose most."""
    for number in files:
        rng = random.Random(seed * 1000 + number)
        chances = [0.3 + 0.6 * random.Random(1000 * number + each).random() for each in range(CASES)]
        right = [rng.random() < chance * (0.1 if number in broken else 1) for chance in chances]
        cases = [
            {"id": f"c{each}", "expected": "yes", "prediction": "yes" if is_right else "no"}
            for each, is_right in enumerate(right)
        ]
        settings = {
            "evaluators": [{"text": {"metrics": ["exact_match"]}}],
            "gates": [{"metric": "exact_match", "max_drop": 0}],
            "snapshot": {"tolerance": 1},
            "mode": "bulk",
        }
        project.suite(f"s{number:02}.eval.yaml", cases, **settings | top)


def failed(ran: Any) -> list[str]:
    return [name for name, suite in sorted(ran.suites.items()) if "failed" in {g["outcome"] for g in suite["gates"]}]


def reason(ran: Any, suite: str) -> str:
    return str(ran.suites[suite]["gates"][0]["reason"])


def gates(ran: Any) -> dict[str, Any]:
    return {name: suite["gates"] for name, suite in ran.suites.items()}


def adjusted(ran: Any, suite: str) -> float:
    text = re.search(r", p (?:below )?([\d.]+)", reason(ran, suite))
    assert text is not None
    return float(text[1])


@pytest.mark.parametrize(
    ("files", "seed", "red", "percent"),
    [
        pytest.param(range(28, 30), 6, "s28", 5, id="2 files"),
        pytest.param(MANY, 4, "s32", 47, id="25 files", marks=pytest.mark.release),
    ],
)
def test_equally_good_suites_fail_alone_and_not_as_one_family(
    project: "Project", files: Sequence[int], seed: int, red: str, percent: int
) -> None:
    """By arithmetic, 0.47 of such runs are red if each of 25 gates has a level of 0.025 for itself."""
    hint, count = HINT.format(len(files), percent), len(files)
    write_suites(project, seed=0, files=files)
    assert project.run("--snapshot-update", without=WITHOUT).code == 0
    write_suites(project, seed=seed, files=files)
    ran = project.run(without=WITHOUT)
    assert (ran.code, failed(ran)) == (1, [red])
    assert " by Holm" not in reason(ran, red)
    assert (hint in ran.text) is (percent > 20)
    project.ini("llmeval_family = suite")
    ran = project.run(without=WITHOUT)
    assert (ran.code, failed(ran), "llmeval_family" in ran.text) == (1, [red], False)
    project.ini("llmeval_family = project")
    ran = project.run(without=WITHOUT)
    assert (ran.code, failed(ran)) == (0, [])
    assert f"{count} gates in {count} files are one family (llmeval_family = project)" in ran.text
    assert hint not in ran.text
    assert f" by Holm over {count} gates in {count} files; minimum detectable drop" in reason(ran, red)


@pytest.mark.release
def test_shards_carry_the_family_that_they_ran_with(project: "Project") -> None:
    write_suites(project, seed=0)
    assert project.run("--snapshot-update", without=WITHOUT).code == 0
    write_suites(project, seed=4)
    project.ini("llmeval_family = project")
    ran = project.run(without=WITHOUT)
    for number, workers in ((1, 2), (2, 0)):
        to = f"--llmeval-report={number}.llmeval"
        shard = project.run(f"--llmeval-shard={number}/2", to, workers=workers, without=WITHOUT)
        assert (shard.code, failed(shard)) == (0, [])
    project.ini()
    line = ["-m", "pytest_llmeval", "merge", "1.llmeval", "2.llmeval", "--report=m.json"]
    done = run_python(line, os.environ, Path.cwd())
    assert done.code == 0, done.out + done.err
    assert ALL in done.out
    merged = {each["suite"]: each["gates"] for each in json.loads(Path("m.json").read_text())["suites"]}
    assert merged == gates(ran)

    project.ini("llmeval_family = project")
    write_suites(project, seed=1, broken=[30])
    ran = project.run(without=WITHOUT)
    assert (ran.code, failed(ran)) == (1, ["s30"])  # what one of them loses is found


def test_suites_that_did_not_run_make_no_verdict_bolder(project: "Project") -> None:
    project.ini("llmeval_family = project")
    write_suites(project, seed=0, files=range(4))
    assert project.run("--snapshot-update", without=WITHOUT).code == 0
    write_suites(project, seed=4, files=range(4), broken=range(2))
    whole = project.run(without=WITHOUT)
    assert failed(whole) == ["s00", "s01"]
    selected = project.run("-k", "s01", without=WITHOUT)
    assert " by Holm over 4 gates in 4 files, 3 of them not evaluated; " in reason(selected, "s01")
    assert adjusted(selected, "s01") >= adjusted(whole, "s01")
    assert "4 gates in 4 files are one family" in selected.text
    with_workers = project.run("-k", "s01", workers=2, without=WITHOUT)
    assert gates(with_workers) == gates(selected)
    assert "4 gates in 4 files are one family" in with_workers.text
    alone = project.run("s01.eval.yaml", without=WITHOUT)
    assert ("Holm" in reason(alone, "s01"), "one family" in alone.text) == (False, False)

    project.write("test_first.py", "def test_that_fails():\n    assert False\n")
    stopped = project.run("-x", "s00.eval.yaml", "test_first.py", "s01.eval.yaml", without=WITHOUT)
    assert stopped.code == 1
    assert " by Holm over 2 gates in 2 files, 1 of them not evaluated; " in reason(stopped, "s00")
    assert adjusted(stopped, "s00") >= adjusted(whole, "s00") / 2


def test_primary_gates_are_a_family_of_their_own(project: "Project") -> None:
    project.ini("llmeval_family = project")
    primary = {"gates": [{"metric": "exact_match", "max_drop": 0, "primary": True}]}
    for seed, options in ((0, ["--snapshot-update"]), (4, [])):
        write_suites(project, seed, files=range(3))
        write_suites(project, seed, files=[0], **primary)
        ran = project.run(*options, without=WITHOUT)
    assert "Holm" not in reason(ran, "s00")
    assert " by Holm over 2 gates in 2 files" in reason(ran, "s01")


def test_gates_of_a_project_are_judged_when_all_have_run(project: "Project") -> None:
    stop = {"stop": "when_decided", "mode": "items"}
    write_suites(project, seed=0, files=range(2), **stop)
    assert project.run("--snapshot-update", without=WITHOUT).code == 0
    write_suites(project, seed=0, files=range(2), **stop)
    alone = project.run("--llmeval-family=suite", without=WITHOUT)
    together = project.run("--llmeval-family=project", without=WITHOUT)
    note = "s00.eval.yaml: runs to its end: its gates are judged together with those of other suites"
    assert (note in alone.text, note in together.text) == (False, True)
    assert together.code == 0


def test_an_unknown_family_is_refused(project: "Project") -> None:
    project.ini("llmeval_family = repository")
    ran = project.run(without=WITHOUT)
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert "llmeval_family: found 'repository', expected one of suite, project" in ran.text
