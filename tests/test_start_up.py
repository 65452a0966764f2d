"""What a plain pytest run, a run of suites and an import of the package load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from llm_server import PATIENCE

HEAVY = {
    *("bert_score", "nltk", "numpy", "pydantic", "rapidfuzz", "rouge_score", "scipy", "sklearn", "torch", "yaml"),
    *("aiohttp", "asyncio", "genai_prices", "pydantic_ai", "sqlite3", "tenacity"),
}
ASKING = {"aiohttp", "genai_prices", "pydantic_ai", "sqlite3", "tenacity"}
"""Libraries that only a run needs that asks a judge."""


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


@pytest.mark.parametrize(
    "module", ["pytest_llmeval", "pytest_llmeval_suite", "pytest_llmeval.plugin.hooks", "pytest_llmeval.cli"]
)
def test_importing_the_package_loads_no_heavy_library(tmp_path: Path, module: str) -> None:
    assert loaded(f"import sys, {module}{LIST}", folder=tmp_path) == set()


def test_registering_tasks_imports_none_of_their_modules() -> None:
    code = (
        "import sys, pytest_llmeval.suite.registry as made; before = set(sys.modules); made.default_registry(); "
        "print(*(name for name in set(sys.modules) - before if name.startswith('pytest_llmeval.tasks.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    names = done.stdout.split()
    assert names
    assert {name.count(".") for name in names} == {2}


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
