"""The forms of answers that mutators change: a text, an object, calls of tools, a ranking, a conversation."""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.parts import PARTS, Parts, expectation
from pytest_llmeval.core.views import AnswerChange, Neighbours
from pytest_llmeval.evaluators.answers import as_references
from pytest_llmeval.evaluators.tools.calls import MissingTraceError, ToolCall, read_trace

_CJK: Final = re.compile("[\u3400-\u9fff]")
_FENCED: Final = re.compile(r"```\w*[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL)
_STEP: Final = re.compile(r"(?P<key>[A-Za-z_]\w*)|\[(?P<place>\d+)\]")
_SPACES: Final = re.compile(r"\s+")
_QUESTION: Final = ("question", "query", "text", "claim")
_IDS: Final = ("id", "doc_id", "document_id", "case_id")


class ChangeablePart(NamedTuple):
    """A part of a prediction that can be put back changed.

    Attributes:
        value: The part.
        put: From a changed part to the prediction that has it.
    """

    value: Any
    put: Callable[[Any], Any]


TextChange: TypeAlias = Callable[[str, Case, Neighbours], str | None]


def has_cjk(text: str) -> bool:
    """Return whether a text has Chinese characters."""
    return _CJK.search(text) is not None


@lru_cache(maxsize=4096)
def normal(text: str) -> str:
    """Return a text without what does not change an answer: case, width, punctuation and blanks around it.

    >>> normal("It is  ３０ days。")
    'it is 30 days'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _SPACES.sub(" ", folded).strip(" .,;:!?。，；：！？\"'")


def _parts(case: Case) -> Parts:
    return Parts() if case.origin is None else case.origin.parts


def _steps(path: str) -> list[str | int] | None:
    """Return the keys and places of a JMESPath that is nothing but these; ``None`` for one that computes something."""
    steps: list[str | int] = []
    place = 0
    while place < len(path):
        if path[place] == "." and steps:
            place += 1
        found = _STEP.match(path, place)
        if found is None:
            return None
        steps.append(found["key"] if found["key"] is not None else int(found["place"]))
        place = found.end()
    return steps


def _replaced(value: Any, steps: Sequence[str | int], new: Any) -> Any:
    if not steps:
        return new
    first, *rest = steps
    if isinstance(first, int):
        return [_replaced(each, rest, new) if at == first else each for at, each in enumerate(value)]
    return {**value, first: _replaced(value[first], rest, new)}


def _answer(case: Case) -> ChangeablePart | None:
    """Return the answer, wherever the suite says that it is; ``None`` where it is not, or computed."""
    prediction, path = case.prediction, _parts(case).answer
    if path is not None:
        steps = _steps(path)
        if steps is None:
            return None
        found = _parts(case).find("answer", prediction)
        return ChangeablePart(found, lambda new: _replaced(prediction, steps, new))
    if not isinstance(prediction, Mapping):
        return ChangeablePart(prediction, lambda new: new)
    if "answer" not in prediction:
        return None
    return ChangeablePart(prediction["answer"], lambda new: _with_answer(prediction, new))


def _with_answer(prediction: Mapping[str, Any], new: Any) -> dict[str, Any]:
    """Return a prediction with another answer, which in a conversation is also the last message of the assistant."""
    changed = {**prediction, "answer": new}
    said = prediction.get("messages")
    if isinstance(said, list):
        for place in range(len(said) - 1, -1, -1):
            last = said[place]
            if isinstance(last, Mapping) and last.get("role") == "assistant":
                if last.get("content") == prediction["answer"]:
                    changed["messages"] = [*said[:place], {**last, "content": new}, *said[place + 1 :]]
                break
    return changed


def answer_text(case: Case) -> ChangeablePart | None:
    """Return the text of an answer; ``None`` where it has none."""
    if type(case.prediction) is str and case.origin is None:  # most are, and need no look at the parts
        return ChangeablePart(case.prediction, lambda new: new) if case.prediction.strip() else None
    found = _answer(case)
    return found if found is not None and isinstance(found.value, str) and found.value.strip() else None


def of_text(change: TextChange, *, prose: bool = False) -> AnswerChange:
    """Return a change of the text of an answer.

    Args:
        change: Returns the changed text, or ``None`` where it does not apply.
        prose: Whether it applies to prose only, not to JSON and code.
    """

    def changed(case: Case, near: Neighbours) -> Any:
        found = answer_text(case)
        if found is None or (prose and _is_code(found.value)):
            return None
        new = change(found.value, case, near)
        return None if new is None or new == found.value else found.put(new)

    return changed


def _is_code(text: str) -> bool:
    return "{" in text or "```" in text or text.lstrip()[:1] in ("[", "<")


def structure(case: Case) -> ChangeablePart | None:
    """Return a structured answer: an object, or the object in a text that is JSON or has it in a fence."""
    prediction = case.prediction
    is_whole = isinstance(prediction, Mapping) and not any(part in prediction for part in PARTS)
    if is_whole and prediction and _parts(case).answer is None:
        return ChangeablePart(prediction, lambda new: new)
    found = _answer(case)
    if found is None:
        return None
    if isinstance(found.value, Mapping):
        return found if found.value else None
    return _object_in(found) if isinstance(found.value, str) else None


def _object_in(found: ChangeablePart) -> ChangeablePart | None:
    text: str = found.value
    fenced = _FENCED.search(text)
    start, end = (0, len(text)) if fenced is None else fenced.span(1)
    if not text[start:end].lstrip().startswith("{"):
        return None
    try:
        data = json.loads(text[start:end])
    except (ValueError, RecursionError):
        return None

    def put(new: Any) -> Any:
        return found.put(f"{text[:start]}{json.dumps(new, ensure_ascii=False)}{text[end:]}")

    return ChangeablePart(data, put) if data else None


def references(case: Case) -> list[str]:
    """Return the texts that a case accepts as its answer; none where it expects something else than texts."""
    expected = case.expected
    if isinstance(expected, Mapping):
        expected = expectation("answer", _parts(case).answer, expected)
    return as_references(expected) or []


def passages(case: Case) -> list[str]:
    """Return the texts on which an answer is based: the part ``contexts``."""
    if not isinstance(case.prediction, Mapping):
        return []
    found = _parts(case).find("contexts", case.prediction)
    if not isinstance(found, list):
        return []
    texts = (each.get("text", each.get("content")) if isinstance(each, Mapping) else each for each in found)
    return [each for each in texts if isinstance(each, str)]


def ground(case: Case) -> str | None:
    """Return what is known to be right, the expected texts and the passages; ``None`` where nothing is."""
    if type(case.expected) is str and type(case.prediction) is str:
        return case.expected
    return "\n".join([*references(case), *passages(case)]) or None


def question_text(case: Case) -> str | None:
    """Return what was asked, as text."""
    asked = case.input
    if isinstance(asked, Mapping):
        asked = next((asked[name] for name in _QUESTION if isinstance(asked.get(name), str)), None)
    elif isinstance(asked, list):
        said = [each.get("content") for each in asked if isinstance(each, Mapping) and each.get("role") == "user"]
        asked = said[-1] if said else None
    return asked if isinstance(asked, str) and asked.strip() else None


def calls(case: Case) -> ChangeablePart | None:
    """Return the calls of tools, as objects with name and arguments, however the trace has them; ``None`` without any.

    Put back, they are the part ``tool_calls``, which comes before calls in messages.
    """
    prediction, path = case.prediction, _parts(case).tool_calls
    if path is not None:
        steps, trace = _steps(path), _parts(case).find("tool_calls", prediction)
        if steps is None:
            return None
        return _read_calls(trace, lambda new: _replaced(prediction, steps, new))
    if isinstance(prediction, Mapping):
        return _read_calls(prediction, lambda new: {**prediction, "tool_calls": new})
    if isinstance(prediction, list) and all(isinstance(each, Mapping) and "name" in each for each in prediction):
        return _read_calls(prediction, lambda new: new)
    return None


def _read_calls(trace: Any, put: Callable[[Any], Any]) -> ChangeablePart | None:
    try:
        found = read_trace(trace)
    except MissingTraceError:
        return None
    if not found or any(each.fault for each in found):
        return None
    return ChangeablePart([_written(each) for each in found], put)


def _written(call: ToolCall) -> dict[str, Any]:
    status = {"status": "error"} if call.failed else {}
    return {"name": call.name, "arguments": dict(call.arguments or {}), **status}


def messages(case: Case) -> ChangeablePart | None:
    """Return the messages of a conversation; ``None`` where the prediction has no two with a role."""
    prediction = case.prediction
    found = prediction.get("messages") if isinstance(prediction, Mapping) else None
    if not isinstance(found, list) or not all(isinstance(each, Mapping) and "role" in each for each in found):
        return None
    return ChangeablePart(found, lambda new: {**prediction, "messages": new}) if len(found) > 1 else None


def ranking(prediction: Any) -> list[str] | None:
    """Return the ids of a ranked list; ``None`` for lists of other things, whose order may not matter."""
    if not isinstance(prediction, list) or len(prediction) == 1:
        return None
    ids = [_id_of(each) for each in prediction]
    return [str(each) for each in ids] if ids and all(each is not None for each in ids) else None


def _id_of(result: Any) -> Any:
    found = next((result[key] for key in _IDS if key in result), None) if isinstance(result, Mapping) else result
    return found if isinstance(found, str | int) else None


def relevant_ids(expected: Any) -> frozenset[str]:
    """Return the ids of the results that a case expects: a list of ids or objects, or an object with such a list."""
    if isinstance(expected, Mapping):
        return frozenset().union(*(relevant_ids(each) for each in expected.values() if isinstance(each, list)))
    if not isinstance(expected, list):
        return frozenset()
    return frozenset(str(found) for each in expected if (found := _id_of(each)) is not None)
