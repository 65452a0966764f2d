"""The forms of answers that mutators change: a text, an object, calls of tools, a ranking, a conversation."""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from pytest_llmeval.core.case import PARTS, Case, Parts, expectation
from pytest_llmeval.core.views import AnswerChange, Neighbours
from pytest_llmeval.evaluators.answers import (
    ChangeablePart,
    answer_part,
    answer_text,
    parts_of,
    references,
    replaced_at,
    steps_of,
)
from pytest_llmeval.evaluators.calls import MissingTraceError, ToolCall, read_trace

_FENCED: Final = re.compile(r"```\w*[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL)
_SPACES: Final = re.compile(r"\s+")
_QUESTION: Final = ("question", "query", "text", "claim")
_IDS: Final = ("id", "doc_id", "document_id", "case_id")


TextChange: TypeAlias = Callable[[str, Case, Neighbours], str | None]


@lru_cache(maxsize=4096)
def normal(text: str) -> str:
    """Return a text without what does not change an answer: case, width, punctuation and blanks around it.

    >>> normal("It is  ３０ days。")
    'it is 30 days'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _SPACES.sub(" ", folded).strip(" .,;:!?。，；：！？\"'")


def of_text(change: TextChange, *, prose: bool = False) -> AnswerChange:
    """Return a change of the text of an answer.

    Args:
        change: Returns the changed text, or ``None`` where it does not apply.
        prose: Whether it applies to prose only, not to JSON and code.
    """

    def changed(case: Case, near: Neighbours) -> Any:
        answer = answer_text(case)
        if answer is None or (prose and _is_code(answer.value)):
            return None
        new = change(answer.value, case, near)
        return None if new is None or new == answer.value else answer.put(new)

    return changed


def _is_code(text: str) -> bool:
    return "{" in text or "```" in text or text.lstrip()[:1] in ("[", "<")


def structure(case: Case) -> ChangeablePart | None:
    """Return a structured answer: an object, or the object in a text that is JSON or has it in a fence."""
    prediction = case.prediction
    is_whole = isinstance(prediction, Mapping) and not any(part in prediction for part in PARTS)
    if is_whole and prediction and parts_of(case).answer is None:
        return ChangeablePart(prediction, lambda new: new)
    answer = answer_part(case)
    if answer is None:
        return None
    if isinstance(answer.value, Mapping):
        return answer if answer.value else None
    return _object_in(answer) if isinstance(answer.value, str) else None


def _object_in(part: ChangeablePart) -> ChangeablePart | None:
    text: str = part.value
    fenced = _FENCED.search(text)
    start, end = (0, len(text)) if fenced is None else fenced.span(1)
    if not text[start:end].lstrip().startswith("{"):
        return None
    try:
        data = json.loads(text[start:end])
    except (ValueError, RecursionError):
        return None

    def put(new: Any) -> Any:
        return part.put(f"{text[:start]}{json.dumps(new, ensure_ascii=False)}{text[end:]}")

    return ChangeablePart(data, put) if data else None


def passages(case: Case) -> list[str]:
    """Return the texts on which an answer is based: the part ``contexts``."""
    if not isinstance(case.prediction, Mapping):
        return []
    contexts = parts_of(case).find("contexts", case.prediction)
    if not isinstance(contexts, list):
        return []
    texts = (each.get("text", each.get("content")) if isinstance(each, Mapping) else each for each in contexts)
    return [each for each in texts if isinstance(each, str)]


def ground(case: Case) -> str | None:
    """Return what is known to be right, the expected texts and the passages; ``None`` where nothing is."""
    if type(case.expected) is str and type(case.prediction) is str:
        return case.expected
    return "\n".join([*references(case), *passages(case)]) or None


def question_text(case: Case) -> str | None:
    """Return what was asked, as text."""
    question = case.input
    if isinstance(question, Mapping):
        question = next((question[name] for name in _QUESTION if isinstance(question.get(name), str)), None)
    elif isinstance(question, list):
        texts = [each.get("content") for each in question if isinstance(each, Mapping) and each.get("role") == "user"]
        question = texts[-1] if texts else None
    return question if isinstance(question, str) and question.strip() else None


def calls(case: Case) -> ChangeablePart | None:
    """Return the calls of tools, as objects with name and arguments, however the trace has them; ``None`` without any.

    Put back, they are the part ``tool_calls``, which comes before calls in messages.
    """
    prediction, path = case.prediction, parts_of(case).tool_calls
    if path is not None:
        steps, trace = steps_of(path), parts_of(case).find("tool_calls", prediction)
        if steps is None:
            return None
        return _read_calls(trace, lambda new: replaced_at(prediction, steps, new))
    if isinstance(prediction, Mapping):
        return _read_calls(prediction, lambda new: {**prediction, "tool_calls": new})
    if isinstance(prediction, list) and all(isinstance(each, Mapping) and "name" in each for each in prediction):
        return _read_calls(prediction, lambda new: new)
    return None


def _read_calls(trace: Any, put: Callable[[Any], Any]) -> ChangeablePart | None:
    try:
        trace_calls = read_trace(trace)
    except MissingTraceError:
        return None
    if not trace_calls or any(each.fault for each in trace_calls):
        return None
    return ChangeablePart([_written(each) for each in trace_calls], put)


def _written(call: ToolCall) -> dict[str, Any]:
    status = {"status": "error"} if call.failed else {}
    return {"name": call.name, "arguments": dict(call.arguments or {}), **status}


def messages(case: Case) -> ChangeablePart | None:
    """Return the messages of a conversation; ``None`` where the prediction has no two with a role."""
    prediction = case.prediction
    turns = prediction.get("messages") if isinstance(prediction, Mapping) else None
    if not isinstance(turns, list) or not all(isinstance(each, Mapping) and "role" in each for each in turns):
        return None
    return ChangeablePart(turns, lambda new: {**prediction, "messages": new}) if len(turns) > 1 else None


def ranking(prediction: Any) -> list[str] | None:
    """Return the ids of a ranked list; ``None`` for lists of other things, whose order may not matter."""
    if not isinstance(prediction, list) or len(prediction) == 1:
        return None
    ids = [_id_of(each) for each in prediction]
    return [str(each) for each in ids] if ids and all(each is not None for each in ids) else None


def ranked(case: Case) -> tuple[ChangeablePart, frozenset[str]] | None:
    """Return the ranked results of an answer, which may be its passages, and the ids that it should have."""
    prediction, path = case.prediction, parts_of(case).contexts
    if not isinstance(prediction, Mapping):
        return ChangeablePart(prediction, lambda new: new), relevant_ids(case.expected)
    for name in ("contexts", "sources") if path is None else (path.partition("[")[0],):
        steps = steps_of(name)
        results = Parts(contexts=name).find("contexts", prediction)
        if steps and isinstance(results, list):
            expected = expectation("contexts", path, case.expected)
            relevant = relevant_ids(expected if isinstance(expected, list) else [expected])
            return ChangeablePart(results, partial(replaced_at, prediction, steps)), relevant
    return None


def _id_of(result: Any) -> Any:
    identifier = next((result[key] for key in _IDS if key in result), None) if isinstance(result, Mapping) else result
    return identifier if isinstance(identifier, str | int) else None


def relevant_ids(expected: Any) -> frozenset[str]:
    """Return the ids of the results that a case expects: a list of ids or objects, or an object with such a list."""
    if isinstance(expected, Mapping):
        return frozenset().union(*(relevant_ids(each) for each in expected.values() if isinstance(each, list)))
    if not isinstance(expected, list):
        return frozenset()
    return frozenset(str(identifier) for each in expected if (identifier := _id_of(each)) is not None)
