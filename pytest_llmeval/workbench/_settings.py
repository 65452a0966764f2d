"""Files of a pull request that pytest or Python finds by their names and that change what is run and judged."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from pytest_llmeval.core import listed
from pytest_llmeval.workbench._loosening import Loosening
from pytest_llmeval.workbench._project import SETTINGS_FILES, settings_of
from pytest_llmeval.workbench._test_code import text_of

_BEFORE_OTHERS: Final = frozenset(
    {
        *("sitecustomize", "usercustomize", "pytest", "pluggy"),
        *("llmeval", "pytest_llmeval", "pytest_llmeval_suite"),
    }
)
"""Modules that Python imports before the project's, or in which answers are judged."""

_REQUIREMENT: Final = re.compile(r"pytest[-_.]llmeval[-_.]suite\b(?:\"\nversion\b)?[^\n]*")
"""A requirement of this package; in a lock file, its version is in the next line."""

_LISTS: Final = ("*.toml", "*.lock", "*.txt", "*.in", "setup.cfg")
"""Files with the packages that a project requires."""


def compare_settings(base: Path, head: Path, changed: Iterable[str]) -> Iterator[Loosening]:
    """Yield settings of runs with a path below them, modules that hide others, and changed versions of this package.

    Settings of the folder itself are compared by what they let pytest collect.

    Args:
        base: The earlier state.
        head: The later state.
        changed: Names of files that differ.
    """
    for name in changed:
        path = PurePosixPath(name)
        if path.name in SETTINGS_FILES and len(path.parts) > 1 and settings_of(base / name) != settings_of(head / name):
            yield Loosening(name, 0, "settings of pytest", "changed for runs that name a path below")
        is_first = (
            path.name.endswith((".py", ".pth"))
            and {name.lstrip("_") for name in (*path.parts, path.stem)} & _BEFORE_OTHERS
        )
        if (is_first or path.suffix == ".pth") and (head / name).exists() and not (base / name).exists():
            yield Loosening(name, 0, "module", "new, and comes before that of another")
        if any(map(path.match, _LISTS)):
            before, after = (listed(_REQUIREMENT.findall(text_of(side / name))) for side in (base, head))
            if before and before != after:
                yield Loosening(name, 0, "requirement of this package", "changed", before, after)
