"""The vocabulary of the package: cases, observations, evaluators, results, errors, wording."""

__all__ = ()
