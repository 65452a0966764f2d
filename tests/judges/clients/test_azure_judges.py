"""Deployments of Azure, as a server sees their calls."""

import pytest
from msgspec.structs import replace
from pictures import in_memory
from scripted_judges import ASKED, LOCAL_KEY, Ask
from servers import LlmServer, reply, status

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import JudgeSpec

pytestmark = pytest.mark.usefixtures(in_memory.__name__)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", LOCAL_KEY)


@pytest.mark.parametrize("ending", ["", "/", "/openai"])
def test_the_address_has_deployment_and_version_and_a_header_the_key(ask: Ask, ending: str) -> None:
    with LlmServer(reply("yes")) as server:
        said = ask(server, provider="azure", base_url=server.url + ending, api_version="2025-01-01-preview")
        limited = replace(ASKED, parameters={"max_tokens": 9})
        default = ask(server, limited, provider="azure", base_url=server.url + ending)
    assert (said.text, default.text) == ("yes", "yes")
    first, second = server.calls
    assert first.path == "/openai/deployments/tiny/chat/completions?api-version=2025-01-01-preview"
    assert second.path == "/openai/deployments/tiny/chat/completions?api-version=2024-10-21"
    assert first.headers["api-key"] == LOCAL_KEY
    assert "authorization" not in first.headers
    assert first.body["messages"]
    assert second.body["max_completion_tokens"] == 9


def test_a_missing_key_and_a_wrong_deployment_are_errors(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    with LlmServer(status(404, "The API deployment for this resource does not exist.")) as server:
        with pytest.raises(JudgeError, match="The API deployment for this resource does not exist"):
            ask(server, provider="azure", base_url=server.url)
        monkeypatch.delenv("AZURE_OPENAI_API_KEY")
        with pytest.raises(JudgeError, match="the environment variable AZURE_OPENAI_API_KEY is missing"):
            ask(server, provider="azure", base_url=server.url)
        assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"model": "azure:a"}, "base_url: the address of the resource is missing"),
        ({"model": "openai:a", "api_version": "2024-10-21"}, "api_version: found it with the provider openai"),
        (
            {"model": "azure:a", "base_url": "https://a.example.org", "api_version": "2024&x=1"},
            "api_version: found '2024&x=1', expected a version such as 2024-10-21",
        ),
    ],
)
def test_what_azure_needs(settings: dict[str, str], fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{fault}"):
        JudgeSpec(**settings)
