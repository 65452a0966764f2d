"""Async tests over suites: several cases at a time, on the event loop that pytest-asyncio or anyio gives to them.

The test whose turn it is begins those of the next cases in its loop, and each later one waits for what was begun.
"""

import asyncio
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial, wraps
from itertools import islice, takewhile
from types import FunctionType
from typing import Any, TypeAlias, cast

import pytest
from msgspec import Struct

from pytest_llmeval.plugin._collect import before_next_look
from pytest_llmeval.plugin._options import WorkerTerms
from pytest_llmeval.plugin._payload import CASE_FIXTURES, UNREPORTED, case_of
from pytest_llmeval.plugin._pytest_private import (
    fixture_info,
    is_parameter,
    lasting_anyio_loop,
    lasts,
    loop_scope,
    next_of_worker,
    request_of,
)
from pytest_llmeval.plugin._user_loops import USER_LOOPS
from pytest_llmeval.run import CaseRunner, LoadedCase
from pytest_llmeval.services import caught

_Outcome: TypeAlias = "asyncio.Task[tuple[None, BaseException | None]]"
_TURNS = 5
"""Turns of the loop for tests that have just begun, when the one whose turn it is has ended long since."""


class _EarlyRequest(Struct, frozen=True):
    """The request of a test that began before its turn.

    Attributes:
        node: The test.
        getfixturevalue: Of the test whose turn it is.
    """

    node: pytest.Item
    getfixturevalue: Callable[[str], Any]


class AsyncTests:
    """Hooks that run async tests over suites several at a time, in every process that runs tests.

    Args:
        config: Of the session.
        runner: Of the process.
    """

    def __init__(self, config: pytest.Config, runner: CaseRunner) -> None:
        self._config = config
        self._runner = runner
        self._process = os.getpid()
        self._groups: dict[pytest.Item, tuple[Any, ...]] = {}
        self._places: dict[pytest.Item, int] = {}
        self._cases: dict[pytest.Item, LoadedCase] = {}
        self._begun: dict[pytest.Item, _Outcome] = {}
        self._turn: pytest.Function | None = None
        self._group_end = ExitStack()
        self._loops = config.stash[USER_LOOPS]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Group the tests that may run at the same time: of one function, with the same fixtures that outlive them."""
        tests = list(_async_tests(session))
        self._loops.has_async_tests = bool(tests)
        self._loops.shares_session = any(loop_scope(item) == "session" for _, item, _ in tests)
        if self._runner.in_turn or self._runner.options.concurrency == 1:
            return
        for place, item, loaded in tests:
            if _begins_early(item):
                known = fixture_info(item).name2fixturedefs
                shared = (name for name in item.callspec.params if not is_parameter(known[name][-1]))
                values = tuple((name, id(item.callspec.params[name])) for name in shared if name not in CASE_FIXTURES)
                self._groups[item] = (item.parent, item.originalname, values)
                self._places[item], self._cases[item] = place, loaded

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Let an async test wait for what was begun, and begin those that follow."""
        if item not in self._groups or os.getpid() != self._process or not isinstance(item, pytest.Function):
            return (yield)
        item.stash[UNREPORTED] = False
        test, self._turn = item.obj, item
        item.obj = self._with_following(item, test)
        if "anyio_backend" in item.funcargs:
            self._keep_anyio_loop(item.funcargs["anyio_backend"])
        try:
            return (yield)
        finally:
            item.obj, self._turn = test, None
            vars(item).pop("setup", None)

    @pytest.hookimpl
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run an async test over a suite that no other plugin runs."""
        if not inspect.iscoroutinefunction(pyfuncitem.obj) or case_of(pyfuncitem) is None:
            return None
        test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in _argument_names(pyfuncitem)})
        self._loops.run_test(test)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        """Cancel async tests that nobody waits for any more."""
        if item in self._groups and (nextitem is None or self._groups.get(nextitem) != self._groups[item]):
            for task in self._begun.values():
                with suppress(RuntimeError):  # its loop is closed, and has cancelled it
                    task.cancel()
            self._begun.clear()
            self._group_end.close()
        return (yield)

    def _keep_anyio_loop(self, backend: Any) -> None:
        """Keep the event loop of anyio until the group of async tests ends."""
        if not self._begun:
            self._group_end.close()
            self._group_end.enter_context(lasting_anyio_loop(backend))

    def _with_following(self, item: pytest.Function, test: Callable[..., Any]) -> Callable[..., Any]:
        """An async test that begins those which follow, and waits for its own result."""

        @wraps(test)
        async def waiting(**arguments: Any) -> None:
            __tracebackhide__ = True
            try:
                asyncio.get_running_loop()
            except RuntimeError:  # trio
                return await test(**arguments)  # type: ignore[no-any-return]  # tests return nothing
            begun = self._begun.pop(item, None) or asyncio.ensure_future(caught(test(**arguments)))
            begun.add_done_callback(self._begin_following)
            self._begin_following(begun)
            _, error = await begun
            for _ in range(_TURNS if self._begun else 0):
                await asyncio.sleep(0)
            if error is not None:
                raise error
            return None

        return waiting

    def _begin_following(self, _: object) -> None:
        """Begin as many tests as may run at a time; called when one has ended, and only while the loop runs."""
        turn = self._turn
        if turn is None:
            return
        limit = getattr(turn.function, "llmeval_concurrency", None) or self._runner.options.concurrency
        under_way = sum(not task.done() for task in self._begun.values()) + 1  # that of the turn
        for follower in self._following_tests(turn):
            if under_way >= limit:
                return
            if follower in self._begun or _may_not_run(follower):
                continue
            if (arguments := self._early_arguments(follower, turn)) is not None:
                follower.stash[UNREPORTED] = True
                self._begun[follower] = asyncio.ensure_future(caught(follower.obj(**arguments)))
                self._begun[follower].add_done_callback(partial(self._note_end, follower))
                self._begun[follower].add_done_callback(self._begin_following)
                under_way += 1

    def _note_end(self, item: pytest.Function, begun: _Outcome) -> None:
        """Let a run that is interrupted keep the result of a test that has passed; one with ``-x`` ends at its turn."""
        if not self._runner.may_stop and not begun.cancelled() and begun.result()[1] is None:
            item.stash[UNREPORTED] = False

    def _following_tests(self, turn: pytest.Function) -> Iterator[pytest.Function]:
        """Yield the tests of a group that come next in this process."""
        items, place = turn.session.items, self._places[turn]
        positions: Iterable[int] = range(place + 1, len(items))
        if hasattr(self._config, "workerinput"):
            others_steal = WorkerTerms.of_process(self._config).others_steal
            positions = next_of_worker(self._config, only_next=others_steal)
        loaded = self._cases[turn]
        ahead = islice((items[position] for position in positions), self._runner.window(loaded.suite))
        is_needed = before_next_look(loaded)
        for follower in takewhile(lambda follower: self._groups.get(follower) == self._groups[turn], ahead):
            if not is_needed(self._cases[follower]):
                return
            yield follower  # type: ignore[misc]  # groups have functions only

    def _in_turn(self, name: str) -> Any:
        """A fixture of the async test whose turn it is: those of earlier turns are torn down."""
        assert self._turn is not None
        return request_of(self._turn).getfixturevalue(name)

    def _early_arguments(self, item: pytest.Function, turn: pytest.Function) -> Mapping[str, Any] | None:
        """The arguments of an async test before its turn; ``None`` if its set-up fails now."""
        from pytest_llmeval.plugin._evaluate import EvalCase

        loaded = self._cases[item]
        request, values = request_of(turn), dict[str, Any]()
        definitions = fixture_info(item).name2fixturedefs

        def value(name: str, level: int = -1) -> Any:
            if name in CASE_FIXTURES:
                early = cast("pytest.FixtureRequest", _EarlyRequest(item, self._in_turn))  # all that it uses
                return values.setdefault(name, EvalCase(early, loaded))
            known = definitions[name]
            if is_parameter(known[-1]):
                return item.callspec.params[name]
            if known[-1].scope != "function":
                return request.getfixturevalue(name)
            if level == -1 and name in values:
                return values[name]
            defined = known[level]
            result = defined.func(
                **{argument: value(argument, level - 1 if argument == name else -1) for argument in defined.argnames}
            )
            return values.setdefault(name, result) if level == -1 else result

        try:
            item.funcargs.update(
                {name: value(name) for name in fixture_info(item).names_closure if name in definitions}
            )
        except Exception:  # noqa: BLE001 (set up in its turn, the test reports it)
            item.funcargs.clear()
            return None
        vars(item)["setup"] = lambda: None
        return {name: item.funcargs[name] for name in _argument_names(item)}


def _async_tests(session: pytest.Session) -> Iterator[tuple[int, pytest.Function, LoadedCase]]:
    """Yield the async tests over suites with their positions among pytest's items and their cases."""
    for place, item in enumerate(session.items):
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.function):
            loaded = case_of(item)
            if loaded is not None:
                yield place, item, loaded


def _argument_names(item: pytest.Function) -> Sequence[str]:
    """The fixtures that an async test over a suite takes as arguments."""
    return fixture_info(item).argnames


def _may_not_run(item: pytest.Item) -> bool:
    """Whether a mark may skip a test over a suite or expect its failure, so that it must not begin early."""
    return any(item.get_closest_marker(name) is not None for name in ("skip", "skipif", "xfail"))


def _begins_early(item: pytest.Function) -> bool:
    """Whether an async test over a suite can begin before its turn: its fixtures outlive it, or are its own."""
    info = fixture_info(item)
    names = [name for name in info.names_closure if name not in (*CASE_FIXTURES, "request")]
    known = [definition for name in names for definition in info.name2fixturedefs.get(name, ())]
    return "request" not in info.initialnames and all(map(_is_independent, known)) and lasts(item)


def _is_independent(defined: "pytest.FixtureDef[Any]") -> bool:
    """Whether an async test may use a fixture early: it outlives the test, is a parameter, or only returns a value."""
    if defined.scope != "function" or is_parameter(defined):
        return True
    function = defined.func
    if not isinstance(function, FunctionType) or defined.params or "request" in defined.argnames:
        return False
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        return False
    names = inspect.signature(function).parameters  # a method has ``self``, too
    return not inspect.isasyncgenfunction(function) and [*names] == [*defined.argnames]
