"""A case: input, expected answer and prediction, and the fingerprints of its texts."""

__all__ = ("MISSING", "Case", "Missing")

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

from pytest_llmeval.core.parts import MISSING, Missing, PredictionParts


@dataclass(frozen=True, slots=True)
class Case:
    """One evaluation case.

    Attributes:
        id: Unique within its suite.
        input: What the target receives; any JSON value.
        expected: The ground truth; any JSON value, ``None`` where it is absent.
        prediction: What was answered; any JSON value, or `MISSING` until the target has answered.
        labels: What ``group_by`` and judges read, such as ``question_type``.
        tags: Become pytest marks.
        thresholds: Metric name to limits; they replace the suite's limit of the same metric.
        line: Line of the case in its file, counted from 1; 0 where it has none.
        conversation: Whether `input` is a script, and the prediction the transcript of a conversation.
        origin: All parts of the prediction; ``None`` where they are those of `prediction` itself.
        checks: Assertions on the answer, besides those of the suite; as ``checks`` of a suite file.
        way: What decides the answer besides the input, such as a model and its prompts, for recordings.
        others: Predictions of other systems for the same case, by name, for evaluators that compare with them; as
            ``PredictionParts`` where their parts are elsewhere.
        always: Whether it runs first, even if all gates are decided, in a suite that stops when its gates are
            decided.
    """

    id: str
    input: Any = None
    expected: Any = None
    prediction: Any = MISSING
    labels: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0
    conversation: bool = field(default=False, repr=False, compare=False)
    origin: PredictionParts | None = field(default=None, repr=False, compare=False)
    checks: tuple[Any, ...] = ()
    way: str = field(default="", repr=False, compare=False)
    others: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    always: bool = field(default=False, repr=False, compare=False)

    @property
    def parts(self) -> Mapping[str, Any]:
        """All parts of the prediction by name, with ``latency_s`` and ``cost_usd``, whichever `prediction` is."""
        return PredictionParts(prediction=self.prediction) if self.origin is None else self.origin

    def answered(self, prediction: Any) -> "Case":
        """Return this case with a prediction."""
        return self if prediction is self.prediction else replace(self, prediction=prediction)


_DIGITS = 32


def answer_print(answer: Any) -> str:
    """Return the fingerprint of an answer, text or JSON data, by which labels name it."""
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=True, sort_keys=True)
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


def shown_text(value: Any) -> str:
    """Return a value as judges and people are shown it: a text as it is, nothing as the empty text, the rest as JSON.

    >>> shown_text("Paris"), shown_text(None), shown_text({"town": "Zürich"})
    ('Paris', '', '{"town": "Zürich"}')
    """
    if value is None or value is MISSING:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class ShownPrints(NamedTuple):
    """Fingerprints of the texts by which an answer is judged.

    Attributes:
        question: Of the question.
        answer: Of the answer.
        reference: Of the right answer; that of the empty text if there is none.
    """

    question: str
    answer: str
    reference: str


def shown_prints(fields: Mapping[str, str], value: Any, answer: Any) -> ShownPrints:
    """Return the fingerprints of a case.

    Args:
        fields: What a judge is shown of it, by name; may be empty.
        value: The input, which has the question where no field has it.
        answer: What was answered, where no field has it.
    """
    question = value.get("question", value) if isinstance(value, Mapping) else value
    texts = (
        fields.get("question") or shown_text(question),
        fields.get("answer", shown_text(answer)),
        fields.get("reference", ""),
    )
    # Reports have half of a surrogate pair as an escape.
    whole = (each.encode("utf-8", "backslashreplace").decode("utf-8") for each in texts)
    return ShownPrints(*map(answer_print, whole))
