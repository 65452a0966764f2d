"""Conversational-memory QA in Python.

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
    "SavedResults",
    "batch_judge",
    "compute_metrics",
    "import_cache",
    "is_unanswerable",
    "judge_answer",
    "run_eval",
    "task_average",
    "to_table",
    "token_f1",
)

import errno
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, Final, Protocol

from pytest_llmeval.core import (
    AnyError,
    Case,
    Fault,
    MissingDataError,
    Mutator,
    Neighbours,
    Parts,
    SuiteError,
    grouped,
    unknown_name,
)
from pytest_llmeval.data import OutputFile
from pytest_llmeval.evaluators import AnswerText, AnswerValue, ChangeablePart, References
from pytest_llmeval.run import score
from pytest_llmeval.services import Secrets
from pytest_llmeval.suites import Registry, get_evaluator
from pytest_llmeval.tasks.memory_qa._answers import batch_judge, import_cache, judge_answer

_FIELDS = ("sample_id", "question_id", "question_type", "question", "ground_truth", "prediction")
_END = b"\n"


@dataclass
class SavedResults:
    """A memory agent's answers of an earlier run, and the file to which this run adds its results.

    Attributes:
        path: The file; ``None`` if nothing is saved.
    """

    path: Path | None
    _answered: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, save: str | Path | None, resume: str | Path | None) -> "SavedResults":
        """Read the file to resume, and make sure that the one to save to holds nothing else.

        Raises:
            FileExistsError: The file to save to exists.
            SuiteError: A line of the file to resume is no result.
        """
        earlier = Path(resume) if resume is not None else None
        path = Path(save) if save is not None else earlier
        if path is not None and path != earlier and path.exists():
            raise FileExistsError(errno.EEXIST, f"{os.strerror(errno.EEXIST)}; resume= continues it", str(path))
        saved = cls(path)
        if earlier is not None and earlier.exists():
            data = earlier.read_bytes()
            whole = data[: data.rfind(_END) + 1]  # a kill may have cut off the last line
            for row in _rows(earlier, whole):
                if not row.get("error"):
                    saved._answered[row["sample_id"], row["question_id"], row["question"]] = row
            if path == earlier and whole != data:
                os.truncate(earlier, len(whole))
        return saved

    def known(self, sample: str, question_id: str, question: str) -> Mapping[str, Any] | None:
        """Return the result of the earlier run for a question, if it was answered."""
        return self._answered.get((sample, question_id, question))

    def add(self, result: Mapping[str, Any]) -> None:
        """Add a result to the file.

        Raises:
            OSError: It cannot be written.
        """
        if self.path is not None:
            OutputFile(self.path).append_text(json.dumps(result) + "\n")


def _rows(path: Path, data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the rows of a results file that ``run_eval`` of memory QA wrote; any other line is a fault."""
    for number, line in enumerate(data.split(_END), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or any(not isinstance(row.get(name), str) for name in _FIELDS):
            message = f"found another line, expected a result of run_eval, with text under {', '.join(_FIELDS)}"
            raise SuiteError([Fault(str(path), number, 1, "", message)])
        yield row


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


def type_of(value: Any) -> QuestionType | str:
    """A memory question's type; an unknown one remains text."""
    try:
        return QuestionType(value)
    except ValueError:
        return str(value)


@dataclass(frozen=True, slots=True)
class QAPair:
    """A question about a conversation history, with its gold answer."""

    question_id: str
    question: str
    answer: str
    question_type: QuestionType | str


@dataclass(frozen=True, slots=True)
class Sample:
    """A conversation history and the questions about it."""

    sample_id: str
    conversation: Any
    qa_pairs: Sequence[QAPair]


@dataclass
class EvalResult:
    """One question and its answer; plain data, so ``asdict`` saves it and ``EvalResult(**row)`` reads it back.

    Attributes:
        question_type: A type that is unknown costs its question the verdict, and has a row of its own.
        prediction: The answer, or an object with it under ``answer``; empty if there is none.
        error: Why there is no answer; then no metric has a score.
    """

    sample_id: str
    question_id: str
    question_type: QuestionType | str
    question: str
    ground_truth: str
    prediction: Any
    error: str = ""


class Memory(Protocol):
    """The memory of an agent."""

    def reset(self) -> None:
        """Forget everything."""


class Agent(Protocol):
    """An agent that `run_eval` drives."""

    @property
    def memory(self) -> Memory:
        """The memory, which is reset before each sample."""

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
                results.append(EvalResult(**{**row, "question_type": type_of(row["question_type"])}))
                continue
            results.append(_result(agent, sample, pair, failure))
            saved.add(asdict(results[-1]))
    return results


def _prepared(agent: Agent, sample: Sample) -> str:
    """Have a memory agent read a sample's conversation; return the reason of a failure."""
    try:
        agent.memory.reset()
        agent.ingest_sample(sample)
    except Exception as error:  # noqa: BLE001 (the agent is the user's)
        return Secrets.of_variables().presentable(AnyError(error).text)
    return ""


def _result(agent: Agent, sample: Sample, pair: QAPair, failure: str) -> EvalResult:
    """Ask a memory agent one question and return its answer; an exception of the agent becomes the result's error."""
    prediction: Any = ""
    if not failure:
        try:
            prediction = Parts().find("answer", agent.answer(pair.question))
        except Exception as error:  # noqa: BLE001 (as above)
            failure = Secrets.of_variables().presentable(AnyError(error).text)
        if not isinstance(prediction, str):
            prediction, failure = "", f"the agent returned {AnswerValue(prediction).kind}, expected text"
    return EvalResult(
        sample_id=sample.sample_id,
        question_id=pair.question_id,
        question_type=type_of(pair.question_type),
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
        With these, where they apply:

        * ``"judged"``: how many verdicts ``judge_score`` rests on, ``{"overall": n, "by_type": {type: n}}``;
        * ``"errored"``: how many results have an error, and so no score;
        * ``"undefined"``: metric to how many other results have no score, since the tokenizer sees no word of the
          expected answer; an answer in which it sees none scores 0;
        * ``"missing"``: ``{"meteor": why}`` if WordNet is not installed; then METEOR is ``None``, the others are not.

    Raises:
        ValueError: An unknown metric or option, or not one judge score per result.
        ImportError: A semantic metric was asked for and its packages are not installed.
    """
    names = list(ALL_METRICS if metrics is None else metrics)
    unknown = [name for name in names if name not in ALL_METRICS]
    if unknown:
        raise ValueError("; ".join(unknown_name("metric", name, ALL_METRICS) for name in unknown))
    if len(judge_scores) != len(results):
        raise ValueError(f"found {len(judge_scores)} judge scores for {len(results)} results, expected one for each")
    if not results:
        return {"overall": dict.fromkeys(names, 0.0), "by_type": {}}
    cases = [
        Case(
            str(number),
            result.question,
            _reference(result),
            result.prediction,
            {"type": str(type_of(result.question_type))},
        )
        for number, result in enumerate(results)
    ]
    answered = [row for row, result in enumerate(results) if not result.error]
    missing: dict[str, str] = {}
    columns = {
        name: _spread(column, answered, len(cases))
        for name, column in _scores([cases[row] for row in answered], names, options, missing).items()
    }
    columns["judge_score"] = _spread([judge_scores[row] for row in answered], answered, len(cases))
    types = grouped((case.labels["type"], row) for row, case in enumerate(cases))
    absent = {
        name: sum(columns[name][row] is None for row in answered)
        for name in names
        if name not in missing and name != "judge_score"
    }
    undefined = {name: count for name, count in absent.items() if count}
    return {
        "overall": _means(columns, names, range(len(cases))),
        "by_type": {name: {**_means(columns, names, rows), "count": len(rows)} for name, rows in types.items()},
        **({"judged": _judged(columns["judge_score"], types)} if "judge_score" in names else {}),
        **({"errored": len(cases) - len(answered)} if len(answered) < len(cases) else {}),
        **({"undefined": undefined} if undefined else {}),
        **({"missing": missing} if missing else {}),
    }


def _reference(result: EvalResult) -> str | None:
    """The right answer of a memory question; ``None`` if the conversation does not answer it."""
    unanswerable = type_of(result.question_type) == QuestionType.ADVERSARIAL
    return None if unanswerable and not result.ground_truth else result.ground_truth


def task_average(metrics: Mapping[str, Any], metric: str = "judge_score") -> float | None:
    """Return the mean of a metric over the question types, as LongMemEval's task-averaged accuracy.

    Args:
        metrics: From `compute_metrics`.
        metric: The metric.

    Returns:
        The mean over the types that have a value, each with the same weight; ``None`` if none has.

    Example:
        >>> task_average({"by_type": {"temporal": {"f1": 1.0}, "single_hop": {"f1": 0.5}}}, "f1")
        0.75
    """
    values = [value for scores in metrics["by_type"].values() if (value := scores.get(metric)) is not None]
    return math.fsum(values) / len(values) if values else None


def _judged(scores: Sequence[float | None], types: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """The number of memory results with a judge score, overall and by question type."""
    by_type = {name: sum(scores[row] is not None for row in rows) for name, rows in types.items()}
    return {"overall": sum(by_type.values()), "by_type": by_type}


def _spread(scores: Sequence[float | None], rows: Sequence[int], length: int) -> list[float | None]:
    """A column of scores over all memory results, in which the other rows have no score."""
    by_row = dict(zip(rows, scores, strict=True))
    return [by_row.get(row) for row in range(length)]


def _scores(
    cases: Sequence[Case], names: Sequence[str], options: Mapping[str, Any], missing: dict[str, str]
) -> dict[str, list[float | None]]:
    """The scores of memory answers by metric; METEOR without WordNet has none, and `missing` gets the reason."""
    columns: dict[str, list[float | None]] = {}
    families = {"text": _TEXT, "semantic": _SEMANTIC}
    known = {name: [option.name for option in fields(Registry.installed().get(name))] for name in families}
    unknown = [option for option in options if all(option not in own for own in known.values())]
    if unknown:
        options_known = list(chain(*known.values()))
        raise ValueError("; ".join(unknown_name("option", name, options_known) for name in unknown))
    for name, family in families.items():
        metrics = [metric for metric in names if metric in family]
        if metrics:
            own = {option: value for option, value in options.items() if option in known[name]}
            try:
                scored = score(get_evaluator(name, metrics=metrics, **own), cases, confidence=None).cases
            except MissingDataError as error:
                missing[_METEOR] = str(error)
                columns[_METEOR] = [None] * len(cases)
                metrics.remove(_METEOR)
                scored = (
                    score(get_evaluator(name, metrics=metrics, **own), cases, confidence=None).cases if metrics else []
                )
            columns.update({metric: [case.metrics.get(metric) for case in scored] for metric in metrics})
    return columns


def _means(
    columns: Mapping[str, Sequence[float | None]], names: Sequence[str], rows: Sequence[int]
) -> dict[str, float | None]:
    """The mean of each metric over some memory questions, without those that have no score."""
    means: dict[str, float | None] = {}
    for name in names:
        present = [value for row in rows if (value := columns[name][row]) is not None]
        means[name] = math.fsum(present) / len(present) if present else None
    return means


def token_f1(prediction: str, ground_truth: str) -> float:
    """Return the SQuAD-style token F1 of two texts, by the original word rule (lower case, ``. , ! ?`` as spaces)."""
    value: float | None = get_evaluator("text", metrics=["f1"], tokenizer="words").evaluate(prediction, ground_truth)[
        "f1"
    ]
    return value or 0.0


_ABSENT = "n/a"


def to_table(systems: Mapping[str, Mapping[str, Any]], metric: str = "judge_score", *, digits: int = 3) -> str:
    """Return one metric of several systems by question type, as a Markdown table that is also readable in a terminal.

    A score that does not exist is ``n/a``. A judge score that rests on fewer verdicts than there are questions says so:
    ``0.500 (1/2)``.

    Args:
        systems: Name to what `compute_metrics` returns.
        metric: The metric.
        digits: Digits behind the decimal point.

    Raises:
        ValueError: A system has no such metric.

    Example:
        >>> from pytest_llmeval.qa import EvalResult, QuestionType, compute_metrics
        >>> kinds = (QuestionType.TEMPORAL, QuestionType.MULTI_HOP)
        >>> results = [EvalResult("s", kind, kind, "When?", "May", "May") for kind in kinds]
        >>> print(to_table({"a": compute_metrics(results, [1, None], metrics=["judge_score"])}))
        | system   |   multi_hop |   temporal |     overall |
        |:---------|------------:|-----------:|------------:|
        | a        |         n/a |      1.000 | 1.000 (1/2) |
    """
    from tabulate import tabulate

    for name, metrics in systems.items():
        if metric not in metrics["overall"]:
            raise ValueError(f"system {name!r}: {unknown_name('metric', metric, metrics['overall'])}")
    there = {kind for metrics in systems.values() for kind in metrics["by_type"]}
    known = [kind.value for kind in QuestionType]
    kinds = [*(kind for kind in known if kind in there), *sorted(there.difference(known))]
    rows = [
        [name, *(_cell(metrics, metric, kind, digits) for kind in (*kinds, None))] for name, metrics in systems.items()
    ]
    align = ("left", *["right"] * (len(kinds) + 1))
    return tabulate(rows, ["system", *kinds, "overall"], tablefmt="pipe", disable_numparse=True, colalign=align)


def _cell(metrics: Mapping[str, Any], metric: str, kind: str | None, digits: int) -> str:
    """A cell of the memory results table: a score, with the number of its verdicts if some lack one."""
    by_type = metrics["by_type"]
    value = (metrics["overall"] if kind is None else by_type.get(kind, {})).get(metric)
    if value is None:
        return _ABSENT
    few, judged = "", metrics.get("judged") if metric == "judge_score" else None
    if judged is not None:
        verdicts = judged["overall"] if kind is None else judged["by_type"].get(kind)
        count = sum(group["count"] for group in by_type.values()) if kind is None else by_type[kind]["count"]
        few = "" if verdicts in (None, count) else f" ({verdicts}/{count})"
    return f"{value:.{digits}f}{few}"


_TYPES: Final = frozenset(QuestionType)
_FORGOTTEN: Final = ("That is not mentioned in our conversations.", "我们的对话里没有提到过这一点。")


def _expected(case: Case) -> Sequence[str]:
    """The reference answers of a memory case; none without a question type of the benchmarks."""
    return References.of_case(case).texts if case.labels.get("question_type") in _TYPES else []


def is_unanswerable(text: str, *, original: bool = False) -> bool:
    """Whether an answer declares its question unanswerable.

    That is so if the text, without regard to case, outer white space, the form of apostrophes and final full stops, is
    empty, is one of ``n/a``, ``na``, ``none``, ``null`` and ``unanswerable``, or contains a phrase such as
    ``not mentioned``, ``I don't know`` or ``无法回答``, as ``taxonomies/unanswerable.yaml`` lists them. ``unknown`` is
    such a phrase, but ``the unknown`` is not.

    Args:
        text: The answer.
        original: Apply the rule of HiMGA's judge for LoCoMo to the letter: twelve English phrases, anywhere, and the
            values without a full stop.

    Example:
        >>> is_unanswerable("It is not mentioned."), is_unanswerable("我不知道。"), is_unanswerable("In Paris.")
        (True, True, False)
    """
    return AnswerText(text).is_unanswerable(original=original)


def _forgotten(case: Case, near: Neighbours) -> Any:
    """Replace a memory agent's answer by "I do not know", for a mutant of an answerable question."""
    del near
    answer, expected = ChangeablePart.of_text(case), _expected(case)
    if answer is None or not expected or any(map(is_unanswerable, expected)):
        return None
    return answer.put(_FORGOTTEN[AnswerText(answer.value).has_cjk])


def _made_up(case: Case, near: Neighbours) -> Any:
    """Answer an unanswerable memory question with the answer of another one, for a mutant."""
    answer, expected = ChangeablePart.of_text(case), _expected(case)
    if answer is None or not expected or not all(map(is_unanswerable, expected)):
        return None
    others = [
        each[0] for other in near.others if (each := References.of_case(other).texts) and not is_unanswerable(each[0])
    ]
    return answer.put(near.rng.choice(others)) if others else None


MUTATORS: Final = (
    Mutator(
        "forgotten",
        "it denies having been told what was said",
        _forgotten,
        "the evaluator `judge` with `mode: auto`, or a threshold on f1",
    ),
    Mutator(
        "made_up",
        "it answers a question that nobody can answer",
        _made_up,
        "the evaluator `judge` with `mode: auto`, or a threshold on f1",
    ),
)
"""Mutators of answers from memory."""
