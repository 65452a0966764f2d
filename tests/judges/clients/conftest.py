"""Keys in the environment, and judges behind a local server."""

import asyncio
from typing import Any

import pytest
from scripted_judges import ASKED, LOCAL_KEY, Ask, Recorder
from servers import LlmServer

from pytest_llmeval.judges import JudgeConnection, JudgeReply, JudgeRequest, JudgeSpec


@pytest.fixture
def between() -> Recorder:
    return Recorder()


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, LOCAL_KEY)


@pytest.fixture
def ask(between: Recorder) -> Ask:
    def ask_server(
        server: LlmServer, request: JudgeRequest = ASKED, provider: str = "openai", **spec: Any
    ) -> JudgeReply:
        async def run() -> JudgeReply:
            made = JudgeSpec(f"{provider}:tiny", **{"base_url": server.base_url} | spec)
            client = JudgeConnection(made).open(on_rate_limit=between.limits.append, sleep=between.sleep)
            try:
                return await client.complete(request)
            finally:
                await client.aclose()

        return asyncio.run(run())

    return ask_server
