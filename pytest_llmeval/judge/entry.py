"""A judgement as it is kept: what was asked, what came back, and what it cost."""

__all__ = ("Entry",)

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_llmeval.judge.contract import Usage


@dataclass(frozen=True, slots=True)
class Entry:
    """One judgement.

    Attributes:
        key: See `pytest_llmeval.judge.key.judgement_key`.
        case: Id of the case that was judged first, for people; the same question in another case shares the key.
        components: What the key is made of; see `pytest_llmeval.judge.key.components`.
        reply: The judge's reply as it came.
        score: What it was read as, for people; whoever uses the entry reads the reply again.
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
    def from_json(cls, data: Any) -> "Entry":
        """Read what `to_json` wrote; the round trip is identity.

        Raises:
            ValueError: It is something else; the message names every field at fault.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"found {type(data).__name__}, expected an object with {', '.join(_FIELDS)}")  # noqa: TRY004 (a fault of a file, not of a caller)
        faults = [f"found no {name}, expected {_FIELDS[name][1]}" for name in _FIELDS if name not in data]
        faults += [
            f"found the unknown key {name!r}, expected none of that name" for name in data if name not in _FIELDS
        ]
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
    "input_tokens": (_or_null(_count), "a whole number from 0, or null"),
    "output_tokens": (_or_null(_count), "a whole number from 0, or null"),
    "seconds": (_amount, "a number from 0"),
    "cost_usd": (_or_null(_amount), "a number from 0, or null"),
    "key": (_key, "32 hexadecimal digits"),
    "instructions": (_text, "a digest"),
    "texts": (_digests, "an object of digests"),
}


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 (as much as an error line takes)
