"""The mutators that ship."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, TypeAlias

from pytest_llmeval.core import AnswerChange, Case, Mutator, Neighbours, Parts
from pytest_llmeval.evaluators import (
    AnswerText,
    ChangeablePart,
    MissingTraceError,
    References,
    ToolCall,
)

_OPENING_FENCE: Final = re.compile(r"```\w*+[ \t]*+(?=\n)")
_CLOSING_FENCE: Final = re.compile(r"\n[ \t]*+```")
_SPACES: Final = re.compile(r"\s+")
_QUESTION: Final = ("question", "query", "text", "claim")
_IDS: Final = ("id", "doc_id", "document_id", "case_id")


_TextChange: TypeAlias = Callable[[str, Case, Neighbours], str | None]


@lru_cache(maxsize=4096)
def normal(text: str) -> str:
    """The text of an answer without differences that do not count: case, width, punctuation and blanks around it.

    >>> normal("It is  ３０ days。")
    'it is 30 days'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _SPACES.sub(" ", folded).strip(" .,;:!?。，；：！？\"'")


def _of_text(change: _TextChange, *, prose: bool = False) -> AnswerChange:
    """Make a mutator's change of an answer from a change of its text.

    Args:
        change: Returns the changed text, or ``None`` where it does not apply.
        prose: Whether it applies to prose only, not to JSON and code.
    """

    def changed(case: Case, near: Neighbours) -> Any:
        answer = ChangeablePart.of_text(case)
        if answer is None or (prose and _is_code(answer.value)):
            return None
        new = change(answer.value, case, near)
        return None if new is None or new == answer.value else answer.put(new)

    return changed


def _is_code(text: str) -> bool:
    """Whether an answer looks like code or data, which mutators of prose leave alone."""
    return "{" in text or "```" in text or text.lstrip()[:1] in ("[", "<")


def _structure(case: Case) -> ChangeablePart | None:
    """The structured answer that mutators change: an object, or the JSON object in a text."""
    prediction = case.prediction
    is_whole = isinstance(prediction, Mapping) and not any(part in prediction for part in Parts.NAMES)
    if is_whole and prediction and case.part_paths.answer is None:
        return ChangeablePart(prediction, lambda new: new)
    answer = ChangeablePart.of_answer(case)
    if answer is None:
        return None
    if isinstance(answer.value, Mapping):
        return answer if answer.value else None
    return _object_in(answer) if isinstance(answer.value, str) else None


def _object_in(part: ChangeablePart) -> ChangeablePart | None:
    """The JSON object in an answer's text, alone or in a code fence; ``None`` if there is none."""
    text: str = part.value
    opening = _OPENING_FENCE.search(text)
    closing = _CLOSING_FENCE.search(text, opening.end() + 1) if opening else None
    start, end = (opening.end() + 1, closing.start()) if opening and closing else (0, len(text))
    if not text[start:end].lstrip().startswith("{"):
        return None
    try:
        data = json.loads(text[start:end])
    except (ValueError, RecursionError):
        return None

    def put(new: Any) -> Any:
        return part.put(f"{text[:start]}{json.dumps(new, ensure_ascii=False)}{text[end:]}")

    return ChangeablePart(data, put) if data else None


def _passages(case: Case) -> list[str]:
    """The passages on which an answer is based: the part ``contexts``."""
    if not isinstance(case.prediction, Mapping):
        return []
    contexts = case.part_paths.find("contexts", case.prediction)
    if not isinstance(contexts, list):
        return []
    texts = (
        context.get("text", context.get("content")) if isinstance(context, Mapping) else context for context in contexts
    )
    return [text for text in texts if isinstance(text, str)]


def _ground(case: Case) -> str | None:
    """The expected texts and passages of a case, by which facts of an answer are known to be right."""
    if type(case.expected) is str and type(case.prediction) is str:
        return case.expected
    return "\n".join([*References.of_case(case).texts, *_passages(case)]) or None


def _question_text(case: Case) -> str | None:
    """The question of a case as text; ``None`` if its input has none."""
    question = case.input
    if isinstance(question, Mapping):
        question = next((question[name] for name in _QUESTION if isinstance(question.get(name), str)), None)
    elif isinstance(question, list):
        texts = [
            message.get("content")
            for message in question
            if isinstance(message, Mapping) and message.get("role") == "user"
        ]
        question = texts[-1] if texts else None
    return question if isinstance(question, str) and question.strip() else None


def _calls(case: Case) -> ChangeablePart | None:
    """The tool calls of an answer with names and arguments, in one form for all traces; ``None`` without any.

    Put back, they are the part ``tool_calls``, which comes before calls in messages.
    """
    prediction, path = case.prediction, case.part_paths.tool_calls
    if path is not None:
        part = ChangeablePart.at(prediction, path, case.part_paths.find("tool_calls", prediction))
        return None if part is None else _read_calls(part.value, part.put)
    if isinstance(prediction, Mapping):
        return _read_calls(prediction, lambda new: {**prediction, "tool_calls": new})
    if isinstance(prediction, list) and all(isinstance(call, Mapping) and "name" in call for call in prediction):
        return _read_calls(prediction, lambda new: new)
    return None


def _read_calls(trace: Any, put: Callable[[Any], Any]) -> ChangeablePart | None:
    """The tool calls in a recorded trace, as a part that mutators change; ``None`` if there are none."""
    try:
        trace_calls = ToolCall.read_trace(trace)
    except MissingTraceError:
        return None
    if not trace_calls or any(call.fault for call in trace_calls):
        return None
    return ChangeablePart([_written(call) for call in trace_calls], put)


def _written(call: ToolCall) -> dict[str, Any]:
    """A tool call as an object of a trace, after a mutator has changed the calls."""
    status = {"status": "error"} if call.failed else {}
    return {"name": call.name, "arguments": dict(call.arguments or {}), **status}


def _messages(case: Case) -> ChangeablePart | None:
    """The messages of a conversation that mutators change; ``None`` without two messages that have a role."""
    prediction = case.prediction
    turns = prediction.get("messages") if isinstance(prediction, Mapping) else None
    if not isinstance(turns, list) or not all(isinstance(turn, Mapping) and "role" in turn for turn in turns):
        return None
    return ChangeablePart(turns, lambda new: {**prediction, "messages": new}) if len(turns) > 1 else None


def _ranking(prediction: Any) -> list[str] | None:
    """The ids of a ranked list in an answer; ``None`` for other lists, whose order may not matter."""
    if not isinstance(prediction, list) or len(prediction) == 1:
        return None
    ids = [_id_of(result) for result in prediction]
    return [str(id_) for id_ in ids] if ids and all(id_ is not None for id_ in ids) else None


def _ranking_part(case: Case) -> tuple[ChangeablePart, frozenset[str]] | None:
    """The ranked results of an answer that mutators change, with the ids of the relevant ones."""
    prediction, path = case.prediction, case.part_paths.contexts
    if not isinstance(prediction, Mapping):
        return ChangeablePart(prediction, lambda new: new), _relevant_ids(case.expected)
    for name in ("contexts", "sources") if path is None else (path.partition("[")[0],):
        part = ChangeablePart.at(prediction, name, Parts(contexts=name).find("contexts", prediction))
        if name and part is not None and isinstance(part.value, list):
            expected = Parts.expectation("contexts", path, case.expected)
            relevant = _relevant_ids(expected if isinstance(expected, list) else [expected])
            return part, relevant
    return None


def _id_of(result: Any) -> Any:
    """The id of a result in a ranked list; ``None`` if it has none."""
    identifier = next((result[key] for key in _IDS if key in result), None) if isinstance(result, Mapping) else result
    return identifier if isinstance(identifier, str | int) else None


def _relevant_ids(expected: Any) -> frozenset[str]:
    """The ids of the relevant results that a case expects."""
    if isinstance(expected, Mapping):
        return frozenset().union(
            *(_relevant_ids(results) for results in expected.values() if isinstance(results, list))
        )
    if not isinstance(expected, list):
        return frozenset()
    return frozenset(str(identifier) for result in expected if (identifier := _id_of(result)) is not None)


_SHORT_TEXT: Final = 6
"""Words, or Chinese characters, from which on half an answer is clearly broken off."""
_SHORT_NAME: Final = (4, 8)
"""Words, and Chinese characters, up to which an expected answer is the name of something."""

_DIGITS: Final = re.compile(r"(?<![\w.,:/-])\d+(?:[.,]\d+)*(?![\w:/]|-\d)|(?<=[\u4e00-\u9fff])\d+(?:[.,]\d+)*")
_ENGLISH_NUMBERS: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WORDED: Final = re.compile(rf"\b(?:{'|'.join(_ENGLISH_NUMBERS)})\b", re.IGNORECASE)
_CHINESE_NUMBERS: Final = "一二三四五六七八九"
_COUNTED: Final = re.compile(
    r"[一二三四五六七八九](?=[十百千万]*[一二三四五六七八九]?[天周个年小分元块公米人次位名岁点号日月层])"
)
_CITATION: Final = re.compile(r"[\[［【](\d{1,3})[\]］】]")

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CHINESE_DAYS: Final = "一二三四五六日"
_DATES: Final = (
    (re.compile(r"(?<=\d{4}-)\d{2}(?=-\d{2}(?!\d))"), lambda name: f"{int(name) % 12 + 1:02}"),
    (re.compile(rf"\b(?:{'|'.join(_MONTHS)})\b"), lambda name: _next(_MONTHS, name)),
    (re.compile(rf"\b(?:{'|'.join(_DAYS)})(?=s?\b)"), lambda name: _next(_DAYS, name)),
    (re.compile(r"(?<=年)\d{1,2}(?=月)|(?<![\d年])\d{1,2}(?=月\d{1,2}[日号])"), lambda name: f"{int(name) % 12 + 1}"),
    (re.compile("(?<=星期|礼拜)[一二三四五六日]|(?<=周)[一二三四五六日]"), lambda name: _next(_CHINESE_DAYS, name)),
)

_UNITS: Final = {
    "days": "weeks",
    "day": "week",
    "weeks": "days",
    "week": "day",
    "hours": "minutes",
    "minutes": "hours",
    "months": "years",
    "years": "months",
    "euros": "dollars",
    "dollars": "euros",
    "EUR": "USD",
    "USD": "EUR",
    "km": "miles",
    "miles": "km",
    "kg": "pounds",
    "grams": "kilograms",
    "metres": "feet",
    "meters": "feet",
    "percent": "percentage points",
    "€": "$",
    "£": "€",
    "天": "周",
    "小时": "分钟",
    "分钟": "小时",
    "个月": "年",
    "元": "美元",
    "公里": "米",
    "公斤": "克",
}
_UNIT: Final = re.compile(
    rf"(?:(?<=\d)|(?<=\b))(?:{'|'.join(unit for unit in _UNITS if unit.isascii())})\b|[€£]"
    rf"|(?<=[\d一二三四五六七八九十百千万两几 ])(?:{'|'.join(unit for unit in _UNITS if AnswerText(unit).has_cjk)})"
)

_OPPOSITES: Final = dict(
    pair
    for word, other in (
        *(("more", "less"), ("above", "below"), ("before", "after"), ("rose", "fell"), ("higher", "lower")),
        *(("increased", "decreased"), ("earlier", "later"), ("at least", "at most"), ("free", "not free")),
        *(("以上", "以下"), ("增加", "减少"), ("上升", "下降"), ("之前", "之后"), ("至少", "至多"), ("高于", "低于")),
    )
    for pair in ((word, other), (other, word))
)
_OPPOSITE: Final = re.compile(
    rf"\b(?:{'|'.join(sorted((word for word in _OPPOSITES if word.isascii()), key=len, reverse=True))})\b"
    rf"|{'|'.join(word for word in _OPPOSITES if AnswerText(word).has_cjk)}"
)
_SIGNED: Final = re.compile(r"(?<![\w.)\]-])[-+\u2212](?=\d)")

_NEGATED: Final = (
    (re.compile(r"\b(is|are|was|were|can|will|does|do|did|may|must|has|have) ?not\b", re.IGNORECASE), r"\1"),
    (re.compile(r"\b(is|are|was|were|does|do|did|has|have)n['\u2019]t\b", re.IGNORECASE), r"\1"),
    (re.compile(r"\b(is|are|was|were|can|will|may|must)\b", re.IGNORECASE), r"\1 not"),
    (re.compile("不(?=是|能|会|可以|需要|要|支持|收|允许|包含|含|营业|开)"), ""),
    (re.compile("没有"), "有"),
    (re.compile("(?<![不但还就于可总])(是(?!否)|可以|需要|能够|支持|允许)"), r"不\1"),
)

_NAME: Final = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_NO_NAMES: Final = frozenset(
    (*_MONTHS, *_DAYS, "The", "This", "That", "You", "They", "She", "Her", "His", "And", "But")
)
_LINKS: Final = re.compile(r"\s*(?:,|;|and|or|und|&|/|\+|、|，|和|与|及|或|[-\u2013]|到|至)?\s*")
"""What stands between two facts whose order does not matter."""


def _next(values: Sequence[str], value: str) -> str:
    """The value after another one in a cycle, such as the next number word."""
    return values[(values.index(value) + 1) % len(values)]


def _known(text: str, known: str | None) -> bool:
    """Whether a fact of an answer is known to be right; mutators leave other facts alone, which may be wrong."""
    return known is None or text in known


def _substituted(
    text: str, pattern: re.Pattern[str], known: str | None, near: Neighbours, change: Callable[[str], str]
) -> str | None:
    """Replace one of the facts of an answer that a pattern matches and that are known to be right."""
    matches = [match for match in pattern.finditer(text) if _known(match[0], known)]
    if not matches:
        return None
    chosen = matches[0] if len(matches) == 1 else near.rng.choice(matches)
    return f"{text[: chosen.start()]}{change(chosen[0])}{text[chosen.end() :]}"


def _other_answers(text: str, near: Neighbours) -> Iterator[str]:
    """Yield the answers of other cases, from which mutators take wrong answers."""
    start = near.rng.randrange(len(near.others)) if near.others else 0
    for other in (*near.others[start:], *near.others[:start]):
        part = ChangeablePart.of_text(other)
        if part is not None and part.value != text:
            yield part.value


def _other_answer(text: str, case: Case, near: Neighbours) -> str | None:
    """Replace an answer by that of another case that lacks the expected text."""
    expected = [normal(reference) for reference in References.of_case(case).texts]
    others = _other_answers(text, near)
    return next(
        (other for other in others if not any(reference and reference in normal(other) for reference in expected)), None
    )


def _question(_text: str, case: Case, _near: Neighbours) -> str | None:
    """Answer a case with its own question."""
    return _question_text(case)


def _refusal(text: str, _case: Case, _near: Neighbours) -> str:
    """Answer a case with a refusal, in the language of the answer."""
    return "抱歉，我无法回答这个问题。" if AnswerText(text).has_cjk else "I'm sorry, but I can't help with that."


def _truncated(text: str, _case: Case, _near: Neighbours) -> str | None:
    """Cut an answer after half of its words."""
    words = list(text) if AnswerText(text).has_cjk else text.split()
    if len(words) < _SHORT_TEXT:
        return None
    return ("" if AnswerText(text).has_cjk else " ").join(words[: len(words) // 2])


def _without_citations(text: str) -> str:
    """The text of an answer with the numbers of its citations blanked, so that they are not facts."""
    return _CITATION.sub(lambda mark: "#" * len(mark[0]), text) if "[" in text or "【" in text or "［" in text else text


def _number(text: str, case: Case, near: Neighbours) -> str | None:
    """Change a number of an answer that is known to be right."""
    known, plain = _ground(case), _without_citations(text)
    matches = [match for match in _DIGITS.finditer(plain) if _known(match[0], known)]
    if matches:
        chosen = matches[0] if len(matches) == 1 else near.rng.choice(matches)
        start, end = chosen.span()
        leading = re.match(r"\d+", chosen[0])
        assert leading is not None
        changed = str(int(leading[0]) + near.rng.choice((1, 7, 30))).zfill(len(leading[0]))
        return f"{text[:start]}{changed}{text[start + len(leading[0]) : end]}{text[end:]}"
    worded = _substituted(text, _WORDED, known, near, lambda word: _next(_ENGLISH_NUMBERS, word.lower()))
    return worded or _substituted(text, _COUNTED, known, near, lambda digit: _next(_CHINESE_NUMBERS, digit))


def _date(text: str, case: Case, near: Neighbours) -> str | None:
    """Change a date of an answer that is known to be right."""
    known = _ground(case)
    changed = (_substituted(text, pattern, known, near, change) for pattern, change in _DATES)
    return next((variant for variant in changed if variant is not None), None)


def _unit(text: str, case: Case, near: Neighbours) -> str | None:
    """Replace the unit of a right number by another unit."""
    return _substituted(text, _UNIT, _ground(case), near, _UNITS.__getitem__)


def _sign(text: str, case: Case, _near: Neighbours) -> str | None:
    """Turn the sign of a right number round."""
    known, signed = _ground(case), _SIGNED.search(text)
    if signed is None or not _known(text[signed.start() : signed.end() + 1], known):
        return None
    other = "-" if signed[0] == "+" else ""
    return f"{text[: signed.start()]}{other}{text[signed.end() :]}"


def _direction(text: str, case: Case, near: Neighbours) -> str | None:
    """Replace a right word of direction by its opposite, such as "above" by "below"."""
    return _substituted(text, _OPPOSITE, _ground(case), near, _OPPOSITES.__getitem__)


def _negation(text: str, _case: Case, _near: Neighbours) -> str | None:
    """Negate a statement of an answer, or take its negation away."""
    for pattern, replacement in _NEGATED:
        if pattern.search(text):
            return pattern.sub(replacement, text, count=1)
    return None


def _names(text: str) -> list[re.Match[str]]:
    """The capitalized names in an answer, by which mutators exchange names between cases."""
    return [match for match in _NAME.finditer(text) if match[0] not in _NO_NAMES]


def _is_short(text: str) -> bool:
    """Whether an answer is as short as a name, so that the whole of it can be exchanged."""
    words, characters = _SHORT_NAME
    return len(text) <= characters if AnswerText(text).has_cjk else len(text.split()) <= words


def _name(text: str, case: Case, near: Neighbours) -> str | None:
    """Replace a short answer, or a right name in it, by that of another case."""
    expected = next(
        (
            reference
            for reference in References.of_case(case).texts
            if _is_short(reference) and not _has_digit(reference) and reference in text
        ),
        None,
    )
    if expected is not None:
        others = [reference for other in near.others for reference in References.of_case(other).texts[:1]]
        others = [other for other in others if _is_short(other) and not _has_digit(other) and other not in text]
        if others and normal(expected):
            return text.replace(expected, near.rng.choice(others), 1)
    known = _ground(case)
    candidates = [name for name in _names(text) if _known(name[0], known)]
    if not candidates:
        return None
    names = sorted({name[0] for other in _other_answers(text, near) for name in _names(other)})
    others = [name for name in names if name not in text]
    if not others:
        return None
    chosen = near.rng.choice(candidates)
    return f"{text[: chosen.start()]}{near.rng.choice(others)}{text[chosen.end() :]}"


def _has_digit(text: str) -> bool:
    """Whether a text has a digit."""
    return any(map(str.isdigit, text))


def _swapped_facts(text: str, case: Case, _near: Neighbours) -> str | None:
    """Swap two numbers or names of an answer, except neighbours in a list."""
    known, plain = _ground(case), _without_citations(text)
    for facts in (list(_DIGITS.finditer(plain)), _names(plain)):
        right = [fact for fact in facts if _known(fact[0], known)]
        for first, other in pairwise(right):
            between = text[first.end() : other.start()]
            if first[0] != other[0] and not _LINKS.fullmatch(between):
                return f"{text[: first.start()]}{other[0]}{between}{first[0]}{text[other.end() :]}"
    return None


def _words(text: str) -> set[str]:
    """The words of a text, for the overlap of a sentence with the expected answer."""
    return set(re.findall(r"[\u3400-\u9fff]|\w+", text.casefold()))


def _sentence_dropped(text: str, case: Case, _near: Neighbours) -> str | None:
    """Remove the sentence of an answer without which most words of the expected answer are missing."""
    sentences = AnswerText(text).sentences
    if len(sentences) < 2:  # noqa: PLR2004 (one of several)
        return None
    expected_words = _words(" ".join(References.of_case(case).texts[:1]))
    lost = [
        len((_words(sentence) & expected_words) - _words(" ".join([*sentences[:at], *sentences[at + 1 :]])))
        for at, sentence in enumerate(sentences)
    ]
    if max(lost) == 0:
        return None
    place = lost.index(max(lost))
    joint = "" if AnswerText(text).has_cjk else " "
    return joint.join(sentence for at, sentence in enumerate(sentences) if at != place)


def _unsupported(text: str, case: Case, near: Neighbours) -> str | None:
    """Add a sentence to an answer that neither the expected answer nor the passages support."""
    known = normal(f"{text} {_ground(case) or ''}")
    firsts = (first[0] for other in _other_answers(text, near) if (first := AnswerText(other).sentences))
    sentence = next((first for first in firsts if normal(first) not in known), None)
    return None if sentence is None else f"{text}{'' if AnswerText(text).has_cjk else ' '}{sentence}"


def _citation(text: str, case: Case, _near: Neighbours) -> str | None:
    """Let a citation of an answer point to a passage that the answer does not cite."""
    cited = [int(match[1]) for match in _CITATION.finditer(text)]
    if not cited:
        return None
    number = len(_passages(case)) or max(cited) + 1
    following = (place % number + 1 for place in range(cited[0], cited[0] + number))
    other = next((passage for passage in following if passage not in cited), number + 1)
    return _CITATION.sub(lambda mark: mark[0].replace(mark[1], str(other)), text, count=1)


_FREE_ORDERS: Final = ("any_order", "superset", "subset")
_FREE_LISTS: Final = ("list", "set", "ignore")


def labelled(case: Case, label: str) -> Any:
    """Return a prediction with another class in place of its answer."""
    part = ChangeablePart.of_text(case)
    return label if part is None else part.put(label)


def _next_label(case: Case, near: Neighbours) -> Any:
    """Answer a classification case with the next class after the right one."""
    if not isinstance(case.expected, str) or case.expected not in near.labels or len(near.labels) == 1:
        return None
    return labelled(case, near.labels[(near.labels.index(case.expected) + 1) % len(near.labels)])


def _majority(case: Case, near: Neighbours) -> Any:
    """Answer a classification case with the most frequent class."""
    return labelled(case, near.most) if near.most is not None and near.most != case.expected else None


def _expected_fields(case: Case) -> Mapping[str, Any]:
    """The fields of the structured answer that a case expects; none if it expects no object."""
    fields = Parts.expectation("answer", None, case.expected)
    return fields if isinstance(fields, Mapping) else {}


def _of_fields(change: Callable[[dict[str, Any], list[str], Case, Neighbours], None]) -> AnswerChange:
    """Make a mutator's change of an answer from a change of the fields that a case expects."""

    def changed(case: Case, near: Neighbours) -> Any:
        part = _structure(case)
        expected = _expected_fields(case)
        if part is None or not expected:
            return None
        names = sorted(str(name) for name in part.value if name in expected and _comparator(name, near) != "ignore")
        if not names:
            return None
        new = dict(part.value)
        change(new, names, case, near)
        return None if new == part.value and list(new) == list(part.value) else part.put(new)

    return changed


def _comparator(name: str, near: Neighbours) -> Any:
    """The comparator that a suite's ``fields`` evaluator sets for a field."""
    paths: Mapping[str, Any] = near.option("fields", "paths", {})
    return paths.get(name, paths.get(f"{name}[]"))


def _is_order_free(name: str, near: Neighbours) -> bool:
    """Whether the ``fields`` evaluator of a suite ignores the order of a list."""
    comparator = _comparator(name, near)
    if isinstance(comparator, str) or comparator is None:
        return isinstance(comparator, str) and comparator in _FREE_LISTS
    return bool(comparator.list or comparator.set)


def _field_missing(fields: dict[str, Any], names: list[str], case: Case, near: Neighbours) -> None:
    """Remove an expected field from a structured answer."""
    expected = _expected_fields(case)
    present = [name for name in names if fields[name] is not None and expected[name] is not None]
    if present:
        del fields[near.rng.choice(present)]


def _field_added(fields: dict[str, Any], names: list[str], case: Case, _near: Neighbours) -> None:
    """Add a field to a structured answer that has only expected fields."""
    if len(names) == len(fields) == len(_expected_fields(case)):
        fields["additional_information"] = "none"


def _field_type(fields: dict[str, Any], names: list[str], _case: Case, near: Neighbours) -> None:
    """Give a field of a structured answer another type: a list around it, or an object around a list."""
    name = near.rng.choice(names)
    value = fields[name]
    fields[name] = [value] if not isinstance(value, list) else {"items": value}


def _field_value(fields: dict[str, Any], names: list[str], _case: Case, near: Neighbours) -> None:
    """Change the value of a field of a structured answer."""
    name = near.rng.choice(names)
    value = fields[name]
    match value:
        case bool():
            fields[name] = not value
        case int() | float():
            fields[name] = value * 2 + 1
        case str():
            fields[name] = f"{value} changed" if value else "changed"
        case list() if value:
            fields[name] = value[:-1] if len(value) > 1 else [*value, "changed"]


def _free_lists(fields: Mapping[str, Any], names: list[str], near: Neighbours, *, free: bool) -> list[str]:
    """The fields of a structured answer with lists whose order matters, or does not."""
    lists = [name for name in names if isinstance(fields[name], list) and fields[name] != fields[name][::-1]]
    return [name for name in lists if _is_order_free(name, near) == free]


def _list_reordered(fields: dict[str, Any], names: list[str], _case: Case, near: Neighbours) -> None:
    """Reverse a list of a structured answer whose order matters."""
    lists = _free_lists(fields, names, near, free=False)
    if lists:
        name = near.rng.choice(lists)
        fields[name] = fields[name][::-1]


def _list_doubled(fields: dict[str, Any], names: list[str], _case: Case, near: Neighbours) -> None:
    """Repeat an element of a list in a structured answer, unless the suite compares the list as a set."""
    lists = [name for name in names if isinstance(fields[name], list) and fields[name]]
    lists = [name for name in lists if not _is_set(_comparator(name, near))]
    if lists:
        name = near.rng.choice(lists)
        fields[name] = [*fields[name], fields[name][0]]


def _is_set(comparator: Any) -> bool:
    """Whether a comparator of the ``fields`` evaluator compares a list as a set."""
    return comparator == "set" if isinstance(comparator, str) or comparator is None else bool(comparator.set)


def _of_calls(change: Callable[[list[Any], Case, Neighbours], list[Any] | None]) -> AnswerChange:
    """Make a mutator's change of an answer from a change of its tool calls."""

    def changed(case: Case, near: Neighbours) -> Any:
        part = _calls(case)
        new = None if part is None else change(list(part.value), case, near)
        return None if part is None or new is None or new == part.value else part.put(new)

    return changed


def _failed(call: Mapping[str, Any]) -> bool:
    """Whether a tool call of a trace ended with an error."""
    return "status" in call


def _call_dropped(trace: list[Any], case: Case, near: Neighbours) -> list[Any] | None:
    """Remove an expected tool call that was not repeated after an error."""
    expected = {call.name for call in ToolCall.read_expected(case.expected) or ()}
    names = [call["name"] for call in trace if not _failed(call)]
    places = [
        at
        for at, call in enumerate(trace)
        if not _failed(call) and call["name"] in expected and names.count(call["name"]) == 1
    ]
    if not places:
        return None
    del trace[near.rng.choice(places)]
    return trace


def _call_doubled(trace: list[Any], case: Case, _near: Neighbours) -> list[Any] | None:
    """Repeat the last tool call of a trace."""
    return None if ToolCall.read_expected(case.expected) is None else [*trace, trace[-1]]


def _calls_reordered(trace: list[Any], case: Case, near: Neighbours) -> list[Any] | None:
    """Reverse tool calls that are in the expected order, if the suite requires the order."""
    if near.option("tools", "order", None) in _FREE_ORDERS:
        return None
    names, order = [call["name"] for call in trace], [call.name for call in ToolCall.read_expected(case.expected) or ()]
    return trace[::-1] if _is_subsequence(order, names) and not _is_subsequence(order, names[::-1]) else None


def _is_subsequence(expected: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a trace has the expected tool names in their order."""
    remaining = iter(names)
    return all(name in remaining for name in expected)


def _argument(trace: list[Any], case: Case, near: Neighbours) -> list[Any] | None:
    """Change an argument of a tool call that is as expected."""
    expected = {call.name: call.arguments or {} for call in ToolCall.read_expected(case.expected) or ()}
    ignored = near.option("tools", "ignore_arguments", ())
    places = [
        (at, name)
        for at, call in enumerate(trace)
        for name in sorted(call["arguments"])
        if name in expected.get(call["name"], {})
        and normal(str(call["arguments"][name])) == normal(str(expected[call["name"]][name]))
        and not any(fnmatchcase(name, pattern) for pattern in ignored)
    ]
    if not places:
        return None
    at, name = near.rng.choice(places)
    value = trace[at]["arguments"][name]
    changed = value + 1 if type(value) in (int, float) else f"{value} changed"
    trace[at] = {**trace[at], "arguments": {**trace[at]["arguments"], name: changed}}
    return trace


def _call_added(trace: list[Any], _case: Case, near: Neighbours) -> list[Any] | None:
    """Add a call of a tool that the suite forbids, or else of an unknown tool."""
    forbidden = near.option("tools", "forbidden", ())
    name = forbidden[0].replace("*", "everything").replace("?", "x") if forbidden else "delete_everything"
    return [*trace, {"name": name, "arguments": {}}]


def _of_ranking(change: Callable[[list[Any], list[int]], list[Any] | None]) -> AnswerChange:
    """Make a mutator's change of an answer from a change of its ranked results."""

    def changed(case: Case, _near: Neighbours) -> Any:
        part, relevant = _ranking_part(case) or (None, frozenset())
        ids = None if part is None else _ranking(part.value)
        if part is None or ids is None:
            return None
        places = [place for place, id_ in enumerate(ids) if id_ in relevant]
        new = change(part.value, places) if places else None
        return None if new is None else part.put(new)

    return changed


def _reversed(results: list[Any], places: list[int]) -> list[Any] | None:
    """Reverse a ranked list if that moves relevant results back."""
    mirrored = sorted(len(results) - 1 - place for place in places)
    return results[::-1] if mirrored > places else None


def _last(results: list[Any], places: list[int]) -> list[Any] | None:
    """Move the first relevant result to the end of a ranked list."""
    first = places[0]
    if places == list(range(first, len(results))):
        return None
    return [*results[:first], *results[first + 1 :], results[first]]


def _removed(results: list[Any], places: list[int]) -> list[Any]:
    """Remove the first relevant result from a ranked list."""
    return [*results[: places[0]], *results[places[0] + 1 :]]


def _turn_dropped(case: Case, near: Neighbours) -> Any:
    """Remove one turn of a conversation: a user message with the messages after it."""
    part = _messages(case)
    starts = _turn_starts(part)
    if part is None or len(starts) < 2:  # noqa: PLR2004 (one of several)
        return None
    place = near.rng.randrange(len(starts))
    end = [*starts[1:], len(part.value)][place]
    return _put_turns(part, [*part.value[: starts[place]], *part.value[end:]], -1)


def _turn_doubled(case: Case, _near: Neighbours) -> Any:
    """Repeat the last turn of a conversation."""
    part = _messages(case)
    starts = _turn_starts(part)
    if part is None or not starts:
        return None
    return _put_turns(part, [*part.value, *part.value[starts[-1] :]], 1)


def _turn_starts(part: ChangeablePart | None) -> list[int]:
    """The positions of the user's messages in a conversation, each of which begins a turn."""
    return [] if part is None else [at for at, message in enumerate(part.value) if message["role"] == "user"]


def _put_turns(part: ChangeablePart, turns: list[Any], added: int) -> Any:
    """Return a prediction with other turns of its conversation, and with their number if it has one."""
    changed = part.put(turns)
    count = changed.get("turns")
    return {**changed, "turns": count + added} if type(count) is int else changed


def _roles_swapped(case: Case, _near: Neighbours) -> Any:
    """Swap the roles of user and assistant in a conversation."""
    part = _messages(case)
    if part is None:
        return None
    other = {"user": "assistant", "assistant": "user"}
    roles = [message["role"] for message in part.value if message["role"] in other]
    if len(set(roles)) < 2:  # noqa: PLR2004 (both)
        return None
    return part.put([{**message, "role": other.get(message["role"], message["role"])} for message in part.value])


_SHORT_ANSWER: Final = 4
_SHORT_LINE: Final = 30
_SEPARABLE: Final = re.compile(r"(?<![\w.,-])(?<!\d\s)[1-9]\d{4,}(?![\w.,-]|\s\d)")
_SEPARATED: Final = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?:,\d{3})+(?![\w,]|\.\d)")
_ISO: Final = re.compile(r"(?<![\d-])(\d{4})-(\d{2})-(\d{2})(?![\d-])")
_CHINESE_DATE: Final = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})日")
_WORDED_DATE: Final = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(_MONTHS)}) (\d{{4}})\b")
_NARROW: Final = "0123456789,!?:;()"
_WIDE: Final = str.maketrans(_NARROW, "０１２３４５６７８９，！？：；（）")
_BACK: Final = str.maketrans("０１２３４５６７８９，！？：；（）", _NARROW)


def _swapped_case(text: str, _case: Case, _near: Neighbours) -> str | None:
    """Swap upper and lower case of an answer, which keeps it right."""
    return None if "`" in text else text.swapcase()


def _spaced(text: str, _case: Case, _near: Neighbours) -> str:
    """Add spaces around the words of an answer, which keeps it right."""
    return f"  {'  '.join(text.split(' '))}\n"


def _widened(text: str, _case: Case, _near: Neighbours) -> str | None:
    """Write digits and marks of a Chinese answer in full width, or in half width, which keeps it right."""
    if not AnswerText(text).has_cjk:
        return None
    wide = text.translate(_WIDE)
    return wide if wide != text else text.translate(_BACK)


def _around(text: str, _case: Case, _near: Neighbours) -> str | None:
    """Put a short answer into a sentence, which keeps it right."""
    if len(text.split()) > _SHORT_ANSWER or len(text) > _SHORT_LINE or text.endswith((".", "。", "!", "?", "！", "？")):
        return None
    return f"答案是{text}。" if AnswerText(text).has_cjk else f"It is {text}."


def _punctuated(text: str, _case: Case, _near: Neighbours) -> str:
    """Add a full stop to an answer or remove it, which keeps it right."""
    return text[:-1] if text.endswith((".", "。")) else f"{text}{'。' if AnswerText(text).has_cjk else '.'}"


def _separated(text: str, _case: Case, _near: Neighbours) -> str:
    """Add thousands separators to the numbers of an answer or remove them, which keeps it right."""
    with_separators = _SEPARABLE.sub(lambda match: f"{int(match[0]):,}", text)
    return with_separators if with_separators != text else _SEPARATED.sub(lambda match: match[0].replace(",", ""), text)


def _dated(text: str, _case: Case, _near: Neighbours) -> str:
    """Write a date of an answer in another unambiguous form, which keeps it right."""
    chinese = AnswerText(text).has_cjk

    def worded(match: re.Match[str]) -> str:
        year, month, day = map(int, match.groups())
        if not _is_date(year, month, day):
            return match[0]
        return f"{year}年{month}月{day}日" if chinese else f"{day} {_MONTHS[month - 1]} {year}"

    def iso(match: re.Match[str]) -> str:
        year, month, day = map(int, match.groups())
        return f"{year:04}-{month:02}-{day:02}" if _is_date(year, month, day) else match[0]

    new = _ISO.sub(worded, text)
    if new != text:
        return new
    if chinese:
        return _CHINESE_DATE.sub(iso, text)
    return _WORDED_DATE.sub(lambda parts: f"{parts[3]}-{_MONTHS.index(parts[2]) + 1:02}-{int(parts[1]):02}", text)


def _is_date(year: int, month: int, day: int) -> bool:
    """Whether three numbers in an answer are a date."""
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _synonym(text: str, case: Case, near: Neighbours) -> str | None:
    """Replace an answer by another one that the case accepts."""
    accepted = References.of_case(case).texts
    if len(accepted) < 2:  # noqa: PLR2004 (another one)
        return None
    match = next((reference for reference in accepted if reference and normal(reference) == normal(text)), None)
    others = [reference for reference in accepted if normal(reference) != normal(text)]
    return near.rng.choice(others) if match is not None and others else None


def _reformatted(case: Case, _near: Neighbours) -> Any:
    """Write the JSON of an answer with its keys in another order, on several lines."""
    part, text = _structure(case), ChangeablePart.of_text(case)
    if part is None or text is None:
        return None
    return text.put(json.dumps(dict(reversed(part.value.items())), ensure_ascii=False, indent=2))


def _keys_reordered(case: Case, _near: Neighbours) -> Any:
    """Reorder the keys of a structured answer, which keeps it right."""
    part = _structure(case)
    if part is None or ChangeablePart.of_text(case) is not None or len(part.value) == 1:
        return None
    return part.put(dict(reversed(part.value.items())))


def _lists_reordered(case: Case, near: Neighbours) -> Any:
    """Reverse lists of a structured answer whose order does not matter."""
    part = _structure(case)
    if part is None or near.evaluator("fields") is None:
        return None
    names = _free_lists(part.value, sorted(part.value), near, free=True)
    return part.put({**part.value, **{name: part.value[name][::-1] for name in names}}) if names else None


def _free_calls(case: Case, near: Neighbours) -> Any:
    """Reverse the tool calls of a trace if the suite accepts any order."""
    part = _calls(case)
    if part is None or near.option("tools", "order", "") != "any_order":
        return None
    return part.put(part.value[::-1]) if len(part.value) > 1 else None


_AGAINST_EXPECTED: Final = "a metric against `expected`"
_FACTS: Final = "the check `contains`, or `claims`"


def _mutator(name: str, why: str, advice: str, change: Any, *, prose: bool = True) -> Mutator:
    """Build a mutator of an answer's text."""
    return Mutator(name, why, _of_text(change, prose=prose), advice)


_FIELDS: Final = "`fields` with a threshold, or `json_schema`"


def _fields(name: str, why: str, advice: str, change: Any) -> Mutator:
    """Build a mutator of the expected fields of a structured answer."""
    return Mutator(name, why, _of_fields(change), advice, gives_way=True)


def _ranked(name: str, why: str, advice: str, change: Any) -> Mutator:
    """Build a mutator of ranked results."""
    return Mutator(name, why, _of_ranking(change), advice, gives_way=True)


def _rewrite(name: str, why: str, change: Any) -> Mutator:
    """Build a mutator whose changed answer is as right as the recorded one, which shows checks that are too strict."""
    return Mutator(name, why, _of_text(change, prose=True), equivalent=True)


MUTATORS: Final[tuple[Mutator, ...]] = (
    # texts
    _mutator("other_answer", "it answers another question", _AGAINST_EXPECTED, _other_answer, prose=False),
    _mutator("question", "it repeats the question", _AGAINST_EXPECTED, _question, prose=False),
    _mutator("empty", "it says nothing", "the check `min_chars: 1`", lambda *_: "", prose=False),
    _mutator("refusal", "it refuses", "the check `not_refusal`", _refusal, prose=False),
    _mutator(
        "truncated",
        "it breaks off in the middle",
        "a threshold on recall, or `contains` of how answers end",
        _truncated,
        prose=False,
    ),
    _mutator("number", "a number is another one", "the check `number` or `contains`, or `claims`", _number),
    _mutator("date", "a month or a day of the week is another one", _FACTS, _date),
    _mutator("unit", "a unit is another one", _FACTS, _unit),
    _mutator("name", "a name is another one", _FACTS, _name),
    _mutator("sign", "a sign is the opposite", _FACTS, _sign),
    _mutator("direction", "more is less, or before is after", _FACTS, _direction),
    _mutator("negation", "it says the opposite", "`claims` or a judge; words alone hardly differ", _negation),
    _mutator(
        "facts_swapped",
        "two facts have changed places",
        "`claims` or a judge; words alone are the same",
        _swapped_facts,
    ),
    _mutator(
        "sentence_dropped", "what was asked for is left out", "a threshold on recall, or `contains`", _sentence_dropped
    ),
    _mutator(
        "unsupported",
        "it claims something about another question",
        "`claims` (faithfulness), or `max_words`",
        _unsupported,
    ),
    _mutator("citation", "a citation points to another passage", "`claims` (citation_support)", _citation),
    # structured answers
    Mutator("next_label", "the class is another one", _next_label, "`classification` with a threshold on each class"),
    Mutator(
        "majority_label", "a system that always says the most frequent class", _majority, "macro F1, or gates by class"
    ),
    _fields("field_missing", "a field is missing", _FIELDS, _field_missing),
    _fields("field_added", "a field was added that nobody asked for", _FIELDS, _field_added),
    _fields("field_type", "a field has a value of another type", _FIELDS, _field_type),
    _fields("field_value", "a field has another value", "`fields` with a threshold", _field_value),
    _fields(
        "list_reordered", "a list has another order, which the suite does not leave free", _FIELDS, _list_reordered
    ),
    _fields("list_doubled", "an element of a list is there twice", "`fields` with a threshold", _list_doubled),
    Mutator(
        "call_dropped", "a tool was not called", _of_calls(_call_dropped), "`tools` with a threshold on tool_recall"
    ),
    Mutator("call_doubled", "a tool was called twice", _of_calls(_call_doubled), "`tools` with order or limits"),
    Mutator(
        "call_reordered",
        "tools were called in another order",
        _of_calls(_calls_reordered),
        "`tools: {order: in_order}` and a gate on trajectory_match",
    ),
    Mutator("argument", "a tool was called with another argument", _of_calls(_argument), "`tools: {arguments: exact}`"),
    Mutator(
        "call_added",
        "a tool was called that nobody asked for",
        _of_calls(_call_added),
        "`tools: {forbidden: [...]}` or precision",
    ),
    _ranked(
        "ranking_reversed", "the best results are the last ones", "a metric of ranks, such as MRR or NDCG", _reversed
    ),
    _ranked(
        "relevant_last", "the first relevant result is the last one", "a metric of ranks, such as MRR or NDCG", _last
    ),
    _ranked("relevant_removed", "the first relevant result is missing", "recall, or a metric of ranks", _removed),
    Mutator("turn_dropped", "a turn of the conversation is missing", _turn_dropped, "an expectation for each turn"),
    Mutator("turn_doubled", "a turn of the conversation is there twice", _turn_doubled, "a gate on turns"),
    Mutator(
        "roles_swapped", "user and assistant have changed roles", _roles_swapped, "an expectation with `turn: each`"
    ),
    # rewrites, which must not make an answer wrong
    _rewrite("case", "capitals do not matter", _swapped_case),
    Mutator("white_space", "spaces do not matter", _of_text(_spaced), equivalent=True),
    _rewrite("full_width", "the width of digits and marks does not matter", _widened),
    _rewrite("punctuation", "a full stop does not matter", _punctuated),
    _rewrite("around", "a sentence around a short answer does not matter", _around),
    _rewrite("synonym", "the case expects this answer, too", _synonym),
    _rewrite("thousands", "separators of thousands do not matter", _separated),
    _rewrite("date_form", "the form of a date does not matter", _dated),
    Mutator("json_form", "order and layout of JSON do not matter", _reformatted, equivalent=True, gives_way=True),
    Mutator("key_order", "the order of keys does not matter", _keys_reordered, equivalent=True),
    Mutator("free_order", "the suite leaves the order of this list free", _lists_reordered, equivalent=True),
    Mutator("free_calls", "the suite leaves the order of calls free", _free_calls, equivalent=True),
)
