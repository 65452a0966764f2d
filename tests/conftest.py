"""Settings of all tests."""

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from running import changed_at_start

# Examples share two cores with other processes: a slow one is no failure, and the same ones run everywhere. Before a
# release, `--hypothesis-profile=long` looks for others.
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("long", deadline=None, max_examples=1000)
settings.load_profile("steady")

# A shell ignores Ctrl-C for what it starts with '&', and every process that the tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


FIRST = ("test_built_distributions.py", "test_page_in_chromium.py", "test_public_api.py")
"""Files whose tests take many seconds each: at the end of a run, all cores but one would wait for them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest."""
    items.sort(key=lambda item: item.path.name not in FIRST)


def pytest_collection_finish() -> None:
    """Spare the garbage collector thousands of items that live as long as the run."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Refuse what a test leaves in the environment: the commands of all later tests would start ten times as slowly."""
    yield
    assert changed_at_start() == {}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the test in its own folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
