"""Criteria for answers: the judge writes steps once, and grades every answer by them.

They work as in G-Eval (Liu et al. 2023).
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Final

from pytest_llmeval.core import JudgeError, excerpt
from pytest_llmeval.judges import Mode, ModeFile, Question, ReplyField, ReplyForm, ReplyObject, Verdict

_MOST_STEPS: Final = 12
_STEPS: Final = "steps"

GRADES: Final = ReplyForm({"reasoning": "text", "score": ReplyField(min=1, max=5, integer=True)})
"""The reply to a question by criteria, if the user says nothing else."""


def criteria_mode(form: ReplyForm) -> Mode:
    """The judge mode that grades by criteria and steps, which are texts of the question."""
    return ModeFile("criteria").form_mode(form, f"-{form.digest[:8]}")


@cache
def _steps_mode() -> Mode:
    """The judge mode that writes grading steps for criteria."""
    return ModeFile("criteria_steps").mode(
        scale=(1.0, float(_MOST_STEPS)),
        read=read_steps,
        reply_schema=ReplyObject.schema(steps={"type": "array", "items": {"type": "string"}}),
        asks_again=True,
        asks_one=True,
    )


def steps_question(criteria: str, form: ReplyForm, language: str) -> Question:
    """The question that asks a judge for grading steps, the same for all cases and repeats."""
    texts = {"criteria": criteria, "grades": form.graded[form.score].expected(language)}
    return Question(_steps_mode(), texts, language, shared=True, foreseen=Verdict(1.0, details={_STEPS: ["a step"]}))


def read_steps(reply: str) -> Verdict:
    """Read a judge's JSON object with a list of grading ``steps``.

    Returns:
        The number of steps, and the steps under that name of the details.

    Raises:
        JudgeError: No object ends the reply, or its steps are no list of 1 to 12 texts.
    """
    steps = ReplyObject.closing_list(reply, _STEPS)
    texts = ReplyObject({_STEPS: steps}).texts(_STEPS) or ()
    if not 1 <= len(texts) <= _MOST_STEPS:
        value_text = excerpt(json.dumps(steps, ensure_ascii=False), 60)
        raise JudgeError.unreadable(reply, f"found {value_text} as steps, expected a list of 1 to {_MOST_STEPS} texts")
    return Verdict(float(len(texts)), "", {_STEPS: texts})


def numbered_steps(steps: Sequence[str]) -> str:
    """The steps of a judge's criteria as its prompt shows them, one a line."""
    return "\n".join(f"{number}. {' '.join(step.split())}" for number, step in enumerate(steps, 1))
