import json
from typing import Any

import numpy as np
import pytest

from pytest_llmeval import Case, EvaluatorError, Totals, get_evaluator, score
from pytest_llmeval.tasks.narrative._segmentation import Segmentation, match_boundaries, window_errors

EVALUATOR = Segmentation()
NAMES = [metric.name for metric in EVALUATOR.describe()]


def case_of(prediction: Any, expected: Any, given: Any = None, id: str = "c") -> Case:  # noqa: A002 (as in Case)
    return Case(id=id, input=given, expected=expected, prediction=prediction)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "tolerance", "near_pairs"),
    [
        ([3], [4], 1, []),
        ([3], [4], 2, [(3, 4)]),
        ([3], [5], 2, []),
        ([3], [5], 3, [(3, 5)]),
        ([4], [3, 5], 2, [(4, 3)]),
        ([3], [1, 4], 3, [(3, 4)]),
        ([2, 4], [3, 5], 2, [(2, 3), (4, 5)]),
        ([5, 6], [4, 7], 2, [(5, 4), (6, 7)]),
        ([10, 12], [11, 13], 2, [(10, 11), (12, 13)]),
        ([2, 3], [3, 4], 3, [(2, 4)]),
        ([0, 10], [5], 100, [(0, 5)]),
        ([0, 10], [9, 20], 100, [(0, 9), (10, 20)]),
        ([-3], [-2], 2, [(-3, -2)]),
        ([10**30], [10**30 + 1], 2, [(10**30, 10**30 + 1)]),
    ],
)
def test_near_misses_are_paired_as_many_as_possible_then_nearest(
    reference: list[int], hypothesis: list[int], tolerance: int, near_pairs: list[tuple[int, int]]
) -> None:
    match = match_boundaries(reference, hypothesis, tolerance)
    assert list(match.near_pairs) == near_pairs
    assert match.weight == sum(abs(right - found) for right, found in near_pairs) / tolerance


def test_exact_matches_come_before_near_ones_and_lists_are_sets() -> None:
    match = match_boundaries([3, 2, 2], [4, 3, 3], 2)
    assert (match.matched, match.near_pairs, match.deleted, match.inserted) == ((3,), (), (2,), (4,))
    assert (match.exact, match.near, match.insertions, match.deletions, match.weight) == (1, 0, 1, 1, 0.0)


def test_a_tolerance_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="found tolerance 0, expected at least 1"):
        match_boundaries([1], [2], 0)
    with pytest.raises(EvaluatorError, match="tolerance: found 0, expected at least 1"):
        get_evaluator("segmentation", tolerance=0)


def test_long_lists_are_matched_within_reach_only() -> None:
    reference, hypothesis = range(0, 300_000, 3), range(1, 300_000, 3)
    match = match_boundaries(reference, hypothesis, 2)
    assert (match.near, match.insertions, match.deletions) == (100_000, 0, 0)


@pytest.mark.parametrize(
    ("n", "reference", "hypothesis", "wrong_pk", "wrong_window_diff", "windows"),
    [
        (10, [3], [4], 2, 2, 8),
        (10, [2, 3], [3, 4], 2, 4, 8),
        (10, [], [3], 4, 4, 5),
        (6, [0, 1, 2, 3, 4], [0, 2, 4], 0, 4, 4),
        (3, [0], [1], 0, 0, 1),
        (3, [0], [], 1, 1, 1),
        (10**9, [3], [4], 1, 1, 750_000_000),
    ],
)
def test_windows_are_half_the_mean_reference_segment(
    n: int, reference: list[int], hypothesis: list[int], wrong_pk: int, wrong_window_diff: int, windows: int
) -> None:
    assert window_errors(n, reference, hypothesis) == (wrong_pk, wrong_window_diff, windows)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_text_no_longer_than_a_window_has_no_window(n: int) -> None:
    assert window_errors(n, [], [0]) == (0, 0, 0)


def test_boundaries_that_do_not_separate_sentences_have_no_effect_on_windows() -> None:
    assert window_errors(10, [3, 9, 40], [4, -1, 10, 9]) == window_errors(10, [3], [4])


def test_a_case_has_all_metrics_and_shows_what_differs() -> None:
    found = EVALUATOR.evaluate([0, 3, 7], [0, 4, 5], ["s"] * 10)
    assert found == {
        "n_sentences": 10,
        "near_pairs": [[4, 3]],
        "missing_boundaries": [5],
        "extra_boundaries": [7],
        "boundary_score": 1 - 2.5 / 4,
        "exact_matches": 1,
        "near_misses": 1,
        "insertions": 1,
        "deletions": 1,
        "pk": 5 / 8,
        "window_diff": 5 / 8,
    }


def test_the_tolerance_decides_what_a_near_miss_is() -> None:
    scores = [Segmentation(tolerance=n).evaluate([5], [3])["boundary_score"] for n in (1, 2, 3, 4)]
    assert scores == pytest.approx([0, 0, 1 / 3, 1 / 2])


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        ({"boundaries": [1], "n_sentences": 4}, None),
        ({"boundaries": [1], "n_sentences": 4.0}, "One long text."),
        ([1], ["a", "b", "c", "d"]),
        ([1], "甲。乙。丙。丁。"),
        ({"boundaries": [1]}, "甲。乙。丙。丁"),
    ],
)
def test_the_number_of_sentences_is_stated_or_that_of_the_input(expected: Any, given: Any) -> None:
    found = EVALUATOR.evaluate([2], expected, given)
    assert found["n_sentences"] == 4
    assert found["pk"] == found["window_diff"] == 1 / 2


def test_without_a_number_of_sentences_only_the_windowed_metrics_are_undefined() -> None:
    observation = EVALUATOR.measure(case_of([3], [3]))
    assert set(observation.undefined) == {"pk", "window_diff"}
    assert "n_sentences" in observation.undefined["pk"]
    assert EVALUATOR.scores(observation)["boundary_score"] == 1.0


def test_a_text_of_two_sentences_has_no_window() -> None:
    observation = EVALUATOR.measure(case_of([0], [0], "One. Two."))
    assert observation.undefined == dict.fromkeys(("pk", "window_diff"), "the text is not longer than one window")


@pytest.mark.parametrize("expected", [None, {"boundaries": None, "n_sentences": 5}])
def test_without_expected_boundaries_every_metric_is_undefined(expected: Any) -> None:
    observation = EVALUATOR.measure(case_of([3], expected, "A. B. C."))
    assert observation.undefined == dict.fromkeys(NAMES, "no expected boundaries")
    assert EVALUATOR.scores(observation) == dict.fromkeys(NAMES)


def test_an_empty_list_says_that_there_is_one_segment() -> None:
    assert EVALUATOR.evaluate([], [])["boundary_score"] == 1.0
    assert EVALUATOR.evaluate([3], [])["boundary_score"] == 0.0


@pytest.mark.parametrize(
    ("prediction", "malformed", "kept"),
    [
        (None, "found null, expected a list of whole numbers", []),
        ("3, 5", "found text '3, 5', expected a list of whole numbers", []),
        ({"cuts": [3]}, "found an object, expected a list of whole numbers", []),
        ([3, True], "found true at position 2, expected a list of whole numbers", [3]),
        ([2.5, 3], "found number 2.5 at position 1, expected a list of whole numbers", [3]),
        ([3, "5", None, [1]], "found text '5' at position 2 and 2 more, expected a list of whole numbers", [3]),
        (
            [float("nan"), float("inf")],
            "found number NaN at position 1 and 1 more, expected a list of whole numbers",
            [],
        ),
        ({"boundaries": [3, 5]}, None, [3, 5]),
        ([3.0, 5], None, [3, 5]),
        (np.array([3, 5]).tolist(), None, [3, 5]),
        ((np.int64(3), 5), None, [3, 5]),
    ],
)
def test_a_prediction_that_is_no_list_of_whole_numbers_is_malformed_and_the_rest_of_it_counts(
    prediction: Any, malformed: str | None, kept: list[int]
) -> None:
    observation = EVALUATOR.measure(case_of(prediction, [3, 5], ["s"] * 8))
    assert observation.malformed == malformed
    assert observation.counts == EVALUATOR.measure(case_of(kept, [3, 5], ["s"] * 8)).counts
    assert observation.fault() is None


def test_boundaries_outside_the_text_and_repeated_ones_are_reported() -> None:
    observation = EVALUATOR.measure(case_of([3, 3, -1, 99, 10, 9], [3], ["s"] * 10))
    assert observation.details["outside_text"] == [-1, 10, 99]
    assert observation.details["repeated_boundaries"] == [3]
    assert observation.counts["insertions"] == 4
    assert observation.counts["pk.errors"] == observation.counts["window_diff.errors"] == 0
    assert observation.malformed is None
    assert json.loads(json.dumps(observation.to_json())) == observation.to_json()


@pytest.mark.parametrize(
    ("expected", "given", "faults"),
    [
        (None, None, []),
        ([], "text", []),
        ([0, 9, 2, 2], ["s"] * 10, []),
        ("3", None, ["found text '3', expected a list of whole numbers"]),
        ({"bounds": [3]}, None, ["found an object, expected a list of whole numbers"]),
        ([1, True], None, ["found true at position 2, expected a list of whole numbers"]),
        (
            {"boundaries": [1], "n_sentences": "many"},
            None,
            ["found text 'many' as n_sentences, expected a whole number of at least 0"],
        ),
        (
            {"boundaries": [1], "n_sentences": -1},
            None,
            ["found number -1 as n_sentences, expected a whole number of at least 0"],
        ),
        (
            {"boundaries": [1], "n_sentences": 3},
            ["a", "b"],
            ["found n_sentences 3, expected 2, as many as the input has"],
        ),
        ({"boundaries": [1], "n_sentences": 3}, "Split. By. Another. Rule.", []),
        (
            [4, -1],
            "A. B. C",
            [f"found boundary {boundary}, expected the index of a sentence, 0 to 2" for boundary in (-1, 4)],
        ),
        ([-1, 99], None, ["found boundary -1, expected the index of a sentence, 0 or more"]),
    ],
)
def test_faults_of_the_expected_boundaries_are_found_before_the_run(
    expected: Any, given: Any, faults: list[str]
) -> None:
    assert list(EVALUATOR.check(case_of([], expected, given))) == faults


def test_expected_boundaries_of_a_wrong_form_cannot_be_measured() -> None:
    with pytest.raises(EvaluatorError, match="found true at position 2"):
        EVALUATOR.measure(case_of([1], [1, True]))


def test_a_suite_pools_counts_boundaries_and_windows() -> None:
    cases = [
        case_of([3], [4], ["s"] * 10, "near"),
        case_of([3, 9, 12], [3, 9, 15], ["s"] * 20, "far"),
        case_of([1], None, None, "no gold"),
        case_of([1], [1], None, "no sentences"),
    ]
    result = score(EVALUATOR, cases, confidence=None)
    assert {
        name: result.metrics[name].value for name in ("exact_matches", "near_misses", "insertions", "deletions")
    } == {
        "exact_matches": 3,
        "near_misses": 1,
        "insertions": 1,
        "deletions": 1,
    }
    pooled = result.metrics["boundary_score"]
    assert pooled.value == pytest.approx(1 - 2.5 / 6)
    assert pooled.mean == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert (pooled.scored, pooled.undefined) == (3, 1)
    near, far = window_errors(10, [4], [3]), window_errors(20, [3, 9, 15], [3, 9, 12])
    assert result.metrics["pk"].value == (near.pk + far.pk) / (near.windows + far.windows)
    assert (result.metrics["pk"].scored, result.metrics["pk"].undefined) == (2, 2)


def test_a_suite_in_which_nothing_can_be_judged_has_no_value() -> None:
    sums = Totals.add_up([EVALUATOR.measure(case_of([1], None))]).sums()
    with np.errstate(all="ignore"):
        columns = EVALUATOR.summarize(sums)
    assert list(columns) == NAMES
    assert all(np.isnan(column[0]) for column in columns.values())


def test_signatures_tell_what_makes_scores_comparable() -> None:
    signatures = {metric.name: metric.signature for metric in get_evaluator("segmentation", tolerance=3).describe()}
    assert signatures["boundary_score"] == signatures["deletions"] == "n_t:3|matching:optimal|v:1"
    assert signatures["pk"] == signatures["window_diff"] == "window:half-mean-segment|segeval:compatible|v:1"


def test_only_exact_matches_and_the_boundary_score_are_better_when_higher() -> None:
    assert [metric.name for metric in EVALUATOR.describe() if metric.higher_is_better] == [
        "boundary_score",
        "exact_matches",
    ]
