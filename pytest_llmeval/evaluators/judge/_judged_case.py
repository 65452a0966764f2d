"""One case as a judge sees it."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct

from pytest_llmeval.core import (
    MISSING,
    Case,
    FloatArray,
    JudgeError,
    MediaForm,
    MediaText,
    Sums,
    as_line,
    excerpt,
    listed,
)
from pytest_llmeval.data import DataPath, json_text
from pytest_llmeval.evaluators._answers import AnswerText, AnswerValue, References
from pytest_llmeval.evaluators.measures._confusion import ratio
from pytest_llmeval.judges import DefectDetails, Mode, PanelVerdict, Question, Verdict

_SUBJECTS = ("claim", "goal", "source", "question")
_ABSENT = {"reference": "no expected answer", **{name: f"no {name}" for name in _SUBJECTS}}


@dataclass(frozen=True, slots=True)
class CaseTexts:
    """The texts of one case that evaluator ``judge`` shows to a judge.

    Attributes:
        by_field: Field name to text; what the case lacks is absent.
        malformed: What is wrong with the prediction.
        absent: Why there is nothing to judge; ``None`` where the mode has all that it needs.
        fault: What is wrong with the ground truth or the input.
    """

    by_field: Mapping[str, str]
    malformed: str | None = None
    absent: str | None = None
    fault: str | None = None

    @property
    def subject(self) -> str:
        """The question, claim, goal or source, or else the answer; it determines the language."""
        names = ("question", "claim", "goal", "source", "answer")
        return next((text for name in names if (text := self.by_field.get(name))), "")

    @classmethod
    def of_case(cls, case: Case, fields: tuple[str, ...], optional: Collection[str] = ()) -> "CaseTexts":
        """The texts of a case that a judge is shown.

        Args:
            case: The case.
            fields: Those of the mode; ``claim`` among them makes the case one of fact checking.
            optional: Those that a question may lack.
        """
        is_claim = "claim" in fields
        expected, fault = _gold(case.expected) if is_claim else _reference(case.expected)
        answer, malformed = _explanation(case.prediction) if is_claim else _answer(case.prediction)
        if "trajectory" in fields:
            answer, malformed = _trajectory(case)
        if not is_claim and "reference" not in fields:
            fault = None
        subject = next((name for name in _SUBJECTS if name in fields), "question")
        available = {subject: _subject(case.input, subject), **expected, **answer}
        texts = {name: text for name in fields if (text := available.get(name)) is not None}
        lacking = [name for name in fields if name not in texts and name not in optional]
        if subject in lacking and fault is None:
            fault = f"found {AnswerValue(case.input).kind} as input, expected the {subject} as text"
        return cls(texts, malformed, _ABSENT[lacking[0]] if lacking else None, fault)


def _subject(value: Any, key: str) -> str | None:
    """The question or claim that a judge is shown: a case's input, its text under `key`, or else the input as JSON.

    It carries all media of the input.
    """
    if value is None or value == "":
        return None
    if isinstance(value, Mapping) and (text := AnswerValue(value.get(key)).text) is not None:
        return MediaText.carrying(text, value)
    return json_text(value)


def _reference(expected: Any) -> tuple[dict[str, str], str | None]:
    """The right answer that a judge is shown, several as a list; blank ones are none."""
    accepted = References.read(expected)
    if accepted.fault and any(MediaForm.find_all(expected)):
        return {"reference": json_text(expected)}, None
    if accepted.fault:
        return {}, f"found {AnswerValue(expected).kind} as expected, expected text or a list of texts"
    references = [reference for reference in accepted.texts if reference.strip()]
    if not references:
        return {}, None
    text = references[0] if len(references) == 1 else "\n".join(f"- {reference}" for reference in references)
    return {"reference": text}, None


def _answer(prediction: Any) -> tuple[dict[str, str], str | None]:
    """The answer that a judge is shown: lists and objects as JSON, null and nothing as the empty answer."""
    if prediction is None or prediction is MISSING:
        return {"answer": ""}, f"found {AnswerValue(prediction).kind}, expected an answer"
    return {"answer": json_text(prediction)}, None


def _trajectory(case: Case) -> tuple[dict[str, str], str | None]:
    """The steps of an agent that a judge is shown, numbered: its messages, or its tool calls and the answer."""
    steps = case.prediction if isinstance(case.prediction, list) else case.parts.get("messages")
    if not isinstance(steps, list):
        steps = case.parts.get("tool_calls")
        if isinstance(steps, list) and case.prediction not in (None, MISSING):
            steps = [*steps, {"answer": case.prediction}]
    if not isinstance(steps, list):
        description = AnswerValue(case.prediction).kind
        return {"trajectory": ""}, f"found {description} without messages and tool_calls, expected a trajectory"
    lines = (f"{number}. {json.dumps(step, ensure_ascii=False)}" for number, step in enumerate(steps, 1))
    return {"trajectory": "\n".join(lines)}, None


def _gold(expected: Any) -> tuple[dict[str, str], str | None]:
    """The human explanation that a judge is shown: the justification of ``expected``, or its text."""
    if expected is None:
        return {}, None
    if isinstance(expected, Mapping):
        return {f"gold_{name}": text for name, text in _parts(expected).items()}, None
    text = AnswerValue(expected).text
    if text is None:
        return {}, f"found {AnswerValue(expected).kind} as expected, expected text or {{verdict, justification}}"
    return {"gold_justification": text}, None


def _explanation(prediction: Any) -> tuple[dict[str, str], str | None]:
    """The explanation that a judge grades: verdict, justification and sources; a text is the justification."""
    parts = _parts(prediction) if isinstance(prediction, Mapping) else {}
    text = AnswerValue(prediction).text
    if text is not None:
        parts = {"justification": text}
    if "justification" in parts:
        return parts, None
    description = (
        "an object without a justification" if isinstance(prediction, Mapping) else AnswerValue(prediction).kind
    )
    return {**parts, "justification": ""}, f"found {description}, expected text or {{verdict, justification}}"


def _parts(value: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a fact-check explanation's fields, as a judge is shown them."""
    texts = {name: AnswerValue(value.get(name)).text for name in ("verdict", "justification")}
    texts["sources"] = EvidenceSource.list_text(value.get("evidence_sources")) or None
    return {name: text for name, text in texts.items() if text is not None}


class EvidenceSource(Struct, frozen=True):
    """A piece of evidence that a judged explanation cites.

    Attributes:
        text: What it is known by: its content, or its address where it has no content.
        urls: The addresses of sources that have a content.
    """

    text: str
    urls: tuple[str, ...] = ()

    @classmethod
    def read_all(cls, entries: Iterable[Any]) -> "list[EvidenceSource]":
        """The listed evidence of an explanation, each text once, sorted.

        Args:
            entries: Texts, sources, or objects with ``content`` and ``url``. Blank ones, and what is none of these,
                are left out.
        """
        urls: dict[str, list[str]] = {}
        for entry in entries:
            source = entry if isinstance(entry, cls) else _source(entry)
            if source is not None:
                urls.setdefault(source.text, []).extend(source.urls)
        return [cls(text, tuple(sorted(set(addresses)))) for text, addresses in sorted(urls.items())]

    @classmethod
    def list_text(cls, entries: Any) -> str:
        r"""The listed evidence as text: one piece a line, with its addresses; nothing for what is no list.

        >>> EvidenceSource.list_text([{"content": "Bird survey", "url": "https://birds.example"}, "Register of boats"])
        'Bird survey (https://birds.example)\nRegister of boats'
        """
        return "\n".join(map(str, cls.read_all(entries))) if isinstance(entries, list | tuple) else ""

    def __str__(self) -> str:
        text, urls = " ".join(self.text.split()), ", ".join(url for url in self.urls if url != self.text)
        return f"{text} ({urls})" if urls else text


def _source(entry: Any) -> EvidenceSource | None:
    """A piece of evidence from an entry of ``evidence_sources``; ``None`` for an entry without content or address."""
    if isinstance(entry, str):
        return EvidenceSource(entry) if entry.strip() else None
    if not isinstance(entry, Mapping):
        return None
    content, url = (_if_text(entry.get(key)) for key in ("content", "url"))
    if not content:
        return EvidenceSource(url, (url,)) if url else None
    return EvidenceSource(content, (url,) if url else ())


def _if_text(value: Any) -> str:
    """A field of an evidence source if it is a text that is not blank, else the empty text."""
    return value if isinstance(value, str) and value.strip() else ""


_REQUIRED: Final = ("input", "labels", "question")
"""Parts that every case must have."""

_TRUTH: Final = ("expected", "reference")


def prompt_texts(case: Case, names: Iterable[str], file: str) -> CaseTexts:
    """The texts of a case that a user's judge prompt names.

    Args:
        case: The case.
        names: Of placeholders, such as ``input.question``.
        file: The prompt, for messages.
    """
    texts: dict[str, str] = {}
    malformed = absent = fault = None
    for name in names:
        value = _placeholder_value(case, name)
        root = name.partition(".")[0]
        if value is not DataPath.ABSENT and value is not None and value is not MISSING:
            texts[name] = json_text(value)
        elif root in _REQUIRED:
            fault = fault or f"{name} is missing, and {file} names it"
        elif root in _TRUTH:
            absent = absent or f"no {name}"
        else:
            texts[name] = ""
            what = AnswerValue(case.prediction).kind if name == "answer" else f"a prediction without {name}"
            malformed = malformed or f"found {what}, expected {name}, as {file} names it"
    return CaseTexts(texts, malformed, absent, fault)


def _placeholder_value(case: Case, name: str) -> Any:
    """The part of a case that a placeholder of a judge prompt names, such as ``input.question``."""
    root, _, path = name.partition(".")
    if root in ("question", "reference"):
        return CaseTexts.of_case(case, (root,), (root,)).by_field.get(root)
    values = {
        "answer": case.prediction,
        "expected": case.expected,
        "input": case.input,
        "labels": case.labels,
        "prediction": case.prediction if case.origin is None else case.origin.prediction,
    }
    value = values[root] if root in values else case.parts.get(root)
    return DataPath(path).find(value) if path else value


GRADES_OF_FIELDS: Final = "grades"
"""The detail of a verdict that has the grades of further fields; they are metrics, and not shown again."""

_KNOWN: Final = DefectDetails.KEYS | {GRADES_OF_FIELDS}

_YES_NO = (0.0, 1.0)
_LONGEST_REASONING = 2000
"""Characters of the judge's reasons that details keep."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """The mode, the texts and the question by which evaluator ``judge`` has one case judged.

    Attributes:
        name: Of the mode.
        mode: The mode; ``None`` for the rule.
        texts: What the judge is shown.
        question: What it is asked; ``None`` if a rule decides, or if there is nothing to judge.
        original_rule: Apply the original's rule to the letter.
    """

    name: str
    mode: Mode | None
    texts: CaseTexts
    question: Question | None
    original_rule: bool = False

    def verdict(self, verdicts: Sequence[Verdict | JudgeError]) -> Verdict | None:
        """The verdict, of the rule or of the judge; ``None`` if there is nothing to judge.

        Raises:
            JudgeError: The judge gave none.
        """
        if self.texts.absent is not None:
            return None
        if self.question is None:
            answer = self.texts.by_field["answer"]
            return Verdict(float(AnswerText(answer).is_unanswerable(original=self.original_rule)))
        for verdict in verdicts:
            if isinstance(verdict, JudgeError):
                raise verdict
        return verdicts[-1]  # type: ignore[return-value]  # no error is left

    @property
    def scale(self) -> tuple[float, float]:
        """The smallest and the largest score."""
        return _YES_NO if self.mode is None else self.mode.scale

    def share(self, score: float) -> float:
        """A score on a scale from 0 to 1."""
        low, high = self.scale
        return (score - low) / (high - low)

    def details_of(self, verdict: Verdict) -> dict[str, Any]:
        """The details of a verdict that people want to see, without absent ones."""
        others = {name: value for name, value in verdict.details.items() if name not in _KNOWN}
        details: dict[str, Any] = {
            "mode": self.name,
            "reasoning": excerpt(verdict.reasoning, _LONGEST_REASONING, lines=True),
            "flags": DefectDetails(verdict.details).defects,
            **others,
        }
        if self.mode is not None and self.mode.scale != (0.0, 1.0):
            details["raw_score"] = verdict.score
        return {name: value for name, value in details.items() if value not in ("", [])}


def reason_lines(details: Mapping[str, Any]) -> list[str]:
    """The lines of evaluator ``judge`` on a reply: its reasons, the defects that it found, and other fields."""
    flags = [f"defects: {listed(flags)}"] if (flags := details.get("flags")) else []
    others = [f"{name}: {as_line(value)}" for name, value in details.get("reply", {}).items()]
    reasons = (
        PanelVerdict.juror_lines(details["jurors"]) if "jurors" in details else filter(None, [details.get("reasoning")])
    )
    return [*reasons, *flags, *others]


class Defects(DefectDetails):
    """The counts and metrics of the defects of an explanation."""

    @property
    def counts(self) -> dict[str, float]:
        """The counts of evaluator ``judge`` for defects: found ones, and ones that the reply does not name."""
        unnamed = self.unnamed
        named = {flag: flag in self.defects for flag in self.FLAGS if flag not in unnamed}
        return {f"defect.{flag}": float(has) for flag, has in named.items()} | {
            f"defect.{flag}.unnamed": 1.0 for flag in unnamed
        }

    @property
    def undefined(self) -> dict[str, str]:
        """The reasons, by metric of evaluator ``judge``, for defects that the reply does not name."""
        return {f"defect[{flag}]": "the judge did not say" for flag in self.unnamed}

    @classmethod
    def rates(cls, sums: Sums, judged: FloatArray) -> dict[str, FloatArray]:
        """The metrics of evaluator ``judge`` on defects: the share of explanations with each, if replies say so."""
        return {
            f"defect[{flag}]": ratio(sums[f"defect.{flag}"], judged - sums[f"defect.{flag}.unnamed"])
            for flag in cls.FLAGS
        }
