"""The suite file: what it may say, how it is checked and loaded, which evaluators and sources there are."""

__all__ = ("SUITE_FILES",)

SUITE_FILES = ("*.eval.yaml", "*.eval.yml", "*.eval.json")
"""How the names of suite files end."""
