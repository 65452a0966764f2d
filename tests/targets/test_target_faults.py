"""What a suite file can say about a target, and the faults that it is told."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from project import load_text

from pytest_llmeval.core import SuiteError
from pytest_llmeval.targets import TargetSpec
from pytest_llmeval.targets._spec import HttpSpec

ONE = {"q": {"$input": True}}
EACH = {"q": {"$each": {"$input": True}}}


def load(folder: Path, target: Any) -> TargetSpec | None:
    return load_text(yaml.safe_dump({"evaluators": ["text"], "cases": [{"id": "a"}], "target": target}), folder).target


def http(**options: Any) -> dict[str, Any]:
    return {"http": {"url": "http://127.0.0.1:8000/search", "request": ONE, **options}}


def test_a_service_has_defaults(tmp_path: Path) -> None:
    spec = HttpSpec(
        "http://127.0.0.1:8000/search", ONE, None, "POST", 1, None, {}, {}, timeout=60, retries=2, concurrency=4
    )
    assert load(tmp_path, http()) == TargetSpec(http=spec)


def test_a_service_is_read_with_all_its_keys(tmp_path: Path) -> None:
    request = {"q": {"$each": {"id": {"$id": True}, "text": {"$input": "fact.text"}}}, "k": 20}
    options: dict[str, Any] = {
        "url": "https://search.example.org/v1/@me?x=1",
        "url_from_env": "SEARCH_URL",
        "method": "PUT",
        "request": request,
        "batch": 16,
        "response": {"items": "data.results", "prediction": "hits", "id": "id"},
        "headers": {"X-Client": "eval"},
        "headers_from_env": {"Authorization": "SEARCH_TOKEN"},
        "timeout": 2.5,
        "retries": 0,
        "concurrency": 1,
    }
    read = load(tmp_path, {"http": options})
    expected = HttpSpec(**options)
    assert read == TargetSpec(http=expected)
    assert read.kind == "http"


def test_a_command_is_read(tmp_path: Path) -> None:
    assert load(tmp_path, {"command": ["cat", "-u"], "timeout": 3}) == TargetSpec(command=("cat", "-u"), timeout=3)


SECRET = "found a user name or password in the address, expected http://HOST/PATH or https://HOST/PATH, and the secret"
VARIABLE = "found an invalid name of an environment variable, expected one such as SEARCH_TOKEN"
NO_INPUT = "target.http.request: {$input: ...} is missing"

FAULTS: list[tuple[Any, str]] = [
    ({}, "target: no target given: set exactly one of python, http, command"),
    ({"concurrency": 0}, "target.concurrency: found 0, expected at least 1"),
    ({"python": "a:b", "command": ["x"]}, "target: found python and command: set exactly one of"),
    ({**http(), "timeout": 3}, "target.timeout: found a timeout beside http, expected it inside http"),
    ({"command": []}, "target.command: the program is missing: write a list of it and its arguments"),
    ({"command": [" "]}, "target.command: the program is missing"),
    ({"command": "cat"}, "target.command: found the text 'cat', expected a list"),
    ({"command": ["cat", 1]}, "target.command[1]: found the number 1, expected text"),
    ({"command": ["cat"], "timeout": 0}, "target.timeout: found 0.0, expected seconds above 0 and at most a day"),
    ({"http": {"request": ONE}}, "target.http: url is missing"),
    ({"http": {"url": "http://h/"}}, "target.http: request is missing"),
    (http(ulr="x"), "target.http.ulr: unknown key ulr, did you mean url?"),
    (http(url="ftp://h/x?key=1"), "target.http.url: found 'ftp://h/x', expected http://HOST/PATH or https://HOST/PATH"),
    (http(url="127.0.0.1:8000"), "target.http.url: found '127.0.0.1:8000', expected http://HOST/PATH"),
    (http(url="http://"), "target.http.url: found 'http://', expected"),
    (http(url="http://h:port/"), "target.http.url: found 'http://h:port/', expected"),
    (http(url="http://h/a b"), "target.http.url: found 'http://h/a b', expected"),
    (http(url="http://me:pw@h/"), f"target.http.url: {SECRET}"),
    (http(url="me:pw@h/"), f"target.http.url: {SECRET}"),
    (
        http(url_from_env="http://h/"),
        "target.http.url_from_env: found an invalid name of an environment variable, expected one",
    ),
    (http(method="DELETE"), "target.http.method: found the text 'DELETE', expected one of 'GET', 'POST', 'PUT'"),
    (http(batch=0), "target.http.batch: found 0, expected a whole number from 1 to 10000"),
    (http(retries=11), "target.http.retries: found 11, expected a whole number from 0 to 10"),
    (http(concurrency=0), "target.http.concurrency: found 0, expected a whole number from 1 to 64"),
    (http(timeout=0), "target.http.timeout: found 0.0, expected seconds above 0 and at most a day"),
    (http(headers={"X Y": "z"}), "target.http.headers['X Y']: found 'X Y', expected the name of a header"),
    (http(headers={"X-Y": "a\nb"}), "found a value that is not allowed in a header, expected printable ASCII"),
    (
        http(headers={"authorization": "Bearer pw"}),
        "target.http.headers.authorization: found a secret in the file, expected this header under headers_from_env",
    ),
    (http(headers={"X-Auth-Token": "pw"}), "target.http.headers.X-Auth-Token: found a secret in the file, expected"),
    (
        http(headers={"X-Y": "z"}, headers_from_env={"x-y": "A"}),
        "target.http.headers_from_env.x-y: found the header 'x-y' twice, expected it once",
    ),
    (http(headers_from_env={"Authorization": "Bearer pw"}), f"target.http.headers_from_env.Authorization: {VARIABLE}"),
    (http(request={"q": 1}), NO_INPUT.replace("the case's input", "the input of the case")),
    (http(request="{input}"), NO_INPUT.replace("the case's input", "the input of the case")),
    (
        http(request={"q": {"$inptu": True}}),
        "unknown placeholder '$inptu', did you mean $input?",
    ),
    (http(request={"q": {"$input": True, "k": 1}}), "found '$input' beside other keys, expected it alone"),
    (http(request={"q": {"$input": "a..b"}}), "target.http.request.q['$input']: found 'a..b', expected true"),
    (http(request={"q": {"$input": False}}), "target.http.request.q['$input']: found False, expected true"),
    (
        http(request={"q": [ONE, {"$id": 3}]}),
        "target.http.request.q[1]['$id']: found a value other than true, expected {$id: true}",
    ),
    (
        http(request={"$each": EACH}),
        "target.http.request['$each'].q['$each']: found $each inside $each, expected only one of them",
    ),
    (
        http(batch=16),
        "found '$input' outside $each, expected it inside: a request has up to 16 inputs",
    ),
    (http(response="a..b"), "target.http.response: found 'a..b', expected a path such as 'results'"),
    (http(response=""), "target.http.response: found '', expected a path such as 'results'"),
    (http(request=EACH, response={"items": "."}), "target.http.response.items: found '.', expected a path"),
    (http(response={"items": "a"}), "target.http.response: found a mapping, expected a path"),
    (
        http(request=EACH, response={"id": "a"}),
        "target.http.response.id: found 'a', expected {$id: true} in the request",
    ),
    (
        http(request=EACH, response={"itmes": "a"}),
        "unknown key itmes, did you mean items?",
    ),
    (http(request=EACH, response=[]), "target.http.response: found a list of 0, expected text"),
    (http(method="GET", request=EACH, batch=2), "target.http.batch: found 2, expected 1: a GET request has one"),
    (
        http(method="GET", request=[ONE]),
        "target.http.request: parameter names are missing: GET sends a query string, {NAME: value}",
    ),
    (http(method="GET", request={"$input": True}), "target.http.request: parameter names are missing"),
]


@pytest.mark.parametrize(("target", "fault"), FAULTS, ids=range(len(FAULTS)))
def test_a_fault_is_told_with_its_place_and_without_secrets(tmp_path: Path, target: Any, fault: str) -> None:
    with pytest.raises(SuiteError) as caught:
        load(tmp_path, target)
    [found] = caught.value.faults
    assert fault in str(found)
    assert "pw" not in str(found)
    assert found.line > 1


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(SuiteError) as caught:
        load(tmp_path, http(url="x", batch=0, timeout=-1, request={}))
    assert len(caught.value.faults) == 4
