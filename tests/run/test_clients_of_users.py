"""Clients that users keep open, in scripts and in notebooks: openai's, and the event loop of a Jupyter kernel."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import PATIENCE, LlmServer, reply

import pytest_llmeval as ev
from pytest_llmeval.services import Background

CASES = [{"id": f"c{number:03}", "input": f"q{number}", "expected": "Paris"} for number in range(20)]


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with LlmServer(reply("Paris")) as running:
        yield running


def test_a_client_of_openai_answers_every_run_and_on_the_loop_of_the_caller(server: LlmServer) -> None:
    openai = pytest.importorskip("openai", reason="openai is in the extra test")
    capitals = ev.suite("capitals", cases=CASES, evaluators=[ev.text(metrics=["f1"])])

    def answering(client: Any) -> Any:
        async def answer(question: str) -> Any:
            messages = [{"role": "user", "content": question}]
            return await client.chat.completions.create(model="m", messages=messages)

        return answer

    shared = openai.AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0)
    try:
        runs = [capitals.run(answering(shared), progress=False) for _ in range(2)]
    finally:
        Background.of_process().run(shared.close())
    assert [case.reason for run in runs for case in run.cases] == [None] * 40

    async def script() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
            await answering(client)("before")
            result = await capitals.arun(answering(client), progress=False)
            await answering(client)("after")
        return [case.reason for case in result.cases]

    assert asyncio.run(script()) == [None] * 20
    assert len(server.calls) == 62


CELLS = [
    """
import json, aiohttp
import pytest_llmeval as ev

def answering(session):
    async def answer(question):
        body = {"model": "m", "messages": [{"role": "user", "content": question}]}
        async with session.post(URL, json=body) as response:
            return (await response.json())["choices"][0]["message"]["content"]
    return answer

cases = [{"id": f"c{n}", "input": f"q{n}", "expected": "Paris"} for n in range(20)]
capitals = ev.suite("capitals", cases=cases, evaluators=[ev.text(metrics=["f1"])])
own, others = aiohttp.ClientSession(), []
before = await answering(own)("before")

async def lazily(question):  # its client is made on the loop that calls it
    if not others:
        others.append(aiohttp.ClientSession())
    return await answering(others[0])(question)
""",
    "ran = [capitals.run(lazily, progress=False).pass_rate.value for _ in range(2)]",
    "awaited = (await capitals.arun(answering(own), progress=False)).pass_rate.value",
    "after = await answering(own)('after')\nawait own.close()",
    "print(json.dumps([before, ran, awaited, after]))",
]


@pytest.mark.release
def test_a_kernel_of_jupyter_runs_suites_and_keeps_its_own_clients(server: LlmServer, tmp_path: Path) -> None:
    pytest.importorskip("ipykernel", reason="ipykernel is in the extra test")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(cwd=str(tmp_path), startup_timeout=PATIENCE)
    printed: list[str] = []

    def note(message: Any) -> None:
        content = message["content"]
        printed.extend(content["traceback"] if message["msg_type"] == "error" else [content.get("text", "")])

    try:
        for cell in (f"URL = {server.base_url + '/chat/completions'!r}", *CELLS):
            done = client.execute_interactive(cell, timeout=PATIENCE, output_hook=note)
            assert done["content"]["status"] == "ok", "\n".join(printed)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert json.loads("".join(printed)) == ["Paris", [1.0, 1.0], 1.0, "Paris"]
    assert len(server.calls) == 62
