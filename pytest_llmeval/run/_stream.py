"""Streams of cases, scored in constant memory."""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, get_args

from pytest_llmeval.core import (
    Case,
    CaseResult,
    Evaluator,
    EvaluatorError,
    LlmevalError,
    MissingExtraError,
    Parts,
    Reading,
    Result,
)
from pytest_llmeval.data import OutputFile
from pytest_llmeval.numbers import summarize
from pytest_llmeval.run._partial import PartialResult
from pytest_llmeval.run._score import Evaluators, by_name, cases_in_forms, check_divisible, measured_records
from pytest_llmeval.run._scripts import in_order

if TYPE_CHECKING:
    from pytest_llmeval.judges import Judgeable, Panel, SuiteJudges

MeasuredBlock: TypeAlias = tuple[PartialResult, Sequence[CaseResult]]

BLOCK = 2_000

StreamJudging: TypeAlias = Literal["auto", "refresh", "defer"]
"""The modes of judging of a run that need no suite, beside which recordings are."""

_MODES: Final[tuple[str, ...]] = get_args(StreamJudging)


def score_stream(
    evaluators: Evaluators,
    cases: Iterable[Case],
    *,
    judge: "Judgeable | Panel | None" = None,
    judge_mode: StreamJudging | None = None,
    cache: str | Path | None = None,
    max_workers: int = 8,
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
        judge: Whom evaluators such as `judge` ask, as in `score`: this process asks, for one block after the other.
        judge_mode: As ``--llmeval-judge``. ``auto``: use stored verdicts, and call the judge for others. ``refresh``:
            ignore stored verdicts and ask again. ``defer``: use stored verdicts, and write requests for the others in
            the form of the provider's batch interface. ``None``: ask for all of them, and store nothing.
        cache: The place of stored verdicts, as ``--llmeval-cache``; default: ``.llmeval/cache.sqlite3``.
        max_workers: Most calls of the judge at a time.
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
        LlmevalError: The executor lost its workers; or an argument is wrong. Or verdicts are pending, once the requests
            for all of them are written: there are no results without them.
        MissingExtraError: An optional dependency is not installed.
        MissingDataError: Language data is not installed.
    """
    if block < 1 or in_flight < 1:
        raise LlmevalError(f"score_stream: found block={block}, in_flight={in_flight}, expected at least 1")
    named = by_name(evaluators, "score_stream")
    judged = [label for label, evaluator in named.items() if evaluator.asks]
    if judge is None and (lacking := [label for label in judged if not _has_own_model(named[label])]):
        raise EvaluatorError(
            f"score_stream: evaluator {lacking[0]!r} asks a judge, expected one: judge='PROVIDER:NAME'"
        )
    if judged and executor is not None:
        raise LlmevalError("score_stream: found an executor and a judge, expected one of them: this process asks")
    check_divisible(named, "score_stream")
    if cache is not None and judge_mode is None:
        raise LlmevalError("score_stream: found cache without judge_mode, expected both: cache holds stored verdicts")
    task = _StreamBlock(named, parts or Parts(), tuple(group_by), results is not None, judge, max_workers)
    with _stored_verdicts(judge_mode, cache, judge, max_workers) as judges:
        if judged:  # an executor cannot send a store
            task = replace(task, judges=judges)
        total = _sum_stream(task, cases, executor, block, in_flight, None if results is None else Path(results))
    return total.result(confidence)


@contextmanager
def _stored_verdicts(
    mode: str | None, cache: str | Path | None, judge: "Judgeable | Panel | None", workers: int
) -> "Iterator[SuiteJudges | None]":
    """The judges that keep a stream's verdicts and requests; nothing without a mode.

    Raises:
        LlmevalError: The mode or the place is unknown, or verdicts of the judge cannot be stored.
    """
    if mode is None:
        yield None
        return
    from pytest_llmeval.judges import CachePlace, JudgeOptions, JudgePanel, SuiteJudges
    from pytest_llmeval.services import Background

    if mode not in _MODES:
        raise LlmevalError(f"score_stream: found judge_mode={mode!r}, expected one of {', '.join(_MODES)}")
    if judge is not None and not all(juror.model for juror in JudgePanel.from_python(judge).jurors.values()):
        raise LlmevalError(
            f"score_stream: found judge_mode={mode!r} and a judge without a model, expected judge='PROVIDER:NAME': "
            "verdicts are stored under its name"
        )
    try:
        place = CachePlace() if cache is None else CachePlace.parse(str(cache))
    except ValueError as error:
        raise LlmevalError(f"score_stream: cache: {error}") from None
    run = f"stream {uuid.uuid4().hex}"
    options = JudgeOptions(mode=mode, concurrency=workers, cache=place, run=run)  # type: ignore[arg-type]  # one of `_MODES`
    judges = SuiteJudges(options, Background())
    try:
        yield judges
    finally:
        judges.close(whole_run=True)


def _sum_stream(
    task: "_StreamBlock",
    cases: Iterable[Case],
    executor: Executor | None,
    block: int,
    in_flight: int,
    results: Path | None,
) -> PartialResult:
    """The sums over all cases of a stream, with the result of each case written.

    Raises:
        LlmevalError: Verdicts are pending, or the executor lost its workers.
    """

    def check_complete() -> None:
        if (judges := task.judges) is None or judges.options.mode != "defer":
            return
        if pending := judges.list_pending().text(Path.cwd()):
            raise LlmevalError(f"score_stream: {pending}")

    total = task([])[0]
    blocks: Iterable[_Columns | Sequence[Case]] = in_blocks(cases, block)
    if executor is not None:
        blocks = map(_Columns.from_cases, in_blocks(cases, block))
    measured = in_order(task, blocks, executor, in_flight)
    if results is None:
        for part, _ in measured:
            total += part
        check_complete()
    else:
        with closing(CaseResultWriter(results)) as writer:
            for part, listed in measured:
                total += part
                writer.write(listed)
            check_complete()
            writer.finish()
    return total


def _has_own_model(evaluator: Evaluator) -> bool:
    """Whether an evaluator names its own judge model, so that a stream's judge is not asked."""
    from pytest_llmeval.judges import JudgedEvaluator

    return isinstance(evaluator, JudgedEvaluator) and evaluator.own_model is not None


_FIELDS = tuple(field.name for field in fields(Case))
_USUAL = 4
"""Fields of a case, from its id to its prediction, that streams use; the others are falsy unless they are set."""


@dataclass(frozen=True)
class _Columns:
    """A block of a stream's cases, field by field: a quarter of the work of pickling case by case.

    Attributes:
        values: Of the first fields of a case; the rest have their defaults.
    """

    values: Sequence[Sequence[Any]]

    @classmethod
    def from_cases(cls, cases: Sequence[Case]) -> "_Columns":
        """The columns of a block of cases."""
        columns = [list(map(attrgetter(name), cases)) for name in _FIELDS]
        while len(columns) > _USUAL and not any(columns[-1]):
            columns.pop()
        return cls(columns)

    def cases(self) -> list[Case]:
        """The cases of the block."""
        return [Case(*row) for row in zip(*self.values, strict=True)]


@dataclass(frozen=True)
class _StreamBlock:
    """A worker's task: score a block of a stream's cases."""

    evaluators: Mapping[str, Evaluator]
    parts: Parts
    group_by: Sequence[str]
    with_cases: bool
    judge: "Judgeable | Panel | None" = None
    max_workers: int = 1
    judges: "SuiteJudges | None" = None

    def __call__(self, block: "_Columns | Sequence[Case]") -> MeasuredBlock:
        cases = cases_in_forms(block.cases() if isinstance(block, _Columns) else block)
        readings = {
            label: Reading.for_evaluator(evaluator, None, self.parts) for label, evaluator in self.evaluators.items()
        }
        evaluators, records = measured_records(
            self.evaluators, cases, readings, self.judge, self.max_workers, self.judges
        )
        partial = PartialResult.of(evaluators, records, self.group_by)
        if not self.with_cases:
            return partial, ()
        return partial, summarize(evaluators, records, confidence=None).cases


class _Sink(Protocol):
    """A file format of the case results of a stream, which `CaseResultWriter` fills block by block."""

    def write(self, rows: list[dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


class CaseResultWriter:
    """Writes a stream's case results beside their file, and replaces it in one step when all are there.

    Args:
        path: Ends in ``.jsonl`` or ``.parquet``.

    Raises:
        LlmevalError: It does not.
        MissingExtraError: The extra for its format is not installed.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix not in _SINKS:
            raise LlmevalError(f"results: found suffix {path.suffix!r}, expected one of {', '.join(_SINKS)}")
        self._path = path
        self._unfinished = path.with_name(f"{path.name}.unfinished")
        self._sink: _Sink = _SINKS[path.suffix](self._unfinished)

    def write(self, cases: Sequence[CaseResult]) -> None:
        """Write the next case results of a stream."""
        self._sink.write(
            [
                {"id": case.id, "outcome": case.outcome, "reason": case.reason, "metrics": dict(case.metrics)}
                for case in cases
            ]
        )

    def finish(self) -> None:
        """Put the complete file of a stream's case results in its place."""
        self._sink.close()
        OutputFile(self._unfinished).sync()
        OutputFile(self._path).replace(self._unfinished)

    def close(self) -> None:
        """Remove the file of a stream's case results if it is not finished."""
        self._sink.close()
        self._unfinished.unlink(missing_ok=True)


class _Jsonl:
    """The case results of a stream as JSON Lines."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")

    def write(self, rows: list[dict[str, Any]]) -> None:
        self._file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)

    def close(self) -> None:
        self._file.close()


class _Parquet:
    """The case results of a stream as Parquet; `metrics` is a map, since metric families grow with cases' labels."""

    def __init__(self, path: Path) -> None:
        with MissingExtraError.unless_installed("a file of results in Parquet", "parquet"):
            import pyarrow as pa
            from pyarrow import parquet
        text = pa.string()
        self._schema = pa.schema({"id": text, "outcome": text, "reason": text, "metrics": pa.map_(text, pa.float64())})
        self._table = pa.Table
        self._writer = parquet.ParquetWriter(path, self._schema)

    def write(self, rows: list[dict[str, Any]]) -> None:
        listed = [{**row, "metrics": list(row["metrics"].items())} for row in rows]
        self._writer.write_table(self._table.from_pylist(listed, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


_SINKS: Mapping[str, Callable[[Path], _Sink]] = MappingProxyType({".jsonl": _Jsonl, ".parquet": _Parquet})


def in_blocks(cases: Iterable[Case], size: int) -> Iterator[list[Case]]:
    """Yield a stream of cases in lists of some size."""
    left = iter(cases)
    while cases_of_block := list(islice(left, size)):
        yield cases_of_block
