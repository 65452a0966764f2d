"""Test reports of cases, without secrets and without what a terminal would obey."""

__all__ = ("make_presentable",)

from collections.abc import Callable
from typing import Any

import pytest

from pytest_llmeval.core.wording import printable
from pytest_llmeval.plugin.payload import case_of
from pytest_llmeval.services.secrets import secret_values, without


def make_presentable(item: pytest.Item, report: pytest.TestReport) -> None:
    """Change how the report of a case says why it failed, and what was captured meanwhile."""
    loaded = case_of(item) if report.longrepr or report.sections else None
    if loaded is None:
        return
    secrets = secret_values(loaded.suite.secret_variables)
    report.longrepr = _changed(report.longrepr, lambda text: printable(without(text, secrets), lines=True))
    report.sections = [(name, without(text, secrets)) for name, text in report.sections]


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """Return a representation of an exception with all its texts changed; pytest nests them in objects and lists."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)([_changed(each, change) for each in value])
    for name, each in getattr(value, "__dict__", {}).items():
        value.__dict__[name] = _changed(each, change)
    return value
