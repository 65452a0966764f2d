"""What can be added to pytest-llmeval, with its types.

A plugin is a function ``register(registry)`` under the entry point ``pytest_llmeval.plugins``. What ships registers in
the same way. A ``conftest.py`` registers evaluators, checks, sources, mutators and suite keys for its folder, and
formats of reports, in the hook ``pytest_llmeval_register``.

    from pytest_llmeval import extend

    def register(registry: extend.Registry) -> None:
        registry.register_report_format(".rst", write_rst)
"""

__all__ = (
    "Answers",
    "AsyncJudge",
    "BatchTarget",
    "CaseChooser",
    "CaseFile",
    "CaseReport",
    "CaseRunner",
    "CheckKind",
    "ChoiceTerms",
    "ChooseCases",
    "Collected",
    "CommandResult",
    "Evaluator",
    "FileSource",
    "Gate",
    "GateKey",
    "GateOutcome",
    "GateScore",
    "ImportOptions",
    "ImportedSource",
    "ImportedSuite",
    "Importer",
    "Job",
    "JudgeSpec",
    "Keeper",
    "Key",
    "LoadedSuite",
    "MapCollected",
    "MapReported",
    "Mutator",
    "Next",
    "Patience",
    "PlanReport",
    "PlanRun",
    "Plugin",
    "ReadAnswer",
    "Registry",
    "ReplyStore",
    "Reported",
    "ResultFormat",
    "RunReport",
    "RunScope",
    "RunWatcher",
    "ScoreGate",
    "Scores",
    "SendScores",
    "Source",
    "StoredJudgement",
    "SuiteReading",
    "SuiteReport",
    "Suites",
    "TargetSpec",
    "TextForm",
    "TraceTarget",
    "WatchRun",
    "WorkspaceTarget",
    "csv_lines",
    "gate_rule",
    "owned",
    "read_score",
    "read_yes_no",
)

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from pathlib import Path

    from pytest_llmeval.baselines import Keeper
    from pytest_llmeval.cli import CommandResult
    from pytest_llmeval.core import Evaluator, GateOutcome, Mutator
    from pytest_llmeval.data import CaseFile, FileSource, Source, csv_lines
    from pytest_llmeval.evaluators import CheckKind
    from pytest_llmeval.exchange import ImportedSource, ImportedSuite, ImportOptions, ResultFormat, Scores
    from pytest_llmeval.gates import Gate, GateKey, GateScore, ScoreGate, TextForm, gate_rule, owned
    from pytest_llmeval.judges import (
        AsyncJudge,
        JudgeSpec,
        Patience,
        ReplyStore,
        StoredJudgement,
        read_score,
        read_yes_no,
    )
    from pytest_llmeval.plugin import CaseChooser, PlanReport, RunWatcher
    from pytest_llmeval.reports import CaseReport, RunReport, SuiteReport
    from pytest_llmeval.run import (
        Answers,
        CaseRunner,
        ChoiceTerms,
        Collected,
        Job,
        Next,
        Reported,
        RunScope,
        Suites,
    )
    from pytest_llmeval.suites import Key, LoadedSuite, SuiteReading
    from pytest_llmeval.targets import BatchTarget, TargetSpec

_HOMES = {
    "Answers": "run",
    "AsyncJudge": "judges",
    "BatchTarget": "targets",
    "CaseChooser": "plugin",
    "CaseFile": "data",
    "CaseReport": "reports",
    "CaseRunner": "run",
    "CheckKind": "evaluators",
    "ChoiceTerms": "run",
    "Collected": "run",
    "CommandResult": "cli",
    "Evaluator": "core",
    "FileSource": "data",
    "Gate": "gates",
    "GateKey": "gates",
    "GateOutcome": "core",
    "GateScore": "gates",
    "ImportOptions": "exchange",
    "ImportedSource": "exchange",
    "ImportedSuite": "exchange",
    "Job": "run",
    "JudgeSpec": "judges",
    "Keeper": "baselines",
    "Key": "suites",
    "LoadedSuite": "suites",
    "Mutator": "core",
    "Next": "run",
    "Patience": "judges",
    "PlanReport": "plugin",
    "ReplyStore": "judges",
    "Reported": "run",
    "ResultFormat": "exchange",
    "RunReport": "reports",
    "RunScope": "run",
    "RunWatcher": "plugin",
    "ScoreGate": "gates",
    "Scores": "exchange",
    "Source": "data",
    "StoredJudgement": "judges",
    "SuiteReading": "suites",
    "SuiteReport": "reports",
    "Suites": "run",
    "TargetSpec": "targets",
    "TextForm": "gates",
    "csv_lines": "data",
    "gate_rule": "gates",
    "owned": "gates",
    "read_score": "judges",
    "read_yes_no": "judges",
}
"""The package of each name that is defined elsewhere; it is imported when it is used."""

_E = TypeVar("_E", bound="type[Evaluator] | str")
_S = TypeVar("_S", bound="type[Source] | str")
_C = TypeVar("_C", bound="Callable[..., Any] | CheckKind")
_M = TypeVar("_M", bound="Mutator | str")
_G = TypeVar("_G", bound="type[Gate]")

ImportString: TypeAlias = str
"""An import string ``package.module:name``: the module is imported when the name is used."""


class ChooseCases(Protocol):
    """Return the chooser of the cases to run; hook ``chosen``, with ``--llmeval-affected``; the last one counts."""

    def __call__(self, suites: "Suites", terms: "ChoiceTerms", /) -> "CaseChooser": ...


class MapCollected(Protocol):
    """Return the records to judge; hook ``collected``, once all cases have run."""

    def __call__(self, collected: "Collected", scope: "RunScope", /) -> "Collected": ...


class MapReported(Protocol):
    """Return the report to write; hook ``reported``, once the run is judged."""

    def __call__(self, reported: "Reported", scope: "RunScope", /) -> "Reported": ...


class WatchRun(Protocol):
    """Return a watcher of records; hook ``watched``, while cases of suites that may stop run.

    ``post`` takes the key of a suite with its part that stops, and the number of cases after which it does.
    """

    def __call__(self, suites: "Suites", keeper: "Keeper", post: "Callable[..., None]", /) -> "RunWatcher": ...


class PlanRun(Protocol):
    """Return a plan in place of a run; hook ``planned``, with ``--llmeval-plan``; the last one counts."""

    def __call__(self, runner: "CaseRunner", cases: "Sequence[Any]", keeper: "Keeper", /) -> "PlanReport": ...


class WorkspaceTarget(Protocol):
    """Return the target of a suite with a ``workspace``; hook ``placed``; the last one counts."""

    def __call__(self, spec: "TargetSpec", folder: "Path", /) -> "BatchTarget": ...


class TraceTarget(Protocol):
    """Answer a job with its spans, by the next link; hook ``traced``, for suites with ``traces: true``."""

    async def __call__(self, job: "Job", ask: "Next", /) -> "Answers": ...


class ReadAnswer(Protocol):
    """Return the prediction in an object that a target returned, or the object itself; hook ``read``."""

    def __call__(self, value: Any, /) -> Any: ...


class SendScores(Protocol):
    """Send a report and return a line for the summary; hook ``sent``, with ``--llmeval-otel``."""

    def __call__(self, report: "RunReport", suites: "Suites", /, *, style: str, texts: bool) -> str: ...


class Importer(Protocol):
    """Return what a file of another tool becomes; ``None`` if another file includes it."""

    def __call__(self, path: "Path", display_path: str, options: "ImportOptions", /) -> "ImportedSource | None": ...


class Registry(Protocol):
    """The registry as a plugin uses it; every function may be an import string."""

    def register(self, evaluator: _E, name: str = "") -> _E:
        """Add an evaluator: metrics of a case and of a suite."""

    def register_check(self, check: _C, name: str = "") -> _C:
        """Add a check: an assertion on one answer."""

    def register_source(self, source: _S, name: str = "") -> _S:
        """Add a source: a format of case files."""

    def register_mutator(self, mutator: _M) -> _M:
        """Add a mutator: a change that makes answers wrong."""

    def register_command(
        self,
        name: str,
        add_arguments: "ImportString | Callable[[ArgumentParser], None]",
        help: str,  # noqa: A002 (argparse's word)
        group: str = "advanced",
    ) -> None:
        """Add a subcommand of ``llmeval``."""

    def register_gate_rule(self, rule: _G) -> _G:
        """Add a gate rule: keys, a text form and a verdict."""

    def register_key(self, name: str, key: "Key") -> None:
        """Add a key to the top level of suite files; hooks read it as ``suite.extra[name]``."""

    def register_report_format(
        self, name: str, write: "ImportString | Callable[[RunReport, Path], str | None]", names: str = ""
    ) -> None:
        """Add a report format for ``--llmeval-report``."""

    def register_results_formats(self, tables: "ImportString | Mapping[str, ResultFormat]") -> None:
        """Add formats of other runners' results for ``llmeval gate``."""

    def register_importer(self, name: str, importer: "ImportString | Importer", patterns: Sequence[str] = ()) -> None:
        """Add a format of ``llmeval import``."""

    def register_export(
        self,
        name: str,
        add_arguments: "ImportString | Callable[[ArgumentParser], None]",
        help: str,  # noqa: A002 (argparse's word)
    ) -> None:
        """Add a tool of ``llmeval export``."""

    def register_provider(
        self, name: str, connect: "ImportString | Callable[[JudgeSpec, Patience], AsyncJudge]"
    ) -> None:
        """Add a provider of judge models."""

    def register_store(
        self, name: str, store: "ImportString | Callable[[Path], ReplyStore]", coordination: str = ""
    ) -> None:
        """Add a store of judges' replies."""

    @overload
    def extend(self, point: Literal["chosen"], function: "ImportString | ChooseCases") -> None: ...
    @overload
    def extend(
        self,
        point: Literal["collected"],
        function: "ImportString | MapCollected",
        needed: "Callable[[Collected, RunScope], bool] | None" = None,
    ) -> None: ...
    @overload
    def extend(
        self,
        point: Literal["reported"],
        function: "ImportString | MapReported",
        needed: "Callable[[Reported, RunScope], bool] | None" = None,
    ) -> None: ...
    @overload
    def extend(self, point: Literal["watched"], function: "ImportString | WatchRun") -> None: ...
    @overload
    def extend(self, point: Literal["planned"], function: "ImportString | PlanRun") -> None: ...
    @overload
    def extend(self, point: Literal["placed"], function: "ImportString | WorkspaceTarget") -> None: ...
    @overload
    def extend(self, point: Literal["traced"], function: "ImportString | TraceTarget") -> None: ...
    @overload
    def extend(self, point: Literal["read"], function: "ImportString | ReadAnswer") -> None: ...
    @overload
    def extend(self, point: Literal["sent"], function: "ImportString | SendScores") -> None: ...


Plugin: TypeAlias = Callable[[Registry], None]
"""A plugin: adds what it brings to the registry."""


if not TYPE_CHECKING:  # for a type checker every name would exist

    def __getattr__(name: str) -> object:
        """Import a class of this page when it is first used."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"pytest_llmeval.{_HOMES[name]}"), name)
        return value
