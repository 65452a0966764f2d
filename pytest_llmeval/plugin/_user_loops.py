"""The event loop in which coroutines of users run: that of their async fixtures, or of their async tests."""

import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from pytest_llmeval.plugin._options import longest_test_s
from pytest_llmeval.plugin._payload import RUNNER
from pytest_llmeval.plugin._pytest_private import fixture_info, request_of, session_loop
from pytest_llmeval.services import UsersLoop

if TYPE_CHECKING:
    import asyncio

_Fixture: TypeAlias = "pytest.FixtureDef[Any]"
_Loop: TypeAlias = "asyncio.AbstractEventLoop"


class UserLoops:
    """Hooks that run the user's coroutines in the event loop of the test's async fixtures.

    Attributes:
        has_async_tests: Whether async tests over suites are among the items.
        shares_session: Whether pytest-asyncio runs some of them in the loop of the session.
    """

    def __init__(self) -> None:
        self.has_async_tests = False
        self.shares_session = False
        self._item: pytest.Item | None = None
        self._plain: set[_Fixture] = set()
        self._of_fixtures: dict[_Fixture, _Loop] = {}
        self._own: asyncio.Runner | None = None
        self._running = ExitStack()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: _Fixture) -> Generator[None, object, object]:
        """Note in which loop a plugin sets up an async fixture."""
        if fixturedef in self._plain:
            return (yield)
        function = fixturedef.func
        if inspect.isasyncgenfunction(function):
            noting = self._noting_values(fixturedef, function)
        elif inspect.iscoroutinefunction(function):
            noting = self._noting_value(fixturedef, function)
        else:
            self._plain.add(fixturedef)
            return (yield)
        vars(fixturedef)["func"] = noting
        self._running.close()  # the judge's fixtures are set up once it is asked
        try:
            return (yield)
        finally:
            vars(fixturedef)["func"] = function
            if self._item is not None:
                self._enter(self._item)

    def pytest_fixture_post_finalizer(self, fixturedef: _Fixture) -> None:
        """Forget the loop of a fixture that is torn down."""
        self._of_fixtures.pop(fixturedef, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Let calls that other processes need end before the loop does in which they run."""
        runner = item.config.stash[RUNNER]
        ends = nextitem is None or nextitem.parent is not item.parent
        if ends and runner.options.shares and not item.session.shouldfail and self._loop_of(item) is not None:
            with self.running(item):
                runner.finish(longest_test_s(item.config))

    def pytest_unconfigure(self) -> None:
        """Close the own loop."""
        if self._own is not None:
            self._own.close()

    @contextmanager
    def running(self, item: pytest.Item) -> Iterator[None]:
        """Run the loop that coroutines of users belong to, if there is one, for the length of the block."""
        self._item = item
        self._enter(item)
        try:
            yield
        finally:
            self._item = None
            self._running.close()

    def _enter(self, item: pytest.Item) -> None:
        """Run the loop of a test's fixtures during the test."""
        loop = self._loop_of(item)
        if loop is not None and not loop.is_running():
            self._running.enter_context(UsersLoop(loop).running())

    def run_test(self, test: Any) -> None:
        """Run the coroutine of an async test that no other plugin runs."""
        self._own_runner().run(test)

    def apart(self, item: pytest.Item) -> str:
        """The fixtures of a test that live in different loops; empty where all live in one."""
        loops = {definition.argname: self._of_fixtures[definition] for definition in self._fixtures_of(item)}
        first = next(iter(loops), "")
        others = [name for name in loops if loops[name] is not loops[first]]
        if not others:
            return ""
        return (
            f"the fixtures {first!r} and {others[0]!r} live in different event loops, and coroutines of a suite run in "
            f"that of {first!r}: give them one loop_scope"
        )

    def _fixtures_of(self, item: pytest.Item) -> list[_Fixture]:
        """The async fixtures of a test that are set up, those of wide scope first."""
        if not isinstance(item, pytest.Function):
            return []
        info = fixture_info(item)
        known = (definition for name in info.names_closure for definition in info.name2fixturedefs.get(name, ()))
        return [definition for definition in known if definition in self._of_fixtures]

    def _loop_of(self, item: pytest.Item) -> "_Loop | None":
        """The loop of a test's async fixtures, of others that are set up, or of async tests."""
        for fixture in (*self._fixtures_of(item), *self._of_fixtures):
            return self._of_fixtures[fixture]
        if self.shares_session and isinstance(item, pytest.Function):
            return session_loop(request_of(item))
        return self._own_runner().get_loop() if self.has_async_tests else None

    def _own_runner(self) -> "asyncio.Runner":
        """The loop for async tests that no other plugin runs, made at the first one."""
        import asyncio

        if self._own is None:
            self._own = asyncio.Runner()
        return self._own

    def _note(self, fixture: _Fixture) -> None:
        """Note the loop that runs now as that of a fixture."""
        import asyncio

        with suppress(RuntimeError):  # trio
            self._of_fixtures[fixture] = asyncio.get_running_loop()

    def _noting_value(self, fixture: _Fixture, function: Callable[..., Any]) -> Callable[..., Any]:
        """An async fixture function that notes the loop in which it is set up."""

        @wraps(function)
        async def noting(*arguments: Any, **named: Any) -> Any:
            __tracebackhide__ = True
            self._note(fixture)
            return await function(*arguments, **named)

        return noting

    def _noting_values(self, fixture: _Fixture, function: Callable[..., Any]) -> Callable[..., Any]:
        """An async generator of a fixture that notes the loop in which it is set up."""

        @wraps(function)
        async def noting(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
            __tracebackhide__ = True
            self._note(fixture)
            async with aclosing(function(*arguments, **named)) as values:
                async for value in values:
                    yield value

        return noting


USER_LOOPS = pytest.StashKey[UserLoops]()
