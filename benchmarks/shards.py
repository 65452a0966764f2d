"""Processor time and peak memory of one shard of twenty against the whole run, for three formats of data.

Each side is a process of its own, in turn. Run: ``python benchmarks/shards.py [ROWS [ROUNDS [FORMAT...]]]``; without
arguments, 20,000 rows, two rounds and all formats.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sides import clean_environment, pytest_command

FORMATS = {"arrow": "rows.parquet", "csv": "rows.csv", "jsonl": "rows.jsonl"}
SIDES = {"whole": (), "one of 20": ("--llmeval-shard=1/20",)}


def write_rows(folder: Path, kind: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows, and a suite over them."""
    path = folder / FORMATS[kind]
    if kind == "arrow":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    suite = {
        "evaluators": [{"text": {"metrics": ["exact_match"]}}],
        "gates": ["exact_match >= 0.1"],
        "source": {"format": kind, "path": path.name},
    }
    (folder / f"{kind}.eval.json").write_text(json.dumps(suite), encoding="utf-8")


def measure(command: list[str]) -> tuple[float, float]:
    """Return processor seconds and peak memory, in MiB, of a command.

    Raises:
        SystemExit: It failed.
    """
    process = subprocess.Popen(command, env=clean_environment(), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def write_all(folder: Path, count: int, kinds: Sequence[str]) -> None:
    """Write the files; in a process of its own, whose memory the measured ones would inherit."""
    rows = [
        {
            "id": f"case-{number}",
            "input": f"What is the answer to question {number} of the long list that we ask?",
            "expected": f"The answer is {number % 97}.",
            "prediction": f"The answer is {(number + (number % 5 == 0)) % 97}.",
        }
        for number in range(count)
    ]
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for kind in kinds:
        write_rows(folder, kind, rows)


def main(count: int, rounds: int, kinds: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, __file__, str(count), name, *kinds], check=True)
        for kind in kinds:
            suite, kept = folder / f"{kind}.eval.json", f"--llmeval-report={folder / 'part.llmeval'}"
            found: dict[str, list[tuple[float, float]]] = {side: [] for side in SIDES}
            for _ in range(rounds):
                for side, options in SIDES.items():
                    found[side].append(measure(pytest_command(suite, "--llmeval", kept, *options)))
            medians = [[statistics.median(column) for column in zip(*each, strict=True)] for each in found.values()]
            (whole_s, whole_mib), (part_s, part_mib) = medians
            print(
                f"{kind:6} {count} rows: whole {whole_s:6.1f} s {whole_mib:5.0f} MiB, one of 20 {part_s:5.2f} s "
                f"{part_mib:4.0f} MiB, 1/{whole_s / part_s:.1f} of the time, "
                f"1/{whole_mib / part_mib:.1f} of the memory",
                flush=True,
            )


if __name__ == "__main__":
    arguments = sys.argv[1:] or ["20000", "2"]
    rows, second, *formats = arguments if len(arguments) > 1 else [*arguments, "1"]
    if second.isdecimal():
        main(int(rows), int(second), formats or list(FORMATS))
    else:
        write_all(Path(second), int(rows), formats)
