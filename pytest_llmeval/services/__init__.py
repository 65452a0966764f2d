"""Access to the outside world."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.services._background import (
        Activity,
        Background,
        OwnThread,
        Pending,
        SharedTask,
        Snapshot,
        Stopwatch,
        ThisThread,
        UsersLoop,
        calls_that_fit,
        caught,
        in_thread,
        together,
    )
    from pytest_llmeval.services._git import GitError, run_git
    from pytest_llmeval.services._http import Exchange
    from pytest_llmeval.services._media_parts import MEDIA_FORMS
    from pytest_llmeval.services._processes import Program
    from pytest_llmeval.services._retrying import AttemptError, RunCalls
    from pytest_llmeval.services._secrets import FaultSources, Redactor, Secrets, ServiceAddress
    from pytest_llmeval.services._uses import UseRecord

_HOMES = {
    "_background": (
        "Activity",
        "Background",
        "OwnThread",
        "Pending",
        "SharedTask",
        "Snapshot",
        "Stopwatch",
        "ThisThread",
        "UsersLoop",
        "calls_that_fit",
        "caught",
        "in_thread",
        "together",
    ),
    "_git": (
        "GitError",
        "run_git",
    ),
    "_http": ("Exchange",),
    "_media_parts": ("MEDIA_FORMS",),
    "_processes": ("Program",),
    "_retrying": (
        "AttemptError",
        "RunCalls",
    ),
    "_secrets": (
        "FaultSources",
        "Redactor",
        "Secrets",
        "ServiceAddress",
    ),
    "_uses": ("UseRecord",),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
