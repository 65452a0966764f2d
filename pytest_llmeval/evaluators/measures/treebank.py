"""Treebank word tokens, equal to NLTK's, with each whitespace-separated chunk tokenized once per process."""

__all__ = ("treebank_tokens",)

import re
from functools import cache, lru_cache
from itertools import chain
from typing import Any

_CLOSERS = "]})>\"'»”’ \n\t\r"
"""What NLTK allows between the final period of a text and its end."""

_UNUSUAL_SPACE = re.compile(r"""[^\S \n\t\r]|[\n\t\r]["']|["'][\n\t\r]""")
"""White space that is more than a separator: NLTK's quote rules ask for a plain space, and some characters
separate words for `str.split` but are no ``\\s`` of NLTK's."""

_WORD = r"""(["(]?)([a-z0-9]+(?:-[a-z0-9]+)*?)"""
_CLITIC = r"n't|'(?:s|m|d|ll|re|ve)"
_SIMPLE_INNER = re.compile(rf"""{_WORD}({_CLITIC}|\.)?([,:;!?)"]*)""")
_SIMPLE_LAST = re.compile(rf"""{_WORD}({_CLITIC})?([,:;!?)"]*\.?[)"]*)""")
"""Shapes whose tokens are plain to see; they spare most words the full tokenizer."""

_CONTRACTED = frozenset({"cannot", "gimme", "gonna", "gotta", "lemme", "wanna"})


def treebank_tokens(text: str) -> list[str]:
    """Return the tokens of ``nltk.word_tokenize(text, preserve_line=True)`` for a lower-cased text.

    NLTK's rules look at most one character beyond a word, with two exceptions: quotes at the start of the text,
    and the final period, which may be followed by closing quotes and brackets. So a text is a first chunk, inner
    chunks and a last part; each is tokenised between neutral neighbours and remembered.

    Args:
        text: A text in lower case.

    Returns:
        The tokens, in order.
    """
    body = text.rstrip(_CLOSERS)
    if not body or not (text.isprintable() or _UNUSUAL_SPACE.search(text) is None):
        return list(_whole(text))
    chunks = body.split()
    last = chunks.pop() + text[len(body) :]
    if not chunks:
        return list(_whole(text) if text[0].isspace() else _only(last))
    first = _first(chunks.pop(0)) if text[0] in "\"'" else ()
    return [*first, *chain.from_iterable(map(_inner, chunks)), *_last(last)]


@cache
def _tokenizer() -> Any:
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()


def _whole(text: str) -> tuple[str, ...]:
    return tuple(_tokenizer().tokenize(text))


@lru_cache(maxsize=1 << 12)
def _only(text: str) -> tuple[str, ...]:
    return _simple(_SIMPLE_LAST, text) or _whole(text)


@lru_cache(maxsize=1 << 12)
def _first(chunk: str) -> tuple[str, ...]:
    return _simple(_SIMPLE_INNER, chunk) or _whole(chunk + " x")[:-1]


@lru_cache(maxsize=1 << 15)
def _inner(chunk: str) -> tuple[str, ...]:
    return _simple(_SIMPLE_INNER, chunk) or _whole(f"x {chunk} x")[1:-1]


@lru_cache(maxsize=1 << 12)
def _last(chunk: str) -> tuple[str, ...]:
    return _simple(_SIMPLE_LAST, chunk) or _whole("x " + chunk)[1:]


def _simple(shape: re.Pattern[str], chunk: str) -> tuple[str, ...]:
    """Return the tokens of a word with its clitic and punctuation; nothing where a further rule may apply."""
    match = shape.fullmatch(chunk)
    if match is None:
        return ()
    opening, word, clitic, closing = match.groups()
    if not _CONTRACTED.isdisjoint(word.split("-")):
        return ()
    tokens = ["``" if opening == '"' else opening, word + "." if clitic == "." else word]
    tokens.append("" if clitic == "." else clitic or "")
    tokens += ["''" if mark == '"' else mark for mark in closing]
    return tuple(filter(None, tokens))
