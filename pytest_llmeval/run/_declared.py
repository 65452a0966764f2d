"""Suites declared in Python."""

import asyncio
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import Parameter, Signature
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    get_origin,
    is_typeddict,
    overload,
)

from msgspec import structs

from pytest_llmeval.core import (
    CHECKS_DEFERRED,
    MISSING,
    AnyError,
    Case,
    Fault,
    LlmevalError,
    SuiteError,
    are_equal,
    form_of,
    with_value,
)
from pytest_llmeval.data import (
    CaseData,
    DeclaredType,
    Document,
    OwnFiles,
    RowShare,
    display_path,
)
from pytest_llmeval.evaluators import CheckKind
from pytest_llmeval.run._entries import NamedObject, by_name_in_file, check, evaluator, listed
from pytest_llmeval.services import Background
from pytest_llmeval.suites import (
    KEYS,
    LoadedSuite,
    Registry,
    load_suite,
)

if TYPE_CHECKING:
    from pytest_llmeval.judges import Judgeable
    from pytest_llmeval.run._entries import SuiteArguments
    from pytest_llmeval.run._scripts import PredictionsFile, ScriptRun, SuiteResult

if TYPE_CHECKING:
    import typing_extensions

    Input_co = typing_extensions.TypeVar("Input_co", covariant=True, default=Any)
    Expected_co = typing_extensions.TypeVar("Expected_co", covariant=True, default=Any)
    Input_contra = TypeVar("Input_contra", contravariant=True)

    class TargetOfCases(Protocol[Input_contra]):
        """A target that takes the case by its name only."""

        def __call__(self, value: Input_contra, /, *, case: Any) -> Any:
            """Answer a case."""

    Target: TypeAlias = (
        Callable[[Input_co], Any]
        | Callable[[Input_co, Any], Any]
        | Callable[[Case[Input_co, Expected_co], Any], Any]
        | TargetOfCases[Input_co]
        | NamedObject
    )
    """A target: takes the input, and what it names besides, the case or a world."""
else:
    Input_co = TypeVar("Input_co", covariant=True)
    Expected_co = TypeVar("Expected_co", covariant=True)

Function = TypeVar("Function", bound=Callable[..., Any])
Returned = TypeVar("Returned")


class OtherColumns(TypedDict, total=False):
    """The arguments of the public function `cases` that say nothing about types."""

    id: str | None
    messages: str | None
    prediction: str | Sequence[str] | Mapping[str, str] | type | None
    labels: str | Sequence[str] | Mapping[str, str] | None
    tags: str | None
    thresholds: str | Sequence[str] | Mapping[str, str] | None
    checks: str | None
    format: str | None
    delimiter: str | None
    items: str | None
    split: str | None


@overload
def cases(
    data: Any,
    *,
    input: type[Input_co],
    expected: type[Expected_co],
    **others: Unpack[OtherColumns],
) -> CaseData[Input_co, Expected_co]: ...
@overload
def cases(
    data: Any,
    *,
    input: type[Input_co],
    expected: str | Sequence[str] | Mapping[str, str] | None = None,
    **others: Unpack[OtherColumns],
) -> CaseData[Input_co, Any]: ...
@overload
def cases(
    data: Any,
    *,
    input: str | Sequence[str] | Mapping[str, str] | None = None,
    expected: type[Expected_co],
    **others: Unpack[OtherColumns],
) -> CaseData[Any, Expected_co]: ...
@overload
def cases(
    data: Iterable[Case[Input_co, Expected_co]],
    **others: Unpack[OtherColumns],
) -> CaseData[Input_co, Expected_co]: ...
@overload
def cases(
    data: Any,
    *,
    input: str | Sequence[str] | Mapping[str, str] | None = None,
    expected: str | Sequence[str] | Mapping[str, str] | None = None,
    **others: Unpack[OtherColumns],
) -> CaseData[Any, Any]: ...
def cases(
    data: Any,
    *,
    id: str | None = None,  # noqa: A002 (the key of a case)
    input: str | Sequence[str] | Mapping[str, str] | type | None = None,  # noqa: A002 (as above)
    messages: str | None = None,
    expected: str | Sequence[str] | Mapping[str, str] | type | None = None,
    prediction: str | Sequence[str] | Mapping[str, str] | type | None = None,
    labels: str | Sequence[str] | Mapping[str, str] | None = None,
    tags: str | None = None,
    thresholds: str | Sequence[str] | Mapping[str, str] | None = None,
    checks: str | None = None,
    format: str | None = None,  # noqa: A002 (the key of a source)
    delimiter: str | None = None,
    items: str | None = None,
    split: str | None = None,
) -> CaseData[Any, Any]:
    """The cases of a `suite` in Python, from data as people have it.

    A part that is not named here is read from the column of its name, if there is one. Null, NaN and NaT are absent.

    Args:
        data: A data frame of pandas or polars (extra ``frames``), an Arrow table, an object of the library
            ``datasets``, an iterable of mappings, cases or typed objects; or the path of a CSV, JSON, JSONL, Parquet or
            Arrow file or of a saved dataset, relative to the file that calls.
        id: The column of the id; where there is none, rows are counted from 1.
        input: A column; several; name to column; or a pydantic model, dataclass or TypedDict, whose fields are columns.
        messages: A column with the script of a conversation, in place of the input.
        expected: As `input`.
        prediction: As `input`.
        labels: A column that holds an object, columns, or label to column.
        tags: A column with a list of tags.
        thresholds: As `labels`.
        checks: A column with a list of checks.
        format: Of a file; default: by the ending of its name.
        delimiter: Of a CSV file.
        items: Where the list is in a JSON file: keys with dots between them.
        split: Of a saved dataset with several.
    """
    columns = {
        "id": id,
        "input": input,
        "messages": messages,
        "expected": expected,
        "prediction": prediction,
        "labels": labels,
        "tags": tags,
        "thresholds": thresholds,
        "checks": checks,
    }
    named = {part: column for part, column in columns.items() if column is not None}
    options = {"format": format, "delimiter": delimiter, "items": items, "split": split}
    known = {name: value for name, value in options.items() if value is not None}
    return CaseData.from_data(data, users_frame(), columns=named, options=known)


def _signature() -> Signature:
    """The signature of the function ``suite``, with every key of a suite file."""
    own = [
        Parameter("name", Parameter.POSITIONAL_OR_KEYWORD, annotation=str),
        Parameter("cases", Parameter.KEYWORD_ONLY),
    ]
    keys = [name for name, key in KEYS.items() if key.python is not None]
    return Signature([*own, *(Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in keys)])


class Suite(Generic[Input_co, Expected_co]):
    """A suite declared in Python, or read from a file, for tests, scripts and notebooks.

    ``Suite[Ask, Reply]`` has cases with an input and an expectation of these types, which its functions take.

    Attributes:
        name: Of the suite.
        path: Names it, and the files that belong to it.
        is_tested: Whether a test function runs over its cases; if not, its own target or predictions answer.
        last_result: The result of the last `run` or `arun`, also of one that was cut short; ``None`` before it. Cases
            that did not run have the outcome ``not_run``.
    """

    __signature__: ClassVar = _signature()

    @overload
    def __init__(
        self,
        name: str,
        *,
        cases: "CaseData[Input_co, Expected_co] | Iterable[Case[Input_co, Expected_co]]",
        **keys: "Unpack[SuiteArguments]",
    ) -> None: ...
    @overload
    def __init__(
        self: "Suite[Any, Any]", name: str, *, cases: Iterable[Any], **keys: "Unpack[SuiteArguments]"
    ) -> None: ...
    def __init__(
        self,
        name: str,
        *,
        cases: "CaseData[Any, Any] | Iterable[Any]",
        **keys: "Unpack[SuiteArguments]",
    ) -> None:
        """Declare a suite, and check it, unless pytest does so when it collects the suite.

        Args:
            name: Of the suite; unique in its file.
            cases: From `cases`, or what it takes.
            keys: The other keys of a suite file. ``evaluators`` may be entries such as ``ev.text(metrics=["f1"])``,
                names, evaluators of your own or functions of a case, and so may ``checks``. Targets, worlds, systems
                and the clients of judges and simulated users may be the objects themselves. A lambda or a partial
                function has no name of its own: `named` gives it one.

        Raises:
            SuiteError: A key, a column, a metric, a label or an id is wrong. A row with a wrong value is left out when
                the suite runs.
            LlmevalError: A value is none that its key can have, or an object has no name.
        """
        frame = users_frame()
        self.name = name
        self.is_tested = False
        self.last_result: SuiteResult | None = None
        self._line = frame.f_lineno
        self._file: Path = Path(frame.f_code.co_filename)
        if not self._file.is_file():  # a cell of a notebook, or a console
            self._file = Path.cwd() / "notebook.py"
        self.path = OwnFiles.of_declared(self._file, name).suite
        self._cases = cases if isinstance(cases, CaseData) else CaseData.from_data(cases, frame, columns={})
        self._keys: dict[str, Any] = dict(keys)
        self._read_keys()
        if not CHECKS_DEFERRED.get():
            self._check(frame.f_code)

    def _check(self, declaring: CodeType) -> None:
        """Refuse wrong names of the keys of a suite in Python.

        Args:
            declaring: The user's code. A function that it names may yet become an evaluator, by `evaluator` or `check`.

        Raises:
            SuiteError: There are some.
        """
        try:
            faults = self.load().all_faults
        except SuiteError as error:
            faults = error.faults
        names = {*declaring.co_names, *declaring.co_varnames}
        if wrong := [fault for fault in faults if not fault.case and not _may_be_added(fault, names)]:
            raise SuiteError(wrong)

    def _read_keys(self) -> None:
        """Read the keys of the suite as a file has them."""
        self._by_name = by_name_in_file(self._keys)
        self._data: dict[str, Any] = {"suite": self.name, **_in_file(self._by_name.keys)}

    @classmethod
    def from_file(cls, path: "str | Path") -> "Suite":
        """The suite of a file, relative to the file that calls."""
        caller = Path(users_frame().f_code.co_filename)
        folder = caller.parent if caller.is_file() else Path.cwd()
        with with_value(CHECKS_DEFERRED, True):
            declared = cls("", cases=CaseData(None))
        declared.path = (folder / path).resolve()
        declared.name, declared._data = declared.path.stem.removesuffix(".eval"), {}
        return declared

    def __repr__(self) -> str:
        return f"suite({self.name!r})"

    @property
    def cases(self) -> "Sequence[Case[Input_co, Expected_co]]":
        """The cases that run, with inputs and expectations as functions get them.

        Raises:
            SuiteError: The suite has faults that concern every case.
        """
        suite = self.load()
        return [suite.typed(case) for case in suite.cases]

    @overload
    def test(self, function: Function) -> Function: ...

    @overload
    def test(self, *, concurrency: int) -> "Callable[[Function], Function]": ...

    def test(self, function: Any = None, *, concurrency: int | None = None) -> Any:
        """Make a test function run once for each case: it takes the fixture ``case``, and calls ``case.score``.

        Async tests run several cases at a time, if they have no fixtures that end with their test.

        Args:
            function: The test.
            concurrency: Most cases at a time; default: ``--llmeval-concurrency``.
        """

        def tested(function: Function) -> Function:
            if not callable(function):
                raise LlmevalError(f"suite {self.name!r}: found {function!r}, expected a function to be @suite.test")
            self.is_tested = True
            function.__dict__ |= {"llmeval_suite": self, "llmeval_concurrency": concurrency}
            return function

        return tested if function is None else tested(function)

    @overload
    def evaluator(
        self, function: Callable[[Case[Input_co, Expected_co]], Returned], /
    ) -> Callable[[Case[Input_co, Expected_co]], Returned]: ...
    @overload
    def evaluator(self, /, **options: Any) -> Callable[[Function], Function]: ...
    def evaluator(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a function of a case an evaluator of the suite; options are those of `ev.evaluator`.

        Raises:
            LlmevalError: The suite is that of a file, or has another evaluator of the name.
        """
        return self._add_function("evaluators", partial(evaluator, **options), function)

    @overload
    def check(
        self, function: Callable[[Case[Input_co, Expected_co]], Returned], /
    ) -> Callable[[Case[Input_co, Expected_co]], Returned]: ...
    @overload
    def check(self, /, *, name: str) -> Callable[[Function], Function]: ...
    def check(self, function: Callable[..., Any] | None = None, /, name: str | None = None) -> Any:
        """Make a function of a case a check of the suite, as `evaluator` does."""
        return self._add_function("checks", partial(check, name=name), function)

    def _add_function(self, key: str, entry_of: Callable[..., Any], function: Any) -> Any:
        """A decorator that adds an evaluator or check made of a function to the suite."""
        if function is None:
            return partial(self._add_function, key, entry_of)
        if not self._data:
            raise LlmevalError(f"suite {self.name!r}: found a function for {key}, expected them in {self.path.name}")
        before = self._keys.get(key)
        self._keys[key] = [*([] if before is None else listed(before)), entry_of(function)]
        self._read_keys()
        return function

    def load(
        self, registry: Registry | None = None, *, root: Path | None = None, share: RowShare | None = None
    ) -> LoadedSuite:
        """The suite in Python, loaded and checked.

        Args:
            registry: What its evaluators are; default: those that ship and those of installed plugins.
            root: pytest's rootdir, from which messages name files; default: the folder of the suite.
            share: Which rows of a data file become cases; see `pytest_llmeval.suites.load_suite`.

        Raises:
            SuiteError: It has faults; all of them are listed.
        """
        known = registry or Registry.installed()
        root = root or self.path.parent
        if not self._data:
            return load_suite(self.path, known, root=root, display_path=display_path(self.path, root), share=share)
        for extension in self._by_name.registered:
            if isinstance(extension, CheckKind):
                known.register_check(extension)
            else:
                known.register(extension)
        document, foreign = self._document(root)
        if self._cases.fault:
            raise SuiteError([document.fault(("cases",), self._cases.fault)])
        suite = load_suite(self.path, known, root=root, document=document, source=self._cases.rows, share=share)
        if foreign:  # where keys take any text
            raise SuiteError(foreign)
        return self._check_types(suite, document) if self._cases.types else suite

    def _document(self, root: Path) -> tuple[Document, list[Fault]]:
        """The keys as data, with names in place of what JSON cannot express, and a fault for each such key."""
        source = self._cases.file_entry
        data = dict(self._data if source is None else {**self._data, "source": source})
        document = Document.of_line(display_path(self._file, root), self._line, data, self._by_name.objects)
        faults = []
        for key, value in list(data.items()):
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                faults.append(document.fault((key,), f"found what JSON cannot express ({error})"))
                try:
                    data[key] = json.loads(json.dumps(value, allow_nan=False, default=_bracket_name))
                except (TypeError, ValueError):
                    raise SuiteError(faults) from None
        return document, faults

    def _check_types(self, suite: LoadedSuite, document: Document) -> LoadedSuite:
        """The suite whose cases fit their types; those that do not are faulty."""
        faults, fitting = list(suite.faults), []
        for case in suite.cases:
            typed_case, wrong = _typed_faults(case, self._cases.types)
            places = [document.fault(("cases", case.id, part), message) for part, message in wrong]
            faults += [structs.replace(fault, case=case.id) for fault in places]
            if not wrong:
                fitting.append(typed_case)
        if not fitting:
            raise SuiteError(faults)
        faulty = suite.faulty + len(suite.cases) - len(fitting)
        types = dict(self._cases.types)
        return structs.replace(suite, cases=tuple(fitting), faults=tuple(faults), faulty=faulty, types=types)

    def to_yaml(self) -> str:
        """The suite as the text of a suite file; its cases stand in it, unless they are those of a file.

        Raises:
            LlmevalError: An evaluator has options that YAML cannot express.
        """
        import yaml

        if not self._data:
            return self.path.read_text(encoding="utf-8")
        data = dict(self._data)
        if (rows := self._cases.rows) is not None:
            data["cases"] = [_case_entry(case) for case in rows.load(self.path.parent, [])]
        else:
            data["source"] = self._cases.file_entry
        try:
            return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
        except yaml.representer.RepresenterError as error:
            raise LlmevalError(f"suite {self.name!r}: found {error.args[-1]!r}, expected data for YAML") from None

    def run(
        self,
        target: "Target[Input_co, Expected_co] | None" = None,
        *,
        judge: "Judgeable | None" = None,
        system: str = "",
        progress: bool | None = None,
        record: "PredictionsFile" = False,
        replay: "PredictionsFile" = False,
    ) -> "SuiteResult":
        """Answer and score all cases, judge the gates, and return the result; approvals are for pytest.

        Async targets are awaited on one event loop of the process, in a thread of its own, which all calls of `run`
        share. An interrupt (Ctrl-C) cancels the calls under way; `last_result` then has the cases that had run.

        Args:
            target: Answers; default: the suite's own target, or its predictions.
            judge: Judges; default: who the suite names.
            system: Which of the suite's systems answers, if it has several.
            progress: Whether to show a progress bar; default: in terminals and notebooks.
            record: A file to record the answers in, as pytest's ``--llmeval-predictions``, as they arrive; ``True`` for
                ``__llmeval__/SUITE.predictions.jsonl`` next to the suite.
            replay: A file of recorded answers, in place of calls; ``True`` as for `record`. With both, the target is
                called for what is not recorded, as after a run that was cut short.

        A case with a fault is left out, counts as missing, and is warned of.

        Raises:
            SuiteError: The suite has faults.
            LlmevalError: The suite has several systems, and none is named; the target is no function; or a file of
                answers cannot be used.
        """
        return Background.of_process().run(
            self._execute(self._choose_system(system, record, replay), target, judge, progress)
        )

    async def arun(
        self,
        target: "Target[Input_co, Expected_co] | None" = None,
        *,
        judge: "Judgeable | None" = None,
        system: str = "",
        progress: bool | None = None,
        record: "PredictionsFile" = False,
        replay: "PredictionsFile" = False,
    ) -> "SuiteResult":
        """Do what `run` does, awaiting async targets on the caller's event loop.

        If the task is cancelled, no further call is made, and `last_result` has the cases that had run.

        Raises:
            SuiteError: The suite has faults.
            LlmevalError: The suite has several systems, and none is named, or the event loop is not one of asyncio.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise LlmevalError(
                f"suite {self.name!r}: arun needs the event loop of asyncio, and does not run under trio: use run in a "
                "thread"
            ) from None
        return await self._execute(self._choose_system(system, record, replay), target, judge, progress)

    async def _execute(
        self,
        run: "ScriptRun",
        target: "Callable[..., Any] | NamedObject | None",
        judge: "Judgeable | None",
        progress: bool | None,
    ) -> "SuiteResult":
        """The result of a run of the suite without pytest."""
        answers = target.value if isinstance(target, NamedObject) else target
        if answers is not None and not callable(answers):
            kind = "a suite" if isinstance(answers, Suite) else type(answers).__name__
            raise LlmevalError(f"suite {self.name!r}: found {kind}, expected a function that answers")
        try:
            return await run.execute(answers, judge, progress)
        finally:
            self.last_result = run.result

    def _choose_system(self, system: str, record: "PredictionsFile", replay: "PredictionsFile") -> "ScriptRun":
        """The run of one system of the suite without pytest."""
        from pytest_llmeval.run._scripts import ScriptRun

        whole = self.load()
        if whole.systems and system not in whole.systems:
            raise LlmevalError(f"suite {self.name!r}: found system {system!r}, expected {' or '.join(whole.systems)}")
        suite = whole.for_variant(system)
        if suite.faults:
            warnings.warn(f"suite {self.name!r}: cases left out: {SuiteError(suite.faults)}", stacklevel=3)
        return ScriptRun(whole, system, record, replay)


_ADDED: Final = re.compile(r"evaluators or checks is missing|unknown metric '?(?:check\[)?(\w+)")


def _may_be_added(fault: Fault, names: AbstractSet[str]) -> bool:
    """Whether a declared suite lacks an evaluator or check that functions decorated later may become."""
    missing = _ADDED.match(fault.message)
    return missing is not None and (missing[1] is None or missing[1] in names)


def _in_file(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a declared suite as a suite file has them; unknown ones stay for the fault that suggests one."""
    data = {}
    for name, value in keys.items():
        listed = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        in_file = _containers(list(value) if listed else value)
        if name not in KEYS or (in_file != [] and (in_file is not None or KEYS[name].null)):
            data[name] = in_file
    return data


def _bracket_name(value: Any) -> str:
    """The name of a function or type in a declared suite, as faults show it."""
    return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>"


def _case_entry(case: Any) -> dict[str, Any]:
    """A declared case as an entry of ``cases`` in a suite file, without keys that hold nothing."""
    entry = {
        "id": case.id,
        ("messages" if case.conversation and isinstance(case.input, list) else "input"): case.input,
        "expected": case.expected,
    }
    if case.prediction is not MISSING:
        entry["prediction"] = case.prediction
    entry |= {"labels": dict(case.labels), "tags": list(case.tags)}
    entry |= {"thresholds": dict(case.thresholds), "checks": list(case.checks)}
    if case.always:
        entry["always"] = True
    return {key: value for key, value in entry.items() if value not in (None, {}, [])}


def _containers(value: Any) -> Any:
    """The value of a suite's key with lists for tuples and dictionaries for other mappings, as YAML has them."""
    if isinstance(value, Mapping):
        return {key: _containers(member) for key, member in value.items()}
    return [_containers(item) for item in value] if isinstance(value, list | tuple) else value


suite = Suite
"""The name by which users call the class."""


def declared_suite(path: Path, root: Path) -> Suite:
    """The suite that a Python file declares; the file is imported unless pytest has done so.

    Args:
        path: `Suite.path`.
        root: The folder inside which the file must lie.

    Raises:
        LlmevalError: The file cannot be imported, or declares no such suite, or several.
    """
    own = OwnFiles(path)
    file = own.source
    if not file.resolve().is_relative_to(root.resolve()):
        raise LlmevalError(f"{file}: expected a file inside {root}")
    loaded = (module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == str(file))
    try:
        module = next(loaded, None) or import_file(file, file.stem)
    except Exception as error:  # a user's module may raise anything
        raise LlmevalError(f"{file}: cannot be imported: {AnyError(error).full_text}") from error
    every = {id(suite): suite for suite in vars(module).values() if isinstance(suite, Suite)}
    matches = [suite for suite in every.values() if suite.path.name == path.name]
    if len(matches) != 1:
        raise LlmevalError(f"{file}: found {len(matches)} suites {own.declared_name!r}, expected one")
    return matches[0]


def import_file(path: Path, name: str) -> ModuleType:
    """Import a Python file that declares suites: as a part of its package, or under a name.

    Raises:
        Exception: Any error of the file.
    """
    packages: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        packages.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))  # as pytest does
    if packages:
        with with_value(CHECKS_DEFERRED, True):
            return import_module(".".join([*packages, path.stem]))
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # of several conftests the last keeps the name, as in pytest
    with with_value(CHECKS_DEFERRED, True):
        spec.loader.exec_module(module)
    return module


def users_frame() -> FrameType:
    """The frame of the user's code that called this package, which shows the file that declares a suite."""
    package = __name__.partition(".")[0]
    frame = sys._getframe(1)  # noqa: SLF001 (no public function gives the frame of a caller)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == package:
        frame = frame.f_back
    return frame


_TYPED: Final = ("input", "expected", "prediction")


def _typed_faults(case: Case, types: Mapping[str, Any]) -> tuple[Case, list[tuple[str, str]]]:
    """A declared case with objects of its suite's types, and the faults of parts that do not fit."""
    faults: list[tuple[str, str]] = []
    for part in _TYPED:
        value = getattr(case, part)
        value = {} if value is None and part == "input" else value  # a row without any of its columns
        absent = value is MISSING or (part == "expected" and value is None)
        if part not in types or absent:
            continue
        try:
            form, typed = _typed_object(types[part], case.object_of(part), value)
        except LlmevalError as error:
            faults.append((part, f"{error}, expected {_type_name(types[part])}"))
        else:
            case = case.with_object(part, form, typed)
    return case, faults


def _typed_object(kind: Any, value: Any, form: Any) -> tuple[Any, Any]:
    """JSON form and object of a suite's declared type for a part of a case: the user's, or one made from its data.

    Raises:
        LlmevalError: The data does not fit.
    """
    if isinstance(kind, type) and get_origin(kind) is None and not is_typeddict(kind) and isinstance(value, kind):
        return form, value
    try:
        built = DeclaredType(kind).convert(value)
    except LlmevalError:
        if value is form:
            raise
        built = DeclaredType(kind).convert(form)
    if type(built) is type(value) and are_equal(built, value):
        return form, value
    return form_of(built, only_set=True), built


def _type_name(kind: Any) -> str:
    """The name of a declared type of inputs or expectations, for faults of a Python suite."""
    return kind.__name__ if get_origin(kind) is None and hasattr(kind, "__name__") else str(kind)
