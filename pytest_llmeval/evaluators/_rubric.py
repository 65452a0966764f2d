"""Rubrics of suites."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from string import Template
from typing import Any, ClassVar

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import Mode, ModeFile, ReplyObject, Verdict

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
    """The score of a rubric's level as text for the judge's instructions."""
    return str(int(score)) if score.is_integer() else repr(score)


@lru_cache(maxsize=64)
def rubric_mode(criteria: str, levels: Sequence[Level]) -> Mode:
    """The judge mode that grades by criteria and levels.

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


def rubric_schema(levels: Sequence[float]) -> dict[str, Any]:
    """The JSON Schema of a judge's reply by a rubric, which `read_rubric` reads."""
    return ReplyObject.schema(reasoning={"type": "string"}, score={"type": "number", "enum": list(levels)})


def read_rubric(reply: str, levels: Sequence[float]) -> Verdict:
    """Read a judge's JSON object whose ``score`` is one of the rubric's levels.

    Raises:
        JudgeError: No JSON object ends the reply, or its score is none of the levels.
    """
    data = ReplyObject.closing(reply)
    score = data.number("score")
    if score is None or score not in levels:
        known = ", ".join(str(int(level)) if level.is_integer() else repr(level) for level in levels)
        raise JudgeError.wrong_value(reply, data, "score", f"one of the levels {known}")
    return Verdict(score, data.text("reasoning"))
