"""Command-line and ini options."""

import os
import shlex
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_llmeval.cli import OPTIONS, SuitePatterns

if TYPE_CHECKING:
    from pytest_llmeval.run import Shard

_WORKER_TERMS = "llmeval"
"""Key under which xdist workers receive their terms."""


class WorkerTerms(NamedTuple):
    """What the main process of xdist sends to a worker; the defaults are those of a process without a main process.

    Attributes:
        run: Id of the run.
        shard: Of the run, such as ``2/5``; empty without one.
        columns: Width of the terminal.
        others_steal: Whether other workers may take tests that are still to come.
        seed: Of the order of cases: the commit that is checked out.
        stops: The folder in which stops are posted.
        environment: The variables that the main process started with, if it records what is used.
    """

    run: str = ""
    shard: str = ""
    columns: int = 80
    others_steal: bool = False
    seed: str | None = None
    stops: str = ""
    environment: Mapping[str, str] = {}

    @classmethod
    def of_process(cls, config: pytest.Config) -> "WorkerTerms":
        """The terms of this process of pytest."""
        return cls(*getattr(config, "workerinput", {}).get(_WORKER_TERMS, ()))

    def send(self, node: Any) -> None:
        """Send the terms to a worker of xdist that is about to start."""
        node.workerinput[_WORKER_TERMS] = tuple(self)


def add_options(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add this plugin's options and settings to pytest."""
    group = parser.getgroup("llmeval", "evaluation as tests")
    adds_update = not pluginmanager.is_blocked("syrupy") and find_spec("syrupy") is not None
    for option in OPTIONS.values():
        if option.pytest_names and not (option.name == "snapshot-update" and adds_update):
            late = option.setting is not None or option.read is not None
            default = [] if option.action == "append" else None if late else option.default
            keywords = option.arguments()
            group.addoption(
                *option.pytest_names, dest=option.pytest_attribute, default=default, help=option.help, **keywords
            )
        if option.setting is not None:
            text, kind, value = option.setting
            parser.addini(option.pytest_attribute, text or option.help, kind, value)  # type: ignore[arg-type]  # one of pytest's names


def option_spelling(config: pytest.Config, name: str) -> str:
    """The user's spelling of an option: that of the command line, or of the configuration."""
    option = OPTIONS[name]
    is_typed = option.setting is None or config.getoption(option.pytest_attribute) not in (None, "")
    return option.pytest_names[0] if is_typed else option.pytest_attribute


def option_value(config: pytest.Config, name: str) -> Any:
    """The value of one of this plugin's options; the command line takes precedence over the configuration.

    Raises:
        pytest.UsageError: Its text has none.
    """
    option = OPTIONS[name]
    text = config.getoption(option.pytest_attribute)
    if text in (None, "") and option.setting is not None:
        text = config.getini(option.pytest_attribute)
    if text in (None, ""):
        return option.absent
    try:
        return option.value(text)
    except ValueError as error:
        raise pytest.UsageError(f"{option_spelling(config, name)}: {error}") from None


def is_enabled(config: pytest.Config) -> bool:
    """Whether this run of pytest collects suites."""
    option = config.getoption("llmeval")
    return bool(config.getini("llmeval")) if option is None else bool(option)


def suite_patterns(config: pytest.Config) -> SuitePatterns:
    """The patterns of the names of suite files: the setting ``llmeval_files``."""
    return SuitePatterns(config.getini("llmeval_files"))


def refuse_anchor_alone(config: pytest.Config) -> None:
    """Refuse ``--snapshot-anchor`` without ``--snapshot-update``.

    Raises:
        pytest.UsageError: It is.
    """
    if config.option.llmeval_snapshot_anchor and not config.option.update_snapshots:
        raise pytest.UsageError("--snapshot-anchor needs --snapshot-update: only an approved run can be the anchor")


def _idle(arguments: Iterable[object]) -> list[str]:
    """The command line arguments of this plugin that have no effect without ``--llmeval``."""
    names = (str(argument).partition("=")[0] for argument in takewhile(lambda argument: argument != "--", arguments))
    return list(dict.fromkeys(name for name in names if name.startswith("--llmeval-") or name == "--snapshot-anchor"))


def refuse_idle_options(config: pytest.Config) -> None:
    """Refuse suite options on the command line of a run without ``--llmeval``.

    Those in ``addopts`` are settings for the runs that collect some: see `idle_settings`.

    Raises:
        pytest.UsageError: It has.
    """
    if idle := _idle(config.invocation_params.args):
        raise pytest.UsageError(
            f"found {', '.join(idle)} without --llmeval, expected both: no suite is collected without it. "
            "Add --llmeval, or llmeval = true in pytest's configuration"
        )


def idle_settings(config: pytest.Config) -> list[str]:
    """The options of this plugin in ``addopts`` that have no effect in this run."""
    settings = [*config.getini("addopts"), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]
    return [] if is_enabled(config) else _idle(settings)


def _is_foreign(path: Path) -> bool:
    """Whether a file on pytest's command line is the suite of another tool."""
    from pytest_llmeval.suites import is_foreign

    return is_foreign(path)


def refuse_suite_arguments(config: pytest.Config) -> None:
    """Refuse suite files on the command line of a run without ``--llmeval``.

    Raises:
        pytest.UsageError: One is.
    """
    for argument in config.args:
        path = config.invocation_params.dir / argument.partition("::")[0]
        if suite_patterns(config).match(path.name) and not _is_foreign(path):
            raise pytest.UsageError(
                f"{argument} is an eval suite: add --llmeval, or llmeval = true in pytest's configuration"
            )


def with_missing_flag(error: pytest.UsageError, config: pytest.Config) -> pytest.UsageError:
    """The usage error of a run without ``--llmeval``, with the flag to add if its ids lie in suite files."""
    files = {Path(argument.partition("::")[0]) for argument in config.args if ".py::" in argument}
    if is_enabled(config) or not any("llmeval" in file.read_text(errors="replace") for file in files if file.is_file()):
        return error
    return pytest.UsageError(
        *error.args, "cases of suites have ids with --llmeval, or llmeval = true in pytest's configuration"
    )


def nothing_to_run(config: pytest.Config) -> str:
    """The reason why pytest found no suite file to run."""
    places = [*dict.fromkeys(argument.partition("::")[0] for argument in config.args)]
    return suite_patterns(config).none_below(", ".join(places))


def refuse_misnamed_suites(config: pytest.Config) -> None:
    """Refuse files on the command line that look like suites but match no pattern: pytest would ignore them.

    Raises:
        pytest.UsageError: One does.
    """
    from pytest_llmeval.data import InputFile

    patterns = suite_patterns(config)
    for argument in config.args:
        name = argument.partition("::")[0]
        path = config.invocation_params.dir / name
        if not patterns.match(path.name) and path.is_file() and InputFile(path).looks_like_suite():
            raise pytest.UsageError(patterns.hint(name))


def report_paths(config: pytest.Config) -> list[Path]:
    """The report files that a run of pytest is to write.

    Raises:
        pytest.UsageError: One has a suffix for which there is no report.
    """
    from pytest_llmeval.core import EvaluatorError
    from pytest_llmeval.suites import Registry

    try:
        named = [report for report in config.getoption("llmeval_report") if report != AGENT]
        paths = [Registry.installed().report_path(name, shards=True) for name in named]
    except (EvaluatorError, ValueError) as error:
        raise pytest.UsageError(f"--llmeval-report: {error}") from None
    return [config.invocation_params.dir / path for path in paths]


def quiet_for_agents(config: pytest.Config) -> None:
    """Let pytest print no failures, warnings and summaries if the report for coding agents takes their place."""
    if AGENT in config.getoption("llmeval_report"):
        option = config.option
        option.verbose, option.tbstyle, option.reportchars, option.no_header = min(option.verbose, -1), "no", "N", True
        option.disable_warnings = True


def shard_of_run(config: pytest.Config) -> "Shard | None":
    """The shard of this run of pytest, or ``None``; xdist workers receive it from the main process.

    Raises:
        pytest.UsageError: The option is wrong, or something is to be approved, for which all shards are needed.
    """
    option = WorkerTerms.of_process(config).shard or config.option.llmeval_shard
    if option is None:
        return None
    from pytest_llmeval.run import Shard

    if config.option.update_snapshots:
        raise pytest.UsageError(
            "found --snapshot-update with --llmeval-shard, expected one of them: the scores of all shards are approved "
            "by 'llmeval merge --snapshot-update'"
        )
    try:
        return Shard.read(option, os.environ)
    except ValueError as error:
        raise pytest.UsageError(f"--llmeval-shard: {error}") from None


def longest_test_s(config: pytest.Config) -> float | None:
    """The seconds after which pytest-timeout ends a test; ``None`` if it does not."""
    if not config.pluginmanager.hasplugin("timeout"):
        return None
    option = config.getoption("timeout", None)
    for setting in (option, os.environ.get("PYTEST_TIMEOUT"), config.getini("timeout")):
        if setting is not None and setting != "":
            return float(setting) or None
    return None


AGENT = "agent"
"""Stands for the report for coding agents, which is printed, where the path of a file would."""
