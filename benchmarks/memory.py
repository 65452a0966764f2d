"""Peak memory of a run over JSONL cases, one item per case and in bulk, to see that it grows linearly.

Run: ``python benchmarks/memory.py``. Takes about two minutes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from per_case import write_projects

SIZES = (1_000, 10_000, 100_000)
MEASURE = """\
import resource, runpy, sys
sys.argv[0] = "pytest"
try:
    runpy.run_module("pytest", run_name="__main__")
finally:
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


def peak(arguments: list[str]) -> int:
    """Return the peak memory of a pytest run in MiB."""
    done = subprocess.run([sys.executable, "-c", MEASURE, *arguments], check=True, capture_output=True, text=True)
    return int(done.stderr.split()[-1])


def main() -> None:
    print("cases    bare  suite   bulk   (peak MiB)")
    for cases in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            commands = write_projects(Path(folder), cases)
            figures = {name: peak(command[3:]) for name, command in commands.items()}
        print(f"{cases:<7} {figures['bare']:>5} {figures['suite']:>6} {figures['bulk']:>6}")


if __name__ == "__main__":
    main()
