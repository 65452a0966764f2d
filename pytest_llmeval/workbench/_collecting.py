"""What pytest collects in one state of a project, as data: hooks of a pytest that ``llmeval guard`` starts there."""

import ast
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from inspect import getsource, getsourcefile, unwrap
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

from msgspec import Struct
from msgspec.json import encode

from pytest_llmeval.baselines import comparable_of, contents_of, fingerprint
from pytest_llmeval.core import Case
from pytest_llmeval.data import IN_MODULE, display_path
from pytest_llmeval.suites import Suite

COLLECTED_FILE: Final = "PYTEST_LLMEVAL_COLLECTED"
"""The variable that names the file to write."""

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


class CollectedItem(Struct, frozen=True, order=True):
    """A test that pytest collected.

    Attributes:
        file: Relative to the folder that is compared.
        name: What follows the file in its node id.
        case: Id of its case; empty if it has none.
    """

    file: str
    name: str
    case: str = ""


class CollectedCase(Struct, frozen=True):
    """A case of a suite that Python declares.

    Attributes:
        content: Fingerprint of what of it decides its scores.
        parts: Name of a part to its value as text.
        limits: Metric to smallest and largest value.
    """

    content: str
    parts: dict[str, str]
    limits: dict[str, tuple[float | None, float | None]]


class CollectedSuite(Struct, frozen=True):
    """A suite that Python declares.

    Attributes:
        file: That declares it, relative to the folder that is compared.
        facts: Subject of a finding to what holds for it, as text.
        limits: Metric to smallest and largest value.
        cases: By id.
    """

    file: str
    facts: dict[str, str]
    limits: dict[str, tuple[float | None, float | None]]
    cases: dict[str, CollectedCase]


class Collected(Struct, frozen=True):
    """What pytest collects in one state.

    Attributes:
        enabled: Whether plain ``pytest`` runs suites.
        items: The tests.
        suites: Name to suite, of those that Python declares.
        code: File and name of a test over a suite, without parameters, to the fingerprint of its code.
    """

    enabled: bool
    items: list[CollectedItem]
    suites: dict[str, CollectedSuite]
    code: dict[str, str]


def pytest_collection_finish(session: Any) -> None:
    """Write what was collected."""
    from pytest_llmeval.plugin import case_of

    folder, items = Path.cwd(), []
    suites: dict[str, CollectedSuite] = {}
    code: dict[str, str] = {}
    for item in session.items:
        file, name = display_path(item.path, folder), item.nodeid.partition("::")[2]
        loaded = case_of(item)
        if loaded is None:
            items.append(CollectedItem(file, name))
            continue
        cases = getattr(item, "bulk", ()) or (loaded.case,)
        items += [CollectedItem(file, name, case.id) for case in cases]
        path = display_path(loaded.suite.path, folder)
        if IN_MODULE in loaded.suite.path.name and path not in suites:
            suites[path] = _suite(loaded.suite, path.partition(IN_MODULE)[0], folder)
        function = getattr(item, "function", None)
        if file.endswith(".py") and isinstance(function, FunctionType):
            code[f"{file}::{name.partition('[')[0]}"] = fingerprint(_tree(unwrap(function)))
    collected = Collected(bool(session.config.getini("llmeval")), sorted(items), suites, code)
    Path(os.environ[COLLECTED_FILE]).write_bytes(encode(collected))


def _suite(suite: Suite, file: str, folder: Path) -> CollectedSuite:
    facts = {f"gate {gate}": "" for gate in suite.gates}
    for label, each in comparable_of(suite).evaluators.items():
        noun = "judging evaluator" if suite.evaluators[label].asks else "evaluator"
        facts[f"{noun} {label}"] = _text(each.options)
        for check in getattr(suite.evaluators[label], "ready", ()):
            facts[f"check {check.name}"] = _text(check.entry)
        digest = code_digest([type(suite.evaluators[label]), suite.evaluators[label]], folder)
        facts |= {f"code of evaluator {label}": digest} if digest else {}
    if suite.judge is not None:
        facts["judge"] = _text(str(suite.judge))
        judging = [value for name, value in suite.objects.items() if name in str(suite.judge)]
        facts["code of judge"] = code_digest(judging, folder)
    contents = contents_of(suite)
    cases = {case.id: _case(case, contents[case.id]) for case in suite.cases}
    return CollectedSuite(file, facts, _limits(suite.thresholds), cases)


def _case(case: Case, content: str) -> CollectedCase:
    parts = {"input": _text(case.input), "expected": _text(case.expected), "labels": _text(case.labels)}
    parts |= {f"tag {tag}": "" for tag in case.tags}
    parts |= {f"check {check.name}": _text(check.entry) for check in case.checks}
    return CollectedCase(content, parts, _limits(case.thresholds))


def _text(value: Any) -> str:
    """Return a value as text that is the same in every process."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _ADDRESS.sub("", text)


def _limits(limits: Mapping[str, Any]) -> dict[str, tuple[float | None, float | None]]:
    return {metric: (limit.min, limit.max) for metric, limit in limits.items()}


def code_digest(values: list[Any], folder: Path) -> str:
    """Return a fingerprint of the code of objects and of what they use in a folder; empty if none of it is there.

    Comments and the layout of code do not count.
    """
    seen: dict[str, str] = {}
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, type):
            waiting += [each for each in value.__mro__[1:] if each is not object]
            waiting += [each for each in vars(value).values() if callable(each) and not isinstance(each, type)]
        elif not isinstance(value, FunctionType):
            waiting += [each for each in getattr(value, "__dict__", {}).values() if callable(each)]
            waiting += [value.__func__] if hasattr(value, "__func__") else []
            waiting += [value.func] if hasattr(value, "func") and callable(value.func) else []
            continue
        place = _place(value, folder)
        if not place or place in seen:
            continue
        seen[place] = _tree(value)
        for name, used in _used(value):
            if isinstance(used, FunctionType | type):
                waiting.append(used)
            elif isinstance(used, str | int | float | bytes | tuple | frozenset | list | dict | set):
                seen[f"{place} {name}"] = _text(
                    sorted(used, key=str) if isinstance(used, set | frozenset) else str(used)
                )
    return fingerprint(seen) if seen else ""


def _place(value: Any, folder: Path) -> str:
    """Return file and name of a function or class in a folder; empty for those of libraries."""
    try:
        file = Path(getsourcefile(value) or "").resolve()
    except (TypeError, OSError):
        return ""
    inside = file.is_relative_to(folder.resolve()) and "site-packages" not in file.parts
    return f"{display_path(file, folder.resolve())}::{value.__qualname__}" if inside else ""


def _parsed(value: Any) -> ast.AST | None:
    try:
        return ast.parse(textwrap.dedent(getsource(value)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def _tree(value: Any) -> str:
    """Return the code of a function or class, without comments and layout."""
    tree = _parsed(value)
    if tree is not None:
        return ast.dump(tree)
    code = getattr(value, "__code__", None)  # part of an expression, such as a lambda among arguments
    return "" if code is None else f"{code.co_code.hex()} {code.co_names} {code.co_consts}"


def _used(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of what a function or class uses of its module, and of modules that it names."""
    scope = dict(vars(sys.modules[value.__module__])) if value.__module__ in sys.modules else {}
    scope = getattr(value, "__globals__", scope)
    for node in ast.walk(_parsed(value) or ast.Module([], [])):
        if isinstance(node, ast.Name) and node.id in scope:
            yield node.id, scope[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = scope.get(node.value.id)
            if isinstance(owner, ModuleType) and hasattr(owner, node.attr):
                yield f"{node.value.id}.{node.attr}", getattr(owner, node.attr)
    for cell in getattr(value, "__closure__", None) or ():
        yield "closure", cell.cell_contents
