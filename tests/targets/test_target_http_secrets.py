"""Addresses, headers and secrets of a service as a target: what is sent, and what no reason shows."""

from pathlib import Path
from typing import Any

import pytest
from servers import SearchAnswer, always, ask, serving

TOKEN = "s3cret-token-of-the-service"


def test_a_redirect_is_not_followed_and_tells_where_it_leads() -> None:
    with serving(always(SearchAnswer(b"", 307, {"Location": "/search/?key=hidden#hidden"}))) as server:
        assert ask(server, ["a"]) == [
            ["POST URL answered 307 Temporary Redirect: ''; redirects are not followed: this one leads to '/search/'"]
        ]
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://me:hunter2@other.example/x?key=1", "https://***@other.example/x"),
        ("//me:hunter2@other.example/x#hunter2", "//***@other.example/x"),
        ("https://me:hun/ter2@other.example/", "https://***@other.example/"),
        ("https:me:hunter2@other.example/", "***@other.example/"),
        ("me:hunter//2@other.example/", "***@other.example/"),
        ("/search/", "/search/"),
    ],
)
def test_the_password_of_a_redirect_is_in_no_reason(location: str, shown: str) -> None:
    with serving(always(SearchAnswer(b"", 307, {"Location": location}))) as server:
        [[answer]] = ask(server, ["a"])
    assert answer.endswith(f"this one leads to '{shown}'")


def test_a_reason_phrase_is_shown_without_escape_codes_and_secrets() -> None:
    phrase = "Not \x1b[31m \xc2\x9b31m for hush-hush-hush \xad"  # each character is sent as a byte
    with serving(always(SearchAnswer(b"\xe2\x80\x8b", 400, reason=phrase))) as server:
        [[answer]] = ask(server, ["a"], environment={"MY_TOKEN": "hush-hush-hush"})
    assert answer == "POST URL answered 400 Not \\x1b[31m \\x9b31m for *** \ufffd: '\\u200b'"


def test_headers_come_from_the_file_and_from_the_environment() -> None:
    with serving() as server:
        given = {"X-Client": "eval", "Content-Type": "application/vnd.search+json"}
        secret = {"Authorization": "SEARCH_TOKEN"}
        ask(server, ["a"], headers=given, headers_from_env=secret, environment={"SEARCH_TOKEN": f"Bearer {TOKEN}"})
        headers = server.requests[0].headers
    assert headers["x-client"] == "eval"
    assert headers["content-type"] == "application/vnd.search+json"
    assert headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("given", [{}, {"Authorization": "SEARCH_TOKEN"}])
def test_passwords_of_netrc_go_to_no_service(
    given: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login me password mine\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving() as server:
        assert ask(server, ["a"], headers_from_env=given, environment={"SEARCH_TOKEN": TOKEN}) == [["A"]]
        assert server.requests[0].headers.get("authorization") == (TOKEN if given else None)


def test_an_address_that_cannot_be_asked_is_told_without_its_query() -> None:
    [[reason]] = ask(f"http://{'a' * 70}.example/?key=hidden", ["a"])
    assert reason.endswith("failed: the address, the proxy or the headers are not valid")
    assert "hidden" not in reason


def test_a_reply_that_is_no_http_is_told_without_the_query() -> None:
    with serving(always(SearchAnswer({}, headers={"X": "x" * 100_000}))) as server:
        [[reason]] = ask(server, ["a"], retries=0)
    assert reason.startswith("POST URL failed: ")
    assert "hidden" not in reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "environment variable SEARCH_TOKEN is not set, expected the header 'Authorization' for POST URL"),
        ("", "environment variable SEARCH_TOKEN is not set, expected the header 'Authorization' for POST URL"),
        (
            f"{TOKEN}\n",
            "environment variable SEARCH_TOKEN is not a valid header value, expected one line of printable ASCII",
        ),
    ],
)
def test_a_missing_or_unusable_secret_is_named_by_its_variable(value: str | None, reason: str) -> None:
    environment = {} if value is None else {"SEARCH_TOKEN": value}
    with serving() as server:
        asked = ask(server, ["a", "b"], headers_from_env={"Authorization": "SEARCH_TOKEN"}, environment=environment)
        assert asked == [[reason, reason]]
        assert server.requests == []


@pytest.mark.parametrize("secret", [f"Bearer {TOKEN}", TOKEN, f'quo"ted\\{TOKEN}', f"a/b+{TOKEN}="])
@pytest.mark.parametrize("padding", [0, 272])
def test_a_secret_is_in_no_reason_even_where_the_service_repeats_it(secret: str, padding: int) -> None:
    def behave(request: Any, number: int) -> SearchAnswer:
        echoed = {"seen": "." * padding + request.headers["authorization"]}
        replies = [
            SearchAnswer(echoed, 401),
            SearchAnswer(echoed),
            SearchAnswer({"results": [echoed, echoed]}),
            SearchAnswer(echoed, 500),
        ]
        return replies[min(number, 3)]

    with serving(behave) as server:
        found = ask(
            server,
            *[["a", "b"]] * 4,
            response={"items": "results", "prediction": "hits"},
            headers_from_env={"Authorization": "SEARCH_TOKEN"},
            environment={"SEARCH_TOKEN": secret},
        )
    reasons = [reason for reasons in found for reason in reasons]
    assert len(reasons) == 8
    for reason in reasons:
        assert "***" in reason
        assert TOKEN[:6] not in reason
        assert "hidden" not in reason


def test_the_address_can_come_from_the_environment() -> None:
    with serving() as server:
        options: dict[str, Any] = {"url_from_env": "SEARCH_URL"}
        elsewhere = {"SEARCH_URL": f"{server.url}/staging"}
        assert ask("http://127.0.0.1:1/none", ["a"], environment=elsewhere, **options) == [["A"]]
        assert server.requests[0].path == "/staging"
        assert ask(server, ["a"], environment={}, **options) == [["A"]]
        [[reason]] = ask(server, ["a"], environment={"SEARCH_URL": "http://me:pw@host/"}, **options)
    assert reason == (
        "environment variable SEARCH_URL: found a user name or password in the address, expected http://HOST/PATH or "
        "https://HOST/PATH, and the secret under headers_from_env"
    )
