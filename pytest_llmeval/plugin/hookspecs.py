"""Hooks that this plugin calls, for ``conftest.py`` files and other plugins to implement."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_llmeval.suite.registry import Registry


@pytest.hookspec
def pytest_llmeval_register(registry: "Registry") -> None:
    """Register evaluators, checks and sources of your own.

    Called once per suite file and process, before the file is read. Plugins and the conftests at and above the file
    take part: what a conftest registers is known to the suites in its folder and below, as its fixtures are.

    Example, in a ``conftest.py``::

        def pytest_llmeval_register(registry):
            registry.register(Length)
            registry.register_source(Tickets)

    Args:
        registry: A new one, which holds what ships with this package and what distributions declare as entry points.

    Raises:
        LlmevalError: Something cannot be registered, for instance because its name is taken; the suite file is then
            reported as faulty.
    """
