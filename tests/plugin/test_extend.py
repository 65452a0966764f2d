"""A plugin of a few lines adds one of everything that can be added."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from project import ROOT
from running import Finished, run_python

from pytest_llmeval import LlmevalError, Registry, extend

PLUGIN = """
import json
from dataclasses import dataclass

from pytest_llmeval import Case, Evaluator, JudgeReply, Metric, Mutator, Observation, extend
from pytest_llmeval.extend import FileSource


@dataclass(frozen=True)
class Length(Evaluator):
    name = "length"

    def describe(self):
        return [Metric("words", high=None, higher_is_better=False)]

    def measure(self, case):
        return Observation({"words": len(case.prediction.split()), "n": 1})

    def summarize(self, sums):
        return {"words": sums["words"] / sums["n"]}


def is_short(answer: str, most: int) -> bool:
    return len(answer) <= most


@dataclass(frozen=True)
class Ledger(FileSource):
    format = "ledger"

    def read(self, file):
        for number, line in enumerate(file.path.read_text().splitlines(), 1):
            name, prediction = line.split()
            file.add(Case(name, name, "x", prediction, line=number))


@extend.gate_rule
class GapGate(extend.ScoreGate):
    most: float = extend.owned(kw_only=False, max_gap=extend.GateKey(float, "the largest gap"))
    tags = ("max_gap",)
    title = "a gate with max_gap"
    form = extend.TextForm("gap", "<=", "max_gap")

    @classmethod
    def arguments(cls, values):
        return {"most": values["max_gap"], **super().arguments(values)}

    @property
    def allowed(self):
        return self.most

    def verdict(self, score):
        gap = 1 - score.value
        return ("passed" if gap <= self.most else "failed"), gap, f"the gap is {gap:g}"


class Memory:
    clock = staticmethod(lambda: 0.0)
    kept = {}

    def __init__(self, path):
        self.path = path

    def get(self, key):
        return self.kept.get(key)

    def put(self, entries):
        self.path.mkdir(exist_ok=True)
        (self.path / "used").touch()
        self.kept.update((entry.key, entry) for entry in entries)

    def entries(self):
        return iter(self.kept.values())

    def verify(self):
        return []

    def prune(self, older_than_s=None, model=None):
        return 0

    def close(self):
        pass


class Echo:
    async def complete(self, request):
        return JudgeReply("yes: it echoes")

    async def aclose(self):
        pass


def write_rst(report, path):
    path.write_text("".join(f"* {suite.suite}\\n" for suite in report.suites))
    return "without cases"


def write_ill(report, path):
    raise ValueError("no form for this run")


def import_lines(path, display_path, options):
    cases = [{"id": word, "input": word, "expected": word} for word in path.read_text().split()]
    settings = {"evaluators": [{"text": {"metrics": ["exact_match"]}}]}
    return extend.ImportedSource(display_path, extend.ImportedSuite(path.stem, settings, cases))


def add_upload(parser):
    parser.set_defaults(run=lambda options: print("uploaded") or 0)


def add_greet(parser):
    parser.set_defaults(run=lambda options: print("hello") or 0)


def note(reported, scope):
    from msgspec import structs

    owners = {suite.suite.extra["owner"] for suite in reported.judged.suites}
    return structs.replace(reported, notes=[*reported.notes, f"ask {', '.join(owners)}"])


TALLY = extend.ResultFormat(
    "tally", "tally 1", {"tallies": ("tallies.*",)}, (extend.Scores("", "=points", "points"),), case="name"
)


def register(registry: extend.Registry) -> None:
    registry.register(Length)
    registry.register_check(is_short)
    registry.register_source(Ledger)
    registry.register_mutator(
        Mutator("reversed", "it is reversed", lambda case, neighbours: case.prediction[::-1], advice="exact_match")
    )
    registry.register_command("greet", add_greet, help="greet")
    registry.register_gate_rule(GapGate)
    registry.register_key("owner", extend.Key("the team that answers for the suite", "`nobody`", str, "nobody"))
    registry.register_report_format(".rst", write_rst)
    registry.register_report_format(".ill", write_ill)
    registry.register_results_formats({"tally": TALLY})
    registry.register_importer("lines", import_lines, ["*.lines"])
    registry.register_export("nowhere", add_upload, help="takes a report nowhere")
    registry.register_provider("echo", lambda spec, patience: Echo())
    registry.register_store("memory", Memory, "cache.sqlite3")
    registry.extend("reported", note)
"""

SUITE = """
suite: everything
owner: the search team
evaluators: [length, {text: {metrics: [exact_match]}}]
checks: [{is_short: 9}, {judge: Is it a word?}]
judge: {model: "echo:any"}
source: {format: ledger, path: words.txt}
gates:
  - gap(exact_match) <= 0.5
  - {metric: exact_match, max_gap: 0.4}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project beside an installed distribution with the plugin."""
    info = tmp_path / "everything-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: everything\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest_llmeval.plugins]\neverything = everything:register\n")
    (tmp_path / "everything.py").write_text(PLUGIN)
    (tmp_path / "words.txt").write_text("a x\nb y\n")
    (tmp_path / "s.eval.yaml").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nllmeval_cache = memory:replies\n")
    return tmp_path


def run(folder: Path, module: str, *arguments: str) -> Finished:
    path = os.pathsep.join((str(folder), str(ROOT)))
    return run_python(["-m", module, *arguments], {**os.environ, "PYTHONPATH": path}, folder)


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.release)])
def test_a_run_uses_what_a_plugin_adds(folder: Path, workers: tuple[str, ...]) -> None:
    reports = ("--llmeval-report=out.ill", "--llmeval-report=out.rst")
    done = run(folder, "pytest", "--llmeval", "-v", *reports, *workers)
    assert "gate PASSED  gap(exact_match) <= 0.5  (the gap is 0.5)" in done.out, done.out + done.err
    assert "gate FAILED  gap(exact_match) <= 0.4  (the gap is 0.5)" in done.out
    assert "ask the search team" in done.out
    assert (folder / "out.rst").read_text() == "* everything\n"
    assert "out.rst: without cases" in done.out
    assert re.search(r"report NOT written to \S*out\.ill: ValueError: no form for this run", done.out)
    assert (folder / "replies" / "used").exists()
    assert "words" in done.out
    assert done.code == 1


def test_reports_of_a_run_outlive_extensions_that_fail(folder: Path) -> None:
    broken = """

def fail(*_, **__):
    raise KeyError("owner")


def register(registry, register=register):
    register(registry)
    registry.extend("reported", fail)
    registry.extend("sent", fail)
"""
    (folder / "everything.py").write_text(PLUGIN + broken)
    done = run(folder, "pytest", "--llmeval", "--llmeval-report=out.json", "--llmeval-otel=events")
    assert "the extension everything:fail (reported) failed: KeyError: 'owner'" in done.out, done.out + done.err
    assert "the extension everything:fail (sent) failed: KeyError: 'owner'" in done.out
    assert "INTERNALERROR" not in done.out + done.err
    assert json.loads((folder / "out.json").read_text())["suites"][0]["suite"] == "everything"
    assert done.code == 1


FAILING_POINTS = """
import os


class Failing:
    def __call__(self, *_, **__):
        raise KeyError("owner")

    take = choose = __call__


def make(*_):
    return Failing()


def forget(*_):
    pass


def register(registry, register=register):
    register(registry)
    for function in (Failing(), make, forget):
        registry.extend(os.environ["POINT"], function)
"""


def test_a_run_goes_on_without_watchers_that_fail(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINT", "watched")
    (folder / "everything.py").write_text(PLUGIN + FAILING_POINTS)
    (folder / "s.eval.yaml").write_text(
        "stop: when_decided\nevaluators: [{text: {metrics: [exact_match]}}]\ngates: [exact_match >= 0.5]\n"
        "cases: [{id: a, expected: x, prediction: x}, {id: b, expected: x, prediction: x}]\n"
    )
    done = run(folder, "pytest", "--llmeval")
    assert "exit code 1: the extension everything:Failing (watched) failed: KeyError: 'owner' (everything" in done.out
    assert "the extension everything:make (watched) failed: KeyError: 'owner' (everything" in done.out
    assert "the extension everything:forget (watched) failed: it returned NoneType, expected RunWatcher" in done.out
    assert "2 passed, 1 gate passed" in done.out, done.out + done.err
    assert done.code == 1


@pytest.mark.parametrize(
    ("point", "option", "kind"),
    [("planned", "--llmeval-plan", "PlanReport"), ("chosen", "--llmeval-affected", "CaseChooser")],
)
def test_a_run_that_an_extension_cannot_prepare_does_not_start(
    point: str, option: str, kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINT", point)
    (folder / "everything.py").write_text(PLUGIN + FAILING_POINTS)
    (folder / "s.eval.yaml").write_text("cases: [{id: a, expected: x, prediction: x}]\n")
    done = run(folder, "pytest", "--llmeval", option)
    assert f"the extension everything:forget ({point}) failed: it returned NoneType, expected {kind}" in done.err
    assert "INTERNALERROR" not in done.out + done.err
    assert done.code == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("point", ["placed", "traced"])
def test_where_the_last_extension_counts_that_of_a_plugin_does(point: str) -> None:
    registry = Registry.shipped()
    registry.extend(point, print)
    assert [extension.function for extension in registry.extensions(point)][-1] is print
    assert len(registry.extensions(point)) == 2  # what ships is still there


def test_commands_use_what_a_plugin_adds(folder: Path) -> None:
    assert run(folder, "pytest_llmeval", "greet").out == "hello\n"
    assert run(folder, "pytest_llmeval", "export", "nowhere").out == "uploaded\n"
    (folder / "two.lines").write_text("one two")
    imported = run(folder, "pytest_llmeval", "import", "lines", "two.lines", "--to", "in")
    assert imported.code == 0, imported.err
    assert (folder / "in" / "two.eval.yaml").exists()
    tallies = {"tallies": [{"name": f"c{n}", "points": 0.5} for n in range(9)]}
    (folder / "tally.json").write_text(json.dumps(tallies))
    judged = run(folder, "pytest_llmeval", "gate", "tally.json", "--baseline", "tally.json")
    assert "9 cases" in judged.out, judged.out + judged.err


def test_keys_of_a_plugin_are_checked_and_known_to_editors(folder: Path) -> None:
    schema = json.loads(run(folder, "pytest_llmeval", "schema").out)
    assert schema["properties"]["owner"]["description"] == "the team that answers for the suite"
    (folder / "s.eval.yaml").write_text(SUITE.replace("owner:", "ownr:"))
    assert "unknown key ownr, did you mean owner?" in run(folder, "pytest_llmeval", "validate", ".").out


def test_mutants_of_a_plugin_are_tried(folder: Path) -> None:
    (folder / "m.eval.yaml").write_text(
        "evaluators: [{text: {metrics: [exact_match]}}]\ncases: [{id: a, expected: ab, prediction: ab}]\n"
    )
    done = run(folder, "pytest_llmeval", "mutate", "m.eval.yaml")
    assert "reversed" in done.out, done.out + done.err


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda registry: registry.register_store("s3", object), "expected two or more letters a to z"),
        (
            lambda registry: registry.register_store("sqlite", object),
            "the store name 'sqlite' is taken by pytest_llmeval: choose",
        ),
        (
            lambda registry: registry.register_provider("openai", object),
            "the judge provider name 'openai' is taken by pytest_llmeval: choose",
        ),
        (
            lambda registry: registry.register_report_format(".json", print),
            "the report format name '.json' is taken by pytest_llmeval: choose",
        ),
        (lambda registry: registry.register_report_format("", print), "the name of a report format is empty"),
        (lambda registry: registry.register_report_format("rst", print), r"report format name 'rst', expected \.rst"),
        (lambda registry: registry.register_report_format(".rst2", 3), r"'\.rst2': found 3, expected a function"),
        (lambda registry: registry.register_report_format(".llmeval", print), "is taken by shard files: choose"),
        (lambda registry: registry.register_report_format(".tar.gz", print), r"'\.tar\.gz', expected one suffix, \.gz"),
        (lambda registry: registry.register_report_format(".rst3", print, "(["), r"'\.rst3': the pattern names .* mal"),
        (lambda registry: registry.register_provider("echo2", "nowhere"), "judge provider 'echo2': found 'nowhere'"),
        (lambda registry: registry.register_store("disk", 3), "store 'disk': found 3, expected a function"),
        (lambda registry: registry.register_importer("lines2", None), "import format 'lines2': found None"),
        (lambda registry: registry.register_export("nowhere2", 3, help=""), "export 'nowhere2': found 3"),
        (
            lambda registry: registry.register_importer("table", print),
            "the import format name 'table' is taken by pytest_llmeval: choose",
        ),
        (
            lambda registry: registry.register_export("mlflow", print, help=""),
            "the export name 'mlflow' is taken by pytest_llmeval: choose",
        ),
        (
            lambda registry: registry.register_results_formats({"ctrf": 1}),
            "the results format name 'ctrf' is taken by pytest_llmeval: choose",
        ),
        (lambda registry: registry.register_gate_rule(int), "expected a subclass of pytest_llmeval.extend.ScoreGate"),
        (lambda registry: registry.register_gate_rule(extend.ScoreGate), "ScoreGate.tags is empty"),
    ],
)
def test_what_cannot_be_added_is_refused(add: object, message: str) -> None:
    with pytest.raises(LlmevalError, match=message):
        add(Registry.shipped())  # type: ignore[operator]


@pytest.mark.parametrize(
    "add",
    [
        lambda registry: registry.register_command("greet", print, help="greet"),
        lambda registry: registry.register_results_formats({"tally": 3}),
        lambda registry: registry.register_importer("lines", print),
        lambda registry: registry.register_export("nowhere", print, help=""),
        lambda registry: registry.extend("reported", print),
    ],
)
def test_what_joins_whole_runs_is_refused_where_conftests_register(add: Callable[[Registry], None]) -> None:
    add(Registry.shipped())
    with pytest.raises(LlmevalError, match=r"cannot be added here: .* the group pytest_llmeval\.plugins"):
        add(Registry.installed())


def test_the_page_names_every_way_to_register() -> None:
    methods = {name for name in vars(Registry) if name.startswith("register") or name == "extend"}
    assert methods == {name for name in vars(extend.Registry) if name.startswith("register") or name == "extend"}
    for name in extend.__all__:
        assert getattr(extend, name) is not None
    assert sys.modules["pytest_llmeval.extend"] is extend
