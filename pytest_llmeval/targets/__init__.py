"""Targets in other processes: services over HTTP, and commands that speak JSON lines."""

__all__ = ()
