"""Models of embeddings over HTTP: what is sent, batches, tokens, and answers that cannot be used."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from scripted_judges import LOCAL_KEY, Recorder
from servers import Answer, Call, LlmServer, Sent, data, embedded, status

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import JudgeReply, JudgeRequest, JudgeSpec, Patience, Question
from pytest_llmeval.judges.questions._modes import render
from pytest_llmeval.tasks.similarity._embeddings import SIMILARITY, EmbeddingJudge, read_similarity

VECTORS = {"north": (0, 2), "east": (3, 0), "north-east": (1, 1), "south": (0, -1)}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", LOCAL_KEY)


def request(one: str, other: str) -> JudgeRequest:
    return JudgeRequest(render(Question(SIMILARITY, {"answer": one, "reference": other})), "tiny")


def ask(
    server: LlmServer, *pairs: tuple[str, str], between: Recorder | None = None, **spec: Any
) -> list[JudgeReply | BaseException]:
    recorder = between or Recorder()

    async def run() -> list[JudgeReply | BaseException]:
        made = JudgeSpec("openai:tiny", **{"base_url": server.base_url, "retries": 2} | spec)
        client = EmbeddingJudge.connect(made, Patience("openai", made.retries, recorder.limits.append, recorder.sleep))
        try:
            asked = (client.complete(request(*pair)) for pair in pairs)
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await client.aclose()

    return asyncio.run(run())


def cosines(replies: Sequence[JudgeReply | BaseException]) -> list[float]:
    return [read_similarity(each.text).score for each in replies if isinstance(each, JudgeReply)]


def test_texts_of_many_questions_are_embedded_in_one_call_each_once() -> None:
    pairs = [("north", "east"), ("north", "north-east"), ("north", "south"), ("east", "south"), ("north", "north")]
    with LlmServer(embedded(VECTORS.__getitem__)) as server:
        replies = ask(server, *pairs)
        (call,) = server.calls
    assert call.path == "/v1/embeddings"
    assert call.headers["authorization"] == f"Bearer {LOCAL_KEY}"
    assert call.body == {"model": "tiny", "input": ["north", "east", "north-east", "south"]}
    assert cosines(replies) == [0, 0.707107, -1, 0, 1]


def test_the_tokens_of_a_text_count_where_it_was_first_needed() -> None:
    with LlmServer(embedded(lambda _: (1, 0), tokens=5)) as server:
        replies = ask(server, ("aa", "bb"), ("aa", "cccc"), ("bb", "aa"))
    usage = [each.usage for each in replies if isinstance(each, JudgeReply)]
    assert [each.input_tokens for each in usage] == [7, 8, 0]  # 15 tokens, shared by length
    assert {each.output_tokens for each in usage} == {0}


def test_tokens_that_the_server_does_not_report_are_unknown() -> None:
    with LlmServer(embedded(lambda _: (1, 0), tokens=None)) as server:
        (reply,) = ask(server, ("a", "b"))
    assert isinstance(reply, JudgeReply)
    assert reply.usage.input_tokens is None


def test_hostile_texts_reach_the_model_as_they_are() -> None:
    text = '</data>\n"}{\u2028 {{ x }} \u200b'
    with LlmServer(embedded(lambda _: (1, 0))) as server:
        ask(server, (text, "b"))
    assert server.calls[0].body["input"] == [text, "b"]


def test_a_call_that_fails_for_a_passing_reason_is_tried_again() -> None:
    between = Recorder()
    with LlmServer(status(429, retry_after="7"), embedded(VECTORS.__getitem__)) as server:
        assert cosines(ask(server, ("north", "north"), between=between)) == [1]
    assert between.limits == [7.0]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (status(401, "no such key"), "status 401: no such key; check the key in OPENAI_API_KEY"),
        (data({"data": []}), "found 0 embeddings of 2 texts, expected one of each"),
        (data({"data": [{"index": 0, "embedding": [1, 0]}]}), "found 1 embeddings of 2 texts"),
        (data({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}), "a body without a reply"),
        (data({"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": "AAAA"}]}), "a body without a reply"),
        (data({"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": []}]}), "a body without a reply"),
        (data({"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 0]}]}), "of 1 and 2 numbers"),
        (
            data({"data": [{"index": 0, "embedding": [1e999]}, {"index": 1, "embedding": [1]}]}),
            "a body without a reply",
        ),
        (data({"choices": []}), "a body without a reply"),
    ],
)
def test_an_answer_without_the_vectors_is_an_error_of_every_question(answer: Answer, fault: str) -> None:
    with LlmServer(answer) as server:
        (error, other) = ask(server, ("north", "east"), ("east", "north"), retries=0)
    assert isinstance(error, JudgeError)
    assert isinstance(other, JudgeError)
    assert fault in str(error)
    assert LOCAL_KEY not in str(error)


@pytest.mark.parametrize("vector", [(0, 0), (1.7e308, 1.7e308)])
def test_a_vector_without_a_direction_is_an_error_and_not_a_similarity_of_0(vector: tuple[float, float]) -> None:
    with LlmServer(embedded({"north": (0, 2), "nowhere": vector}.__getitem__)) as server:
        error, found = ask(server, ("north", "nowhere"), ("north", "north"))
    assert isinstance(error, JudgeError)
    assert "expected vectors that have a direction" in str(error)
    assert cosines([found]) == [1]


def test_a_text_that_the_server_rejects_fails_alone() -> None:
    def answer(call: Call) -> Sent:
        texts = call.body["input"]
        return (status(400, "too long") if "x" * 99 in texts else embedded(lambda _: (1, 0)))(call)

    with LlmServer(answer) as server:
        *found, error = ask(server, *((f"a{number}", f"b{number}") for number in range(9)), ("a0", "x" * 99))
    assert cosines(found) == [1] * 9
    assert isinstance(error, JudgeError)
    assert "status 400: too long" in str(error)
    assert len(server.calls) < 12


def test_a_text_whose_call_failed_is_asked_for_again() -> None:
    async def run(server: LlmServer) -> list[str]:
        client = EmbeddingJudge.connect(JudgeSpec("openai:tiny", base_url=server.base_url), Patience("openai", 0))
        told = []
        try:
            for _ in range(2):
                try:
                    told.append((await client.complete(request("north", "east"))).text)
                except JudgeError as error:
                    told.append(str(error))
        finally:
            await client.aclose()
        return told

    with LlmServer(status(500), embedded(VECTORS.__getitem__)) as server:
        first, second = asyncio.run(run(server))
    assert "status 500" in first
    assert json.loads(second) == {"similarity": 0.0}


def test_a_missing_key_is_an_error_without_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with LlmServer() as server:
        (error,) = ask(server, ("a", "b"), base_url=None)
    assert "the environment variable OPENAI_API_KEY is missing" in str(error)
    assert server.calls == []


@pytest.mark.parametrize("reply", ['{"similarity": 1.5}', '{"similarity": "1"}', "{}", "1", '{"similarity": NaN}'])
def test_a_stored_reply_that_is_no_similarity_is_an_error(reply: str) -> None:
    with pytest.raises(JudgeError):
        read_similarity(reply)
