"""The local history of runs: one line per judged suite and run, in a file that is not committed."""

__all__ = ("HISTORY", "append_runs")

import json
from collections.abc import Sequence
from pathlib import Path

from pytest_llmeval._version import __version__
from pytest_llmeval.data.files.working import WORKING_FOLDER, make_working_folder
from pytest_llmeval.data.files.writing import append_text
from pytest_llmeval.snapshots.keeper import SuiteRun
from pytest_llmeval.snapshots.scores import rounded

HISTORY = Path(WORKING_FOLDER, "history.jsonl")


def append_runs(root: Path, suite_run: Sequence[SuiteRun], *, time: str, commit: str | None) -> None:
    """Append a line for each suite that a run has judged.

    Args:
        root: pytest's rootdir.
        suite_run: What was measured.
        time: When the run started, ISO 8601, UTC.
        commit: What was checked out.

    Raises:
        OSError: The file cannot be written.
    """
    if not suite_run:
        return
    path = root / HISTORY
    if not path.parent.exists():
        make_working_folder(path.parent)
    append_text(path, "".join(_line(each, time, commit) + "\n" for each in suite_run))


def _line(suite_run: SuiteRun, time: str, commit: str | None) -> str:
    metrics = {**suite_run.result.metrics, "pass_rate": suite_run.result.pass_rate}
    data = {
        "time": time,
        "commit": commit,
        "version": __version__,
        "path": suite_run.key.shown,
        "test": suite_run.key.test,
        "variant": suite_run.key.variant,
        "cases": len(suite_run.records),
        "errored": {name: metric.errored for name, metric in metrics.items() if metric.errored},
        "values": {name: rounded(metric.value) for name, metric in metrics.items()},
    }
    return json.dumps(data, allow_nan=False)
