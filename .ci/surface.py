"""The names of each package that other packages use, counted against `surface.txt`.

    python .ci/surface.py            print names that are new since the file was written; exit 1 if there are any
    python .ci/surface.py --write    write the file
    python .ci/surface.py --single   print names with a single consumer

A name that is used from outside is a promise to its users. The file may grow, with a commit that says why.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

PACKAGE: Final = Path(__file__).parents[1] / "pytest_llmeval"
STORED: Final = Path(__file__).with_suffix(".txt")
BESIDE: Final = frozenset({"tasks", "exchange", "workbench"})
"""The packages beside the kernel."""

_TARGET: Final = re.compile(r"pytest_llmeval((?:\.\w+)+):(\w+)")

Surface: TypeAlias = Mapping[str, frozenset[str]]
"""Names, such as ``core.case.Case``, with the packages that use each from outside."""


def read_surface(package: Path = PACKAGE) -> Surface:
    """Return the names that cross the border of a package; modules at the top of the tree cross none."""
    consumers: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        consumer, *inside = path.relative_to(package).parts
        for name in _imported_names(ast.parse(path.read_text(encoding="utf-8")), package) if inside else ():
            if name.partition(".")[0] != consumer:
                consumers.setdefault(name, set()).add(consumer)
    return {name: frozenset(consumers[name]) for name in sorted(consumers)}


def _imported_names(tree: ast.Module, package: Path) -> Iterator[str]:
    """Yield what a module uses of the packages: by import, through an imported module, and by import strings."""
    modules: dict[str, str] = {}
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pytest_llmeval."):
            home = node.module.removeprefix("pytest_llmeval.")
            for alias in node.names:
                if _is_module(package, f"{home}.{alias.name}"):
                    modules[alias.asname or alias.name] = f"{home}.{alias.name}"
                elif (package / home.partition(".")[0]).is_dir():
                    yield f"{home}.{alias.name}"
        elif isinstance(node, ast.Import):
            modules.update(
                (alias.asname, alias.name.removeprefix("pytest_llmeval."))
                for alias in node.names
                if alias.asname and alias.name.startswith("pytest_llmeval.")
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, name in _TARGET.findall(node.value):
                yield f"{module[1:]}.{name}"
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{modules[node.value.id]}.{node.attr}"


def _is_module(package: Path, name: str) -> bool:
    """Return whether a dotted name is a module or package of ours."""
    path = package.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def describe(surface: Surface) -> str:
    """Return the counts of a surface: all names, those with one consumer, kernel names used from beside it."""
    single = sum(len(users) == 1 for users in surface.values())
    beside = [name for name, users in surface.items() if name.partition(".")[0] not in BESIDE and users & BESIDE]
    modules = {name.rpartition(".")[0] for name in beside}
    return (
        f"{len(surface)} names cross a border, {single} of them for one consumer; "
        f"{len(beside)} kernel names from {len(modules)} modules are used from beside it"
    )


def main(arguments: Sequence[str]) -> int:
    """Compare the surface with the stored one, or write it; return the exit code."""
    surface = read_surface()
    if arguments == ["--write"]:
        STORED.write_text("".join(f"{name}\n" for name in surface), encoding="utf-8")
    elif arguments == ["--single"]:
        print("\n".join(f"{name}  {next(iter(users))}" for name, users in surface.items() if len(users) == 1))
    elif arguments:
        print(__doc__, file=sys.stderr)
        return 2
    grown = sorted(surface.keys() - set(STORED.read_text(encoding="utf-8").split()))
    print(*grown, describe(surface), sep="\n")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
