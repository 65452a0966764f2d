"""Runs that end badly: what finished is kept, what did not is said to be missing, and nothing passes by accident."""

import re
from typing import TYPE_CHECKING

import pytest

from pytest_llmeval.run import ShardFile

if TYPE_CHECKING:
    from conftest import Project

BOT = """\
import os
import pathlib
import signal

import pytest

HERE = pathlib.Path(__file__).parent

def answer(word):
    if word == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "interrupts":
        raise KeyboardInterrupt
    if word == "exits":
        pytest.exit("no more money", returncode=7)
    return word.upper()
"""

GATE = {"f1 >= 0": "not_judged"}


@pytest.fixture
def fragile(project: "Project") -> "Project":
    """A sound suite, and one whose third case is given by each test."""
    project.write("bot.py", BOT)
    project.asking("sound.eval.yaml", "bot:answer", "a", "b", gates=["f1 >= 0"])
    return project


@pytest.mark.parametrize("restarts", [(), ("--max-worker-restart=0",)], ids=["restarted", "not restarted"])
def test_a_case_that_kills_its_worker_is_named_and_no_other_one(fragile: "Project", restarts: tuple[str, ...]) -> None:
    fragile.asking("broken.eval.yaml", "bot:answer", *"abcdef", "dies", gates=["f1 >= 0"])
    ran = fragile.run("broken.eval.yaml", *restarts, workers=2, replacements=2)
    assert ran.code != 0
    outcomes = ran.outcomes("broken")
    assert outcomes["dies"] == "not_run"
    # Whoever looks ahead at it dies, mostly during another case, which runs again; nobody looks ahead at it any more.
    # xdist ends a run early whose workers are not replaced.
    assert ran.text.count("node down") <= 2
    passed = [name for name, outcome in outcomes.items() if outcome == "passed"]
    assert passed if restarts else passed == [*"abcdef"]
    assert set(re.findall(r"FAILED (\S+)", ran.text)) <= {"broken.eval.yaml::dies"}
    cases = {case["id"]: case for case in ran.suites["broken"]["cases"]}
    assert cases["dies"]["reason"] == "a worker crashed"
    assert ran.suites["broken"]["metrics"]["f1"]["missing"] == list(outcomes.values()).count("not_run")
    assert ran.gates("broken") == GATE
    assert "gate PASSED" not in ran.text
    assert "; a worker crashed" in ran.section("llmeval")


def test_what_a_crash_costs_is_counted_once_and_stays_in_the_shard_file(fragile: "Project") -> None:
    fragile.asking("broken.eval.yaml", "bot:answer", *"abcdef", "dies", gates=["f1 >= 0"])
    ran = fragile.run("--llmeval-shard=1/1", "--llmeval-report=p.llmeval", workers=2, replacements=2)
    lost = {f"broken.eval.yaml::{name}" for name, outcome in ran.outcomes("broken").items() if outcome == "not_run"}
    record = ShardFile.read(fragile.path / "p.llmeval", fragile.path).run
    assert lost == {"broken.eval.yaml::dies"}
    assert record.unfinished == lost
    assert record.crashed
    assert not record.failures


def test_a_suite_that_finished_is_judged_although_a_worker_crashed_in_another(fragile: "Project") -> None:
    fragile.asking("broken.eval.yaml", "bot:answer", "dies", gates=["f1 >= 0"])
    ran = fragile.run("--dist=loadfile", "--max-worker-restart=2", workers=2, replacements=2)
    assert ran.code == 1
    assert ran.outcomes("broken") == {"dies": "not_run"}
    assert ran.gates("broken") == GATE
    assert ran.outcomes("sound") == {"a": "passed", "b": "passed"}
    assert ran.gates("sound") == {"f1 >= 0": "passed"}


def test_an_interrupt_leaves_a_report_of_what_finished(fragile: "Project") -> None:
    fragile.asking("broken.eval.yaml", "bot:answer", "a", "interrupts", "b", gates=["f1 >= 0"])
    ran = fragile.run("broken.eval.yaml")
    assert ran.code == pytest.ExitCode.INTERRUPTED
    assert ran.outcomes("broken") == {"a": "passed", "interrupts": "not_run", "b": "not_run"}
    assert ran.gates("broken") == GATE
    assert "1 of 1 gates not evaluated: 1 of 3 cases ran; KeyboardInterrupt" in ran.text


def test_an_exit_asked_for_by_a_target_ends_the_run_with_its_code_and_a_report(fragile: "Project") -> None:
    fragile.asking("broken.eval.yaml", "bot:answer", "a", "exits", "b", gates=["f1 >= 0"])
    ran = fragile.run("broken.eval.yaml")
    assert ran.code == 7
    assert ran.outcomes("broken") == {"a": "passed", "exits": "not_run", "b": "not_run"}
    assert ran.gates("broken") == GATE
    assert ran.suites["broken"]["cases"][2]["reason"] == "no more money"


def test_a_crash_does_not_lose_recorded_answers(fragile: "Project") -> None:
    fragile.asking("broken.eval.yaml", "bot:answer", "a", "interrupts")
    fragile.run("broken.eval.yaml", "--llmeval-predictions=p.jsonl")
    assert '"prediction": "A"' in (fragile.path / "p.jsonl").read_text(encoding="utf-8")
