"""Answering questions: stored verdicts first, then the model, within limits shared by all processes of a run."""

__all__ = ("JudgeOffError", "JudgeService", "Judgement")

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_llmeval.core.errors import JudgeError, LlmevalError, NoJudgeError, format_error
from pytest_llmeval.core.results import JudgeCall
from pytest_llmeval.judge.bound_question import BoundQuestion
from pytest_llmeval.judge.budget import Budget
from pytest_llmeval.judge.contract import JudgeClient, JudgeReply, JudgeRequest, Usage, Verdict
from pytest_llmeval.judge.failures import Failures
from pytest_llmeval.judge.heartbeat import LEASE_S, Heartbeat
from pytest_llmeval.judge.lease_watch import LeaseWatch
from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.judge.options import JudgeMode, records
from pytest_llmeval.judge.panel import Bound, BoundPanel
from pytest_llmeval.judge.prices import cost_usd
from pytest_llmeval.judge.questions.probabilities import enveloped
from pytest_llmeval.judge.questions.replies import read_reply, read_text
from pytest_llmeval.judge.spending import Spending
from pytest_llmeval.judge.stored_judgement import StoredJudgement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_llmeval.judge.store.cache import Cache
    from pytest_llmeval.judge.store.working import WorkingCache


class JudgeOffError(JudgeError):
    """Judges are switched off for this run, so their metrics are undefined."""

    def __init__(self) -> None:
        super().__init__("judges are off (--llmeval-judge=off)")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of a question.

    Attributes:
        verdict: The verdict, or why there is none.
        call: What it cost, if a model was ever asked.
        entry: What can be recorded.
        unread: The call before it, whose reply could not be read.
        jurors: Name of a juror to what came of its question, if a panel was asked; that has call and entry.
    """

    verdict: Verdict | LlmevalError
    call: JudgeCall | None = None
    entry: StoredJudgement | None = None
    unread: JudgeCall | None = None
    jurors: "Mapping[str, Judgement]" = field(default_factory=dict)

    @property
    def calls(self) -> Sequence[JudgeCall]:
        """All calls that it took."""
        if self.jurors:
            return [call._replace(judge=name) for name, each in self.jurors.items() for call in each.calls]
        return [each for each in (self.unread, self.call) if each is not None]

    @property
    def singles(self) -> "Sequence[tuple[str, Judgement]]":
        """What each judge said, with the name of the juror; empty where there is no panel."""
        return list(self.jurors.items()) or [("", self)]


@dataclass
class JudgeService:
    """The one place of a process where judges are asked.

    Attributes:
        mode: Which stores are read, and whether a model may be asked.
        limit: On calls in flight, those of targets included.
        working: The working cache.
        run: Id of the run, the same in all its processes.
        owner: Id of the process.
        budget: Of the run.
        lease_s: Seconds after which a killed process holds up no other.
    """

    mode: JudgeMode
    limit: CallLimit
    working: "WorkingCache"
    run: str
    owner: str
    budget: Budget = field(default_factory=Budget)
    lease_s: float = LEASE_S
    _made: set[str] = field(default_factory=set)
    _failed: set[tuple[str, str, str, int]] = field(default_factory=set)
    _waiting: "dict[str, tuple[str, asyncio.Future[Judgement]]]" = field(default_factory=dict)

    @property
    def asks(self) -> bool:
        """Whether a model may be asked."""
        return self.mode not in ("replay", "off")

    @property
    def records(self) -> bool:
        """Whether the judgements that a run uses are written beside its suites."""
        return records(self.mode)

    @cached_property
    def cache(self) -> "Cache":
        """The working cache."""
        return self.working.open()

    @cached_property
    def spending(self) -> Spending:
        """What the run may spend."""
        return Spending(self.budget, self.working, self.run, self.owner)

    @cached_property
    def heart(self) -> Heartbeat:
        """Keeps what this process holds."""
        return Heartbeat(self.limit, self.working, self.run, self.owner, self.lease_s)

    @cached_property
    def leases(self) -> LeaseWatch:
        """Tells when the calls of other processes end."""
        return LeaseWatch(self.working)

    @cached_property
    def _failures(self) -> Failures:
        return Failures(self.run, None if self.limit.shared is None else self.working)

    def known(self, asked: Bound) -> Judgement | None:
        """Return the result if no call is needed: a stored verdict, or an error if no call is allowed.

        Raises:
            LlmevalError: The cache cannot be used.
        """
        if isinstance(asked, BoundPanel):
            return self._known_of_panel(asked)
        if self.mode == "off":
            return Judgement(JudgeOffError())
        if self.mode != "refresh":
            recorded = asked.suite_judge.recordings.get(asked.key)
            if recorded is not None:
                return _stored(asked, recorded, "recorded")
        if self.mode == "replay":
            return Judgement(JudgeError(_miss(asked)))
        return self._cached(asked)

    def _known_of_panel(self, asked: BoundPanel) -> Judgement | None:
        found: list[Judgement] = []
        for each in asked.jurors.values():
            known = self.known(each)
            if known is None:
                return None
            found.append(known)
            if asked.asks_one and not isinstance(known.verdict, JudgeError):
                break
        return _of_panel(asked, found)

    def _cached(self, asked: BoundQuestion) -> Judgement | None:
        entry = self.cache.get(asked.key)
        if entry is None:
            return None
        fresh = asked.key in self._made or self._made_elsewhere(asked.key)
        return None if self.mode == "refresh" and not fresh else _stored(asked, entry, "cached", fresh=fresh)

    def _made_elsewhere(self, key: str) -> bool:
        """Return whether another process of the run asked for it, whose cost is the run's too."""
        return self.limit.shared is not None and self.cache.made_in(key, self.run)

    async def judge(self, asked: Bound) -> Judgement:
        """Return the verdict on a question, asking the model if need be.

        No process of the run asks what has been asked, unless it got no verdict and the case runs again.
        """
        if isinstance(asked, BoundPanel):
            return _of_panel(asked, await self._judged_by_panel(asked))
        try:
            judgement = await self._known_or_asked(asked)
        except LlmevalError as error:
            return Judgement(error)
        if isinstance(judgement.verdict, JudgeError):
            self._failed.add(asked.turn)
        return judgement

    async def _judged_by_panel(self, asked: BoundPanel) -> list[Judgement]:
        if not asked.asks_one:
            return await asyncio.gather(*map(self.judge, asked.singles))
        found: list[Judgement] = []
        for each in asked.jurors.values():
            found.append(await self.judge(each))
            if not isinstance(found[-1].verdict, JudgeError):
                break
        return found

    async def _known_or_asked(self, asked: BoundQuestion) -> Judgement:
        while True:
            known = self.known(asked)
            if known is not None:
                return known
            if asked.key not in self._waiting:
                started = asyncio.ensure_future(self._leased(asked, again=asked.turn in self._failed))
                self._waiting[asked.key] = asked.suite_judge.way, started
                started.add_done_callback(lambda _: self._waiting.pop(asked.key, None))
            way, waiting = self._waiting[asked.key]
            judgement = await asyncio.shield(waiting)
            if way == asked.suite_judge.way or not isinstance(judgement.verdict, JudgeError):
                return judgement

    async def _leased(self, asked: BoundQuestion, *, again: bool) -> Judgement:
        """Call the judge, or wait for the verdict if another process is calling it."""
        self.heart.beat()
        with self.limit.activity.waiting() as waits:
            while not self.cache.lease(asked.key, self.owner, self.lease_s):
                if (settled := self._settled(asked, again=again)) is not None:
                    return settled
                if not (self.cache.holder(asked.key) or self.run).startswith(self.run):
                    waits(
                        f"waiting for another run that has asked the same (up to {self.lease_s:g} s if it was killed)"
                    )
                await self.leases.ended(asked.key)
                if (settled := self._settled(asked, again=again)) is not None:
                    return settled
        try:
            # Another process may have asked, kept and released since we looked.
            return self._settled(asked, again=again) or await self._ask(asked)
        except NoJudgeError:
            raise
        except JudgeError as error:
            return self._keep_failure(asked, error, None)
        except (KeyboardInterrupt, SystemExit) as error:
            # Of a judge's or mode's own making, as Ctrl-C reaches the main thread only: they would end the event loop.
            return self._keep_failure(asked, JudgeError(f"the judge raised {format_error(error)}"), None)
        finally:
            self.cache.release(asked.key, self.owner)

    def _settled(self, asked: BoundQuestion, *, again: bool) -> Judgement | None:
        """Return what became of the question in this run or an earlier one."""
        if (known := self._cached(asked)) is not None:
            return known
        failed = None if again else self._failures.get(_failure_key(asked))
        return None if failed is None else Judgement(*failed)

    async def _ask(self, asked: BoundQuestion) -> Judgement:
        """Ask, and once more if the reply cannot be read and the mode wants that."""
        first = await self._ask_once(asked)
        if first.entry is not None or not asked.question.mode.asks_again:
            return first
        try:
            return replace(await self._ask_once(asked), unread=first.call)
        except LlmevalError as error:
            return Judgement(error, first.call)

    async def _ask_once(self, asked: BoundQuestion) -> Judgement:
        client = asked.suite_judge.client
        if client is None:
            raise NoJudgeError(asked.suite_judge.absent)
        async with self.limit.slot():
            suite_judge = asked.suite_judge
            reservation = await self.spending.reserve_call(asked.messages, suite_judge.largest_call, suite_judge.price)
            usage = Usage()
            started = time.perf_counter()
            try:
                reply = await _complete(client, asked.request())
                usage = reply.usage
            finally:
                seconds = round(time.perf_counter() - started, 3)  # rounded as in the store
                cost = cost_usd(suite_judge.price, usage)
                self.limit.activity.spend(cost)
                used = (usage.input_tokens, usage.output_tokens)
                self.spending.settle(reservation, tokens=None if None in used else sum(filter(None, used)), usd=cost)
        self.limit.succeeded()
        call = JudgeCall(asked.key, True, usage.input_tokens, usage.output_tokens, cost, seconds)
        try:
            verdict = read_reply(asked.question.mode, reply)
        except JudgeError as error:
            # A later request makes a call of its own.
            return self._keep_failure(asked, error, call._replace(id=f"{asked.key} {self.owner} {started}"))
        entry = StoredJudgement(
            asked.key, asked.case, asked.components(), reply.text, verdict.score, usage, seconds, cost
        )
        self.cache.put(entry, self.run)
        self._made.add(asked.key)
        return Judgement(verdict, call, entry)

    def _keep_failure(self, asked: BoundQuestion, error: JudgeError, call: JudgeCall | None) -> Judgement:
        self._failures.put(_failure_key(asked), error, call)
        return Judgement(error, call)


def _of_panel(asked: BoundPanel, told: "Sequence[Judgement]") -> Judgement:
    """Return what came of a question to a panel."""
    verdict = asked.reduced([each.verdict for each in told])
    return Judgement(verdict, jurors=dict(zip(asked.jurors, told, strict=not asked.asks_one)))


def _failure_key(asked: BoundQuestion) -> str:
    return f"{asked.key} {asked.suite_judge.way}"


async def _complete(client: JudgeClient, request: JudgeRequest) -> JudgeReply:
    reply = client.complete(request)
    return enveloped(request, reply if isinstance(reply, JudgeReply) else await reply)


def _stored(asked: BoundQuestion, entry: StoredJudgement, where: str, *, fresh: bool = False) -> Judgement:
    usage = entry.usage
    call = JudgeCall(entry.key, fresh, usage.input_tokens, usage.output_tokens, entry.cost_usd, entry.seconds)
    try:
        return Judgement(read_text(asked.question.mode, entry.reply), call, entry)
    except JudgeError as error:
        advice = "replace it with --llmeval-judge=refresh"
        return Judgement(JudgeError(f"the {where} reply cannot be read ({advice}): {error}", entry.reply))


def _miss(asked: BoundQuestion) -> str:
    why = asked.suite_judge.recordings.nearest(asked.case, asked.components())
    return (
        f"case {asked.case!r}: no recorded verdict of mode {asked.question.mode.name!r} "
        f"({why}); run once with --llmeval-judge=record"
    )
