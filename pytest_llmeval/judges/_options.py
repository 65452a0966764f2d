"""Options of the command line and the configuration for judges, and the budget of a run."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from pytest_llmeval.core import LlmevalError, counted, resolve, unknown_name
from pytest_llmeval.data import OutputFolder
from pytest_llmeval.judges._spec import JudgeSpec, PanelSpec

if TYPE_CHECKING:
    from pytest_llmeval.judges._stored_judgement import ReplyStore

_CENTS = 2


class StoreKind(Struct, frozen=True):
    """A kind of store for judge replies, such as a SQLite database or a directory.

    Attributes:
        open: The class, or its import string; it is called with the path.
        coordination: Path of the database of the processes of a run, from the store; empty if the store is that
            database. A store that is a file has it beside itself: ``../.llmeval/cache.sqlite3``.
    """

    KNOWN: ClassVar[dict[str, "StoreKind"]] = {}
    """The stores by the name that precedes a path in ``llmeval_cache``."""

    open: "str | Callable[[Path], ReplyStore]"
    coordination: str = ""


StoreKind.KNOWN |= {
    "sqlite": StoreKind("pytest_llmeval.judges.replies._sqlite:SqliteReplies"),
    "directory": StoreKind(
        "pytest_llmeval.judges.replies._directory:DirectoryReplies", f"{OutputFolder.WORKING}/cache.sqlite3"
    ),
}


_PREFIX = re.compile("([a-z]{2,}):(.+)", re.DOTALL)


class CachePlace(NamedTuple):
    """The place and kind of the store for judge replies, as the setting ``llmeval_cache`` names it.

    The default is that of a configuration without the setting.

    Attributes:
        path: A file or directory.
        store: A name in `StoreKind.KNOWN`.
    """

    path: Path = Path(OutputFolder.WORKING, "cache.sqlite3")
    store: str = "sqlite"

    @classmethod
    def parse(cls, text: str) -> "CachePlace":
        """Read ``PATH`` or ``STORE:PATH``.

        Raises:
            ValueError: There is no such store.
        """
        if (parts := _PREFIX.fullmatch(text)) is None:
            return cls(Path(text))
        if parts[1] not in StoreKind.KNOWN:
            raise ValueError(unknown_name("store", parts[1], StoreKind.KNOWN))
        return cls(Path(parts[2]), parts[1])

    def within(self, folder: Path) -> "CachePlace":
        """The place of the store for a relative path in a folder."""
        return self._replace(path=folder / self.path)

    def exists(self) -> bool:
        """Whether anything has been stored at the place.

        Raises:
            LlmevalError: The folder may not be entered.
        """
        try:
            return self.path.exists()
        except OSError as error:
            raise LlmevalError(f"judge cache {self.path}: {error.strerror}") from error

    def size(self) -> int:
        """The bytes of the stored verdicts."""
        files = self.path.glob("*.json") if self.path.is_dir() else [self.path]
        size = 0
        for file in files:
            with suppress(FileNotFoundError):  # another process was faster
                size += file.lstat().st_size
        return size

    def __str__(self) -> str:
        return str(self.path) if self.store == "sqlite" else f"{self.store}:{self.path}"

    @property
    def coordination(self) -> Path:
        """The database of the processes of a run, which is never committed."""
        return Path(os.path.normpath(self.path / StoreKind.KNOWN[self.store].coordination))  # ".." leaves a file, too

    @property
    def is_coordinated(self) -> bool:
        """True if that database exists; a folder that may not be entered has none."""
        return os.path.exists(self.coordination)  # noqa: PTH110 (`Path.exists` raises there)

    def open(self) -> "ReplyStore":
        """Open the store, and create it first if it is absent.

        Raises:
            LlmevalError: It cannot be created or opened.
        """
        opened: ReplyStore = resolve(StoreKind.KNOWN[self.store].open)(self.path)
        return opened


class Budget(Struct, frozen=True):
    """Limits on the judge calls of one run over all its processes; ``None`` for none.

    Attributes:
        calls: Calls of judges.
        tokens: Of their requests and replies.
        usd: US dollars.
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None

    def __bool__(self) -> bool:
        return (self.calls, self.tokens, self.usd) != (None, None, None)

    def part(self, index: int, count: int) -> "Budget":
        """The budget of one of several shards; the parts add up to the whole.

        Args:
            index: Of the shard, counted from 1.
            count: Of shards.
        """

        def share(amount: int | None) -> int | None:
            return None if amount is None else amount * index // count - amount * (index - 1) // count

        return Budget(share(self.calls), share(self.tokens), None if self.usd is None else self.usd / count)

    def __str__(self) -> str:
        parts = [counted(self.calls, "call")] if self.calls is not None else []
        parts += [counted(self.tokens, "token")] if self.tokens is not None else []
        parts += [f"{_amount(self.usd)} USD"] if self.usd is not None else []
        return ", ".join(parts)


def _amount(usd: float) -> str:
    """The dollars of a judge budget as text, with cents and as many further digits as needed."""
    text = f"{usd:.9f}".rstrip("0")
    return text if len(text.partition(".")[2]) > _CENTS else f"{usd:.{_CENTS}f}"


JudgeMode: TypeAlias = Literal["auto", "replay", "record", "refresh", "off", "defer"]


class JudgeOptions(Struct, frozen=True):
    """The judge options of a run, such as the mode, model, budget and cache.

    Attributes:
        mode: Which stores are read, and whether a model may be asked.
        model: ``PROVIDER:NAME``; overrides the suites.
        base_url: Where it is served.
        concurrency: Most calls at a time, of judges and targets, over all processes.
        budget: Most that the run may spend on judges.
        cache: The place of stored verdicts.
        run: Id of the run.
        worker: Name of this process among those of the run; nothing where it is the only one.
        workers: How many processes of the run make calls.
    """

    mode: JudgeMode = "auto"
    model: str | None = None
    base_url: str | None = None
    concurrency: int = 16
    budget: Budget = field(default_factory=Budget)
    cache: CachePlace = CachePlace()
    run: str = ""
    worker: str = ""
    workers: int = 1

    @property
    def records(self) -> bool:
        """True if the judgements that the run uses are written next to its suites."""
        return self.mode in ("record", "refresh")

    @property
    def shares(self) -> bool:
        """True if the run has several processes."""
        return bool(self.worker)

    def owner(self, worker: str) -> str:
        """The beginning of the names of a worker as an owner of leases; the name of the process follows."""
        return f"{self.run} {worker}"

    def chosen(self, suite: JudgeSpec | PanelSpec) -> JudgeSpec | PanelSpec:
        """The judge of a suite: of a panel the juror of the model that the user names, or that model alone."""
        if isinstance(suite, JudgeSpec):
            return self.spec(suite)
        if self.model is None:
            return replace(suite, judges=tuple(map(self.spec, suite.judges)))
        return self.spec(next((judge for judge in suite.judges if judge.model == self.model), JudgeSpec()))

    def spec(self, suite: JudgeSpec) -> JudgeSpec:
        """The judge that options name in place of one judge of a suite.

        Another model than the suite's is not at the suite's address, and has neither its key nor its price.
        """
        if self.model is not None and self.model != suite.model:
            return replace(
                suite, model=self.model, base_url=self.base_url, api_key_env=None, api_version=None, price=None
            )
        return suite if self.base_url is None else replace(suite, base_url=self.base_url)
