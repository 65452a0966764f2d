"""Judges and embeddings behind HTTP: the APIs of Anthropic, OpenAI and compatible servers."""

import asyncio
import json
import math
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.data.files.json import unique_keys
from pytest_llmeval.judge.clients.base import (
    FORM_REFUSED,
    TOO_SLOW,
    AsyncJudge,
    CallError,
    Dialect,
    FormRefusedError,
    Patience,
    count,
    failed_status,
    message_in,
)
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Message, Stopped, Usage
from pytest_llmeval.judge.questions.replies import TokenChoice, plain, score_probabilities
from pytest_llmeval.judge.questions.suite_modes import similarity_reply, similarity_texts
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.services.http import Exchange, NoReplyError, Reply
from pytest_llmeval.services.secrets import Redactor, address_of, redacted_url, without_key

_LARGEST_REPLY: Final = 10 << 20
_NO_REPLY_ADVICE: Final = {"slow": TOO_SLOW, "too large": "check the judge's base_url"}


@dataclass
class HttpJudge:
    """Asks a model over HTTP.

    Attributes:
        spec: Which model, and where.
        dialect: How it is talked to.
        patience: How often a call is tried.
    """

    spec: JudgeSpec
    dialect: Dialect
    patience: Patience

    def __post_init__(self) -> None:
        url = self.dialect.url(self._base)
        self._where = redacted_url(url)
        self._address = address_of(url, self._variable)
        self._exchange = Exchange(url, timeout=self.spec.timeout, largest=_LARGEST_REPLY)

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        """Return the model's reply; ``stopped`` marks one that was refused or truncated.

        Raises:
            JudgeError: There is none: the key is missing, the server refused the call, or no attempt succeeded.
        """
        self._key()  # a missing key is reported at once, without attempts
        attempt = partial(self._attempt, request)
        return await self.patience.complete(request, attempt, self._address, structured=self.spec.structured == "auto")

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        await self._exchange.aclose()

    @property
    def _base(self) -> str:
        return (self.spec.base_url or self.dialect.base_url).rstrip("/")

    @property
    def _variable(self) -> str:
        return self.spec.api_key_env or self.dialect.key_variable

    def _key(self) -> str:
        """Return the key from the environment, empty where a server of one's own needs none."""
        key = os.environ.get(self._variable, "").strip()
        if not key and (self.spec.base_url is None or self.spec.api_key_env is not None):
            raise JudgeError(
                f"{self.dialect.provider}: found no key in the environment variable {self._variable}, expected the key "
                f"of the judge {self.spec.model}: set it, or replay recorded verdicts"
            )
        if not (key.isascii() and key.isprintable()):
            raise JudgeError(
                f"{self.dialect.provider}: found characters in the environment variable {self._variable} that are not "
                "allowed in an HTTP header, expected a key"
            )
        return key

    async def _attempt(self, request: JudgeRequest, *, structured: bool) -> JudgeReply:
        key = self._key()
        redactor = Redactor([key])
        answer = await self._answer(request, key, redactor, structured=structured)
        data = _parsed(answer.body)
        text = answer.body.decode("utf-8", "replace")
        if not answer.ok:
            if structured and answer.status in FORM_REFUSED and self.dialect.refuses_form(text):
                raise FormRefusedError
            message = redactor.line(message_in(data) or text)
            source = f"the key in {self._variable}"
            raise failed_status(
                answer.status, message, raw=text, headers=answer.headers, key=source, where=f"{self._where}: "
            )
        if not isinstance(data, dict):
            message = redactor.line(text) or "empty body"
            raise self._malformed(f"found a body that is not a JSON object with distinct keys ({message})", Usage())
        reply = self.dialect.read(data)
        if reply is None:
            message = redactor.line(message_in(data) or "") or "no error message"
            raise self._malformed(f"found a body without a reply ({message})", self.dialect.usage(data))
        probabilities = None
        if request.expected_of is not None:
            probabilities = score_probabilities(self.dialect.tokens(data), request.expected_of)
        return replace(reply, text=without_key(reply.text, key), probabilities=probabilities)

    async def _answer(self, request: JudgeRequest, key: str, redactor: Redactor, *, structured: bool) -> Reply:
        # UTF-8 has no bytes for half a surrogate pair, which a case may hold; ASCII escapes carry it.
        body = self.dialect.body(request, structured=structured, base=self._base)
        content = json.dumps(body, allow_nan=False).encode("ascii")
        headers = self.dialect.headers(key)
        try:
            return await self._exchange.send("POST", headers, redactor, content=content)
        except NoReplyError as error:
            advice = _NO_REPLY_ADVICE.get(error.cause, "check the judge's base_url and the network")
            raise CallError(f"{self._where} {error}", advice, transient=error.transient) from None

    def _malformed(self, what: str, usage: Usage) -> CallError:
        advice = "check that the judge's base_url supports this API"
        return CallError(f"{self._where}: {what}", advice, transient=True, usage=usage)


def _parsed(raw: bytes) -> Any:
    """Return the JSON in a body; ``None`` without valid JSON, or if a key is there twice."""
    try:
        return json.loads(raw, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        return None


_MOST_ALTERNATIVES = 20
"""The most that the interface allows."""

_STOPPED: dict[str, Stopped] = {"length": "length", "content_filter": "refusal"}
_FORM_WORDS = ("response_format", "response format", "json_schema", "schema", "structured", "guided", "grammar")


class OpenAI(Dialect):
    """https://platform.openai.com/docs/api-reference/chat."""

    provider = "openai"
    base_url = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"

    def url(self, base: str) -> str:
        """Return the address to call."""
        return f"{base}/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry a key; servers of one's own often want none."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: JudgeRequest, *, structured: bool, base: str) -> dict[str, Any]:
        """Return what to send; ``response_format`` among the parameters takes precedence over the schema."""
        parameters = dict(request.parameters)
        if base == self.base_url and "max_tokens" in parameters:
            # OpenAI's newer models refuse the old name, which is the only one that other servers know.
            parameters["max_completion_tokens"] = parameters.pop("max_tokens")
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": each.role, "content": each.content} for each in request.messages],
        }
        if request.expected_of is not None:
            body |= {"logprobs": True, "top_logprobs": _MOST_ALTERNATIVES}
        if structured:
            schema = {"name": "verdict", "strict": True, "schema": request.reply_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body | parameters

    def usage(self, data: Mapping[str, Any]) -> Usage:
        """Return the tokens that a reply reports."""
        used = data.get("usage")
        return Usage(count(used, "prompt_tokens"), count(used, "completion_tokens"))

    def read(self, data: Mapping[str, Any]) -> JudgeReply | None:
        """Return the reply of the first choice; ``None`` if there is no choice."""
        match data:
            case {"choices": [{"message": {**message}, **choice}, *_]}:
                refusal = message.get("refusal")
                if isinstance(refusal, str) and refusal:
                    return JudgeReply(plain(refusal), self.usage(data), "refusal")
                stopped = _STOPPED.get(str(choice.get("finish_reason")), "stop")
                return JudgeReply(plain(_text(message.get("content"))), self.usage(data), stopped)
        return None

    def tokens(self, data: Mapping[str, Any]) -> Sequence[TokenChoice]:
        """Return the tokens of the reply with their alternatives; empty where the answer has none."""
        match data:
            case {"choices": [{"logprobs": {"content": [*content]}}, *_]}:
                tokens = [_choice(each) for each in content]
                return [each for each in tokens if each is not None] if None not in tokens else []
        return []

    def refuses_form(self, text: str) -> bool:
        """Return whether a 400 or 422 complains about ``response_format``."""
        return any(word in text.lower() for word in _FORM_WORDS)


def _choice(entry: Any) -> TokenChoice | None:
    """Return a token with its alternatives; ``None`` for anything else."""
    match entry:
        case {"token": str(token), "logprob": float() | int() as logarithm, **rest}:
            top = rest.get("top_logprobs")
            others = (
                [_choice({**each, "top_logprobs": None}) for each in top if isinstance(each, dict)]
                if isinstance(top, list)
                else []
            )
            return TokenChoice(
                token,
                {token: float(logarithm)}
                | {name: value for each in others if each is not None for name, value in each.alternatives.items()},
            )
    return None


def _text(content: Any) -> str:
    """Return the text of a message, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


_MAX_TOKENS = 1024
_TOOL = "verdict"
_STOP_REASONS: dict[str, Stopped] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Anthropic(Dialect):
    """https://docs.anthropic.com/en/api/messages; a reply of a given form is the input of a tool that must be used."""

    provider = "anthropic"
    base_url = "https://api.anthropic.com"
    key_variable = "ANTHROPIC_API_KEY"

    def url(self, base: str) -> str:
        """Return the address to call; both customs, a base with ``/v1`` and one without, are understood."""
        return f"{base.removesuffix('/v1')}/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry a key and the interface's version."""
        version = {"anthropic-version": "2023-06-01"}
        return version | {"x-api-key": key} if key else version

    def body(self, request: JudgeRequest, *, structured: bool, base: str) -> dict[str, Any]:  # noqa: ARG002 (all addresses are alike)
        """Return what to send; the interface demands ``max_tokens``, which is 1024 where the user sets none."""
        system = "\n\n".join(each.content for each in request.messages if each.role == "system")
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": _MAX_TOKENS,
            "messages": [
                {"role": each.role, "content": each.content} for each in request.messages if each.role != "system"
            ],
        }
        if system:
            body["system"] = system
        if structured:
            tool = {"name": _TOOL, "description": "Gives the verdict.", "input_schema": request.reply_schema}
            body |= {"tools": [tool], "tool_choice": {"type": "tool", "name": _TOOL}}
        return body | dict(request.parameters)

    def usage(self, data: Mapping[str, Any]) -> Usage:
        """Return the tokens that a reply reports, including those read from or written to a prompt cache."""
        used = data.get("usage")
        inputs = [each for each in (count(used, name) for name in _INPUT_COUNTS) if each is not None]
        return Usage(sum(inputs) if inputs else None, count(used, "output_tokens"))

    def read(self, data: Mapping[str, Any]) -> JudgeReply | None:
        """Return the tool's input as JSON, or the text; ``None`` if the answer has no list of contents."""
        content = data.get("content")
        if not isinstance(content, list):
            return None
        blocks = [each for each in content if isinstance(each, dict)]
        inputs = [each.get("input") for each in blocks if each.get("type") == "tool_use" and each.get("name") == _TOOL]
        texts = [each["text"] for each in blocks if each.get("type") == "text" and isinstance(each.get("text"), str)]
        text = json.dumps(inputs[0], ensure_ascii=False) if inputs else "".join(texts)
        return JudgeReply(plain(text), self.usage(data), _STOP_REASONS.get(str(data.get("stop_reason")), "stop"))

    def refuses_form(self, text: str) -> bool:
        """Return whether a 400 or 422 complains about the tool."""
        return "tool" in text.lower() or "schema" in text.lower()


DIALECTS: Final[Mapping[str, Dialect]] = {"anthropic": Anthropic(), "openai": OpenAI()}
"""The dialects by the name of the provider."""


_MOST_TEXTS: Final = 128
_MOST_CALLS: Final = 4
"""Calls under way at a time; texts that arrive meanwhile wait, and share the next one."""
_MOST_KEPT: Final = 2048
"""Vectors that are kept: references occur in many cases, and repeats."""


class OpenAIEmbeddings(OpenAI):
    """https://platform.openai.com/docs/api-reference/embeddings; each message of a request is a text."""

    def url(self, base: str) -> str:
        """Return the address to call."""
        return f"{base}/embeddings"

    def body(self, request: JudgeRequest, *, structured: bool, base: str) -> dict[str, Any]:  # noqa: ARG002 (no form)
        """Return what to send."""
        return {"model": request.model, "input": [each.content for each in request.messages], **request.parameters}

    def usage(self, data: Mapping[str, Any]) -> Usage:
        """Return the tokens that an answer reports; none are written."""
        return Usage(count(data.get("usage"), "prompt_tokens"), 0)

    def read(self, data: Mapping[str, Any]) -> JudgeReply | None:
        """Return the vectors in the order of the texts, as JSON; ``None`` if the answer has none."""
        entries = data.get("data")
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            return None
        vectors = {each.get("index"): each.get("embedding") for each in entries}
        ordered = [vectors.get(number) for number in range(len(entries))]
        return JudgeReply(json.dumps(ordered), self.usage(data)) if all(map(_is_vector, ordered)) else None


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(each) in (int, float) and math.isfinite(each) for each in value)
    )


class _Embedded(NamedTuple):
    vector: Sequence[float]
    tokens: int | None


@dataclass
class EmbeddingJudge:
    """Answers how similar two texts are. Texts that arrive while calls are under way share the next one.

    Attributes:
        spec: Which model, and where.
        model: Embeds the texts that are the messages of a request; replies with vectors as JSON.
    """

    spec: JudgeSpec
    model: AsyncJudge
    _embedded: "OrderedDict[str, asyncio.Future[_Embedded]]" = field(default_factory=OrderedDict)
    _waiting: dict[str, JudgeRequest] = field(default_factory=dict)
    _calls: "set[asyncio.Task[None]]" = field(default_factory=set)

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
        known = [each for each in tokens if each is not None]
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
    vectors: list[Sequence[float]] = json.loads(reply)
    if len(vectors) != texts:
        raise JudgeError(f"found {len(vectors)} embeddings of {texts} texts, expected one of each")
    return vectors


def _shares(tokens: int | None, batch: Sequence[str]) -> list[int | None]:
    """Return the tokens of each text of a call, by length; their sum is that of the call."""
    if tokens is None:
        return [None] * len(batch)
    ends = list(accumulate(map(len, batch)))
    upto = [tokens * end // ends[-1] for end in ends]
    return [here - before for before, here in zip([0, *upto], upto, strict=False)]


def _cosine(first: Sequence[float], second: Sequence[float]) -> float:
    lengths = math.hypot(*first), math.hypot(*second)
    if not all(0 < each < math.inf for each in lengths):
        raise JudgeError(
            f"found embeddings of the lengths {lengths[0]:g} and {lengths[1]:g}, expected vectors that have a direction"
        )
    # The sum is exact, so that it does not depend on the machine.
    return math.fsum(a / lengths[0] * (b / lengths[1]) for a, b in zip(first, second, strict=True))
