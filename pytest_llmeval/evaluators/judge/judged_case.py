"""One case as a judge sees it, and what people see of the verdict."""

__all__ = (
    "GRADES_OF_FIELDS",
    "JudgedCase",
    "defect_counts",
    "defect_rates",
    "reason_lines",
    "unnamed_defects",
    "verdict_details",
)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.core.explanations import as_line, listed
from pytest_llmeval.evaluators.judge.texts import CaseTexts
from pytest_llmeval.evaluators.measures.confusion import ratio
from pytest_llmeval.judge.contract import Mode, Question, Verdict
from pytest_llmeval.judge.questions.replies import FLAGS, UNNAMED_DEFECTS, shortened
from pytest_llmeval.judge.questions.rules import is_unanswerable
from pytest_llmeval.judge.reduction import juror_lines

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

GRADES_OF_FIELDS: Final = "grades"
"""The detail of a verdict that has the grades of further fields; they are metrics, and not shown again."""

_KNOWN: Final = frozenset((*FLAGS, UNNAMED_DEFECTS, GRADES_OF_FIELDS))

_YES_NO = (0.0, 1.0)
_SHOWN = 2000
"""Characters of the judge's reasons that details keep."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """How one case is judged.

    Attributes:
        name: Of the mode.
        mode: The mode; ``None`` for the rule.
        texts: What the judge is shown.
        question: What it is asked; ``None`` where a rule decides, or where there is nothing to judge.
    """

    name: str
    mode: Mode | None
    texts: CaseTexts
    question: Question | None

    def verdict(self, verdicts: Sequence[Verdict | JudgeError]) -> Verdict | None:
        """Return the verdict, of the rule or of the judge; ``None`` where there is nothing to judge.

        Raises:
            JudgeError: The judge gave none.
        """
        if self.texts.absent is not None:
            return None
        if self.question is None:
            return Verdict(float(is_unanswerable(self.texts.by_field["answer"])))
        for each in verdicts:
            if isinstance(each, JudgeError):
                raise each
        return verdicts[-1]  # type: ignore[return-value]  # no error is left

    @property
    def scale(self) -> tuple[float, float]:
        """The smallest and the largest score."""
        return _YES_NO if self.mode is None else self.mode.scale

    def share(self, score: float) -> float:
        """Return a score on a scale from 0 to 1."""
        low, high = self.scale
        return (score - low) / (high - low)


def reason_lines(details: Mapping[str, Any]) -> list[str]:
    """Return the reasons of a judge, the defects that it found, and what else it replied, as lines."""
    flags = [f"defects: {listed(flags)}"] if (flags := details.get("flags")) else []
    others = [f"{name}: {as_line(value)}" for name, value in details.get("reply", {}).items()]
    reasons = juror_lines(details["jurors"]) if "jurors" in details else filter(None, [details.get("reasoning")])
    return [*reasons, *flags, *others]


def verdict_details(judged: JudgedCase, verdict: Verdict) -> dict[str, Any]:
    """Return what people want to see of a verdict; what there is none of is left out."""
    rest = {name: value for name, value in verdict.details.items() if name not in _KNOWN}
    flags = [flag for flag in FLAGS if verdict.details.get(flag)]
    details: dict[str, Any] = {
        "mode": judged.name,
        "reasoning": shortened(verdict.reasoning, _SHOWN),
        "flags": flags,
        **rest,
    }
    if judged.mode is not None and judged.mode.scale != (0.0, 1.0):
        details["raw_score"] = verdict.score
    return {name: value for name, value in details.items() if value not in ("", [])}


def defect_counts(details: Mapping[str, Any]) -> dict[str, float]:
    """Count the defects of an explanation that a verdict finds, and those of which it says nothing."""
    unnamed = details.get(UNNAMED_DEFECTS, ())
    return {f"defect.{flag}": float(bool(details.get(flag))) for flag in FLAGS if flag not in unnamed} | {
        f"defect.{flag}.unnamed": 1.0 for flag in unnamed
    }


def unnamed_defects(details: Mapping[str, Any]) -> dict[str, str]:
    """Return metric to reason for the defects of which a verdict says nothing: they are neither found nor absent."""
    return {f"defect[{flag}]": "the judge did not say" for flag in details.get(UNNAMED_DEFECTS, ())}


def defect_rates(sums: "Sums", judged: "FloatArray") -> "dict[str, FloatArray]":
    """Return the share of explanations that have each defect, of those of which a judge says whether they have it."""
    return {f"defect[{flag}]": ratio(sums[f"defect.{flag}"], judged - sums[f"defect.{flag}.unnamed"]) for flag in FLAGS}
