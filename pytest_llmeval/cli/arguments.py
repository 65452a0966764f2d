"""Numbers on the command line of ``llmeval``."""

__all__ = ("drop", "share")

from argparse import ArgumentTypeError


def share(text: str) -> float:
    """Read a number between 0 and 1."""
    value = _number(text)
    if not 0 < value < 1:
        raise ArgumentTypeError(f"found {text!r}, expected a number between 0 and 1, such as 0.95")
    return value


def drop(text: str) -> float:
    """Read a number of at least 0."""
    value = _number(text)
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"found {text!r}, expected a number of at least 0")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"found {text!r}, expected a number") from None
