"""Score snapshots: what a suite scored when somebody approved it, and how a run compares with that."""

__all__ = ()
