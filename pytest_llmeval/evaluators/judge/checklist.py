"""Evaluator ``checklist``: instructions that an answer must follow, each judged by itself."""

__all__ = ("Checklist",)

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import EvaluatorError, JudgeError
from pytest_llmeval.core.evaluator import ErrorBucket, Metric, Reads
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.parts import INSTRUCTIONS
from pytest_llmeval.core.wording import as_line
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.evaluators.judge.judged_case import CaseTexts, case_texts
from pytest_llmeval.judge.contract import JudgedEvaluator, Question, Verdict
from pytest_llmeval.judge.questions.modes import instruction_language
from pytest_llmeval.judge.questions.suite_modes import checklist_mode

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_METRICS = ("instruction_rate", "all_followed")


@dataclass(frozen=True)
class Checklist(JudgedEvaluator):
    """The share of instructions that answers follow, each judged by itself.

    The instructions are those of the suite, and after them those of the case: ``expected`` is an object with a list of
    them as ``instructions``. One call a case judges all of them. A reply that leaves one out, judges one twice, or one
    that does not exist, is asked for once more, and then is an error.

    ``instruction_rate`` is the number of followed instructions over the number of instructions, of all cases together;
    its interval takes the case as the unit. ``all_followed`` is the share of cases whose answer follows all. A case
    without instructions is undefined.

    Attributes:
        instructions: Those of every case.
        language: Of the question to the judge; ``auto``: by the label ``language`` of the case, or by the script of the
            instructions.

    Raises:
        ValueError: An instruction is blank.
    """

    name = "checklist"
    reads = Reads("answer", objects=True, expected=True)
    decides = True

    instructions: tuple[str, ...] = ()
    language: Literal["auto", "en", "zh"] = "auto"

    def __post_init__(self) -> None:
        if not all(each.strip() for each in self.instructions):
            raise ValueError("instructions: found a blank text, expected an instruction")

    def describe(self) -> Sequence[Metric]:
        """Return both shares."""
        digest = hashlib.sha256(json.dumps(self.instructions).encode()).hexdigest()[:8] if self.instructions else "none"
        mode = checklist_mode(1)
        signature = f"mode:{mode.name}@{mode.version}|instructions:{digest}|lang:{self.language}|v:{self.version}"
        return [Metric(name, signature=signature, averaged=name == "all_followed") for name in _METRICS]

    def error_buckets(self) -> Sequence[ErrorBucket]:
        """Return the bucket of answers that leave an instruction out."""
        return [ErrorBucket("instruction_not_followed", _METRICS[0], below=1.0)]

    def check(self, case: Case) -> Iterable[str]:
        """Yield what is wrong with the instructions of a case."""
        try:
            self._of(case)
        except EvaluatorError as error:
            yield str(error)

    def _of(self, case: Case) -> tuple[str, ...]:
        """Return the instructions of a case, the suite's first."""
        own = case.expected.get(INSTRUCTIONS) if isinstance(case.expected, Mapping) else None
        if own is None:
            return self.instructions
        if not isinstance(own, list | tuple) or not all(map(_is_text, own)):
            wrong = next(each for each in own if not _is_text(each)) if isinstance(own, list | tuple) else own
            raise EvaluatorError(f"expected.{INSTRUCTIONS}: found {describe_found(wrong)}, expected a list of texts")
        return (*self.instructions, *own)

    def questions(self, case: Case) -> Sequence[Question]:
        """Return the one question about a case; none without instructions."""
        instructions = self._of(case)
        if not instructions:
            return []
        numbered = {f"instruction_{number}": text for number, text in enumerate(instructions, 1)}
        texts = {**_texts(case).by_field, **numbered}
        chosen = instruction_language(" ".join(instructions), case.labels.get("language"))
        language = chosen if self.language == "auto" else self.language
        return [Question(checklist_mode(len(instructions)), texts, language)]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Count the instructions that are followed.

        Raises:
            JudgeError: The judge gave no verdict.
        """
        instructions = self._of(case)
        malformed = _texts(case).malformed
        if not instructions:
            return Observation({}, undefined=dict.fromkeys(_METRICS, "no instructions"), malformed=malformed)
        (verdict,) = verdicts
        if isinstance(verdict, JudgeError):
            raise verdict
        judged = list(zip(instructions, verdict.details["verdicts"], strict=True))
        wrong = [
            f"instruction {number} is not followed: {as_line(text)}"
            + (f" ({as_line(each['reason'])})" * bool(each["reason"]))
            for number, (text, each) in enumerate(judged, 1)
            if not each["followed"]
        ]
        counts = {
            "followed": len(judged) - len(wrong),
            "instructions": len(judged),
            "all": float(not wrong),
            "n": 1,
        }
        return Observation(counts, {"wrong": wrong} if wrong else {}, malformed=malformed)

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return the share of instructions, and that of cases that follow all."""
        return {
            "instruction_rate": sums["followed"] / sums["instructions"],
            "all_followed": sums["all"] / sums["n"],
        }


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _texts(case: Case) -> CaseTexts:
    return case_texts(replace(case, expected=None), "criterion", ("question", "answer"))
