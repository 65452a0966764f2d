"""The views that evaluators and mutators have of a case."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias, TypeGuard, TypeVar

from msgspec import Struct, structs

from pytest_llmeval.core._case import (
    MISSING,
    TURNS,
    Case,
    NoAnswer,
    Parts,
    PredictionParts,
    own_fields,
    record_in,
)
from pytest_llmeval.core._errors import PredictionError
from pytest_llmeval.core._evaluator import Evaluator, Reads
from pytest_llmeval.core.wording import counted

Turn: TypeAlias = Literal["last", "each"] | int
"""The turns that are read; a number counts from 1."""

_OF_MESSAGE = ("contexts", "tool_calls")


_T = TypeVar("_T")


def expected_turns(expected: Any) -> Sequence[Any] | None:
    """The expectation of each turn, from ``expected: {turns: [...]}``; ``None`` without it."""
    turns = expected.get(TURNS) if isinstance(expected, Mapping) else None
    return turns if isinstance(turns, list) else None


def _conversation_answer(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The prediction of one turn of a conversation.

    It has the turn's messages, the last reply as answer, and the passages and tool calls of all replies.
    """
    replies = [message for message in messages if message.get("role") == "assistant"]
    answer: dict[str, Any] = {"messages": list(messages)}
    if replies:
        answer["answer"] = replies[-1].get("content")
    for name in _OF_MESSAGE:
        lists = [reply[name] for reply in replies if isinstance(reply.get(name), list)]
        if lists:
            answer[name] = [item for list_ in lists for item in list_]
    return answer


class Reading(Struct, frozen=True, dict=True):
    """The part of predictions that an evaluator of a suite reads.

    Attributes:
        reads: What the evaluator declares.
        on: What the suite names in place of the part: a part, or any JMESPath.
        parts: Where parts are.
        turn: Which turns of a conversation it reads, one by one; ``None``: the conversation as a whole.
        converted: Makes objects of the parts of a case, as evaluators of users get them; ``None`` leaves JSON data.
    """

    TURNS: ClassVar[str] = "last, each, or the number of a turn, counted from 1"
    """The turns that a suite may name, for messages."""

    reads: Reads = Reads()
    on: str | None = None
    parts: Parts = Parts()
    turn: Turn | None = None
    converted: Callable[[Case], Case] | None = None

    @staticmethod
    def is_turn(value: Any) -> TypeGuard[Turn]:
        """Whether a value of a suite file says which turns of a conversation an evaluator reads."""
        return value in ("last", "each") or (type(value) is int and value > 0)

    @staticmethod
    def turns_of(case: Case, parts: Parts) -> list[Case]:
        """A case for each turn of a conversation: a message of the user, and what follows up to the next one.

        Its input is the message of the user, its prediction has the parts of the answer: the assistant's last message.

        Args:
            case: Its prediction is the whole.
            parts: Where the messages are in it.

        Raises:
            PredictionError: The prediction is no conversation.
        """
        messages = parts.read("messages", case.prediction)
        if not isinstance(messages, Sequence) or not all(isinstance(message, Mapping) for message in messages):
            raise PredictionError("the messages are no list of objects, so they have no turns")
        starts = [place for place, message in enumerate(messages) if message.get("role") == "user"]
        ends = [*starts[1:], len(messages)]
        expected = expected_turns(case.expected)
        figures = case.origin.figures if case.origin is not None else {}
        turns = []
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            of_turn = case.expected
            if expected is not None:
                of_turn = expected[number] if number < len(expected) else None
            prediction = _conversation_answer(messages[start:end])
            turns.append(
                replace(
                    case,
                    input=messages[start].get("content"),
                    expected=of_turn,
                    prediction=prediction,
                    origin=PredictionParts(Parts(), prediction, figures),
                    conversation=True,
                )
            )
        return turns

    @staticmethod
    def chosen_turns(turns: Sequence[_T], turn: Turn) -> Sequence[_T]:
        """The turns of a conversation that an evaluator reads.

        Raises:
            PredictionError: There is no such turn.
        """
        if turn == "each" and turns:
            return turns
        place = len(turns) if turn == "last" else turn
        if not isinstance(place, int) or not 0 < place <= len(turns):
            raise PredictionError(f"the conversation has {counted(len(turns), 'turn')}, expected turn {turn}")
        return [turns[place - 1]]

    @classmethod
    def for_evaluator(
        cls,
        evaluator: Evaluator,
        on: str | None = None,
        parts: Parts = Parts(),  # noqa: B008 (frozen)
        turn: Turn | None = None,
    ) -> "Reading":
        """The view of predictions that an evaluator reads.

        Args:
            evaluator: The evaluator.
            on: What it reads instead of its own part.
            parts: Where the parts are.
            turn: Which turns of a conversation.
        """
        reads = evaluator.reads
        converted = Case.as_given if evaluator.takes_objects else None
        return cls(reads if on is None else Reads(reads.part, expected=reads.expected), on, parts, turn, converted)

    def views(self, case: Case) -> Sequence[Case]:
        """The views of a case that the evaluator measures: one, or one for each turn that it reads.

        Raises:
            PredictionError: The prediction lacks the part or the turn.
        """
        if self.turn is None:
            views = [self.view(case)]
        else:
            turns = self.turns_of(case, Parts() if case.conversation else self.parts)
            views = [self._of_turns.view(turn) for turn in self.chosen_turns(turns, self.turn)]
        views = [view.with_equal_forms() if self.converted is None else self.converted(view) for view in views]
        if not case.others:
            return views
        others = {name: self._of_other(case, other, len(views)) for name, other in case.others.items()}
        return [
            replace(view, others={name: seen[place] for name, seen in others.items()})
            for place, view in enumerate(views)
        ]

    def _of_other(self, case: Case, other: Any, turns: int) -> list[Any]:
        """The views of another system's prediction, one for each turn that is read of the case."""
        if isinstance(other, NoAnswer):
            return [other] * turns
        theirs = isinstance(other, PredictionParts)
        parts, prediction = (other.parts, other.prediction) if theirs else (self.parts, other)
        if prediction is MISSING:
            return [NoAnswer("has no prediction")] * turns
        try:
            views = structs.replace(self, parts=parts).views(
                replace(case, prediction=prediction, origin=None, others={})
            )
        except PredictionError as error:
            return [NoAnswer(str(error))] * turns
        lacking = [NoAnswer(f"its conversation has {counted(len(views), 'turn')}")] * (turns - len(views))
        return [*(view.prediction for view in views), *lacking]

    def view(self, case: Case) -> Case:
        """The case with the part as its prediction, and what is expected of the part as expected.

        Raises:
            PredictionError: The prediction lacks the part; the message says what it has.
        """
        if case.conversation and self.parts != Parts():
            return self._of_turns.view(case)  # transcripts have their parts under the names
        if self._name == Parts.WHOLE:
            known = case.origin is not None or self.parts == Parts()
            case = case if known else case.with_part_paths(self.parts)
            content = self.reads.answer_in(case.prediction, self.parts)
            return case if content is case.prediction else replace(case, prediction=content)
        # Nothing is to be looked up in a text, and most predictions are texts.
        if self._finds_texts and type(case.prediction) is str and not isinstance(case.expected, Mapping):
            return case
        expected = self._expectation(case.expected)
        if self.reads.records and self._finds_texts and isinstance(expected, Mapping) and "answer" in expected:
            content = record_in(case.prediction, expected)
        else:
            content = self._content(case.prediction, case.expected)
        origin = case.origin or PredictionParts(self.parts, case.prediction)
        return replace(case, prediction=content, expected=expected, origin=origin)

    def expecting(self, case: Case) -> list[Case]:
        """The case with what is expected of the part, once per turn; its prediction is left as it is."""
        turns = expected_turns(case.expected) if self.turn is not None else None
        expected = self._of_turns._expectation if case.conversation else self._expectation  # noqa: SLF001 (its own class)
        if turns is None:
            expectation = expected(case.expected)
            return [case if expectation is case.expected else replace(case, expected=expectation)]
        return [replace(case, expected=expected(turn)) for turn in turns]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the suite that change the evaluator's numbers; empty if there are none."""
        path = getattr(self.parts, self._name or "", None)
        on = self.on or (self.reads.part if path is not None else None)
        settings = {"on": on, "path": path, "turn": self.turn}
        return {name: value for name, value in settings.items() if value is not None}

    @cached_property
    def _of_turns(self) -> "Reading":
        """The reading of a transcript and its turns."""
        return structs.replace(self, parts=Parts(), turn=None)

    @cached_property
    def _name(self) -> str | None:
        """Name of the part of predictions that is read; ``None`` where `on` is a JMESPath."""
        name = self.on or self.reads.part
        return name if name == Parts.WHOLE or name in Parts.NAMES else None

    @cached_property
    def _finds_texts(self) -> bool:
        return self._name == "answer" and self.parts.answer is None

    def _content(self, prediction: Any, expected: Any) -> Any:
        if prediction is MISSING:
            return MISSING
        if self._name is None:
            assert self.on is not None
            content = Parts.search(self.on, prediction)
            if content is MISSING:
                raise PredictionError(f"{Parts.describe(prediction)}; nothing at {self.on!r}, which 'on' names")
            return content
        finds_objects = self.reads.objects and self._finds_texts and isinstance(prediction, Mapping)
        if finds_objects and "answer" not in prediction and (own := own_fields(prediction, expected)) is not None:
            return own
        if self.reads.lists and isinstance(prediction, list) and getattr(self.parts, self._name) is None:
            return prediction
        if self.reads.second_part is not None and self.parts.find(self._name, prediction) is MISSING:
            content = self.parts.find(self.reads.second_part, prediction)
            if content is not MISSING:
                return content
        return self._of_record(self.parts.read(self._name, prediction))

    def _of_record(self, content: Any) -> Any:
        """Return a part, for texts and labels the answer of a record: bare or not, it is its field of that name."""
        reads_texts = self._finds_texts and self.on is None and not self.reads.objects
        return content.get("answer", content) if reads_texts and isinstance(content, Mapping) else content

    def _is_record(self, expected: Any) -> bool:
        """Whether what is expected is the object itself, with a field that has the name of the part."""
        if not (self.reads.records and self._finds_texts and isinstance(expected, Mapping)):
            return False
        return not isinstance(expected.get(self.reads.part), Mapping | None)

    def _expectation(self, expected: Any) -> Any:
        if self._name == Parts.WHOLE or self.reads.expected or self._is_record(expected):
            return expected
        path = self.on if self._name is None else getattr(self.parts, self._name)
        return self._of_record(Parts.expectation(self._name, path, expected))


@dataclass
class Neighbours:
    """The context of a case that a mutator may read.

    Attributes:
        others: Other cases of the suite whose answers pass and that expect something else, the next ones first.
        labels: All expected labels, sorted; empty where cases expect no classes.
        most: The most frequent expected label; ``None`` where cases expect no classes.
        evaluators: Those of the suite, by label: their options may say what matters.
        seed: Of everything random: seed of the run, suite, case and mutator.
    """

    others: Sequence[Case] = ()
    labels: Sequence[str] = ()
    most: str | None = None
    evaluators: Mapping[str, Evaluator] = field(default_factory=dict)
    seed: str = ""

    @cached_property
    def rng(self) -> random.Random:
        """Random numbers for a mutator by the seed; most mutators need none."""
        return random.Random(self.seed)  # noqa: S311 (no secret)

    def evaluator(self, name: str) -> Evaluator | None:
        """The suite's first evaluator of a name, under any label; ``None`` if it has none."""
        return next((evaluator for evaluator in self.evaluators.values() if evaluator.name == name), None)

    def option(self, name: str, option: str, default: Any) -> Any:
        """Return an option of the suite's first evaluator of a name; `default` if it has none of that name."""
        return getattr(self.evaluator(name), option, default)


AnswerChange: TypeAlias = Callable[[Case, Neighbours], Any]
"""From an answered case and its neighbours to a changed prediction; ``None`` where the change does not apply."""


class Mutator(Struct, frozen=True):
    """One way to change answers, known by its name.

    Attributes:
        name: Of the change, as reports list it.
        why: Why the result is wrong, such as ``it says nothing``; for a rewrite, why it is not.
        change: Returns the changed prediction, or ``None`` where the change does not apply, and so would not be known
            to be wrong. It is pure: it leaves the case as it is, and is random by ``neighbours.rng`` only.
        advice: What notices such answers, such as a check; empty for a rewrite.
        evaluators: Names of evaluators; it is used in suites that have one of them. Empty: in all suites.
        equivalent: Whether it is a rewrite: an answer as good as before, which must not fail.
        gives_way: Whether it is left out in suites with an evaluator that another mutator names: that one knows the
            form of the predictions, and which of its parts matter.
    """

    name: str
    why: str
    change: AnswerChange
    advice: str = ""
    evaluators: tuple[str, ...] = ()
    equivalent: bool = False
    gives_way: bool = False
