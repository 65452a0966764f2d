"""Markers for values that are absent."""

__all__ = ("ITSELF", "MISSING", "Itself", "Missing", "NoAnswer")

from enum import Enum
from typing import Final

from msgspec import Struct


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING
"""Stands for a prediction that was not given; ``None`` is a prediction of null."""


class Itself(Enum):
    """The type of `ITSELF`."""

    ITSELF = "itself"

    def __repr__(self) -> str:
        return "ITSELF"


ITSELF: Final = Itself.ITSELF
"""Stands among the answers of others for the system that is measured."""


class NoAnswer(Struct, frozen=True):
    """Stands among the answers of others for one that is not there.

    Attributes:
        reason: Why not.
    """

    reason: str
