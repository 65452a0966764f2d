"""Settings of all tests."""

import gc
import os
import pkgutil
import signal
from collections.abc import Generator, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.fft  # noqa: F401 (pytester forgets what a test imports first, and no part of NumPy can be imported twice)
import pytest
from hypothesis import settings
from running import changed_at_start
from strategies import as_one
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from pages import Browser

# Examples share two cores with other processes: a slow one is no failure, and the same ones run everywhere. Before a
# release, `--hypothesis-profile=long` looks for others.
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=12)
settings.register_profile("long", deadline=None, max_examples=1000)
settings.load_profile("steady")

# What collection makes lives as long as the run: the garbage collector would look at all of it again and again.
gc.disable()

# Workers of xdist have a core each.
threadpool_limits(1, "blas")

# A shell ignores Ctrl-C for what it starts with '&', and every process that the tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


FIRST = (
    *("test_page_in_chromium.py", "test_projects.py"),
    *("test_cache_kills.py", "test_same_report_everywhere.py", "test_published_tables.py"),
)
"""Files that run first, as their tests take seconds: at the end of a run, all cores but one would wait for them."""


RELEASE = (
    "release: takes seconds, and simulates, repeats or guards surroundings: whole runs leave it to .ci/run --release"
)


def pytest_configure(config: pytest.Config) -> None:
    """Leave the tests of a release out, unless files, folders or marks are asked for; workers are told the marks."""
    config.addinivalue_line("markers", RELEASE)
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.markexpr:
        config.option.markexpr = "not release"


@pytest.fixture(scope="session")
def thorough(pytestconfig: pytest.Config) -> bool:
    """Whether simulations run in full, as before a release."""
    return bool(pytestconfig.getoption("hypothesis_profile") == "long")


class Backwards(pytest.Dir):
    """A folder that is collected from its end."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        return reversed(list(super().collect()))


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Dir | None:
    """Have every other worker meet its neighbour halfway: of files that one has compiled, the other has less work."""
    backwards = os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579"
    return Backwards.from_parent(parent, path=path) if backwards else None


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Have workers run the rows of a test as one item, unless single rows are asked for."""
    made, config = (yield), collector.config
    selects = config.option.keyword or any("::" in each for each in config.args)
    return as_one(made) if hasattr(config, "workerinput") and isinstance(made, list) and not selects else made


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest; all workers have the same order."""
    turn = {name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: (turn.get(item.path.name, len(FIRST)), item.path.parts))
    # A hang is a failure. No setting of pytest: the example suites run without pytest-timeout, which it would need.
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what was collected, and have it look at what tests leave less often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Refuse what a test leaves in the environment: the commands of all later tests would start ten times as slowly."""
    yield
    assert changed_at_start() == {}


@pytest.fixture(scope="session")
def whole_package() -> None:
    """Import all modules: pytester forgets those that a test imports first, and their classes would exist twice."""
    import pytest_llmeval

    for module in pkgutil.walk_packages(pytest_llmeval.__path__, "pytest_llmeval."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


@pytest.fixture
def pytester(whole_package: None, pytester: pytest.Pytester) -> pytest.Pytester:  # noqa: ARG001
    """Give tests pytest's own fixture, which forgets no module of ours."""
    return pytester


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the test in its own folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Return a browser that stays open, for the tests of all pages."""
    from pages import chromium

    with chromium() as found:
        yield found
