"""What a Python module reads, found without running it: modules, packages, files, and what cannot be followed."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

_IMPORTERS: Final = ("import_module", "__import__")
_LOADERS: Final = ("run_path", "run_module", "spec_from_file_location", "walk_packages", "iter_modules", "entry_points")
_READERS: Final = ("open", "read_text", "read_bytes", "Popen", "check_output", "check_call", "system", "popen")
_LISTERS: Final = frozenset(["iterdir", "listdir", "scandir", "walk", "glob", "rglob", "iglob"])
_PATHS: Final = ("Path", "PurePath", "join", "joinpath")
_JOINERS: Final = frozenset([*_PATHS, "open", *(_LISTERS - {"iterdir"})])
_SAME: Final = ("sorted", "list", "tuple", "set", "str", "fspath", "resolve", "absolute")
_OUTSIDE: Final = frozenset(["environ", "getenv", "argv", "input"])
_WRITES: Final = re.compile(r"[wax]")
_LONGEST: Final = 200
_MOST_FILES: Final = 2_000
_HIDDEN: Final = frozenset({"__pycache__", "__llmeval__", "node_modules", "site-packages"})


@dataclass(frozen=True)
class Import:
    """An import statement.

    Attributes:
        module: Its dotted name; empty for ``from . import name``.
        names: What is imported from it.
        level: Number of leading dots.
        optional: Whether the module does without it.
        line: In its file.
    """

    module: str
    names: tuple[str, ...] = ()
    level: int = 0
    optional: bool = False
    line: int = 0


class Read(NamedTuple):
    """A call that reads files.

    Attributes:
        line: In the file of the module.
        texts: What its path is made of.
        is_handed: Whether some of it is a parameter.
    """

    line: int
    texts: frozenset[str]
    is_handed: bool


@dataclass
class Module:
    """What stands in one file.

    Attributes:
        imports: Its imports.
        paths: Texts that may be paths, each with whether they are used as one.
        unknown: Line to what is loaded there and cannot be followed.
        unread: Line to what is read there and cannot be followed.
        reads: Where files are read whose paths stand in texts, or come from elsewhere.
        written: Paths of files that it writes.
        own_folder: Whether it lists the folder that it stands in.
        attributes: Names that it takes from other modules.
        folders: Names that it gives to path expressions, with the texts of these.
    """

    imports: list[Import] = field(default_factory=list)
    paths: dict[str, bool] = field(default_factory=dict)
    unknown: dict[int, str] = field(default_factory=dict)
    unread: dict[int, str] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    own_folder: bool = False
    attributes: set[str] = field(default_factory=set)
    folders: dict[str, list[str]] = field(default_factory=dict)


def read_module(text: bytes) -> Module:
    """Return what stands in the source of a module.

    Raises:
        SyntaxError: It is no Python.
        ValueError: As above.
    """
    reader = _ModuleReader(ast.parse(text))
    reader.visit(reader.tree)
    return reader.module


def _name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_joined(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


class _ModuleReader(ast.NodeVisitor):
    """Reads one module; see `Module`."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.module = Module()
        self._optional = 0
        self._bound: dict[str, list[ast.AST]] = {}
        self._parameters: set[str] = {"self", "cls"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._bound.setdefault(_name_of(target), []).append(node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                self._bound.setdefault(_name_of(node.target), []).append(node.iter)
            elif isinstance(node, ast.arg):
                self._parameters.add(node.arg)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and self._is_path(node):
                self.module.folders.setdefault(_name_of(node.targets[0]), []).extend(_runs(self._parts(node.value)))

    def visit_If(self, node: ast.If) -> None:
        if _name_of(node.test) == "TYPE_CHECKING":
            for unless in node.orelse:
                self.visit(unless)
        else:
            self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        caught = {
            name.id for catch in node.handlers for name in ast.walk(catch.type or catch) if isinstance(name, ast.Name)
        }
        optional = bool(caught & {"ImportError", "ModuleNotFoundError", "Exception"})
        self._optional += optional
        for each in node.body:
            self.visit(each)
        self._optional -= optional
        for statement in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:
        self.module.imports += [Import(each.name, (), 0, bool(self._optional), node.lineno) for each in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        names = tuple(each.name for each in node.names)
        self.module.attributes |= set(names)
        self._parameters |= set(names)
        self.module.imports.append(Import(node.module or "", names, node.level, bool(self._optional), node.lineno))

    def visit_Assign(self, node: ast.Assign) -> None:
        """Leave the path that a name represents to the places where the name is used."""
        if _name_of(node.targets[0]) in self.module.folders and self._is_path(node):
            self._visit_within(node.value)
        else:
            self.generic_visit(node)

    def _is_path(self, node: ast.Assign) -> bool:
        value, named = node.value, len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        is_called = isinstance(value, ast.Call) and _name_of(value.func) in _PATHS
        return named and (_is_joined(value) or is_called) and any(self._parts(value))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.module.attributes.add(node.attr)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.module.paths |= dict.fromkeys(self.module.folders.get(node.id, ()), True)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if _is_joined(node):
            self._note(node)
        self._visit_within(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and 0 < len(node.value) <= _LONGEST and node.value.isprintable():
            self.module.paths.setdefault(node.value, False)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name_of(node.func)
        if name in _IMPORTERS:
            self._import(node)
        elif name in _LOADERS or (name in ("exec", "eval") and isinstance(node.func, ast.Name)):
            self.module.unknown[node.lineno] = f"{name}()"
        elif name in (*_READERS, *_LISTERS) or (
            name == "run" and _name_of(getattr(node.func, "value", node)) == "subprocess"
        ):
            self._read(node, name)
        if name in _JOINERS:
            self._note(node)
        self._visit_within(node)

    def _visit_within(self, node: ast.AST) -> None:
        """Visit what is in an expression besides the texts of the path that it is."""
        children = [*ast.iter_child_nodes(node)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self.module.attributes.add(node.func.attr)
            children[0] = node.func.value
        chained = _is_joined(node) or (isinstance(node, ast.Call) and _name_of(node.func) in _JOINERS)
        for each in children:
            if chained and (_is_joined(each) or (isinstance(each, ast.Call) and _name_of(each.func) in _PATHS)):
                self._visit_within(each)
            elif not (chained and (isinstance(each, ast.Constant) or len(self._bound.get(_name_of(each), ())) == 1)):
                self.visit(each)

    def _import(self, node: ast.Call) -> None:
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and not first.value.startswith("."):
            self.module.imports.append(Import(first.value, (), 0, bool(self._optional), node.lineno))
        else:
            self.module.unknown[node.lineno] = "a module is imported by a computed name"

    def _read(self, node: ast.Call, name: str) -> None:
        mode = [each.value for each in node.keywords if each.arg == "mode"]
        mode += node.args[1:2] if isinstance(node.func, ast.Name) else node.args[:1]
        if name == "open" and mode and isinstance(mode[0], ast.Constant) and _WRITES.match(str(mode[0].value)):
            self.module.written |= {*_runs(self._parts(node))}
            return
        names, texts = self._reached(node)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else next(iter(node.args), node)
        parts = self._parts(node if name in _JOINERS else owner)
        if parts[-1] is not None:
            texts = {*_runs(parts)}
        if names & _OUTSIDE:
            self.module.unread[node.lineno] = f"{name}() of a path from outside"
        elif not texts and "__file__" in names and {name, *names} & _LISTERS:
            self.module.own_folder = True
        elif texts or names & self._parameters:
            self.module.paths |= dict.fromkeys(texts, True)
            self.module.reads.append(Read(node.lineno, frozenset(texts), bool(names & self._parameters)))
        else:
            self.module.unread[node.lineno] = f"{name}() of a path that does not stand there"

    def _reached(self, node: ast.AST) -> tuple[set[str], set[str]]:
        """Return the names and texts that an expression is made of, through the names that are given to values."""
        names, texts, waiting = set[str](), set[str](), [node]
        while waiting:
            for each in ast.walk(waiting.pop()):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    texts.add(each.value)
                elif (name := _name_of(each)) and name not in names:
                    names.add(name)
                    waiting += self._bound.get(name, ())
        return names, texts

    def _note(self, node: ast.AST) -> None:
        for text in _runs(self._parts(node)):
            self.module.paths[text] = True

    def _parts(self, node: ast.AST, depth: int = 9) -> list[str | None]:
        """Return the parts of a path expression; ``None`` for what is not known."""
        if isinstance(node, ast.Constant):
            return [node.value] if isinstance(node.value, str) and len(node.value) <= _LONGEST else [None]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return [*self._parts(node.left, depth), *self._parts(node.right, depth)]
        if isinstance(node, ast.JoinedStr):
            return [*(self._parts(node.values[0], depth) if node.values else []), None]
        if (name := _name_of(node)) and depth and len(bound := self._bound.get(name, [])) == 1:
            return self._parts(bound[0], depth - 1)
        called = _name_of(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and called in (*_JOINERS, *_SAME):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            before = [] if owner is None or _name_of(owner) in ("os", "path", "glob") else [owner]
            arguments = node.args[: owner is None] if called == "open" else node.args
            return [part for each in (*before, *arguments) for part in self._parts(each, depth)] or [None]
        return [None, None]


def _runs(parts: Sequence[str | None]) -> Iterator[str]:
    """Yield what stands together in a path, such as ``prompts/answer.md``."""
    run: list[str] = []
    for each in (*parts, None):
        if each is not None:
            run.append(each)
        elif run:
            yield "/".join(part.strip("/") if number else part.rstrip("/") or "/" for number, part in enumerate(run))
            run = []


class Closure(NamedTuple):
    """What modules read, directly or through others.

    Attributes:
        files: Files of the project.
        packages: Top-level names of what is imported from elsewhere, Python's own aside; with ``?`` if optional.
        unknown: Loaded code that cannot be followed, each with its place.
        unread: Files that are read and cannot be followed, each with its place.
    """

    files: frozenset[Path]
    packages: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass
class SourceTree:
    """The Python modules of a project.

    Attributes:
        root: The folder of the project; nothing outside of it is read.
        folders: Folders from which Python imports.
    """

    root: Path
    folders: Sequence[Path]
    _modules: dict[Path, Module] = field(default_factory=dict)

    @cached_property
    def _environment(self) -> Path:
        return Path(sys.prefix)

    def display(self, path: Path) -> str:
        """Return how a file of the project is named."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def find(self, module: str, folders: Iterable[Path]) -> list[Path] | None:
        """Return the files that importing a module runs, those of its packages first; ``None`` if it is elsewhere."""
        parts = module.split(".")
        for folder in folders:
            base = folder.joinpath(*parts)
            inits = [folder.joinpath(*parts[:end], "__init__.py") for end in range(1, len(parts))]
            own = [each for each in (base / "__init__.py", base.with_suffix(".py")) if each.is_file()][:1]
            if (own or base.is_dir()) and self._is_ours(base):
                return [*(each for each in inits if each.is_file()), *own]
        return None

    def _is_ours(self, path: Path) -> bool:
        return (
            path.is_relative_to(self.root)
            and not _HIDDEN & {*path.relative_to(self.root).parts}
            and not (path.is_relative_to(self._environment) and self._environment != self.root)
        )

    def module(self, path: Path) -> Module:
        """Return what stands in a file; what cannot be read is unknown."""
        if path not in self._modules:
            try:
                self._modules[path] = read_module(path.read_bytes())
            except (OSError, SyntaxError, ValueError, RecursionError) as error:
                self._modules[path] = Module(unknown={1: f"found no Python that can be read ({type(error).__name__})"})
        return self._modules[path]

    def closure(self, start: Iterable[Path], folder: Path) -> Closure:
        """Return what some modules read.

        Args:
            start: Their files.
            folder: Of the suite, from which they import first.
        """
        waiting, seen, packages, data = [*start], set[Path](), set[str](), set[Path]()
        while waiting:
            while waiting:
                path = waiting.pop()
                if path not in seen:
                    seen.add(path)
                    for each in self.module(path).imports:
                        files = self._imported(each, path, [folder, *self.folders, path.parent])
                        if files is not None:
                            waiting += files
                        elif (name := each.module.partition(".")[0]) not in sys.stdlib_module_names:
                            packages.add(f"{name}?" if each.optional else name)
            data = self._data(seen, folder)
            waiting += sorted(each for each in data - seen if each.suffix == ".py")  # a script that is run, perhaps
        unknown = [self._at(path, each) for path in sorted(seen) for each in self.module(path).unknown.items()]
        unread = [self._at(path, each) for path in sorted(seen) for each in self.module(path).unread.items()]
        lost = "a file is read whose path leads to none in the project"
        for path in sorted(seen):
            reads = [each for each in self.module(path).reads if not self._is_followed(each, path, folder, data - seen)]
            unread += [self._at(path, (each.line, lost)) for each in reads]
        if len(data) > _MOST_FILES:
            unread.append(f"more than {_MOST_FILES} files")
        return Closure(frozenset(seen | data), frozenset(packages), tuple(unknown), tuple(unread))

    def _is_followed(self, read: Read, path: Path, folder: Path, data: Iterable[Path]) -> bool:
        """Return whether what a call reads is known: files that it names, or that others do who hand it a path."""
        if any(self._named(each, path, folder) for each in read.texts):
            return True
        named = [each for each in read.texts if "/" in each or "." in each[1:]]
        known = [f"/{each.as_posix()}" for each in data]
        return read.is_handed and bool(data) and all(any(each.endswith(f"/{text}") for each in known) for text in named)

    def _named(self, text: str, path: Path, folder: Path, *, folders: bool = True) -> set[Path]:
        bases = dict.fromkeys((path.parent, folder, self.root, *self.folders))
        return {file for base in bases for file in self.files(base, text, folders=folders)}

    def _at(self, path: Path, place: tuple[int, str]) -> str:
        return f"{self.display(path)}:{place[0]}: {place[1]}"

    def _imported(self, imported: Import, path: Path, folders: Sequence[Path]) -> list[Path] | None:
        """Return the files of an import; ``None`` if they are not the project's."""
        if imported.level:
            package = path.parents[imported.level - 1]
            files: list[Path] | None = [each for each in (package / "__init__.py",) if each.is_file()]
            folders = [package]
            if imported.module:
                files = self.find(imported.module, folders)
        else:
            files = self.find(imported.module, folders)
        if files is None:
            return [] if imported.level else None
        prefix = f"{imported.module}." if imported.module else ""
        for name in imported.names:
            if name == "*":
                files = [
                    *files,
                    *(sorted(files[-1].parent.glob("*.py")) if files[-1:] and files[-1].stem == "__init__" else ()),
                ]
            elif below := self.find(f"{prefix}{name}", folders):
                files = [*files, *below]
        return files

    def _data(self, modules: Iterable[Path], folder: Path) -> set[Path]:
        """Return the files that modules name."""
        files = set[Path]()
        modules = sorted(modules)
        shared = {name for path in modules for name in self.module(path).attributes}
        for path in modules:
            module = self.module(path)
            named = {text: True for name, texts in module.folders.items() if name in shared for text in texts}
            read = {text for each in module.reads for text in each.texts}
            for text, is_path in {**module.paths, **named}.items():
                if text in module.written - read:
                    continue
                files |= self._named(text, path, folder, folders=is_path)
            if module.own_folder:
                files |= {*self._below(path.parent)}
        return files

    def files(self, base: Path, text: str, *, folders: bool) -> set[Path]:
        """Return the files of the project that a text names: a file, a pattern, or a folder with all that is in it.

        Args:
            base: What it is relative to.
            text: The text.
            folders: Whether it may be a folder without a slash in its name.
        """
        if (
            len(text) > _LONGEST
            or "\0" in text
            or text in (".", "..", "/")
            or text.startswith(("~", "http:", "https:"))
        ):
            return set()
        try:
            if "*" in text and not Path(text).is_absolute():
                return {each for each in base.glob(text) if each.is_file() and self._is_ours(each)}
            path = Path(f"{base}/{text}") if not text.startswith("/") else Path(text)
            if path.is_file():
                path = path.resolve()
                return {path} if self._is_ours(path) else set()
            if "/" in text and not path.exists():
                path, folders = path.parent, True  # the rest is filled in when the program runs
            if path.is_dir() and (folders or "/" in text):
                path = path.resolve()
                return set(self._below(path)) if self._is_ours(path) and path not in (self.root, base) else set()
        except (OSError, ValueError, NotImplementedError, IndexError):
            pass
        return set()

    def _below(self, folder: Path) -> Iterator[Path]:
        for each in sorted(folder.iterdir()):
            if each.name.startswith(".") or each.name in _HIDDEN:
                continue
            if each.is_dir():
                yield from self._below(each)
            elif each.suffix != ".pyc":
                yield each
