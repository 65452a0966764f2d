"""Scores that were given elsewhere, as judgements: ``{question_id: score}`` without a prompt and without a reply."""

__all__ = ("Imported", "import_scores")

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_llmeval.errors import JudgeError
from pytest_llmeval.judge.contract import Mode
from pytest_llmeval.judge.entry import Entry
from pytest_llmeval.judge.suite_questions import SuiteQuestion, SuiteQuestions


@dataclass
class Imported:
    """What became of scores.

    Attributes:
        entries: Judgements of the questions that have a score.
        ruled: Ids of scores that are not needed, because a rule decides the case.
        faults: Scores that could not be used, and why.
        without: Ids of cases with a question and without a score.
    """

    entries: list[Entry] = field(default_factory=list)
    ruled: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)


def import_scores(asked: SuiteQuestions, scores: Mapping[str, float], source: str) -> Imported:
    """Turn scores into judgements of a suite's questions, as if its judge had given them for the present answers.

    A score belongs to the case whose id, or label ``question_id``, it is given for. The reply is made up, so that the
    mode reads it as just this score.

    Args:
        asked: The questions of the suite.
        scores: Id to score, from 0 to 1, as a share of the mode's scale.
        source: Where they come from; becomes the reasoning of the reply, where the mode has one.
    """
    imported = Imported()
    questions: dict[str, list[SuiteQuestion]] = defaultdict(list)
    for each in asked.questions:
        if each.asked.repeat == 0:
            questions[each.case.id].append(each)
    given: dict[str, list[str]] = defaultdict(list)
    for case in asked.suite.cases:
        for name in {case.id, case.labels.get("question_id", case.id)}:
            given[name].append(case.id)
    used = set()
    for name, share in sorted(scores.items()):
        ids = given.get(name, [])
        if len(ids) != 1:
            imported.faults.append(_unmatched(name, ids))
            continue
        (case_id,) = ids
        used.add(case_id)
        if case_id in asked.unknown:
            imported.faults.append(f"{name}: {asked.unknown[case_id]}")
        elif not questions[case_id]:
            imported.ruled.append(name)
        elif len(questions[case_id]) > 1:
            number = len(questions[case_id])
            imported.faults.append(f"{name}: found {number} questions about the case, expected one that it answers")
        else:
            _add(imported, questions[case_id][0], share, f"imported from {source}")
    imported.without = sorted(case_id for case_id in questions if questions[case_id] and case_id not in used)
    return imported


def _unmatched(name: str, ids: list[str]) -> str:
    if ids:
        return f"{name}: found {len(ids)} cases of this question_id, expected one"
    return f"{name}: found no case of this id or label question_id"


def _add(imported: Imported, question: SuiteQuestion, share: float, reasoning: str) -> None:
    asked = question.asked
    mode = asked.question.mode
    low, high = mode.scale
    score = low + share * (high - low)
    reply = _reply(mode, score, reasoning)
    if reply is None:
        imported.faults.append(
            f"{question.case.id}: found the score {share:g}, which mode {mode.name!r} cannot give or not give alone"
        )
        return
    imported.entries.append(Entry(asked.key, question.case.id, asked.components(), reply, score))


def _reply(mode: Mode, score: float, reasoning: str) -> str | None:
    """Return a reply that a mode reads as a score; ``None`` where there is none."""
    whole = int(score) if score.is_integer() else score
    for reply in (json.dumps({"reasoning": reasoning, "score": whole}), "yes", "no"):
        try:
            if math.isclose(mode.read(reply).score, score, abs_tol=1e-9):
                return reply
        except JudgeError:
            continue
    return None
