from typing import Any

import pytest

from pytest_llmeval import Case, score
from pytest_llmeval.tasks.narrative._text_span import TextSpan

TEXT = "One. Two. Six. Ten. End."  # sentences [0, 4) [4, 9) [9, 14) [14, 19) [19, 24)


def story(*spans: tuple[int | None, int | None] | None, text: str | None = None, ids: str = "abcdef") -> dict[str, Any]:
    events = [
        {"id": name, "text_span": None if span is None else {"start": span[0], "end": span[1]}}
        for name, span in zip(ids, spans, strict=False)
    ]
    return {"narrative_events": events, "source_info": {"text_content": text}}


def evaluate(
    predicted: dict[str, Any], gold: dict[str, Any], text: str | None = TEXT, **options: Any
) -> dict[str, Any]:
    return TextSpan(**options).evaluate(predicted, gold, text)


def test_equal_spans_score_1() -> None:
    gold = story((0, 4), (4, 14), (14, 24))
    found = evaluate(gold, gold)
    assert (found["boundary_score"], found["overlap_ratio"], found["mean_overlap"]) == (1, 1, 1)
    assert found["ground_truth_boundaries"] == found["predicted_boundaries"] == [0, 2, 3]
    assert (found["pk"], found["window_diff"]) == (0, 0)
    assert [found[name] for name in ("exact_matches", "near_misses", "insertions", "deletions")] == [3, 0, 0, 0]
    assert isinstance(found["exact_matches"], int)


def test_near_misses_cost_by_distance_over_tolerance() -> None:
    found = evaluate(story((0, 9)), story((0, 4)))
    assert (found["ground_truth_boundaries"], found["predicted_boundaries"]) == ([0], [1])
    assert (found["near_misses"], found["boundary_score"]) == (1, 0.5)
    far = evaluate(story((0, 9)), story((0, 4)), tolerance=1)
    assert (far["insertions"], far["deletions"], far["boundary_score"]) == (1, 1, 0)


def test_a_span_inside_one_sentence_gives_no_boundary() -> None:
    found = evaluate(story((5, 8)), story((5, 8)))
    assert (found["ground_truth_boundaries"], found["boundary_score"]) == ([], 1)


def test_overlap_goes_by_the_best_assignment_and_not_by_event() -> None:
    found = evaluate(story((10, 20), (0, 10)), story((0, 10), (10, 20)))
    assert found["overlap_ratio"] == 1
    found = evaluate(story((0, 8)), story((0, 10), (10, 20)))
    assert (found["overlap_ratio"], found["overlap_scores"]) == (0.4, [0.8, 0])


def test_predicted_spans_of_events_without_gold_span_are_left_out() -> None:
    found = evaluate(story((0, 4), (4, 14)), story((0, 4), None))
    assert (found["boundary_score"], found["overlap_ratio"], found["n_spans_excluded"]) == (1, 1, 1)
    reason = "the ground truth has no text span with start and end in event b"
    assert (found["gt_incomplete"], found["gt_incomplete_reason"]) == (True, reason)


def test_spans_of_extra_events_count() -> None:
    predicted = story((0, 4), (4, 14), ids="az")
    found = evaluate(predicted, story((0, 4), None))
    assert (found["insertions"], found["n_spans_excluded"]) == (1, 0)


@pytest.mark.parametrize("half", [(None, 4), (0, None), (None, None)])
def test_a_span_needs_both_ends(half: Any) -> None:
    assert evaluate(story((0, 4)), story(half))["boundary_score"] is None
    found = evaluate(story(half), story((0, 4)))
    assert (found["deletions"], found["overlap_ratio"]) == (1, 0)


def test_without_gold_spans_nothing_is_judged() -> None:
    found = evaluate(story((0, 4)), story(None))
    assert [found[metric.name] for metric in TextSpan().describe()] == [None] * 8
    assert (found["mean_overlap"], found["gt_incomplete"]) == (None, True)


@pytest.mark.parametrize("blank", [None, "", "  "])
def test_the_text_is_looked_for_in_input_then_gold_then_prediction(blank: str | None) -> None:
    gold, predicted = story((0, 4)), story((0, 4))
    with pytest.raises(ValueError, match="text is required"):
        evaluate(predicted, gold, blank)
    with pytest.raises(ValueError, match="text is required"):
        evaluate({}, {}, blank)
    one, many = "One sentence", TEXT
    assert evaluate(story((0, 4), text=many), gold, blank)["ground_truth_boundaries"] == [0]
    assert evaluate(story((0, 4), text=many), story((0, 4), text=one), blank)["ground_truth_boundaries"] == []
    assert evaluate(predicted, story((0, 4), text=one), many)["ground_truth_boundaries"] == [0]


def test_in_a_suite_a_story_without_text_is_undefined() -> None:
    observation = TextSpan().measure(Case(id="a", expected=story((0, 4)), prediction=story((0, 4))))
    assert set(TextSpan().scores(observation).values()) == {None}
    assert set(observation.undefined.values()) == {
        "text is required for text spans: give it as input, or in source_info.text_content"
    }


def test_a_text_of_one_window_has_no_pk() -> None:
    observation = TextSpan().measure(Case(id="a", input="One. Two.", expected=story((0, 4)), prediction=story((0, 4))))
    assert dict.fromkeys(("pk", "window_diff"), "the text is not longer than one window") == observation.undefined


def test_odd_spans_are_reported_by_side_and_event_and_cost_nothing_but_the_score() -> None:
    found = evaluate(story((-5, 4), (14, 4), (3, 999), (7, 7)), story((0, 4), (4, 14), (14, 24), (2, 6)))
    assert found["span_faults"] == {
        "ground_truth": {"overlapping": ["b", "d"]},
        "prediction": {"outside": ["a", "c"], "empty": ["d"], "reversed": ["b"], "overlapping": ["c"]},
    }
    assert 0 <= found["overlap_ratio"] <= 1


def test_offsets_of_any_size_are_no_crash() -> None:
    huge = 10**400
    found = evaluate(story((-huge, huge), (huge, -huge)), story((0, huge)))
    assert 0 <= found["boundary_score"] <= 1
    assert found["overlap_ratio"] == pytest.approx(0.5)


def test_pooled_values_count_all_boundaries_and_spans_alike() -> None:
    cases = [
        Case(id="a", input=TEXT, expected=story((0, 4)), prediction=story((0, 4))),
        Case(id="b", input=TEXT, expected=story((0, 4), (4, 9), (9, 24)), prediction=story()),
        Case(id="c", input=TEXT, expected=story(None), prediction=story((0, 4))),
    ]
    metrics = score(TextSpan(), cases, confidence=None).metrics
    assert (metrics["boundary_score"].value, metrics["boundary_score"].mean) == (1 / 4, 1 / 2)
    assert (metrics["overlap_ratio"].value, metrics["overlap_ratio"].mean) == (1 / 4, 1 / 2)
    assert (metrics["deletions"].value, metrics["deletions"].undefined) == (3, 1)


def test_a_tolerance_below_1_is_refused() -> None:
    with pytest.raises(ValueError, match="tolerance: found 0, expected at least 1"):
        TextSpan(tolerance=0)
