"""Tokenizers: splitting text into the words that F1, ROUGE, BLEU and METEOR count."""

__all__ = ("Tokenizer", "get_tokenizer", "porter_stem", "register_tokenizer")

import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.evaluators.measures.scripts import separate_east_asian, unicode_words
from pytest_llmeval.evaluators.measures.stems import stem
from pytest_llmeval.evaluators.measures.treebank import treebank_tokens

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
