"""Calls of git."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_llmeval.core import LlmevalError

_PATIENCE_S: Final = 120

_OBEYING_NOBODY: Final = (
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
)
"""Settings that take precedence over those of a repository: files of a pull request run nothing, and are none."""


class GitError(LlmevalError):
    """git is not installed, the folder is in no repository, or git refused."""


def run_git(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """The output of a git command, with undecodable bytes of file names as surrogates.

    Args:
        folder: In which git runs.
        arguments: Of git.
        environment: Variables besides those of this process.

    Raises:
        GitError: It cannot be run, or its exit code is not 0; the message has the last line of its errors.
    """
    import subprocess  # most runs ask git for nothing

    try:
        done = subprocess.run(  # noqa: S603 (no shell reads the arguments)
            ["git", *_OBEYING_NOBODY, "-C", str(folder), *arguments],  # noqa: S607 (git is found where the user's shell finds it)
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
