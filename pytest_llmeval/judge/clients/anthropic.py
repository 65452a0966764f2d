"""Anthropic's messages API."""

__all__ = ("Anthropic",)

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.judge.clients.base import count, plain_text
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Stopped, Usage
from pytest_llmeval.judge.questions.probabilities import TokenChoice

_MAX_TOKENS = 1024
_TOOL = "verdict"
_STOPPED: dict[str, Stopped] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True)
class Anthropic:
    """https://docs.anthropic.com/en/api/messages; a reply of a given form is the input of a tool that must be used."""

    provider: str = "anthropic"
    base_url: str = "https://api.anthropic.com"
    key_variable: str = "ANTHROPIC_API_KEY"

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
        return JudgeReply(plain_text(text), self.usage(data), _STOPPED.get(str(data.get("stop_reason")), "stop"))

    def tokens(self, data: Mapping[str, Any]) -> Sequence[TokenChoice]:  # noqa: ARG002 (the interface has none)
        """Return nothing: the interface gives no probabilities."""
        return []

    def refuses_form(self, text: str) -> bool:
        """Return whether a 400 or 422 complains about the tool."""
        return "tool" in text.lower() or "schema" in text.lower()
