"""The functions of both original evaluations, MECPE-Enhanced and the official script, under their names.

They take the variables of the originals: lists, arrays and tensors of whole numbers, and what JSON files hold.
"""

__all__ = ("cal_prf", "conf_mat", "evaluate_1_2", "evaluate_2_2", "prf_2nd_step", "prf_2nd_step_emocate")

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_llmeval.core import Case, Observation, Totals, form_of
from pytest_llmeval.tasks.emotion_cause._evaluator import EmotionCause
from pytest_llmeval.tasks.emotion_cause._pairs import ID, Subtask, parse_internal, validate_submission, whole_number
from pytest_llmeval.tasks.emotion_cause._scores import EMOTIONS, PARTS, SCORED, prf, score_names

if TYPE_CHECKING:
    import numpy.typing as npt

_STEPS = EmotionCause(subtask=2, two_step=True)

_COUNTED = Observation({"conversations": 1})
"""Gives scores of 0, as the originals do, where no conversation has a pair."""


def cal_prf(pred_y: Any, true_y: Any, doc_len: Any, average: str = "binary") -> tuple[float, float, float]:
    """Return precision, recall and F1 of utterances that have a label, each in [0, 1).

    Args:
        pred_y: A row of labels for each conversation; 0 is no label. What follows its length is padding.
        true_y: The same.
        doc_len: The length of each conversation.
        average: Not used, as in the original.

    Raises:
        ValueError: The arguments have different numbers of conversations, or a row is shorter than its length.
    """
    del average
    hits = predicted = right = 0.0
    for answers, labels, length in zip(
        *(form_of(argument, strict=True) for argument in (pred_y, true_y, doc_len)), strict=True
    ):
        if min(len(answers), len(labels)) < length:
            raise ValueError(f"found rows of {len(answers)} and {len(labels)} labels, expected {length} or more")
        pairs = [(bool(answer), bool(label)) for answer, label in zip(answers[:length], labels[:length], strict=True)]
        hits += sum(answer and label for answer, label in pairs)
        predicted += sum(answer for answer, _ in pairs)
        right += sum(label for _, label in pairs)
    precision, recall, f1 = (float(rate[0]) for rate in prf(*(np.array([n]) for n in (hits, predicted, right))))
    return precision, recall, f1


def prf_2nd_step(pair_id_all: Any, pair_id: Any, pred_y: Any) -> list[float]:
    """Return precision, recall and F1 of the pairs that are kept, then of all candidates, then the keep rate.

    Args:
        pair_id_all: The gold pairs, ``[doc_id, emo_id, cau_id, emotion]``.
        pair_id: The candidates.
        pred_y: For each candidate whether it is kept, 1 or 0.

    Raises:
        ValueError: A pair or a flag cannot be read.
    """
    scores = _step_scores(pair_id_all, pair_id, pred_y)
    return [scores[f"{step}_{part}"] for step in ("filtered", "all") for part in PARTS] + [scores["keep_rate"]]


def prf_2nd_step_emocate(pair_id_all: Any, pair_id: Any, pred_y: Any) -> list[float]:
    """Return the scores of `prf_2nd_step` by emotion, in the order of MECPE-Enhanced.

    Returns:
        F1 of the six emotions, from anger to surprise; weighted F1, precision and recall; the same three over four
        emotions, without disgust and fear; these twelve once more for all candidates; the keep rate. Weighted scores
        are NaN where there is nothing to weight by.

    Raises:
        ValueError: A pair or a flag cannot be read.
    """
    scores = _step_scores(pair_id_all, pair_id, pred_y)
    names: list[str] = []
    for step in ("filtered", "all"):
        _, weighted, four = score_names(step)
        names += [f"{step}_f1[{emotion}]" for emotion in SCORED]
        names += [name for precision, recall, f1 in (weighted, four) for name in (f1, precision, recall)]
    return [scores[name] for name in (*names, "keep_rate")]


def conf_mat(true_pairs: Any, pred_pairs: Any) -> "npt.NDArray[np.int64]":
    """Return the 7 x 7 confusion matrix: rows are emotions of gold, columns those of the prediction, neutral first.

    A wrong pair is in the row of neutral, a missed one in its column. Repeated pairs count each time.

    Args:
        true_pairs: The gold pairs, ``[doc_id, emo_id, cau_id, emotion]`` or with ``span_start, span_end``.
        pred_pairs: The predicted pairs.

    Raises:
        PairFault: A pair cannot be read.
    """
    right, answers = ([_key(row) for row in form_of(rows, strict=True)] for rows in (true_pairs, pred_pairs))
    matrix = np.zeros((len(EMOTIONS), len(EMOTIONS)), dtype=np.int64)
    gold, predicted = set(right), set(answers)
    for answer in answers:
        matrix[answer[-1] if answer in gold else 0, answer[-1]] += 1
    for key in right:
        matrix[key[-1], 0] += key not in predicted
    return matrix


def evaluate_1_2(pred_data: Any, gold_data: Any) -> tuple[list[float], list[float]]:
    """Return the strict and the proportional scores of Subtask 1.

    Args:
        pred_data: The submission, ``[{"conversation_ID": 1, "emotion-cause_pairs": [...]}, ...]``.
        gold_data: The official gold file.

    Returns:
        For each of the two: weighted precision, recall and F1, then the micro ones.

    Raises:
        ValueError: The submission has faults; all are listed.
        EvaluatorError: The gold file has a fault.
    """
    scores = _official_scores(pred_data, gold_data, 1)
    strict, proportional = (
        [scores[name] for names in score_names(family)[1::-1] for name in names]
        for family in ("strict", "proportional")
    )
    return strict, proportional


def evaluate_2_2(pred_data: Any, gold_data: Any) -> list[float]:
    """Return micro precision, recall and F1 of Subtask 2, then the weighted ones; see `evaluate_1_2`."""
    scores = _official_scores(pred_data, gold_data, 2)
    return [scores[name] for names in score_names("pair")[:2] for name in names]


def _key(row: Any) -> tuple[int, ...]:
    """A pair of the original MECPE package as numbers: conversation, utterances, span if any, and emotion."""
    number, pair = parse_internal(row, 1 if isinstance(row, list) and len(row) > 4 else 2)  # noqa: PLR2004 (with a span)
    return (number, *pair[:-1], EMOTIONS.index(pair.emotion))


def _step_scores(pair_id_all: Any, pair_id: Any, pred_y: Any) -> Mapping[str, float]:
    """The scores of MECPE's Step 2, computed by the evaluator from candidate pairs and keep flags."""
    candidates, keep = form_of(pair_id, strict=True), form_of(pred_y, strict=True)
    if len(candidates) != len(keep):
        raise ValueError(f"pred_y: found {len(keep)} flags, expected {len(candidates)}, one for each candidate")
    cases = _STEPS.conversations({"candidates": candidates, "keep": keep}, pair_id_all)
    observations = list(map(_STEPS.measure, cases))
    if malformed := [observation.malformed for observation in observations if observation.malformed is not None]:
        raise ValueError("; ".join(malformed))
    return _scores(_STEPS, observations)


def _official_scores(pred_data: Any, gold_data: Any, subtask: Subtask) -> Mapping[str, float]:
    """The scores of the official SemEval script for a submission, computed by the evaluator."""
    submission: Sequence[Any] = form_of(pred_data, strict=True)
    gold: Sequence[Mapping[str, Any]] = form_of(gold_data, strict=True)
    # The original scores spans that end before they start.
    if faults := [fault for fault in validate_submission(submission, subtask, gold) if fault.rule != "span order"]:
        raise ValueError("; ".join(map(str, faults)))
    answers = {whole_number(entry[ID]): entry for entry in submission}
    cases = [
        Case(str(conversation[ID]), expected=conversation, prediction=answers[whole_number(conversation[ID])])
        for conversation in gold
    ]
    evaluator = EmotionCause(subtask=subtask)
    return _scores(evaluator, map(evaluator.measure, cases))


def _scores(evaluator: EmotionCause, observations: Iterable[Observation]) -> Mapping[str, float]:
    """The original packages' scores over all cases by formulas alone, which give 0 or NaN if nothing is counted."""
    with np.errstate(all="ignore"):
        columns = evaluator.summarize(Totals.add_up([*observations, _COUNTED]).sums())
    return {name: float(column[0]) for name, column in columns.items()}
