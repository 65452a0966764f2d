"""Folders that must not be written to: what was there stays, the message names the file, and the next run goes on."""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running import IS_ROOT, OPTIONS, ORDINARY, committed, fill, is_whole, run_as

from pytest_llmeval.cli import main

if TYPE_CHECKING:
    import subprocess

    from conftest import Project

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="changes the modes of folders"),
    pytest.mark.skipif(IS_ROOT and not shutil.which("setpriv"), reason="root writes everywhere"),
]


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_as(ORDINARY, *arguments)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Take the right to write from a folder and all in it."""
    every = [folder, *folder.rglob("*")]
    for each in every:
        each.chmod(each.stat().st_mode & ~0o222)
    try:
        yield
    finally:
        for each in every:
            each.chmod(each.stat().st_mode | 0o200)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test leaves the project with all stores for the others."""
    return tmp_path_factory.mktemp("template") / "filled"


@pytest.fixture
def filled(project: "Project", template: Path, monkeypatch: pytest.MonkeyPatch) -> "Project":
    """A project of which all stores are filled."""
    monkeypatch.setenv("REASONS", "3")
    if template.exists():
        monkeypatch.setenv("WRONG", "a b c d")
        shutil.copytree(template, project.path, dirs_exist_ok=True)
    else:
        fill(project, monkeypatch)
        shutil.copytree(project.path, template)
    return project


NAMED = {
    ".llmeval": (
        "judge cache {}/.llmeval/cache.sqlite3: attempt to write a readonly database: it and its folder must",
        "run NOT noted in {}/.llmeval/history.jsonl: Permission denied",
    ),
    "__llmeval__": (
        "{}/__llmeval__/s.scores.json: not written: Permission denied",
        "known failures not written to {}/__llmeval__/s.failures.json: Permission denied",
        "{}/__llmeval__/s.judgements.jsonl: the judgements cannot be written (Permission denied)",
    ),
    "out": (
        *(f"report NOT written to {{}}/out/r.{suffix}: Permission denied" for suffix in ("html", "md", "csv")),
        "results NOT kept in {}/out/r.llmeval: Permission denied",
    ),
}
"""What a run says of each folder that it cannot write to."""


@pytest.mark.parametrize(
    "folders", [pytest.param((".llmeval",), marks=pytest.mark.release), ("__llmeval__", "out")], ids="-".join
)
def test_nothing_in_a_read_only_folder_is_damaged(
    filled: "Project", monkeypatch: pytest.MonkeyPatch, folders: Sequence[str]
) -> None:
    root = filled.path
    (root / "out").mkdir()
    for each in root.glob("r.*"):
        each.rename(root / "out" / each.name)
    options = tuple(each.replace("=r.", "=out/r.") for each in OPTIONS)

    def contents() -> dict[Path, bytes]:
        files = (path for folder in folders for path in (root / folder).rglob("*"))
        return {path: path.read_bytes() for path in files if path.is_file()}

    before = contents()
    monkeypatch.setenv("WRONG", "a")
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context(read_only(root / folder))
        ran = run("-m", "pytest", "--llmeval", "-p", "no:cacheprovider", *options)
        assert before == contents()
    assert ran.returncode == 1
    for text in (text for folder in folders for text in NAMED[folder]):
        assert text.format(root) in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr
    assert all(map(is_whole, (path for path in root.rglob("*") if path.suffix != ".pyc")))
    assert not list(root.rglob("*.tmp"))

    assert filled.run(*options).code == 0
    assert committed(root)["s.failures.json"].count(b'"a"') == 2


@pytest.mark.release
def test_a_run_in_a_checkout_that_is_read_only_judges_as_elsewhere(filled: "Project") -> None:
    project = filled
    shutil.rmtree(project.path / ".llmeval")
    replay = ("--llmeval-judge=replay", "--llmeval-predictions=p.jsonl", "--llmeval-predictions-mode=replay")
    with read_only(project.path):
        ran = run("-m", "pytest", "--llmeval", *replay)
        asking = run("-m", "pytest", "--llmeval", "--llmeval-judge=refresh")
        recording = run("-m", "pytest", "--llmeval", *OPTIONS)
    assert ran.returncode == 0, ran.stdout
    assert "3 snapshots passed" in ran.stdout
    assert f"run NOT noted in {project.path}/.llmeval" in ran.stdout
    assert asking.returncode == 1
    assert (
        f"the judge cache {project.path}/.llmeval/cache.sqlite3 cannot be created (Permission denied)" in asking.stdout
    )
    assert recording.returncode == 4
    assert f"--llmeval-predictions: {project.path}/p.jsonl cannot be written: Permission denied" in recording.stderr
    assert "Traceback" not in ran.stdout + asking.stdout + recording.stderr


def test_an_unwritable_cache_has_the_same_results_with_workers(project: "Project") -> None:
    project.write("conftest.py", _JUDGE)
    project.write("file", "no folder")
    cases = [{"id": f"c{number}", "input": "q", "expected": "yes", "prediction": "p"} for number in range(6)]
    project.suite("s.eval.yaml", cases, evaluators=[{"judge": {"mode": "default_binary"}}], gates=["judge_score >= 0"])
    found = [project.run("s.eval.yaml", "--llmeval-cache=file/c.sqlite3", workers=workers) for workers in (0, 2)]
    alone, shared = [
        [(case["id"], case["outcome"], case["reason"]) for case in ran.suites["s"]["cases"]] for ran in found
    ]
    assert alone == shared
    assert {outcome for _, outcome, _ in alone} == {"errored"}
    assert found[0].code == found[1].code == 1
    assert found[0].gates("s") == found[1].gates("s")
    assert all("the same in 5 more" in ran.text and "6 cases: judge: JudgeError" in ran.text for ran in found)


def test_a_suite_without_a_judge_needs_no_cache_with_workers_either(project: "Project") -> None:
    project.write("file", "no folder")
    project.write("answering.py", "def answer(text):\n    assert text != 'c3', 'no answer'\n    return text\n")
    cases = [{"id": f"c{number}", "input": f"c{number}", "expected": f"c{number % 5}"} for number in range(6)]
    project.suite(
        "s.eval.yaml", cases, target={"python": "answering:answer"}, evaluators=["text"], gates=["exact_match >= 0.9"]
    )
    found = [project.run("s.eval.yaml", "--llmeval-cache=file/c.sqlite3", workers=workers) for workers in (0, 2)]
    alone, shared = [
        [(case["id"], case["outcome"], case["reason"]) for case in ran.suites["s"]["cases"]] for ran in found
    ]
    assert alone == shared
    assert [outcome for _, outcome, _ in alone].count("errored") == 1
    assert found[0].code == found[1].code == 1
    assert found[0].gates("s") == found[1].gates("s")
    assert not any("--llmeval-cache" in ran.text for ran in found)


_JUDGE = """\
import pytest

@pytest.fixture(scope="session")
def judge_client():
    async def judge(request):
        return "yes"
    return judge
"""


def test_commands_name_what_they_cannot_write(project: "Project") -> None:
    suite = project.write(
        "evals/s.eval.yaml",
        """\
        evaluators: [text]
        cases:
          - {id: a, input: a, expected: a, prediction: a}
        """,
    )
    span = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "chat"}
    attributes = [
        {
            "key": "gen_ai.input.messages",
            "value": {"stringValue": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "b?"}]}])},
        }
    ]
    trace = {
        "resourceSpans": [
            {
                "scopeSpans": [
                    {"spans": [{**span, "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": attributes}]}
                ]
            }
        ]
    }
    project.write("trace.json", json.dumps(trace))
    assert project.run("--llmeval-report=part.llmeval").code == 0
    adding = ("cases", "add", "evals/s.eval.yaml", "--from=trace.json", f"--trace={span['traceId']}")
    before = suite.read_bytes()
    commands = (
        (adding, "evals/traces"),
        (("merge", "part.llmeval", "--report=evals/out.json"), "evals/out.json"),
        (("score", "evals/s.eval.yaml", "--report=evals/out.json"), "evals/out.json"),
        (("html", "report.json", "--output=evals/out.html"), "evals/out.html"),
    )
    with read_only(suite.parent):
        ran = run("-c", _COMMANDS, json.dumps([arguments for arguments, _ in commands]))
    assert "Traceback" not in ran.stderr
    for (arguments, named), (code, text) in zip(commands, json.loads(ran.stdout), strict=True):
        assert code != 0, arguments
        assert named in text
        assert "Permission denied" in text
    assert suite.read_bytes() == before
    assert main(list(adding)) == 0


_COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from pytest_llmeval.cli import main

said = []
for arguments in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as text, redirect_stderr(text):
        code = main(arguments)
    said.append((code, text.getvalue()))
print(json.dumps(said))
"""
"""A program that runs commands one after another, and prints the exit code and the text of each."""
