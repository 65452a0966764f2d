"""Hooks that this plugin calls."""

__all__ = ("pytest_llmeval_register",)

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_llmeval.suite.registry import Registry


@pytest.hookspec
def pytest_llmeval_register(registry: "Registry") -> None:
    """Add evaluators and sources of your own; called once per suite file, with the conftests at and above it.

    Example, in a ``conftest.py``::

        def pytest_llmeval_register(registry):
            registry.register(Length)
    """
