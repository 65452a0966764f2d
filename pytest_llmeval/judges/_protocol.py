"""The protocol of judges: questions, requests, replies and verdicts, without I/O."""

import json
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from pytest_llmeval.core import AnyError, JudgeError, excerpt
from pytest_llmeval.judges._spec import Price

Stopped: TypeAlias = Literal["stop", "length", "refusal", "tool", "thoughts"]

Role: TypeAlias = Literal["system", "user", "assistant"]

ROUNDING = 1e-9
_NOISE: Final = 1e-6
_DIGITS: Final = 9
_REPLY, _PROBABILITIES = "reply", "probabilities"
_SAME_SCORE = 0.1
"""Graded twice, the same answer may well get scores that differ by a tenth of the scale."""


class ShownMedium(Struct, frozen=True):
    """An image, sound, video or document in a message to a judge.

    Attributes:
        form: Its JSON form.
        label: What it is; empty where the text says that.
    """

    form: Mapping[str, Any]
    label: str = ""


class Message(Struct, frozen=True):
    """One message of a conversation with a judge's model.

    Attributes:
        role: Who speaks.
        content: What is said.
        shared: How many characters of the content, from its first, other calls begin with as well.
        media: What follows the text.
    """

    ROLES: ClassVar[tuple[str, ...]] = get_args(Role)

    role: Role
    content: str
    shared: int = 0
    media: tuple[ShownMedium, ...] = ()

    @classmethod
    def numbered(cls, role: Role, text: str, forms: Sequence[Mapping[str, Any]]) -> "Message":
        """A message whose text names its media by their numbers, as ``[1: image/png]``.

        Args:
            role: Who speaks.
            text: With `medium_number` in place of each medium.
            forms: The JSON forms of the media, in order.
        """
        labels = [cls.medium_number(number, form) for number, form in enumerate(forms, 1)]
        if [text] == labels:  # nothing but one medium
            return cls(role, "", media=(ShownMedium(forms[0]),))
        return cls(role, text, media=tuple(map(ShownMedium, forms, labels)))

    @staticmethod
    def medium_number(number: int, form: Mapping[str, Any]) -> str:
        """The text in place of a medium, which counts from 1."""
        return f"[{number}: {form['media']}]"


_BYTES_PER_TOKEN = 3


def sent_tokens(messages: Iterable[Message], model: str = "") -> int:
    """An estimate of the tokens of messages to a judge, rather too high than too low.

    Args:
        messages: What is sent; media for which there is no rule are not counted, see `uncounted_media`.
        model: ``PROVIDER:NAME``, by whose rule images are counted; default: that of OpenAI.
    """
    listed = list(messages)
    read = sum(len(message.content.encode(errors="replace")) for message in listed) // _BYTES_PER_TOKEN
    forms = [medium.form for message in listed for medium in message.media if "width" in medium.form]
    image_tokens = _of_anthropic if "anthropic" in model.split(":")[:2] else _of_openai
    return read + sum(image_tokens(form["width"], form["height"]) for form in forms)


def uncounted_media(forms: Iterable[Mapping[str, Any]]) -> int:
    """The number of media in judge messages without a token estimate: no published rule, or unknown size.

    These are sounds, videos, documents, and images at addresses.
    """
    return sum("width" not in form for form in forms)


_SQUARE, _SHORT_SIDE, _TILE, _TOKENS_OF_IMAGE, _TOKENS_OF_TILE = 2048, 768, 512, 85, 170
"""https://platform.openai.com/docs/guides/images-vision#calculating-costs"""

_LONG_SIDE, _PIXELS_OF_TOKEN = 1568, 750
"""https://docs.anthropic.com/en/docs/build-with-claude/vision#calculate-image-costs"""


def _of_openai(width: int, height: int) -> int:
    """The estimated tokens of an image for OpenAI, which scales it down and cuts it into tiles."""
    scale = min(1.0, _SQUARE / max(width, height, 1))
    scale *= min(1.0, _SHORT_SIDE / (max(min(width, height), 1) * scale))
    tiles = math.ceil(width * scale / _TILE) * math.ceil(height * scale / _TILE)
    return _TOKENS_OF_IMAGE + _TOKENS_OF_TILE * tiles


def _of_anthropic(width: int, height: int) -> int:
    """The estimated tokens of an image for Anthropic, which scales it down and counts its pixels."""
    scale = min(1.0, _LONG_SIDE / max(width, height, 1))
    return math.ceil(width * scale * height * scale / _PIXELS_OF_TOKEN)


DATA_OPEN: Final = "<data>"
DATA_CLOSE: Final = "</data>"


class JudgeRequest(Struct, frozen=True):
    """One call of a judge's model, for any provider.

    Attributes:
        messages: In order.
        model: The model's name, without its provider.
        parameters: What the user set, such as ``temperature`` or ``max_tokens``; nothing else is sent.
        reply_schema: JSON Schema of the reply, for providers that can enforce one; ``None`` for plain text.
        expected_of: The field of the reply for whose value the probabilities of tokens are wanted; ``None`` for none.
    """

    messages: tuple[Message, ...]
    model: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reply_schema: Mapping[str, Any] | None = None
    expected_of: str | None = None

    def __str__(self) -> str:
        return "\n\n".join(message.content for message in self.messages)

    def data(self) -> Any:
        """The texts that the question is about: the JSON object in the last message."""
        return json.loads(self.messages[-1].content.removeprefix(DATA_OPEN).removesuffix(DATA_CLOSE))


class Usage(Struct, frozen=True):
    """The tokens of one judge call; ``None`` if the provider does not report them."""

    input_tokens: int | None = None
    output_tokens: int | None = None

    def cost_usd(self, price: Price | None) -> float | None:
        """The cost of the tokens in USD; ``None`` if the price or a number of tokens is unknown."""
        if price is None or self.input_tokens is None or self.output_tokens is None:
            return None
        return price.of_tokens(self.input_tokens, self.output_tokens)


class JudgeReply(Struct, frozen=True):
    """The reply of a judge's model to one request.

    Attributes:
        text: The answer.
        usage: Tokens, summed over the attempts that the provider charged for.
        stopped: ``stop`` for a complete answer, ``length`` for one cut off, ``refusal`` for one that was refused or
            filtered. With ``tool`` and ``thoughts``, the text is the call of a tool or what the model thought.
        probabilities: Of the digits that could be the value of `JudgeRequest.expected_of`, such as ``{"4": 0.7}``;
            ``None`` where the provider gives none.
    """

    text: str
    usage: Usage = Usage()
    stopped: Stopped = "stop"
    probabilities: Mapping[str, float] | None = None


def enveloped(request: JudgeRequest, reply: JudgeReply) -> JudgeReply:
    """A judge's reply whose text also holds its probabilities where the request asks for them.

    So all that stores replies stores what the score was computed of. The model's own text is a text in it, so it cannot
    claim probabilities.
    """
    if request.expected_of is None:
        return reply
    probabilities = reply.probabilities or {}
    rounded = {level: round(probabilities[level], _DIGITS) for level in sorted(probabilities)}
    return replace(reply, text=json.dumps({_REPLY: reply.text, _PROBABILITIES: rounded}, ensure_ascii=False))


class UnaskedError(JudgeError):
    """A judge verdict that this run does not ask for, so that metrics that need it are undefined.

    Attributes:
        is_pending: Whether the question is deferred to a provider's batch interface, and its reply has not come.
    """

    def __init__(self, message: str, *, is_pending: bool = False) -> None:
        self.is_pending = is_pending
        super().__init__(message)

    @classmethod
    def off(cls) -> "UnaskedError":
        """The error of a run for which judges are switched off."""
        return cls("judges are off (--llmeval-judge=off)")

    @classmethod
    def pending(cls) -> "UnaskedError":
        """The error of a deferred question whose reply has not come."""
        return cls("the verdict is pending", is_pending=True)


class JudgeClient(Protocol):
    """A user's judge object that completes a `JudgeRequest`, at once or awaited."""

    def complete(self, request: JudgeRequest) -> JudgeReply | str | Awaitable[JudgeReply | str]:
        """The model's reply to a judge request.

        Raises:
            JudgeError: There is none; retries are the client's business.
        """


class ChatClient(Protocol):
    """A user's judge object that answers a list of chat messages, at once or awaited."""

    def chat(self, messages: list[dict[str, str]]) -> Any:
        """The model's reply to ``{"role": ..., "content": ...}`` messages."""


def within(value: float, low: float, high: float) -> float | None:
    """Return a judge's score in a range; one beyond it by a rounding error becomes the end, others ``None``."""
    noise = _NOISE * (high - low)
    return float(min(high, max(low, value))) if low - noise <= value <= high + noise else None


class Verdict(Struct, frozen=True):
    """A judge's reply that could be read, as a score with reasons.

    Attributes:
        score: On the scale of the mode.
        reasoning: The judge's reasons, empty where it gives none.
        details: Further findings, such as flags; JSON data.
    """

    score: float
    reasoning: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


class Listing(Struct, frozen=True):
    """The decision of a panel of judges about numbered things, such as claims, which each verdict grades one by one.

    Attributes:
        grades: Returns the grades of a verdict, from 0 to 1, in the order of the things.
        join: Returns the verdict with decided grades, from the verdicts of the jurors.
    """

    grades: Callable[[Verdict], Sequence[float]]
    join: Callable[[Sequence[Verdict], Sequence[float]], Verdict]


class Mode(Struct, frozen=True):
    """A judge mode: its instructions, the texts that it is shown, its scale and the reading of its replies.

    Attributes:
        name: Such as ``continuous``.
        version: Changes whenever the instructions or the reading of replies change; part of every cache key.
        instructions: Language (``en``, ``zh``) to the instructions of the judge.
        fields: Names of the texts that it is shown, in order.
        scale: Smallest and largest score.
        read: Turns a reply's text into a verdict, or raises `JudgeError`.
        reply_schema: JSON Schema of the reply; ``None`` where it is a word.
        asks_again: Whether a reply that cannot be read is asked for once more, with a call of its own.
        decides: Whether scores are decisions, such as a winner, of which there is no mean; words always are.
        tied: The score that a vote which decides nothing gives; ``None``: the lowest of those that it is between.
        listing: How a panel decides, where a verdict grades numbered things.
        asks_one: Whether of a panel only the first juror is asked, or the next if it fails and the panel can do without
            it, because the reply is no judgement but, for example, a list of things to judge.
        expected_of: The field of the reply whose value is taken as the mean over the probabilities of its tokens;
            `read` gets them with the reply. ``None``: the reply alone counts.
        plays: Whether it plays a person in a conversation: then it reacts to what the texts ask for.
        shared: How many of the fields, from the first, other questions about the case have as well.

    Raises:
        TypeError: Name or version are not text, so stored verdicts could not be found again.
    """

    name: str
    version: str
    instructions: Mapping[str, str]
    fields: tuple[str, ...]
    scale: tuple[float, float]
    read: Callable[[str], Verdict]
    reply_schema: Mapping[str, Any] | None = None
    asks_again: bool = False
    decides: bool = False
    tied: float | None = None
    listing: Listing | None = None
    asks_one: bool = False
    expected_of: str | None = None
    plays: bool = False
    shared: int = 0

    def __post_init__(self) -> None:
        for name, value in (("name", self.name), ("version", self.version)):
            _check_text(f"Mode: {name}", value)

    @property
    def tolerance(self) -> float:
        """The largest difference of scores that agree, as a share of the scale; 0 for words and decisions."""
        return 0.0 if self.decides or self.reply_schema is None else _SAME_SCORE

    def read_text(self, text: str) -> Verdict:
        """Read the text of a judge's reply; the mode may be the user's own.

        Raises:
            JudgeError: It gave no verdict with a score of the mode's scale, or its function failed.
        """
        try:
            verdict: Any = self.read(text)
        except JudgeError:
            raise
        except Exception as error:
            raise JudgeError.unreadable(
                text, f"the mode {self.name!r} failed to read the reply ({AnyError(error).text})"
            ) from error
        if isinstance(verdict, Verdict) and isinstance(verdict.score, Real) and math.isfinite(verdict.score):
            score = within(float(verdict.score), *self.scale)  # which may be true or false, or a number of numpy
            if score is None:
                scale = f"a score from {self.scale[0]:g} to {self.scale[1]:g}"
                raise JudgeError.unreadable(
                    text, f"the mode {self.name!r} returned the score {verdict.score:g}, expected {scale}"
                )
            return replace(verdict, score=score)
        value_text = excerpt(repr(verdict), 60)
        raise JudgeError.unreadable(
            text, f"the mode {self.name!r} returned {value_text}, expected a Verdict with a finite score"
        )

    def expecting(self, field: str, levels: Sequence[float]) -> "Mode":
        """The mode whose score is the mean over the probabilities of the tokens at its place.

        Args:
            field: Of the reply that has the score.
            levels: The scores that it may have; probabilities of other digits do not count.
        """
        return replace(
            self,
            version=f"{self.version}+expected",
            read=partial(_read_expected, mode=self, levels=frozenset(levels)),
            expected_of=field,
        )

    def shares(self, verdict: Verdict) -> Sequence[float]:
        """The scores of a verdict as shares of the scale: one, or that of each thing that it grades."""
        if self.listing is not None:
            return self.listing.grades(verdict)
        low, high = self.scale
        return [(verdict.score - low) / (high - low)]

    def differ(self, first: Verdict, second: Verdict) -> bool:
        """Whether two verdicts disagree about one of the things that they judge."""
        pairs = zip(self.shares(first), self.shares(second), strict=True)
        return any(abs(this - that) > self.tolerance + ROUNDING for this, that in pairs)


def _read_expected(text: str, mode: Mode, levels: frozenset[float]) -> Verdict:
    """Read a judge's reply with token probabilities; the score is the mean of the levels."""
    reply, probabilities = _open_envelope(text)
    verdict = mode.read_text(reply)
    if not probabilities:
        needed = "score: expected needs a model that gives logprobs for a score of one token"
        raise JudgeError.unreadable(reply, f"the probabilities of the score's tokens are missing: {needed}")
    shares = {int(level): share for level, share in probabilities.items() if int(level) in levels and share > 0}
    if int(verdict.score) not in shares:
        raise JudgeError.unreadable(reply, f"the probability of the score {verdict.score:g} itself is missing")
    total = math.fsum(shares.values())
    mean = math.fsum(level * share for level, share in shares.items()) / total
    named = {str(level): round(share / total, _DIGITS) for level, share in sorted(shares.items())}
    details = {**verdict.details, "chosen": verdict.score, _PROBABILITIES: named}
    return Verdict(round(mean, _DIGITS), verdict.reasoning, details)


def _open_envelope(text: str) -> tuple[str, Mapping[str, float]]:
    """The reply and probabilities that `enveloped` put together; a text that it did not write has none."""
    try:
        data: Any = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict) or set(data) != {_REPLY, _PROBABILITIES} or not isinstance(data[_REPLY], str):
        return text, {}
    return data[_REPLY], data[_PROBABILITIES] if are_probabilities(data[_PROBABILITIES]) else {}


def are_probabilities(value: Any) -> bool:
    """Whether untrusted data in a judge's reply are digits with their probabilities."""
    return isinstance(value, Mapping) and all(
        isinstance(level, str)
        and re.fullmatch("[0-9]", level)
        and type(share) in (int, float)
        and 0 <= share <= 1 + 10**-_DIGITS
        for level, share in value.items()
    )


_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_JAPANESE_OR_KOREAN = re.compile("[\u3041-\u309f\u30a1-\u30fa\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]")
_WORD = re.compile(r"[^\W_]+")
_HAN_IN_A_WORD = 2


class Question(Struct, frozen=True):
    """A question to a judge about one case.

    Attributes:
        mode: How it judges.
        texts: Field name to text, for the fields of the mode; untrusted.
        language: Of the instructions.
        shared: Whether it is the same for all cases, and so is asked once for all cases and repeats.
        foreseen: Its verdict in a plan, if the number of further questions does not depend on it.

    Raises:
        TypeError: The language is no text.
    """

    mode: Mode
    texts: Mapping[str, str]
    language: str = "en"
    shared: bool = False
    foreseen: Verdict | None = None

    def __post_init__(self) -> None:
        _check_text("Question: language", self.language)

    @property
    def uncounted_media(self) -> int:
        """The number of media in its texts without a token estimate."""
        return uncounted_media(form for text in self.texts.values() for form in getattr(text, "media", ()))

    @staticmethod
    def instruction_language(text: str, label: str | None = None) -> str:
        """The language of the instructions for a judge, ``zh`` or ``en``.

        Args:
            text: The question, whose script decides: Chinese if its Han characters, at about two a word,
                are as many words as the others, and none is Japanese or Korean.
            label: The language as a case names it, such as ``zh-CN``; goes before the text.
        """
        if label:
            return "zh" if label.lower().startswith("zh") else "en"
        han = len(_HAN.findall(text))
        if not han or _JAPANESE_OR_KOREAN.search(text):
            return "en"
        others = len(_WORD.findall(_HAN.sub(" ", text)))
        return "zh" if han >= _HAN_IN_A_WORD * others else "en"


def _check_text(what: str, value: Any) -> None:
    """Check that a user's evaluator passes text, such as a judge mode's name; its types are unchecked."""
    if not isinstance(value, str):
        raise TypeError(f"{what}: found {value!r}, expected text")
