"""The pytest entry point. It lies outside the package because another distribution ships a package of the same name."""

__all__ = ()

import sys
from importlib.metadata import PackageNotFoundError, version

import pytest

FOREIGN = "pytest-llmeval"
OURS = "pytest-llmeval-suite"
SOURCE = "git+https://github.com/pytest-llmeval/pytest-llmeval-suite"
"""What pip installs: no package index has this distribution."""


def refuse_foreign_distribution() -> None:
    """Stop if another distribution owns our import package: the two overwrite each other's files.

    Raises:
        pytest.UsageError: It is installed.
    """
    try:
        found = version(FOREIGN)
    except PackageNotFoundError:
        return
    raise pytest.UsageError(
        f"the distribution {FOREIGN} {found} is installed beside {OURS}, and both provide the package pytest_llmeval. "
        f"Fix: pip uninstall -y {FOREIGN} && pip install --force-reinstall --no-deps {SOURCE}"
    )


refuse_foreign_distribution()


_NAMES = {"llmeval_suite", "pytest_llmeval_suite"}
"""Of the entry point, and of this module: pluggy refuses a plugin that is named by both."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks; pytest would look for a module in ``pytest_plugins`` in all distributions once more."""
    from pytest_llmeval.plugin import hooks

    for other in _NAMES - {pluginmanager.get_name(sys.modules[__name__])}:
        pluginmanager.set_blocked(other)
    if not pluginmanager.is_registered(hooks):  # by ``-p pytest_llmeval``
        pluginmanager.register(hooks, hooks.__name__)
