"""The plugin among pytest's own options: help, markers, fixtures, other ways of running."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_llmeval.plugin._fixtures import FIXTURES

if TYPE_CHECKING:
    from conftest import Project


def test_help_lists_the_options_under_a_heading_of_their_own(project: "Project") -> None:
    ran = project.run("--help", llmeval=False)
    assert ran.code == 0
    text = ran.text.partition("evaluation as tests:")[2]
    for option in ("--llmeval ", "--llmeval-report=PATH", "--llmeval-predictions=PATH", "--llmeval-predictions-mode="):
        assert option in text
    assert "llmeval_files (args):" in ran.text


def test_the_marker_and_the_fixtures_are_described(capitals: "Project") -> None:
    markers = capitals.run("--markers")
    assert "@pytest.mark.llmeval(path): run the test once per case of an eval suite" in markers.text
    fixtures = capitals.run("--fixtures")
    assert fixtures.code == 0
    ours = fixtures.text.partition("fixtures defined from pytest_llmeval")[2].partition("fixtures defined from")[0]
    for name in FIXTURES:
        assert f"\n{name} -- " in ours
    assert "no docstring available" not in ours


FOREIGN = """\
import pytest

@pytest.mark.parametrize("case", [1, 2])
def test_parameters(case): assert case

def test_without_parameters(case): pass
def test_gate(gate): pass
def test_judge(judge): pass
def test_evaluate(evaluate, evaluators, score_snapshot): pass
"""


@pytest.mark.parametrize("arguments", [("-q",), ("--fixtures", "-q"), ("--markers",), ("--fixtures-per-test", "-q")])
def test_a_project_without_suites_is_byte_for_byte_as_without_the_plugin(
    project: "Project", arguments: Sequence[str]
) -> None:
    project.write("test_mine.py", FOREIGN)
    project.write("evals/tools.eval.yaml", "stimuli: [{name: list}]\n")

    def run(*more: str) -> tuple[int, str]:
        ran = project.run(*arguments, *more, llmeval=False)
        return ran.code, re.sub(r"in \d+\.\d+s|plugins: .*", "", ran.text)

    assert run() == run("-p", "no:llmeval_suite")


@pytest.mark.parametrize(
    ("name", "without_entry_points"),
    [
        pytest.param("pytest_llmeval", "", marks=pytest.mark.release),
        ("pytest_llmeval", "1"),
        ("pytest_llmeval_suite", ""),
    ],
)
def test_the_plugin_loads_by_the_name_of_its_package(
    capitals: "Project", name: str, without_entry_points: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", without_entry_points)
    ran = capitals.run("-p", name, "-k", "paris", cold=True)
    assert ran.counts == {"passed": 1, "deselected": 3}, ran.text


OWN_FIXTURES = """\
import pytest

@pytest.fixture
def judge(): return "mine"

@pytest.fixture
def gate(): return "mine"
"""


@pytest.mark.parametrize("file", ["conftest.py", "own_plugin.py"])
def test_a_fixture_of_the_user_wins(project: "Project", file: str) -> None:
    project.write(file, OWN_FIXTURES)
    project.write("test_mine.py", "def test_mine(judge, gate, evaluate): assert (judge, gate) == ('mine', 'mine')\n")
    project.ini("pythonpath = .")
    ran = project.run(*(() if file == "conftest.py" else ("-p", "own_plugin")))
    assert ran.counts == {"passed": 1}


@pytest.mark.parametrize("body", ["judge): pass", "evaluate): evaluate.judge('Paris', 'Paris', input='Capital?')"])
def test_a_judge_without_a_model_fails_with_what_to_set(project: "Project", body: str) -> None:
    project.write("test_mine.py", f"def test_judge({body}\n")
    ran = project.run()
    assert ran.code == 1
    assert "use --llmeval-judge-model, or define the fixture judge_client" in ran.text
    assert "pytest_llmeval/" not in ran.text


TAKES = "import pytest\n@pytest.mark.llmeval('capitals.eval.yaml')\ndef test_it({fixture}): assert {value}.id\n"


def test_a_fixture_called_case_leaves_eval_case_to_suites(capitals: "Project") -> None:
    capitals.write("conftest.py", "import pytest\n@pytest.fixture\ndef case(): return 'mine'\n")
    capitals.write("test_over.py", TAKES.format(fixture="case", value="case"))
    refused = capitals.run("test_over.py")
    assert "and a fixture of yours is called case: take the fixture eval_case" in refused.section("ERRORS")
    capitals.write("test_over.py", TAKES.format(fixture="case, eval_case", value="case == 'mine' and eval_case"))
    assert "and a fixture of yours" not in capitals.run("test_over.py").text


REPLACING = """
import pytest
import pytest_llmeval as ev

CASES = [{"id": "a", "input": "q", "expected": "x"}]
suite = ev.suite("s", cases=CASES, evaluators=[ev.text(metrics=["exact_match"])], gates=["exact_match >= 1"])

@pytest.fixture(autouse=True)
def case(): yield "mine"

@pytest.fixture
def judge(): return 1

@pytest.fixture
def gate(): return lambda report: report

@pytest.fixture
def evaluate(): return len

@suite.test
def test_suite(eval_case): eval_case.score("x")
def test_own(case, judge): assert (case, judge) == ("mine", 1)
def test_case(case): case.score("x")
def test_judge(judge): judge("q", "a")
def test_gate(gate): gate({"a": 1}, "a >= 1")
def test_evaluate(evaluate): evaluate.text("a", "b")
def test_else(judge): judge + "a"
"""


def test_a_fixture_of_the_users_that_is_used_as_ours_is_named(capitals: "Project") -> None:
    capitals.write("test_own.py", REPLACING)
    ran = capitals.run("test_own.py")
    assert ran.counts == {"passed": 3, "failed": 5}  # test_suite, its gate, and test_own
    for name, line in {"case": 8, "judge": 11, "gate": 14, "evaluate": 17}.items():
        note = f"{name} is your fixture in test_own.py:{line}, which replaces that of pytest-llmeval"
        assert ran.text.count(note) == 1
    for name in ("case", "eval_case", "case, eval_case"):
        suite_test = REPLACING.replace("def test_suite(eval_case): eval_case", f"def test_suite({name}): eval_case")
        also = "@pytest.fixture\ndef eval_case(): return 2\n" if name != "case" else ""
        capitals.write("test_own.py", suite_test.replace("@suite.test", f"{also}@suite.test"))
        way = "take the fixture eval_case" if not also else "rename one of the two"
        assert f"a fixture of yours is called case{' and one eval_case' if also else ''}: {way}" in capitals.run().text


def test_strict_settings_and_warnings_as_errors_find_nothing_to_complain_of(capitals: "Project", workers: int) -> None:
    ran = capitals.run("--strict-markers", "--strict-config", "-W", "error", workers=workers)
    assert ran.counts == {"passed": 4, "failed": 2}
    assert ran.code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--import-mode=importlib",),
        ("-pno:cacheprovider", "-pno:xdist", "-pno:junitxml"),
        ("--tb=native", "--color=yes", "-rA", "--durations=3"),
    ],
    ids=" ".join,
)
def test_other_options_change_no_verdict(capitals: "Project", arguments: tuple[str, ...]) -> None:
    ran = capitals.run(*arguments)
    assert ran.code == 1
    assert ran.suites["capitals"]["counts"]["passed"] == 3
    assert ran.gates("capitals") == {"f1 >= 0.6": "passed", "f1 >= 0.4 by continent": "failed"}
    assert "INTERNALERROR" not in ran.text


def test_a_run_from_another_folder_names_files_relative_to_rootdir(
    capitals: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    (capitals.path / "below").mkdir()
    monkeypatch.chdir(capitals.path / "below")
    ran = capitals.run("..", "--llmeval-report=here.json")
    assert ran.counts == {"passed": 4, "failed": 2}
    assert (capitals.path / "below/here.json").exists()
    assert '"path": "capitals.eval.yaml"' in (capitals.path / "below/here.json").read_text(encoding="utf-8")


_FORKING = '''
import json
import os

import pytest
from _pytest.runner import runtestprotocol


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    """Run an item in a child, as pytest-forked does, and send its reports as plain data."""
    read, write = os.pipe()
    if not os.fork():
        hook = item.config.hook
        reports = runtestprotocol(item, log=False)
        sent = [hook.pytest_report_to_serializable(config=item.config, report=each) for each in reports]
        os.write(write, json.dumps(sent).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        sent = json.load(stream)
    os.wait()
    for each in sent:
        item.ihook.pytest_runtest_logreport(
            report=item.config.hook.pytest_report_from_serializable(config=item.config, data=each)
        )
    return True
'''


def test_items_that_run_in_a_child_process_are_counted(capitals: "Project") -> None:
    with (capitals.path / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(_FORKING)
    ran = capitals.run()
    assert ran.counts == {"passed": 4, "failed": 2}
    assert ran.gates("capitals") == {"f1 >= 0.6": "passed", "f1 >= 0.4 by continent": "failed"}
