"""Foreign text made fit to be shown: without keys, on one line, short."""

__all__ = ("mask", "presentable", "shown_url", "without_key")

import os
import re
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

MASK = "***"
_LONGEST = 300
_EXAMINED = 4000
_SHORTEST_SECRET = 3
_SHORTEST_PART = 8
_SHORTEST_KEY = 16
_SECRET_VARIABLE = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
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
            of environment variables such as ``OPENAI_API_KEY`` are known anyway.
    """
    for secret in secrets:
        for part in _parts(secret):
            text = text.replace(part, MASK)
    for secret in _environment_secrets():
        text = text.replace(secret, MASK)
    return _LOOKS_SECRET.sub(MASK, text)


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


def shown_url(url: str) -> str:
    """Return an address without user, password, query and fragment.

    Example:
        >>> shown_url("http://me:secret@host:81/v1?key=1")
        'http://host:81/v1'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _environment_secrets() -> Iterator[str]:
    for name, value in sorted(os.environ.items()):
        if _SECRET_VARIABLE.search(name) and len(value.strip()) >= _SHORTEST_PART:
            yield value.strip()


def _parts(secret: str) -> Iterator[str]:
    """Yield a secret, then its beginnings and ends, the longest first."""
    if len(secret) < _SHORTEST_SECRET:
        return
    yield secret
    for length in range(len(secret) - 1, _SHORTEST_PART - 1, -1):
        yield secret[:length]
        yield secret[-length:]
