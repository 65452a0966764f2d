"""Foreign text made fit to be shown: without keys, on one line, short."""

__all__ = (
    "MASK",
    "SHORTEST_PART",
    "Shown",
    "environment_secrets",
    "is_secret_name",
    "kind",
    "mask",
    "presentable",
    "spelt",
    "variable_fault",
    "without",
    "without_key",
)

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

MASK: Final = "***"
SHORTEST_PART: Final = 8
"""A shorter part of a secret tells nothing, and may be a word of its own."""

_SHORTEST_SECRET: Final = 3
_TELLING: Final = ("KEY", "PASSWORD", "PASSWD", "SECRET", "TOKEN")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAMES: Final = frozenset(
    {
        *("accesstoken", "apikey", "apisecret", "authorization", "authtoken", "bearer", "bearertoken", "clientsecret"),
        *("cookie", "credentials", "password", "proxyauthorization", "secret", "secretkey", "token"),
        *("xapikey", "xauthtoken"),
    }
)


def is_secret_name(name: str) -> bool:
    """Return whether a header or a parameter of this name holds a secret, however it is spelt.

    Example:
        >>> is_secret_name("X-Api-Key"), is_secret_name("max_tokens")
        (True, False)
    """
    return re.sub(r"[\W_]", "", name.lower()) in _SECRET_NAMES


def variable_fault(name: str, example: str) -> str | None:
    """Return what is wrong with the name of an environment variable that holds a secret.

    What was found is not repeated: it may be the secret itself.
    """
    if _VARIABLE.fullmatch(name):
        return None
    return f"found an invalid name of an environment variable, expected one such as {example}"


def environment_secrets(environment: Mapping[str, str]) -> list[str]:
    """Return the values of variables whose names hold KEY, TOKEN, SECRET or PASSWORD, of 8 characters and more."""
    values = ((name.upper(), value.strip()) for name, value in sorted(environment.items()))
    return [value for name, value in values if len(value) >= SHORTEST_PART and any(word in name for word in _TELLING)]


def spelt(secrets: Iterable[str]) -> frozenset[str]:
    """Return secrets, and their words such as the token of ``Bearer ...``, as they stand in text, JSON and URLs."""
    parts: set[str] = set()
    for secret in map(str.strip, secrets):
        if len(secret) >= _SHORTEST_SECRET:
            parts |= {secret, *(word for word in secret.split() if len(word) >= SHORTEST_PART)}
    forms = ((part, json.dumps(part)[1:-1], quote(part), quote(part, safe="")) for part in parts)
    return frozenset(form for each in forms for form in each)


def without(text: str, secrets: Iterable[str]) -> str:
    """Return text with ``***`` in place of secrets, the longest first: one may begin as another does."""
    for secret in sorted(secrets, key=lambda each: (-len(each), each)):
        text = text.replace(secret, MASK)
    return text


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


class Shown:
    """Makes foreign text fit for a reason.

    Args:
        secrets: What must never be shown, neither whole nor in its words, such as the token of ``Bearer ...``.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = spelt(secrets)

    def masked(self, text: str) -> str:
        """Return the text with every secret replaced."""
        return without(text, self._secrets)

    def excerpt(self, content: bytes | str, *, end: bool = False) -> str:
        """Return the beginning, or the end, of what was written, quoted; secrets go before it is cut."""
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        text = self.masked(text).strip()
        if len(text) > _LONGEST:
            text = "..." + text[-_LONGEST:] if end else text[:_LONGEST] + "..."
        return repr(text)


def kind(value: Any) -> str:
    """Say of what kind JSON data is, without its content."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text" if value else "an empty text"
        case Mapping():
            return f"an object with {', '.join(map(repr, list(value)[:3]))}" if value else "an empty object"
        case _:
            return f"a list of {len(value)}"
