"""``llmeval power``: cases, clusters and repeats that find a drop."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from test_cli_compare import write_report

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.baselines import ScoreFile, fingerprint
from pytest_llmeval.baselines._comparable import Comparable
from pytest_llmeval.baselines._scores import Approval, Cases, SuiteScores
from pytest_llmeval.cli import main
from pytest_llmeval.numbers import CaseStatistics
from pytest_llmeval.suites import SuiteKey

SIZE = 40


def scores(seed: int, size: int = SIZE) -> list[float]:
    return [float(each) for each in np.random.default_rng(seed).integers(0, 2, size)]


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_suite()
    return "s.eval.yaml"


def write_suite(**top: Any) -> None:
    cases = [{"id": str(n), "expected": "x", "prediction": "x", "labels": {"talk": n // 4}} for n in range(SIZE)]
    data = {"evaluators": [{"text": {"metrics": ["exact_match"]}}], "cases": cases, **top}
    Path("s.eval.yaml").write_text(json.dumps(data), encoding="utf-8")


def report(name: str, column: Sequence[float], repeats: Sequence[Sequence[float]] = ()) -> str:
    path = write_report(Path(name), {"exact_match": column})
    if repeats:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        for case, each in zip(data["suites"][0]["cases"], repeats, strict=True):
            case["details"] = {"repeats": {"spread": {"exact_match": {"scores": each}}}}
        Path(path).write_text(json.dumps(data), encoding="utf-8")
    return path


def approve(column: Sequence[float]) -> None:
    """Write what an approval of these scores leaves behind."""
    cases = [Case(str(n), expected="x", prediction="x" if each else "y") for n, each in enumerate(column)]
    records = score(get_evaluator("text", metrics=["exact_match"]), cases, confidence=None).records
    lines = "".join(f"{line}\n" for line in CaseStatistics.from_records(records).to_lines())
    folder = Path("__llmeval__")
    folder.mkdir()
    (folder / "s.cases.jsonl").write_text(lines, encoding="utf-8")
    made = SuiteScores(
        "s.eval.yaml",
        "",
        "",
        Cases(len(records), fingerprint(lines)),
        Comparable("", "", "", {}),
        {},
        history=(Approval("2026-01-01", None, {}),),
    )
    (folder / "s.scores.json").write_text(made.text, encoding="utf-8")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["power", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_repeats_show_what_more_of_them_bring(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    repeated = [[1.0, 0.0, 1.0, 1.0] for _ in range(SIZE)]
    path = report("r.json", [0.75] * SIZE, repeated)
    lines = printed(capsys, suite, "--report", path, "--drop", "0.2")
    assert lines[0] == "s (s.eval.yaml): 40 cases"
    assert lines[2] == "exact_match: repeats of r.json; a change is taken to move all cases alike"
    assert lines[3] == "this suite finds a drop of 0.3231 in 80 of 100 runs (95% confidence)"
    assert lines[4].split() == ["drop", "chance", "cases", "x", "1", "cases", "x", "3", "cases", "x", "10"]
    assert lines[5].split() == ["0.2", "0.3976", "########", "101", "36", "13"]
    assert lines[6] == "twice the cases: 0.2249; twice the repeats: 0.2285"
    assert lines[7] == "cases and repeats pay alike, as long as a change moves all cases alike"
    assert main(["--json", "power", suite, "--report", path, "--drop", "0.2", "--drop", "5"]) == 0
    (plan,) = json.loads(capsys.readouterr().out)["result"]["plans"]
    assert plan["detectable"] == pytest.approx(0.3231, abs=1e-4)
    assert plan["drops"] == [{"drop": 0.2, "chance": pytest.approx(0.3976, abs=1e-4), "cases": 101}]


def test_two_runs_with_repeats_tell_cases_from_repeats(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    repeated = [[1.0, 0.0] for _ in range(SIZE)]
    paths = [report(f"{seed}.json", scores(seed), repeated) for seed in (1, 2)]
    lines = printed(capsys, suite, "--report", paths[0], "--report", paths[1])
    assert lines[2] == "exact_match: differences of 40 cases between 1.json and 2.json"
    assert lines[-1].startswith("more cases pay: no number of repeats finds less than")


def test_a_single_run_without_repeats_gives_a_bound(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    column = scores(1)
    path = report("r.json", column)
    lines = printed(capsys, suite, "--report", path, "--drop", "0.1")
    assert "scores of r.json, an upper bound" in lines[2]
    needed = 2 * np.var(column, ddof=1) * (1.959964 + 0.841621) ** 2 / 0.1**2
    # Falls of right answers leave fewer to change by luck.
    assert 0.95 * needed < int(lines[5].split()[-1]) < needed
    assert lines[6].endswith("what repeats bring is not known without --within or a --report of repeats")


def test_the_approved_run_is_one_of_the_runs(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    approve(scores(1))
    assert "scores of approved run" in printed(capsys, suite)[2]
    lines = printed(capsys, suite, "--report", report("r.json", scores(2)))
    assert lines[2] == "exact_match: differences of 40 cases between approved run and r.json"


def test_a_gate_says_what_is_tested(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    gate = {"metric": "exact_match", "max_drop": 0.05, "confidence": 0.9, "cluster_by": "talk"}
    write_suite(gates=[gate])
    lines = printed(capsys, suite, "--report", report("r.json", scores(1)), "--drop", "0.05", "--drop", "0.15")
    assert lines[3].endswith("in 80 of 100 runs (90% confidence, in clusters of 4)")
    assert lines[4].split() == ["drop", "chance", "cases", "(clusters)"]
    assert lines[5].split()[-1] == "tolerated"
    cases, clusters = lines[6].split()[-2:]
    assert clusters == f"({-(-int(cases) // 4)})"
    write_suite(gates=[{**gate, "rule": "non_inferiority"}])
    lines = printed(capsys, suite, "--report", "r.json", "--drop", "0.05")
    assert lines[3].startswith("an equally good run meets a max_drop of ")
    assert lines[4].split()[0] == "max_drop"


def test_a_gate_for_many_runs_says_what_these_find(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_suite(gates=[{"metric": "exact_match", "max_drop": 0.05, "rule": "anytime"}])
    path = report("r.json", scores(1))
    lines = printed(capsys, suite, "--report", path, "--drop", "0.05", "--drop", "0.35", "--plot", "p.svg")
    assert lines[3].startswith("this suite finds a drop of 0.")
    assert lines[3].endswith(
        "in 80 of 100 histories, within 10 runs that have it, after 9 equally good ones (95% confidence)"
    )
    assert lines[4].split() == ["drop", "1", "run", "3", "runs", "10", "runs", "cases"]
    assert lines[5].split()[-1] == "tolerated"
    once, thrice, often = map(float, lines[6].split()[1:4])
    assert once < thrice < often
    assert Path("p.svg").exists()


def test_a_one_sided_gate_finds_smaller_drops(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = report("r.json", scores(1))
    needed = []
    for alternative in ("two_sided", "less"):
        write_suite(gates=[{"metric": "exact_match", "max_drop": 0.0, "alternative": alternative}])
        needed.append(int(printed(capsys, suite, "--report", path, "--drop", "0.1")[5].split()[-1]))
    assert needed[1] == pytest.approx(needed[0] * (1.644854 + 0.841621) ** 2 / (1.959964 + 0.841621) ** 2, abs=2)


def test_clusters_of_like_cases_need_more_cases(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    alike = [each for each in scores(3, SIZE // 4) for _ in range(4)]
    path = report("r.json", alike)
    alone = printed(capsys, suite, "--report", path, "--drop", "0.1")[5].split()[-1]
    together = printed(capsys, suite, "--report", path, "--drop", "0.1", "--cluster-by", "talk")[5].split()[-2]
    assert int(together) > 3 * int(alone)


def test_stated_deviations_need_no_run(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, suite, "--within", "0.3", "--between", "0.1", "--drop", "0.05")
    assert lines[2] == "any metric: as stated"
    assert lines[5].split()[-3:] == ["599", "223", "91"]
    assert lines[-1] == "more cases pay: no number of repeats finds less than 0.0457"


def test_the_plot_is_a_picture_with_three_curves_for_each_metric(suite: str) -> None:
    assert main(["power", suite, "--within", "0.3", "--plot", "p.svg"]) == 0
    drawn = ElementTree.fromstring(Path("p.svg").read_text(encoding="utf-8"))
    curves = [each for each in drawn.iter("{http://www.w3.org/2000/svg}path") if " L" in each.get("d", "")]
    assert len(curves) == 3
    first = Path("p.svg").read_bytes()
    main(["power", suite, "--within", "0.3", "--plot", "p.svg"])
    assert Path("p.svg").read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "has no approved run: approve one, or pass --report, --within or --between"),
        (["--report", "r.json", "--metric", "exact_mach"], "did you mean exact_match?"),
        (["--report", "r.json", "--cluster-by", "tlak"], "did you mean talk?"),
        (["--report", "other.json"], "found 0 results of s.eval.yaml, expected one"),
        (["--report", "none.json"], "none.json"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    suite: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report("r.json", scores(1))
    write_report(Path("other.json"), {"exact_match": scores(1)}, suite="other")
    assert main(["power", suite, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_report_of_several_systems_names_the_one_to_plan(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(report("r.json", scores(1)))
    data = json.loads(path.read_text(encoding="utf-8"))
    alone = data["suites"][0]
    data["suites"] = [{**alone, "suite": f"s[{name}]", "variant": name} for name in ("small", "large")]
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["power", suite, "--report", "r.json"]) == 2
    assert "found 2 results of s.eval.yaml, expected one (name a system: FILE#NAME)" in capsys.readouterr().err
    assert main(["power", suite, "--report", "r.json#large"]) == 0
    assert "exact_match" in capsys.readouterr().out
    assert main(["power", suite, "--report", "r.json#lrge"]) == 2
    assert "did you mean large" in capsys.readouterr().err


def test_what_is_not_possible_is_not_promised(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [{"id": str(n), "expected": "x", "prediction": "x"} for n in range(6)]
    write_suite(cases=cases, gates=[{"metric": "exact_match", "max_drop": 0.02}])
    lines = printed(
        capsys, suite, "--report", report("r.json", [1.0] * 4 + [0.0] * 2), "--drop", "0.5", "--drop", "0.9"
    )
    assert lines[3].startswith(
        "not detectable: this suite finds no drop in 80 of 100 runs: the largest possible one is "
    )
    assert "0.6667" in lines[3]
    assert lines[6].split() == ["0.9", "impossible"]


def test_gates_that_are_judged_together_and_groups_count(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    gate = {"metric": "exact_match", "max_drop": 0.02}
    path = report("r.json", scores(1))

    def smallest(*gates: dict[str, Any]) -> list[str]:
        cases = [
            {"id": str(n), "expected": "x", "prediction": "x", "labels": {"talk": str(n % 4 // 3)}} for n in range(SIZE)
        ]
        write_suite(cases=cases, gates=list(gates))
        lines = printed(capsys, suite, "--report", path, "--drop", "0.3")
        return [line for line in lines if "80 of 100" in line]

    (alone,) = smallest(gate)
    together = smallest(gate, {"metric": "pass_rate", "max_drop": 0.02})
    assert together[0].endswith("(95% confidence, beside 1 other gate)")
    assert float(together[0].split()[6]) > float(alone.split()[6])
    both = smallest(gate, {**gate, "by": "talk"})
    assert len(both) == 2
    assert both[1].endswith("(95% confidence, smallest of 2 groups, beside 1 other gate)")
    assert both[1].startswith("not detectable")


def test_the_approved_run_of_a_suite_with_systems_is_that_of_its_first_system(
    suite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("new.json").write_text(json.dumps({str(n): "x" for n in range(SIZE)}), encoding="utf-8")
    data = json.loads(Path(suite).read_text(encoding="utf-8"))
    for each in data["cases"]:
        del each["prediction"]
    systems = {name: {"predictions": "new.json"} for name in ("new", "old")}
    Path(suite).write_text(json.dumps({**data, "systems": systems}), encoding="utf-8")
    approve(scores(1))
    target = ScoreFile.of_suite(SuiteKey(suite, suite, variant="new")).path
    Path("__llmeval__/s.scores.json").rename(target)
    Path("__llmeval__/s.cases.jsonl").rename(str(target).replace(".scores.json", ".cases.jsonl"))
    assert printed(capsys, suite)[2].startswith("exact_match: scores of approved run of new, an upper bound")
