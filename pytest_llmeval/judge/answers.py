"""Judging answers in Python: a single one, or the results of a benchmark."""

__all__ = ("Judgeable", "batch_judge", "is_unanswerable", "judge_answer")

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.judge.contract import Question, Verdict
from pytest_llmeval.judge.direct import DirectJudges, Judgeable, Panel
from pytest_llmeval.judge.questions.modes import get_mode
from pytest_llmeval.judge.questions.rules import ADVERSARIAL, MODE_OF_TYPE, instruction_language, is_unanswerable, route

_LOG = logging.getLogger(__name__)
_ANSWER_MODES: Final = tuple(sorted({*MODE_OF_TYPE.values(), "abstention"}))
_AUTO: Final = "auto"
_CHUNK: Final = 32
"""Verdicts after which the file of scores is written: what a killed process may lose."""


class AnsweredQuestion(Protocol):
    """What `batch_judge` reads of a result."""

    @property
    def sample_id(self) -> str:
        """The conversation."""

    @property
    def question_id(self) -> str:
        """The question, within its conversation."""

    @property
    def question_type(self) -> str:
        """Decides the mode of judging."""

    @property
    def question(self) -> str:
        """What was asked."""

    @property
    def ground_truth(self) -> str:
        """The right answer."""

    @property
    def prediction(self) -> str:
        """The answer."""


def judge_answer(
    question: str,
    ground_truth: str,
    prediction: str,
    *,
    llm: Judgeable | Panel | None = None,
    mode: str = "continuous",
) -> float:
    """Return how right an answer is.

    Args:
        question: What was asked.
        ground_truth: The right answer.
        prediction: The answer.
        llm: The judge. A function gets the request, whose ``str`` is the whole prompt, and returns (or awaits) text.
        mode: ``continuous``, ``adversarial`` (a rule that needs no judge), ``temporal_reasoning``,
            ``knowledge_update``, ``preference``, ``default_binary`` or ``abstention``.

    Returns:
        A score from 0 to 1; 0 or 1 in all modes but ``continuous``.

    Raises:
        ValueError: The mode is unknown, or it needs a judge and there is none.
        JudgeError: The judge gave no verdict.

    Example:
        >>> judge_answer("Where?", "Paris", "In Paris", llm=lambda request: '{"score": 0.8}')
        0.8
    """
    _check_mode(mode, _ANSWER_MODES)
    task = _AnswerTask(mode, question, ground_truth, prediction)
    _check_judge(llm, [task])
    if (score := task.by_rule()) is not None:
        return score
    verdicts: list[Verdict | LlmevalError] = []
    with closing(DirectJudges.of(llm, workers=1)) as judges:
        judges.run([_ask(judges, task, verdicts.append)])
    (verdict,) = verdicts
    if isinstance(verdict, LlmevalError):
        raise verdict
    return verdict.score


async def _ask(judges: DirectJudges, task: "_AnswerTask", then: Callable[[Verdict | LlmevalError], None]) -> None:
    asked = judges.panel.bind(task.to_question(), "")
    then((await judges.judge(asked)).verdict)


def batch_judge(
    results: Sequence[AnsweredQuestion],
    *,
    llm: Judgeable | Panel | None,
    mode: str = _AUTO,
    cache_path: str | Path | None = None,
    max_workers: int = 8,
) -> list[float | None]:
    """Judge the results of a run, as many at once as allowed.

    Args:
        results: From `run_eval`. One with an ``error``, which was not answered, is not judged.
        llm: The judge, as for `judge_answer`. A plain function runs in several threads at once. A client is closed at
            the end, if it can be; those of this package may be used again.
        mode: ``auto``: by each result's question type, ``abstention`` where the question id ends in ``_abs``; or one
            mode for all.
        cache_path: A JSON file ``{sample_id/question_id#digest: score}``; the digest is that of mode, question, right
            answer and answer. Only missing results are judged and added, even if the judging is interrupted; what got
            no verdict is judged again the next time. The judge is no part of the key: use another file for another
            judge.
        max_workers: How many calls are made at once.

    Returns:
        A score from 0 to 1 for each result; ``None`` where there is no answer, and where the judge gave no verdict,
        which is logged.

    Raises:
        ValueError: An unknown mode, no judge although a score is missing that only one can give, or `max_workers`
            below 1.
        SuiteError: The file is damaged; it is left unchanged.
        OSError: The file cannot be written.
    """
    _check_mode(mode, [_AUTO, *_ANSWER_MODES])
    if max_workers < 1:
        raise ValueError(f"found max_workers {max_workers}, expected at least 1")
    answered = [row for row, each in enumerate(results) if not getattr(each, "error", "")]
    judged = _judged([results[row] for row in answered], llm, mode, cache_path, max_workers)
    by_row = dict(zip(answered, judged, strict=True))
    return [by_row.get(row) for row in range(len(results))]


def _judged(
    results: Sequence[AnsweredQuestion],
    llm: Judgeable | Panel | None,
    mode: str,
    cache_path: str | Path | None,
    max_workers: int,
) -> list[float | None]:
    tasks = [
        _AnswerTask(
            route(each.question_type, each.question_id) if mode == _AUTO else mode,
            each.question,
            each.ground_truth,
            each.prediction,
        )
        for each in results
    ]
    if cache_path is None:
        scores: list[float | None] = [None] * len(tasks)
        _judge_missing(tasks, llm, max_workers, scores, keep=lambda _row, _score: None)
        return scores
    from pytest_llmeval.judge.score_file import ScoreFile, score_key

    keys = [
        score_key(each.sample_id, each.question_id, astuple(task)) for each, task in zip(results, tasks, strict=True)
    ]
    once = dict(zip(keys, tasks, strict=True))
    order = list(once)
    file = ScoreFile.open(Path(cache_path))
    scores = [file.scores.get(key) for key in order]

    def keep(row: int, score: float) -> None:
        file.add(order[row], score)
        if file.unsaved >= _CHUNK:
            file.save()

    try:
        _judge_missing(list(once.values()), llm, max_workers, scores, keep)
    finally:
        file.save()
    by_key = dict(zip(order, scores, strict=True))
    return [by_key[key] for key in keys]


@dataclass(frozen=True, slots=True)
class _AnswerTask:
    mode: str
    question: str
    reference: str
    answer: str

    def by_rule(self) -> float | None:
        """Return the score where no judge is needed."""
        return float(is_unanswerable(self.answer)) if self.mode == ADVERSARIAL else None

    def to_question(self) -> Question:
        """Return the question to the judge."""
        texts = {"question": self.question, "reference": self.reference, "answer": self.answer}
        return Question(get_mode(self.mode), texts, instruction_language(self.question))


def _judge_missing(
    tasks: Sequence[_AnswerTask],
    llm: Any,
    workers: int,
    scores: list[float | None],
    keep: Callable[[int, float], None],
) -> None:
    """Fill in the missing scores; `keep` is called with each."""

    def fill(row: int, score: float) -> None:
        scores[row] = score
        keep(row, score)

    missing = {row: task for row, task in enumerate(tasks) if scores[row] is None}
    _check_judge(llm, missing.values())
    left: dict[int, _AnswerTask] = {}
    for row, task in missing.items():
        if (score := task.by_rule()) is not None:
            fill(row, score)
        else:
            left[row] = task
    if not left:
        return
    failed: dict[int, LlmevalError] = {}

    def judged(row: int, verdict: Verdict | LlmevalError) -> None:
        if isinstance(verdict, LlmevalError):
            failed[row] = verdict
        else:
            fill(row, verdict.score)

    with closing(DirectJudges.of(llm, workers)) as judges:
        judges.run(_ask(judges, task, partial(judged, row)) for row, task in left.items())
    if failed:
        _LOG.warning("%d of %d answers have no verdict; the first: %s", len(failed), len(left), failed[min(failed)])


def _check_mode(mode: str, known: Sequence[str]) -> None:
    if mode not in known:
        raise ValueError(unknown_name("mode", mode, known))


def _check_judge(llm: Judgeable | Panel | None, tasks: Iterable[_AnswerTask]) -> None:
    needy = [task.mode for task in tasks if task.by_rule() is None]
    if llm is None and needy:
        raise ValueError(f"found no judge: mode {needy[0]!r} needs one, pass llm")
