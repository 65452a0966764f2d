"""``mode: bulk``: one item for a whole suite, and the same numbers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import Project

CASES: list[dict[str, Any]] = [
    {"id": "paris", "input": "Paris", "expected": "Paris", "labels": {"kind": "x"}},
    {"id": "東京", "input": "Tokyo", "expected": "Kyoto", "labels": {"kind": "y"}},
    {"id": "quito[1]", "input": "raise", "expected": "Quito"},
    {"id": "lima", "input": "skip", "expected": "Lima"},
    {"id": "cusco", "input": "raise", "expected": "Cusco", "tags": ["skip"]},
    {"id": "known", "input": "raise", "expected": "x", "tags": ["xfail"]},
    {"id": "given", "expected": "a b", "prediction": "a c"},
]
TOP: dict[str, Any] = {
    "target": "bot:answer",
    "group_by": ["kind"],
    "thresholds": {"f1": 0.6},
    "gates": ["f1 >= 0.4", {"metric": "f1", "min": 0.3, "max_errors": 1}, "pass_rate >= 0.25"],
}

BOT = """\
import pytest

def answer(word):
    if word == "raise":
        raise ValueError("cannot answer")
    if word == "skip":
        pytest.skip("no key")
    return word
"""


def _essence(suite: dict[str, Any]) -> dict[str, Any]:
    cases = [{**case, "duration_s": 0, "line": 0} for case in suite["cases"]]
    return {key: suite[key] for key in ("counts", "metrics", "groups", "gates")} | {"cases": cases}


def test_bulk_and_items_give_the_same_report(project: "Project", workers: int) -> None:
    project.write("bot.py", BOT)
    project.suite("items.eval.yaml", CASES, **TOP)
    project.suite("bulk.eval.yaml", CASES, **TOP, mode="bulk")
    ran = project.run(workers=workers)
    assert _essence(ran.suites["bulk"]) == _essence(ran.suites["items"])
    assert ran.outcomes("bulk") == {
        "paris": "passed",
        "東京": "failed",
        "quito[1]": "errored",
        "lima": "skipped",
        "cusco": "skipped",
        "known": "xfailed",
        "given": "failed",
    }


def test_bulk_is_one_item_that_lists_its_failing_cases(project: "Project") -> None:
    project.write("bot.py", BOT)
    project.suite("bulk.eval.yaml", CASES, **{**TOP, "gates": []}, mode="bulk")
    ran = project.run("-v")
    assert ran.counts == {"failed": 1}
    assert ran.verdicts() == {"bulk.eval.yaml::bulk": "FAILED"}
    text = ran.section("FAILURES")
    assert "3 of 7 cases failed" in text
    assert "東京: f1 0.0000, limit >= 0.6" in text
    assert "quito[1]: ValueError: cannot answer" in text
    assert "no key" not in text
    assert "pytest_llmeval" not in text


def test_a_long_list_of_failing_cases_is_cut_and_says_so(project: "Project") -> None:
    cases = [{"id": f"{number}", "expected": "x", "prediction": "y"} for number in range(30)]
    project.suite("bulk.eval.yaml", cases, thresholds={"f1": 1}, mode="bulk")
    text = project.run().section("FAILURES")
    assert "19: f1 0.0000, limit >= 1" in text
    assert "\n20: " not in text
    assert "... and 10 more, all of them in the reports" in text


def test_bulk_with_a_model_matrix_has_one_item_per_variant(project: "Project") -> None:
    cases = [{"id": name, "input": name, "expected": name.upper()} for name in "abc"]
    project.suite("bulk.eval.yaml", cases, mode="bulk", gates=["exact_match >= 1"])
    project.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture(params=["gpt", "mute"])
        def llmeval_target(request):
            return {"gpt": str.upper, "mute": lambda word: "-"}[request.param]
        """,
    )
    ran = project.run("-v")
    assert ran.verdicts() == {
        "bulk.eval.yaml::bulk[gpt]": "PASSED",
        "bulk.eval.yaml::bulk[mute]": "PASSED",
        "bulk.eval.yaml::gate[exact_match >= 1][gpt]": "PASSED",
        "bulk.eval.yaml::gate[exact_match >= 1][mute]": "FAILED",
    }
    assert len(ran.suites["bulk[mute]"]["cases"]) == 3


def test_a_fixture_that_fails_makes_all_cases_errored(project: "Project") -> None:
    project.suite("bulk.eval.yaml", CASES[-1:], mode="bulk", gates=["f1 >= 0"])
    project.write("conftest.py", "import pytest\n@pytest.fixture(autouse=True)\ndef database(): 1 / 0\n")
    ran = project.run()
    assert ran.counts == {"errors": 1, "failed": 1}
    assert ran.outcomes("bulk") == {"given": "errored"}
    assert ran.gates("bulk") == {"f1 >= 0": "failed"}


def test_eval_case_has_no_single_case_to_give_in_bulk(project: "Project") -> None:
    project.suite("bulk.eval.yaml", CASES[-1:], mode="bulk")
    project.write("conftest.py", "import pytest\n@pytest.fixture(autouse=True)\ndef look(eval_case): pass\n")
    ran = project.run()
    assert "bulk.eval.yaml::bulk: eval_case is one case, but mode: bulk runs all of them in one item" in ran.text
    assert "pytest_llmeval" not in ran.section("ERRORS")


def test_exiting_from_a_target_ends_the_run_in_bulk_too(project: "Project") -> None:
    project.write("bot.py", "import pytest\ndef answer(word): pytest.exit('enough', returncode=7)\n")
    project.suite("bulk.eval.yaml", CASES, **TOP, mode="bulk")
    assert project.run().code == 7
