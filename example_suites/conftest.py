"""Leaves out the suites that are meant to fail and the one that needs a service, unless the command line names them."""

__all__ = ("pytest_ignore_collect",)

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ON_REQUEST = (HERE / "failing", HERE / "case_retrieval" / "live", HERE / "screens" / "regression.eval.yaml")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the paths `ON_REQUEST` unless an argument is that path or something inside it."""
    path = collection_path.resolve()
    left_out = next((known for known in ON_REQUEST if path.is_relative_to(known)), None)
    if left_out is None:
        return None
    started_in = config.invocation_params.dir
    named = ((started_in / argument.partition("::")[0]).resolve() for argument in config.args)
    return None if any(path.is_relative_to(left_out) for path in named) else True
