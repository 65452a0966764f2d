"""Evaluator ``text``: answers compared with reference answers by their words."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct

from pytest_llmeval.core import (
    Case,
    Evaluator,
    EvaluatorError,
    FloatArray,
    Metric,
    Observation,
    Reads,
    Sums,
    unknown_name,
)
from pytest_llmeval.evaluators._answers import AnswerText, AnswerValue, References
from pytest_llmeval.evaluators.measures._overlap import (
    BLEU,
    ROUGE,
    bleu_scores,
    exact_match,
    meteor_score,
    rouge_scores,
    token_f1,
)
from pytest_llmeval.evaluators.measures._tokens import Tokenizer

TextMetric: TypeAlias = Literal["exact_match", "f1", "rouge1", "rouge2", "rougeL", "bleu1", "bleu2", "bleu4", "meteor"]
"""A metric that the evaluator knows."""

METRICS: Final = get_args(TextMetric)

_ON_REQUEST: Final = frozenset({"meteor"})
"""Metrics that the option must name: they need data of a language."""

_DEFAULT: Final[tuple[TextMetric, ...]] = tuple(name for name in METRICS if name not in _ON_REQUEST)

_ABSENT = "no expected answer"

_HOW: Final = {
    "exact_match": "case:lower",
    "f1": "tok:{tokenizer}|case:lower",
    **dict.fromkeys(ROUGE, "tok:{tokenizer}|stem:{stem}|rouge-score:compatible"),
    **dict.fromkeys(BLEU, "tok:{tokenizer}|case:lower|smooth:method1|nltk:compatible"),
    "meteor": "tok:{tokenizer}|case:lower|alpha:0.9|beta:3|gamma:0.5|nltk:compatible",
}
"""The signature of each metric."""

_LOCOMO: Final = "locomo"
_LOCOMO_F1: Final = "locomo|stem:porter"
_CATEGORY: Final = "category"
"""The label with the category of a question of LoCoMo."""

Words: TypeAlias = Sequence[str]


class _Family(Struct, frozen=True):
    """Text metrics that count the same words, so that an answer is split once for all of them."""

    names: tuple[str, ...]
    tokenizer: str
    split: Callable[[str], Words]
    score: Callable[[Words, Words], Sequence[float]]

    def best(self, prediction: str, references: Iterable[str]) -> Sequence[float] | str:
        """The best score over the references for each metric, or why there is none."""
        blank = [0.0] * len(self.names)
        words = self.split(prediction) if prediction.strip() else ()
        results: list[Sequence[float]] = [
            self.score(words, expected_words) if words else blank
            for reference in references
            if reference.strip() and (expected_words := self.split(reference))
        ]
        if not results:
            return f"tokenizer {self.tokenizer!r} finds no token in the expected answer"
        return results[0] if len(results) == 1 else [max(scores) for scores in zip(*results, strict=True)]


@dataclass(frozen=True)
class TextEvaluator(Evaluator):
    """Exact match, token F1, ROUGE, BLEU and METEOR of an answer against one or more reference answers.

    ``expected`` is a text or a list of texts, ``prediction`` a text; numbers and booleans are read as their JSON
    text. With several references the best score counts, for each metric on its own. All metrics are in [0, 1], and
    the value of a suite is the mean over its cases. In exact match, two blank sides are equal.

    A metric of words is undefined if its tokenizer finds no token in any reference, such as an empty one. A reference
    without token is left out if others have some. A prediction that is blank, or has no token, scores 0.

    Attributes:
        metrics: Which of `METRICS`; ``meteor`` needs WordNet's data.
        tokenizer: ``auto``: each metric's own rule, extended to all scripts (East Asian characters count as
            words). ``words``: each metric's own rule as in its reference implementation; ``characters``;
            ``whitespace``; or a name given to `register_tokenizer`.
        wordnet: Folder of WordNet's database files; ``None`` looks where NLTK and Debian install them.
        ignore: What both texts are read without: ``citations`` are marks such as ``[1]``, ``[2, 3]`` and ``【4】``.
        effective_order: Whether BLEU leaves out n-grams that are longer than the answer, as sacrebleu does for
            sentences: a short answer that is the reference scores 1. Default: NLTK's rule, by which ``Paris`` has
            ``bleu4`` 0.178 against itself.
        f1: ``tokens``, or ``locomo`` for the F1 of LoCoMo's scorer: stems without articles, by the label ``category``.
            In category 5, which has no expected answer, it is 1 for an answer with ``not mentioned`` or ``no
            information available``, else 0.
    """

    name = "text"
    reads = Reads("answer")
    metrics: tuple[TextMetric, ...] = _DEFAULT
    tokenizer: str = "auto"
    wordnet: str | None = field(default=None, metadata={"path": True})
    ignore: tuple[Literal["citations"], ...] = ()
    effective_order: bool = False
    f1: Literal["tokens", "locomo"] = "tokens"

    def __post_init__(self) -> None:
        for name in self.metrics:
            if name not in METRICS:
                raise ValueError(unknown_name("metric", name, METRICS))
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise ValueError(f"found metrics {self.metrics!r}, expected one or more different names")
        if self.f1 not in ("tokens", _LOCOMO):
            raise ValueError(f"f1: found {self.f1!r}, expected 'tokens' or 'locomo'")
        Tokenizer.named(self.tokenizer)

    def describe(self) -> Sequence[Metric]:
        """The chosen metrics, in the order of the option."""
        stem = "porter" if Tokenizer.named(self.tokenizer).stems else "none"
        without = "|without:citations" if self.ignore else ""
        order = dict.fromkeys(BLEU, "|order:effective") if self.effective_order else {}
        how = {**_HOW, "f1": _LOCOMO_F1} if self.f1 == _LOCOMO else _HOW
        return [
            Metric(
                name,
                signature=f"{how[name].format(tokenizer=self.tokenizer, stem=stem)}{order.get(name, '')}{without}"
                f"|v:{self.version}",
                averaged=True,
            )
            for name in self.metrics
        ]

    def check(self, case: Case) -> Iterable[str]:
        """Yield the fault of an expected answer that is no text."""
        if fault := References.read(case.expected).fault:
            yield fault

    def measure(self, case: Case) -> Observation:
        """Score one answer; a prediction that is no text is malformed and scored as the empty text.

        Raises:
            EvaluatorError: If the expected answer is an object, or a list that holds anything but scalars.
            MissingDataError: If METEOR is asked for and WordNet is not installed.
        """
        accepted = References.read(case.expected)
        if accepted.fault:
            raise EvaluatorError(accepted.fault)
        prediction, fault = self._read(case.prediction)
        references = [self._remove_citations(reference) for reference in accepted.texts]
        malformed = fault if prediction is not None else f"found {AnswerValue(case.prediction).kind}, expected text"
        counts: dict[str, float] = {}
        undefined: dict[str, str] = {}
        by_locomo = self.f1 == _LOCOMO and "f1" in self.metrics
        if by_locomo and (value := _locomo_score(case, prediction or "", references)) is not None:
            counts |= {"f1": value, "f1.n": 1}
        if not references:
            undefined = {name: _ABSENT for name in self.metrics if name not in counts}
            return Observation(counts, undefined=undefined, malformed=malformed)
        if "exact_match" in self.metrics:
            counts["exact_match"] = max([exact_match(prediction or "", reference) for reference in references])
            counts["exact_match.n"] = 1
        for family in _metric_families(
            tuple(name for name in self.metrics if not (by_locomo and name == "f1")),
            self.tokenizer,
            self.wordnet,
            self.effective_order,
        ):
            best = family.best(prediction or "", references)
            if isinstance(best, str):
                undefined.update(dict.fromkeys(family.names, best))
                continue
            for name, score in zip(family.names, best, strict=True):
                counts[name] = score
                counts[f"{name}.n"] = 1
        if by_locomo and "f1" not in counts:
            undefined["f1"] = "the expected answer is empty"
        return Observation(counts, undefined=undefined, malformed=malformed)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say which words are missing, and which are extra."""
        del observation
        split = Tokenizer.named(self.tokenizer).f1
        references = [self._remove_citations(reference) for reference in References.read(case.expected).texts]
        return References(references).word_lines(self._read(case.prediction)[0] or "", split)

    def _read(self, prediction: Any) -> tuple[str | None, str | None]:
        """The answer after its thoughts, ``None`` if it is no text, and the fault of a reply that is cut off."""
        text = AnswerValue(prediction).text
        if text is None:
            return None, None
        spoken, fault = AnswerText(text).spoken()
        return self._remove_citations(spoken), fault or None

    def _remove_citations(self, text: str) -> str:
        return _CITATION.sub("", text) if self.ignore else text

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """The mean of each metric over the cases that have one."""
        return {name: sums[name] / sums[f"{name}.n"] for name in self.metrics}


def _locomo_score(case: Case, prediction: str, references: Iterable[str]) -> float | None:
    """The best F1 of an answer by LoCoMo's scorer; ``None`` if no expected answer has text."""
    from pytest_llmeval.evaluators.measures._locomo import ADVERSARIAL, locomo_f1, refuses

    category = case.labels.get(_CATEGORY, "")
    if category == ADVERSARIAL:
        return refuses(prediction)
    return max(
        (locomo_f1(prediction, reference, category) for reference in references if reference.strip()), default=None
    )


_CITATION = re.compile(
    r"(?<!\s)\s*+(?:[\[\uff3b]\^?\d{1,3}(?:\s?[,\uff0c;\u2013-]\s?\d{1,3})*+[\]\uff3d]|\u3010\d{1,3}[^\u3011]{0,40}\u3011)"
)


@lru_cache(maxsize=64)
def _metric_families(
    metrics: tuple[str, ...], tokenizer: str, wordnet: str | None, effective_order: bool
) -> list[_Family]:
    """The families of text metrics that an evaluator ``text`` computes, each with its words."""
    rule = Tokenizer.named(tokenizer)
    rouge = tuple(name for name in metrics if name in ROUGE)
    bleu = tuple(name for name in metrics if name in BLEU)
    families = [
        _Family(("f1",), tokenizer, rule.f1, lambda left, right: (token_f1(left, right),)),
        _Family(rouge, tokenizer, rule.rouge, partial(rouge_scores, names=rouge)),
        _Family(bleu, tokenizer, rule.bleu, partial(bleu_scores, names=bleu, effective_order=effective_order)),
        _Family(("meteor",), tokenizer, rule.meteor, lambda left, right: (meteor_score(left, right, wordnet),)),
    ]
    return [family for family in families if set(family.names) & set(metrics)]
