"""What pytest collects in one state of a project, as data, from a process that ``llmeval guard`` starts there."""

import ast
import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from inspect import getsource, getsourcefile, unwrap
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

from msgspec import Struct
from msgspec.json import encode

from pytest_llmeval.baselines import fingerprint
from pytest_llmeval.cli import OPTIONS
from pytest_llmeval.data import OwnFiles, display_path
from pytest_llmeval.suites import LoadedSuite
from pytest_llmeval.workbench._suite_dump import SuiteDump, dump_suite
from pytest_llmeval.workbench._test_code import code_of_test

COLLECTED_FILE: Final = "PYTEST_LLMEVAL_COLLECTED"
"""The variable that names the file to write."""

FOLDERS: Final = "PYTEST_LLMEVAL_FOLDERS"
"""The variable with the folders to import from, which Python must not know before our code has begun."""

SEAL_FILE: Final = "seal"
"""The name of the file, beside the one to write, whose text goes first into that: only we have read it."""

_INSTALLED: Final = (
    *("<frozen ", sys.prefix, sys.base_prefix, str(Path(__file__).resolve().parent.parent)),
    *(entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))),
)
"""How paths of installed code begin; those of a project are added to Python's path later."""

_PRESENTATION: Final = frozenset(
    {
        *("llmeval", "report", "texts", "otel", "annotations", "verbose", "rootdir"),
        *("concurrency", "cache", "media-limit"),
    }
)
"""Options that decide what is shown, and how fast."""
_SHOWING: Final = ("-q", "-v", "-r", "-s", "-l", "-n", "--tb", "--color", "--durations", "--dist", "--capture")
"""Beginnings of options among settings that decide what is shown, and how fast."""

_EXCUSES: Final = frozenset({"skip", "skipif", "xfail"})
_CLIENT: Final = re.compile(r"fixture:(\w+)")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


class ItemDump(Struct, frozen=True, order=True):
    """A test that pytest collected in one state of a project, as data for ``llmeval guard``.

    Attributes:
        file: Relative to the folder that is compared.
        name: What follows the file in its node id.
        suite: File of its suite, or what names the suite in its module; empty if it has none.
        case: Id of its case.
        variant: What tells it from other tests of its case, in Python.
        excuses: Marks by which it does not run, or does not count, besides tags of its case.
    """

    file: str
    name: str
    suite: str = ""
    case: str = ""
    variant: str = ""
    excuses: tuple[str, ...] = ()


class StateDump(Struct, frozen=True):
    """The tests, suites and code that pytest collects in one state of a project, as data for ``llmeval guard``.

    Attributes:
        enabled: Whether plain ``pytest`` runs suites.
        items: The tests.
        suites: Name to suite, of those that Python declares.
        tests: File and name of a test, without parameters, to the fingerprint of its code.
        code: File of a suite, and which of its code, to the fingerprint of that: of own evaluators and judges.
        plugins: Files of the project that are plugins of pytest.
        modules: Files of the project whose code has run.
        replaced: Functions of pytest and of this package in whose place other code is.
        options: Those that decide what is run and judged, as text.
        failed: Files and folders that cannot be collected.
    """

    enabled: bool
    items: list[ItemDump]
    suites: dict[str, SuiteDump]
    tests: dict[str, str]
    code: dict[str, str]
    plugins: list[str]
    modules: list[str]
    replaced: list[str]
    options: dict[str, str]
    failed: list[str]


def begin() -> "StateCollector":
    """Return the guard's hooks for a pytest that is about to start; no code of the project has been imported yet."""
    file = Path(os.environ.pop(COLLECTED_FILE))
    seal_file = file.with_name(SEAL_FILE)
    seal = seal_file.read_text(encoding="utf-8")
    seal_file.unlink()
    os.environ["PYTHONPATH"] = folders = os.environ.pop(FOLDERS)
    sys.path[:0] = folders.split(os.pathsep)

    def write(state: StateDump) -> None:
        file.write_bytes(encode((seal, state)))
        os._exit(0)  # before code of the project, such as that which it has registered for the end, writes another

    return StateCollector(write)


class StateCollector:
    """The pytest hooks that write the collected tests and suites of one state for ``llmeval guard``.

    Attributes:
        failed: Files and folders that cannot be collected.
    """

    def __init__(self, write: Callable[[StateDump], None]) -> None:
        self.failed: list[str] = []
        self._write = write

    def pytest_collectreport(self, report: Any) -> None:
        """Note what cannot be collected."""
        if report.failed:
            self.failed.append(report.nodeid.partition("::")[0])

    def pytest_collection_finish(self, session: Any) -> None:
        """Write what was collected."""
        self._write(_state(session, self.failed))


def _state(session: Any, failed: list[str]) -> StateDump:
    """The tests, suites and fingerprints of code of a collected pytest session, for ``llmeval guard``."""
    from pytest_llmeval.plugin import CollectedSession

    folder, items = Path.cwd(), []
    suites: dict[str, SuiteDump] = {}
    tests: dict[str, str] = {}
    code: dict[str, str] = {}
    for item, loaded, cases in CollectedSession(session).cases():
        file, name = display_path(item.path, folder), item.nodeid.partition("::")[2]
        marks = {mark.name for mark in item.iter_markers()} & _EXCUSES
        if loaded is None:
            items.append(ItemDump(file, name, excuses=tuple(sorted(marks))))
            if file.endswith(".py"):
                test, fixtures = name.partition("[")[0], getattr(item, "fixturenames", ())
                tests[f"{file}::{test}"] = fingerprint(code_of_test(item.path, test, fixtures, folder))
            continue
        path = display_path(loaded.suite.path, folder)
        variant = loaded.key.variant if file.endswith(".py") else ""
        for case in cases:
            excuses = tuple(sorted(marks - {*case.tags}))
            items.append(ItemDump(file, name, path, case.id, variant, excuses))
        function = getattr(item, "function", None)
        if file.endswith(".py") and isinstance(function, FunctionType):
            tests[f"{file}::{name.partition('[')[0]}"] = fingerprint(_tree(unwrap(function), named=False))
        if path not in code:
            code |= {path: "", **{f"{path}::{what}": digest for what, digest in _code(loaded.suite, item, folder)}}
            if not loaded.suite.systems:  # a system answers some of the cases
                source = OwnFiles(Path(path)).source.as_posix()
                suites[path] = dump_suite(loaded.suite, source)
    plugins = {_file_of(plugin, folder) for _, plugin in session.config.pluginmanager.list_name_plugin()} - {""}
    modules = {_file_of(module, folder) for module in list(sys.modules.values())} - {""}
    return StateDump(
        bool(session.config.getini("llmeval")),
        sorted(items),
        suites,
        tests,
        code,
        sorted(plugins),
        sorted(modules),
        sorted(_replacements(session)),
        dict(_options(session.config)),
        failed,
    )


def _options(config: Any) -> Iterator[tuple[str, str]]:
    """Yield the pytest options and settings that decide which tests run and how they are judged."""
    for name, option in OPTIONS.items():
        if name not in _PRESENTATION:
            value = config.getoption(option.pytest_attribute, None)
            is_set = option.setting is not None and value in (None, "")
            yield name, str(config.getini(option.pytest_attribute) if is_set else value)
    yield "xfail_strict", str(config.getini("xfail_strict"))
    yield "addopts", " ".join(list_demands(config.getini("addopts")))


def list_demands(options: Iterable[str]) -> list[str]:
    """The pytest options that ask something of answers, and do more than show results."""
    return [option for option in options if not option.startswith(_SHOWING)]


def _replacements(session: Any) -> Iterator[str]:
    """Yield functions of pytest and of this package that a project has replaced by other code."""
    judges = {kind.__module__.partition(".")[0] for kind in (StateCollector, type(session), type(session.config.hook))}
    for module in [loaded for name, loaded in list(sys.modules.items()) if name.partition(".")[0] in judges]:
        kinds = [kind for kind in vars(module).values() if isinstance(kind, type)]
        owners: list[Any] = [module, *(kind for kind in kinds if kind.__module__ == module.__name__)]
        for owner in owners:
            for name, value in vars(owner).items():
                if isinstance(value, ModuleType):  # some load more modules when they are asked for an attribute
                    continue
                function = getattr(value, "__func__", getattr(value, "fget", value))
                file = getattr(getattr(function, "__code__", None), "co_filename", None)
                if file is not None and not name.startswith("__") and not file.startswith(_INSTALLED):
                    yield f"{module.__name__}.{'' if owner is module else f'{owner.__name__}.'}{name}"


def _file_of(plugin: Any, folder: Path) -> str:
    """The file of a pytest plugin or module relative to a folder; empty if it is elsewhere."""
    file = Path(getattr(plugin, "__file__", None) or os.devnull).resolve()
    inside = file.is_relative_to(folder.resolve()) and "site-packages" not in file.parts
    return display_path(file, folder.resolve()) if inside else ""


def _code(suite: LoadedSuite, item: Any, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the project's code by which a suite judges, such as evaluators and targets, with fingerprints."""
    for label, evaluator in suite.evaluators.items():
        if digest := code_digest([type(evaluator), evaluator], folder):
            yield f"code of evaluator {label}", digest
        for check in getattr(evaluator, "ready", ()):
            if digest := code_digest([check], folder):
                yield f"code of check {check.name}", digest
    for gate in suite.gates:
        if digest := code_digest([type(gate)], folder):
            yield f"code of gate {gate.metric}", digest
    from pytest_llmeval.plugin import CollectedSession

    judge = str(suite.judge)
    judging = [value for name, value in suite.objects.items() if name in judge]
    for name in _CLIENT.findall(judge):
        judging += CollectedSession(item.session).fixture_functions(item, name)
    if digest := code_digest(judging, folder):
        yield "code of judge", digest


def _text(value: Any) -> str:
    """A text of a value that is the same in every process, for the fingerprint of code."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _ADDRESS.sub("", text)


def code_digest(values: Sequence[Any], folder: Path) -> str:
    """A fingerprint of the project code that objects use; empty if they use none of a folder.

    Comments and the layout of code do not count.
    """
    code: dict[str, str] = {}
    waiting, seen = list(values), dict[int, Any]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value  # which keeps the id from being given to another object
        waiting += _held_by(value, folder)
        place = _place(value, folder) if isinstance(value, FunctionType | type) else ""
        if not place:
            continue
        code[place] = _tree(value)
        for name, used in _used(value):
            if isinstance(used, FunctionType | type):
                waiting.append(used)
            elif isinstance(used, str | int | float | bytes | tuple | frozenset | list | dict | set):
                plain_used = sorted(used, key=str) if isinstance(used, set | frozenset) else used
                code[f"{place} {name}"] = _text(str(plain_used))
    return fingerprint(code) if code else ""


def _held_by(value: Any, folder: Path) -> Iterator[Any]:
    """Yield the parts of an object that may be code of the project, such as methods and closures."""
    if isinstance(value, type):
        yield from value.__mro__[1:-1]
        yield from (getattr(member, "__func__", member) for member in vars(value).values())
    elif isinstance(value, FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or ())
    elif isinstance(value, list | tuple):
        yield from value
    elif isinstance(value, MethodType | partial):
        yield from (value.__self__, value.__func__) if isinstance(value, MethodType) else (value.func, *value.args)
    elif type(value).__module__.partition(".")[0] == __name__.partition(".")[0] or _place(type(value), folder):
        yield type(value)
        names = {*getattr(value, "__dict__", ()), *getattr(value, "__struct_fields__", ())}
        names |= {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())}
        yield from (getattr(value, name, None) for name in sorted(names))


def _place(value: Any, folder: Path) -> str:
    """The file and name of a function or class of a folder; empty for library code."""
    try:
        file = Path(getsourcefile(value) or "").resolve()
    except (TypeError, OSError):
        return ""
    inside = file.is_file() and file.is_relative_to(folder.resolve()) and "site-packages" not in file.parts
    return f"{display_path(file, folder.resolve())}::{value.__qualname__}" if inside else ""


def _parsed(value: Any) -> ast.Module | None:
    """The syntax tree of the source of a function or class; ``None`` if it has no readable source."""
    try:
        return ast.parse(textwrap.dedent(getsource(value)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def _tree(value: Any, *, named: bool = True) -> str:
    """The code of a function or class without comments and layout, for its fingerprint."""
    tree = _parsed(value)
    if tree is not None:
        for node in tree.body[:1] if not named else ():
            node.name = ""  # type: ignore[attr-defined]  # a function
        return ast.dump(tree)
    code = getattr(value, "__code__", None)  # part of an expression, such as a lambda among arguments
    return "" if code is None else f"{code.co_code.hex()} {code.co_names} {code.co_consts}"


def _used(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function or class uses, by name, for the fingerprint of its code."""
    scope = dict(vars(sys.modules[value.__module__])) if value.__module__ in sys.modules else {}
    scope = getattr(value, "__globals__", scope)
    for node in ast.walk(_parsed(value) or ast.Module([], [])):
        if isinstance(node, ast.Name) and node.id in scope:
            yield node.id, scope[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = scope.get(node.value.id)
            if isinstance(owner, ModuleType) and hasattr(owner, node.attr):
                yield f"{node.value.id}.{node.attr}", getattr(owner, node.attr)
    for number, cell in enumerate(getattr(value, "__closure__", None) or ()):
        yield f"closure {number}", cell.cell_contents
