"""Shards in pytest: selection of the items of this shard, and its file."""

__all__ = ("leave_to_others", "note_selection", "origin_of", "plugins_of")

import sys
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.baselines.mode import SELECTING
from pytest_llmeval.cli.options import SHARD_SUFFIX
from pytest_llmeval.data.files.places import display_path
from pytest_llmeval.plugin.collect import CaseItem
from pytest_llmeval.plugin.options import run_terms, shard_of_run
from pytest_llmeval.plugin.payload import case_of, keys_of
from pytest_llmeval.plugin.suite_loader import RUNNER, SuiteLoader
from pytest_llmeval.run.stages import Reported
from pytest_llmeval.services.addresses import redacted_url

if TYPE_CHECKING:
    from pytest_llmeval.run.shards.file import Origin, ShardOptions
    from pytest_llmeval.run.shards.selection import Shard

_CONFTEST = "conftest.py"


def leave_to_others(config: pytest.Config, items: list[pytest.Item], shard: "Shard") -> None:
    """Deselect the items of other shards; the item of a suite in mode ``bulk`` keeps the cases of this one.

    Tests that are no cases stay together by file, since they may depend on each other.
    """
    from pytest_llmeval.run.shards.selection import groups_of

    groups: dict[Path, Mapping[str, str]] = {}
    mine: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        loaded = case_of(item)
        if loaded is None:
            (mine if shard.has(item.nodeid.partition("::")[0], "") else others).append(item)
            continue
        path = loaded.suite.path
        if path not in groups:
            groups[path] = groups_of(loaded.suite)
        bulk = item.bulk if isinstance(item, CaseItem) else ()
        # A Python test runs over all cases, also those that no system of the suite has.
        group, shown = groups[path], loaded.key.shown
        kept = [case for case in bulk or (loaded.case,) if shard.has(shown, group.get(case.id, case.id))]
        if isinstance(item, CaseItem) and bulk:
            item.bulk = tuple(kept)
        (mine if kept else others).append(item)
    if others:
        items[:] = mine
        config.hook.pytest_deselected(items=others)


def note_selection(loader: SuiteLoader, collected: Sequence[pytest.Item], selected: Sequence[pytest.Item]) -> None:
    """Note which tests over cases were collected, and which of them a selection has left out."""
    config = loader.config
    if len(collected) != len(selected):
        kept = {item.nodeid for item in selected}
        loader.deselected = [nodeid for nodeid in keys_of(collected) if nodeid not in kept]
    if shard_of_run(config) is not None or _is_kept(config):
        loader.collected = [*keys_of(collected)]


def _is_kept(config: pytest.Config) -> bool:
    return any(name.endswith(SHARD_SUFFIX) for name in config.getoption("llmeval_report"))


def plugins_of(hook: Any, root: Path) -> list[str]:
    """Return what implements a hook, in the order of the calls: conftests by path, other modules by name."""
    return [_name(each.plugin, root) for each in reversed(hook.get_hookimpls())]


def _name(plugin: object, root: Path) -> str:
    if not isinstance(plugin, ModuleType):
        return f"{type(plugin).__module__}.{type(plugin).__qualname__}"
    file = Path(plugin.__file__ or "")
    return display_path(file, root) if file.name == _CONFTEST else plugin.__name__


def origin_of(session: pytest.Session, loader: SuiteLoader, finished: Reported, ids: Iterable[str]) -> "Origin":
    """Return what a run was made of, for its shard file.

    Args:
        session: The session.
        loader: Its suites.
        finished: What came of them.
        ids: Of all tests over cases, before any selection.
    """
    from pytest_llmeval.run.checkout import print_suite, versions
    from pytest_llmeval.run.shards.file import Origin, SuiteVariant

    config = session.config
    root = config.rootpath
    suites = {each.suite.path for each in finished.judged.suites}
    nodeids = sorted(ids)
    return Origin(
        shard=str(shard_of_run(config) or ""),
        commit=finished.report.run.commit,
        versions=versions(),
        options=_options(config),
        require_gates=run_terms(config).require_gates,
        collected=f"sha256:{sha256(repr(nodeids).encode()).hexdigest()[:32]}",
        items=len(nodeids),
        imports=_imports(root),
        suites=[
            print_suite(loader.load(each, session), root, plugins_of(loader.hooks[each], root))
            for each in sorted(suites)
        ],
        variants=[
            SuiteVariant(each.key._replace(path=display_path(Path(each.key.path), root)), each.collected.judges)
            for each in finished.judged.suites
        ],
    )


def _imports(root: Path) -> list[str]:
    """Return the folders of the project from which Python imports."""
    folders = (Path(each) for each in sys.path if each)
    own = [each for each in folders if each.is_relative_to(root) and not each.is_relative_to(sys.prefix)]
    return list(dict.fromkeys(display_path(each, root) for each in own))


def _options(config: pytest.Config) -> "ShardOptions":
    from pytest_llmeval.run.shards.file import ShardOptions

    runner, terms = config.stash[RUNNER], run_terms(config)
    recordings, base_url = runner.recordings, runner.options.base_url
    selecting = {name: value for name in SELECTING if (value := getattr(config.option, name, None))}
    return ShardOptions(
        judge=terms.judge,
        judge_model=runner.options.model,
        judge_base_url=redacted_url(base_url) if base_url else None,
        texts=terms.texts,
        snapshots=terms.snapshots,
        predictions="" if recordings is None else display_path(recordings.path, config.rootpath),
        predictions_mode="auto" if recordings is None else recordings.mode,
        selection=repr(selecting) if selecting else "",
        stop=config.option.llmeval_stop,
    )
