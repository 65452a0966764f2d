"""Errors that users meet: what they say, and that they survive the way between processes."""

import pickle

import pytest

from pytest_llmeval.core import MissingExtraError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            MissingExtraError("a Dask cluster", "dask"),
            "a Dask cluster needs the extra 'dask': pip install 'pytest-llmeval-suite[dask]'",
        ),
        (
            MissingExtraError("a Dask cluster", "dask", ModuleNotFoundError("No module named 'distributed'")),
            (
                "a Dask cluster needs the extra 'dask' (No module named 'distributed'): "
                "pip install 'pytest-llmeval-suite[dask]'"
            ),
        ),
        (
            MissingExtraError("the judge x", "pydantic-ai", remedy="pip install 'pydantic-ai-slim[x]'"),
            "the judge x needs the extra 'pydantic-ai': pip install 'pydantic-ai-slim[x]'",
        ),
    ],
)
def test_a_missing_extra_is_named_with_who_needs_it_why_and_what_installs_it(
    error: MissingExtraError, message: str
) -> None:
    assert str(error) == message
    assert isinstance(error, ImportError)
    assert str(pickle.loads(pickle.dumps(error))) == message
