"""``llmeval power --simulate``: how often a gate is wrong, by repeated runs."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from test_cli_compare import write_report

from pytest_llmeval.cli import main

SIZE = 40
FEW = ("--simulate", "20")


@pytest.fixture(autouse=True)
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_suite()


def write_suite(**more: Any) -> None:
    cases = [{"id": str(n), "expected": "x", "prediction": "x", "labels": {"talk": str(n // 4)}} for n in range(SIZE)]
    data = {"evaluators": [{"text": {"metrics": ["exact_match"]}}], "cases": cases, **more}
    Path("s.eval.yaml").write_text(json.dumps(data), encoding="utf-8")


def write_runs(*means: float, **more: Any) -> list[str]:
    """Write runs of right and wrong answers, each with its share of right ones."""
    runs = []
    for number, mean in enumerate(means):
        rng = random.Random(number)
        scores = [float(rng.random() < mean) for _ in range(SIZE)]
        runs.append(write_report(Path(f"{number}.json"), {"right": scores}, ranges={"right": [0, 1]}, **more))
    return runs


def power(*runs: str, metric: str = "right", options: tuple[str, ...] = (), first: tuple[str, ...] = ()) -> int:
    reports = [argument for run in runs for argument in ("--report", run)]
    return main([*first, "power", "s.eval.yaml", *reports, *FEW, "--metric", metric, *options])


def table(text: str) -> dict[str, list[str]]:
    """Return the numbers of each row: any drop is red, the gate is red, the gate cannot tell."""
    kinds = ("these runs", "nothing changed", "drop of 0.05", "drop of 0.6", "drop of 5")
    return {kind: line.split()[-3:] for kind in kinds for line in text.splitlines() if line.startswith(f"{kind} ")}


def test_runs_of_one_version_tell_false_alarms_and_which_drops_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    runs = write_runs(0.8, 0.8, 0.8)
    drops = ("--drop", "0.05", "--drop", "0.6", "--drop", "5")
    assert power(*runs, options=drops) == 0
    printed = capsys.readouterr().out
    assert "right: 40 cases, mean 0." in printed
    assert "drop(right) <= 0 is red" in printed
    rows = table(printed)
    assert rows["these runs"][:2] == ["3", "0"], "of two different runs, one is worse"
    assert int(rows["nothing changed"][0]) > 2
    assert int(rows["nothing changed"][1]) <= 2
    assert int(rows["drop of 0.05"][1]) < int(rows["drop of 0.6"][1]) == 20
    assert "impossible: 0." in printed
    *_, last = printed.splitlines()
    assert last.startswith("with your 40 cases and your noise, a drop of 0.05 in ")
    assert "of 0.6 in 100 of 100 pull requests is found; false alarms " in last
    assert power(*runs, options=drops, first=("--json",)) == 0
    (plan,) = json.loads(capsys.readouterr().out)["result"]["plans"]
    counted = {
        row["drop"]: [str(row[name]) for name in ("worse", "red", "undecided")] for row in plan["simulated"]["rows"]
    }
    assert counted.pop(5.0) == ["0"] * 3, "a drop that is impossible is not simulated"
    kinds = {None: "these runs", 0.0: "nothing changed", 0.05: "drop of 0.05", 0.6: "drop of 0.6"}
    assert counted == {drop: rows[kind] for drop, kind in kinds.items()}, "the same seed gives the same numbers"


def test_the_gate_of_the_suite_is_tried_with_its_groups(capsys: pytest.CaptureFixture[str]) -> None:
    write_suite(gates=[{"metric": "pass_rate", "max_drop": 0.3, "by": "talk"}])
    runs = write_runs(0.8, 0.8)
    for number, run in enumerate(runs):
        data = json.loads(Path(run).read_text(encoding="utf-8"))
        for case in data["suites"][0]["cases"]:
            case["outcome"] = "passed" if (int(case["id"]) + number) % 5 else "failed"
        Path(run).write_text(json.dumps(data), encoding="utf-8")
    assert power(*runs, metric="pass_rate", options=("--drop", "0.5")) == 0
    printed = capsys.readouterr().out
    assert "pass_rate by talk: 40 cases, mean 0.8" in printed
    assert "drop(pass_rate) <= 0.3 by talk is red" in printed


def test_runs_of_two_versions_are_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    assert power(*write_runs(0.9, 0.3), options=("--drop", "0.1")) == 0
    assert "these runs differ by more than noise seldom does: are they of one version?" in capsys.readouterr().out


def test_lower_is_better_drops_upwards(capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(5)
    runs = [
        write_report(Path(name), {"errors": [rng.gauss(3, 1) for _ in range(SIZE)]}, lower_is_better=["errors"])
        for name in ("0.json", "1.json")
    ]
    assert power(*runs, metric="errors", options=("--drop", "5")) == 0
    rows = table(capsys.readouterr().out)
    assert rows["drop of 5"] == ["20", "20", "0"], "a metric without a worst value falls by as much in every case"


@pytest.mark.parametrize(
    ("means", "code", "expected"),
    [
        ((0.8,), 2, "--simulate needs two or more --report of the same version"),
        ((1.0, 1.0), 0, "right: all runs are equal, as answers of a cache are"),
    ],
)
def test_what_says_nothing_is_named(
    means: tuple[float, ...], code: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert power(*write_runs(*means)) == code
    out, error = capsys.readouterr()
    assert expected in out + error
