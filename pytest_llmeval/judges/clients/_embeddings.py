"""Models of embeddings."""

import json
import math
from collections.abc import Mapping
from typing import Any

from pytest_llmeval.judges._protocol import JudgeReply, JudgeRequest, Usage
from pytest_llmeval.judges._spec import JudgeSpec
from pytest_llmeval.judges.clients._base import count
from pytest_llmeval.judges.clients._http import OpenAI


class OpenAIEmbeddings(OpenAI):
    """The embeddings interface of OpenAI: https://platform.openai.com/docs/api-reference/embeddings.

    Each message of a request is a text.
    """

    def url(self, base: str, spec: JudgeSpec) -> str:  # noqa: ARG002 (the body names the model)
        """Return the address to call."""
        return f"{base}/embeddings"

    def body(self, request: JudgeRequest, *, structured: bool, base: str) -> dict[str, Any]:  # noqa: ARG002 (no form)
        """The body to send; `structured` asks for a reply that follows the request's schema."""
        return {
            "model": request.model,
            "input": [message.content for message in request.messages],
            **request.parameters,
        }

    def usage(self, data: Mapping[str, Any]) -> Usage:
        """Return the tokens that an answer reports; none are written."""
        return Usage(count(data.get("usage"), "prompt_tokens"), 0)

    def read(self, data: Mapping[str, Any]) -> JudgeReply | None:
        """Return the vectors in the order of the texts, as JSON; ``None`` if the answer has none."""
        entries = data.get("data")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            return None
        vectors = {entry.get("index"): entry.get("embedding") for entry in entries}
        ordered = [vectors.get(number) for number in range(len(entries))]
        return JudgeReply(json.dumps(ordered), self.usage(data)) if all(map(_is_vector, ordered)) else None


def _is_vector(value: Any) -> bool:
    """Whether a value in an embedding model's reply is a vector of finite numbers."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(number) in (int, float) and math.isfinite(number) for number in value)
    )
