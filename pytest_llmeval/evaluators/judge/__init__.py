"""Evaluators that ask a judge, and the one that compares a judge with people."""

__all__ = ()
