"""``llmeval prove``: how often a gate is wrong, by repeated runs."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from test_cli_compare import write_report

from pytest_llmeval.cli import main

FEW = ("--simulations", "20")


def write_runs(folder: Path, *means: float, cases: int = 40, **more: Any) -> list[str]:
    """Write runs of right and wrong answers, each with its share of right ones."""
    runs = []
    for number, mean in enumerate(means):
        rng = random.Random(number)
        scores = [float(rng.random() < mean) for _ in range(cases)]
        runs.append(write_report(folder / f"{number}.json", {"right": scores}, ranges={"right": [0, 1]}, **more))
    return runs


def table(text: str) -> dict[str, list[str]]:
    """Return the numbers of each row: any drop is red, the gate is red, the gate cannot tell."""
    kinds = ("these runs", "nothing changed", "fall of 0.05", "fall of 0.1", "fall of 0.2", "fall of 0.6", "fall of 5")
    return {kind: line.split()[-3:] for kind in kinds for line in text.splitlines() if line.startswith(f"{kind} ")}


def test_runs_of_one_version_tell_false_alarms_and_which_falls_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = write_runs(tmp_path, 0.8, 0.8, 0.8)
    falls = ("--fall", "0.05", "--fall", "0.6", "--fall", "5")
    assert main(["prove", *runs, *FEW, *falls, "--metric", "right"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("s (s.eval.yaml): 3 runs of the same version\n\nright: 40 cases, mean 0.")
    rows = table(printed)
    assert rows["these runs"][:2] == ["3", "0"], "of two different runs, one is worse"
    assert int(rows["nothing changed"][0]) > 2
    assert int(rows["nothing changed"][1]) <= 2
    assert int(rows["fall of 0.05"][1]) < int(rows["fall of 0.6"][1]) == 20
    assert "impossible: 0." in printed
    *_, last = printed.splitlines()
    assert last.startswith("with your 40 cases and your noise, a fall of 0.05 in ")
    assert "of 0.6 in 100 of 100 pull requests is found; false alarms " in last
    assert main(["--json", "prove", *runs, *FEW, *falls, "--metric", "right"]) == 0
    ((metric,),) = (each["metrics"] for each in json.loads(capsys.readouterr().out)["result"]["suites"])
    found = {each["fall"]: [str(each[name]) for name in ("worse", "red", "undecided")] for each in metric["rows"]}
    assert found.pop(5.0) == ["0"] * 3, "a fall that is impossible is not simulated"
    kinds = {None: "these runs", 0.0: "nothing changed", 0.05: "fall of 0.05", 0.6: "fall of 0.6"}
    assert found == {fall: rows[kind] for fall, kind in kinds.items()}, "the same seed gives the same numbers"


def test_runs_of_two_versions_are_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = write_runs(tmp_path, 0.9, 0.3)
    assert main(["prove", *runs, *FEW, "--metric", "right", "--fall", "0.1"]) == 0
    assert "these runs differ by more than noise seldom does: are they of one version?" in capsys.readouterr().out


def test_lower_is_better_falls_upwards_and_clusters_are_drawn_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(5)
    runs = [
        write_report(tmp_path / f"{number}.json", {"errors": [rng.gauss(3, 1) for _ in range(40)]}, **more)
        for number, more in enumerate([{"lower_is_better": ["errors"]}] * 2)
    ]
    assert main(["prove", *runs, *FEW, "--metric", "errors", "--fall", "5"]) == 0
    rows = table(capsys.readouterr().out)
    assert rows["fall of 5"] == ["20", "20", "0"], "a metric without a worst value falls by as much in every case"


@pytest.mark.parametrize(
    ("means", "suites", "options", "code", "expected"),
    [
        ((0.8,), ("s",), (), 2, "found one run, expected two or more of the same version"),
        ((0.8, 0.8), ("s", "t"), (), 2, "the runs have no suite in common"),
        ((1.0, 1.0), ("s", "s"), (), 0, "right: all runs are equal, as answers of a cache are"),
        ((0.8, 0.8), ("s", "s"), ("--metric", "wrong"), 2, "unknown metric 'wrong'"),
        ((0.8, 0.8), ("s", "s"), ("--fall", "-1"), 2, "--fall"),
    ],
)
def test_what_says_nothing_is_named(  # one row per reason
    means: tuple[float, ...],
    suites: tuple[str, ...],
    options: tuple[str, ...],
    code: int,
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = [
        write_report(tmp_path / f"{number}.json", {"right": [mean] * 3 if mean == 1 else [0.0, 1.0, mean]}, suite=suite)
        for number, (mean, suite) in enumerate(zip(means, suites, strict=True))
    ]
    try:
        assert main(["prove", *runs, *FEW, *options]) == code
    except SystemExit as stop:
        assert stop.code == code  # noqa: PT017 (argparse exits for an option, and other rows return)
    out, error = capsys.readouterr()
    assert expected in out + error
