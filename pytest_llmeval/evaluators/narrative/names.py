"""Names of characters: when two are equal, and whom a relationship means by one."""

__all__ = ("Resolver", "name_key", "nearest", "split_names")

import re
import unicodedata
from collections.abc import Iterable

_SEPARATOR = re.compile("[;；]")


def name_key(name: str) -> str:
    """Return what equal names have in common: NFKC, case folded, trimmed, white space joined.

    >>> name_key("  Ｍｅｎｇ　 Jiang ")
    'meng jiang'
    """
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def split_names(text: str) -> list[str]:
    """Split a text at ``;`` and ``；`` into trimmed names, blank ones left out."""
    return [name for part in _SEPARATOR.split(text) if (name := part.strip())]


def nearest(key: str, others: Iterable[str], least: float) -> str | None:
    """Return the first of the keys most like `key`; ``None`` if none is at least so like it.

    Likeness is that of rapidfuzz's ``fuzz.ratio``: twice the longest common subsequence over both lengths.

    Args:
        key: From `name_key`.
        others: From `name_key`.
        least: In (0, 1].
    """
    from rapidfuzz import fuzz, process

    found = process.extractOne(key, others, scorer=fuzz.ratio, score_cutoff=100 * least)
    return None if found is None else found[0]


class Resolver:
    """Tells whom a name means. Names that nobody owns mean themselves."""

    def __init__(self, fuzzy: float | None = None) -> None:
        self._fuzzy = fuzzy
        self._owner: dict[str, str] = {}
        self._guessed: dict[str, str] = {}

    def add(self, key: str, owner: str) -> None:
        """Let a name mean `owner`, unless it means somebody already."""
        self._owner.setdefault(key, owner)

    def __call__(self, key: str) -> str:
        """Return the owner of a name, or with `fuzzy` of the name most like it."""
        if key in self._owner or self._fuzzy is None:
            return self._owner.get(key, key)
        if key not in self._guessed:
            near = nearest(key, self._owner, self._fuzzy)
            self._guessed[key] = key if near is None else self._owner[near]
        return self._guessed[key]
