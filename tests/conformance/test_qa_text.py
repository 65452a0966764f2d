import json
from typing import Any

import pytest
from project import CONFORMANCE

from pytest_llmeval.core import Case, MissingDataError, Totals
from pytest_llmeval.evaluators._text import METRICS, TextEvaluator
from pytest_llmeval.evaluators.measures._overlap import open_wordnet

FOLDER = CONFORMANCE / "qa"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance data are not beside this repository")

NO_ROUGE = {"rouge1", "rouge2", "rougeL"}
BLANK = ("public-edge-23a", "public-edge-24a", "public-edge-24b")
"""Rows with a blank right answer, recorded as 0; undefined here."""


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / "pairs.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def metrics() -> tuple[str, ...]:
    try:
        open_wordnet()
    except MissingDataError:
        return tuple(name for name in METRICS if name != "meteor")
    return METRICS


def case_of(row: dict[str, Any]) -> Case:
    return Case(id=row["id"], expected=row["ground_truth"], prediction=row["prediction"])


def recorded(scores: dict[str, float], name: str) -> float:
    return scores[f"{name}_preserve_line" if name.startswith("bleu") else name]


def compare(evaluator: TextEvaluator, row: dict[str, Any]) -> set[str]:
    """Compare the scores of a row and return the metrics that are undefined."""
    observation = evaluator.measure(case_of(row))
    for name in evaluator.metrics:
        if name not in observation.undefined:
            tolerance = 1e-9 if name in {"exact_match", "f1"} else 1e-6
            assert observation.counts[name] == pytest.approx(recorded(row["expected"], name), abs=tolerance, rel=0), (
                row["id"]
            )
    return set(observation.undefined)


def test_words_gives_the_recorded_scores_of_all_rows(rows: list[dict[str, Any]], metrics: tuple[str, ...]) -> None:
    evaluator = TextEvaluator(metrics=metrics, tokenizer="words")
    undefined = {row["id"]: found for row in rows if (found := compare(evaluator, row))}
    assert undefined == {
        "public-edge-15a": NO_ROUGE,
        "public-edge-15b": NO_ROUGE,
        "public-edge-17a": {"f1", *NO_ROUGE},
        "public-edge-17b": {"f1", *NO_ROUGE},
        **dict.fromkeys(BLANK, {*metrics} - {"exact_match"}),
    }


def test_auto_gives_the_recorded_scores_of_ascii_rows(rows: list[dict[str, Any]], metrics: tuple[str, ...]) -> None:
    evaluator = TextEvaluator(metrics=metrics)
    ascii_rows = [row for row in rows if f"{row['ground_truth']}{row['prediction']}".isascii()]
    assert len(ascii_rows) > 300
    undefined = {row["id"] for row in ascii_rows if compare(evaluator, row)}
    assert undefined == {"public-edge-17a", "public-edge-17b", *BLANK}


def test_pooled_scores_are_the_recorded_means(rows: list[dict[str, Any]], metrics: tuple[str, ...]) -> None:
    by_id = {row["id"]: row for row in rows}
    evaluator = TextEvaluator(metrics=metrics, tokenizer="words")
    runs = json.loads((FOLDER / "aggregates.json").read_text("utf-8"))["runs"]
    compared = 0
    for run in runs:
        if not run["pair_ids"]:
            continue
        observations = [evaluator.measure(case_of(by_id[pair])) for pair in run["pair_ids"]]
        pooled = evaluator.summarize(Totals.add_up(observations).sums())
        for name in set(run["metrics"]) & set(metrics):
            # A case that is undefined here was recorded as 0 and counted in the mean.
            seen = sum(name not in each.undefined for each in observations)
            mean = pooled[name][0] * seen / len(observations)
            assert mean == pytest.approx(recorded(run["expected"]["overall"], name), abs=1e-6), (run["id"], name)
            compared += 1
    assert compared
