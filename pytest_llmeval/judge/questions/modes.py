"""The shipped modes of judging, each loaded from its file on demand."""

__all__ = ("MODES", "get_mode", "optional_fields", "read_mode_file")

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.judge.contract import Mode
from pytest_llmeval.judge.questions.replies import (
    EXPLANATION_SCHEMA,
    SCORE_SCHEMA,
    read_explanation,
    read_score,
    read_yes_no,
)

MODES: Final = (
    "continuous",
    "temporal_reasoning",
    "knowledge_update",
    "preference",
    "default_binary",
    "abstention",
    "explanation",
    "criterion",
)
"""The modes that need nothing but their file; a rubric needs criteria, and ``adversarial`` is a rule."""

_PROMPTS = Path(__file__).parent / "prompts"
_REPLIES: Final = {
    "score": (read_score, SCORE_SCHEMA),
    "yes_no": (read_yes_no, None),
    "explanation": (read_explanation, EXPLANATION_SCHEMA),
}


@cache
def read_mode_file(name: str) -> Mapping[str, Any]:
    """Return the content of a mode's file: version, reply, scale, fields, instructions by language."""
    from pytest_llmeval.data.files.documents import read_document

    path = _PROMPTS / f"{name}.yaml"
    data: Mapping[str, Any] = read_document(path, path.name).data
    return data


@cache
def get_mode(name: str) -> Mode:
    """Return a mode by name.

    Raises:
        ValueError: There is none of that name among `MODES`.
    """
    if name not in MODES:
        raise ValueError(unknown_name("judge mode", name, MODES))
    file = read_mode_file(name)
    read, reply_schema = _REPLIES[file["reply"]]
    low, high = file["scale"]
    return Mode(
        name=name,
        version=file["version"],
        instructions=file["instructions"],
        fields=tuple(file["fields"]),
        scale=(float(low), float(high)),
        read=read,
        reply_schema=reply_schema,
    )


def optional_fields(name: str) -> frozenset[str]:
    """Return the fields of a mode, ``rubric`` included, that a question may lack."""
    return frozenset(read_mode_file(name).get("optional", ()))
