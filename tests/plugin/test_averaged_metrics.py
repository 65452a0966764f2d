"""Metrics that are declared to be means over cases are, in every example suite."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_llmeval.suites import Registry, load_suite

if TYPE_CHECKING:
    from conftest import Project

EXAMPLES = Path(__file__).parents[2] / "example_suites"
FOLDERS = ("agent", "case_retrieval", "extraction", "fact_check", "memory_qa", "rag")


@pytest.mark.release
def test_a_declared_mean_is_the_mean_of_the_scores_of_cases(project: "Project") -> None:
    for name in FOLDERS:
        shutil.copytree(EXAMPLES / name, project.path / name)
    shutil.copy(EXAMPLES / "conftest.py", project.path)
    report = project.run("--llmeval-judge=auto").suites.values()
    seen = set()
    for suite in report:
        if suite["path"].endswith("search.eval.yaml"):  # its conftest registers what the suite names
            continue
        metrics = load_suite(project.path / suite["path"], Registry.installed(), root=project.path).metrics
        for name, found in suite["metrics"].items():
            owned = metrics.find(name)
            if owned is not None and owned.metric.averaged and found["value"] is not None:
                assert found["value"] == pytest.approx(found["mean"], abs=1e-9), (suite["suite"], name)
                seen.add(owned.evaluator.name)
    assert seen >= {"text", "judge", "fields", "tools", "retrieval", "fact_check"}
