"""Targets: Python functions, HTTP services, and commands that exchange JSON lines."""

__all__ = ()
