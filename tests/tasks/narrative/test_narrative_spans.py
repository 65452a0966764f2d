import pytest

from pytest_llmeval.tasks.narrative._alignment import overlap_ratio, pair_spans
from pytest_llmeval.tasks.narrative._document import Span
from pytest_llmeval.tasks.narrative._text_span import assign_spans, span_faults


@pytest.mark.parametrize(
    ("a", "b", "ratio"),
    [
        ((0, 10), (0, 10), 1.0),
        ((0, 10), (5, 15), 5 / 15),
        ((0, 10), (2, 4), 0.2),
        ((0, 10), (10, 20), 0.0),
        ((0, 10), (30, 40), 0.0),
        ((0, 10), (5, 5), 0.0),
        ((0, 10), (8, 2), 0.0),
        ((5, 5), (5, 5), 1.0),
        ((8, 2), (8, 2), 1.0),
        ((8, 2), (2, 8), 0.0),
        ((8, 2), (9, 1), 0.0),
        ((-5, 5), (0, 10), 5 / 15),
        ((0, 10**400), (0, 2 * 10**400), 0.5),
    ],
)
def test_overlap_is_intersection_over_union(a: Span, b: Span, ratio: float) -> None:
    assert overlap_ratio(a, b) == pytest.approx(ratio, abs=1e-12)
    assert overlap_ratio(b, a) == overlap_ratio(a, b)


def test_spans_are_assigned_for_the_largest_sum_and_not_one_by_one() -> None:
    gold = [(0, 10), (10, 14)]
    predicted = [(4, 14), (0, 4)]
    # The best partner of the first gold span is also the only one of the second.
    assert overlap_ratio(gold[0], predicted[0]) > overlap_ratio(gold[0], predicted[1])
    assert pair_spans(gold, predicted) == [(0, 1, 0.4), (1, 0, 0.4)]
    assert assign_spans(gold, predicted) == [0.4, 0.4]


@pytest.mark.parametrize(
    ("gold", "predicted", "overlaps"),
    [
        ([], [], []),
        ([], [(0, 1)], []),
        ([(0, 1), (2, 3)], [], [0.0, 0.0]),
        ([(0, 2), (4, 6)], [(4, 6)], [0.0, 1.0]),
        ([(0, 2)], [(8, 9), (0, 2), (0, 2)], [1.0]),
        ([(0, 2), (0, 2)], [(0, 2)], [1.0, 0.0]),
        ([(0, 2), (5, 5), (9, 7)], [(9, 7), (5, 5), (3, 4)], [0.0, 1.0, 1.0]),
    ],
)
def test_each_gold_span_has_the_overlap_of_its_partner_or_none(
    gold: list[Span], predicted: list[Span], overlaps: list[float]
) -> None:
    assert assign_spans(gold, predicted) == overlaps


def test_spans_that_do_not_overlap_are_no_pair() -> None:
    assert pair_spans([(0, 2), (4, 6)], [(2, 4), (4, 5)]) == [(1, 1, 0.5)]


@pytest.mark.parametrize(
    ("spans", "faults"),
    [
        ([], {}),
        ([(0, 5), (5, 10)], {}),
        ([(5, 10), (0, 5)], {}),
        ([(-1, 5), (5, 11), (20, 30)], {"outside": [0, 1, 2]}),
        ([(3, 3)], {"empty": [0]}),
        ([(7, 3)], {"reversed": [0]}),
        ([(12, 3)], {"outside": [0], "reversed": [0]}),
        ([(0, 10), (4, 4), (8, 2)], {"empty": [1], "reversed": [2]}),
        ([(4, 8), (0, 5)], {"overlapping": [0]}),
        ([(0, 9), (1, 2), (3, 4), (8, 10)], {"overlapping": [1, 2, 3]}),
        ([(0, 5), (0, 5)], {"overlapping": [1]}),
    ],
)
def test_spans_outside_the_text_empty_reversed_or_overlapping_are_named(
    spans: list[Span], faults: dict[str, list[int]]
) -> None:
    assert span_faults(spans, 10) == faults
