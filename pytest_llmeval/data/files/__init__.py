"""Reading text, YAML, JSON and CSV, with the position of each value."""

__all__ = ("looks_like_suite", "top_level_keys")

import re
from json import loads  # the package has a module json
from pathlib import Path

_SUFFIXES = (".yaml", ".yml", ".json")
_READ = 1 << 20
_TOP_LEVEL = re.compile(r"""^["']?(\w+)["']?[ \t]*:""", re.MULTILINE)


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


def top_level_keys(path: Path) -> set[str]:
    """Return the keys at the left margin of a YAML file, or of a JSON object; faults do not matter.

    At most one megabyte is read. Without a mapping, and if the file cannot be read, there are none.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_READ)
    except (OSError, ValueError):
        return set()
    if not text.lstrip().startswith("{"):
        return set(_TOP_LEVEL.findall(text))
    try:
        return set(loads(text))
    except (ValueError, RecursionError):
        return set()


def _json_keys(text: str) -> set[str]:
    # Data files are many and large: only those that can be suites are parsed.
    if '"evaluators"' not in text and '"checks"' not in text:
        return set()
    try:
        return set(loads(text))
    except (ValueError, RecursionError):
        return set()
