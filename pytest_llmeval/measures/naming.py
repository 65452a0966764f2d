"""Messages about a name that does not exist."""

__all__ = ("unknown_name",)

from collections.abc import Iterable
from difflib import get_close_matches


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that a name does not exist, what exists, and what was probably meant.

    Example:
        >>> unknown_name("tokenizer", "word", ["auto", "words"])
        "unknown tokenizer 'word': expected one of auto, words (did you mean 'words'?)"
    """
    options = sorted(known)
    close = get_close_matches(name, options, n=1, cutoff=0.5)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"unknown {kind} {name!r}: expected one of {', '.join(options)}{hint}"
