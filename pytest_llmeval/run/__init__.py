"""Running cases and judging finished runs, without pytest."""

__all__ = ()
