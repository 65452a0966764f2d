"""What must hold before a run starts; everything else is a usage error that says what to do."""

__all__ = (
    "is_suite_file",
    "open_suites",
    "refuse_suite_arguments",
    "report_paths",
)

import errno
import os
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_llmeval.runtime import Suites


def is_suite_file(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a file name matches one of the patterns of the ini option ``llmeval_files``."""
    return any(fnmatch(name, pattern) for pattern in patterns)


def refuse_suite_arguments(config: pytest.Config) -> None:
    """Stop if a suite file is named on the command line of a run that collects none.

    Raises:
        pytest.UsageError: One is.
    """
    for argument in config.args:
        if is_suite_file(Path(argument.partition("::")[0]).name, config.getini("llmeval_files")):
            raise pytest.UsageError(
                f"{argument} is an eval suite: add --llmeval, or llmeval = true in pytest's configuration"
            )


def report_paths(config: pytest.Config, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the report files to write.

    Raises:
        pytest.UsageError: One has a suffix for which there is no report.
    """
    paths = [config.invocation_params.dir / each for each in config.getoption("llmeval_report")]
    for path in paths:
        if path.suffix not in suffixes:
            raise pytest.UsageError(
                f"--llmeval-report={path}: found suffix {path.suffix!r}, expected one of {', '.join(suffixes)}"
            )
    return paths


def open_suites(config: pytest.Config) -> "Suites":
    """Return the suites of this process, with the recorded predictions that the user asked for.

    Raises:
        pytest.UsageError: The predictions file cannot be used.
    """
    from pytest_llmeval.errors import LlmevalError
    from pytest_llmeval.predict import Recordings
    from pytest_llmeval.runtime import Suites

    name = config.getoption("llmeval_predictions")
    mode = config.getoption("llmeval_predictions_mode")
    if name is None:
        if mode != "auto":
            raise pytest.UsageError(f"--llmeval-predictions-mode={mode} needs --llmeval-predictions=PATH")
        return Suites(config)
    path = config.invocation_params.dir / name
    try:
        if mode != "replay":
            path.parent.mkdir(parents=True, exist_ok=True)
            if not os.access(path if path.exists() else path.parent, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        recordings = Recordings.open(path, mode)
    except OSError as error:
        raise pytest.UsageError(f"--llmeval-predictions: {path} cannot be written: {error.strerror}") from None
    except LlmevalError as error:
        raise pytest.UsageError(f"--llmeval-predictions: {error}") from None
    return Suites(config, recordings, record=mode != "replay")
