"""The plugin among pytest's own options: help, markers, fixtures, other ways of running."""

from typing import TYPE_CHECKING

import pytest

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
    markers = capitals.run("--markers", llmeval=False)
    assert "@pytest.mark.llmeval(path): run the test once per case of an eval suite" in markers.text
    fixtures = capitals.run("--fixtures")
    assert fixtures.code == 0
    ours = fixtures.text.partition("fixtures defined from pytest_llmeval")[2].partition("fixtures defined from")[0]
    for name in ("eval_case", "evaluators", "judge", "judge_client", "llmeval_target", "score_snapshot"):
        assert f"\n{name} -- " in ours
    assert "no docstring available" not in ours


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
