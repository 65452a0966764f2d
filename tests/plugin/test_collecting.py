"""Which files become items, under which ids, and what surrounds them."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Project

ONE: list[dict[str, Any]] = [{"id": "a", "expected": "x", "prediction": "x"}]


def test_every_case_is_an_item_whose_id_reads_as_in_the_file_and_gates_follow(
    capitals: "Project", workers: int
) -> None:
    ran = capitals.run("-v", workers=workers)
    assert ran.code == 1
    assert ran.counts == {"passed": 4, "failed": 2}
    assert ran.verdicts() == {
        "capitals.eval.yaml::paris": "PASSED",
        "capitals.eval.yaml::東京": "PASSED",
        "capitals.eval.yaml::new delhi [in] 🎉": "PASSED",
        "capitals.eval.yaml::quito[1]": "FAILED",
        "capitals.eval.yaml::gate[f1 >= 0.6]": "PASSED",
        "capitals.eval.yaml::gate[f1 >= 0.4 by continent]": "FAILED",
    }


def test_collect_only_lists_the_cases_in_file_order_and_judges_nothing(capitals: "Project") -> None:
    ran = capitals.run("--collect-only", "-q")
    assert ran.code == 0
    assert ran.ids() == [
        "capitals.eval.yaml::paris",
        "capitals.eval.yaml::東京",
        "capitals.eval.yaml::new delhi [in] 🎉",
        "capitals.eval.yaml::quito[1]",
    ]
    assert not ran.report


def test_yaml_yml_and_json_are_collected_and_nothing_else(project: "Project") -> None:
    for name in ("a.eval.yaml", "b.eval.yml", "sub/c.eval.json", "plain.yaml", "eval.yaml", "d.eval.yaml.bak"):
        project.suite(name, ONE)
    project.suite("__llmeval__/own.eval.json", ONE)
    ran = project.run("--collect-only", "-q")
    assert ran.ids() == ["a.eval.yaml::a", "b.eval.yml::a", "sub/c.eval.json::a"]


def test_without_the_flag_suites_are_left_alone_and_tests_run(capitals: "Project") -> None:
    capitals.write("broken.eval.yaml", "\t: [")
    capitals.write("test_plain.py", "def test_plain(): pass\n")
    ran = capitals.run(llmeval=False)
    assert (ran.code, ran.counts) == (0, {"passed": 1})
    assert "llmeval ==" not in ran.text


def test_the_ini_option_stands_in_for_the_flag(capitals: "Project") -> None:
    capitals.ini("llmeval = true")
    ran = capitals.run("-k", "paris", llmeval=False)
    assert (ran.code, ran.counts["passed"]) == (0, 1)


def test_the_ini_option_llmeval_files_replaces_the_name_patterns(project: "Project") -> None:
    project.ini("llmeval_files = *.suite.yaml check_*.json")
    for name in ("a.eval.yaml", "b.suite.yaml", "check_c.json"):
        project.suite(name, ONE)
    ran = project.run()
    assert ran.counts == {"passed": 2}
    assert [suite["path"] for suite in ran.report["suites"]] == ["b.suite.yaml", "check_c.json"]
    assert list(ran.suites) == ["b.suite", "check_c"]


@pytest.mark.parametrize("argument", ["capitals.eval.yaml", "capitals.eval.yaml::paris"])
def test_a_suite_named_without_the_flag_is_a_usage_error_that_says_what_to_add(
    capitals: "Project", workers: int, argument: str
) -> None:
    ran = capitals.run(argument, workers=workers, llmeval=False)
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {argument} is an eval suite: add --llmeval, or llmeval = true in pytest's configuration" in ran.text
    assert "Traceback" not in ran.text


def test_suites_outside_rootdir_with_the_same_file_name_stay_apart(project: "Project") -> None:
    project.write("inside/pytest.ini", "[pytest]\n")
    project.suite("one/qa.eval.yaml", ONE, gates=["f1 >= 1"])
    project.suite("two/qa.eval.yaml", [{"id": "a", "expected": "x", "prediction": "y"}], gates=["f1 >= 1"])
    ran = project.run("--rootdir=inside", "-c", "inside/pytest.ini", "one", "two", workers=2)
    assert ran.code == 1
    shown = [(suite["path"], suite["metrics"]["f1"]["value"]) for suite in ran.report["suites"]]
    root = project.path.as_posix()
    assert shown == [(f"{root}/one/qa.eval.yaml", 1.0), (f"{root}/two/qa.eval.yaml", 0.0)]
    assert [suite["gates"][0]["outcome"] for suite in ran.report["suites"]] == ["passed", "failed"]


def test_fixtures_and_hooks_of_the_users_conftest_apply_to_cases(capitals: "Project") -> None:
    capitals.write(
        "conftest.py",
        """\
        import pathlib
        import pytest

        HERE = pathlib.Path(__file__).parent

        @pytest.fixture(scope="module")
        def opened(request):
            return request.module.__name__

        @pytest.fixture(autouse=True)
        def around(request, opened, eval_case, tmp_path):
            (HERE / f"{eval_case.input}.seen").write_text(f"{opened} {request.node.name} {request.function.__name__}")
            yield
            (HERE / f"{eval_case.input}.done").touch()

        def pytest_collection_modifyitems(items):
            for item in items:
                assert isinstance(item, pytest.Function)
                assert item.get_closest_marker("llmeval")
                if item.name == "paris":
                    item.add_marker(pytest.mark.xfail(reason="known", strict=True))
        """,
    )
    ran = capitals.run("-rx")
    assert (capitals.path / "Japan.seen").read_text(encoding="utf-8").split()[1:] == ["東京", "東京"]
    assert {path.stem for path in capitals.path.glob("*.done")} == {"France", "Japan", "India", "Ecuador"}
    assert "[XPASS(strict)] known" in ran.text
    assert ran.outcomes("capitals")["paris"] == "failed"


def test_the_tag_skip_skips_a_case_and_the_rest_is_judged(project: "Project") -> None:
    cases = [*ONE, {"id": "b", "expected": "x", "prediction": "y", "tags": ["skip"]}]
    project.suite("s.eval.yaml", cases, gates=["f1 >= 1"])
    ran = project.run()
    assert (ran.code, ran.counts) == (0, {"passed": 2, "skipped": 1})
    assert ran.outcomes("s") == {"a": "passed", "b": "skipped"}
    assert ran.gates("s") == {"f1 >= 1": "passed"}
    assert ran.suites["s"]["metrics"]["f1"]["missing"] == 1


def test_a_fixture_that_fails_makes_its_case_errored_and_the_gate_fail(capitals: "Project") -> None:
    capitals.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture(autouse=True)
        def database(eval_case):
            if eval_case.id == "paris":
                raise ConnectionError("no database")
        """,
    )
    ran = capitals.run()
    assert ran.counts == {"passed": 2, "failed": 3, "errors": 1}
    case = ran.suites["capitals"]["cases"][0]
    assert (case["outcome"], case["reason"]) == ("errored", "ConnectionError: no database")
    assert "gate FAILED  f1 >= 0.6  (1 case errored)" in ran.text


MISNAMED = "evaluators: [text]\ncases:\n- {id: a, prediction: x, expected: x}\n"


def test_a_file_that_looks_like_a_suite_is_refused_with_a_name_that_is_collected(project: "Project") -> None:
    project.write("sub/my_eval.yaml", MISNAMED)
    ran = project.run("sub/my_eval.yaml::a")
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: sub/my_eval.yaml looks like an eval suite, but is not collected" in ran.text
    assert "Rename it to my.eval.yaml" in ran.text


def test_files_in_folders_that_look_like_suites_are_named_once(project: "Project") -> None:
    project.write("sub/my_eval.yaml", MISNAMED)
    project.write("sub/data.yaml", "cases: 3\n")
    project.write("good.eval.yaml", MISNAMED)
    ran = project.run(workers=2)
    assert ran.code == 0
    assert ran.text.count("looks like an eval suite") == 1
    assert "sub/my_eval.yaml looks like an eval suite, but is not collected" in ran.section("llmeval")


def test_without_llmeval_nobody_looks_for_suites(project: "Project") -> None:
    project.write("my_eval.yaml", MISNAMED)
    project.write("test_one.py", "def test_one(): pass\n")
    assert "eval suite" not in project.run(llmeval=False).text
