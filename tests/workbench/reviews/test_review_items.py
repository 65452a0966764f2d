"""The answers of a report as people review them."""

from pathlib import Path
from typing import Any

import pytest
from pages import answered, case, review, suites_of

from pytest_llmeval.core import LlmevalError, ShownPrints
from pytest_llmeval.workbench.reviews._command import review_page
from pytest_llmeval.workbench.reviews._items import review_items, review_of


def test_people_see_what_the_judge_saw_and_no_judge(tmp_path: Path) -> None:
    texts = {"answer": "Paris", "contexts": "Paris is a town.", "criteria": "Is it kind?"}
    found = review(tmp_path, answered(1, [0.25, 0.75], texts=texts, reason="judge_score 0.5"))
    (item,) = found.items
    assert (item.question, item.answer, item.reference) == ("Question 1?", "Paris", "Right 1")
    assert item.more == {"contexts": "Paris is a town.", "criteria": "Is it kind?"}
    assert item.prints == tuple(map(ShownPrints.fingerprint, ("Question 1?", "Paris", "Right 1")))
    page = review_page(found)
    for secret in ("juror", "0.25", "0.75", "judge_score", "continuous"):
        assert secret not in page.partition('id="data">')[2].partition("</script>")[0]


def test_the_same_answer_of_two_systems_is_labelled_once(tmp_path: Path) -> None:
    one, other = answered(1, [0.5]), answered(1, [0.5], texts={"answer": "Other 1"})
    suites = [*suites_of(tmp_path, one, answered(2)), *suites_of(tmp_path, one, {**other, "id": "c3"})]
    items, cut = review_items(suites)
    assert [(each.answer, each.cases) for each in items] == [
        ("Answer 1", ("c1",)),
        ("Answer 2", ("c2",)),
        ("Other 1", ("c3",)),
    ]
    assert cut == 0


def test_answers_of_other_systems_are_named(tmp_path: Path) -> None:
    suites = [*suites_of(tmp_path, answered(1, [0.5])), *suites_of(tmp_path, answered(1, [0.5], texts={"answer": "B"}))]
    prints = [ShownPrints.fingerprint(each) for each in ("Answer 1", "B")]
    assert [each.others for each in review_items(suites)[0]] == [(prints[1],), (prints[0],)]
    assert review_of(suites).label(0, "ana", 5).others


def test_changed_answers_are_picked_again_each_for_the_choice_that_it_replaces(tmp_path: Path) -> None:
    before = review(tmp_path, *(answered(place, [place % 2]) for place in range(8)), pick=4)
    labels = [before.label(place, "ana", "yes") for place in range(4)]
    numbers = sorted(int(each.cases[0][1:]) for each in labels)
    moved = numbers[:2]
    cases = [answered(place, [0], texts={"answer": "New"} if place in moved else {}) for place in range(8)]
    after = review_of(suites_of(tmp_path, *cases), again=labels)
    assert sorted(each.cases[0] for each in after.items) == [f"c{place}" for place in moved]
    new = [after.label(place, "ana", "no") for place in range(2)]
    assert {(each.again, each.probability) for each in new} == {(before.id, 0.5)}
    assert f'"again":"{before.id}"' in review_page(after).replace('": "', '":"')
    with pytest.raises(LlmevalError, match="every label is of today's answer"):
        review_of(suites_of(tmp_path, *cases), again=[*labels, *new])


def test_equal_answers_of_two_cases_are_one_item_unless_the_right_answer_differs(tmp_path: Path) -> None:
    same = {"question": "Where?", "answer": "I do not know."}
    cases = [answered(place, [0.5], texts={**same, "reference": right}) for place, right in enumerate("AAB")]
    assert [each.cases for each in review_items(suites_of(tmp_path, *cases))[0]] == [("c0", "c1"), ("c2",)]


def test_disagreement_of_jurors_and_scores_near_a_limit_are_worth_a_label(tmp_path: Path) -> None:
    cases = [answered(0, [0.0, 1.0]), answered(1, [0.9, 0.9]), answered(2, [0.7, 0.7])]
    gate = {"gate": "f1 >= 0.7", "outcome": "passed", "limit": 0.7}
    worth = [each.worth for each in review_items(suites_of(tmp_path, *cases, gates=[gate]))[0]]
    assert worth == pytest.approx([1.2, 0.2, 1.0])


def test_without_a_judge_the_answer_is_that_of_the_prediction(tmp_path: Path) -> None:
    prediction = {"answer": "Paris", "contexts": ["a", "b"]}
    expected = {"reference": "Paris", "human": 0.3}
    found = review(tmp_path, case("a", input={"question": "Where?"}, expected=expected, prediction=prediction))
    (item,) = found.items
    assert (item.question, item.answer, item.reference) == ("Where?", "Paris", "Paris")
    assert item.more == {"contexts": "a\nb"}
    assert "0.3" not in review_page(found).partition('id="data">')[2].partition("</script>")[0]


@pytest.mark.parametrize(("scores", "scale"), [([0.0, 1.0], "yesno"), ([0.5], "1-5"), ([], "1-5")])
def test_the_scale_is_that_of_the_judge(tmp_path: Path, scores: list[float], scale: str) -> None:
    assert review(tmp_path, answered(1, scores)).scale == scale
    assert review(tmp_path, answered(1, scores), scale="yesno").scale == "yesno"


def test_picks_and_order_depend_on_the_seed_alone(tmp_path: Path) -> None:
    cases = [answered(place, [place / 50, 0.5]) for place in range(50)]
    chosen = [review(tmp_path, *each, pick=10, seed=3) for each in (cases, cases[::-1])]
    assert [each.answer for each in chosen[0].items] == [each.answer for each in chosen[1].items]
    other = review(tmp_path, *cases, pick=10, seed=4)
    assert other.id != chosen[0].id
    assert {each.answer for each in other.items} != {each.answer for each in chosen[0].items}
    assert len(review(tmp_path, *cases).items) == 50
    assert {each.probability for each in review(tmp_path, *cases).items} == {1.0}


@pytest.mark.parametrize(
    ("cases", "options", "message"),
    [
        ([answered(1), case("b")], {}, r"found 1 of 2 answered cases without texts, .* --llmeval-texts=all"),
        ([answered(1, details={"repeats": {}})], {}, "found repeated cases, expected one answer to each"),
        ([answered(1, [1])], {"evaluator": "juge"}, r"unknown judge 'juge', expected one of judge \(did you mean"),
        ([answered(1)], {"evaluator": "judge"}, "expected a judge that was asked about answers"),
        ([case("b", "errored", None)], {}, "suite 'capitals' has no answer to review"),
    ],
)
def test_a_report_that_cannot_be_reviewed_is_refused(
    tmp_path: Path, cases: list[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(LlmevalError, match=message):
        review_of(suites_of(tmp_path, *cases), **options)


def test_answers_that_the_report_has_cut_are_left_out_and_counted(tmp_path: Path) -> None:
    long = answered(1, [0.5], texts={"answer": "x" * 4000 + "... (9 more characters)"})
    found = review(tmp_path, long, answered(2, [0.5]))
    assert [each.answer for each in found.items] == ["Answer 2"]
    assert found.cut == 1
