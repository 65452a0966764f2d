"""Streams of cases: the numbers of `score`, in constant memory, on any executor."""

import json
import os
import pickle
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pytest_llmeval import (
    Case,
    Evaluator,
    EvaluatorError,
    JudgeRequest,
    LlmevalError,
    Metric,
    MissingExtraError,
    Observation,
    Panel,
    Result,
    Sums,
    get_evaluator,
    score,
    score_stream,
)
from pytest_llmeval.core import FloatArray

TEXT = get_evaluator("text", metrics=["exact_match", "f1"])
WORDS = ["the", "fox", "sees", "a", "red", "hen", "near", "its", "old", "barn"]
CASES = 1_000


def cases(number: int = CASES) -> Iterator[Case]:
    random = Random(7)
    for each in range(number):
        expected = " ".join(random.choices(WORDS, k=3))
        answer: Any = 7 if each % 37 == 0 else expected if each % 5 == 0 else " ".join(random.choices(WORDS, k=4))
        yield Case(str(each), "What does it see?", expected, answer, {"kind": "xyz"[each % 3]})


def numbers(result: Result) -> list[Any]:
    """Return what does not depend on how intervals are computed."""
    return [
        (name, each.value, each.mean, each.scored, each.undefined, each.errored)
        for some in (result, *result.groups.get("kind", {}).values())
        for name, each in {**some.metrics, "": some.pass_rate}.items()
    ]


WHOLE = numbers(score(TEXT, cases(), ["kind"], confidence=None))


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("block", [1, 7, 300, CASES, 2 * CASES])
def test_a_stream_has_the_value_mean_counts_and_groups_of_score(block: int) -> None:
    assert numbers(score_stream(TEXT, cases(), group_by=["kind"], block=block, confidence=None)) == WHOLE


def test_processes_give_the_same_result_as_none(processes: Executor) -> None:
    found = score_stream(TEXT, cases(), executor=processes, group_by=["kind"], block=150)
    assert found == score_stream(TEXT, cases(), group_by=["kind"], block=400)
    assert numbers(found) == WHOLE


def test_workers_see_the_cases_as_they_are() -> None:
    some = [*cases(3), Case("x", way="a model", tags=("slow",), checks=({"contains": "x"},), line=4, conversation=True)]
    seen: list[Case] = []

    @dataclass(frozen=True)
    class Seeing(Evaluator):
        name = "seeing"

        def describe(self) -> Sequence[Metric]:
            return ()

        def measure(self, case: Case) -> Observation:
            seen.append(case)
            return Observation({})

        def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
            del sums
            return {}

    score_stream(Seeing(), [*some, *cases(2)], block=4)
    plain = [replace(each, prediction=case.prediction) for each, case in zip(seen, [*some, *cases(2)], strict=True)]
    assert plain == [*some, *cases(2)]
    assert [(each.way, each.conversation) for each in seen] == [("", False)] * 3 + [("a model", True)] + [
        ("", False)
    ] * 2


def test_several_evaluators_score_the_same_cases() -> None:
    labels = get_evaluator("classification")
    both = score_stream([TEXT, labels], cases(60), confidence=None)
    assert both.metrics == {
        **score(TEXT, cases(60), confidence=None).metrics,
        **score(labels, cases(60), confidence=None).metrics,
    }
    renamed = score_stream({"draft": TEXT}, cases(60), confidence=None)
    assert list(renamed.metrics) == ["draft.exact_match", "draft.f1"]


def test_a_case_that_cannot_be_measured_counts_as_errored() -> None:
    some = [Case("a", None, "Rome", "Rome"), Case("b", None, {"no": "text"}, "Rome")]
    result = score_stream(TEXT, some)
    assert (result.metrics["f1"].value, result.metrics["f1"].errored, result.pass_rate.value) == (1.0, 1, 0.5)


def test_no_case_gives_no_value() -> None:
    result = score_stream(TEXT, [])
    assert (result.pass_rate.value, result.pass_rate.scored) == (None, 0)


class Counting(Executor):
    """Runs tasks at once; keeps how many cases are with it, and how large tasks and results are."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        self.sizes.append((len(pickle.dumps(args)), len(pickle.dumps(done.result()))))
        return done


def test_a_result_is_a_twentieth_of_the_size_of_its_cases() -> None:
    counting = Counting()
    score_stream(TEXT, cases(8_000), executor=counting, block=4_000)
    assert len(counting.sizes) == 2
    assert all(result * 20 <= task for task, result in counting.sizes)


class Waiting(Executor):
    """Finishes tasks only when their results are wanted."""

    def __init__(self) -> None:
        self.open = 0
        self.most_open = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        outer = self

        class Late(Future[Any]):
            def result(self, timeout: float | None = None) -> Any:
                del timeout
                outer.open -= 1
                return fn(*args, **kwargs)

        return Late()


def test_only_so_many_blocks_are_given_to_the_executor() -> None:
    waiting = Waiting()
    assert numbers(score_stream(TEXT, cases(), executor=waiting, group_by=["kind"], block=50, in_flight=3)) == WHOLE
    assert (waiting.most_open, waiting.open) == (3, 0)


@pytest.mark.parametrize(
    ("error", "raised", "cancelled"),
    [
        (BrokenExecutor("gone"), LlmevalError, False),
        (KeyboardInterrupt(), KeyboardInterrupt, False),
        (OSError("no"), OSError, True),
    ],
)
def test_what_a_pool_may_be_failing_itself_is_not_cancelled(
    error: BaseException, raised: type[BaseException], cancelled: bool
) -> None:
    given: list[Future[Any]] = []

    class Failing(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
            del fn, args, kwargs
            given.append(Future())
            if len(given) != 2:  # what is lost is asked for again
                given[-1].set_exception(error)
            return given[-1]

    with pytest.raises(raised):
        score_stream(TEXT, cases(), executor=Failing(), block=100, in_flight=2)
    assert given[1].cancelled() is cancelled


class Losing(Executor):
    """Loses the result of every other task, as Dask does if a worker is killed while its result is fetched."""

    def __init__(self) -> None:
        self.tasks = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self.tasks += 1
        done: Future[Any] = Future()
        if self.tasks % 2:
            done.set_exception(ValueError("not enough values to unpack"))
        else:
            done.set_result(fn(*args, **kwargs))
        return done


def test_a_result_that_an_executor_loses_is_asked_for_again_and_counted_once() -> None:
    losing = Losing()
    assert score_stream(TEXT, cases(), executor=losing, block=100, in_flight=1) == score_stream(TEXT, cases())
    assert losing.tasks == 2 * CASES // 100


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_results_of_cases_are_written_in_the_order_of_the_cases(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"scores{suffix}"
    with ThreadPoolExecutor(2) as threads:
        score_stream(TEXT, cases(), executor=threads, block=90, results=path)
    if suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    else:
        from pyarrow import parquet

        rows = [{**row, "metrics": dict(row["metrics"])} for row in parquet.read_table(path).to_pylist()]
    expected = [
        {"id": each.id, "outcome": each.outcome, "reason": each.reason, "metrics": each.metrics}
        for each in score(TEXT, cases(), confidence=None).cases
    ]
    assert rows == expected
    assert list(tmp_path.iterdir()) == [path]


def test_a_stream_that_breaks_off_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text("before\n")

    def broken() -> Iterator[Case]:
        yield from cases(5)
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        score_stream(TEXT, broken(), block=2, results=path)
    assert path.read_text() == "before\n"
    assert list(tmp_path.iterdir()) == [path]


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LlmevalError, match=r"found suffix '.csv', expected one of .jsonl, .parquet"):
        score_stream(TEXT, [], results=tmp_path / "a.csv")
    with pytest.raises(LlmevalError, match="found block=0"):
        score_stream(TEXT, [], block=0)
    with pytest.raises(EvaluatorError, match="two evaluators of one name"):
        score_stream([TEXT, TEXT], [])
    with pytest.raises(EvaluatorError, match="an evaluator is missing"):
        score_stream([], [])
    with pytest.raises(EvaluatorError, match="evaluator 'judge' asks a judge"):
        score_stream(get_evaluator("judge"), [])
    with pytest.raises(EvaluatorError, match="score_stream with steps that the judge writes anew"):
        score_stream(get_evaluator("judge", criteria="Short."), [], judge=lambda _: "yes")
    with ThreadPoolExecutor(1) as pool, pytest.raises(LlmevalError, match="found an executor and a judge"):
        score_stream(get_evaluator("judge"), [], judge=lambda _: "yes", executor=pool)


def test_judges_are_asked_block_by_block_and_give_the_numbers_of_score(tmp_path: Path) -> None:
    asked: list[int] = []

    def strict(request: JudgeRequest) -> str:
        asked.append(sum(drawn))
        return "no" if "x7" in str(request) else "yes"

    drawn: list[int] = []

    def answers() -> Iterator[Case]:
        for number in range(20):
            drawn.append(1)
            yield Case(str(number), "q", "x", f"x{number}", {"kind": "ab"[number % 2]})

    evaluators = [get_evaluator("judge", mode="preference"), TEXT]
    panel = Panel({"strict": strict, "mild": lambda _: "yes"}, "unanimous")
    results = tmp_path / "scores.jsonl"
    streamed = score_stream(evaluators, answers(), judge=panel, group_by=["kind"], block=5, results=results)
    assert min(asked) == 5
    assert len(asked) == 20
    whole = score(evaluators, answers(), ["kind"], judge=panel)
    assert numbers(streamed) == numbers(whole)
    assert streamed.metrics["judge_panel_spread"].value == whole.metrics["judge_panel_spread"].value
    lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert [each["metrics"]["judge_score"] for each in lines] == [float(number != 7) for number in range(20)]


def test_parquet_without_its_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pytest-llmeval-suite\[parquet\]'"):
        score_stream(TEXT, cases(3), results=tmp_path / "scores.parquet")


def test_a_process_pool_that_breaks_is_an_error() -> None:
    def killing(pool: ProcessPoolExecutor) -> Iterator[Case]:
        for number, each in enumerate(cases()):
            if number == 400:
                os.kill(pool.submit(os.getpid).result(), signal.SIGKILL)
            yield each

    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(LlmevalError, match="the executor lost its workers, no result is complete"),
    ):
        score_stream(TEXT, killing(pool), executor=pool, block=100)
