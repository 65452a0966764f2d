"""What clients of judges take from the environment: keys and proxies, and nothing else."""

import asyncio
from pathlib import Path

import pytest
from servers import LlmServer, reply

from pytest_llmeval.judges import JudgeConnection, JudgeRequest, JudgeSpec, Message

ASKED = JudgeRequest((Message("user", "Is it right?"),), "tiny")


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def ask(base_url: str) -> str:
    async def once() -> str:
        client = JudgeConnection(JudgeSpec("openai:tiny", base_url=base_url, retries=0)).open()
        try:
            return (await client.complete(ASKED)).text
        finally:
            await client.aclose()

    return asyncio.run(once())


@pytest.fixture
def netrc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "netrc"
    path.write_text("default login joe password not-for-judges\n", encoding="utf-8")
    path.chmod(0o600)
    monkeypatch.setenv("NETRC", str(path))


@pytest.mark.usefixtures("netrc")
def test_a_password_in_a_netrc_file_is_not_sent_to_a_judge() -> None:
    with LlmServer(reply("yes")) as server:
        assert ask(server.base_url) == "yes"
    assert "authorization" not in server.calls[0].headers


@pytest.mark.usefixtures("netrc")
def test_a_password_in_a_netrc_file_does_not_stand_in_the_way_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-right-key")
    with LlmServer(reply("yes")) as server:
        assert ask(server.base_url) == "yes"
    assert server.calls[0].headers["authorization"] == "Bearer the-right-key"


def test_calls_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with LlmServer(reply("yes")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1").replace("http://", "http://joe:pass@"))
        assert ask("http://judge.invalid/v1") == "yes"
    (call,) = proxy.calls
    assert call.path == "http://judge.invalid/v1/chat/completions"
    assert call.headers["proxy-authorization"] == "Basic am9lOnBhc3M="


@pytest.mark.parametrize("exempt", ["127.0.0.1", "localhost,127.0.0.1", "*"])
def test_calls_do_not_go_through_a_proxy_from_which_their_host_is_exempt(
    exempt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", exempt)
    with LlmServer(reply("yes")) as server:
        assert ask(server.base_url) == "yes"
