"""What is to be asked about a case, and what came of it: plain data."""

__all__ = ("Answer", "Job")

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.results import Call
from pytest_llmeval.suite.suite import Suite
from pytest_llmeval.targets.python import Target

if TYPE_CHECKING:
    from pytest_llmeval.judge.contract import Verdict
    from pytest_llmeval.judge.service import SuiteJudge
    from pytest_llmeval.judge.stored_judgement import StoredJudgement
    from pytest_llmeval.targets.contract import BatchTarget


@dataclass(frozen=True)
class Job:
    """One repeat of one case.

    Attributes:
        suite: Its suite.
        case: The case.
        shown: The suite's file, as recordings name it.
        variant: Of the target.
        repeat: Counted from 0.
        target: Gives the target, when one is needed.
        suite_judge: Where its questions go; ``None`` where the suite has no judge.
        shared: Whether other processes may want the same prediction.
        prepare: Makes ready what asking needs, in the thread of the tests; is told whether the target is needed.
        test: The Python test that runs the case, if it is no item of its suite.
    """

    suite: Suite
    case: Case
    shown: str
    variant: str
    repeat: int
    target: "Callable[[], Target | BatchTarget]"
    suite_judge: "SuiteJudge | None" = None
    shared: bool = False
    prepare: Callable[[bool], None] = lambda _: None
    test: str = ""


@dataclass(slots=True)
class Answer:
    """What one repeat of a case got.

    Attributes:
        case: The case, with its prediction where there is one.
        error: Why there is no prediction, or no verdict because the budget is spent.
        verdicts: Evaluator label to what the judge said to each of its questions.
        failed: Evaluator label to why its questions could not be put.
        calls: To judges.
        entries: Judgements that can be recorded.
        target_seconds: Latency of the call of the target, if one was made.
    """

    case: Case
    error: BaseException | None = None
    verdicts: "dict[str, list[Verdict | LlmevalError]]" = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    entries: "list[StoredJudgement]" = field(default_factory=list)
    target_seconds: list[float] = field(default_factory=list)
