"""Words in any script: East Asian characters become words of their own."""

__all__ = ("is_east_asian", "separate_east_asian", "unicode_words")

import re
import unicodedata
from functools import cache, lru_cache

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
