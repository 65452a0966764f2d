"""What is secret by its name, and text without secrets: the same rules for judges and for targets."""

__all__ = ("MASK", "SHORTEST_PART", "environment_secrets", "is_secret_name", "spelt", "variable_fault", "without")

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final
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
    return f"found no name of an environment variable, expected one such as {example}"


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
