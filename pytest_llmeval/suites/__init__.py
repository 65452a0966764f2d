"""The suite file."""

__all__ = ("SuitePatterns", "left_alone")

import re
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.suites._keys import KEYS
    from pytest_llmeval.suites._loading import ForeignFileError, SuiteMemo, is_foreign, load_suite
    from pytest_llmeval.suites._reading import SuiteReading
    from pytest_llmeval.suites._registry import Command, Key, Registry, get_evaluator, register_tokenizer
    from pytest_llmeval.suites._schema import suite_schema
    from pytest_llmeval.suites._settings import (
        ConversationSpec,
        SimulatedUser,
        SnapshotSettings,
        Tolerance,
    )
    from pytest_llmeval.suites._suite import LoadedSuite, SuiteKey

_NAMED = 5


class SuitePatterns(tuple[str, ...]):
    """Patterns of the names of suite files; as the setting ``llmeval_files`` has them, or those that ship."""

    SHIPPED: "ClassVar[SuitePatterns]"
    """The patterns without a setting."""

    def match(self, name: str) -> bool:
        """Whether a file of this name is a suite file."""
        return any(fnmatch(name, pattern) for pattern in self)

    def hint(self, path: str) -> str:
        """The fault in the name of a file that looks like a suite but is none, and the right name.

        Args:
            path: The file, as it is shown.
        """
        name = Path(path).name
        remedy = ""
        if self == SuitePatterns.SHIPPED:
            stem, suffix = Path(name).stem, Path(name).suffix.lower()
            bare = re.sub(r"(?:(?<![\W_])[\W_]++|(?<=[a-z])(?=E))(?i:eval(?:uation)?s?)$", "", stem)
            remedy = f". Rename it to {bare or stem}.eval{suffix}"
        return (
            f"{path} looks like an eval suite, but is not collected: its name matches none of {', '.join(self)}{remedy}"
        )

    def none_below(self, place: object) -> str:
        """The message on a folder without suite files, with the command that writes one."""
        return f"no {' or '.join(self[:1])} below {place}; `llmeval init` writes one"


SuitePatterns.SHIPPED = SuitePatterns(
    f"*.{kind}.{language}" for kind in ("eval", "llmeval") for language in ("yaml", "yml", "json")
)


def left_alone(files: Sequence[str]) -> str:
    """The message on files with the name of a suite file that seem to belong to other tools."""
    count = "1 file looks like that" if len(files) == 1 else f"{len(files)} files look like those"
    which = "of another tool and was" if len(files) == 1 else "of other tools and were"
    names = ", ".join([*files[:_NAMED], *(["..."] if len(files) > _NAMED else [])])
    return f"{count} {which} left alone: {names} (the setting llmeval_files names the files of suites)"


_HOMES = {
    "_keys": ("KEYS",),
    "_loading": ("SuiteMemo", "ForeignFileError", "is_foreign", "load_suite"),
    "_registry": ("Command", "Key", "Registry", "get_evaluator", "register_tokenizer"),
    "_schema": ("suite_schema",),
    "_settings": ("ConversationSpec", "SimulatedUser", "SnapshotSettings", "Tolerance"),
    "_reading": ("SuiteReading",),
    "_suite": ("LoadedSuite", "SuiteKey"),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
