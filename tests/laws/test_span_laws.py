"""Laws of boundaries and spans: pairings are optimal, equal sides score 1, order and repetition are irrelevant."""

from itertools import combinations, permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Case, Totals
from pytest_llmeval.tasks.narrative._alignment import overlap_ratio, pair_spans
from pytest_llmeval.tasks.narrative._document import Span
from pytest_llmeval.tasks.narrative._segmentation import (
    BoundaryMatch,
    Segmentation,
    end_mark_spans,
    match_boundaries,
    sentence_index,
    window_errors,
)
from pytest_llmeval.tasks.narrative._text_span import assign_spans

boundaries = st.lists(st.integers(-2, 25), max_size=14)
few = st.sets(st.integers(0, 12), max_size=6)
tolerances = st.integers(1, 8)
ends = st.integers(-3, 12)
spans = st.lists(st.tuples(ends, ends), max_size=5)
texts = st.text(st.sampled_from("甲a 。！？.!?\n"), max_size=30)


def best_by_trying(reference: set[int], hypothesis: set[int], tolerance: int) -> tuple[int, int]:
    """Return the most near misses and their least total distance, found by trying all pairings."""
    left, right = sorted(reference - hypothesis), sorted(hypothesis - reference)
    for size in range(min(len(left), len(right)), 0, -1):
        distances = [
            [abs(a - b) for a, b in zip(chosen, order, strict=True)]
            for chosen in combinations(left, size)
            for order in permutations(right, size)
        ]
        if reached := [sum(each) for each in distances if max(each) < tolerance]:
            return size, min(reached)
    return 0, 0


def score_of(match: BoundaryMatch) -> float:
    total = match.exact + match.near + match.insertions + match.deletions
    return 1 - (match.insertions + match.deletions + match.weight) / total if total else 1.0


@given(few, few, tolerances)
def test_no_pairing_of_near_misses_is_better(reference: set[int], hypothesis: set[int], tolerance: int) -> None:
    match = match_boundaries(reference, hypothesis, tolerance)
    total = sum(abs(a - b) for a, b in match.near_pairs)
    assert (match.near, total) == best_by_trying(reference, hypothesis, tolerance)


@given(boundaries, boundaries, tolerances)
def test_every_boundary_is_in_one_part_of_a_match(reference: list[int], hypothesis: list[int], tolerance: int) -> None:
    match = match_boundaries(reference, hypothesis, tolerance)
    assert sorted([*match.matched, *match.deleted, *(a for a, _ in match.near_pairs)]) == sorted(set(reference))
    assert sorted([*match.matched, *match.inserted, *(b for _, b in match.near_pairs)]) == sorted(set(hypothesis))
    assert all(0 < abs(a - b) < tolerance for a, b in match.near_pairs)


@given(boundaries, boundaries, tolerances)
def test_swapping_sides_swaps_insertions_and_deletions(left: list[int], right: list[int], tolerance: int) -> None:
    there, back = match_boundaries(left, right, tolerance), match_boundaries(right, left, tolerance)
    assert (there.exact, there.near, there.insertions, there.deletions, there.weight) == (
        back.exact,
        back.near,
        back.deletions,
        back.insertions,
        back.weight,
    )


@given(boundaries, boundaries, tolerances, st.integers(3, 30), st.randoms(use_true_random=False))
def test_scores_are_in_range_and_ignore_order_and_repetition(
    reference: list[int], hypothesis: list[int], tolerance: int, n: int, random: Random
) -> None:
    evaluator = Segmentation(tolerance=tolerance)
    found = evaluator.evaluate(hypothesis, {"boundaries": reference, "n_sentences": n})
    assert found["boundary_score"] == pytest.approx(score_of(match_boundaries(reference, hypothesis, tolerance)))
    rates = [found[name] for name in ("boundary_score", "pk", "window_diff")]
    assert all(rate is None or 0 <= rate <= 1 for rate in rates)
    shuffled = random.sample(hypothesis, len(hypothesis)) + hypothesis[:3]
    again = evaluator.evaluate(shuffled, {"boundaries": reference[::-1], "n_sentences": n})
    names = [metric.name for metric in evaluator.describe()]
    assert [again[name] for name in names] == [found[name] for name in names]


@given(boundaries, tolerances, st.integers(3, 30))
def test_equal_boundaries_score_one_and_have_no_wrong_window(both: list[int], tolerance: int, n: int) -> None:
    found = Segmentation(tolerance=tolerance).evaluate(both, {"boundaries": both, "n_sentences": n})
    assert found["boundary_score"] == 1.0
    assert found["pk"] in (0.0, None)
    assert found["window_diff"] in (0.0, None)


@given(boundaries, boundaries, st.integers(0, 30))
def test_windows_are_counted_as_if_one_slid_over_the_text(reference: list[int], hypothesis: list[int], n: int) -> None:
    inside = [{each for each in side if 0 <= each < n - 1} for side in (reference, hypothesis)]
    size = max(2, round(n / (len(inside[0]) + 1) / 2))
    starts = range(max(n - size, 0))
    held = [[len(side & set(range(start, start + size))) for start in starts] for side in inside]
    pairs = list(zip(*held, strict=True))
    assert window_errors(n, reference, hypothesis) == (
        sum((a == 0) != (b == 0) for a, b in pairs),
        sum(a != b for a, b in pairs),
        len(pairs),
    )


@given(texts)
def test_sentences_cover_a_text_and_know_their_positions(text: str) -> None:
    found = end_mark_spans(text)
    assert "".join(text[start:end] for start, end in found) == text
    assert all(text[start:end] for start, end in found)
    for index, (start, end) in enumerate(found):
        assert {sentence_index(position, found) for position in range(start, end)} == {index}
    assert sentence_index(len(text), found) == len(found) - 1


@given(spans, spans)
def test_no_assignment_of_spans_overlaps_more(gold: list[Span], predicted: list[Span]) -> None:
    short, long = sorted((gold, predicted), key=len)
    totals = [
        sum(overlap_ratio(a, b) for a, b in zip(short, chosen, strict=True))
        for chosen in permutations(long, len(short))
    ]
    assert sum(assign_spans(gold, predicted)) == pytest.approx(max(totals))


@given(spans, spans)
def test_pairs_of_spans_are_one_to_one_and_overlap(gold: list[Span], predicted: list[Span]) -> None:
    pairs = pair_spans(gold, predicted)
    assert len({row for row, _, _ in pairs}) == len({column for _, column, _ in pairs}) == len(pairs)
    assert all(overlap == overlap_ratio(gold[row], predicted[column]) > 0 for row, column, overlap in pairs)


@given(spans)
def test_equal_spans_overlap_fully(both: list[Span]) -> None:
    assert assign_spans(both, both[::-1]) == [1.0] * len(both)


@given(st.lists(st.tuples(boundaries, boundaries), max_size=6), st.integers(0, 6))
def test_pooled_scores_are_those_of_all_boundaries_in_one_text(
    stories: list[tuple[list[int], list[int]]], cut: int
) -> None:
    evaluator = Segmentation()
    apart = 1_000
    moved = [[[each + apart * number for each in side] for side in story] for number, story in enumerate(stories)]
    one = evaluator.evaluate(
        [each for _, hypothesis in moved for each in hypothesis], [each for reference, _ in moved for each in reference]
    )
    observed = [
        evaluator.measure(Case(id=str(number), expected=reference, prediction=hypothesis))
        for number, (reference, hypothesis) in enumerate(stories)
    ]
    with np.errstate(all="ignore"):
        pooled = evaluator.summarize((Totals.add_up(observed[cut:]) + Totals.add_up(observed[:cut])).sums())
    if stories:
        assert pooled["boundary_score"][0] == pytest.approx(one["boundary_score"])
        assert pooled["deletions"][0] == one["deletions"]
