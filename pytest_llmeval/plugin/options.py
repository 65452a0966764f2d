"""What must hold before a run starts; everything else is a usage error that says what to do."""

__all__ = (
    "is_suite_file",
    "judge_options",
    "open_suites",
    "refuse_suite_arguments",
    "report_paths",
)

import errno
import os
import uuid
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_llmeval.judge.options import JudgeOptions
    from pytest_llmeval.judge.service import JudgeMode
    from pytest_llmeval.plugin.suites import Suites


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
    from pytest_llmeval.core.errors import LlmevalError
    from pytest_llmeval.plugin.suites import Suites
    from pytest_llmeval.targets.python import Recordings

    options = judge_options(config)
    name = config.getoption("llmeval_predictions")
    mode = config.getoption("llmeval_predictions_mode")
    if name is None:
        if mode != "auto":
            raise pytest.UsageError(f"--llmeval-predictions-mode={mode} needs --llmeval-predictions=PATH")
        return Suites(config, options=options)
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
    return Suites(config, recordings, record=mode != "replay", options=options)


def judge_options(config: pytest.Config) -> "JudgeOptions":
    """Return what command line and configuration say about judges; the command line goes first.

    Raises:
        pytest.UsageError: One of them is wrong.
    """
    from pytest_llmeval.core.errors import FieldsError
    from pytest_llmeval.judge.budget import parse_budget
    from pytest_llmeval.judge.options import JudgeOptions
    from pytest_llmeval.judge.spec import JudgeSpec

    def option(name: str) -> str | None:
        given = config.getoption(f"llmeval_{name}_option")
        return given if given is not None else config.getini(f"llmeval_{name}") or None

    def cache() -> Path:
        given = config.getoption("llmeval_cache_option")
        if given is not None:
            return config.invocation_params.dir / str(given)
        return config.rootpath / (config.getini("llmeval_cache") or ".llmeval/cache.sqlite3")

    try:
        mode = _mode(option("judge") or "auto")
        concurrency = _at_least_one("--llmeval-concurrency", option("concurrency") or "16")
        spec = JudgeSpec(model=option("judge_model"), base_url=option("judge_base_url"))
        budget = parse_budget(filter(None, [option("budget")]))
    except FieldsError as error:
        faults = (f"--llmeval-judge-{name.replace('_', '-')}: {fault}" for name, fault in error.faults)
        raise pytest.UsageError("; ".join(faults)) from None
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    worker: dict[str, str] = getattr(config, "workerinput", {})
    return JudgeOptions(
        mode=mode,
        model=spec.model,
        base_url=spec.base_url,
        concurrency=concurrency,
        budget=budget,
        cache=cache(),
        run=worker.get("llmeval_run") or uuid.uuid4().hex,
        worker=worker.get("workerid", ""),
    )


def _mode(name: str) -> "JudgeMode":
    from pytest_llmeval.judge.service import MODES

    found = next((mode for mode in MODES if mode == name), None)
    if found is None:
        raise ValueError(f"llmeval_judge: found {name!r}, expected one of {', '.join(MODES)}")
    return found


def _at_least_one(option: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"{option}: found {text!r}, expected a whole number of at least 1")
    return int(text)
