"""What the evaluators of story annotations have in common."""

__all__ = ("ALIGN", "NarrativeEvaluator", "gaps", "weighted_mean")

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_llmeval.case import Case
from pytest_llmeval.errors import EvaluatorError
from pytest_llmeval.evaluator import Evaluator
from pytest_llmeval.evaluators.narrative.alignment import ALIGNMENTS, Alignment
from pytest_llmeval.evaluators.narrative.document import Story, is_blank, read_story
from pytest_llmeval.naming import unknown_name
from pytest_llmeval.observation import Observation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_llmeval.observation import FloatArray

ALIGN = ("id", "time_order")
"""By what events are aligned unless an option says otherwise."""

_SHOWN = 3
"""Faults, or gaps of the ground truth, that a message names."""


@dataclass(frozen=True)
class NarrativeEvaluator(Evaluator):
    """Base of the evaluators of JSON v3 annotations.

    ``expected`` and ``prediction`` are JSON v3 documents: objects, or JSON texts, which may stand in a fenced block. What
    is no such document counts as an empty one, and what has a wrong form inside it as absent; in a prediction that
    is *malformed*. ``input`` is the text of the story; without it, ``source_info.text_content`` is.

    What the ground truth leaves empty (null, missing, blank, ``[]``, ``{}``) is never an error of the prediction.
    """

    score_name: ClassVar[str] = ""
    """The metric that stands for all of them, where there is one."""

    @property
    def _fuzzy(self) -> float | None:
        return getattr(self, "fuzzy", None)

    @property
    def _align(self) -> tuple[str, ...]:
        return getattr(self, "align", ALIGN)

    def __post_init__(self) -> None:
        if self._fuzzy is not None and not 0 < self._fuzzy <= 1:
            raise ValueError(f"fuzzy: found {self._fuzzy!r}, expected a number above 0 and at most 1, or null")
        for name in self._align:
            if name not in ALIGNMENTS:
                raise ValueError(f"align: {unknown_name('way', name, ALIGNMENTS)}")
        if not self._align or len(set(self._align)) < len(self._align):
            raise ValueError(f"align: found {list(self._align)!r}, expected one or more different ways")

    def signature(self) -> str:
        """Return how names are compared and events aligned, for the signatures of metrics."""
        fuzzy = "strict" if self._fuzzy is None else f"fuzzy>={self._fuzzy:g}"
        return f"names:{fuzzy}|align:{','.join(self._align)}|v:{self.version}"

    def check(self, case: Case) -> Iterable[str]:
        """Yield what has a wrong form in the ground truth."""
        return _gold(case.expected).faults

    def measure(self, case: Case) -> Observation:
        """Count one story.

        Raises:
            EvaluatorError: The ground truth is no JSON v3 document.
        """
        gold = _gold(case.expected)
        if gold.faults and gold == Story(faults=gold.faults) and not isinstance(case.expected, dict):
            raise EvaluatorError(gold.faults[0])
        predicted = read_story(case.prediction)
        given = case.input if isinstance(case.input, str) and not is_blank(case.input) else ""
        alignment = Alignment(gold, predicted, given or gold.text or predicted.text, self._fuzzy, self._align)
        return self.observe(alignment)

    @abstractmethod
    def observe(self, stories: Alignment) -> Observation:
        """Count two stories that have been read."""

    @abstractmethod
    def score(self, metrics: "Mapping[str, FloatArray]") -> "FloatArray":
        """Return the one score in [0, 1] that stands for these metrics in the composite; NaN where undefined."""


def _gold(expected: Any) -> Story:
    return Story() if is_blank(expected) else read_story(expected)
