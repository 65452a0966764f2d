"""Import of scores that another program computed, ``{question_id: score}``, as judgements."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pytest_llmeval.cli.suite_file import open_noted
from pytest_llmeval.core.case import MISSING
from pytest_llmeval.core.errors import JudgeError, LlmevalError
from pytest_llmeval.judge.asking import Asking, Judgement, JudgePanel, Juror, JurorQuestion, JurorVerdict, PanelQuestion
from pytest_llmeval.judge.contract import Mode, Verdict
from pytest_llmeval.judge.judges import OWN_JUDGE
from pytest_llmeval.judge.options import JudgeOptions
from pytest_llmeval.judge.questions.replies import read_text
from pytest_llmeval.judge.recordings import Judgements, judgements_of, scored_ids
from pytest_llmeval.judge.spec import PanelSpec, jurors_of
from pytest_llmeval.judge.stored_judgement import StoredJudgement

if TYPE_CHECKING:
    from pytest_llmeval.core.case import Case
    from pytest_llmeval.judge.spec import JudgeSpec
    from pytest_llmeval.suite.suite import Suite

_Stored: TypeAlias = Callable[[str], StoredJudgement | None]
"""Key to the verdict that is stored under it."""


@dataclass(frozen=True)
class SuiteQuestion:
    """One question.

    Attributes:
        case: That it is about.
        system: Whose answer it is; nothing where the suite has no systems.
        evaluator: Label of the evaluator that asks.
        question: The question, its key included.
    """

    case: "Case"
    system: str
    evaluator: str
    question: JurorQuestion


@dataclass(frozen=True)
class SuiteQuestions:
    """All questions of a suite, as far as they are known: later ones may depend on replies that are not stored.

    Attributes:
        suite: The suite.
        recordings: Its recorded judgements.
        models: Of its judge, or of the jurors of its panel.
        questions: In file order, with one entry per juror and repeat.
        unknown: Case id and system to the reason why their questions are known only in a run.
        later: Case id, system and label of an evaluator to how many questions may follow, once others have a verdict.
    """

    suite: "Suite"
    recordings: Judgements
    models: list[str] = field(default_factory=list)
    questions: list[SuiteQuestion] = field(default_factory=list)
    unknown: dict[tuple[str, str], str] = field(default_factory=dict)
    later: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def add(self, way: "Suite", case: "Case", panel: JudgePanel, stored: _Stored) -> None:
        """Add what the evaluators of a suite, as one of its systems has it, ask about a case."""
        place = (case.id, way.system)
        judged = {label: each for label, each in way.evaluators.items() if each.asks}
        for label, evaluator in judged.items():
            if case.prediction is MISSING:
                self.unknown[place] = "its prediction is made during a run"
            elif evaluator.opponents:
                self.unknown[place] = f"the answers that {label!r} compares with are there during a run"
            else:
                own = evaluator.own_model
                asked = panel if own is None else JudgePanel.of_one(_juror(own, self.recordings))
                for repeat in range(way.repeats.times):
                    asking = Asking.about(evaluator, case, way.readings[label], asked, repeat)
                    self._add_rounds((*place, label), case, asking, stored)
                    if asking.error is not None:
                        self.unknown[place] = str(asking.error)

    def _add_rounds(self, place: tuple[str, str, str], case: "Case", asking: Asking, stored: _Stored) -> None:
        """Add questions round by round, up to the first reply that is not stored."""
        sizes = []
        while put := asking.next():
            sizes.append(len(put))
            single = (each for question in put for each in _askable(question))
            self.questions.extend(SuiteQuestion(case, *place[1:], each) for each in single)
            known = [found for each in put if (found := _known(each, stored)) is not None]
            if len(known) < len(put):
                most = sum(map(asking.evaluator.most_follow_ups, asking.views)) - sum(sizes[1:])
                self.later.update({place: most} if most > 0 else {})
                return
            asking.add(known)


def _known(asked: PanelQuestion, stored: _Stored) -> Judgement | None:
    """Return what stored replies to a question say; ``None`` where one is missing."""
    found: dict[str, JurorVerdict] = {}
    while names := asked.unanswered(found):
        for name in names:
            each = asked.jurors[name]
            entry = each.juror.recordings.get(each.key) or stored(each.key)
            if entry is None:
                return None
            found[name] = JurorVerdict(_read(asked.question.mode, entry.reply))
    return asked.judgement(found)


def _askable(asked: PanelQuestion) -> Collection[JurorQuestion]:
    """Return the question to each juror that may get it; the large judge of a cascade may."""
    return asked.expected if asked.cascade is None else asked.jurors.values()


def _read(mode: Mode, reply: str) -> Verdict | LlmevalError:
    try:
        return read_text(mode, reply)
    except JudgeError as error:
        return error


def suite_questions(path: Path, model: str | None = None, stored: _Stored = lambda _: None) -> SuiteQuestions:
    """Read a suite file and work out what it asks.

    Args:
        path: The suite file; its evaluators are shipped with this package or with an installed one.
        model: ``PROVIDER:NAME``; overrides the suite.
        stored: Returns the verdict that is stored under a key besides the recorded ones.

    Raises:
        SuiteError: The suite, or its recorded judgements, have faults.
        LlmevalError: The model is none.
    """
    suite = open_noted(path)
    try:
        chosen = JudgeOptions(model=model).chosen(suite.judge)
    except ValueError as error:
        raise LlmevalError(str(error)) from None
    recordings = Judgements.read(judgements_of(path))
    jurors = [_juror(spec, recordings) for spec in jurors_of(chosen)]
    found = SuiteQuestions(suite, recordings, [each.model for each in jurors])
    panel = JudgePanel.from_spec(chosen, jurors) if isinstance(chosen, PanelSpec) else JudgePanel.of_one(jurors[0])
    for way in map(suite.for_variant, suite.systems or [""]):
        for case in way.cases:
            found.add(way, case, panel, stored)
    return found


def _juror(spec: "JudgeSpec", recordings: Judgements) -> Juror:
    return Juror(spec.model or OWN_JUDGE, spec.request_parameters(), recordings)


@dataclass
class Imported:
    """What became of scores.

    Attributes:
        entries: Judgements of the questions that have a score.
        ruled: Ids of scores that are not needed, because a rule decides the case.
        faults: Scores that could not be used, and why.
        without: Ids of cases with a question and without a score.
    """

    entries: list[StoredJudgement] = field(default_factory=list)
    ruled: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)


def import_scores(asked: SuiteQuestions, scores: Mapping[str, float], source: str) -> Imported:
    """Turn scores into judgements of a suite's questions, as if its judge had given them for the present answers.

    A score belongs to the case whose id, or label ``question_id``, it is given for; files of `batch_judge` name the
    conversation as well. The reply is made up, so that the
    mode reads it as just this score.

    Args:
        asked: The questions of the suite.
        scores: Id to score, from 0 to 1, as a share of the mode's scale.
        source: Where they come from; becomes the reasoning of the reply, where the mode has one.
    """
    imported = Imported()
    questions: dict[str, list[SuiteQuestion]] = defaultdict(list)
    for each in asked.questions:
        if each.question.repeat == 0 and not each.question.question.shared:
            questions[each.case.id].append(each)
    given: dict[str, list[str]] = defaultdict(list)
    for case in asked.suite.cases:
        for name in {case.id, case.labels.get("question_id", case.id)}:
            given[name].append(case.id)
    later = {case: f"{label!r} asks what depends on replies that are not stored" for case, _, label in asked.later}
    unknown = later | {case: why for (case, _), why in asked.unknown.items()}
    used = set()
    for name, share in sorted(scores.items()):
        ids = next((given[each] for each in scored_ids(name) if each in given), [])
        if len(ids) != 1:
            imported.faults.append(_unmatched(name, ids))
            continue
        (case_id,) = ids
        if case_id in used:
            imported.faults.append(f"{name}: found a second score of case {case_id}, expected one")
            continue
        used.add(case_id)
        if case_id in unknown:
            imported.faults.append(f"{name}: {unknown[case_id]}")
        elif not questions[case_id]:
            imported.ruled.append(name)
        elif len(questions[case_id]) > 1:
            number = len(questions[case_id])
            imported.faults.append(f"{name}: found {number} questions about the case, expected exactly one")
        else:
            _add(imported, questions[case_id][0], share, f"imported from {source}")
    imported.without = sorted(case_id for case_id in questions if questions[case_id] and case_id not in used)
    return imported


def _unmatched(name: str, ids: list[str]) -> str:
    if ids:
        return f"{name}: found {len(ids)} cases of this question_id, expected one"
    return f"{name}: found no case of this id or label question_id"


def _add(imported: Imported, question: SuiteQuestion, share: float, reasoning: str) -> None:
    asked = question.question
    mode = asked.question.mode
    low, high = mode.scale
    score = low + share * (high - low)
    reply = _reply(mode, score, reasoning)
    if reply is None:
        imported.faults.append(
            f"{question.case.id}: found the score {share:g}, which is not a complete verdict of mode {mode.name!r}"
        )
        return
    imported.entries.append(StoredJudgement(asked.key, question.case.id, asked.components(), reply, score))


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
