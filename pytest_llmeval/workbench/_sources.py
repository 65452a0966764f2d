"""The Python modules of a project, with the imports that stand in them, found without running them."""

import ast
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

_LONGEST: Final = 200
_HIDDEN: Final = frozenset({"__pycache__", "__llmeval__", "node_modules", "site-packages"})


@dataclass(frozen=True)
class Import:
    """An import statement in a module of a user's project.

    Attributes:
        module: Its dotted name; empty for ``from . import name``.
        names: What is imported from it.
        level: Number of leading dots.
        optional: Whether the module does without it.
    """

    module: str
    names: tuple[str, ...] = ()
    level: int = 0
    optional: bool = False


class _ImportReader(ast.NodeVisitor):
    """Reads the import statements of one module of a user's project."""

    def __init__(self) -> None:
        self.imports: list[Import] = []
        self._optional = 0

    def visit_If(self, node: ast.If) -> None:
        test = node.test
        if "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", "")):
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
        for tried in node.body:
            self.visit(tried)
        self._optional -= optional
        for statement in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:
        self.imports += [Import(name.name, optional=bool(self._optional)) for name in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        names = tuple(name.name for name in node.names)
        self.imports.append(Import(node.module or "", names, node.level, bool(self._optional)))


class Closure(NamedTuple):
    """The modules and packages that modules of a project import, directly or indirectly.

    Attributes:
        files: Files of the project.
        packages: Top-level names of what is imported from elsewhere, Python's own aside; with ``?`` if optional.
    """

    files: frozenset[Path]
    packages: frozenset[str] = frozenset()


@dataclass
class SourceTree:
    """The Python modules of a user's project, found without running them.

    Attributes:
        root: The folder of the project; nothing outside of it is read.
        folders: Folders from which Python imports.
    """

    root: Path
    folders: Sequence[Path]
    _imports: dict[Path, Sequence[Import]] = field(default_factory=dict)
    _places: dict[tuple[str, tuple[Path, ...]], list[Path] | None] = field(default_factory=dict)

    @cached_property
    def _environment(self) -> Path:
        return Path(sys.prefix)

    def display(self, path: Path) -> str:
        """The name of a file of the project."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def find(self, module: str, folders: Iterable[Path]) -> list[Path] | None:
        """Return the files that importing a module runs, those of its packages first; ``None`` if it is elsewhere."""
        key = module, tuple(folders)
        if key not in self._places:
            self._places[key] = self._look_for(*key)
        return self._places[key]

    def _look_for(self, module: str, folders: Iterable[Path]) -> list[Path] | None:
        parts = module.split(".")
        for folder in folders:
            base = folder.joinpath(*parts)
            inits = [folder.joinpath(*parts[:end], "__init__.py") for end in range(1, len(parts))]
            own = [path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()][:1]
            if (own or base.is_dir()) and self._is_ours(base):
                return [*(path for path in inits if path.is_file()), *own]
        return None

    def _is_ours(self, path: Path) -> bool:
        return (
            path.is_relative_to(self.root)
            and not _HIDDEN & {*path.relative_to(self.root).parts}
            and not (path.is_relative_to(self._environment) and self._environment != self.root)
        )

    def imports(self, path: Path) -> Sequence[Import]:
        """Return the imports of a file; of one that is no Python, none."""
        if path not in self._imports:
            reader = _ImportReader()
            try:
                reader.visit(ast.parse(path.read_bytes()))
            except (OSError, SyntaxError, ValueError, RecursionError):
                reader.imports = []
            self._imports[path] = reader.imports
        return self._imports[path]

    def closure(self, start: Iterable[Path], folders: Sequence[Path]) -> Closure:
        """The modules that some modules import.

        Args:
            start: Their files.
            folders: From which they import.
        """
        waiting, seen, packages = [*start], set[Path](), set[str]()
        while waiting:
            path = waiting.pop()
            if path in seen:
                continue
            seen.add(path)
            for imported in self.imports(path):
                files = self._imported(imported, path, [*folders, path.parent])
                if files is not None:
                    waiting += files
                elif (name := imported.module.partition(".")[0]) not in sys.stdlib_module_names:
                    packages.add(f"{name}?" if imported.optional else name)
        return Closure(frozenset(seen), frozenset(packages))

    def _imported(self, imported: Import, path: Path, folders: Sequence[Path]) -> list[Path] | None:
        """Return the files of an import; ``None`` if they are not the project's."""
        if imported.level:
            package = path.parents[imported.level - 1]
            files: list[Path] | None = [file for file in (package / "__init__.py",) if file.is_file()]
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

    def files(self, base: Path, text: str) -> set[Path]:
        """Return the files of the project that a text names: a file, a pattern, or a folder with all that is in it.

        Args:
            base: What it is relative to.
            text: The text.
        """
        if len(text) > _LONGEST or "\0" in text or text in (".", "..", "/") or text.startswith("~"):
            return set()
        try:
            if "*" in text and not Path(text).is_absolute():
                return {file for file in base.glob(text) if file.is_file() and self._is_ours(file)}
            if not os.path.exists(f"{base}/{text}"):  # noqa: PTH110 (most texts are not paths, which are slow)
                return set()
            path = (base / text).resolve()
            if path.is_file():
                return {path} if self._is_ours(path) else set()
            if path.is_dir() and self._is_ours(path) and path not in (self.root, base):
                return {file for file in path.rglob("*") if file.is_file() and self._is_ours(file)}
        except (OSError, ValueError, NotImplementedError, IndexError):
            pass
        return set()
