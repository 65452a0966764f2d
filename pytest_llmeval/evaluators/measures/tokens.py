"""Tokenizers: the words that F1, ROUGE, BLEU and METEOR count, in any script; Treebank's equal NLTK's."""

__all__ = (
    "Tokenizer",
    "get_tokenizer",
    "is_east_asian",
    "porter_stem",
    "register_tokenizer",
    "separate_east_asian",
    "treebank_tokens",
    "unicode_words",
)

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import TypeAlias

from msgspec import Struct

from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.evaluators.measures.stems import stem

_CHARACTERS = (
    "["
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U000323af"  # Han, supplementary planes
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"  # Kana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "]"
)
_MARKS = (
    r"\"'()\[\]{}<>:;\u00ab\u00bb\u00b7\u2010-\u2015\u2018-\u201f\u2039\u203a"
    r"\u3001-\u3003\u3008-\u3011\u3014-\u301f\u3030\u303d\u30fb"
)
_VARIATION_SELECTORS = range(0xFE00, 0xFE10)
_ZERO_WIDTH_SPACE = 0x200B


@cache
def _character() -> re.Pattern[str]:
    """Return what matches one character; texts in other scripts need not wait until it is compiled."""
    return re.compile(_CHARACTERS)


@cache
def _mark() -> re.Pattern[str]:
    """Return what matches punctuation of East Asian text, unless it is between two letters or digits (``12:30``)."""
    return re.compile(rf"(?<![^\W_])[{_MARKS}]|[{_MARKS}](?![^\W_])")


def is_east_asian(character: str) -> bool:
    """Return whether a character is Han, Kana, Bopomofo or Hangul."""
    return not character.isascii() and _character().match(character) is not None


@lru_cache(maxsize=256)
def separate_east_asian(text: str, *, keep_marks: bool) -> str:
    """Normalise a text (NFKC) and put spaces round every Han, Kana and Hangul character.

    In a text that has such characters, quotes, brackets, dashes and colons are set apart as well, because no
    spaces separate them from adjacent words.

    Args:
        text: Any text.
        keep_marks: Whether those marks stay, as words of their own, or become spaces.

    Returns:
        The text, ready for a tokenizer that splits at spaces.
    """
    text = unicodedata.normalize("NFKC", text)
    if text.isascii() or not _character().search(text):
        return text
    text = _character().sub(r" \g<0> ", text)
    return _mark().sub(r" \g<0> " if keep_marks else " ", text)


class _WordTable(dict[int, int | str | None]):
    """For `str.translate`: letters, digits and their marks stay, invisible characters go, the rest is a space."""

    def __missing__(self, code: int) -> int | str | None:
        value = self[code] = self._replacement(code)
        return value

    @staticmethod
    def _replacement(code: int) -> int | str | None:
        category = unicodedata.category(chr(code))
        if code in _VARIATION_SELECTORS or (category == "Cf" and code != _ZERO_WIDTH_SPACE):
            return None
        return code if chr(code).isalnum() or category.startswith("M") else " "


_WORD_TABLE = _WordTable()


def unicode_words(text: str) -> list[str]:
    """Return the runs of letters and digits of any script, with the combining marks that belong to them.

    Zero-width joiners, soft hyphens and variation selectors are dropped; a zero-width space separates.
    """
    return [word for word in text.translate(_WORD_TABLE).split() if any(map(str.isalnum, word))]


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


Split: TypeAlias = Callable[[str], Sequence[str]]

_SENTENCE_MARKS = str.maketrans(".,!?", "    ")
_ROUGE_LETTERS = "".join(
    character if character.islower() or character.isdigit() else " " for character in map(chr, range(128))
)
"""A table for `str.translate`: what is no lower-case ASCII letter or digit becomes a space."""
_STEMMED_ABOVE = 3
"""Characters up to which rouge-score leaves a word unstemmed."""


class Tokenizer(Struct, frozen=True):
    """The word rule of each metric.

    Attributes:
        name: As in options and signatures.
        f1: Words of token F1.
        rouge: Words of ROUGE.
        bleu: Words of BLEU.
        meteor: Words of METEOR.
        stems: Whether the words of ROUGE are Porter stems.
    """

    name: str
    f1: Split
    rouge: Split
    bleu: Split
    meteor: Split
    stems: bool = False


def register_tokenizer(name: str, function: Split) -> None:
    """Make a function available as the option ``tokenizer`` of text evaluators.

    Args:
        name: How options call it.
        function: Text to words; all metrics count the same words, unstemmed.

    Raises:
        ValueError: If another tokenizer has that name.
    """
    tokenizer = Tokenizer(name, function, function, function, function)
    if _TOKENIZERS.setdefault(name, tokenizer) != tokenizer:
        raise ValueError(f"tokenizer {name!r} exists already: choose another name")


def get_tokenizer(name: str) -> Tokenizer:
    """Return a tokenizer by name.

    The names are ``auto``, ``words``, ``characters``, ``whitespace`` and the registered ones.

    Raises:
        ValueError: If there is none of that name.
    """
    try:
        return _TOKENIZERS[name]
    except KeyError:
        raise ValueError(unknown_name("tokenizer", name, _TOKENIZERS)) from None


@lru_cache(maxsize=1 << 16)
def porter_stem(word: str) -> str:
    """Return the stem that rouge-score uses: Porter's (1980, with NLTK's extensions) above 3 characters."""
    return stem(word) if len(word) > _STEMMED_ABOVE else word


def _f1_words(text: str) -> list[str]:
    return text.translate(_SENTENCE_MARKS).lower().split()


def _rouge_words(text: str) -> list[str]:
    text = text.lower()
    if not text.isascii():
        text = text.encode("ascii", "replace").decode("ascii")
    return list(map(porter_stem, text.translate(_ROUGE_LETTERS).split()))


def _bleu_words(text: str) -> list[str]:
    return treebank_tokens(text.lower())


def _auto_f1(text: str) -> list[str]:
    return _f1_words(text if text.isascii() else separate_east_asian(text, keep_marks=False))


def _auto_rouge(text: str) -> list[str]:
    if text.isascii():
        return _rouge_words(text)
    words = unicode_words(separate_east_asian(text, keep_marks=False).lower())
    return [porter_stem(word) if word.isascii() else word for word in words]


def _auto_bleu(text: str) -> list[str]:
    return _bleu_words(text if text.isascii() else separate_east_asian(text, keep_marks=True))


def _auto_meteor(text: str) -> list[str]:
    return (text if text.isascii() else separate_east_asian(text, keep_marks=True)).split()


def _characters(text: str) -> list[str]:
    return list("".join(unicodedata.normalize("NFKC", text).lower().split()))


def _whitespace(text: str) -> list[str]:
    return text.lower().split()


_TOKENIZERS = {
    "auto": Tokenizer("auto", _auto_f1, _auto_rouge, _auto_bleu, _auto_meteor, stems=True),
    "words": Tokenizer("words", _f1_words, _rouge_words, _bleu_words, str.split, stems=True),
}
register_tokenizer("characters", _characters)
register_tokenizer("whitespace", _whitespace)
