"""Mutators: changes of an answer that make it wrong, each with the reason, and rewrites that must not matter."""

__all__ = ("MUTATORS", "REWRITES", "Mutator", "Neighbours", "applicable")

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

from pytest_llmeval.core.case import Case
from pytest_llmeval.evaluators.measures.sentences import split_sentences


@dataclass
class Neighbours:
    """What a mutator may take from the other cases of a suite.

    Attributes:
        others: Cases with another expectation.
        most: The most frequent expected label; ``None`` where cases expect no labels.
        labels: All expected labels, sorted.
        seed: Of everything random: suite, case and mutator.
    """

    others: Sequence[Case]
    most: str | None
    labels: Sequence[str]
    seed: str = ""

    @cached_property
    def rng(self) -> random.Random:
        """Random numbers by the seed; most mutators need none."""
        return random.Random(self.seed)  # noqa: S311 (no secret)


AnswerChange: TypeAlias = Callable[[Case, Any, Neighbours], Any]
"""From a case, its prediction and its neighbours to a changed prediction; ``None`` where the change does not apply."""


class Mutator(NamedTuple):
    """One way to change answers.

    Attributes:
        name: Of the change.
        why: Why the result is wrong; for rewrites, why it is not.
        advice: What notices it.
        change: The change.
    """

    name: str
    why: str
    advice: str
    change: AnswerChange


_CJK: Final = re.compile("[\u4e00-\u9fff]")
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?![\w])")
_UNITS: Final = {
    "days": "weeks",
    "weeks": "days",
    "hours": "minutes",
    "minutes": "hours",
    "months": "years",
    "years": "months",
    "euros": "dollars",
    "dollars": "euros",
    "km": "miles",
    "kg": "pounds",
    "percent": "points",
    "天": "周",
    "小时": "分钟",
    "元": "美元",
    "公里": "米",
}
_NEGATED: Final = (
    (re.compile(r"\b(is|are|was|were|can|will|does|do|may|must) not\b", re.IGNORECASE), r"\1"),
    (re.compile(r"\b(is|are|was|were|can|will|may|must)\b", re.IGNORECASE), r"\1 not"),
    (re.compile("不"), ""),
    (re.compile("(是|可以|能|会)"), r"不\1"),
)
_NAME: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
_CITATION: Final = re.compile(r"\[(\d+)\]")
_SHORT_TEXT: Final = 6
_IDS: Final = ("id", "doc_id", "document_id", "case_id")
_SHORT_ANSWER: Final = 4
_SHORT_LINE: Final = 30


def _text(prediction: Any) -> str | None:
    """Return the text of an answer, also where it is a part of an object."""
    found = prediction.get("answer") if isinstance(prediction, Mapping) else prediction
    return found if isinstance(found, str) and found.strip() else None


def _with_text(prediction: Any, text: str) -> Any:
    return {**prediction, "answer": text} if isinstance(prediction, Mapping) else text


def _of_text(change: Callable[[str, Case, Neighbours], str | None]) -> AnswerChange:
    """Return a change of the text of an answer."""

    def changed(case: Case, prediction: Any, near: Neighbours) -> Any:
        text = _text(prediction)
        if text is None:
            return None
        new = change(text, case, near)
        return None if new is None or new == text else _with_text(prediction, new)

    return changed


def _other_answer(text: str, case: Case, near: Neighbours) -> str | None:
    del case
    found = [each for other in near.others if (each := _text(other.prediction)) is not None and each != text]
    return near.rng.choice(found) if found else None


def _question(text: str, case: Case, near: Neighbours) -> str | None:
    del text, near
    given = case.input
    if isinstance(given, Mapping):
        given = next((given[name] for name in ("question", "query", "text") if isinstance(given.get(name), str)), None)
    return given if isinstance(given, str) and given.strip() else None


def _refusal(text: str, case: Case, near: Neighbours) -> str:
    del case, near
    return "抱歉，我无法回答这个问题。" if _CJK.search(text) else "I'm sorry, but I can't help with that."


def _truncated(text: str, case: Case, near: Neighbours) -> str | None:
    del case, near
    words = list(text) if _CJK.search(text) else text.split()
    if len(words) < _SHORT_TEXT:
        return None
    return ("" if _CJK.search(text) else " ").join(words[: len(words) // 2])


def _number(text: str, case: Case, near: Neighbours) -> str | None:
    del case
    found = list(_NUMBER.finditer(_CITATION.sub(lambda mark: " " * len(mark[0]), text)))
    if not found:
        return None
    chosen = near.rng.choice(found)
    return f"{text[: chosen.start()]}{int(chosen[0]) + near.rng.choice((1, 7, 30))}{text[chosen.end() :]}"


def _unit(text: str, case: Case, near: Neighbours) -> str | None:
    del case, near
    for unit, other in _UNITS.items():
        pattern = re.escape(unit) if _CJK.search(unit) else rf"\b{unit}\b"
        if re.search(pattern, text):
            return re.sub(pattern, other, text, count=1)
    return None


def _negation(text: str, case: Case, near: Neighbours) -> str | None:
    del case, near
    for pattern, replacement in _NEGATED:
        if pattern.search(text):
            return pattern.sub(replacement, text, count=1)
    return None


def _name(text: str, case: Case, near: Neighbours) -> str | None:
    del case
    names = sorted({name for other in near.others for name in _NAME.findall(_text(other.prediction) or "")})
    found = list(_NAME.finditer(text))
    others = [name for name in names if name not in text]
    if not (found and others):
        return None
    chosen = near.rng.choice(found)
    return f"{text[: chosen.start()]}{near.rng.choice(others)}{text[chosen.end() :]}"


def _sentence_dropped(text: str, case: Case, near: Neighbours) -> str | None:
    """Leave out the sentence that shares most words with the expected answer."""
    del near
    wanted = case.expected.get("answer") if isinstance(case.expected, Mapping) else case.expected
    sentences = split_sentences(text)
    if not isinstance(wanted, str) or not sentences or len(sentences) == 1:
        return None
    words = set(wanted.lower().split())
    shared = [len(words & set(each.lower().split())) for each in sentences]
    if max(shared) == 0:
        return None
    place = shared.index(max(shared))
    return " ".join(each for at, each in enumerate(sentences) if at != place)


def _unsupported(text: str, case: Case, near: Neighbours) -> str | None:
    other = _other_answer(text, case, near)
    return None if other is None else f"{text} {split_sentences(other)[0]}"


def _citation(text: str, case: Case, near: Neighbours) -> str | None:
    del case, near
    return _CITATION.sub(lambda mark: f"[{int(mark[1]) + 1}]", text, count=1)


def _next_label(case: Case, prediction: Any, near: Neighbours) -> Any:
    del prediction
    if not isinstance(case.expected, str) or case.expected not in near.labels or len(near.labels) == 1:
        return None
    return near.labels[(near.labels.index(case.expected) + 1) % len(near.labels)]


def _majority(case: Case, prediction: Any, near: Neighbours) -> Any:
    del prediction
    return near.most if near.most is not None and near.most != case.expected else None


def _object(prediction: Any) -> Mapping[str, Any] | None:
    """Return the fields of a structured answer; its parts, such as an answer with passages, are none."""
    is_fields = isinstance(prediction, Mapping) and not {"answer", "tool_calls", "messages"} & set(prediction)
    return prediction if is_fields and prediction else None


def _of_fields(change: Callable[[dict[str, Any], str, Case], None]) -> AnswerChange:
    """Return a change of one field that the case expects."""

    def changed(case: Case, prediction: Any, near: Neighbours) -> Any:
        found = _object(prediction)
        if found is None or not isinstance(case.expected, Mapping):
            return None
        names = sorted(str(name) for name in found if name in case.expected)
        if not names:
            return None
        new = dict(found)
        change(new, near.rng.choice(names), case)
        return None if new == found else new

    return changed


def _field_missing(fields: dict[str, Any], name: str, case: Case) -> None:
    del case
    del fields[name]


def _field_type(fields: dict[str, Any], name: str, case: Case) -> None:
    del case
    value = fields[name]
    fields[name] = [value] if not isinstance(value, list) else {"items": value}


def _field_value(fields: dict[str, Any], name: str, case: Case) -> None:
    del case
    value = fields[name]
    match value:
        case bool():
            fields[name] = not value
        case int() | float():
            fields[name] = value + 1
        case str():
            fields[name] = f"{value} changed" if value else "changed"
        case list() if value:
            fields[name] = [*value, value[0]]


def _calls(prediction: Any) -> list[Any] | None:
    found = prediction.get("tool_calls") if isinstance(prediction, Mapping) else prediction
    if not isinstance(found, list) or not found:
        return None
    return found if all(isinstance(each, Mapping) and "name" in each for each in found) else None


def _of_calls(change: Callable[[list[Any], Neighbours], list[Any] | None]) -> AnswerChange:
    """Return a change of the calls of tools."""

    def changed(case: Case, prediction: Any, near: Neighbours) -> Any:
        del case
        calls = _calls(prediction)
        new = None if calls is None else change(list(calls), near)
        if new is None or new == calls:
            return None
        return {**prediction, "tool_calls": new} if isinstance(prediction, Mapping) else new

    return changed


def _call_dropped(calls: list[Any], near: Neighbours) -> list[Any]:
    del calls[near.rng.randrange(len(calls))]
    return calls


def _call_reordered(calls: list[Any], near: Neighbours) -> list[Any] | None:
    del near
    return calls[::-1] if len(calls) > 1 else None


def _argument(calls: list[Any], near: Neighbours) -> list[Any] | None:
    places = [at for at, call in enumerate(calls) if isinstance(call.get("arguments"), Mapping) and call["arguments"]]
    if not places:
        return None
    place = near.rng.choice(places)
    arguments = dict(calls[place]["arguments"])
    name = near.rng.choice(sorted(arguments))
    arguments[name] = f"{arguments[name]} changed"
    calls[place] = {**calls[place], "arguments": arguments}
    return calls


def _ranking(prediction: Any) -> list[str] | None:
    """Return the ids of a ranked list; ``None`` for lists of other things, whose order may not matter."""
    if not isinstance(prediction, list) or len(prediction) == 1 or _calls(prediction) is not None:
        return None
    ids = [
        next((each[key] for key in _IDS if key in each), None) if isinstance(each, Mapping) else each
        for each in prediction
    ]
    return [str(each) for each in ids] if ids and all(isinstance(each, str | int) for each in ids) else None


def _relevant(case: Case, prediction: Any) -> int | None:
    """Return the place of the first result that the case names."""
    ids = _ranking(prediction)
    if ids is None or case.expected is None:
        return None
    wanted = json.dumps(case.expected, ensure_ascii=False, default=str)
    return next((place for place, each in enumerate(ids) if f'"{each}"' in wanted), None)


def _last_first(case: Case, prediction: Any, near: Neighbours) -> Any:
    del near
    place = _relevant(case, prediction)
    if place is None or place == len(prediction) - 1:
        return None
    return [*prediction[:place], *prediction[place + 1 :], prediction[place]]


def _first_removed(case: Case, prediction: Any, near: Neighbours) -> Any:
    del near
    place = _relevant(case, prediction)
    return None if place is None else [*prediction[:place], *prediction[place + 1 :]]


MUTATORS: Final[tuple[Mutator, ...]] = (
    Mutator("other_answer", "it answers another question", "a metric against `expected`", _of_text(_other_answer)),
    Mutator("question", "it repeats the question", "a metric against `expected`", _of_text(_question)),
    Mutator("empty", "it says nothing", "the check `min_chars: 1`", _of_text(lambda *_: "")),
    Mutator("refusal", "it refuses", "the check `not_refusal`", _of_text(_refusal)),
    Mutator(
        "truncated",
        "it breaks off in the middle",
        "a threshold on recall, or `contains` of how answers end",
        _of_text(_truncated),
    ),
    Mutator("number", "a number is another one", "the check `number` or `contains`, or `claims`", _of_text(_number)),
    Mutator("unit", "a unit is another one", "the check `contains`, or `claims`", _of_text(_unit)),
    Mutator("negation", "it says the opposite", "`claims` or a judge; words alone hardly differ", _of_text(_negation)),
    Mutator("name", "a name is another one", "the check `contains`, or `claims`", _of_text(_name)),
    Mutator(
        "sentence_dropped",
        "what was asked for is left out",
        "a threshold on recall, or `contains`",
        _of_text(_sentence_dropped),
    ),
    Mutator(
        "unsupported",
        "it claims something about another question",
        "`claims` (faithfulness), or `max_words`",
        _of_text(_unsupported),
    ),
    Mutator("citation", "a citation points to another passage", "`claims` (citation_support)", _of_text(_citation)),
    Mutator("next_label", "the class is another one", "`classification` with a threshold on each class", _next_label),
    Mutator(
        "majority_label", "a system that always says the most frequent class", "macro F1, or gates by class", _majority
    ),
    Mutator(
        "field_missing", "a field is missing", "`fields` with a threshold, or `json_schema`", _of_fields(_field_missing)
    ),
    Mutator("field_type", "a field has a value of another type", "`fields`, or `json_schema`", _of_fields(_field_type)),
    Mutator("field_value", "a field has another value", "`fields` with a threshold", _of_fields(_field_value)),
    Mutator(
        "call_dropped", "a tool was not called", "`tools` with a threshold on tool_recall", _of_calls(_call_dropped)
    ),
    Mutator(
        "call_doubled",
        "a tool was called twice",
        "`tools` with order or limits",
        _of_calls(lambda calls, _: [*calls, calls[-1]]),
    ),
    Mutator(
        "call_reordered", "tools were called in another order", "`tools: {order: in_order}`", _of_calls(_call_reordered)
    ),
    Mutator("argument", "a tool was called with another argument", "`tools: {arguments: exact}`", _of_calls(_argument)),
    Mutator(
        "call_added",
        "a tool was called that nobody asked for",
        "`tools: {forbidden: [...]}` or precision",
        _of_calls(lambda calls, _: [*calls, {"name": "delete_everything", "arguments": {}}]),
    ),
    Mutator(
        "relevant_last",
        "the first relevant result is the last one",
        "a metric of ranks, such as MRR or NDCG",
        _last_first,
    ),
    Mutator("relevant_removed", "the first relevant result is missing", "recall, or a metric of ranks", _first_removed),
)
"""What makes answers wrong."""


def _swapped(text: str, case: Case, near: Neighbours) -> str | None:
    del case, near
    return None if any(each in text for each in "{[<`") else text.swapcase()


def _around(text: str, case: Case, near: Neighbours) -> str | None:
    del case, near
    if len(text.split()) > _SHORT_ANSWER or len(text) > _SHORT_LINE or text.endswith((".", "。", "!", "?")):
        return None
    return f"答案是{text}。" if _CJK.search(text) else f"It is {text}."


def _punctuated(text: str, case: Case, near: Neighbours) -> str:
    del case, near
    return text[:-1] if text.endswith((".", "。")) else f"{text}{'。' if _CJK.search(text) else '.'}"


def _separated(text: str, case: Case, near: Neighbours) -> str | None:
    del case, near
    return re.sub(r"(?<![\w.,])(?<!\d\s)[1-9]\d{4,}(?![\w.,]|\s\d)", lambda found: f"{int(found[0]):,}", text)


def _reformatted(case: Case, prediction: Any, near: Neighbours) -> Any:
    del case, near
    if isinstance(prediction, str) and prediction.strip().startswith("{"):
        try:
            found = json.loads(prediction)
        except ValueError:
            return None
        return json.dumps(dict(reversed(found.items())), indent=2) if isinstance(found, dict) else None
    return None


REWRITES: Final[tuple[Mutator, ...]] = (
    Mutator("case", "capitals do not matter", "", _of_text(_swapped)),
    Mutator("white_space", "spaces do not matter", "", _of_text(lambda text, *_: f"  {'  '.join(text.split(' '))}\n")),
    Mutator("punctuation", "a full stop does not matter", "", _of_text(_punctuated)),
    Mutator("around", "a sentence around a short answer does not matter", "", _of_text(_around)),
    Mutator("thousands", "separators of thousands do not matter", "", _of_text(_separated)),
    Mutator("json_form", "order and layout of JSON do not matter", "", _reformatted),
)
"""What must not make an answer wrong."""


def applicable(
    mutators: Sequence[Mutator], case: Case, near: Callable[[str], Neighbours]
) -> Iterator[tuple[Mutator, Any]]:
    """Yield the mutators that apply to a case, each with the changed prediction."""
    for mutator in mutators:
        changed = mutator.change(case, case.prediction, near(mutator.name))
        if changed is not None:
            yield mutator, changed
