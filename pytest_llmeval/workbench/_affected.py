"""Runs of affected cases."""

import json
import math
import os
import tempfile
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct, structs

from pytest_llmeval.baselines import ScoreFile, Stamp, fingerprint
from pytest_llmeval.cli import OPTIONS, CommandResult
from pytest_llmeval.core import CaseChoice, CaseRecord, JsonNumber, LlmevalError, counted, decode, encode, listed
from pytest_llmeval.data import OutputFile, repository_top
from pytest_llmeval.numbers import CaseStatistics
from pytest_llmeval.reports import ReportFormat
from pytest_llmeval.run import (
    ChoiceTerms,
    JudgedSuite,
    Reported,
    RunScope,
    ShardFile,
    Suites,
)
from pytest_llmeval.services import GitError, UseRecord, run_git
from pytest_llmeval.suites import LoadedSuite, SuiteKey
from pytest_llmeval.workbench._inputs import Inputs, ProjectInputs
from pytest_llmeval.workbench._project import fork_point, run_pytest

_CARRIED: Final = ("passed", "failed", "xfailed", "known_failure")
_SHORT: Final = 7
_NAMED: Final = 2


class StoredInputs(Struct, frozen=True):
    """The file of inputs beside approved scores, by which runs of affected cases see what changed.

    Attributes:
        statistics: Fingerprint of the approved statistics.
        inputs: Name of an input to its fingerprint or version.
        cases: Case to the fingerprint of its row.
        recorded: Whether answers were replayed from recordings.
        case_usd: Mean cost of a case; ``None`` where that is not known.
        used: What its cases used, each with its kind.
    """

    statistics: str
    inputs: dict[str, str]
    cases: dict[str, str]
    recorded: bool = False
    case_usd: JsonNumber | None = None
    used: tuple[str, ...] = ()
    schema: int = 1


@dataclass(frozen=True)
class Repository:
    """The git repository of a project.

    Attributes:
        top: Its folder.
    """

    top: Path

    @classmethod
    def around(cls, folder: Path) -> "Repository | None":
        """Return the repository of a folder; ``None`` if it is in none."""
        top = repository_top(folder)
        return None if top is None else cls(top)

    def git(self, *arguments: str) -> str | None:
        """The output of git; ``None`` if it fails."""
        return _git(self.top, *arguments)

    def resolve(self, name: str) -> str:
        """Return the commit to compare with.

        Args:
            name: Of a commit; empty for the merge base with the main branch.

        Raises:
            _ShallowError: The history that is here does not have it.
            LlmevalError: There is no such commit.
        """
        try:
            if not name:
                return fork_point(self.top)
            return run_git(self.top, "rev-parse", "-q", "--verify", "--end-of-options", f"{name}^{{commit}}").strip()
        except GitError as error:
            if (self.git("rev-parse", "--is-shallow-repository") or "").strip() == "true":
                raise _ShallowError(_depth()) from None
            if not name:
                raise LlmevalError(f"{error}: --llmeval-affected=REF") from None
        is_path = "; that is a path: put it before --llmeval-affected, or write --llmeval-affected="
        raise LlmevalError(
            f"found {name!r}, expected a commit, branch or tag, or a file *{ReportFormat.SHARD_SUFFIX}"
            f"{is_path if Path(name).exists() else ''}"
        )

    def changed_approvals(self, commit: str) -> set[Path]:
        """Return the files of approved runs that a commit does not have in their current form; ignored ones are none.

        Raises:
            GitError: git has no answer: a run that took that for "none" would carry what was not approved.
        """
        patterns = ["*.inputs.json", "*.scores.json", "*.cases.jsonl"]
        changed = run_git(self.top, "diff", "--name-only", "--no-renames", "-z", commit, "--", *patterns)
        new = run_git(self.top, "ls-files", "--others", "--exclude-standard", "-z", "--", *patterns)
        return {self.top / name for name in (changed + new).split("\0") if name}

    def last_change(self, path: str, since: str) -> str:
        """Return the last commit that changed a file, in words."""
        if self.git("status", "--porcelain", "--", path):
            return "not committed"
        line = (self.git("log", "-1", "--format=%h %s", f"{since}..HEAD", "--", path) or "").strip() if since else ""
        before = (self.git("log", "-1", "--format=%h %s", "--", path) or "").strip()
        older = f", before {_short(since)}, which has no approval of it" if since else ""
        return line or (before and before + older)


def _short(commit: str) -> str:
    """The abbreviated name of a commit, as reports of affected cases show it."""
    return commit[:_SHORT]


class _ShallowError(LlmevalError):
    """The error that a clone's history is too short to find the commit that affected cases are compared with."""


def _depth() -> str:
    """The depth of history that a CI clone needs for a run of affected cases, in words."""
    try:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        commits = int(event["pull_request"]["commits"])
    except (KeyError, OSError, TypeError, ValueError):
        return "the clone is shallow: fetch all of its history (fetch-depth: 0, or git fetch --unshallow)"
    return (
        f"the clone is shallow: fetch {commits + 2} commits (fetch-depth: {commits + 2}; the pull request has "
        f"{counted(commits, 'commit')}), and the main branch; or all (fetch-depth: 0)"
    )


def _git(folder: Path, *arguments: str) -> str | None:
    """The output of a git command in a project; ``None`` if git fails, so that all cases run."""
    try:
        return run_git(folder, *arguments)
    except GitError:
        return None


class InputComparison(NamedTuple):
    """The inputs of a suite or system compared with those of its approved run, to choose affected cases.

    Attributes:
        stored: Inputs of the approved run; ``None`` where it cannot be carried over.
        records: Its cases.
        inputs: What the suite depends on now.
        why: Why all cases run; empty if rows decide.
        changed: The inputs that have changed.
    """

    stored: StoredInputs | None
    records: Mapping[str, CaseRecord]
    inputs: Inputs
    why: str
    changed: Sequence[str] = ()


@dataclass
class AffectedCases:
    """The choice of cases for ``--llmeval-affected``; implements `pytest_llmeval.plugin._extensions.CaseChooser`.

    Attributes:
        suites: Of the run.
        terms: Its options.
        project: Has the inputs.
        repository: ``None`` outside of one.
        commit: What is compared with; empty outside of a repository.
        fault: Why nothing can be compared.
        report: The results of a run to compare with, in place of the approved one.
    """

    suites: Suites
    terms: ChoiceTerms
    project: ProjectInputs
    repository: Repository | None = None
    commit: str = ""
    fault: str = ""
    report: ShardFile | None = None
    _compared: dict[SuiteKey, InputComparison] = field(default_factory=dict)
    _alone: dict[SuiteKey, Mapping[str, CaseChoice]] = field(default_factory=dict)
    _choices: dict[SuiteKey, Mapping[str, CaseChoice]] = field(default_factory=dict)

    @property
    def since(self) -> str:
        """How reports name what is compared with."""
        if self.report is not None:
            return _short(self.report.origin.commit or "") or self.report.path.name
        return _short(self.commit) or "the approved run"

    @cached_property
    def _changed(self) -> set[Path]:
        return self.repository.changed_approvals(self.commit) if self.repository is not None and self.commit else set()

    def choose(self, key: SuiteKey, suite: LoadedSuite) -> Mapping[str, CaseChoice]:
        """The fate of each case of a suite, by id."""
        if key not in self._choices:
            choices = self._choose_alone(key, suite)
            if cause := self._left_state.get(key.user):
                runs = CaseChoice.run(self.since, cause)
                choices = {case: choice if choice.record is None else runs for case, choice in choices.items()}
            self._choices[key] = choices
        return self._choices[key]

    @cached_property
    def _left_state(self) -> Mapping[str, str]:
        """Suites that left state to suites of which cases run, by the name of the user, to the cause of their run."""
        causes: dict[str, str] = {}
        suites = sorted(self.terms.collected().items(), key=lambda each: each[0])
        users = {key.user for key, _ in suites}
        for key, suite in suites:
            stored = self.compare(key, suite).stored
            if stored is not None and any(case.record is None for case in self._choose_alone(key, suite).values()):
                for user in users.intersection(stored.used):
                    causes.setdefault(user, f"{key.display_path} uses what it leaves")
        return causes

    def _choose_alone(self, key: SuiteKey, suite: LoadedSuite) -> Mapping[str, CaseChoice]:
        """The fate of each case of a suite, by id, whichever other suites run."""
        if key not in self._alone:
            self._alone[key] = dict(self._chosen(key, suite))
        return self._alone[key]

    @cached_property
    def _reported(self) -> Mapping[SuiteKey, Mapping[str, CaseRecord]]:
        return {} if self.report is None else self.report.run.case_records()

    def _chosen(self, key: SuiteKey, suite: LoadedSuite) -> Iterator[tuple[str, CaseChoice]]:
        compared = self.compare(key, suite)
        stored = compared.stored
        if (seen := UseRecord.current()) is not None and stored is not None and not compared.why:
            seen.uses |= {(key.user, use) for use in stored.used}  # what is carried has used it
        for case in suite.cases:
            record = compared.records.get(case.id)
            cause = compared.why
            if not cause and (stored is None or record is None or case.id not in stored.cases):
                cause = "new row"
            elif not cause and stored is not None and stored.cases[case.id] != compared.inputs.cases[case.id]:
                cause = "data row"
            elif not cause and (record is None or not _can_be_carried(record)):
                cause = "not scored when it was approved"
            elif not cause and self._is_drawn(key, case.id):
                cause = "refresh"
            if cause or stored is None or record is None:
                yield case.id, CaseChoice.run(self.since, cause)
                continue
            replayed = self.terms.replays(key, suite, case)
            yield case.id, CaseChoice.carry(self.since, record, replayed=replayed, saved_usd=stored.case_usd)

    def _is_drawn(self, key: SuiteKey, case: str) -> bool:
        day = Stamp.day_of(datetime.now(UTC))
        digest = sha256(f"{day}\n{key.display_path}\n{key.variant}\n{case}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:6], "big") < self.terms.refresh * 2**48

    def compare(self, key: SuiteKey, suite: LoadedSuite) -> InputComparison:
        """Compare a suite with its approved run; nothing is raised, since what cannot be compared runs."""
        if key not in self._compared:
            self._compared[key] = self._compare(key, suite)
        return self._compared[key]

    def _compare(self, key: SuiteKey, suite: LoadedSuite) -> InputComparison:
        """The comparison of a suite with its approved run, for `compare` to keep."""
        nothing = Inputs({}, {})
        if why := self.fault or self._refused(key, suite):
            return InputComparison(None, {}, nothing, why)
        try:
            stored, records = self._approved(key)
            record = UseRecord.current()
            early = () if record is None else [use for _, use in record.early]
            used = {*early, *(() if stored is None else stored.used)}
            inputs = self.project.inputs(suite, self.suites.judges(key, suite), used)
        except (LlmevalError, OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
            return InputComparison(None, {}, nothing, f"the approved run cannot be used: {str(error).splitlines()[0]}")
        if inputs.unknown:
            more = f" (and {len(inputs.unknown) - 1} more)" if len(inputs.unknown) > 1 else ""
            return InputComparison(stored, records, inputs, f"cannot be followed: {inputs.unknown[0]}{more}")
        if stored is None:
            return InputComparison(None, {}, inputs, self._missing(key))
        names = sorted({*inputs.values, *stored.inputs}, key=lambda name: (not _is_file(name), name))
        changed = [name for name in names if inputs.values.get(name) != stored.inputs.get(name)]
        why = listed(changed, _NAMED, " and {} more")
        if not why and stored.recorded and not all(self.terms.replays(key, suite, case) for case in suite.cases):
            why = "the approved run replayed recorded answers, and this run would ask"
        return InputComparison(stored, records, inputs, why, changed)

    def listed(self, suites: Mapping[SuiteKey, tuple[LoadedSuite, Sequence[str]]]) -> dict[str, Any]:
        """The cases that run, with the reasons, as JSON data.

        Args:
            suites: Suite, or system of it, to its collected cases.
        """
        out, every = [], Counter[str]()
        for key, (suite, cases) in sorted(suites.items(), key=lambda each: each[0][1:]):
            choices, compared = self.choose(key, suite), self.compare(key, suite)
            why = {case: choices[case].selection.cause for case in cases}
            causes = Counter(filter(None, why.values()))
            every += causes
            was, now = {} if compared.stored is None else compared.stored.inputs, compared.inputs.values
            changed = [
                {"input": name, "was": was.get(name, ""), "now": now.get(name, ""), "change": self._change(name)}
                for name in compared.changed
            ]
            affected = [case for case, cause in why.items() if cause]
            numbers = {
                "cases": len(cases),
                "affected": affected,
                "causes": dict(causes),
                "changed": changed,
                "why": why,
            }
            out.append({"path": key.display_path, "test": key.test, "variant": key.variant, **numbers})
        total, ran = sum(len(cases) for _, cases in suites.values()), every.total()
        causes_text = ", ".join(f"{cause} ({count})" for cause, count in every.most_common())
        line = f"{ran} of {counted(total, 'case')} affected since {self.since}" + (causes_text and f": {causes_text}")
        return {
            "since": self.since,
            "commit": self.commit,
            "cases": total,
            "affected": ran,
            "line": line,
            "suites": out,
        }

    def _change(self, name: str) -> str:
        """The commit that changed an input, in words."""
        if self.repository is None or not _is_file(name):
            return "in the suite, its judge or the environment"
        return self.repository.last_change(name, self.commit) or "no commit of this branch"

    def _refused(self, key: SuiteKey, suite: LoadedSuite) -> str:
        """Say why nothing of a suite can be carried over after any change, or nothing."""
        if key.test:
            return "a Python test answers"
        if self.terms.mutates:
            return "--llmeval-mutate changes the answers of this run"
        if suite.against_approved:
            return "an evaluator compares with approved answers"
        if suite.limited_usage:
            return f"{suite.limited_usage[0]} is limited, which only calls of this run have"
        return ""

    def _approved(self, key: SuiteKey) -> tuple[StoredInputs | None, dict[str, CaseRecord]]:
        if self.report is not None:
            inputs = self.report.run.inputs.get(key.whole_name)
            if inputs is None:
                return None, {}
            records = CaseStatistics.from_records(self._reported.get(key, {}).values()).records
            return decode(encode(inputs), StoredInputs), {record.id: record for record in records}
        scores = ScoreFile.of_suite(key)
        files = [scores.path, scores.statistics, scores.inputs]
        if not all(file.is_file() for file in files) or any(file.resolve() in self._changed for file in files):
            return None, {}
        stored, text = read_inputs(files[2]), files[1].read_text(encoding="utf-8")
        if stored.statistics != fingerprint(text):
            return None, {}
        return stored, {
            record.id: record for record in CaseStatistics.from_lines(StringIO(text), files[1].name).records
        }

    def _missing(self, key: SuiteKey) -> str:
        if self.report is not None:
            return f"{self.report.path.name} has no inputs of it: write it with --llmeval-affected"
        scores = ScoreFile.of_suite(key)
        if not scores.path.is_file():
            return "no run is approved"
        if not scores.inputs.is_file():
            return "the approved run has no inputs: approve with --snapshot-update"
        if {path.resolve() for path in (scores.path, scores.inputs)} & self._changed:
            return f"approved anew since {self.since}"
        return "inputs and scores are of different approvals"


def _is_file(name: str) -> bool:
    """Whether the name of a suite's input is that of a file, and not of a package, of Python or of a setting."""
    return " " not in name and name not in ("Python", "pytest-llmeval-suite")


def _can_be_carried(record: CaseRecord) -> bool:
    """Whether the approved result of a case can be reused without a new run: it is judged and has no errors."""
    clean = not record.errors and not any(observation.errored for observation in record.observations.values())
    return record.outcome in _CARRIED and clean and bool(record.observations)


def read_inputs(path: Path) -> StoredInputs:
    """Read the inputs file beside approved scores.

    Raises:
        OSError: The file cannot be read.
        LlmevalError: It is none.
    """
    try:
        return decode(path.read_bytes(), StoredInputs)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise LlmevalError(
            f"{path.name}: the inputs of the approved run cannot be read ({error}): approve again"
        ) from None


def _project(suites: Suites) -> tuple[ProjectInputs, Repository | None]:
    """Return the project inputs of the suites of a run, and its git repository if it is in one."""
    repository, root = Repository.around(suites.root), suites.root.resolve()
    record = UseRecord.current()
    top = root if repository is None else repository.top
    if record is None:
        return ProjectInputs(root, top), repository
    return ProjectInputs(root, top, record.environment, record.options), repository


def choose_affected(suites: Suites, terms: ChoiceTerms) -> AffectedCases:
    """Choose the cases for a run of affected cases.

    Raises:
        LlmevalError: The commit to compare with does not exist.
    """
    project, repository = _project(suites)
    chooser = AffectedCases(suites, terms, project, repository)
    if terms.since.endswith(ReportFormat.SHARD_SUFFIX):
        try:
            chooser.report = ShardFile.read(Path(terms.since), suites.root)
            chooser.commit = chooser.report.origin.commit or ""
        except LlmevalError as error:  # as in a job that finds nothing in its cache
            chooser.fault = str(error)
    elif repository is not None:
        try:
            chooser.commit = repository.resolve(terms.since)
        except _ShallowError as error:
            chooser.fault = str(error)
    elif terms.since:
        raise LlmevalError(f"found {terms.since!r}, expected no commit: {suites.root} is in no git repository")
    return chooser


def keep_inputs(reported: Reported, scope: RunScope) -> Reported:
    """Keep the inputs of suites whose results runs of affected cases may reuse, if their record is complete.

    Those that a run approves have a file beside their scores. Those of a run whose results are kept stand with them.
    """
    if UseRecord.WATCHED not in scope.run.used or UseRecord.LOST in scope.run.used:
        return reported
    project, _ = _project(scope.suites)
    suites = {suite.key: suite for suite in reported.judged.suites if not suite.key.test}
    used = project.uses({key: suite.suite for key, suite in suites.items()}, scope.run.used)
    notes = []
    for key, suite in suites.items():
        pending, path = suite.snapshot.pending, ScoreFile.of_suite(key).inputs
        approves = pending is not None and pending.approved is not None and not pending.fault
        try:
            if scope.terms.is_kept:
                stored = _stored_inputs(suite, project, scope, used[key])
                scope.run.inputs[key.whole_name] = msgspec.to_builtins(stored)
            if approves:
                OutputFile(path).rewrite(partial(_inputs_text, suite, project, scope, used[key]))
        except OSError as error:
            notes.append(f"{key.display_path}: inputs NOT kept in {path.name}: {error.strerror}")
    return structs.replace(reported, notes=[*reported.notes, *notes])


def _inputs_text(judged: JudgedSuite, project: ProjectInputs, scope: RunScope, used: Iterable[str]) -> str:
    """The text of the inputs file beside approved scores: the inputs of a suite as JSON."""
    stored = _stored_inputs(judged, project, scope, used)
    return json.dumps(msgspec.to_builtins(stored), ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _stored_inputs(judged: JudgedSuite, project: ProjectInputs, scope: RunScope, used: Iterable[str]) -> StoredInputs:
    """The inputs of a suite that a run has judged, as its inputs file keeps them."""
    from pytest_llmeval.run import Checkout

    inputs = project.inputs(judged.suite, judged.collected.judges, used)
    values = dict(inputs.values)
    if isinstance(scope.suites, Checkout):  # which has just been made, after its shards ran
        ran_with = scope.run.inputs.get(judged.key.whole_name, {}).get("inputs", {})
        values |= {name: value for name, value in ran_with.items() if name.startswith(("variable ", "option "))}
    else:
        for name in values:
            path = project.top / name
            if path.is_file() and path.stat().st_mtime > scope.run.started:
                values[name] = "changed while the run ran"
    ran = [record for record in judged.records if record.ran and not record.carried]
    path = ScoreFile.of_suite(judged.key).inputs
    old = read_inputs(path) if path.is_file() else None
    costs = [
        cost
        for record in ran
        for cost in (*(call.cost_usd for call in record.calls), *(use.cost_usd for use in record.target_usage))
    ]
    known = [cost for cost in costs if cost is not None]
    usd = round(math.fsum(known) / len(ran), 9) if known and len(known) == len(costs) else None
    new = StoredInputs(
        fingerprint(judged.measured.run.statistics.text),
        dict(sorted(values.items())),
        dict(sorted(inputs.cases.items())),
        any(use.origin == "recorded" for record in ran for use in record.target_usage)
        or any(
            record.carried and record.selection is not None and record.selection.replayed for record in judged.records
        ),
        usd,
        inputs.used,
    )
    if old is not None:
        as_before = structs.replace(new, case_usd=old.case_usd)
        new = as_before if not ran or as_before == old else new  # costs alone are no reason to write the file
        if new.recorded and _confirms(new, old):
            return old  # the run that asked knows what the answers used
    return new


def _confirms(new: StoredInputs, old: StoredInputs) -> bool:
    """Whether a replayed run has the scores of an earlier run and only inputs of it, so that the earlier file stays."""
    same = (new.statistics, new.cases) == (old.statistics, old.cases)
    return same and new.inputs.items() <= old.inputs.items() and {*new.used} <= {*old.used}


_FILE: Final = "LLMEVAL_AFFECTED_FILE"
"""Variable with the file that pytest writes for the command."""

_TIMEOUT_S: Final = 300
_EXITS: Final = (0, 5)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval affected``."""
    parser.description = (
        "List the cases that 'pytest --llmeval-affected=REF' would run, and why; nothing is called. pytest collects "
        "them. The exit code is 0 whether or not any case is affected, and 2 if that cannot be said."
    )
    OPTIONS.add_to(parser, "rootdir")
    parser.add_argument("ref", nargs="?", default="", metavar="REF", help=OPTIONS["affected"].command_help)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="suites or folders; default: those of pytest")
    parser.add_argument("--json", action="store_true", help="write JSON, to plan jobs")
    parser.add_argument("--why", metavar="CASE", help="say of a case which input has changed, and by which commit")
    parser.set_defaults(run=_affected, code_of_faults=2)


def _affected(options: Namespace) -> CommandResult:
    """Run ``llmeval affected``: list the cases that a change affects, or with ``--why`` the cause for one case."""
    data = _collected(options)
    if options.why:
        lines = [line for suite in data["suites"] for line in _why(suite, options.why, data["since"])]
        if not lines:
            raise LlmevalError(f"--why: no case {options.why!r}: name one by its id, such as a.eval.yaml::capital")
    else:
        lines = [data["line"]]
        for suite in data["suites"]:
            causes = ", ".join(f"{cause} ({count})" for cause, count in suite["causes"].items())
            lines += [f"{_name(suite)}: {len(suite['affected'])} of {suite['cases']}: {causes}"] if causes else []
    return CommandResult(0, data, lines)


def _collected(options: Namespace) -> dict[str, Any]:
    """Run pytest's collection, and return the affected cases that it chose."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "affected.json")
        arguments = ["--llmeval", f"--llmeval-affected={options.ref}", "--collect-only", "-q", *options.paths]
        arguments += [f"--rootdir={options.rootdir}"] if options.rootdir else []
        done = run_pytest(["-p", __name__, *arguments], {**os.environ, _FILE: str(file)}, _TIMEOUT_S)
        if done.returncode not in _EXITS or not file.exists():
            printed = [line for line in (*done.stdout.splitlines(), *done.stderr.splitlines()) if line.strip()]
            errors = [line for line in printed if line.startswith("ERROR")] or printed[-1:]
            raise LlmevalError(f"pytest cannot collect the suites: {'; '.join(errors[:_NAMED])}")
        data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return data


def _name(suite: Mapping[str, Any]) -> str:
    """The name of a suite in the lines of ``llmeval affected``: its file or test, with the variant."""
    return f"{suite['test'] or suite['path']}" + (f"[{suite['variant']}]" if suite["variant"] else "")


def _why(suite: Mapping[str, Any], case: str, since: str) -> Iterator[str]:
    """Yield the lines of ``llmeval affected --why``: the cause for which a case runs, or that its result is reused."""
    for name, cause in suite["why"].items():
        nodeid = f"{suite['path']}::{name}" + (f"[{suite['variant']}]" if suite["variant"] else "")
        if case in (name, nodeid):
            yield f"{nodeid}: {f'runs: {cause}' if cause else f'carried from {since}'}"
            for change in suite["changed"] if cause else ():
                values = f"{change['was'] or 'absent'} -> {change['now'] or 'absent'}"
                yield f"  {change['input']}: {values}; {change['change']}"


def pytest_collection_finish(session: Any) -> None:
    """Write the affected cases; a hook in the pytest process that ``llmeval affected`` starts."""
    from pytest_llmeval.plugin import CollectedSession

    collected = CollectedSession(session)
    assert isinstance(collected.chooser, AffectedCases)
    suites: dict[SuiteKey, tuple[LoadedSuite, list[str]]] = {}
    for _, loaded, cases in collected.cases():
        if loaded is not None:
            suites.setdefault(loaded.key, (loaded.suite, []))[1].extend(case.id for case in cases)
    Path(os.environ[_FILE]).write_text(json.dumps(collected.chooser.listed(suites)), encoding="utf-8")
