"""Evaluators and checks as functions, for suites declared in Python: each returns what a suite file would say.

The types of all functions are in ``_entries.pyi``, which ``.ci/entries_stub.py`` writes from the JSON Schema.
"""

__all__ = ("all_of", "any_of", "at_least", "check", "evaluator", "judge", "named", "not_")

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from functools import partial
from inspect import Parameter, Signature, cleandoc, signature
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec import Struct

from pytest_llmeval.core import Evaluator, EvaluatorError, LlmevalError, form_of
from pytest_llmeval.evaluators import CheckKind, evaluator_of
from pytest_llmeval.suites import Registry, get_evaluator

if TYPE_CHECKING:
    from pytest_llmeval.evaluators import Checks

_NOTHING: Final = object()
_BESIDE: Final = ("as_", "on", "turn")
_BESIDE_IN_FILE: Final = tuple(name.rstrip("_") for name in _BESIDE)
_MODIFIERS: Final = ("name", "on", "turn", "weight")


class NamedEvaluator(Struct, frozen=True):
    """An evaluator of a Python suite with the settings that stand next to its options in a suite file.

    Attributes:
        evaluator: The evaluator.
        settings: ``as``, ``on`` and ``turn``, those that are set.
    """

    evaluator: Evaluator
    settings: Mapping[str, Any]

    @classmethod
    def label(cls, value: Any) -> tuple[str, Any]:
        """The label and evaluator of an entry, or of an evaluator with settings; the label may be empty.

        Args:
            value: Another value is returned without a label.

        Raises:
            EvaluatorError: The entry is wrong, only suites read a setting, or the function of an entry is not called.
        """
        if isinstance(value, Mapping):
            return _evaluator_of_entry(value)
        if isinstance(value, EntryFunction):
            raise EvaluatorError(f"ev.{value.__name__} is not called; write ev.{value.__name__}(...)")
        if not isinstance(value, cls):
            return "", value
        if unread := [name for name in value.settings if name != "as"]:
            raise EvaluatorError(f"found an evaluator with {unread[0]}, expected it in a suite")
        return value.settings.get("as", ""), value.evaluator


def evaluator(
    evaluator: str | Evaluator | Callable[[Any], Any], options: Mapping[str, Any] | None = None, /, **beside: Any
) -> dict[str, Any] | NamedEvaluator:
    """An evaluator for a suite in Python: of a name, an object of your own, or a function of a case.

    Args:
        evaluator: Its name, an instance of `Evaluator`, or a function ``case -> score``, plain or async.
        options: Its options, where it has a name.
        beside: ``as_`` (or ``name``, of an object or a function), ``on`` and ``turn``, which stand next to the options
            in a suite file. Of a function also ``low`` and ``high``, the range of its scores (default: 0 to 1;
            ``None`` for no limit), and ``higher_is_better``.

    Raises:
        EvaluatorError: A function has no name of its own, and none is given.
    """
    settings = {key.rstrip("_"): beside.pop(key) for key in _BESIDE if beside.get(key) is not None}
    if isinstance(evaluator, str):
        return {evaluator: {**(options or {}), **beside}, **settings}
    if not isinstance(evaluator, Evaluator):
        evaluator = evaluator_of(evaluator, **beside)
    elif beside:
        settings["as"] = beside.pop("name", settings.get("as"))
    return NamedEvaluator(evaluator, settings)


def check(function: Callable[[Any], Any], name: str | None = None) -> CheckKind:
    """The check for a suite in Python that a function of a case is: ``case -> met``, plain or async.

    Args:
        function: Returns true or false, or a `Score` of that with a reason.
        name: Of the check; default: the function's.

    Raises:
        EvaluatorError: It has no name of its own, and none is given.
    """
    return CheckKind.from_case_function(function, name)


class NamedObject(Struct, frozen=True):
    """An object of a suite declared in Python, with the name that it has in files and reports.

    Attributes:
        value: The object.
        name: The name.
    """

    value: Any
    name: str


def named(value: Any, name: str) -> NamedObject:
    """An object with a name, for a suite in Python: a target, a world, or the client of a judge or simulated user.

    Functions, methods, classes and their instances have names of their own, lambdas and partial functions have none.

    Args:
        value: The object.
        name: The name by which reports and stored verdicts know it.

    Raises:
        LlmevalError: The name is no text on one line, or the object can neither be called nor asked.
    """
    if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable():
        raise LlmevalError(f"ev.named: found {name!r}, expected a name on one line, such as 'small'")
    if not (callable(value) or _is_client(value)):
        raise LlmevalError(f"ev.named: found {value!r}, expected a function or a client")
    return NamedObject(value, name)


def _is_client(value: Any) -> bool:
    """Whether an object is a client for the model of a judge or a simulated user."""
    return hasattr(value, "complete") or hasattr(value, "chat")


class ByName(Struct, frozen=True):
    """The keys of a suite declared in Python as a file has them, and the objects that names in them mean.

    Attributes:
        keys: With names in place of objects.
        registered: Evaluators and checks.
        objects: Name to target, world or client.
    """

    keys: dict[str, Any]
    registered: list[type[Evaluator] | CheckKind]
    objects: dict[str, Any]


def by_name_in_file(keys: Mapping[str, Any]) -> ByName:
    """Keys of a suite declared in Python, with names in place of objects.

    Raises:
        LlmevalError: A value is none that the key can have, an object has no name, or two have the same one.
    """
    own: dict[str, type[Evaluator] | CheckKind] = {}
    file_keys = dict(keys)
    if evaluators := keys.get("evaluators"):
        file_keys["evaluators"] = [_entry_of(entry, own) for entry in listed(evaluators)]
    if checks := keys.get("checks"):
        file_keys["checks"] = [_checks_in_file(entry, own) for entry in listed(checks)]
    objects: dict[str, Any] = {}
    for key, grammar in _OBJECTS.items():
        if keys.get(key) is not None:
            file_keys[key] = _objects_in_file(keys[key], grammar, key, objects)
    return ByName(file_keys, list(own.values()), objects)


_CALLED: Final = ""
_CLIENT: Final = "fixture:"
_TARGET: Final = {"python": _CALLED, "world": _CALLED}
_MODEL: Final = {"model": _CLIENT}
_JUDGE: Final = {**_MODEL, "first": _MODEL, "then": _MODEL}
_ANY: Final = "*"
_OBJECTS: Final[Mapping[str, Any]] = {
    "target": _TARGET,
    "systems": {_ANY: _TARGET},
    "conversation": {"user": _MODEL},
    "judge": _JUDGE,
    "judges": [_JUDGE],
}
"""Keys to the objects in their values, each as what precedes its name in a file: in a list, or by key; an object in
place of a mapping belongs under the first key."""


def _objects_in_file(value: Any, grammar: Any, place: str, objects: dict[str, Any]) -> Any:
    """A value of a Python suite's key with names in place of objects, which are added to ``objects``."""
    if isinstance(grammar, list) and isinstance(value, list | tuple):
        return [_objects_in_file(part, grammar[0], place, objects) for part in value]
    if value is None or isinstance(value, str | list | tuple) or isinstance(grammar, list):
        return value
    if isinstance(grammar, str):
        name = f"{grammar}{_object_name(value, place, grammar)}"
        value = value.value if isinstance(value, NamedObject) else value
        if objects.setdefault(name, value) != value:
            raise LlmevalError(
                f"{place}: found two objects {name!r}, expected distinct names: ev.named(value, name='small')"
            )
        return name
    if isinstance(value, Mapping):
        below = {key: grammar.get(key, grammar.get(_ANY)) for key in value}
        return {
            key: part if below[key] is None else _objects_in_file(part, below[key], f"{place}.{key}", objects)
            for key, part in value.items()
        }
    short, inner = next(iter(grammar.items()))
    if not isinstance(inner, str):
        return value
    return {short: _objects_in_file(value, inner, place, objects)}


def _object_name(value: Any, place: str, grammar: str) -> str:
    """The name of a target, world or client in a Python suite: its own, or that of its system."""
    itself = value.value if isinstance(value, NamedObject) else value
    if not callable(itself) and not (grammar == _CLIENT and _is_client(itself)):
        expected = "a client, or PROVIDER:NAME" if grammar == _CLIENT else "a function, or its name 'my_app:answer'"
        raise LlmevalError(f"{place}: found {itself!r}, expected {expected}")
    if isinstance(value, NamedObject):
        return value.name
    is_function = isinstance(value, FunctionType | type)
    qualified = getattr(value, "__qualname__", type(value).__qualname__)
    if place.startswith("systems.") and not (is_function and "<" not in qualified):
        return place  # of several instances or closures, only the names of the systems differ
    if qualified.endswith("<lambda>") or isinstance(value, partial):
        kind = "partial" if isinstance(value, partial) else "lambda"
        raise LlmevalError(
            f"{place}: found a {kind}, which has no name of its own, expected ev.named(..., name='small')"
        )
    return f"{getattr(value, '__module__', '')}:{qualified}"


def listed(entries: Any) -> Iterable[Any]:
    """The entries of a Python suite's key that may have a single one."""
    single = isinstance(entries, str | Mapping | Evaluator | NamedEvaluator | CheckKind) or callable(entries)
    return [entries] if single else entries


def _entry_of(entry: Any, own: dict[str, Any]) -> Any:
    """The suite file entry for an evaluator of a Python suite, whose class is added to ``own``."""
    if isinstance(entry, str | Mapping):
        return entry
    if isinstance(entry, EntryFunction):
        raise LlmevalError(f"evaluators: ev.{entry.__name__} is not called; write ev.{entry.__name__}(...)")
    settings: Mapping[str, Any] = {}
    if isinstance(entry, NamedEvaluator):
        entry, settings = entry.evaluator, entry.settings
    if not isinstance(entry, Evaluator):
        if not callable(entry) or isinstance(entry, type):
            name = entry.__name__ if isinstance(entry, type) else type(entry).__name__
            raise LlmevalError(
                f"evaluators: found {name}, expected an entry such as ev.text(metrics=['f1']), a name, or a function"
            )
        entry = evaluator_of(entry)
    defaults = {field.name: field.default for field in dataclass_fields(entry) if field.init}
    if others := [name for name in signature(type(entry)).parameters if name not in defaults]:
        # A process, and a file, build it from its fields.
        what = f"the parameter {others[0]!r}, which is no field"
        raise LlmevalError(f"evaluators: found {type(entry).__name__} with {what}, expected a dataclass")
    options = {name: getattr(entry, name) for name in defaults}
    _keep_object(own, entry.required_name(), type(entry), "evaluators")
    return {entry.name: {name: value for name, value in options.items() if value != defaults[name]}, **settings}


def _checks_in_file(entry: Any, own: dict[str, Any]) -> Any:
    """A check of a Python suite, or a composition of checks, with names in place of functions."""
    if isinstance(entry, Mapping):
        return {key: _checks_in_file(part, own) for key, part in entry.items()}
    if isinstance(entry, list | tuple):
        return [_checks_in_file(part, own) for part in entry]
    if isinstance(entry, EntryFunction):
        raise LlmevalError(f"checks: ev.{entry.__name__} is not called; write ev.{entry.__name__}(...)")
    if not isinstance(entry, CheckKind):
        if not callable(entry):
            return entry
        entry = CheckKind.from_case_function(entry)
    _keep_object(own, f"check {entry.name}", entry, "checks")
    return entry.name


def checks_by_name(entries: Iterable[Any]) -> tuple[list[Any], Mapping[str, CheckKind]]:
    """Checks of a Python suite with names in place of functions, and the checks of these functions by name.

    Raises:
        LlmevalError: A function has no name, or two have the same one.
    """
    own: dict[str, Any] = {}
    by_name = [_checks_in_file(entry, own) for entry in entries]
    return by_name, {kind.name: kind for kind in own.values()}


def get_checks(*entries: Any) -> "Checks":
    """The evaluator of checks, as a suite file writes them.

    Args:
        entries: Checks as a suite file writes them, such as ``{"contains": "Paris"}``, or functions of a case.

    Raises:
        EvaluatorError: An entry has faults; all of them are listed.

    Example:
        >>> get_checks({"contains": "Paris"}, {"max_words": 2}).evaluate("It is Paris.", None)["check_rate"]
        0.5
    """
    from pytest_llmeval.evaluators import CheckReader, Checks

    by_name, own = checks_by_name(entries)
    read, faults = CheckReader.read_alone(by_name, ("checks",), {**Registry.installed().checks, **own})
    if faults:
        raise EvaluatorError("; ".join(faults))
    return Checks.of_checks(read)


def _keep_object(own: dict[str, Any], name: str, value: Any, key: str) -> None:
    """Keep a Python suite's evaluator class or check by name, refusing two with the same name."""
    if own.setdefault(name, value) != value:
        label = name.rpartition(" ")[2]
        raise LlmevalError(
            f"{key}: found two functions or classes {label!r}, expected distinct names: give one a name="
        )


def not_(check: Mapping[str, Any] | str | CheckKind | Callable[[Any], Any]) -> dict[str, Any]:
    """A check for a suite in Python that holds where another one does not."""
    if isinstance(check, str):
        return {f"not_{check}": True}
    if not isinstance(check, Mapping):
        kind = check if isinstance(check, CheckKind) else CheckKind.from_case_function(check)
        return {"not_any_of": [kind], "name": f"not_{kind.name}"}
    return {key if key in _MODIFIERS else f"not_{key}": value for key, value in check.items()}


def at_least(n: int, *checks: Any) -> dict[str, Any]:
    """A check for a suite in Python that holds where at least `n` of some checks do."""
    return {"at_least": {"n": n, "of": list(checks)}}


def all_of(*checks: Any) -> dict[str, Any]:
    """A check for a suite in Python that holds where all of some checks do."""
    return {"all_of": list(checks)}


def any_of(*checks: Any) -> dict[str, Any]:
    """A check for a suite in Python that holds where any of some checks does."""
    return {"any_of": list(checks)}


def _evaluator_entry(kind: str, options: Mapping[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    """The suite file entry of an evaluator that a function of ``ev`` returns."""
    return evaluator(kind, options, **keys)


def _check_entry(kind: str, argument: Any = _NOTHING, **keys: Any) -> dict[str, Any]:
    """The suite file entry of a check that a function of ``ev`` returns."""
    modifiers = {key: keys.pop(key) for key in _MODIFIERS if keys.get(key) is not None}
    if argument is not _NOTHING and Registry.installed().checks[kind].argument is Any:
        argument = form_of(argument)  # any object of the user's, to compare with the form of the answer
    if argument is _NOTHING:
        argument = keys or True
    elif keys:
        raise TypeError(f"{kind}: found an argument and {', '.join(keys)}, expected one or the other")
    return {kind: argument, **modifiers}


class EntryFunction:
    """The function of an evaluator or a check.

    Its signature and its docstring are read when they are looked at: most runs never load most evaluators.
    """

    __module__ = "pytest_llmeval"

    def __init__(self, name: str, kind: str, *, is_check: bool) -> None:
        self.__name__ = self.__qualname__ = name
        self._kind = kind
        self._is_check = is_check

    def __call__(self, *args: Any, **keys: Any) -> dict[str, Any]:
        """Return the entry of a suite file."""
        return (_check_entry if self._is_check else _evaluator_entry)(self._kind, *args, **keys)

    def __repr__(self) -> str:
        return f"{self.__name__}{self.__signature__}"

    @property
    def __doc__(self) -> str:  # type: ignore[override]  # read-only here
        """The docstring of the evaluator, or the meaning of the check."""
        if self._is_check:
            return f"A check: {Registry.installed().checks[self._kind].meaning}."
        return cleandoc(Registry.installed().get(self._kind).__doc__ or "").replace("\nAttributes:\n", "\nArgs:\n")

    @property
    def __signature__(self) -> Signature:
        """The options, and what stands next to them in a suite file."""
        beside = _MODIFIERS if self._is_check else _BESIDE
        if self._is_check:
            kind = Registry.installed().checks[self._kind]
            forms = (kind.argument, *get_args(kind.argument))
            parts = next((dataclass_fields(form) for form in forms if is_dataclass(form)), ())
            default = Parameter.empty if kind.argument and not (kind.optional or parts) else None
            own = [Parameter("argument", Parameter.POSITIONAL_OR_KEYWORD, default=default)]
            own += [
                Parameter(part.name, Parameter.KEYWORD_ONLY, default=None) for part in parts if part.name not in beside
            ]
        else:
            options = signature(Registry.installed().get(self._kind)).parameters.values()
            own = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in options]
        return Signature([*own, *(Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in beside)])


class JudgeFunction(EntryFunction):
    """The function of the check of a criterion, if one is given, and else of the evaluator: both have this name."""

    __doc__ = EntryFunction.__dict__["__doc__"]  # of an object: that of the evaluator

    def __init__(self) -> None:
        super().__init__("judge", "judge", is_check=False)

    def __call__(self, criterion: str | None = None, **keys: Any) -> dict[str, Any]:
        """Return the entry of a suite file."""
        return _evaluator_entry("judge", **keys) if criterion is None else _check_entry("judge", criterion, **keys)

    @property
    def __signature__(self) -> Signature:
        """The criterion, and what the check and the evaluator take besides."""
        criterion = Parameter("criterion", Parameter.POSITIONAL_OR_KEYWORD, default=None)
        own = EntryFunction("judge", "judge", is_check=False).__signature__.parameters
        more = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in _MODIFIERS if name not in own]
        return Signature([criterion, *own.values(), *more])


judge: Final = JudgeFunction()


def __getattr__(name: str) -> EntryFunction:
    """The function ``ev.NAME`` of an evaluator or a check, made when it is first used."""
    if name.startswith("__"):  # an import asks for __path__, and loads no plugin for it
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    registry = Registry.installed()
    kinds = {kind.replace(".", "_"): kind for kind in registry}
    if name not in kinds and name not in registry.checks:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = globals()[name] = EntryFunction(name, kinds.get(name, name), is_check=name not in kinds)
    return function


def _evaluator_of_entry(entry: Mapping[str, Any]) -> tuple[str, Evaluator]:
    """The label and evaluator of a suite's entry, such as ``ev.text(metrics=["f1"])``.

    Raises:
        EvaluatorError: It names no evaluator or an unknown option, or has a setting that only suites read.
    """
    kinds = [name for name in entry if name not in _BESIDE_IN_FILE]
    if unread := [name for name in entry if name in _BESIDE_IN_FILE and name != "as"]:
        raise EvaluatorError(f"found an evaluator with {unread[0]}, which only a suite reads")
    if len(kinds) != 1:
        raise EvaluatorError("found dict, expected an evaluator, such as ev.text(metrics=['f1'])")
    return entry.get("as", ""), get_evaluator(kinds[0], **entry[kinds[0]])
