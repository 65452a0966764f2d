"""The questions about claims, step by step."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pytest_llmeval.core import MISSING, Case, JudgeError, PredictionError, excerpt, quotation
from pytest_llmeval.data import json_text
from pytest_llmeval.evaluators import AnswerText, AnswerValue, References
from pytest_llmeval.judges import Question, Verdict
from pytest_llmeval.tasks.grounding._questions import (
    ask_for_citations,
    ask_for_claim_relevance,
    ask_for_claims,
    ask_for_passage_relevance,
    ask_for_support,
)

Side: TypeAlias = Literal["answer", "reference"]
ClaimSource: TypeAlias = Literal["answer", "reference", "contexts"]

_CONTEXTS = "contexts"
_LONGEST = 200


@dataclass(frozen=True)
class ClaimTexts:
    """The question, answer, expected answer and passages of one case, for judging claims.

    Attributes:
        question: The question, if any.
        answer: The answer; empty if there is none.
        reference: The right answer, if any.
        contexts: The passages; ``None`` where nothing says what they are.
        no_contexts: Why not.
        malformed: What is wrong with the prediction.
        fault: What is wrong with the expected answer, or with the passages of the input.
        language: Of the instructions.
        retrieved: Whether the passages are a part of the prediction.
    """

    question: str | None
    answer: str
    reference: str | None
    contexts: Sequence[str] | None
    no_contexts: str
    malformed: str | None
    fault: str | None
    language: str
    retrieved: bool

    @cached_property
    def sentences(self) -> Mapping[Side, Sequence[str]]:
        """The sentences of the answer and of the reference."""
        return {"answer": _sentences(self.answer), "reference": _sentences(self.reference or "")}

    def passages(self, source: ClaimSource) -> dict[int, str]:
        """The passages on which claims can rest, by number, without blank ones."""
        texts = {"answer": [self.answer], "reference": [self.reference or ""], _CONTEXTS: self.contexts or ()}[source]
        return {number: text for number, text in enumerate(texts, 1) if text.strip()}

    @cached_property
    def citations(self) -> Sequence[tuple[int, int]]:
        """Number of a sentence that cites and number of a passage that it cites, for each citation."""
        return _citations(self.answer)

    @cached_property
    def checked_citations(self) -> Sequence[tuple[int, int]]:
        """The citations that a judge must check: of passages that are there and not blank."""
        passages = self.passages("contexts")
        return [citation for citation in self.citations if citation[1] in passages]


@lru_cache(maxsize=128)
def _sentences(text: str) -> Sequence[str]:
    """Split an answer into sentences; all judge questions on a case, and its counts, need the same ones."""
    return tuple(AnswerText(text).sentences)


@lru_cache(maxsize=128)
def _citations(answer: str) -> Sequence[tuple[int, int]]:
    """The pairs of sentence and passage number for each citation in an answer."""
    sentences = enumerate(map(AnswerText, _sentences(answer)), 1)
    return tuple((number, passage) for number, sentence in sentences for passage in sentence.cited)


def claim_texts(case: Case, language: str = "auto") -> ClaimTexts:
    """The texts of a case that are read for judging claims.

    Args:
        case: Its prediction is the answer; the passages are the part ``contexts``, or ``contexts`` of the input.
        language: Of the instructions; ``auto``: by the label ``language``, or by the script of the question.
    """
    question = _question(case.input)
    answer, malformed = _answer(case.prediction)
    reference, fault = _reference(case.expected)
    passages, why = _contexts(case)
    if passages is not MISSING:
        contexts, wrong = _passages(passages)
        malformed = malformed or wrong
    elif isinstance(case.input, Mapping) and _CONTEXTS in case.input:
        contexts, wrong = _passages(case.input[_CONTEXTS], " of the input")
        fault = fault or wrong
    else:
        contexts = None
    if language == "auto":
        language = Question.instruction_language(question or answer, case.labels.get("language"))
    retrieved = passages is not MISSING
    return ClaimTexts(question, answer, reference, contexts, why, malformed, fault, language, retrieved)


def _question(value: Any) -> str | None:
    """The user's question in a case's input: a text, the text under ``question``, or all but the passages."""
    if isinstance(value, Mapping) and AnswerValue(value.get("question")).text is None:
        value = {name: part for name, part in value.items() if name != _CONTEXTS and part is not None} or None
    elif isinstance(value, Mapping):
        value = value["question"]
    text = "" if value is None else json_text(value)
    return text if text.strip() else None


def _answer(prediction: Any) -> tuple[str, str | None]:
    """The text of the answer that claims are taken from, and the fault of an absent one."""
    if prediction is None or prediction is MISSING:
        return "", f"found {AnswerValue(prediction).kind}, expected an answer"
    return json_text(prediction), None


def _reference(expected: Any) -> tuple[str | None, str | None]:
    """The expected answer that claims are taken from, if any, and the fault of several or of another form."""
    accepted = References.read(expected)
    if accepted.fault:
        return None, f"found {AnswerValue(expected).kind} as expected, expected text"
    references = [reference for reference in accepted.texts if reference.strip()]
    if len(references) > 1:
        return None, f"found {len(references)} expected answers, expected one: claims are those of one text"
    return (references[0] if references else None), None


def _contexts(case: Case) -> tuple[Any, str]:
    """The retrieved passages of a case's prediction, or the reason why there are none."""
    try:
        return case.whole.read(_CONTEXTS), ""
    except PredictionError as error:
        return MISSING, f"{error}, or give the input contexts"


def _passages(value: Any, owner: str = "") -> tuple[list[str], str | None]:
    """The retrieved passages as texts, with their faults; a null keeps its number as an empty text."""
    passages = [value] if isinstance(value, str) else value
    if not isinstance(passages, list | tuple):
        return [], f"found {AnswerValue(value).kind} as contexts{owner}, expected a list of texts"
    null = next((number for number, passage in enumerate(passages) if passage is None), None)
    fault = None if null is None else f"found null as contexts[{null}]{owner}, expected text"
    return ["" if passage is None else json_text(passage) for passage in passages], fault


_NO_REFERENCE = "no expected answer"
_NO_QUESTION = "no question"
_NO_CONTEXTS = "no contexts"
_NO_CITATIONS = "the answer cites nothing"
_NOT_ASKED = "the judge was not asked"


class Step(NamedTuple):
    """A step in judging claims, which takes one judge question at most.

    Attributes:
        kind: ``claims``: split a text; ``support``: compare its claims with passages; ``relevance``: compare claims or
            passages with the question; ``citations``: compare sentences with what they cite.
        subject: What is judged.
        by: The passages or text to compare it with, for ``support``.
    """

    kind: Literal["claims", "support", "relevance", "citations"]
    subject: ClaimSource
    by: ClaimSource = "contexts"

    @property
    def side(self) -> Side | None:
        """The text whose claims it judges; ``None`` where it judges no claims."""
        return None if self.kind == "citations" or self.subject == "contexts" else self.subject


ANSWER_IN_CONTEXTS: Final = Step("support", "answer", "contexts")
REFERENCE_IN_CONTEXTS: Final = Step("support", "reference", "contexts")
ANSWER_IN_REFERENCE: Final = Step("support", "answer", "reference")
REFERENCE_IN_ANSWER: Final = Step("support", "reference", "answer")
ANSWER_RELEVANCE: Final = Step("relevance", "answer")
CONTEXT_RELEVANCE: Final = Step("relevance", "contexts")
CITATIONS: Final = Step("citations", "answer")


@dataclass(frozen=True, slots=True)
class Unknown:
    """The reason why a step in judging claims has no result.

    Attributes:
        reason: Why.
        errored: Whether something failed; if not, there is nothing to judge.
        abstained: Whether it is the answer that leaves nothing to judge.
    """

    reason: str
    errored: bool = False
    abstained: bool = False


Items: TypeAlias = Sequence[Mapping[str, Any]]
"""Verdicts on numbered items, in order."""


@dataclass(frozen=True)
class Findings:
    """The judge's questions about a case's claims, and the results so far.

    Attributes:
        texts: Of the case.
        steps: Those that are wanted; the splitting of texts is added.
        verdicts: What the judge said so far: of the first round, then of the second.
    """

    texts: ClaimTexts
    steps: Sequence[Step]
    verdicts: Sequence[Verdict | JudgeError] = ()

    @cached_property
    def first(self) -> Mapping[Step, Question]:
        """The questions of the first round: splitting, and all that needs no claims."""
        questions: dict[Step, Question] = {}
        for side in ("answer", "reference"):
            sentences = self.texts.sentences[side]
            if sentences and any(step.side == side for step in self._open):
                step = Step("claims", side)
                questions[step] = ask_for_claims(sentences, self.texts.question, self.texts.language)
        for step in self._open:
            question = self._without_claims(step)
            questions |= {step: question} if question is not None else {}
        return questions

    @cached_property
    def later(self) -> Mapping[Step, Question]:
        """The questions of the second round: about claims."""
        questions: dict[Step, Question] = {}
        for step in self._open:
            if step.side is not None and not isinstance(claims := self.claims(step.side), Unknown):
                question = self._about_claims(step, [claim["claim"] for claim in claims])
                questions |= {step: question} if question is not None else {}
        return questions

    @property
    def most_later(self) -> int:
        """The largest number of questions in the second round."""
        texts = self.texts
        return sum(
            bool(texts.sentences[step.side]) and (step.kind != "support" or bool(texts.passages(step.by)))
            for step in self._open
            if step.side is not None
        )

    @cached_property
    def _open(self) -> Sequence[Step]:
        return [step for step in self.steps if self._blocked(step) is None]

    def _blocked(self, step: Step) -> Unknown | None:
        """The reason why a step is impossible for this case."""
        texts, read = self.texts, {step.subject, *([step.by] if step.kind in ("support", "citations") else [])}
        if "reference" in read and texts.reference is None:
            return Unknown(_NO_REFERENCE)
        if step.kind == "relevance" and texts.question is None:
            return Unknown(_NO_QUESTION)
        if "contexts" in read and texts.contexts is None:
            return Unknown(texts.no_contexts, errored=True)
        if step.kind == "citations" and not texts.citations:
            return Unknown(_NO_CITATIONS, abstained=True)
        if step.subject == "contexts" and not texts.contexts:
            return Unknown(_NO_CONTEXTS, abstained=texts.retrieved)
        return None

    def _without_claims(self, step: Step) -> Question | None:
        texts = self.texts
        passages = texts.passages("contexts")
        if step.kind == "citations" and texts.checked_citations:
            cited = {number for _, number in texts.checked_citations}
            cited_passages = {number: text for number, text in passages.items() if number in cited}
            return ask_for_citations(texts.sentences["answer"], texts.checked_citations, cited_passages, texts.language)
        if step.subject == "contexts" and passages:
            return ask_for_passage_relevance(str(texts.question), passages, texts.language)
        return None

    def _about_claims(self, step: Step, claims: Sequence[str]) -> Question | None:
        texts = self.texts
        if not claims:
            return None
        if step.kind == "relevance":
            return ask_for_claim_relevance(str(texts.question), claims, texts.language)
        passages = texts.passages(step.by)
        return ask_for_support(claims, passages, texts.language) if passages else None

    def claims(self, side: Side) -> Items | Unknown:
        """Return the claims of a text, ``{claim, sentence}`` each."""
        step = Step("claims", side)
        return self._reply_items(step, "claims") if step in self.first else []

    @cached_property
    def items(self) -> Mapping[Step, Items | Unknown]:
        """The verdicts on all items of each step: claims, passages or citations. Their number is the denominator."""
        return {step: self._items(step) for step in self.steps}

    def _items(self, step: Step) -> Items | Unknown:
        blocked = self._blocked(step)
        if blocked is not None:
            return blocked
        if step.side is None:
            return self._citations() if step.kind == "citations" else self._passages(step)
        claims = self.claims(step.side)
        if isinstance(claims, Unknown):
            return claims
        if not claims:
            of_answer = step.side == "answer"
            return Unknown(f"the {'' if of_answer else 'expected '}answer makes no claims", abstained=of_answer)
        if step in self.later:
            return self._reply_items(step, "verdicts")
        return [{"supported": False, "passages": [], "reason": ""}] * len(claims)

    def _reply_items(self, step: Step, key: str) -> Items | Unknown:
        place = [*self.first].index(step) if step in self.first else len(self.first) + [*self.later].index(step)
        verdict = self.verdicts[place] if place < len(self.verdicts) else JudgeError(_NOT_ASKED)
        if isinstance(verdict, JudgeError):
            return Unknown(str(verdict), errored=True)
        items: Items = verdict.details[key]
        return items

    def _passages(self, step: Step) -> Items | Unknown:
        verdicts = self._reply_items(step, "verdicts") if step in self.first else []
        if isinstance(verdicts, Unknown):
            return verdicts
        by_number = dict(zip(self.texts.passages("contexts"), verdicts, strict=True))
        blank = {"relevant": False, "reason": "it is blank"}
        return [by_number.get(number, blank) for number, _ in enumerate(self.texts.contexts or (), 1)]

    def _citations(self) -> Items | Unknown:
        verdicts = self._reply_items(CITATIONS, "verdicts") if CITATIONS in self.first else []
        if isinstance(verdicts, Unknown):
            return verdicts
        return list(self._each_citation(iter(verdicts)))

    def _each_citation(self, verdicts: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        there = len(self.texts.contexts or ())
        for sentence, number in self.texts.citations:
            if (sentence, number) in self.texts.checked_citations:
                item = next(verdicts)
            else:
                why = "it is blank" if 0 < number <= there else "there is no such context"
                item = {"supported": False, "reason": why}
            text = self.texts.sentences["answer"][sentence - 1]
            yield {"sentence": text, "context": number, **item}


_OF_CLAIMS: Final[Mapping[Step, tuple[str, str]]] = {
    ANSWER_IN_CONTEXTS: ("contexts", "claim {number} is supported by no context: {text}"),
    ANSWER_IN_REFERENCE: ("expected", "claim {number} is not in the expected answer: {text}"),
    ANSWER_RELEVANCE: ("relevant", "claim {number} does not bear on the question: {text}"),
    REFERENCE_IN_ANSWER: ("answer", "claim {number} of the expected answer is missed: {text}"),
    REFERENCE_IN_CONTEXTS: ("contexts", "claim {number} of the expected answer is in no context: {text}"),
}
"""Step to the name of its verdicts in details, and to the line about one that is negative."""


def claim_details(findings: Findings) -> dict[str, Any]:
    """The details of a claims case: claims, expected claims, passages and citations with verdicts, and lines."""
    details = {
        "claims": _claims(findings, "answer"),
        "expected_claims": _claims(findings, "reference"),
        "contexts": [{"relevant": passage["relevant"]} for passage in _known(findings, CONTEXT_RELEVANCE)],
        "citations": [
            {name: citation[name] for name in ("sentence", "context", "supported")}
            for citation in _known(findings, CITATIONS)
        ],
        "wrong": list(_lines(findings)),
    }
    return {name: detail for name, detail in details.items() if detail}


def _known(findings: Findings, step: Step) -> Items:
    """A step's verdicts on claims or passages; none if the step has no result."""
    items = findings.items.get(step, [])
    return [] if isinstance(items, Unknown) else items


def _claims(findings: Findings, side: Side) -> list[dict[str, Any]]:
    """The claims of the answer or of the expected answer with their verdicts, for a case's details."""
    claims = findings.claims(side)
    if isinstance(claims, Unknown):
        return []
    rows = [{"claim": claim["claim"]} for claim in claims]
    for step, (name, _) in _OF_CLAIMS.items():
        if step.side == side:
            for row, item in zip(rows, _known(findings, step), strict=False):
                row[name] = item["passages"] if name == "contexts" else _holds(item)
    return rows


def _holds(item: Mapping[str, Any]) -> bool:
    """Whether a judge found a claim or citation supported, or a passage relevant."""
    return bool(item.get("supported", item.get("relevant")))


def _lines(findings: Findings) -> Iterator[str]:
    """Yield a line for each claim, passage or citation that a judge rejected, for the report."""
    for step, (_, line) in _OF_CLAIMS.items():
        claims = findings.claims(step.side) if step.side is not None else []
        for number, item in enumerate(_known(findings, step), 1):
            if not _holds(item) and not isinstance(claims, Unknown):
                text = line.format(number=number, text=excerpt(claims[number - 1]["claim"], _LONGEST))
                yield text + _because(item)
    for number, item in enumerate(_known(findings, CONTEXT_RELEVANCE), 1):
        if not _holds(item):
            yield f"context {number} does not bear on the question{_because(item)}"
    for item in _known(findings, CITATIONS):
        if not _holds(item):
            yield f"context {item['context']} does not support {quotation(item['sentence'], _LONGEST)}{_because(item)}"


def _because(item: Mapping[str, Any]) -> str:
    """The judge's reason in brackets behind a line about a rejected claim or passage; empty without a reason."""
    return f" ({excerpt(item['reason'], _LONGEST)})" if item["reason"] else ""
