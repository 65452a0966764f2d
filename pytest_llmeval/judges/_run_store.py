"""The verdicts that the processes of a run share."""

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import structs

from pytest_llmeval.core import AnyError, BudgetError, JudgeCall, JudgeError, LlmevalError
from pytest_llmeval.judges._options import Budget, CachePlace, JudgeMode
from pytest_llmeval.judges._panel import JurorQuestion, JurorVerdict, NoJudgeError
from pytest_llmeval.judges._protocol import JudgeReply, Message, UnaskedError, Usage, Verdict, sent_tokens
from pytest_llmeval.judges._recordings import Judgements
from pytest_llmeval.judges._service import CallLimit
from pytest_llmeval.judges._spec import Price
from pytest_llmeval.judges._stored_judgement import ReplyStore, StoredJudgement, difference
from pytest_llmeval.services import SharedTask, Snapshot

if TYPE_CHECKING:
    from pytest_llmeval.judges._coordination import Coordination, Reservation
    from pytest_llmeval.judges._deferral import Deferral, Requests

_Store = TypeVar("_Store")
_Result = TypeVar("_Result")

LEASE_S = 30.0
ACTIVITY = "activity "
"""The beginning of the keys under which the processes of a run publish their activity."""

_PUBLISH_S = 0.5
_POLL_S = 0.02
_REPLY_TOKENS = 1024


@dataclass
class WorkingCache:
    """The judge cache of a process, with the notes and slots that its run shares; each part is opened on first use.

    It keeps the notes of the run (`pytest_llmeval.services._retrying.Notes`) and its slots
    (`pytest_llmeval.judges._service.SharedSlots`). Sharing saves calls, and no result depends on it: where the database
    cannot be used, notes and slots are those of this process, as in a run of one.

    Attributes:
        place: The place of both.
        run: Id of the run, the same in all its processes.
        owner: Id of the process.
        ceiling: Most calls at a time, over all processes.
        processes: How many processes of the run make calls.
    """

    place: CachePlace
    run: str
    owner: str
    ceiling: int = 1
    processes: int = 1
    is_alone: bool = field(default=False, init=False)
    """True once the database could not be used for notes, slots or leases of answers."""
    _replies: "ReplyStore | None" = None
    _coordination: "Coordination | None" = None
    _requests: "Requests | None" = None
    _notes: dict[str, str] = field(default_factory=dict)
    _slots: set[int] = field(default_factory=set)

    @property
    def replies(self) -> "ReplyStore":
        """The stored replies.

        Raises:
            LlmevalError: They cannot be used.
        """
        if self._replies is None:
            self._replies = _open_cache(self.place.open)
        return self._replies

    @property
    def coordination(self) -> "Coordination":
        """The coordination of the processes of a run.

        Raises:
            LlmevalError: It cannot be used.
        """
        if self._coordination is None:
            from pytest_llmeval.judges._coordination import Coordination

            self._coordination = _open_cache(partial(Coordination, self.place.coordination))
        return self._coordination

    @property
    def requests(self) -> "Requests":
        """The deferred requests.

        Raises:
            LlmevalError: They cannot be used.
        """
        if self._requests is None:
            from pytest_llmeval.judges._deferral import Requests

            self._requests = _open_cache(partial(Requests, self.place.coordination))
        return self._requests

    @property
    def is_coordinated(self) -> bool:
        """True if this process has shared anything with others of a run."""
        return self._coordination is not None

    def _share(self, operation: "Callable[[Coordination], _Result]", alone: Callable[[], _Result]) -> _Result:
        """The result of an operation on the coordination, or of its counterpart if that cannot be used."""
        if not self.is_alone:
            try:
                return operation(self.coordination)
            except LlmevalError:
                self.is_alone = True
        return alone()

    def get(self, key: str) -> str | None:
        """A text that a process of the run has put into the judge cache."""
        return self._share(lambda shared: shared.get_answer(self.run, key), lambda: self._notes.get(key))

    def put(self, key: str, text: str) -> None:
        """Store a text until the run ends."""
        self._share(lambda shared: shared.put_answer(self.run, key, text), lambda: self._notes.update({key: text}))

    def claim(self, key: str, ttl: float) -> bool:
        """Take the sole right to ask for an answer; one that its owner did not give back is not taken over."""
        return self._share(lambda shared: shared.lease(key, self.owner, ttl, inherit=False), lambda: True)

    def release(self, key: str) -> None:
        """Let others ask for an answer."""
        self._share(lambda shared: shared.release(key, self.owner), lambda: None)

    def orphan(self, key: str) -> None:
        """Leave an answer to the process that runs its case."""
        self._share(lambda shared: shared.expire(key, self.owner), lambda: None)

    def is_orphaned(self, key: str) -> bool:
        """Whether a process died, or was cut off, while it asked for an answer."""
        return self._share(lambda shared: shared.is_orphaned(key), lambda: False)

    def renew(self, ttl: float) -> None:
        """Put off the end of all that this process holds."""
        self._share(lambda shared: shared.renew(self.owner, ttl), lambda: None)

    def take(self, calls: int) -> Sequence[int]:
        """Free call slots, at most one per call."""

        def take_shared(shared: "Coordination") -> Sequence[int]:
            return shared.take_slots(self.run, self.owner, shared.limit(self.run, self.ceiling), LEASE_S, calls)

        return self._share(take_shared, lambda: self._take_own(calls))

    def _take_own(self, calls: int) -> Sequence[int]:
        """Call slots of this process's part of the limit."""
        free = [slot for slot in range(max(1, self.ceiling // self.processes)) if slot not in self._slots][:calls]
        self._slots.update(free)
        return free

    def free(self, slots: Sequence[int]) -> None:
        """Give slots back."""
        self._share(
            lambda shared: shared.free_slots(self.run, slots, self.owner),
            lambda: self._slots.difference_update(slots),
        )

    def slow_down(self) -> None:
        """Halve the number of call slots."""
        self._share(lambda shared: shared.lower_limit(self.run, self.ceiling), lambda: 0)

    def speed_up(self) -> None:
        """Allow one slot more, up to the ceiling."""
        self._share(lambda shared: shared.raise_limit(self.run, self.ceiling), lambda: 0)

    def close(self) -> None:
        """Close what of the judge cache is open."""
        for store in (self._replies, self._coordination, self._requests):
            if store is not None:
                store.close()


def _open_cache(store: Callable[[], _Store]) -> _Store:
    """Open the judge cache or its database; the error names the option that moves it."""
    try:
        return store()
    except LlmevalError as error:
        raise LlmevalError(f"{error} (--llmeval-cache=PATH)") from error


@dataclass
class RunStore:
    """The judge verdicts of a run: recordings, then the cache; no process of the run asks what another has asked.

    A question that got no verdict is asked again only if its case runs again.

    Attributes:
        mode: Which stores are read, and whether a model may be asked.
        limit: On calls in flight.
        working: The working cache.
        budget: Of the run.
        lease_s: Seconds after which a killed process holds up no other.
    """

    mode: JudgeMode
    limit: CallLimit
    working: WorkingCache
    budget: Budget = field(default_factory=Budget)
    lease_s: float = LEASE_S
    _fresh: set[str] = field(default_factory=set)
    _failed: set[tuple[str, str, str, int]] = field(default_factory=set)
    _failures: dict[str, tuple[JudgeError, JudgeCall | None]] = field(default_factory=dict)
    _waiting: dict[str, tuple[str, SharedTask[JurorVerdict]]] = field(default_factory=dict)

    @property
    def asks(self) -> bool:
        """True if a model may be asked."""
        return self.mode not in ("replay", "off", "defer")

    @property
    def replies(self) -> "ReplyStore":
        """The stored replies."""
        return self.working.replies

    @property
    def coordination(self) -> "Coordination":
        """The coordination of the processes of the run."""
        return self.working.coordination

    @cached_property
    def spending(self) -> "Spending":
        """The budget of the run."""
        return Spending(self.budget, self.working)

    @cached_property
    def deferral(self) -> "Deferral":
        """The questions that are put off, in this run or an earlier one."""
        from pytest_llmeval.judges._deferral import Deferral

        working = self.working
        return Deferral(working.place.coordination, working.run, self.mode == "defer", lambda: working.requests)

    @cached_property
    def heart(self) -> "Heartbeat":
        """Keeps what this process holds."""
        return Heartbeat(self.limit, self.working, self.lease_s)

    @cached_property
    def leases(self) -> "LeaseWatch":
        """Watches for the end of the calls of other processes."""
        return LeaseWatch(self.working)

    def known(self, question: JurorQuestion) -> JurorVerdict | None:
        """The verdict on a question if no call is needed: a stored one, or an error if no call is allowed.

        Raises:
            LlmevalError: The cache cannot be used.
        """
        stored = self.stored(question)
        if stored is None and self.mode == "defer":
            return JurorVerdict(self.deferral.put(question))
        return stored

    def stored(self, question: JurorQuestion) -> JurorVerdict | None:
        """The verdict that is known without a call, now or later.

        Raises:
            LlmevalError: The cache cannot be used.
        """
        if self.mode == "off":
            return JurorVerdict(UnaskedError.off())
        if self.mode != "refresh":
            recorded = question.juror.recordings.get(question.key)
            if recorded is not None:
                if recorded.components != (made_of := question.components()):
                    return JurorVerdict(_foreign(question, difference(made_of, recorded.components)))
                return _stored_verdict(question, recorded, "recorded")
        if self.mode == "replay":
            return JurorVerdict(JudgeError(_unrecorded_reason(question)))
        cached = self._find_cached(question)
        if cached is None and self.mode != "refresh" and (entry := self.deferral.take(question)) is not None:
            self.replies.put([entry])
            return _stored_verdict(question, entry, "deferred")
        return cached

    def _find_cached(self, question: JurorQuestion) -> JurorVerdict | None:
        """The verdict in the judge cache, as far as this run uses it."""
        entry = self.replies.get(question.key)
        if entry is None:
            return None
        fresh = question.key in self._fresh or self._is_fresh_elsewhere(entry)
        return None if self.mode == "refresh" and not fresh else _stored_verdict(question, entry, "cached", fresh=fresh)

    def _is_fresh_elsewhere(self, entry: StoredJudgement) -> bool:
        """Whether another process of the run asked for it, whose cost is the run's."""
        if self.limit.shared is None:
            return False
        return self.working.get(_fresh_key(entry)) is not None

    async def obtain(self, question: JurorQuestion, ask: Callable[[], Awaitable[JurorVerdict]]) -> JurorVerdict:
        """The verdict, asked for here or in another process of the run.

        Raises:
            LlmevalError: The budget is spent, or the cache cannot be used.
        """
        verdict = await self._await_verdict(question, ask)
        if isinstance(verdict.verdict, JudgeError):
            self._failed.add(question.turn)
        return verdict

    async def _await_verdict(self, question: JurorQuestion, ask: Callable[[], Awaitable[JurorVerdict]]) -> JurorVerdict:
        """The verdict that this process asks for, once for all that wait for it."""
        while True:
            entry = self._waiting.get(question.key)
            if entry is None or entry[1].is_cancelled:
                entry = (
                    question.juror.way,
                    SharedTask(self._ask_under_lease(question, ask, again=question.turn in self._failed)),
                )
                self._waiting[question.key] = entry
                entry[1].task.add_done_callback(partial(self._end, question.key, entry))
            way, waiting = entry
            verdict = await waiting.result()
            # A judge that cannot be reached may be reached another way, as another suite has it.
            if way == question.juror.way or not isinstance(verdict.verdict, JudgeError):
                return verdict
            if (known := self.known(question)) is not None:
                return known

    def _end(self, key: str, entry: tuple[str, SharedTask[JurorVerdict]], _: object) -> None:
        """Forget a question that nobody asks any more."""
        if self._waiting.get(key) is entry:
            del self._waiting[key]

    async def _ask_under_lease(
        self, question: JurorQuestion, ask: Callable[[], Awaitable[JurorVerdict]], *, again: bool
    ) -> JurorVerdict:
        """Call the judge, or wait for the verdict if another process is calling it."""
        self.heart.beat()
        with self.limit.activity.waiting() as waits:
            while not self.coordination.lease(question.key, self.working.owner, self.lease_s):
                if (settled := self._find_settled(question, again=again)) is not None:
                    return settled
                run = self.working.run
                if not (self.coordination.holder(question.key) or run).startswith(run):
                    waits(
                        f"waiting for another run that has asked the same (up to {self.lease_s:g} s if it was killed)"
                    )
                await self.leases.ended(question.key)
                if (settled := self._find_settled(question, again=again)) is not None:
                    return settled
        try:
            # Another process may have asked, kept and released since we looked.
            return self._find_settled(question, again=again) or await ask()
        except NoJudgeError:
            raise
        except JudgeError as error:
            return self.keep_failure(question, error, None)
        except (KeyboardInterrupt, SystemExit) as error:
            # Raised by the judge or mode; Ctrl-C reaches the main thread only. They would end the event loop.
            return self.keep_failure(question, JudgeError(f"the judge raised {AnyError(error).text}"), None)
        finally:
            self.coordination.release(question.key, self.working.owner)

    def _find_settled(self, question: JurorQuestion, *, again: bool) -> JurorVerdict | None:
        """The verdict or error that this run or an earlier one has for a question, if any."""
        if (known := self._find_cached(question)) is not None:
            return known
        failed = None if again else self._failure(_failure_key(question))
        return None if failed is None else JurorVerdict(*failed)

    def _failure(self, key: str) -> tuple[JudgeError, JudgeCall | None] | None:
        """The reason why a question of this run has no verdict, and the cost of the call if a reply came."""
        if self.limit.shared is None:
            return self._failures.get(key)
        text = self.working.get(key)
        if text is None:
            return None
        message, reply, call = json.loads(text)
        return JudgeError(message, reply), JudgeCall(*call) if call is not None else None

    def keep_failure(self, question: JurorQuestion, error: JudgeError, call: JudgeCall | None) -> JurorVerdict:
        """Keep why a question has no verdict until the run ends."""
        if call is not None:  # a later request makes a call of its own
            call = call._replace(id=f"{question.key} {self.working.owner} {time.perf_counter()}")
        if self.limit.shared is None:
            self._failures[_failure_key(question)] = error, call
        else:
            self.working.put(_failure_key(question), json.dumps((str(error), error.reply, call)))
        return JurorVerdict(error, call)

    def keep(self, question: JurorQuestion, reply: JudgeReply, verdict: Verdict, call: JudgeCall) -> JurorVerdict:
        """Keep a verdict in the cache; return it, with what can be recorded.

        If this process was stopped for longer than its lease, another run may have asked the same. What that has kept
        has been seen, so it counts here.
        """
        other = self._find_cached(question)
        if other is not None and isinstance(other.verdict, Verdict):
            return structs.replace(other, call=call)
        seconds = call.seconds or 0.0
        entry = StoredJudgement(
            question.key,
            question.case,
            question.components(),
            reply.text,
            verdict.score,
            reply.usage,
            seconds,
            call.cost_usd,
        )
        if self.limit.shared is not None:  # before the verdict, which may be the last that a killed process does
            self.working.put(_fresh_key(entry), "")
        self.replies.put([entry])
        self._fresh.add(question.key)
        return JurorVerdict(verdict, call, entry)

    async def reserve(self, question: JurorQuestion) -> "Reservation | None":
        """Set the most that a call may cost aside from the budget.

        Raises:
            BudgetError: Not enough is left.
        """
        juror = question.juror
        return await self.spending.reserve_call(question.messages, juror.model, juror.largest_call, juror.price)

    def settle(self, reservation: "Reservation | None", usage: Usage, cost: float | None) -> None:
        """Replace what a call set aside of the budget by what was used; unknown use counts as all of it."""
        used = (usage.input_tokens, usage.output_tokens)
        self.spending.settle(reservation, tokens=None if None in used else sum(filter(None, used)), usd=cost)


def _failure_key(question: JurorQuestion) -> str:
    """The key of the note that a judge question got no verdict in this run."""
    return f"no verdict {question.key} {question.juror.way}"


def _fresh_key(entry: StoredJudgement) -> str:
    """The key of the note that a run asked for a judge verdict; a refreshed reply has another key than the old one."""
    return f"new {entry.key} {hashlib.sha256(entry.reply.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _stored_verdict(
    question: JurorQuestion, entry: StoredJudgement, where: str, *, fresh: bool = False
) -> JurorVerdict:
    """A judge's verdict from a stored reply; the error for an unreadable one names the remedy."""
    usage = entry.usage
    call = JudgeCall(entry.key, fresh, usage.input_tokens, usage.output_tokens, entry.cost_usd, entry.seconds)
    try:
        return JurorVerdict(question.question.mode.read_text(entry.reply), call, entry)
    except JudgeError as error:
        advice = "replace it with --llmeval-judge=refresh"
        return JurorVerdict(JudgeError(f"the {where} reply cannot be read ({advice}): {error}", entry.reply))


def _foreign(question: JurorQuestion, differs: str) -> JudgeError:
    """The error of a recorded verdict that has the key of this judge question and the digests of another."""
    return JudgeError(
        f"case {question.case!r}: the recorded verdict with the key {question.key} belongs to another question (it "
        f"differs in {differs}): restore the file, or replace the verdict with --llmeval-judge=refresh"
    )


def _unrecorded_reason(question: JurorQuestion) -> str:
    """The message for a judge question without a recorded verdict: its nearest recording, and the remedy."""
    why = question.juror.recordings.nearest(question.case, question.components())
    return (
        f"case {question.case!r}: {Judgements.NOT_RECORDED} of mode {question.question.mode.name!r} "
        f"({why}); run once with --llmeval-judge=record"
    )


@dataclass(frozen=True)
class Spending:
    """The judge budget that the processes of a run share.

    Attributes:
        budget: Of the run.
        working: The working cache.
    """

    budget: Budget
    working: WorkingCache

    async def reserve_call(
        self,
        messages: Iterable[Message],
        model: str,
        parameters: Mapping[str, Any],
        price: Price | None,
        calls: int = 1,
    ) -> "Reservation | None":
        """Set the most that calls may cost aside."""
        if not self.budget:
            return None
        sent = sent_tokens(messages, model)
        most = parameters.get("max_tokens")
        written = _REPLY_TOKENS if most is None else int(most)
        usd = Usage(sent, written).cost_usd(price) or 0.0
        return await self.reserve(calls=calls, tokens=calls * (sent + written), usd=calls * usd)

    async def reserve(self, *, calls: int, tokens: int, usd: float) -> "Reservation":
        """Set a part of the budget aside for a call, so that all processes together never spend more.

        Raises:
            BudgetError: Not enough is left.
        """
        while True:
            reservation = self.working.coordination.reserve(
                self.working.run, self.budget, self.working.owner, calls=calls, tokens=tokens, usd=usd
            )
            if reservation.granted:
                return reservation
            if reservation.exhausted:
                raise BudgetError(f"the budget of {self.budget} {self._why_refused(tokens, usd)}")
            await asyncio.sleep(_POLL_S)  # calls under way may cost less than was set aside for them

    def _why_refused(self, tokens: int, usd: float) -> str:
        """The reason why a call of this size is refused; a budget too small for any call is a reason of its own."""
        limits = self.budget
        if limits.tokens is not None and tokens > limits.tokens:
            return f"is too small for a call of up to {tokens} tokens"
        if limits.usd is not None and usd > limits.usd:
            return f"is too small for a call that may cost up to {usd:.6f} USD"
        return "is spent"

    def settle(self, reservation: "Reservation | None", *, tokens: int | None, usd: float | None) -> None:
        """Replace what was set aside by what was used; where that is not known, all of it counts as used."""
        if reservation is not None:
            self.working.coordination.settle(reservation, tokens=tokens, usd=usd)


@dataclass
class Heartbeat:
    """Renews a process's leases, call slots and budget reservations in the judge cache until it is closed.

    Attributes:
        limit: On calls in flight; it counts them.
        working: The working cache.
        lease_s: Seconds for which anything is held without being renewed.
    """

    limit: CallLimit
    working: WorkingCache
    lease_s: float = LEASE_S
    _task: asyncio.Task[None] | None = None
    _published: Snapshot | None = None

    def beat(self) -> None:
        """Keep this process's leases and slots alive while it works."""
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._renew())

    async def aclose(self) -> None:
        """Stop: the run is over, though the event loop may continue."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _renew(self) -> None:
        """Put off the end of this process's leases from time to time, and publish its activity."""
        pause = min(_PUBLISH_S, self.lease_s / 4)
        while True:
            for _ in range(int(self.lease_s / 4 / pause)):
                await asyncio.sleep(pause)
                self._publish()
            self.working.renew(self.lease_s)

    def _publish(self) -> None:
        """Show the process that watches the run what this one does."""
        snapshot = self.limit.activity.snapshot()
        if self.limit.shared is not None and snapshot != self._published:
            self._published = snapshot
            self.working.put(f"{ACTIVITY}{self.working.owner}", json.dumps(snapshot))


@dataclass
class LeaseWatch:
    """Polls for judge leases that end, while questions wait for the verdicts of other processes.

    Attributes:
        working: The working cache.
    """

    working: WorkingCache
    _waiting: dict[str, list[asyncio.Future[None]]] = field(default_factory=dict)
    _timer: asyncio.TimerHandle | None = None

    async def ended(self, key: str) -> None:
        """Wait until a lease is given back, has expired, or its owner has died; or until the cache cannot be read."""
        ended = asyncio.get_running_loop().create_future()
        if not self._waiting:
            self._look_later()
        self._waiting.setdefault(key, []).append(ended)
        try:
            await ended
        finally:
            if ended in self._waiting.get(key, ()):  # given up
                self._waiting[key].remove(ended)
                if not self._waiting[key]:
                    del self._waiting[key]

    def _look_later(self) -> None:
        """Look at the leases again after a pause."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_POLL_S, self._look_around)

    def _look_around(self) -> None:
        """Wake the questions whose leases have ended."""
        try:
            held = self.working.coordination.held()
        except LlmevalError:  # reported when a lease is asked for
            held = set()
        for key in [key for key in self._waiting if key not in held]:
            for ended in self._waiting.pop(key):
                if not ended.done():
                    ended.set_result(None)
        if self._waiting:
            self._look_later()
