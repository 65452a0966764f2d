"""The registry of everything that can be added."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import fields
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from msgspec import UNSET, Struct

from pytest_llmeval.core import (
    AnyError,
    Evaluator,
    EvaluatorError,
    LlmevalError,
    Metric,
    Mutator,
    resolve,
    shown_path,
    unknown_name,
    with_value,
)
from pytest_llmeval.data import SOURCES, DeclaredType, Source
from pytest_llmeval.evaluators import EVALUATORS
from pytest_llmeval.reports import ReportFormat

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from pytest_llmeval.evaluators import CheckKind
    from pytest_llmeval.gates import Gate
    from pytest_llmeval.judges import AsyncJudge, JudgeSpec, Patience, ReplyStore
    from pytest_llmeval.reports import RunReport


EVALUATORS_GROUP = "pytest_llmeval.evaluators"
PLUGINS_GROUP = "pytest_llmeval.plugins"

_PACKAGE = "pytest_llmeval"

_LOADING: ContextVar[str] = ContextVar("_LOADING", default="")
"""The entry point that is being loaded."""

_SHARED: dict[tuple[str, str], str] = {}
"""Kind and name to the owner of what all registries of the process share."""

_EXTENSIONS = ("pytest_llmeval.workbench:register",)
"""What ships and joins every run; it registers as the plugins of users do."""

_UNTIL_NAMED = (
    "pytest_llmeval.cli:register",
    "pytest_llmeval.exchange:register",
    "pytest_llmeval.tasks:register",
)
"""What ships and is imported when a name is looked up that is not known yet, or when names are listed or added."""

_E = TypeVar("_E", bound=type[Evaluator] | str)
_S = TypeVar("_S", bound=type[Source] | str)
_F = TypeVar("_F", bound="Callable[..., Any] | CheckKind")
_M = TypeVar("_M", bound=Mutator | str)
_G = TypeVar("_G", bound="type[Gate]")
_T = TypeVar("_T")


class Command(Struct, frozen=True):
    """A subcommand of ``llmeval``.

    Attributes:
        help: One line for the list of commands.
        add_arguments: Function, or its import string, that adds arguments to the parser of the command and sets the
            default ``run``: a function from the parsed options to the exit code, or to a ``CommandResult``. With the
            default ``bulk=True``, the garbage collector of the process is paused while it runs: for commands that make
            many objects and keep nearly all of them.
        group: Its heading in the list of commands.
    """

    help: str
    add_arguments: "str | Callable[[ArgumentParser], None]"
    group: str = "advanced"

    def configure(self, parser: "ArgumentParser") -> None:
        """Add the arguments of the command to its parser."""
        add = resolve(self.add_arguments)
        add(parser)


EXTENSION_POINTS = ("chosen", "collected", "reported", "watched", "planned", "placed", "traced", "read", "sent")
"""Places at which extensions join a run; see `Registry.extend`."""

_REQUESTED = frozenset({"placed", "traced", "read", "sent"})
"""Extension points of few runs, for which the plugins that wait until they are needed are imported."""


class Extension(Struct, frozen=True):
    """A function that joins a run at one of its extension points.

    Attributes:
        point: The extension point.
        function: The function, or its import string.
        needed: Whether it applies, from the same arguments; ``None`` if it always does.
    """

    point: str
    function: "str | Callable[..., Any]"
    needed: Callable[..., bool] | None = None

    def applies(self, *arguments: Any) -> bool:
        """Whether the extension of a run has something to do.

        Raises:
            LlmevalError: The function that decides it fails.
        """
        return self.needed is None or bool(self._call(self.needed, *arguments))

    def load(self) -> Callable[..., Any]:
        """The function of the extension."""
        function: Callable[..., Any] = resolve(self.function)
        return function

    def make(self, kind: type[Any], *arguments: Any, **options: Any) -> Any:
        """What the function of the extension makes.

        Args:
            kind: The type of what it makes, or a protocol with its members.
            arguments: Of the function.
            options: Of the function, by name.

        Raises:
            LlmevalError: The function says what is wrong; or it fails, or makes something else, with its name.
        """
        value = self._call(lambda: self.load()(*arguments, **options))
        if not isinstance(value, kind):
            what = LlmevalError(f"it returned {type(value).__name__}, expected {kind.__name__}")
            raise LlmevalError(self.failure(what))
        return value

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of the plugin returns; its errors name the extension, unless they are worded for users."""
        try:
            return function(*arguments)
        except LlmevalError:
            raise
        except Exception as error:
            raise LlmevalError(self.failure(error)) from error

    def failure(self, error: Exception) -> str:
        """The message on an error of the function."""
        name = self.function
        if not isinstance(name, str):
            name = f"{name.__module__}:{getattr(name, '__qualname__', type(name).__qualname__)}"
        return f"the extension {name} ({self.point}) failed: {AnyError(error).message()}"


class ImportFormat(Struct, frozen=True):
    """A registered format that ``llmeval import`` reads.

    Attributes:
        function: The function from path, display path and options to what was imported, or its import string.
        patterns: Of its files in a folder; none if the folder itself is the source.
    """

    function: "str | Callable[..., Any]"
    patterns: tuple[str, ...]


Decided: TypeAlias = Literal["scores", "verdicts", "form"]
"""What a key of a suite decides, the first that applies; ``form`` is what a suite consists of, and how it runs."""


class Key(Struct, frozen=True):
    """A key of the top level of suite files, as it is registered.

    Attributes:
        meaning: Its value in one sentence of Markdown, for the documentation and for editors.
        otherwise: The value without the key, in words, for the documentation.
        type: Type of the value in the file, validated strictly; default: that of the value that is read, or any if
            there are forms.
        default: Value in a file without the key; default: that of the value that is read if its type is, else nothing.
        read: ``(SuiteReading, value) -> value``: reads the validated value, and adds faults to the reading, or raises
            `ValueError`; default: the value is carried unchanged.
        forms: What the value may be, where its reader finds out; of a list, what its members may be. A type, a mapping
            of JSON Schema, or the name of a grammar of the JSON Schema of suite files.
        least: The smallest number of members of a list.
        python: Type in Python where it is not that of the file; ``None`` if `suite` has another parameter for it.
        null: Whether null is a value of its own, and not the absence of the key.
        decides: What it decides. After a change of a key that decides scores, a run of affected cases runs all of them,
            and `llmeval guard` asks what the change loosens. Verdicts are found anew in every run; the form is compared
            part by part.
        carried: Whether `LoadedSuite` has a field of this name.
    """

    meaning: str
    otherwise: str = "none"
    type: Any = UNSET
    default: Any = None
    read: Callable[[Any, Any], Any] | None = None
    forms: tuple[Any, ...] = ()
    least: int = 0
    python: str | None = ""
    null: bool = False
    decides: Decided = "scores"
    carried: bool = True


class _Classes:
    """Registered classes of one kind by name; import strings are imported at the first use."""

    def __init__(
        self, base: type, attribute: str, base_name: str, error: type[LlmevalError], known: Mapping[str, str | type]
    ) -> None:
        self.kind = base.__name__.lower()
        self.base = base
        self.attribute = attribute
        self.base_name = base_name
        self.error = error
        self.known = dict(known)

    def add(self, kind: str | type, name: str) -> None:
        """Add a class under its own name, or an import string under `name`."""
        if isinstance(kind, str):
            if not name or kind.count(":") != 1:
                raise self.error(f"found {kind!r}, name {name!r}, expected 'package.module:Class' and its name")
        else:
            name = self.checked(kind)
        before = self.known.get(name, kind)
        if before != kind and self.get(name) is not resolve(kind):
            owner = f"{self.get(name).__qualname__} of {_home_of(self.get(name))}"
            raise self.error(f"the {self.kind} name {name!r} is taken by {owner}: choose another")
        self.known[name] = kind

    def get(self, name: str) -> Any:
        """The registered class of a name."""
        candidate = self.known.get(name)
        if candidate is None:
            raise self.error(unknown_name(self.kind, name, self.known))
        if isinstance(candidate, str):
            try:
                loaded = resolve(candidate)
            except Exception as error:
                raise self.error(f"{self.kind} {name!r} ({candidate}): {AnyError(error).full_text}") from error
            if self.checked(loaded) != name:
                raise self.error(
                    f"found {candidate} registered as {name!r}, expected {self.checked(loaded)!r}, its name"
                )
            candidate = self.known[name] = loaded
        return candidate

    def checked(self, candidate: Any) -> str:
        """The name that a registered class gives itself, if it is one that can be used."""
        if not (isinstance(candidate, type) and issubclass(candidate, self.base)):
            raise self.error(f"found {candidate!r}, expected a subclass of {self.base_name}")
        name = getattr(candidate, self.attribute, None)
        if not isinstance(name, str) or not name:
            raise self.error(
                f"{candidate.__qualname__}: found {self.attribute} {name!r}, "
                f"expected a class attribute {self.attribute} = 'text'"
            )
        if lacking := sorted(getattr(candidate, "__abstractmethods__", ())):
            raise self.error(f"{candidate.__qualname__}: missing methods: {', '.join(lacking)}")
        return name


class Registry:
    """Evaluators, sources and commands by name.

    A class can be registered directly or as an import string, which is imported when a suite uses it.

    Example:
        >>> registry = Registry()
        >>> registry.register("pytest_llmeval.evaluators:TextEvaluator", name="text")
        'pytest_llmeval.evaluators:TextEvaluator'
        >>> list(registry), registry.get("text").__name__
        (['text'], 'TextEvaluator')
    """

    def __init__(
        self,
        evaluators: Mapping[str, str | type[Evaluator]] = {},
        sources: Mapping[str, str | type[Source]] = {},
        commands: Mapping[str, Command] = {},
        checks: "Mapping[str, CheckKind] | None" = None,
        mutators: Sequence[Mutator | str] = (),
        extensions: Mapping[str, Sequence[Extension]] = {},
        until_named: Sequence[str] = (),
    ) -> None:
        self._evaluators = _Classes(Evaluator, "name", "pytest_llmeval.Evaluator", EvaluatorError, evaluators)
        self._sources = _Classes(Source, "format", "pytest_llmeval.data.formats.Source", LlmevalError, sources)
        self._commands = dict(commands)
        self._checks = dict(checks or {})
        self._mutators = list(mutators)
        self._extensions = {point: list(extensions.get(point, ())) for point in EXTENSION_POINTS}
        self._until_named = tuple(until_named)
        self._keys: dict[str, Key] = {}
        self._importers: dict[str, ImportFormat] = {}
        self._exports: dict[str, Command] = {}
        self._results: list[tuple[str | Mapping[str, Any], str]] = []
        self._owners: dict[tuple[str, str], str] = {}
        self._is_copy = False

    def _refuse_in_copy(self, kind: str) -> None:
        """Raise `LlmevalError` in a copy, as conftests get it: what runs as a whole use would never look there."""
        if self._is_copy:
            raise LlmevalError(
                f"{kind} cannot be added here: it joins whole runs and commands, so register it in an entry point of "
                f"the group {PLUGINS_GROUP}"
            )

    def defer(self, plugins: Sequence[str]) -> None:
        """Import plugins, given as import strings, only when a name that is not known yet may be theirs."""
        self._until_named += tuple(plugins)

    def _complete(self) -> None:
        """Import the plugins that wait until a name of theirs may be meant."""
        waiting, self._until_named = self._until_named, ()
        is_copy, self._is_copy = self._is_copy, False  # what ships adds itself to copies, too
        for plugin in waiting:
            resolve(plugin)(self)
        self._is_copy = is_copy

    def register(self, evaluator: _E, name: str = "") -> _E:
        """Add an evaluator to what suites can name.

        Args:
            evaluator: A subclass of `Evaluator`, known by its attribute ``name``; or ``package.module:Class``.
            name: Of a class that is given by an import string: its attribute ``name``.

        Returns:
            `evaluator`, so that the method can decorate a class.

        Raises:
            EvaluatorError: It is no subclass of `Evaluator`, has no name, lacks a method, or the name is taken.
        """
        self._complete()
        self._evaluators.add(evaluator, name)
        return evaluator

    def register_source(self, source: _S, name: str = "") -> _S:
        """Add a source: a format of data files.

        Args:
            source: A subclass of `Source`, known by its attribute ``format``; or ``package.module:Class``.
            name: Of a class that is given by an import string: its attribute ``format``.

        Returns:
            `source`, so that the method can decorate a class.

        Raises:
            LlmevalError: It is no subclass of `Source`, has no name, lacks a method, or the name is taken.
        """
        self._complete()
        self._sources.add(source, name)
        return source

    def register_check(self, check: _F, name: str = "") -> _F:
        """Add a kind of check.

        Args:
            check: ``answer -> met``, or ``answer, argument -> met``; ``met`` is true or false, or a pair of that and a
                text that says what was found. Annotate ``answer`` as ``str`` to get texts only, and ``argument`` with
                the type that suite files must give. Or a kind that has been made already.
            name: Its key in suite files; default: the function's name.

        Returns:
            `check`, so that the method can decorate a function.

        Raises:
            EvaluatorError: It takes other parameters, or the name is taken or cannot be used.
        """
        from pytest_llmeval.evaluators import CheckKind

        kind = CheckKind.from_function(check, name)
        known = self.checks.get(kind.name, kind)
        if known.prepare != kind.prepare:
            owner = self.owner_of("check", kind.name)
            raise EvaluatorError(f"the check name {kind.name!r} is taken by {owner}: choose another")
        self._checks[kind.name] = kind
        self._owners.setdefault(("check", kind.name), _registrant())
        return check

    def register_mutator(self, mutator: _M) -> _M:
        """Add a mutator: a change of answers that makes them wrong by construction, or a rewrite that must not fail.

        Args:
            mutator: The mutator; or ``package.module:NAME``, the import string of one or of a sequence of them, which
                is imported when answers are mutated.

        Returns:
            `mutator`.

        Raises:
            LlmevalError: It is neither.
        """
        self._complete()
        if isinstance(mutator, str):
            if mutator.count(":") != 1:
                raise LlmevalError(f"found {mutator!r}, expected a Mutator or 'package.module:NAME'")
        elif not isinstance(mutator, Mutator):
            raise LlmevalError(f"found {mutator!r}, expected a pytest_llmeval.Mutator")
        self._mutators.append(mutator)
        return mutator

    def register_command(
        self,
        name: str,
        add_arguments: "str | Callable[[ArgumentParser], None]",
        help: str,  # noqa: A002 (argparse's word)
        group: str = "advanced",
    ) -> None:
        """Add a subcommand of ``llmeval``; see `Command`.

        The command line reads the entry points of installed packages, and no conftest.

        Raises:
            LlmevalError: The name is taken, or this is a copy, as conftests get it.
        """
        self._refuse_in_copy("a command")
        self._complete()
        _check_function(add_arguments, "command", name)
        _add(self._commands, self._owners, "command", name, Command(help, add_arguments, group))

    def register_gate_rule(self, rule: _G) -> _G:
        """Add a rule of gates for all suites of the process.

        Args:
            rule: A subclass of `Gate` with keys, a text form and a verdict of its own.

        Returns:
            `rule`, so that the method can decorate a class.

        Raises:
            LlmevalError: It is no rule, or another rule has the same keys and name.
        """
        from pytest_llmeval.gates import RULES

        RULES.add(rule, _registrant())
        return rule

    def register_key(self, name: str, key: Key) -> None:
        """Add a key to the top level of suite files; `LoadedSuite.extra` has its values for functions that join a run.

        Args:
            name: The key; letters, digits and underscores.
            key: Its meaning, type and default.

        Raises:
            LlmevalError: It has no type or a default of another one, what it decides is unknown, the name cannot be
                used, or another plugin has added it.
        """
        if getattr(key, "type", UNSET) == UNSET:
            raise LlmevalError(f"suite key {name!r}: found {key!r}, expected a pytest_llmeval.extend.Key with a type")
        try:
            _ = key.type | None
        except TypeError:
            raise LlmevalError(f"suite key {name!r}: found the type {key.type!r}, expected one such as str") from None
        if not re.fullmatch("[a-z][a-z0-9_]*", name):
            raise LlmevalError(f"found the suite key {name!r}, expected letters a to z, digits and underscores")
        if key.decides not in get_args(Decided):
            why = unknown_name("value of decides", key.decides, get_args(Decided))
            raise LlmevalError(f"suite key {name!r}: {why}")
        if key.default is not None and key.read is None:
            try:
                DeclaredType(key.type).convert(key.default)
            except LlmevalError:
                raise LlmevalError(f"suite key {name!r}: found the default {key.default!r} of another type") from None
        _add(self._keys, self._owners, "suite key", name, key)

    def register_report_format(
        self, name: str, write: "str | Callable[[RunReport, Path], str | None]", names: str = ""
    ) -> None:
        """Add a format of reports for ``--llmeval-report``.

        Args:
            name: The suffix of its files, such as ``.rst``, or the usual name of a file, such as ``ctrf.json``.
            write: ``(RunReport, Path) -> note``, or its import string; the note says what the file lacks, if anything.
            names: Pattern of the ends of its files before the suffix, if the suffix alone does not decide.

        Raises:
            LlmevalError: The name is taken or no suffix, the pattern is malformed, or the function cannot be called.
        """
        if name and "." not in name:
            raise LlmevalError(f"found the report format name {name!r}, expected .{name}, or the name of a file")
        if name == ReportFormat.SHARD_SUFFIX:
            raise LlmevalError(f"the report format name {name!r} is taken by shard files: choose another")
        if name.startswith(".") and Path(f"report{name}").suffix != name:
            raise LlmevalError(f"found the report format name {name!r}, expected one suffix, {Path(name).suffix}")
        try:
            re.compile(names)
        except re.error as error:
            raise LlmevalError(f"report format {name!r}: the pattern names {names!r} is malformed: {error}") from None
        _check_function(write, "report format", name)
        _add(ReportFormat.KNOWN, _SHARED, "report format", name, ReportFormat(write, names=names))

    def register_store(self, name: str, store: "str | Callable[[Path], ReplyStore]", coordination: str = "") -> None:
        """Add a store of judges' replies, which ``llmeval_cache`` selects as ``NAME:PATH``.

        Args:
            name: At least two lower-case letters.
            store: Called with the path, or its import string; returns a `ReplyStore`.
            coordination: Path of an SQLite database through which the processes of a run share calls, relative to the
                store; empty if the store is such a database.

        Raises:
            LlmevalError: The name is taken or cannot precede a path.
        """
        from pytest_llmeval.judges import StoreKind

        if not re.fullmatch("[a-z]{2,}", name):
            raise LlmevalError(f"found the store name {name!r}, expected two or more letters a to z")
        _check_function(store, "store", name)
        _add(StoreKind.KNOWN, _SHARED, "store", name, StoreKind(store, coordination))

    def register_provider(self, name: str, connect: "str | Callable[[JudgeSpec, Patience], AsyncJudge]") -> None:
        """Add a provider of judge models, which suites select as ``model: NAME:MODEL``.

        Args:
            name: What precedes the colon.
            connect: ``(JudgeSpec, Patience) -> client``, or its import string; opens and sends nothing. ``Patience``
                holds the retries of the run for clients that want them.

        Raises:
            LlmevalError: The name is taken.
        """
        from pytest_llmeval.judges import JudgeSpec

        _check_function(connect, "judge provider", name)
        _add(JudgeSpec.PROVIDERS, _SHARED, "judge provider", name, connect)

    def register_results_formats(self, tables: "str | Mapping[str, Any]") -> None:
        """Add formats of other runners' results, which ``llmeval gate`` and the source ``results`` read.

        This one reads ``{"tallies": [{"name": "q1", "points": 0.5}]}``::

            points = extend.Scores("", "=points", "points")
            tally = extend.ResultFormat("tally", "tally 1.0", {"tallies": ("tallies.*",)}, (points,), case="name")
            registry.register_results_formats({"tally": tally})

        Args:
            tables: Name to the table of the format; or the import string of such a mapping, which is imported when
                results are read.

        Raises:
            LlmevalError: A name is taken (for an import string, when results are read), or this is a copy, as
                conftests get it.
        """
        self._refuse_in_copy("a results format")
        self._complete()
        self._results.append((tables, _registrant()))
        if not isinstance(tables, str):
            _ = self.results_formats

    def register_importer(self, name: str, importer: "str | Callable[..., Any]", patterns: Sequence[str] = ()) -> None:
        """Add a format of files that ``llmeval import`` turns into suites.

        Args:
            name: Its name on the command line.
            importer: ``(path, display path, ImportOptions) -> ImportedSource``, or its import string; ``None`` for a
                file that another one includes.
            patterns: Of its files in a folder; none if the folder itself is the source.

        Raises:
            LlmevalError: The name is taken, or this is a copy, as conftests get it.
        """
        self._refuse_in_copy("an import format")
        self._complete()
        _check_function(importer, "import format", name)
        _add(self._importers, self._owners, "import format", name, ImportFormat(importer, tuple(patterns)))

    def register_export(
        self,
        name: str,
        add_arguments: "str | Callable[[ArgumentParser], None]",
        help: str,  # noqa: A002 (argparse's word)
    ) -> None:
        """Add a tool to which ``llmeval export`` takes reports; its function works as that of a command.

        Raises:
            LlmevalError: The name is taken, or this is a copy, as conftests get it.
        """
        self._refuse_in_copy("an export")
        self._complete()
        _check_function(add_arguments, "export", name)
        _add(self._exports, self._owners, "export", name, Command(help, add_arguments))

    def extend(
        self, point: str, function: "str | Callable[..., Any]", needed: Callable[..., bool] | None = None
    ) -> None:
        """Join a run at an extension point.

        - ``chosen``: ``(Suites, ChoiceTerms) -> CaseChooser``, before a run of affected cases; the last one registered
          chooses.
        - ``collected``: ``(Collected, RunScope) -> Collected``, before the run is judged.
        - ``reported``: ``(Reported, RunScope) -> Reported``, at its end.
        - ``watched``: ``(Suites, Keeper, post) -> RunWatcher``, while cases of suites that may stop run; ``post`` takes
          what stops together, and after how many cases.
        - ``planned``: ``(CaseRunner, cases, Keeper) -> PlanReport``, in place of a run; the last one registered plans.
        - ``placed``: ``(TargetSpec, Path) -> BatchTarget``, the target of a suite with a ``workspace``; ``Path`` is the
          folder of the suite. The last one registered answers.
        - ``traced``: a `Link` around the targets of suites with ``traces: true``; the last one registered answers. What
          it sets as `Job.around` is entered around the work of a target.
        - ``read``: ``(value) -> prediction``, for objects that targets return, also as ``messages`` of a mapping. An
          unknown object is returned unchanged.
        - ``sent``: ``(RunReport, Suites, style, texts) -> str``, after the report files of a run with
          ``--llmeval-otel``; returns a line for the summary.

        As for commands, the entry points of installed packages are read, and no conftest.

        Args:
            point: The extension point.
            function: The function, or its import string, which is imported when the function is needed. The types of
                stages are in `pytest_llmeval.run._stages`.
            needed: Whether a function of a stage has something to do, from the same arguments; default: it always has.

        Raises:
            LlmevalError: There is no such point, the function cannot be called, or this is a copy, as conftests get it.
        """
        self._refuse_in_copy("an extension")
        if point not in EXTENSION_POINTS:
            raise LlmevalError(unknown_name("extension point", point, EXTENSION_POINTS))
        _check_function(function, "extension", point)
        if point in _REQUESTED:
            self._complete()  # what ships comes first, so that of a point where the last one counts a plugin can win
        self._extensions[point].append(Extension(point, function, needed))

    def get(self, name: str) -> type[Evaluator]:
        """The evaluator class of a name.

        Raises:
            EvaluatorError: There is none, with the nearest name; or it cannot be imported.
        """
        if name not in self._evaluators.known:
            self._complete()
        evaluator: type[Evaluator] = self._evaluators.get(name)
        return evaluator

    def metrics_of(self, name: str) -> list[Metric]:
        """The metrics of an evaluator with default options: all that it has, unless some need other options.

        Raises:
            EvaluatorError: There is no such evaluator, or it cannot be imported.
            ValueError: It cannot be made without options.
        """
        return list(widest(self.get(name), {}).describe())

    def source(self, name: str) -> type[Source]:
        """The source class of a format.

        Raises:
            LlmevalError: There is none, with the nearest name; or it cannot be imported.
        """
        if name not in self._sources.known:
            self._complete()
        source: type[Source] = self._sources.get(name)
        return source

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of evaluators."""
        self._complete()
        return iter(sorted(self._evaluators.known))

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of sources."""
        self._complete()
        return tuple(sorted(self._sources.known))

    @property
    def checks(self) -> "Mapping[str, CheckKind]":
        """The kinds of checks by name."""
        from pytest_llmeval.evaluators import Checks

        return Checks.kinds(self._checks)

    @property
    def mutators(self) -> tuple[Mutator, ...]:
        """The mutators, in the order of their registration.

        Raises:
            LlmevalError: One cannot be imported, is none, or has the name of another.
        """
        self._complete()
        by_name: dict[str, Mutator] = {}
        for registered in self._mutators:
            for mutator in _mutators_of(registered):
                if by_name.setdefault(mutator.name, mutator) != mutator:
                    owner = _home_of(by_name[mutator.name].change)
                    raise LlmevalError(f"the mutator name {mutator.name!r} is taken by {owner}: choose another")
        return tuple(by_name.values())

    @property
    def keys(self) -> Mapping[str, Key]:
        """The keys of suite files that plugins add, by name."""
        return dict(self._keys)

    @property
    def report_formats(self) -> Mapping[str, ReportFormat]:
        """The formats of reports, by suffix or usual file name, sorted."""
        return dict(sorted(ReportFormat.KNOWN.items()))

    def report_path(self, text: str, *, shards: bool = False) -> Path:
        """Read the path of a report.

        Args:
            text: The path.
            shards: Whether a shard file may be asked for in the same way.

        Raises:
            ValueError: No report has its suffix or its name.
        """
        suffixes = [name for name in self.report_formats if name.startswith(".")]
        suffixes += [ReportFormat.SHARD_SUFFIX] if shards else []
        if Path(text).suffix not in suffixes:
            raise ValueError(f"found suffix {Path(text).suffix!r}, expected one of {', '.join(suffixes)}")
        if re.search(r"(?<![A-Za-z])error[_-]analysis\.json$", text):  # the files of this name have another form
            raise ValueError(f"found the name {Path(text).name!r}, expected one that ends in errors.json")
        return Path(text)

    @property
    def results_formats(self) -> Mapping[str, Any]:
        """The tables of results formats by name, in the order of their registration.

        Raises:
            LlmevalError: Two formats have one name, or what is registered is no mapping.
        """
        self._complete()
        known: dict[str, Any] = {}
        owners: dict[tuple[str, str], str] = {}
        for tables, owner in self._results:
            named = resolve(tables)
            if not isinstance(named, Mapping):
                raise LlmevalError(f"found {tables!r} as results formats, expected a mapping of names to ResultFormat")
            for name, table in named.items():
                _add(known, owners, "results format", name, table, owner)
        return known

    @property
    def importers(self) -> "Mapping[str, ImportFormat]":
        """The import formats by name."""
        self._complete()
        return dict(self._importers)

    @property
    def exports(self) -> Mapping[str, Command]:
        """The tools of ``llmeval export`` by name."""
        self._complete()
        return dict(sorted(self._exports.items()))

    @property
    def commands(self) -> Mapping[str, Command]:
        """The commands by name."""
        self._complete()
        return dict(sorted(self._commands.items()))

    def owner_of(self, kind: str, name: str) -> str:
        """The line that registered a name, such as ``conftest.py:12``, or this package."""
        return self._owners.get((kind, name), _PACKAGE)

    def extensions(self, point: str) -> tuple[Extension, ...]:
        """The extensions of a point, in the order of their registration."""
        if point in _REQUESTED:
            self._complete()
        return tuple(self._extensions[point])

    @classmethod
    def installed_extensions(cls, point: str) -> tuple[Extension, ...]:
        """The extensions of installed packages; none if a plugin cannot be loaded: suite files report that."""
        try:
            return cls.installed().extensions(point)
        except EvaluatorError:
            return ()

    @classmethod
    def shipped(cls) -> "Registry":
        """A registry of what this package ships, without a look at installed packages, which takes longer."""
        registry = cls(EVALUATORS, SOURCES)
        for extension in _EXTENSIONS:
            resolve(extension)(registry)
        registry.defer(_UNTIL_NAMED)
        return registry

    @classmethod
    def installed(cls) -> "Registry":
        """A registry of what ships and what installed packages register by their entry points."""
        return _installed_registry().copy()

    def copy(self) -> "Registry":
        """A registry that can be added to without changing this one."""
        known = (self._evaluators.known, self._sources.known, self._commands, self._checks)
        copied = Registry(*known, self._mutators, self._extensions, self._until_named)
        copied._importers, copied._exports = dict(self._importers), dict(self._exports)
        copied._results, copied._keys = list(self._results), dict(self._keys)
        copied._owners, copied._is_copy = dict(self._owners), True
        return copied


def _check_function(function: Any, kind: str, name: str) -> None:
    """Raise `LlmevalError` unless what is registered under a name is a function, or its import string."""
    if function.count(":") != 1 if isinstance(function, str) else not callable(function):
        raise LlmevalError(f"{kind} {name!r}: found {function!r}, expected a function or 'package.module:function'")


def _add(
    table: dict[str, _T], owners: dict[tuple[str, str], str], kind: str, name: str, value: _T, owner: str = ""
) -> None:
    """Add a value to a table of the registry, with its owner; the same value may be added again.

    Raises:
        LlmevalError: The name is empty or taken.
    """
    if not name:
        raise LlmevalError(f"the name of a {kind} is empty")
    if name not in table:
        owners[kind, name] = owner or _registrant()
    if table.setdefault(name, value) != value:
        known = owners.get((kind, name), _PACKAGE)
        raise LlmevalError(f"the {kind} name {name!r} is taken by {known}: choose another")


def _registrant() -> str:
    """The code that calls the registry: this package, or a line such as ``conftest.py:12`` with its entry point."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    if frame is None or str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
        return _PACKAGE
    line = f"{shown_path(Path(frame.f_code.co_filename))}:{frame.f_lineno}"
    return f"entry point {point!r} ({line})" if (point := _LOADING.get()) else line


def _home_of(code: Any) -> str:
    """The file of a class or a function, or this package."""
    top = code.__module__.partition(".")[0]
    file = getattr(sys.modules.get(code.__module__), "__file__", None)
    return top if file is None or top == _PACKAGE else shown_path(Path(file))


def _mutators_of(registered: Mutator | str) -> Sequence[Mutator]:
    """The mutators that a registration gives, itself or by its import string.

    Raises:
        LlmevalError: They cannot be imported, or something else is there.
    """
    if isinstance(registered, Mutator):
        return [registered]
    try:
        loaded = resolve(registered)
    except Exception as error:
        raise LlmevalError(f"mutators {registered!r}: {AnyError(error).full_text}") from error
    listed = list(loaded) if isinstance(loaded, list | tuple) else [loaded]
    for mutator in listed:
        if not isinstance(mutator, Mutator):
            raise LlmevalError(f"mutators {registered!r}: found {mutator!r}, expected a pytest_llmeval.Mutator")
    return listed


def _register_evaluator(registry: Registry, loaded: Any) -> None:
    """Register the evaluator that an installed package's entry point names."""
    registry.register(loaded)


def _register_plugin(registry: Registry, loaded: Any) -> None:
    """Call the plugin that an installed package's entry point names, which registers what it adds."""
    if not callable(loaded):
        raise LlmevalError(f"found {loaded!r}, expected a function register(registry)")
    loaded(registry)


@cache
def _installed_registry() -> Registry:
    """The registry of what ships and what installed packages register, before callers add to a copy."""
    registry = Registry.shipped()
    points = entry_points()  # once: it reads the metadata of all installed packages
    for group, register in ((EVALUATORS_GROUP, _register_evaluator), (PLUGINS_GROUP, _register_plugin)):
        for point in sorted(points.select(group=group), key=lambda point: point.name):
            try:
                with with_value(_LOADING, point.name):
                    register(registry, point.load())
            except Exception as error:
                what = str(error) if isinstance(error, LlmevalError) else AnyError(error).text
                raise EvaluatorError(
                    f"entry point {point.name!r} of {group} ({point.value}): {what}{AnyError(error).line}"
                ) from error
    return registry


_IN_USE: ContextVar[Registry | None] = ContextVar("_IN_USE", default=None)


def using(registry: Registry) -> AbstractContextManager[None]:
    """A context in which `get_evaluator` uses the registry of a suite: options of evaluators may name others."""
    return with_value(_IN_USE, registry)


def build(evaluator: type[Evaluator], options: Mapping[str, Any]) -> Evaluator:
    """An evaluator from options, as a suite file states them.

    Raises:
        pydantic.ValidationError: An option is unknown, of the wrong type, or refused by the evaluator.
    """
    from pydantic import TypeAdapter

    built: Evaluator = TypeAdapter(evaluator).validate_python(dict(options)).resolve()
    return built


def widest(kind: type[Evaluator], options: Mapping[str, Any]) -> Evaluator:
    """Build an evaluator with all of its metrics, or with the default ones if some need other options.

    Raises:
        ValueError: It cannot be made with these options.
    """
    choices = _metric_choices(kind)
    with suppress(ValueError):
        return build(kind, {**options, "metrics": choices} if choices else options)
    return build(kind, options)


def _metric_choices(kind: type[Evaluator]) -> tuple[str, ...]:
    """All values of an evaluator's option ``metrics``; empty without this option, or if it takes any text."""
    if "metrics" not in {field.name for field in fields(kind)}:
        return ()
    try:
        items, *_ = get_args(get_type_hints(kind).get("metrics"))
    except (NameError, TypeError, ValueError):  # hints of users that only type checkers can resolve
        return ()
    choices: tuple[str, ...] = get_args(items)
    return choices


def get_evaluator(name: str, **options: Any) -> Evaluator:
    """An evaluator of the registry by name.

    Args:
        name: Such as ``text`` or ``classification``.
        options: Its options, as in a suite file.

    Raises:
        EvaluatorError: There is no such evaluator, or an option is wrong.

    Example:
        >>> get_evaluator("text", metrics=["f1"]).evaluate("Paris, France", "Paris")["f1"]
        0.6666666666666666
    """
    from pydantic import ValidationError

    evaluator = (_IN_USE.get() or Registry.installed()).get(name)
    try:
        return build(evaluator, options)
    except ValidationError as error:
        faults = "; ".join(DeclaredType(evaluator).option_faults(error))
        raise EvaluatorError(f"evaluator {name!r}: {faults}") from None


def register_tokenizer(name: str, tokenizer: Callable[[str], list[str]]) -> None:
    """Register a tokenizer, as evaluators are: suite files can name it in the option ``tokenizer`` of `text`.

    Args:
        name: Its name in suite files.
        tokenizer: Text to tokens; pure.
    """
    from pytest_llmeval.evaluators import Tokenizer

    Tokenizer.add(name, tokenizer)
