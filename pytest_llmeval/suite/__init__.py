"""The suite file: keys, validation, loading, and the registry of evaluators and sources."""

__all__ = ("SUITE_FILES",)

SUITE_FILES = ("*.eval.yaml", "*.eval.yml", "*.eval.json")
"""Patterns of the names of suite files."""
