"""Limits shared by the processes of a run: concurrent calls, and the budget."""

__all__ = ("Reservation", "SharedLimits")

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_llmeval.judge.budget import Budget
from pytest_llmeval.judge.store.database import Store

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


@dataclass(frozen=True, slots=True)
class Reservation:
    """What came of asking for a part of the budget.

    Attributes:
        run: Whose budget it is.
        number: Of the part that was set apart; ``None`` if none was.
        exhausted: Whether none can be, whatever calls under way use; otherwise it is worth while to ask again.
    """

    run: str
    number: int | None = None
    exhausted: bool = False

    @property
    def granted(self) -> bool:
        """Whether the call may be made."""
        return self.number is not None


class SharedLimits(Store):
    """Limits that hold over all processes of a run."""

    def limit(self, run: str, configured: int) -> int:
        """Return how many calls may be under way at once, at most `configured`."""
        found = self._rows("SELECT value FROM limits WHERE run = ?", (run,))
        return min([configured, *(int(value) for (value,) in found)])

    def lower_limit(self, run: str, configured: int) -> int:
        """Halve the limit, to at least 1 and at most once a second; return the new limit."""
        now = self.ticks()
        with self._transaction() as connection:
            found = connection.execute("SELECT value, lowered FROM limits WHERE run = ?", (run,)).fetchall()
            value, lowered = found[0] if found else (configured, -math.inf)
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
        wanted = (calls, tokens, round(usd * _NANO))
        with self._transaction() as connection:
            (spent,) = connection.execute(f"{_SUMS} FROM spent WHERE run = ?", (run,)).fetchall()
            reserved = f"{_SUMS} FROM reservations WHERE run = ? AND expires"
            (expired,) = connection.execute(f"{reserved} <= ?", (run, now)).fetchall()
            (held,) = connection.execute(f"{reserved} > ?", (run, now)).fetchall()
            certain = [sum(parts) for parts in zip(spent, expired, wanted, strict=True)]
            if _exceeds(certain, limits):
                return Reservation(run, exhausted=True)
            if _exceeds([sum(parts) for parts in zip(certain, held, strict=True)], limits):
                return Reservation(run)
            ((number,),) = connection.execute(_RESERVE, (run, owner, *wanted, now + ttl)).fetchall()
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


def _exceeds(units: Sequence[float], limits: Budget) -> bool:
    # Money in whole numbers: three times 0.1 is exactly 0.3 here, and any number of calls adds up without error.
    allowed = (limits.calls, limits.tokens, None if limits.usd is None else round(limits.usd * _NANO))
    return any(most is not None and used > most for used, most in zip(units, allowed, strict=True))
