"""Evaluator ``semantic``: similarity in meaning by neural models (BERTScore, sentence embeddings)."""

__all__ = ("Semantic",)

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.evaluator import Evaluator, Metric
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.evaluators.answers import as_references, as_text, describe_found
from pytest_llmeval.evaluators.measures.tokens import get_tokenizer
from pytest_llmeval.evaluators.semantic.models import sentence_model, word_model
from pytest_llmeval.evaluators.word_lines import word_lines

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_METRICS = ("bert_f1", "sbert_similarity")
_DECIMALS = 6

_Pair: TypeAlias = tuple[str, str]
"""A prediction and a reference, neither blank."""


@dataclass(frozen=True)
class Semantic(Evaluator):
    """BERTScore F1 and cosine similarity of sentence embeddings. Needs the extra ``semantic``.

    ``expected`` is a text or a list of texts (the best counts, for each metric by itself); the prediction is
    a text. Numbers and booleans are read as their JSON text.

    * ``bert_f1``: F1 of BERTScore (Zhang et al. 2020) as computed by package ``bert-score``, without idf
      weights and not rescaled; at most 1, and below 0 only in theory.
    * ``sbert_similarity``: cosine of the embeddings by package ``sentence-transformers``, in [-1, 1].

    Blank text has no meaning: a blank prediction scores 0 on both metrics (as bert-score has it), and so does
    any prediction if all references are blank; beside other references, blank ones are left out. Models cut
    off what is longer than they can read. Scores are rounded to 6 decimals. On a CPU the models run in double
    precision, so that a score does not depend on the other texts of its batch; elsewhere its last digit may.

    Attributes:
        metrics: Which metrics to compute.
        bert_model: Name or folder of the model of ``bert_f1``.
        bert_layers: Which layer's output ``bert_f1`` compares; by default bert-score's choice for the model.
        sbert_model: Name or folder of the model of ``sbert_similarity``.
        device: ``cpu``, ``cuda``, ``cuda:1`` ...; by default a CUDA device if there is one, else the CPU.
        batch_size: How many texts a model reads at once.

    Raises:
        ValueError: An option has an impossible value.
    """

    name = "semantic"
    part = "answer"
    batch = 64

    metrics: tuple[str, ...] = _METRICS
    bert_model: str = "roberta-large"
    bert_layers: int | None = None
    sbert_model: str = "all-MiniLM-L6-v2"
    device: str | None = None
    batch_size: int = 32

    def __post_init__(self) -> None:
        for metric in self.metrics:
            if metric not in _METRICS:
                raise ValueError(unknown_name("metric", metric, _METRICS))
        if self.batch_size < 1:
            raise ValueError(f"batch_size: found {self.batch_size}, expected at least 1")
        if self.bert_model.startswith("scibert"):
            # bert-score fetches models of these names by shell commands, even in offline mode.
            raise ValueError(f"bert_model: found {self.bert_model!r}, expected 'allenai/scibert_...' or a folder")

    def describe(self) -> Sequence[Metric]:
        """Return the chosen metrics."""
        layers = "default" if self.bert_layers is None else self.bert_layers
        library = f"transformers:{_transformers()}|v:{self.version}"
        how = {
            "bert_f1": f"model:{_shown(self.bert_model)}|layer:{layers}|idf:no|rescaled:no",
            "sbert_similarity": f"model:{_shown(self.sbert_model)}|cosine",
        }
        return [Metric(each, low=-1.0, signature=f"{how[each]}|{library}") for each in self.metrics]

    def check(self, case: Case) -> Iterable[str]:
        """Yield a fault of expected texts that are none."""
        if as_references(case.expected) is None:
            yield _fault(case.expected)

    def measure(self, case: Case) -> Observation:
        """Score one case, as a batch of one."""
        return self.measure_many([case])[0]

    def measure_many(self, cases: Sequence[Case]) -> list[Observation]:
        """Score cases together; each distinct text is read by each model once.

        Raises:
            MissingExtraError: A package is not installed.
            MissingDataError: A model could not be loaded.
            EvaluatorError: `bert_layers` is needed and not given.
        """
        pairs = sorted({pair for case in cases for pair in _pairs(case)})
        compute = {"bert_f1": self._bert_f1, "sbert_similarity": self._sbert_similarity}
        tables = {metric: compute[metric](pairs) if pairs else {} for metric in self.metrics}
        return [self._observe(case, tables) for case in cases]

    def _observe(self, case: Case, tables: Mapping[str, Mapping[_Pair, float]]) -> Observation:
        references = as_references(case.expected)
        if not references:
            reason = "no expected answer" if references == [] else _fault(case.expected)
            return Observation({}, undefined=dict.fromkeys(self.metrics, reason))
        counts: dict[str, float] = {}
        for metric, table in tables.items():
            counts[metric] = max((table[pair] for pair in _pairs(case)), default=0.0)
            counts[f"{metric}.n"] = 1
        readable = as_text(case.prediction) is not None
        return Observation(
            counts, malformed=None if readable else f"found {describe_found(case.prediction)}, expected text"
        )

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say which words are missing, and which are extra: models give no reasons."""
        del observation
        references = as_references(case.expected) or ()
        return word_lines(as_text(case.prediction) or "", references, get_tokenizer("auto").f1)

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return the mean of each metric over the cases that have it."""
        return {metric: sums[metric] / sums[f"{metric}.n"] for metric in self.metrics}

    def _bert_f1(self, pairs: Sequence[_Pair]) -> dict[_Pair, float]:
        model = word_model(self.bert_model, self.bert_layers, self.device)
        words = model.embed(_texts(pairs), self.batch_size)
        return {pair: _rounded(model.f1(words[pair[0]], words[pair[1]])) for pair in pairs}

    def _sbert_similarity(self, pairs: Sequence[_Pair]) -> dict[_Pair, float]:
        import numpy as np

        texts = _texts(pairs)
        model = sentence_model(self.sbert_model, self.device)
        rows = np.asarray(model.encode(texts, batch_size=self.batch_size, show_progress_bar=False), dtype=float)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit = dict(zip(texts, rows / np.where(lengths == 0, 1.0, lengths), strict=True))
        return {pair: _rounded(float(unit[pair[0]] @ unit[pair[1]])) for pair in pairs}


def _pairs(case: Case) -> list[_Pair]:
    """Pair a case's prediction with its references, leaving blank texts out."""
    prediction = as_text(case.prediction) or ""
    references = as_references(case.expected) or []
    return [(prediction, each) for each in references if prediction.strip() and each.strip()]


def _texts(pairs: Iterable[_Pair]) -> list[str]:
    """Return the distinct texts, short ones first, so that texts read together have about the same length."""
    return sorted({text for pair in pairs for text in pair}, key=lambda text: (len(text), text))


def _rounded(score: float) -> float:
    return round(min(1.0, max(-1.0, score)), _DECIMALS)


def _fault(expected: Any) -> str:
    """Say what is wrong with ground truth that is neither text nor a list of texts."""
    if isinstance(expected, (list, tuple)):
        found = next(describe_found(each) for each in expected if as_text(each) is None) + " in the list"
    else:
        found = describe_found(expected)
    return f"found {found}, expected text or a list of texts"


def _transformers() -> str:
    """Return the main version of the library that runs the models: version 5 splits some texts otherwise."""
    try:
        return version("transformers").partition(".")[0]
    except PackageNotFoundError:
        return "none"


def _shown(model: str) -> str:
    """Return a model's name without the folder it is in on this machine."""
    path = PurePath(model)
    return path.name if path.is_absolute() or model.startswith(".") else model
