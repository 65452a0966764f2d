"""Foreign text made fit to be shown: without keys, on one line, short."""

__all__ = ("mask", "presentable", "without_key")

import os
import re
from collections.abc import Iterator

from pytest_llmeval.secrecy import MASK, SHORTEST_PART, environment_secrets, spelt, without

_LONGEST = 300
_EXAMINED = 4000
_SHORTEST_KEY = 16
_LOOKS_SECRET = re.compile(
    r"""(?ix)
    \b(?:bearer|basic)\s+[\w.~+/=*-]{8,}            # an Authorization header
    | (?<=://)[^\s@]++(?=@)                        # user and password of an address, such as a proxy's
    | \b(?:sk|pk|rk|xai|gsk|hf|ghp|key)[-_][\w*.-]{8,}   # keys of the usual providers
    | \bAIza[\w-]{20,}
    | \beyJ[\w-]+\.[\w-]+\.[\w-]*                   # a JSON Web Token
    | (?<![\w-])[\w-]*+(?:\*{3,}|\.{3}|\u2026)[\w*.-]{2,}  # a key whose middle was left out
    """
)


def mask(text: str, *secrets: str) -> str:
    """Replace keys, and what looks like one, by ``***``.

    Args:
        text: From a server or an exception.
        secrets: Known keys, of which beginnings and ends of eight characters and more are replaced, too. The values
            of environment variables with names such as ``OPENAI_API_KEY`` are known anyway.
    """
    known = spelt([*secrets, *environment_secrets(os.environ)])
    ends = {end for secret in secrets for end in _ends(secret)}
    return _LOOKS_SECRET.sub(MASK, without(text, known | ends))


def presentable(text: str, *secrets: str) -> str:
    """Return text of a server or an exception for a message: masked, printable, on one line, at most 300 characters.

    Example:
        >>> presentable("Incorrect key:   sk-abcdefghijkl")
        'Incorrect key: ***'
    """
    # Cut only after masking: half a key would not be recognized.
    masked = mask(text[:_EXAMINED], *secrets)
    line = " ".join("".join(each if each.isprintable() else " " for each in masked).split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."


def without_key(text: str, key: str) -> str:
    """Return a reply without the key that was sent for it, which a bad server may send back.

    A reply is kept and recorded, so nothing else in it is touched, nor is a word such as ``ollama`` taken for a key.

    Example:
        >>> without_key("yes, 0123456789abcdef", "0123456789abcdef"), without_key("yes, ollama", "ollama")
        ('yes, ***', 'yes, ollama')
    """
    return text.replace(key, MASK) if len(key) >= _SHORTEST_KEY else text


def _ends(secret: str) -> Iterator[str]:
    """Yield the beginnings and ends of a secret, which servers show to tell keys apart."""
    for length in range(SHORTEST_PART, len(secret)):
        yield secret[:length]
        yield secret[-length:]
