"""Exit codes that are not pytest's own: the last lines name the reason, and one function sets them all."""

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from project import modules_that_say

if TYPE_CHECKING:
    from conftest import Project

SETTER = "change_exit_code"


def setters() -> set[tuple[str, str]]:
    """Return the file and the function of every place in the package that sets the exit code of a session."""
    places = set()
    for path, module in modules_that_say("exitstatus"):
        for function in ast.walk(module):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                targets = node.targets if isinstance(node, ast.Assign) else ()
                if any(isinstance(target, ast.Attribute) and target.attr == "exitstatus" for target in targets):
                    places.add((path.parent.name, function.name))
    return places


def callers() -> list[tuple[str, str]]:
    """Return the file and the source of the reasons of every call that changes an exit code."""
    return [
        (path.parent.name, ast.unparse(node.args[2]))
        for path, module in modules_that_say(SETTER)
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == SETTER
    ]


def test_one_function_sets_exit_codes_and_wants_reasons() -> None:
    assert setters() == {("plugin", SETTER)}


def one_case(project: "Project") -> None:
    project.suite("s.eval.yaml", [{"id": "a", "expected": "A", "prediction": "A"}], gates=["f1 >= 0.5"])


def unwritable(project: "Project") -> list[str]:
    one_case(project)
    project.write("file", "")
    return ["--llmeval-report=file/summary.txt"]


def unwritable_shard(project: "Project") -> list[str]:
    one_case(project)
    project.write("file", "")
    return ["--llmeval-report=file/part.llmeval"]


def empty_shard(project: "Project") -> list[str]:
    one_case(project)
    return ["--llmeval-shard=1/1000"]


def empty_planned_shard(project: "Project") -> list[str]:
    return [*empty_shard(project), "--llmeval-plan"]


def over_budget(project: "Project") -> list[str]:
    project.write("bot.py", "def answer(word): return word")
    judge = {"model": "openai:m", "base_url": "http://127.0.0.1:9/v1"}
    project.asking("s.eval.yaml", "bot:answer", "a", "b", evaluators=[{"judge": {"mode": "continuous"}}], judge=judge)
    return ["--llmeval-plan", "--llmeval-budget=calls=1"]


def unwritable_plan(project: "Project") -> list[str]:
    unwritable(project)
    return ["--llmeval-plan", "--llmeval-report=file/plan.json"]


def ended_by_a_target(project: "Project") -> list[str]:
    project.write("bot.py", "import pytest\n\ndef answer(word): pytest.exit('bye', 0)\n")
    project.asking("s.eval.yaml", "bot:answer", "a")
    return []


def ended_in_collection(project: "Project") -> list[str]:
    project.write("conftest.py", "import pytest\n\ndef pytest_collection_modifyitems(): pytest.exit('bye', 0)\n")
    one_case(project)
    return []


def unjudged_gates(project: "Project") -> list[str]:
    cases = [{"id": each, "expected": "A", "prediction": "A"} for each in ("first", "second")]
    project.suite("s.eval.yaml", cases, gates=["f1 >= 0.5"])
    return ["--llmeval-require-gates", "-k", "first"]


def pending_verdict(project: "Project") -> list[str]:
    judge = {"model": "openai:m", "base_url": "http://127.0.0.1:9/v1"}
    cases = [{"id": "a", "input": "a", "expected": "A", "prediction": "A"}]
    project.suite("s.eval.yaml", cases, evaluators=[{"judge": {"mode": "continuous"}}], judge=judge)
    return ["--llmeval-judge=defer"]


REASONS: dict[Callable[["Project"], list[str]], tuple[int, str]] = {
    unwritable: (1, "exit code 1: report NOT written to"),
    unwritable_shard: (1, "exit code 1: results NOT kept in"),
    empty_shard: (0, "exit code 0: no case belongs to this shard"),
    empty_planned_shard: (0, "exit code 0: no case belongs to this shard"),
    unwritable_plan: (1, "exit code 1: plan NOT written to"),
    over_budget: (1, "exit code 1: the plan exceeds --llmeval-budget"),
    ended_by_a_target: (1, "exit code 1: 1 selected test of eval suites did not run: bye"),
    ended_in_collection: (1, "exit code 1: the run ended while tests were collected: bye"),
    unjudged_gates: (1, "exit code 1: --llmeval-require-gates:"),
    pending_verdict: (2, "exit code 2: 1 verdict pending: send .llmeval/requests/openai.jsonl"),
}
"""What changes an exit code: how a project comes to it, the exit code, and the beginning of the line that says why."""


def test_every_call_that_changes_an_exit_code_is_tried_below() -> None:
    assert callers() == [
        ("plugin", "reasons"),  # an empty shard
        ("plugin", "missing"),  # shortfalls of the run, and files that are not written
        ("plugin", "[self.pending]"),
        ("plugin", "[_EMPTY_SHARD]"),
        ("plugin", "missing"),  # a plan beyond the budget, or one that is not written
    ]


@pytest.mark.parametrize("options", [(), ("-q",), ("--no-summary",)], ids=["usual", "quiet", "no summary"])
@pytest.mark.parametrize("prepare", list(REASONS), ids=lambda prepare: prepare.__name__)
def test_the_last_lines_name_the_reason(
    project: "Project", prepare: Callable[["Project"], list[str]], options: tuple[str, ...]
) -> None:
    code, reason = REASONS[prepare]
    ran = project.run(*prepare(project), *options)
    assert ran.code == code, ran.text
    assert sum(line.startswith(reason) for line in ran.text.splitlines()[-12:]) == 1, ran.text


def test_the_reason_is_below_warnings_and_lists_of_tests(project: "Project") -> None:
    project.write("test_plain.py", "import warnings\n\ndef test_plain(): warnings.warn('old')\n")
    ran = project.run(*unwritable(project), "-rA", "-W", "default", "--durations=3")
    assert ran.code == 1
    assert "PASSED test_plain.py::test_plain" in ran.text
    assert ran.text.splitlines()[-2].startswith("exit code 1: report NOT written to"), ran.text


def test_a_report_for_each_suite_is_no_reason_to_fail(project: "Project") -> None:
    one_case(project)
    ran = project.run("--llmeval-report=out/{suite}/summary.txt")
    assert ran.code == 0, ran.text
    assert [path.relative_to(project.path).as_posix() for path in (project.path / "out").rglob("*.txt")] == [
        "out/s/summary.txt"
    ]
    assert "exit code" not in ran.text


def test_an_internal_error_of_a_worker_does_not_exit_with_0(project: "Project") -> None:
    one_case(project)
    project.write(
        "conftest.py",
        """\
        import os


        def pytest_runtest_protocol(item):
            if os.environ.get("PYTEST_XDIST_WORKER"):
                raise RuntimeError("lost")
        """,
    )
    ran = project.run(workers=1)
    assert ran.code != 0
    assert ran.code != 1 or "exit code 1: " in ran.text


def test_lost_reports_of_python_suites_are_missed(project: "Project") -> None:
    project.suite("s.eval.yaml", [{"id": "a", "expected": "A"}, {"id": "b", "expected": "B"}])
    project.write(
        "test_app.py",
        """\
        import pytest

        @pytest.mark.llmeval("s.eval.yaml")
        def test_app(eval_case):
            eval_case.score("A")
        """,
    )
    project.write(
        "conftest.py",
        """\
        import os
        import pytest


        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(item):
            return True if os.environ.get("PYTEST_XDIST_WORKER") else None
        """,
    )
    ran = project.run("test_app.py", workers=1)
    assert ran.code == 1, ran.text
    assert "exit code 1: 2 selected tests of eval suites did not run: they sent no report" in ran.text


def test_half_a_character_in_a_log_is_escaped(project: "Project", workers: int) -> None:
    project.write(
        "bot.py",
        """\
        import logging
        import warnings

        def answer(word):
            logging.getLogger("bot").warning("half \\ud83d")
            warnings.warn("half \\ud83d")
            return word
        """,
    )
    project.asking("s.eval.yaml", "bot:answer", "a")
    project.write("test_plain.py", "import logging\n\ndef test_plain(): logging.warning('\\ud83d'); assert 0\n")
    ran = project.run("-o", "log_cli=true", workers=workers)
    assert "INTERNALERROR" not in ran.text
    assert ran.outcomes("s") == {"a": "failed"} or ran.outcomes("s") == {"a": "passed"}
    assert "\\ud83d" in ran.text
