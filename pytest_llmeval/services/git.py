"""Questions to git about a repository, and the files of a commit."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_llmeval.core.errors import LlmevalError

_PATIENCE_S: Final = 120


class GitError(LlmevalError):
    """git is not installed, the folder is in no repository, or git refused."""


def run_git(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Return what git prints, with undecodable bytes of file names as surrogates.

    Args:
        folder: In which git runs.
        arguments: Of git.
        environment: Variables besides those of this process.

    Raises:
        GitError: It cannot be run, or its exit code is not 0; the message has the last line of its errors.
    """
    try:
        done = subprocess.run(  # noqa: S603 (no shell reads the arguments)
            ["git", "-C", str(folder), *arguments],  # noqa: S607 (git is found where the user's shell finds it)
            capture_output=True,
            env={**os.environ, **(environment or {})},
            timeout=_PATIENCE_S,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise GitError(f"git {arguments[0]}: {last or f'exit code {error.returncode}'}") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise GitError(f"git {arguments[0]}: {error}") from None
    return done.stdout.decode("utf-8", "surrogateescape")


def write_files_of(folder: Path, commit: str, target: Path) -> Path:
    """Write the files of a commit, without touching index, working tree or configuration of the repository.

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
    root = run_git(folder, "rev-parse", "--show-toplevel").rstrip("\n")
    prefix = run_git(folder, "rev-parse", "--show-prefix").rstrip("\n")
    run_git(Path(root), "read-tree", commit, environment=index)
    run_git(Path(root), "checkout-index", "--all", "--force", f"--prefix={tree}/", environment=index)
    return tree / prefix
