"""Replies of judges as text and as probabilities of tokens, and the verdicts that they are."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from pytest_llmeval.core import JudgeError, quotation
from pytest_llmeval.data import JsonText, ModelText, UnfinishedThoughtsError
from pytest_llmeval.judges._protocol import JudgeReply, Mode, Stopped, Verdict, within

_MARK = re.compile(r'\\[\\"]|["{}\[\]]')
_BEYOND_TEXTS = re.compile(r"[\\}\[\]]")
_BLOCK: Final = 1 << 16
"""Characters whose marks are in memory at once: a mark takes as much as 100 characters."""
_FENCE = re.compile(r"```(?:json)?$", re.IGNORECASE)
_FENCE_LENGTH: Final = len("```json")
_LONGEST: Final = 200
_QUOTED: Final = 60
_LONGEST_KEY: Final = 40
_BRACE = re.compile("[{}]")
_DECIMAL = re.compile(r"\s*[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\s*")
_TAKES_BACK = re.compile(
    r"(?i)\b(?:actually|correction|instead|no(?=[,.:;!])|rather|second thoughts?|sorry|wait)\b|不对|更正|其实|等等"
    r"|(?<!\d)\d++\s*+(?:[./%]|of|out of)\s*+\d++"
)
"""What a sentence behind a verdict may say to take it back."""


NUMBERS: Final = r"[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf(?:inity)?)|nan|null|true|false"
"""Pattern of the values that are no words of a user."""

_TRUTH: Final = {"true": 1, "false": 0}


def plain(text: str) -> str:
    """Return a judge's text as valid UTF-8: half of a surrogate pair becomes a replacement character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _score_statement(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the score in a reply's JSON object, which the judge's prose must not contradict."""
    return {"score": data["score"]} if "score" in data else {}


class ReplyObject(dict[str, Any]):
    """A JSON object in a judge's reply."""

    @classmethod
    def closing(
        cls,
        reply: str,
        verdict: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _score_statement,
        says: re.Pattern[str] | None = None,
    ) -> "ReplyObject":
        """Return the JSON object that ends a judge's reply.

        Thoughts and prose before it and a Markdown fence around it are allowed. Text after it is not, since that might
        take the verdict back, unless it stands on the lines below a fence and does not look like that. NaN and
        infinities are read, as models write them, and raw line breaks in texts; a key that is there twice is not.

        Args:
            reply: The text.
            verdict: What of the object the prose must not contradict: an object that it quotes may be the answer's.
            says: Finds a ``name`` and its ``value`` in the prose, see `verdict_pattern`; default: scores and defects.

        Raises:
            JudgeError: No such object ends the reply, or what stands before it is unclosed or says something else.
        """
        says = says or _SAYS
        text, was_fenced, after = _without_closing_fence(
            _drop_thoughts(reply, lambda text: ModelText(text).begins_with_data() or says.match(text))
        )
        if not text.endswith("}"):
            ending = "text after a JSON object" if "{" in text and "}" in text else "no JSON object"
            raise JudgeError.unreadable(reply, f"found {ending}, expected the reply to end with a JSON object")
        start, depth = _start(text)
        before = text[: max(start, 0)].rstrip()
        if start < 0 or _goes_on(before):
            raise JudgeError.unreadable(reply, "found an unmatched closing bracket, expected a complete JSON object")
        if was_fenced and not _FENCE.search(before[-_FENCE_LENGTH:]):
            raise JudgeError.unreadable(
                reply, "found a closing fence without an opening one before the JSON object, expected both"
            )
        closing = text[start:] if depth <= JsonText.MAX_DEPTH else _shallow(text[start:])
        try:
            data: dict[str, Any] = JsonText(closing).load(strict=False)
        except ValueError as error:
            raise JudgeError.unreadable(reply, f"found an invalid JSON object ({error}), expected valid JSON") from None
        _check_prose(reply, before, text[start:], verdict(data), says)
        if doubt := _TAKES_BACK.search(after) or says.search(after):
            both = f"{quotation(text[start:], _QUOTED)} and then {quotation(doubt.group(), _QUOTED)}"
            raise JudgeError.unreadable(reply, f"found {both}, expected nothing that may take a verdict back")
        return cls(data)

    @classmethod
    def closing_list(cls, reply: str, key: str, truth: str | None = None) -> list[Any]:
        """Return the list in the JSON object that ends a judge's reply.

        Args:
            reply: The text.
            key: Of the list.
            truth: The key of the objects in it that says whether something is so. Where all of them say the same, prose
                that says the opposite contradicts them.

        Raises:
            JudgeError: There is none, or another one next to or before it.
        """

        def agreement(data: Mapping[str, Any]) -> Mapping[str, Any]:
            items = data.get(key)
            values = [item.get(truth) for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
            agreed = {str(truth): values[0]} if values and values.count(values[0]) == len(values) else {}
            return {key: None, **agreed}

        other = cls.verdict_pattern("|".join(filter(None, (key, truth))), r"\[|(?:true|false)(?![a-z0-9_])")
        data = cls.closing(reply, agreement, other)
        beside = [name for name, value in data.items() if name != key and isinstance(value, list | dict)]
        if beside:
            raise JudgeError.unreadable(
                reply, f"found {quotation(beside[0], _LONGEST_KEY)} beside {key!r}, expected one list"
            )
        entries = data.get(key)
        if not isinstance(entries, list):
            raise JudgeError.wrong_value(reply, data, key, "a list")
        return entries

    def text(self, name: str) -> str:
        """The text under a name; empty without one."""
        text = self.get(name)
        return plain(text.strip()) if isinstance(text, str) else ""

    def texts(self, name: str) -> list[str] | None:
        """The list of texts under a name; ``None`` if it is no such list, or one of them is blank."""
        texts = self.get(name)
        if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
            return None
        return [plain(text.strip()) for text in texts]

    def number(self, name: str) -> float | None:
        """The number under a name, also as text; ``None`` for anything else."""
        value: Any = self.get(name)
        if not (type(value) in (int, float) or (isinstance(value, str) and _DECIMAL.fullmatch(value))):
            return None
        try:
            return float(value)
        except OverflowError:
            return math.inf

    @staticmethod
    def schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON Schema of an object with these properties and no others."""
        # Providers that enforce a schema want every property required and no others.
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    @staticmethod
    def verdict_pattern(names: str, values: str, before: str = "") -> re.Pattern[str]:
        """The pattern of prose around an object that gives a verdict, such as ``Score = 1`` and ``最终score：1分``.

        Args:
            names: Pattern of the ``name``.
            values: Pattern of the ``value``.
            before: Pattern of what may precede the name.
        """
        quotes = r"[\\\"'`*]{0,4}"
        # Chinese puts no space around words, so only Latin letters and digits make a name part of another word.
        return re.compile(
            rf"(?i)(?<![a-z0-9_]){before}(?P<name>{names}){quotes}\s{{0,9}}[:=：]\s{{0,9}}{quotes}(?P<value>{values})"
        )


_SAYS = ReplyObject.verdict_pattern("score|fabrication|[a-z]+_(?:errors|citation)", NUMBERS, "(?:has_)?")


def _drop_thoughts(reply: str, concludes: Callable[[str], object]) -> str:
    """Return a judge's reply without the thoughts of a reasoning model."""
    try:
        return ModelText(reply).spoken(concludes)
    except UnfinishedThoughtsError as error:
        raise JudgeError.unreadable(reply, str(error)) from None


def _shallow(text: str) -> str:
    """Return a reply's JSON object with null for deeply nested values, which no field of a verdict has."""
    pieces: list[str] = []
    begin = depth = 0
    in_string = False
    for mark in _MARK.finditer(text):
        character = mark.group()
        if character == '"':
            in_string = not in_string
        elif not in_string and character in "{[":
            depth += 1
            if depth == JsonText.MAX_DEPTH + 1:
                pieces += text[begin : mark.start()], "null"
        elif not in_string and character in "}]":
            if depth == JsonText.MAX_DEPTH + 1:
                begin = mark.end()
            depth -= 1
    return "".join(pieces) + text[begin:]


def _check_prose(reply: str, before: str, closing: str, verdict: Mapping[str, Any], says: re.Pattern[str]) -> None:
    """Refuse a reply whose prose contradicts its JSON object, or has an unclosed brace before it."""
    unclosed = _find_unclosed_brace(before)
    if unclosed >= 0:
        both = f"{quotation(before[unclosed:], _QUOTED)} unclosed before {quotation(closing, _QUOTED)}"
        raise JudgeError.unreadable(reply, f"found {both}, expected one complete JSON object")
    for claim in says.finditer(before):
        name, value = claim["name"].lower(), claim["value"].lower()
        if name in verdict and not _is_same(value, verdict[name]):
            both = f"{quotation(claim.group(), _QUOTED)} and {quotation(closing, _QUOTED)}"
            raise JudgeError.unreadable(reply, f"found two contradicting verdicts, {both}, expected one")


def _find_unclosed_brace(text: str) -> int:
    """The position of the first unclosed brace in the prose of a judge's reply, -1 if there is none."""
    first, depth = -1, 0
    for mark in _BRACE.finditer(text):
        if mark.group() == "{":
            first, depth = mark.start() if depth == 0 else first, depth + 1
        elif depth:
            depth -= 1
    return first if depth else -1


def _is_same(word: str, value: Any) -> bool:
    """Whether a word in the prose of a judge's reply agrees with a value of its JSON object."""
    if isinstance(value, str) and word == value.lower():
        return True
    try:
        return float(_TRUTH.get(word, word)) == float(value)
    except (OverflowError, TypeError, ValueError):
        return False


def _without_closing_fence(text: str) -> tuple[str, bool, str]:
    """Return a judge's reply up to its closing Markdown fence, whether it has one, and the lines behind it."""
    body, fence, after = text.rpartition("```")
    is_closing = fence and (not after or (after.lstrip(" \t").startswith("\n") and not _BRACE.search(after)))
    if not is_closing or not (body := body.rstrip()).endswith("}"):
        return text, False, ""
    return body, True, after


def _start(text: str) -> tuple[int, int]:
    """The start of the JSON value that ends a judge's reply (-1 if there is none), and its depth of nesting.

    Read from the end, valid JSON has one reading only, and each character is looked at once: trying every opening
    bracket from the front would take time that grows with the square of a hostile reply's length.
    """
    last = text.rfind("{")
    if last >= 0 and not _BEYOND_TEXTS.search(text, last, len(text) - 1) and text.count('"', last) % 2 == 0:
        return last, 1  # flat, as most are: there are only quotes between its brackets
    depth = deepest = 0
    in_string = False
    for position, mark in _marks_from_the_end(text):
        if mark == '"':
            in_string = not in_string
        elif not in_string:
            depth += 1 if mark in "}]" else -1
            deepest = max(deepest, depth)
            if depth == 0:
                return position, deepest
    return -1, deepest


def _marks_from_the_end(text: str) -> Iterator[tuple[int, str]]:
    """Yield brackets and quotation marks in the JSON of a judge's reply with their positions, last first."""
    end = len(text)
    while end > 0:
        begin = max(end - _BLOCK, 0)
        while begin > 0 and text[begin - 1] == "\\":  # which would read what follows it in another way
            begin -= 1
        marks = ((match.start(), match.group()) for match in _MARK.finditer(text, begin, end))
        yield from reversed([(position, mark) for position, mark in marks if len(mark) == 1])
        end = begin


def _goes_on(before: str) -> bool:
    """Whether the JSON object that ends a reply is a member of a bigger one, which must then be broken."""
    return before.endswith(("[", "{")) or (before.endswith(":") and before[:-1].rstrip().endswith('"'))


FLAGS: Final = (
    "logical_errors",
    "fabrication",
    "wrong_citation",
    "factual_errors",
    "knowledge_errors",
    "reasoning_errors",
)
"""The defects that an explanation can have."""

UNNAMED_DEFECTS: Final = "unnamed_defects"
"""The detail of a verdict that lists the defects of which it says nothing."""


@dataclass(frozen=True)
class DefectDetails:
    """The defects of an explanation, as the details of a verdict have them.

    Attributes:
        details: Flag to whether the explanation has that defect, and the flags that the reply does not name.
    """

    FLAGS: ClassVar = FLAGS
    KEYS: ClassVar = frozenset((*FLAGS, UNNAMED_DEFECTS))
    """The names of the details."""

    details: Mapping[str, Any]

    @property
    def defects(self) -> list[str]:
        """The defects that the explanation has."""
        return [flag for flag in FLAGS if self.details.get(flag)]

    @property
    def unnamed(self) -> Sequence[str]:
        """The defects of which the reply says nothing."""
        return self.details.get(UNNAMED_DEFECTS, ())  # type: ignore[no-any-return]


_HIGHEST_GRADE: Final = 100.0
_NOISE: Final = 1e-6
_EITHER: Final = "yes|no|是|否"
_MEANING: Final = {"yes": 1.0, "no": 0.0, "是": 1.0, "否": 0.0} | dict.fromkeys(("不", "不是", "不对"), 0.0)
_STOPS: Final = ".,:;!，。：；！"
_WORD = re.compile(rf"(?P<marks>[*`]*)(?P<word>{_EITHER})\b[{_STOPS}]?(?P=marks)[\s{_STOPS}\-\u2013\u2014]*")
_WORD_ALONE = re.compile(rf"^[^\w\n]*(?P<word>{_EITHER})[^\w\n]*$", re.MULTILINE)
_QUOTED_WORD = re.compile(
    rf"(?P<quote>[\"'\u201c\u2018「『])(?P<word>{_EITHER})[{_STOPS}]?"
    rf"(?:(?P=quote)|[\u201d\u2019」』])[{_STOPS}]?[ \t]*(?:\n+|$)"
)
_LED_WORD = re.compile(
    r"[*`]*+(?:(?:(?:so|thus|hence|therefore|overall),?\s+)?(?:the|my)\s+)?(?:final\s+)?(?:answer|verdict)[*`]*+"
    r"(?:\s+is|\s*:)[*`]*+:?+\s*+[*`]*+(?P<word>yes|no)[*`]*+(?:\s*[.,;:!\u2013\u2014\n][.,;:!\u2013\u2014*`\s]*|$)"
)
_FENCED_WORD = re.compile(rf"(?is)\A```\w*+[^\S\n]*+\n\s*+((?:{_EITHER})[{_STOPS}]?)\s*\n```(?:\Z|[ \t]*\n(.*))")
_ANY_WORD = re.compile(rf"\b(?P<word>{_EITHER})\b")
_CLAUSE: Final = "actually|he|i|it|she|that|the|they|this|wait|we"
_BARE_WORD = re.compile(
    rf"(?<![^\W_])(?P<word>yes|是|否|不|不是|不对|no(?=\W*(?:$|[^\w\s])|\s*\n|\s+(?:{_CLAUSE})\b))(?![^\W_])"
)
"""A verdict within a sentence: not the ``no`` of "no doubt", which has a noun behind it."""
_QUOTATION = re.compile(
    rf'"[^"\n]*"|“[^”\n]*+(?P<english>”?)|「[^」\n]*+(?P<single>」?)|『[^』\n]*+(?P<double>』?)'
    rf"|['‘](?:{_EITHER})[{_STOPS}]?['’]"
)
"""A quotation; a group is empty if a line does not close what it opens."""


SCORE_SCHEMA: Final = ReplyObject.schema(reasoning={"type": "string"}, score={"type": "number"})
"""JSON Schema of what `read_score` reads."""

EXPLANATION_SCHEMA: Final = ReplyObject.schema(
    reasoning={"type": "string"}, **{flag: {"type": "boolean"} for flag in FLAGS}, score={"type": "number"}
)
"""JSON Schema of what `read_explanation` reads."""


_NO_VERDICT: Final[Mapping[Stopped, str]] = {
    "refusal": "found a refusal, expected a verdict",
    "length": "found a truncated reply, expected a complete one: raise max_tokens",
    "tool": "the judge called a tool and wrote no text: set structured: off, or raise max_tokens",
    "thoughts": "the judge wrote thoughts (reasoning_content) and no text: raise max_tokens, or turn its thinking off",
}


def read_reply(mode: Mode, reply: JudgeReply) -> Verdict:
    """Read a judge's reply to a question of a mode.

    Raises:
        JudgeError: It refused, was cut off, consists of thoughts or the call of a tool, or gave no verdict.
    """
    if fault := _NO_VERDICT.get(reply.stopped):
        raise JudgeError.unreadable(reply.text, fault)
    return mode.read_text(reply.text)


def read_score(reply: str) -> Verdict:
    """Read a judge's JSON object with a ``score`` from 0 to 1, which is a number or text that is one.

    Raises:
        JudgeError: No JSON object ends the reply, or it has no such score.
    """
    data = ReplyObject.closing(reply)
    return Verdict(_score_within(data, reply, 0.0, 1.0), data.text("reasoning"))


def read_yes_no(reply: str) -> Verdict:
    """Read a judge's reply that begins with yes or 是 (1), no or 否 (0), in any case, plain, bold or as code.

    It may also begin as ``The answer is yes.`` or ``Verdict: no``, or with a line that is one of the words in quotation
    marks; then the other word must not occur at all. The thoughts of a reasoning model are ignored.

    Raises:
        JudgeError: It begins with anything else, or says the opposite, too. A word in quotation marks does not, nor
            does a ``no`` that belongs to another word, as in "no doubt".
    """
    text = _FENCED_WORD.sub(r"\1\n\2", _drop_thoughts(reply, _first_word))
    word = _first_word(text)
    if word is None:
        raise JudgeError.unreadable(reply, "the verdict is missing: a reply begins with the word yes or no")
    # The answer of which a sentence such as "The answer is yes" speaks may be the right one: no other may follow.
    further = _further_words(text.lower()) if word.re is _WORD else _ANY_WORD.finditer(text.lower())
    for other in further:
        if _MEANING[other["word"]] != _MEANING[word["word"]]:
            both = f"{quotation(word.group().strip(), _QUOTED)} and {quotation(other.group().strip(), _QUOTED)}"
            raise JudgeError.unreadable(reply, f"found two contradicting verdicts, {both}, expected one")
    if text[word.end("word") :].lstrip("*`").startswith(("?", "？")):
        raise JudgeError.unreadable(
            reply, f"found the question {quotation(text[: word.end() + 1], _QUOTED)}, expected yes or no"
        )
    return Verdict(_MEANING[word["word"]], plain(text[word.end() :]))


def _first_word(text: str) -> re.Match[str] | None:
    """Return the yes or no that begins a judge's reply, if any."""
    text = text.lower()
    return _WORD.match(text) or _LED_WORD.match(text) or _QUOTED_WORD.match(text)


def _without_quotation(match: re.Match[str]) -> str:
    """Return the replacement of a quotation in a judge's reply, where yes and no are not its verdict."""
    if "" not in match.groups():
        return " ... "
    unclosed = match.group()  # and no other of its kind is closed behind it
    return _QUOTATION.sub(_without_quotation, unclosed.replace(unclosed[0], " "))


def _further_words(text: str) -> Iterator[re.Match[str]]:
    """Yield further yes or no in a judge's reply: alone on a line, behind thoughts, or outside of quotations."""
    yield from _WORD_ALONE.finditer(text.partition("\n")[2])
    yield from _BARE_WORD.finditer(_QUOTATION.sub(_without_quotation, text))
    for part in ModelText(text).behind_thoughts():
        if word := _WORD.match(part.lstrip()):
            yield word


def read_explanation(reply: str) -> Verdict:
    """Read a judge's JSON object with a ``score`` from 0 to 100 and true or false for each of `FLAGS`.

    A flag may also be called ``has_FLAG``. One that the reply does not name is false, and
    ``details["unnamed_defects"]`` lists it: whether the explanation has that defect is not known.

    Returns:
        A verdict whose details have the flags.

    Raises:
        JudgeError: No JSON object ends the reply, it has no such score, or a flag is neither true nor false.
    """
    data = ReplyObject.closing(reply, lambda data: {**_score_statement(data), **_flags_of_reply(data)})
    if isinstance(data.get("score"), str):
        raise JudgeError.wrong_value(reply, data, "score", "a number")
    score = _score_within(data, reply, 0.0, _HIGHEST_GRADE)
    flags = _flags_of_reply(data)
    for flag, value in flags.items():
        if not isinstance(value, bool):
            name = flag if flag in data else f"has_{flag}"
            raise JudgeError.wrong_value(reply, data, name, "true or false")
    unnamed = [flag for flag in FLAGS if flag not in data and f"has_{flag}" not in data]
    more: dict[str, Any] = {UNNAMED_DEFECTS: unnamed} if unnamed else {}
    return Verdict(score, data.text("reasoning"), {**flags, **more})


def _flags_of_reply(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defects of an explanation in a judge's JSON object; those that it does not name are false."""
    return {flag: data.get(flag, data.get(f"has_{flag}", False)) for flag in FLAGS}


def _score_within(data: ReplyObject, reply: str, low: float, high: float) -> float:
    """Return the score of a judge's reply, which has to lie in a range: another scale is not understood."""
    score = data.number("score")
    known = None if score is None else within(score, low, high)
    if known is None:
        expected = f"a number from {low:g} to {high:g}"
        raise JudgeError.wrong_value(reply, data, "score", expected)
    return known


_LEVEL = re.compile(r"[^\w.+-]*([0-9])[^\w.]*")


class TokenChoice(NamedTuple):
    """A token of a judge's reply, with the alternatives that the model considered.

    Attributes:
        text: The token.
        alternatives: Tokens that could stand in its place, itself among them, to the logarithms of their probabilities.
    """

    text: str
    alternatives: Mapping[str, float]


def score_probabilities(tokens: Sequence[TokenChoice], field: str) -> dict[str, float] | None:
    """Return the probabilities of the digits that could be the value of a field in a judge's reply.

    Args:
        tokens: Of a reply that ends in a JSON object.
        field: Of that object. Its last occurrence counts: quotation marks inside of texts are escaped.

    Returns:
        Digit to probability; ``None`` where the value is no digit of a token of its own.
    """
    text = "".join(token.text for token in tokens)
    names = list(re.finditer(rf'(?<!\\)"{re.escape(field)}"\s*:\s*(?=[0-9](?![0-9.eE]))', text))
    if not names:
        return None
    place = names[-1].end()
    for token in tokens:
        if place < len(token.text):
            break
        place -= len(token.text)
    shares: dict[str, float] = {}
    for written, logarithm in token.alternatives.items():
        level = _LEVEL.fullmatch(written)
        if level is not None and logarithm <= 0:
            shares[level[1]] = shares.get(level[1], 0.0) + math.exp(logarithm)
    return shares if _LEVEL.fullmatch(token.text) else None
