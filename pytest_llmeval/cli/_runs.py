"""The end of a run without pytest."""

import sys
import uuid
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.cli._console import CommandResult
from pytest_llmeval.cli._options import OPTIONS
from pytest_llmeval.core import LlmevalError, counted
from pytest_llmeval.data import OwnFiles
from pytest_llmeval.reports import ReportFormat

if TYPE_CHECKING:
    from pytest_llmeval.run import ResultOptions, RunRecord, ShardFile
    from pytest_llmeval.targets import Recordings


_NOTHING_RAN = 5
"""pytest's exit code of a run without tests."""


def add_merge(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval merge``."""
    parser.description = (
        "Judge gates and snapshots on the results of all shards, and write reports and recordings, as one run would "
        "do. Run it in a checkout of the commit that the shards ran. The exit code is that of a run: 1 if a case, a "
        "gate or a snapshot failed, or if shards are missing, doubled, cut or of another run."
    )
    parser.add_argument(
        "shards",
        nargs="+",
        type=Path,
        metavar="SHARD",
        help=f"a shard file, or a folder with *{ReportFormat.SHARD_SUFFIX}",
    )
    OPTIONS.add_to(
        parser,
        *("report", "snapshot-update", "snapshot-anchor", "mutate", "mutate-seed", "require-gates"),
        *("rootdir", "verbose"),
    )
    parser.set_defaults(run=_merge_command, bulk=True)


def _merge_command(options: Namespace) -> CommandResult:
    """Run ``llmeval merge``: judge the shards of a run together, and write reports and approved scores."""
    from pytest_llmeval.baselines import SnapshotMode
    from pytest_llmeval.run import RunTerms, finish_run, merge_shards

    if options.snapshot_anchor and not options.snapshot_update:
        raise LlmevalError("--snapshot-anchor needs --snapshot-update: only an approved run can be the anchor")
    files = list(dict.fromkeys(file for place in options.shards for file in _files(place)))
    root, shards = _open_shards(files, options.rootdir)
    _import_from(root, shards)
    run, suites = merge_shards(shards, root, approves=options.snapshot_update)
    ran = shards[0].origin.options
    terms = RunTerms(
        judge=ran.judge,
        texts=ran.texts,
        snapshots=ran.snapshots,
        require_gates=options.require_gates or any(shard.origin.require_gates for shard in shards),
        compares=any(path.suffix == ".html" for path in options.report),
        mutate=options.mutate_seed if options.mutate else None,
        family=ran.family,
    )
    mode = SnapshotMode(update=options.snapshot_update, anchor=options.snapshot_anchor)
    finished = finish_run(run, terms, suites, mode, recordings=_recordings_of_shards(ran, root))
    result = CommandResult.of_run(finished, options, root, _failed_elsewhere(run))
    if run.requests:
        result = _with_pending(result, run.requests, root)
    if not (run.items or result.code):
        return result._replace(code=_NOTHING_RAN, errors=["no shard has results"])
    return result


_CANNOT_TELL = 2


def _with_pending(result: CommandResult, requests: "Mapping[str, Any]", root: Path) -> CommandResult:
    """List the judge requests that merged shards have deferred; a run that waits for them cannot tell."""
    from pytest_llmeval.judges import CachePlace, Requests

    try:
        pending = Requests.list_data(CachePlace().within(root).coordination, f"merge {uuid.uuid4().hex}", requests)
    except (OSError, ValueError) as error:
        raise LlmevalError(f"the requests of deferred verdicts cannot be written: {error}") from None
    text = pending.text(Path.cwd())
    if result.code or not text:
        return result._replace(errors=[*result.errors, *([text] if text else [])])
    return result._replace(code=_CANNOT_TELL, errors=[*result.errors, f"exit code {_CANNOT_TELL}: {text}"])


def _files(path: Path) -> list[Path]:
    """The shard files that an argument of ``llmeval merge`` names: a file, or those in and below a folder.

    Raises:
        LlmevalError: The folder has none.
    """
    if not path.is_dir():
        return [path]
    shards = sorted(file for file in path.rglob(f"*{ReportFormat.SHARD_SUFFIX}") if file.is_file())
    if not shards:
        raise LlmevalError(f"{path} has no *{ReportFormat.SHARD_SUFFIX}: name the files of all shards")
    return shards


def _open_shards(files: Sequence[Path], rootdir: Path | None) -> "tuple[Path, list[ShardFile]]":
    """Read the shard files of ``llmeval merge``; also return the folder that has the suites.

    Raises:
        LlmevalError: Some cannot be used; all of them are listed.
    """
    here = (rootdir or Path.cwd()).resolve()
    if rootdir is not None and not rootdir.is_dir():
        raise LlmevalError(f"--rootdir={rootdir} is no folder")
    shards = _read_shards(files, here)
    paths = {suite.path for shard in shards for suite in shard.origin.suites}
    above = [] if rootdir is not None else here.parents
    root = next((folder for folder in above if all(_is_there(folder, path) for path in paths)), here)
    has_all = all(_is_there(here, path) for path in paths)
    return (here, shards) if has_all or root == here else (root, _read_shards(files, root))


def _is_there(folder: Path, path: str) -> bool:
    """Whether a folder has the file of a shard's suite, or the Python file that declares it."""
    return OwnFiles(folder / path).source.is_file()


def _read_shards(files: Sequence[Path], root: Path) -> "list[ShardFile]":
    """The shard files that ``llmeval merge`` got.

    Raises:
        LlmevalError: Some cannot be read; all of them are listed.
    """
    from pytest_llmeval.run import ShardFile, begin_run

    begin_run(root)
    shards, faults = [], []
    for file in files:
        try:
            shards.append(ShardFile.read(file, root))
        except LlmevalError as error:
            faults.append(str(error))
    if faults:
        raise LlmevalError("\n".join(faults))
    return shards


def _import_from(root: Path, shards: "Sequence[ShardFile]") -> None:
    """Let Python import from the project's folders from which shards did; never from where shard files lie."""
    beside = {shard.path.resolve().parent for shard in shards} - {root}
    folders = ((root / folder).resolve() for shard in shards for folder in shard.origin.imports)
    own = [str(path) for path in dict.fromkeys(folders) if path.is_dir() and _is_own(path, root, beside)]
    sys.path[:0] = [folder for folder in own if folder not in sys.path]


def _is_own(folder: Path, root: Path, foreign: Collection[Path]) -> bool:
    """Whether a folder from which a shard imported lies in the project, and not where CI put the shard files."""
    return folder.is_relative_to(root) and not any(folder.is_relative_to(path) for path in foreign)


def _recordings_of_shards(ran: "ResultOptions", root: Path) -> "Recordings | None":
    """The file to which ``llmeval merge`` records predictions; ``None`` if the shards recorded none."""
    from pytest_llmeval.targets import Recordings

    path, mode = ran.predictions, ran.predictions_mode
    return Recordings.open(root / path, mode) if path and mode != "replay" else None


def _failed_elsewhere(run: "RunRecord") -> list[str]:
    """The failures of merged shards that are not failures of cases, as lines for people."""
    reasons = [f"{counted(len(run.failures), 'other test')} failed in the shards"] if run.failures else []
    return [*reasons, "tests could not be collected"] if run.uncollected else reasons
