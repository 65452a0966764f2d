"""Configurations and results of promptfoo."""

__all__ = ()
