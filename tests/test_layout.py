"""The rule for imports: a package imports only packages above it in one list."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from project import ROOT, script

import pytest_llmeval

PACKAGE = Path(pytest_llmeval.__file__).parent

FLOORS = (
    ("core",),
    ("data", "numbers", "services"),
    ("gates", "judges", "targets"),
    ("reports",),
    ("evaluators",),
    ("suites",),
    ("baselines",),
    ("run",),
    ("cli",),
    ("plugin",),
    ("exchange", "tasks", "workbench"),
)
"""Packages in the order in which they may import; those on one floor do not import each other. The last floor stands
beside the kernel, which imports nothing of it: its packages join by the registration that users' plugins have."""

KERNEL = frozenset(package for packages in FLOORS[:-1] for package in packages)

FLOOR = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}


MODULES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(module: str) -> ast.Module:
    """Return a module as Python parses it."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def nodes_of(module: str) -> Sequence[ast.AST]:
    """Return all nodes of a module, which most tests here look at."""
    return tuple(ast.walk(tree_of(module)))


@cache
def imported(module: str) -> frozenset[str]:
    """Return every imported module, at the top, inside functions and for type checkers alike."""
    found: set[str] = set()
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}:{node.lineno}: relative import"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def own(module: str) -> set[str]:
    """Return the packages of ours that a module imports."""
    names = (name.split(".") for name in imported(module))
    return {parts[1] for parts in names if parts[0] == "pytest_llmeval" and len(parts) > 1}


def test_every_package_has_its_floor() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(FLOOR)


def test_a_package_imports_only_those_above_it() -> None:
    against = {
        (module, each)
        for module in MODULES
        if "/" in module
        for package in [module.partition("/")[0]]
        for each in own(module) - {package, "_lazy", "_version", *(() if package in KERNEL else ("extend",))}
        if FLOOR.get(each, 99) >= FLOOR[package]
    }
    assert not against


def test_only_the_plugin_imports_pytest() -> None:
    tools = {"pytest", "_pytest", "xdist", "pluggy"}
    importing = {module for module in MODULES if tools & {name.partition(".")[0] for name in imported(module)}}
    assert {module for module in importing if not module.startswith("plugin/")} == set()


def test_no_module_reaches_itself() -> None:
    names = {f"pytest_llmeval.{module.removesuffix('.py').replace('/', '.')}": module for module in MODULES}
    names = {name.removesuffix(".__init__"): module for name, module in names.items()}
    done: set[str] = set()

    def reached(name: str) -> set[str]:
        found = {part for each in imported(names[name]) for part in (each, each.rpartition(".")[0])}
        return found & names.keys() - {name, "pytest_llmeval.extend"}  # the page of types imports nothing at run time

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way, name))
        if name not in done:
            for each in sorted(reached(name)):
                visit(each, (*way, name))
            done.add(name)

    for name in names:
        if name.partition(".")[2].partition(".")[0] in FLOOR:
            visit(name, ())


def test_files_at_the_top_are_few() -> None:
    files = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert files == {"__init__.py", "__main__.py", "_lazy.py", "_version.py", "extend.py", "py.typed", "qa.py"}


def test_a_name_means_one_thing() -> None:
    """Of classes and types; tasks have vocabularies of their own, and the page of extensions shows types of others."""
    places: dict[str, list[str]] = {}
    for module in MODULES:
        for node in tree_of(module).body if not module.startswith(("tasks/", "extend")) else ():
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module)
            elif isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
                places.setdefault(ast.unparse(node.target), []).append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


MARKS = ("...", "\N{HORIZONTAL ELLIPSIS}")
SHORTEST_EXCERPT = 20
"""Shorter beginnings are those of digests and commits."""


def has_slice(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Slice) for each in ast.walk(node))


def is_beginning(node: ast.AST) -> bool:
    """Return whether an expression cuts at a limit: ``text[:60]``, ``text[: LONGEST - 1]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice) or node.slice.upper is None:
        return False
    limit = node.slice.upper
    named = any(isinstance(each, ast.Name) and each.id.isupper() for each in ast.walk(limit))
    long = isinstance(limit, ast.Constant) and limit.value >= SHORTEST_EXCERPT
    return (named or long) and not ast.unparse(node.value).endswith(".hexdigest()")


def has_mark(node: ast.AST) -> bool:
    """Return whether a text in it begins with a mark for what is left out."""
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return any(text.lstrip().startswith(MARKS) for text in texts)


def cuts_a_text(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (has_slice(left) and has_mark(right)) or (has_mark(left) and has_slice(right))
        case ast.JoinedStr(values=values):
            return any(has_slice(before) and has_mark(after) for before, after in pairwise(values))
        case ast.FormattedValue(value=value):
            return is_beginning(value)
        case ast.Call(func=function, args=arguments):
            name = ast.unparse(function)
            return name.endswith("shorten") or (name in ("repr", "printable") and any(map(is_beginning, arguments)))
    return False


def test_texts_are_cut_in_one_place() -> None:
    """By `excerpt` and `quotation`, which escape control characters and have one mark for what is left out."""
    places = {
        f"{module}:{node.lineno}"
        for module in MODULES
        if module != "core/wording.py"
        for node in nodes_of(module)
        if isinstance(node, ast.expr) and cuts_a_text(node)
    }
    assert places == set()


@pytest.mark.parametrize(
    "source",
    [
        'text[:LONGEST] + "..."',
        "f'{text[:LONGEST]}…'",
        'f"found {text[:60]!r}"',
        "repr(text[:20])",
        '"..." + text[-9:]',
    ],
)
def test_a_cut_text_is_noticed(source: str) -> None:
    assert any(map(cuts_a_text, ast.walk(ast.parse(source))))


WHAT_HAPPENED = frozenset(
    {
        *("told", "said", "heard", "given", "asked", "wanted", "shown", "found", "kept", "made", "taken"),
        *("rest", "one", "once", "look", "of", "problem"),
    }
)
"""Words that say what happened to a thing, or nothing, in place of what it is."""

PUBLISHED = {
    "tasks/extraction/_fields.py": {"of"},
    "evaluators/judge/_verdict_metrics.py": {"of"},
    "run/_partial.py": {"of"},
    "workbench/plan/__init__.py": {"of"},
}
"""Such names that users rely on: methods of public classes, keys of suite files, score files and JSON."""


def defined_names(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """Yield each identifier that is defined, with its line."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)):
                yield name, node.lineno


def test_a_name_says_what_a_thing_is() -> None:
    places = [
        f"{module}:{line} {name}"
        for module in MODULES
        for name, line in defined_names(nodes_of(module))
        if name.strip("_").lower() in WHAT_HAPPENED - PUBLISHED.get(module, set())
    ]
    assert places == [], "name what it is, not what happened to it"


def test_names_of_test_files_are_unique() -> None:
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def is_number(node: ast.expr) -> bool:
    """Return whether an expression is a number as written, other than a boolean."""
    if isinstance(node, ast.UnaryOp | ast.BinOp):
        return all(is_number(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def defaults_by_or(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Yield expressions such as ``limit or 5``, in which 0 becomes the default; ``count or 0`` changes nothing."""
    numbers = {
        target.id
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_number(node.value)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
                default = node.values[-1]
                named = isinstance(default, ast.Name) and default.id in numbers
                if named or (is_number(default) and ast.literal_eval(ast.unparse(default)) != 0):
                    yield f"{module}:{node.lineno}: {ast.unparse(node)}"


def test_a_falsy_number_is_a_value_and_never_replaced_by_a_default() -> None:
    sample = ast.parse(
        "_MOST: int = 5\na = b or 5\nc = b or -1.5\nd = b or _MOST\ne = b or 0\nf = b or True\ng = b or ()"
    )
    assert [each.partition(" ")[0] for each in defaults_by_or({"x": sample})] == ["x:2:", "x:3:", "x:4:"]
    trees = {name: tree_of(name) for name in MODULES}
    assert list(defaults_by_or(trees)) == []


def test_packages_use_no_more_names_of_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """A new name needs a reason: `.ci/surface.py --write` adds it to the file, and the commit says why."""
    assert script("surface").main([]) == 0, capsys.readouterr().out


def room(parts: list[str]) -> list[str]:
    """Return the package that a dotted name is of; a task is a package of its own."""
    return parts[:3] if parts[1:2] == ["tasks"] else parts[:2]


IMPORT_STRING = re.compile(r"(pytest_llmeval\.[\w.]+):\w+")


def modules_named(module: str) -> Iterator[str]:
    """Yield the modules of ours that a module imports names from, by statements and by import strings."""
    for node in nodes_of(module):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pytest_llmeval."):
            yield node.module
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from IMPORT_STRING.findall(node.value)


def test_packages_import_each_other_by_their_faces() -> None:
    """Between packages, an import names the package and no module of it."""
    deep = {
        (module, name)
        for module in MODULES
        if "/" in module
        for name in modules_named(module)
        for parts in [name.split(".")]
        if room(parts) != room(["pytest_llmeval", *module.removesuffix(".py").split("/")])
        if parts != room(parts) and parts[1] not in ("_lazy", "_version")
    }
    assert deep == set()


def bound_names(module: str) -> Iterator[str]:
    """Yield the names at the top of a module, also those that only type checkers import."""
    for node in tree_of(module).body:
        for bound in node.body if isinstance(node, ast.If) else (node,):
            match bound:
                case ast.ImportFrom() | ast.Import():
                    yield from (alias.asname or alias.name for alias in bound.names)
                case ast.FunctionDef() | ast.ClassDef():
                    yield bound.name
                case ast.Assign() | ast.AnnAssign():
                    yield from (name.id for name in ast.walk(bound) if isinstance(name, ast.Name))


def imports_of_repository() -> Iterator[tuple[str, ast.ImportFrom]]:
    """Yield the imports of names from the package by each Python file in the repository, tests and benchmarks too."""
    for module in MODULES:
        yield from ((module, node) for node in nodes_of(module) if isinstance(node, ast.ImportFrom))
    for folder in (".ci", "benchmarks", "docs", "example_suites", "tests"):
        for path in sorted(ROOT.joinpath(folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if "from pytest_llmeval." in source:
                name = path.relative_to(ROOT).as_posix()
                yield from ((name, node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom))


def test_faces_have_what_is_imported_from_them() -> None:
    """Type checkers do not see this: a package that loads names lazily could have any."""
    faces = {f"pytest_llmeval.{module.removesuffix('/__init__.py').replace('/', '.')}": module for module in MODULES}
    names = {face: frozenset(bound_names(module)) for face, module in faces.items()}
    lacking = {
        (module, node.module, alias.name)
        for module, node in imports_of_repository()
        if node.module in faces
        for alias in node.names
        if alias.name not in names[node.module]
        if f"{node.module}.{alias.name}".removeprefix("pytest_llmeval.").replace(".", "/") + ".py" not in MODULES
        if f"{node.module}.{alias.name}" not in faces
    }
    assert lacking == set()


def homes_of(face: str) -> dict[str, tuple[str, ...]]:
    """Return the names that a face loads when they are used, by their module."""
    for node in tree_of(face).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            homes: dict[str, tuple[str, ...]] = ast.literal_eval(node.value)
            return homes
    return {}


@pytest.mark.parametrize("package", [name for floor in FLOORS for name in floor])
def test_a_face_lists_only_what_others_use(package: str) -> None:
    """Tests reach what is private where it is; a name in a face promises more."""
    face = f"pytest_llmeval.{package}"
    listed = {name for names in homes_of(f"{package}/__init__.py").values() for name in names}
    outside = [module for module in MODULES if not module.startswith(f"{package}/")]
    used = {
        alias.name
        for module in outside
        for node in nodes_of(module)
        if isinstance(node, ast.ImportFrom) and node.module == face
        for alias in node.names
    }
    strings = {node.value for module in MODULES for node in nodes_of(module) if isinstance(node, ast.Constant)}
    assert {name for name in listed - used if f"{face}:{name}" not in strings} == set()


@pytest.mark.parametrize("face", [module for module in MODULES if module.endswith("/__init__.py")])
def test_a_face_loads_the_names_that_type_checkers_see(face: str) -> None:
    body = tree_of(face).body
    package = "pytest_llmeval." + face.removesuffix("/__init__.py").replace("/", ".") + "."
    seen = {
        node.module.removeprefix(package): {alias.name for alias in node.names}
        for block in body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(package)
    }
    assert {home: set(names) for home, names in homes_of(face).items()} == seen
