"""From observations to metrics, intervals, limits and gates."""

__all__ = ()
