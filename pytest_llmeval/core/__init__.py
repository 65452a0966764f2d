"""The terms that everything else is said in: cases, observations, evaluators, results, errors, wording."""

__all__ = ()
