"""Finding citations in text that tries to break it: seconds for 100 kB and 400 kB; if linear, four times as many.

python benchmarks/hostile_citations.py
"""

import time

from tabulate import tabulate

from pytest_llmeval.tasks._replies import read_reply
from pytest_llmeval.tasks.fact_check._mentions import find_citations
from pytest_llmeval.tasks.fact_check._target import rank_answer

PIECES = (
    "(",
    "http://",
    "According to the A",
    "Based on x ",
    "The A",
    "A",
    "Aa Bank",
    "1",
    "1.",
    "AB ",
    " ",
    "{",
    '{"',
    '{"a":[',
    '{"a":x',
    "[{",
)
SIZES = (100_000, 400_000)


def seconds(text: str) -> float:
    started = time.perf_counter()
    find_citations(text)
    read_reply(f"prose {text}", rank_answer)
    return time.perf_counter() - started


def main() -> None:
    rows = []
    for piece in PIECES:
        small, large = (seconds((piece * size)[:size]) for size in SIZES)
        rows.append((repr(piece), small, large, large / small))
    print(tabulate(rows, ("repeated", "100 kB", "400 kB", "ratio"), floatfmt=".3f"))


if __name__ == "__main__":
    main()
