"""Targets."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.targets._network import connect_target
    from pytest_llmeval.targets._python import PythonTarget, Target, World
    from pytest_llmeval.targets._recordings import (
        RecordingMode,
        Recordings,
    )
    from pytest_llmeval.targets._spec import BatchTarget, TargetSpec

_HOMES = {
    "_network": ("connect_target",),
    "_python": (
        "PythonTarget",
        "Target",
        "World",
    ),
    "_recordings": (
        "RecordingMode",
        "Recordings",
    ),
    "_spec": (
        "BatchTarget",
        "TargetSpec",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
