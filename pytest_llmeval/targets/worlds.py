"""The worlds that agents act in: set up before a call of the target, torn down after it."""

__all__ = ("World", "within")

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import PredictionError, defined_at, format_error, in_its_turn, origin
from pytest_llmeval.services.background import OwnThread, in_thread
from pytest_llmeval.targets.python import CallPlain

_T = TypeVar("_T")

_THREAD: Final = "llmeval-world"


class World:
    """The world of one call of a target, or of one conversation.

    A plain one is entered, used by a plain target and left in one thread, since much belongs to the thread that made
    it, such as a connection of SQLite. An async one lives in the event loop.

    Args:
        factory: The user's: returns a context manager, plain or async, for a case.
        case: The case.
        run: Calls plain functions in the thread of the target; default: in a thread that the world has for itself.

    Attributes:
        value: What the context manager gives, once it is set up.
        thread: That thread, for the target as well; ``None`` where `run` is given.
    """

    def __init__(self, factory: Callable[..., Any], case: Case, run: CallPlain | None = None) -> None:
        self.value: Any = None
        own = OwnThread(_THREAD)
        self.thread = own if run is None else None
        self._run: CallPlain = run or own.call
        self._factory = factory
        self._case = case
        self._manager: Any = None
        self._entered = False

    async def set_up(self) -> None:
        """Enter the world.

        Raises:
            PredictionError: It cannot be set up; the message has the user's file and line.
        """
        try:
            await self._run(self._enter)
            if not self._is_plain:
                self.value = await self._manager.__aenter__()
        except asyncio.CancelledError:
            # The thread enters it none the less, and leaves it after that.
            await self._run(self._leave)
            raise
        except PredictionError:
            raise
        except (Exception, SystemExit) as error:
            raise PredictionError(f"the world cannot be set up: {_described(error)}") from error

    @property
    def _is_plain(self) -> bool:
        return hasattr(self._manager, "__enter__")

    def _enter(self) -> None:
        self._manager = self._factory(self._case) if _takes_a_case(self._factory) else self._factory()
        if self._is_plain:
            self.value = self._manager.__enter__()
            self._entered = True
        elif not hasattr(self._manager, "__aenter__"):
            found = f"the world is of type {type(self._manager).__name__}{defined_at(self._factory)}"
            raise PredictionError(f"{found}, expected a context manager, as of contextlib.contextmanager")

    def _leave(self) -> None:
        if self._entered:
            self._entered = False
            self._manager.__exit__(None, None, None)

    async def tear_down(self) -> None:
        """Leave the world, as after a target that raised nothing: what follows a ``yield`` runs in any case.

        Raises:
            PredictionError: It cannot be torn down; the message has the user's file and line.
        """
        try:
            if not self._is_plain:
                await self._manager.__aexit__(None, None, None)
            elif self.thread is None or self.thread.is_free:
                await self._run(self._leave)
            else:  # a target that took too long still has the thread
                await in_thread(self._leave, _THREAD)
        except (Exception, SystemExit) as error:
            raise PredictionError(f"the world cannot be torn down: {_described(error)}") from error

    def end(self) -> None:
        """Let the thread end."""
        if self.thread is not None:
            self.thread.end()


async def within(world: World, work: Callable[[], Awaitable[_T]]) -> _T:
    """Do something in a world; it is torn down whatever comes of that.

    Raises:
        PredictionError: The world cannot be set up or torn down.
        BaseException: Whatever `work` raises.
    """
    try:
        await world.set_up()
        try:
            done = await work()
        except Exception as error:
            try:
                await world.tear_down()
            except PredictionError as second:
                raise PredictionError(f"{in_its_turn(error, _described(error))}; {second}") from error
            raise
        except BaseException:  # the run ends, or the case is skipped
            with suppress(Exception):
                await world.tear_down()
            raise
        await world.tear_down()
        return done
    finally:
        world.end()


def _described(error: BaseException) -> str:
    return str(error) if isinstance(error, PredictionError) else format_error(error) + origin(error)


def _takes_a_case(factory: Callable[..., Any]) -> bool:
    try:
        inspect.signature(factory).bind(None)
    except TypeError:
        return False
    except ValueError:  # a callable written in C has no signature
        return True
    return True
