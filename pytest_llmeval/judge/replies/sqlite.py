"""Replies in a SQLite database: all verdicts obtained on this machine, shared by its processes."""

import hashlib
import json
from collections.abc import Iterator, Sequence

from pytest_llmeval.judge.replies.database import Database
from pytest_llmeval.judge.stored_judgement import StoredJudgement

_AT_ONCE = 500
"""Rows read by one statement: SQLite limits how many values it takes, and others want to write in between."""

_PUT = "INSERT OR REPLACE INTO entries (key, run, made, mode, model, entry, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)"
_COLUMNS = "CAST(key AS BLOB), CAST(entry AS BLOB), CAST(checksum AS BLOB)"
"""As bytes whatever damage has made of them: text that is no UTF-8 could not even be fetched."""

_GET = f"SELECT {_COLUMNS} FROM entries WHERE key = ?"  # noqa: S608 (constants)


class SqliteReplies(Database):
    """Judgements by key.

    A row whose checksum is wrong reads as absent, so that the verdict is asked for again; `verify` lists it.
    """

    def get(self, key: str) -> StoredJudgement | None:
        """Return the judgement kept under a key."""
        found = self._rows(_GET, (key,))
        return _intact(*found[0]) if found else None

    def put(self, entries: Sequence[StoredJudgement]) -> None:
        """Store judgements, all or none; each replaces an older one of its key."""
        now = self.clock()
        rows = []
        for entry in entries:
            # ASCII takes half of a surrogate pair, which models do emit; as UTF-8 it cannot be written.
            data = json.dumps(entry.to_json(), ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
            parts = entry.components
            rows.append((entry.key, "", now, parts["mode"], parts["model"], data, _checksum(entry.key.encode(), data)))
        if len(rows) == 1:  # a statement by itself is a transaction, and takes a third of the time of one around it
            self._rows(_PUT, rows[0])
            return
        with self._transaction() as connection:
            connection.executemany(_PUT, rows)

    def entries(self) -> Iterator[StoredJudgement]:
        """Yield all judgements that can be read, in the order in which they were kept."""
        for _, _, entry in self._all():
            if entry is not None:
                yield entry

    def verify(self) -> list[str]:
        """Return the faults: those SQLite finds in the file, and the keys of damaged rows."""
        faults = [str(line) for (line,) in self._rows("PRAGMA integrity_check") if line != "ok"]
        return faults + sorted(
            f"entry {key}: found a wrong checksum or an invalid judgement"
            for _, key, entry in self._all()
            if entry is None
        )

    def prune(self, older_than_s: float | None = None, model: str | None = None) -> int:
        """Delete judgements that fulfil all conditions, and rows that cannot be read; return how many.

        Args:
            older_than_s: Made longer ago than this.
            model: Of this ``PROVIDER:NAME``.
        """
        before = None if older_than_s is None else self.clock() - older_than_s
        unreadable = [(row,) for row, _, entry in self._all() if entry is None]
        with self._transaction() as connection:
            bad = connection.executemany("DELETE FROM entries WHERE rowid = ?", unreadable).rowcount
            done = connection.execute(
                "DELETE FROM entries WHERE (?1 IS NULL OR made < ?1) AND (?2 IS NULL OR model = ?2)", (before, model)
            )
        self._rows("VACUUM")
        return max(bad, 0) + done.rowcount

    def _all(self) -> Iterator[tuple[int, str, StoredJudgement | None]]:
        """Yield number, key and judgement of every row; some at a time, so that others can write in between."""
        last = 0
        statement = f"SELECT rowid, {_COLUMNS} FROM entries WHERE rowid > ? ORDER BY rowid LIMIT {_AT_ONCE}"  # noqa: S608 (constants)
        while rows := self._rows(statement, (last,)):
            for last, key, data, checksum in rows:
                yield last, key.decode("ascii", "backslashreplace"), _intact(key, data, checksum)


def _checksum(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(key + b"\n" + data, digest_size=8).digest()


def _intact(key: bytes, data: bytes, checksum: bytes) -> StoredJudgement | None:
    if _checksum(key, data) != checksum:
        return None
    try:
        return StoredJudgement.from_json(json.loads(data))
    except (ValueError, RecursionError):
        return None
