"""Starts the search service for the suites of this folder."""

__all__ = ("search_service",)

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def search_service() -> Iterator[None]:
    """Serve while the suites run; they read the address from the environment."""
    pytest.importorskip("bm25s", reason="the search service needs bm25s")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1])
        from search import serving

        with serving() as address:
            patch.setenv("CASE_SEARCH_URL", address)
            yield
    sys.modules.pop("search", None)
