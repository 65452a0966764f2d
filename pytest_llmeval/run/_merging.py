"""Merging of shard files."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, islice
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from pytest_llmeval.baselines import Stamp
from pytest_llmeval.core import LlmevalError, counted
from pytest_llmeval.data import OwnFiles, display_path
from pytest_llmeval.run._checkout import (
    Checkout,
    digest_of,
    file_of_plugin,
    plugin_fault,
    print_in_shards,
    versions,
)
from pytest_llmeval.run._run_record import Item, RunRecord
from pytest_llmeval.run._shards import ResultOptions, Shard, ShardFile, SuitePrint
from pytest_llmeval.services import GitError, run_git
from pytest_llmeval.suites import LoadedSuite, SuiteKey

_LISTED = 5
_NAMED = 100


def merge_shards(shards: Sequence[ShardFile], root: Path, *, approves: bool = False) -> tuple[RunRecord, Checkout]:
    """Merge shard files into the record of one run.

    Args:
        shards: At least one.
        root: The folder of the checkout.
        approves: Whether the scores of all cases are to be approved.

    Returns:
        The record of all as one run, and its suites in this checkout.

    Raises:
        LlmevalError: Some are missing, doubled, or of another run; all of them are listed, a line each.
    """
    if faults := [*_other_software(shards, root), *_other_files(shards, root)]:  # before anything is imported
        raise LlmevalError("\n".join(faults))
    plugins = {suite.path: suite.plugins for shard in shards for suite in shard.origin.suites}
    known = {
        variant.key._replace(path=str(root / variant.key.path)): variant.judges
        for shard in shards
        for variant in shard.origin.variants
    }
    ran, commit = shards[0].origin.options, Stamp.head_commit(root)

    def ordered(suite: LoadedSuite) -> LoadedSuite:
        if approves or (ran.judge in ("off", "defer") and suite.judged):
            return suite
        return suite.stopping(ran.stop).in_order(commit, ran.family)

    suites = Checkout(root, plugins, known, ordered)
    faults = [*_other_checkouts(shards, suites), *_other_runs(shards), *_incomplete(shards)]
    faults = faults or list(_other_findings(shards, suites))
    if faults:
        raise LlmevalError("\n".join(faults))
    merged = RunRecord.merged([_part(shard) for shard in shards])
    # What one part has left out, another has run.
    return structs.replace(merged, deselected=set(), unwanted=set()), suites


def _part(shard: ShardFile) -> RunRecord:
    """A shard's run record with items of its own: one suite in mode bulk has results in several shards."""
    return structs.replace(
        shard.run, items={Item(str(shard.path), str(item)): result for item, result in shard.run.items.items()}
    )


def _other_software(shards: Sequence[ShardFile], root: Path) -> Iterator[str]:
    """Yield the faults of shards that ran another commit than this checkout, or other software versions."""
    commit, here = Stamp.head_commit(root), versions()
    for shard in shards:
        origin = shard.origin
        if origin.commit != commit:
            yield _foreign_shard(
                shard, f"commit {origin.commit or 'none'}", f"{commit or 'none'}, which is checked out here"
            )
        for name in sorted({*origin.versions, *here}):
            ran, there = origin.versions.get(name, "none"), here.get(name, "none")
            if ran != there:
                yield _foreign_shard(shard, f"{name} {ran}", f"{there}, as installed here")


_AMONG_SHARDS: Final = (
    "lies where the shards do, expected a file of the commit: put the shards into a folder of their own, such as shards"
)


def _other_files(shards: Sequence[ShardFile], root: Path) -> Iterator[str]:
    """Yield the faults of shards that ran other suite files or other code of evaluators, by their bytes.

    What came with the shards is no part of the checkout, and is not used.
    """
    folders = {shard.path.resolve().parent for shard in shards}
    commit_files = cache(_tracked_files)  # git is asked only if a file lies where shards do

    def came_with_shards(file: Path) -> bool:
        place = file.resolve()
        if not any(place.is_relative_to(folder) for folder in folders):
            return False
        tracked = commit_files(root)
        if tracked is not None:
            return place not in tracked
        own = root.resolve()  # without git, what lies in it is a file of the checkout
        return any(place.is_relative_to(path) for path in folders - {own})

    for shard in shards:
        for suite in shard.origin.suites:
            path = root / suite.path
            if not (file := OwnFiles(path).source).is_file():
                yield f"{shard.path}: {suite.path} cannot be judged here: {file.name} is missing"
            elif suite.file != digest_of(file):
                yield _foreign_shard(
                    shard, f"a run of {suite.path} that differs in suite file", "what is checked out here"
                )
            files = {suite.path: file, **{name: file_of_plugin(name, root) for name in suite.plugins}}
            foreign = [
                name for name, path_here in files.items() if path_here is not None and came_with_shards(path_here)
            ]
            faults = [plugin_fault(*named, path, root) for named in suite.plugins.items()]
            for fault in [
                *(f"{name}: {_AMONG_SHARDS}" for name in foreign),
                *faults,
            ]:
                if fault:
                    yield f"{shard.path}: {suite.path} cannot be judged here: {fault}"
        for path in dict.fromkeys(path for path, _ in shard.run.judgements):
            from pytest_llmeval.judges import Judgements

            asking = path.parent.parent
            if not (
                asking.is_dir()
                and any(
                    Judgements.path_of(suite_file) == path for suite_file in asking.iterdir() if suite_file.is_file()
                )
            ):
                where = display_path(path, root)
                yield f"{shard.path}: found judgements for {where}, expected those of a suite or test of the checkout"


def _tracked_files(root: Path) -> frozenset[Path] | None:
    """The Python and suite files that git tracks in a checkout; ``None`` where there is no repository."""
    try:
        names = run_git(root, "ls-files", "-z", "--", "*.py", "*.eval.*")
    except GitError:
        return None
    return frozenset((root / name).resolve() for name in names.split("\0") if name)


def _other_checkouts(shards: Sequence[ShardFile], suites: Checkout) -> Iterator[str]:
    """Yield the faults of shards whose suites, data or evaluators differ from this checkout."""
    parts = {file.path: Shard.read(file.origin.shard, {}) if file.origin.shard else None for file in shards}
    prints: dict[str, Mapping[Shard | None, SuitePrint] | LlmevalError] = {}
    for shard in shards:
        for ran_suite in shard.origin.suites:
            if ran_suite.path not in prints:
                prints[ran_suite.path] = _prints_of_suite(suites, ran_suite.path, parts.values())
            of_suite = prints[ran_suite.path]
            if isinstance(of_suite, LlmevalError):
                yield from (
                    f"{shard.path}: {ran_suite.path} cannot be judged here: {line}"
                    for line in str(of_suite).split("\n")
                )
            elif other := list(_print_differences(ran_suite, of_suite[parts[shard.path]])):
                yield _foreign_shard(
                    shard, f"a run of {ran_suite.path} that differs in {', '.join(other)}", "what is checked out here"
                )


def _prints_of_suite(
    suites: Checkout, path: str, parts: Iterable[Shard | None]
) -> Mapping[Shard | None, SuitePrint] | LlmevalError:
    """The fingerprints by shard of a suite in this checkout, or the error that keeps it from being read."""
    try:
        return print_in_shards(suites.read(suites.root / path), suites.root, suites.plugins[path], parts)
    except LlmevalError as error:
        return error


def _print_differences(ran: SuitePrint, here: SuitePrint) -> Iterator[str]:
    """Yield the parts of a suite whose fingerprints in a shard file differ from this checkout."""
    names = {"file": "suite file", "data": "data", "evaluators": "evaluators", "plugins": "code of evaluators"}
    return (description for name, description in names.items() if getattr(ran, name) != getattr(here, name))


def _foreign_shard(shard: ShardFile, difference: str, expected: str) -> str:
    """The message about a shard file that cannot be merged because it ran something else."""
    return f"{shard.path}: found {difference}, expected {expected}"


def _other_runs(shards: Sequence[ShardFile]) -> Iterator[str]:
    """Yield the faults of shards that ran with other options than most, or collected other tests."""
    for name in ResultOptions.__struct_fields__:
        values = {shard.path: getattr(shard.origin.options, name) for shard in shards}
        if name != "selection" or any(shard.origin.shard for shard in shards):
            yield from _minority(values, name.replace("_", "-"))
    if any(shard.origin.shard for shard in shards):
        collected = {}
        for shard in shards:
            if shard.run.ended and not shard.origin.items:
                run_end = f"a run that ended before it had collected tests ({shard.run.ended})"
                yield _foreign_shard(shard, run_end, "a whole one: run this shard again")
            else:
                tests = counted(shard.origin.items, "test")
                collected[shard.path] = f"{tests} with fingerprint {shard.origin.collected}"
        yield from _minority(collected, "all tests over cases")
    judges: dict[SuiteKey, dict[Path, Any]] = {}
    for shard in shards:
        for variant in shard.origin.variants:
            judges.setdefault(variant.key, {})[shard.path] = variant.judges
    for key, values in judges.items():
        yield from _minority(values, f"judges of {key.display_path}")


def _other_findings(shards: Sequence[ShardFile], suites: Checkout) -> Iterator[str]:
    """Yield the faults of shards whose judge wrote other shared findings, such as steps of criteria."""
    learned = {}
    for name in suites.plugins:
        evaluators = suites.read(suites.root / name).evaluators
        pairs = {(label, metric.learned) for label, evaluator in evaluators.items() for metric in evaluator.describe()}
        if known := sorted(pair for pair in pairs if pair[1]):
            learned[str(suites.root / name)] = known
    values: dict[tuple[str, str, str], dict[Path, Any]] = {}
    for shard in shards if learned else ():
        for key, records in sorted(shard.run.case_records().items()):
            for label, name in learned.get(key.path, ()):
                for record in records.values():
                    details = record.observations[label].details if label in record.observations else {}
                    if name in details:
                        values.setdefault((key.display_path, label, name), {})[shard.path] = details[name]
    for (suite_path, label, name), of_shards in values.items():
        for line in _minority(of_shards, f"{name} of {label} in {suite_path}"):
            yield f"{line}: record them before shards run, or put them into the suite"


def _minority(values: Mapping[Path, Any], name: str) -> Iterator[str]:
    """Yield the faults of shard files whose value, such as an option, differs from most others'."""
    for usual, _ in Counter(map(repr, values.values())).most_common(1):
        for path, value in values.items():
            if repr(value) != usual:
                yield f"{path}: found {name} {value!r}, expected {usual} as in the other shards"


def _incomplete(shards: Sequence[ShardFile]) -> Iterator[str]:
    """Yield the shards of a run that are missing, and those that are there twice."""
    numbered = [shard for shard in shards if shard.origin.shard]
    if not numbered:
        yield from _faults_of_unnumbered(shards)
        return
    yield from (
        _foreign_shard(shard, "a run without --llmeval-shard", "a shard like the others")
        for shard in shards
        if not shard.origin.shard
    )
    shards_by_index: dict[int, ShardFile] = {}
    count = Counter(Shard.read(file.origin.shard, {}).count for file in numbered).most_common(1)[0][0]
    for shard in numbered:
        part = Shard.read(shard.origin.shard, {})
        if part.count != count:
            yield _foreign_shard(shard, f"shard {part}", f"one of {count}, as in the other files")
        elif part.index in shards_by_index:
            yield f"{shard.path}: found shard {part} again, expected it once: {shards_by_index[part.index].path} has it"
        else:
            shards_by_index[part.index] = shard
    if len(shards_by_index) < count:
        missing = (f"{index}/{count}" for index in range(1, count + 1) if index not in shards_by_index)
        named = _list_names(islice(missing, _NAMED), count - len(shards_by_index))
        yield f"the file of shard {named} is missing: name the files of all {count} shards"


def _faults_of_unnumbered(shards: Sequence[ShardFile]) -> Iterator[str]:
    """Yield the faults of parts without shard numbers: results in two files, and tests in none."""
    for first, second in combinations(shards, 2):
        if both := sorted(first.run.items.keys() & second.run.items.keys()):
            ids = _list_names([item.nodeid for item in both][:_LISTED], len(both))
            yield f"{second.path}: found results that {first.path} has, too, expected each once: {ids}"
    known = {item.nodeid for shard in shards for item in shard.run.items}
    known |= {nodeid for shard in shards for nodeid in shard.run.unfinished}
    if len(shards) > 1 and len({shard.origin.options.selection for shard in shards}) == 1:
        known |= {nodeid for shard in shards for nodeid in shard.run.unwanted}
    if missing := sorted({nodeid for shard in shards for nodeid in shard.run.deselected} - known):
        yield f"no file has {_list_names(missing[:_LISTED], len(missing))}: name the files of all parts"


def _list_names(names: Iterable[str], count: int) -> str:
    """The first names of missing or doubled parts, and the number of the others."""
    named = list(names)
    return ", ".join(named) + (f" and {count - len(named)} more" if count > len(named) else "")
