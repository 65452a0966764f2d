"""A service as a target, over real HTTP: good, slow, failing, malformed, partial and dropped answers."""

import asyncio
import re
import threading
from typing import Any

import pytest
from servers import BATCH, PATIENCE, SearchAnswer, always, ask, echo, serving

from pytest_llmeval.services._retrying import LONGEST_DELAY
from pytest_llmeval.targets._network import HttpTarget
from pytest_llmeval.targets._spec import HttpSpec

NUMBERED = {"queries": {"$each": {"id": {"$id": True}, "text": {"$input": True}}}}


def test_a_batch_is_one_request_and_its_results_are_the_predictions_in_order() -> None:
    with serving() as server:
        assert ask(server, ["a", "b"], ["東"], ["\ud800"]) == [["A", "B"], ["東"], ["\ud800"]]
        assert server.requests[0].json == {"queries": ["a", "b"], "top_k": 3}
        assert {(each.method, each.path) for each in server.requests} == {("POST", "/search?key=hidden")}
        assert server.requests[0].headers["content-type"] == "application/json"
        assert server.requests[0].headers["user-agent"].startswith("pytest-llmeval/")


@pytest.mark.parametrize(
    ("request_", "response", "body", "sent", "expected"),
    [
        ({"q": {"$input": True}}, None, "x", {"q": "in"}, "x"),
        ({"q": {"$input": True}}, "a.0.b", {"a": [{"b": [1]}]}, {"q": "in"}, [1]),
        ([{"$input": True}, 1, None], None, {"k": 0}, ["in", 1, None], {"k": 0}),
        ({"$input": True}, "0", ["x"], "in", "x"),
        (BATCH, None, ["x"], {"queries": ["in"], "top_k": 3}, "x"),
        (BATCH, "a.b", {"a": {"b": [False]}}, {"queries": ["in"], "top_k": 3}, False),
        (BATCH, "a.b", {"a.b": [0]}, {"queries": ["in"], "top_k": 3}, 0),
        (BATCH, {"prediction": "hits"}, [{"hits": []}], {"queries": ["in"], "top_k": 3}, []),
        (NUMBERED, {"items": "r", "prediction": "p.q", "id": "i"}, {"r": [{"i": 0, "p": {"q": "x"}}]}, None, "x"),
        (NUMBERED, {"items": "r", "id": "i"}, {"r": [{"i": "0"}]}, None, {"i": "0"}),
    ],
)
def test_request_and_response_are_described_by_placeholders_and_paths(
    request_: Any, response: Any, body: Any, sent: Any, expected: Any
) -> None:
    with serving(always(SearchAnswer(body))) as server:
        assert ask(server, ["in"], request=request_, response=response) == [[expected]]
        assert sent is None or server.requests[0].json == sent


def test_an_input_is_data_even_where_it_looks_like_a_placeholder() -> None:
    value = {"$input": "x", "$each": [{"$id": True}]}
    with serving(always(SearchAnswer({"results": ["x"]}))) as server:
        ask(server, [value])
        assert server.requests[0].json["queries"] == [value]


def test_an_input_without_a_part_that_the_request_names_costs_its_case_only() -> None:
    template = {"queries": {"$each": {"$input": "fact"}}}
    with serving() as server:
        [answers] = ask(server, [{"fact": "a"}, {"fct": "b"}, "c", {"fact": "d"}], request=template)
        assert answers == [
            "A",
            "found an object with 'fct' as input, expected one with 'fact', which the request uses",
            "found text as input, expected one with 'fact', which the request uses",
            "D",
        ]
        assert server.requests[0].json == {"queries": ["a", "d"]}
        assert ask(server, [{}], request=template)[0][0].startswith("found an empty object")
        assert len(server.requests) == 1


def test_get_sends_the_request_in_the_query_string() -> None:
    template = {"q": {"$input": True}, "k": 3, "all": True, "none": None, "field": ["a", "b"]}
    with serving(always(SearchAnswer({"results": "x"}))) as server:
        assert ask(server, ["a b&c"], request=template, method="GET") == [["x"]]
        assert server.requests[0].path == "/search?key=hidden&q=a+b%26c&k=3&all=true&none=&field=a&field=b"
        assert server.requests[0].body == b""
        [[reason]] = ask(server, [{"a": 1}], request=template, method="GET")
        assert reason == (
            "found an object with 'a' for the parameter 'q' of a GET request, expected text, a number or a list of them"
        )


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_a_failure_that_may_pass_is_tried_again(status: int) -> None:
    def behave(request: Any, number: int) -> SearchAnswer:
        return SearchAnswer("busy", status) if number < 2 else echo(request, number)

    waits: list[float] = []
    with serving(behave) as server:
        assert ask(server, ["a"], waits=waits) == [["A"]]
        assert len(server.requests) == 3
    assert len(waits) == 2
    assert 0.5 <= waits[0] <= waits[1] <= 3


@pytest.mark.parametrize("status", [204, 301, 400, 401, 403, 404, 413, 422])
def test_a_failure_that_will_not_pass_is_told_at_once(status: int) -> None:
    with serving(always(SearchAnswer(b"" if status == 204 else b"no such index", status))) as server:
        [answers] = ask(server, ["a", "b"])
        assert len(server.requests) == 1
    assert answers[0] == answers[1]
    what = f"answered {status} " if status != 204 else "found invalid JSON ("
    assert answers[0].startswith((f"POST URL {what}", f"POST URL: {what}"))
    assert status == 204 or answers[0].endswith(": 'no such index'")


def test_a_service_that_keeps_failing_costs_the_cases_of_its_batch_only() -> None:
    def behave(request: Any, number: int) -> SearchAnswer:
        return SearchAnswer({"error": "boom"}, 500) if "b" in request.json["queries"] else echo(request, number)

    with serving(behave) as server:
        first, second = ask(server, ["a", "b"], ["c"])
    assert first == ['POST URL answered 500 Internal Server Error: \'{"error": "boom"}\' (3 attempts)'] * 2
    assert second == ["C"]


def test_retry_after_is_what_is_waited() -> None:
    def behave(request: Any, number: int) -> SearchAnswer:
        return (
            SearchAnswer("slow down", 429, {"Retry-After": ["0", "7", "99999"][number]})
            if number < 3
            else echo(request, 0)
        )

    waits: list[float] = []
    with serving(behave) as server:
        assert ask(server, ["a"], retries=3, waits=waits) == [["A"]]
    asked = [0, 7, LONGEST_DELAY]
    assert all(floor <= wait <= floor * 1.1 + 0.05 for floor, wait in zip(asked, waits, strict=True))


def test_a_slow_service_is_given_up_after_its_time() -> None:
    with serving(lambda *_: SearchAnswer({"results": ["late"]}, wait=server.released)) as server:
        assert ask(server, ["a"], timeout=0.1, retries=1) == [["POST URL took longer than 0.1 s (2 attempts)"]]


def test_a_request_that_takes_too_long_is_made_again() -> None:
    def behave(request: Any, number: int) -> SearchAnswer:
        return SearchAnswer({"results": ["late"]}, wait=server.released) if number == 0 else echo(request, number)

    with serving(behave) as server:
        assert ask(server, ["a"], timeout=0.5, retries=10) == [["A"]]


@pytest.mark.parametrize("fault", [SearchAnswer(drop=True), SearchAnswer({"results": ["A"]}, cut=True)])
def test_a_dropped_connection_is_tried_again_and_then_told(fault: SearchAnswer) -> None:
    with serving(lambda request, number: fault if number == 0 else echo(request, number)) as server:
        assert ask(server, ["a"]) == [["A"]]
    with serving(always(fault)) as server:
        [[reason]] = ask(server, ["a"], retries=1)
        assert len(server.requests) == 2
    assert reason.startswith(("POST URL failed: ServerDisconnectedError: ", "POST URL failed: ClientPayloadError: "))
    assert reason.endswith(" (2 attempts)")


def test_a_service_that_nobody_started_is_waited_for_once() -> None:
    with serving() as server:
        url = server.url
    waits: list[float] = []
    first, second = ask(url, ["a"], ["b"], waits=waits)
    assert first == ["POST URL failed: no connection (Connection refused) (3 attempts)"]
    assert second == ["POST URL failed: no connection (Connection refused)"]
    assert len(waits) == 2


def test_retries_can_be_turned_off() -> None:
    with serving(always(SearchAnswer("", 503))) as server:
        assert ask(server, ["a"], retries=0) == [["POST URL answered 503 Service Unavailable: '\"\"'"]]
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "found invalid JSON (Expecting value: line 1 column 1 (char 0)): '<html>'"),
        (b'{"results": [NaN]}', "found invalid JSON (NaN is not a JSON number): '{\"results\": [NaN]}'"),
        (b'{"results": [-1e999]}', "found invalid JSON (-1e999 is not a JSON number): '{\"results\": [-1e999]}'"),
        (b'{"results": [1, 2], "results": [3, 4]}', "found invalid JSON (the key 'results' occurs twice): "),
        (b"\xff\xfe\xff", "found invalid JSON ('utf-16-le' codec can't decode byte "),
        (b"[" * 100_000, "found more than 100 levels of nesting, expected fewer: '[[["),
        (b'{"results": [' + b"[" * 99 + b"]" * 99 + b"]}", "found more than 100 levels of nesting, expected fewer: '{"),
        ({"error": "no index"}, "found nothing at 'results', expected a list of results: '{\"error\": \"no index\"}'"),
        ({"results": None}, "found null at 'results', expected a list of results: "),
        ({"results": {"a": 1}}, "found an object with 'a' at 'results', expected a list of results: "),
        ([1], "found nothing at 'results', expected a list of results: '[1]'"),
        ("results", "found nothing at 'results', expected a list of results: "),
    ],
)
def test_a_malformed_reply_names_the_path_and_what_was_found(body: Any, reason: str) -> None:
    with serving(always(SearchAnswer(body))) as server:
        [answers] = ask(server, ["a", "b"])
        assert len(server.requests) == 1
    assert answers[0].startswith(f"POST URL: {reason}")
    assert answers[1] == answers[0]


def test_a_missing_prediction_costs_its_case_only() -> None:
    results = [{"hits": ["x"]}, None, {"hits": None}, {"error": "too long"}, 7]
    with serving(always(SearchAnswer({"results": results}))) as server:
        [answers] = ask(server, ["a", "b", "c", "d", "e"], response={"items": "results", "prediction": "hits"})
    assert answers[0] == ["x"]
    assert [re.split(r", |: '", answer.removeprefix("POST URL: "))[0] for answer in answers[1:]] == [
        "'hits' of results[1] is missing",
        "found null at 'hits' of results[2]",
        "'hits' of results[3] is missing",
        "'hits' of results[4] is missing",
    ]
    assert answers[3].endswith('is missing: \'{"error": "too long"}\'')
    with serving(always(SearchAnswer(["x", None]))) as server:
        assert ask(server, ["a", "b"], response=None) == [["x", "POST URL: found null at [1], expected a prediction"]]


def test_results_are_told_apart_by_id() -> None:
    results = [{"id": 3, "p": "d"}, {"id": "0", "p": "a"}, {"id": 2, "p": "c"}, {"id": 2, "p": "C"}, {"id": 9}, {}, 5]
    with serving(always(SearchAnswer(results))) as server:
        [answers] = ask(server, ["a", "b", "c", "d"], request=NUMBERED, response={"prediction": "p", "id": "id"})
        assert server.requests[0].json["queries"][3] == {"id": 3, "text": "d"}
    assert answers == [
        "a",
        "POST URL: no result has 1 as 'id', but results with the ids '9'",
        "POST URL: found 2 results whose 'id' is 2, expected one",
        "d",
    ]


@pytest.mark.parametrize("surplus", [[], ["x", "x"]])
def test_a_list_of_the_wrong_length_is_asked_for_one_by_one_and_never_guessed_at(surplus: list[str]) -> None:
    def behave(request: Any, number: int) -> SearchAnswer:
        known = [each.upper() for each in request.json["queries"] if each != "b"]
        return SearchAnswer({"results": known + (surplus if number == 0 else [])})

    with serving(behave) as server:
        [answers] = ask(server, ["a", "b", "c"])
        assert sorted(each.json["queries"] for each in server.requests[1:]) == [["a"], ["b"], ["c"]]
    reason = "POST URL: found 0 results at 'results', expected 1: '{\"results\": []}'"
    assert answers == ["A", reason, "C"]


def test_no_more_requests_are_under_way_than_allowed() -> None:
    enough = threading.Barrier(2, timeout=PATIENCE)

    def behave(request: Any, number: int) -> SearchAnswer:
        enough.wait()
        return echo(request, number)

    async def run(url: str) -> list[list[Any]]:
        target = HttpTarget(HttpSpec(url, BATCH, response="results", concurrency=2))
        answers = await asyncio.gather(*(target.answer([word]) for word in "abcdef"))
        await target.aclose()
        return answers

    with serving(behave) as server:
        assert asyncio.run(run(server.url)) == [["A"], ["B"], ["C"], ["D"], ["E"], ["F"]]
        assert server.most == 2


def test_a_reply_without_end_is_not_read_to_its_end() -> None:
    with serving(always(SearchAnswer(b" " * 5000))) as server:
        assert ask(server, ["a"], largest_reply=1000) == [["POST URL returned more than 1000 bytes, expected fewer"]]
