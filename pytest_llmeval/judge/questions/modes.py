"""The shipped modes of judging, each loaded from its file on demand."""

__all__ = ("MODES", "PRESETS", "get_mode", "optional_fields", "preset_form", "read_mode_file")

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.judge.contract import Mode
from pytest_llmeval.judge.questions.forms import ReplyField, ReplyForm
from pytest_llmeval.judge.questions.replies import (
    EXPLANATION_SCHEMA,
    SCORE_SCHEMA,
    read_explanation,
    read_score,
    read_yes_no,
)

PRESETS: Final = (
    "tone",
    "toxicity",
    "bias",
    "personal_data",
    "advice_limits",
    "goal_reached",
    "summary_coverage",
)
"""The modes whose replies have a form of their own."""

MODES: Final = (
    "continuous",
    "temporal_reasoning",
    "knowledge_update",
    "preference",
    "default_binary",
    "abstention",
    "explanation",
    "criterion",
    *PRESETS,
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
    if name in PRESETS:
        form = preset_form(name)
        return Mode(
            name=name,
            version=file["version"],
            instructions={
                language: f"{text}\n\n{form.instructions(language)}" for language, text in file["instructions"].items()
            },
            fields=tuple(file["fields"]),
            scale=form.scale,
            read=form.read,
            reply_schema=form.schema,
        )
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


@cache
def preset_form(name: str) -> ReplyForm:
    """Return the form of the replies to one of `PRESETS`."""
    entries = read_mode_file(name)["reply"]
    return ReplyForm({name: "text" if entry == "text" else ReplyField(**entry) for name, entry in entries.items()})


def optional_fields(name: str) -> frozenset[str]:
    """Return the fields of a mode, ``rubric`` included, that a question may lack."""
    return frozenset(read_mode_file(name).get("optional", ()))
