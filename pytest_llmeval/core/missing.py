"""What stands for a value that was not given."""

__all__ = ("MISSING", "Missing")

from enum import Enum
from typing import Final


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING
"""Stands for a prediction that was not given; ``None`` is a prediction of null."""
