from typing import Any

import pytest

from pytest_llmeval.tasks.narrative._composite import Narrative
from pytest_llmeval.tasks.narrative._document import read_story
from pytest_llmeval.tasks.narrative._text_span import TextSpan
from pytest_llmeval.tasks.narrative.labels import drifted_spans, repair_spans

TEXT = "Ann hits Bea. Bea runs. Ann hits Bea."


def story(*spans: tuple[int, int, str | None]) -> dict[str, Any]:
    events = [
        {"id": f"e{place}", "text_span": {"start": start, "end": end, "text": text}}
        for place, (start, end, text) in enumerate(spans)
    ]
    return {"narrative_events": events}


def test_a_span_with_the_text_of_another_place_has_drifted() -> None:
    assert drifted_spans(read_story(story((2, 15, "Ann hits Bea."))), TEXT) == [
        {"event": "e0", "span": [2, 15], "text": "Ann hits Bea.", "found": "n hits Bea. B", "nearest": [0, 13]}
    ]


@pytest.mark.parametrize("span", [(0, 13, "Ann hits Bea."), (0, 14, " Ann hits\nBea."), (3, 5, None), (3, 5, " ")])
def test_white_space_makes_no_difference_and_a_span_without_text_is_not_looked_at(span: Any) -> None:
    assert drifted_spans(read_story(story(span)), TEXT) == []


@pytest.mark.parametrize(
    ("start", "nearest"), [(2, 0), (11, 0), (12, 0), (13, 24), (23, 24), (30, 24), (-5, 0), (400, 24)]
)
def test_a_span_is_repaired_to_the_nearest_place_of_its_text(start: int, nearest: int) -> None:
    found, log = repair_spans(read_story(story((start, start + 3, "Ann hits Bea."))), TEXT)
    assert found.events[0].span == (nearest, nearest + 13)
    assert log == [{"event": "e0", "span": [start, start + 3], "repaired": [nearest, nearest + 13]}]


def test_a_text_that_does_not_occur_leaves_its_span() -> None:
    found, log = repair_spans(read_story(story((2, 15, "Ann hugs Bea."))), TEXT)
    assert (found.events[0].span, log) == ((2, 15), [])


def test_the_prediction_gets_a_line_of_explanation_and_both_sides_are_listed() -> None:
    predicted, gold = story((2, 15, "Bea runs.")), story((1, 14, "Ann hits Bea."))
    for found in (TextSpan().evaluate(predicted, gold, TEXT), Narrative().evaluate(predicted, gold, TEXT)):
        assert found["wrong"] == ["event 'e0': text_span 2-15 is 'n hits Bea. B', not 'Bea runs.', which is at 14-23"]
        drifts = found.get("detailed_results", {}).get("text_span", found)["drifted_spans"]
        assert {side: len(each) for side, each in drifts.items()} == {"ground_truth": 1, "prediction": 1}


def test_repair_spans_repairs_both_sides() -> None:
    predicted, gold = story((2, 15, "Bea runs.")), story((1, 14, "Bea runs."))
    assert TextSpan().evaluate(predicted, gold, TEXT)["overlap_ratio"] < 1
    found = TextSpan(repair_spans=True).evaluate(predicted, gold, TEXT)
    assert found["overlap_ratio"] == 1
    assert {side: [each["repaired"] for each in log] for side, log in found["repaired_spans"].items()} == {
        "ground_truth": [[14, 23]],
        "prediction": [[14, 23]],
    }
