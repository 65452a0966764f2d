"""The suite file: what it may say, how it is checked and loaded, which evaluators and sources there are."""

__all__ = ()
