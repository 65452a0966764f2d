"""Criteria of users (as in G-Eval, Liu et al. 2023): the judge writes steps once, and grades every answer by them."""

__all__ = ("GRADES", "criteria_mode", "numbered_steps", "read_steps", "steps_question")

import json
from collections.abc import Sequence
from functools import cache
from typing import Final

from pytest_llmeval.judge.contract import Mode, Question, Verdict
from pytest_llmeval.judge.questions.forms import ReplyField, ReplyForm
from pytest_llmeval.judge.questions.items import closing_list
from pytest_llmeval.judge.questions.modes import read_mode_file
from pytest_llmeval.judge.questions.replies import object_schema, plain, shortened, unreadable

GRADES: Final = ReplyForm({"reasoning": "text", "score": ReplyField(min=1, max=5, integer=True)})
"""The reply to a question by criteria, if the user says nothing else."""

_MOST_STEPS: Final = 12
_STEPS: Final = "steps"


@cache
def _steps_mode() -> Mode:
    file = read_mode_file("criteria_steps")
    return Mode(
        name="criteria_steps",
        version=file["version"],
        instructions=file["instructions"],
        fields=tuple(file["fields"]),
        scale=(1.0, float(_MOST_STEPS)),
        read=read_steps,
        reply_schema=object_schema(steps={"type": "array", "items": {"type": "string"}}),
        asks_again=True,
        asks_one=True,
    )


def steps_question(criteria: str, form: ReplyForm, language: str) -> Question:
    """Return the question for the steps, which is the same for all cases and repeats."""
    texts = {"criteria": criteria, "grades": form.graded[form.score].expected(language)}
    return Question(_steps_mode(), texts, language, shared=True, foreseen=Verdict(1.0, details={_STEPS: ["a step"]}))


def read_steps(reply: str) -> Verdict:
    """Read a JSON object with a list of ``steps``.

    Returns:
        The number of steps, and the steps under that name of the details.

    Raises:
        JudgeError: No object ends the reply, or its steps are no list of 1 to 12 texts.
    """
    steps = closing_list(reply, _STEPS)
    texts = [plain(each.strip()) for each in steps if isinstance(each, str)]
    if len(texts) < len(steps) or not all(texts) or not 1 <= len(texts) <= _MOST_STEPS:
        found = shortened(json.dumps(steps, ensure_ascii=False), 60)
        raise unreadable(reply, f"found {found} as steps, expected a list of 1 to {_MOST_STEPS} texts")
    return Verdict(float(len(texts)), "", {_STEPS: texts})


def numbered_steps(steps: Sequence[str]) -> str:
    """Return steps as the judge is shown them, one a line."""
    return "\n".join(f"{number}. {' '.join(step.split())}" for number, step in enumerate(steps, 1))


def criteria_mode(form: ReplyForm) -> Mode:
    """Return the mode that grades by criteria and steps, which are texts of the question."""
    file = read_mode_file("criteria")
    return Mode(
        name="criteria",
        version=f"{file['version']}-{form.digest[:8]}",
        instructions={name: f"{text}\n\n{form.instructions(name)}" for name, text in file["instructions"].items()},
        fields=tuple(file["fields"]),
        scale=form.scale,
        read=form.read,
        reply_schema=form.schema,
    )
