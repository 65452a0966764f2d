"""Options of runs that collect no suites."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project


@pytest.fixture
def plain(project: "Project") -> "Project":
    """A project with one test and no suite."""
    project.write("test_one.py", "def test_one(): pass\n")
    return project


@pytest.mark.parametrize(
    "option",
    [
        "--llmeval-report=r.json",
        "--llmeval-judge=replay",
        "--llmeval-budget=calls=1",
        "--llmeval-predictions-mode=auto",
        "--llmeval-require-gates",
        "--snapshot-anchor",
    ],
)
def test_an_option_about_suites_without_llmeval_is_a_usage_error(plain: "Project", option: str) -> None:
    ran = plain.run(option, llmeval=False)
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert f"found {option.partition('=')[0]} without --llmeval, expected both" in ran.text


def test_every_idle_option_is_named_once_also_where_its_value_is_an_argument_of_its_own(plain: "Project") -> None:
    ran = plain.run("--llmeval-report", "a.json", "--llmeval-report=b.md", "--llmeval-cache", "c", llmeval=False)
    assert "found --llmeval-report, --llmeval-cache without --llmeval" in ran.text


def test_options_about_suites_in_addopts_wait_for_the_runs_with_llmeval(plain: "Project") -> None:
    plain.ini("addopts = --llmeval-report=kept.json --llmeval-judge=off")
    ran = plain.run(llmeval=False)
    assert ran.code == 0
    assert "llmeval: off; --llmeval-report, --llmeval-judge in addopts: no effect without --llmeval" in ran.text
    assert plain.run().code == 0
    assert (plain.path / "kept.json").exists()


def test_the_ini_option_llmeval_is_enough(plain: "Project") -> None:
    plain.ini("llmeval = true")
    ran = plain.run("--llmeval-report=report.json", llmeval=False)
    assert ran.code == 0
    assert ran.report["suites"] == []


def test_approving_needs_no_llmeval(plain: "Project") -> None:
    assert plain.run("--snapshot-update", llmeval=False).code == 0
