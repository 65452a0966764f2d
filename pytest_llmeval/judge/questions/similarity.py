"""Similarity of embeddings as a question: two texts, and the cosine of their vectors as reply."""

__all__ = ("SIMILARITY", "read_similarity", "similarity_reply", "similarity_texts")

import json
from typing import Any, Final

from pytest_llmeval.judge.contract import JudgeRequest, Mode, Verdict
from pytest_llmeval.judge.questions.render import DATA_CLOSE, DATA_OPEN
from pytest_llmeval.judge.questions.replies import closing_object, unreadable

_FIELDS: Final = ("answer", "reference")
_DIGITS: Final = 6
_KEY: Final = "similarity"


def similarity_texts(request: JudgeRequest) -> tuple[str, str]:
    """Return the two texts of a request."""
    data = json.loads(request.messages[-1].content.removeprefix(DATA_OPEN).removesuffix(DATA_CLOSE))
    return data["answer"], data["reference"]


def similarity_reply(cosine: float) -> str:
    """Return the reply that a cosine is."""
    return json.dumps({_KEY: round(min(1.0, max(-1.0, cosine)), _DIGITS)})


def read_similarity(reply: str) -> Verdict:
    """Read a JSON object with a ``similarity`` from -1 to 1.

    Raises:
        JudgeError: There is none.
    """
    value: Any = closing_object(reply).get(_KEY)
    if type(value) not in (int, float) or not -1 <= value <= 1:
        raise unreadable(reply, f"found {value!r} as similarity, expected a number from -1 to 1")
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
