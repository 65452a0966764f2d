"""Messages about a name that does not exist: what there is, and what was probably meant."""

__all__ = ("suggest", "unknown_name")

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 80
_SHORT = 4


def suggest(word: str, options: Iterable[str]) -> str:
    """Return `` (did you mean 'f1'?)`` for the option most like `word`, or an empty text if none is like it.

    Upper and lower case count as alike. Words of more than 80 characters get no suggestion.
    """
    if len(word) > _LONGEST:
        return ""
    spelled = {option.lower(): option for option in sorted(options, reverse=True)}
    # Of a short name one letter is much: f2 and f1 are half alike.
    cutoff = 0.5 if len(word) <= _SHORT else 0.6
    near = get_close_matches(word.lower(), sorted(spelled), n=1, cutoff=cutoff)
    return f" (did you mean {spelled[near[0]]!r}?)" if near else ""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that a name does not exist, what exists, and what was probably meant.

    Example:
        >>> unknown_name("tokenizer", "word", ["auto", "words"])
        "found the unknown tokenizer 'word', expected one of auto, words (did you mean 'words'?)"
    """
    options = sorted(known)
    return f"found the unknown {kind} {name!r}, expected one of {', '.join(options)}{suggest(name, options)}"
