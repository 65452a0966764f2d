"""Own cost per case: 10,000 collected and executed cases against 10,000 bare parametrised no-op tests.

Both run as whole pytest processes, collection and start-up included, in turn, so that the machine's drift hits both.
Run: ``python benchmarks/per_case.py [CASES] [ROUNDS]``.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SUITE = """\
evaluators: [text: {metrics: [exact_match]}]
gates: [exact_match >= 0.5]
source: {format: jsonl, path: cases.jsonl}
"""
BARE = """\
import pytest

@pytest.mark.parametrize("number", range(%d))
def test_nothing(number):
    pass
"""


def write_projects(folder: Path, cases: int) -> dict[str, list[str]]:
    """Write a bare project, a suite and a bulk suite; return the command of each."""
    commands = {}
    rows = [{"id": f"case-{n}", "input": f"{n}?", "expected": "yes", "prediction": "yes"} for n in range(cases)]
    for name in ("bare", "suite", "bulk"):
        project = folder / name
        project.mkdir()
        (project / "pytest.ini").write_text("[pytest]\n")
        if name == "bare":
            (project / "test_bare.py").write_text(BARE % cases)
        else:
            bulk = "mode: bulk\n" if name == "bulk" else ""
            (project / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            (project / "cases.eval.yaml").write_text(bulk + SUITE)
        llmeval = [] if name == "bare" else ["--llmeval"]
        commands[name] = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *llmeval, str(project)]
    return commands


def timed(command: list[str]) -> float:
    """Run a command; return user plus system seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(cases: int = 10_000, rounds: int = 5) -> None:
    with tempfile.TemporaryDirectory() as folder:
        commands = write_projects(Path(folder), cases)
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds + 1):
            for name, command in commands.items():
                seconds[name].append(timed(command))
        print(f"{cases} cases, {rounds} rounds after one to warm up, CPU seconds of the whole process")
        for name, times in seconds.items():
            counted = times[1:]
            ratio = statistics.median(a / b for a, b in zip(counted, seconds["bare"][1:], strict=True))
            middle = statistics.median(counted)
            print(f"{name:6} median {middle:6.2f}  min {min(counted):6.2f}  ratio to bare {ratio:5.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
