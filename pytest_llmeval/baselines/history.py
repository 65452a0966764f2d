"""The local history of runs: one line per judged suite and run, in a file that is not committed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval._version import __version__
from pytest_llmeval.baselines.comparable import basis_of
from pytest_llmeval.baselines.runs import JudgedSuite, RunWatch
from pytest_llmeval.data.files.folders import WORKING_FOLDER, make_working_folder
from pytest_llmeval.data.files.writing import append_text
from pytest_llmeval.suite.suite import SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.gates.statistics.anytime import WatchedRun

HISTORY = Path(WORKING_FOLDER, "history.jsonl")


def append_runs(
    root: Path,
    suites: Sequence[JudgedSuite],
    *,
    time: str,
    commit: str | None,
) -> None:
    """Append a line for each suite that a run has judged.

    Args:
        root: pytest's rootdir.
        suites: The suites.
        time: When the run started, ISO 8601, UTC.
        commit: What was checked out.

    Raises:
        OSError: The file cannot be written.
    """
    if not suites:
        return
    path = root / HISTORY
    if not path.parent.exists():
        make_working_folder(path.parent)
    append_text(path, "".join(_line(each, time, commit) + "\n" for each in suites))


def earlier_looks(root: Path | None, key: SuiteKey, watch: RunWatch) -> "dict[str, list[WatchedRun]]":
    """Return what earlier runs of a suite say of gates that weigh all runs since an approval.

    A run with the very answers of another one, such as a replay, says nothing more and is left out, and so is a line
    that cannot be read: the file is a local one that people cut.

    Args:
        root: The folder of the history; ``None`` if there is none.
        key: Of the suite.
        watch: The run that is to be judged.

    Returns:
        Gate to looks, in the order of the runs.
    """
    from pytest_llmeval.gates.statistics.anytime import WatchedRun

    found: dict[str, list[WatchedRun]] = {}
    seen = {watch.statistics, watch.baseline}
    for data in _lines(root, watch.baseline):
        same = (data.get("path"), data.get("test"), data.get("variant")) == (key.display_path, key.test, key.variant)
        if not same or data.get("baseline") != watch.baseline or data.get("statistics") in seen:
            continue
        with suppress(AttributeError, TypeError, ValueError):
            looks = {gate: WatchedRun(float(drop), float(sd), int(n)) for gate, (drop, sd, n) in data["looks"].items()}
            seen.add(data["statistics"])
            for gate, look in looks.items():
                found.setdefault(gate, []).append(look)
    return found


def _lines(root: Path | None, holding: str) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of the history that hold a text."""
    try:
        text = "" if root is None else (root / HISTORY).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        if holding in line:
            with suppress(ValueError, RecursionError):
                data = json.loads(line)
                if isinstance(data, dict):
                    yield data


def _line(judged: JudgedSuite, time: str, commit: str | None) -> str:
    from pytest_llmeval.baselines.scores import rounded

    metrics = {**judged.result.metrics, "pass_rate": judged.result.pass_rate}
    if (cost := judged.result.usage.get("total_cost_usd")) is not None and cost.value is not None:
        metrics["total_cost_usd"] = cost
    data = {
        "time": time,
        "commit": commit,
        "version": __version__,
        "path": judged.key.display_path,
        "test": judged.key.test,
        "variant": judged.key.variant,
        "cases": len(judged.records),
        "errored": {name: metric.errored for name, metric in metrics.items() if metric.errored},
        "values": {name: rounded(metric.value) for name, metric in metrics.items()},
        "intervals": {
            name: [rounded(metric.low), rounded(metric.high)]
            for name, metric in metrics.items()
            if metric.low is not None and metric.high is not None
        },
        "gates": {gate.gate: gate.outcome for gate in judged.gates},
        "basis": basis_of(judged.measured.comparable),
    }
    if judged.watch is not None:
        data |= asdict(judged.watch)
    return json.dumps(data, allow_nan=False)
