"""A stored judgement: question, reply and cost."""

__all__ = ("StoredJudgement", "components", "difference", "judgement_key")

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_llmeval.judge.contract import Message, Question, Usage


@dataclass(frozen=True, slots=True)
class StoredJudgement:
    """One judgement.

    Attributes:
        key: See `pytest_llmeval.judge.stored_judgement.judgement_key`.
        case: Id of the case that was judged first, for people; the same question in another case shares the key.
        components: What the key is made of; see `pytest_llmeval.judge.stored_judgement.components`.
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
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    cost_usd: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data: first what people read, digests last."""
        parts = self.components
        return {
            "case": self.case,
            "mode": parts["mode"],
            "model": parts["model"],
            "score": self.score,
            "reply": self.reply,
            "repeat": parts["repeat"],
            "version": parts["version"],
            "language": parts["language"],
            "parameters": dict(parts["parameters"]),
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "seconds": self.seconds,
            "cost_usd": self.cost_usd,
            "key": self.key,
            "instructions": parts["instructions"],
            "texts": dict(sorted(parts["texts"].items())),
        }

    @classmethod
    def from_json(cls, data: Any) -> "StoredJudgement":
        """Read what `to_json` wrote; the round trip is identity.

        Raises:
            ValueError: It is something else; the message names every field at fault.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"found {type(data).__name__}, expected an object with {', '.join(_FIELDS)}")  # noqa: TRY004 (a fault of a file, not of a caller)
        faults = [f"found no {name}, expected {_FIELDS[name][1]}" for name in _FIELDS if name not in data]
        faults += [f"found the unknown key {name!r}, expected only known ones" for name in data if name not in _FIELDS]
        for name, (fits, expected) in _FIELDS.items():
            if name in data and not fits(data[name]):
                faults.append(f"{name}: found {_short(data[name])}, expected {expected}")
        if faults:
            raise ValueError("; ".join(faults))
        return cls(
            key=data["key"],
            case=data["case"],
            components={name: data[name] for name in _COMPONENTS},
            reply=data["reply"],
            score=data["score"],
            usage=Usage(data["input_tokens"], data["output_tokens"]),
            seconds=data["seconds"],
            cost_usd=data["cost_usd"],
        )


_COMPONENTS = ("mode", "version", "language", "model", "parameters", "repeat", "instructions", "texts")
_KEY = re.compile(r"[0-9a-f]{32}")


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond what a float can hold
        return False


def _amount(value: Any) -> bool:
    return _number(value) and value >= 0


def _count(value: Any) -> bool:
    return isinstance(value, int) and _amount(value)


def _key(value: Any) -> bool:
    return _text(value) and _KEY.fullmatch(value) is not None


def _names(value: Any) -> bool:
    return isinstance(value, Mapping)


def _digests(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_text, value.values()))


def _or_null(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "case": (_text, "the id of a case"),
    "mode": (_text, "the name of a mode"),
    "model": (_text, "PROVIDER:NAME"),
    "score": (_number, "a finite number"),
    "reply": (_text, "text"),
    "repeat": (_count, "a whole number from 0"),
    "version": (_text, "text"),
    "language": (_text, "text"),
    "parameters": (_names, "an object"),
    "input_tokens": (_or_null(_count), "a whole number of at least 0, or null"),
    "output_tokens": (_or_null(_count), "a whole number of at least 0, or null"),
    "seconds": (_amount, "a number from 0"),
    "cost_usd": (_or_null(_amount), "a number from 0, or null"),
    "key": (_key, "32 hexadecimal digits"),
    "instructions": (_text, "a digest"),
    "texts": (_digests, "an object of digests"),
}


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 (as much as an error line takes)


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
    """Return the key under which a verdict is kept.

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
    """Return the components of a key for people; texts and instructions as digests of 16 hexadecimal digits.

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
        "instructions": _digest([each.content for each in messages if each.role == "system"]),
        "texts": {name: _digest(question.texts[name]) for name in sorted(question.texts)},
    }


def difference(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """Say in what two judgements differ, such as ``the answer, the model (openai:a, recorded openai:b)``.

    Args:
        mine: The components of the current question.
        theirs: The components of what was recorded.
    """
    texts, recorded = mine["texts"], theirs["texts"]
    names = sorted(texts.keys() | recorded.keys())
    found = [f"the {name.replace('_', ' ')}" for name in names if texts.get(name) != recorded.get(name)]
    for name, title in _TITLES.items():
        if mine[name] != theirs[name]:
            found.append(f"the {title} ({_shown(mine[name])}, recorded {_shown(theirs[name])})")
    # Another mode, version or language has other instructions anyhow.
    same = all(mine[name] == theirs[name] for name in ("mode", "version", "language"))
    if same and mine["instructions"] != theirs["instructions"]:
        found.append("the instructions")
    return ", ".join(found) or "the format of the prompt"


_TITLES = {
    "mode": "mode",
    "version": "version of the mode",
    "language": "language",
    "model": "model",
    "parameters": "parameters",
    "repeat": "repeat",
}


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_encode(value[name])}" for name in sorted(value)) or "none"
    return value if isinstance(value, str) and value.isprintable() else _encode(value)


def _digest(value: Any) -> str:
    return hashlib.sha256(_encode(value).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Return JSON data, sorted, in which whole numbers look alike: YAML's ``0`` and ``0.0`` ask for the same."""
    if isinstance(value, Mapping):
        return {name: _plain(value[name]) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
