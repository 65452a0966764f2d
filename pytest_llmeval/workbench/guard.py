"""The command ``llmeval guard``: what a pull request asks less of answers."""

import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from pytest_llmeval.cli.console import CommandResult, refuse_input, write_text
from pytest_llmeval.core.errors import LlmevalError, SuiteError
from pytest_llmeval.core.wording import counted
from pytest_llmeval.data.files.validation import STRICT, check
from pytest_llmeval.reports.json import published
from pytest_llmeval.reports.markdown import MOST_ROWS, text
from pytest_llmeval.services.git import run_git, write_files_of
from pytest_llmeval.workbench.project import changed_files, fork_point

if TYPE_CHECKING:
    from pytest_llmeval.workbench.guarding.suites import Loosening

_OWNERS: Final = ("CODEOWNERS", ".github/CODEOWNERS", ".gitlab/CODEOWNERS", "docs/CODEOWNERS")
_NO_REPLY: Final = re.compile(r"(?:\d+\+)?(?P<user>[^@+]+)@users\.noreply\.")
_SPACE: Final = 6_000
"""Characters of the rows of a table for a comment."""
_EXAMPLE: Final = "allow: [{finding: 'evals/shop.eval.yaml::gate f1 >= 0.7', reason: Why this is right}]"


@dataclass(frozen=True)
class AllowEntry:
    """One thing that may be asked less of.

    Attributes:
        finding: ``FILE::SUBJECT`` as the command prints it; ``*`` and ``?`` match any characters.
        reason: For readers of the pull request.
    """

    __pydantic_config__: ClassVar = STRICT

    finding: str
    reason: str


@dataclass(frozen=True)
class AllowFile:
    """The content of the file of ``--allow``."""

    __pydantic_config__: ClassVar = STRICT

    allow: tuple[AllowEntry, ...]


class Ruling(NamedTuple):
    """A finding with the reason for which it is allowed; empty if it is not."""

    finding: "Loosening"
    reason: str

    @property
    def fails(self) -> bool:
        """Whether it makes the command fail."""
        return not (self.reason or self.finding.note)

    @property
    def verdict(self) -> str:
        """What reports say of it."""
        return "note" if self.finding.note else f"allowed: {self.reason}" if self.reason else "not allowed"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Report where the evaluations of the working tree are weaker than those of the commit that a branch left. "
        "Examples: thresholds and gates lowered or removed, expected answers changed, cases deleted, checks weakened, "
        "skips added, scores approved, judges changed. Suites are compared after loading; nothing is run, and no judge "
        "is asked. The exit code is 1 if there is a finding that is not "
        "allowed, and 2 if the states cannot be compared."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="default: this folder")
    parser.add_argument(
        "--base", metavar="REF", help="compare with where HEAD left this; default: the branch that CI or origin names"
    )
    parser.add_argument(
        "--allow", type=Path, metavar="FILE", help=f"committed file of what is allowed, and why, such as {_EXAMPLE}"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write a table for a comment to this file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings to this file, too")
    parser.set_defaults(run=_guard, code_of_faults=2)


def _guard(options: Namespace) -> CommandResult:
    from pytest_llmeval.workbench.guarding.files import FolderState, compare_folders

    for each in (options.output, options.json):
        refuse_input(each, options.allow)
    folder = options.folder.resolve()
    if not folder.is_dir():
        raise LlmevalError(f"{options.folder}: found no folder, expected one in a git repository")
    commit = fork_point(folder, options.base)
    changed = [each for each in changed_files(folder, commit) if each.endswith(".py")]
    with TemporaryDirectory(prefix="llmeval-") as scratch:
        base = write_files_of(folder, commit, Path(scratch))
        allowed = () if options.allow is None else _allowed(options.allow, folder, commit, base)
        findings = sorted(set(compare_folders(FolderState(base, folder), FolderState(folder, folder), changed)))
    judged = [Ruling(each, _reason(each, allowed)) for each in findings]
    unused = [each for each in allowed if not any(fnmatchcase(loosening.name, each.finding) for loosening in findings)]
    if options.output is not None:
        write_text(options.output, [guard_text(judged, commit)])
    rows = [{**published(each.finding), "name": each.finding.name, "allowed": each.reason} for each in judged]
    code = 1 if any(each.fails for each in judged) else 0
    return CommandResult(code, {"base": commit, "findings": rows}, _lines(judged, commit, unused))


def _allowed(path: Path, folder: Path, commit: str, base: Path) -> Sequence[AllowEntry]:
    """Return the entries of a file of what is allowed.

    Raises:
        LlmevalError: It is not committed, was changed by somebody else than the owners of the code, or has faults.
    """
    from pytest_llmeval.data.files.documents import read_document

    document = read_document(path, str(path))
    content, faults = check(AllowFile, document.data, document, ())
    if content is not None:
        faults = [
            document.fault(("allow", at, name), "found an empty text, expected one")
            for at, each in enumerate(content.allow)
            for name in ("finding", "reason")
            if not getattr(each, name).strip()
        ]
    if faults:
        raise SuiteError(faults)
    full = str(path.resolve())
    if not run_git(folder, "ls-files", "-z", "--", full) or run_git(folder, "status", "--porcelain", "--", full):
        raise LlmevalError(f"{path}: found changes that are not committed, expected a committed file")
    authors = set(run_git(folder, "log", "--format=%ae", f"{commit}..HEAD", "--", full).split())
    if authors and (owners := _owners(Path(run_git(folder, "rev-parse", "--show-toplevel").strip()), folder, base)):
        for author in sorted(authors):
            user = _NO_REPLY.match(author)
            if author.lower() not in owners and (user is None or f"@{user['user']}".lower() not in owners):
                raise LlmevalError(
                    f"{path}: found a change by {author}, expected one by an owner in CODEOWNERS of the base: a mail "
                    "address, or a user whose commits have a noreply address (teams cannot be looked up)"
                )
    entries: Sequence[AllowEntry] = content.allow
    return entries


def _owners(root: Path, folder: Path, base: Path) -> frozenset[str]:
    """Return the owners that the earlier state names; a pull request does not name its own."""
    top = base
    for _ in folder.relative_to(root.resolve()).parts:
        top = top.parent
    for each in map(top.joinpath, _OWNERS):
        if each.is_file():
            lines = (line.partition("#")[0].split() for line in each.read_text("utf-8", "replace").splitlines())
            return frozenset(owner.lower() for line in lines for owner in line[1:])
    return frozenset()


def _reason(finding: "Loosening", allowed: Sequence[AllowEntry]) -> str:
    return next((each.reason for each in allowed if fnmatchcase(finding.name, each.finding)), "")


def _lines(judged: Sequence[Ruling], commit: str, unused: Sequence[AllowEntry]) -> Iterator[str]:
    for finding, _ in judged:
        values = " -> ".join(filter(None, (finding.before, finding.after)))
        yield f"{finding.place}  {finding.subject}: {finding.change}{f': {values}' if values else ''}"
    for each in judged:
        if each.reason:
            yield f"allowed: {each.finding.name}: {each.reason}"
    for entry in unused:
        yield f"note: nothing is found that {entry.finding!r} allows"
    yield _summary(judged, commit)
    if forbidden := [each.finding.name for each in judged if each.fails]:
        example = f"{{finding: {json.dumps(forbidden[0], ensure_ascii=False)}, reason: ...}}"
        yield f"to allow one, commit a file for --allow: allow: [{example}]"


def _summary(judged: Sequence[Ruling], commit: str) -> str:
    failing = sum(each.fails for each in judged)
    allowed = sum(bool(each.reason) for each in judged)
    parts = [f"{counted(failing, 'finding')} not allowed", *([f"{allowed} allowed"] if allowed else [])]
    return f"against {commit[:12]}: {', '.join(parts)}" if judged else f"against {commit[:12]}: nothing asks for less"


def guard_text(judged: Sequence[Ruling], commit: str) -> str:
    """Return the findings as Markdown for a comment on a pull request."""
    lines = [f"### Evaluations, {_summary(judged, commit)}", ""]
    if judged:
        lines += ["| place | what | change | before | now | verdict |", "|---|---|---|---|---|---|"]
        space = _SPACE
        ordered = sorted(judged, key=lambda each: not each.fails)
        rows = [_row(each) for each in ordered[:MOST_ROWS]]
        fitting = [each for each in rows if (space := space - len(each)) > 0]
        more = len(judged) - len(fitting)
        lines += [*fitting, *(["", f"{more} more"] if more else [])]
    return "\n".join(lines) + "\n"


def _row(judged: Ruling) -> str:
    loosening = judged.finding
    cells = (loosening.place, loosening.subject, loosening.change, loosening.before, loosening.after, judged.verdict)
    return f"| {' | '.join(map(text, cells))} |"
