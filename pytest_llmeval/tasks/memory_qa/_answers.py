"""Judging answers in Python."""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from pytest_llmeval.core import Fault, LlmevalError, Parts, SuiteError, unknown_name
from pytest_llmeval.evaluators import AnswerText
from pytest_llmeval.judges import (
    Asking,
    Judgeable,
    ModeFile,
    Panel,
    PromptFile,
    Question,
    TypedQuestion,
    Verdict,
)

if TYPE_CHECKING:
    from pytest_llmeval.judges import JudgeScoreFile

_LOG = logging.getLogger(__name__)
_ANSWER_MODES: Final = TypedQuestion.ALL_MODES
_AUTO: Final = "auto"
_TEXTS: Final = ("question", "reference", "answer")
Unanswerable: TypeAlias = Literal["auto", "original"]
_ORIGINAL: Final = "original"
_CHUNK: Final = 32
"""Verdicts after which the file of scores is written: what a killed process may lose."""


class AnsweredQuestion(Protocol):
    """The part of a memory agent's result that `batch_judge` reads."""

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
        """The question."""

    @property
    def ground_truth(self) -> str:
        """The right answer."""

    @property
    def prediction(self) -> Any:
        """The answer, or an object with it under ``answer``."""


def judge_answer(
    question: str,
    ground_truth: str,
    prediction: str,
    *,
    llm: Judgeable | Panel | None = None,
    mode: str = "continuous",
    prompt: str | Path | None = None,
    unanswerable: Unanswerable = "auto",
) -> float:
    """The degree to which an answer is right.

    Args:
        question: What was asked.
        ground_truth: The right answer.
        prediction: The answer, or an object with it under ``answer``.
        llm: The judge. A function gets the request, whose ``str`` is the whole prompt, and returns (or awaits) text.
        mode: ``continuous``, ``adversarial`` (a rule that needs no judge), ``temporal_reasoning``,
            ``knowledge_update``, ``preference``, ``default_binary`` or ``abstention``.
        prompt: A file of instructions in place of those of the mode, with ``{{ question }}``, ``{{ reference }}`` and
            ``{{ answer }}``; it asks for a reply of the form that the mode has.
        unanswerable: ``original``: mode ``adversarial`` applies the rule of HiMGA's judge to the letter.

    Returns:
        A score from 0 to 1; 0 or 1 in all modes but ``continuous``.

    Raises:
        ValueError: The mode is unknown, it needs a judge and there is none, or the prediction is no text.
        SuiteError: The prompt cannot be read.
        JudgeError: The judge gave no verdict.

    Example:
        >>> judge_answer("Where?", "Paris", "In Paris", llm=lambda request: '{"score": 0.8}')
        0.8
    """
    _check_mode(mode, _ANSWER_MODES)
    answer = _answer_text(prediction)
    if answer is None:
        raise ValueError(f"found {type(prediction).__name__} as the prediction, expected text")
    if prompt is not None and mode == TypedQuestion.RULE:
        raise ValueError("found a prompt for mode 'adversarial', which a rule decides, expected another mode")
    own = _read_prompt(prompt) if prompt is not None else None
    task = _AnswerTask(mode, question, ground_truth, answer, own, unanswerable == _ORIGINAL)
    _check_judge(llm, [task])
    if (score := task.by_rule()) is not None:
        return score
    verdicts: list[Verdict | LlmevalError] = []
    _ask(llm, [(task, verdicts.append)], workers=1)
    (verdict,) = verdicts
    if isinstance(verdict, LlmevalError):
        raise verdict
    return verdict.score


def _ask(
    llm: Any, tasks: "Iterable[tuple[_AnswerTask, Callable[[Verdict | LlmevalError], None]]]", workers: int
) -> None:
    """Ask a judge about memory answers, and pass each verdict to the function next to its task."""
    questions = ((task.to_question, then) for task, then in tasks)
    Asking.pass_verdicts(questions, llm, workers)


def batch_judge(
    results: Sequence[AnsweredQuestion],
    *,
    llm: Judgeable | Panel | None,
    mode: str = _AUTO,
    cache_path: str | Path | None = None,
    max_workers: int = 8,
    prompts: Mapping[str, str | Path] | None = None,
    unanswerable: Unanswerable = "auto",
) -> list[float | None]:
    """Judge the results of a run, as many at once as allowed.

    Args:
        results: From `run_eval`. One with an ``error``, which was not answered, is not judged, and neither is one whose
            prediction has no text.
        llm: The judge, as for `judge_answer`. A plain function runs in several threads at once. A client is closed at
            the end, if it can be; those of this package may be used again.
        mode: ``auto``: by each result's question type, ``abstention`` where the question id ends in ``_abs``; or one
            mode for all.
        cache_path: A JSON file ``{sample_id/question_id#digest: score}``; the digest is that of mode, question, right
            answer and answer. Only missing results are judged and added, even if the judging is interrupted; what got
            no verdict is judged again the next time. The judge is no part of the key: use another file for another
            judge. A file ``{question_id: score}`` is read as well: ids that belong to one result get its full key.
        max_workers: How many calls are made at once.
        prompts: Question type (``abstention`` for ids that end in ``_abs``) to a file of instructions, as the prompt of
            `judge_answer`; with mode ``auto``. Verdicts by a prompt have keys of their own.
        unanswerable: As for `judge_answer`.

    Returns:
        A score from 0 to 1 for each result; ``None`` where there is no answer, where the question type is unknown, and
        where the judge gave no verdict. The latter two are logged.

    Raises:
        ValueError: An unknown mode, no judge although a score is missing that only one can give, `max_workers`
            below 1, or prompts with another mode or for an unknown question type.
        SuiteError: The file is damaged, or has question ids that belong to several results, or all to none; it is left
            unchanged, and nothing is asked. See `import_cache`.
        OSError: The file cannot be written.
    """
    _check_mode(mode, [_AUTO, *_ANSWER_MODES])
    if max_workers < 1:
        raise ValueError(f"found max_workers {max_workers}, expected at least 1")
    files = dict(prompts or {})
    if fault := TypedQuestion.prompts_fault(files) or (
        "found prompts with one mode for all" if files and mode != _AUTO else None
    ):
        raise ValueError(f"prompts: {fault}")
    own = {name: _read_prompt(file) for name, file in files.items()}
    answers = _answers(results, mode)
    answered = [(results[row], text) for row, text in answers.items()]
    tasks = [
        replace(
            task,
            prompt=own.get(_typed(question).prompted_type),
            original=unanswerable == _ORIGINAL,
        )
        for (question, _), task in zip(answered, _tasks(answered, mode), strict=True)
    ]
    judged = _judged([question for question, _ in answered], tasks, llm, cache_path, max_workers)
    by_row = dict(zip(answers, judged, strict=True))
    return [by_row.get(row) for row in range(len(results))]


def import_cache(
    old: str | Path, results: Sequence[AnsweredQuestion], new: str | Path, *, mode: str = _AUTO
) -> list[str]:
    """Copy scores that are kept by question id alone into a file for `batch_judge`.

    A question id says nothing of the answer: the scores have to be those of these results.

    Args:
        old: A JSON file ``{question_id: score}``, or ``{sample_id/question_id: score}``; it is left unchanged.
        results: What was judged.
        new: The file for `batch_judge`; it may exist, and keeps the scores that it has.
        mode: As for `batch_judge`.

    Returns:
        The ids that belong to no result, or to several results that differ; their scores are not copied.

    Raises:
        SuiteError: A file is damaged.
        ValueError: The mode is unknown.
        OSError: The file cannot be written.
    """
    from pytest_llmeval.judges import JudgeScoreFile

    _check_mode(mode, [_AUTO, *_ANSWER_MODES])
    answered = [(results[row], text) for row, text in _answers(results, mode).items()]
    names = _keys_of_ids([question for question, _ in answered], _tasks(answered, mode))
    source, target = JudgeScoreFile.open(Path(old)), JudgeScoreFile.open(Path(new))
    ids = source.plain_ids
    matches = {name: keys for name in ids if len(keys := names.get(name, set())) == 1}
    source.move({name: next(iter(keys)) for name, keys in matches.items()})
    for key, score in source.scores.items():
        if key not in ids and key not in target.scores:
            target.add(key, score)
    target.save()
    return [name for name in ids if name not in matches]


def _read_prompt(file: str | Path) -> PromptFile:
    """Read a prompt file for judging memory answers; an unknown placeholder is a fault of the file."""
    prompt = PromptFile.read(Path(file))
    if others := [name for name in prompt.placeholders if name not in _TEXTS]:
        fault = f"found the placeholder {others[0]!r}, expected some of {', '.join(_TEXTS)}"
        raise SuiteError([Fault(str(file), 1, 1, "", fault)])
    return prompt


def _answers(results: Sequence[AnsweredQuestion], mode: str) -> dict[int, str]:
    """The memory results that have a judgeable answer; others are logged unless their error says why.

    Args:
        results: The results.
        mode: ``auto`` needs a question type that it knows.
    """
    texts = {
        row: _answer_text(result.prediction) for row, result in enumerate(results) if not getattr(result, "error", "")
    }
    if lacking := [row for row, text in texts.items() if text is None]:
        first = results[lacking[0]]
        example = f"{first.question_id}: found {type(first.prediction).__name__}, expected text"
        _LOG.warning("%d of %d predictions are no answer; the first: %s", len(lacking), len(texts), example)
    faults = {row: fault for row, result in enumerate(results) if mode == _AUTO and (fault := _type_fault(result))}
    if unrouted := [row for row in texts if row in faults]:
        what = f"{results[unrouted[0]].question_id}: {faults[unrouted[0]]}"
        _LOG.warning("%d of %d results cannot be judged; the first: %s", len(unrouted), len(texts), what)
    return {row: text for row, text in texts.items() if text is not None and row not in faults}


def _typed(result: AnsweredQuestion) -> TypedQuestion:
    """The question of a memory agent's result, whose type decides how it is judged."""
    return TypedQuestion(result.question_type, result.question_id)


def _type_fault(result: AnsweredQuestion) -> str | None:
    """The reason why an answered memory question has no judge mode: an unknown question type."""
    try:
        _typed(result).mode()
    except ValueError as error:
        return str(error)
    return None


def _answer_text(prediction: Any) -> str | None:
    """A memory agent's answer as text; ``None`` if it has none."""
    answer = Parts().find("answer", prediction)
    if isinstance(answer, bool | int | float):
        return json.dumps(answer)
    return answer if isinstance(answer, str) else None


def _tasks(answered: Sequence[tuple[AnsweredQuestion, str]], mode: str) -> "list[_AnswerTask]":
    """The judging tasks of answered memory questions, with the mode by question type if it is automatic."""
    return [
        _AnswerTask(
            _typed(question).mode() if mode == _AUTO else mode,
            question.question,
            question.ground_truth,
            text,
        )
        for question, text in answered
    ]


def _keys(results: Sequence[AnsweredQuestion], tasks: "Sequence[_AnswerTask]") -> list[str]:
    """The keys under which the scores of memory answers are stored in a score file."""
    from pytest_llmeval.judges import JudgeScoreFile

    return [
        JudgeScoreFile.key_of(result.sample_id, result.question_id, task.identity)
        for result, task in zip(results, tasks, strict=True)
    ]


def _keys_of_ids(results: Sequence[AnsweredQuestion], tasks: "Sequence[_AnswerTask]") -> dict[str, set[str]]:
    """The score file's keys by sample and question id, to find scores of earlier answers."""
    keys = _keys(results, tasks)
    return keys_of_ids((result.sample_id, result.question_id, key) for result, key in zip(results, keys, strict=True))


def _judged(
    results: Sequence[AnsweredQuestion],
    tasks: "Sequence[_AnswerTask]",
    llm: Judgeable | Panel | None,
    cache_path: str | Path | None,
    max_workers: int,
) -> list[float | None]:
    """The scores of memory answers: from the score file if it has them, by rule, or from the judge."""
    if cache_path is None:
        scores: list[float | None] = [None] * len(tasks)
        _judge_missing(tasks, llm, max_workers, scores, keep=lambda _row, _score: None)
        return scores
    keys = _keys(results, tasks)
    distinct = dict(zip(keys, tasks, strict=True))
    order = list(distinct)
    file = _opened(Path(cache_path), results, tasks)
    # A rule needs no store, and may have changed since.
    ruled = [task.by_rule() for task in distinct.values()]
    scores = [file.scores.get(key) if by_rule is None else None for key, by_rule in zip(order, ruled, strict=True)]

    def keep(row: int, score: float) -> None:
        file.add(order[row], score)
        if file.unsaved >= _CHUNK:
            file.save()

    try:
        _judge_missing(list(distinct.values()), llm, max_workers, scores, keep)
    finally:
        file.save()
    by_key = dict(zip(order, scores, strict=True))
    return [by_key[key] for key in keys]


def _opened(path: Path, results: Sequence[AnsweredQuestion], tasks: "Sequence[_AnswerTask]") -> "JudgeScoreFile":
    """Open a score file of memory answers; scores kept by question id alone move to their results."""
    from pytest_llmeval.judges import JudgeScoreFile

    file = JudgeScoreFile.open(path)
    if not (ids := file.plain_ids):
        return file
    names = _keys_of_ids(results, tasks)
    matches = {name: names[name] for name in ids if name in names}
    several = [name for name, keys in matches.items() if len(keys) > 1]
    known = {*file.scores, *chain.from_iterable(matches.values())}
    is_bought_again = not matches and any(
        key not in known and task.by_rule() is None for key, task in zip(_keys(results, tasks), tasks, strict=True)
    )
    if several or is_bought_again:
        wrong = several or ids
        what = (
            f"found {len(wrong)} question ids, such as {wrong[0]!r}, of {'several results' if several else 'no result'}"
        )
        expected = "expected ids of one result each: qa.import_cache(old, results, new) copies what is unambiguous"
        raise SuiteError([Fault(str(path), 0, 0, "", f"{what}; {expected}")])
    file.move({name: next(iter(keys)) for name, keys in matches.items()})
    _LOG.info("%d scores of %s were kept by question id; their keys are complete now", len(matches), path)
    return file


@dataclass(frozen=True, slots=True)
class _AnswerTask:
    """One memory answer to be judged: the judge mode, question, reference and answer."""

    mode: str
    question: str
    reference: str
    answer: str
    prompt: PromptFile | None = None
    original: bool = False

    @property
    def identity(self) -> tuple[str, ...]:
        """What decides the score."""
        options = [self.prompt.digest] if self.prompt else [_ORIGINAL] if self.original and self._is_ruled else []
        return self.mode, self.question, self.reference, self.answer, *options

    @property
    def _is_ruled(self) -> bool:
        return self.mode == TypedQuestion.RULE

    def by_rule(self) -> float | None:
        """Return the score where no judge is needed."""
        return float(AnswerText(self.answer).is_unanswerable(original=self.original)) if self._is_ruled else None

    def to_question(self) -> Question:
        """Return the question to the judge."""
        texts = {"question": self.question, "reference": self.reference, "answer": self.answer}
        mode = ModeFile.mode_named(self.mode)
        if self.prompt is not None:
            mode = self.prompt.in_mode(mode)
            texts = {name: texts[name] for name in self.prompt.placeholders}
        return Question(mode, texts, Question.instruction_language(self.question))


def _judge_missing(
    tasks: Sequence[_AnswerTask],
    llm: Any,
    workers: int,
    scores: list[float | None],
    keep: Callable[[int, float], None],
) -> None:
    """Judge the memory answers without a score; `keep` is called with each score."""

    def fill(row: int, score: float) -> None:
        scores[row] = score
        keep(row, score)

    missing = {row: task for row, task in enumerate(tasks) if scores[row] is None}
    _check_judge(llm, missing.values())
    left: dict[int, _AnswerTask] = {}
    for row, task in missing.items():
        if (score := task.by_rule()) is not None:
            scores[row] = score  # not kept: the rule may be another next time
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

    _ask(llm, [(task, partial(judged, row)) for row, task in left.items()], workers)
    if failed:
        _LOG.warning("%d of %d answers have no verdict; the first: %s", len(failed), len(left), failed[min(failed)])


def _check_mode(mode: str, known: Sequence[str]) -> None:
    """Raise an error for an unknown judge mode of memory answers."""
    if mode not in known:
        raise ValueError(unknown_name("mode", mode, known))


def _check_judge(llm: Judgeable | Panel | None, tasks: Iterable[_AnswerTask]) -> None:
    """Raise an error if memory answers need a judge and none is named."""
    needy = [task.mode for task in tasks if task.by_rule() is None]
    if llm is None and needy:
        raise ValueError(f"llm is missing: mode {needy[0]!r} needs a judge")


def keys_of_ids(questions: Iterable[tuple[str, str, str]]) -> dict[str, set[str]]:
    """The score keys of the memory questions that an id may mean.

    Args:
        questions: Id of the conversation, id of the question in it, and `JudgeScoreFile.key_of` of each.
    """
    keys: dict[str, set[str]] = defaultdict(set)
    for sample, question, key in questions:
        for name in (question, f"{sample}/{question}"):
            keys[name].add(key)
    return dict(keys)
