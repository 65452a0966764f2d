"""A case and its prediction."""

__all__ = ("MISSING", "Case", "Missing")

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, Self

from msgspec import Struct

from pytest_llmeval.core._codec import are_equal, form_of, is_json
from pytest_llmeval.core._errors import LlmevalError, PredictionError
from pytest_llmeval.core._media_forms import MediaForm
from pytest_llmeval.core.wording import listed, printable

if TYPE_CHECKING:
    from jmespath.parser import ParsedResult
    from typing_extensions import TypeVar

    from pytest_llmeval.core._rereading import WrittenObject

    Input_co = TypeVar("Input_co", covariant=True, default=Any)
    Expected_co = TypeVar("Expected_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    Input_co = TypeVar("Input_co", covariant=True)
    Expected_co = TypeVar("Expected_co", covariant=True)

_ABSENT: Any = None


class Missing(Enum):
    """The type of `MISSING`, the prediction of a case that has none."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING
"""Stands for a prediction that was not given; ``None`` is a prediction of null."""


class NoAnswer(Struct, frozen=True):
    """A missing answer of another system or run, where answers to a case are compared.

    Attributes:
        reason: Why not.
    """

    ITSELF: ClassVar["NoAnswer"]
    """In place of another answer of the system that is measured."""

    reason: str


NoAnswer.ITSELF = NoAnswer("is the measured system")
_NOT_GIVEN: Final = NoAnswer("its answer is not given")


TRACE: Final = "trace"
"""The key of the spans of a traced answer, next to its parts."""

TURNS: Final = "turns"
"""The key of what a case expects of each turn of a conversation."""

_SHOWN_KEYS = 10


@dataclass(frozen=True)
class Parts:
    """The places of the parts of a prediction: one JMESPath each; ``None`` for the key of the part's own name.

    A prediction that is no object is the answer. JMESPath knows no difference between null and nothing.

    Attributes:
        answer: The answer of the application.
        contexts: What it based the answer on, such as retrieved passages.
        messages: The conversation, with the calls of tools.
        tool_calls: The tools that it called.
        outcome: The state in which it left its world, such as rows of a database.
        usage: What the answer took: tokens, costs, model.

    Example:
        >>> Parts(answer="output.text").read("answer", {"output": {"text": "Paris"}})
        'Paris'
        >>> Parts().read("contexts", {"answer": "Paris", "sources": []})
        Traceback (most recent call last):
        ...
        pytest_llmeval.core._errors.PredictionError: the prediction has the keys answer, sources; no 'contexts'; set parts.contexts
    """  # noqa: E501 (the message of an exception stands on one line)

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    INSTRUCTIONS: ClassVar = "instructions"
    """The key under which a case lists the instructions that its answer must follow."""

    OUTCOME: ClassVar = "outcome"
    """The part that says what an agent changed: the state of its world."""

    NAMES: ClassVar = ("answer", "contexts", "messages", "tool_calls", OUTCOME, "usage")
    """The names of the parts."""

    WHOLE: ClassVar = "prediction"
    """The name of the prediction as a whole, in place of a part."""

    answer: str | None = None
    contexts: str | None = None
    messages: str | None = None
    tool_calls: str | None = None
    outcome: str | None = None
    usage: str | None = None

    def find(self, part: str, prediction: Any) -> Any:
        """The value of a part of a prediction, or `MISSING`.

        Raises:
            PredictionError: The expression cannot be evaluated on this prediction.
        """
        path: str | None = getattr(self, part)
        if path is not None:
            return self.search(path, prediction)
        if isinstance(prediction, Mapping) and not MediaForm.matches(prediction):
            return prediction.get(part, MISSING)
        return prediction if part == "answer" else MISSING

    def read(self, part: str, prediction: Any) -> Any:
        """The value of a part of a prediction; an absent part is an error.

        Raises:
            PredictionError: It is not there; the message says what is.
        """
        value = self.find(part, prediction)
        if value is not MISSING:
            return value
        path: str | None = getattr(self, part)
        if path is not None:
            raise PredictionError(f"{self.describe(prediction)}; nothing at {path!r}, which parts.{part} names")
        raise PredictionError(f"{self.describe(prediction)}; no {part!r}; set parts.{part}")

    @staticmethod
    def search(path: str, value: Any) -> Any:
        """The value that a JMESPath finds in a prediction or other JSON data; `MISSING` for nothing and null.

        Raises:
            PredictionError: It cannot be evaluated on this data, such as a function of text that finds a number.
        """
        from jmespath.exceptions import JMESPathError

        try:
            result = _compile_expression(path).search(value)
        except (JMESPathError, RecursionError) as error:
            raise PredictionError(f"{path!r} cannot be evaluated on it: {printable(str(error))}") from None
        return MISSING if result is None else result

    @staticmethod
    def path_fault(path: str) -> tuple[int, str] | None:
        """The fault of a JMESPath that a suite file names for a part of a prediction.

        Returns:
            The offset of the fault and the message; ``None`` if the expression can be read.
        """
        from jmespath.exceptions import ArityError, JMESPathError, JMESPathTypeError, ParseError, UnknownFunctionError

        try:
            _compile_expression(path).search({})
        except JMESPathTypeError:
            return None  # a function that wants other data than none
        except (ArityError, UnknownFunctionError) as error:
            return 0, f"found {path!r}, expected a JMESPath ({printable(str(error))})"
        except ParseError as error:  # incomplete expressions and strange characters as well
            place = error.lex_position
        except (JMESPathError, RecursionError):
            place = 0
        else:
            return None
        what = f"{path[place]!r} at character {place + 1}" if place < len(path) else "its end too early"
        return place, f"found {path!r} with {what}, expected a JMESPath such as 'output.text'"

    @staticmethod
    def expectation(name: str | None, path: str | None, expected: Any) -> Any:
        """The expected value of a part of a prediction.

        Args:
            name: Of the part; ``None`` where it has none.
            path: JMESPath of the part; ``None`` if there is none.
            expected: Of the case.

        Returns:
            The part of an object that has it, under its name or at its path; ``None`` if the object holds only other
            parts; the whole of anything else.
        """
        if not isinstance(expected, Mapping):
            return expected
        if name is not None and name in expected:
            return expected[name]
        value = MISSING
        if path is not None:
            with suppress(PredictionError):  # such as a function of text, of which this object has none
                value = Parts.search(path, expected)
        if value is not MISSING:
            return value
        return None if expected and all(_is_other(key, part) for key, part in expected.items()) else expected

    @staticmethod
    def without(prediction: Mapping[str, Any], expected: Any) -> Mapping[str, Any]:
        """A predicted object without the parts of a prediction, unless they are expected as its fields."""
        fields = expected if isinstance(expected, Mapping) else ()
        extra = [name for name in prediction if name in (*Parts.NAMES, TRACE) and name not in fields]
        return {name: value for name, value in prediction.items() if name not in extra} if extra else prediction

    @staticmethod
    def describe(prediction: Any) -> str:
        """The description of a prediction in a message that it lacks a part: its keys, or its type."""
        if MediaForm.matches(prediction):
            return f"the prediction is {MediaForm(prediction).line}"
        if isinstance(prediction, Mapping):
            if not prediction:
                return "the prediction is an empty object"
            keys = [printable(str(key)) for key in prediction]
            return f"the prediction has the keys {listed(keys, _SHOWN_KEYS, ' and {} more')}"
        kinds = {str: "text", list: "a list", bool: "true or false", int: "a number", float: "a number"}
        return f"the prediction is {'null' if prediction is None else kinds.get(type(prediction), 'no object')}"


_NO_ANSWER: Final = frozenset((*Parts.NAMES, TURNS, Parts.INSTRUCTIONS))


@dataclass(frozen=True, slots=True)
class PredictionParts(Mapping[str, Any]):
    """All parts of a prediction by name, each looked up when it is read; missing parts are not keys.

    Attributes:
        parts: Where they are.
        prediction: The prediction.
        figures: What the run measured, such as ``latency_s`` and ``cost_usd``.
        typed: Makes objects of the declared types of a case, as functions of users get it; ``None`` leaves JSON data.
    """

    parts: Parts = Parts()
    prediction: Any = MISSING
    figures: Mapping[str, Any] = field(default_factory=dict)
    typed: "Callable[[Case], Case] | None" = field(default=None, compare=False, repr=False)

    def __getitem__(self, name: str) -> Any:
        measured = self.figures.get(name)
        if measured is not None:
            return measured
        value = self.parts.find(name, self.prediction) if name in Parts.NAMES else MISSING
        if value is MISSING:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in Parts.NAMES if self.parts.find(name, self.prediction) is not MISSING)
        yield from (name for name, measured in self.figures.items() if measured is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def read(self, name: str) -> Any:
        """The value of a part; an absent part is an error.

        Raises:
            PredictionError: It is not there; the message says what is.
        """
        return self.parts.read(name, self.prediction)


def own_fields(prediction: Mapping[str, Any], expected: Any) -> Mapping[str, Any] | None:
    """The fields of a predicted object that is itself the answer, without what an application adds about its run.

    Returns:
        ``None`` if the answer is elsewhere in it: it has nothing but parts, or passages next to fields that nobody
        expects.

    >>> own_fields({"total": 3, "usage": {}}, {"total": 3})
    {'total': 3}
    >>> own_fields({"text": "Paris", "contexts": []}, "Paris") is None
    True
    """
    fields = Parts.without(prediction, expected)
    expects_fields = isinstance(expected, Mapping) and not expected.keys().isdisjoint(fields)
    is_answer = expects_fields or "contexts" not in prediction
    return fields if (fields and is_answer) or not prediction else None


def record_in(prediction: Any, expected: Mapping[str, Any]) -> Any:
    """The record that a prediction is, or has as its answer, where a field of the record is called ``answer``.

    What is expected decides, not what stands next to the answer.

    >>> record_in({"answer": {"answer": "yes", "n": 1}, "usage": {}}, {"answer": "yes", "n": 1})
    {'answer': 'yes', 'n': 1}
    >>> record_in({"answer": "yes", "n": 1, "usage": {}}, {"answer": "yes", "n": 1})
    {'answer': 'yes', 'n': 1}
    """
    if not isinstance(prediction, Mapping):
        return prediction
    answer = prediction.get("answer")
    inside = _object_in(answer) if isinstance(answer, str) else answer
    other_fields = expected.keys() - {"answer"}
    lacks_fields = bool(other_fields) and prediction.keys().isdisjoint(other_fields)
    if isinstance(inside, Mapping):
        is_wrapped = lacks_fields or "answer" in inside
    else:
        is_wrapped = isinstance(answer, str) and lacks_fields
    return answer if is_wrapped else Parts.without(prediction, expected)


def _object_in(text: str) -> Any:
    """The JSON object in the text of a prediction, which may be fenced; ``None`` without any."""
    try:
        return json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return None


def _is_other(key: str, value: Any) -> bool:
    """Whether a key of a case's expectation is about another part of the prediction than the one in question.

    A state is an object or a list; records may have a field ``outcome``.
    """
    return key in _NO_ANSWER and (key != Parts.OUTCOME or isinstance(value, Mapping | list))


@lru_cache(maxsize=256)
def _compile_expression(path: str) -> "ParsedResult":
    """A parsed JMESPath, cached: every case is searched with the paths of its suite."""
    import jmespath

    return jmespath.compile(path)


class CaseLabels(Struct, frozen=True):
    """The labels of a case, by which it belongs to groups.

    Attributes:
        labels: Name to value.
    """

    labels: Mapping[str, str]

    MODES: ClassVar = "modes"
    """The label of a case that came from failures: its failure modes, with a mark between them."""

    _MODE_MARK: ClassVar = "; "
    _UNLABELLED: ClassVar = "(none)"

    def value(self, label: str) -> str:
        """The value of a label; the name of the group of cases that lack it."""
        return self.labels.get(label, self._UNLABELLED)

    def groups(self, label: str) -> Sequence[str]:
        """The groups of the case by a label: one, or one for each of its failure modes.

        >>> CaseLabels({"topic": "a; b", "modes": "rude; late"}).groups("topic")
        ['a; b']
        >>> CaseLabels({"topic": "a; b", "modes": "rude; late"}).groups("modes")
        ['rude', 'late']
        """
        value = self.value(label)
        return list(dict.fromkeys(value.split(self._MODE_MARK))) if label == self.MODES else [value]

    @property
    def modes(self) -> Sequence[str]:
        """The failure modes of the case; empty for one that did not come from failures."""
        return self.groups(self.MODES) if self.MODES in self.labels else ()

    @classmethod
    def of_modes(cls, modes: Sequence[str]) -> dict[str, str]:
        """The label of failure modes; empty without any."""
        return {cls.MODES: cls._MODE_MARK.join(modes)} if modes else {}

    @classmethod
    def mode_fault(cls, mode: str) -> str | None:
        """The reason why a text cannot name a failure mode; ``None`` if it can."""
        if mode.strip() and cls._MODE_MARK not in mode:
            return None
        return f"found {mode!r}, expected a failure mode, without {cls._MODE_MARK!r}"

    @classmethod
    def as_mode(cls, text: str) -> str:
        """A text as the name of a failure mode, without the mark between several."""
        return text.replace(cls._MODE_MARK, ", ")


class HeldObject(Struct, frozen=True):
    """A Python object of the user's in a case, such as a typed prediction, with its JSON form.

    Attributes:
        form: What stands in the case.
        value: The object.
        written: What was written beside the form, if the object was read again.
    """

    form: Any
    value: Any
    written: "WrittenObject | None" = None

    @property
    def known(self) -> Mapping[str, Any]:
        """The forms that JSON data had as the type of the user's object when the object was written."""
        return {} if self.written is None else self.written.read_as

    def reading(self, data: Any, form: Any) -> Any:
        """Return the form that JSON data has as the type of the object behind a form."""
        from pytest_llmeval.core._rereading import form_as

        return form_as(data, self.behind(form), self.known)

    def behind(self, form: Any) -> Any:
        """Return the object behind the form or behind a part of it; any other form is itself."""
        if form is self.form:
            return self.value
        if not isinstance(self.form, Mapping):
            return form
        if not isinstance(self.value, Mapping):  # a record, which may tell of itself beside its fields
            is_record = isinstance(form, Mapping) and form == Parts.without(self.form, form)
            return self.value if is_record else form
        for name in Parts.NAMES:
            if form is not None and self.form.get(name) is form:
                return self.value.get(name, form)
        if isinstance(form, Mapping) and all(self.form.get(name, MISSING) is held for name, held in form.items()):
            return {name: self.value.get(name, held) for name, held in form.items()}
        return form


_OBJECTS: Final = ("input", "expected", "prediction")
"""The fields of a case that may be objects of the user's."""


@dataclass(frozen=True, slots=True)
class Case(Generic[Input_co, Expected_co]):
    """One evaluation case; ``Case[Ask, Reply]`` has an input and an expectation of these types.

    Attributes:
        id: Unique within its suite.
        input: What the target receives; any JSON value.
        expected: The ground truth; any JSON value, ``None`` where it is absent.
        prediction: What was answered; any JSON value, or `MISSING` until the target has answered.
        labels: What ``group_by`` and judges read, such as ``question_type``; ``modes`` may have several values.
        tags: Become pytest marks.
        thresholds: Metric name to limits; they replace the suite's limit of the same metric.
        line: Line of the case in its file, counted from 1; 0 where it has none.
        conversation: Whether `input` is a script, and the prediction the transcript of a conversation.
        origin: All parts of the prediction; ``None`` where they are those of `prediction` itself.
        checks: Assertions on the answer, besides those of the suite; as ``checks`` of a suite file.
        way: What decides the answer besides the input, such as a model and its prompts, for recordings.
        others: Predictions of other systems for the same case, by name, for evaluators that compare with them; as
            ``PredictionParts`` where their parts are elsewhere.
        always: Whether it runs first, even if all gates are decided, in a suite that stops when its gates are
            decided.
        objects: The objects of the user's that ``input``, ``expected`` and ``prediction`` are the JSON forms of.
    """

    id: str
    input: Input_co = _ABSENT
    expected: Expected_co = _ABSENT
    prediction: Any = MISSING
    labels: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0
    conversation: bool = field(default=False, repr=False, compare=False)
    origin: PredictionParts | None = field(default=None, repr=False, compare=False)
    checks: tuple[Any, ...] = ()
    way: str = field(default="", repr=False, compare=False)
    others: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    always: bool = field(default=False, repr=False, compare=False)
    objects: Mapping[str, HeldObject] = field(default_factory=dict, repr=False, compare=False)

    if not TYPE_CHECKING:

        def __class_getitem__(cls, types: Any) -> "type[Case]":
            """Return the class: at run time nothing reads the types, and an alias would set an attribute of cases."""
            return cls

    @property
    def parts(self) -> Mapping[str, Any]:
        """All parts of the prediction by name, with ``latency_s`` and ``cost_usd``, whichever `prediction` is."""
        return self.whole

    @property
    def whole(self) -> PredictionParts:
        """The prediction as a whole with its parts; that of `prediction` itself if no part is known elsewhere."""
        return PredictionParts(prediction=self.prediction) if self.origin is None else self.origin

    def is_of(self, system: str) -> bool:
        """Whether the measured answer is that of a named system."""
        other = self.others.get(system)
        return isinstance(other, NoAnswer) and other == NoAnswer.ITSELF

    def why_absent(self, system: str) -> str:
        """The reason why another system has no answer to this case; empty if it has one."""
        other = self.others.get(system, _NOT_GIVEN)
        return other.reason if isinstance(other, NoAnswer) else ""

    @property
    def part_paths(self) -> Parts:
        """Where the parts of the prediction are."""
        return Parts() if self.origin is None else self.origin.parts

    def with_part_paths(self, paths: Parts, figures: Mapping[str, Any] = {}) -> "Case[Input_co, Expected_co]":
        """This case with a prediction whose parts are at these paths, and what the run measured of it."""
        return replace(self, origin=PredictionParts(paths, self.prediction, figures))

    def answered(self, prediction: Any) -> "Case[Input_co, Expected_co]":
        """This case with a prediction."""
        return self if prediction is self.prediction else replace(self, prediction=prediction)

    def in_forms(self) -> "Case[Input_co, Expected_co]":
        """This case with JSON forms for objects of the user's, which it keeps beside them."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _OBJECTS}
        forms: dict[str, Any] = {name: value if value is MISSING else form_of(value) for name, value in values.items()}
        changed = {name: HeldObject(form, values[name]) for name, form in forms.items() if form is not values[name]}
        return replace(self, **forms, objects={**self.objects, **changed}) if changed else self

    def with_object(
        self, name: str, form: Any, value: Any, written: "WrittenObject | None" = None
    ) -> "Case[Input_co, Expected_co]":
        """This case with an object of the user's as its `input`, `expected` or `prediction`, beside its JSON form.

        Args:
            name: Of the field.
            form: The JSON form.
            value: The object.
            written: What was written beside the form, if the object was read again.
        """
        fields: dict[str, Any] = {name: form}
        return replace(self, **fields, objects={**self.objects, name: HeldObject(form, value, written)})

    def as_given(self) -> "Case[Input_co, Expected_co]":
        """This case as its user's code gets it: with the objects that were given."""
        held = {name: value for name in _OBJECTS if (value := self.object_of(name)) is not getattr(self, name)}
        return replace(self, **held, objects={}) if held else self

    def object_of(self, name: str) -> Any:
        """Return the object behind `input`, `expected` or `prediction`; JSON data is itself, with its media."""
        known, form = self.objects.get(name), getattr(self, name)
        value = form if known is None else known.behind(form)
        if value is not form or not any(MediaForm.find_all(form)):
            return value
        from pytest_llmeval.core._media import Media

        return Media.restore_all(form)

    def with_equal_forms(self) -> "Case[Input_co, Expected_co]":
        """This case with one form for expectation and prediction if they are equal as objects.

        An expectation that is JSON data is read as the type of a prediction that is an object.
        """
        if not self.objects or self.prediction is MISSING or self.expected is None:
            return self
        value, expected = self.object_of("prediction"), self.object_of("expected")
        held = self.objects.get("prediction")
        if is_json(value) and is_json(expected) and (held is None or not held.known):
            return self
        if not are_equal(expected, value):
            form = held.reading(self.expected, self.prediction) if held and is_json(expected) else self.expected
            return self if form is self.expected else replace(self, expected=form)
        return self.with_object("prediction", self.expected, value)

    def written_object(self) -> "WrittenObject | None":
        """The written form of the object that the prediction was; ``None`` if the prediction is JSON data."""
        held = self.objects.get("prediction")
        if held is None:
            return None
        from pytest_llmeval.core._rereading import WrittenObject

        return held.written or WrittenObject.from_object(held.behind(self.prediction), self.object_of("expected"))

    def score(self, prediction: Any) -> dict[str, float | None]:
        """Score a prediction with the suite's evaluators, in a test over the suite.

        The result enters the suite's metrics, gates and reports, under the name of the test.

        Args:
            prediction: What your application answered.

        Returns:
            Metric name to value; ``None`` where undefined.

        Raises:
            pytest.fail.Exception: A limit of the case is not met, or it could not be measured.
            LlmevalError: The case is not that of a test over a suite.
        """
        del prediction
        raise LlmevalError(
            f"case {self.id!r}: score is for the fixture case in a test over a suite; "
            "elsewhere use pytest_llmeval.score(evaluator, [case])"
        )


_DIGITS = 32


def _shown_text(value: Any) -> str:
    """A value of a case as judges and people are shown it: text unchanged, nothing as empty text, the rest as JSON.

    >>> _shown_text("Paris"), _shown_text(None), _shown_text({"town": "Zürich"})
    ('Paris', '', '{"town": "Zürich"}')
    """
    if value is None or value is MISSING:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class ShownPrints(NamedTuple):
    """Fingerprints of the texts by which an answer is judged.

    Attributes:
        question: Of the question.
        answer: Of the answer.
        reference: Of the right answer; that of the empty text if there is none.
    """

    question: str
    answer: str
    reference: str

    @staticmethod
    def fingerprint(answer: Any) -> str:
        """The fingerprint of an answer, text or JSON data, by which human labels name it."""
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=True, sort_keys=True)
        return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"

    @classmethod
    def of_case(cls, fields: Mapping[str, str], value: Any, answer: Any) -> Self:
        """The fingerprints of the question, answer and reference of a case, as a judge is shown them.

        Args:
            fields: What a judge is shown of it, by name; may be empty.
            value: The input, which has the question where no field has it.
            answer: What was answered, where no field has it.
        """
        question = value.get("question", value) if isinstance(value, Mapping) else value
        texts = (
            fields.get("question") or _shown_text(question),
            fields.get("answer", _shown_text(answer)),
            fields.get("reference", ""),
        )
        # Reports have half of a surrogate pair as an escape.
        whole = (text.encode("utf-8", "backslashreplace").decode("utf-8") for text in texts)
        return cls(*map(cls.fingerprint, whole))


def input_digest(value: Any) -> str:
    """A digest of a case's input, by which a recording knows that it still belongs to the case."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:16]
