"""Forms of replies as data."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges._protocol import Verdict, within
from pytest_llmeval.judges.questions._replies import NUMBERS, ReplyObject, plain

_SCORE: Final = "score"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_STEPS: Final = 5
_MOST_LEVELS: Final = 21

_SENTENCES: Final = {
    "en": "Reply with one JSON object and nothing else. It has these keys, in this order:",
    "zh": "只回复一个 JSON 对象，不要其他内容。对象按顺序包含以下键：",
}
_WORDS: Final = {
    "en": {"text": "text", "truth": "true or false", "whole": "a whole number from {} to {}"}
    | {"number": "a number from {} to {}", "choice": "one of {}", "colon": ": "},
    "zh": {"text": "文本", "truth": "true 或 false", "whole": "{} 到 {} 的整数"}
    | {"number": "{} 到 {} 的数字", "choice": "以下之一：{}", "colon": "："},
}


@dataclass(frozen=True)
class ReplyField:
    """A graded field of a judge's reply: a number, a choice, or true or false. Higher grades are better.

    Attributes:
        min: Lowest number.
        max: Highest number.
        integer: Whether only whole numbers are grades.
        choices: Words to their grades.
        good: Which of true and false is the better one, with grade 1; the other has grade 0.

    Raises:
        ValueError: It is none of the three, or has no two grades.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    min: float | None = None
    max: float | None = None
    integer: bool = False
    choices: dict[str, float] | None = None
    good: bool | None = None

    def __post_init__(self) -> None:
        ranged = self.min is not None or self.max is not None or self.integer
        if ranged + (self.choices is not None) + (self.good is not None) != 1:
            settings = {name: value for name, value in asdict(self).items() if value is not None}
            kinds = ", ".join(name for name in settings if name != "integer" or self.integer) or "none of them"
            raise ValueError(f"found {kinds}, expected exactly one of {{min, max}}, {{choices}} and {{good}}")
        if ranged and not (
            self.min is not None and self.max is not None and -math.inf < self.min < self.max < math.inf
        ):
            raise ValueError(f"found min {_number_text(self.min)} and max {_number_text(self.max)}, expected min < max")
        if self.integer and not all(end.is_integer() for end in self.scale):
            raise ValueError(f"found min {self.min} and max {self.max}, expected whole numbers with integer: true")
        if self.choices is not None:
            grades = list(self.choices.values())
            if len(set(grades)) < 2 or not all(map(math.isfinite, grades)):  # noqa: PLR2004 (a scale has two ends)
                raise ValueError(f"found choices with the grades {grades}, expected at least two different numbers")
            if not all(word.strip() and word == word.strip() and word.isprintable() for word in self.choices):
                raise ValueError(f"found the choices {list(self.choices)}, expected words")

    @property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest grade."""
        if self.choices is not None:
            return min(self.choices.values()), max(self.choices.values())
        return (0.0, 1.0) if self.min is None or self.max is None else (float(self.min), float(self.max))

    @property
    def levels(self) -> tuple[float, ...]:
        """The grades, lowest first; of numbers with fractions, six at equal distances."""
        low, high = self.scale
        if self.choices is not None:
            return tuple(sorted(set(self.choices.values())))
        if self.good is not None:
            return low, high
        if self._is_short:
            return tuple(map(float, range(int(low), int(high) + 1)))
        return tuple(low + (high - low) * step / _STEPS for step in range(_STEPS + 1))

    @property
    def _is_short(self) -> bool:
        """True if its grades are whole numbers that can be listed."""
        low, high = self.scale
        return self.integer and high - low < _MOST_LEVELS

    def share(self, grade: float) -> float:
        """Return a grade on a scale from 0 to 1."""
        low, high = self.scale
        return (grade - low) / (high - low)

    def grade(self, value: Any) -> float | None:
        """Return the grade that a value of a reply is; ``None`` if it is none."""
        if self.choices is not None:
            return self.choices.get(value) if isinstance(value, str) else None
        if self.good is not None:
            return float(value is self.good) if isinstance(value, bool) else None
        number = within(value, *self.scale) if type(value) in (int, float) else None
        return None if number is None or (self.integer and not number.is_integer()) else number

    def expected(self, language: str = "en") -> str:
        """Say which values are grades."""
        words = _WORDS[language]
        if self.choices is not None:
            return words["choice"].format(", ".join(json.dumps(choice, ensure_ascii=False) for choice in self.choices))
        if self.good is not None:
            return words["truth"]
        return words["whole" if self.integer else "number"].format(*(f"{end:g}" for end in self.scale))

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema. Bounds are left out, which providers that enforce schemas may refuse."""
        if self.choices is not None:
            return {"type": "string", "enum": list(self.choices)}
        if self.good is not None:
            return {"type": "boolean"}
        if self._is_short:
            return {"type": "integer", "enum": [int(level) for level in self.levels]}
        return {"type": "integer" if self.integer else "number"}


@dataclass(frozen=True)
class ReplyForm:
    """The fields of a judge's reply, in order.

    Attributes:
        entries: Name to field: a graded one, ``boolean``, which is ``{good: true}``, or ``text``.

    Raises:
        ValueError: A name cannot be used, or no field is the score.
    """

    entries: Mapping[str, ReplyField | Literal["text", "boolean"]]

    def __post_init__(self) -> None:
        for name in self.entries:
            if not _NAME.fullmatch(name):
                expected = "a name of small Latin letters, digits and underscores"
                raise ValueError(f"found the field {name!r}, expected {expected}")
        if not self.graded:
            raise ValueError("a graded field is missing, such as score: {min: 1, max: 5}")
        if len(self.graded) > 1 and _SCORE not in self.graded:
            names = ", ".join(self.graded)
            raise ValueError(f"found the graded fields {names}, expected one of them to be called score")

    @cached_property
    def graded(self) -> Mapping[str, ReplyField]:
        """The fields that have grades."""
        fields = {name: ReplyField(good=True) if entry == "boolean" else entry for name, entry in self.entries.items()}
        return {name: field for name, field in fields.items() if isinstance(field, ReplyField)}

    @property
    def score(self) -> str:
        """The name of the field that is the score: ``score``, or the only graded one."""
        return _SCORE if _SCORE in self.graded else next(iter(self.graded))

    @property
    def others(self) -> Mapping[str, ReplyField]:
        """The graded fields besides the score."""
        return {name: field for name, field in self.graded.items() if name != self.score}

    @property
    def scale(self) -> tuple[float, float]:
        """The scale of the score."""
        return self.graded[self.score].scale

    @property
    def digest(self) -> str:
        """A digest of the fields, their order and their grades."""
        entries = [(name, entry if isinstance(entry, str) else asdict(entry)) for name, entry in self.entries.items()]
        return hashlib.sha256(json.dumps(entries).encode()).hexdigest()

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a reply."""
        return ReplyObject.schema(
            **{name: self.graded[name].schema if name in self.graded else {"type": "string"} for name in self.entries}
        )

    def instructions(self, language: str) -> str:
        """Return the part of the instructions that says what to reply."""
        words = _WORDS[language]
        lines = [
            f'- "{name}"{words["colon"]}'
            + (self.graded[name].expected(language) if name in self.graded else words["text"])
            for name in self.entries
        ]
        return "\n".join([_SENTENCES[language], *lines])

    def read(self, reply: str) -> Verdict:
        """Read the JSON object that ends a reply.

        Returns:
            The grade of the score; the first text as reasoning; the other values under ``reply`` of the details, and
            under ``grades`` the grades of `others`.

        Raises:
            JudgeError: No object ends the reply, a field is missing, or its value is none that the form allows.
        """
        data = ReplyObject.closing(
            reply, lambda data: {name: data[name] for name in self.graded if name in data}, self._says
        )
        grades = {name: self._grade(name, data, reply) for name in self.graded}
        texts = {name: self._text(name, data, reply) for name in self.entries if name not in self.graded}
        reasoning = next(iter(texts), None)
        values = {
            name: data[name] for name in self.entries if name not in (self.score, reasoning) and name not in texts
        }
        values |= {name: text for name, text in texts.items() if name != reasoning and text}
        others = {name: grades[name] for name in self.others}
        details = {"reply": values, "grades": others}
        return Verdict(
            grades[self.score],
            texts[reasoning] if reasoning is not None else "",
            {name: detail for name, detail in details.items() if detail},
        )

    def _grade(self, name: str, data: Mapping[str, Any], reply: str) -> float:
        grade = self.graded[name].grade(data.get(name))
        if grade is None:
            raise JudgeError.wrong_value(reply, data, name, self.graded[name].expected())
        return grade

    @staticmethod
    def _text(name: str, data: Mapping[str, Any], reply: str) -> str:
        if not isinstance(data.get(name), str):
            raise JudgeError.wrong_value(reply, data, name, "text")
        return plain(data[name].strip())

    @cached_property
    def _says(self) -> re.Pattern[str]:
        """The pattern of prose that gives a graded field a value."""
        words = {word for field in self.graded.values() for word in field.choices or ()}
        longest_first = sorted(words, key=lambda word: (-len(word), word))
        values = "|".join([*map(re.escape, longest_first), NUMBERS])
        return ReplyObject.verdict_pattern("|".join(map(re.escape, self.graded)), f"(?:{values})(?![a-z0-9_])")


def _number_text(value: float | None) -> str:
    """Return a limit of a graded reply field as text for a message."""
    return "nothing" if value is None else f"{value:g}"
