"""Checks: assertions on one answer, written as data."""

__all__ = ()
