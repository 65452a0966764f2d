"""A stored judgement."""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Protocol, TypeAlias

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import asdict, fields

from pytest_llmeval.core import MediaText, excerpt, unknown_name
from pytest_llmeval.judges._protocol import Message, Question, Usage

_MOST: Final = 2**63 - 1
_LARGEST: Final = sys.float_info.max
_LONGEST: Final = 60

_StoredAmount: TypeAlias = Annotated[int, Meta(ge=0, le=_MOST)] | Annotated[float, Meta(ge=0, le=_LARGEST)]
_StoredCount: TypeAlias = Annotated[int, Meta(ge=0, le=_MOST)]
_StoredScore: TypeAlias = Annotated[int, Meta(ge=-_MOST, le=_MOST)] | Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]


class _JudgementLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A judgement as recordings and the cache have it: first what people read, digests last."""

    case: str
    mode: str
    model: str
    score: _StoredScore
    reply: str
    repeat: _StoredCount
    version: str
    language: str
    parameters: dict[str, Any]
    input_tokens: _StoredCount | None
    output_tokens: _StoredCount | None
    seconds: _StoredAmount
    cost_usd: _StoredAmount | None
    key: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]
    instructions: str
    texts: dict[str, str]


_EXPECTED: Final = {
    "case": "the id of a case",
    "mode": "the name of a mode",
    "model": "PROVIDER:NAME",
    "score": "a finite number",
    "reply": "text",
    "repeat": "a whole number from 0",
    "version": "text",
    "language": "text",
    "parameters": "an object",
    "input_tokens": "a whole number of at least 0, or null",
    "output_tokens": "a whole number of at least 0, or null",
    "seconds": "a number from 0",
    "cost_usd": "a number from 0, or null",
    "key": "32 hexadecimal digits",
    "instructions": "a digest",
    "texts": "an object of digests",
}
"""The words of messages in place of a type."""

_COMPONENTS: Final = ("mode", "version", "language", "model", "parameters", "repeat", "instructions", "texts")


class StoredJudgement(Struct, frozen=True):
    """One judgement, the reply of a judge to a question, as recordings and the cache keep it.

    Attributes:
        key: See `pytest_llmeval.judges._stored_judgement.judgement_key`.
        case: Id of the case that was judged first, for people; the same question in another case shares the key.
        components: What the key is made of; see `pytest_llmeval.judges._stored_judgement.components`.
        reply: The judge's reply as it came.
        score: The score for people; a run reads the reply again.
        usage: Tokens of the call.
        seconds: How long it took; finite, at least 0.
        cost_usd: What it cost; ``None`` where no price is known.
    """

    key: str
    case: str
    components: Mapping[str, Any]
    reply: str
    score: float
    usage: Usage = Usage()
    seconds: float = 0.0
    cost_usd: float | None = None

    @property
    def place(self) -> tuple[str, str, int, str]:
        """The sort key of a judgement among those of a file."""
        return self.case, self.components["mode"], self.components["repeat"], self.key

    def to_json(self) -> dict[str, Any]:
        """The judgement as JSON data: first what people read, digests last."""
        read, written = self.usage.input_tokens, self.usage.output_tokens
        line = _JudgementLine(
            case=self.case,
            score=self.score,
            reply=self.reply,
            input_tokens=read,
            output_tokens=written,
            seconds=self.seconds,
            cost_usd=self.cost_usd,
            key=self.key,
            **self.components,
        )
        return {**asdict(line), "texts": dict(sorted(line.texts.items()))}

    @classmethod
    def from_json(cls, data: Any) -> "StoredJudgement":
        """Read what `to_json` wrote; the round trip is identity.

        Raises:
            ValueError: It is something else; the message names every field at fault.
        """
        try:
            line = convert(data, _JudgementLine)
        except ValidationError:
            raise ValueError(_faults(data)) from None
        made_of = {name: getattr(line, name) for name in _COMPONENTS}
        usage = Usage(line.input_tokens, line.output_tokens)
        return cls(line.key, line.case, made_of, line.reply, line.score, usage, line.seconds, line.cost_usd)


def _faults(data: Any) -> str:
    """All faults of a stored judgement's line; the decoder stops at the first, and omits the value."""
    if not isinstance(data, dict):
        return f"found {type(data).__name__}, expected an object with {', '.join(_EXPECTED)}"
    faults = [f"{name} is missing" for name in _EXPECTED if name not in data]
    faults += [unknown_name("key", name, _EXPECTED) for name in data if name not in _EXPECTED]
    for field in fields(_JudgementLine):
        try:
            convert(data.get(field.name), field.type)
        except ValidationError:
            if field.name in data:
                value = excerpt(ascii(data[field.name]), _LONGEST)
                faults.append(f"{field.name}: found {value}, expected {_EXPECTED[field.name]}")
    return "; ".join(faults)


# ASCII output takes half of a surrogate pair, which models do emit, where UTF-8 has no bytes for it.
_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


def judgement_key(
    question: Question,
    messages: Sequence[Message],
    *,
    model: str,
    parameters: Mapping[str, Any],
    repeat: int,
) -> str:
    """The key under which recordings and the cache keep a judge's verdict.

    Args:
        question: What is asked; its mode counts by name and version.
        messages: The question as the model gets it.
        model: ``PROVIDER:NAME``.
        parameters: What the user set, such as ``temperature``. Neither the address of the service nor time limits,
            which do not change the answer, belong here; nor do keys.
        repeat: Index of the repeat, counted from 0.

    Returns:
        32 hexadecimal digits: the first half of a SHA-256.

    Raises:
        ValueError: A parameter is NaN or infinite.
    """
    conversation = [[message.role, message.content] for message in messages]
    parts = [conversation, model, _plain(parameters), question.mode.name, question.mode.version, repeat]
    return hashlib.sha256(_encode(parts).encode()).hexdigest()[:32]


def components(
    question: Question,
    messages: Sequence[Message],
    *,
    model: str,
    parameters: Mapping[str, Any],
    repeat: int,
) -> dict[str, Any]:
    """The components of a judgement key for people; texts and instructions are digests of 16 digits.

    Args:
        question: What is asked.
        messages: The question as the model gets it; the system messages are its instructions.
        model: ``PROVIDER:NAME``.
        parameters: What the user set.
        repeat: Index of the repeat, counted from 0.
    """
    return {
        "mode": question.mode.name,
        "version": question.mode.version,
        "language": question.language,
        "model": model,
        "parameters": _plain(parameters),
        "repeat": repeat,
        "instructions": _digest([message.content for message in messages if message.role == "system"]),
        "texts": {name: _digest(_identity(question.texts[name])) for name in sorted(question.texts)},
    }


def _identity(text: str) -> Any:
    """The parts in which two texts of a judge question can differ: the texts and their media."""
    return [text, *text.media] if isinstance(text, MediaText) else text


def difference(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """The difference of a recorded judgement, such as ``the answer, the model (openai:a, recorded openai:b)``.

    Args:
        mine: The components of the current question.
        theirs: The components of what was recorded.
    """
    texts, recorded = mine["texts"], theirs["texts"]
    names = sorted(texts.keys() | recorded.keys())
    differences = [f"the {name.replace('_', ' ')}" for name in names if texts.get(name) != recorded.get(name)]
    for name, title in _TITLES.items():
        if mine[name] != theirs[name]:
            differences.append(f"the {title} ({_excerpt(mine[name])}, recorded {_excerpt(theirs[name])})")
    # Another mode, version or language has other instructions anyhow.
    same = all(mine[name] == theirs[name] for name in ("mode", "version", "language"))
    if same and mine["instructions"] != theirs["instructions"]:
        differences.append("the instructions")
    return ", ".join(differences) or "the format of the prompt"


_TITLES = {
    "mode": "mode",
    "version": "version of the mode",
    "language": "language",
    "model": "model",
    "parameters": "parameters",
    "repeat": "repeat",
}


def _excerpt(value: Any) -> str:
    """A component of a judgement key as text, for a message on how judgements differ."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_encode(value[name])}" for name in sorted(value)) or "none"
    return value if isinstance(value, str) and value.isprintable() else _encode(value)


def _digest(value: Any) -> str:
    """The digest of a judge question's text or instructions, for the components of a judgement key."""
    return hashlib.sha256(_encode(value).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """A judge's parameters sorted, with equal whole numbers: YAML's ``0`` and ``0.0`` ask for the same."""
    if isinstance(value, Mapping):
        return {name: _plain(value[name]) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class ReplyStore(Protocol):
    """A store of judgements by key, used by any number of processes and threads at the same time.

    A damaged judgement is never returned; `verify` lists it. Methods raise `LlmevalError` if the store cannot be used.
    """

    def get(self, key: str) -> StoredJudgement | None:
        """The judgement stored under a key."""

    def put(self, entries: Sequence[StoredJudgement]) -> None:
        """Store judgements; each replaces an older one of its key."""

    def entries(self) -> Iterator[StoredJudgement]:
        """Yield all judgements that can be read."""

    def verify(self) -> list[str]:
        """The faults of the store of judgements, each with the name of what is damaged."""

    def prune(self, older_than_s: float | None = None, model: str | None = None) -> int:
        """Delete judgements that fulfil all conditions; return how many.

        Args:
            older_than_s: Stored longer ago than this.
            model: Of this ``PROVIDER:NAME``.
        """

    def close(self) -> None:
        """Release files and connections of the store; the next use opens them again."""
