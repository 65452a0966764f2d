"""The key of a judgement: a digest of all that can change what a judge answers, and of nothing else."""

__all__ = ("components", "difference", "judgement_key")

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_llmeval.judge.contract import Message, Question

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
    said = [[message.role, message.content] for message in messages]
    parts = [said, model, _plain(parameters), question.mode.name, question.mode.version, repeat]
    return hashlib.sha256(_encode(parts).encode()).hexdigest()[:32]


def components(
    question: Question,
    messages: Sequence[Message],
    *,
    model: str,
    parameters: Mapping[str, Any],
    repeat: int,
) -> dict[str, Any]:
    """Return what a key is made of, for people; texts and instructions by their digests, of 16 hexadecimal digits.

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
        mine: The components of what is asked now.
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
    return ", ".join(found) or "the form of the prompt"


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
