"""The steps of judging claims: which questions a case needs, in which order, and what came of them."""

__all__ = (
    "ANSWER_IN_CONTEXTS",
    "ANSWER_IN_REFERENCE",
    "ANSWER_RELEVANCE",
    "CITATIONS",
    "CONTEXT_RELEVANCE",
    "REFERENCE_IN_ANSWER",
    "REFERENCE_IN_CONTEXTS",
    "Findings",
    "Items",
    "Step",
    "Unknown",
)

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.evaluators.judge.claim_texts import ClaimSource, ClaimTexts, Side
from pytest_llmeval.judge.contract import Question, Verdict
from pytest_llmeval.judge.questions.claims import (
    ask_for_citations,
    ask_for_claim_relevance,
    ask_for_claims,
    ask_for_passage_relevance,
    ask_for_support,
)

_NO_REFERENCE = "no expected answer"
_NO_QUESTION = "no question"
_NO_CONTEXTS = "no contexts"
_NO_CITATIONS = "the answer cites nothing"
_NOT_ASKED = "the judge was not asked"


class Step(NamedTuple):
    """One question at most.

    Attributes:
        kind: ``claims``: split a text; ``support``: hold its claims against passages; ``relevance``: hold claims or
            passages against the question; ``citations``: hold sentences against what they cite.
        of: What is judged.
        by: What it is held against, for ``support``.
    """

    kind: Literal["claims", "support", "relevance", "citations"]
    of: ClaimSource
    by: ClaimSource = "contexts"

    @property
    def side(self) -> Side | None:
        """The text whose claims it judges; ``None`` where it judges no claims."""
        return None if self.kind == "citations" or self.of == "contexts" else self.of


ANSWER_IN_CONTEXTS: Final = Step("support", "answer", "contexts")
REFERENCE_IN_CONTEXTS: Final = Step("support", "reference", "contexts")
ANSWER_IN_REFERENCE: Final = Step("support", "answer", "reference")
REFERENCE_IN_ANSWER: Final = Step("support", "reference", "answer")
ANSWER_RELEVANCE: Final = Step("relevance", "answer")
CONTEXT_RELEVANCE: Final = Step("relevance", "contexts")
CITATIONS: Final = Step("citations", "answer")


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why a step has no result.

    Attributes:
        reason: Why.
        errored: Whether something failed; otherwise there is nothing to judge.
    """

    reason: str
    errored: bool = False


Items: TypeAlias = Sequence[Mapping[str, Any]]
"""Verdicts on numbered items, in order."""


@dataclass(frozen=True)
class Findings:
    """What is asked about a case, and what was said.

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
        asked: dict[Step, Question] = {}
        for side in ("answer", "reference"):
            sentences = self.texts.sentences[side]
            if sentences and any(step.side == side for step in self._open):
                step = Step("claims", side)
                asked[step] = ask_for_claims(sentences, self.texts.question, self.texts.language)
        for step in self._open:
            question = self._without_claims(step)
            asked |= {step: question} if question is not None else {}
        return asked

    @cached_property
    def later(self) -> Mapping[Step, Question]:
        """The questions of the second round: about claims."""
        asked: dict[Step, Question] = {}
        for step in self._open:
            if step.side is not None and not isinstance(claims := self.claims(step.side), Unknown):
                question = self._about_claims(step, [each["claim"] for each in claims])
                asked |= {step: question} if question is not None else {}
        return asked

    @property
    def most_later(self) -> int:
        """How many questions the second round has at most."""
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
        """Return why a step cannot be made, whatever the judge says."""
        texts, read = self.texts, {step.of, *([step.by] if step.kind in ("support", "citations") else [])}
        if "reference" in read and texts.reference is None:
            return Unknown(_NO_REFERENCE)
        if step.kind == "relevance" and texts.question is None:
            return Unknown(_NO_QUESTION)
        if "contexts" in read and texts.contexts is None:
            return Unknown(texts.no_contexts, errored=True)
        if step.kind == "citations" and not texts.citations:
            return Unknown(_NO_CITATIONS)
        return Unknown(_NO_CONTEXTS) if step.of == "contexts" and not texts.contexts else None

    def _without_claims(self, step: Step) -> Question | None:
        texts = self.texts
        passages = texts.passages("contexts")
        if step.kind == "citations" and texts.checked_citations:
            cited = {number for _, number in texts.checked_citations}
            shown = {number: text for number, text in passages.items() if number in cited}
            return ask_for_citations(texts.sentences["answer"], texts.checked_citations, shown, texts.language)
        if step.of == "contexts" and passages:
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
        return self._said(step, "claims") if step in self.first else []

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
            return Unknown(f"the {'expected ' if step.side == 'reference' else ''}answer makes no claims")
        if step in self.later:
            return self._said(step, "verdicts")
        return [{"supported": False, "passages": [], "reason": ""}] * len(claims)

    def _said(self, step: Step, key: str) -> Items | Unknown:
        place = [*self.first].index(step) if step in self.first else len(self.first) + [*self.later].index(step)
        verdict = self.verdicts[place] if place < len(self.verdicts) else JudgeError(_NOT_ASKED)
        if isinstance(verdict, JudgeError):
            return Unknown(str(verdict), errored=True)
        items: Items = verdict.details[key]
        return items

    def _passages(self, step: Step) -> Items | Unknown:
        said = self._said(step, "verdicts") if step in self.first else []
        if isinstance(said, Unknown):
            return said
        by_number = dict(zip(self.texts.passages("contexts"), said, strict=True))
        blank = {"relevant": False, "reason": "it is blank"}
        return [by_number.get(number, blank) for number, _ in enumerate(self.texts.contexts or (), 1)]

    def _citations(self) -> Items | Unknown:
        said = self._said(CITATIONS, "verdicts") if CITATIONS in self.first else []
        if isinstance(said, Unknown):
            return said
        return list(self._each_citation(iter(said)))

    def _each_citation(self, said: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        there = len(self.texts.contexts or ())
        for sentence, number in self.texts.citations:
            if (sentence, number) in self.texts.checked_citations:
                item = next(said)
            else:
                why = "it is blank" if 0 < number <= there else "there is no such context"
                item = {"supported": False, "reason": why}
            text = self.texts.sentences["answer"][sentence - 1]
            yield {"sentence": text, "context": number, **item}
