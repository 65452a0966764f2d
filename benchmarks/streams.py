"""Streams of exact matches and F1: seconds, memory and traffic, without workers and with two.

python benchmarks/streams.py [CASES]
"""

__all__ = ()

import os
import pickle
import resource
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from random import Random
from typing import Any

from pytest_llmeval import Case, get_evaluator, score_stream

CASES = 10_000_000
TEXT = get_evaluator("text", metrics=["exact_match", "f1"])
WORDS = ("the", "fox", "sees", "a", "red", "hen", "near", "its", "old", "barn", "while", "rain", "falls", "on", "it")
KINDS = 1_000
WORKERS = 2


def cases(number: int) -> Iterator[Case]:
    """Yield cases with a question of 20 words and answers of 3 to 12."""
    random = Random(1)
    texts = [" ".join(random.choices(WORDS, k=random.randint(3, 12))) for _ in range(KINDS)]
    question = " ".join(random.choices(WORDS, k=20))
    for each in range(number):
        expected = texts[each % KINDS]
        answer = expected if each % 3 else texts[(each * 7 + 1) % KINDS]
        yield Case(str(each), f"{question} {each}", expected, answer)


def used() -> tuple[int, float, float]:
    """Return this process, its largest memory in MB and its processor seconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return os.getpid(), usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


class Weighing(Executor):
    """Runs tasks at once and adds up the sizes of what would travel."""

    def __init__(self) -> None:
        self.sent = self.returned = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        self.sent += len(pickle.dumps(args))
        self.returned += len(pickle.dumps(done.result()))
        return done


def main() -> None:
    """Print the table."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    weighing = Weighing()
    score_stream(TEXT, cases(20_000), executor=weighing)
    less = weighing.sent / weighing.returned
    print(f"traffic: cases {weighing.sent / 20_000:.0f} bytes each, results {less:.0f} x less")
    own, start = used()[2], time.perf_counter()
    score_stream(TEXT, cases(number))
    alone, seconds = used()[2] - own, time.perf_counter() - start
    print(
        f"no workers: {seconds:.1f} s for {number:,} cases, at most {used()[1]:.0f} MB; processor seconds: {alone:.1f}"
    )
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        list(pool.map(abs, range(WORKERS)))
        idle = _seen(pool)
        own, start = used()[2], time.perf_counter()
        score_stream(TEXT, cases(number), executor=pool)
        seconds, own = time.perf_counter() - start, used()[2] - own
        seen = _seen(pool)
    memory = max(used()[1], *(each[0] for each in seen.values()))
    busy = [cpu - idle.get(pid, (0.0, 0.0))[1] for pid, (_, cpu) in seen.items()]
    print(
        f"{WORKERS} workers: {seconds:.1f} s, at most {memory:.0f} MB per process; processor seconds: this process "
        f"{own:.1f}, the workers {', '.join(f'{each:.1f}' for each in busy)}"
    )
    print(
        f"speed that this allows: {alone / ((own + sum(busy)) / 2):.2f} on two idle cores, "
        f"{alone / max(own, *busy):.2f} on three"
    )


def _seen(pool: Executor) -> dict[int, tuple[float, float]]:
    """Return memory and processor seconds by worker."""
    return {pid: (memory, cpu) for pid, memory, cpu in (pool.submit(used).result() for _ in range(40))}


if __name__ == "__main__":
    main()
