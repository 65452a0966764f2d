"""Evaluator ``semantic`` with a model of embeddings that is asked over HTTP."""

import sys
from typing import Any

import pytest
from servers import LlmServer, embedded, status

from pytest_llmeval import Case, EvaluatorError, get_evaluator, score

VECTORS = {"Paris": (1, 0), "Lutetia": (0.6, 0.8), "Rome": (0, 1), "in Paris": (0.8, 0.6)}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "local-key-0123456789")


def build(server: LlmServer, **options: Any) -> Any:
    return get_evaluator("semantic", model="openai:tiny", base_url=server.base_url, **options)


def test_the_most_similar_expected_text_counts_and_blank_texts_ask_nothing() -> None:
    cases = [
        Case("best", expected=["Rome", "Paris", " "], prediction="in Paris"),
        Case("same", expected="Paris", prediction="Paris"),
        Case("blank", expected="Paris", prediction=" "),
        Case("no text", expected="Paris", prediction=["Paris"]),
        Case("no gold", prediction="Paris"),
    ]
    with LlmServer(embedded(VECTORS.__getitem__)) as server:
        found = score(build(server), cases)
        assert len(server.calls) == 1
    scores = {each.id: each.metrics["embedding_similarity"] for each in found.cases}
    assert scores == {"best": 0.8, "same": 1, "blank": 0, "no text": 0, "no gold": None}
    metric = found.metrics["embedding_similarity"]
    assert metric.value == pytest.approx(0.45)
    assert (metric.scored, metric.undefined) == (4, 1)
    assert metric.signature == "model:openai:tiny|cosine|embedding_similarity@1|v:1"
    assert found.cases[3].reason == "found a list, expected text"
    assert "torch" not in sys.modules


def test_a_model_that_cannot_be_asked_is_an_error_and_no_score() -> None:
    with LlmServer(status(404)) as server:
        found = score(build(server), [Case("a", expected="Paris", prediction="Rome")])
    metric = found.metrics["embedding_similarity"]
    assert (metric.value, metric.errored) == (None, 1)
    assert "status 404" in str(found.cases[0].reason)


def test_expected_texts_that_are_none_are_a_fault() -> None:
    with LlmServer() as server:
        evaluator = build(server)
    assert list(evaluator.check(Case("a", expected={"a": 1}))) == ["found an object, expected text or a list of texts"]
    assert list(evaluator.check(Case("a"))) == []


def test_a_failing_case_shows_missing_words() -> None:
    with LlmServer() as server:
        evaluator = build(server)
    case = Case("a", expected="Paris in spring", prediction="Paris")
    assert list(evaluator.explain(case, evaluator.measure_judged(case, []))) != []


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"model": "anthropic:x"}, "model: found 'anthropic:x', expected openai:NAME, also for compatible servers"),
        ({"model": "text-embedding-3-small"}, "expected PROVIDER:NAME (did you mean 'openai:text-embedding-3-small'?)"),
        ({"model": "openai:x", "metrics": ["bert_f1"]}, "metrics: found bert_f1 with model, expected embedding_simil"),
        ({"model": "openai:x", "device": "cpu"}, "found device with model, expected it without: it is of local models"),
        ({"base_url": "http://localhost:1/v1"}, "found base_url without model, expected it with a model of embeddings"),
        ({"model": "openai:x", "base_url": "localhost"}, "base_url: found"),
        ({"metrics": ["embedding_similarity"]}, "unknown metric embedding_similarity, did you mean"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        get_evaluator("semantic", **options)
    assert fault in str(caught.value)
