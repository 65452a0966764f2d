"""The summary of runs of several example suites, at two widths and all verbosities, against recorded files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from builders import KnownSuites, parse_gate
from msgspec import structs
from project import ROOT

from pytest_llmeval.baselines import Keeper, SnapshotMode, Stamp
from pytest_llmeval.core import MISSING, Case, width_of
from pytest_llmeval.gates import Gate
from pytest_llmeval.reports import RunReport, RunStart, render
from pytest_llmeval.reports._markdown import to_markdown
from pytest_llmeval.run import Collected, CollectedSuite, RunRecord, RunScope, RunTerms
from pytest_llmeval.run._execute import execute
from pytest_llmeval.run._finishing import report as report_of
from pytest_llmeval.run._job import CaseAnswer
from pytest_llmeval.run._judging import judge
from pytest_llmeval.suites import LoadedSuite, Registry, SuiteKey, load_suite

_RECORDED = Path(__file__).parent / "summaries"
_EXAMPLES = ROOT / "example_suites"
_GULLIBLE = {"verdict": "Supported", "evidence": [], "explanation": ""}
_TOO_HIGH = parse_gate("verdict_accuracy >= 0.9")

RUNS: Mapping[str, tuple[int, Mapping[str, Sequence[Gate]]]] = {
    "green": (
        0,
        {
            "agent/tools": (),
            "case_retrieval/bm25": (),
            "emotion_cause/systems": (),
            "extraction/invoices": (),
            "fact_check/systems": (),
            "narrative/systems": (),
        },
    ),
    "failing": (0, {"extraction/invoices": (), "fact_check/systems": [_TOO_HIGH]}),
    "verbose": (1, {"fact_check/systems": (), "narrative/systems": ()}),
    "everything": (2, {"agent/tools": (), "extraction/invoices": ()}),
}
"""Name to verbosity, and suites with more gates."""


def _answered(case: Case) -> CaseAnswer:
    return CaseAnswer(replace(case, prediction=_GULLIBLE) if case.prediction is MISSING else case)


@cache
def _loaded(name: str) -> LoadedSuite:
    return load_suite(_EXAMPLES / f"{name}.eval.yaml", Registry.installed(), root=ROOT)


def _collected(name: str, gates: Iterable[Gate]) -> Iterable[CollectedSuite]:
    loaded = _loaded(name)
    for variant in loaded.systems or [""]:
        suite = loaded.for_variant(variant)
        records = [execute(suite, _answered(case)).record for case in suite.cases]
        key = SuiteKey(str(suite.path), f"{name}.eval.yaml", "", variant)
        own = structs.replace(suite, gates=(*suite.gates, *gates), snapshot=None)
        yield CollectedSuite(key, own, records, suite.total)


@cache
def report(name: str) -> RunReport:
    """Return the report of a run."""
    suites = [each for suite, gates in RUNS[name][1].items() for each in _collected(suite, gates)]
    known = KnownSuites(ROOT, {})
    scope = RunScope(RunRecord(), RunTerms(), known, Keeper(SnapshotMode()), Stamp("2026-01-02", None))
    made = report_of(judge(Collected(suites), scope), scope).report
    return structs.replace(made, run=RunStart("2026-01-02T00:00:00+00:00", 1.0))


def summary(name: str, width: int) -> str:
    """Return what the terminal shows; to record it anew, write it to the file."""
    return "".join(f"{line.text}\n" for line in render(report(name), verbosity=RUNS[name][0], width=width))


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("name", RUNS)
def test_the_summary_of_a_run_is_as_recorded(name: str, width: int) -> None:
    assert summary(name, width) == (_RECORDED / f"{name}-{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("name", RUNS)
def test_no_table_is_wider_than_the_terminal(name: str, width: int) -> None:
    tables = [
        line
        for line in summary(name, width).splitlines()
        if not line.startswith(("gate ", "errors: ", "Do not merge: "))
    ]
    assert max(map(width_of, tables)) <= width


def test_a_green_run_has_a_line_for_each_suite_and_system() -> None:
    others = ["header", "undecided", "undecided", "answer", "totals"]
    assert len(summary("green", 80).splitlines()) == len(report("green").suites) + len(others)


def test_a_wider_terminal_leaves_out_less() -> None:
    def listed(width: int) -> int:
        return sum(line.count(", ") for line in summary("green", width).splitlines() if not line.startswith("suite"))

    assert all(narrow < wide for narrow, wide in pairwise(map(listed, (80, 120, 160))))
    assert listed(160) == listed(400)


def test_several_suites_that_fail_share_a_table_and_show_what_made_them_fail() -> None:
    shown = summary("failing", 80)
    assert "\ninvoices " in shown
    assert "fact_check_systems[checker]  (fact_check/systems.eval.yaml)\ngate FAILED" in shown
    assert (
        "\n  worst cases: sheep 0.0000, bridges-zh 0.0000\n  worst group: verdict=Refuted 0.7500 (4 cases)\n" in shown
    )
    assert "invoices  (extraction" not in shown
    assert "fact_check_systems: 2 systems, compared with checker" in shown


def test_markdown_folds_what_is_well_behind_what_fails() -> None:
    written = to_markdown(report("failing"))
    verdict, failed, folded = map(
        written.index, ("**Do not merge**: ", "## fact\\_check\\_systems\\[checker", "<code>invoices")
    )
    assert verdict < failed < folded
    assert written.count("<details>") == written.count("</details>") == 3
    assert to_markdown(report("green")).startswith(
        "# Evaluation report\n\n**Check before you merge**: nothing failed, but 2 of 45 gates could not decide\n"
    )


def _scores(name: str) -> dict[str, Any]:
    return {each.suite: each.metrics["overall_score"].value for each in report(name).suites[-2:]}


def test_the_components_of_systems_stand_beside_each_other() -> None:
    lines = summary("verbose", 80).splitlines()
    start = len(lines) - lines[::-1].index("Components, pooled over all stories")
    assert lines[start].split() == ["component", "careful", "hasty"]
    overall = next(line for line in lines[start:] if line.startswith("overall "))
    assert overall.split()[1:] == [f"{score:.4f}" for score in _scores("verbose").values()]
