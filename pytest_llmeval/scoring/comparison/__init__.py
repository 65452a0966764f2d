"""Comparison of two runs: pairs, differences, tests."""

__all__ = ()
