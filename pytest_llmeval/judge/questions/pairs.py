"""The mode that compares two answers, with the criteria that ship or those of a user."""

__all__ = ("pairwise_mode", "read_better")

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from string import Template
from typing import Any, Final

from pytest_llmeval.judge.contract import Mode, Verdict
from pytest_llmeval.judge.questions.modes import read_mode_file
from pytest_llmeval.judge.questions.replies import closing_object, plain, says, shortened, unreadable

_SCORES: Final = {"first": 1.0, "tie": 0.5, "second": 0.0}
_SCHEMA: Final = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "better": {"type": "string", "enum": ["first", "second", "tie"]}},
    "required": ["reasoning", "better"],
    "additionalProperties": False,
}
_SAYS = says("better", "(?:first|second|tie)(?![a-z0-9_])")
_SHOWN = 60


@lru_cache(maxsize=64)
def pairwise_mode(criteria: str | None = None) -> Mode:
    """Return the mode whose score is 1 where the first answer is better, 0 where the second is, and 0.5 for a tie.

    Args:
        criteria: What makes an answer better; inserted into the instructions unchanged. The version of the mode then
            holds their digest. Default: those of the mode.
    """
    file = read_mode_file("pairwise")
    version = file["version"]
    if criteria is not None:
        version += f"-{hashlib.sha256(criteria.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return Mode(
        name="pairwise",
        version=version,
        instructions={
            language: Template(text).substitute(criteria=file["criteria"][language] if criteria is None else criteria)
            for language, text in file["instructions"].items()
        },
        fields=tuple(file["fields"]),
        scale=(0.0, 1.0),
        read=read_better,
        reply_schema=_SCHEMA,
        decides=True,
        tied=_SCORES["tie"],
    )


def read_better(reply: str) -> Verdict:
    """Read a JSON object whose ``better`` is ``first``, ``second`` or ``tie``.

    Raises:
        JudgeError: No JSON object ends the reply, it says something else, or the text before it contradicts it.
    """
    data = closing_object(reply, _verdict, _SAYS)
    better = data.get("better")
    if not isinstance(better, str) or better.strip().lower() not in _SCORES:
        found = shortened(json.dumps(better, ensure_ascii=False), _SHOWN) if "better" in data else "nothing"
        raise unreadable(reply, f"found {found} as better, expected first, second or tie")
    reasoning = data.get("reasoning")
    return Verdict(_SCORES[better.strip().lower()], plain(reasoning.strip()) if isinstance(reasoning, str) else "")


def _verdict(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"better": data["better"]} if "better" in data else {}
