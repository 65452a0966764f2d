"""``--llmeval-plan``: what a run would call, without a call."""

import json
import re
from typing import TYPE_CHECKING

import pytest
from scripted_judges import case
from servers import reply

if TYPE_CHECKING:
    from conftest import Project
    from scripted_judges import Judged

OFFLINE = """\
    import socket


    def refuse(*given, **more):
        raise RuntimeError("a plan opened a socket")


    socket.socket.__init__ = socket.socketpair = socket.create_connection = refuse
    """


def planned_calls(text: str) -> int:
    """Return what a plan says of judges."""
    (found,) = re.findall(r"(?m)^judge: (\d+) calls?, ", text)
    return int(found)


def test_a_plan_has_the_very_calls_of_the_run_that_follows(judged: "Judged", workers: int) -> None:
    predictions = "".join(json.dumps({"id": name, "prediction": name}) + "\n" for name in ("a", "b"))
    judged.project.write("frozen.jsonl", predictions)
    modes = [{"judge": {"mode": "default_binary"}}, {"judge": {"mode": "knowledge_update"}, "as": "new"}]
    doubled = case("a") | {"id": "a again"}
    judged.suite("several.eval.yaml", [case("a"), doubled, case("b")], evaluators=modes, repeats=3)
    judged.suite("same.eval.yaml", ["a", "c"])
    judged.suite(
        "systems.eval.yaml",
        [{key: value for key, value in case(name).items() if key != "prediction"} for name in ("a", "b")],
        systems={"one": {"predictions": "frozen.jsonl"}, "two": {"predictions": "frozen.jsonl"}},
    )
    conftest = judged.project.write("conftest.py", OFFLINE)
    plan = judged.project.run("--llmeval-plan", workers=workers)
    assert (plan.code, planned_calls(plan.text), judged.server.calls) == (0, 13, [])
    assert (plan.report["judge"]["calls"], plan.report["judge"]["usd"]["median"]) == (13, None)
    conftest.unlink()
    ran = judged.project.run(workers=workers)
    assert (ran.code, len(judged.server.calls)) == (0, 13)
    again = judged.project.run("--llmeval-plan", workers=workers)
    assert (again.code, planned_calls(again.text)) == (0, 0)


def test_a_plan_runs_neither_target_nor_fixture(project: "Project") -> None:
    project.write("app.py", 'raise RuntimeError("the target was imported")\n')
    project.asking("s.eval.yaml", "app:answer", "a", "b")
    project.asking("command.eval.yaml", {"command": ["./no-such-program"]}, "a")
    project.asking("fixture.eval.yaml", {"concurrency": 2}, "a")
    project.write(
        "conftest.py",
        OFFLINE
        + """

    import pytest


    @pytest.fixture
    def llmeval_target():
        raise RuntimeError("a fixture was set up")
    """,
    )
    project.write("test_it.py", "def test_it(judge):\n    raise RuntimeError\n")
    plan = project.run("--llmeval-plan")
    assert plan.code == 0
    assert re.search(r"(?m)^target: 4 calls, 0 stored; tokens unknown; cost unknown$", plan.text)
    assert "1 Python test not planned" in plan.text
    assert not plan.text.count("RuntimeError")


def test_a_plan_beyond_the_budget_fails_and_says_by_how_much(judged: "Judged") -> None:
    judged.server.script(reply("yes", tokens=(250, 50)))
    judged.suite("s.eval.yaml", ["a", "b", "c"], judge=judged.judge(price={"input": 100.0, "output": 1000.0}))
    first = judged.project.run("s.eval.yaml::a")
    assert (first.code, len(judged.server.calls)) == (0, 1)
    enough = judged.project.run("--llmeval-plan", "--llmeval-budget=calls=2,tokens=600,usd=0.15")
    assert (enough.code, planned_calls(enough.text)) == (0, 2)
    scarce = judged.project.run("--llmeval-plan", "--llmeval-budget=calls=2,tokens=599,usd=0.14")
    assert scarce.code == pytest.ExitCode.TESTS_FAILED
    assert "budget: 2 planned, 2 calls allowed" in scarce.text
    assert "budget: exceeded: 600 planned, 599 tokens allowed" in scarce.text
    assert "budget: exceeded: 0.1500 planned, 0.1400 USD allowed" in scarce.text
    assert len(judged.server.calls) == 1


def test_a_plan_leaves_out_what_is_not_selected_and_names_faulty_files(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", ["a", case("b", tags=["slow"]), "c"])
    assert planned_calls(judged.project.run("--llmeval-plan", "-m", "not slow").text) == 2
    shards = [judged.project.run("--llmeval-plan", f"--llmeval-shard={shard}/2") for shard in (1, 2)]
    assert sum(planned_calls(shard.text) for shard in shards) == 3
    judged.project.write("broken.eval.yaml", "evaluators: [no_such]\ncases: [{prediction: a}]\n")
    plan = judged.project.run("--llmeval-plan")
    assert (plan.code, planned_calls(plan.text)) == (1, 3)
    assert "1 file not planned or only in part, because of faults" in plan.text


@pytest.mark.parametrize("options", ["--snapshot-update", "--llmeval-report=plan.html"])
def test_a_plan_refuses_options_that_only_a_run_can_serve(judged: "Judged", options: str) -> None:
    judged.suite("s.eval.yaml", ["a"])
    refused = judged.project.run("--llmeval-plan", options)
    assert refused.code == pytest.ExitCode.USAGE_ERROR
    assert options.partition("=")[0] in refused.text
