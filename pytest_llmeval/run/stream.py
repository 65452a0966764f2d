"""Streams of cases scored in constant memory, and suites of known predictions run, on any executor."""

import os
import re
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from itertools import islice
from math import lcm
from operator import attrgetter
from pathlib import Path
from threading import Thread
from typing import Any, TypeAlias, TypeVar

from msgspec import structs

from pytest_llmeval.core.case import MISSING, Case, Parts
from pytest_llmeval.core.errors import EvaluatorError, LlmevalError, needing
from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.core.results import CaseResult, Result
from pytest_llmeval.core.views import Reading
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.formats.base import add_predictions, read_answers
from pytest_llmeval.run.case_runner import CaseRunner
from pytest_llmeval.run.job import LoadedCase
from pytest_llmeval.run.partial import CaseResultWriter, PartialResult
from pytest_llmeval.run.records import SharedRecords
from pytest_llmeval.run.run_record import SuitePart
from pytest_llmeval.run.score import Evaluators, by_name, measure_each, normalized_cases
from pytest_llmeval.scoring.table import summarize
from pytest_llmeval.suite.suite import Suite, SuiteKey
from pytest_llmeval.targets.recordings import Recordings

MeasuredBlock: TypeAlias = tuple[PartialResult, Sequence[CaseResult]]

BLOCK = 2_000

_RETRIES = 2
"""Dask loses a result if its worker is killed while the result is fetched, and then raises an error of its own."""

_B = TypeVar("_B")
_T = TypeVar("_T")


def score_stream(
    evaluators: Evaluators,
    cases: Iterable[Case],
    *,
    executor: Executor | None = None,
    group_by: Sequence[str] = (),
    confidence: float | None = 0.95,
    block: int = BLOCK,
    in_flight: int = 8,
    parts: Parts | None = None,
    results: str | Path | None = None,
) -> Result:
    """Score cases that carry their predictions, as they come.

    Only some blocks of cases are in memory at a time. Value, mean, counts and groups are those of `score`; intervals
    are those of `PartialResult.result`.

    Args:
        evaluators: One, several of different names, or by name.
        cases: The cases; ids must be unique, which is not checked.
        executor: Measures blocks: of processes, threads, or a cluster. Default: this process. It stays open.
        group_by: Names of labels to group by.
        confidence: Of the intervals; ``None`` leaves them out.
        block: Cases per task.
        in_flight: Most blocks that are given to the executor and not yet added up; twice its workers keeps all of them
            busy.
        parts: Where the parts of the predictions are; default: the keys of the same names.
        results: A file that gets the result of every case, in the order of the cases: ``.jsonl``, or ``.parquet`` with
            the extra ``parquet``. It exists only once all cases are in it.

    Returns:
        Metrics of the set and its groups, without cases.

    Raises:
        LlmevalError: The executor lost its workers; or an argument is wrong.
        MissingExtraError: An optional dependency is not installed.
        MissingDataError: Language data is not installed.
    """
    if block < 1 or in_flight < 1:
        raise LlmevalError(f"score_stream: found block={block}, in_flight={in_flight}, expected at least 1")
    named = by_name(evaluators, "score_stream")
    if judged := [label for label, each in named.items() if each.asks]:
        raise EvaluatorError(f"score_stream: evaluator {judged[0]!r} asks a judge, expected one that does not")
    task = _StreamBlock(named, parts or Parts(), tuple(group_by), results is not None)
    total = PartialResult.of(task.evaluators, (), group_by)
    blocks: Iterable[_Columns | Sequence[Case]] = in_blocks(cases, block)
    if executor is not None:
        blocks = map(_Columns.from_cases, in_blocks(cases, block))
    measured = in_order(task, blocks, executor, in_flight)
    if results is None:
        for some, _ in measured:
            total += some
    else:
        with closing(CaseResultWriter(Path(results))) as writer:
            for some, listed in measured:
                total += some
                writer.write(listed)
            writer.finish()
    return total.result(confidence)


_FIELDS = tuple(each.name for each in fields(Case))
_USUAL = 4
"""Fields of a case, from its id to its prediction, that streams use; the others are falsy unless they are set."""


@dataclass(frozen=True)
class _Columns:
    """A block of cases, field by field: for the process that sends it, a quarter of the work of pickling case by case.

    Attributes:
        values: Of the first fields of a case; the rest have their defaults.
    """

    values: Sequence[Sequence[Any]]

    @classmethod
    def from_cases(cls, cases: Sequence[Case]) -> "_Columns":
        columns = [list(map(attrgetter(name), cases)) for name in _FIELDS]
        while len(columns) > _USUAL and not any(columns[-1]):
            columns.pop()
        return cls(columns)

    def cases(self) -> list[Case]:
        return [Case(*row) for row in zip(*self.values, strict=True)]


@dataclass(frozen=True)
class _StreamBlock:
    """What a worker does with a block."""

    evaluators: Mapping[str, Evaluator]
    parts: Parts
    group_by: Sequence[str]
    with_cases: bool

    def __call__(self, block: "_Columns | Sequence[Case]") -> MeasuredBlock:
        cases, faults = normalized_cases(block.cases() if isinstance(block, _Columns) else block)
        columns = [
            measure_each(evaluator, cases, Reading.for_evaluator(evaluator, None, self.parts), faults)
            for evaluator in self.evaluators.values()
        ]
        shared = SharedRecords()
        records = [
            shared.record(case, dict(zip(self.evaluators, row, strict=True)))
            for case, *row in zip(cases, *columns, strict=True)
        ]
        partial = PartialResult.of(self.evaluators, records, self.group_by)
        if not self.with_cases:
            return partial, ()
        return partial, summarize(self.evaluators, records, confidence=None).cases


def in_blocks(cases: Iterable[Case], size: int) -> Iterator[list[Case]]:
    """Cut a stream of cases into lists."""
    left = iter(cases)
    while some := list(islice(left, size)):
        yield some


def in_order(task: Callable[[_B], _T], blocks: Iterable[_B], executor: Executor | None, in_flight: int) -> Iterator[_T]:
    """Yield the results of all blocks in their order.

    Args:
        task: Can be pickled.
        blocks: Its arguments.
        executor: Runs the task; ``None`` for this process.
        in_flight: Most blocks that are with the executor.

    Raises:
        LlmevalError: The executor lost its workers.
    """
    if executor is None:
        yield from map(task, blocks)
        return
    pending: deque[tuple[_B, Future[_T]]] = deque()

    def first() -> _T:
        block, future = pending.popleft()
        for _ in range(_RETRIES):
            try:
                return future.result()
            except (BrokenExecutor, LlmevalError):
                raise
            except Exception:  # noqa: BLE001 (what the task itself raises, it raises again)
                future = executor.submit(task, block)
        return future.result()

    try:
        for each in blocks:
            pending.append((each, executor.submit(task, each)))
            if len(pending) >= in_flight:
                yield first()
        while pending:
            yield first()
    except (BrokenExecutor, KeyboardInterrupt) as error:
        # A pool breaks if its processes are also interrupted, and then stumbles over cancelled futures.
        pending.clear()
        if isinstance(error, KeyboardInterrupt):
            raise
        raise LlmevalError(f"the executor lost its workers, no result is complete ({error})") from error
    finally:
        for _, left in pending:
            left.cancel()


_BLOCK = 500
_IN_FLIGHT = 64
_EXECUTOR = re.compile(r"processes:(?P<processes>[1-9][0-9]*)|dask://(?P<dask>[^/\s]+:[0-9]+)")


@contextmanager
def open_executor(name: str) -> Iterator[Executor | None]:
    """Open the executor of a name: ``processes:N``, ``dask://HOST:PORT``, or none for this process.

    Raises:
        LlmevalError: The name is another one, or the cluster cannot be reached.
        MissingExtraError: Dask is not installed.
    """
    if not name:
        yield None
        return
    match = _EXECUTOR.fullmatch(name)
    if match is None:
        raise LlmevalError(f"executor: found {name!r}, expected processes:N or dask://HOST:PORT")
    if match["processes"]:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        count, context = int(match["processes"]), get_context("spawn")
        with ProcessPoolExecutor(count, mp_context=context, initializer=_follow_parent) as pool:
            try:
                yield pool
            finally:
                pool.shutdown(cancel_futures=True)
        return
    with needing("a Dask cluster", "dask"):
        from distributed import Client
    try:
        client = Client(f"tcp://{match['dask']}")
    except OSError as error:
        raise LlmevalError(f"executor: {name}: found no scheduler ({error})") from None
    with client:
        yield client.get_executor()


def _follow_parent() -> None:
    """Leave interrupts to the parent process, and end as soon as it does, even if it is killed."""
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    Thread(target=follow, daemon=True).start()


def with_answers(suite: Suite, path: Path) -> Suite:
    """Return a suite whose cases have the predictions of a file.

    Raises:
        LlmevalError: The file has faults, or predictions of no case.
    """
    if suite.systems:
        raise LlmevalError(f"{suite.path}: found systems, expected one system for a file of predictions")
    faults = FaultLog(str(path))
    cases = {case.id: case for case in suite.cases}
    add_predictions(cases, read_answers(path, faults), cases, faults, short_ids=True)
    faults.check()
    return structs.replace(suite, cases=tuple(cases.values()))


def run_predicted(
    suite: Suite,
    key: SuiteKey,
    executor: Executor | None,
    recordings: Recordings | None = None,
    *,
    explains_all: bool = True,
) -> Iterator[SuitePart]:
    """Yield the results of all cases in blocks.

    Args:
        suite: As one system answers it.
        key: What results are gathered under.
        executor: Measures blocks; ``None`` for this process.
        recordings: Answers the cases that carry no prediction.
        explains_all: Whether evaluators also say what is wrong with cases that pass.

    Raises:
        LlmevalError: An evaluator asks a judge, or the executor lost its workers.
    """
    if suite.judged:
        raise LlmevalError(
            f"{key.display_path}: found evaluators that ask a judge, expected none: run it with pytest --llmeval"
        )
    # Workers need what a case is compared with, not the other cases.
    bare = structs.replace(suite, cases=(), systems={}, files={}, objects={})
    place = key.display_path, key.variant
    blocks = (
        (block, recordings and recordings.of_cases(*place, block, suite.repeats.times))
        for block in _whole_blocks(suite)
    )
    return in_order(_SuiteBlock(bare, key, suite.total, explains_all), blocks, executor, _IN_FLIGHT)


def _whole_blocks(suite: Suite) -> Iterator[list[Case]]:
    """Cut the cases of a suite so that each evaluator measures them in the blocks in which runs of pytest do."""
    together = lcm(*(each.batch for each in suite.evaluators.values()))
    size = max(1, _BLOCK // together) * together
    block: list[Case] = []
    answered = 0
    for case in suite.cases:
        if answered == size:
            yield block
            block, answered = [], 0
        block.append(case)
        answered += case.prediction is not MISSING
    yield block


@dataclass(frozen=True)
class _SuiteBlock:
    """What a worker does with a block."""

    suite: Suite
    key: SuiteKey
    total: int
    explains_all: bool

    def __call__(self, block: tuple[Sequence[Case], Recordings | None]) -> SuitePart:
        cases, recordings = block
        suite = structs.replace(self.suite, cases=tuple(cases))
        runner = CaseRunner(recordings=recordings, explains_all=self.explains_all)
        done = [runner.run_recorded(LoadedCase(suite, case, self.key)) for case in cases]
        return SuitePart.from_executions(self.key, self.total, done, secrets=suite.secret_variables)
