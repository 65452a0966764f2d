"""The ``judge`` of a suite file: what it may say, and what enters requests."""

import json
import re
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.data import DeclaredType, InputFile
from pytest_llmeval.judges import JudgeSpec, Price


def test_a_spec_says_provider_and_name() -> None:
    spec = JudgeSpec("pydantic-ai:openai:gpt-5")
    assert (spec.provider, spec.name) == ("pydantic-ai", "openai:gpt-5")


def test_without_a_model_there_is_no_provider() -> None:
    assert (JudgeSpec().provider, JudgeSpec().name) == (None, "")


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        JudgeSpec("openai:x").model = "openai:y"  # type: ignore[misc]  # the fact under test


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"model": "gpt-5"}, "model: found 'gpt-5', expected PROVIDER:NAME (did you mean 'openai:gpt-5'?)"),
        (
            {"model": "claude-x"},
            "model: found 'claude-x', expected PROVIDER:NAME (did you mean 'anthropic:claude-x'?)",
        ),
        (
            {"model": "opnai:gpt-5"},
            "model: unknown provider opnai, did you mean openai?",
        ),
        ({"model": "openai:"}, "model: found 'openai:', expected a name after 'openai:'"),
        ({"model": "openai: x"}, "model: found 'openai: x', expected a name after 'openai:'"),
        ({"model": "openai:x\n"}, "model: found 'openai:x\\n', expected a name after 'openai:'"),
        ({"base_url": "localhost:8000"}, "base_url: found 'localhost:8000', expected an address such as http"),
        ({"base_url": "ftp://host/v1"}, "base_url: found 'ftp://host/v1', expected an address such as http"),
        ({"base_url": "http://"}, "base_url: found 'http://', expected an address such as http"),
        ({"base_url": "http://host/a b"}, "base_url: found 'http://host/a b', expected an address such as http"),
        ({"base_url": "http://host:99999"}, "base_url: found 'http://host:99999', expected an address such"),
        ({"base_url": "http://[::1/v1"}, "base_url: found 'http://[::1/v1', expected an address such"),
        ({"base_url": "http://me:pass@host"}, "base_url: found a user name or password in the address, expected"),
        ({"base_url": "http://host/v1?key=hush"}, "base_url: found an address with '?' or '#', expected none"),
        ({"temperature": -0.1}, "temperature: found -0.1, expected a number of at least 0"),
        ({"temperature": float("nan")}, "temperature: found nan, expected a number of at least 0"),
        ({"max_tokens": 0}, "max_tokens: found 0, expected a whole number of at least 1"),
        ({"seed": -1}, "seed: found -1, expected a whole number of at least 0"),
        ({"timeout": 0}, "timeout: found 0, expected seconds above 0 and at most a day"),
        ({"timeout": float("inf")}, "timeout: found inf, expected seconds above 0 and at most a day"),
        ({"retries": -1}, "retries: found -1, expected a whole number from 0 to 100"),
        (
            {"parameters": {"max_tokens": 5}},
            "parameters.max_tokens: found 'max_tokens' under parameters, expected it directly under",
        ),
        (
            {"parameters": {"messages": []}},
            "parameters.messages: found a parameter that the client sets itself, expected none",
        ),
        ({"parameters": {"top_p": float("nan")}}, "parameters: found a value that is not JSON data"),
        ({"parameters": {"top_p": {1}}}, "parameters: found a value that is not JSON data"),
        (
            {"api_key_env": "sk-hush"},
            "api_key_env: found an invalid name of an environment variable, expected one such as OPENAI_API_KEY",
        ),
        ({"model": "anthropic:x", "seed": 1}, "seed: found 1, expected none: the provider anthropic has no seed"),
        (
            {"model": "fixture:x", "base_url": "http://h"},
            "base_url: found it with the provider fixture, expected it only with anthropic, azure, gemini or openai",
        ),
        (
            {"model": "pydantic-ai:x", "api_key_env": "KEY"},
            (
                "api_key_env: found it with the provider pydantic-ai, expected it only with anthropic, azure, gemini "
                "or openai"
            ),
        ),
    ],
)
def test_a_fault_says_what_was_found_and_expected(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}"):
        JudgeSpec(**options)


@pytest.mark.parametrize(
    ("parameters", "path"),
    [
        ({"api_key": "hush"}, "parameters.api_key"),
        ({"Authorization": "hush"}, "parameters.Authorization"),
        ({"extra_headers": {"X-API-Key": "hush"}}, "parameters.extra_headers.X-API-Key"),
        ({"tags": ["Bearer hush"]}, "parameters.tags[0]"),
        ({"user": "sk-hush-abcdefghijklmnop"}, "parameters.user"),
    ],
)
def test_secrets_among_parameters_are_refused_and_not_shown(parameters: dict[str, Any], path: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(path)}: found an apparent secret, expected none") as error:
        JudgeSpec(parameters=parameters)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    "options",
    [{"base_url": "http://me:hush@host"}, {"base_url": "http://host?key=hush"}, {"api_key_env": "hush-hush"}],
)
def test_a_fault_never_shows_what_may_be_a_secret(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="found") as error:
        JudgeSpec(**options)
    assert "hush" not in str(error.value)


def test_parameters_with_names_like_secrets_are_fine() -> None:
    parameters = {"max_completion_tokens": 5, "prompt_cache_key": "a", "logit_bias": {"token_5": 1}}
    assert JudgeSpec(parameters=parameters).request_parameters() == parameters


def test_all_faults_are_listed() -> None:
    with pytest.raises(ValueError, match=r"^model: .*; temperature: .*; retries: "):
        JudgeSpec("gpt", temperature=-1, retries=-1)


@pytest.mark.parametrize(("price", "name"), [((-1, 1), "input"), ((1, float("nan")), "output")])
def test_a_price_is_a_number_of_at_least_zero(price: tuple[float, float], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: found .*, expected USD per million tokens, at least 0$"):
        Price(*price)


def test_request_parameters_are_what_the_user_set_of_what_the_model_is_sent() -> None:
    spec = JudgeSpec(
        "openai:x",
        base_url="http://host/v1",
        temperature=0,
        seed=0,
        parameters={"top_p": 1, "logprobs": False},
        timeout=1,
        retries=1,
        api_key_env="KEY",
        structured="off",
        price=Price(1, 1),
    )
    assert spec.request_parameters() == {"logprobs": False, "seed": 0, "temperature": 0.0, "top_p": 1}
    assert JudgeSpec("openai:x").request_parameters() == {}


def test_request_parameters_are_alike_however_they_are_written() -> None:
    one = JudgeSpec(temperature=1, parameters={"a": 1, "b": 2})
    other = JudgeSpec(temperature=1.0, parameters={"b": 2, "a": 1})
    assert json.dumps(one.request_parameters()) == json.dumps(other.request_parameters())


def problems_of(text: str, folder: Path) -> list[str]:
    path = folder / "a.eval.yaml"
    path.write_text(f"judge: {text}\n")
    document = InputFile(path, path.name).read_document()
    _, faults = DeclaredType(JudgeSpec).check(document.data["judge"], document, ["judge"])
    return [str(each) for each in faults]


def test_a_suite_file_can_say_everything(tmp_path: Path) -> None:
    text = (
        "{model: 'openai:x', base_url: 'http://h/v1', temperature: 0, max_tokens: 5, seed: 1, parameters: {top_p: 1}, "
        "timeout: 5, retries: 0, api_key_env: KEY, structured: 'off', price: {input: 1, output: 2.5}}"
    )
    assert problems_of(text, tmp_path) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "{api_key: hush}",
            "a.eval.yaml:1:9  judge.api_key: unknown key api_key, did you mean",
        ),
        ("{temperature: cold}", "judge.temperature: found the text 'cold', expected a number"),
        ("{retries: 1.5}", "judge.retries: found the number 1.5, expected a whole number"),
        ("{structured: always}", "judge.structured: found the text 'always', expected one of 'auto', 'off'"),
        ("{price: {input: 1}}", "judge.price: output is missing"),
        ("{price: {input: -1, output: 1}}", "judge.price.input: found -1.0, expected USD per million tokens"),
        ("{model: gpt}", "a.eval.yaml:1:16  judge.model: found 'gpt', expected PROVIDER:NAME"),
        (
            "{parameters: {headers: {Cookie: hush}}}",
            "a.eval.yaml:1:21  judge.parameters: headers.Cookie: found an apparent secret",
        ),
    ],
)
def test_a_fault_in_a_suite_file_has_its_place(text: str, fault: str, tmp_path: Path) -> None:
    (found,) = problems_of(text, tmp_path)
    assert fault in found
    assert "hush" not in found


def test_several_faults_in_a_suite_file_have_a_line_each(tmp_path: Path) -> None:
    first, second, third = problems_of(
        "{model: gpt, temperature: -1, price: {input: 1, output: 2}, retries: -1}", tmp_path
    )
    assert "1:16  judge.model: found 'gpt'" in first
    assert "1:34  judge.temperature: found -1.0" in second
    assert "judge.retries: found -1" in third
