"""Collection of suite files: each case becomes a test function, so that all pytest features apply."""

import types
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from msgspec import Struct, structs

from pytest_llmeval.core import AnyError, BudgetError, Case, CaseRecord, LlmevalError, SuiteError, printable
from pytest_llmeval.data import OwnFiles
from pytest_llmeval.plugin._options import shard_of_run
from pytest_llmeval.plugin._payload import (
    CASE_FIXTURES,
    LOADER,
    RESULT,
    RUNNER,
    SUSPECT,
    carried_records,
    choices_of,
    conclude,
    failure_text,
    keep_judgements,
    stop_spent,
)
from pytest_llmeval.plugin._pytest_private import SyntheticModule, fixture_info, is_ours, record_whole_name
from pytest_llmeval.plugin._user_loops import USER_LOOPS
from pytest_llmeval.run import (
    EarlyCalls,
    Execution,
    FromFixtures,
    LoadedCase,
    SuitePart,
)
from pytest_llmeval.suites import LoadedSuite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.run import Suite
    from pytest_llmeval.targets import Target


_LISTED = 20
_EXPLAINED = 5
_T = TypeVar("_T")


class CaseItem(pytest.Function):
    """The item of a case, or of all cases of a suite in mode ``bulk``.

    Attributes:
        early: What may be called for it before its turn.
        resting: The fixture of a plugin that may matter to early calls once a case has a mark; empty if none.
        queue: The items of its suite and variant that may be called for early, once the session knows them.
        position: Where its followers begin in that queue.
    """

    early = EarlyCalls()
    resting = ""
    queue: "Sequence[CaseItem]" = ()
    position = 0

    def __init__(self, *, loaded: LoadedCase, cases: tuple[Case, ...] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.loaded = loaded
        self.bulk = cases
        record_whole_name(self)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The place of the case in the suite file, and its name."""
        return self.path, _line(self.loaded.suite, self.loaded.case) - 1, self.name

    def run_case(self, target: "Target | None", request: pytest.FixtureRequest | None = None) -> None:
        """Run the item's case, or every case; fail if one of them does."""
        __tracebackhide__ = True
        judge = None if request is None else partial(request.getfixturevalue, "judge_client")
        fixtures = FromFixtures(target, judge)
        loops = self.config.stash[USER_LOOPS]
        try:
            with loops.running(self):
                if self.bulk:
                    self._run_all(fixtures)
                else:
                    self._run_alone(fixtures)
        except RuntimeError as error:
            if apart := loops.apart(self):
                error.add_note(apart)
            raise

    def _run_alone(self, fixtures: FromFixtures) -> None:
        """Run the one case of the item, with early calls for those of the next items."""
        __tracebackhide__ = True
        queue = () if self.stash.get(SUSPECT, False) else _from(self.queue, self.position)
        following = takewhile(before_next_look(self.loaded), (item.loaded for item in queue))
        execution = self.config.stash[RUNNER].run(self.loaded, fixtures, following, self.early)
        conclude(self, self.loaded, execution)

    def _run_all(self, fixtures: FromFixtures) -> None:
        """Run every case of a suite in mode ``bulk``."""
        __tracebackhide__ = True
        runner, suite, key = self.config.stash[RUNNER], self.loaded.suite, self.loaded.key
        whole = [structs.replace(self.loaded, case=case) for case in self.bulk]
        carried = {name: choice.record for name, choice in choices_of(self).items() if choice.record is not None}
        every = [loaded for loaded in whole if not loaded.is_skipped and loaded.case.id not in carried]
        executions = [Execution.skipped(loaded.case) for loaded in whole if loaded.is_skipped]
        executions += [Execution(case, carried[case.id]) for case in self.bulk if case.id in carried]
        runner.activity.done += len(executions)
        try:
            for number, loaded in enumerate(every, 1):
                execution = runner.run(loaded, fixtures, _from(every, number), self.early)
                executions.append(runner.excused(loaded, execution).as_expected())
                if isinstance(executions[-1].error, BudgetError):
                    raise executions[-1].error
                runner.activity.done += 1
        except BudgetError as error:
            stop_spent(self.session, error)
        finally:
            self.stash[RESULT] = SuitePart.from_executions(
                key,
                suite.total,
                executions,
                predictions=runner.hands_over_answers(self.loaded),
                secrets=suite.secret_variables,
                all_answers=runner.all_answers,
            )
            keep_judgements(self, suite.path, [entry for execution in executions for entry in execution.entries])
        failed = [execution for execution in executions if execution.record.outcome in CaseRecord.BAD]
        if failed:
            lines = [f"{len(failed)} of {len(executions)} cases failed"]
            for execution in failed[:_EXPLAINED]:
                lines += [f"{execution.record.id}: {failure_text(self.config, self.loaded, execution)}", ""]
            lines += [f"{execution.record.id}: {execution.record.reason}" for execution in failed[_EXPLAINED:_LISTED]]
            if len(failed) > _LISTED:
                lines.append(f"... and {len(failed) - _LISTED} more, all of them in the reports")
            raise pytest.fail.Exception("\n".join(lines), pytrace=False)


def _has_own_target(variant: pytest.Function) -> bool:
    """Whether a fixture of the user answers the cases of a suite."""
    defined = fixture_info(variant).name2fixturedefs.get("llmeval_target", ())[-1:]
    return any(not is_ours(definition) for definition in defined)


def _line(suite: LoadedSuite, case: Case) -> int:
    """The line of a case in the suite file, for its pytest item; 1 for a case of a data file."""
    file = suite.files.get(case.id)
    if file is None:
        return max(case.line, 1)
    own = OwnFiles(suite.path)
    return max(case.line, 1) if own.is_declared and own.source.name == Path(file).name else 1


def _variant_of(item: pytest.Item) -> str:
    """The id of a pytest item's parameters, which name a variant of the target."""
    callspec = getattr(item, "callspec", None)
    return callspec.id if callspec is not None else ""


# The bodies are one line each, that of the case in its file. A traceback starts there, unless it has lines of the
# user's code: pytest asks what the last parameter holds.
# fmt: off
def _case(item: Any = None, __tracebackhide__: Any = None) -> None: item.run_case(None)  # noqa: ARG001 (as above)
def _case_with_target(llmeval_target: Any, item: Any = None, __tracebackhide__: Any = None) -> None: item.run_case(llmeval_target)  # noqa: ARG001, E501 (as above)
def _judged(request: Any, item: Any = None, __tracebackhide__: Any = None) -> None: item.run_case(None, request)  # noqa: ARG001 (as above)
def _judged_with_target(llmeval_target: Any, request: Any, item: Any = None, __tracebackhide__: Any = None) -> None: item.run_case(llmeval_target, request)  # noqa: ARG001, E501 (as above)
# fmt: on
_TEMPLATES = {
    (False, False): _case,
    (True, False): _case_with_target,
    (False, True): _judged,
    (True, True): _judged_with_target,
}


def _has_users_lines(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    """Whether the traceback of a failed case has lines of the user's code, which pytest then shows."""
    return bool(AnyError(excinfo.value).line)


def _probe(judge_client: Any, item: Any = None, __tracebackhide__: Any = None) -> None:
    """Collected but never run: it resolves the fixture ``judge_client`` of a suite."""


class EvalModule(SyntheticModule):
    """A suite: of a file, or declared in Python. Its module holds one function, from which all items are made."""

    _suite: LoadedSuite

    def __init__(self, *, declared: "Suite | None" = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._declared = declared

    @classmethod
    def from_module(cls, declared: "Suite", parent: pytest.Collector) -> "EvalModule":
        """The collector of a suite that a Python module declares, inside that module."""
        nodeid = f"{parent.nodeid}::{declared.name}"
        module: EvalModule = cls.from_parent(
            parent, path=parent.path, name=declared.name, nodeid=nodeid, declared=declared
        )
        return module

    def make_module(self) -> types.ModuleType:
        """The module of which pytest makes the items of a suite.

        Raises:
            pytest.Collector.CollectError: The suite has faults.
        """
        loader = self.config.stash[LOADER]
        try:
            self._suite = loader.load(self._declared or self.path, self.session)
        except LlmevalError as error:
            raise loader.refuse(error) from None
        module = types.ModuleType("llmeval_" + "".join(c if c.isalnum() else "_" for c in self.name))
        module.__file__ = str(self.path)
        asks_target = not self._suite.systems and self._suite.lacks_predictions
        template = _TEMPLATES[asks_target, self._suite.asks_models]
        prototypes = {"case": self._function(module.__name__, template.__code__, "case", 1)}
        if self._suite.asks_models:
            prototypes["judge"] = self._function(module.__name__, _probe.__code__, "judge", 1)
        for prototype in prototypes.values():
            prototype.__dict__["__test__"] = True
        module.__dict__.update(prototypes, pytestmark=[pytest.mark.llmeval])
        return module

    def _makes_calls(self, variants: list[pytest.Function]) -> bool:
        """Whether running the cases can call a judge, a system or a target."""
        suite = self._suite
        if suite.asks_models or suite.systems:
            return True
        declared = suite.target is not None or suite.model is not None
        has_target = declared or any(map(_has_own_target, variants[:1]))
        return has_target and suite.lacks_predictions

    def _function(self, module: str, template: types.CodeType, name: str, line: int) -> types.FunctionType:
        """The test function of an item, with the name and the line of its case."""
        code = template.replace(co_filename=str(self.path), co_firstlineno=line, co_name=name)
        function = types.FunctionType(code, globals(), name, (None, _has_users_lines))
        function.__module__ = module
        return function

    def collect(self) -> "Iterable[pytest.Item | pytest.Collector]":
        """Yield the items of the suite, and last a collector that reports faulty cases.

        pytest resolves fixtures and parameters once, for the prototype; the items of all cases share the result.
        """
        if self._declared is None and self.config.stash[LOADER].leaves_alone(self.path, self.session):
            return
        collected = [item for item in super().collect() if isinstance(item, pytest.Function)]
        variants = [item for item in collected if item.originalname == "case"]
        judge_client = [item for item in collected if item.originalname == "judge"]
        if len(judge_client) > 1:
            raise self.config.stash[LOADER].refuse(
                f"{self.nodeid}: found a fixture judge_client with parameters, expected one without: to compare judges "
                "name the evaluator several times with 'as' and other options, or run the suite once for each"
            )
        suite = self._suite
        if suite.mode == "test":
            variants = []
        ways = self._ways(variants, judge_client)
        try:
            self.config.stash[LOADER].check_answers(suite, [way.key.variant for way in ways if not suite.systems])
        except LlmevalError as error:
            raise self.config.stash[LOADER].refuse(error) from None
        for way in ways:
            self.config.stash[LOADER].offer(way.key, suite)
        cases = [{case.id: case for case in way.suite.cases[: 1 if suite.bulk else None]} for way in ways]
        # Faults may mean that all cases were read wrongly, so nothing is called for any of them.
        ran = () if suite.all_faults and self._makes_calls(variants) else suite.cases
        is_mine = self._shard_picker()
        for name in dict.fromkeys(case.id for case in ran):
            for way, own in zip(ways, cases, strict=True):
                if name not in own:
                    continue
                if is_mine(name):
                    yield self._item(way, own[name])
                elif suite.rows is None:
                    self.config.stash[LOADER].left_out.collected[f"{self.nodeid}::{_item_name(way, own[name])}"] = 1
        if suite.all_faults:
            yield FaultyCases.from_parent(self, name="<faults>", faults=SuiteError(suite.all_faults))

    def _shard_picker(self) -> "Callable[[str], bool]":
        """The function that picks the cases of this shard by id: an item costs more than its case."""
        shard, suite = shard_of_run(self.config), self._suite
        if shard is None or suite.bulk:
            return lambda _: True
        return shard.picker(suite, self.config.stash[LOADER].key(suite).display_path)

    def _ways(self, variants: list[pytest.Function], judge_client: list[pytest.Function]) -> "list[_Way]":
        """The ways to answer the suite's cases: its systems, or the variants of the fixture."""
        loader, suite = self.config.stash[LOADER], self._suite
        ways = [
            (variant, suite.for_variant(name), loader.key(suite, variant=name))
            for variant in variants
            for name in (suite.systems or [_variant_of(variant)])
        ]
        return [_Way(variant, own, key, *self._early_calls(own, variant, judge_client)) for variant, own, key in ways]

    def _early_calls(
        self, suite: LoadedSuite, variant: pytest.Function, judge_client: list[pytest.Function]
    ) -> tuple[EarlyCalls, str]:
        """The calls that may start before a case's test is set up, and the fixture for which a mark forbids it."""
        if not self._makes_calls([variant]):
            return EarlyCalls(), ""  # looking for calls to make would cost each case time
        from pytest_llmeval.plugin._blocking import (
            FACTORIES,
            InstalledPlugins,
            blocking_fixture,
            outlives_its_test,
        )

        info = fixture_info(variant)
        judge = all(outlives_its_test("judge_client", fixture_info(item).name2fixturedefs) for item in judge_client)
        if suite.model is not None and not _has_own_target(variant):
            # As for judges, what fixtures do to this process is no concern of a model.
            return EarlyCalls(judge, judge), ""
        concerning = InstalledPlugins.beside(self.config).concerning(info)
        blocking = blocking_fixture(concerning, info.name2fixturedefs)
        if blocking:
            if blocking not in FACTORIES:
                _say_serial(self.config, suite, blocking)
            return EarlyCalls(target=False, judge=judge), ""
        return EarlyCalls(judge, judge), blocking_fixture(info.names_closure, info.name2fixturedefs)

    def _item(self, way: "_Way", case: Case) -> CaseItem:
        """The item of a case in one of the ways to answer it."""
        suite, variant = way.suite, way.prototype
        name = _name(way, case)
        function = self._function(variant.obj.__module__, variant.obj.__code__, name, _line(suite, case))
        if case.tags and not suite.bulk:
            function.__dict__["pytestmark"] = [getattr(pytest.mark, tag).mark for tag in case.tags]
        callspec = getattr(variant, "callspec", None)
        whole = _item_name(way, case)
        item: CaseItem = CaseItem.from_parent(
            self,
            name=whole,
            originalname=name if callspec else whole,
            callobj=function,
            callspec=callspec,
            keywords={way.key.variant: True} if way.key.variant else None,
            fixtureinfo=fixture_info(variant),
            loaded=LoadedCase(suite, case, way.key),
            cases=suite.cases if suite.bulk else (),
        )
        item.early, item.resting = way.early, way.resting
        function.__defaults__ = (item, _has_users_lines)
        return item


class _Way(Struct, frozen=True):
    """One of the ways to answer the cases of a suite: a system, or a variant of a fixture.

    Attributes:
        prototype: Has the fixtures of the items.
        suite: With the cases of the system, if it is one.
        key: What the results are gathered under.
        early: What may be called for a case before its turn.
        resting: The fixture of a plugin that may matter to early calls once a case has a mark; empty if none.
    """

    prototype: pytest.Function
    suite: LoadedSuite
    key: SuiteKey
    early: EarlyCalls
    resting: str


def _name(way: _Way, case: Case) -> str:
    """The name of a suite's item in pytest: the case id, or ``bulk`` for all cases at once."""
    return "bulk" if way.suite.bulk else printable(case.id)


def _item_name(way: _Way, case: Case) -> str:
    """The name of a suite's item with the system or target variant in brackets."""
    name = _name(way, case)
    return f"{name}[{way.key.variant}]" if way.key.variant else name


def link_followers(items: Iterable[pytest.Item]) -> None:
    """Link the items of suites to their successors, except those that a mark may skip: they get no early calls."""
    cases = [item for item in items if isinstance(item, CaseItem)]
    _heed_marks([item for item in cases if item.resting])
    queues: dict[SuiteKey, list[CaseItem]] = {}
    for item in cases:
        if any(item.early) and carried_records(item) is None:
            queue = queues.setdefault(item.loaded.key, [])
            if item.get_closest_marker("skip") is None and item.get_closest_marker("skipif") is None:
                queue.append(item)
            item.queue, item.position = queue, len(queue)


def _heed_marks(items: Sequence[CaseItem]) -> None:
    """Make the target calls of suites serial if a case has a mark that a plugin may act on."""
    if not items:
        return
    from pytest_llmeval.plugin._blocking import InstalledPlugins

    known = InstalledPlugins.beside(items[0].config).marks()
    marked = {item.loaded.key for item in items if any(mark.name in known for mark in item.iter_markers())}
    for item in items:
        if item.loaded.key in marked:
            item.early = EarlyCalls(target=False, judge=item.early.judge)
            _say_serial(item.config, item.loaded.suite, item.resting)


def _say_serial(config: pytest.Config, suite: LoadedSuite, fixture: str) -> None:
    """Note that the target calls of a suite wait for each other because of a fixture, if there are several."""
    if len(suite.cases) > 1 and suite.lacks_predictions:
        loader = config.stash[LOADER]
        loader.left_out.serial.add((loader.display_path(suite.path), fixture))


def _from(items: Sequence[_T], start: int) -> Iterable[_T]:
    """Yield a suite's items, or cases, from a position on; islice would walk over those before it."""
    return (items[position] for position in range(start, len(items)))


def before_next_look(loaded: LoadedCase) -> Callable[[LoadedCase], bool]:
    """Whether an item's case comes before the next look at gates, after which it may not be needed.

    Args:
        loaded: The case before it, of the same suite.
    """
    order = loaded.suite.order
    if order is None:
        return lambda _: True
    end = order.end_of(loaded.case.id)
    return lambda other: order.ranks[other.case.id] < end


class FaultyCases(pytest.Collector):
    """A collector that reports the faults of single cases, so that others with predictions are still scored."""

    def __init__(self, *, faults: SuiteError, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.faults = faults

    def collect(self) -> "Iterable[pytest.Item | pytest.Collector]":
        """Raise the faults of single cases."""
        raise self.config.stash[LOADER].refuse(self.faults)


def over_suite(metafunc: pytest.Metafunc, named: "str | Suite", *, enabled: bool) -> None:
    """Parametrise a test function by the cases of a suite.

    Without ``--llmeval`` the test is skipped and the suite is not read.

    Args:
        metafunc: The test function; it must take the fixture ``case``, which is ``eval_case``.
        named: The suite, or its file relative to the test's.
        enabled: Whether suites are collected.

    Raises:
        pytest.Collector.CollectError: The function does not take the fixture, or the suite cannot be used. Faults of
            single cases are one more parameter, which fails.
    """
    node = metafunc.definition
    names = [name for name in CASE_FIXTURES if name in metafunc.fixturenames]
    over = f"is marked llmeval({named!r})" if isinstance(named, str) else f"runs over {named!r}"
    if not names:
        raise pytest.Collector.CollectError(f"{node.nodeid} {over}, so it must take the fixture case (or eval_case)")
    if not enabled:
        skip = pytest.mark.skip(reason="runs with --llmeval, or llmeval = true in the configuration of pytest")
        metafunc.parametrize(names[0], [pytest.param(None, marks=skip)], ids=["llmeval"])
        return
    definitions = fixture_info(node).name2fixturedefs
    ours = (name for name in names if is_ours(definitions[name][-1]))
    fixture = next(ours, None)
    if fixture is None:
        free = [name for name in CASE_FIXTURES if name not in names]
        way = f"take the fixture {free[0]}" if free else "rename one of the two"
        raise pytest.Collector.CollectError(
            f"{node.nodeid} {over}, and a fixture of yours is called {' and one '.join(names)}: {way}"
        )
    loader = metafunc.config.stash[LOADER]
    try:
        suite = loader.load((node.path.parent / named).resolve() if isinstance(named, str) else named, node.session)
    except LlmevalError as error:
        raise loader.refuse(error) from None
    key = loader.key(suite, test=node.nodeid)
    loader.offer(key, suite)
    cases = [
        pytest.param(
            LoadedCase(suite, case, key),
            id=case.id,
            marks=[getattr(pytest.mark, tag) for tag in case.tags],
        )
        for case in (() if suite.all_faults else suite.cases)
    ]
    if suite.all_faults:
        cases.append(pytest.param(SuiteError(suite.all_faults), id="<faults>"))
    metafunc.parametrize(fixture, cases, indirect=True)
