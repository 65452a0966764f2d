"""Deferred questions in the form of a provider's batch interface."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pytest_llmeval.core import Fault, JudgeError, counted, decode, encode, grouped, printable
from pytest_llmeval.data import OutputFile, OutputFolder, display_path
from pytest_llmeval.judges._panel import JurorQuestion
from pytest_llmeval.judges._protocol import (
    JudgeReply,
    JudgeRequest,
    Stopped,
    UnaskedError,
    Usage,
    enveloped,
    sent_tokens,
    uncounted_media,
)
from pytest_llmeval.judges._spec import Price
from pytest_llmeval.judges._stored_judgement import StoredJudgement
from pytest_llmeval.judges.clients._base import BatchFailure
from pytest_llmeval.judges.questions._replies import read_reply, score_probabilities
from pytest_llmeval.judges.replies._sqlite import Database
from pytest_llmeval.services import Secrets

_FOLDER: Final = "requests"
_ATTEMPTS: Final = 2
"""A reply that cannot be read is asked for once more."""

_PUT = """
INSERT INTO requests (id, provider, run, request) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET run = excluded.run, request = excluded.request
"""


class DeferredRequest(Struct, frozen=True):
    """A judge request that waits to be sent in a file to a provider's batch interface.

    Attributes:
        id: The ``custom_id``, or ``key`` of Gemini: the key of the verdict, with ``-2`` for the second attempt.
        case: Id of the case that asked.
        model: ``PROVIDER:NAME``.
        line: What the provider gets.
        sent_tokens: Estimate of the tokens of the question.
        uncounted: How many media of the question have no part in it.
        written_tokens: Most tokens of the reply; ``None`` where the user sets no limit.
        price: Of the model; ``None`` where none is known.
        expected_of: As in `JudgeRequest`.
    """

    id: str
    case: str
    model: str
    line: dict[str, Any]
    sent_tokens: int
    written_tokens: int | None = None
    price: Price | None = None
    expected_of: str | None = None
    uncounted: int = 0

    @property
    def provider(self) -> str:
        """The provider that the deferred request is for."""
        return self.model.partition(":")[0]

    @property
    def cost_usd(self) -> float | None:
        """The cost at batch rate, without tokens of a reply without a limit; ``None`` if no price is known."""
        return Usage(self.sent_tokens, self.written_tokens or 0).cost_usd(self.price and self.price.of_batches)

    @property
    def text(self) -> str:
        """The request as a line of a batch file."""
        return f"{json.dumps(self.line, allow_nan=False)}\n"


class DeferredReply(Struct, frozen=True):
    """A provider's batch reply to a deferred judge request.

    Attributes:
        text: As the reply to a live call would be stored.
        usage: Tokens of the call.
        stopped: As in `JudgeReply`.
        cost_usd: At the rate of the batch interface; ``None`` where no price is known.
    """

    text: str
    usage: Usage = Usage()
    stopped: Stopped = "stop"
    cost_usd: float | None = None


class Requests(Database):
    """The deferred judge requests of all runs on a machine, in the database that the processes of a run share.

    A request is there once, however many cases and processes need its verdict. Those that the last run lacks are
    listed: the files in the folder `folder` hold them.
    """

    @property
    def folder(self) -> Path:
        """The folder of the files for the providers."""
        return self.path.parent / _FOLDER

    def put(self, run: str, request: DeferredRequest) -> None:
        """Add a request of a run."""
        self._rows(_PUT, (request.id, request.provider, run, encode(request)))

    def find(self, name: str) -> DeferredRequest | None:
        """The deferred request with a ``custom_id``."""
        rows = self._rows("SELECT request FROM requests WHERE id = ?", (name,))
        return decode(rows[0][0], DeferredRequest) if rows else None

    def reply_to(self, name: str) -> DeferredReply | None:
        """The reply to a deferred request."""
        rows = self._rows("SELECT reply FROM requests WHERE id = ? AND reply IS NOT NULL", (name,))
        return decode(rows[0][0], DeferredReply) if rows else None

    def answer(self, name: str, reply: DeferredReply) -> None:
        """Store the reply to a request."""
        self._rows("UPDATE requests SET reply = ? WHERE id = ?", (encode(reply), name))

    def is_form_refused(self, key: str) -> bool:
        """Whether the provider refused the form of reply that a request for a verdict asked for."""
        refused = "SELECT 1 FROM requests WHERE id = ? AND form_refused"
        return any(self._rows(refused, (name,)) for name in attempts(key))

    def refuse_form(self, name: str) -> None:
        """Note that the provider refused the form of reply that a request asks for."""
        self._rows("UPDATE requests SET form_refused = 1 WHERE id = ?", (name,))

    def pending(self, run: str | None = None) -> Iterator[DeferredRequest]:
        """Yield the requests without a reply, by provider and id: those of a run, or those that are listed."""
        condition, values = ("listed", ()) if run is None else ("run = ?", (run,))
        last: tuple[str, str] = ("", "")
        statement = (
            f"SELECT provider, id, request FROM requests WHERE {condition} AND reply IS NULL "  # noqa: S608 (constants)
            "AND (provider, id) > (?, ?) ORDER BY provider, id LIMIT 500"
        )
        while rows := self._rows(statement, (*values, *last)):
            for *place, request in rows:
                last = place[0], place[1]
                yield decode(request, DeferredRequest)

    def list_run(self, run: str) -> "PendingVerdicts":
        """List the requests of a run in place of those of the run before, and write the files for the providers.

        Raises:
            OSError: A file cannot be written.
        """
        with self._transaction() as connection:
            connection.execute("UPDATE requests SET listed = (run = ?)", (run,))
        return self.write_files()

    def write_files(self) -> "PendingVerdicts":
        """Write the listed requests, one file for each provider; files that hold none any more go.

        Raises:
            OSError: A file cannot be written.
        """
        counts = {
            str(provider): int(count)
            for provider, count in self._rows(
                "SELECT provider, COUNT(*) FROM requests WHERE listed AND reply IS NULL GROUP BY provider"
            )
        }
        from pytest_llmeval.judges.clients._http import DIALECTS

        if counts:
            OutputFolder(self.folder).make()
        for provider, requests in groupby(self.pending(), attrgetter("provider")):
            OutputFile(self._file(provider)).write_text(request.text for request in requests)
        for provider in DIALECTS:
            if provider not in counts:
                self._file(provider).unlink(missing_ok=True)
        return PendingVerdicts(sum(counts.values()), tuple(map(self._file, sorted(counts))))

    def _file(self, provider: str) -> Path:
        """The file of a provider's deferred requests."""
        return self.folder / f"{provider}.jsonl"

    def read_results(self, path: Path) -> "ReadReplies":
        """Read the result file of a provider, in any order, complete or not.

        Args:
            path: The file.

        Raises:
            OSError: It cannot be read.
        """
        read = ReadReplies()
        from pytest_llmeval.judges.clients._http import LARGEST_REPLY, parse_body

        with path.open("rb") as file:
            # A longer piece holds no reply that a live call would take.
            for number, piece in enumerate(iter(partial(file.readline, LARGEST_REPLY), b""), 1):
                if piece.strip():
                    _take_line(read, self, Fault(str(path), number, 1, "", ""), parse_body(piece))
        return read

    @staticmethod
    def list_data(path: Path, run: str, data: Mapping[str, Any]) -> "PendingVerdicts":
        """List the deferred judge requests of a run on other machines, and write the batch files for the providers.

        Args:
            path: The database.
            run: Id of the run.
            data: What `DeferredRequest` is, as JSON data, by id.

        Raises:
            LlmevalError: The database cannot be used.
            OSError: A file cannot be written.
            msgspec.ValidationError: The data are something else.
        """
        with closing(Requests(path)) as requests:
            for request in msgspec.convert(data, dict[str, DeferredRequest]).values():
                requests.put(run, request)
            return requests.list_run(run)


class PendingVerdicts(Struct, frozen=True):
    """The judge verdicts that a run waits for, with the batch files to send.

    Attributes:
        verdicts: How many.
        files: What is to be sent, one file for each provider.
    """

    verdicts: int = 0
    files: tuple[Path, ...] = ()

    def text(self, folder: Path) -> str:
        """The waiting work and the next step, in one line; empty if nothing waits.

        Args:
            folder: That people are in.
        """
        if not self.verdicts:
            return ""
        files = " and ".join(display_path(path, folder) for path in self.files)
        return f"{counted(self.verdicts, 'verdict')} pending: send {files}, then llmeval judge replies FILE"


@dataclass
class Deferral:
    """The deferred judge questions of one process of a run.

    Attributes:
        path: The database of the processes of a run.
        run: Id of the run.
        defers: Whether the run asks nobody; if not, it only takes replies.
        opened: Returns the requests in the database, which others close.
    """

    path: Path
    run: str
    defers: bool
    opened: Callable[[], Requests]
    _put: set[str] = field(default_factory=set)

    def take(self, question: JurorQuestion) -> StoredJudgement | None:
        """The judgement in a reply to a deferred question that came; ``None`` where none can be read."""
        if not (self.defers or self.path.exists()):
            return None
        for name in attempts(question.key):
            reply = self.requests.reply_to(name)
            if reply is None:
                return None
            with suppress(JudgeError):
                return _read_deferred(question, reply)
        return None

    def put(self, question: JurorQuestion) -> JudgeError:
        """Defer a question to a judge; return why it has no verdict.

        Returns:
            A pending `UnaskedError`; for a question whose replies cannot be read, or that nobody can be asked later,
            another error.
        """
        from pytest_llmeval.judges.clients._http import DIALECTS

        juror = question.juror
        if not juror.writes or juror.spec.provider not in DIALECTS:
            *others, last = sorted(DIALECTS)
            return JudgeError(
                f"{juror.model} cannot be asked later (--llmeval-judge=defer): use a judge of {', '.join(others)} or "
                f"{last}, or run once with --llmeval-judge=auto, which stores its verdicts"
            )
        for name in attempts(question.key):
            reply = self.requests.reply_to(name)
            if reply is None:
                if name not in self._put:
                    self._put.add(name)
                    self.requests.put(self.run, self._request(name, question))
                return UnaskedError.pending()
            try:
                _read_deferred(question, reply)
            except JudgeError as error:
                fault = error
        return JudgeError(f"the replies to {_ATTEMPTS} deferred requests cannot be read: {fault}", fault.reply)

    def _request(self, name: str, question: JurorQuestion) -> DeferredRequest:
        """The deferred request for a question to a judge."""
        from pytest_llmeval.judges.clients._http import DIALECTS

        juror, request = question.juror, question.request()
        dialect, spec = DIALECTS[str(juror.spec.provider)], juror.spec
        structured = spec.structured == "auto" and request.reply_schema is not None
        structured = structured and not self.requests.is_form_refused(question.key)
        hidden = Secrets.of_variables()
        messages = tuple(replace(message, content=hidden.without(message.content)) for message in request.messages)
        request = replace(request, messages=messages)  # a batch file stays on the disk
        body = dialect.body(request, structured=structured, base=(spec.base_url or dialect.base_url).rstrip("/"))
        sent = sent_tokens(messages, juror.model)
        uncounted = uncounted_media(medium.form for message in messages for medium in message.media)
        line = dialect.batch_line(name, body)
        most = juror.parameters.get("max_tokens")
        written = most if isinstance(most, int) else None
        return DeferredRequest(
            name, question.case, juror.model, line, sent, written, juror.price, request.expected_of, uncounted
        )

    @property
    def requests(self) -> Requests:
        """The deferred requests of all runs.

        Raises:
            LlmevalError: Their database cannot be used.
        """
        return self.opened()

    def list_run(self) -> PendingVerdicts:
        """List the deferred requests of a run, those of all its processes."""
        if not self.path.exists():
            return PendingVerdicts()
        return self.requests.list_run(self.run)


def attempts(key: str) -> tuple[str, ...]:
    """The ``custom_id`` of each batch request for a judge verdict, in order of the attempts."""
    return (key, *(f"{key}-{number}" for number in range(2, _ATTEMPTS + 1)))


def _read_deferred(question: JurorQuestion, reply: DeferredReply) -> StoredJudgement:
    """The judgement of a judge question from a provider's batch reply."""
    verdict = read_reply(question.question.mode, JudgeReply(reply.text, reply.usage, reply.stopped))
    return StoredJudgement(
        question.key,
        question.case,
        question.components(),
        reply.text,
        verdict.score,
        reply.usage,
        0.0,
        reply.cost_usd,
    )


_MOST_REASONS = 20


class ReadReplies(Struct):
    """The counts and faults from reading the judge replies in a provider's batch result file.

    Attributes:
        stored: Replies that are new.
        known: Replies that were there before.
        failed: ``custom_id`` to the reason for which the provider gave no reply.
        foreign: Lines that answer no request of this machine.
        faults: Lines that cannot be read.
    """

    stored: int = 0
    known: int = 0
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    foreign: int = 0
    faults: list[Fault] = msgspec.field(default_factory=list)

    @property
    def counts(self) -> list[str]:
        """Phrases with the number of replies that were stored, known before, failed or foreign."""
        counts = [f"{counted(self.stored, 'verdict')} stored"]
        if self.known:
            counts.append(f"{self.known} known before")
        if self.failed:
            counts.append(f"{len(self.failed)} failed")
        if self.foreign:
            counts.append(f"{counted(self.foreign, 'line')} about requests that were not made here")
        return counts

    @property
    def reasons(self) -> list[str]:
        """Lines with the reasons of failures, and the number of requests for each."""
        by_reason = grouped((reason, name) for name, reason in self.failed.items())
        return [
            f"  {counted(len(names), 'request')} failed, first {names[0]}: {printable(reason)}"
            for reason, names in list(by_reason.items())[:_MOST_REASONS]
        ]


def _take_line(read: ReadReplies, requests: Requests, place: Fault, line: Any) -> None:
    """Store the judge reply in a line of a provider's batch result file, and count the line by its outcome."""
    name = line.get("custom_id", line.get("key")) if isinstance(line, Mapping) else None
    if not isinstance(name, str):
        why = "custom_id or key is missing" if isinstance(line, Mapping) else "a JSON object is missing"
        read.faults.append(replace(place, message=why))
        return
    request = requests.find(name)
    if request is None:
        read.foreign += 1
        return
    if requests.reply_to(name) is not None:
        read.known += 1
        return
    try:
        requests.answer(name, _reply_in(line, request))
    except BatchFailure as failure:
        from pytest_llmeval.judges.clients._http import DIALECTS

        read.failed[name] = str(failure)
        if DIALECTS[request.provider].refuses_form(str(failure)):
            requests.refuse_form(name)
    else:
        read.stored += 1


def _reply_in(line: Mapping[str, Any], request: DeferredRequest) -> DeferredReply:
    """The judge reply in a line of a provider's batch result file.

    Raises:
        BatchFailure: It holds none.
    """
    from pytest_llmeval.judges.clients._http import DIALECTS

    dialect = DIALECTS[request.provider]
    body = dialect.batch_body(line)
    reply = dialect.read(body)
    if reply is None:
        raise BatchFailure("the body of the response holds no reply")
    if request.expected_of is not None:
        probabilities = score_probabilities(dialect.tokens(body), request.expected_of)
        reply = replace(reply, probabilities=probabilities)
    reply = enveloped(JudgeRequest((), expected_of=request.expected_of), reply)
    cost = reply.usage.cost_usd(request.price and request.price.of_batches)
    return DeferredReply(Secrets.of_variables().without(reply.text), reply.usage, reply.stopped, cost)
