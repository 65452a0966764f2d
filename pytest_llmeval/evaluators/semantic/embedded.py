"""Evaluator ``semantic`` with a model of embeddings that is asked over HTTP: no torch."""

__all__ = ("EMBEDDING_SIMILARITY", "EmbeddedSemantic")

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.evaluators.answers import as_references, as_text, describe_found
from pytest_llmeval.evaluators.measures.tokens import get_tokenizer
from pytest_llmeval.evaluators.semantic.texts import reference_fault, text_pairs
from pytest_llmeval.evaluators.word_lines import word_lines
from pytest_llmeval.judge.contract import Question, Verdict
from pytest_llmeval.judge.judged_evaluator import JudgedEvaluator
from pytest_llmeval.judge.questions.similarity import SIMILARITY
from pytest_llmeval.judge.spec import JudgeSpec, Price

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

EMBEDDING_SIMILARITY = "embedding_similarity"


@dataclass(frozen=True)
class EmbeddedSemantic(JudgedEvaluator):
    """Cosine of the embeddings of prediction and expected text, by a model that is asked over HTTP.

    Attributes:
        model: ``openai:NAME``, also of compatible servers.
        base_url: Where it is served; ``None`` for the provider's own address.
        api_key_env: The environment variable that holds the key; ``None`` for the provider's usual one.
        price: What it costs; ``None`` looks it up where it is published.
    """

    name = "semantic"
    part = "answer"

    model: str
    base_url: str | None = field(default=None, compare=False)
    api_key_env: str | None = field(default=None, compare=False)
    price: Price | None = field(default=None, compare=False)

    @property
    def own_model(self) -> JudgeSpec:
        """The model, which is asked in place of the suite's judge."""
        return JudgeSpec(self.model, self.base_url, api_key_env=self.api_key_env, price=self.price)

    def describe(self) -> Sequence[Metric]:
        """Return the similarity."""
        signature = f"model:{self.model}|cosine|{SIMILARITY.name}@{SIMILARITY.version}|v:{self.version}"
        return [Metric(EMBEDDING_SIMILARITY, low=-1.0, signature=signature)]

    def check(self, case: Case) -> Iterable[str]:
        """Yield a fault of expected texts that are none."""
        if as_references(case.expected) is None:
            yield reference_fault(case.expected)

    def questions(self, case: Case) -> Sequence[Question]:
        """Return one question for each expected text that is not blank; none for a blank prediction."""
        return [
            Question(SIMILARITY, {"answer": answer, "reference": reference}) for answer, reference in text_pairs(case)
        ]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Count the highest similarity.

        Raises:
            JudgeError: There is none.
        """
        references = as_references(case.expected)
        if not references:
            reason = "no expected answer" if references == [] else reference_fault(case.expected)
            return Observation({}, undefined={EMBEDDING_SIMILARITY: reason})
        for each in verdicts:
            if isinstance(each, JudgeError):
                raise each
        scores = [each.score for each in verdicts if isinstance(each, Verdict)]
        counts = {EMBEDDING_SIMILARITY: max(scores, default=0.0), "n": 1.0}
        readable = as_text(case.prediction) is not None
        found = f"found {describe_found(case.prediction)}, expected text"
        return Observation(counts, malformed=None if readable else found)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say which words are missing, and which are extra: models give no reasons."""
        del observation
        references = as_references(case.expected) or ()
        return word_lines(as_text(case.prediction) or "", references, get_tokenizer("auto").f1)

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return the mean over the cases that have it."""
        return {EMBEDDING_SIMILARITY: sums[EMBEDDING_SIMILARITY] / sums["n"]}
