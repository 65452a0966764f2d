"""Similarity by a model of embeddings over HTTP."""

import asyncio
import json
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import (
    AsyncJudge,
    JudgeConnection,
    JudgeReply,
    JudgeRequest,
    JudgeSpec,
    Message,
    Mode,
    Patience,
    ReplyObject,
    Usage,
    Verdict,
)

_FIELDS: Final = ("answer", "reference")
_DIGITS: Final = 6
_KEY: Final = "similarity"


def similarity_texts(request: JudgeRequest) -> tuple[str, str]:
    """The two texts of a request to the embedding judge."""
    data = request.data()
    return data["answer"], data["reference"]


def similarity_reply(cosine: float) -> str:
    """The embedding judge's reply for a cosine."""
    return json.dumps({_KEY: round(min(1.0, max(-1.0, cosine)), _DIGITS)})


def read_similarity(reply: str) -> Verdict:
    """Read the embedding judge's reply, a JSON object with a ``similarity`` from -1 to 1.

    Raises:
        JudgeError: There is none.
    """
    value: Any = ReplyObject.closing(reply).get(_KEY)
    if type(value) not in (int, float) or not -1 <= value <= 1:
        raise JudgeError.unreadable(reply, f"found {value!r} as similarity, expected a number from -1 to 1")
    return Verdict(float(value))


SIMILARITY: Final = Mode(
    name="embedding_similarity",
    version="1",
    instructions={"en": "The cosine of the embeddings of both texts."},
    fields=_FIELDS,
    scale=(-1.0, 1.0),
    read=read_similarity,
)
"""The question how similar two texts are; a model of embeddings answers it."""

_MOST_TEXTS: Final = 128
_MOST_CALLS: Final = 4
"""Calls under way at a time; texts that arrive meanwhile wait, and share the next one."""
_MOST_KEPT: Final = 2048
"""Vectors that are kept: references occur in many cases, and repeats."""


class _Embedded(NamedTuple):
    """A text's embedding from a service, with the tokens that it cost."""

    vector: Sequence[float]
    tokens: int | None


@dataclass
class EmbeddingJudge:
    """A judge of the similarity of two texts by an embedding service; waiting texts share the next call.

    Attributes:
        spec: Which model, and where.
        model: Embeds the texts that are the messages of a request; replies with vectors as JSON.
    """

    spec: JudgeSpec
    model: AsyncJudge
    _embedded: "OrderedDict[str, asyncio.Future[_Embedded]]" = field(default_factory=OrderedDict)
    _waiting: dict[str, JudgeRequest] = field(default_factory=dict)
    _calls: "set[asyncio.Task[None]]" = field(default_factory=set)

    @classmethod
    def connect(cls, spec: JudgeSpec, patience: Patience) -> "EmbeddingJudge":
        """Return the client of a model of provider ``openai``; nothing is opened before its first call."""
        return cls(spec, JudgeConnection(spec).open_embeddings(patience))

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        """Return the cosine of the embeddings of both texts; tokens of a text count where it was first needed.

        Raises:
            JudgeError: There is none.
        """
        texts = similarity_texts(request)
        new = [text for text in dict.fromkeys(texts) if text not in self._embedded]
        coming = [self._coming(text, request) for text in texts]
        embedded = dict(zip(texts, await asyncio.gather(*map(asyncio.shield, coming)), strict=True))
        first, second = (embedded[text].vector for text in texts)
        if len(first) != len(second):
            raise JudgeError(f"found embeddings of {len(first)} and {len(second)} numbers, expected equal lengths")
        tokens = [embedded[text].tokens for text in new]
        known = [token for token in tokens if token is not None]
        return JudgeReply(
            similarity_reply(_cosine(first, second)), Usage(sum(known) if len(known) == len(new) else None, 0)
        )

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._embedded.clear()
        self._waiting.clear()
        await self.model.aclose()

    def _coming(self, text: str, request: JudgeRequest) -> "asyncio.Future[_Embedded]":
        if text not in self._embedded:
            loop = asyncio.get_running_loop()
            self._embedded[text] = loop.create_future()
            self._waiting[text] = request
            loop.call_soon(self._start)  # with all that arrives before
        self._embedded.move_to_end(text)
        return self._embedded[text]

    def _start(self) -> None:
        while self._waiting and len(self._calls) < _MOST_CALLS:
            batch = list(self._waiting)[:_MOST_TEXTS]
            request = self._waiting[batch[0]]
            for text in batch:
                del self._waiting[text]
            call = asyncio.ensure_future(self._call(batch, request))
            self._calls.add(call)
            call.add_done_callback(self._ended)

    def _ended(self, call: "asyncio.Task[None]") -> None:
        self._calls.discard(call)
        self._start()

    async def _call(self, batch: Sequence[str], request: JudgeRequest) -> None:
        coming = [self._embedded[text] for text in batch]
        try:
            batched = replace(request, messages=tuple(Message("user", text) for text in batch))
            reply = await self.model.complete(batched)
            vectors = _vectors(reply.text, len(batch))
        except Exception as error:  # noqa: BLE001 (those who wait get it)
            if isinstance(error, JudgeError) and error.rejected and len(batch) > 1:
                # The others need not fail for one text that is too long, nor all of them for being too many.
                middle = len(batch) // 2
                await self._call(batch[:middle], request)
                await self._call(batch[middle:], request)
                return
            for text, future in zip(batch, coming, strict=True):
                self._embedded.pop(text, None)  # asked for again, it may be there
                future.set_exception(JudgeError(str(error)))
                future.exception()  # those who waited may be gone
            return
        for future, vector, tokens in zip(coming, vectors, _shares(reply.usage.input_tokens, batch), strict=True):
            future.set_result(_Embedded(vector, tokens))
        for text in list(self._embedded)[: max(0, len(self._embedded) - _MOST_KEPT)]:
            if self._embedded[text].done():
                del self._embedded[text]


def _vectors(reply: str, texts: int) -> list[Sequence[float]]:
    """The embeddings in a stored reply of the embedding service, one for each text."""
    vectors: list[Sequence[float]] = json.loads(reply)
    if len(vectors) != texts:
        raise JudgeError(f"found {len(vectors)} embeddings of {texts} texts, expected one of each")
    return vectors


def _shares(tokens: int | None, batch: Sequence[str]) -> list[int | None]:
    """The tokens of each text in a call to the embedding service, by length; their sum is that of the call."""
    if tokens is None:
        return [None] * len(batch)
    ends = list(accumulate(map(len, batch)))
    upto = [tokens * end // ends[-1] for end in ends]
    return [here - before for before, here in zip([0, *upto], upto, strict=False)]


def _cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """The cosine similarity of two embeddings; a vector without direction is an error."""
    lengths = math.hypot(*first), math.hypot(*second)
    if not all(0 < length < math.inf for length in lengths):
        raise JudgeError(
            f"found embeddings of the lengths {lengths[0]:g} and {lengths[1]:g}, expected vectors that have a direction"
        )
    # The sum is exact, so that it does not depend on the machine.
    return math.fsum(a / lengths[0] * (b / lengths[1]) for a, b in zip(first, second, strict=True))
