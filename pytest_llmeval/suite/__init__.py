"""The suite file: keys, validation, loading, and the registry of evaluators and sources.

It also recognises files that look like suites although their names are not those of suites.
"""

__all__ = ("SUITE_FILES", "from_file", "looks_like_suite", "naming_hint", "no_suite")

import json
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_llmeval.core import CallablePackage

SUITE_FILES = ("*.eval.yaml", "*.eval.yml", "*.eval.json")
"""Patterns of the names of suite files."""

_SUFFIXES = (".yaml", ".yml", ".json")
_READ = 1 << 20
_TOP_LEVEL = re.compile(r"""^["']?(\w+)["']?[ \t]*:""", re.MULTILINE)
_EVALUATION = re.compile(r"(?:[\W_]+|(?<=[a-z])(?=E))(?i:eval(?:uation)?s?)$")
_DECLARED = "pytest_llmeval.run.declared"

CallablePackage.make(__name__, f"{_DECLARED}:DeclaredSuite")


def from_file(path: Any) -> Any:
    """Return the suite of a file, relative to the file that calls; see `pytest_llmeval.run.declared`."""
    return import_module(_DECLARED).DeclaredSuite.from_file(path)


def looks_like_suite(path: Path) -> bool:
    """Return whether a YAML or JSON file has the keys of a suite: what to score, and how; faults do not matter.

    At most one megabyte is read, so that folders full of data stay cheap.
    """
    if path.suffix.lower() not in _SUFFIXES:
        return False
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_READ)
    except (OSError, ValueError):
        return False
    keys = _json_keys(text) if text.lstrip().startswith("{") else set(_TOP_LEVEL.findall(text))
    return not keys.isdisjoint({"cases", "source"}) and not keys.isdisjoint({"evaluators", "checks"})


def _json_keys(text: str) -> set[str]:
    # Data files are many and large: only those that can be suites are parsed.
    if '"evaluators"' not in text and '"checks"' not in text:
        return set()
    try:
        return set(json.loads(text))
    except (ValueError, RecursionError):
        return set()


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
