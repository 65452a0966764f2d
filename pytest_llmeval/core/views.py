"""What one evaluator sees of a case: the part of the prediction that it reads, and what is expected of it."""

__all__ = ("Reading",)

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.core.parts import PARTS, WHOLE, Parts, PredictionParts, describe_prediction, expectation, search


@dataclass(frozen=True)
class Reading:
    """What an evaluator reads.

    Attributes:
        part: Name of a part, or ``prediction`` for the whole.
        on: What the suite names in its place: a part, or any JMESPath.
        parts: Where parts are.
        reads_objects: Whether an object without any part is itself the answer.
        reads_lists: Whether a list is itself the part.
        second: The part that is read where the prediction lacks the first.
    """

    part: str = WHOLE
    on: str | None = None
    parts: Parts = Parts()  # noqa: RUF009 (frozen)
    reads_objects: bool = False
    reads_lists: bool = False
    second: str | None = None

    @classmethod
    def of(cls, evaluator: Evaluator, on: str | None = None, parts: Parts = Parts()) -> "Reading":  # noqa: B008 (frozen)
        """Return what an evaluator reads.

        Args:
            evaluator: The evaluator.
            on: What it reads instead of its own part.
            parts: Where the parts are.
        """
        if on is not None:
            return cls(evaluator.part, on, parts)
        return cls(evaluator.part, on, parts, evaluator.reads_objects, evaluator.reads_lists, evaluator.second_part)

    def view(self, case: Case) -> Case:
        """Return the case with the part as its prediction, and what is expected of the part as expected.

        Raises:
            PredictionError: The prediction lacks the part; the message says what it has.
        """
        name = self._name
        if name == WHOLE:
            plain = case.origin is not None or self.parts == Parts()
            return case if plain else replace(case, origin=PredictionParts(self.parts, case.prediction))
        # Nothing is to be looked up in a text, and most predictions are texts.
        if self._finds_texts and type(case.prediction) is str and not isinstance(case.expected, Mapping):
            return case
        found = self._found(case.prediction)
        origin = case.origin or PredictionParts(self.parts, case.prediction)
        return replace(case, prediction=found, expected=self._expectation(case.expected), origin=origin)

    def expecting(self, case: Case) -> Case:
        """Return the case with what is expected of the part; its prediction may be missing and is left as it is."""
        expected = self._expectation(case.expected)
        return case if expected is case.expected else replace(case, expected=expected)

    @property
    def settings(self) -> dict[str, Any]:
        """What the suite says about it, which decides the evaluator's numbers; empty where it says nothing."""
        if self.on is not None and self._name is None:
            return {"on": self.on}
        path = getattr(self.parts, self._name or "", None)
        return {} if self.on is None and path is None else {"on": self.on or self.part, "path": path}

    @cached_property
    def _name(self) -> str | None:
        """Name of the part; ``None`` where `on` is a JMESPath."""
        name = self.on or self.part
        return name if name == WHOLE or name in PARTS else None

    @cached_property
    def _finds_texts(self) -> bool:
        return self._name == "answer" and self.parts.answer is None

    def _found(self, prediction: Any) -> Any:
        if prediction is MISSING:
            return MISSING
        if self._name is None:
            assert self.on is not None
            found = search(self.on, prediction)
            if found is MISSING:
                raise PredictionError(f"{describe_prediction(prediction)}; nothing at {self.on!r}, which 'on' names")
            return found
        takes_objects = self.reads_objects and self._finds_texts
        if takes_objects and isinstance(prediction, Mapping) and not any(name in prediction for name in PARTS):
            return prediction
        if self.reads_lists and isinstance(prediction, list) and getattr(self.parts, self._name) is None:
            return prediction
        if self.second is not None and self.parts.find(self._name, prediction) is MISSING:
            found = self.parts.find(self.second, prediction)
            if found is not MISSING:
                return found
        return self.parts.read(self._name, prediction)

    def _expectation(self, expected: Any) -> Any:
        if self._name == WHOLE:
            return expected
        path = self.on if self._name is None else getattr(self.parts, self._name)
        return expectation(self._name, path, expected)
