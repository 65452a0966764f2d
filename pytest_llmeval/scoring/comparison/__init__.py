"""Two runs against each other: pairs, differences, tests."""

__all__ = ()
