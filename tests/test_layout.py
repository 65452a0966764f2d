"""The rule for imports: a package imports only packages above it in one list."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_llmeval

PACKAGE = Path(pytest_llmeval.__file__).parent

FLOORS = (
    ("core",),
    ("data", "scoring", "services"),
    ("judge", "targets", "reports"),
    ("evaluators",),
    ("suite",),
    ("snapshots",),
    ("run",),
    ("cli",),
    ("tasks", "plugin"),
)
"""Packages in the order in which they may import; those on one floor do not import each other."""

FLOOR = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}


def imported(path: Path) -> Iterator[str]:
    """Yield every imported module, at the top, inside functions and for type checkers alike."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own(path: Path) -> Iterator[str]:
    """Yield the packages of ours that a module imports."""
    for name in imported(path):
        package, _, rest = name.partition(".")
        if package == "pytest_llmeval":
            yield rest.partition(".")[0]


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_every_package_has_its_floor() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(FLOOR)


@pytest.mark.parametrize("path", [path for path in modules() if path.parent != PACKAGE], ids=name_of)
def test_a_package_imports_only_those_above_it(path: Path) -> None:
    package = path.relative_to(PACKAGE).parts[0]
    against = {
        each for each in own(path) if each not in {package, "_version"} and FLOOR.get(each, 99) >= FLOOR[package]
    }
    assert not against


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_only_the_plugin_imports_pytest(path: Path) -> None:
    roots = {name.partition(".")[0] for name in imported(path)}
    assert path.is_relative_to(PACKAGE / "plugin") or not roots & {"pytest", "_pytest", "xdist", "pluggy"}


@pytest.mark.parametrize("package", FLOOR)
def test_no_module_reaches_itself(package: str) -> None:
    paths = {f"pytest_llmeval.{'.'.join(path.relative_to(PACKAGE).with_suffix('').parts)}": path for path in modules()}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}

    def reached(name: str) -> set[str]:
        found = set()
        for each in imported(paths[name]):
            found |= {each, each.rpartition(".")[0]} & paths.keys() - {name}
        return found

    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way, name))
        if name not in done:
            for each in sorted(reached(name)):
                visit(each, (*way, name))
            done.add(name)

    for name in paths:
        if name.startswith(f"pytest_llmeval.{package}"):
            visit(name, ())


def test_the_top_level_is_a_page() -> None:
    entries = [path for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 20


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_module_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_names_of_test_files_are_unique() -> None:
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
