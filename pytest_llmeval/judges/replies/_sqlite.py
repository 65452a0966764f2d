"""Replies in a SQLite database: all verdicts obtained on this machine, shared by its processes."""

import errno
import hashlib
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from pytest_llmeval.core import LlmevalError
from pytest_llmeval.data import OutputFile, OutputFolder
from pytest_llmeval.judges._processes import ticks
from pytest_llmeval.judges._stored_judgement import StoredJudgement

SCHEMA_VERSION: Final = 1
APPLICATION_ID: Final = 0x6C6C6D65
"""Marks the database as ours: a file of another program is never touched."""

_BUSY_S = 30.0
_STALE_S = 86_400.0
_LARGE_WAL = 4 << 20

_REMEDIES = {
    sqlite3.SQLITE_BUSY: ": another process keeps it locked",
    sqlite3.SQLITE_CANTOPEN: ": it and its folder must be writable",
    sqlite3.SQLITE_CORRUPT: ": delete the file; its verdicts are requested again",
    sqlite3.SQLITE_IOERR: ": the disk is full or damaged",
    sqlite3.SQLITE_FULL: ": free some disk space",
    sqlite3.SQLITE_READONLY: ": it and its folder must be writable",
}
"""By primary result code of SQLite."""

_SCHEMA = """
CREATE TABLE entries (
  key TEXT PRIMARY KEY, run TEXT NOT NULL, made REAL NOT NULL, mode TEXT NOT NULL, model TEXT NOT NULL,
  entry BLOB NOT NULL, checksum BLOB NOT NULL
);
CREATE INDEX entries_run ON entries (run);
CREATE TABLE leases (key TEXT PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE slots (
  run TEXT NOT NULL, slot INTEGER NOT NULL, owner TEXT NOT NULL, expires REAL NOT NULL, PRIMARY KEY (run, slot)
) WITHOUT ROWID;
CREATE TABLE limits (run TEXT PRIMARY KEY, value INTEGER NOT NULL, lowered REAL NOT NULL, at REAL NOT NULL)
  WITHOUT ROWID;
CREATE TABLE spent (
  run TEXT PRIMARY KEY, calls INTEGER NOT NULL, tokens INTEGER NOT NULL, nano_usd INTEGER NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE reservations (
  number INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, owner TEXT NOT NULL, calls INTEGER NOT NULL,
  tokens INTEGER NOT NULL, nano_usd INTEGER NOT NULL, expires REAL NOT NULL
);
CREATE INDEX reservations_run ON reservations (run);
CREATE TABLE answers (
  run TEXT NOT NULL, key TEXT NOT NULL, answer BLOB NOT NULL, at REAL NOT NULL, PRIMARY KEY (run, key)
);
CREATE TABLE requests (
  id TEXT PRIMARY KEY, provider TEXT NOT NULL, run TEXT NOT NULL, request BLOB NOT NULL, reply BLOB,
  listed INTEGER NOT NULL DEFAULT 0, form_refused INTEGER NOT NULL DEFAULT 0
);
"""

_OPEN: "weakref.WeakSet[Database]" = weakref.WeakSet()
_INHERITED: list[sqlite3.Connection] = []
"""Connections of the parent process: SQLite forbids a child to use them, and even to close them."""


class Database:
    """The SQLite database of the judge cache, which the processes and threads of a run share.

    One connection per process; short transactions.

    Attributes:
        path: The database.
    """

    def __init__(
        self, path: Path, *, clock: Callable[[], float] = time.time, ticks: Callable[[], float] = ticks
    ) -> None:
        """Open the database, and make it first if it is absent.

        Args:
            path: The database; its folder is created and git-ignored.
            clock: Tells when something was made.
            ticks: Tells how long something may still be held: seconds that are the same in all processes of the
                machine, and that no clock setting changes.

        Raises:
            LlmevalError: It cannot be made or opened, or the file is something else, or of a newer version.
        """
        self.path = path
        self.clock = clock
        self.ticks = ticks
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        try:
            _refuse_links(path)
            if not path.exists():
                _create(path)
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise LlmevalError(
                f"the judge cache {path} cannot be created ({reason}): choose a file in a writable folder"
            ) from error
        with self._session() as connection:
            self._tidy(connection)
        _OPEN.add(self)

    def close(self) -> None:
        """Put what was written into the main file, and close this process's connection; the next use opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(sqlite3.Error):  # another process reads, and will do it when it closes
                    _checkpoint_log(connection)
                connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @contextmanager
    def _session(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to one thread; errors of SQLite name the file."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._connect()
                yield self._connection
            except sqlite3.Error as error:
                remedy = _REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")
                raise LlmevalError(f"judge cache {self.path}: {error}{remedy}") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that may write from its beginning, so that it can neither fail half-way nor race."""
        with self._session() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk has ended it already
                    connection.execute("ROLLBACK")
                raise

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, by itself a transaction, and return all its rows."""
        with self._session() as connection:
            return connection.execute(statement, values).fetchall()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._check(connection)
            connection.execute("PRAGMA synchronous=NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        try:
            ((application,),) = connection.execute("PRAGMA application_id").fetchall()
            ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            application = version = 0
        if application != APPLICATION_ID:
            raise LlmevalError(f"{self.path} is not a judge cache: choose another file, or delete this one")
        if version > SCHEMA_VERSION:
            raise LlmevalError(
                f"the judge cache {self.path} is from a newer version of this plugin (schema {version}), expected "
                f"schema {SCHEMA_VERSION} at most: upgrade pytest-llmeval-suite, or name another file"
            )

    def _tidy(self, connection: sqlite3.Connection) -> None:
        """Forget what runs that never ended left behind, and take in a journal that a killed process let grow."""
        now = self.ticks()
        by_age, by_expiry = ("at < ?", (self.clock() - _STALE_S,)), ("abs(expires - ?) > ?", (now, _STALE_S))
        for table, (condition, values) in (
            ("answers", by_age),
            ("limits", by_age),
            ("spent", by_age),
            ("leases", by_expiry),
            ("slots", by_expiry),
            ("reservations", by_expiry),
        ):
            stale = f"FROM {table} WHERE {condition}"
            if connection.execute(f"SELECT 1 {stale} LIMIT 1", values).fetchall():
                connection.execute(f"DELETE {stale}", values)
        wal = self.path.with_name(self.path.name + "-wal")
        with suppress(OSError, sqlite3.OperationalError):
            if wal.stat().st_size > _LARGE_WAL:
                _checkpoint_log(connection)

    def _leave_to_parent(self) -> None:
        self._lock = threading.RLock()
        if self._connection is not None:
            _INHERITED.append(self._connection)
            self._connection = None


def _checkpoint_log(connection: sqlite3.Connection) -> None:
    """Move the judge cache's write-ahead log into its database, unless readers are in the way."""
    # Do not wait for readers: the last process to close does this anyway.
    connection.execute("PRAGMA busy_timeout=0")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.execute(f"PRAGMA busy_timeout={int(_BUSY_S * 1000)}")


def _refuse_links(path: Path) -> None:
    """Refuse links in place of the judge cache's SQLite files: SQLite would follow them."""
    OutputFile(path).refuse_links()
    for suffix in ("", "-journal", "-shm", "-wal"):
        file = path.with_name(path.name + suffix)
        if file.is_symlink():
            raise OSError(errno.ELOOP, f"{file.name} is a symbolic link, expected a file", str(file))


def _create(path: Path) -> None:
    """Create a judge cache under another name and link it into place, unless another process was faster.

    Switching a database to WAL while others open it fails: SQLite does not wait there.
    """
    folder = OutputFile(path).folder
    if folder.path.name == OutputFolder.WORKING or not folder.path.exists():
        folder.make()  # elsewhere it would hide the user's own files from git
    folder.remove_leftovers()
    scratch = folder.scratch_path()
    try:
        connection = sqlite3.connect(scratch, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
            connection.executescript(
                f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION}; {_SCHEMA}"
            )
        finally:
            connection.close()
        with suppress(FileExistsError):
            os.link(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def _after_fork() -> None:
    """Leave the open connections of judge caches to the parent process."""
    for database in list(_OPEN):
        database._leave_to_parent()  # noqa: SLF001 (of this module)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)


_AT_ONCE = 500
"""Rows read by one statement: SQLite limits how many values it takes, and others want to write in between."""

_PUT = "INSERT OR REPLACE INTO entries (key, run, made, mode, model, entry, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)"
_COLUMNS = "CAST(key AS BLOB), CAST(entry AS BLOB), CAST(checksum AS BLOB)"
"""Columns as bytes, since damaged text that is no UTF-8 could not even be fetched."""

_GET = f"SELECT {_COLUMNS} FROM entries WHERE key = ?"  # noqa: S608 (constants)


class SqliteReplies(Database):
    """The judgements in a judge cache, by key.

    A row whose checksum is wrong reads as absent, so that the verdict is asked for again; `verify` lists it.
    """

    def get(self, key: str) -> StoredJudgement | None:
        """Return the judgement kept under a key."""
        rows = self._rows(_GET, (key,))
        return _intact_judgement(*rows[0]) if rows else None

    def put(self, entries: Sequence[StoredJudgement]) -> None:
        """Store judgements, all or none; each replaces an older one of its key."""
        now = self.clock()
        rows = []
        for entry in entries:
            # ASCII takes half of a surrogate pair, which models do emit; as UTF-8 it cannot be written.
            data = json.dumps(entry.to_json(), ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
            parts = entry.components
            rows.append(
                (entry.key, "", now, parts["mode"], parts["model"], data, _reply_checksum(entry.key.encode(), data))
            )
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
                yield last, key.decode("ascii", "backslashreplace"), _intact_judgement(key, data, checksum)


def _reply_checksum(key: bytes, data: bytes) -> bytes:
    """Return the checksum of a judgement in the judge cache, with its key."""
    return hashlib.blake2b(key + b"\n" + data, digest_size=8).digest()


def _intact_judgement(key: bytes, data: bytes, checksum: bytes) -> StoredJudgement | None:
    """Return a judgement from its row in the judge cache; ``None`` if the row is damaged."""
    if _reply_checksum(key, data) != checksum:
        return None
    try:
        return StoredJudgement.from_json(json.loads(data))
    except (ValueError, RecursionError):
        return None
