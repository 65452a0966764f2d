"""Words of evidence, without those that carry none."""

__all__ = ("Tokenizer", "content_words", "paired_words", "split_words")

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from pytest_llmeval.data.labels import load_taxonomy
from pytest_llmeval.evaluators.measures.scripts import is_east_asian, separate_east_asian

Tokenizer: TypeAlias = Literal["auto", "words"]

_WORD = re.compile(r"\w+")
_FUNCTION_WORDS = "a an and are as at but by for from in is of on or the to was were with"
_STOP_WORDS = frozenset([*_FUNCTION_WORDS.split(), "according", "based", "reported", "said", "stated"])
_EAST_ASIAN_STOP_WORDS = _STOP_WORDS | frozenset("的了和与及或在是为于由从对等也并而其该此这那有年月日据称说")


def split_words(lower: str, tokenizer: Tokenizer) -> list[str]:
    """Return the words of a text in small letters; with ``auto`` every East Asian character is one."""
    if tokenizer == "words" or lower.isascii():
        return _WORD.findall(lower)
    return _WORD.findall(separate_east_asian(lower, keep_marks=False))


def content_words(words: Sequence[str], tokenizer: Tokenizer) -> frozenset[str]:
    """Return the words that are no stop words."""
    return frozenset(words) - (_STOP_WORDS if tokenizer == "words" else _EAST_ASIAN_STOP_WORDS)


def paired_words(words: Sequence[str], tokenizer: Tokenizer) -> frozenset[str]:
    """Return the words that are no stop words, with each two neighbouring East Asian characters as one.

    Single characters are shared by unlike names: 新华社 and 新浪 have a third of theirs in common.
    """
    if tokenizer == "words":
        return content_words(words, tokenizer)
    found: set[str] = set()
    before = after = False
    for place, word in enumerate(words):
        before, alone = after, not is_east_asian(word)
        after = place + 1 < len(words) and not alone and is_east_asian(words[place + 1])
        if after:
            found.add(word + words[place + 1])
        elif not before:
            found.add(word)
    return frozenset(found) - _EAST_ASIAN_STOP_WORDS - frozenset(load_taxonomy("citations")["zh"]["stop_words"])
