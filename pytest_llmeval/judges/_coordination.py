"""Coordination of the processes of a run."""

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from pytest_llmeval.judges._options import Budget
from pytest_llmeval.judges._processes import is_dead
from pytest_llmeval.judges.replies._sqlite import Database

LONGEST_S: Final = 300.0
"""Seconds for which anything may be held without being renewed. What ends later was held in another boot."""

_TAKE = """
INSERT INTO leases (key, owner, expires) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, expires = excluded.expires
WHERE leases.owner = excluded.owner OR leases.expires <= ? OR leases.expires > ?
RETURNING owner
"""

_USED_SLOTS = "SELECT slot FROM slots WHERE run = ? AND expires > ?"

_WINDOW_S = 1.0
"""Refusals that come within this time of another are about the same burst of calls: the limit falls once."""

_HELD_S = 60.0
_NANO = 1_000_000_000

_SUMS = "SELECT TOTAL(calls), TOTAL(tokens), TOTAL(nano_usd)"
_RESERVE = """
INSERT INTO reservations (run, owner, calls, tokens, nano_usd, expires) VALUES (?, ?, ?, ?, ?, ?) RETURNING number
"""
_SETTLE = """
INSERT INTO spent (run, calls, tokens, nano_usd, at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (run) DO UPDATE SET calls = calls + excluded.calls, tokens = tokens + excluded.tokens,
nano_usd = nano_usd + excluded.nano_usd, at = excluded.at
"""


class Reservation(Struct, frozen=True):
    """The result of reserving a part of a run's judge budget.

    Attributes:
        run: Whose budget it is.
        number: Of the part that was set apart; ``None`` if none was.
        exhausted: Whether none can be, even if calls under way use nothing; if not, the caller can ask again.
    """

    run: str
    number: int | None = None
    exhausted: bool = False

    @property
    def granted(self) -> bool:
        """True if the judge call may be made."""
        return self.number is not None


class Coordination(Database):
    """Leases, call slots, limits, budgets and messages that the processes of a run share in the judge cache.

    A lease expires after `ttl` seconds unless renewed, so a killed process does not block others for long.

    An owner is any text that no other process uses. If its last word is the name of a process
    (`pytest_llmeval.judges._processes.process_name`), its leases end with that process.
    """

    def lease(self, key: str, owner: str, ttl: float, *, inherit: bool = True) -> bool:
        """Take the sole right to ask for a verdict or an answer; an own lease is renewed.

        The new owner must check the cache again: another process may have stored the verdict since.

        Args:
            key: Of the verdict or answer.
            owner: Who wants to ask.
            ttl: Seconds until the lease expires.
            inherit: Whether one that has expired may be taken over.

        Returns:
            Whether `owner` has it now.
        """
        now = self.ticks()
        # The time may have been read before a wait for the database, in which another process took a lease.
        inherited = (now, now + 2 * LONGEST_S) if inherit else (float("-inf"), float("inf"))
        values = (key, owner, now + min(ttl, LONGEST_S), *inherited)
        if self._rows(_TAKE, values):
            return True
        holder = self.holder(key)
        if not inherit or holder is None or not is_dead(holder.rpartition(" ")[2]):
            return False
        self.end(holder)
        return bool(self._rows(_TAKE, values))

    def holder(self, key: str) -> str | None:
        """The owner of a lease."""
        owners = self._rows("SELECT owner FROM leases WHERE key = ?", (key,))
        return str(owners[0][0]) if owners else None

    def held(self) -> set[str]:
        """The keys of all leases that have not expired and whose owners may live."""
        now = self.ticks()
        leases = self._rows(
            "SELECT key, owner FROM leases WHERE expires > ? AND expires <= ?", (now, now + 2 * LONGEST_S)
        )
        dead = {owner for owner in {owner for _, owner in leases} if is_dead(owner.rpartition(" ")[2])}
        return {key for key, owner in leases if owner not in dead}

    def held_by(self, owner: str) -> int:
        """The number of leases of an owner; the owner's last word may be left out."""
        begins = f"{owner} "
        rows = self._rows("SELECT COUNT(*) FROM leases WHERE substr(owner, 1, ?) = ?", (len(begins), begins))
        return int(rows[0][0])

    def is_orphaned(self, key: str) -> bool:
        """Whether an owner died during its call: its lease has expired and has no new owner."""
        return bool(self._rows("SELECT 1 FROM leases WHERE key = ? AND expires <= ?", (key, self.ticks())))

    def expire(self, key: str, owner: str) -> None:
        """Let a lease expire at once; that of another owner stays."""
        self._rows("UPDATE leases SET expires = ? WHERE key = ? AND owner = ?", (self.ticks(), key, owner))

    def release(self, key: str, owner: str) -> None:
        """End the right to ask for a verdict or an answer, if it is the owner's: another process may then ask."""
        self._rows("DELETE FROM leases WHERE key = ? AND owner = ?", (key, owner))

    def take_slots(self, run: str, owner: str, limit: int, ttl: float, calls: int = 1) -> list[int]:
        """Take the right to have more calls under way.

        Args:
            run: The run whose processes share the limit.
            owner: Who calls.
            limit: Most calls at once, over all processes of the run.
            ttl: Seconds until the slots are free again by themselves.
            calls: How many calls.

        Returns:
            The numbers of the slots: fewer where not as many are free.
        """
        if len(self._rows(_USED_SLOTS, (run, self.ticks()))) >= limit:
            return []  # without the lock that a transaction takes from those who write
        now = self.ticks()
        with self._transaction() as connection:
            connection.execute("DELETE FROM slots WHERE run = ? AND expires <= ?", (run, now))
            used = {slot for (slot,) in connection.execute(_USED_SLOTS, (run, now)).fetchall()}
            # The limit may have been lowered since: what counts is how many are taken, not their numbers.
            free = [number for number in range(limit) if number not in used][: min(calls, limit - len(used))]
            held = [(run, slot, owner, now + ttl) for slot in free]
            connection.executemany("INSERT INTO slots VALUES (?, ?, ?, ?)", held)
        return free

    def free_slots(self, run: str, slots: Sequence[int], owner: str) -> None:
        """Give slots back; one that has expired and is another owner's stays."""
        with self._transaction() as connection:
            connection.executemany(
                "DELETE FROM slots WHERE run = ? AND slot = ? AND owner = ?", [(run, slot, owner) for slot in slots]
            )

    def end(self, owner: str) -> None:
        """Let all that an owner holds expire at once: its process is dead. Its last word may be left out."""
        self._put_off(owner, self.ticks())

    def renew(self, owner: str, ttl: float) -> None:
        """Put off the end of all that an owner holds: leases, slots and reservations."""
        self._put_off(owner, self.ticks() + ttl)

    def _put_off(self, owner: str, end: float) -> None:
        begins = f"{owner} "
        whose = "(owner = ? OR substr(owner, 1, ?) = ?)"
        with self._transaction() as connection:
            for table in ("leases", "slots", "reservations"):
                connection.execute(
                    f"UPDATE {table} SET expires = ? WHERE {whose} AND expires > ?",  # noqa: S608 (constants)
                    (end, owner, len(begins), begins, self.ticks()),
                )

    def limit(self, run: str, configured: int) -> int:
        """The number of calls that may be under way at once, at most `configured`."""
        lowered = self._rows("SELECT value FROM limits WHERE run = ?", (run,))
        return min([configured, *(int(value) for (value,) in lowered)])

    def lower_limit(self, run: str, configured: int) -> int:
        """Halve the limit, to at least 1 and at most once a second; return the new limit."""
        now = self.ticks()
        with self._transaction() as connection:
            stored = connection.execute("SELECT value, lowered FROM limits WHERE run = ?", (run,)).fetchall()
            value, lowered = stored[0] if stored else (configured, -math.inf)
            value = min(int(value), configured)
            if now - lowered >= _WINDOW_S:
                value = max(1, value // 2)
                connection.execute("INSERT OR REPLACE INTO limits VALUES (?, ?, ?, ?)", (run, value, now, self.clock()))
        return value

    def raise_limit(self, run: str, configured: int) -> int:
        """Raise a lowered limit by 1, up to `configured`; return the new limit."""
        raised = self._rows(
            "UPDATE limits SET value = MIN(value + 1, ?), at = ? WHERE run = ? RETURNING value",
            (configured, self.clock(), run),
        )
        return min([configured, *(int(value) for (value,) in raised)])

    def reserve(
        self,
        run: str,
        limits: Budget,
        owner: str,
        *,
        calls: int = 1,
        tokens: int = 0,
        usd: float = 0.0,
        ttl: float = _HELD_S,
    ) -> Reservation:
        """Reserve the maximum usage of a call, so that all processes together stay within the budget.

        A reservation left by a killed process counts as spent after `ttl` seconds: the call
        may have been charged.

        Args:
            run: Whose budget it is.
            limits: The budget.
            owner: Who calls; `renew` puts the end off.
            calls: How many calls.
            tokens: Most tokens of them.
            usd: Most that they can cost, to a billionth of a dollar.
            ttl: Seconds that they may take.
        """
        now = self.ticks()
        most = (calls, tokens, round(usd * _NANO))
        with self._transaction() as connection:
            (spent,) = connection.execute(f"{_SUMS} FROM spent WHERE run = ?", (run,)).fetchall()
            reserved = f"{_SUMS} FROM reservations WHERE run = ? AND expires"
            (expired,) = connection.execute(f"{reserved} <= ?", (run, now)).fetchall()
            (held,) = connection.execute(f"{reserved} > ?", (run, now)).fetchall()
            certain = [sum(parts) for parts in zip(spent, expired, most, strict=True)]
            if _exceeds_budget(certain, limits):
                return Reservation(run, exhausted=True)
            if _exceeds_budget([sum(parts) for parts in zip(certain, held, strict=True)], limits):
                return Reservation(run)
            ((number,),) = connection.execute(_RESERVE, (run, owner, *most, now + ttl)).fetchall()
        return Reservation(run, number)

    def settle(self, reservation: Reservation, *, tokens: int | None = None, usd: float | None = None) -> None:
        """Replace what was reserved by what was used; where that is not known, all of it counts as used.

        Args:
            reservation: As granted; settling it again changes nothing.
            tokens: That the calls used.
            usd: What they cost.
        """
        with self._transaction() as connection:
            for calls, most, nano_usd in connection.execute(
                "DELETE FROM reservations WHERE run = ? AND number = ? RETURNING calls, tokens, nano_usd",
                (reservation.run, reservation.number),
            ).fetchall():
                used = (calls, most if tokens is None else tokens, nano_usd if usd is None else round(usd * _NANO))
                connection.execute(_SETTLE, (reservation.run, *used, self.clock()))

    def put_answer(self, run: str, key: str, answer: str) -> None:
        """Share an answer of the target, as JSON text, with the other processes of a run."""
        values = (run, key, answer.encode("utf-8", "surrogatepass"), self.clock())
        self._rows("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", values)

    def get_answer(self, run: str, key: str) -> str | None:
        """An answer of the target that a process of the run has shared."""
        answers = self._rows("SELECT answer FROM answers WHERE run = ? AND key = ?", (run, key))
        return str(answers[0][0], "utf-8", "surrogatepass") if answers else None

    def get_answers(self, run: str, prefix: str) -> list[str]:
        """The values that processes of a run share under keys with a common beginning, sorted by key."""
        answers = self._rows(
            "SELECT answer FROM answers WHERE run = ? AND substr(key, 1, ?) = ? ORDER BY key",
            (run, len(prefix), prefix),
        )
        return [str(answer, "utf-8", "surrogatepass") for (answer,) in answers]

    def forget_run(self, run: str) -> None:
        """Delete the messages of a run and the leases of its killed processes; judgements are kept.

        Args:
            run: Whose processes have ended. Their names as owners begin with it and a space.
        """
        mine = f"{run} "
        with self._transaction() as connection:
            for table in ("answers", "limits", "reservations", "slots", "spent"):
                connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))  # noqa: S608 (constants of this line)
            connection.execute("DELETE FROM leases WHERE substr(owner, 1, ?) = ?", (len(mine), mine))


def _exceeds_budget(units: Sequence[float], limits: Budget) -> bool:
    """Whether a number of judge calls, tokens and billionths of a dollar exceeds the budget of a run."""
    # Money in whole numbers: three times 0.1 is exactly 0.3 here, and any number of calls adds up without error.
    allowed = (limits.calls, limits.tokens, None if limits.usd is None else round(limits.usd * _NANO))
    return any(most is not None and used > most for used, most in zip(units, allowed, strict=True))
