from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk import word_tokenize
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from rouge_score.rouge_scorer import RougeScorer

from pytest_llmeval.core import MISSING, Case, EvaluatorError, Observation
from pytest_llmeval.evaluators._text import METRICS, TextEvaluator
from pytest_llmeval.evaluators.measures import _tokens as tokens

DEFAULT = ("exact_match", "f1", "rouge1", "rouge2", "rougeL", "bleu1", "bleu2", "bleu4")
WORD_METRICS = DEFAULT[1:]


def measure(expected: Any, prediction: Any, **options: Any) -> Observation:
    return TextEvaluator(**options).measure(Case(id="c", expected=expected, prediction=prediction))


def scores(expected: Any, prediction: Any, **options: Any) -> dict[str, float | None]:
    return TextEvaluator(**options).evaluate(prediction, expected)


def test_the_default_leaves_out_meteor_only() -> None:
    assert TextEvaluator().metrics == DEFAULT
    assert set(METRICS) - set(DEFAULT) == {"meteor"}


def test_each_metric_counts_its_score_and_one() -> None:
    observation = measure("Paris, France", "Paris", metrics=("exact_match", "f1"))
    assert dict(observation.counts) == {"exact_match": 0, "exact_match.n": 1, "f1": 2 / 3, "f1.n": 1}
    assert observation.malformed is None
    assert not observation.undefined


def test_the_best_reference_counts_for_each_metric_on_its_own() -> None:
    references = ["on the mat the cat sat", "the cat sat on"]
    best = scores(references, "the cat sat on the mat")
    single = [scores(each, "the cat sat on the mat") for each in references]
    assert best == {name: max(one[name] or 0, two[name] or 0) for one, two in [single] for name in DEFAULT}
    assert best["f1"] == single[0]["f1"] == 1
    assert best["rougeL"] == single[1]["rougeL"]


@pytest.mark.parametrize(
    ("expected", "prediction"), [(2022, "2022"), ("2022", 2022), (True, "true"), (1.5, 1.5), ([7, "seven"], "7")]
)
def test_numbers_and_booleans_are_read_as_their_json_text(expected: Any, prediction: Any) -> None:
    assert scores(expected, prediction)["exact_match"] == 1


@pytest.mark.parametrize("expected", [None, []])
def test_without_an_expected_answer_every_metric_is_undefined(expected: Any) -> None:
    observation = measure(expected, "Paris")
    assert observation.undefined == dict.fromkeys(DEFAULT, "no expected answer")
    assert not observation.counts
    assert scores(expected, "Paris") == dict.fromkeys(DEFAULT)


@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        (None, "found null, expected text"),
        (["a"], "found a list, expected text"),
        ({"a": 1}, "found an object, expected text"),
        (MISSING, "found nothing, expected text"),
    ],
)
def test_a_prediction_that_is_no_text_is_malformed_and_scored_as_empty(prediction: Any, message: str) -> None:
    observation = measure("Paris", prediction)
    assert observation.malformed == message
    assert observation.counts == measure("Paris", "").counts
    assert set(observation.counts.values()) == {0, 1}


@pytest.mark.parametrize(
    ("expected", "found"), [({"a": 1}, "an object"), ([["a"]], "a list in the list"), (["a", None], "null in the list")]
)
def test_an_expected_answer_that_is_no_text_is_a_fault(expected: Any, found: str) -> None:
    message = f"found {found}, expected text or a list of texts"
    assert list(TextEvaluator().check(Case(id="c", expected=expected))) == [message]
    with pytest.raises(EvaluatorError, match=message):
        measure(expected, "Paris")


@pytest.mark.parametrize("expected", [None, [], "a", 3, ["a", 3, False]])
def test_texts_and_scalars_are_no_fault(expected: Any) -> None:
    assert not list(TextEvaluator().check(Case(id="c", expected=expected)))


@pytest.mark.parametrize("prediction", ["", "\t", " \n"])
def test_a_blank_answer_scores_zero(prediction: str) -> None:
    for tokenizer in ("words", "auto", "characters", "whitespace"):
        assert scores("x", prediction, tokenizer=tokenizer) == dict.fromkeys(DEFAULT, 0)


@pytest.mark.parametrize("expected", ["", " \n", "\u3000", ["", " "]])
@pytest.mark.parametrize("prediction", ["x", "北京", ""])
def test_words_of_a_blank_expected_text_are_undefined(expected: Any, prediction: str) -> None:
    for tokenizer in ("words", "auto", "characters", "whitespace"):
        found = scores(expected, prediction, tokenizer=tokenizer)
        assert found == {"exact_match": float(not prediction), **dict.fromkeys(WORD_METRICS)}


def test_a_reference_that_the_tokenizer_cannot_see_is_undefined() -> None:
    observation = measure("北京", "北京", tokenizer="words")
    reason = "tokenizer 'words' finds no token in the expected answer"
    assert observation.undefined == dict.fromkeys(("rouge1", "rouge2", "rougeL"), reason)
    assert observation.counts["f1"] == 1
    assert "rouge1.n" not in observation.counts


def test_a_prediction_that_the_tokenizer_cannot_see_scores_zero_as_in_rouge_score() -> None:
    assert not measure("Beijing", "北京", tokenizer="words").undefined
    assert scores("Beijing", "北京", tokenizer="words")["rouge1"] == 0


def test_a_prediction_of_punctuation_says_nothing_and_scores_zero() -> None:
    assert not measure("Paris", "?! …").undefined
    assert scores("Paris", "?! …")["rouge1"] == 0


def test_references_that_the_tokenizer_cannot_see_are_left_out_if_others_can_be_seen() -> None:
    assert scores(["北京", "Beijing"], "Beijing", tokenizer="words")["rouge1"] == 1
    assert scores(["北京", ""], "Beijing", tokenizer="words")["rouge1"] is None
    assert scores(["北京", "!"], "Beijing", tokenizer="words")["rouge1"] is None


def test_auto_scores_text_of_every_script() -> None:
    for text in ("我住在北京。", "Москва", "Αθήνα", "한국어", "naïveté"):
        assert scores(text, text)["rouge1"] == 1
        assert scores(text, text)["f1"] == 1
    assert scores("北京大学", "北京")["f1"] == pytest.approx(2 / 3)


def test_a_registered_tokenizer_can_be_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_TOKENIZERS", dict(tokens._TOKENIZERS))
    tokens.Tokenizer.add("test-commas", lambda text: text.split(","))
    assert scores("a b,c", "a b", tokenizer="test-commas")["f1"] == pytest.approx(2 / 3)
    assert scores("a b, ", " ", tokenizer="test-commas")["f1"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ("f2",)}, r"unknown metric f2, did you mean f1\?"),
        ({"metrics": ("f1", "f1")}, "expected one or more different names"),
        ({"metrics": ()}, "expected one or more different names"),
        ({"tokenizer": "caracters"}, r"unknown tokenizer caracters, did you mean characters"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TextEvaluator(**options)


def test_metrics_are_described_in_the_order_asked_for_with_their_signature() -> None:
    described = TextEvaluator(metrics=("rouge1", "exact_match")).describe()
    assert [(metric.name, metric.signature) for metric in described] == [
        ("rouge1", "tok:auto|stem:porter|rouge-score:compatible|v:1"),
        ("exact_match", "case:lower|v:1"),
    ]
    assert "stem:none" in TextEvaluator(metrics=("rouge1",), tokenizer="characters").describe()[0].signature


@settings(deadline=None)
@given(st.text(st.sampled_from("abcing EDS's.,!\"()-7é中\n"), max_size=40), st.text(max_size=30))
def test_a_suite_of_cases_scores_the_mean_of_the_cases(one: str, two: str) -> None:
    from pytest_llmeval.core import Totals

    evaluator = TextEvaluator(tokenizer="characters")
    observations = [evaluator.measure(Case(id="c", expected=e, prediction=p)) for e, p in ((one, two), (two, two))]
    with np.errstate(invalid="ignore"):
        pooled = evaluator.summarize(Totals.add_up(observations).sums())
    for name in DEFAULT:
        values = [each.counts[name] for each in observations if name not in each.undefined]
        assert pooled[name][0] == pytest.approx(sum(values) / len(values), nan_ok=True) if values else True


@settings(deadline=None)
@given(
    st.text(st.sampled_from("abcing EDS's.,!\"()-7é\n"), max_size=40),
    st.text(st.sampled_from("abcing EDS's.,!\"()-7é\n"), max_size=40),
)
def test_scores_equal_the_reference_libraries_to_the_last_bit(expected: str, prediction: str) -> None:
    observation = measure(expected, prediction, tokenizer="words")
    if not expected.strip() or not prediction.strip():
        return
    rouge = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True).score(expected, prediction)
    for name, score in rouge.items():
        assert name in observation.undefined or observation.counts[name] == score.fmeasure
    words = [word_tokenize(text.lower(), preserve_line=True) for text in (expected, prediction)]
    for name, weights in {"bleu1": (1, 0, 0, 0), "bleu2": (0.5, 0.5, 0, 0), "bleu4": (0.25,) * 4}.items():
        smoothing = SmoothingFunction().method1
        assert observation.counts[name] == sentence_bleu(
            [words[0]], words[1], weights=weights, smoothing_function=smoothing
        )


@pytest.mark.parametrize(
    "answer",
    [
        "It takes 30 days [1].",
        "It takes [2, 3] 30 days.",
        "It takes 30 days\uff3b1\uff3d.",
        "It takes 30 days \u30104\u2020source\u3011.",
        "[^7] It takes 30 days. [1-3]",
    ],
)
def test_marks_of_citations_can_be_ignored(answer: str) -> None:
    plain, without = TextEvaluator(("f1", "exact_match")), TextEvaluator(("f1", "exact_match"), ignore=("citations",))
    case = Case("a", expected="It takes 30 days.", prediction=answer)
    assert without.scores(without.measure(case))["f1"] == 1
    assert (plain.scores(plain.measure(case))["f1"] or 0) < 1
    assert without.explain(case, without.measure(case)) == []
    assert [each.signature for each in plain.describe()] != [each.signature for each in without.describe()]
    cited = Case("a", expected="It takes 30 days. [9]", prediction="It takes 30 days.")
    assert without.scores(without.measure(cited))["f1"] == 1


@pytest.mark.parametrize("text", ["a[0]", "[x]", "[1234]", "array[i]", "[1", " " * 200_000 + "x", "[1 " * 100_000])
def test_what_is_no_mark_stays(text: str) -> None:
    without = TextEvaluator(("exact_match",), ignore=("citations",))
    kept = text == "a[0]"
    case = Case("a", expected="a" if kept else text, prediction=text)
    assert without.scores(without.measure(case))["exact_match"] == 1


def test_effective_order_is_that_of_sacrebleu_for_sentences() -> None:
    names = ("bleu1", "bleu2", "bleu4")

    def scores(answer: str, reference: str, *, effective_order: bool = True) -> list[float]:
        evaluator = TextEvaluator(metrics=names, effective_order=effective_order)
        counts = evaluator.measure(Case("a", expected=reference, prediction=answer)).counts
        return [counts[name] for name in names]

    for text in ("Paris", "a b", "a b c d"):
        assert scores(text, text) == pytest.approx([1, 1, 1])
    assert scores("a x", "a b") == pytest.approx([0.5, 0.05**0.5, 0.05**0.5])
    long = ("the cat sat on the mat", "the cat sat on a mat")
    assert scores(*long) == scores(*long, effective_order=False)
    assert "order:effective" in TextEvaluator(metrics=names, effective_order=True).describe()[2].signature
