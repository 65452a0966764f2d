"""Checks that a judge decides: a criterion, or a rubric."""

__all__ = ("JUDGED_KINDS", "Criterion", "Graded")

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_llmeval.evaluators.answers import as_text
from pytest_llmeval.evaluators.checks.contract import CheckKind, CheckOutcome, Subject, quoted
from pytest_llmeval.judge.contract import Mode, Question
from pytest_llmeval.judge.questions.modes import get_mode, instruction_language
from pytest_llmeval.judge.questions.suite_modes import Rubric, rubric_mode

if TYPE_CHECKING:
    from pytest_llmeval.judge.contract import Verdict


def _as_shown(value: Any) -> str:
    text = as_text(value)
    return json.dumps(value, ensure_ascii=False) if text is None else text


def _question_of(subject: Subject) -> str:
    """Return the question of a case: a text, the text under ``question``, or else the input as JSON."""
    value = subject.case.input
    if isinstance(value, Mapping) and isinstance(value.get("question"), str):
        return str(value["question"])
    return "" if value is None else _as_shown(value)


def _question(mode: Mode, subject: Subject, more: Mapping[str, str]) -> Question:
    asked = _question_of(subject)
    texts = {"question": asked, "answer": "" if subject.value is None else _as_shown(subject.value), **more}
    given = {name: text for name, text in texts.items() if text or name == "answer"}
    language = instruction_language(asked or more.get("criterion", ""), subject.case.labels.get("language"))
    return Question(mode, given, language)


@dataclass(frozen=True)
class Criterion:
    """Whether an answer meets a criterion.

    Attributes:
        text: The criterion, in the user's words.

    Raises:
        ValueError: It is blank.
    """

    text: str

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("found blank text, expected a criterion")

    def question(self, subject: Subject) -> Question:
        """Return the question whether the answer meets it."""
        return _question(get_mode("criterion"), subject, {"criterion": self.text})

    def read(self, verdict: "Verdict") -> CheckOutcome:
        """Return whether the judge says so, with the judge's reason."""
        return CheckOutcome(verdict.score >= 1, _said("yes" if verdict.score >= 1 else "no", verdict))


@dataclass(frozen=True)
class Graded:
    """Whether an answer reaches the pass mark of a rubric.

    Attributes:
        rubric: Criteria, levels and pass mark.
    """

    rubric: Rubric

    def question(self, subject: Subject) -> Question:
        """Return the question which level the answer has."""
        return _question(rubric_mode(self.rubric.criteria, self.rubric.levels), subject, {})

    def read(self, verdict: "Verdict") -> CheckOutcome:
        """Return whether the level reaches the pass mark."""
        return CheckOutcome(verdict.score >= self.rubric.pass_mark, _said(f"level {verdict.score:g}", verdict))


def _said(word: str, verdict: "Verdict") -> str:
    return f"the judge's {word}: {quoted(verdict.reasoning)}" if verdict.reasoning else f"the judge's {word}"


JUDGED_KINDS: Final = (
    CheckKind("judge", "the answer meets this criterion, as the judge sees it", str, Criterion),
    CheckKind("rubric", "the answer reaches the pass mark of this rubric, as the judge sees it", Rubric, Graded),
)
"""The kinds."""
