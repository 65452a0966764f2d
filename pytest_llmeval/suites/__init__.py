"""The suite file: keys, validation, loading, and the registry of evaluators and sources.

It also says how files are named that look like suites although their names are not those of suites.
"""

__all__ = ("SUITE_FILES", "naming_hint", "no_suite")

import re
from collections.abc import Sequence
from pathlib import Path

SUITE_FILES = ("*.eval.yaml", "*.eval.yml", "*.eval.json")
"""Patterns of the names of suite files."""

_EVALUATION = re.compile(r"(?:[\W_]+|(?<=[a-z])(?=E))(?i:eval(?:uation)?s?)$")


def no_suite(place: object, patterns: Sequence[str] = SUITE_FILES) -> str:
    """Return what is missing in a folder without suite files."""
    return f"no {' or '.join(patterns[:1])} below {place}; `llmeval init` writes one"


def naming_hint(path: str, patterns: Sequence[str]) -> str:
    """Return what is wrong with the name of a file that looks like a suite, and how to name it.

    Args:
        path: The file, as it is shown.
        patterns: Those that names of suites match.
    """
    name = Path(path).name
    remedy = ""
    if tuple(patterns) == SUITE_FILES:
        stem, suffix = Path(name).stem, Path(name).suffix.lower()
        remedy = f". Rename it to {_EVALUATION.sub('', stem) or stem}.eval{suffix}"
    names = ", ".join(patterns)
    return f"{path} looks like an eval suite, but is not collected: its name matches none of {names}{remedy}"
