import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from rouge_score.rouge_scorer import RougeScorer

from pytest_llmeval.evaluators import Tokenizer
from pytest_llmeval.evaluators.measures._overlap import (
    ROUGE,
    bleu_scores,
    exact_match,
    number_tokens,
    rouge_scores,
    shared_count,
    shared_ngrams,
    token_f1,
)

FEW_WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "."]), min_size=1, max_size=14)
MANY_WORDS = st.lists(st.sampled_from([f"w{n}" for n in range(60)]), min_size=1, max_size=80)
TOKENS = st.one_of(FEW_WORDS, MANY_WORDS)
WEIGHTS = [(1, 0, 0, 0), (0.5, 0.5, 0, 0), (0.25, 0.25, 0.25, 0.25)]
TEXT = st.one_of(
    st.lists(
        st.sampled_from(
            ["Running", "runs", "the", "Cats'", "cat", "skies", "dying", "É", "İ", "x_y", "7-8", "!", "\n"]
        ),
        max_size=20,
    ).map(" ".join),
    st.text(max_size=30),
)


@given(TOKENS, TOKENS)
def test_shared_count_is_the_multiset_intersection(left: list[str], right: list[str]) -> None:
    assert shared_count(left, right) == (Counter(left) & Counter(right)).total()


@given(TOKENS, TOKENS)
def test_shared_ngrams_are_the_multiset_intersections(left: list[str], right: list[str]) -> None:
    ours = shared_ngrams(*number_tokens(left, right), longest=4)
    for n, count in enumerate(ours, 1):
        grams = [Counter(tuple(side[i : i + n]) for i in range(len(side) - n + 1)) for side in (left, right)]
        assert count == (grams[0] & grams[1]).total()


@settings(deadline=None)
@given(TOKENS, TOKENS)
def test_bleu_equals_nltk_to_the_last_bit(prediction: list[str], reference: list[str]) -> None:
    smoothing = SmoothingFunction().method1
    expected = [
        sentence_bleu([reference], prediction, weights=weights, smoothing_function=smoothing) for weights in WEIGHTS
    ]
    assert bleu_scores(prediction, reference) == expected


@pytest.mark.parametrize(
    ("prediction", "reference", "scores"),
    [
        ("a", "b", [0, 0, 0]),
        ("a", "a", [1, 0.31622776601683794, 0.1778279410038923]),
        ("a b c", "a b c", [1, 1, 0.5623413251903491]),
        ("a", "a b", [math.exp(-1), math.exp(-1) * 0.31622776601683794, math.exp(-1) * 0.1778279410038923]),
        ("a a a a", "a", [0.25, 0.09128709291752769, 0.08034284189446518]),
    ],
)
def test_bleu_of_corner_cases(prediction: str, reference: str, scores: list[float]) -> None:
    assert bleu_scores(prediction.split(), reference.split()) == pytest.approx(scores, rel=1e-12)


@settings(deadline=None)
@given(TEXT, TEXT)
def test_rouge_equals_rouge_score_to_the_last_bit(prediction: str, reference: str) -> None:
    expected = RougeScorer(list(ROUGE), use_stemmer=True).score(reference, prediction)
    words = Tokenizer.named("words").rouge
    ours = rouge_scores(words(prediction), words(reference))
    assert ours == [expected[name].fmeasure for name in ROUGE]


@given(TOKENS, TOKENS)
def test_f1_is_symmetric_bounded_and_one_only_for_equal_multisets(left: list[str], right: list[str]) -> None:
    score = token_f1(left, right)
    assert score == token_f1(right, left)
    assert 0 <= score <= 1
    assert (score == 1) == (Counter(left) == Counter(right))


@pytest.mark.parametrize(
    ("prediction", "reference", "score"),
    [("a b", "b c", 0.5), ("a a b", "a a a", 2 / 3), ("a", "b", 0), ("", "a", 0), ("a", "", 0), ("", "", 0)],
)
def test_f1_counts_a_word_as_often_as_both_sides_have_it(prediction: str, reference: str, score: float) -> None:
    assert token_f1(prediction.split(), reference.split()) == pytest.approx(score)


@pytest.mark.parametrize(
    ("prediction", "reference", "score"),
    [(" Paris\n", "paris", 1), ("ÉCOLE", "école", 1), ("", "", 1), ("Paris.", "Paris", 0), ("a  b", "a b", 0)],
)
def test_exact_match_forgives_case_and_outer_space_only(prediction: str, reference: str, score: float) -> None:
    assert exact_match(prediction, reference) == score


def test_only_the_scores_asked_for_are_returned_in_the_order_asked() -> None:
    left, right = ["a", "b", "c", "d"], ["a", "b", "x", "d"]
    full = dict(zip(ROUGE, rouge_scores(left, right), strict=True))
    assert rouge_scores(left, right, ("rougeL", "rouge1")) == [full["rougeL"], full["rouge1"]]
    assert bleu_scores(left, right, ("bleu2",)) == [bleu_scores(left, right)[1]]
