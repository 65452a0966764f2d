"""Runs with --llmeval-mutate: the answers of targets are changed at the end, the same with workers and shards."""

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from running import run_python

from pytest_llmeval.reports import RunReport
from pytest_llmeval.reports._markdown import to_markdown

if TYPE_CHECKING:
    from conftest import Project

BOT = """\
FACTS = {
    "refund": "Refunds take 30 days.",
    "hours": "We open at 9 in May.",
    "owner": "The shop belongs to Anna Meyer.",
    "fee": "There is no fee.",
}

def answer(word):
    return FACTS[word]
"""

CONFTEST = """\
from pytest_llmeval import Mutator

def backwards(case, neighbours):
    return case.prediction[::-1]

def pytest_llmeval_register(registry):
    registry.register_mutator(Mutator("backwards", "nobody reads backwards", backwards, advice="`contains`"))
"""


@pytest.fixture
def shop(project: "Project") -> "Project":
    facts: dict[str, Any] = {}
    exec(BOT, facts)
    project.write("bot.py", BOT)
    project.write("conftest.py", CONFTEST)
    cases = [{"id": name, "input": name, "expected": said} for name, said in facts["FACTS"].items()]
    project.suite("shop.eval.json", cases, suite="shop", target="bot:answer", gates=["exact_match >= 0.75", "f1 >= 0"])
    return project


@pytest.mark.parametrize("workers", [0, 2])
def test_the_answers_of_a_run_are_changed(shop: "Project", workers: int) -> None:
    ran = shop.run("--llmeval-mutate", workers=workers)
    assert ran.code == 0, ran.text
    (found,) = ran.report["mutation"]
    assert (found["suite"], found["path"], found["answers"], found["rate"]) == ("shop", "shop.eval.json", 4, 0.0)
    kinds = {each["name"]: each for each in found["kinds"]}
    assert (kinds["backwards"]["mutants"], kinds["backwards"]["survived"]) == (4, 0)
    assert kinds["date"]["mutants"] == 1
    gates = {each["gate"]: each for each in found["gates"]}
    assert gates["exact_match >= 0.75"]["share"] == 0.5
    assert gates["f1 >= 0"]["never"] is True
    assert "gate f1 >= 0: passes even if all answers are broken: raise it, or judge another metric" in ran.text
    assert found["findings"] == [
        "gate f1 >= 0: passes even if all answers are broken: raise it, or judge another metric"
    ]
    other = shop.run("--llmeval-mutate", "--llmeval-mutate-seed=7", workers=2 - workers).report["mutation"][0]
    assert (other["seed"], other["mutants"]) == (7, found["mutants"])
    assert shop.run("--llmeval-mutate", workers=2 - workers).report["mutation"] == ran.report["mutation"]


def test_shards_are_mutated_together(shop: "Project") -> None:
    whole = shop.run("--llmeval-mutate").report["mutation"]
    for number in (1, 2):
        part = shop.run("--llmeval-mutate", f"--llmeval-shard={number}/2", f"--llmeval-report=part{number}.llmeval")
        assert "no mutants were made: 'llmeval merge --mutate' makes those of all shards" in part.text
        assert "mutation" not in part.report
    command = ["-m", "pytest_llmeval", "merge", "part1.llmeval", "part2.llmeval", "--mutate", "--report=all.json"]
    merged = run_python(command, os.environ, shop.path)
    assert merged.code == 0, merged.err
    assert json.loads((shop.path / "all.json").read_text(encoding="utf-8"))["mutation"] == whole


def test_verdicts_and_files_of_a_run_stay_as_they_are(shop: "Project") -> None:
    def written() -> set[str]:
        made = {path.relative_to(shop.path).as_posix() for path in shop.path.rglob("*") if path.is_file()}
        return {each for each in made if "__pycache__" not in each and ".pytest_cache" not in each}

    plain = shop.run()
    before = written()
    mutated = shop.run("--llmeval-mutate")
    assert written() == before
    assert "mutation" not in plain.report
    for ran in (plain, mutated):
        for each in ran.report["suites"][0]["cases"]:
            del each["duration_s"]
        del ran.report["suites"][0]["usage"]
    assert mutated.report["suites"] == plain.report["suites"]


def test_a_report_with_mutants_is_read_as_it_was_written(shop: "Project") -> None:
    ran = shop.run("--llmeval-mutate")
    read = RunReport.read(shop.path / "report.json")
    from pytest_llmeval.reports import published

    assert published(read)["mutation"] == ran.report["mutation"]
    assert "Mutants of shop" in to_markdown(read)


def test_a_mutator_that_fails_costs_no_other(shop: "Project") -> None:
    shop.write("conftest.py", CONFTEST.replace("case.prediction[::-1]", "case.nothing"))
    ran = shop.run("--llmeval-mutate")
    assert ran.code == 0
    (suite,) = ran.report["mutation"]
    (fault,) = [each for each in suite["left_out"] if "mutator" in each]
    assert fault.startswith("mutator 'backwards' failed on 4 of 4 answers: case 'refund': AttributeError")
    assert suite["mutants"]


def test_answers_with_secrets_are_left_out(shop: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "Refunds take 30")
    ran = shop.run("--llmeval-mutate")
    assert ran.report["mutation"][0]["answers"] == 3
    assert "1 of 4 cases without a recorded answer" in ran.report["mutation"][0]["left_out"]
