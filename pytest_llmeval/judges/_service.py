"""The service that puts questions to clients, within an adaptive limit on calls and at known prices."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from pytest_llmeval.core import JudgeCall, JudgeError, LlmevalError, with_value
from pytest_llmeval.judges._panel import Judgement, JurorQuestion, JurorVerdict, NoJudgeError, PanelQuestion
from pytest_llmeval.judges._protocol import JudgeClient, JudgeReply, JudgeRequest, Usage, Verdict, enveloped
from pytest_llmeval.judges.questions._replies import read_reply
from pytest_llmeval.services import Activity, Secrets, calls_that_fit, caught, together

if TYPE_CHECKING:
    from pytest_llmeval.judges._coordination import Reservation


_POLL_S = 0.01
_SETTLING_S = 1.0

_within: "ContextVar[CallLimit | None]" = ContextVar("_within", default=None)
"""Whose slot the current task or thread holds."""

_turn: "ContextVar[int | None]" = ContextVar("_turn", default=None)
"""The turn of the case that the current task answers."""


class SharedSlots(Protocol):
    """The slots for judge and target calls in flight that all processes of a run share."""

    def take(self, calls: int) -> Sequence[int]:
        """Free call slots, at most one per call."""

    def free(self, slots: Sequence[int]) -> None:
        """Give slots back."""

    def slow_down(self) -> None:
        """Halve the number of call slots."""

    def speed_up(self) -> None:
        """Raise the limit by one slot, up to what the user allows."""


@dataclass
class CallLimit:
    """A limit on concurrent judge and target calls, halved on a rate limit and raised after a window of good calls.

    The calls of a case are admitted before those of the cases that began later, so that cases end in their order: a run
    that is cut off has paid for few unfinished ones. Other calls are admitted in the order in which they ask. All
    methods but `within` and `close` run in one event loop.

    Attributes:
        ceiling: What the user allows, as far as the limit of open files does.
        shared: The slots of all processes; ``None`` in a run of one.
        activity: Counts the calls in flight.
    """

    ceiling: int
    shared: SharedSlots | None = None
    activity: Activity = field(default_factory=Activity)
    current: int = 0
    _is_closed: bool = False
    _in_use: int = 0
    _good: int = 0
    _settled_at: float = 0.0
    _waiting: "list[tuple[int, int, asyncio.Future[int | None]]]" = field(default_factory=list)
    """A heap: turn, arrival, and what a call waits for."""
    _arrivals: "count[int]" = field(default_factory=count)
    _idle: list[int] = field(default_factory=list)
    _exchange: "asyncio.Handle | None" = None

    def __post_init__(self) -> None:
        self.ceiling = calls_that_fit(self.ceiling)
        self.current = self.ceiling

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the calls in flight; a call that is made within another is a part of it."""
        if _within.get() is self:
            yield
            return
        slot = await self.take()
        try:
            with self.within():
                yield
        finally:
            self.give_back(slot)

    def close(self) -> None:
        """Admit no call any more: the run ends. Any thread may call this."""
        self._is_closed = True

    async def take(self) -> int | None:
        """Wait for one of the calls in flight; return what to give back.

        Raises:
            LlmevalError: The limit is closed.
        """
        if self._is_closed:
            raise LlmevalError("no call is begun any more: the run has been interrupted")
        if self.shared is None and not self._waiting and self._in_use < self.current:
            self._in_use += 1
            self.activity.in_flight += 1
            return None
        turn: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        arrival, own = next(self._arrivals), _turn.get()
        heappush(self._waiting, (arrival if own is None else own, arrival, turn))
        self._admit()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give_back(turn.result())  # handed on before the call was given up
            raise

    def in_turn(self) -> AbstractContextManager[None]:
        """A context whose calls of judges are those of one case, whose turn is before that of later ones."""
        return with_value(_turn, next(self._arrivals))

    def within(self) -> AbstractContextManager[None]:
        """A context whose calls of judges are parts of the call under way: to wait for it they would hang."""
        return with_value(_within, self)

    def give_back(self, slot: int | None) -> None:
        """End a call of a judge or target, so that another takes its place."""
        self.activity.in_flight -= 1
        self._in_use -= 1
        if slot is not None:
            self._idle.append(slot)
        self._admit()

    def _admit(self) -> None:
        """Let those in who wait, as far as there are places, and see to it that there are slots for them."""
        self._let_in()
        if self.shared is not None and (self._idle or (self._room() and self._exchange is None)):
            self._exchange_soon(self.shared)

    def _let_in(self) -> None:
        """Let those in who wait, as far as there are places; slots of this process are handed on inside it."""
        while self._room() and (self.shared is None or self._idle):
            turn = heappop(self._waiting)[-1]
            self._in_use += 1
            self.activity.in_flight += 1
            turn.set_result(None if self.shared is None else self._idle.pop())

    def _room(self) -> int:
        """The number of waiting calls that may start."""
        if self._is_closed:
            return 0
        while self._waiting and self._waiting[0][-1].done():  # given up
            heappop(self._waiting)
        return max(0, min(len(self._waiting), self.current - self._in_use))

    def _exchange_soon(self, shared: SharedSlots) -> None:
        """Exchange slots with the other processes when the event loop gets to it."""
        if self._exchange is not None:
            self._exchange.cancel()
        self._exchange = asyncio.get_running_loop().call_soon(self._exchange_slots, shared)

    def _exchange_slots(self, shared: SharedSlots) -> None:
        """Give back the slots that nobody here uses, and take those that are wanted: once for many calls."""
        self._exchange = None
        spare, self._idle = self._idle, []
        try:
            if spare:
                shared.free(spare)
            if waiting := self._room():
                self._idle.extend(shared.take(waiting))
        except LlmevalError as error:
            for *_, turn in self._waiting:
                if not turn.done():
                    turn.set_exception(error)
            return
        self._let_in()
        if self._idle:
            self._exchange_soon(shared)
        elif self._room():
            self._exchange = asyncio.get_running_loop().call_later(_POLL_S, self._exchange_slots, shared)

    def slow_down(self) -> None:
        """Halve the limit; the rate limits of calls that were under way at that time count once."""
        now = asyncio.get_running_loop().time()
        self._good = 0
        if now < self._settled_at:
            return
        self._settled_at = now + _SETTLING_S
        self.current = max(1, self.current // 2)
        if self.shared is not None:
            self.shared.slow_down()

    def succeeded(self) -> None:
        """Note a good call of a judge or target."""
        self._good += 1
        if self.current < self.ceiling and self._good >= self.current:
            self._good = 0
            self.current += 1
            if self.shared is not None:
                self.shared.speed_up()
            self._admit()


class JudgeStore(Protocol):
    """A store of judge verdicts that also decides which process asks for a missing one."""

    def known(self, question: JurorQuestion) -> JurorVerdict | None:
        """The verdict on a question if no call is needed: a stored one, or an error if no call is allowed."""

    async def obtain(self, question: JurorQuestion, ask: Callable[[], Awaitable[JurorVerdict]]) -> JurorVerdict:
        """The reply, asked for here or wherever else the same is being asked."""

    async def reserve(self, question: JurorQuestion) -> "Reservation | None":
        """Set the most that a judge call may cost aside.

        Raises:
            BudgetError: Not enough is left.
        """

    def settle(self, reservation: "Reservation | None", usage: Usage, cost: float | None) -> None:
        """Replace what a judge call set aside by what was used."""

    def keep(self, question: JurorQuestion, reply: JudgeReply, verdict: Verdict, call: JudgeCall) -> JurorVerdict:
        """Keep a verdict; return the one that counts, with what can be recorded."""

    def keep_failure(self, question: JurorQuestion, error: JudgeError, call: JudgeCall | None) -> JurorVerdict:
        """Keep why there is no verdict, as long as it is not to be asked for again; return it."""


class UnkeptVerdicts:
    """A store that keeps no judge verdicts; only questions that all cases share are asked once."""

    def __init__(self) -> None:
        self._shared: dict[str, asyncio.Future[tuple[JurorVerdict | None, BaseException | None]]] = {}

    def known(self, question: JurorQuestion) -> None:
        """Return nothing."""

    async def obtain(self, question: JurorQuestion, ask: Callable[[], Awaitable[JurorVerdict]]) -> JurorVerdict:
        """The verdict; a question that cases share is asked once for all of them, even if it fails."""
        if not question.question.shared:
            return await ask()
        if question.key not in self._shared:
            self._shared[question.key] = asyncio.ensure_future(caught(ask()))
        verdict, error = await self._shared[question.key]
        if verdict is None:
            assert error is not None
            raise error
        return verdict

    async def reserve(self, question: JurorQuestion) -> None:
        """Allow any call."""

    def settle(self, reservation: "Reservation | None", usage: Usage, cost: float | None) -> None:
        """Count nothing."""

    def keep(self, question: JurorQuestion, reply: JudgeReply, verdict: Verdict, call: JudgeCall) -> JurorVerdict:
        """Return the verdict; nothing is kept."""
        del question, reply
        return JurorVerdict(verdict, call)

    def keep_failure(self, question: JurorQuestion, error: JudgeError, call: JudgeCall | None) -> JurorVerdict:
        """The stored reason why there is no verdict."""
        del question
        return JurorVerdict(error, call)


@dataclass(frozen=True)
class JudgeService:
    """The one service that asks judges: it looks a question up in the store, then calls the model.

    Attributes:
        limit: On calls in flight, those of targets included.
        store: Looked into before a model is asked.
        strict: Whether errors that are not those of a judge, such as a missing package, are raised.
    """

    limit: CallLimit
    store: JudgeStore
    strict: bool = False

    def known(self, question: PanelQuestion) -> Judgement | None:
        """The judgement of a question if no call is needed: stored verdicts, or an error if no call is allowed.

        Raises:
            LlmevalError: The store cannot be used.
        """
        return question.known(self.store.known)

    async def judge(self, question: PanelQuestion) -> Judgement:
        """The judgement of a question; models are asked for verdicts that are not stored.

        Raises:
            LlmevalError: Of a strict service: nothing can be asked.
        """
        verdicts: dict[str, JurorVerdict] = {}
        while names := question.unanswered(verdicts):
            answers = await together([self._of_juror(question.jurors[name]) for name in names])
            verdicts |= zip(names, answers, strict=True)
        judgement = question.judgement(verdicts)
        error = judgement.verdict
        if self.strict and isinstance(error, LlmevalError) and not isinstance(error, JudgeError):
            raise error
        return judgement

    async def _of_juror(self, question: JurorQuestion) -> JurorVerdict:
        """The verdict of one juror, or its error."""
        try:
            return self.store.known(question) or await self.store.obtain(question, partial(self._ask, question))
        except LlmevalError as error:
            return JurorVerdict(error)

    async def _ask(self, question: JurorQuestion) -> JurorVerdict:
        """Ask, and once more if the reply cannot be read and the mode wants that."""
        async with self.limit.slot():  # what is asked again goes before the next question
            first = await self._ask_once(question)
            if isinstance(first.verdict, Verdict) or not question.question.mode.asks_again:
                return first
            try:
                return replace(await self._ask_once(question), unread=first.call)
            except LlmevalError as error:
                return JurorVerdict(error, first.call)

    async def _ask_once(self, question: JurorQuestion) -> JurorVerdict:
        """The verdict in one reply of a model, whose cost is charged to the budget."""
        juror = question.juror
        if juror.client is None:
            raise NoJudgeError(juror.absent)
        async with self.limit.slot():
            reservation = await self.store.reserve(question)
            usage = Usage()
            started = time.perf_counter()
            try:
                reply = await _complete(juror.client, question.request())
                usage = reply.usage
            finally:
                seconds = round(time.perf_counter() - started, 3)  # rounded as in the store
                cost = usage.cost_usd(juror.price)
                self.limit.activity.spend((usage.input_tokens or 0) + (usage.output_tokens or 0), cost)
                self.store.settle(reservation, usage, cost)
        self.limit.succeeded()
        call = JudgeCall(question.key, True, usage.input_tokens, usage.output_tokens, cost, seconds)
        try:
            verdict = read_reply(question.question.mode, reply)
        except JudgeError as error:
            return self.store.keep_failure(question, error, call)
        return self.store.keep(question, reply, verdict, call)


async def _complete(client: JudgeClient, request: JudgeRequest) -> JudgeReply:
    """The reply of a judge's client with its probabilities, and without secrets, since replies are stored."""
    reply = client.complete(request)
    returned = reply if isinstance(reply, JudgeReply | str) else await reply
    complete = enveloped(request, JudgeReply(returned) if isinstance(returned, str) else returned)
    clean = Secrets.of_variables().without(complete.text)  # judges quote answers, and replies are stored
    return complete if clean == complete.text else replace(complete, text=clean)
