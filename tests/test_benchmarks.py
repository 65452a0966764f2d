"""Every benchmark, run once with few cases."""

import os
from pathlib import Path

import pytest
from project import ROOT
from running import run_python

SCRIPTS = ROOT / "benchmarks"

ELSEWHERE = {
    "sides": "shared by benchmarks",
    "same_reports": "tests/test_same_reports.py",
    **dict.fromkeys(
        ("tables", "calibration", "few_cases", "histories", "modes", "planning", "reviews", "validation", "verdicts"),
        "tests/test_published_tables.py",
    ),
    "deciders": "each tool needs an environment of its own",
    "html_report": "needs Chromium",
    "media_page": "needs Chromium",
}
"""Scripts that are tested elsewhere, or cannot be."""

SMALL = {
    "affected": "m.CASES, m.ROUNDS, m.ITEMS, m.MEASURED = 2, 1, 20, (2, 4); run('2', '0')",
    "async_cases": "run('10', '5', '0.01', '1')",
    "bulk_commands": "m.main(100, 1)",
    "cascades": "m.AUDITS, m.ERRORS = (0.2,), (0.05,); run('--runs', '2')",
    "checks": "m.main(20, 1)",
    "emotion_cause": "m.CONVERSATIONS = 20; run()",
    "five_systems": "m.main(10, list(m.TASKS))",
    "groups": "m.main(300, 1)",
    "hostile_citations": "m.SIZES = (1_000, 4_000); run()",
    "hostile_texts": "m.SMALL, m.LARGE = 100, 400; run()",
    "judging": "run('--cases', '8', '--concurrency', '4')",
    "labels": "m.measure(50, 10)",
    "memory": "m.SIZES = (20,); run()",
    "mutation": "run('20')",
    "narrative": "m.SIZES, m.LIMIT_MS = (5,), float('inf'); run()",
    "originals": "m.main(1, list(m.TASKS), 10)",
    "per_case": "m.main(20, 1)",
    "published_scorers": "run('.')",
    "resampling": "m.CASES, m.GATES, m.ROUNDS = 100, 10, 1; run()",
    "retrieval": "m.QUERIES, m.JUDGED, m.ROUNDS = 40, 40, 1; run()",
    "shards": "m.main(100, 1, ['jsonl'])",
    "start_up": "m.main(1, 'one')",
    "stopping": "run('2')",
    "streams": "run('30000')",
    "structured": "m.main(20, 1)",
    "systems": "m.main(20, 1)",
    "text_metrics": "m.SHORT, m.LONG = 20, 4; run()",
}
"""Script to what runs it with few cases: ``m`` is the module, and ``run`` calls its ``main`` with arguments."""

PROGRAM = """\
import sys
sys.path.insert(0, {folder!r})
import {name} as m
def run(*arguments):
    sys.argv[1:] = arguments
    m.main()
{work}
"""


def test_every_script_is_run() -> None:
    assert {path.stem for path in SCRIPTS.glob("*.py")} == {*SMALL, *ELSEWHERE}


@pytest.mark.release
@pytest.mark.parametrize("name", SMALL)
def test_script_runs_with_few_cases(name: str, tmp_path: Path) -> None:
    program = PROGRAM.format(folder=str(SCRIPTS), name=name, work=SMALL[name])
    done = run_python(["-c", program], os.environ, tmp_path, cold=True)
    assert done.code == 0, done.out
    assert done.out or name == "labels"
