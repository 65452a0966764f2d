"""Help for tests of services as targets: batches sent to one, errors as texts."""

__all__ = ("BATCH", "always", "ask")

import asyncio
from collections.abc import Sequence
from typing import Any

from search_server import Answer, SearchServer

from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.targets.network import HttpTarget
from pytest_llmeval.targets.spec import HttpSpec

BATCH = {"queries": {"$each": {"$input": True}}, "top_k": 3}


def ask(
    server: SearchServer | str, *batches: Sequence[Any], waits: list[float] | None = None, **options: Any
) -> list[list[Any]]:
    """Send batches to the service, one after the other; errors come back as their texts, without the address."""
    url = server if isinstance(server, str) else f"{server.url}/search?key=hidden"
    keywords = {key: options.pop(key) for key in ("environment", "largest_reply") if key in options}
    spec = HttpSpec(url, **{"request": BATCH, "response": "results", **options})

    async def sleep(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    async def run() -> list[list[Any]]:
        target = HttpTarget(spec, sleep=sleep, **keywords)
        try:
            return [await target.answer(batch) for batch in batches]
        finally:
            await target.aclose()
            await target.aclose()

    shown = url.partition("?")[0]

    def plain(answer: Any) -> Any:
        return str(answer).replace(shown, "URL") if isinstance(answer, PredictionError) else answer

    return [[plain(answer) for answer in answers] for answers in asyncio.run(run())]


def always(answer: Answer) -> Any:
    return lambda *_: answer
