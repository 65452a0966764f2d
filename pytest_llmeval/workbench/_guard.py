"""The command ``llmeval guard``: what a pull request asks less of answers, in the files of two states."""

import json
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final, NamedTuple

from msgspec import convert, structs

from pytest_llmeval.baselines import ScoreFile
from pytest_llmeval.cli import CommandResult
from pytest_llmeval.core import MISSING, LlmevalError, SuiteError, counted, excerpt, listed, number
from pytest_llmeval.data import DeclaredType, InputFile, OutputFile, OwnFiles, display_path
from pytest_llmeval.reports import published, text
from pytest_llmeval.run import Checkout
from pytest_llmeval.services import run_git
from pytest_llmeval.suites import LoadedSuite, load_suite
from pytest_llmeval.workbench._console import refuse_input, suite_files
from pytest_llmeval.workbench._evidence import compare_evidence
from pytest_llmeval.workbench._loosening import LoadedState, Loosening, case_pairs, compare_loaded
from pytest_llmeval.workbench._project import (
    changed_files,
    copy_files_of,
    enclosing_repository,
    fork_point,
    write_files_of,
    write_with_code_of,
)
from pytest_llmeval.workbench._settings import compare_settings
from pytest_llmeval.workbench._sources import SourceTree
from pytest_llmeval.workbench._states import answer_apart, collect, compare_collected, compare_items
from pytest_llmeval.workbench._suite_dump import dump_suite
from pytest_llmeval.workbench._test_code import (
    CONFTEST,
    HOOK,
    compare_code,
    compare_plugins,
    is_about_evaluations,
    statements_of,
    text_of,
)
from pytest_llmeval.workbench._workflows import compare_workflows

_FAILURES: Final = "failures.json"
_TOOLS: Final = "tools.json"
_LONGEST: Final = 100
_MOST_ROWS: Final = 50


@dataclass(frozen=True)
class FolderState:
    """One state of a project folder that ``llmeval guard`` compares.

    Attributes:
        folder: Where its files are.
        code: The folder whose conftests register evaluators for its suites.
    """

    folder: Path
    code: Path

    @cached_property
    def suites(self) -> Mapping[str, Path]:
        """The suite files by name, relative to the folder."""
        return {display_path(file, self.folder): file for file in suite_files(self.folder)}

    @cached_property
    def checkout(self) -> Checkout:
        """The conftests that register evaluators, as pytest would import them."""
        conftests = [path for path in self.code.rglob("conftest.py") if HOOK in text_of(path)]
        plugins = {
            name: [
                display_path(conftest, self.code)
                for conftest in sorted(conftests, key=lambda each: len(each.parts))
                if (self.code / name).is_relative_to(conftest.parent)
            ]
            for name in self.suites
        }
        return Checkout(self.code, plugins)

    def load(self, name: str) -> LoadedState:
        """Return the state of a suite, with all of its cases even if a sample of them runs.

        Raises:
            LlmevalError: It has faults that concern every case.
        """
        path = self.suites[name]
        document = InputFile(path, name).read_document()
        data = document.data
        whole = {key: data[key] for key in data if key != "sample"} if isinstance(data, Mapping) else data
        registry = self.checkout.registry(self.code / name)
        bare = replace(document, data=whole)
        suite = load_suite(path, registry, root=self.folder, display_path=name, document=bare)
        return LoadedState(suite, dump_suite(suite, name, document))

    def files(self, pattern: str) -> Mapping[str, Path]:
        """Return the files of a pattern in folders of approved scores by name."""
        paths = sorted(self.folder.rglob(f"{OwnFiles.FOLDER}/*{pattern}"))
        return {display_path(path, self.folder): path for path in paths}


def compare_suite_files(question: Mapping[str, Any]) -> Mapping[str, Any]:
    """The requirements that the suite files and approved files of a later state lower; run where the base's code is.

    Args:
        question: The folders ``base`` and ``head``, and the names of Python files that ``changed``.

    Returns:
        The ``findings``; and for each suite file that is in both states, its later name and the ids of its cases.
    """
    base = FolderState(Path(question["base"]), Path(question["base"]))
    head = FolderState(Path(question["head"]), base.code)
    matched: dict[str, tuple[str, Mapping[str, str]]] = {}
    findings = list(_compare_folders(base, head, matched, question["changed"]))
    return {"findings": findings, "matched": matched}


def _compare_folders(
    base: FolderState, head: FolderState, matched: dict[str, tuple[str, Mapping[str, str]]], changed: Collection[str]
) -> Iterator[Loosening]:
    """Yield the requirements on answers that suite files and approved files of a later folder state lower."""
    suites: dict[str, LoadedSuite] = {}
    for name in base.suites:
        try:
            before = base.load(name)
        except LlmevalError as error:
            same = name in head.suites and text_of(base.suites[name]) == text_of(head.suites[name])
            fault = excerpt(str(error), _LONGEST)
            yield Loosening(name, 1, "suite", "could not be read, so it is not compared", fault, gone=True, note=same)
            continue
        now = name if name in head.suites else _renamed(before, base, head)
        if now is None:
            yield Loosening(name, 1, f"suite {before.suite.name}", "removed", gone=True)
            continue
        try:
            after = head.load(now)
        except LlmevalError as error:
            yield Loosening(now, 1, "suite", "cannot be read", after=excerpt(str(error), _LONGEST))
            continue
        suites[now] = after.suite
        yield from compare_loaded(before, after, head.checkout.registry(head.code / now))
        yield from _changed_targets(before, after, base.folder, changed)
        if before.dump.settings["sample"] is after.dump.settings["sample"] is None:
            matched[name] = now, case_pairs(before.dump.contents, after.dump.contents)
    yield from _approved_scores(base, head, suites)
    yield from _approved_failures(base, head)
    yield from _approved_tools(base, head)


def _changed_targets(
    before: LoadedState, after: LoadedState, folder: Path, changed: Collection[str]
) -> Iterator[Loosening]:
    """Yield changed targets in Python, for information only: a target can read what its suite expects."""
    if not any(case.expected is not MISSING for case in before.suite.cases):
        return
    tree = SourceTree(folder, [folder, folder / "src"])
    folders = [before.suite.path.parent, *tree.folders]
    targets = {"": before.suite.target, **{name: system.target for name, system in before.suite.systems.items()}}
    for system, target in targets.items():
        name = None if target is None else target.python
        files = tree.find(name.partition(":")[0], folders) if name else None
        used = {tree.display(path) for path in tree.closure(files or (), folders).files} & {*changed}
        if used:
            place = ("systems", system) if system else ("target",)
            text = excerpt(listed(sorted(used)), _LONGEST)
            yield Loosening(
                after.dump.file, after.dump.line(*place), f"target {name}", "changed", after=text, note=True
            )


def _renamed(before: LoadedState, base: FolderState, head: FolderState) -> str | None:
    """The new file of a renamed suite, found by the suite's name."""
    for name in head.suites:
        if name not in base.suites:
            try:
                if head.load(name).suite.name == before.suite.name:
                    return name
            except LlmevalError:
                continue
    return None


def _approved_scores(base: FolderState, head: FolderState, suites: Mapping[str, LoadedSuite]) -> Iterator[Loosening]:
    """Yield approved scores that changed or are gone; those that are better now only for information."""
    now = head.files(ScoreFile.ENDING)
    for name, path in base.files(ScoreFile.ENDING).items():
        before = ScoreFile(path, name).find()
        if before is None:
            continue
        after = ScoreFile(now[name], name).find() if name in now else None
        if after is None:
            change = "removed" if name not in now else "cannot be read"
            yield Loosening(name, 0, "approved scores", change, gone=name not in now)
            continue
        folder = Path(name).parent.parent
        suite = suites.get((folder / before.suite).as_posix()) if before.suite else None
        document = InputFile(now[name], name).read_json()
        for metric, value in before.values.items():
            late = after.values.get(metric)
            if value == late:
                continue
            is_better = False
            if suite is not None and value is not None and late is not None:
                is_better = (late > value) is not suite.metrics.lower_is_better(metric)
            line = document.locate(after.places.get(metric, ()))[0]
            change = "approved higher" if (late or 0.0) > (value or 0.0) else "approved lower"
            change = change if late is not None else "no longer approved"
            yield Loosening(name, line, f"approved {metric}", change, number(value), number(late), note=is_better)


def _approved_failures(base: FolderState, head: FolderState) -> Iterator[Loosening]:
    """Yield limits and checks that a pull request newly approves as known failures of cases."""
    before = {name: _failures(path, name) for name, path in base.files(_FAILURES).items()}
    for name, path in head.files(_FAILURES).items():
        document = InputFile(path, name).read_json()
        for case, unmet in _failures(path, name).items():
            added = sorted(set(unmet) - set(before.get(name, {}).get(case, ())))
            if added:
                line = document.locate(("cases", case))[0]
                yield Loosening(name, line, f"failure of case {case}", "approved", after=", ".join(added))


def _failures(path: Path, name: str) -> Mapping[str, list[str]]:
    """The known failures in an approved file, by case; none if the file cannot be read."""
    try:
        data = InputFile(path, name).read_json().data
    except LlmevalError:
        return {}
    cases = data.get("cases") if isinstance(data, Mapping) else None
    return cases if isinstance(cases, Mapping) else {}


def _approved_tools(base: FolderState, head: FolderState) -> Iterator[Loosening]:
    """Yield approved tools of servers that are gone, and for information those that changed."""
    for path in sorted(base.folder.rglob(_TOOLS)):
        name = display_path(path, base.folder)
        before, now = _tools(path, name), _tools(head.folder / name, name)
        if before and now is None:
            yield Loosening(name, 1, "approved tools", "removed, or cannot be read", gone=True)
        elif before and now is not None:
            for tool, (line, text) in before.items():
                subject = f"approved tool {tool}"
                if tool not in now:
                    yield Loosening(name, line, subject, "removed", gone=True)
                elif now[tool][1] != text:
                    at, new = now[tool]
                    change = "approved otherwise"
                    yield Loosening(
                        name, at, subject, change, excerpt(text, _LONGEST), excerpt(new, _LONGEST), note=True
                    )


def _tools(path: Path, name: str) -> "Mapping[str, tuple[int, str]] | None":
    """The line and definition of each approved tool of an MCP server; ``None`` if the file is no tool list."""
    try:
        document = InputFile(path, name).read_json()
        tools = enumerate(document.data["tools"])
        return {
            str(tool["name"]): (document.locate(("tools", place))[0], json.dumps(tool, ensure_ascii=False))
            for place, tool in tools
        }
    except (LlmevalError, TypeError, KeyError):
        return None


_OWNERS: Final = ("CODEOWNERS", ".github/CODEOWNERS", ".gitlab/CODEOWNERS", "docs/CODEOWNERS")
_NO_REPLY: Final = re.compile(r"(?:\d+\+)?(?P<user>[^@+]+)@users\.noreply\.")
_SPACE: Final = 6_000
"""Characters of the rows of a table for a comment."""
_EXAMPLE: Final = "allow: [{finding: 'evals/shop.eval.yaml::gate f1 >= 0.7', reason: Why this is right}]"


@dataclass(frozen=True)
class AllowEntry:
    """An entry of the ``--allow`` file: a lowered requirement that a pull request may have.

    Attributes:
        finding: ``FILE::SUBJECT`` as the command prints it; ``*`` and ``?`` match any characters.
        reason: For readers of the pull request.
    """

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    finding: str
    reason: str


@dataclass(frozen=True)
class AllowFile:
    """The content of the ``--allow`` file of ``llmeval guard``."""

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    allow: tuple[AllowEntry, ...]


class Ruling(NamedTuple):
    """A finding of ``llmeval guard`` with the reason that allows it; empty if it is not allowed."""

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
    """Add the arguments of ``llmeval guard``."""
    parser.description = (
        "Report where the evaluations of the working tree are weaker than those of the commit that a branch left. "
        "Examples: thresholds and gates lowered or removed, expected answers changed, cases deleted, checks weakened, "
        "skips added, scores approved, judges changed, tests no longer collected. The base's code loads suite files; "
        "pytest collects both states, each in a process of its own without the variables of this one, which imports "
        "conftests and test modules. No test runs, and no target or judge is called. The exit code is 1 if there is a "
        "finding that is not allowed, and 2 if the states cannot be compared."
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
    """Run ``llmeval guard``: report requirements on answers that a pull request lowers."""
    for path in (options.output, options.json):
        refuse_input(path, options.allow)
    folder = options.folder.resolve()
    if not folder.is_dir():
        raise LlmevalError(f"{options.folder} is no folder: name one in a git repository")
    top = enclosing_repository(folder)
    _refuse_to_import_from(top)
    commit = fork_point(top, options.base)
    with TemporaryDirectory(prefix="llmeval-") as scratch:
        base = write_files_of(folder, commit, Path(scratch))
        head = copy_files_of(folder, Path(scratch, "head"))
        allowed = () if options.allow is None else _allowed(options.allow, top, commit, Path(scratch, "tree"))
        kinds, mixed = {name.endswith(".py") for name in changed_files(top, commit)}, None
        if len(kinds) > 1:
            tops = Path(scratch, "tree"), Path(scratch, "head")
            mixed = write_with_code_of(*tops, Path(scratch, "mixed")) / folder.relative_to(top)
        findings = sorted({*_compare_states(base, head, mixed, changed_files(folder, commit), Path(scratch))})
    judged = [Ruling(finding, _reason(finding, allowed)) for finding in findings]
    unused = [
        entry for entry in allowed if not any(fnmatchcase(loosening.name, entry.finding) for loosening in findings)
    ]
    if options.output is not None:
        OutputFile(options.output).save_text([guard_text(judged, commit)])
    rows = [{**published(ruling.finding), "name": ruling.finding.name, "allowed": ruling.reason} for ruling in judged]
    code = 1 if any(ruling.fails for ruling in judged) else 0
    return CommandResult(code, {"base": commit, "findings": rows}, _lines(judged, commit, unused))


def _refuse_to_import_from(top: Path) -> None:
    """Refuse to judge a repository whose modules this process may have imported in place of Python's.

    Raises:
        LlmevalError: A folder of it comes before the standard library on Python's path.
    """
    library, environment = str(Path(os.__file__).parent), Path(sys.prefix).resolve()
    for entry in takewhile(lambda each: each != library, sys.path):
        folder = Path(entry).resolve()
        # The programs of an environment are first on the path; those that are committed are the pull request's, too.
        if folder.is_relative_to(top) and (
            not folder.is_relative_to(environment) or run_git(top, "ls-files", "-z", "--", str(folder))
        ):
            raise LlmevalError(
                f"{display_path(folder, top)}: found a folder of the pull request first on Python's path, whose code "
                "could run in this process; expected `llmeval guard`, or `python -P -m pytest_llmeval guard`"
            )


def _compare_states(
    base: Path, head: Path, mixed: Path | None, changed: Sequence[str], scratch: Path
) -> Iterator[Loosening]:
    """Yield the requirements on answers that a pull request lowers, by its files and by what pytest collects.

    The code of the head comes last, when everything else is decided: it may change files, and what it says of settings
    and suite files has been said by the code of the base before.

    Args:
        base: The folder in the earlier state.
        head: The folder in the later state.
        mixed: The folder in the later state with the code of the earlier one, if both code and other files differ.
        changed: Names of files that differ.
        scratch: For processes.
    """
    tops = scratch / "tree", scratch / "head"
    modules = [name for name in changed if name.endswith(".py")]
    read = [finding for name in modules for finding in compare_code(base / name, head / name, name)]
    yield from compare_workflows(*tops)
    yield from compare_evidence(base, head, changed)
    yield from compare_settings(base, head, changed)
    question = {"base": str(base), "head": str(head), "changed": modules}
    function = f"{compare_suite_files.__module__}:{compare_suite_files.__name__}"
    with ThreadPoolExecutor() as pool:
        compared = pool.submit(answer_apart, base, tops[0], function, question, scratch / "compared")
        collected = pool.submit(collect, base, tops[0], scratch / "base")
        response, (before, why) = compared.result(), collected.result()
    in_files = convert(response["findings"], list[Loosening])
    yield from in_files
    plugins, compared_files = {name for name in modules if name.endswith(CONFTEST)}, set[str]()
    if before is None:
        yield Loosening("pytest", 0, "collection", "of the base failed, so tests are not compared", why, gone=True)
    else:
        about = {item.file for item in before.items if is_about_evaluations(base / item.file)}
        if mixed is not None:
            held, why = collect(mixed, scratch / "mixed", scratch / "held", enabled=before.enabled)
            if held is None:
                text = "with the code of the base failed, so what settings hide is not compared"
                yield Loosening("pytest", 0, "collection", text, after=why)
            else:
                of_files = [item for item in before.items if not item.file.endswith(".py")]
                yield from compare_items(structs.replace(before, items=of_files), held, response["matched"])
        after, why = collect(head, tops[1], scratch / "after", enabled=before.enabled)
        if after is None:
            yield Loosening("pytest", 0, "collection", "failed, so tests are not compared", after=why)
        else:
            plugins |= {*before.plugins, *after.plugins} & {*modules}
            files = {name for name in about if (head / name).exists()}
            known, names = ({loosening.name for loosening in side} for side in (read, in_files))
            yield from compare_collected(before, after, response["matched"], files, known, names)
            for name in {*modules} & {*after.modules} - plugins - {item.file for item in after.items}:
                if statements_of(base / name) != statements_of(head / name):
                    yield Loosening(name, 0, "module", "changed, and runs where answers are judged", note=True)
            compared_files = {suite.file for name, suite in before.suites.items() if name in after.suites}
    # A call at the top of a module declares a suite, which has been compared itself.
    yield from (loosening for loosening in read if loosening.subject != "call" or loosening.file not in compared_files)
    for name in sorted(plugins):
        yield from compare_plugins(base / name, head / name, name)


def _allowed(path: Path, top: Path, commit: str, base: Path) -> Sequence[AllowEntry]:
    """The entries of the ``--allow`` file of ``llmeval guard``.

    Raises:
        LlmevalError: It is not committed, was changed by somebody else than the owners of the code, or has faults.
    """
    document = InputFile(path).read_document()
    content, faults = DeclaredType(AllowFile).check(document.data, document)
    if content is not None:
        faults = [
            document.fault(("allow", at, name), "found an empty text, expected one")
            for at, entry in enumerate(content.allow)
            for name in ("finding", "reason")
            if not getattr(entry, name).strip()
        ]
    if faults:
        raise SuiteError(faults)
    full = str(path.resolve())
    if not run_git(top, "ls-files", "-z", "--", full) or run_git(top, "status", "--porcelain", "--", full):
        raise LlmevalError(f"{path}: found changes that are not committed, expected a committed file")
    authors = set(run_git(top, "log", "--format=%ae", f"{commit}..HEAD", "--", full).split())
    if authors and (owners := _owners(base)):
        for author in sorted(authors):
            user = _NO_REPLY.match(author)
            if author.lower() not in owners and (user is None or f"@{user['user']}".lower() not in owners):
                raise LlmevalError(
                    f"{path}: found a change by {author}, expected one by an owner in CODEOWNERS of the base: a mail "
                    "address, or a user whose commits have a noreply address (teams cannot be looked up)"
                )
    entries: Sequence[AllowEntry] = content.allow
    return entries


def _owners(base: Path) -> frozenset[str]:
    """The code owners in the base of a pull request, whose own CODEOWNERS does not count."""
    for path in map(base.joinpath, _OWNERS):
        if path.is_file():
            lines = (line.partition("#")[0].split() for line in path.read_text("utf-8", "replace").splitlines())
            return frozenset(owner.lower() for line in lines for owner in line[1:])
    return frozenset()


def _reason(finding: "Loosening", allowed: Sequence[AllowEntry]) -> str:
    """The reason in the ``--allow`` file for a finding of ``llmeval guard``; empty if it is not allowed."""
    return next((entry.reason for entry in allowed if fnmatchcase(finding.name, entry.finding)), "")


def _lines(judged: Sequence[Ruling], commit: str, unused: Sequence[AllowEntry]) -> Iterator[str]:
    """Yield the lines of ``llmeval guard``: findings, allowed ones, unused allowances and a summary."""
    for finding, _ in judged:
        values = " -> ".join(filter(None, (finding.before, finding.after)))
        yield f"{finding.place}  {finding.subject}: {finding.change}{f': {values}' if values else ''}"
    for ruling in judged:
        if ruling.reason:
            yield f"allowed: {ruling.finding.name}: {ruling.reason}"
    for entry in unused:
        yield f"note: nothing is found that {entry.finding!r} allows"
    yield _summary(judged, commit)
    if forbidden := [ruling.finding.name for ruling in judged if ruling.fails]:
        example = f"{{finding: {json.dumps(forbidden[0], ensure_ascii=False)}, reason: ...}}"
        yield f"to allow one, commit a file for --allow: allow: [{example}]"


def _summary(judged: Sequence[Ruling], commit: str) -> str:
    """The line that counts the findings of ``llmeval guard``, against which commit."""
    failing = sum(ruling.fails for ruling in judged)
    allowed = sum(bool(ruling.reason) for ruling in judged)
    parts = [f"{counted(failing, 'finding')} not allowed", *([f"{allowed} allowed"] if allowed else [])]
    return f"against {commit[:12]}: {', '.join(parts)}" if judged else f"against {commit[:12]}: nothing asks for less"


def guard_text(judged: Sequence[Ruling], commit: str) -> str:
    """The findings of ``llmeval guard`` as Markdown for a pull-request comment."""
    lines = [f"### Evaluations, {_summary(judged, commit)}", ""]
    if judged:
        lines += ["| place | what | change | before | now | verdict |", "|---|---|---|---|---|---|"]
        space = _SPACE
        ordered = sorted(judged, key=lambda each: not each.fails)
        rows = [_row(ruling) for ruling in ordered[:_MOST_ROWS]]
        fitting = [row for row in rows if (space := space - len(row)) > 0]
        more = len(judged) - len(fitting)
        lines += [*fitting, *(["", f"{more} more"] if more else [])]
    return "\n".join(lines) + "\n"


def _row(judged: Ruling) -> str:
    """A Markdown table row of the guard's part of a pull-request comment: a finding with its verdict."""
    loosening = judged.finding
    cells = (loosening.place, loosening.subject, loosening.change, loosening.before, loosening.after, judged.verdict)
    return f"| {' | '.join(map(text, cells))} |"
