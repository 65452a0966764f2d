"""Case retrieval: ranked results against gold lists and attributes."""

__all__ = ()
