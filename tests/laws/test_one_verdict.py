"""A comparison is computed once: all reports of a run name the same changes with the same numbers."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import finished

from pytest_llmeval.cli import main
from pytest_llmeval.core import MetricChange, number
from pytest_llmeval.reports import RunReport, render
from pytest_llmeval.reports._json import write_data
from pytest_llmeval.reports.html._data import changes_json
from pytest_llmeval.run import Checkout, RunRecord, SuitePart
from pytest_llmeval.run._execute import execute
from pytest_llmeval.run._job import CaseAnswer
from pytest_llmeval.run._run_record import Item, ItemResult
from pytest_llmeval.suites import SuiteKey
from pytest_llmeval.workbench._comment import comment_text
from pytest_llmeval.workbench._reports import page_runs

NAME = "s.eval.json"
SIZE = 40
LABELS = ("red", "blue", "green")
VERDICTS = {"declined": "Declined", "improved": "Improved", "not significant": "Not significant"}
Verdicts = dict[str, dict[str, tuple[str, str]]]
"""Verdict to metric to its values before and now, as they are shown; undecided is not significant."""


def run_report(
    root: Path, wrong: set[int], *, approve: bool = False, swapped: bool = False, limit: bool = False
) -> RunReport:
    expected = [LABELS[n % len(LABELS)] for n in range(SIZE)]
    answers = [LABELS[(n + 1 + swapped) % len(LABELS)] if n in wrong else expected[n] for n in range(SIZE)]
    cases = [
        {
            "id": f"c{n}",
            "expected": expected[n],
            "prediction": answers[n],
            "labels": {"half": str(n % 2)},
            "modes": ["any", f"half {n % 2}"],
        }
        for n in range(SIZE)
    ]
    content = {
        "suite": "s",
        "evaluators": [{"text": {"metrics": ["exact_match", "rougeL"]}}, {"classification": {"labels": list(LABELS)}}],
        "gates": [{"metric": "f1_macro", "max_drop": 0.02}, "accuracy >= 0.1"],
        "snapshot": {"tolerance": 1},
        **({"thresholds": {"exact_match": 1}} if limit else {}),
        "cases": cases,
    }
    (root / NAME).write_text(json.dumps(content), encoding="utf-8")
    suite = Checkout(root, {}).read(root / NAME)
    key = SuiteKey(str(suite.path), NAME)
    items = {
        Item(NAME, f"{NAME}::{case.id}"): ItemResult(
            SuitePart.from_executions(key, suite.total, [execute(suite, CaseAnswer(case))]), "passed", 0.1
        )
        for case in suite.cases
    }
    record = RunRecord(started=1e9, seconds=1.0, items=items, selected={str(suite.path)})
    return finished(record, [suite], root, update=approve).report


def shown(verdicts: Verdicts) -> Verdicts:
    return {verdict: metrics for verdict, metrics in verdicts.items() if metrics}


def sorted_by_verdict(changes: dict[str, MetricChange]) -> Verdicts:
    verdicts: Verdicts = {each: {} for each in VERDICTS}
    for name, each in changes.items():
        word = "not significant" if each.verdict == "undecided" else each.verdict.replace("_", " ")
        if each.difference:
            verdicts[word][each.name_of(name)] = (number(each.baseline), number(each.value))
    return shown(verdicts)


def in_terminal(report: RunReport) -> Verdicts:
    verdicts: Verdicts = {each: {} for each in VERDICTS}
    for line in render(report, verbosity=1, width=200):
        verdict, _, listed = line.text.partition(": ")
        verdict = "not significant" if verdict == "undecided" else verdict
        if verdict in VERDICTS:
            verdicts[verdict] |= {
                name: (before, now) for name, before, now in re.findall(r"(\S+) ([\d.]+) -> ([\d.]+) \(", listed)
            }
    return shown(verdicts)


def in_comment(text: str) -> Verdicts:
    verdicts: Verdicts = {}
    for verdict, title in VERDICTS.items():
        section = re.search(
            rf"(?:### {title}|<summary>{title} \(\d+\)</summary>)\n(.*?)(?=\n###|\n<|\Z)", text, re.DOTALL
        )
        rows = re.findall(r"^\| s \| (\S+) \| ([\d.]+) \| ([\d.]+) \|", section[1] if section else "", re.MULTILINE)
        verdicts[verdict] = {name.replace("\\", ""): (before, now) for name, before, now in rows}
    return shown(verdicts)


def on_page(page: dict[str, Any]) -> Verdicts:
    kinds = {"fell": "declined", "rose": "improved", "unclear": "not significant", "untold": "not significant"}
    verdicts: Verdicts = {each: {} for each in VERDICTS}
    for each in page["metrics"]:
        if each["kind"] in kinds:
            verdicts[kinds[each["kind"]]][each["name"]] = (number(each["baseline"]), number(each["value"]))
    return shown(verdicts)


def in_table(out: str) -> Verdicts:
    verdicts: Verdicts = {each: {} for each in VERDICTS}
    for line in out.splitlines():
        found = re.match(
            r"(\S+) +([\d.]+) +([\d.]+) +(-?[\d.]+) .*? (declined|improved|not significant|undecided)$", line
        )
        if found and float(found[4]):
            verdicts["not significant" if found[5] == "undecided" else found[5]][found[1]] = (found[2], found[3])
    return shown(verdicts)


def every_view(
    root: Path, capsys: pytest.CaptureFixture[str], report: RunReport, base: RunReport
) -> Iterator[Verdicts]:
    write_data(report, root / "r.json")
    write_data(base, root / "b.json")
    read, before = RunReport.read(root / "r.json"), RunReport.read(root / "b.json")
    yield in_terminal(report)
    yield in_comment(comment_text(report))
    yield in_comment(comment_text(read))
    yield in_comment(comment_text(read, before))
    for each in (report, read, page_runs([root / "r.json"], root / "b.json")[0].report):
        changes = each.suites[0].changes
        assert changes is not None
        yield sorted_by_verdict(dict(changes.metrics))
        yield on_page(changes_json(changes))
    capsys.readouterr()
    main(["compare", str(root / "r.json"), str(root / "b.json")])
    yield in_table(capsys.readouterr().out)


@pytest.mark.parametrize("seed", range(4))
def test_all_views_name_the_same_changes_with_the_same_numbers(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    before, after = ((2, 16), (3, 5), (14, 1), (4, 10))[seed]
    base = run_report(tmp_path, set(rng.sample(range(SIZE), before)), approve=True)
    report = run_report(tmp_path, set(rng.sample(range(SIZE), after)), swapped=bool(seed % 2))
    first, *others = every_view(tmp_path, capsys, report, base)
    assert first
    assert all(each == first for each in others)
    failed = {"f1_macro" for gate in report.suites[0].gates if gate.fallen}
    assert failed <= first.get("declined", {}).keys()


def test_variants_that_nobody_named_neither_take_rows_nor_weaken_the_others(tmp_path: Path) -> None:
    run_report(tmp_path, {1, 2}, approve=True)
    changes = run_report(tmp_path, set(range(16))).suites[0].changes
    assert changes is not None
    assert list(changes.metrics) == ["exact_match", "rougeL", "accuracy", "f1_macro"]
    assert {each.verdict for each in changes.metrics.values()} == {"declined"}


def test_a_mean_over_cases_is_named_apart_from_the_value_over_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = run_report(tmp_path, {1, 2}, approve=True)
    other = run_report(tmp_path, {3}, approve=True)
    report = run_report(tmp_path, set(range(16)))  # compared with the other run
    write_data(report, tmp_path / "r.json")
    write_data(base, tmp_path / "b.json")
    changes = report.suites[0].changes
    assert changes is not None
    assert (changes.is_against(base.suites[0]), changes.is_against(other.suites[0])) == (False, True)
    main(["compare", str(tmp_path / "r.json"), str(tmp_path / "b.json")])
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert "mean(f1_macro)" in names
    assert "exact_match" in names


def test_failure_modes_that_are_back_since_the_approval_need_no_baseline(tmp_path: Path) -> None:
    run_report(tmp_path, {0}, approve=True, limit=True)
    report = run_report(tmp_path, {0, 1, 3}, limit=True)
    write_data(report, tmp_path / "run.json")
    for each in (report, RunReport.read(tmp_path / "run.json")):
        assert "### Failure modes that are back\n\n- half 1: back in 2 of 20\n\n" in comment_text(each)
