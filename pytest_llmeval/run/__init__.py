"""One case from job to result, without pytest."""

__all__ = ()
