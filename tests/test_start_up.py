"""What a plain pytest run, a run of suites and an import of the package load."""

import ast
import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from running import run_python
from servers import PATIENCE

import pytest_llmeval
import pytest_llmeval_suite

HEAVY = {
    *("bert_score", "nltk", "numpy", "pydantic", "rapidfuzz", "rouge_score", "scipy", "sklearn", "torch", "yaml"),
    *(
        "aiohttp",
        "asyncio",
        "genai_prices",
        "jmespath",
        "jsonschema",
        "mcp",
        "py3langid",
        "pydantic_ai",
        "regex",
        "sqlite3",
    ),
}
ASKING = {"aiohttp", "genai_prices", "pydantic_ai", "sqlite3"}
"""Libraries that only a run needs that asks a judge."""


def loaded(code: str, *arguments: str, folder: Path) -> set[str]:
    """Run Python code that ends by printing what is loaded; return that."""
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
    return set(done.stdout.splitlines()[-1].split())


LIST = "\nprint('\\n' + ' '.join(sorted({name.partition('.')[0] for name in sys.modules})))"


@pytest.mark.parametrize(
    "module", ["pytest_llmeval", "pytest_llmeval_suite", "pytest_llmeval.plugin.hooks", "pytest_llmeval.cli"]
)
def test_importing_the_package_loads_no_heavy_library(tmp_path: Path, module: str) -> None:
    assert loaded(f"import sys, {module}{LIST}", folder=tmp_path) & HEAVY == set()


@pytest.mark.parametrize(("use", "depths"), [('get("text")', set()), ("sources", {2})])
def test_tasks_are_imported_when_a_name_may_be_theirs_and_none_of_their_modules(use: str, depths: set[int]) -> None:
    code = (
        "import sys, pytest_llmeval.suites._registry as module; before = set(sys.modules); "
        f"module.Registry.installed().{use}; "
        "print(*(name for name in set(sys.modules) - before if name.startswith('pytest_llmeval.tasks.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert {name.count(".") for name in done.stdout.split()} == depths


def test_the_entry_point_registers_the_hooks_without_searching_all_distributions_again() -> None:
    manager = pytest.PytestPluginManager()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manager, "load_setuptools_entrypoints", lambda *_, **__: pytest.fail("searched again"))
        manager.register(pytest_llmeval_suite)
        manager.hook.pytest_addhooks.call_historic(kwargs={"pluginmanager": manager})
    assert manager.has_plugin("pytest_llmeval.plugin.hooks")


def test_the_plugin_may_also_be_named_on_the_command_line() -> None:
    manager = pytest.PytestPluginManager()
    for plugin in ("pytest_llmeval.plugin.hooks", "pytest_llmeval_suite"):
        manager.import_plugin(plugin)
    manager.hook.pytest_addhooks.call_historic(kwargs={"pluginmanager": manager})
    assert manager.has_plugin("pytest_llmeval.plugin.hooks")


OTHERS = ("hypothesispytest", "syrupy", "xdist", "xdist.looponfail", "rerunfailures", "asyncio", "anyio")
RUN = "import sys, pytest\npytest.main(sys.argv[1:])" + LIST


def test_a_run_that_does_not_ask_for_suites_loads_no_heavy_library(tmp_path: Path) -> None:
    (tmp_path / "s.eval.yaml").write_text("evaluators: [text]\ncases: [{id: a, expected: x, prediction: x}]\n")
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    quiet = [part for name in OTHERS for part in ("-p", f"no:{name}")]
    arguments = ["-p", "no:cacheprovider", *quiet]
    assert loaded(RUN, *arguments, "--collect-only", folder=tmp_path) & HEAVY == set()
    assert loaded(RUN, *arguments, folder=tmp_path) & HEAVY == set()


def test_a_run_that_does_not_ask_for_suites_loads_options_and_hooks_of_ours_only(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    code = RUN.replace("name.partition('.')[0] for name", "name for name")
    arguments = ["-p", "no:cacheprovider", *(part for name in OTHERS for part in ("-p", f"no:{name}"))]
    ours = {f"pytest_llmeval.plugin.{name}" for name in ("hooks", "_options")}
    ours |= {"pytest_llmeval", "pytest_llmeval_suite", "pytest_llmeval.core"}
    ours |= {
        f"pytest_llmeval.{name}"
        for name in ("_lazy", "_version", "cli", "cli._options", "plugin", "reports", "reports._files")
    }
    assert {name for name in loaded(code, *arguments, folder=tmp_path) if name.startswith("pytest_llmeval")} == ours


def test_every_public_name_is_loaded_from_the_module_that_type_checkers_see() -> None:
    tree = ast.parse(Path(pytest_llmeval.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pytest_llmeval.")
        for alias in node.names
        if alias.name not in ("__version__", "_entries", "*")  # these names depend on what is registered
    }
    homes = {name: f"pytest_llmeval.{home}" for home, names in pytest_llmeval._HOMES.items() for name in names}
    assert homes == seen
    assert set(homes) == set(pytest_llmeval.__all__)
    for name, home in homes.items():
        assert getattr(pytest_llmeval, name) is getattr(import_module(home), name)
    with pytest.raises(AttributeError, match="has no attribute 'scores'"):
        _ = pytest_llmeval.scores  # type: ignore[attr-defined]  # that is the point


UNUSED = {
    *("gates._drop", "gates._rules", "judges._asking", "judges._protocol", "judges._panel", "judges._reduction"),
    *("exchange", "services._retrying", "tasks.emotion_cause", "tasks.narrative", "tasks.retrieval"),
    *("baselines._baselines", "baselines._files", "baselines._history", "baselines._scores", "run._shards"),
    *("targets._python", "targets._recordings", "targets._spec"),
    *("core._frames", "core._media", "core._media_types", "core._rereading", "core._tables"),
    *("data.files._media_folder", "reports._failures", "reports._filling", "reports._headline", "services._git"),
    *("numbers._case_statistics", "suites._judge_settings", "suites._media_files"),
    *("workbench.early._stopping", "workbench.early._evidence", "workbench.plan._making"),
    *("run._call_counts", "run._stream", "workbench._suite_questions", "suites._schema", "evaluators.judge._agreement"),
}
"""Modules that a suite of recorded answers does not need: it has no judges, targets, systems or approved scores."""

MOST = {"recorded": 95, "merged": 93, "gated": 113}
"""Modules of ours that such a run loads at most, among them those of the packages. Raise one with a reason only."""


def count_own(names: set[str]) -> int:
    """Count the modules of ours."""
    return sum(name.partition(".")[0] == "pytest_llmeval" for name in names)


def test_a_run_that_asks_for_suites_loads_what_their_metrics_need(tmp_path: Path) -> None:
    suite = "evaluators: [text]\ngates: [f1 >= 0.5]\nsource: {format: jsonl, path: cases.jsonl}\n"
    (tmp_path / "s.eval.yaml").write_text(suite)
    cases = [{"id": "a", "expected": "x… (y)...", "prediction": "x"}, {"id": "b", "expected": "x", "prediction": "x"}]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    quiet = [part for name in OTHERS for part in ("-p", f"no:{name}")]
    code = RUN.replace("name.partition('.')[0] for name", "name for name")
    found = loaded(code, "-p", "no:cacheprovider", *quiet, "--llmeval", folder=tmp_path)
    assert {"numpy", "yaml"} <= found
    assert not found & {"asyncio", "nltk", "pydantic", "tabulate", "scipy", "torch", *ASKING}
    assert all(find_spec(f"pytest_llmeval.{name}") for name in UNUSED)
    assert sorted(found & {f"pytest_llmeval.{name}" for name in UNUSED}) == []
    assert count_own(found) <= MOST["recorded"]


def test_merging_shards_loads_no_judge_and_nothing_that_a_suite_does_not_name(tmp_path: Path) -> None:
    (tmp_path / "s.eval.yaml").write_text("evaluators: [text]\ncases: [{id: a, expected: x, prediction: x}]\n")
    quiet = [part for name in OTHERS for part in ("-p", f"no:{name}")]
    shard = ("--llmeval", "--llmeval-shard=1/1", "--llmeval-report=one.llmeval")
    loaded(RUN, "-p", "no:cacheprovider", *quiet, *shard, folder=tmp_path)
    merge = "import sys\nfrom pytest_llmeval.cli import main\nassert main(['merge', 'one.llmeval']) == 0"
    found = loaded(merge + LIST.replace("name.partition('.')[0] for name", "name for name"), folder=tmp_path)
    assert "pytest_llmeval.run._merging" in found
    assert count_own(found) <= MOST["merged"]
    unused = ("exchange", "gates._drop", "judges._asking", "judges._service", "tasks", "workbench.")
    assert {name for name in found if name.startswith(tuple(f"pytest_llmeval.{each}" for each in unused))} == set()


def test_a_gate_against_approved_scores_does_not_load_the_statistics_of_scipy(tmp_path: Path) -> None:
    head = "evaluators: [text]\nsnapshot: {tolerance: 1}\ngates: [{metric: f1, max_drop: 0.02}]\n"

    def write(answers: str) -> None:
        cases = "".join(f"  - {{id: c{n}, expected: x, prediction: {each}}}\n" for n, each in enumerate(answers))
        (tmp_path / "s.eval.yaml").write_text(f"{head}cases:\n{cases}")

    write("x" * 12)
    assert run_python(["-m", "pytest", "--llmeval", "--snapshot-update"], os.environ, tmp_path).code == 0
    write("y" * 5 + "x" * 7)
    code = RUN.replace("name.partition('.')[0] for name", "name for name")
    found = loaded(code, "-p", "no:cacheprovider", "--llmeval", folder=tmp_path)
    assert "pytest_llmeval.numbers._significance" in found
    assert "scipy.special" in found
    assert "scipy.stats" not in found
    assert count_own(found) <= MOST["gated"]


OWN = """
from dataclasses import dataclass
from pytest_llmeval import Evaluator, Metric, Observation

@dataclass(frozen=True)
class Length(Evaluator):
    name = "length"
    unit: str = "words"

    def describe(self):
        return [Metric("length", high=None)]

    def measure(self, case):
        return Observation({"size": len(case.prediction), "n": 1})

    def summarize(self, sums):
        return {"length": sums["size"] / sums["n"]}

def pytest_llmeval_register(registry):
    registry.register(Length)
"""


def test_traces_and_telemetry_are_loaded_where_they_are_asked_for_only(tmp_path: Path) -> None:
    suite = "evaluators: [text]\ntarget: bot:answer\ncases: [{id: a, input: x, expected: x}]\n"
    (tmp_path / "s.eval.yaml").write_text(suite)
    (tmp_path / "bot.py").write_text("def answer(word): return word\n")
    code = RUN.replace("name.partition('.')[0] for name", "name for name")
    seen = loaded(code, "-p", "no:cacheprovider", "--llmeval", folder=tmp_path)
    assert "pytest_llmeval.run._answering" in seen
    unasked = ("pytest_llmeval.exchange", "opentelemetry.sdk")
    assert {name for name in seen if name.startswith(unasked)} == set()


def test_options_of_a_users_evaluator_are_read_without_pydantic(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(OWN)
    (tmp_path / "s.eval.yaml").write_text("evaluators: [length: {unit: letters}]\ncases: [{id: a, prediction: x}]\n")
    quiet = [part for name in OTHERS for part in ("-p", f"no:{name}")]
    found = loaded(RUN, "-p", "no:cacheprovider", *quiet, "--llmeval", folder=tmp_path)
    assert "numpy" in found
    assert "pydantic" not in found


def test_a_run_that_replays_recorded_verdicts_needs_neither_network_nor_database(tmp_path: Path) -> None:
    (tmp_path / "s.eval.yaml").write_text(
        "evaluators: [{judge: {mode: default_binary}}]\njudge: 'openai:m'\n"
        "cases: [{id: a, input: q, expected: x, prediction: x}]\n"
    )
    quiet = [part for name in OTHERS for part in ("-p", f"no:{name}")]
    found = loaded(RUN, "-p", "no:cacheprovider", *quiet, "--llmeval", "--llmeval-judge=replay", folder=tmp_path)
    assert not found & (ASKING - {"genai_prices"})
