"""The interface of Gemini."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from pytest_llmeval.judges._protocol import JudgeReply, JudgeRequest, Stopped, Usage
from pytest_llmeval.judges._spec import JudgeSpec
from pytest_llmeval.judges.clients._base import BatchFailure, Dialect, count, message_in
from pytest_llmeval.judges.clients._media_parts import gemini_parts
from pytest_llmeval.judges.questions._replies import plain

_ROLES: Final = {"assistant": "model"}
_PARAMETERS: Final = {"max_tokens": "maxOutputTokens"}
_FORM_WORDS: Final = ("schema", "response_mime_type", "responsemimetype")
_REFUSED: Final = ("BLOCKLIST", "PROHIBITED_CONTENT", "RECITATION", "SAFETY", "SPII")
_STOPPED: Final[Mapping[str, Stopped]] = {"MAX_TOKENS": "length", **dict.fromkeys(_REFUSED, "refusal")}


class Gemini(Dialect):
    """Google's Gemini interface for judge calls: https://ai.google.dev/api/generate-content.

    The parameters of a request are its ``generationConfig``.
    """

    provider = "gemini"
    base_url = "https://generativelanguage.googleapis.com/v1beta"
    key_variable = "GEMINI_API_KEY"

    def url(self, base: str, spec: JudgeSpec) -> str:
        """Return the address to call."""
        return f"{base}/models/{quote(spec.name, safe='')}:generateContent"

    def headers(self, key: str) -> dict[str, str]:
        """Return the header that carries a key."""
        return {"x-goog-api-key": key} if key else {}

    def body(self, request: JudgeRequest, *, structured: bool, base: str) -> dict[str, Any]:  # noqa: ARG002 (all addresses are alike)
        """The body to send; the address names the model."""
        system = "\n\n".join(message.content for message in request.messages if message.role == "system")
        body: dict[str, Any] = {
            "contents": [
                {"role": _ROLES.get(message.role, message.role), "parts": gemini_parts(message)}
                for message in request.messages
                if message.role != "system"
            ]
        }
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        config: dict[str, Any] = {}
        if structured:
            config = {"responseMimeType": "application/json", "responseJsonSchema": request.reply_schema}
        config |= {_PARAMETERS.get(name, name): value for name, value in request.parameters.items()}
        return {**body, "generationConfig": config} if config else body

    def usage(self, data: Mapping[str, Any]) -> Usage:
        """Return the tokens that a reply reports; those of thoughts count as written."""
        used = data.get("usageMetadata")
        written = [count(used, name) for name in ("candidatesTokenCount", "thoughtsTokenCount")]
        known = [number for number in written if number is not None]
        return Usage(count(used, "promptTokenCount"), sum(known) if known else None)

    def read(self, data: Mapping[str, Any]) -> JudgeReply | None:
        """Return the reply of the first candidate, or why the question was refused; ``None`` if there is neither."""
        match data:
            case {"candidates": [{**candidate}, *_]}:
                content = candidate.get("content")
                listed = content.get("parts") if isinstance(content, dict) else None
                parts = [part for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []
                stopped = _STOPPED.get(str(candidate.get("finishReason")), "stop")
                text = _text(parts, thoughts=False)
                if not text.strip() and stopped == "stop":
                    text, stopped = _beside_text(parts)
                return JudgeReply(plain(text), self.usage(data), stopped)
            case {"promptFeedback": {"blockReason": str(reason)}}:
                return JudgeReply(reason, self.usage(data), "refusal")
        return None

    def refuses_form(self, text: str) -> bool:
        """Whether a 400 complains about the schema of the reply."""
        return any(word in text.lower() for word in _FORM_WORDS)

    def batch_line(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a line of the input file of https://ai.google.dev/gemini-api/docs/batch-api."""
        return {"key": name, "request": dict(body)}

    def batch_body(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the response in a line of the result file of https://ai.google.dev/gemini-api/docs/batch-api."""
        match line:
            case {"response": dict() as body} if body:
                return body
            case {"error": {**error}}:
                raise BatchFailure(f"status {error.get('code')}: {message_in(error) or 'no error message'}")
        raise BatchFailure("the line has neither response nor error")


def _text(parts: list[dict[str, Any]], *, thoughts: bool) -> str:
    """Return the text of a Gemini reply's parts, either the thoughts or the answer."""
    return "".join(
        part["text"] for part in parts if isinstance(part.get("text"), str) and bool(part.get("thought")) is thoughts
    )


def _beside_text(parts: list[dict[str, Any]]) -> tuple[str, Stopped]:
    """The content of a Gemini reply without text: the call of a tool, or thoughts."""
    for part in parts:
        match part:
            case {"functionCall": {**function}}:
                return f"{function.get('name')}({function.get('args')})", "tool"
    thoughts = _text(parts, thoughts=True)
    return (thoughts, "thoughts") if thoughts else ("", "stop")
