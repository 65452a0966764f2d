"""Access to the outside world."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.services._background import (
        LOOP,
        Activity,
        Background,
        OwnThread,
        Pending,
        SharedTask,
        Snapshot,
        Stopwatch,
        ThisThread,
        awaited_anywhere,
        awaited_for_user,
        calls_that_fit,
        caught,
        in_thread,
        running_loop,
        together,
    )
    from pytest_llmeval.services._git import GitError, run_git
    from pytest_llmeval.services._http import Exchange, NoReplyError, Reply
    from pytest_llmeval.services._media_parts import MEDIA_FORMS
    from pytest_llmeval.services._processes import EndedError, Program
    from pytest_llmeval.services._retrying import AttemptError, RunCalls, Sleep, delay_asked_for, is_transient
    from pytest_llmeval.services._secrets import SOURCE_MARK, Redactor, Secrets, ServiceAddress, with_sources
    from pytest_llmeval.services._uses import Use, UseRecord

_HOMES = {
    "_background": (
        "Activity",
        "Background",
        "LOOP",
        "OwnThread",
        "Pending",
        "SharedTask",
        "Snapshot",
        "Stopwatch",
        "ThisThread",
        "awaited_anywhere",
        "awaited_for_user",
        "calls_that_fit",
        "caught",
        "in_thread",
        "running_loop",
        "together",
    ),
    "_git": (
        "GitError",
        "run_git",
    ),
    "_http": (
        "Exchange",
        "NoReplyError",
        "Reply",
    ),
    "_media_parts": ("MEDIA_FORMS",),
    "_processes": (
        "EndedError",
        "Program",
    ),
    "_retrying": (
        "AttemptError",
        "RunCalls",
        "Sleep",
        "delay_asked_for",
        "is_transient",
    ),
    "_secrets": (
        "Redactor",
        "SOURCE_MARK",
        "Secrets",
        "ServiceAddress",
        "with_sources",
    ),
    "_uses": (
        "Use",
        "UseRecord",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
