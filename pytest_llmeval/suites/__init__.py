"""The suite file."""

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
    from pytest_llmeval.suites._suite import LoadedSuite, SuiteKey

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
