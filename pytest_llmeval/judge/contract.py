"""What passes between evaluators, judges and stores: plain data, no I/O."""

__all__ = ("JudgeClient", "JudgeReply", "JudgeRequest", "Message", "Mode", "Question", "Usage", "Verdict")

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

Stopped: TypeAlias = Literal["stop", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with a model."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One call of a model, for any provider.

    Attributes:
        messages: In order.
        model: The model's name, without its provider.
        parameters: What the user set, such as ``temperature`` or ``max_tokens``; nothing else is sent.
        reply_schema: JSON Schema of the reply, for providers that can enforce one; ``None`` for plain text.
    """

    messages: tuple[Message, ...]
    model: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reply_schema: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return "\n\n".join(message.content for message in self.messages)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; ``None`` where the provider does not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """What a model answered.

    Attributes:
        text: The answer.
        usage: Tokens, summed over the attempts that the provider charged for.
        stopped: ``stop`` for a complete answer, ``length`` for one cut off, ``refusal`` for one that was refused or
            filtered.
    """

    text: str
    usage: Usage = Usage()
    stopped: Stopped = "stop"


class JudgeClient(Protocol):
    """Anything that completes a request, at once or awaited."""

    def complete(self, request: JudgeRequest) -> JudgeReply | Awaitable[JudgeReply]:
        """Return the model's reply.

        Raises:
            JudgeError: There is none; retries are the client's business.
        """


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reply that could be read.

    Attributes:
        score: On the scale of the mode.
        reasoning: The judge's reasons, empty where it gives none.
        details: Further findings, such as flags; JSON data.
    """

    score: float
    reasoning: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mode:
    """A way of judging: data, one file each.

    Attributes:
        name: Such as ``continuous``.
        version: Changes whenever the instructions or the reading of replies change; part of every cache key.
        instructions: Language (``en``, ``zh``) to what the judge is told.
        fields: Names of the texts that it is shown, in order.
        scale: Smallest and largest score.
        read: Turns a reply's text into a verdict, or raises `JudgeError`.
        reply_schema: JSON Schema of the reply; ``None`` where it is a word.

    Raises:
        TypeError: Name or version are no text: what is stored under them could not be found again.
    """

    name: str
    version: str
    instructions: Mapping[str, str]
    fields: tuple[str, ...]
    scale: tuple[float, float]
    read: Callable[[str], Verdict]
    reply_schema: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name, value in (("name", self.name), ("version", self.version)):
            _check_text(f"Mode: {name}", value)


@dataclass(frozen=True, slots=True)
class Question:
    """What a judge is asked about one case.

    Attributes:
        mode: How it judges.
        texts: Field name to text, for the fields of the mode; untrusted.
        language: Of the instructions.

    Raises:
        TypeError: The language is no text.
    """

    mode: Mode
    texts: Mapping[str, str]
    language: str = "en"

    def __post_init__(self) -> None:
        _check_text("Question: language", self.language)


def _check_text(what: str, value: Any) -> None:
    """Check what users' own evaluators, whose types nobody checks, give."""
    if not isinstance(value, str):
        raise TypeError(f"{what}: found {value!r}, expected text")
