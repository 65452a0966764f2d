"""Treebank word tokens, equal to NLTK's, with each whitespace-separated chunk tokenized once per process."""

__all__ = ("treebank_tokens",)

import re
from collections.abc import Callable
from functools import cache, lru_cache, partial

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

_RULES = (
    ('^"', " `` "),
    ("[«“‘„]|`{1,2}", r" \g<0> "),
    (r"""([ ([{<])(?:"|'')""", r"\1 `` "),
    (r"(?i)(?<!\w)'(?!(?:re|ve|ll|[mtsdn])\b)(?=\w)", "' "),
    (r"""([^.])\.([])}>"'»”’ ]*+)\s*$""", r"\1 . \2 "),
    (r"([:,])(\D|$)", r" \1 \2"),
    (r"\.{2,}|[;@#$%&?!‒–—―]", r" \g<0> "),
    (r"([^'])' ", r"\1 ' "),
    (r"--|''|[][(){}<>*»”’]", r" \g<0> "),
    ('"', " '' "),
    (r"^|\s+|$", " "),
    (r"([^' ])('[smd]?) ", r"\1 \2 "),
    (r"([^' ])('(?:ll|re|ve)|n't) ", r"\1 \2 "),
)
"""What sets tokens apart: the rules of NLTK 3.10 in its order, those that cannot interact joined; `import nltk` takes
seconds, since it loads `scipy.stats`, and scikit-learn where that is installed.

They are for `regex`, as NLTK's are: to `re`, a combining mark is no part of a word, and U+001C is white space.
"""
_CONTRACTIONS = (
    (
        r"\b(can(?=not\b)|d(?='ye\b)|gim(?=me\b)|gon(?=na\b)|got(?=ta\b)|lem(?=me\b)|more(?='n\b)|wan(?=na\s))('?\w+)",
        r" \1 \2 ",
    ),
    (r" ('t)(is|was)\b", r" \1 \2 "),
)
"""The last rules, which NLTK gives to `re`."""


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
    tokens = list(first)
    for chunk in chunks:
        if _is_plain(chunk):
            tokens.append(chunk)  # half of the time of remembering it, where words are met for the first time
        else:
            tokens += _inner(chunk)
    tokens += _last(last)
    return tokens


@cache
def _compiled() -> tuple[Callable[[str], str], ...]:
    import regex

    rules = [partial(regex.compile(pattern).sub, replacement) for pattern, replacement in _RULES]
    contractions = [partial(re.compile(pattern, re.IGNORECASE).sub, by) for pattern, by in _CONTRACTIONS]
    return (*rules, *contractions)


def _whole(text: str) -> tuple[str, ...]:
    for separate in _compiled():
        text = separate(text)
    return tuple(text.split())


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


def _is_plain(chunk: str) -> bool:
    return chunk.isalnum() and chunk.isascii() and chunk not in _CONTRACTED


def _simple(shape: re.Pattern[str], chunk: str) -> tuple[str, ...]:
    """Return the tokens of a word with its clitic and punctuation; nothing where a further rule may apply."""
    if _is_plain(chunk):
        return (chunk,)
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
