"""What tests of judges' clients share: requests, a key, and calls that end in a reply or a fault."""

__all__ = ("ASKED", "FORMED", "KEY", "PROVIDERS", "SCHEMA", "Ask", "Recorder", "fault", "once")

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llm_server import Answer, LlmServer
from msgspec.structs import replace

from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.judge.clients.base import AsyncJudge
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Message

SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
ASKED = JudgeRequest((Message("system", "Be fair."), Message("user", "Is it right?")), "tiny")
FORMED = replace(ASKED, reply_schema=SCHEMA)
KEY = "local-key-0123456789-tail"
PROVIDERS = ["openai", "anthropic"]


class Recorder:
    """What happens between attempts."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.limits: list[float | None] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


Ask = Callable[..., JudgeReply]


def once(client: AsyncJudge, request: JudgeRequest = ASKED) -> JudgeReply:
    async def run() -> JudgeReply:
        try:
            return await client.complete(request)
        finally:
            await client.aclose()

    return asyncio.run(run())


def fault(ask: Ask, *answers: Answer, **options: Any) -> str:
    """Return the message of the JudgeError that ends a call."""
    with LlmServer(*answers) as server, pytest.raises(JudgeError) as error:
        ask(server, **options)
    return str(error.value)
