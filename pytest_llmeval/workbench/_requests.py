"""The actions of ``llmeval judge`` on deferred questions."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from pytest_llmeval.cli import OPTIONS, CommandResult
from pytest_llmeval.core import Fault, LlmevalError, counted, grouped
from pytest_llmeval.data import OutputFile, display_path
from pytest_llmeval.judges import Requests
from pytest_llmeval.workbench._console import table_lines

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_actions(actions: "_SubParsersAction[ArgumentParser]") -> None:
    """Add the actions of ``llmeval judge`` on deferred requests."""
    text = (
        "Read the result files of a provider's batch interface into the store of verdicts, under the keys of live "
        "calls. Files may be incomplete, in any order, and read again; the next run uses the verdicts."
    )
    replies = actions.add_parser("replies", help="read the replies to deferred questions", description=text)
    replies.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a result file")
    OPTIONS.add_to(replies, "cache")
    replies.set_defaults(run=_read_replies)
    text = "Show the requests that the last run with --llmeval-judge=defer wrote and that have no reply."
    requests = actions.add_parser("requests", help="show what deferred questions are pending", description=text)
    requests.add_argument("--model", metavar="PROVIDER:NAME", help="those of this model")
    requests.add_argument("-o", "--output", type=Path, metavar="FILE", help="write them as a batch file")
    OPTIONS.add_to(requests, "cache")
    requests.set_defaults(run=_show_requests)


@contextmanager
def _opened(options: Namespace) -> Iterator[Requests]:
    """Open the store of deferred judge requests beside the verdict cache."""
    path = options.cache.coordination
    if not path.exists():
        raise LlmevalError(
            f"there are no deferred requests in {path}: run pytest --llmeval --llmeval-judge=defer first, or name its "
            "cache with --cache"
        )
    with closing(Requests(path)) as requests:
        yield requests


def _read_replies(options: Namespace) -> CommandResult:
    """Run ``llmeval judge replies``: store the verdicts in the result files of a batch service."""
    lines: list[str] = []
    faults: list[Fault] = []
    data: dict[str, Any] = {}
    with _opened(options) as requests:
        for path in options.files:
            try:
                read = requests.read_results(path)
            except OSError as error:
                faults.append(Fault(str(path), 0, 0, "", f"cannot be read: {error.strerror}"))
                continue
            data[str(path)] = to_builtins(read)
            lines.append(f"{path}: {', '.join(read.counts)}")
            lines += read.reasons
            faults += read.faults
        try:
            pending = requests.write_files()
        except OSError as error:
            raise LlmevalError(f"the requests in {requests.folder} cannot be written: {error.strerror}") from error
    lines.append(pending.text(Path.cwd()) or "no verdict is pending: run pytest --llmeval again")
    return CommandResult(1 if faults else 0, {"files": data, "pending": pending.verdicts}, lines, faults)


def _show_requests(options: Namespace) -> CommandResult:
    """Run ``llmeval judge requests``: list deferred judge requests by model, with their tokens and cost."""
    with _opened(options) as requests:
        pending = [request for request in requests.pending() if options.model in (None, request.model)]
    if options.output is not None:
        OutputFile(options.output).save_text("".join(request.text for request in pending))
    rows: list[dict[str, Any]] = []
    for model, requests_of_model in sorted(grouped((request.model, request) for request in pending).items()):
        costs = [request.cost_usd for request in requests_of_model]
        known = [cost for cost in costs if cost is not None]
        rows.append(
            {
                "model": model,
                "verdicts": len(requests_of_model),
                "input_tokens": sum(request.sent_tokens for request in requests_of_model),
                "cost_usd": sum(known) if len(known) == len(costs) else None,
            }
        )
    cells = [[str(row["model"]), str(row["verdicts"]), str(row["input_tokens"]), _usd(row["cost_usd"])] for row in rows]
    lines = table_lines(cells, "lrrr", ("model", "verdicts", "input tokens", "USD, at least")) if rows else []
    files = [display_path(path, Path.cwd()) for path in sorted(requests.folder.glob("*.jsonl"))]
    if uncounted := sum(request.uncounted for request in pending):
        what = "(sounds, documents, addresses) without a rule for tokens: not counted"
        lines.append(f"{counted(uncounted, 'file')} {what}")
    last = f"{counted(len(pending), 'verdict')} pending" + (f" in {' and '.join(files)}" if pending else "")
    return CommandResult(0, {"pending": len(pending), "models": rows, "files": files}, [*lines, last])


def _usd(cost: float | None) -> str:
    """The cost of deferred judge requests in dollars; ``n/a`` if unknown."""
    return "n/a" if cost is None else f"{cost:.4f}"
