"""A sixth task, in a distribution of its own: an evaluator with a table, a source and a command of ``llmeval``."""

import json
import os
from typing import TYPE_CHECKING

import pytest
from running import Finished, run_python

if TYPE_CHECKING:
    from conftest import Project

DISTRIBUTION = {
    "ledgers-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: ledgers\nVersion: 1.0\n",
    "ledgers-1.0.dist-info/entry_points.txt": "[pytest_llmeval.plugins]\nledgers = ledgers:register\n",
    "ledgers/__init__.py": """\
def register(registry):
    registry.register("ledgers.evaluator:Balance", name="balance")
    registry.register_source("ledgers.source:LedgerSource", name="ledger")
    registry.register_command("ledger", "ledgers.commands:add_arguments", help="work with ledgers")
""",
    "ledgers/evaluator.py": """\
from dataclasses import dataclass

from pytest_llmeval import Evaluator, Metric, MetricTable, Observation


@dataclass(frozen=True)
class Balance(Evaluator):
    name = "balance"
    tolerance: float = 0.0

    def describe(self):
        return [Metric("exact"), Metric("close", signature=f"tolerance:{self.tolerance:g}")]

    def measure(self, case):
        off = abs(case.prediction - case.expected)
        return Observation({"exact": off == 0, "close": off <= self.tolerance, "n": 1})

    def summarize(self, sums):
        return {"exact": sums["exact"] / sums["n"], "close": sums["close"] / sums["n"]}

    def tables(self):
        return [MetricTable("All entries", ("entries", "exact", "close"), [(("all",), ("exact", "close"))])]
""",
    "ledgers/source.py": """\
from dataclasses import dataclass

from pytest_llmeval import Case
from pytest_llmeval.data.formats import FileSource


@dataclass(frozen=True)
class LedgerSource(FileSource):
    format = "ledger"
    currency: str = "EUR"

    def read(self, file):
        for number, line in enumerate(file.path.read_text(encoding="utf-8").splitlines(), 1):
            name, *amounts = line.split()
            if len(amounts) == 2:
                expected, found = map(float, amounts)
                file.add(Case(name, self.currency, expected, found, line=number))
            else:
                file.faults.add(number, 1, "", f"found {len(amounts)} amounts, expected 2")
""",
    "ledgers/commands.py": """\
from pathlib import Path


def add_arguments(parser):
    actions = parser.add_subparsers(required=True)
    total = actions.add_parser("sum", help="add up a ledger")
    total.add_argument("file", type=Path)
    total.set_defaults(run=add_up)


def add_up(options):
    print(sum(float(line.split()[1]) for line in options.file.read_text(encoding="utf-8").splitlines()))
    return 3
""",
}

SUITE = """\
evaluators: [{balance: {tolerance: 2}}]
source: {format: ledger, path: may.txt, currency: USD}
gates: [close >= 0.6]
"""


@pytest.fixture
def installed(project: "Project", monkeypatch: pytest.MonkeyPatch) -> "Project":
    for name, text in DISTRIBUTION.items():
        project.write(f"site/{name}", text)
    monkeypatch.setenv("PYTHONPATH", str(project.path / "site"))
    project.write("s.eval.yaml", SUITE)
    project.write("may.txt", "rent 800 800\nfood 120 121\nfun 30 90\n")
    return project


def llmeval(project: "Project", *arguments: str) -> Finished:
    return run_python(["-m", "pytest_llmeval", *arguments], os.environ, project.path)


def test_a_run_reads_its_source_measures_by_its_evaluator_and_draws_its_table(installed: "Project") -> None:
    ran = installed.run("-v", "--llmeval-report=report.md", workers=2)
    assert (ran.code, ran.counts) == (0, {"passed": 4})
    assert {case["id"]: case["metrics"]["close"] for case in ran.suites["s"]["cases"]} == {
        "rent": 1.0,
        "food": 1.0,
        "fun": 0.0,
    }
    assert ran.suites["s"]["metrics"]["close"]["signature"] == "tolerance:2"
    for text in (ran.text, (installed.path / "report.md").read_text(encoding="utf-8")):
        assert ["all", "0.3333", "0.6667"] in [line.replace("|", " ").split() for line in text.splitlines()]
        assert "All entries" in text


def test_llmeval_runs_its_command_and_knows_its_names(installed: "Project") -> None:
    done = llmeval(installed, "ledger", "sum", "may.txt")
    assert (done.code, done.out, done.err) == (3, "950.0\n", "")
    assert "work with ledgers" in llmeval(installed, "--help").out
    assert llmeval(installed, "validate", "s.eval.yaml").out == "s.eval.yaml: no fault in 3 cases\n"
    assert llmeval(installed, "evaluators", "balance").out == (
        "balance\n  exact  higher\n  close  higher  tolerance:0\n"
    )
    overview = llmeval(installed, "evaluators").out
    assert "balance\n  exact, close\n" in overview
    assert " ledger, " in " ".join(overview.split())
    schema = json.loads(llmeval(installed, "schema").out)["properties"]
    sources = {
        each["properties"]["format"]["const"]: each for each in schema["source"]["anyOf"] if "properties" in each
    }
    assert sources["ledger"]["properties"]["currency"] == {"default": "EUR", "type": "string"}
    assert "balance" in schema["evaluators"]["items"]["anyOf"][0]["enum"]


def test_faults_of_its_files_and_options_are_told_as_those_of_shipped_sources(installed: "Project") -> None:
    installed.write("may.txt", "rent 800 800\nfood 120\n")
    assert llmeval(installed, "validate", "s.eval.yaml").out == (
        "may.txt:2:1  found 1 amounts, expected 2\n    | food 120\n    | ^\n1 fault\n"
    )
    installed.write("s.eval.yaml", SUITE.replace("currency", "curency"))
    assert "unknown key curency" in (out := llmeval(installed, "validate", "s.eval.yaml").out)
    assert "did you mean currency?" in out
    installed.write("s.eval.yaml", SUITE.replace("format: ledger", "format: ledgr"))
    assert "did you mean ledger?" in llmeval(installed, "validate", "s.eval.yaml").out


def test_a_plugin_that_cannot_be_loaded_is_named_in_one_line(installed: "Project") -> None:
    installed.write("site/ledgers/__init__.py", "import no_such_package\n")
    done = llmeval(installed, "schema")
    message = (
        "entry point 'ledgers' of pytest_llmeval.plugins (ledgers:register): "
        "ModuleNotFoundError: No module named 'no_such_package' (site/ledgers/__init__.py:1 in <module>)"
    )
    assert (done.code, done.out, done.err) == (1, "", f"{message}\n")
    assert message in installed.run().text
