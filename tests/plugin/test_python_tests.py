"""Python tests over a suite: the marker ``llmeval(path)`` with the fixture ``eval_case``, and ``evaluators``."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

SUITE = """\
suite: capitals
evaluators: [{text: {metrics: [exact_match, f1]}}]
thresholds: {f1: 0.5}
gates: [f1 >= 0.6]
cases:
  - {id: paris, input: France, expected: Paris, tags: [smoke]}
  - {id: 東京, input: Japan, expected: Tokyo}
  - {id: "quito[1]", input: Ecuador, expected: Quito}
"""

OVER = """\
import pytest

ANSWERS = {"France": "Paris", "Japan": "Tokyo", "Ecuador": "Lima"}

@pytest.mark.llmeval("capitals.yaml")
def test_capitals(eval_case):
    scores = eval_case.score(ANSWERS[eval_case.input])
    assert scores == {"exact_match": 1.0, "f1": 1.0}
"""


@pytest.fixture
def over(project: "Project") -> "Project":
    """A Python test over a suite that is no item itself, because its name does not match."""
    project.write("capitals.yaml", SUITE)
    project.write("test_over.py", OVER)
    return project


def test_a_test_runs_once_per_case_and_its_results_are_judged_under_its_name(over: "Project", workers: int) -> None:
    ran = over.run("-v", workers=workers)
    assert (ran.code, ran.counts) == (1, {"passed": 3, "failed": 1})
    assert list(ran.suites) == ["capitals[test_over.py::test_capitals]"]
    suite = ran.suites["capitals[test_over.py::test_capitals]"]
    assert suite["path"] == "capitals.yaml"
    assert ran.outcomes("capitals[test_over.py::test_capitals]") == {
        "paris": "passed",
        "東京": "passed",
        "quito[1]": "failed",
    }
    assert suite["metrics"]["f1"]["value"] == pytest.approx(2 / 3)
    assert "f1 0.0000, limit >= 0.5" in ran.section("FAILURES")
    assert "pytest_llmeval" not in ran.section("FAILURES")
    assert ran.verdicts()["capitals.yaml::gate[f1 >= 0.6][test_over.py::test_capitals]"] == "PASSED"


def test_several_tests_and_parameters_over_one_suite_stay_apart(over: "Project") -> None:
    over.write(
        "test_over.py",
        """\
        import pytest

        @pytest.mark.llmeval("capitals.yaml")
        @pytest.mark.parametrize("model", ["claude", "paris"])
        def test_models(model, eval_case):
            eval_case.score(eval_case.expected if model == "claude" else "Tokyo Quito Paris")

        @pytest.mark.llmeval("capitals.yaml")
        class TestClass:
            def test_method(self, eval_case):
                eval_case.score(eval_case.expected)
        """,
    )
    ran = over.run(workers=2)
    shown = {name: (suite["metrics"]["f1"]["value"], *ran.gates(name).values()) for name, suite in ran.suites.items()}
    assert shown == {
        "capitals[test_over.py::TestClass::test_method]": (1.0, "passed"),
        "capitals[test_over.py::test_models][model=claude]": (1.0, "passed"),
        "capitals[test_over.py::test_models][model=paris]": (0.5, "failed"),
    }
    assert all(suite["counts"]["passed"] == 3 for suite in ran.suites.values())


def test_tags_are_marks_that_strict_markers_know(over: "Project") -> None:
    ran = over.run("-m", "smoke", "--strict-markers", "-W", "error")
    assert ran.counts == {"passed": 1, "deselected": 2}


def test_an_assertion_after_scoring_fails_the_case(over: "Project") -> None:
    over.write("test_over.py", OVER.replace("assert scores ==", "assert eval_case.id != 'paris' or scores !="))
    ran = over.run()
    cases = ran.suites["capitals[test_over.py::test_capitals]"]["cases"]
    assert (cases[0]["outcome"], cases[0]["reason"]) == ("failed", "the test failed after scoring")
    assert cases[1]["outcome"] == "passed"


def test_a_test_that_does_not_score_its_case_fails_with_the_line_to_add(over: "Project") -> None:
    over.write("test_over.py", OVER.replace("    scores =", "    if eval_case.id == 'paris': return\n    scores ="))
    ran = over.run()
    assert ran.code == 1
    wanted = "add this line after the application has answered: eval_case.score(prediction)"
    assert f"test_over.py:5  the score of case 'paris' is missing: {wanted}" in ran.text
    assert ran.outcomes("capitals[test_over.py::test_capitals]")["paris"] == "errored"
    assert ran.gates("capitals[test_over.py::test_capitals]") == {"f1 >= 0.6": "failed"}


def test_a_test_that_is_skipped_or_only_set_up_need_not_score(over: "Project") -> None:
    assert over.run("--setup-only").code == 0
    over.write("test_over.py", OVER.replace("    scores =", "    pytest.skip('not today')\n    scores ="))
    ran = over.run()
    assert set(ran.outcomes("capitals[test_over.py::test_capitals]").values()) == {"skipped"}


def test_a_prediction_that_is_no_text_is_scored_as_what_it_is(over: "Project") -> None:
    over.write("test_over.py", OVER.replace("ANSWERS[eval_case.input]", "{1, 2}"))
    ran = over.run("-k", "paris", "--llmeval-predictions=p.jsonl")
    (failure,) = ran.section("FAILURES").split("test_capitals[paris]")[1:]
    assert "text: found a list, expected text; f1 0.0000, limit >= 0.5" in failure
    assert "prediction: [1, 2]" in failure
    assert "pytest_llmeval" not in failure


def test_without_the_flag_the_test_is_skipped_and_the_suite_not_even_read(project: "Project") -> None:
    project.write("test_over.py", OVER)
    ran = project.run("-rs", llmeval=False)
    assert (ran.code, ran.counts) == (0, {"skipped": 1})
    assert "runs with --llmeval, or llmeval = true in the configuration of pytest" in ran.text


def test_a_suite_file_that_is_not_there_is_told_in_one_line(project: "Project") -> None:
    project.write("test_over.py", OVER)
    ran = project.run()
    assert ran.code == 1
    assert ran.counts == {"errors": 1}
    assert "capitals.yaml  cannot be read: No such file or directory" in ran.section("ERRORS")
    assert "pytest_llmeval" not in ran.section("ERRORS")


@pytest.mark.parametrize("llmeval", [True, False])
def test_the_marker_without_the_fixture_is_told_in_one_line(over: "Project", llmeval: bool) -> None:
    over.write("test_over.py", OVER.replace("(eval_case)", "()"))
    ran = over.run(llmeval=llmeval)
    assert ran.code == pytest.ExitCode.INTERRUPTED
    expected = "test_over.py::test_capitals is marked llmeval('capitals.yaml'), so it must take the fixture case"
    assert expected in ran.section("ERRORS")
    assert "pytest_llmeval" not in ran.section("ERRORS")


def test_the_fixture_without_the_marker_is_told_in_one_line(project: "Project") -> None:
    project.write("test_over.py", "def test_over(eval_case): pass\n")
    ran = project.run()
    assert ran.counts == {"errors": 1}
    expected = "test_over.py::test_over: eval_case needs the marker @pytest.mark.llmeval('suite.eval.yaml') on the test"
    assert expected in ran.section("ERRORS")
    assert "pytest_llmeval" not in ran.section("ERRORS")


def test_faulty_cases_of_the_suite_do_not_vanish(over: "Project") -> None:
    over.write("capitals.yaml", SUITE + "  - {id: rome, inptu: Italy}\n")
    ran = over.run(workers=2)
    assert ran.counts == {"errors": 1}  # a test over a suite with faults would call
    assert "capitals.yaml:9:16  cases[3].inptu: unknown key inptu" in ran.section("ERRORS")


def test_a_suite_can_be_run_by_its_items_and_by_tests_at_once(over: "Project") -> None:
    over.write("capitals.eval.yaml", SUITE.replace("cases:", "target: bot:answer\ncases:"))
    over.write("bot.py", "def answer(country): return 'Paris'\n")
    over.write("test_over.py", OVER.replace("capitals.yaml", "capitals.eval.yaml"))
    ran = over.run()
    assert {name: suite["counts"]["passed"] for name, suite in ran.suites.items()} == {
        "capitals": 1,
        "capitals[test_over.py::test_capitals]": 2,
    }


def test_the_fixture_evaluators_knows_those_of_the_suite_with_their_options(over: "Project") -> None:
    over.write(
        "test_over.py",
        """\
        import pytest

        @pytest.mark.llmeval("capitals.yaml")
        def test_own_options(eval_case, evaluators):
            assert evaluators["text"].evaluate("Paris", "Paris").keys() >= {"exact_match", "f1"}
            assert "rouge1" not in evaluators["text"].evaluate("Paris", "Paris")
            eval_case.score(eval_case.expected)

        def test_defaults(evaluators):
            assert {"text", "classification", "semantic"} <= set(evaluators)
            assert evaluators["classification"].evaluate("joy", "joy")["accuracy"] == 1.0
            with pytest.raises(KeyError, match="did you mean text"):
                evaluators["texd"]
        """,
    )
    assert over.run().counts == {"passed": 5}


def test_a_second_score_in_a_test_fails_it_with_words(over: "Project") -> None:
    over.write(
        "test_twice.py",
        """\
import pytest


@pytest.mark.llmeval("capitals.yaml")
def test_twice(case):
    case.score(case.expected)
    case.score("another answer")
""",
    )
    ran = over.run("test_twice.py")
    assert ran.counts.get("failed")
    assert "found a second call of score, expected one in a test" in ran.text
