"""Python callables as targets."""

import asyncio
import importlib
import inspect
import json
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import is_dataclass
from functools import lru_cache, partial
from importlib.metadata import distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType, NoneType, UnionType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from pytest_llmeval.core import (
    MISSING,
    AnyError,
    Case,
    LlmevalError,
    PredictionError,
    shown_path,
    suggest,
)
from pytest_llmeval.services import OwnThread, Stopwatch, UsersLoop, in_thread
from pytest_llmeval.targets._process import kept_process

_T = TypeVar("_T")
Target: TypeAlias = Callable[[Any], Any]
CallPlain: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a plain function, in some thread."""


_BOUND_TO_THREADS: Final = (
    "There is no current event loop in thread",
    "SQLite objects created in a thread can only be used in that same thread",
    "signal only works in main thread",
    "cannot switch to a different thread",
)
"""What Python, and greenlets, say of things that are used in another thread than theirs."""


async def _run_plain(run: CallPlain, call: Callable[[], Any]) -> Any:
    """Call a plain target function; an error that its thread causes gets a note."""
    in_main_thread = True

    def noting_thread() -> Any:
        nonlocal in_main_thread
        in_main_thread = threading.current_thread() is threading.main_thread()
        return call()

    try:
        return await run(noting_thread)
    except Exception as error:
        if not in_main_thread and any(text in str(error) for text in _BOUND_TO_THREADS):
            error.add_note(
                "plain functions are called in threads of their own: set `concurrency: 1` beside `python`, which "
                "calls them in the main thread, or make the function async"
            )
        raise


def _is_mapping(named: Any) -> bool:
    """Whether the annotation of a target's input takes mappings only."""
    kind = get_origin(named) or named
    return is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, Mapping))


def _of_target(read: Callable[[Callable[..., Any]], _T]) -> Callable[[Callable[..., Any]], _T]:
    """A function that reads each hashable target once, since the target is the same for all cases."""
    known = lru_cache(maxsize=8)(read)

    def reading(target: Callable[..., Any]) -> _T:
        try:
            hash(target)
        except TypeError:
            return read(target)
        return known(target)

    return reading


@_of_target
def _input_types(target: Callable[..., Any]) -> Sequence[Any]:
    """The annotated types of a target's input, those of a union one by one; `Any` without an annotation."""
    inner = target.func if isinstance(target, partial) else target
    called = inner if inspect.isroutine(inner) else getattr(inner, "__call__", inner)  # noqa: B004 (its annotations)
    name = next((parameter for parameter in _required_parameters(target) if parameter != "case"), None)
    try:
        kind = get_type_hints(called).get(name or "", Any)
    except Exception:  # noqa: BLE001 (annotations are users' code, and need not be importable)
        return [Any]
    is_union = get_origin(kind) in (Union, UnionType)
    return [argument for argument in get_args(kind) if argument is not NoneType] if is_union else [kind]


def _model_of(named: Sequence[Any]) -> Any:
    """Return the only annotated type of a target's input, if it is a model; else ``None``."""
    models = [kind for kind in named if is_dataclass(kind) or hasattr(kind, "model_fields")]
    return models[0] if len(named) == len(models) == 1 else None


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def for_case(target: Callable[..., Any], case: Case) -> Callable[[Any], Any]:
    """A target as a function of the input of a case alone.

    Args:
        target: The user's. If it requires two arguments of which one is named ``case``, the other one is the input.
        case: The case, which such a target gets as well.
    """
    required = _required_parameters(target)
    if len(required) != 2 or "case" not in required or required["case"].kind not in _BY_NAME:  # noqa: PLR2004 (input and case)
        return target
    first, other = next(iter(required)), next(name for name in required if name != "case")
    if first != "case" and required[other].kind != inspect.Parameter.KEYWORD_ONLY:
        return partial(target, case=case)
    return lambda value: target(**{other: value, "case": case})


def in_world(target: Callable[..., Any], world: Any) -> Callable[..., Any]:
    """A target as a function that needs no world.

    Args:
        target: The user's. It gets the world if it has an argument of that name behind its first one, or requires a
            second argument, besides ``case``.
        world: The value of the world.
    """
    others = list(_target_parameters(target).values())[1:]
    second = [parameter.name for parameter in _required_parameters(target).values() if parameter.name != "case"][1:2]
    names = [other.name for other in others if other.name in ("world", *second) and other.kind in _BY_NAME]
    name = "world" if "world" in names else next(iter(names), None)
    return target if name is None else partial(target, **{name: world})


def wrong_call(target: Callable[..., Any], value: Any, error: TypeError) -> PredictionError | None:
    """The error of a target that does not take the input alone; ``None`` if the target itself raised it."""
    try:
        inspect.signature(target).bind(value)
    except TypeError:
        hint = "a target gets the `input` of a case alone, or with `case` if it requires an argument of that name too"
        more = ", and with `world` if the suite names one" if "world" in str(error) else ""
        return PredictionError(f"TypeError: {error}{defined_at(target)}; {hint}{more}")
    except ValueError:  # a callable written in C has no signature
        return None
    return None


@_of_target
def _target_parameters(target: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a target; none if its signature is unknown."""
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError):
        return {}


@_of_target
def _required_parameters(target: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a target that have no default, without variadic ones."""
    known = _target_parameters(target).items()
    return {
        name: parameter
        for name, parameter in known
        if parameter.default is parameter.empty and parameter.kind not in _VARIADIC
    }


_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_NOT_LOADED: Final = frozenset({"pytest_llmeval", *sys.stdlib_module_names})
_DEEPEST: Final = 8
"""Most wrappers around a function that are looked through."""


def _where_to_add(name: str, folder: Path, error: BaseException) -> str:
    """The advice on a target's missing module: folders searched, file to add; empty if another module is missing."""
    missing = getattr(error, "name", None)
    if not isinstance(error, ModuleNotFoundError) or missing is None or not f"{name}.".startswith(f"{missing}."):
        return ""
    here = Path.cwd()
    places = dict.fromkeys(Path(entry or ".").absolute() for entry in (str(folder), *sys.path))
    own = [path for path in places if path.is_relative_to(here) and not path.is_relative_to(sys.prefix)] or [folder]
    near = suggest(missing.partition(".")[0], [path.stem for place in own for path in place.glob("*.py")])
    searched = ", ".join(path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path) for path in own)
    file = f"{name.replace('.', '/')}.py"
    return f"{near}; searched {searched}: add {file} there, or its folder to 'pythonpath' in pytest's settings"


def _find_definition(name: str, module: ModuleType, attribute: str, role: str) -> Callable[..., Any]:
    """The callable that a suite names as its target, which its module must define."""
    definition: Any = module
    for part in attribute.split("."):
        definition = getattr(definition, part, None)
        if isinstance(definition, ModuleType):
            raise PredictionError(
                f"{role} {name!r}: {part!r} is a module, expected a callable that {module.__name__!r} defines"
            )
    if not callable(definition):
        own = [
            defined for defined, value in vars(module).items() if callable(value) and _is_own(value, module.__name__)
        ]
        near = suggest(attribute, own)
        raise PredictionError(f"{role} {name!r}: module {module.__name__!r} has no callable {attribute!r}{near}")
    if not _is_own(definition, module.__name__):
        home = getattr(definition, "__module__", None)
        where = f" ({home})" if isinstance(home, str) else ""
        raise PredictionError(
            f"{role} {name!r}: {attribute!r} is defined elsewhere{where}, expected a callable that "
            f"{module.__name__!r} defines: write a function there that calls it, or name the module of your project "
            "that defines it"
        )
    return definition  # type: ignore[no-any-return]  # callable() narrowed it to an untyped callable


def _foreign(package: str) -> str | None:
    """The owner of a target's top-level package as a phrase, unless that is the project."""
    if package in _NOT_LOADED:
        return "belongs to this plugin" if package == "pytest_llmeval" else "belongs to Python itself"
    places: list[str | None] = []
    # A module without a specification was made by a test or a conftest.
    with suppress(ValueError, ImportError):
        spec = find_spec(package)
        if spec is not None:
            places = [spec.origin, *(spec.submodule_search_locations or ())]
    installed = any(_INSTALLED & {*Path(place).parts} for place in places if place)
    return "belongs to an installed package" if installed and not _installed_from_folder(package) else None


def _installed_from_folder(package: str) -> bool:
    """Whether a target's package was installed from this machine (``pip install .``), as its origin (PEP 610) says."""
    for name in packages_distributions().get(package, ()):
        origin = distribution(name).read_text("direct_url.json")
        if origin is not None and str(json.loads(origin).get("url")).startswith("file:"):
            return True
    return False


def _is_own(value: Any, module: str, depth: int = 0) -> bool:
    """Whether a suite's module, or one inside it, defines a target, its class, or the callable that it decorates."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, partial):
        return _is_own(value.func, module, depth + 1)
    if _is_inside(getattr(value, "__module__", None), module):
        return True
    if isinstance(value, FunctionType) and _is_inside(value.__globals__.get("__name__"), module):
        return True  # `functools.wraps` gave it the name of a foreign function
    bound_to = getattr(value, "__self__", None)
    if bound_to is not None and not isinstance(bound_to, ModuleType):
        owner = bound_to if isinstance(bound_to, type) else type(bound_to)
        return _is_inside(owner.__module__, module)
    return any(_is_own(inner, module, depth + 1) for inner in _find_decorated(value))


def _is_inside(home: Any, module: str) -> bool:
    """Whether the module that defines a target is the one that the suite names, or is inside it."""
    return isinstance(home, str) and f"{home}.".startswith(f"{module}.")


def _find_decorated(value: Any) -> list[Any]:
    """The callables inside a decorated target, also if the decorator does not set ``__wrapped__``."""
    inside = [getattr(value, "__wrapped__", None)]
    for cell in (isinstance(value, FunctionType) and value.__closure__) or ():
        with suppress(ValueError):  # an empty cell
            inside.append(cell.cell_contents)
    return [content for content in inside if callable(content)]


_THREAD: Final = "llmeval-world"


class PythonTarget(NamedTuple):
    """A user's callable as a target.

    Attributes:
        function: Plain or async.
    """

    function: Callable[..., Any]

    @classmethod
    def load(cls, name: str, folder: Path, role: str = "target") -> "PythonTarget":
        """Import a suite's target or other callable ``module:name``, also from a module next to the suite file.

        The module belongs to the project, and it, or a module inside it, defines the callable: a suite file cannot
        execute what a module merely imports, such as ``os.system``.

        Args:
            name: Of module and callable.
            folder: The suite file's.
            role: What the callable is, for messages.

        Raises:
            PredictionError: The module belongs to Python or to an installed package, it does not import, or it defines
                no such callable.
        """
        module_name, _, attribute = name.partition(":")
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        if owner := _foreign(module_name.partition(".")[0]):
            raise PredictionError(f"{role} {name!r}: {module_name!r} {owner}, expected a module of your project")
        try:
            module = importlib.import_module(module_name)
        except (Exception, SystemExit) as error:
            raise PredictionError(
                f"{role} {name!r}: module {module_name!r} cannot be imported: {AnyError(error).text}"
                f"{_where_to_add(module_name, folder, error)}"
            ) from error
        beside = folder / f"{module_name}.py"
        origin = getattr(module, "__file__", None)
        if beside.is_file() and origin is not None and Path(origin).resolve() != beside.resolve():
            raise PredictionError(
                f"{role} {name!r}: module {module_name!r} was already imported from {origin}, "
                f"not from {beside}: rename one of them"
            )
        return cls(_find_definition(name, module, attribute, role))

    def typed_input(self, form: Any, native: Any = MISSING) -> Any:
        """An input as the target gets it: the user's object, or the model that its annotation names.

        Args:
            form: The input as JSON data, for a target whose annotation names another type than that of the object.
            native: The object that the user's code gave; default: the data.

        Raises:
            PredictionError: The input does not fit; the message names every place.
        """
        value = form if native is MISSING else native
        named = _input_types(self.function)
        if value is not form and not isinstance(value, Mapping) and all(map(_is_mapping, named)):
            return form
        kind = _model_of(named)
        if kind is None or isinstance(value, kind):
            return value
        from pytest_llmeval.data import DeclaredType

        try:
            return DeclaredType(kind).convert(form)
        except LlmevalError as error:
            raise PredictionError(f"the input is no {kind.__name__}, which the target takes: {error}") from None

    def bound(self, case: Case, world: "World | None" = None) -> "PythonTarget":
        """The target of the input alone, with the case and the world that it takes besides.

        Args:
            case: The case.
            world: The world of its suite, once it is set up; ``None`` without one.
        """
        function = self.function if world is None else in_world(self.function, world.value)
        return PythonTarget(for_case(function, case))

    async def ask(
        self,
        value: Any,
        timeout: float | None = None,
        run: CallPlain | None = None,
        *,
        can_be_left: bool = False,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Any:
        """The prediction for an input, without holding up the event loop.

        Args:
            value: The input.
            timeout: Seconds that the target may take; ``None`` waits for ever.
            run: Calls a plain target that has no time limit; default: in a thread of its own, which can be left behind.
            can_be_left: Whether `run` calls in a thread that can be left behind, and so takes one with a time limit.
            around: Returns a context manager that is entered around the call, and around waiting for what it returns.

        Raises:
            PredictionError: It took longer than the limit, called ``sys.exit``, cancelled itself, or does not
                take the input alone.
            BaseException: Any error of the target.
        """
        target, watch = self.function, Stopwatch.current()
        itself = getattr(target, "clocks_itself", False) is True

        def call() -> Any:
            with watch.call(), around(), kept_process():
                return target(value)

        async def awaited(answer: Awaitable[Any]) -> Any:
            with nullcontext() if itself else watch.call(), around(), kept_process():
                return await UsersLoop.current().result(answer)

        if run is None or (timeout is not None and not can_be_left):
            run = partial(in_thread, name="llmeval-target")
        try:
            async with asyncio.timeout(timeout) as limit:
                if inspect.iscoroutinefunction(target):
                    return await awaited(target(value))
                answer = await _run_plain(run, call)
                return await awaited(answer) if inspect.isawaitable(answer) else answer
        except TimeoutError as error:
            if timeout is None or not limit.expired():
                raise
            raise PredictionError(f"the target took longer than {timeout:g} s") from error
        except TypeError as error:
            if (wrong := wrong_call(target, value, error)) is not None:
                raise wrong from error
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise PredictionError("the target cancelled itself (CancelledError)") from error
        except SystemExit as error:
            # Let out of its task, it would end the event loop.
            raise PredictionError(f"the target called sys.exit({error.code!r})") from error


class World:
    """The world of a suite, a user's context manager, for one call of a target or one conversation.

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
                self.value = await UsersLoop.current().result(self._manager.__aenter__())
        except asyncio.CancelledError:
            # The thread enters it none the less, and leaves it after that.
            await self._run(self._leave)
            raise
        except PredictionError:
            raise
        except (Exception, SystemExit) as error:
            raise PredictionError(f"the world cannot be set up: {AnyError(error).message(PredictionError)}") from error

    @property
    def _is_plain(self) -> bool:
        return hasattr(self._manager, "__enter__")

    def _enter(self) -> None:
        self._manager = self._factory(self._case) if _takes_a_case(self._factory) else self._factory()
        if self._is_plain:
            self.value = self._manager.__enter__()
            self._entered = True
        elif not hasattr(self._manager, "__aenter__"):
            subject = f"the world is of type {type(self._manager).__name__}{defined_at(self._factory)}"
            raise PredictionError(f"{subject}, expected a context manager, as of contextlib.contextmanager")

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
                await UsersLoop.current().result(self._manager.__aexit__(None, None, None))
            elif self.thread is None or self.thread.is_free:
                await self._run(self._leave)
            else:  # a target that took too long still has the thread
                await in_thread(self._leave, _THREAD)
        except (Exception, SystemExit) as error:
            raise PredictionError(
                f"the world cannot be torn down: {AnyError(error).message(PredictionError)}"
            ) from error

    def end(self) -> None:
        """Let the thread of the world end."""
        if self.thread is not None:
            self.thread.end()

    async def hold(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Do something in a target's world; it is torn down in any case.

        Raises:
            PredictionError: The world cannot be set up or torn down.
            BaseException: Any error of `work`.
        """
        try:
            await self.set_up()
            try:
                done = await work()
            except Exception as error:
                try:
                    await self.tear_down()
                except PredictionError as second:
                    raise PredictionError(
                        f"{PredictionError.in_its_turn(error, AnyError(error).message(PredictionError))}; {second}"
                    ) from error
                raise
            except BaseException:  # the run ends, or the case is skipped
                with suppress(Exception):
                    await self.tear_down()
                raise
            try:
                await self.tear_down()
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is None:
                    raise
                # What is done is not lost: the cancellation comes again, at the next wait.
                task.uncancel()
                task.cancel()
            return done
        finally:
            self.end()


def _takes_a_case(factory: Callable[..., Any]) -> bool:
    """Whether the user's factory of a suite's world takes the case as its argument."""
    try:
        inspect.signature(factory).bind(None)
    except TypeError:
        return False
    except ValueError:  # a callable written in C has no signature
        return True
    return True


def defined_at(function: object) -> str:
    """The place of a target's definition for a message, such as `` (app.py:3)``; empty if unknown."""
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    return f" ({shown_path(Path(code.co_filename))}:{code.co_firstlineno})" if code is not None else ""
