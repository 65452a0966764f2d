"""Facts about a project and its commits, read without running its code, and what pytest says of it."""

import ast
import configparser
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_llmeval.core import LlmevalError, suggest
from pytest_llmeval.data import display_path, repository_top
from pytest_llmeval.services import GitError, run_git
from pytest_llmeval.suites import is_foreign
from pytest_llmeval.workbench._console import named_files

_ROOTS: Final = (".", "src")
"""Folders of a project that modules are imported from."""

SETTINGS_FILES: Final = {
    "pytest.toml": "",
    ".pytest.toml": "",
    "pytest.ini": "",
    ".pytest.ini": "",
    "tox.ini": "pytest",
    "setup.cfg": "tool:pytest",
    "pyproject.toml": "tool.pytest",
}
"""Files that can hold pytest's settings, and the section they need for that; empty where all of it is about them."""

SOURCE: Final = "git+https://github.com/pytest-llmeval/pytest-llmeval-suite"
"""What pip installs as this distribution, which no package index has."""

NO_PACKAGES: Final = frozenset(
    (
        *("benchmark", "benchmarks", "bin", "build", "changelog", "ci", "debian", "dist", "doc", "docs"),
        *("documentation", "env", "example", "examples", "exercise", "exercises", "fabfile", "htmlcov"),
        *("manpages", "news", "newsfragments", "python", "requirements", "scripts", "site_scons", "tasks"),
        *("test", "tests", "tools", "unit_test", "unit_tests", "util", "utils", "venv"),
    )
)
"""Folders at the top of a project that setuptools never takes for packages; it does so with all others."""


def settings_of(path: Path) -> object:
    """The pytest settings in a file of `SETTINGS_FILES`; ``None`` if it is absent or has none."""
    if not path.is_file():
        return None
    text, section = path.read_text(encoding="utf-8", errors="replace"), SETTINGS_FILES[path.name]
    if not section:
        return text
    if path.suffix == ".toml":
        with suppress(tomllib.TOMLDecodeError):
            tool = tomllib.loads(text).get("tool")
            return tool.get("pytest") if isinstance(tool, Mapping) else None
        return None
    parser = configparser.RawConfigParser(strict=False)
    with suppress(configparser.Error):
        parser.read_string(text)
    return dict(parser[section]) if parser.has_section(section) else None


class TargetPlace(NamedTuple):
    """A function of a project that ``llmeval init`` makes the target of a suite.

    Attributes:
        name: ``module:name``.
        root: The folder of the project that its module is imported from: ``.`` or ``src``.
    """

    name: str
    root: str


class PytestSettings(NamedTuple):
    """The place of a project's pytest settings, which ``llmeval init`` may add to.

    Attributes:
        file: Why none may be added; empty if there are none.
        pythonpath: The folders that pytest imports from.
    """

    file: str = ""
    pythonpath: Sequence[str] = ()


def find_target(folder: Path, name: str) -> TargetPlace:
    """Find the function of a project that ``llmeval init --target`` names, without importing it.

    Raises:
        LlmevalError: It does not, or the function does not take an input alone; the message says what was found.
    """
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")]):
        raise LlmevalError(f"--target: found {name!r}, expected MODULE:NAME, such as my_app:answer")
    for root in _ROOTS:
        path = folder.joinpath(root, *module.split("."))
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                _check(name, file, attribute.partition(".")[0])
                return TargetPlace(name, root)
    near = suggest(module, {known_module for root in _ROOTS for known_module in _modules(folder / root)})
    raise LlmevalError(f"--target {name}: {folder} and {folder / 'src'} have no module {module!r}{near}")


def _modules(folder: Path) -> Iterator[str]:
    """Yield the names of the modules and packages in a folder of a project."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.suffix == ".py" or (path / "__init__.py").is_file():
                yield path.stem


def _check(name: str, file: Path, attribute: str) -> None:
    """Check that a module defines the target function of ``llmeval init``, and that it takes one input."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError) as error:
        raise LlmevalError(f"--target {name}: {file} is no Python module: {error}") from None
    defined = dict(_defined(tree))
    if attribute not in defined:
        raise LlmevalError(f"--target {name}: {file} has no {attribute!r}{suggest(attribute, defined)}")
    node = defined[attribute]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _takes_one(node.args):
        raise LlmevalError(f"--target {name}: {file}:{node.lineno} takes other arguments, expected the input alone")


def _defined(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the names that a module of a project defines or imports at its top level, with their statements."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from ((name.asname or name.name, node) for name in node.names)


def _takes_one(arguments: ast.arguments) -> bool:
    """Whether a function can be called with one positional argument, as a target is."""
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    named = any(default is None for default in arguments.kw_defaults)
    return required <= 1 and bool(positional or arguments.vararg) and not named


@dataclass(frozen=True)
class Project:
    """A folder with a user's project, as ``llmeval init`` and ``llmeval doctor`` read it.

    Attributes:
        folder: Its root.
    """

    folder: Path

    @property
    def suite_kind(self) -> str:
        """``eval``, as in ``first.eval.yaml``; ``llmeval`` where other tools own such files."""
        return "llmeval" if any(is_foreign(path) for path in named_files(self.folder)) else "eval"

    def _text(self, name: str) -> str:
        """Return the text of a file of the project; empty if it does not exist."""
        try:
            return (self.folder / name).read_bytes().decode("utf-8")
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError:
            raise LlmevalError(f"{self.folder / name} is not UTF-8") from None

    def lines(self, name: str) -> set[str]:
        """Return the lines of a file, without white space around them."""
        return {line.strip() for line in self._text(name).splitlines()}

    def added(self, name: str, lines: Sequence[str]) -> str:
        """Return text that appends lines to a file, with its kind of line ends."""
        before = self._text(name)
        end = "\r\n" if "\r\n" in before else "\n"
        return ("" if not before or before.endswith("\n") else end) + "".join(f"{line}{end}" for line in lines)

    @cached_property
    def _pyproject(self) -> Mapping[str, Any] | None:
        """The data of ``pyproject.toml``; ``None`` if it is not TOML."""
        try:
            return tomllib.loads(self._text("pyproject.toml"))
        except tomllib.TOMLDecodeError:
            return None

    def added_to_pyproject(self, section: str) -> str:
        """Return text that appends a section to ``pyproject.toml``; empty if the result would not be TOML."""
        before = self._text("pyproject.toml")
        text = self.added("pyproject.toml", [*([""] if before else []), *section.split("\n")])
        try:
            tool = tomllib.loads(before + text)["tool"]
        except tomllib.TOMLDecodeError:
            return ""
        return text if isinstance(tool, Mapping) else ""  # in a list, the section would go to the last element

    def pytest_settings(self) -> PytestSettings:
        """The place of pytest's settings."""
        *others, pyproject = SETTINGS_FILES
        for name in others:
            if settings_of(self.folder / name) is not None:
                return PytestSettings(f"pytest reads its settings from {name}")
        pytest = settings_of(self.folder / pyproject)
        if pytest is None:
            return PytestSettings()
        options = pytest.get("ini_options", pytest) if isinstance(pytest, Mapping) else {}
        paths = options.get("pythonpath", ()) if isinstance(options, Mapping) else ()
        listed = paths.split() if isinstance(paths, str) else paths if isinstance(paths, list) else []
        return PytestSettings("it has settings of pytest", [str(path).rstrip("/") for path in listed])

    def installation(self, package: str) -> str:
        """Return the command that installs the project, or its dependencies alone if it cannot be built, and a package.

        Args:
            package: The package.
        """
        files = ["-r", "requirements.txt"] if (self.folder / "requirements.txt").is_file() else []
        data = self._pyproject or {}
        built = "project" in data or "build-system" in data or (self.folder / "setup.py").is_file()
        if built and self._is_ambiguous:
            return " ".join(["pip install uv && uv pip install --system", *files, "-r pyproject.toml", package])
        return " ".join(["pip install", *files, *(["-e ."] if built else []), package])

    @property
    def _is_ambiguous(self) -> bool:
        """Whether setuptools refuses to choose between folders at the top, each of which it takes for a package."""
        data = self._pyproject or {}
        build, tool = data.get("build-system", {}), data.get("tool", {})
        others = ("setup.py", "setup.cfg", "src")
        if "setuptools" not in build.get("build-backend", "setuptools") or "setuptools" in tool:
            return False
        if "project" not in data or any((self.folder / other).exists() for other in others):
            return False
        names = {path.name for path in self.folder.iterdir() if path.is_dir()}
        return len([name for name in names - NO_PACKAGES if name.isidentifier() and not name.startswith("_")]) > 1

    @property
    def host(self) -> str:
        """Host of the repository: ``github`` (the default) or ``gitlab``."""
        if (self.folder / ".github").is_dir():
            return "github"
        remotes = self._git("remote", "-v")
        return "gitlab" if (self.folder / ".gitlab-ci.yml").is_file() or "gitlab" in remotes else "github"

    @property
    def repository(self) -> Path | None:
        """The root of the git repository that the project is in; ``None`` outside one."""
        folder = self._git("rev-parse", "--show-toplevel")
        return Path(folder).resolve() if folder else None

    @property
    def branch(self) -> str:
        """The main branch."""
        remote = self._git("symbolic-ref", "--short", "refs/remotes/origin/HEAD").removeprefix("origin/")
        current = self._git("symbolic-ref", "--short", "HEAD")
        return remote or ("master" if current == "master" else "main")

    def is_uncommitted(self, name: str) -> bool:
        """Whether a file has changes that git does not have; false outside a repository."""
        return bool(self._git("--no-optional-locks", "status", "--porcelain", "--ignored", "--", name))

    def _git(self, *arguments: str) -> str:
        try:
            return run_git(self.folder, *arguments).strip()
        except GitError:
            return ""


def run_pytest(
    arguments: Sequence[str],
    variables: Mapping[str, str],
    timeout: float,
    *,
    start: Sequence[str] = ("-m", "pytest"),
    folder: Path | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run pytest on a user's project in a process, and return its output.

    Args:
        arguments: Those of pytest.
        variables: Of the environment.
        timeout: Seconds that it may take.
        start: What Python runs.
        folder: In which it runs; default: the current one.

    Raises:
        TimeoutExpired: It took longer.
    """
    command = [sys.executable, *start, "--color=no", "--assert=plain", "-p", "no:cacheprovider"]
    return subprocess.run(  # noqa: S603 (our own interpreter)
        [*command, *arguments],
        cwd=folder,
        env={"PYTHONDONTWRITEBYTECODE": "1", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout,
        check=False,
    )


def enclosing_repository(folder: Path) -> Path:
    """The top folder of the git repository that a pull request's folder belongs to.

    Raises:
        LlmevalError: The folder has a repository of its own inside that of its parent, and is no submodule of it.
    """
    top = repository_top(folder)
    if top is None:
        raise GitError(f"{folder} is not a git repository: expected one with a commit to compare with")
    outer = repository_top(top.parent)
    if outer is not None:
        name = top.relative_to(outer).as_posix()
        entries = run_git(outer, "ls-files", "-z", "--stage", "--", name)
        if not entries.startswith(_SUBMODULE) and not _is_ignored(outer, name):
            raise LlmevalError(f"{top} is a repository inside {outer} and no submodule of it: run this in {outer}")
    return top


_SUBMODULE: Final = "160000 "
"""The mode that an index gives to a submodule."""


def _is_ignored(top: Path, name: str) -> bool:
    """Whether git ignores a folder of a repository."""
    try:
        run_git(top, "check-ignore", "--quiet", "--", f"{name}/")
    except GitError:
        return False
    return True


def changed_files(folder: Path, commit: str) -> list[str]:
    """The files of a folder that differ from a commit, including new and deleted ones, sorted."""
    top = repository_top(folder) or folder
    below = os.path.relpath(folder.resolve(), top)
    differing = run_git(top, "diff", "-z", "--name-only", "--no-renames", commit, "--", below)
    new = run_git(top, "ls-files", "-z", "--others", "--exclude-standard", "--", below)
    names = filter(None, {*differing.split("\0"), *new.split("\0")})
    return sorted(display_path(top / name, folder.resolve()) for name in names)


_MAIN: Final = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
"""Where the main branch is looked for."""


def fork_point(folder: Path, base: str | None = None) -> str:
    """The commit at which a pull request's branch left its base branch.

    Args:
        folder: Of the repository.
        base: The other branch, or a commit; default: the target of the pull request in a job of GitHub or GitLab, else
            the main branch.

    Raises:
        GitError: There is none, such as in a clone without history.
    """
    names = [base] if base else _usual_bases()
    for name in names:
        try:
            run_git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except GitError:
            continue
        try:
            return run_git(folder, "merge-base", name, "HEAD").strip()
        except GitError:
            message = f"{name} and HEAD have no commit in common: fetch the history"
            raise GitError(f"{message} (actions/checkout: fetch-depth: 0)") from None
    try:
        run_git(folder, "rev-parse", "--git-dir")
    except GitError as error:
        raise GitError(f"{error}: expected a repository with a commit to compare with") from None
    raise GitError(f"unknown commit {' or '.join(names)}: fetch the branch or commit, or name another REF")


def _usual_bases() -> tuple[str, ...]:
    """The commits that a pull request may start from: the base that CI names, or else the main branch."""
    of_github, of_gitlab = os.environ.get("GITHUB_BASE_REF"), os.environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA")
    return (f"origin/{of_github}",) if of_github else (of_gitlab,) if of_gitlab else _MAIN


def write_files_of(folder: Path, commit: str, target: Path) -> Path:
    """Write the files of a commit to a folder; index, working tree and configuration stay untouched.

    Args:
        folder: A folder of the repository.
        commit: The commit.
        target: An empty folder.

    Returns:
        What `folder` is in that commit, below `target`.

    Raises:
        GitError: There is no such commit, or git cannot write.
    """
    index = {"GIT_INDEX_FILE": str(target / "index")}
    tree = target / "tree"
    top = repository_top(folder) or folder
    run_git(top, "read-tree", commit, environment=index)
    run_git(top, "checkout-index", "--all", "--force", f"--prefix={tree}/", environment=index)
    return tree / folder.resolve().relative_to(top)


def copy_files_of(folder: Path, target: Path) -> Path:
    """Copy the files of a working tree that git tracks or would add.

    Args:
        folder: A folder of the repository.
        target: A folder that does not exist.

    Returns:
        What `folder` is, below `target`.
    """
    top = repository_top(folder) or folder
    for name in filter(None, run_git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")):
        source, copy = top / name, target / name
        if source.is_symlink() or source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
    below = target / folder.resolve().relative_to(top)
    below.mkdir(parents=True, exist_ok=True)
    return below


def write_with_code_of(base: Path, head: Path, target: Path) -> Path:
    """Copy the files of a state of a project, but with the Python code of an earlier state.

    Args:
        base: The top folder of the earlier state.
        head: The top folder of the later state.
        target: A folder that does not exist.

    Returns:
        The target.
    """
    shutil.copytree(head, target, symlinks=True, ignore=shutil.ignore_patterns("*.py", "*.pyc", "*.so", "*.pyd"))
    for path in base.rglob("*.py"):
        copy = target / path.relative_to(base)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy, follow_symlinks=False)
    return target
