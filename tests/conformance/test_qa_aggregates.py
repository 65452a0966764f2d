"""Aggregates of recorded answers against the numbers of the original code."""

import json
import math
from functools import cache
from typing import Any

import pytest
from project import CONFORMANCE

from pytest_llmeval import MissingDataError, get_evaluator
from pytest_llmeval.tasks.memory_qa import EvalResult, QuestionType, compute_metrics

FOLDER = CONFORMANCE / "qa"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance data are not here")


@cache
def pairs() -> dict[str, dict[str, Any]]:
    lines = (FOLDER / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


@cache
def wordnet_is_installed() -> bool:
    try:
        get_evaluator("text", metrics=["meteor"]).evaluate("a dog", "a cat")
    except MissingDataError:
        return False
    return True


def runs() -> list[Any]:
    if not FOLDER.is_dir():
        return []
    data = json.loads((FOLDER / "aggregates.json").read_text(encoding="utf-8"))
    return [pytest.param(run, id=run["id"]) for run in data["runs"]]


def results_of(run: dict[str, Any]) -> list[EvalResult]:
    results = []
    for name, kind in zip(run["pair_ids"], run["question_types"], strict=True):
        row = pairs()[name]
        results.append(
            EvalResult(
                str(row.get("sample_id")),
                str(row.get("question_id")),
                QuestionType(kind),
                row.get("question") or "",
                row["ground_truth"],
                row["prediction"],
            )
        )
    return results


@pytest.mark.parametrize("run", runs())
def test_aggregates_are_those_of_the_original(run: dict[str, Any]) -> None:
    metrics = [name for name in run["metrics"] if name != "meteor" or wordnet_is_installed()]
    computed = compute_metrics(results_of(run), run["judge_scores"], metrics=metrics, tokenizer="words")
    wanted = run["expected"]
    blocks = [(computed["overall"], wanted["overall"], metrics)]
    assert set(computed["by_type"]) == set(wanted["by_type"])
    for kind, block in computed["by_type"].items():
        blocks.append((block, wanted["by_type"][kind], [*metrics, "count"]))
    for found, expected, names in blocks:
        for name in names:
            value = expected.get(name, expected.get(f"{name}_preserve_line"))
            assert math.isclose(found[name], value, rel_tol=0, abs_tol=1e-6), (name, found[name], value)
