"""Evaluation systems, one folder each; they join the kernel as a plugin of a user does."""

__all__ = ()
