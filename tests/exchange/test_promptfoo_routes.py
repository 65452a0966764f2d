"""Where texts go: addresses, keys and proxies of promptfoo's providers are imported exactly, or the provider is not."""

from pathlib import Path
from typing import Any

import pytest
from project import write_source

from pytest_llmeval.exchange import ImportedSuite, ImportOptions
from pytest_llmeval.exchange._commands import import_source
from pytest_llmeval.exchange.promptfoo._assertions import GRADER
from pytest_llmeval.targets._spec import fill

HOST = "https://llm.example.org/v1"
RUBRIC = {"type": "llm-rubric", "value": "is short"}
LITERAL = "sk-" + "literal" * 4


def imported(folder: Path, **config: Any) -> tuple[ImportedSuite, str]:
    """Return the suite, and the fates with their texts."""
    base = {"prompts": ["{{a}}"], "tests": [{"vars": {"a": "b"}, "assert": [RUBRIC]}]}
    write_source(folder, "suite.yaml", {**base, **config})
    source = import_source("promptfoo", folder / "suite.yaml", "suite.yaml", ImportOptions())
    assert source is not None
    assert source.suite is not None
    return source.suite, "\n".join(f"{each.fate.value}: {each.kind}: {each.text}" for each in source.constructs)


def graded_by(grader: Any) -> dict[str, Any]:
    return {"defaultTest": {"options": {"provider": grader}}}


def test_a_grader_keeps_its_address_key_and_temperature(tmp_path: Path) -> None:
    config = {"apiBaseUrl": HOST, "apiKeyEnvar": "OUR_KEY", "temperature": 0}
    suite, texts = imported(tmp_path, **graded_by({"id": "openai:chat:small", "config": config}))
    assert suite.settings["judge"] == {
        "model": "openai:small",
        "base_url": HOST,
        "api_key_env": "OUR_KEY",
        "temperature": 0,
    }
    assert "same: grader: the judge of the suite" in texts


@pytest.mark.parametrize(
    "more",
    [
        {"config": {"proxyUrl": "http://proxy"}},
        {"config": {"organization": "org-1"}},
        {"config": {"apiKey": LITERAL}},
        {"config": {"apiBaseUrl": "{{env.BASE}}"}},
        {"config": {"headers": {"x": "y"}}},
        {"env": {"OPENAI_BASE_URL": HOST}},
    ],
)
def test_a_provider_whose_route_cannot_be_had_is_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    provider = {"id": "openai:chat:small", **more}
    suite, texts = imported(tmp_path, providers=[provider], **graded_by(provider))
    assert "systems" not in suite.settings
    assert "judge" not in suite.settings
    assert "checks" not in suite.cases[0]
    assert "decides where texts go" in texts
    assert LITERAL not in texts


def test_a_file_whose_environment_sends_texts_elsewhere_is_refused(tmp_path: Path) -> None:
    config = {"prompts": ["{{a}}"], "providers": ["openai:small"], "tests": [{"vars": {"a": "b"}, "assert": [RUBRIC]}]}
    write_source(tmp_path, "suite.yaml", {**config, "env": {"OPENAI_BASE_URL": HOST, "COLOUR": "red"}})
    source = import_source("promptfoo", tmp_path / "suite.yaml", "suite.yaml", ImportOptions())
    assert source is not None
    assert (source.suite, source.refusal.partition(":")[0]) == (
        None,
        "its env has OPENAI_BASE_URL, which decides where texts go",
    )
    assert "systems" in imported(tmp_path, **{**config, "env": {"COLOUR": "red"}})[0].settings


@pytest.mark.parametrize("grader", ["file://grader.js", "adaline:openai:chat:small", "openai:chat:{{env.MODEL}}"])
def test_texts_never_go_to_the_default_in_place_of_a_grader_that_is_not_imported(tmp_path: Path, grader: str) -> None:
    suite, texts = imported(tmp_path, **graded_by(grader))
    assert "judge" not in suite.settings
    assert "not imported: llm-rubric: " in texts


def test_an_assertion_with_another_grader_is_not_judged_by_that_of_the_suite(tmp_path: Path) -> None:
    own = [{**RUBRIC, "provider": "anthropic:messages:large"}, {**RUBRIC, "value": "is polite"}]
    suite, texts = imported(tmp_path, tests=[{"vars": {"a": "b"}, "assert": own}], **graded_by("openai:small"))
    assert suite.settings["judge"] == {"model": "openai:small"}
    assert suite.cases[0]["checks"] == [{"judge": "is polite"}]
    assert "not imported: llm-rubric: its grader is not the judge of the suite" in texts
    only = [{**RUBRIC, "provider": "anthropic:messages:large"}]
    suite, _ = imported(tmp_path, tests=[{"vars": {"a": "b"}, "assert": only}])
    assert suite.settings["judge"] == {"model": "anthropic:large"}


def test_embeddings_keep_their_address_or_are_refused(tmp_path: Path) -> None:
    def similar(**config: Any) -> dict[str, Any]:
        provider = {"id": "openai:embedding:small", "config": config}
        return {"vars": {"a": "b"}, "assert": [{"type": "similar", "value": "x", "provider": provider}]}

    suite, _ = imported(tmp_path, tests=[similar(apiBaseUrl=HOST)])
    assert suite.settings["evaluators"] == [{"semantic": {"model": "openai:small", "base_url": HOST}}]
    suite, texts = imported(tmp_path, tests=[similar(organization="org-1")])
    assert "evaluators" not in suite.settings
    assert "its provider has the setting organization" in texts


def test_recorded_answers_are_not_judged_by_the_default_in_place_of_their_grader(tmp_path: Path) -> None:
    case = {"vars": {}, "assert": [RUBRIC], "options": {"provider": "file://grader.js"}}
    result = {"provider": {"id": "a"}, "vars": {}, "response": {"output": "x"}, "success": True, "testCase": case}
    write_source(tmp_path, "suite.json", {"results": {"version": 3, "results": [result]}})
    source = import_source("promptfoo", tmp_path / "suite.json", "suite.json", ImportOptions())
    assert source is not None
    assert source.suite is not None
    assert "judge" not in source.suite.settings


@pytest.mark.parametrize(
    ("grader", "judge"),
    [
        ("openai:chat:other", {"model": "openai:other"}),
        ({"text": "openai:chat:other", "embedding": "openai:embedding:small"}, {"model": "openai:other"}),
        (None, {"model": GRADER}),
    ],
)
def test_recorded_answers_are_judged_by_their_grader(tmp_path: Path, grader: Any, judge: dict[str, str]) -> None:
    case = {"vars": {}, "assert": [RUBRIC], "options": {"provider": grader}}
    result = {"provider": {"id": "a"}, "vars": {}, "response": {"output": "x"}, "success": True, "testCase": case}
    write_source(tmp_path, "suite.json", {"results": {"version": 3, "results": [result]}})
    source = import_source("promptfoo", tmp_path / "suite.json", "suite.json", ImportOptions())
    assert source is not None
    assert source.suite is not None
    assert source.suite.settings["judge"] == judge


def service(**config: Any) -> dict[str, Any]:
    base = {"method": "POST", "body": {"q": "{{prompt}}"}, "transformResponse": "json.choices[0]?.text"}
    return {"id": "https://rag.example.org/ask", "config": {**base, **config}}


def test_an_http_provider_is_a_target_that_sends_the_same(tmp_path: Path) -> None:
    provider = service(
        headers={"X-Client": "a", "Authorization": "{{ env.RAG_TOKEN }}"},
        queryParams={"v": "1 2"},
        body={"messages": [{"role": "user", "content": "{{prompt}}"}], "raw": "{{a}}", "n": 3, "mixed": "<{{a}}>"},
        validateStatus="status >= 200 && status < 300",
    )
    tests = [{"vars": {"a": "b"}}, {"vars": {"a": "[1]"}}]
    suite, texts = imported(tmp_path, prompts=["Say {{a}}"], providers=[provider], tests=tests)
    request = suite.settings["target"]["http"].pop("request")
    assert suite.settings["target"]["http"] == {
        "url": "https://rag.example.org/ask?v=1+2",
        "method": "POST",
        "headers": {"X-Client": "a"},
        "headers_from_env": {"Authorization": "RAG_TOKEN"},
        "response": "choices.0.text",
        "timeout": 300,
    }
    assert [fill(request, [case["input"]]) for case in suite.cases] == [
        {"messages": [{"role": "user", "content": "Say b"}], "raw": "b", "n": 3, "mixed": "<b>"},
        {"messages": [{"role": "user", "content": "Say [1]"}], "raw": [1], "n": 3, "mixed": "<[1]>"},
    ]
    assert "near: provider https://rag.example.org/ask: target http" in texts
    assert "not imported" not in texts


def test_http_providers_next_to_models_and_prompts_are_systems(tmp_path: Path) -> None:
    get = service(method="GET", queryParams={"q": "{{a}}"}, body=None)
    several = {"prompts": ["{{a}}", "say {{a}}"], "providers": ["openai:small", {**get, "label": "rag"}, service()]}
    suite, _ = imported(tmp_path, **several)
    systems = suite.settings["systems"]
    assert [name for name in systems if "http" in systems[name]] == [
        "rag/prompt-1",
        "rag/prompt-2",
        "https://rag.example.org/ask/prompt-1",
        "https://rag.example.org/ask/prompt-2",
    ]
    assert systems["rag/prompt-2"]["http"]["request"] == {"q": {"$input": "a"}}
    assert systems["https://rag.example.org/ask/prompt-2"]["http"]["request"] == {"q": {"$input": "prompt"}}
    assert suite.cases[0]["input"] == {"a": "b", "prompt": "say b"}


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"url": "https://{{env.HOST}}/ask"}, "its url has a template"),
        ({"url": "https://me:pw@rag.example.org"}, "it cannot be a target here: http.url"),
        ({"headers": {"Authorization": f"Bearer {LITERAL}"}}, "expected this header under headers_from_env"),
        ({"headers": {"Authorization": "Bearer {{env.KEY}}"}}, "its header Authorization decides"),
        ({"headers": {"Content-Type": "text/plain"}}, "it sends text/plain"),
        ({"queryParams": {"api_key": LITERAL}}, "its queryParams have a key"),
        ({"queryParams": {"q": "{{a}}"}}, "only a GET request fills"),
        ({"auth": {"type": "bearer", "token": LITERAL}}, "its auth decides"),
        ({"tls": {"rejectUnauthorized": False}}, "its tls decides"),
        ({"request": "POST /ask HTTP/1.1\nHost: x\n\n{{prompt}}"}, "its request decides"),
        ({"method": "DELETE"}, "its method is DELETE"),
        ({"body": "q={{prompt}}"}, "its body is no JSON"),
        ({"body": {"q": "{{ prompt | upper }}"}}, "the template code"),
        ({"body": {"q": "{{ env.KEY }}"}}, "{{ env.KEY }}"),
        ({"body": {"q": "fixed"}}, "{$input: ...} is missing"),
        ({"transformResponse": "json.items.length"}, "changes answers by code"),
        ({"transformResponse": "text.trim()"}, "changes answers by code"),
    ],
)
def test_an_http_provider_that_cannot_be_had_exactly_is_refused(
    tmp_path: Path, config: dict[str, Any], why: str
) -> None:
    suite, texts = imported(tmp_path, providers=[service(**config)])
    assert not {"target", "systems"} & suite.settings.keys()
    assert suite.cases[0]["input"] == {"a": "b"}
    assert why in texts
    assert LITERAL not in texts


AZURE = {"model": "azure:prod", "base_url": "https://our.openai.azure.com"}


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (
            {"apiHost": "our.openai.azure.com", "apiVersion": "2025-01-01"},
            {**AZURE, "api_version": "2025-01-01", "api_key_env": "AZURE_API_KEY"},
        ),
        (
            {"apiBaseUrl": AZURE["base_url"], "apiKeyEnvar": "OUR_KEY", "temperature": 0},
            {**AZURE, "api_version": "2024-12-01-preview", "api_key_env": "OUR_KEY", "temperature": 0},
        ),
        ({"temperature": 0}, {"model": "pydantic-ai:azure:prod", "temperature": 0}),
    ],
)
def test_a_deployment_of_azure_keeps_its_host_and_version(
    tmp_path: Path, options: dict[str, Any], settings: dict[str, Any]
) -> None:
    provider = {"id": "azure:chat:prod", "config": options}
    suite, texts = imported(tmp_path, providers=[provider], **graded_by(provider))
    (system,) = suite.settings["systems"].values()
    del system["prompt"]
    assert (system, suite.settings["judge"]) == (settings, settings)
    assert "not imported" not in texts


@pytest.mark.parametrize("identifier", ["azure:chat:prod", "bedrock:nova"])
def test_a_version_or_an_address_that_cannot_be_had_says_so_in_one_sentence(tmp_path: Path, identifier: str) -> None:
    option = {"apiVersion": "2025-01-01"} if identifier.startswith("azure") else {"apiHost": "our.example.org"}
    _, texts = imported(tmp_path, providers=[{"id": identifier, "config": option}])
    (line,) = (each for each in texts.splitlines() if "decides where texts go" in each)
    fate, kind, text = line.split(": ", 2)
    assert fate == "not imported"
    assert text.partition(" (")[0].count(": ") == 0
    assert ": " not in kind
