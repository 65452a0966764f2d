"""The settings of a target in a suite file, and the contract of targets in other processes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.data.files.validation import STRICT


@dataclass(frozen=True)
class ResponseSpec:
    """The places of predictions in a reply.

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
        """Return the settings of a suite file; a lone path leads to the list or, without a list, to the prediction."""
        if isinstance(setting, str):
            return cls(items=setting) if listed else cls(prediction=setting)
        return cls(**(setting or {}))


@dataclass(frozen=True)
class HttpSpec:
    """A service that answers over HTTP in JSON.

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


@dataclass(frozen=True)
class WorkspaceSpec:
    """A fresh folder for each case of a command.

    Attributes:
        folder: A folder next to the suite that is copied; ``None`` for an empty one.
        copy: Files and folders next to the suite that are also copied, to their places in the workspace.
        environment: Variables of the command.
        environment_from: Variables of this process that it has as well, such as one with a key.
        must_not_read: Files and folders next to the suite that the command must not read: an answer that shows their
            path or a line of them does not count.
        after: Commands that run in the workspace afterwards, such as its tests.
        max_output: Bytes that the command may write.
    """

    __pydantic_config__: ClassVar = STRICT

    folder: str | None = None
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

    __pydantic_config__: ClassVar = STRICT

    python: str | None = None
    timeout: float | None = None
    concurrency: int | None = None
    http: HttpSpec | None = None
    command: tuple[str, ...] | None = None
    traces: bool = False
    world: str | None = None
    workspace: str | WorkspaceSpec | None = None

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
        return not named and any(each is not None for each in options)

    @property
    def own_concurrency(self) -> int | None:
        """The calls or requests at a time that its settings allow; ``None`` if they do not say."""
        return self.http.concurrency if self.http is not None else self.concurrency


class BatchTarget(ABC):
    """Something that answers several inputs in one call. It belongs to the event loop that first awaits it.

    Attributes:
        batch: How many inputs one call should bring.
        concurrency: How many calls may be under way at once.
    """

    batch: int = 1
    concurrency: int = 1

    @abstractmethod
    async def answer(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        """Return one entry for each input, in their order: the prediction, or why there is none.

        Calls may overlap.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close connections and processes; a second call does nothing."""
