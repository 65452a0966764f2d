"""The F1 of LoCoMo's own scorer, by definition and against a plain copy of its rules with NLTK's stemmer."""

import string
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem import PorterStemmer

from pytest_llmeval import Case, EvaluatorError, get_evaluator, score
from pytest_llmeval.evaluators.measures._locomo import locomo_f1

STEM = PorterStemmer().stem
WORDS = st.lists(
    st.sampled_from(
        ["the", "a", "and", "hikes", "hiking", "paintings,", "painted", "Tea;", "9", "it's", "an", "by", "I"]
    )
)


def plain(prediction: str, reference: str) -> float:
    def stems(text: str) -> list[str]:
        text = "".join(each for each in text.lower() if each not in string.punctuation)
        return [STEM(word) for word in text.split() if word not in ("a", "an", "the", "and")]

    left, right = stems(prediction), stems(reference)
    shared = (Counter(left) & Counter(right)).total()
    return 2 * shared / (len(left) + len(right)) if shared else 0.0


@given(WORDS, WORDS)
def test_whole_texts_are_compared_as_by_the_scorer(left: list[str], right: list[str]) -> None:
    answer, reference = " ".join(left), " ".join(right)
    for category in ("", "2", "4"):
        assert locomo_f1(answer, reference, category) == pytest.approx(plain(answer, reference))
    assert locomo_f1(answer, reference, "3") == pytest.approx(plain(answer, reference.split(";")[0]))
    parts = [max(plain(each, part) for each in answer.split(",")) for part in reference.split(",")]
    assert locomo_f1(answer, reference, "1") == pytest.approx(sum(parts) / len(parts))


@pytest.mark.parametrize(
    ("category", "expected", "prediction", "value"),
    [
        ("1", "hiking, paintings", "painting, the hikes", 1.0),
        ("2", "hiking, paintings", "painting, the hikes", 1.0),
        ("1", "hiking, paintings", "painting", 0.5),
        ("3", "Yes; she said so", "yes", 1.0),
        ("5", None, "It is NOT MENTIONED anywhere", 1.0),
        ("5", None, "No information available.", 1.0),
        ("5", None, "blue", 0.0),
        ("5", "blue", "blue", 0.0),
        ("4", "", "blue", None),
        ("4", None, "blue", None),
        ("4", ["red", "blue"], "The Blue", 1.0),
    ],
)
def test_the_category_decides_the_rule(category: str, expected: Any, prediction: str, value: float | None) -> None:
    case = Case("a", expected=expected, prediction=prediction, labels={"category": category})
    result = score(get_evaluator("text", metrics=["f1", "exact_match"], f1="locomo"), [case], confidence=None)
    assert result.metrics["f1"].value == (None if value is None else pytest.approx(value))
    assert result.metrics["f1"].signature.startswith("locomo|stem:porter|")
    assert (result.metrics["exact_match"].value is None) == (expected is None)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(EvaluatorError, match="f1: found the text 'squad2'"):
        get_evaluator("text", f1="squad2")
