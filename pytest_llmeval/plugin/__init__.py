"""The pytest plugin. The only package that imports pytest."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.plugin._collected_session import CollectedSession
    from pytest_llmeval.plugin._evaluate import Evaluate, TestScored
    from pytest_llmeval.plugin._extensions import CaseChooser, PlanReport, RunWatcher

_HOMES = {
    "_collected_session": ("CollectedSession",),
    "_evaluate": (
        "Evaluate",
        "TestScored",
    ),
    "_extensions": (
        "CaseChooser",
        "PlanReport",
        "RunWatcher",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
