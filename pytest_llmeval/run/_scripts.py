"""Runs without pytest, by its engine and stages."""

import asyncio
import sys
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, fields, replace
from html import escape
from importlib import import_module
from importlib.util import find_spec
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from msgspec import Struct, structs

from pytest_llmeval.baselines import Keeper, SnapshotMode, Stamp
from pytest_llmeval.core import (
    MISSING,
    Case,
    CaseRecord,
    CaseResult,
    GateResult,
    LlmevalError,
    Result,
    printable,
)
from pytest_llmeval.data import OwnFiles, display_path
from pytest_llmeval.judges import JudgeOptions
from pytest_llmeval.numbers import draw_ahead, summarize
from pytest_llmeval.run._case_runner import CaseRunner, FromFixtures
from pytest_llmeval.run._execute import CutShortError, Execution, execute, unjudged_answer
from pytest_llmeval.run._job import LoadedCase, begin_run
from pytest_llmeval.run._judging import judge
from pytest_llmeval.run._measuring import MeasuredBlocks
from pytest_llmeval.run._run_record import RunRecord, SuitePart
from pytest_llmeval.run._stages import Judged, RunScope, RunTerms, collect, record_predictions
from pytest_llmeval.suites import LoadedSuite, Registry, SuiteKey
from pytest_llmeval.targets import Recordings

if TYPE_CHECKING:
    from pytest_llmeval.judges import Judgeable, SuiteJudges
    from pytest_llmeval.targets import RecordingMode

PredictionsFile: TypeAlias = bool | str | Path
"""A file of recorded predictions; ``True`` for the suite's own, ``False`` for none."""

_CONFIGURATION: Final = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg", "setup.py"),
)
"""Files by which pytest recognises its rootdir."""

_RETRIES: Final = 2
"""Dask loses a result if its worker is killed while the result is fetched, and then raises an error of its own."""

_BLOCK: Final = 500
_IN_FLIGHT: Final = 64

_B = TypeVar("_B")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, repr=False)
class SuiteResult(Result):
    """The result of running a suite: its metrics, and the verdicts on its gates.

    Attributes:
        suite: Its name.
        gates: A verdict for each gate, by the rules of pytest's runs.
    """

    suite: str = ""
    gates: Sequence[GateResult] = ()

    def assert_gates(self) -> None:
        """Check that no gate failed and that each was judged; an undecided gate is no failure, as in pytest.

        Raises:
            AssertionError: A gate failed or was not evaluated, each with its reason; or the suite has no gates.
        """
        lines = [gate.verdict_line() for gate in self.gates if gate.outcome in ("failed", "not_judged")]
        if not self.gates:
            lines = [f"suite {self.suite!r}: gates are missing"]
        if lines:
            raise AssertionError("\n".join(lines))

    def lines(self) -> Iterator[str]:
        """Yield what `print` shows of the result: the name, metrics, and the verdicts on the gates."""
        yield printable(f"{self.suite}{f'[{self.system}]' if self.system else ''}")
        yield from Result.lines(self)
        yield from (gate.verdict_line() for gate in self.gates)

    def _repr_html_(self) -> str:
        gates = "".join(f"<li>{escape(gate.verdict_line())}</li>" for gate in self.gates)
        return f"{Result._repr_html_(self)}<ul>{gates}</ul>"


class _OneSuite(Struct, frozen=True):
    """Implements `pytest_llmeval.run._stages.Suites` by the one suite of a run in Python."""

    root: Path
    suite: LoadedSuite
    panel: "SuiteJudges"

    def read(self, path: Path) -> LoadedSuite:
        """The suite of the run."""
        del path
        return self.suite

    def registry(self, path: Path) -> Registry:
        """The registry of all suites."""
        del path
        return Registry.installed()

    def judges(self, key: SuiteKey, suite: LoadedSuite) -> Mapping[str, Mapping[str, str]]:
        """The settings by evaluator that decide the verdicts of judges."""
        return suite.judge_identities(self.panel, key.display_path)


@dataclass
class ScriptRun:
    """One run of a suite in Python, without pytest.

    Attributes:
        whole: The suite with all its systems.
        system: The system that answers; empty if there are none.
        record: Where answers are recorded.
        replay: Where recorded answers are read; with the same file as `record`, the target answers what is missing.
        result: Of the cases that have run, once the run has ended; ``None`` until then.
    """

    whole: LoadedSuite
    system: str = ""
    record: PredictionsFile = False
    replay: PredictionsFile = False
    result: SuiteResult | None = None

    async def execute(
        self, target: Callable[..., Any] | None, own_judge: "Judgeable | None", progress: bool | None
    ) -> SuiteResult:
        """Run all cases on the running event loop, and judge the suite.

        Args:
            target: Answers; ``None`` for the suite's own.
            own_judge: Judges; ``None`` for the model that the suite names.
            progress: Whether to show a progress bar; ``None``: in terminals and notebooks.

        Raises:
            LlmevalError: The suite cannot be judged, or a file of predictions cannot be used.
        """
        suite = self.whole.for_variant(self.system)
        root = project_root(suite.path)
        key = SuiteKey(str(suite.path), display_path(suite.path, root), variant=suite.system)
        options = _options(suite)
        begin_run(root)
        recordings = self._recordings(root, options.run)
        runner = CaseRunner(options, recordings)
        run = RunRecord(ended=str(CutShortError()))
        executions: list[Execution] = []
        loaded = [LoadedCase(suite, case, key) for case in suite.cases]
        stream = runner.stream(loaded, FromFixtures(target, lambda: own_judge))
        if any(case.prediction is MISSING for case in suite.cases):  # while the first calls are under way
            asyncio.get_running_loop().run_in_executor(None, draw_ahead, len(suite.cases))
        try:
            with _progress_bar(len(suite.cases), suite.name, progress) as bar:
                async for _, execution in stream:
                    executions.append(execution)
                    bar.update()
            run.ended = ""
        finally:
            await stream.aclose()
            await runner.background.release()
            part = SuitePart.from_executions(
                key,
                suite.total,
                executions,
                predictions=runner.records,
                secrets=suite.secret_variables,
                all_answers=True,
            )
            run.add_part(part)
            try:
                judged = _judge_suite(run, _OneSuite(root, self.whole, runner.judges))
                if runner.records:
                    _write(judged, run, recordings)
                self.result = self._result(judged, key, executions)
            finally:  # of a suite that cannot be judged, too
                runner.close(whole_run=True)
        return self.result

    def _result(self, judged: Judged, key: SuiteKey, executions: Sequence[Execution]) -> SuiteResult:
        """The result of the suite from the judged run."""
        if not judged.suites:
            raise LlmevalError("; ".join(judged.notes))
        of_suite = judged.suites[0]
        suite, result = of_suite.suite, of_suite.result
        by_id = {execution.case.id: execution for execution in executions}
        ended = [by_id.get(record.id) for record in result.records]
        cases = {case.id: case for case in suite.cases}
        answered = [
            cases[record.id] if execution is None else execution.case
            for record, execution in zip(result.records, ended, strict=True)
        ]
        repeats = None
        if suite.repeats.times > 1:
            parts = [
                part
                for record, case, execution in zip(result.records, answered, ended, strict=True)
                for part in ((execution and execution.repeats) or [Execution(case, record)])
            ]
            of_repeats = summarize(suite.metrics, [part.record for part in parts], confidence=None)
            repeats = replace(of_repeats, answered=[part.case for part in parts])
        values = {field.name: getattr(result, field.name) for field in fields(Result)}
        values |= {"system": key.variant, "answered": answered, "repeats": repeats}
        whole = SuiteResult(**values, suite=self.whole.name, gates=of_suite.gates)
        left_out = _records_left_out(suite)
        more = None if repeats is None else _with_rows(repeats, left_out)
        return replace(_with_rows(whole, left_out), repeats=more)

    def _recordings(self, root: Path, run: str) -> "Recordings | None":
        """The recordings that the run reads or writes.

        Raises:
            LlmevalError: The file cannot be read or written, or two files are named.
        """
        files = {self._predictions_file(file) for file in (self.record, self.replay) if file}
        if not files:
            return None
        if len(files) > 1:
            named = " and ".join(sorted(map(str, files)))
            raise LlmevalError(f"suite {self.whole.name!r}: found record and replay with {named}, expected one file")
        from pytest_llmeval.targets import Recordings

        (path,) = files
        if not self.record and not path.exists():
            raise LlmevalError(f"suite {self.whole.name!r}: replay: {path} does not exist: run with record first")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            mode: RecordingMode = "auto" if self.record and self.replay else "record" if self.record else "replay"
            return Recordings.of_run(path, mode, root, run, merges=True)
        except OSError as error:
            raise LlmevalError(f"suite {self.whole.name!r}: {path} cannot be written: {error.strerror}") from None

    def _predictions_file(self, named: PredictionsFile) -> Path:
        """The file of recorded predictions: as named, or that of the suite."""
        if isinstance(named, bool):
            return OwnFiles(self.whole.path).path("predictions.jsonl")
        return Path(named).absolute()


def _records_left_out(suite: LoadedSuite) -> list[CaseRecord]:
    """The records of faulty cases, which did not run, of a suite in Python."""
    reasons: dict[str, list[str]] = {}
    for fault in suite.faults:
        if fault.case and not fault.spares_case:
            reasons.setdefault(fault.case, []).append(f"{fault.path}: {fault.message}" if fault.path else fault.message)
    return [CaseRecord(name, outcome="not_run", reason="; ".join(faults)) for name, faults in reasons.items()]


_R = TypeVar("_R", bound=Result)


def _with_rows(result: _R, left_out: Sequence[CaseRecord]) -> _R:
    """A result that lists cases that did not run; its metrics count these as missing already."""
    if not left_out:
        return result
    import numpy as np

    rows = [CaseResult(record.id, record.outcome, {}, {}, record.reason, 0.0) for record in left_out]
    absent = np.full(len(left_out), np.nan)
    return replace(
        result,
        cases=[*result.cases, *rows],
        records=[*result.records, *left_out],
        answered=[*result.answered, *(Case(record.id) for record in left_out)],
        case_scores={name: np.append(scores, absent) for name, scores in result.case_scores.items()},
    )


def _progress_bar(total: int, name: str, progress: bool | None) -> Any:
    """The progress bar of a suite's run in Python, which draws only on a terminal or in a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    in_notebook = "IPKernelApp" in getattr(shell, "config", ())
    kind = "tqdm.notebook" if in_notebook and find_spec("ipywidgets") else "tqdm"
    # If `disable` is None, tqdm asks whether the output is a terminal; that of a notebook is none.
    hidden = False if progress is None and in_notebook else None if progress is None else not progress
    return import_module(kind).tqdm(total=total, desc=name, unit="case", disable=hidden)


def _options(suite: LoadedSuite) -> JudgeOptions:
    """The judge options of a suite's run in Python: as many calls at a time as the suite's target allows."""
    options, target = JudgeOptions(run=uuid.uuid4().hex), suite.target
    if target is None or (own := target.own_concurrency) is None:
        return options
    fewest = 1 if target.http is None else options.concurrency  # judges are asked in the same slots
    return structs.replace(options, concurrency=max(own, fewest))


def _judge_suite(run: RunRecord, suites: _OneSuite) -> Judged:
    """The judgement of a suite that ran without pytest: only its own gates, and no snapshot is written."""
    keeper = Keeper(SnapshotMode().read_only(), root=suites.root)
    scope = RunScope(run, RunTerms(), suites, keeper, Stamp("", None))
    return judge(collect(scope), scope)


def _write(judged: Judged, run: RunRecord, recordings: "Recordings | None") -> None:
    """Write the predictions of a run in Python; warn of what could not be written."""
    for _, note in record_predictions(judged, run, recordings):
        warnings.warn(note, stacklevel=2)


def project_root(suite: Path) -> Path:
    """The folder from which results name a suite: pytest's rootdir, as its configuration shows it.

    Args:
        suite: The suite file; without any configuration above it, its folder is the root.
    """
    above = (folder for folder in suite.parents if any((folder / name).is_file() for name in _CONFIGURATION))
    return next(above, suite.parent)


def in_order(task: Callable[[_B], _T], blocks: Iterable[_B], executor: Executor | None, in_flight: int) -> Iterator[_T]:
    """Yield the results of measured blocks of cases in their order.

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
        for block in blocks:
            pending.append((block, executor.submit(task, block)))
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


def run_predicted(
    suite: LoadedSuite,
    key: SuiteKey,
    executor: Executor | None,
    recordings: Recordings | None = None,
    *,
    explains_all: bool = True,
) -> Iterator[SuitePart]:
    """Yield the results of all cases of a suite in blocks, scored without a target or judge.

    Args:
        suite: As one system answers it; no evaluator asks a judge.
        key: What results are gathered under.
        executor: Measures blocks; ``None`` for this process.
        recordings: Answers the cases that carry no prediction.
        explains_all: Whether evaluators also say what is wrong with cases that pass.

    Raises:
        LlmevalError: The executor lost its workers.
    """
    # Workers need what a case is compared with, not the other cases.
    bare = structs.replace(suite, cases=(), systems={}, files={}, objects={})
    place = key.display_path, key.variant
    blocks = (
        (block, recordings and recordings.of_cases(*place, block, suite.repeats.times))
        for block in _whole_blocks(suite)
    )
    return in_order(_SuiteBlock(bare, key, suite.total, explains_all), blocks, executor, _IN_FLIGHT)


def score_unjudged(suite: LoadedSuite, cases: Sequence[Case]) -> list[Execution]:
    """Score answered cases without a judge, which leaves judged metrics undefined."""
    scored = structs.replace(suite, cases=tuple(cases))
    measure = MeasuredBlocks().measure if any(evaluator.batch > 1 for evaluator in suite.evaluators.values()) else None
    return [execute(scored, unjudged_answer(scored, case), measure, explains_all=False) for case in cases]


def _whole_blocks(suite: LoadedSuite) -> Iterator[list[Case]]:
    """Yield the cases of a suite in blocks that each evaluator measures as runs of pytest do."""
    together = lcm(*(evaluator.batch for evaluator in suite.evaluators.values()))
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
    """A worker's task: score a block of a suite's cases."""

    suite: LoadedSuite
    key: SuiteKey
    total: int
    explains_all: bool

    def __call__(self, block: tuple[Sequence[Case], Recordings | None]) -> SuitePart:
        cases, recordings = block
        suite = structs.replace(self.suite, cases=tuple(cases))
        runner = CaseRunner(recordings=recordings, explains_all=self.explains_all)
        done = [runner.run_recorded(LoadedCase(suite, case, self.key)) for case in cases]
        return SuitePart.from_executions(self.key, self.total, done, secrets=suite.secret_variables)
