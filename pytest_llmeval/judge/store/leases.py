"""Leases and slots: which process makes which call, and how many calls are in flight in all processes."""

__all__ = ("LONGEST_S", "Leases")

from collections.abc import Sequence
from typing import Final

from pytest_llmeval.judge.store.database import Store
from pytest_llmeval.services.machine import is_dead

LONGEST_S: Final = 300.0
"""Seconds for which anything may be held without being renewed. What ends later was held in another boot."""

_TAKE = """
INSERT INTO leases (key, owner, expires) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, expires = excluded.expires
WHERE leases.owner = excluded.owner OR leases.expires <= ? OR leases.expires > ?
RETURNING owner
"""

_TAKEN = "SELECT slot FROM slots WHERE run = ? AND expires > ?"


class Leases(Store):
    """A lease expires after `ttl` seconds unless renewed, so a killed process does not block others for long.

    An owner is any text that no other process uses. If its last word is the name of a process
    (`pytest_llmeval.services.machine.process_name`), its leases end with that process.
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
        taken = (key, owner, now + min(ttl, LONGEST_S), *inherited)
        if self._rows(_TAKE, taken):
            return True
        holder = self.holder(key)
        if not inherit or holder is None or not is_dead(holder.rpartition(" ")[2]):
            return False
        self.end(holder)
        return bool(self._rows(_TAKE, taken))

    def holder(self, key: str) -> str | None:
        """Return the owner of a lease."""
        found = self._rows("SELECT owner FROM leases WHERE key = ?", (key,))
        return str(found[0][0]) if found else None

    def held(self) -> set[str]:
        """Return the keys of all leases that have not expired and whose owners may live."""
        now = self.ticks()
        found = self._rows(
            "SELECT key, owner FROM leases WHERE expires > ? AND expires <= ?", (now, now + 2 * LONGEST_S)
        )
        dead = {owner for owner in {owner for _, owner in found} if is_dead(owner.rpartition(" ")[2])}
        return {key for key, owner in found if owner not in dead}

    def is_orphaned(self, key: str) -> bool:
        """Return whether an owner died during its call: its lease has expired and has no new owner."""
        return bool(self._rows("SELECT 1 FROM leases WHERE key = ? AND expires <= ?", (key, self.ticks())))

    def release(self, key: str, owner: str) -> None:
        """Give a lease back; that of another owner stays."""
        self._rows("DELETE FROM leases WHERE key = ? AND owner = ?", (key, owner))

    def take_slots(self, run: str, owner: str, limit: int, ttl: float, wanted: int = 1) -> list[int]:
        """Take the right to have more calls under way.

        Args:
            run: The run whose processes share the limit.
            owner: Who calls.
            limit: Most calls at once, over all processes of the run.
            ttl: Seconds until the slots are free again by themselves.
            wanted: How many calls.

        Returns:
            The numbers of the slots: fewer where not as many are free.
        """
        if len(self._rows(_TAKEN, (run, self.ticks()))) >= limit:
            return []  # without the lock that a transaction takes from those who write
        now = self.ticks()
        with self._transaction() as connection:
            connection.execute("DELETE FROM slots WHERE run = ? AND expires <= ?", (run, now))
            taken = {slot for (slot,) in connection.execute(_TAKEN, (run, now)).fetchall()}
            # The limit may have been lowered since: what counts is how many are taken, not their numbers.
            free = [number for number in range(limit) if number not in taken][: min(wanted, limit - len(taken))]
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
