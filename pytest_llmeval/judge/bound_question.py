"""A question with the judge that it goes to."""

__all__ = ("BoundQuestion", "SuiteJudge")

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_llmeval.judge.contract import JudgeClient, JudgeRequest, Question
from pytest_llmeval.judge.questions.render import render
from pytest_llmeval.judge.spec import Price
from pytest_llmeval.judge.stored_judgement import components, judgement_key

if TYPE_CHECKING:
    from pytest_llmeval.judge.contract import Message
    from pytest_llmeval.judge.recordings import Judgements


@dataclass
class SuiteJudge:
    """Where the questions of one suite go.

    Attributes:
        model: ``PROVIDER:NAME``, as keys and recordings have it.
        parameters: What the user set, such as ``temperature``.
        recordings: Committed judgements.
        client: Whom to ask; ``None`` until one is needed.
        price: Of the model; ``None`` where none is known.
        way: How the model is reached: its address, and where its key comes from. Verdicts do not depend on it, but
            whether there are any does.
        absent: Why there is no client when one is needed.
        writes: Whether it writes tokens, as models of embeddings do not.
    """

    model: str
    parameters: dict[str, Any]
    recordings: "Judgements"
    client: JudgeClient | None = None
    price: Price | None = None
    way: str = ""
    absent: str = (
        "no judge is configured: add 'judge: {model: PROVIDER:NAME}' to the suite, use --llmeval-judge-model, "
        "or define the fixture judge_client"
    )
    writes: bool = True

    @property
    def largest_call(self) -> dict[str, Any]:
        """The parameters that limit what a call may cost."""
        return self.parameters if self.writes else {**self.parameters, "max_tokens": 1}

    @property
    def name(self) -> str:
        """The model's name, without its provider."""
        return self.model.partition(":")[2]

    @property
    def singles(self) -> "tuple[SuiteJudge, ...]":
        """The judge, as one of a panel."""
        return (self,)

    def bind(self, question: Question, case: str, repeat: int = 0, asker: str = "") -> "BoundQuestion":
        """Return a question to this judge; see `BoundQuestion`."""
        return BoundQuestion(self, question, case, repeat, asker)


@dataclass(frozen=True)
class BoundQuestion:
    """One question about one case, in one repeat.

    Attributes:
        suite_judge: Where it goes.
        question: What is asked.
        case: Id of the case.
        repeat: Counted from 0.
        asker: Tells cases of one id apart: those of other suites, variants of the target, and tests.
    """

    suite_judge: SuiteJudge
    question: Question
    case: str
    repeat: int = 0
    asker: str = ""

    @cached_property
    def messages(self) -> "tuple[Message, ...]":
        """The question as the model gets it."""
        return render(self.question)

    @property
    def turn(self) -> tuple[str, str, str, int]:
        """What is the same when a case runs again and asks the same, and never else."""
        return self.key, self.asker, self.case, self.repeat

    @cached_property
    def key(self) -> str:
        """What the judgement is stored under."""
        return judgement_key(self.question, self.messages, **self._asked)

    @property
    def singles(self) -> "tuple[BoundQuestion, ...]":
        """The question, as to one of a panel."""
        return (self,)

    def components(self) -> dict[str, Any]:
        """Return what the key is made of."""
        return components(self.question, self.messages, **self._asked)

    @property
    def _asked(self) -> dict[str, Any]:
        """What a key is made of besides the question; one that all repeats share is that of the first."""
        judge = self.suite_judge
        return {
            "model": judge.model,
            "parameters": judge.parameters,
            "repeat": 0 if self.question.shared else self.repeat,
        }

    def request(self) -> JudgeRequest:
        """Return the request for a client."""
        mode, suite_judge = self.question.mode, self.suite_judge
        return JudgeRequest(
            self.messages, suite_judge.name, suite_judge.parameters, mode.reply_schema, mode.expected_of
        )
