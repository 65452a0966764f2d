"""Peak memory of the evaluator ``classification``: many labels, and many cases.

Each line is a process of its own. Run: ``python benchmarks/labels.py [CASES LABELS]``; without arguments, 1,000 cases
with 1,000 labels, and 100,000 cases with 5.
"""

import resource
import subprocess
import sys
import time


def measure(cases: int, labels: int) -> str:
    """Return a line about scoring in this process."""
    from pytest_llmeval import Case, get_evaluator, score

    given = [
        Case(f"case-{n}", "?", f"label-{n * 7 % labels}", f"label-{(n * 7 + (n % 3 == 0) * n) % labels}")
        for n in range(cases)
    ]
    before, started = _peak_mib(), time.process_time()
    score(get_evaluator("classification"), given)
    after, seconds = _peak_mib(), time.process_time() - started
    each = (after - before) * 1024 / cases
    return f"{cases} cases, {labels} labels: peak {after:.0f} MiB, {each:.1f} KiB a case, {seconds:.1f} s"


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    for cases, labels in ((1_000, 1_000), (100_000, 5)):
        subprocess.run([sys.executable, __file__, str(cases), str(labels)], check=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(measure(*map(int, sys.argv[1:])))
    else:
        main()
