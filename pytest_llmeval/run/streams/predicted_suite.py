"""Running the cases of a suite whose predictions are known, block by block on any executor."""

import os
import re
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from msgspec import structs

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import LlmevalError, MissingExtraError, PredictionError
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.formats.base import add_predictions, read_answers
from pytest_llmeval.run.execute import Execution, as_expected, execute_repeats, is_skipped, skipped
from pytest_llmeval.run.job import CaseAnswer, with_figures
from pytest_llmeval.run.run_record import SuitePart
from pytest_llmeval.run.streams.stream import in_blocks, in_order
from pytest_llmeval.suite.suite import Suite, SuiteKey

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
    found = _EXECUTOR.fullmatch(name)
    if found is None:
        raise LlmevalError(f"executor: found {name!r}, expected processes:N or dask://HOST:PORT")
    if found["processes"]:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        count, context = int(found["processes"]), get_context("spawn")
        with ProcessPoolExecutor(count, mp_context=context, initializer=_follow_parent) as pool:
            try:
                yield pool
            finally:
                pool.shutdown(cancel_futures=True)
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("a Dask cluster", "dask", error) from error
    try:
        client = Client(f"tcp://{found['dask']}")
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


def run_predicted(suite: Suite, key: SuiteKey, executor: Executor | None) -> Iterator[SuitePart]:
    """Yield the results of all cases in blocks.

    Args:
        suite: As one system answers it.
        key: What results are gathered under.
        executor: Measures blocks; ``None`` for this process.

    Raises:
        LlmevalError: An evaluator asks a judge, or the executor lost its workers.
    """
    if suite.judged:
        raise LlmevalError(
            f"{key.display_path}: found evaluators that ask a judge, expected none: run it with pytest --llmeval"
        )
    # Workers need what a case is held against, not the other cases.
    bare = structs.replace(suite, cases=(), systems={}, files={})
    return in_order(_SuiteBlock(bare, key, suite.total), in_blocks(suite.cases, _BLOCK), executor, _IN_FLIGHT)


@dataclass(frozen=True)
class _SuiteBlock:
    """What a worker does with a block."""

    suite: Suite
    key: SuiteKey
    total: int

    def __call__(self, cases: Sequence[Case]) -> SuitePart:
        done = [_execution(self.suite, case) for case in cases]
        return SuitePart.of(self.key, self.total, done, secrets=self.suite.secret_variables)


def _execution(suite: Suite, case: Case) -> Execution:
    if is_skipped(case):
        return skipped(case)
    return as_expected(_scored(suite, case))


def _scored(suite: Suite, case: Case) -> Execution:
    if case.prediction is MISSING:
        error = PredictionError("no prediction: expected one in the suite, its predictions or --predictions")
        answer = CaseAnswer(case, error)
    else:
        answer = CaseAnswer(with_figures(case, suite.parts_of(case)))
    return execute_repeats(suite, [answer] * suite.repeats.times)
