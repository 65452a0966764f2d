"""What gates of other tools say of the same two runs: the table of ``deciders.md``.

Run: ``python benchmarks/deciders.py`` in an environment that has some of the tools (``pip install mlflow trulens-core
siggate``), with this package or without. The columns are the tools that are installed, with their versions; the rows
are pairs of runs. A cell has the verdict and the numbers that the tool gives. Tools that pair by an input get the
input, tools that pair by an id get the id. A score that does not exist is left out, or raised where a tool runs the
scorer itself.
"""

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Runs = tuple[list[Row], list[Row]]


def scored(scores: dict[str, list[float | None]], reason: str = "error", first: int = 0, repeat: int = 0) -> list[Row]:
    """Return rows of results; each metric has a score, or a reason for none, of each case."""
    return [
        {
            "case": f"c{first + case}",
            "input": f"question {case}",
            "metric": metric,
            **({"score": score} if score is not None else {reason: "n/a"}),
            **({"repeat": repeat} if repeat else {}),
        }
        for metric, values in scores.items()
        for case, score in enumerate(values)
    ]


def changed(cases: int, wrong: int, fell: int, rose: int = 0) -> tuple[list[float | None], list[float | None]]:
    """Return scores of 0 and 1 before and after a change; the first cases fell, the last ones rose."""
    old: list[float | None] = [1.0] * (cases - wrong) + [0.0] * wrong
    new: list[float | None] = [0.0] * fell + old[fell : cases - rose] + [1.0] * rose
    return old, new


def situations() -> dict[str, Runs]:
    """Return pairs of runs by what is told apart."""
    old, new = changed(40, 9, 8)
    same, _ = changed(60, 12, 0)
    crashed = [None if case % 3 == 0 else score for case, score in enumerate(same)]
    few, fewer = changed(12, 3, 3)
    slight, slighter = changed(40, 9, 6)
    steady, _ = changed(40, 20, 0)
    abstained = [None if case < 12 else score for case, score in enumerate(steady)]
    mixed = [float(case % 3 > 0) for case in range(40)]
    return {
        "8 of 40 cases rose": (scored({"ok": new}), scored({"ok": old})),
        "8 of 40 cases fell": (scored({"ok": old}), scored({"ok": new})),
        "20 of 60 cases crashed, the rest is equal": (scored({"ok": same}), scored({"ok": crashed})),
        "3 of 12 cases fell, each with 5 repeats": (
            [row for repeat in range(1, 6) for row in scored({"ok": few}, repeat=repeat)],
            [row for repeat in range(1, 6) for row in scored({"ok": fewer}, repeat=repeat)],
        ),
        "1 of 3 metrics fell in 6 of 40 cases": (
            scored({"ok": slight, "cited": slight, "polite": slight}),
            scored({"ok": slighter, "cited": slight, "polite": slight}),
        ),
        "nothing changed, but ids moved by one": (scored({"ok": mixed}), scored({"ok": mixed}, first=1)),
        "12 of 40 cases now abstain": (scored({"ok": steady}), scored({"ok": abstained}, reason="abstained")),
    }


def this_package(runs: Runs) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in zip(("old", "new"), runs, strict=True):
            text = "".join(f"{json.dumps(row)}\n" for row in rows)
            (Path(folder) / f"{name}.jsonl").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "pytest_llmeval", "gate", "new.jsonl", "--baseline", "old.jsonl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    words = ("better", "worse", "no drop", "cannot tell")
    lines = done.stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(words))
    return f"exit code {done.returncode}: {' '.join(line.strip() for line in lines[first:])}"


def mlflow(runs: Runs) -> str:
    settings = {"ENABLE_ASYNC_TRACE_LOGGING": "false", "DISABLE_TELEMETRY": "true", "GENAI_EVAL_MAX_WORKERS": "1"}
    os.environ.update({f"MLFLOW_{name}": value for name, value in settings.items()})
    import mlflow
    from mlflow.genai.scorers import scorer

    def evaluate(rows: list[Row]) -> str:
        def scorer_of(metric: str) -> Any:
            scores = {row["input"]: row["score"] for row in rows if row["metric"] == metric and "score" in row}

            @scorer(name=metric)
            def score(inputs: Row) -> float:
                return float(scores[inputs["question"]])  # repeats of a case have the same score

            return score

        metrics = sorted({row["metric"] for row in rows})
        data = [
            {"inputs": {"question": row["input"]}, "outputs": row["input"]}
            for row in rows
            if row["metric"] == metrics[0]
        ]
        return str(mlflow.genai.evaluate(data=data, scorers=[scorer_of(metric) for metric in metrics]).run_id)

    old, new = map(evaluate, runs)
    result = mlflow.genai.compare_evaluations(candidate_run_id=new, baseline_run_id=old)
    parts = [
        f"{name} {each.diff:+.3f}, p {each.p_value:.4f}, {each.n_paired} pairs" if each.status == "ok" else each.status
        for name, each in result.scorers.items()
    ]
    try:
        result.assert_improved()
    except AssertionError:
        return "raises: " + ("; ".join(parts) or "nothing was compared")
    return "passes: " + "; ".join(parts)


def trulens(runs: Runs) -> str:
    import pandas as pd
    from trulens.core.run import compare_runs

    class Recorded:
        def __init__(self, name: str, rows: list[Row]) -> None:
            self.run_name, self.rows = name, rows

        def get_records(self) -> Any:
            records: dict[Any, Row] = {}
            for number, row in enumerate(self.rows):
                record = records.setdefault(
                    (row["input"], row.get("repeat")), {"record_id": f"{number:04}", "input": row["input"]}
                )
                record[row["metric"]] = row.get("score")
            return pd.DataFrame(list(records.values()))

    difference: Any = compare_runs(
        Recorded("old", runs[0]),  # type: ignore[arg-type,unused-ignore]  # it has what is asked of a run; the library
        Recorded("new", runs[1]),  # type: ignore[arg-type,unused-ignore]  # may be missing, with its types
    )
    return "no verdict: " + "; ".join(
        f"{name} {each.mean_delta:+.3f}, p {each.p_value:.4f}, {each.n_items} items, {each.n_regressed} regressed"
        for name, each in difference.metrics.items()
    )


def siggate(runs: Runs) -> str:
    """Compare files of ``id`` and ``score``, a folder with a file per metric if there are several."""
    with tempfile.TemporaryDirectory() as folder:
        metrics = sorted({row["metric"] for row in runs[0]})
        for name, rows in zip(("old", "new"), runs, strict=True):
            (Path(folder) / name).mkdir()
            for metric in metrics:
                lines = [
                    f"{row['case']},{row['score']}\n" for row in rows if row["metric"] == metric and "score" in row
                ]
                (Path(folder) / name / f"{metric}.csv").write_text("id,score\n" + "".join(lines), encoding="utf-8")
        paths = [
            str(Path(folder) / name / ("" if len(metrics) > 1 else f"{metrics[0]}.csv")) for name in ("old", "new")
        ]
        program = str(Path(sys.executable).with_name("siggate"))
        done = subprocess.run(
            [program, "compare", *paths, "--format", "json"], capture_output=True, text=True, check=False
        )
    if not done.stdout:
        return f"exit code {done.returncode}: {done.stderr.strip()}"
    found = json.loads(done.stdout)
    return f"exit code {done.returncode}: " + " ".join(task["summary"] for task in found.get("tasks", [found]))


TOOLS: dict[str, Callable[[Runs], str]] = {
    "pytest-llmeval-suite": this_package,
    "mlflow": mlflow,
    "trulens-core": trulens,
    "siggate": siggate,
}


def version_of(name: str) -> str | None:
    """Return the installed version of a distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def main() -> None:
    logging.disable(logging.WARNING)
    for name, verdict in TOOLS.items():
        version = version_of(name)
        if version is None:
            continue
        print(f"\n{name} {version}\n")
        for situation, runs in situations().items():
            try:
                print(f"| {situation} | {verdict(runs)} |", flush=True)
            except Exception as error:  # noqa: BLE001 - that a tool raises is what the table shows
                print(f"| {situation} | {type(error).__name__}: {error} |", flush=True)


if __name__ == "__main__":
    main()
