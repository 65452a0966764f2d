"""Two states of a folder compared: its suites, approved scores and failures, and Python files about evaluations."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.baselines.files import SCORES
from pytest_llmeval.baselines.scores import SuiteScores, TestScores, parse
from pytest_llmeval.cli.suite_file import suite_files
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.wording import as_line, excerpt, number
from pytest_llmeval.data.files.documents import load_json, read_document
from pytest_llmeval.data.files.places import OWN_FOLDER, display_path
from pytest_llmeval.run.checkout import Checkout
from pytest_llmeval.suite.loading import load_suite
from pytest_llmeval.suite.suite import Suite
from pytest_llmeval.workbench.guarding.suites import Loosening, SuiteState, compare_suites

_FAILURES: Final = "failures.json"
_HOOK: Final = "pytest_llmeval_register"
_OURS: Final = ("pytest_llmeval", "llmeval")
_EXCUSES: Final = frozenset({"skip", "skipif", "xfail"})
_CODE: Final = "code of evaluators"
_LONGEST: Final = 100


@dataclass(frozen=True)
class FolderState:
    """One state of a folder.

    Attributes:
        folder: Where its files are.
        code: The folder whose conftests register evaluators for its suites.
    """

    folder: Path
    code: Path

    @cached_property
    def suites(self) -> Mapping[str, Path]:
        """The suite files by name, relative to the folder."""
        return {display_path(each, self.folder): each for each in suite_files(self.folder)}

    @cached_property
    def checkout(self) -> Checkout:
        """The conftests that register evaluators, as pytest would import them."""
        conftests = [each for each in self.code.rglob("conftest.py") if _HOOK in _text(each)]
        plugins = {
            name: [
                display_path(each, self.code)
                for each in sorted(conftests, key=lambda each: len(each.parts))
                if (self.code / name).is_relative_to(each.parent)
            ]
            for name in self.suites
        }
        return Checkout(self.code, plugins)

    def load(self, name: str) -> SuiteState:
        """Return the state of a suite, with all of its cases even if a sample of them runs.

        Raises:
            LlmevalError: It has faults that concern every case.
        """
        path = self.suites[name]
        document = read_document(path, name)
        data = document.data
        whole = {key: data[key] for key in data if key != "sample"} if isinstance(data, Mapping) else data
        registry = self.checkout.registry(self.code / name)
        bare = replace(document, data=whole)
        suite = load_suite(path, registry, root=self.folder, display_path=name, document=bare)
        return SuiteState(name, suite, document)

    def files(self, pattern: str) -> Mapping[str, Path]:
        """Return the files of a pattern in folders of approved scores by name."""
        paths = sorted(self.folder.rglob(f"{OWN_FOLDER}/*{pattern}"))
        return {display_path(each, self.folder): each for each in paths}


def compare_folders(base: FolderState, head: FolderState, changed: Iterable[str]) -> Iterator[Loosening]:
    """Yield what the later state of a folder asks less of.

    Args:
        base: The earlier state.
        head: The later state.
        changed: Names of the Python files that may differ, relative to the folder.
    """
    suites: dict[str, Suite] = {}
    for name in base.suites:
        try:
            before = base.load(name)
        except LlmevalError as error:
            same = name in head.suites and _text(base.suites[name]) == _text(head.suites[name])
            fault = excerpt(str(error), _LONGEST)
            yield Loosening(name, 1, "suite", "could not be read, so it is not compared", fault, gone=True, note=same)
            continue
        now = name if name in head.suites else _renamed(before, base, head)
        if now is None:
            yield Loosening(name, 1, f"suite {before.suite.name}", "removed", gone=True)
            continue
        try:
            after = head.load(now)
        except LlmevalError as error:
            yield Loosening(now, 1, "suite", "cannot be read", after=excerpt(str(error), _LONGEST))
            continue
        suites[now] = after.suite
        yield from compare_suites(before, after, head.checkout.registry(head.code / now))
    yield from _approved_scores(base, head, suites)
    yield from _approved_failures(base, head)
    for name in changed:
        yield from _python(base.folder / name, head.folder / name, name)


def _renamed(before: SuiteState, base: FolderState, head: FolderState) -> str | None:
    """Return the file that a suite has now: a new one with a suite of its name."""
    for name in head.suites:
        if name not in base.suites:
            try:
                if head.load(name).suite.name == before.suite.name:
                    return name
            except LlmevalError:
                continue
    return None


def _approved_scores(base: FolderState, head: FolderState, suites: Mapping[str, Suite]) -> Iterator[Loosening]:
    """Yield approved scores that changed or are gone; those that are better now only for information."""
    now = head.files(SCORES)
    for name, path in base.files(SCORES).items():
        before = _scores(path, name)
        if before is None:
            continue
        after = _scores(now[name], name) if name in now else None
        if after is None:
            change = "removed" if name not in now else "cannot be read"
            yield Loosening(name, 0, "approved scores", change, gone=name not in now)
            continue
        folder = Path(name).parent.parent
        suite = suites.get((folder / before.suite).as_posix()) if isinstance(before, SuiteScores) else None
        document = load_json(now[name], name)
        for metric, value in before.values.items():
            late = after.values.get(metric)
            if value == late:
                continue
            is_better = False
            if suite is not None and value is not None and late is not None:
                is_better = (late > value) is not suite.metrics.lower_is_better(metric)
            line = document.locate(after.places.get(metric, ()))[0]
            change = "approved higher" if (late or 0.0) > (value or 0.0) else "approved lower"
            change = change if late is not None else "no longer approved"
            yield Loosening(name, line, f"approved {metric}", change, number(value), number(late), note=is_better)


def _scores(path: Path, name: str) -> SuiteScores | TestScores | None:
    """Return approved scores; ``None`` if they cannot be read, as no run can."""
    try:
        kind = TestScores if "module" in load_json(path, name).data else SuiteScores
        scores: SuiteScores | TestScores = parse(path, name, kind)
    except (LlmevalError, TypeError):
        return None
    return scores


def _approved_failures(base: FolderState, head: FolderState) -> Iterator[Loosening]:
    before = {name: _failures(path, name) for name, path in base.files(_FAILURES).items()}
    for name, path in head.files(_FAILURES).items():
        document = load_json(path, name)
        for case, unmet in _failures(path, name).items():
            added = sorted(set(unmet) - set(before.get(name, {}).get(case, ())))
            if added:
                line = document.locate(("cases", case))[0]
                yield Loosening(name, line, f"failure of case {case}", "approved", after=", ".join(added))


def _failures(path: Path, name: str) -> Mapping[str, list[str]]:
    try:
        data = load_json(path, name).data
    except LlmevalError:
        return {}
    cases = data.get("cases") if isinstance(data, Mapping) else None
    return cases if isinstance(cases, Mapping) else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


class _Asking(ast.NodeVisitor):
    """What a Python file asks of answers, by function: assertions, calls of this package, marks that excuse a test."""

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
        self._names |= {each.asname or each.name for each in node.names if each.name in _OURS}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module in _OURS:
            self._names |= {each.asname or each.name for each in node.names}

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.is_about_answers |= node.attr == "llmeval"  # the mark of tests over a suite
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        self.is_about_answers |= node.arg.startswith("llmeval")  # a fixture

    def visit_FunctionDef(self, node: Any) -> None:
        self._within.append(node.name)
        for each in getattr(node, "decorator_list", ()):
            if any(isinstance(name, ast.Attribute) and name.attr in _EXCUSES for name in ast.walk(each)):
                self._add("mark", each)
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


def _python(before: Path, after: Path, name: str) -> Iterator[Loosening]:
    """Yield what a Python file about evaluations asked for and asks no more, and the tests that it excuses.

    What such a file computes is unknown without running it, so any change of what it asks is a finding.
    """
    old, new = _asking(before), _asking(after)
    if old is None:
        return
    if new is None:
        change = "is no longer about evaluations" if after.exists() else "removed"
        yield Loosening(name, 1, "tests", change, gone=not after.exists())
        return
    for kind, within, text in old.counts - new.counts:
        if kind != "mark":
            here = f" in {within}" if within else ""
            line = old.lines[kind, within, text]
            yield Loosening(name, line, f"{kind}{here}", "removed or changed", _brief(kind, text), gone=True)
    for kind, within, text in new.counts - old.counts:
        if kind == "mark":
            yield Loosening(
                name, new.lines[kind, within, text], f"mark of {within or name}", "added", after=as_line(text)
            )


def _brief(kind: str, text: str) -> str:
    return "" if kind == _CODE else excerpt(text, _LONGEST)


def _asking(path: Path) -> _Asking | None:
    """Return what a Python file asks; ``None`` if it is not about evaluations, or no Python."""
    text = _text(path)
    if not any(each in text for each in _OURS):
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    asking = _Asking()
    asking.visit(tree)
    if any(isinstance(node, ast.FunctionDef) and node.name == _HOOK for node in tree.body):
        asking.counts[_CODE, "", ast.dump(tree)] = 1
        asking.lines[_CODE, "", ast.dump(tree)] = 1
    elif not (asking.is_about_answers or asking.imports):
        return None
    return asking
