"""The command ``llmeval init``."""

import json
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from pytest_llmeval.cli import CommandResult, say
from pytest_llmeval.core import LlmevalError, SuiteError
from pytest_llmeval.judges import JudgeConnection
from pytest_llmeval.suites import is_foreign, load_suite
from pytest_llmeval.workbench._project import SOURCE, Project, TargetPlace, find_target
from pytest_llmeval.workbench.init._rag import RagSuite, add_rag_arguments, rag_suite

_SUITES = "tests/evals"
"""A folder below ``tests``, which setuptools never takes for a package: one of its own at the top of a project would
keep ``pip install -e .`` from finding the packages."""
_IGNORED = (".llmeval/", "eval-baseline/", "eval-reports/")
_REPORT = "eval-reports/report.json"
_NEXT = (
    f"pytest --llmeval {_SUITES}",
    f"pytest --llmeval {_SUITES} --llmeval-report={_REPORT}",
    f"llmeval comment {_REPORT}",
)
_CONFTEST = '''\
"""Lets suites name the modules of the project."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]{below}))
'''


class _Step(NamedTuple):
    """A file that ``llmeval init`` writes, extends or leaves alone.

    Attributes:
        path: Relative to the project.
        text: What is written; empty if it is left as it is.
        left: Why it is left as it is.
        adds: Whether to append to a file that exists.
    """

    path: str
    text: str = ""
    left: str = ""
    adds: bool = False


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval init``."""
    parser.description = (
        "Write a first suite, a CI workflow, and the settings that they need. Existing files are not changed; "
        "to .gitignore and pyproject.toml only what is missing is added. What is written passes at once. With --rag, "
        "the suite is made for your questions and your application, which is called once if you agree."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="the project (default: .)")
    host = parser.add_mutually_exclusive_group()
    host.add_argument("--github", action="store_const", const="github", dest="host", help="write a GitHub workflow")
    host.add_argument("--gitlab", action="store_const", const="gitlab", dest="host", help="write a GitLab pipeline")
    parser.add_argument("--target", metavar="MODULE:NAME", help="the function to evaluate, such as my_app:answer")
    add_rag_arguments(parser)
    parser.set_defaults(run=_init, code_of_faults=2)


def _init(options: Namespace) -> CommandResult:
    """Run ``llmeval init``: write a first suite, its settings and a CI workflow into a project."""
    folder, lines, steps = options.folder, [], []
    try:
        target = find_target(folder, options.target) if options.target else None
        rag = rag_suite(options, folder, _SUITES, target) if options.rag is not None else None
        folder.mkdir(parents=True, exist_ok=True)
        project = Project(folder)
        host = options.host or project.host
        for step in _steps(project, host, target, rag):
            verb, why = _done(folder, step)
            steps.append({"file": step.path, "did": verb, "why": why})
            lines.append(f"{verb:8} {step.path}" + (f": {why}" if why else ""))
        if rag is not None and rag.judge is not None:
            lines.append(_judge_in_ci(rag, host))
        others = sorted(path for path in folder.glob("*.eval.yaml") if not is_foreign(path))
        lines += [f"note     {other.name}: the workflow runs only {_SUITES}" for other in others]
    except OSError as error:
        say(lines)
        raise LlmevalError(f"{error.filename or folder}: not written: {error.strerror}") from None
    where = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    if rag is not None and not _is_good(folder / rag.path):
        return CommandResult(1, {"files": steps, "next": []}, lines)
    commands = [f"{where}{command}" for command in _next(rag)]
    return CommandResult(
        0, {"files": steps, "next": commands}, [*lines, "", "Next:", *(f"  {command}" for command in commands)]
    )


def _next(rag: RagSuite | None) -> Iterator[str]:
    """Yield the commands that ``llmeval init`` suggests as next steps."""
    run, *others = _NEXT
    if rag is not None:
        yield f"{run} --llmeval-plan"
    replays = rag is not None and rag.replays
    options = [" --llmeval-judge=record" if replays else "", " --snapshot-update" if rag and rag.approves else ""]
    yield f"{run}{''.join(options)}"
    yield from others


def _is_good(path: Path) -> bool:
    """Validate the new suite as ``llmeval validate`` does, and print the faults of its question rows."""
    try:
        faults: Sequence[object] = load_suite(path).all_faults
    except SuiteError as error:
        faults = error.faults
    say(faults, error=True)
    return not faults


def _steps(project: Project, host: str, target: TargetPlace | None, rag: RagSuite | None) -> Iterator[_Step]:
    """Yield the files that ``llmeval init`` writes, extends or leaves alone."""
    if rag is not None:
        yield _Step(rag.path, rag.text)
    elif target is None and any((project.folder / _SUITES).glob("test_*.py")):
        yield _Step(f"{_SUITES}/first.{project.suite_kind}.yaml", left="the folder has tests in Python")
    else:
        suite = _template("recorded.txt") if target is None else _template("target.txt").replace("TARGET", target.name)
        yield _Step(f"{_SUITES}/first.{project.suite_kind}.yaml", suite)
    paths = () if target is None else (target.root,)
    yield from _settings(project, paths)
    yield from _ignored(project)
    yield from _workflow(project, host, rag)


def _settings(project: Project, paths: tuple[str, ...]) -> Iterator[_Step]:
    """Yield the step of ``llmeval init`` that makes a project's modules importable: pytest settings or a conftest."""
    lines = ["[tool.pytest.ini_options]", *(f'pythonpath = ["{path}"]' for path in paths)]
    if not paths:  # or else each run of the project's tests would call its application
        lines.append("llmeval = true  # suites run without --llmeval, in editors too")
    settings = project.pytest_settings()
    added = project.added_to_pyproject("\n".join(lines)) if not settings.file else ""
    if added:
        yield _Step("pyproject.toml", added, adds=True)
        return
    yield _Step("pyproject.toml", left=settings.file or "it is not TOML to which a section can be added")
    for path in paths:
        if path not in settings.pythonpath:
            below = "" if path == "." else f' / "{path}"'
            yield _Step(f"{_SUITES}/conftest.py", _CONFTEST.format(below=below))


def _ignored(project: Project) -> Iterator[_Step]:
    """Yield the step of ``llmeval init`` that makes git ignore the files of runs."""
    present = project.lines(".gitignore")
    missing = [pattern for pattern in _IGNORED if not {pattern, pattern.rstrip("/"), f"/{pattern}"} & present]
    if missing:
        yield _Step(".gitignore", project.added(".gitignore", missing), adds=True)
    else:
        yield _Step(".gitignore", left="it ignores all files of runs")


def _workflow(project: Project, host: str, rag: RagSuite | None) -> Iterator[_Step]:
    """Yield the step of ``llmeval init`` that writes the CI workflow for GitHub or GitLab."""
    place = ".github/workflows/evals.yml" if host == "github" else ".gitlab-ci.yml"
    root = project.repository
    if root is not None and root != project.folder.resolve():
        yield _Step(place, left=f"workflows belong into the root of the repository, {root}")
        return
    if host == "gitlab" and (project.folder / place).exists():
        included = "evals.gitlab-ci.yml"
        yield _Step(place, left=f"it exists: add the line 'include: {included}'")
        place = included
    text = _template(f"{host}.yml").replace('"main"', json.dumps(project.branch))
    text = text.replace(f"pip install {SOURCE}", project.installation(SOURCE))
    yield _Step(place, text if rag is None or rag.judge is None else _with_judge(text, rag, host))


def _with_judge(workflow: str, rag: RagSuite, host: str) -> str:
    """A CI workflow whose run replays recorded verdicts, or calls the judge with key, cache and budget."""
    if rag.replays:
        return workflow.replace("--llmeval-texts=all", "--llmeval-texts=all --llmeval-judge=replay", 1)
    variable = None if rag.judge is None else JudgeConnection(rag.judge).key_variable
    parts = _template(f"{host}-judge.yml").replace("OPENAI_API_KEY", variable or "").split("---\n")
    for marker, part in zip(_JUDGE_PARTS[host], parts, strict=True):
        workflow = workflow.replace(marker, part + marker, 1)
    options = f"--llmeval-texts=all --llmeval-judge=$JUDGE --llmeval-budget=calls={_MOST_CALLS * rag.cases}"
    return workflow.replace("--llmeval-texts=all", options, 1)


_JUDGE_PARTS = {
    "github": ("      - name: Evaluate\n", "        run: >-\n          pytest", "      - name: Compare\n"),
    "gitlab": ("  before_script:\n", "    - >-\n      pytest"),
}
"""What stands behind each part of the template of a judge with a key."""
_MOST_CALLS = 12
"""Calls that claims of one question take at most: two texts are split and compared four times, each asked again."""


def _judge_in_ci(rag: RagSuite, host: str) -> str:
    """The line of ``llmeval init`` on what the CI workflow needs to call the judge."""
    assert rag.judge is not None
    model, variable = rag.judge.model, JudgeConnection(rag.judge).key_variable
    if rag.replays:
        record = f"pytest --llmeval {_SUITES} --llmeval-judge=record"
        return f"judge    the workflow replays verdicts of {model}: {record}, then commit {_SUITES}/__llmeval__"
    place = f"the CI/CD variable {variable}" if host == "gitlab" else f"the secret {variable}: gh secret set {variable}"
    return f"judge    the workflow asks {model}, and needs {place}"


def _template(name: str) -> str:
    """The text of a template of ``llmeval init``."""
    return files("pytest_llmeval.workbench").joinpath("templates", name).read_text(encoding="utf-8")


def _done(folder: Path, step: _Step) -> tuple[str, str]:
    """Carry out a step of ``llmeval init``, and return what was done; for a file left alone, also the reason."""
    path = folder / step.path
    if step.left:
        return "left", step.left
    if step.adds:
        from pytest_llmeval.data import OutputFile

        existed = path.exists()
        OutputFile(path).append_text(step.text)
        return "extended" if existed else "wrote", ""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(step.text)
    except FileExistsError:
        return "left", "it exists"
    return "wrote", ""
