"""The suite file."""

__all__ = ("SUITE_FILES", "left_alone", "no_suite")

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    from pytest_llmeval.suites._suite import LoadedSuite, StopGroup, SuiteKey

SUITE_FILES = (
    *("*.eval.yaml", "*.eval.yml", "*.eval.json"),
    *("*.llmeval.yaml", "*.llmeval.yml", "*.llmeval.json"),
)
"""Patterns of the names of suite files."""

_NAMED = 5


def no_suite(place: object, patterns: Sequence[str] = SUITE_FILES) -> str:
    """The message on a folder without suite files, with the command that writes one."""
    return f"no {' or '.join(patterns[:1])} below {place}; `llmeval init` writes one"


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
    "_suite": ("StopGroup", "LoadedSuite", "SuiteKey"),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
