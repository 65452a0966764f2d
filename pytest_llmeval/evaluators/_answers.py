"""The content of an answer as text or JSON."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, NoReturn, Self

from msgspec import Struct

from pytest_llmeval.core import MISSING, Case, MediaForm, Opaque, Parts, listed, quotation

_LONGEST = 40
"""Characters of a text that a message quotes."""


_OPENING_FENCE = re.compile(r"```\w*+[^\S\n]*+\n")
_FENCE_MARK: Final = "```"
_TAG = re.compile(r"[<\[◁]/?(?:think|thinking|thoughts?|reasoning)[>\]▷]", re.IGNORECASE)


class AnswerValue(NamedTuple):
    """A JSON value of an answer or expectation.

    Attributes:
        value: Data; a type that JSON does not have is only described.
    """

    value: Any

    @property
    def text(self) -> str | None:
        """A scalar as text: a string unchanged, a number or boolean as its JSON text.

        ``None`` for null, a list, an object, a value that JSON cannot say, or one that was not given.
        """
        value = self.value
        if isinstance(value, str):
            return None if isinstance(value, Opaque) else value
        if isinstance(value, (bool, int, float)):
            return json.dumps(value)
        return None

    @property
    def kind(self) -> str:
        """The kind for messages: ``null``, ``a list``, ``number 3``, ``text 'abc...'``."""
        value = self.value
        match value:
            case None:
                description = "null"
            case Opaque():
                description = str(value)
            case str():
                description = f"text {quotation(value, _LONGEST)}"
            case bool():
                description = json.dumps(value)
            case int() | float():
                description = f"number {json.dumps(value)}"
            case list() | tuple():
                description = "a list"
            case dict():
                description = MediaForm(value).line if MediaForm.matches(value) else "an object"
            case _ if value is MISSING:
                description = "nothing"
            case _:
                description = f"a value of type {type(value).__name__}"
        return description


_FENCE = re.compile(
    r"```[ \t]*(?:\w+(?=[\s{\[]))?(.*?)(?:\n[ \t]*```|```[ \t]*(?=[\r\n]|\Z)|\Z)",
    re.DOTALL,
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[\[\]{}]', re.DOTALL)
_LAST_WORD = re.compile(r"[\w.+\\-]*\s*")


_CJK: Final = re.compile("[\u3400-\u9fff]")


class NoJsonError(ValueError):
    """An answer has no JSON that can be read."""


_TYPOGRAPHIC = str.maketrans("\u2019\u02bc\uff07", "'''")
_FINAL_MARKS = " .!。！．"


@cache
def _unanswerable(original: bool) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    """The values and phrases by which an answer abstains, and the phrases that only look like them."""
    from pytest_llmeval.data import Taxonomy

    data = Taxonomy("unanswerable").load()
    if original:
        return frozenset(data["values"]), tuple(data["original_phrases"]), ()
    phrases = [phrase for of_language in data["phrases"].values() for phrase in of_language]
    return frozenset(data["values"]), tuple(phrases), tuple(data["exceptions"])


class AnswerText(Struct, frozen=True):
    """The text of an answer, which may have thoughts, fences and JSON.

    Attributes:
        text: As the model wrote it.
    """

    text: str

    @property
    def has_cjk(self) -> bool:
        """Whether it has Chinese characters, which no spaces separate."""
        return _CJK.search(self.text) is not None

    @property
    def words(self) -> Sequence[str]:
        """The words, as the text metrics count them by default."""
        from pytest_llmeval.evaluators.measures._tokens import Tokenizer

        return Tokenizer.named("auto").f1(self.text)

    @property
    def sentences(self) -> list[str]:
        """The sentences as people read them; what has neither letter nor digit is none."""
        from pytest_llmeval.evaluators.measures._sentences import split_sentences

        return split_sentences(self.text)

    @property
    def cited(self) -> list[int]:
        """The numbers of the passages that it cites, each once, in order."""
        from pytest_llmeval.evaluators.measures._sentences import cited_by

        return cited_by(self.text)

    def is_unanswerable(self, *, original: bool = False) -> bool:
        """Whether it declares its question unanswerable; the rule is that of `pytest_llmeval.qa.is_unanswerable`.

        Args:
            original: Apply the rule of HiMGA's judge for LoCoMo to the letter.
        """
        text = self.text.strip().lower()
        values, phrases, exceptions = _unanswerable(original)
        if not original:
            text = text.translate(_TYPOGRAPHIC).rstrip(_FINAL_MARKS)
        for exception in exceptions:
            text = text.replace(exception, " ")
        return text in values or any(phrase in text for phrase in phrases)

    def spoken(self) -> tuple[str, str]:
        """The answer of a model's reply after its thoughts, and a fault if the reply ends inside them.

        >>> AnswerText("<think>Lyon? No.</think>Paris").spoken(), AnswerText("<think>Lyon?").spoken()[1]
        (('Paris', ''), 'the reply ends inside its thoughts: raise max_tokens')
        """
        if not _TAG.search(self.text):
            return self.text, ""
        from pytest_llmeval.data import ModelText, UnfinishedThoughtsError

        try:
            return ModelText(self.text).spoken(), ""
        except UnfinishedThoughtsError as error:
            return "", str(error)

    def json_or_text(self) -> Any:
        r"""The JSON data that the text is, also within a fence; the text itself if it is none.

        >>> AnswerText("```json\n[1, 2]\n```").json_or_text(), AnswerText("[1, 2").json_or_text()
        ([1, 2], '[1, 2')
        """
        bare = self.text.strip()
        opening = _OPENING_FENCE.match(bare)
        is_fenced = opening and bare.endswith(_FENCE_MARK)
        try:
            return json.loads(bare[opening.end() : -len(_FENCE_MARK)] if opening and is_fenced else self.text)
        except (ValueError, RecursionError):
            return self.text

    def read_json(self) -> Any:
        r"""The JSON value that the text is, or that prose has in one fenced block.

        Raises:
            NoJsonError: It is not JSON, is cut off, repeats a key, or has several fenced blocks of JSON.

        Example:
            >>> AnswerText('Here you are:\n```json\n{"total": 12}\n```').read_json()
            {'total': 12}
            >>> AnswerText('{"total": 1').read_json()  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            ...
            pytest_llmeval.evaluators._answers.NoJsonError: found truncated JSON ...
        """
        spoken, fault = self.spoken()
        if fault:
            raise NoJsonError(fault)
        whole = spoken.strip("\ufeff \t\r\n")
        fenced = [match.group(1).strip() for match in _FENCE.finditer(whole)]
        values, faults = [], []
        for candidate in [whole] if not fenced or whole[:1] in ("{", "[") else fenced:
            try:
                values.append(_parse_strictly(candidate))
            except NoJsonError as error:
                faults.append(error)
        if len(values) == 1:
            return values[0]
        raise NoJsonError(f"found {len(values)} fenced blocks of JSON, expected one") if values else faults[-1]


def _parse_strictly(text: str) -> Any:
    """The JSON of an answer, read strictly: repeated keys and non-finite numbers are faults."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        if _is_truncated(text, error):
            end = text[-20:]
            raise NoJsonError(f"found truncated JSON (the text ends with {end!r}), expected all of it") from None
        where = f"line {error.lineno}, column {error.colno}"
        raise NoJsonError(f"found {AnswerValue(text).kind}, expected JSON ({error.msg} at {where})") from None
    except RecursionError:
        raise NoJsonError("found JSON that is nested too deeply, expected less") from None
    except NoJsonError:
        raise
    except ValueError as error:
        raise NoJsonError(f"found JSON with a number that cannot be read ({error})") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object of an answer; a repeated key is a fault."""
    data = dict(pairs)
    if len(data) != len(pairs):
        from pytest_llmeval.data import repeated_key

        twice = quotation(repeated_key(pairs), _LONGEST)
        raise NoJsonError(f"found the key {twice} twice in one object, expected it once")
    return data


def _constant(name: str) -> NoReturn:
    """Refuse ``NaN`` and ``Infinity`` in the JSON of an answer."""
    raise NoJsonError(f"found {name}, expected a finite number or null")


def _is_truncated(text: str, error: json.JSONDecodeError) -> bool:
    """Whether an answer is the beginning of JSON that ends before its last bracket or quote."""
    if text[:1] not in ("{", "["):
        return False
    depth = 0
    for match in _STRING.finditer(text):
        mark = match.group()
        if mark[0] == '"' and not match.group(1):
            return error.pos >= match.start()
        depth += (mark in "[{") - (mark in "]}")
    return depth > 0 and _LAST_WORD.fullmatch(text, error.pos) is not None


_MOST = 10


class References(Struct, frozen=True):
    """The acceptable answers that a case's ground truth names.

    Attributes:
        texts: They; none where the ground truth is absent or of the wrong form.
        fault: Why it is of the wrong form; empty if it is not.
    """

    texts: Sequence[str]
    fault: str = ""

    @classmethod
    def read(cls, value: Any) -> Self:
        """The references in a scalar (one), a list of scalars (several), or null (none).

        >>> References.read("Paris").texts, References.read(["Paris", None]).fault
        (['Paris'], 'found null in the list, expected text or a list of texts')
        """
        if value is None:
            return cls([])
        many = list(value) if isinstance(value, (list, tuple)) else [value]
        texts = [text for reference in many if (text := AnswerValue(reference).text) is not None]
        if len(texts) == len(many):
            return cls(texts)
        description = AnswerValue(value).kind
        if isinstance(value, (list, tuple)):
            others = map(AnswerValue, value)
            description = next(other.kind for other in others if other.text is None) + " in the list"
        return cls([], f"found {description}, expected text or a list of texts")

    @classmethod
    def of_case(cls, case: Case) -> Self:
        """The texts that a case accepts as its answer."""
        expected = case.expected
        if isinstance(expected, Mapping):
            expected = Parts.expectation("answer", case.part_paths.answer, expected)
        return cls.read(expected)

    def word_lines(self, prediction: str, split: Callable[[str], Sequence[str]] | None = None) -> list[str]:
        """The lines on words that an answer lacks or adds, against the reference that shares most with it.

        Args:
            prediction: The answer; nothing is said where it is one of the references.
            split: Returns the words of a text; default: those of `AnswerText`.

        >>> References(["Paris", "It is Paris"]).word_lines("It is Lyon", str.split)
        ['missing words: Paris', 'extra words: Lyon']
        """
        if not self.texts or prediction.strip() in map(str.strip, self.texts):
            return []
        if not prediction.strip():
            return ["the answer is empty"]
        answered, expected, *others = (
            Counter(AnswerText(text).words if split is None else split(text)) for text in (prediction, *self.texts)
        )
        if others:
            expected = max((expected, *others), key=lambda words: _likeness(words, answered))
        lines = [
            f"{name} words: {listed(words, _MOST)}"
            for name, words in (("missing", _surplus(expected, answered)), ("extra", _surplus(answered, expected)))
            if words
        ]
        return lines or ["the same words, in another order, case or punctuation"]


def _surplus(words: "Counter[str]", other: "Counter[str]") -> list[str]:
    """The words that an answer or a reference has more often than the other, as often as that."""
    return [word for word, times in words.items() for _ in range(times - other.get(word, 0))]


def _likeness(left: "Counter[str]", right: "Counter[str]") -> float:
    """The share of common words of an answer and a reference: twice the common ones over all."""
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 0.0
