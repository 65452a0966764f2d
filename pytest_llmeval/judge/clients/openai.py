"""The chat completions API of OpenAI and compatible servers (vLLM, Ollama, llama.cpp, proxies)."""

__all__ = ("OpenAI",)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.judge.clients.base import count, plain_text
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Stopped, Usage
from pytest_llmeval.judge.questions.probabilities import TokenChoice

_MOST_ALTERNATIVES = 20
"""As many as the interface allows."""

_STOPPED: dict[str, Stopped] = {"length": "length", "content_filter": "refusal"}
_FORM_WORDS = ("response_format", "response format", "json_schema", "schema", "structured", "guided", "grammar")


@dataclass(frozen=True)
class OpenAI:
    """https://platform.openai.com/docs/api-reference/chat."""

    provider: str = "openai"
    base_url: str = "https://api.openai.com/v1"
    key_variable: str = "OPENAI_API_KEY"

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
                    return JudgeReply(plain_text(refusal), self.usage(data), "refusal")
                stopped = _STOPPED.get(str(choice.get("finish_reason")), "stop")
                return JudgeReply(plain_text(_text(message.get("content"))), self.usage(data), stopped)
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
