"""Making, scoring and mixing the mutants of 1,000 answers against scoring alone, in turn, in processor seconds.

python benchmarks/mutation.py [CASES]
"""

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from pytest_llmeval.core import Case
from pytest_llmeval.run._execute import execute
from pytest_llmeval.run._job import CaseAnswer
from pytest_llmeval.suites import LoadedSuite, Registry, load_suite
from pytest_llmeval.workbench.mutation._mutants import mutation_of
from pytest_llmeval.workbench.mutation._survival import survival_of

ROUNDS = 3
MUTATORS = Registry.installed().mutators


def made(folder: Path, count: int) -> LoadedSuite:
    """Return a suite of `text` and checks, with a threshold and a gate."""
    rng = random.Random(1)
    words = [f"word{number}" for number in range(3_000)]
    cases = []
    for number in range(count):
        said = f"{' '.join(rng.choice(words) for _ in range(12))} is {rng.randrange(100)} days."
        cases.append({"id": f"c{number}", "input": f"question {number}", "expected": said, "prediction": said})
    top = {
        "evaluators": [{"text": {"metrics": ["f1", "exact_match"]}}],
        "checks": [{"max_words": 40}, {"min_chars": 1}],
    }
    limits = {"thresholds": {"f1": 0.5}, "gates": ["f1 >= 0.8"]}
    path = folder / "s.eval.json"
    path.write_text(json.dumps({**top, **limits, "cases": cases}), encoding="utf-8")
    return load_suite(path)


def seconds(work: Callable[[], object]) -> float:
    """Return the processor seconds of some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def score(suite: LoadedSuite, answers: Sequence[Case]) -> None:
    """Score answers as a run does."""
    for each in answers:
        execute(suite, CaseAnswer(each), explains_all=False)


def main() -> None:
    """Print how long both take, and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        suite = made(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
    mutation = mutation_of(suite, MUTATORS)
    answers = [each.changed for each in (*mutation.mutants, *mutation.rewrites)]
    works = (lambda: survival_of(mutation_of(suite, MUTATORS)), lambda: score(suite, answers))
    pairs = [tuple(map(seconds, works)) for _ in range(ROUNDS)]
    mutated, scored = (median(side) for side in zip(*pairs, strict=True))
    ratio = median(one / other for one, other in pairs)
    print(
        f"{len(answers)} mutants and rewrites: {mutated:.2f} s; scoring the same answers: {scored:.2f} s; "
        f"ratio {ratio:.1f}"
    )


if __name__ == "__main__":
    main()
