"""Judges behind HTTP."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from msgspec.structs import replace

from pytest_llmeval.core import JudgeError
from pytest_llmeval.data import JsonText
from pytest_llmeval.judges._protocol import JudgeReply, JudgeRequest, Message, Stopped, Usage, sent_tokens
from pytest_llmeval.judges._spec import JudgeSpec
from pytest_llmeval.judges.clients._base import (
    FORM_REFUSED,
    TOO_SLOW,
    BatchFailure,
    CallError,
    Dialect,
    FormRefusedError,
    Patience,
    count,
    failed_status,
    message_in,
)
from pytest_llmeval.judges.clients._gemini import Gemini
from pytest_llmeval.judges.clients._media_parts import anthropic_content, anthropic_media, check_media, openai_content
from pytest_llmeval.judges.questions._replies import TokenChoice, plain, score_probabilities
from pytest_llmeval.services import AttemptError, Exchange, Redactor, Secrets, ServiceAddress

LARGEST_REPLY: Final = 10 << 20
_NO_REPLY_ADVICE: Final = {"slow": TOO_SLOW, "too large": "check the judge's base_url"}


@dataclass
class HttpJudge:
    """A judge client that asks a model over HTTP.

    Attributes:
        spec: Which model, and where.
        dialect: How it is talked to.
        patience: How often a call is tried.
    """

    spec: JudgeSpec
    dialect: Dialect
    patience: Patience

    def __post_init__(self) -> None:
        url = self.dialect.url(self._base, self.spec)
        self._where = ServiceAddress(url).redacted
        self._address = ServiceAddress(url).note(self._variable)
        self._exchange = Exchange(url, timeout=self.spec.timeout, largest=LARGEST_REPLY)

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        """Return the model's reply; ``stopped`` marks one that was refused or truncated.

        Raises:
            JudgeError: There is none: the key is missing, the server refused the call, or no attempt succeeded.
        """
        check_media(self.spec, request)
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
        is_own = self.spec.base_url is not None and not self.dialect.needs_key
        if not key and (not is_own or self.spec.api_key_env is not None):
            raise JudgeError(
                f"{self.dialect.provider}: the environment variable {self._variable} is missing: set it to the key of "
                f"the judge {self.spec.model}, or replay recorded verdicts"
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
        # UTF-8 has no bytes for half a surrogate pair, which a case may hold; ASCII escapes carry it.
        body = self.dialect.body(request, structured=structured, base=self._base)
        content = json.dumps(body, allow_nan=False).encode("ascii")
        with self._as_call_errors():
            answer = await self._exchange.send("POST", self.dialect.headers(key), redactor, content=content)
        data = parse_body(answer.body)
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
            raise self._malformed_reply(
                f"found a body that is not a JSON object with distinct keys ({message})", Usage()
            )
        reply = self.dialect.read(data)
        if reply is None:
            message = redactor.line(message_in(data) or "") or "no error message"
            raise self._malformed_reply(f"found a body without a reply ({message})", self.dialect.usage(data))
        probabilities = None
        if request.expected_of is not None:
            probabilities = score_probabilities(self.dialect.tokens(data), request.expected_of)
        return replace(reply, text=Secrets.of_key(key).without(reply.text), probabilities=probabilities)

    @contextmanager
    def _as_call_errors(self) -> Iterator[None]:
        """Raise the error of a request that gets no reply with advice for users."""
        try:
            yield
        except AttemptError as error:
            advice = _NO_REPLY_ADVICE.get(error.cause, "check the judge's base_url and the network")
            raise CallError(f"{self._where} {error}", advice, transient=error.transient) from None

    def _malformed_reply(self, what: str, usage: Usage) -> CallError:
        advice = "check that the judge's base_url supports this API"
        return CallError(f"{self._where}: {what}", advice, transient=True, usage=usage)


def connect(spec: JudgeSpec, patience: Patience) -> HttpJudge:
    """Return the judge client of a provider that speaks one of `DIALECTS`."""
    return HttpJudge(spec, DIALECTS[spec.provider or ""], patience)


def parse_body(raw: bytes) -> Any:
    """Return the JSON body of a provider's reply; ``None`` if it is not valid JSON or has a key twice."""
    try:
        return JsonText(raw).load()
    except (ValueError, RecursionError):
        return None


_GOOD, _REDIRECTS = 200, 300
_MOST_ALTERNATIVES = 20
"""The most that the interface allows."""

_STOPPED: dict[str, Stopped] = {"length": "length", "content_filter": "refusal"}
_FORM_WORDS = ("response_format", "response format", "json_schema", "schema", "structured", "guided", "grammar")


class OpenAI(Dialect):
    """The chat interface of OpenAI for judge calls: https://platform.openai.com/docs/api-reference/chat."""

    provider = "openai"
    base_url = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"

    def url(self, base: str, spec: JudgeSpec) -> str:  # noqa: ARG002 (the body names the model)
        """Return the address to call."""
        return f"{base}/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry a key; servers of one's own often want none."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: JudgeRequest, *, structured: bool, base: str) -> dict[str, Any]:
        """The body to send; ``response_format`` among the parameters takes precedence over the schema."""
        parameters = dict(request.parameters)
        if self.renames_tokens(base) and "max_tokens" in parameters:
            # OpenAI's newer models refuse the old name, which is the only one that other servers know.
            parameters["max_completion_tokens"] = parameters.pop("max_tokens")
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": message.role, "content": openai_content(message)} for message in request.messages],
        }
        if request.expected_of is not None:
            body |= {"logprobs": True, "top_logprobs": _MOST_ALTERNATIVES}
        if structured:
            schema = {"name": "verdict", "strict": True, "schema": request.reply_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body | parameters

    def renames_tokens(self, base: str) -> bool:
        """Whether the interface at an address has the newer name of ``max_tokens``."""
        return base == self.base_url

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
                text, stopped = _text(message.get("content")), _STOPPED.get(str(choice.get("finish_reason")), "stop")
                if not text.strip() and stopped == "stop":
                    text, stopped = _beside_content(message)
                return JudgeReply(plain(text), self.usage(data), stopped)
        return None

    def tokens(self, data: Mapping[str, Any]) -> Sequence[TokenChoice]:
        """Return the tokens of the reply with their alternatives; empty where the answer has none."""
        match data:
            case {"choices": [{"logprobs": {"content": [*content]}}, *_]}:
                tokens = [_choice(entry) for entry in content]
                return [token for token in tokens if token is not None] if None not in tokens else []
        return []

    def refuses_form(self, text: str) -> bool:
        """Whether a 400 or 422 complains about ``response_format``."""
        return any(word in text.lower() for word in _FORM_WORDS)

    def batch_line(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a line of https://platform.openai.com/docs/api-reference/batch/request-input."""
        return {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": dict(body)}

    def batch_body(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the body in a line of https://platform.openai.com/docs/api-reference/batch/request-output."""
        match line:
            case {"response": {"status_code": int() as status, "body": dict() as body}} if _GOOD <= status < _REDIRECTS:
                return body
            case {"response": {"status_code": int() as status, **response}}:
                raise BatchFailure(f"status {status}: {message_in(response.get('body')) or 'no error message'}")
            case {"error": {**error}}:
                raise BatchFailure(f"{error.get('code')}: {message_in(error) or 'no error message'}")
        raise BatchFailure("the line has neither response nor error")


class Azure(OpenAI):
    """Deployments of OpenAI models on Azure: https://learn.microsoft.com/azure/ai-services/openai/reference."""

    provider = "azure"
    base_url = ""
    key_variable = "AZURE_OPENAI_API_KEY"
    needs_key = True

    def url(self, base: str, spec: JudgeSpec) -> str:
        """Return the address of a deployment; a base with ``/openai`` and one without are understood."""
        deployment, version = quote(spec.name, safe=""), spec.api_version or _AZURE_VERSION
        host = base.removesuffix("/openai")
        return f"{host}/openai/deployments/{deployment}/chat/completions?api-version={version}"

    def headers(self, key: str) -> dict[str, str]:
        """Return the header that carries a key."""
        return {"api-key": key}

    def renames_tokens(self, base: str) -> bool:  # noqa: ARG002 (all addresses are alike)
        """Return that all versions from the default one on have the newer name."""
        return True

    def batch_line(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a line of https://learn.microsoft.com/azure/ai-services/openai/how-to/batch."""
        return {**super().batch_line(name, body), "url": "/chat/completions"}


_AZURE_VERSION: Final = "2024-10-21"


def _choice(entry: Any) -> TokenChoice | None:
    """Return a token of an OpenAI reply with its alternatives; ``None`` for anything else."""
    match entry:
        case {"token": str(token), "logprob": float() | int() as logarithm, **rest}:
            top = rest.get("top_logprobs")
            others = (
                [_choice({**other, "top_logprobs": None}) for other in top if isinstance(other, dict)]
                if isinstance(top, list)
                else []
            )
            return TokenChoice(
                token,
                {token: float(logarithm)}
                | {name: value for other in others if other is not None for name, value in other.alternatives.items()},
            )
    return None


def _text(content: Any) -> str:
    """Return the text of an OpenAI message, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


_THOUGHTS: Final = ("reasoning_content", "reasoning")


def _beside_content(message: Mapping[Any, Any]) -> tuple[str, Stopped]:
    """The content of an OpenAI message without text: the call of a tool, or thoughts."""
    match message:
        case {"tool_calls": [{"function": {**function}}, *_]} | {"function_call": {**function}} if function:
            return f"{function.get('name')}({function.get('arguments')})", "tool"
    thoughts = next((text for name in _THOUGHTS if (text := _text(message.get(name)))), "")
    return (thoughts, "thoughts") if thoughts else ("", "stop")


_MAX_TOKENS = 1024
_SMALLEST_PREFIX = 1024
"""Tokens; models with a larger minimum ignore the mark. https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching."""
_TOOL = "verdict"
_STOP_REASONS: dict[str, Stopped] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Anthropic(Dialect):
    """The messages interface of Anthropic for judge calls: https://docs.anthropic.com/en/api/messages.

    A reply of a given form is the input of a tool that must be used.
    """

    provider = "anthropic"
    base_url = "https://api.anthropic.com"
    key_variable = "ANTHROPIC_API_KEY"

    def url(self, base: str, spec: JudgeSpec) -> str:  # noqa: ARG002 (as above)
        """Return the address to call; both customs, a base with ``/v1`` and one without, are understood."""
        return f"{base.removesuffix('/v1')}/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry a key and the interface's version."""
        version = {"anthropic-version": "2023-06-01"}
        return version | {"x-api-key": key} if key else version

    def body(self, request: JudgeRequest, *, structured: bool, base: str) -> dict[str, Any]:  # noqa: ARG002 (all addresses are alike)
        """The body to send; the address names the model.

        The interface demands ``max_tokens``, which is 1024 where the user sets none. What other calls begin with
        as well is marked for the prefix cache where it is long enough to be kept there.
        """
        system = Message(
            "system", "\n\n".join(message.content for message in request.messages if message.role == "system")
        )
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": _MAX_TOKENS,
            "messages": [
                {"role": message.role, "content": _blocks(system, message)}
                for message in request.messages
                if message.role != "system"
            ],
        }
        if system.content:
            body["system"] = system.content
        if structured:
            tool = {"name": _TOOL, "description": "Gives the verdict.", "input_schema": request.reply_schema}
            body |= {"tools": [tool], "tool_choice": {"type": "tool", "name": _TOOL}}
        return body | dict(request.parameters)

    def usage(self, data: Mapping[str, Any]) -> Usage:
        """Return the tokens that a reply reports, including those read from or written to a prompt cache."""
        used = data.get("usage")
        inputs = [number for number in (count(used, name) for name in _INPUT_COUNTS) if number is not None]
        return Usage(sum(inputs) if inputs else None, count(used, "output_tokens"))

    def read(self, data: Mapping[str, Any]) -> JudgeReply | None:
        """Return the tool's input as JSON, or the text; ``None`` if the answer has no list of contents."""
        content = data.get("content")
        if not isinstance(content, list):
            return None
        blocks = [block for block in content if isinstance(block, dict)]
        inputs = [
            block.get("input") for block in blocks if block.get("type") == "tool_use" and block.get("name") == _TOOL
        ]
        texts = [
            block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)
        ]
        text = json.dumps(inputs[0], ensure_ascii=False) if inputs else "".join(texts)
        stopped = _STOP_REASONS.get(str(data.get("stop_reason")), "stop")
        if not text.strip() and stopped == "stop":
            text, stopped = _beside_text(blocks)
        return JudgeReply(plain(text), self.usage(data), stopped)

    def refuses_form(self, text: str) -> bool:
        """Whether a 400 or 422 complains about the tool."""
        return "tool" in text.lower() or "schema" in text.lower()

    def batch_line(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request of https://docs.anthropic.com/en/api/creating-message-batches."""
        return {"custom_id": name, "params": dict(body)}

    def batch_body(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the message in a line of https://docs.anthropic.com/en/api/retrieving-message-batch-results."""
        match line:
            case {"result": {"type": "succeeded", "message": dict() as body}}:
                return body
            case {"result": {"type": str() as kind, **result}}:
                why = message_in(result.get("error"))
                raise BatchFailure(f"{kind}: {why}" if why else kind)
        raise BatchFailure("the line has no result")


def _blocks(system: Message, message: Message) -> str | list[dict[str, Any]]:
    """Return the content of a message for Anthropic, in two blocks where its shared beginning can be cached."""
    first = message.content[: message.shared]
    if not first or sent_tokens((system, Message(message.role, first))) < _SMALLEST_PREFIX:
        return anthropic_content(message)
    return [
        {"type": "text", "text": first, "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": message.content[message.shared :]},
        *anthropic_media(message),
    ]


def _beside_text(blocks: Sequence[Mapping[str, Any]]) -> tuple[str, Stopped]:
    """The content of an Anthropic reply without text: the call of another tool, or thoughts."""
    for block in blocks:
        if block.get("type") == "tool_use":
            return f"{block.get('name')}({json.dumps(block.get('input'), ensure_ascii=False)})", "tool"
    thoughts = "".join(str(block.get("thinking", "")) for block in blocks if block.get("type") == "thinking")
    return (thoughts, "thoughts") if thoughts else ("", "stop")


DIALECTS: Final[Mapping[str, Dialect]] = {
    "anthropic": Anthropic(),
    "azure": Azure(),
    "gemini": Gemini(),
    "openai": OpenAI(),
}
"""The dialects by the name of the provider."""
