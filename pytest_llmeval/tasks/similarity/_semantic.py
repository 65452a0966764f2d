"""Evaluator ``semantic``: similarity in meaning by neural models (BERTScore, sentence embeddings)."""

import importlib
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import Any, TypeAlias

from pytest_llmeval.core import (
    Case,
    Evaluator,
    EvaluatorError,
    FloatArray,
    JudgeError,
    LlmevalError,
    Metric,
    MissingDataError,
    MissingExtraError,
    Observation,
    Reads,
    Sums,
    unknown_name,
)
from pytest_llmeval.evaluators import AnswerValue, References
from pytest_llmeval.judges import JudgedEvaluator, JudgeSpec, Patience, Price, Question, Verdict
from pytest_llmeval.tasks.similarity._embeddings import SIMILARITY, EmbeddingJudge

_UNLIMITED = 1_000_000
"""A tokenizer whose limit is above this knows none."""


def word_model(name: str, layers: int | None, device: str | None) -> "WordModel":
    """The model of BERTScore with a name or folder, loaded once.

    Raises:
        MissingExtraError: Package bert-score is not installed.
        MissingDataError: The model could not be loaded.
        EvaluatorError: `layers` is not given and bert-score has no default for the model.
    """
    _package("bert_score")
    model: WordModel = _loaded(_load_word_model, name, layers, device)
    return model


def sentence_model(name: str, device: str | None) -> Any:
    """The ``SentenceTransformer`` with a name or folder, loaded once.

    Raises:
        MissingExtraError: Package sentence-transformers is not installed.
        MissingDataError: The model could not be loaded.
    """
    _package("sentence_transformers")
    return _loaded(_load_sentence_model, name, device)


@dataclass(frozen=True, slots=True)
class WordModel:
    """A model of BERTScore, with the functions of bert-score that run it."""

    utils: Any
    network: Any
    tokenizer: Any
    device: str

    def embed(self, texts: Sequence[str], batch_size: int) -> dict[str, tuple[Any, Any]]:
        """Return each text's vectors and weights, one per word piece (0 for the marks of start and end)."""
        weights: dict[int | None, float] = defaultdict(lambda: 1.0)
        weights |= {self.tokenizer.sep_token_id: 0.0, self.tokenizer.cls_token_id: 0.0}
        out: dict[str, tuple[Any, Any]] = {}
        for start in range(0, len(texts), batch_size):
            some = texts[start : start + batch_size]
            vectors, mask, weight = self.utils.get_bert_embedding(
                some, self.network, self.tokenizer, weights, device=self.device
            )
            for row, text in enumerate(some):
                size = int(mask[row].sum())
                out[text] = vectors[row, :size].cpu(), weight[row, :size].cpu()
        return out

    def f1(self, prediction: tuple[Any, Any], reference: tuple[Any, Any]) -> float:
        """Return BERTScore F1; 0 where a text has no word piece."""
        import torch

        if not (prediction[1].any() and reference[1].any()):
            return 0.0
        sides = []
        for vectors, weights in (reference, prediction):
            # bert-score scales its arguments in place.
            sides += [vectors[None].clone(), torch.ones(1, len(weights)), weights[None].clone()]
        return float(self.utils.greedy_cos_idf(*sides)[2])


def _load_word_model(name: str, layers: int | None, device: str | None) -> WordModel:
    """Load a BERTScore model and its tokenizer."""
    utils = _package("bert_score.utils")
    layers = utils.model2layers.get(name) if layers is None else layers
    if layers is None:
        raise EvaluatorError(f"bert_layers is missing: bert-score has no default for {name!r}")
    tokenizer = utils.get_tokenizer(name)
    place = _device(device)
    network = _prepared(utils.get_model(name, layers), place)
    if tokenizer.model_max_length > _UNLIMITED:
        # bert-score passes the limit on unchanged, and "no limit" is a number that overflows there. Models like
        # RoBERTa reserve 2 positions.
        tokenizer.model_max_length = getattr(network.config, "max_position_embeddings", 514) - 2
    return WordModel(utils, network, tokenizer, place)


def _load_sentence_model(name: str, device: str | None) -> Any:
    """Load a sentence embedding model."""
    package = _package("sentence_transformers")
    place = _device(device)
    return _prepared(package.SentenceTransformer(name, device=place), place)


def _device(device: str | None) -> str:
    """The device for the models of ``semantic``: the given one, else a GPU if there is one."""
    import torch

    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def _prepared(network: Any, device: str) -> Any:
    """A neural model ready for scoring on a device; on CPUs in double precision, so that scores repeat."""
    network = network.to(device).eval()
    return network.double() if device == "cpu" else network


def _package(name: str) -> Any:
    """Import an optional library of the evaluator ``semantic``; if it is absent, name the extra to install."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError("the evaluator 'semantic'", "semantic", error) from error


def _loaded(load: Callable[..., Any], name: str, *options: Any) -> Any:
    """Load a model of the evaluator ``semantic``; a failure names the ways to obtain it."""
    model, cause = _attempt(load, name, *options)
    if model is None:
        raise MissingDataError(
            f"cannot load model {name!r} ({cause}); name a folder that contains it, or run once with "
            "network access (HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE not set) to download it"
        )
    return model


@cache
def _attempt(load: Callable[..., Any], *options: Any) -> tuple[Any, str]:
    """Load a model of ``semantic`` once per process; a failure is kept, as each attempt may wait for the network."""
    try:
        with _quiet():
            return load(*options), ""
    except LlmevalError:
        raise
    except Exception as error:  # noqa: BLE001 - every model class and file format has its own exceptions
        return None, f"{type(error).__name__}: {error}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the progress bars and warnings of a loading neural model out of the test report."""
    logging = _package("transformers.utils.logging")
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


TextPair: TypeAlias = tuple[str, str]
"""A prediction and a reference, neither blank."""


def text_pairs(case: Case) -> list[TextPair]:
    """Pair a case's prediction with its reference texts for ``semantic``, leaving blank texts out."""
    prediction = AnswerValue(case.prediction).text or ""
    references = References.read(case.expected).texts
    return [(prediction, reference) for reference in references if prediction.strip() and reference.strip()]


EMBEDDING_SIMILARITY = "embedding_similarity"


class _MeaningEvaluator(Evaluator):
    """An evaluator that compares the meaning of a prediction with that of expected texts."""

    def check(self, case: Case) -> Iterable[str]:
        """Yield a fault of expected texts that are none."""
        if fault := References.read(case.expected).fault:
            yield fault

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say which words are missing, and which are extra: models give no reasons."""
        del observation
        references = References.read(case.expected)
        return references.word_lines(AnswerValue(case.prediction).text or "")


@dataclass(frozen=True)
class EmbeddedSemantic(_MeaningEvaluator, JudgedEvaluator):
    """Cosine of the embeddings of prediction and expected text, by a model that is asked over HTTP.

    Attributes:
        model: ``openai:NAME``, also of compatible servers.
        base_url: Where it is served; ``None`` for the provider's own address.
        api_key_env: The environment variable that holds the key; ``None`` for the provider's usual one.
        price: What it costs; ``None`` looks it up where it is published.
    """

    name = "semantic"
    reads = Reads("answer")

    model: str
    base_url: str | None = field(default=None, compare=False)
    api_key_env: str | None = field(default=None, compare=False)
    price: Price | None = field(default=None, compare=False)

    @property
    def own_model(self) -> JudgeSpec:
        """The model, which is asked in place of the suite's judge."""
        return JudgeSpec(self.model, self.base_url, api_key_env=self.api_key_env, price=self.price)

    def own_client(self, spec: JudgeSpec, patience: Patience) -> EmbeddingJudge:
        """Return the client of the model."""
        return EmbeddingJudge.connect(spec, patience)

    def describe(self) -> Sequence[Metric]:
        """Return the similarity."""
        signature = f"model:{self.model}|cosine|{SIMILARITY.name}@{SIMILARITY.version}|v:{self.version}"
        return [Metric(EMBEDDING_SIMILARITY, low=-1.0, signature=signature, averaged=True)]

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
        references = References.read(case.expected)
        if not references.texts:
            reason = references.fault or "no expected answer"
            return Observation({}, undefined={EMBEDDING_SIMILARITY: reason})
        for verdict in verdicts:
            if isinstance(verdict, JudgeError):
                raise verdict
        scores = [verdict.score for verdict in verdicts if isinstance(verdict, Verdict)]
        counts = {EMBEDDING_SIMILARITY: max(scores, default=0.0), "n": 1.0}
        readable = AnswerValue(case.prediction).text is not None
        fault = f"found {AnswerValue(case.prediction).kind}, expected text"
        return Observation(counts, malformed=None if readable else fault)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return the mean over the cases that have it."""
        return {EMBEDDING_SIMILARITY: sums[EMBEDDING_SIMILARITY] / sums["n"]}


_METRICS = ("bert_f1", "sbert_similarity")
_DECIMALS = 6


@dataclass(frozen=True)
class Semantic(_MeaningEvaluator):
    """BERTScore F1 and cosine similarity of sentence embeddings. Needs the extra ``semantic``.

    ``expected`` is a text or a list of texts (the best counts, for each metric by itself); the prediction is
    a text. Numbers and booleans are read as their JSON text.

    * ``bert_f1``: F1 of BERTScore (Zhang et al. 2020) as computed by package ``bert-score``, without idf
      weights and not rescaled; at most 1, and below 0 only in theory.
    * ``sbert_similarity``: cosine of the embeddings by package ``sentence-transformers``, in [-1, 1].
    * ``embedding_similarity``, with `model` and in place of the others: cosine of the embeddings by a model that is
      asked over HTTP, in [-1, 1]. It needs no extra; similarities are stored and recorded as verdicts of judges are.

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
        model: ``openai:NAME`` of a model of embeddings, also of compatible servers.
        base_url: Where `model` is served; ``None`` for the provider's own address.
        api_key_env: The environment variable that holds the key for `model`; ``None`` for the provider's usual one.
        price: What `model` costs; ``None`` looks it up where it is published.

    Raises:
        ValueError: An option has an impossible value.
    """

    name = "semantic"
    reads = Reads("answer")
    batch = 64

    metrics: tuple[str, ...] = _METRICS
    bert_model: str = "roberta-large"
    bert_layers: int | None = None
    sbert_model: str = "all-MiniLM-L6-v2"
    device: str | None = None
    batch_size: int = 32
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.model is not None:
            self._check_embedding()
            return
        for name in ("base_url", "api_key_env", "price"):
            if getattr(self, name) is not None:
                raise ValueError(f"found {name} without model, expected it with a model of embeddings")
        for metric in self.metrics:
            if metric not in _METRICS:
                raise ValueError(unknown_name("metric", metric, _METRICS))
        if self.batch_size < 1:
            raise ValueError(f"batch_size: found {self.batch_size}, expected at least 1")
        if self.bert_model.startswith("scibert"):
            # bert-score fetches models of these names by shell commands, even in offline mode.
            raise ValueError(f"bert_model: found {self.bert_model!r}, expected 'allenai/scibert_...' or a folder")

    def _check_embedding(self) -> None:
        spec = JudgeSpec(self.model, self.base_url, api_key_env=self.api_key_env, price=self.price)
        if spec.provider != "openai":
            raise ValueError(
                f"model: found {self.model!r}, expected openai:NAME, also for compatible servers (base_url)"
            )
        if self.metrics not in (_METRICS, (EMBEDDING_SIMILARITY,)):
            names = ", ".join(self.metrics) or "none"
            raise ValueError(f"metrics: found {names} with model, expected {EMBEDDING_SIMILARITY}")
        for name in ("bert_model", "bert_layers", "sbert_model", "device", "batch_size"):
            if getattr(self, name) != getattr(Semantic, name):
                raise ValueError(f"found {name} with model, expected it without: it is of local models")

    def resolve(self) -> Evaluator:
        """Return the evaluator that asks a model of embeddings, if `model` is set."""
        if self.model is None:
            return self
        return EmbeddedSemantic(self.model, self.base_url, self.api_key_env, self.price)

    def describe(self) -> Sequence[Metric]:
        """Return the chosen metrics."""
        layers = "default" if self.bert_layers is None else self.bert_layers
        library = f"transformers:{_transformers()}|v:{self.version}"
        how = {
            "bert_f1": f"model:{_display_name(self.bert_model)}|layer:{layers}|idf:no|rescaled:no",
            "sbert_similarity": f"model:{_display_name(self.sbert_model)}|cosine",
        }
        return [
            Metric(metric, low=-1.0, signature=f"{how[metric]}|{library}", averaged=True) for metric in self.metrics
        ]

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
        pairs = sorted({pair for case in cases for pair in text_pairs(case)})
        compute = {"bert_f1": self._bert_f1, "sbert_similarity": self._sbert_similarity}
        tables = {metric: compute[metric](pairs) if pairs else {} for metric in self.metrics}
        return [self._observe(case, tables) for case in cases]

    def _observe(self, case: Case, tables: Mapping[str, Mapping[TextPair, float]]) -> Observation:
        references = References.read(case.expected)
        if not references.texts:
            reason = references.fault or "no expected answer"
            return Observation({}, undefined=dict.fromkeys(self.metrics, reason))
        counts: dict[str, float] = {}
        for metric, table in tables.items():
            counts[metric] = max((table[pair] for pair in text_pairs(case)), default=0.0)
            counts[f"{metric}.n"] = 1
        readable = AnswerValue(case.prediction).text is not None
        return Observation(
            counts, malformed=None if readable else f"found {AnswerValue(case.prediction).kind}, expected text"
        )

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return the mean of each metric over the cases that have it."""
        return {metric: sums[metric] / sums[f"{metric}.n"] for metric in self.metrics}

    def _bert_f1(self, pairs: Sequence[TextPair]) -> dict[TextPair, float]:
        model = word_model(self.bert_model, self.bert_layers, self.device)
        words = model.embed(_texts(pairs), self.batch_size)
        return {pair: _rounded(model.f1(words[pair[0]], words[pair[1]])) for pair in pairs}

    def _sbert_similarity(self, pairs: Sequence[TextPair]) -> dict[TextPair, float]:
        import numpy as np

        texts = _texts(pairs)
        model = sentence_model(self.sbert_model, self.device)
        rows = np.asarray(model.encode(texts, batch_size=self.batch_size, show_progress_bar=False), dtype=float)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit = dict(zip(texts, rows / np.where(lengths == 0, 1.0, lengths), strict=True))
        return {pair: _rounded(float(unit[pair[0]] @ unit[pair[1]])) for pair in pairs}


def _texts(pairs: Iterable[TextPair]) -> list[str]:
    """The distinct texts for a neural model, sorted by length so that batches have similar lengths."""
    return sorted({text for pair in pairs for text in pair}, key=lambda text: (len(text), text))


def _rounded(score: float) -> float:
    """A semantic similarity, limited to [-1, 1] and rounded."""
    return round(min(1.0, max(-1.0, score)), _DECIMALS)


def _transformers() -> str:
    """The main version of the library that runs the models of ``semantic``: version 5 splits some texts differently."""
    try:
        return version("transformers").partition(".")[0]
    except PackageNotFoundError:
        return "none"


def _display_name(model: str) -> str:
    """The name of a neural model without the folder it is in on this machine."""
    path = PurePath(model)
    return path.name if path.is_absolute() or model.startswith(".") else model
