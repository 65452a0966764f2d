"""What counts as a secret, and how it is kept out of text."""

import pytest

from pytest_llmeval.services.secrets import environment_secrets, is_secret_name, spelt, variable_fault, without


@pytest.mark.parametrize("name", ["Authorization", "X-API-Key", "api_key", "Proxy-Authorization", "x-auth-token"])
def test_a_name_is_secret_however_it_is_spelt(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["max_tokens", "Accept", "X-Request-Id", "prompt_cache_key", "keyboard"])
def test_names_that_resemble_secrets_are_none(name: str) -> None:
    assert not is_secret_name(name)


def test_secrets_of_the_environment_are_known_by_their_names() -> None:
    environment = {"OPENAI_APIKEY": "abcdefgh", "db_passwd": " 12345678\n", "TOKEN": "short", "HOME": "/home/someone"}
    assert sorted(environment_secrets(environment)) == ["12345678", "abcdefgh"]


@pytest.mark.parametrize("written", ["a/b+ c", "a/b%2B%20c", "a%2Fb%2B%20c", 'a/b+\\"c'])
def test_a_secret_is_found_in_every_spelling(written: str) -> None:
    secrets = spelt(["a/b+ c", 'a/b+"c', "no", ""])
    assert without(f"said no to {written}.", secrets) == "said no to ***."


def test_of_two_secrets_the_longer_one_is_found_first() -> None:
    assert without("abcdefgh-more", spelt(["abcdefgh", "abcdefgh-more"])) == "***"


def test_words_of_a_secret_are_secret_unless_they_are_short() -> None:
    assert without("Bearer 0123456789", spelt(["Bearer 0123456789"])) == "***"
    assert without("the Bearer of 0123456789", spelt(["Bearer 0123456789"])) == "the Bearer of ***"


@pytest.mark.parametrize(("name", "good"), [("SEARCH_TOKEN", True), ("_x1", True), ("1X", False), ("Bearer pw", False)])
def test_a_variable_that_cannot_be_one_is_told_without_it(name: str, good: bool) -> None:
    fault = "found an invalid name of an environment variable, expected one such as EXAMPLE"
    assert variable_fault(name, "EXAMPLE") == (None if good else fault)
