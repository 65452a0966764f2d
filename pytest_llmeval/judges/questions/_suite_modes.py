"""Modes that suites declare.

Criteria work as in G-Eval (Liu et al. 2023): the judge writes steps once, and grades every answer by them.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from string import Template
from typing import ClassVar, Final

from msgspec.structs import replace

from pytest_llmeval.core import Fault, JudgeError, SuiteError, excerpt, unknown_name
from pytest_llmeval.data import InputFile
from pytest_llmeval.judges._protocol import Mode, Question, Verdict
from pytest_llmeval.judges.questions._forms import ReplyForm
from pytest_llmeval.judges.questions._modes import ABSTENTION, ModeFile, TypedQuestion
from pytest_llmeval.judges.questions._replies import ReplyObject, plain, read_rubric, rubric_schema

_MOST_STEPS: Final = 12
_STEPS: Final = "steps"


def read_steps(reply: str) -> Verdict:
    """Read a judge's JSON object with a list of grading ``steps``.

    Returns:
        The number of steps, and the steps under that name of the details.

    Raises:
        JudgeError: No object ends the reply, or its steps are no list of 1 to 12 texts.
    """
    steps = ReplyObject.closing_list(reply, _STEPS)
    texts = [plain(step.strip()) for step in steps if isinstance(step, str)]
    if len(texts) < len(steps) or not all(texts) or not 1 <= len(texts) <= _MOST_STEPS:
        value_text = excerpt(json.dumps(steps, ensure_ascii=False), 60)
        raise JudgeError.unreadable(reply, f"found {value_text} as steps, expected a list of 1 to {_MOST_STEPS} texts")
    return Verdict(float(len(texts)), "", {_STEPS: texts})


def criteria_mode(form: ReplyForm) -> Mode:
    """Return the judge mode that grades by criteria and steps, which are texts of the question."""
    return ModeFile("criteria").form_mode(form, f"-{form.digest[:8]}")


_FEWEST_LEVELS = 2


@dataclass(frozen=True)
class Level:
    """A level of a judge's rubric.

    Attributes:
        score: Its number.
        meaning: What an answer of this level is like.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    score: float
    meaning: str


@dataclass(frozen=True)
class Rubric:
    """The rubric of a suite, by which a judge grades answers.

    Attributes:
        criteria: What makes an answer good, in the user's words.
        levels: At least two, with different scores.
        pass_mark: An answer passes with this score or a higher one; the judge does not see it.

    Raises:
        ValueError: Criteria or a meaning are blank, a score is there twice, or the pass mark is beyond the levels.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    criteria: str
    levels: tuple[Level, ...]
    pass_mark: float

    def __post_init__(self) -> None:
        scores = [level.score for level in self.levels]
        if not self.criteria.strip() or not all(level.meaning.strip() for level in self.levels):
            raise ValueError("found blank criteria or a level without a meaning, expected text")
        if len(scores) < _FEWEST_LEVELS or len(set(scores)) < len(scores) or not all(map(math.isfinite, scores)):
            raise ValueError(f"found levels with the scores {scores}, expected two or more different numbers")
        if not min(scores) < self.pass_mark <= max(scores):
            raise ValueError(
                f"found pass_mark {self.pass_mark}, expected a number above the lowest level, {min(scores)}, "
                f"and at most the highest, {max(scores)}"
            )

    @property
    def scores(self) -> tuple[float, ...]:
        """The scores of the levels, lowest first."""
        return tuple(sorted(level.score for level in self.levels))

    @property
    def mode(self) -> Mode:
        """The mode that grades by its criteria and levels."""
        return rubric_mode(self.criteria, self.levels)


def _score_number(score: float) -> str:
    """Return the score of a rubric's level as text for the judge's instructions."""
    return str(int(score)) if score.is_integer() else repr(score)


@lru_cache(maxsize=64)
def rubric_mode(criteria: str, levels: Sequence[Level]) -> Mode:
    """Return the judge mode that grades by criteria and levels.

    Its version holds a digest of both, so that scores by different rubrics cannot be taken for comparable.

    Args:
        criteria: Of a `Rubric`; inserted into the instructions unchanged.
        levels: Of the same, in any order; the judge sees the highest first.
    """
    file = ModeFile("rubric")
    ordered = sorted(levels, key=lambda level: -level.score)
    listed = "\n".join(f"{_score_number(float(level.score))}  {level.meaning.strip()}" for level in ordered)
    scores = tuple(float(level.score) for level in reversed(ordered))
    digest = hashlib.sha256(json.dumps([criteria, listed]).encode()).hexdigest()[:8]
    return file.mode(
        f"-{digest}",
        instructions={
            language: Template(text).substitute(criteria=criteria.strip(), levels=listed)
            for language, text in file.content["instructions"].items()
        },
        scale=(scores[0], scores[-1]),
        read=partial(read_rubric, levels=scores),
        reply_schema=rubric_schema(scores),
    )


_ANSWERED: Final = ("answer", "contexts", "messages", "prediction", "tool_calls")
ROOTS: Final = (*_ANSWERED, "expected", "input", "labels", "question", "reference")
"""The names that a placeholder may begin with."""

_WHOLE: Final = ("question", "reference")
_VERSION: Final = "1"
_PROMPT_VERSION: Final = "prompt"
_LIKE_ONE = re.compile(r"\{\{.*?(?:\}\}|\Z)|\{%(?:(?!\{%).)*?%\}", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+)((?:\.[\w-]+)*)\s*\}\}")


@dataclass(frozen=True)
class PromptFile:
    """A user's judge prompt in a file. Nothing that a case contains becomes a part of it.

    Attributes:
        name: Of the file, for messages.
        text: With the name of a text of the data in place of each placeholder.
        placeholders: Their names, such as ``input.question``, each once, in order.
        digest: Of the file as it stands.
    """

    name: str
    text: str
    placeholders: tuple[str, ...]
    digest: str

    @classmethod
    def read(cls, path: Path) -> "PromptFile":
        """Read a prompt.

        Raises:
            SuiteError: The file cannot be read, a placeholder is unknown, or none shows any of the prediction.
        """
        text = InputFile(path).read_text("a prompt").replace("\r\n", "\n")
        faults: list[Fault] = []
        names: dict[str, None] = {}

        def named(match: re.Match[str]) -> str:
            if fault := _placeholder_fault(match[0]):
                line = text.count("\n", 0, match.start()) + 1
                column = match.start() - text.rfind("\n", 0, match.start())
                faults.append(Fault(str(path), line, column, "", fault))
                return ""
            name = match[0].strip("{} \t\n")
            names[name] = None
            return f"`{name}`"

        filled = _LIKE_ONE.sub(named, text)
        if not faults and not any(name.partition(".")[0] in _ANSWERED for name in names):
            known = f"use one of {', '.join(_ANSWERED)}, such as '{{{{ answer }}}}'"
            faults.append(Fault(str(path), 1, 1, "", f"a placeholder for what was answered is missing: {known}"))
        if faults:
            raise SuiteError(faults)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return cls(path.name, filled.strip(), tuple(names), digest)

    def in_mode(self, mode: Mode) -> Mode:
        """The mode whose instructions are this prompt; its replies are read as those of the mode."""
        return replace(
            mode,
            version=f"{_PROMPT_VERSION}-{self.digest[:8]}",
            instructions=dict.fromkeys(("en", "zh"), self.text),
            fields=self.placeholders,
        )

    def mode(self, form: ReplyForm) -> Mode:
        """Return the mode that asks as a prompt says; its version is a digest of prompt and form."""
        return Mode(
            name="prompt",
            version=f"{_VERSION}-{hashlib.sha256(f'{self.digest} {form.digest}'.encode()).hexdigest()[:8]}",
            instructions={name: f"{self.text}\n\n{form.instructions(name)}" for name in ("en", "zh")},
            fields=self.placeholders,
            scale=form.scale,
            read=form.read,
            reply_schema=form.schema,
        )

    @classmethod
    def types_fault(cls, types: Iterable[str]) -> str | None:
        """The fault of the question types for which a suite has judge prompts, if any."""
        for name in types:
            if name == TypedQuestion.RULE:
                return f"found a prompt for {name!r}, which a rule decides, expected prompts for other question types"
            if name not in PROMPTED_TYPES:
                return unknown_name("question type", name, PROMPTED_TYPES)
        return None

    @classmethod
    def choose(cls, prompts: "Mapping[str, PromptFile]", question: TypedQuestion) -> "PromptFile | None":
        """The user's judge prompt for the type of a question, if any."""
        return prompts.get(ABSTENTION if question.is_abstention else str(question.type))


def _placeholder_fault(written: str) -> str | None:
    """The fault of a placeholder in a user's judge prompt, if any."""
    match = _PLACEHOLDER.fullmatch(written)
    if not written.endswith(("}}", "%}")):
        return "found '{{' without '}}' after it, expected a placeholder such as '{{ input.question }}'"
    if match is None:
        return f"found {written!r}, expected a placeholder such as '{{{{ input.question }}}}'"
    root, steps = match.groups()
    if root not in ROOTS:
        return unknown_name("placeholder", root, ROOTS)
    if steps and root in _WHOLE:
        return f"found {written!r}, expected '{{{{ {root} }}}}', which is a text"
    return None


PROMPTED_TYPES: Final = (
    *(name for name, mode in TypedQuestion.MODES.items() if mode != TypedQuestion.RULE),
    ABSTENTION,
)
"""Question types that a prompt of one's own can judge; ``abstention`` is for ids that end in ``_abs``."""


@cache
def _steps_mode() -> Mode:
    """Return the judge mode that writes grading steps for criteria."""
    return ModeFile("criteria_steps").mode(
        scale=(1.0, float(_MOST_STEPS)),
        read=read_steps,
        reply_schema=ReplyObject.schema(steps={"type": "array", "items": {"type": "string"}}),
        asks_again=True,
        asks_one=True,
    )


def steps_question(criteria: str, form: ReplyForm, language: str) -> Question:
    """Return the question that asks a judge for grading steps, the same for all cases and repeats."""
    texts = {"criteria": criteria, "grades": form.graded[form.score].expected(language)}
    return Question(_steps_mode(), texts, language, shared=True, foreseen=Verdict(1.0, details={_STEPS: ["a step"]}))
