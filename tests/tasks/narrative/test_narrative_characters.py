from typing import Any

import pytest

from pytest_llmeval import Case, score
from pytest_llmeval.core import EvaluatorError
from pytest_llmeval.tasks.narrative._components import Characters

HERO = {"name": "Ann", "alias": "Annie", "archetype": "Hero"}
KING = {"name": "Bea", "alias": "", "archetype": "Ruler"}
DOG = {"name": "Rex", "archetype": ""}


def cast(*characters: Any) -> dict[str, Any]:
    return {"characters": list(characters)}


def test_precision_recall_and_f1_count_pairs() -> None:
    found = Characters().evaluate(cast({"name": "annie"}, {"name": "Zoe"}), cast(HERO, KING, DOG))
    assert found["character_precision"] == 1 / 2
    assert found["character_recall"] == 1 / 3
    assert found["character_f1"] == pytest.approx(2 / 5)
    assert found["missing_characters"] == ["Bea", "Rex"]
    assert found["extra_characters"] == ["Zoe"]
    assert found["unjudged_characters"] == []
    assert (found["n_matched"], found["n_predicted"], found["n_ground_truth"]) == (1, 2, 3)


def test_archetypes_are_judged_where_gold_has_one() -> None:
    predicted = cast({"name": "Ann", "archetype": " Hero "}, {"name": "Bea"}, {"name": "Rex", "archetype": "Trickster"})
    found = Characters().evaluate(predicted, cast(HERO, KING, DOG))
    assert found["character_archetype_accuracy"] == 1 / 2
    assert found["wrong_archetypes"] == [{"character": "Bea", "expected": "Ruler", "predicted": ""}]


def test_letter_case_of_an_archetype_matters() -> None:
    found = Characters().evaluate(cast({"name": "Ann", "archetype": "hero"}), cast(HERO))
    assert found["character_archetype_accuracy"] == 0


@pytest.mark.parametrize("gold", [None, {}, cast(), {"characters": None}, cast({"name": " "}), cast(None)])
def test_without_gold_characters_nothing_is_judged_and_nobody_is_extra(gold: Any) -> None:
    found = Characters().evaluate(cast(HERO), gold)
    names = [metric.name for metric in Characters().describe()]
    assert [found[name] for name in names] == [None] * 4
    assert found["extra_characters"] == []
    assert found["unjudged_characters"] == ["Ann"]
    assert (found["gt_incomplete"], found["gt_incomplete_reason"]) == (True, "the ground truth has no characters")


@pytest.mark.parametrize("prediction", [{}, cast(), {"characters": None}])
def test_finding_nobody_scores_0(prediction: Any) -> None:
    found = Characters().evaluate(prediction, cast(HERO))
    assert (found["character_precision"], found["character_recall"], found["character_f1"]) == (0, 0, 0)
    assert found["character_archetype_accuracy"] is None


def test_fuzzy_names_count_if_asked_for() -> None:
    gold, predicted = cast({"name": "Meng Jiangnu"}), cast({"name": "Meng Jiangnv"})
    assert Characters().evaluate(predicted, gold)["character_f1"] == 0
    assert Characters(fuzzy=0.9).evaluate(predicted, gold)["character_f1"] == 1


@pytest.mark.parametrize("prediction", [None, "I cannot", [HERO], 3, ""])
def test_a_prediction_that_is_no_document_is_malformed_and_scored_as_empty(prediction: Any) -> None:
    observation = Characters().measure(Case(id="a", expected=cast(HERO), prediction=prediction))
    assert observation.malformed is not None
    assert observation.malformed.endswith("expected a JSON v3 document (an object)")
    assert Characters().scores(observation)["character_f1"] == 0


def test_what_is_wrong_inside_a_prediction_is_malformed_and_the_rest_is_scored() -> None:
    prediction = cast(HERO, "Bea", 1, 2, 3)
    observation = Characters().measure(Case(id="a", expected=cast(HERO), prediction=prediction))
    assert observation.malformed == (
        "characters[1]: found text 'Bea', expected an object; characters[2]: found number 1, expected an object; "
        "characters[3]: found number 2, expected an object and 1 more"
    )
    assert Characters().scores(observation)["character_f1"] == 1


def test_gold_of_a_wrong_form_is_a_fault_of_the_case() -> None:
    evaluator = Characters()
    assert list(evaluator.check(Case(id="a", expected=None))) == []
    assert list(evaluator.check(Case(id="a", expected=cast(HERO)))) == []
    assert list(evaluator.check(Case(id="a", expected=cast(3)))) == [
        "characters[0]: found number 3, expected an object"
    ]
    wrong = ["found a list, expected a JSON v3 document (an object)"]
    assert list(evaluator.check(Case(id="a", expected=[HERO]))) == wrong
    with pytest.raises(EvaluatorError, match="found a list"):
        evaluator.measure(Case(id="a", expected=[HERO], prediction={}))


def test_a_wrong_form_inside_gold_counts_as_absent_and_is_told() -> None:
    found = Characters().evaluate(cast(HERO), {"characters": "Ann"})
    assert found["character_f1"] is None
    assert found["gt_faults"] == ["characters: found text 'Ann', expected a list"]


def test_pooled_values_count_all_characters_alike() -> None:
    cases = [
        Case(id="a", expected=cast(HERO), prediction=cast(HERO)),
        Case(id="b", expected=cast(HERO, KING, DOG), prediction=cast(HERO, {"name": "Zoe"})),
        Case(id="c", expected=cast(), prediction=cast({"name": "Zoe"})),
    ]
    result = score(Characters(), cases, confidence=None).metrics
    precision, recall = result["character_precision"], result["character_recall"]
    assert (precision.value, precision.mean) == (2 / 3, (1 + 1 / 2) / 2)
    assert (recall.value, recall.mean) == (2 / 4, pytest.approx((1 + 1 / 3) / 2))
    assert (recall.scored, recall.undefined) == (2, 1)


def test_the_signature_says_how_names_are_compared() -> None:
    assert {metric.signature for metric in Characters().describe()} == {"names:strict|v:1"}
    assert {metric.signature for metric in Characters(fuzzy=0.9).describe()} == {"names:fuzzy>=0.9|v:1"}
