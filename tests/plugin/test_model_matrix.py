"""The fixture ``llmeval_target``: what a conftest returns from it is asked, and parameters make a model matrix."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Project

MATRIX = """\
import pytest

ANSWERS = {"gpt": str.upper, "echo": str}

@pytest.fixture(params=["gpt", "echo"], scope="session")
def llmeval_target(request):
    return ANSWERS[request.param]
"""


def test_what_a_conftest_returns_answers_the_cases(project: "Project") -> None:
    project.asking("s.eval.yaml", "no_such_module:answer", "a", "b", gates=["exact_match >= 1"])
    project.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture(scope="session")
        def llmeval_target():
            return str.upper
        """,
    )
    ran = project.run()
    assert (ran.code, ran.counts) == (0, {"passed": 3})


def test_a_conftest_can_use_other_fixtures_and_async_functions(project: "Project") -> None:
    project.asking("s.eval.yaml", "no_such_module:answer", "a")
    project.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture
        def llmeval_target(tmp_path, eval_case):
            async def answer(word):
                return {"a": "A"}[eval_case.input] if tmp_path.is_dir() else None
            return answer
        """,
    )
    assert project.run().counts == {"passed": 1}


def test_every_variant_has_its_own_items_metrics_and_gates(project: "Project") -> None:
    project.suite(
        "capitals.eval.yaml",
        [{"id": "東京", "input": "a", "expected": "A"}, {"id": "quito[1]", "input": "b", "expected": "B"}],
        gates=["mean(exact_match) >= 0.5"],
        thresholds={"exact_match": 1},
    )
    project.write("conftest.py", MATRIX.replace('"echo": str', '"echo": lambda word: "-"'))
    ran = project.run("-v", workers=2)
    assert ran.code == 1
    assert ran.verdicts() == {
        "capitals.eval.yaml::東京[gpt]": "PASSED",
        "capitals.eval.yaml::東京[echo]": "FAILED",
        "capitals.eval.yaml::quito[1][gpt]": "PASSED",
        "capitals.eval.yaml::quito[1][echo]": "FAILED",
        "capitals.eval.yaml::gate[mean(exact_match) >= 0.5][gpt]": "PASSED",
        "capitals.eval.yaml::gate[mean(exact_match) >= 0.5][echo]": "FAILED",
    }
    assert list(ran.suites) == ["capitals[echo]", "capitals[gpt]"]


def test_a_variant_that_is_selected_whole_is_judged(project: "Project") -> None:
    project.asking("s.eval.yaml", "unused:unused", "a", "b", gates=["exact_match >= 1"])
    project.write("conftest.py", MATRIX)
    ran = project.run("-k", "gpt")
    assert list(ran.suites) == ["s[gpt]"]
    assert ran.gates("s[gpt]") == {"exact_match >= 1": "passed"}


def test_last_failed_finds_the_failed_variant_of_a_case(project: "Project") -> None:
    cases = [{"id": "quito[1]", "input": "one two", "expected": "ONE TWO THREE"}]
    project.suite("s.eval.yaml", cases, thresholds={"f1": 0.5})
    project.write("conftest.py", MATRIX.replace('"echo": str', '"echo": lambda word: "-"'))
    assert project.run().counts == {"passed": 1, "failed": 1}
    again = project.run("--lf")
    assert list(again.suites) == ["s[echo]"]


def test_a_target_fixture_that_raises_makes_its_cases_errored(project: "Project") -> None:
    project.asking("s.eval.yaml", "unused:unused", "a", "b", gates=["f1 >= 0"])
    project.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture(scope="session")
        def llmeval_target():
            raise RuntimeError("no key")
        """,
    )
    ran = project.run()
    assert ran.counts == {"errors": 2, "failed": 1}
    assert {case["reason"] for case in ran.suites["s"]["cases"]} == {"RuntimeError: no key"}
    assert ran.gates("s") == {"f1 >= 0": "failed"}
