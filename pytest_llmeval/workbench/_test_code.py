"""Python test files in two states, read and not run."""

import ast
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.core import as_line, excerpt
from pytest_llmeval.workbench._loosening import Loosening

HOOK: Final = "pytest_llmeval_register"
CONFTEST: Final = "conftest.py"
_OURS: Final = ("pytest_llmeval", "llmeval")
_EXCUSES: Final = frozenset({"skip", "skipif", "xfail"})
_CODE: Final = "code of evaluators"
_TARGET: Final = "llmeval_target"
"""The fixture that answers: its change is no other demand, and it can read what a suite expects."""

_LONGEST: Final = 100
_HARMLESS: Final = frozenset({*_OURS, *sys.stdlib_module_names, "pytest"})
"""Packages whose import registers nothing."""
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MAKERS: Final = frozenset(
    {
        *("cache", "cached_property", "classmethod", "contextmanager", "dataclass", "field", "fixture", "gate_rule"),
        *("lru_cache", "owned", "override", "property", "staticmethod", "Metric", "GateKey", "TextForm"),
    }
)
"""Functions that make something and change nothing else."""
_CALLED_BY_PYTHON: Final = frozenset({"__init_subclass__", "__set_name__"})
"""Functions that Python calls when a class is made."""


class _Asking(ast.NodeVisitor):
    """The requirements of a Python test file on answers, by function: assertions, calls of this package, marks."""

    def __init__(self) -> None:
        self.lines: dict[tuple[str, str, str], int] = {}
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self._names: set[str] = set()
        self.is_about_answers = False
        self._within: list[str] = []

    @property
    def imports(self) -> bool:
        """Whether it imports the package, not only a module of it."""
        return bool(self._names)

    def _add(self, kind: str, node: ast.AST) -> None:
        key = (kind, ".".join(self._within), ast.unparse(node))
        self.counts[key] += 1
        self.lines.setdefault(key, getattr(node, "lineno", 0))

    def visit_Import(self, node: ast.Import) -> None:
        self._names |= {name.asname or name.name for name in node.names if name.name in _OURS}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module in _OURS:
            self._names |= {name.asname or name.name for name in node.names}

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.is_about_answers |= node.attr == "llmeval"  # the mark of tests over a suite
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        self.is_about_answers |= node.arg.startswith("llmeval")  # a fixture

    def visit_FunctionDef(self, node: Any) -> None:
        self._within.append(node.name)
        for decorator in getattr(node, "decorator_list", ()):
            if any(isinstance(name, ast.Attribute) and name.attr in _EXCUSES for name in ast.walk(decorator)):
                self._add("mark", decorator)
        self.generic_visit(node)
        self._within.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 (ast's name)
    visit_ClassDef = visit_FunctionDef  # noqa: N815 (ast's name)

    def visit_Assert(self, node: ast.Assert) -> None:
        self._add("assertion", node.test)

    def visit_Call(self, node: ast.Call) -> None:
        first: ast.AST = node.func
        while isinstance(first, ast.Attribute):
            first = first.value
        if isinstance(first, ast.Name) and first.id in self._names:
            self._add("call", node)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _EXCUSES:
            self._add("mark", node)
        else:
            self.generic_visit(node)


def compare_code(before: Path, after: Path, name: str) -> Iterator[Loosening]:
    """Yield requirements that a Python file about evaluations has dropped, and tests that it excuses.

    What such a file computes is unknown without running it, so any change of what it asks is a finding.
    """
    old, new = _asking(before), _asking(after)
    if old is None:
        return
    if new is None:
        change = "is no longer about evaluations" if after.exists() else "removed"
        yield Loosening(name, 1, "tests", change, gone=not after.exists())
        return
    for kind, within, code in old.counts - new.counts:
        if kind != "mark":
            here = f" in {within}" if within else ""
            line = old.lines[kind, within, code]
            text = "" if kind == _CODE else excerpt(code, _LONGEST)
            yield Loosening(name, line, f"{kind}{here}", "removed or changed", text, gone=True)
    for kind, within, code in new.counts - old.counts:
        if kind == "mark":
            line = new.lines[kind, within, code]
            yield Loosening(name, line, f"mark of {within or name}", "added", after=as_line(code))


def compare_plugins(before: Path, after: Path, name: str) -> Iterator[Loosening]:
    """Yield new effects of importing a conftest or another pytest plugin, besides fixtures and helpers."""
    known = Counter(ast.dump(node) for node in _acting(before))
    for node in _acting(after):
        if known[ast.dump(node)]:
            known[ast.dump(node)] -= 1
        else:
            subject = getattr(node, "name", "") or "statement"
            text = as_line(ast.unparse(node), _LONGEST)
            note = subject == _TARGET
            yield Loosening(name, node.lineno, f"{_kind(after)}, {subject}", "new", after=text, note=note)


def _kind(path: Path) -> str:
    """The noun for a Python file that pytest imports: conftest or plugin."""
    return "conftest" if path.name == CONFTEST else "plugin"


def _acting(path: Path) -> Iterator[ast.stmt]:
    """Yield the statements of a conftest or plugin that may change what pytest does."""
    body = _body(path)
    own = {node.name for node in body if isinstance(node, _DEFINITIONS)}
    for node in body:
        if isinstance(node, _DEFINITIONS):
            is_hook = node.name.startswith("pytest_") and node.name != HOOK
            is_acting = is_hook or node.name == _TARGET or _acts(node, own)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
            is_acting = any(name.partition(".")[0] not in _HARMLESS for name in names)
        else:
            is_acting = not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        if is_acting:
            yield node


def _acts(node: ast.AST, own: Collection[str]) -> bool:
    """Whether a definition in a conftest has effects beyond itself, or pytest calls it by its name.

    Args:
        node: The definition, or a part of it.
        own: Names that its file defines.
    """
    if isinstance(node, _DEFINITIONS):
        parts = [*node.bases, *node.body] if isinstance(node, ast.ClassDef) else [node.args]
        calls = [
            decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
            for decorator in node.decorator_list
        ]
        named = node.name in _CALLED_BY_PYTHON or bool(getattr(node, "keywords", ()))
        return named or any(_acts(part, own) for part in (*calls, *parts))
    if isinstance(node, ast.stmt) and not isinstance(node, ast.Pass | ast.Assign | ast.AnnAssign | ast.Expr):
        return True
    return any(
        isinstance(getattr(part, "ctx", None), ast.Store) and not isinstance(part, ast.Name | ast.Tuple)
        if not isinstance(part, ast.Call)
        else _called(part.func) not in _MAKERS - {*own} or any(key.arg in (None, "autouse") for key in part.keywords)
        for part in ast.walk(node)
    )


def _called(function: ast.expr) -> str:
    """The name of a called function, without its module."""
    return getattr(function, "attr", getattr(function, "id", ""))


def statements_of(path: Path) -> str:
    """The code of a Python file without comments and layout, to compare two states."""
    try:
        return ast.dump(ast.parse(text_of(path)))
    except (SyntaxError, ValueError, RecursionError):
        return text_of(path)


def is_about_evaluations(path: Path) -> bool:
    """Whether a Python file has requirements on answers, so that the guard compares it."""
    return _asking(path) is not None


def _asking(path: Path) -> _Asking | None:
    """The requirements of a Python file on answers; ``None`` if it has none or is not valid Python."""
    text = text_of(path)
    if not any(word in text for word in _OURS):
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    asking = _Asking()
    asking.visit(tree)
    if any(isinstance(node, ast.FunctionDef) and node.name == HOOK for node in tree.body):
        asking.counts[_CODE, "", ast.dump(tree)] = 1
        asking.lines[_CODE, "", ast.dump(tree)] = 1
    elif not (asking.is_about_answers or asking.imports):
        return None
    return asking


def code_of_test(path: Path, test: str, fixtures: Iterable[str], top: Path) -> str:
    """The code of a Python test with the helpers and fixtures of the project that it uses.

    Args:
        path: The file of the test.
        test: Its name, with that of its class.
        fixtures: Names of fixtures.
        top: The folder above which no conftest counts.
    """
    conftests = [folder / CONFTEST for folder in path.parents if folder.is_relative_to(top)]
    files = [{name: node for node in _body(file) for name in _names_of(node)} for file in (path, *conftests)]
    code, waiting = dict[tuple[int, str], str](), [(0, test.partition("::")[0])]
    waiting += [(number, name) for name in {*fixtures} - {_TARGET} for number in range(len(files))]
    while waiting:
        number, name = waiting.pop()
        if (number, name) not in code and (node := files[number].get(name)) is not None:
            code[number, name] = _dump(node)
            waiting += [(number, used.id) for used in ast.walk(node) if isinstance(used, ast.Name)]
    return " ".join(sorted(code.values()))


def _body(path: Path) -> list[ast.stmt]:
    """The top-level statements of a Python file; none if it cannot be parsed."""
    try:
        return ast.parse(text_of(path)).body
    except (SyntaxError, ValueError, RecursionError):
        return []


def _names_of(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a top-level statement of a Python file sets, apart from imports."""
    if isinstance(node, _DEFINITIONS):
        yield node.name
    elif not isinstance(node, ast.Import | ast.ImportFrom):
        names = (name for name in ast.walk(node) if isinstance(name, ast.Name))
        yield from (name.id for name in names if isinstance(name.ctx, ast.Store))


def _dump(node: ast.stmt) -> str:
    """The code of a statement without layout and test parameters, since each parameter set is a test."""
    if isinstance(node, _DEFINITIONS):
        node.decorator_list = [call for call in node.decorator_list if "parametrize" not in ast.unparse(call)]
    return ast.dump(node)


def text_of(path: Path) -> str:
    """The text of a file of a project's state; empty if there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
