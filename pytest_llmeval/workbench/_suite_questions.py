"""The questions of a suite to its judges, worked out without a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_llmeval.core import MISSING, Case, ComparingEvaluator, LlmevalError
from pytest_llmeval.judges import Asking, Judgements, JudgeOptions, JudgeSpec, Mode, PanelSpec, StoredJudgement
from pytest_llmeval.suites import LoadedSuite


@dataclass(frozen=True)
class SuiteQuestion:
    """One question of a suite to a judge.

    Attributes:
        case: Id of the case that it is about.
        system: Whose answer it is; nothing where the suite has no systems.
        evaluator: Label of the evaluator that asks.
        model: Of the judge.
        mode: How it judges.
        repeat: Counted from 0.
        is_shared: Whether it is the same for all cases.
        key: Of the judgement.
        components: What the key is made of.
    """

    case: str
    system: str
    evaluator: str
    model: str
    mode: Mode
    repeat: int
    is_shared: bool
    key: str
    components: Mapping[str, Any]


@dataclass(frozen=True)
class SuiteQuestions:
    """All questions of a suite, as far as known: later ones may depend on replies that are not stored.

    Attributes:
        suite: The suite.
        recordings: Its recorded judgements.
        models: Of its judge, or of the jurors of its panel.
        questions: In file order, with one entry per juror and repeat.
        unknown: Case id and system to the reason why their questions are known only in a run.
        later: Case id, system and label of an evaluator to how many questions may follow, once others have a verdict.
    """

    suite: LoadedSuite
    recordings: Judgements
    models: list[str] = field(default_factory=list)
    questions: list[SuiteQuestion] = field(default_factory=list)
    unknown: dict[tuple[str, str], str] = field(default_factory=dict)
    later: dict[tuple[str, str, str], int] = field(default_factory=dict)

    @classmethod
    def of_suite(
        cls,
        suite: LoadedSuite,
        model: str | None = None,
        stored: Callable[[str], StoredJudgement | None] = lambda _: None,
    ) -> "SuiteQuestions":
        """The questions to judges about the predictions that a suite has, worked out without a run.

        Args:
            suite: The suite.
            model: ``PROVIDER:NAME``; overrides the suite.
            stored: Returns the verdict that is stored under a key besides the recorded ones.

        Raises:
            SuiteError: The recorded judgements have faults.
            LlmevalError: The model is none.
        """
        try:
            chosen = JudgeOptions(model=model).chosen(suite.judge)
        except ValueError as error:
            raise LlmevalError(str(error)) from None
        recordings = Judgements.read(Judgements.path_of(suite.path))
        questions = cls(suite, recordings, [spec.model or JudgeSpec.OWN for spec in chosen.jurors])
        for way in map(suite.for_variant, suite.systems or [""]):
            for case in way.cases:
                questions.add(way, case, chosen, stored)
        return questions

    def add(
        self,
        way: LoadedSuite,
        case: Case,
        judge: JudgeSpec | PanelSpec,
        stored: Callable[[str], StoredJudgement | None],
    ) -> None:
        """Add what the evaluators of a suite, as one of its systems has it, ask about a case."""
        place = (case.id, way.system)
        for label, evaluator in way.asking.items():
            if case.prediction is MISSING:
                self.unknown[place] = "its prediction is made during a run"
            elif isinstance(evaluator, ComparingEvaluator) and evaluator.opponents:
                self.unknown[place] = f"the answers that {label!r} compares with are there during a run"
            else:
                for repeat in range(way.repeats.times):
                    asking = Asking.without_run(evaluator, case, way.readings[label], judge, self.recordings, repeat)
                    is_complete = asking.is_stored(stored)
                    self.questions.extend(
                        SuiteQuestion(
                            case.id,
                            way.system,
                            label,
                            bound.juror.model,
                            bound.question.mode,
                            repeat,
                            bound.question.shared,
                            bound.key,
                            bound.components(),
                        )
                        for bound in asking.juror_questions
                    )
                    if not is_complete and asking.most_follow_ups:
                        self.later[*place, label] = asking.most_follow_ups
                    if asking.error is not None:
                        self.unknown[place] = str(asking.error)
