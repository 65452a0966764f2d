import json
from typing import Any

import pytest
from project import CONFORMANCE

from pytest_llmeval import get_evaluator
from pytest_llmeval.tasks.narrative._alignment import overlap_ratio
from pytest_llmeval.tasks.narrative._segmentation import end_mark_spans, sentence_index

FOLDER = CONFORMANCE / "segmentation"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance data are not beside this repository")

COUNTS = ("exact_matches", "near_misses", "insertions", "deletions")


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


@pytest.mark.parametrize("tolerance", [1, 2, 3, 4])
def test_boundary_scores_and_counts_are_those_of_the_document(tolerance: int) -> None:
    evaluator = get_evaluator("segmentation", tolerance=tolerance)
    for row in read("boundaries.jsonl"):
        expected = row["expected"][str(tolerance)]
        found = evaluator.evaluate(row["hypothesis"], row["reference"])
        assert found["boundary_score"] == pytest.approx(expected["score"], abs=1e-9, rel=0), row["id"]
        assert [found[name] for name in COUNTS] == [expected[name] for name in COUNTS], row["id"]


def test_pk_and_window_diff_are_those_of_segeval() -> None:
    evaluator = get_evaluator("segmentation")
    for row in read("boundaries.jsonl"):
        gold = {"boundaries": row["reference"], "n_sentences": row["n_sentences"]}
        found = evaluator.evaluate(row["hypothesis"], gold)
        for name in ("pk", "window_diff"):
            assert found[name] == pytest.approx(row["segeval"][name], abs=1e-9, rel=0), (row["id"], name)


def test_boundary_scores_are_those_of_segeval_where_its_search_is_exact() -> None:
    lower = dict.fromkeys((1, 2, 3, 4), 0)
    for tolerance in lower:
        evaluator = get_evaluator("segmentation", tolerance=tolerance)
        for row in read("boundaries.jsonl"):
            theirs = row["segeval"]["boundary_similarity"][str(tolerance)]
            if theirs is None:
                continue
            ours = evaluator.evaluate(row["hypothesis"], row["reference"])["boundary_score"]
            assert ours >= theirs - 1e-9, row["id"]
            lower[tolerance] += ours > theirs + 1e-9
    assert lower == {1: 0, 2: 0, 3: 7, 4: 9}


def test_sentences_and_positions_are_those_of_the_document() -> None:
    for row in read("sentences.jsonl"):
        spans = end_mark_spans(row["text"])
        assert [list(span) for span in spans] == row["expected"], row["text"][:40]
        for position, index in row["positions"]:
            assert sentence_index(position, spans) == index, (row["text"][:40], position)


def test_overlaps_are_those_of_the_document() -> None:
    units = json.loads((CONFORMANCE / "narrative" / "units.json").read_text("utf-8"))
    for row in units["overlap_ratio"]:
        assert overlap_ratio(tuple(row["a"]), tuple(row["b"])) == pytest.approx(row["expected"], abs=1e-9, rel=0), row
