"""The pytest plugin. The only package that imports pytest."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.plugin._evaluate import Evaluate, TestScored
    from pytest_llmeval.plugin._extensions import CaseChooser, PlanReport, RunWatcher
    from pytest_llmeval.plugin._payload import LOADER, case_of
    from pytest_llmeval.plugin._pytest_private import fixture_functions
    from pytest_llmeval.plugin._session import planned_cases

_HOMES = {
    "_evaluate": (
        "Evaluate",
        "TestScored",
    ),
    "_payload": (
        "LOADER",
        "case_of",
    ),
    "_pytest_private": ("fixture_functions",),
    "_session": ("planned_cases",),
    "_extensions": (
        "CaseChooser",
        "PlanReport",
        "RunWatcher",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
