"""What other processes wrote, as it is shown in reasons: without secrets, short, on one line."""

__all__ = ("Shown", "kind", "secrets_of")

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

_LONGEST: Final = 300
_SHORTEST_PART: Final = 8
_MASK: Final = "***"
_TELLING: Final = ("KEY", "PASSWORD", "PASSWD", "SECRET", "TOKEN")


class Shown:
    """Makes foreign text fit for a reason.

    Args:
        secrets: What must never be shown, neither whole nor in its words, such as the token of ``Bearer ...``.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        parts: set[str] = set()
        for secret in filter(None, map(str.strip, secrets)):
            parts |= {secret, *(word for word in secret.split() if len(word) >= _SHORTEST_PART)}
        spelt = {form for part in parts for form in (part, json.dumps(part)[1:-1], quote(part), quote(part, safe=""))}
        self._secrets = sorted(spelt, key=lambda each: (-len(each), each))

    def masked(self, text: str) -> str:
        """Return the text with every secret replaced."""
        for secret in self._secrets:
            text = text.replace(secret, _MASK)
        return text

    def excerpt(self, content: bytes | str, *, end: bool = False) -> str:
        """Return the beginning, or the end, of what was written, quoted; secrets go before it is cut."""
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        text = self.masked(text).strip()
        if len(text) > _LONGEST:
            text = "..." + text[-_LONGEST:] if end else text[:_LONGEST] + "..."
        return repr(text)


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """Return the values of environment variables whose names say that they are secret, longer than a few characters."""
    return [
        value
        for name, value in environment.items()
        if any(word in name.upper() for word in _TELLING) and len(value) >= _SHORTEST_PART
    ]


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
