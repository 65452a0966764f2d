"""What one evaluator sees of a case: the part of the prediction that it reads, and what is expected of it."""

__all__ = ("Reading",)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.core.missing import Itself, NoAnswer
from pytest_llmeval.core.parts import (
    PARTS,
    WHOLE,
    Parts,
    PredictionParts,
    describe_prediction,
    expectation,
    own_or_answer,
    search,
)
from pytest_llmeval.core.turns import Turn, chosen_turns, expected_turns, turns_of
from pytest_llmeval.core.wording import counted


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
        turn: Which turns of a conversation it reads, one by one; ``None``: the conversation as a whole.
        reads_expected: Whether it reads the whole of what is expected.
        own_keys: Keys of the objects that it reads as a whole; of others it reads the answer, if they have one.
    """

    part: str = WHOLE
    on: str | None = None
    parts: Parts = Parts()  # noqa: RUF009 (frozen)
    reads_objects: bool = False
    reads_lists: bool = False
    second: str | None = None
    turn: Turn | None = None
    reads_expected: bool = False
    own_keys: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        evaluator: Evaluator,
        on: str | None = None,
        parts: Parts = Parts(),  # noqa: B008 (frozen)
        turn: Turn | None = None,
    ) -> "Reading":
        """Return what an evaluator reads.

        Args:
            evaluator: The evaluator.
            on: What it reads instead of its own part.
            parts: Where the parts are.
            turn: Which turns of a conversation.
        """
        if on is not None:
            return cls(evaluator.part, on, parts, turn=turn, reads_expected=evaluator.reads_expected)
        lenient = (evaluator.reads_objects, evaluator.reads_lists, evaluator.second_part)
        return cls(evaluator.part, on, parts, *lenient, turn, evaluator.reads_expected, evaluator.own_keys)

    def views(self, case: Case) -> Sequence[Case]:
        """Return what the evaluator measures of a case: its view, or one for each turn that it reads.

        Raises:
            PredictionError: The prediction lacks the part or the turn.
        """
        if self.turn is None:
            views = [self.view(case)]
        else:
            turns = turns_of(case, Parts() if case.conversation else self.parts)
            views = [self._of_turns.view(each) for each in chosen_turns(turns, self.turn)]
        if not case.others:
            return views
        others = {name: self._of_other(case, each, len(views)) for name, each in case.others.items()}
        return [
            replace(view, others={name: seen[place] for name, seen in others.items()})
            for place, view in enumerate(views)
        ]

    def _of_other(self, case: Case, other: Any, turns: int) -> list[Any]:
        """Return what is read of the prediction of another, once for each turn that is read of the case."""
        if isinstance(other, NoAnswer | Itself):
            return [other] * turns
        theirs = isinstance(other, PredictionParts)
        parts, prediction = (other.parts, other.prediction) if theirs else (self.parts, other)
        if prediction is MISSING:
            return [NoAnswer("has no prediction")] * turns
        try:
            views = replace(self, parts=parts).views(replace(case, prediction=prediction, origin=None, others={}))
        except PredictionError as error:
            return [NoAnswer(str(error))] * turns
        lacking = [NoAnswer(f"its conversation has {counted(len(views), 'turn')}")] * (turns - len(views))
        return [*(each.prediction for each in views), *lacking]

    def view(self, case: Case) -> Case:
        """Return the case with the part as its prediction, and what is expected of the part as expected.

        Raises:
            PredictionError: The prediction lacks the part; the message says what it has.
        """
        if case.conversation and self.parts != Parts():
            return self._of_turns.view(case)  # transcripts have their parts under the names
        if self._name == WHOLE:
            known = case.origin is not None or self.parts == Parts()
            case = case if known else replace(case, origin=PredictionParts(self.parts, case.prediction))
            found = own_or_answer(case.prediction, self.own_keys, self.parts)
            return case if found is case.prediction else replace(case, prediction=found)
        # Nothing is to be looked up in a text, and most predictions are texts.
        if self._finds_texts and type(case.prediction) is str and not isinstance(case.expected, Mapping):
            return case
        found = self._found(case.prediction)
        origin = case.origin or PredictionParts(self.parts, case.prediction)
        return replace(case, prediction=found, expected=self._expectation(case.expected), origin=origin)

    def expecting(self, case: Case) -> list[Case]:
        """Return the case with what is expected of the part, once per turn; its prediction is left as it is."""
        turns = expected_turns(case.expected) if self.turn is not None else None
        expected = self._of_turns._expectation if case.conversation else self._expectation  # noqa: SLF001 (its own class)
        if turns is None:
            found = expected(case.expected)
            return [case if found is case.expected else replace(case, expected=found)]
        return [replace(case, expected=expected(each)) for each in turns]

    @property
    def settings(self) -> dict[str, Any]:
        """What the suite says about it, which decides the evaluator's numbers; empty where it says nothing."""
        path = getattr(self.parts, self._name or "", None)
        on = self.on or (self.part if path is not None else None)
        said = {"on": on, "path": path, "turn": self.turn}
        return {name: value for name, value in said.items() if value is not None}

    @cached_property
    def _of_turns(self) -> "Reading":
        """How a transcript and its turns are read."""
        return replace(self, parts=Parts(), turn=None)

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
        if self._name == WHOLE or self.reads_expected:
            return expected
        path = self.on if self._name is None else getattr(self.parts, self._name)
        return expectation(self._name, path, expected)
