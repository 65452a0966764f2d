"""Leaves out the suite that is meant to fail, unless the command line names it."""

__all__ = ("pytest_ignore_collect",)

from pathlib import Path

import pytest

FAILING = Path(__file__).resolve().parent / "failing"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the folder ``failing`` unless an argument is that folder or something inside it."""
    if not collection_path.resolve().is_relative_to(FAILING):
        return None
    started_in = config.invocation_params.dir
    named = ((started_in / argument.partition("::")[0]).resolve() for argument in config.args)
    return None if any(path.is_relative_to(FAILING) for path in named) else True
