"""Parts of predictions that can be changed."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pytest_llmeval.core import Case

_STEP: Final = re.compile(r"(?P<key>[A-Za-z_]\w*)|\[(?P<place>\d+)\]")


class ChangeablePart(NamedTuple):
    """A part of a prediction that can be put back changed, for mutants of answers.

    Attributes:
        value: The part.
        put: From a changed part to the prediction that has it.
    """

    value: Any
    put: Callable[[Any], Any]

    @classmethod
    def at(cls, prediction: Any, path: str, value: Any) -> "ChangeablePart | None":
        """The part at a JMESPath; ``None`` if the path computes something.

        Args:
            prediction: The whole.
            path: Of keys and places.
            value: What is there.
        """
        steps = _steps_of(path)
        return None if steps is None else cls(value, lambda new: _replace_at(prediction, steps, new))

    @classmethod
    def of_answer(cls, case: Case) -> "ChangeablePart | None":
        """The answer, wherever the suite says that it is; ``None`` where it is not, or computed."""
        prediction, path = case.prediction, case.part_paths.answer
        if path is not None:
            return cls.at(prediction, path, case.part_paths.find("answer", prediction))
        if not isinstance(prediction, Mapping):
            return cls(prediction, lambda new: new)
        if "answer" not in prediction:
            return None
        return cls(prediction["answer"], lambda new: _with_answer(prediction, new))

    @classmethod
    def of_text(cls, case: Case) -> "ChangeablePart | None":
        """The text of the answer; ``None`` where it has none."""
        if type(case.prediction) is str and case.origin is None:  # most are, and need no look at the parts
            return cls(case.prediction, lambda new: new) if case.prediction.strip() else None
        answer = cls.of_answer(case)
        return answer if answer is not None and isinstance(answer.value, str) and answer.value.strip() else None


def _steps_of(path: str) -> list[str | int] | None:
    """The keys and positions of a part's JMESPath; ``None`` for one that computes something."""
    steps: list[str | int] = []
    place = 0
    while place < len(path):
        if path[place] == "." and steps:
            place += 1
        match = _STEP.match(path, place)
        if match is None:
            return None
        steps.append(match["key"] if match["key"] is not None else int(match["place"]))
        place = match.end()
    return steps


def _replace_at(value: Any, steps: Sequence[str | int], new: Any) -> Any:
    """A prediction with another value at the keys and positions of a part."""
    if not steps:
        return new
    first, *remaining = steps
    if isinstance(first, int):
        return [_replace_at(item, remaining, new) if at == first else item for at, item in enumerate(value)]
    return {**value, first: _replace_at(value[first], remaining, new)}


def _with_answer(prediction: Mapping[str, Any], new: Any) -> dict[str, Any]:
    """A prediction with another answer, which in a conversation is also the last message of the assistant."""
    changed = {**prediction, "answer": new}
    messages = prediction.get("messages")
    if isinstance(messages, list):
        for place in range(len(messages) - 1, -1, -1):
            last = messages[place]
            if isinstance(last, Mapping) and last.get("role") == "assistant":
                if last.get("content") == prediction["answer"]:
                    changed["messages"] = [*messages[:place], {**last, "content": new}, *messages[place + 1 :]]
                break
    return changed
