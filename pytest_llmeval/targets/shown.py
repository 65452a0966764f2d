"""What other processes wrote, as it is shown in reasons: without secrets, short, on one line."""

__all__ = ("Shown", "kind")

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pytest_llmeval.secrecy import spelt, without

_LONGEST: Final = 300


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
