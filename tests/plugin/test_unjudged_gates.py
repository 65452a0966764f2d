"""Gates that were not evaluated, and cases that did not run, in runs that would exit with 0."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

BOT = """\
import pytest

def answer(word):
    if word == "bye":
        pytest.exit("bye", 0)
    return word.upper()
"""
REQUIRE = "--llmeval-require-gates"


@pytest.fixture
def bot(project: "Project") -> "Project":
    """A project whose target ends the run, with exit code 0, when it is asked for ``bye``."""
    project.write("bot.py", BOT)
    return project


@pytest.mark.parametrize("gates", [["f1 >= 0"], []], ids=["gates", "no gates"])
def test_a_run_that_a_target_ends_does_not_exit_with_0(bot: "Project", gates: list[str]) -> None:
    bot.asking("s.eval.yaml", "bot:answer", "a", "bye", "b", gates=gates)
    ran = bot.run()
    assert ran.code == 1
    assert "exit code 1: 2 selected tests of eval suites did not run: bye" in ran.text
    assert ran.outcomes("s") == {"a": "passed", "bye": "not_run", "b": "not_run"}


def test_a_suite_whose_turn_never_came_is_missed(bot: "Project") -> None:
    bot.suite("s.eval.yaml", [{"id": "a", "expected": "A", "prediction": "A"}], gates=["f1 >= 0"])
    bot.write("test_a.py", "import pytest\ndef test_a(): pytest.exit('bye', 0)\n")
    ran = bot.run("test_a.py", "s.eval.yaml")
    assert ran.code == 1
    assert ran.gates("s") == {"f1 >= 0": "not_judged"}


def test_a_python_test_over_a_suite_is_missed_as_a_suite_is(bot: "Project") -> None:
    bot.suite("s.eval.yaml", [{"id": "a", "expected": "A"}, {"id": "b", "expected": "B"}], gates=["f1 >= 0"])
    bot.write(
        "test_app.py",
        """\
        import pytest

        @pytest.mark.llmeval("s.eval.yaml")
        def test_app(eval_case):
            if eval_case.id == "b":
                pytest.exit("bye", 0)
            eval_case.score("A")
        """,
    )
    ran = bot.run("test_app.py")
    assert ran.code == 1
    assert "1 selected test of eval suites did not run: bye" in ran.text


def test_failures_before_an_exit_that_asks_for_0_count(bot: "Project") -> None:
    case = {"id": "a", "expected": "A", "prediction": "B"}
    bot.suite("s.eval.yaml", [case], gates=["f1 >= 1"], thresholds={"f1": 1})
    bot.write("test_z.py", "import pytest\ndef test_z(): pytest.exit('bye', 0)\n")
    ran = bot.run()
    assert ran.code == 1
    assert "exit code 1: 1 case failed before the run ended early" in ran.text
    assert "exit code 1: 1 verdict on gates and snapshots failed in a run that ended early" in ran.text


def test_a_run_that_ends_while_collecting_does_not_exit_with_0(bot: "Project") -> None:
    bot.asking("s.eval.yaml", "bot:answer", "a", gates=["f1 >= 0"])
    bot.write("conftest.py", "import pytest\ndef pytest_collection_modifyitems(): pytest.exit('bye', 0)\n")
    ran = bot.run()
    assert ran.code == 1
    assert "exit code 1: the run ended while tests were collected: bye" in ran.text
    assert ran.report == {}


def test_tests_that_another_plugin_swallows_are_missed(bot: "Project", workers: int) -> None:
    bot.asking("s.eval.yaml", "bot:answer", "a", "b", gates=["f1 >= 0"])
    hook = "def pytest_runtest_protocol(item): return True if item.name == 'b' else None\n"
    bot.write("conftest.py", hook)
    ran = bot.run(workers=workers)
    assert ran.code != 0
    if not workers:  # xdist itself goes on waiting for a test that sends no report
        assert "exit code 1: 1 selected test of eval suites did not run: they sent no report" in ran.text


def test_an_early_end_after_all_selected_cases_passed_keeps_its_code(bot: "Project") -> None:
    bot.asking("s.eval.yaml", "bot:answer", "a", "b", gates=["f1 >= 0"])
    bot.write("test_z.py", "import pytest\ndef test_z(): pytest.exit('enough', 0)\n")
    ran = bot.run("s.eval.yaml::a", "test_z.py")
    assert ran.code == 0
    assert bot.run("s.eval.yaml::a", "test_z.py", REQUIRE).code == 1


@pytest.mark.parametrize("selection", [("-k", "east"), ("s.eval.yaml::east",), ("-m", "far")])
def test_gates_that_a_selection_leaves_out_can_be_required(bot: "Project", selection: tuple[str, ...]) -> None:
    cases = [{"id": "east", "prediction": "x", "tags": ["far"]}, {"id": "west", "prediction": "x"}]
    bot.suite("s.eval.yaml", cases, gates=[{"metric": "pass_rate", "min": 0}])
    assert bot.run(*selection).code == 0
    ran = bot.run(*selection, REQUIRE)
    assert ran.code == 1
    assert f"exit code 1: {REQUIRE}: s.eval.yaml: pass_rate >= 0 (not evaluated: 1 of 2 cases ran)" in ran.text


def test_required_gates_of_a_suite_that_is_deselected_as_a_whole_are_missed(bot: "Project") -> None:
    for name in ("one", "two"):
        bot.asking(f"{name}.eval.yaml", "bot:answer", name, gates=["f1 >= 0"])
    ran = bot.run("-k", "one", REQUIRE, workers=2)
    assert ran.code == 1
    assert f"{REQUIRE}: two.eval.yaml: f1 >= 0 (not evaluated: 0 of 1 cases ran)" in ran.text
    assert bot.run("one.eval.yaml", REQUIRE, workers=2).code == 0


def test_required_gates_of_a_deselected_variant_are_missed(bot: "Project") -> None:
    bot.suite("s.eval.yaml", [{"id": "a", "input": "a", "expected": "A"}], gates=["f1 >= 0"])
    bot.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture(params=["big", "small"])
        def llmeval_target():
            return str.upper
        """,
    )
    assert bot.run(REQUIRE).code == 0
    ran = bot.run("-k", "big", REQUIRE)
    assert ran.code == 1
    assert ran.gates("s[small]") == {"f1 >= 0": "not_judged"}


def test_gates_without_judges_can_be_required(project: "Project") -> None:
    case = {"id": "a", "input": "q", "expected": "A", "prediction": "A", "labels": {"question_type": "temporal"}}
    project.suite("s.eval.yaml", [case], evaluators=["judge"], judge="openai:m", gates=["judge_score >= 0"])
    ran = project.run("--llmeval-judge=off", REQUIRE)
    assert ran.code == 1
    assert "judge_score >= 0 (not evaluated: judges are off)" in ran.text


@pytest.mark.parametrize("workers", [0, 2])
def test_a_case_without_any_score_is_not_scored_and_no_pass(project: "Project", workers: int) -> None:
    case = {"input": "q", "expected": "A", "prediction": "A", "labels": {"question_type": "temporal"}}
    project.suite("s.eval.yaml", [{**case, "id": "a"}, {**case, "id": "b"}], evaluators=["judge"], judge="openai:m")
    project.suite("t.eval.yaml", [{**case, "id": "a"}], evaluators=["judge", "text"], judge="openai:m")
    ran = project.run("--llmeval-judge=off", workers=workers)
    assert ran.outcomes("s") == {"a": "not_scored", "b": "not_scored"}
    assert ran.outcomes("t") == {"a": "passed"}
    assert "s: 2 cases not scored: judges are off (--llmeval-judge=off)" in ran.text
    assert ", 2 not scored" in ran.text.splitlines()[-1]
    assert "pass_rate" not in ran.suites["s"]  # for which a case must have a score


def test_where_gates_are_required_there_must_be_one(bot: "Project") -> None:
    bot.asking("s.eval.yaml", "bot:answer", "a")
    ran = bot.run(REQUIRE)
    assert ran.code == 1
    assert f"{REQUIRE}: no gate was judged: no suite has gates or a snapshot" in ran.text


def test_gates_are_not_all_there_is_to_require_where_a_suite_has_a_snapshot(project: "Project") -> None:
    project.suite("a.eval.yaml", [{"id": "near", "expected": "A", "prediction": "A"}], gates=["f1 >= 0"])
    for prediction, options in (("B", ("--snapshot-update",)), ("C", ("-k", "near", REQUIRE))):
        cases = [{"id": "far", "expected": "B", "prediction": prediction}]
        project.suite("b.eval.yaml", cases, snapshot=True)
        ran = project.run(*options)
    assert ran.code == 1
    assert f"{REQUIRE}: b.eval.yaml: snapshot not evaluated: 0 of 1 cases ran" in ran.text
