"""Addresses that refused the key of a run: nobody asks them again."""

__all__ = ("Notes", "Refusals", "is_refusal")

from typing import Final, Protocol

from msgspec import Struct

_STATUSES: Final = frozenset({401, 403})


class Notes(Protocol):
    """Texts that the processes of a run share."""

    def get(self, key: str) -> str | None:
        """Return a text."""

    def put(self, key: str, text: str) -> None:
        """Keep a text until the run ends."""


def is_refusal(status: int) -> bool:
    """Return whether a status of HTTP says that the key is wrong or may not do this."""
    return status in _STATUSES


class Refusals(Struct):
    """The refusals of a run.

    Attributes:
        shared: Where the other processes of the run read them; ``None`` where there is one process.
    """

    shared: Notes | None = None
    _known: dict[str, str] = {}

    def get(self, address: str) -> str | None:
        """Return what an address answered when it refused the key, or nothing."""
        if address not in self._known and self.shared is not None:
            text = self.shared.get(_key(address))
            if text is not None:
                self._known[address] = text
        return self._known.get(address)

    def put(self, address: str, text: str) -> None:
        """Note what an address answered; the first text stays, so that all calls fail with the same."""
        if self.get(address) is None:
            self._known[address] = text
            if self.shared is not None:
                self.shared.put(_key(address), text)


def _key(address: str) -> str:
    return f"refused {address}"
