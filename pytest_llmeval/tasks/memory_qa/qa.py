"""Conversational-memory QA in Python: running an agent over samples, and aggregating its answers.

Thin functions over the same core as suites, for programs that drive their own loop. Predicting, judging and
aggregating are separate steps, so that metrics can be computed again without running the model.
"""

__all__ = (
    "ALL_METRICS",
    "Agent",
    "EvalResult",
    "QAPair",
    "QuestionType",
    "Sample",
    "batch_judge",
    "compute_metrics",
    "import_cache",
    "is_unanswerable",
    "judge_answer",
    "run_eval",
    "token_f1",
)

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import MissingDataError, format_error
from pytest_llmeval.core.parts import Parts
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.judge.answers import batch_judge, import_cache, is_unanswerable, judge_answer
from pytest_llmeval.run.score import score
from pytest_llmeval.services.secrets import presentable
from pytest_llmeval.suite.registry import default_registry, get_evaluator
from pytest_llmeval.tasks.memory_qa.saved import SavedResults

_METEOR = "meteor"
_TEXT = ("exact_match", "f1", "rouge1", "rouge2", "rougeL", "bleu1", "bleu2", "bleu4", _METEOR)
_SEMANTIC = ("bert_f1", "sbert_similarity")

ALL_METRICS = ("judge_score", *_TEXT, *_SEMANTIC)
"""The twelve metrics, in the order of their tables."""


class QuestionType(StrEnum):
    """The question types of LoCoMo (first five) and LongMemEval."""

    SINGLE_HOP = "single_hop"
    MULTI_HOP = "multi_hop"
    TEMPORAL = "temporal"
    OPEN_DOMAIN = "open_domain"
    ADVERSARIAL = "adversarial"
    SINGLE_SESSION_USER = "single_session_user"
    SINGLE_SESSION_ASSISTANT = "single_session_assistant"
    SINGLE_SESSION_PREFERENCE = "single_session_preference"
    TEMPORAL_REASONING = "temporal_reasoning"
    KNOWLEDGE_UPDATE = "knowledge_update"
    MULTI_SESSION = "multi_session"


@dataclass(frozen=True, slots=True)
class QAPair:
    """A question about a sample, with its gold answer."""

    question_id: str
    question: str
    answer: str
    question_type: QuestionType


@dataclass(frozen=True, slots=True)
class Sample:
    """A conversation history and the questions about it."""

    sample_id: str
    conversation: Any
    qa_pairs: Sequence[QAPair]


@dataclass(frozen=True, slots=True)
class EvalResult:
    """One question and its answer; plain data, so ``asdict`` saves it and ``EvalResult(**row)`` reads it back.

    Attributes:
        prediction: The answer, or an object with it under ``answer``; empty where there is none.
        error: Why there is none; then no metric has a score.
    """

    sample_id: str
    question_id: str
    question_type: QuestionType
    question: str
    ground_truth: str
    prediction: Any
    error: str = ""


class Memory(Protocol):
    """What an agent remembers with."""

    def reset(self) -> None:
        """Forget everything."""


class Agent(Protocol):
    """What `run_eval` drives."""

    @property
    def memory(self) -> Memory:
        """What is forgotten before each sample."""

    def ingest_sample(self, sample: Sample) -> None:
        """Read a sample's conversation into memory."""

    def answer(self, question: str) -> Any:
        """Answer a question from memory: text, or an object with it under ``answer``."""


def run_eval(
    dataset: Iterable[Sample],
    agent: Agent,
    *,
    show_progress: bool = True,
    save: str | Path | None = None,
    resume: str | Path | None = None,
) -> list[EvalResult]:
    """Ask an agent every question of every sample; its memory is reset before each sample.

    Neither judges nor scores. An exception of the agent costs the questions that it concerns, whose results say why.

    Args:
        dataset: The samples.
        agent: Answers from memory.
        show_progress: Show a progress bar on standard error.
        save: A JSONL file to which every result is added as it arrives; it must not exist, unless it is resumed.
        resume: Such a file of an earlier run, which may be absent. What it answers is not asked again; what got an
            error is. New results are added to it, unless `save` names another file. A sample all of whose questions are
            answered is not read into memory.

    Returns:
        One result per question, in order.

    Raises:
        FileExistsError: `save` exists.
        SuiteError: `resume` holds something else than results.
        OSError: A result cannot be written.
    """
    from tqdm import tqdm

    saved = SavedResults.open(save, resume)
    results = []
    for sample in tqdm(dataset, desc="samples", disable=not show_progress):
        known = [saved.known(sample.sample_id, pair.question_id, pair.question) for pair in sample.qa_pairs]
        failure = _prepared(agent, sample) if None in known or not known else ""
        for pair, row in zip(sample.qa_pairs, known, strict=True):
            if row is not None:
                results.append(EvalResult(**{**row, "question_type": QuestionType(row["question_type"])}))
                continue
            results.append(_asked(agent, sample, pair, failure))
            saved.add(asdict(results[-1]))
    return results


def _prepared(agent: Agent, sample: Sample) -> str:
    """Have an agent read a sample; return why it could not."""
    try:
        agent.memory.reset()
        agent.ingest_sample(sample)
    except Exception as error:  # noqa: BLE001 (the agent is the user's)
        return presentable(format_error(error))
    return ""


def _asked(agent: Agent, sample: Sample, pair: QAPair, failure: str) -> EvalResult:
    prediction: Any = ""
    if not failure:
        try:
            prediction = Parts().find("answer", agent.answer(pair.question))
        except Exception as error:  # noqa: BLE001 (as above)
            failure = presentable(format_error(error))
        if not isinstance(prediction, str):
            prediction, failure = "", f"the agent returned {describe_found(prediction)}, expected text"
    return EvalResult(
        sample_id=sample.sample_id,
        question_id=pair.question_id,
        question_type=QuestionType(pair.question_type),
        question=pair.question,
        ground_truth=pair.answer,
        prediction=prediction,
        error=failure,
    )


def compute_metrics(
    results: Sequence[EvalResult],
    judge_scores: Sequence[float | None],
    *,
    metrics: Sequence[str] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Aggregate answers and judge scores, overall and by question type.

    Args:
        results: From `run_eval`.
        judge_scores: One per result, from 0 to 1; ``None`` if the judge gave no verdict, or there is no answer.
        metrics: A part of `ALL_METRICS`; ``None`` computes all twelve.
        options: Of the evaluators that compute them, such as ``tokenizer`` or ``sbert_model``.

    Returns:
        ``{"overall": {metric: mean}, "by_type": {type: {metric: mean, "count": n}}}``. A mean over no score is
        ``None``; without any result ``overall`` is all zeros and ``by_type`` empty, as callers of the original rely on.
        Beside these stand, where they apply:

        * ``"judged"``: how many verdicts ``judge_score`` rests on, ``{"overall": n, "by_type": {type: n}}``;
        * ``"errored"``: how many results have an error, and so no score;
        * ``"missing"``: ``{"meteor": why}`` if WordNet is not installed; then METEOR is ``None``, the others are not.

    Raises:
        ValueError: An unknown metric or option, or not one judge score per result.
        ImportError: A semantic metric was asked for and its packages are not installed.
    """
    wanted = list(ALL_METRICS if metrics is None else metrics)
    unknown = [name for name in wanted if name not in ALL_METRICS]
    if unknown:
        raise ValueError(f"found the unknown metrics {unknown}, expected some of {', '.join(ALL_METRICS)}")
    if len(judge_scores) != len(results):
        raise ValueError(f"found {len(judge_scores)} judge scores for {len(results)} results, expected one for each")
    if not results:
        return {"overall": dict.fromkeys(wanted, 0.0), "by_type": {}}
    cases = [
        Case(
            str(number),
            each.question,
            each.ground_truth,
            each.prediction,
            {"type": QuestionType(each.question_type).value},
        )
        for number, each in enumerate(results)
    ]
    answered = [row for row, each in enumerate(results) if not each.error]
    missing: dict[str, str] = {}
    columns = {
        name: _spread(column, answered, len(cases))
        for name, column in _scores([cases[row] for row in answered], wanted, options, missing).items()
    }
    columns["judge_score"] = _spread([judge_scores[row] for row in answered], answered, len(cases))
    types: dict[str, list[int]] = {}
    for row, case in enumerate(cases):
        types.setdefault(case.labels["type"], []).append(row)
    return {
        "overall": _means(columns, wanted, range(len(cases))),
        "by_type": {name: {**_means(columns, wanted, rows), "count": len(rows)} for name, rows in types.items()},
        **({"judged": _judged(columns["judge_score"], types)} if "judge_score" in wanted else {}),
        **({"errored": len(cases) - len(answered)} if len(answered) < len(cases) else {}),
        **({"missing": missing} if missing else {}),
    }


def _judged(scores: Sequence[float | None], types: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return how many results have a judge score, overall and by type."""
    by_type = {name: sum(scores[row] is not None for row in rows) for name, rows in types.items()}
    return {"overall": sum(by_type.values()), "by_type": by_type}


def _spread(scores: Sequence[float | None], rows: Sequence[int], length: int) -> list[float | None]:
    """Return a column in which the other rows have no score."""
    given = dict(zip(rows, scores, strict=True))
    return [given.get(row) for row in range(length)]


def _scores(
    cases: Sequence[Case], wanted: Sequence[str], options: Mapping[str, Any], missing: dict[str, str]
) -> dict[str, list[float | None]]:
    """Return the scores of each case by metric; METEOR without WordNet has none, and `missing` gets the reason."""
    columns: dict[str, list[float | None]] = {}
    families = {"text": _TEXT, "semantic": _SEMANTIC}
    known = {name: [each.name for each in fields(default_registry().get(name))] for name in families}
    unknown = [option for option in options if all(option not in own for own in known.values())]
    if unknown:
        raise ValueError(f"found the unknown options {unknown}, expected some of {', '.join(chain(*known.values()))}")
    for name, family in families.items():
        asked = [metric for metric in wanted if metric in family]
        if asked:
            own = {option: value for option, value in options.items() if option in known[name]}
            try:
                scored = score(get_evaluator(name, metrics=asked, **own), cases, confidence=None).cases
            except MissingDataError as error:
                missing[_METEOR] = str(error)
                columns[_METEOR] = [None] * len(cases)
                asked.remove(_METEOR)
                scored = score(get_evaluator(name, metrics=asked, **own), cases, confidence=None).cases if asked else []
            columns.update({metric: [case.metrics.get(metric) for case in scored] for metric in asked})
    return columns


def _means(
    columns: Mapping[str, Sequence[float | None]], wanted: Sequence[str], rows: Sequence[int]
) -> dict[str, float | None]:
    means: dict[str, float | None] = {}
    for name in wanted:
        present = [value for row in rows if (value := columns[name][row]) is not None]
        means[name] = math.fsum(present) / len(present) if present else None
    return means


def token_f1(prediction: str, ground_truth: str) -> float:
    """Return the SQuAD-style token F1 of two texts, by the original word rule (lower case, ``. , ! ?`` as spaces)."""
    value: float | None = get_evaluator("text", metrics=["f1"], tokenizer="words").evaluate(prediction, ground_truth)[
        "f1"
    ]
    return value or 0.0
