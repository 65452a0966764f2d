"""Judges with an HTTP API: one call, its attempts and its failures."""

__all__ = ("HttpJudge",)

import json
import os
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.data.files.json import unique_keys
from pytest_llmeval.judge.clients.attempts import TOO_SLOW, CallError, Patience, failed_status, message_in
from pytest_llmeval.judge.clients.base import Dialect
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Usage
from pytest_llmeval.judge.questions.probabilities import score_probabilities
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.services.http import Exchange, NoReplyError, Reply
from pytest_llmeval.services.secrets import Redactor, address_of, redacted_url, without_key

_LARGEST_REPLY: Final = 10 << 20
_FORM_REFUSED = (400, 422)
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
    _refused_forms: set[str] = field(default_factory=set)

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
        if request.reply_schema is not None and self.spec.structured == "auto" and not self._refuses(request):
            try:
                return await self.patience.persist(lambda: self._attempt(request, structured=True), self._address)
            except _FormRefusedError:
                self._refused_forms.add(_form(request))
        return await self.patience.persist(lambda: self._attempt(request, structured=False), self._address)

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        await self._exchange.aclose()

    def _refuses(self, request: JudgeRequest) -> bool:
        """Return whether the server has refused to enforce the form of the reply."""
        return bool(self._refused_forms) and _form(request) in self._refused_forms

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
            if structured and answer.status in _FORM_REFUSED and self.dialect.refuses_form(text):
                raise _FormRefusedError
            said = redactor.line(message_in(data) or text)
            source = f"the key in {self._variable}"
            raise failed_status(
                answer.status, said, raw=text, headers=answer.headers, key=source, where=f"{self._where}: "
            )
        if not isinstance(data, dict):
            said = redactor.line(text) or "empty body"
            raise self._malformed(f"found a body that is not a JSON object with distinct keys ({said})", Usage())
        reply = self.dialect.read(data)
        if reply is None:
            said = redactor.line(message_in(data) or "") or "no error message"
            raise self._malformed(f"found a body without a reply ({said})", self.dialect.usage(data))
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


def _form(request: JudgeRequest) -> str:
    return json.dumps(request.reply_schema, sort_keys=True)


class _FormRefusedError(Exception):
    """The server will not enforce the form of the reply."""


def _parsed(raw: bytes) -> Any:
    """Return the JSON in a body; ``None`` where there is none, or one with a key twice."""
    try:
        return json.loads(raw, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        return None
