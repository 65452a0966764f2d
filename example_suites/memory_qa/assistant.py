"""A tiny memory assistant: it quotes the sentence that shares most words with the question."""

__all__ = ("answer",)

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

REFUSAL = "Not mentioned in the conversation."
FILLER = frozenset(
    ["a", "did", "do", "does", "how", "is", "of", "the", "to", "what", "where", "which", "who", "的", "是"]
)


def answer(case_input: Mapping[str, Any]) -> str:
    """Answer a question about a conversation.

    Args:
        case_input: ``conversation``, a list of turns such as ``2024-05-04 Wen: Hello!``, and ``question``.

    Returns:
        A sentence of the conversation, the latest where several fit equally well; a refusal where none fits.
    """
    asked = words(case_input["question"])
    best, most_shared = REFUSAL, 1
    for sentence in sentences(case_input["conversation"]):
        shared = len(asked & words(sentence))
        if shared >= most_shared:
            best, most_shared = sentence, shared
    return best


def sentences(conversation: Sequence[str]) -> Iterator[str]:
    """Yield the sentences that were said, without date and speaker."""
    for turn in conversation:
        said = re.split("[:：]", turn, maxsplit=1)[-1]
        yield from filter(None, map(str.strip, re.split(r"(?<=[.!?])\s+|(?<=[。！？])", said)))


def words(text: str) -> set[str]:
    """Return the words of a text that carry meaning; every Chinese character is a word."""
    return set(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower())) - FILLER
