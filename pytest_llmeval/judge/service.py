"""Answering questions: stored verdicts first, then models within limits, whose replies are kept before use."""

__all__ = ("JudgeOffError", "JudgeService", "JudgeStore")

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from pytest_llmeval.core.errors import JudgeError, LlmevalError, NoJudgeError
from pytest_llmeval.core.results import JudgeCall
from pytest_llmeval.judge.asking import Judgement, JurorQuestion, JurorVerdict, PanelQuestion
from pytest_llmeval.judge.contract import JudgeClient, JudgeReply, JudgeRequest, Usage, Verdict
from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.judge.prices import cost_usd
from pytest_llmeval.judge.questions.probabilities import enveloped
from pytest_llmeval.judge.questions.replies import read_reply
from pytest_llmeval.services.background import together
from pytest_llmeval.services.secrets import secret_values, without

if TYPE_CHECKING:
    from pytest_llmeval.judge.coordination import Reservation
    from pytest_llmeval.judge.stored_judgement import StoredJudgement


class JudgeOffError(JudgeError):
    """Judges are switched off for this run, so their metrics are undefined."""

    def __init__(self) -> None:
        super().__init__("judges are off (--llmeval-judge=off)")


class JudgeStore(Protocol):
    """Where verdicts are looked up and kept, and what says who may ask for those that are missing."""

    def known(self, asked: JurorQuestion) -> JurorVerdict | None:
        """Return the result if no call is needed: a stored verdict, or an error if no call is allowed."""

    async def once(self, asked: JurorQuestion, ask: Callable[[], Awaitable[JurorVerdict]]) -> JurorVerdict:
        """Return what asking gives, here or wherever else the same is being asked."""

    async def reserve(self, asked: JurorQuestion) -> "Reservation | None":
        """Set the most that a call may cost aside.

        Raises:
            BudgetError: Not enough is left.
        """

    def settle(self, reservation: "Reservation | None", usage: Usage, cost: float | None) -> None:
        """Replace what was set aside by what was used."""

    def keep(
        self, asked: JurorQuestion, reply: JudgeReply, verdict: Verdict, call: JudgeCall
    ) -> "StoredJudgement | None":
        """Keep a verdict; return what can be recorded."""

    def keep_failure(self, asked: JurorQuestion, error: JudgeError, call: JudgeCall | None) -> JurorVerdict:
        """Keep why there is no verdict, as long as it is not to be asked for again; return it."""


@dataclass(frozen=True)
class JudgeService:
    """The one place where judges are asked.

    Attributes:
        limit: On calls in flight, those of targets included.
        store: Looked into before a model is asked.
    """

    limit: CallLimit
    store: JudgeStore

    def known(self, asked: PanelQuestion) -> Judgement | None:
        """Return the result if no call is needed: stored verdicts, or an error if no call is allowed.

        Raises:
            LlmevalError: The store cannot be used.
        """
        found: dict[str, JurorVerdict] = {}
        while names := asked.unanswered(found):
            for name in names:
                known = self.store.known(asked.jurors[name])
                if known is None:
                    return None
                found[name] = known
        return asked.judgement(found)

    async def judge(self, asked: PanelQuestion) -> Judgement:
        """Return what came of a question, asking models for the verdicts that are not stored."""
        found: dict[str, JurorVerdict] = {}
        while names := asked.unanswered(found):
            answers = await together([self._of_juror(asked.jurors[name]) for name in names])
            found |= zip(names, answers, strict=True)
        return asked.judgement(found)

    async def _of_juror(self, asked: JurorQuestion) -> JurorVerdict:
        try:
            return self.store.known(asked) or await self.store.once(asked, partial(self._ask, asked))
        except LlmevalError as error:
            return JurorVerdict(error)

    async def _ask(self, asked: JurorQuestion) -> JurorVerdict:
        """Ask, and once more if the reply cannot be read and the mode wants that."""
        first = await self._ask_once(asked)
        if isinstance(first.verdict, Verdict) or not asked.question.mode.asks_again:
            return first
        try:
            return replace(await self._ask_once(asked), unread=first.call)
        except LlmevalError as error:
            return JurorVerdict(error, first.call)

    async def _ask_once(self, asked: JurorQuestion) -> JurorVerdict:
        juror = asked.juror
        if juror.client is None:
            raise NoJudgeError(juror.absent)
        async with self.limit.slot():
            reservation = await self.store.reserve(asked)
            usage = Usage()
            started = time.perf_counter()
            try:
                reply = await _complete(juror.client, asked.request())
                usage = reply.usage
            finally:
                seconds = round(time.perf_counter() - started, 3)  # rounded as in the store
                cost = cost_usd(juror.price, usage)
                self.limit.activity.spend(cost)
                self.store.settle(reservation, usage, cost)
        self.limit.succeeded()
        call = JudgeCall(asked.key, True, usage.input_tokens, usage.output_tokens, cost, seconds)
        try:
            verdict = read_reply(asked.question.mode, reply)
        except JudgeError as error:
            return self.store.keep_failure(asked, error, call)
        return JurorVerdict(verdict, call, self.store.keep(asked, reply, verdict, call))


async def _complete(client: JudgeClient, request: JudgeRequest) -> JudgeReply:
    reply = client.complete(request)
    made = enveloped(request, reply if isinstance(reply, JudgeReply) else await reply)
    clean = without(made.text, secret_values())  # judges quote answers, and replies are stored
    return made if clean == made.text else replace(made, text=clean)
