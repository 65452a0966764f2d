"""``llmeval init``: what it writes passes at once, and what exists stays as it is."""

import os
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from running import WITHOUT_UNUSED, run_python

from pytest_llmeval.cli import main
from pytest_llmeval.workbench._project import SOURCE

Init = Callable[..., list[str]]

APP = "async def answer(question, model='small'):\n    return f'You asked: {question}'\n\nLIMIT = 3\n"
WRITTEN = [".github/workflows/evals.yml", ".gitignore", "pyproject.toml", "tests/evals/first.eval.yaml"]


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Init:
    """Runs the command in a folder and returns the lines that it prints."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0) -> list[str]:
        assert main(["init", *arguments]) == code
        return capsys.readouterr()[code > 0].splitlines()

    return run


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def evaluate(folder: Path, *arguments: str) -> str:
    """Run the suites as the workflow does; return the last line."""
    dropped = ("PYTEST_", "GITHUB_", "CI", "COVERAGE_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    workers = 2 if "-n" in arguments else 0
    command = ["-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "tests/evals", *arguments]
    done = run_python(command, environment, folder, workers=workers)
    assert done.code == 0, done.out + done.err
    return done.out.splitlines()[-1]


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=trunk")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_an_empty_folder_gets_a_suite_that_passes_at_once(init: Init, tmp_path: Path) -> None:
    assert init() == [
        "wrote    tests/evals/first.eval.yaml",
        "wrote    pyproject.toml",
        "wrote    .gitignore",
        "wrote    .github/workflows/evals.yml",
        "",
        "Next:",
        "  pytest --llmeval tests/evals",
        "  pytest --llmeval tests/evals --llmeval-report=eval-reports/report.json",
        "  llmeval comment eval-reports/report.json",
    ]
    assert sorted(files(tmp_path)) == WRITTEN
    added = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))
    assert added["tool"]["pytest"]["ini_options"] == {"llmeval": True}
    assert " 3 passed, 1 gate passed in " in evaluate(tmp_path, "--llmeval-report=eval-reports/report.json")
    assert main(["comment", "eval-reports/report.json"]) == 0


@pytest.mark.parametrize("arguments", [(), ("-n", "2")])
def test_a_project_with_src_layout_and_settings_gets_a_conftest_and_passes(
    init: Init, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "src" / "shop").mkdir(parents=True)
    (tmp_path / "src" / "shop" / "__init__.py").touch()
    (tmp_path / "src" / "shop" / "bot.py").write_text(APP, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").touch()
    settings = '[project]\nname = "shop"\nversion = "1"\n[tool.pytest.ini_options]\ntestpaths = ["tests"]'
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    lines = init("--target", "shop.bot:answer")
    assert "left     pyproject.toml: it has settings of pytest" in lines
    assert "wrote    tests/evals/conftest.py" in lines
    assert (tmp_path / "pyproject.toml").read_text(encoding="utf-8") == settings
    assert "target: shop.bot:answer\n" in (tmp_path / "tests" / "evals" / "first.eval.yaml").read_text(encoding="utf-8")
    assert f"pip install -e . {SOURCE}\n" in files(tmp_path)[".github/workflows/evals.yml"]
    assert "3 passed in " in evaluate(tmp_path, *arguments)


@pytest.mark.parametrize("root", [".", "src"])
def test_a_project_without_settings_gets_them_and_no_conftest(init: Init, tmp_path: Path, root: str) -> None:
    (tmp_path / root).mkdir(exist_ok=True)
    (tmp_path / root / "my_app.py").write_text(APP, encoding="utf-8")
    before = b'[project]\r\nname = "shop"  # a shop'
    (tmp_path / "pyproject.toml").write_bytes(before)
    assert "extended pyproject.toml" in init("--target", "my_app:answer")
    after = (tmp_path / "pyproject.toml").read_bytes()
    assert after.startswith(before + b"\r\n\r\n[tool.pytest.ini_options]\r\n")
    assert tomllib.loads(after.decode())["tool"]["pytest"]["ini_options"] == {"pythonpath": [root]}
    assert not (tmp_path / "tests" / "evals" / "conftest.py").exists()
    assert "3 passed in " in evaluate(tmp_path)


def test_a_second_time_nothing_changes(init: Init, tmp_path: Path) -> None:
    init()
    before = files(tmp_path)
    lines = init()
    assert files(tmp_path) == before
    assert lines[:4] == [
        "left     tests/evals/first.eval.yaml: it exists",
        "left     pyproject.toml: it has settings of pytest",
        "left     .gitignore: it ignores all files of runs",
        "left     .github/workflows/evals.yml: it exists",
    ]


def test_files_that_exist_are_left(init: Init, tmp_path: Path) -> None:
    before = {
        "tests/evals/first.eval.yaml": "mine",
        "tests/evals/conftest.py": "mine = 1\n",
        ".github/workflows/evals.yml": "mine",
        "mine.eval.yaml": "mine",
        "my_app.py": APP,
        "pytest.ini": "[pytest]\n",
    }
    for name, text in before.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    lines = init("--target", "my_app:answer")
    assert {name: text for name, text in files(tmp_path).items() if name != ".gitignore"} == before
    assert "left     pyproject.toml: pytest reads its settings from pytest.ini" in lines
    assert "left     tests/evals/conftest.py: it exists" in lines
    assert "note     mine.eval.yaml: the workflow runs only tests/evals" in lines


def test_beside_suites_in_python_no_first_suite_is_written(init: Init, tmp_path: Path) -> None:
    test = tmp_path / "tests" / "evals" / "test_support.py"
    test.parent.mkdir(parents=True)
    test.write_text("", encoding="utf-8")
    assert init()[0] == "left     tests/evals/first.eval.yaml: the folder has tests in Python"
    assert sorted(test.parent.iterdir()) == [test]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("pytest.toml", "", "pytest reads its settings from pytest.toml"),
        ("tox.ini", "[tox]\n[pytest]\n", "pytest reads its settings from tox.ini"),
        ("setup.cfg", "[tool:pytest]\n", "pytest reads its settings from setup.cfg"),
        ("pyproject.toml", "[tool]\npytest = {}\n", "it has settings of pytest"),
        ("pyproject.toml", "[[tool]]\n", "it is not TOML to which a section can be added"),
        ("pyproject.toml", "tool = 1\n", "it is not TOML to which a section can be added"),
        ("pyproject.toml", "[tool\n", "it is not TOML to which a section can be added"),
    ],
)
def test_settings_are_added_only_where_there_are_none(
    init: Init, tmp_path: Path, name: str, text: str, why: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert f"left     pyproject.toml: {why}" in init()
    assert (tmp_path / name).read_text(encoding="utf-8") == text


def test_other_sections_of_ini_files_are_no_settings_of_pytest(init: Init, tmp_path: Path) -> None:
    (tmp_path / "tox.ini").write_text("[tox]\n", encoding="utf-8")
    (tmp_path / "setup.cfg").write_text("not an ini file", encoding="utf-8")
    assert "wrote    pyproject.toml" in init()


def test_only_missing_lines_are_added_to_gitignore(init: Init, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.pyc\n/eval-reports/", encoding="utf-8")
    assert "extended .gitignore" in init()
    text = (tmp_path / ".gitignore").read_text(encoding="utf-8")
    assert text == "*.pyc\n/eval-reports/\n.llmeval/\neval-baseline/\n"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("my_app", "found 'my_app', expected MODULE:NAME, such as my_app:answer"),
        ("my_ap:answer", "have no module 'my_ap' (did you mean 'my_app'?)"),
        ("my_app:anwser", "my_app.py has no 'anwser' (did you mean 'answer'?)"),
        ("my_app:two", "my_app.py:2 takes other arguments, expected the input alone"),
        ("my_app:none", "my_app.py:3 takes other arguments, expected the input alone"),
        ("my_app:named", "my_app.py:4 takes other arguments, expected the input alone"),
        ("broken:answer", "broken.py is no Python module"),
        ("os;rm -rf:x", "expected MODULE:NAME"),
    ],
)
def test_a_target_that_cannot_be_one_is_refused_before_anything_is_written(
    init: Init, tmp_path: Path, target: str, said: str
) -> None:
    text = "def answer(question): ...\ndef two(a, b): ...\ndef none(): ...\ndef named(a, *, key): ...\n"
    (tmp_path / "my_app.py").write_text(text, encoding="utf-8")
    (tmp_path / "broken.py").write_text("def", encoding="utf-8")
    (line,) = init("--target", target, code=2)
    assert said in line
    assert not (tmp_path / "tests" / "evals").exists()


@pytest.mark.parametrize(
    "text",
    [
        "def answer(question, *more, key=1): ...",
        "def answer(*inputs): ...",
        "class answer: ...",
        "answer = make()",
        "answer: object = make()",
        "from .inside import other as answer",
    ],
)
def test_whatever_takes_an_input_is_a_target(init: Init, tmp_path: Path, text: str) -> None:
    (tmp_path / "my_app").mkdir()
    (tmp_path / "my_app" / "__init__.py").write_text(text, encoding="utf-8")
    assert "wrote    tests/evals/first.eval.yaml" in init("--target", "my_app:answer.inner")


def test_another_folder_is_made_and_named_in_the_commands(init: Init, tmp_path: Path) -> None:
    assert init("new one")[-1] == "  cd 'new one' && llmeval comment eval-reports/report.json"
    assert sorted(files(tmp_path / "new one")) == WRITTEN


def test_a_folder_that_is_a_file_is_refused(init: Init, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert init("file", code=2) == ["file: not written: File exists"]


def test_the_host_is_found_out(init: Init, tmp_path: Path) -> None:
    git(tmp_path, "init")
    git(tmp_path, "remote", "add", "origin", "git@gitlab.example:a/b.git")
    assert "wrote    .gitlab-ci.yml" in init()
    assert not (tmp_path / ".github").exists()
    assert "wrote    .github/workflows/evals.yml" in init("--github")


def test_an_existing_pipeline_of_gitlab_is_not_changed(init: Init, tmp_path: Path) -> None:
    (tmp_path / ".gitlab-ci.yml").write_text("test: {script: [make]}\n", encoding="utf-8")
    lines = init()
    assert "left     .gitlab-ci.yml: it exists: add the line 'include: evals.gitlab-ci.yml'" in lines
    assert "wrote    evals.gitlab-ci.yml" in lines


def test_a_workflow_is_written_only_in_the_root_of_a_repository(init: Init, tmp_path: Path) -> None:
    git(tmp_path, "init")
    left = "left     .github/workflows/evals.yml: workflows belong into the root of the repository, "
    assert left + str(tmp_path.resolve()) in init("below", "--github")


def test_the_workflow_names_the_main_branch_of_the_repository(init: Init, tmp_path: Path) -> None:
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "-m", "one")
    git(tmp_path, "update-ref", "refs/remotes/origin/trunk", "HEAD")
    git(tmp_path, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    (tmp_path / "requirements.txt").touch()
    init()
    workflow = yaml.safe_load(files(tmp_path)[".github/workflows/evals.yml"])
    assert workflow[True]["push"]["branches"] == ["trunk"]
    steps = {step.get("name"): step for step in workflow["jobs"]["evaluate"]["steps"]}
    assert steps["Install"]["run"] == f"pip install -r requirements.txt {SOURCE}"


@pytest.mark.parametrize(
    ("folders", "more", "install"),
    [
        (("app", "static"), "", f"pip install uv && uv pip install --system -r pyproject.toml {SOURCE}"),
        (("app", "docs", "eval-reports", ".venv"), "", f"pip install -e . {SOURCE}"),
        (("app", "static"), '[tool.setuptools]\npackages = ["app"]\n', f"pip install -e . {SOURCE}"),
        (
            ("app", "static"),
            '[build-system]\nbuild-backend = "hatchling.build"\n',
            f"pip install -e . {SOURCE}",
        ),
    ],
)
def test_of_a_project_that_setuptools_cannot_build_only_dependencies_are_installed(
    init: Init, tmp_path: Path, folders: tuple[str, ...], more: str, install: str
) -> None:
    for each in folders:
        (tmp_path / each).mkdir()
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "shop"\nversion = "1"\n{more}', encoding="utf-8")
    init("--github")
    workflow = yaml.safe_load(files(tmp_path)[".github/workflows/evals.yml"])
    assert [each["run"] for each in workflow["jobs"]["evaluate"]["steps"] if each.get("name") == "Install"] == [install]
