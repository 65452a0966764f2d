"""Conversational-memory QA: LoCoMo, LongMemEval, and functions for programs with their own loop."""

__all__ = ()
