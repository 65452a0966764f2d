"""What counts as a secret, and how it is kept out of text."""

import base64
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_llmeval.core import Fault
from pytest_llmeval.services import FaultSources, Redactor, Secrets
from pytest_llmeval.services._secrets import MASK, environment_secrets, spelt

SECRET = "p+ä/ssw0rd"
KEY = "local-key-0123456789-tail"


@pytest.mark.parametrize("name", ["Authorization", "X-API-Key", "api_key", "Proxy-Authorization", "x-auth-token"])
def test_a_name_is_secret_however_it_is_spelt(name: str) -> None:
    assert Secrets.is_name(name)


@pytest.mark.parametrize("name", ["max_tokens", "Accept", "X-Request-Id", "prompt_cache_key", "keyboard"])
def test_names_that_resemble_secrets_are_none(name: str) -> None:
    assert not Secrets.is_name(name)


def test_secrets_of_the_environment_are_known_by_their_names() -> None:
    environment = {"OPENAI_APIKEY": "abcdefgh", "db_passwd": " 12345678\n", "TOKEN": "short", "HOME": "/home/someone"}
    assert sorted(environment_secrets(environment)) == ["12345678", "abcdefgh"]


def test_secrets_of_this_process_are_those_that_its_environment_has_now(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(environment_secrets(os.environ))
    monkeypatch.setenv("LATE_TOKEN", "first-value")
    assert {*environment_secrets(os.environ)} == {*before, "first-value"}
    monkeypatch.setenv("LATE_TOKEN", "other-value")
    assert {*environment_secrets(os.environ)} == {*before, "other-value"}
    monkeypatch.delenv("LATE_TOKEN")
    monkeypatch.setenv("LATE_TOKËN", "an ordinary text")
    monkeypatch.setenv("SPÄT_PASSWORD", "third-value")
    assert {*environment_secrets(os.environ)} == {*before, "third-value"}


@pytest.mark.parametrize("written", ["a/b+ c", "a/b%2B%20c", "a%2Fb%2B%20c", 'a/b+\\"c'])
def test_a_secret_is_found_in_every_spelling(written: str) -> None:
    secrets = Secrets(spelt(["a/b+ c", 'a/b+"c', "no", ""]))
    assert secrets.without(f"said no to {written}.") == "said no to ***."


@pytest.mark.parametrize("secret", ["p+ä/ssw0rd", "0123456789abcdef", "é" * 7])
@pytest.mark.parametrize("before", ["", "u", "me"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_is_found_in_base64_wherever_it_begins(
    secret: str, before: str, encode: Callable[[bytes], bytes]
) -> None:
    whole = encode(f"{before}{secret}".encode()).decode()
    clean = Secrets(spelt([secret])).without(f"Basic {whole}.")
    assert MASK in clean
    assert len(clean.replace(MASK, "")) <= len("Basic .") + 6
    assert MASK not in Secrets(spelt([secret])).without(encode(b"of something else entirely").decode())


@pytest.mark.parametrize("written", ["P+Ä/SSW0RD", SECRET.encode().hex(), SECRET.encode().hex().upper()])
def test_a_secret_is_found_in_digits_and_in_other_letters(written: str) -> None:
    secrets = Secrets(spelt([SECRET]))
    assert secrets.without(f"({written})") == "(***)"
    assert secrets.without(f"({written[:9]}...") == "(***..."


def test_a_text_that_only_begins_as_a_secret_is_left() -> None:
    secrets = Secrets(spelt(["0123456789abcdef"]))
    assert secrets.without("0123456789") == "0123456789"
    assert secrets.without("012345678901234567890123456789abcdef") == "01234567890123456789***"
    assert secrets.without("0123456789... (5 more characters)") == "***... (5 more characters)"


def test_letters_that_change_their_number_in_lower_case_hide_no_secret() -> None:
    assert Secrets(spelt(["0123456789abcdef"])).without("İ 0123456789abcdef") == "İ ***"


def test_of_two_secrets_the_longer_one_is_found_first() -> None:
    assert Secrets(spelt(["abcdefgh", "abcdefgh-more"])).without("abcdefgh-more") == "***"


def test_words_of_a_secret_are_secret_unless_they_are_short() -> None:
    assert Secrets(spelt(["Bearer 0123456789"])).without("Bearer 0123456789") == "***"
    assert Secrets(spelt(["Bearer 0123456789"])).without("the Bearer of 0123456789") == "the Bearer of ***"


@pytest.mark.parametrize(("name", "good"), [("SEARCH_TOKEN", True), ("_x1", True), ("1X", False), ("Bearer pw", False)])
def test_a_variable_that_cannot_be_one_is_told_without_it(name: str, good: bool) -> None:
    fault = "found an invalid name of an environment variable, expected one such as EXAMPLE"
    assert Secrets.variable_fault(name, "EXAMPLE") == (None if good else fault)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("sk-proj-abcdefgh12345678 is wrong", "*** is wrong"),
        ("Authorization: Bearer abcdefgh12345", "Authorization: ***"),
        ("key ending in ...wxyz", "key ending in ***"),
        ("AIzaSyA1234567890abcdefghijk", "***"),
        ("the skill is task-oriented", "the skill is task-oriented"),
        ("InvalidURL: http://me:hunter2@bad proxy:1", "InvalidURL: http://***@bad proxy:1"),
        ("http://localhost/v1 said: write to me@home", "http://localhost/v1 said: write to me@home"),
        ("hush-hush-token", "***"),
    ],
)
def test_what_looks_like_a_key_is_redacted(text: str, redacted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "hush-hush-token")
    assert Redactor().redacted(text) == redacted


@pytest.mark.parametrize("part", [KEY, KEY[:8], KEY[:12], KEY[-8:], KEY[-12:]])
@pytest.mark.parametrize("secret", [KEY, f"Bearer {KEY}"])
def test_a_known_key_and_its_long_parts_are_redacted(part: str, secret: str) -> None:
    assert Redactor([secret]).redacted(f"not {part}! or {part}") == "not ***! or ***"


@pytest.mark.parametrize("part", [KEY[:7], KEY[-7:]])
def test_short_parts_of_a_known_key_tell_nothing(part: str) -> None:
    assert Redactor([KEY]).redacted(f"not {part}!") == f"not {part}!"


def test_of_variables_only_whole_values_are_redacted() -> None:
    redactor = Redactor(environment={"SSH_KEY_PATH": "/home/me/keys"})
    assert redactor.redacted("/home/me/keys: /home/me/work") == "***: /home/me/work"


@pytest.mark.parametrize("padding", range(270, 300))
def test_text_is_redacted_before_it_is_cut(padding: int) -> None:
    redactor = Redactor([KEY])
    assert KEY[:4] not in redactor.line("x" * padding + KEY)
    assert KEY[:4] not in redactor.excerpt("x" * padding + KEY)
    assert KEY[-4:] not in redactor.excerpt(KEY + "x" * padding, end=True)


def test_a_redactor_shows_no_secret_of_its_own() -> None:
    redactor = Redactor([KEY])
    redactor.redacted("text")
    assert KEY not in repr(redactor)


ENVIRONMENT = {
    "SEARCH_API_KEY": 'k/9+ "q"',
    "DB_PASSWORD": "hunter2",
    "hf_token": "abc123def",
    "CLIENT_SECRETS": "s3cr3t",
    "LOCAL_API_KEY": "ollama",
    "OTHER_TOKEN": "short",
    "KEYBOARD_LAYOUT": "german-layout",
    "MAX_TOKENS": "131072",
    "TEAM": "blue42",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("login hunter2 failed", "login *** failed"),
        ("'hunter2'", "'***'"),
        ("hunter22 and ahunter2", "hunter22 and ahunter2"),
        ("xabc123defx", "x***x"),
        ("s3cr3t", "***"),
        ('{"key": "k/9+ \\"q\\""}', '{"key": "***"}'),
        (r'{"key": "k\/9+ \"q\""}', '{"key": "***"}'),
        (r'"{\"key\": \"k/9+ \\\"q\\\"\"}"', r'"{\"key\": \"***\"}"'),
        ("?key=k%2F9%2B%20%22q%22&x", "?key=***&x"),
        ("?key=k%2f9%2b%20%22q%22&x", "?key=***&x"),
        ("?key=k%2F9%2B+%22q%22&x", "?key=***&x"),
        ("ollama, short, german-layout, 131072, blue42", "ollama, short, german-layout, 131072, blue42"),
    ],
)
def test_values_of_secret_variables_are_found_however_they_are_written(text: str, shown: str) -> None:
    assert Secrets.of_variables(environment=ENVIRONMENT).without(text) == shown


def test_a_variable_that_a_suite_names_is_secret_whatever_its_name() -> None:
    assert Secrets.of_variables(["TEAM", "ABSENT"], ENVIRONMENT).without("blue42 hunter2") == "*** ***"


def test_foreign_text_is_presented_without_secrets_and_escape_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hush-hush")
    assert Secrets.of_variables().presentable("a\x1b[2J\nhush-hush\u200b") == "a\\x1b[2J\n***\\u200b"


def test_a_short_key_is_masked_in_a_reply_unless_it_is_a_word() -> None:
    assert Secrets.of_key('k"12345').without('{"said": "k\\"12345"}') == '{"said": "***"}'
    assert Secrets.of_key("ollama").without("yes, ollama") == "yes, ollama"


def sources(folder: Path, text: str, line: int = 1, column: int = 1, path: str = "") -> list[str]:
    (folder / "s.yaml").write_bytes(text.encode())
    return list(FaultSources(folder).below([Fault("s.yaml", line, column, path, "found it")]))[1:]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("model: sk-abcdefghijklmnop1234", ""),
        (f"model: {KEY}", ""),
        ("base_url: http://me:hunter@localhost/v1", "judge.base_url"),
        ("base_url: http://localhost/v1?sig=abc", ""),
        ("parameters: {X-Api-Key: hunter, n: 1}", "judge.parameters"),
        ("command: [app, --token, hunter]", "target.command"),
        ("- hunter", "secrets[0]"),
        ("{" + " " * 900 + "authorization: x" + " " * 900 + "hunter", ""),
    ],
)
def test_a_line_with_a_secret_or_the_name_of_one_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, path: str
) -> None:
    monkeypatch.setenv("LOCAL_KEY", KEY)
    assert sources(tmp_path, text, column=len(text), path=path) == []
    assert sources(tmp_path, f"model: m\n{text}\nn: 1\n", line=3) == ["    | n: 1", "    | ^"]


@pytest.mark.parametrize("before", ["password:", "password: >-", "- --password"])
def test_a_line_below_the_name_of_a_secret_is_not_shown(tmp_path: Path, before: str) -> None:
    assert sources(tmp_path, f"{before}\n  hunter\n", line=2) == []


def test_lines_with_faults_are_cut_and_escaped(tmp_path: Path) -> None:
    assert sources(tmp_path, "a: \x1b[31m\u202ex", column=9) == [
        "    | a: \\x1b[31m\\u202ex",
        "    | " + " " * 11 + "^",
    ]
    shown, caret = sources(tmp_path, "a\u2028b\r\n" + "x" * 5000 + "!" + "y" * 5000, line=2, column=5001)
    assert (len(shown), shown[caret.index("^")], shown[-3:]) == (109, "!", "...")
    assert sources(tmp_path, "a: 1\n", line=5) == []


def test_what_was_read_is_shown_and_not_read_again(tmp_path: Path) -> None:
    fault = Fault("gone.yaml", 2, 1, "", "found it")
    assert list(FaultSources(tmp_path, {"gone.yaml": "a: 1\rb: 2"}).below([fault]))[1:] == ["    | b: 2", "    | ^"]
