"""Counts of one ranked list, and the scores of summed counts."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from pytest_llmeval import Sums
from pytest_llmeval.tasks.retrieval._ranking import (
    ranked_counts,
    ranked_scores,
    relevant_gains,
    relevant_ranks,
    set_counts,
    set_scores,
    size_counts,
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Summaries divide as they do in a suite: by 0 without a warning."""
    with np.errstate(all="ignore"):
        yield


def sums(*parts: dict[str, float]) -> Sums:
    names = {name for part in parts for name in part}
    return Sums({name: np.array([sum(part.get(name, 0.0) for part in parts)]) for name in names}, length=1)


def query(ranks: tuple[int, ...], positives: int | None, retrieved: int = 10, k: int = 5) -> list[dict[str, float]]:
    return [
        dict(set_counts("t", ranks, (k,), positives)),
        dict(size_counts(retrieved, (k,), positives, attributes=True)),
    ]


def ranked(
    keys: list[str | None], gains: dict[str, float], most: int, *, complete: bool
) -> tuple[tuple[int, float], ...] | None:
    return relevant_gains(keys, gains, relevant_ranks(keys, gains, most), most, complete=complete)


def test_hits_recall_and_f1_are_of_the_results_within_k() -> None:
    counts = set_counts("t", (1, 4, 9), (3, 5), 4)
    assert counts == {
        "t_hits@3": 1,
        "t_hit@3": 1,
        "t_recall@3": 0.25,
        "t_f1@3": pytest.approx(2 / 7),
        "t_hits@5": 2,
        "t_hit@5": 1,
        "t_recall@5": 0.5,
        "t_f1@5": pytest.approx(4 / 9),
    }


def test_a_mean_over_queries_is_of_those_that_count() -> None:
    scores = set_scores(sums(*query((1, 2), 4), *query((), 2, retrieved=1)), "t", 5, gold=False)
    assert {name: column[0] for name, column in scores.items()} == {
        "t_precision@5": pytest.approx(2 / 10),
        "t_recall@5": pytest.approx(1 / 4),
        "t_hit_rate@5": 0.5,
        "t_macro_f1@5": pytest.approx(2 * 0.4 * 0.5 / 0.9 / 2),
        "t_micro_precision@5": pytest.approx(2 / 6),
        "t_micro_recall@5": pytest.approx(2 / 6),
        "t_micro_f1@5": pytest.approx(2 / 6),
    }


def test_a_query_without_a_list_of_positives_has_a_precision_but_no_recall() -> None:
    alone = set_scores(sums(*query((1,), None)), "t", 5, gold=False)
    assert alone["t_precision@5"][0] == pytest.approx(0.2)
    assert alone["t_hit_rate@5"][0] == 1
    assert np.isnan(alone["t_recall@5"][0])
    assert np.isnan(alone["t_micro_f1@5"][0])
    beside = set_scores(sums(*query((1,), None), *query((1, 2), 2)), "t", 5, gold=False)
    assert beside["t_precision@5"][0] == pytest.approx(3 / 10)
    assert beside["t_recall@5"][0] == 1
    assert beside["t_micro_recall@5"][0] == 1


def test_an_empty_list_of_results_or_of_positives_scores_0() -> None:
    scores = set_scores(sums(*query((), 0, retrieved=0)), "t", 5, gold=True)
    assert {column[0] for column in scores.values()} == {0.0}


def test_where_no_query_counts_nothing_has_a_value() -> None:
    scores = set_scores(sums(), "t", 5, gold=True) | ranked_scores(sums(), "t", (5,))
    assert all(np.isnan(column[0]) for column in scores.values())


def test_queries_without_attributes_count_for_lists_of_positives_only() -> None:
    parts = [dict(set_counts("t", (1,), (5,), 1)), dict(size_counts(5, (5,), 1, attributes=False))]
    assert set_scores(sums(*parts), "t", 5, gold=True)["t_precision@5"][0] == pytest.approx(0.2)
    assert np.isnan(set_scores(sums(*parts), "other", 5, gold=False)["other_precision@5"][0])


def test_gains_are_discounted_by_rank_as_in_trec_eval() -> None:
    counts = ranked_counts("t", ((2, 3.0), (4, 1.0)), (3.0, 2.0, 1.0), (3, 10))
    ideal = 3 + 2 / math.log2(3) + 1 / 2
    assert counts["t_ndcg@10"] == pytest.approx((3 / math.log2(3) + 1 / math.log2(5)) / ideal)
    assert counts["t_ndcg@3"] == pytest.approx(3 / math.log2(3) / ideal)
    assert counts["t_map@10"] == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert counts["t_map@3"] == pytest.approx(1 / 2 / 3)
    assert counts["t_mrr"] == 0.5


def test_a_first_hit_behind_k_counts_for_mrr_alone() -> None:
    assert ranked_counts("t", ((7, 1.0),), (1.0,), (5,)) == {"t_ranked": 1, "t_mrr": 1 / 7}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("abc", ((1, 1.0), (2, 2.0))),
        ("xaxab", ((2, 1.0), (3, 2.0))),
        ("xxxxxa", ((2, 1.0),)),
        ("vwxyza", ((6, 1.0),)),
        ("vwxyzvwa", ((6, 1.0),)),
        ("vwxyzab", ((6, 1.0),)),
        ("axxbb", ((1, 1.0), (3, 2.0))),
        ("xy", ()),
        ("", ()),
    ],
)
def test_a_document_counts_at_its_first_place_and_the_others_move_up(
    keys: str, expected: tuple[tuple[int, float], ...]
) -> None:
    assert ranked(list(keys), {"a": 1.0, "b": 2.0}, 3, complete=True) == expected


@pytest.mark.parametrize(
    ("keys", "expected"), [("axy", ((1, 1.0),)), ("xyza", ((4, 1.0),)), ("xyz", None), ("aax", None), ("xaxx", None)]
)
def test_more_results_are_asked_for_only_where_they_matter(
    keys: str, expected: tuple[tuple[int, float], ...] | None
) -> None:
    assert ranked(list(keys), {"a": 1.0, "b": 2.0}, 3, complete=False) == expected


def test_documents_without_a_key_are_all_different() -> None:
    assert ranked([None, None, "a"], {"a": 1.0}, 5, complete=True) == ((3, 1.0),)
    assert ranked([None, None, "x", "x", "a"], {"a": 1.0}, 2, complete=True) == ((4, 1.0),)
