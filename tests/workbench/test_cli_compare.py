"""``llmeval compare``: two JSON reports against each other."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.cli import main


def write_report(
    path: Path,
    scores: Mapping[str, Sequence[float | None]],
    suite: str = "s",
    start: int = 0,
    **more: Any,
) -> str:
    """Write a report whose cases have these scores."""
    size = len(next(iter(scores.values())))
    nothing = {"value": None, "mean": None, "low": None, "high": None}
    counts = {"scored": size, "undefined": 0, "errored": 0, "missing": 0, "signature": ""}
    report = {
        "schema_version": 1,
        "run": {},
        "suites": [
            {
                "suite": suite,
                "path": f"{suite}.eval.yaml",
                "counts": {"total": size},
                "metrics": {name: {**nothing, **counts} for name in scores},
                **more,
                "groups": {},
                "gates": [],
                "cases": [
                    {
                        "id": str(number + start),
                        "outcome": "passed",
                        "metrics": {name: column[number] for name, column in scores.items()},
                        "details": {},
                        "reason": None,
                        "duration_s": 0.1,
                    }
                    for number in range(size)
                ],
            }
        ],
    }
    path.write_text(json.dumps(report), encoding="utf-8")
    return str(path)


GOOD, BAD = [1.0] * 40, [0.0] * 15 + [1.0] * 25


def test_equal_reports_show_no_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = write_report(tmp_path / "a.json", {"f1": GOOD})
    assert main(["compare", report, report, "--max-drop", "0"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == f"run {report} against baseline {report}"
    assert lines[0] == "s (s.eval.yaml): 40 cases in both reports; means of case scores"
    assert lines[2].split() == [
        "f1",
        "1.0000",
        "1.0000",
        "0.0000",
        "0.0000..0.0000",
        "1.0000",
        "40",
        "n/a",
        "not",
        "significant",
    ]
    assert lines[4] == "no case changed, too few to estimate how much the difference varies: all metrics"


def test_the_baseline_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new, old = write_report(tmp_path / "a.json", {"f1": BAD}), write_report(tmp_path / "b.json", {"f1": GOOD})
    printed = []
    for arguments in (["--baseline", old, new], [new, "--baseline", old], [new, old]):
        assert main(["compare", *arguments, "--max-drop", "0.1"]) == 1
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] == printed[2]
    assert printed[0].startswith(f"run {new} against baseline {old}\n")
    for number, wrong in (("one", [new]), ("three", ["--baseline", old, new, old])):
        assert main(["compare", *wrong]) == 2
        expected = f"found {number} reports, expected two: llmeval compare --baseline OLD NEW"
        assert expected in capsys.readouterr().err


def test_a_significant_drop_fails_only_if_a_limit_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, there = write_report(tmp_path / "a.json", {"f1": BAD}), write_report(tmp_path / "b.json", {"f1": GOOD})
    assert main(["compare", here, there]) == 0
    assert "-0.3750" in capsys.readouterr().out
    assert main(["compare", here, there, "--max-drop", "0.1"]) == 1
    assert "FAILED  drop(f1) <= 0.1  (f1 1.0000 -> 0.6250, drop 0.3750" in capsys.readouterr().out
    assert main(["compare", here, there, "--max-drop", "0.3"]) == 0
    assert main(["compare", there, here, "--max-drop", "0"]) == 0


def test_scores_that_cannot_be_added_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = write_report(tmp_path / "a.json", {"f1": [1.0, 1e308]})
    assert main(["compare", report, report]) == 2
    message = "suites[0].cases[1].metrics.f1: found the number 1e+308, expected a number of at most 1e+100"
    assert message in capsys.readouterr().err


def test_the_reports_say_which_direction_is_better(tmp_path: Path) -> None:
    low = write_report(tmp_path / "a.json", {"mine": BAD}, lower_is_better=["mine"])
    high = write_report(tmp_path / "b.json", {"mine": GOOD}, lower_is_better=["mine"])
    assert main(["compare", low, high, "--max-drop", "0.1"]) == 0
    assert main(["compare", high, low, "--max-drop", "0.1"]) == 1


def leave_out(report: str, kept: range) -> str:
    """Mark all other cases of a report as not run, as the report of a shard does."""
    path = Path(report)
    data: Any = json.loads(path.read_text(encoding="utf-8"))
    for case in data["suites"][0]["cases"]:
        if int(case["id"]) not in kept:
            case |= {"outcome": "not_run", "metrics": {}}
    path.write_text(json.dumps(data), encoding="utf-8")
    return report


def test_only_cases_that_ran_in_both_reports_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = write_report(tmp_path / "b.json", {"f1": GOOD})
    others = write_report(tmp_path / "a.json", {"f1": BAD}, start=10)
    assert main(["compare", others, whole]) == 0
    out = capsys.readouterr().out
    assert f"30 cases in both reports, 10 only in {others}, 10 only in {whole}; means of case scores" in out
    part = leave_out(write_report(tmp_path / "c.json", {"f1": GOOD}), range(17))
    for reports in ((part, whole), (whole, part)):
        assert main(["compare", *reports, "--max-drop", "0"]) == 0
        out = capsys.readouterr().out
        assert f"s (s.eval.yaml): 17 cases in both reports, 23 only in {whole}; means of case scores" in out
        assert ["pass_rate", "1.0000", "1.0000", "0.0000"] in [line.split()[:4] for line in out.splitlines()]


def test_cases_of_a_cluster_are_compared_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = write_report(tmp_path / "a.json", {"f1": BAD}, clusters={"label": "talk", "count": 5, "design_effects": {}})
    data: Any = json.loads(Path(here).read_text(encoding="utf-8"))
    for number, case in enumerate(data["suites"][0]["cases"]):
        case["cluster"] = str(number // 8)
    Path(here).write_text(json.dumps(data), encoding="utf-8")
    assert main(["compare", here, write_report(tmp_path / "b.json", {"f1": GOOD})]) == 0
    assert "only 2 clusters changed" in capsys.readouterr().out


@pytest.mark.parametrize("limit", [[], ["--max-drop", "0.5"]])
def test_two_halves_of_a_suite_cannot_be_compared(
    limit: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = leave_out(write_report(tmp_path / "a.json", {"f1": GOOD}), range(20))
    there = leave_out(write_report(tmp_path / "b.json", {"f1": GOOD}), range(20, 40))
    assert main(["compare", here, there, *limit]) == 2
    said = capsys.readouterr()
    assert said.err == "s (s.eval.yaml): nothing compared\n"
    assert said.out.splitlines()[1].startswith(
        f"s (s.eval.yaml): 0 cases in both reports, 20 only in {here}, 20 only in {there}"
    )
    empty = write_report(tmp_path / "c.json", {"f1": [None] * 40})
    assert main(["compare", empty, empty, "--metric", "f1", *limit]) == 2


def test_a_metric_that_is_gone_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = write_report(tmp_path / "b.json", {"f1": GOOD, "bleu1": GOOD})
    for here in ({"f1": GOOD}, {"f1": GOOD, "bleu1": [None] * 40}):
        report = write_report(tmp_path / "a.json", here)
        assert main(["compare", report, there, "--max-drop", "0.1"]) == 1
        assert capsys.readouterr().out.count("bleu1: no longer has a value\n") == 1
        assert main(["compare", report, there, "--max-drop", "0.1", "--metric", "f1"]) == 0


def test_a_metric_that_neither_report_has_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, there = write_report(tmp_path / "a.json", {"bleu1": BAD}), write_report(tmp_path / "b.json", {"f1": GOOD})
    assert main(["compare", here, there, "--max-drop", "0.1", "--metric", "blue1"]) == 2
    wanted = "unknown metric blue1, did you mean bleu1?\n"
    assert capsys.readouterr() == ("", wanted)
    assert main(["compare", here, there, "--metric", "pass_rate"]) == 0


def test_suites_of_one_report_only_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = write_report(tmp_path / "a.json", {"f1": GOOD})
    parts = [write_report(tmp_path / f"{name}.json", {"f1": GOOD}, name) for name in ("t", "u")]
    there = joined(tmp_path / "both.json", *parts)
    assert main(["compare", here, there]) == 2
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        f"run {here} against baseline {there}",
        f"s (s.eval.yaml): only in {here}",
        f"t (t.eval.yaml): only in {there}",
        f"u (u.eval.yaml): only in {there}",
    ]
    assert said.err == "the reports have no suite in common\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "a.json:1:"),
        ("[]", "a.json:1:1  found a list of 0, expected a report of --llmeval-report"),
        ('{"schema_version": 7}', "schema_version: found 7, expected 1, the version that this program reads"),
        ('{"schema_version": 1, "suites": [{"suite": 3}]}', "suites[0].suite: found the number 3, expected text"),
    ],
)
def test_what_is_no_report_is_told_with_its_place(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    good = write_report(tmp_path / "b.json", {"f1": GOOD})
    assert main(["compare", str(tmp_path / "a.json"), good]) == 2
    assert message in capsys.readouterr().err
    assert main(["compare", good, str(tmp_path / "absent.json")]) == 2
    for suite in ("s.eval.yaml", "s.eval.json"):
        (tmp_path / suite).write_text('{"suite": "s", "evaluators": ["text"], "cases": []}', encoding="utf-8")
        capsys.readouterr()
        assert main(["compare", good, str(tmp_path / suite)]) == 2
        assert "found a suite file, expected a JSON report, which --llmeval-report=" in capsys.readouterr().err


def test_a_case_that_occurs_twice_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    data: Any = json.loads(Path(write_report(path, {"f1": GOOD})).read_text(encoding="utf-8"))
    data["suites"][0]["cases"][1]["id"] = "0"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["compare", str(path), str(path)]) == 2
    assert "suites[0].cases[1].id: found '0' twice, expected it once" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [["--confidence", "95"], ["--confidence", "x"], ["--max-drop", "-1"], ["--max-drop", "nan"]]
)
def test_wrong_numbers_are_usage_errors(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["compare", "a.json", "b.json", *wrong])
    assert caught.value.code == 2
    assert "expected a number" in capsys.readouterr().err


def joined(path: Path, *reports: str) -> str:
    """Write a report with the suites of several."""
    read = [json.loads(Path(each).read_text(encoding="utf-8")) for each in reports]
    path.write_text(
        json.dumps({**read[0], "suites": [suite for each in read for suite in each["suites"]]}), encoding="utf-8"
    )
    return str(path)


def test_suites_of_different_names_are_compared_if_there_is_one_in_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = write_report(tmp_path / "a.json", {"f1": BAD}, suite="new")
    there = write_report(tmp_path / "b.json", {"f1": GOOD}, suite="old")
    assert main(["compare", here, there]) == 0
    out = capsys.readouterr().out.partition("\n")[2]
    assert out.startswith("new (new.eval.yaml) against old (old.eval.yaml): 40 cases in both reports")
    assert "-0.3750" in out


def test_systems_of_one_report_are_compared_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = write_report(tmp_path / "a.json", {"f1": GOOD}, suite="s[large]", variant="large")
    small = write_report(tmp_path / "b.json", {"f1": BAD}, suite="s[small]", variant="small")
    both = joined(tmp_path / "both.json", large, small)
    assert main(["compare", f"{both}#small", f"{both}#large"]) == 0
    out = capsys.readouterr().out.partition("\n")[2]
    assert out.startswith(
        "s[small] (s[small].eval.yaml) against s[large] (s[large].eval.yaml): 40 cases in both reports"
    )
    assert "-0.3750" in out
    assert main(["compare", f"{both}#smal", f"{both}#large"]) == 2
    assert "unknown system smal, did you mean small?" in capsys.readouterr().err


def test_groups_and_the_cases_that_changed_most_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for name, scores in (("a", [0.0, 0.9, 1.0, 1.0]), ("b", [1.0, 1.0, 1.0, 0.8])):
        path = Path(write_report(tmp_path / f"{name}.json", {"f1": scores}))
        data = json.loads(path.read_text(encoding="utf-8"))
        for number, case in enumerate(data["suites"][0]["cases"]):
            case["labels"] = {"kind": "even" if number % 2 == 0 else "odd"}
        path.write_text(json.dumps(data), encoding="utf-8")
        paths.append(str(path))
    assert main(["compare", *paths, "--by", "kind", "--show", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines[lines.index("kind: even") + 2 :][:1]] == [
        ["f1", "1.0000", "0.5000", "-0.5000"]
    ]
    assert "kind: odd" in lines
    assert lines[-2:] == ["0: f1 1.0000 -> 0.0000", "3: f1 0.8000 -> 1.0000"]
    assert main(["compare", *paths, "--by", "kin"]) == 2
    assert "unknown label kin, did you mean kind?" in capsys.readouterr().err


def test_balanced_accuracies_of_two_languages_have_a_difference_with_its_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rates(hits: int, rejections: int) -> dict[str, Sequence[float | None]]:
        tpr = [1.0] * hits + [0.0] * (60 - hits) + [None] * 20
        tnr = [None] * 60 + [1.0] * rejections + [0.0] * (20 - rejections)
        return {"tpr": tpr, "tnr": tnr, "balanced_accuracy": [None] * 80}

    english = write_report(tmp_path / "en.json", rates(54, 18))
    chinese = write_report(tmp_path / "zh.json", rates(48, 10))
    command = ["compare", chinese, "--baseline", english, "--metric", "balanced_accuracy"]
    assert main([*command, "--max-drop", "0.05"]) == 1
    (line,) = [each for each in capsys.readouterr().out.splitlines() if each.startswith("balanced_accuracy ")]
    _, before, now, difference, interval, *_ = line.split()
    assert (before, now, difference) == ("0.9000", "0.6500", "-0.2500")
    low, high = map(float, interval.split(".."))
    assert -0.45 < low < -0.25 < high < -0.05
