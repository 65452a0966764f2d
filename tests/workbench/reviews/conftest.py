"""The browser of the tests of the review page."""

from collections.abc import Iterator

import pytest
from pages import Browser, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a browser that stays open."""
    with chromium() as found:
        yield found
