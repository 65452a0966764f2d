"""The settings of a target in a suite file, its contract, and the requests and replies that they describe."""

import json
import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Literal, TypeAlias

from pytest_llmeval.core import PredictionError, unknown_name
from pytest_llmeval.data import DataPath, DeclaredType
from pytest_llmeval.services import Redactor, Secrets, ServiceAddress, Stopwatch


@dataclass(frozen=True)
class ResponseSpec:
    """The places of predictions in the reply of a target service.

    Attributes:
        items: Path to the list of results; ``None``: the reply is the list.
        prediction: Path to the prediction within a result; ``None``: the result is the prediction.
        id: Path within a result to what the request sent as ``$id``; ``None``: results come in the order of inputs.
    """

    items: str | None = None
    prediction: str | None = None
    id: str | None = None

    @classmethod
    def from_setting(cls, setting: str | Mapping[str, str] | None, *, listed: bool) -> "ResponseSpec":
        """The settings of a suite file; a lone path leads to the list or, without a list, to the prediction."""
        if isinstance(setting, str):
            return cls(items=setting) if listed else cls(prediction=setting)
        return cls(**(setting or {}))


@dataclass(frozen=True)
class HttpSpec:
    """A suite's target that is a service over HTTP and answers in JSON.

    Attributes:
        url: Where it is.
        request: The body as JSON, with placeholders for inputs; the query string for ``GET``.
        url_from_env: Environment variable whose value, where it is set, replaces `url`.
        method: Of the request.
        batch: How many inputs a request carries at most.
        response: Path to the prediction in the reply, or with ``$each`` to the list of predictions; or the fields of
            `ResponseSpec`.
        headers: Name to value.
        headers_from_env: Name to the environment variable that holds the value.
        timeout: Seconds that one attempt may take.
        retries: How often a failed attempt is repeated.
        concurrency: How many requests of a process may be under way at once.
        media: How images, sounds and documents are written in a request: as parts of OpenAI or Gemini, blocks of
            Anthropic, an address (``data:`` for a content), or in Base64.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    url: str
    request: Any
    url_from_env: str | None = None
    method: Literal["GET", "POST", "PUT"] = "POST"
    batch: int = 1
    response: str | dict[str, str] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    headers_from_env: dict[str, str] = field(default_factory=dict)
    timeout: float = 60
    retries: int = 2
    concurrency: int = 4
    media: Literal["openai", "anthropic", "gemini", "address", "base64"] = "openai"


@dataclass(frozen=True)
class WorkspaceSpec:
    """A fresh folder for each case of a target command.

    Attributes:
        folder: A folder next to the suite that is copied; ``None`` for an empty one.
        commit: A commit of the repository of the suite, in place of the folder; the workspace is a clone of its own.
        copy: Files and folders next to the suite that are also copied, to their places in the workspace.
        environment: Variables of the command.
        environment_from: Variables of this process that it has as well, such as one with a key.
        must_not_read: Files and folders next to the suite that the command must not read: an answer that shows their
            path or a line of them does not count.
        after: Commands that run in the workspace afterwards, such as its tests.
        max_output: Bytes that the command may write.
    """

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    folder: str | None = None
    commit: str | None = None
    copy: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    environment_from: tuple[str, ...] = ()
    must_not_read: tuple[str, ...] = ()
    after: tuple[tuple[str, ...], ...] = ()
    max_output: int = 10_000_000


@dataclass(frozen=True)
class TargetSpec:
    """Where predictions come from: a Python callable, a service, or a command; exactly one of them.

    With options and none of them, the options hold for the fixture ``llmeval_target`` and for what a script gives.

    Attributes:
        python: ``module:name`` of the callable; it receives the case's input and returns (or awaits) the prediction.
        timeout: Seconds that one call of the callable or the command may take; ``None`` waits for ever.
        http: The service.
        command: A program and its arguments, which speaks JSON lines; with a workspace, one that runs once per case.
        workspace: The folder of each case of the command.
        concurrency: Most calls of the callable at a time, or runs of a command with a workspace; 1 makes them one after
            the other, in the thread of the tests. ``None`` for as many as the run allows, of commands 1.
        world: ``module:name`` of a context manager of the case, entered for each call of the callable.
        traces: Whether the spans that the callable emits by OpenTelemetry are a part of its answer: messages, calls of
            tools, passages and usage.
    """

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    python: str | None = None
    timeout: float | None = None
    concurrency: int | None = None
    http: HttpSpec | None = None
    command: tuple[str, ...] | None = None
    traces: bool = False
    world: str | None = None
    workspace: str | WorkspaceSpec | None = None

    @classmethod
    def of_service(cls, settings: Mapping[str, Any]) -> "TargetSpec":
        """The HTTP service with these settings, unchecked."""
        return cls(http=HttpSpec(**settings))

    @property
    def workspace_spec(self) -> WorkspaceSpec | None:
        """The workspace in its mapping form."""
        return WorkspaceSpec(folder=self.workspace) if isinstance(self.workspace, str) else self.workspace

    @property
    def kind(self) -> str | None:
        """Which of ``python``, ``http`` and ``command`` is given; ``None`` unless exactly one is."""
        kinds = [name for name in ("python", "http", "command") if getattr(self, name) is not None]
        return kinds[0] if len(kinds) == 1 else None

    @property
    def is_for_fixture(self) -> bool:
        """Whether only options are given, for the calls of the fixture ``llmeval_target`` or of a script's target."""
        named = self.python is not None or self.http is not None or self.command is not None
        options = (self.concurrency, self.timeout, self.world, self.traces or None)
        return not named and any(option is not None for option in options)

    @property
    def own_concurrency(self) -> int | None:
        """The calls or requests at a time that its settings allow; ``None`` if they do not say."""
        return self.http.concurrency if self.http is not None else self.concurrency

    def faults(self, objects: Container[str] = ()) -> "Iterator[SpecFault]":
        """Yield where a target is wrong, and ``found ..., expected ...``; no message holds what may be secret.

        Args:
            objects: Names of what Python passes by value.
        """
        is_function = self.python is not None or self.is_for_fixture
        if self.kind is None and not self.is_for_fixture:
            kinds = [name for name in ("python", "http", "command") if getattr(self, name) is not None]
            subject = f"found {' and '.join(kinds)}" if kinds else "no target given"
            yield (), f"{subject}: set exactly one of python, http, command"
        if self.python is not None and self.python not in objects:
            yield from _python_faults(self.python)
        if self.http is not None:
            yield from ((("http", *path), message) for path, message in _http_faults(self.http))
            if self.timeout is not None:
                yield ("timeout",), "found a timeout beside http, expected it inside http"
        elif self.timeout is not None:
            yield from _timeout_faults(self.timeout)
        if self.concurrency is not None and not is_function and self.workspace is None:
            where = "inside http" if self.http is not None else "none: a command gets one input at a time"
            yield ("concurrency",), f"found {self.concurrency}, expected {where}"
        elif self.concurrency is not None and self.concurrency < 1:
            yield ("concurrency",), f"found {self.concurrency}, expected at least 1"
        if self.traces and not is_function:
            yield ("traces",), f"found traces beside {self.kind or 'no target'}, expected a python target"
        if self.world is not None:
            if not is_function:
                yield ("world",), f"found a world beside {self.kind or 'no target'}, expected a python target"
            if self.world not in objects:
                yield from ((("world",), message) for _, message in _python_faults(self.world))
        yield from _command_faults(self)


class BatchTarget(ABC):
    """A target that answers several inputs in one call. It belongs to the event loop that first awaits it.

    Attributes:
        batch: How many inputs one call should bring.
        concurrency: How many calls may be under way at once.
    """

    batch: int = 1
    concurrency: int = 1

    @abstractmethod
    async def answer(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        """One entry for each input, in their order: the prediction, or why there is none.

        Calls may overlap.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close connections and processes of the target; a second call does nothing."""

    @staticmethod
    def timed() -> AbstractContextManager[None]:
        """A context whose time is latency of the answers: what a target does around its calls is not."""
        return Stopwatch.current().call()


TemplatePath: TypeAlias = tuple[str | int, ...]

_EACH: Final = "$each"
_ID: Final = "$id"
_INPUT: Final = "$input"
_KNOWN: Final = (_EACH, _ID, _INPUT)


def at(value: Any, path: str | None) -> Any:
    """The value at a dotted path in a target's input or reply, or `ABSENT`; ``None`` means the whole."""
    if path is None:
        return value
    return DataPath(path).find(value)


def fill(template: Any, inputs: Sequence[Any], number: int = 0) -> Any:
    """The request to a target service for some inputs.

    Args:
        template: Free of faults.
        inputs: Each with a value at every path of `input_paths`.
        number: The input for placeholders outside ``$each``.
    """
    if isinstance(template, Mapping):
        if _INPUT in template:
            path = template[_INPUT]
            return at(inputs[number], None if path is True else path)
        if _ID in template:
            return number
        if _EACH in template:
            return [fill(template[_EACH], inputs, index) for index in range(len(inputs))]
        return {key: fill(part, inputs, number) for key, part in template.items()}
    if isinstance(template, list | tuple):
        return [fill(part, inputs, number) for part in template]
    return template


def has_each(template: Any) -> bool:
    """Whether the request template of a target service lists its inputs."""
    return any(name == _EACH for _, name, _ in _placeholders(template))


def has_id(template: Any) -> bool:
    """Whether the request template of a target service numbers its inputs."""
    return any(name == _ID for _, name, _ in _placeholders(template))


def input_paths(template: Any) -> tuple[str, ...]:
    """The sorted paths that every case's input must have for the request template of a target service."""
    inputs = {value for _, name, value in _placeholders(template) if name == _INPUT and isinstance(value, str)}
    return tuple(sorted(inputs))


def template_faults(template: Any, batch: int) -> Iterator[tuple[TemplatePath, str]]:
    """Yield the faults of a target service's request template for batches of a size, each with its path."""
    placeholders = list(_placeholders(template))
    for place, name, value in placeholders:
        around = _mapping_around(template, place)
        if name not in _KNOWN:
            yield place, unknown_name("placeholder", name, _KNOWN)
        elif len(around) > 1:
            yield place, f"found {name!r} beside other keys, expected it alone in its mapping"
        elif name == _INPUT and value is not True and not (isinstance(value, str) and all(value.split("."))):
            yield place, f"found {value!r}, expected true for the whole input, or a path into it such as 'question'"
        elif name == _ID and value is not True:
            yield place, "found a value other than true, expected {$id: true}"
        elif name == _EACH and _EACH in place[:-1]:
            yield place, "found $each inside $each, expected only one of them"
        elif name != _EACH and _EACH not in place and batch > 1:
            yield place, f"found {name!r} outside $each, expected it inside: a request has up to {batch} inputs"
    if not any(name == _INPUT or name not in _KNOWN for _, name, _ in placeholders):
        yield (), "{$input: ...} is missing: the request needs the input of the case"


def _placeholders(template: Any, place: TemplatePath = ()) -> Iterator[tuple[TemplatePath, str, Any]]:
    """Yield the placeholders in a target service's request template, with path, name and value."""
    if isinstance(template, Mapping):
        for key, part in template.items():
            if key.startswith("$"):
                yield (*place, key), key, part
            yield from _placeholders(part, (*place, key))
    elif isinstance(template, list | tuple):
        for number, part in enumerate(template):
            yield from _placeholders(part, (*place, number))


def _mapping_around(template: Any, place: TemplatePath) -> Any:
    """The mapping of a request template in which the placeholder at a place stands."""
    for step in place[:-1]:
        template = template[step]
    return template


class WrongCountError(PredictionError):
    """A target service returned more or fewer results than inputs, so they cannot be matched."""


def predictions_in(
    reply: Any, response: ResponseSpec, count: int, redactor: Redactor, *, listed: bool
) -> list[Any | PredictionError]:
    """The prediction in a target service's reply for each input, in order, or the error in its place.

    Args:
        reply: JSON data.
        response: Where to find the predictions.
        count: How many inputs were sent.
        redactor: Makes parts of the reply fit for reasons.
        listed: Whether they were sent as a list; if not, there is one, and `response` names its prediction.

    Raises:
        WrongCountError: The results have no ids, and there are more or fewer than inputs.
        PredictionError: There is no list of results.
    """
    if not listed:
        return [_prediction(reply, response.prediction, "the reply", redactor)]
    items = at(reply, response.items)
    where = f"at {response.items!r}" if response.items is not None else "as the reply"
    if not isinstance(items, list):
        description = f"nothing {where}" if items is DataPath.ABSENT else f"{kind(items)} {where}"
        raise PredictionError(f"found {description}, expected a list of results")
    if response.id is not None:
        return _by_id(items, response, count, redactor)
    if len(items) != count:
        raise WrongCountError(f"found {len(items)} results {where}, expected {count}")
    prefix = response.items or ""
    return [_prediction(item, response.prediction, f"{prefix}[{place}]", redactor) for place, item in enumerate(items)]


def _prediction(item: Any, path: str | None, where: str, redactor: Redactor) -> Any | PredictionError:
    """The prediction in a result of a target service, or the error that it is missing or null."""
    prediction = at(item, path)
    if prediction is not DataPath.ABSENT and prediction is not None:
        return prediction
    place = f"{path!r} of {where}" if path is not None else where
    fault = f"{place} is missing" if prediction is DataPath.ABSENT else f"found null at {place}, expected a prediction"
    excerpt = f": {redactor.excerpt(json.dumps(item, ensure_ascii=False))}" if item is not None else ""
    return PredictionError(f"{fault}{excerpt}")


def _by_id(items: Sequence[Any], response: ResponseSpec, count: int, redactor: Redactor) -> list[Any | PredictionError]:
    """Match the results of a target service to the inputs by id; a missing or repeated id is an error."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        identifier = at(item, response.id)
        if isinstance(identifier, int | str) and not isinstance(identifier, bool):
            places[str(identifier)].append(place)
    strange = sorted(places.keys() - {str(number) for number in range(count)})
    hint = f", but results with the ids {redactor.excerpt(', '.join(strange))}" if strange else ""
    prefix = response.items or ""
    answers: list[Any | PredictionError] = []
    for number in range(count):
        match places.get(str(number), []):
            case []:
                answers.append(PredictionError(f"no result has {number} as {response.id!r}{hint}"))
            case [place]:
                answers.append(_prediction(items[place], response.prediction, f"{prefix}[{place}]", redactor))
            case several:
                answers.append(
                    PredictionError(f"found {len(several)} results whose {response.id!r} is {number}, expected one")
                )
    return answers


SpecFault: TypeAlias = tuple[tuple[str | int, ...], str]

_LONGEST_TIMEOUT: Final = 24 * 60 * 60
_RANGES: Final = {"batch": (1, 10_000), "retries": (0, 10), "concurrency": (1, 64)}
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _python_faults(name: str) -> Iterator[SpecFault]:
    """Yield the fault of a suite's Python target that is not written as ``MODULE:NAME``."""
    module, colon, attribute = name.partition(":")
    if not (colon and attribute and all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))):
        yield (), f"found {name!r}, expected MODULE:NAME such as 'my_app.answers:answer'"


def _timeout_faults(timeout: float) -> Iterator[SpecFault]:
    """Yield the fault of a target's ``timeout`` that is out of range."""
    if not 0 < timeout <= _LONGEST_TIMEOUT:
        yield ("timeout",), f"found {timeout}, expected seconds above 0 and at most a day"


def _http_faults(spec: HttpSpec) -> Iterator[SpecFault]:
    """Yield the faults of a suite's HTTP target, such as its address, request and response."""
    if wrong := url_fault(spec.url):
        yield ("url",), wrong
    if spec.url_from_env is not None and (wrong := Secrets.variable_fault(spec.url_from_env, "SEARCH_URL")):
        yield ("url_from_env",), wrong
    for name, (low, high) in _RANGES.items():
        if not low <= (number := getattr(spec, name)) <= high:
            yield (name,), f"found {number}, expected a whole number from {low} to {high}"
    yield from _timeout_faults(spec.timeout)
    yield from _header_faults(spec)
    for path, message in template_faults(spec.request, spec.batch):
        yield ("request", *path), message
    yield from _response_faults(spec)
    if spec.method == "GET":
        if spec.batch != 1:
            yield ("batch",), f"found {spec.batch}, expected 1: a GET request has one input"
        if not isinstance(spec.request, Mapping) or any(key.startswith("$") for key in spec.request):
            yield (
                ("request",),
                "parameter names are missing: GET sends a query string, {NAME: value}",
            )


def _command_faults(spec: TargetSpec) -> Iterator[SpecFault]:
    """Yield the faults of a suite's target command and its workspace."""
    workspace = spec.workspace
    if isinstance(workspace, WorkspaceSpec) and None not in (workspace.folder, workspace.commit):
        yield ("workspace", "commit"), "found 'folder' as well, expected one of them"
    if spec.workspace is not None and spec.command is None:
        yield ("workspace",), f"found a workspace beside {spec.kind or 'no target'}, expected a command"
    if spec.command is None:
        return
    if not spec.command or not spec.command[0].strip():
        yield ("command",), "the program is missing: write a list of it and its arguments"
    for number, part in enumerate(spec.command):
        if "\0" in part:
            yield ("command", number), "found a NUL character, expected text"


def _header_faults(spec: HttpSpec) -> Iterator[SpecFault]:
    """Yield the faults of an HTTP target's headers: invalid or repeated names, and secrets in the suite file."""
    seen: set[str] = set()
    for key, headers in (("headers", spec.headers), ("headers_from_env", spec.headers_from_env)):
        for name in headers:
            if not _HEADER.fullmatch(name):
                yield (key, name), f"found {name!r}, expected the name of a header"
            if name.lower() in seen:
                yield (key, name), f"found the header {name!r} twice, expected it once"
            seen.add(name.lower())
    for name, value in spec.headers.items():
        if Secrets.is_name(name):
            yield ("headers", name), "found a secret in the file, expected this header under headers_from_env"
        elif not (value.isascii() and value.isprintable()):
            yield ("headers", name), "found a value that is not allowed in a header, expected printable ASCII"
    for name, variable in spec.headers_from_env.items():
        if wrong := Secrets.variable_fault(variable, "SEARCH_TOKEN"):
            yield ("headers_from_env", name), wrong


def _response_faults(spec: HttpSpec) -> Iterator[SpecFault]:
    """Yield the faults of an HTTP target's ``response``, the paths to predictions in a reply."""
    response = {} if spec.response is None else spec.response
    paths = {"": response} if isinstance(response, str) else response
    known = [path.name for path in fields(ResponseSpec)]
    for name, path in paths.items():
        place = ("response", name) if name else ("response",)
        if name and name not in known:
            yield place, unknown_name("key", name, known)
        elif not all(path.split(".")):
            yield place, f"found {path!r}, expected a path such as 'results' or 'data.results'"
    if isinstance(response, str) or not response:
        return
    if not has_each(spec.request):
        yield ("response",), "found a mapping, expected a path: without $each in the request there is no list"
    elif "id" in response and not has_id(spec.request):
        yield ("response", "id"), f"found {response['id']!r}, expected {{$id: true}} in the request as well"


def url_fault(url: str) -> str | None:
    """The fault of a target service's address, if any; the message holds no part that may be secret."""
    return ServiceAddress(url).fault("http://HOST/PATH or https://HOST/PATH", "the secret under headers_from_env")


def kind(value: Any) -> str:
    """The kind of JSON data in a target service's reply, without its values."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text" if value else "an empty text"
        case Mapping():
            return f"an object with {', '.join(map(repr, list(value)[:3]))}" if value else "an empty object"
        case _:
            return f"a list of {len(value)}"
