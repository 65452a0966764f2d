"""Who imports whom, and what a plain pytest run loads because of this plugin."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from llm_server import PATIENCE

import pytest_llmeval

PACKAGE = Path(pytest_llmeval.__file__).parent
HEAVY = {
    *("bert_score", "nltk", "numpy", "pydantic", "rapidfuzz", "rouge_score", "scipy", "sklearn", "torch", "yaml"),
    *("aiohttp", "asyncio", "genai_prices", "pydantic_ai", "sqlite3", "tenacity"),
}
ASKING = {"aiohttp", "genai_prices", "pydantic_ai", "sqlite3", "tenacity"}
"""Libraries that only a run needs that asks a judge."""

KNOWS_PYTEST = {
    "ask_judge",
    "collect",
    "emission",
    "environment",
    "fixtures",
    "handover",
    "hookspecs",
    "lookahead",
    "parametrize",
    "plugin",
    "progress",
    "reports.terminal",
    "runtime",
    "session",
    "snapshots.python_tests",
}
FILES = {
    "answering",
    "background",
    "cli_cache",
    "cli_emotion_cause",
    "cli_retrieval",
    "convert",
    "csv_rows",
    "json_strict",
    "judge.cache",
    "judge.clients",
    "judge.desks",
    "judge.imported_scores",
    "judge.leases",
    "judge.panel",
    "judge.recordings",
    "judge.score_file",
    "judge.service",
    "judge.shared_limits",
    "judge.slots",
    "judge.store",
    "judge.suite_questions",
    "judge.used",
    "judging",
    "loading",
    "pair_files",
    "predict",
    "qa",
    "reading",
    "retrieval_corpus",
    "retrieval_set",
    "sources",
    "text_file",
    "transport",
    "yaml_core",
    "yaml_faults",
}
"""Modules that read or write files, reach the network, or know the shape of suite files."""


@cache
def modules() -> dict[str, Path]:
    """Module name inside the package, ``""`` for the package itself, to file."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and is_type_checking(child):
            for each in child.orelse:
                yield each
                yield from runtime_nodes(each)
            continue
        yield child
        yield from runtime_nodes(child)


@cache
def imports(name: str) -> frozenset[str]:
    """All modules that a module imports at run time, also inside functions, with full names."""
    tree = ast.parse(modules()[name].read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in runtime_nodes(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            assert node.module is not None
            own = {f"{node.module}.{alias.name}".removeprefix("pytest_llmeval.") for alias in node.names}
            found.update(f"pytest_llmeval.{each}" for each in own & modules().keys())
            found.add(node.module)
    return frozenset(found)


def own_imports(name: str) -> set[str]:
    """The modules of this package that a module imports, by their names inside it."""
    return {
        each.removeprefix("pytest_llmeval").removeprefix(".")
        for each in imports(name)
        if each == "pytest_llmeval" or each.startswith("pytest_llmeval.")
    }


def inside(folder: str) -> list[str]:
    return [name for name in modules() if name == folder or name.startswith(f"{folder}.")]


def test_the_walk_sees_imports_at_the_top_in_functions_and_of_submodules() -> None:
    assert {"predict", "transport"} <= own_imports("runtime")
    assert "numpy" in imports("observation")
    assert "reports.files" in own_imports("session")
    assert "registry" not in own_imports("hookspecs")


@pytest.mark.parametrize("name", ["errors", "naming", "observation"])
def test_what_everything_stands_on_imports_nothing_of_the_package(name: str) -> None:
    assert own_imports(name) == set()


@pytest.mark.parametrize("name", inside("measures"))
def test_measures_know_nothing_but_measures_errors_and_names(name: str) -> None:
    assert own_imports(name) <= {*inside("measures"), "errors", "naming"}
    assert not imports(name) & {"pytest", "io", "os", "pathlib", "subprocess"} or name == "measures.wordnet"


@pytest.mark.parametrize("name", inside("evaluators"))
def test_evaluators_know_neither_pytest_nor_files(name: str) -> None:
    assert not imports(name) & {"pytest", "_pytest", "io", "os", "subprocess"}
    assert not {part for each in own_imports(name) for part in (each, *ancestors(each))} & (KNOWS_PYTEST | FILES)


def ancestors(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def test_the_lists_name_modules_that_there_are() -> None:
    assert modules().keys() >= KNOWS_PYTEST | FILES


@pytest.mark.parametrize("name", modules())
def test_only_the_plugin_side_knows_pytest(name: str) -> None:
    knows = bool({each.partition(".")[0] for each in imports(name)} & {"pytest", "_pytest", "xdist"})
    assert not knows or name in KNOWS_PYTEST


@pytest.mark.parametrize("name", sorted(modules().keys() - KNOWS_PYTEST))
def test_nothing_below_the_plugin_side_imports_it(name: str) -> None:
    assert not own_imports(name) & KNOWS_PYTEST


def test_no_module_reaches_itself_through_top_level_imports() -> None:
    def top_level(name: str) -> set[str]:
        tree = ast.parse(modules()[name].read_text(encoding="utf-8"))
        found = {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module}
        return {each.removeprefix("pytest_llmeval.") for each in found if each.startswith("pytest_llmeval.")}

    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path, name))
        if name not in done:
            for each in sorted(top_level(name) & modules().keys()):
                visit(each, (*path, name))
            done.add(name)

    for name in modules():
        visit(name, ())


def loaded(code: str, *arguments: str, folder: Path) -> set[str]:
    """Run Python code that ends by printing what is loaded; return what of it is heavy."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return set(done.stdout.splitlines()[-1].split()) & HEAVY


LIST = "\nprint('\\n' + ' '.join(sorted({name.partition('.')[0] for name in sys.modules})))"


@pytest.mark.parametrize("module", ["pytest_llmeval", "pytest_llmeval.plugin", "pytest_llmeval.cli"])
def test_importing_the_package_loads_no_heavy_library(tmp_path: Path, module: str) -> None:
    assert loaded(f"import sys, {module}{LIST}", folder=tmp_path) == set()


OTHERS = ("hypothesispytest", "syrupy", "xdist", "xdist.looponfail", "rerunfailures", "asyncio", "anyio")
RUN = "import sys, pytest\npytest.main(sys.argv[1:])" + LIST


def test_a_run_that_does_not_ask_for_suites_loads_no_heavy_library(tmp_path: Path) -> None:
    (tmp_path / "s.eval.yaml").write_text("evaluators: [text]\ncases: [{id: a, expected: x, prediction: x}]\n")
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    quiet = [part for name in OTHERS for part in ("-p", f"no:{name}")]
    arguments = ["-p", "no:cacheprovider", *quiet]
    assert loaded(RUN, *arguments, "--collect-only", folder=tmp_path) == set()
    assert loaded(RUN, *arguments, folder=tmp_path) == set()


def test_a_run_that_asks_for_suites_loads_what_their_metrics_need(tmp_path: Path) -> None:
    (tmp_path / "s.eval.yaml").write_text(
        "evaluators: [{text: {metrics: [f1]}}]\ncases: [{id: a, expected: x, prediction: x}]\n"
    )
    quiet = [part for name in OTHERS for part in ("-p", f"no:{name}")]
    found = loaded(RUN, "-p", "no:cacheprovider", *quiet, "--llmeval", folder=tmp_path)
    assert {"numpy", "pydantic", "yaml"} <= found
    assert not found & {"nltk", "rouge_score", "scipy", "torch", *ASKING}


def test_a_run_that_replays_recorded_verdicts_needs_neither_network_nor_database(tmp_path: Path) -> None:
    (tmp_path / "s.eval.yaml").write_text(
        "evaluators: [{judge: {mode: default_binary}}]\njudge: 'openai:m'\n"
        "cases: [{id: a, input: q, expected: x, prediction: x}]\n"
    )
    quiet = [part for name in OTHERS for part in ("-p", f"no:{name}")]
    found = loaded(RUN, "-p", "no:cacheprovider", *quiet, "--llmeval", "--llmeval-judge=replay", folder=tmp_path)
    assert not found & (ASKING - {"genai_prices"})
