"""Leaves out the suite that is meant to fail and the one that needs a library, unless the command line names them."""

__all__ = ("pytest_ignore_collect",)

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ON_REQUEST = (HERE / "failing", HERE / "case_retrieval" / "live")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the folders `ON_REQUEST` unless an argument is that folder or something inside it."""
    path = collection_path.resolve()
    folder = next((folder for folder in ON_REQUEST if path.is_relative_to(folder)), None)
    if folder is None:
        return None
    started_in = config.invocation_params.dir
    named = ((started_in / argument.partition("::")[0]).resolve() for argument in config.args)
    return None if any(path.is_relative_to(folder) for path in named) else True
