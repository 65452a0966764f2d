"""The command ``llmeval gate``: verdicts, exit codes, and what is missing."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from project import ROOT

import pytest_llmeval as ev
from pytest_llmeval.cli import main
from pytest_llmeval.exchange._result_formats import FORMATS
from pytest_llmeval.reports import RunReport

Rows = Iterable[dict[str, Any]]


def scores(values: Sequence[float], metric: str = "accuracy", **more: Any) -> list[dict[str, Any]]:
    return [{"case": f"c{n}", "metric": metric, "score": value, **more} for n, value in enumerate(values)]


GOOD = scores([1] * 36 + [0] * 4)
BAD = scores([1] * 16 + [0] * 24)


@pytest.fixture(autouse=True)
def _in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(name: str, rows: Rows) -> str:
    Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return name


def gate(*arguments: str) -> int:
    return main(["gate", *arguments])


def verdict(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = gate(*arguments, "--json")
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert data["exit_code"] == code
    return data


def test_a_drop_fails_and_the_same_results_pass(capsys: pytest.CaptureFixture[str]) -> None:
    old = written("old.jsonl", GOOD)
    assert gate(old, "--baseline", old) == 0
    assert "cannot tell: accuracy 0.9000 -> 0.9000, a drop of 0.05 (5% of the range) is not ruled out" in (
        capsys.readouterr().out
    )
    assert gate(written("new.jsonl", BAD), "--baseline", old) == 1
    out = capsys.readouterr().out
    assert "worse: drop(accuracy) <= 0: accuracy fell 0.9000 -> 0.4000 (limit 0). 20 cases worse" in out
    assert out.count("accuracy fell 0.9000") == 1
    assert out.splitlines()[-1].startswith("next: ")


def test_lower_is_better_turns_the_question_around(capsys: pytest.CaptureFixture[str]) -> None:
    files = written("old.jsonl", GOOD), written("new.jsonl", BAD)
    assert gate(files[0], "--baseline", files[1], "--lower-is-better", "accuracy") == 1
    assert gate(files[1], "--baseline", files[0], "--lower-is-better", "accuracy") == 0
    assert gate(files[0], "--baseline", files[1], "--lower-is-better", "acuracy") == 2
    assert "did you mean accuracy?" in capsys.readouterr().err


def test_a_suite_file_is_not_read_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.eval.yaml").write_text("suite: s\nevaluators: [text]\ncases: [{id: a}]\n", encoding="utf-8")
    assert gate("s.eval.yaml", "accuracy >= 0.5") == 2
    assert "s.eval.yaml:1:1  found a suite file, expected results of its cases" in capsys.readouterr().err


def test_errors_never_score(capsys: pytest.CaptureFixture[str]) -> None:
    old = written("old.jsonl", GOOD)
    limited = [*GOOD[:-1], {"case": "c39", "error": "rate limit"}]
    data = verdict(capsys, written("new.jsonl", limited), "--baseline", old)
    assert (data["verdict"], data["exit_code"], data["errored"]) == ("cannot tell", 2, 1)
    assert data["suites"][0]["metrics"]["accuracy"]["value"] == 36 / 39
    assert data["why"] == ["no score: 1 case errored"]
    worse = [*BAD[:-1], {"case": "c39", "error": "rate limit"}]
    assert verdict(capsys, written("worse.jsonl", worse), "--baseline", old)["verdict"] == "worse"


@pytest.mark.parametrize("gates", ["accuracy >= 0.8", "mean(accuracy) >= 0.8", "drop(accuracy) <= 0.05"])
def test_an_error_is_no_failure_of_a_gate(gates: str, capsys: pytest.CaptureFixture[str]) -> None:
    old = written("old.jsonl", GOOD)
    limited = written("new.jsonl", [*GOOD[:-1], {"case": "c39", "error": "rate limit"}])
    data = verdict(capsys, limited, "--baseline", old, "--gates", gates)
    assert (data["verdict"], data["exit_code"]) == ("cannot tell", 2)
    assert "no score: 1 case errored" in data["why"]
    worse = written("worse.jsonl", [*BAD[:-1], {"case": "c39", "error": "rate limit"}])
    assert verdict(capsys, worse, "--baseline", old, "--gates", gates)["verdict"] == (
        "worse" if gates.startswith("drop") else "failed"
    )


def test_a_file_of_gates_can_tolerate_errors(capsys: pytest.CaptureFixture[str]) -> None:
    def limited(errors: int) -> str:
        return written("new.jsonl", [*GOOD[:-errors], *scores_of_errors(errors)])

    def scores_of_errors(errors: int) -> Rows:
        return [{"case": row["case"], "error": "rate limit"} for row in GOOD[-errors:]]

    Path("gates.yaml").write_text("- {metric: accuracy, min: 0.8, max_errors: 2}\n", encoding="utf-8")
    assert verdict(capsys, limited(2), "--gates", "gates.yaml")["exit_code"] == 0
    assert verdict(capsys, limited(3), "--gates", "gates.yaml")["exit_code"] == 2
    assert verdict(capsys, limited(2), "--gates", "gates.yaml", "accuracy >= 0.5")["exit_code"] == 2


def test_power_is_computed_from_the_cases_that_have_scores(capsys: pytest.CaptureFixture[str]) -> None:
    old = written("old.jsonl", GOOD)
    limited = written("new.jsonl", [*GOOD[:-1], {"case": "c39", "error": "rate limit"}])
    data = verdict(capsys, limited, "--baseline", old, "--power", "0.3")
    assert data["notes"] == [
        "power: a difference of 0.3 in accuracy is found in 80 of 100 runs by the 39 cases that there are"
    ]
    data = verdict(capsys, written("arms.jsonl", arms(3, 12, 0)), "--power", "0.3")
    assert data["notes"][1].startswith("power: a difference of 0.3 in score of with needs ")
    assert data["notes"][0].endswith("12: both arms always pass: proves nothing ('e3', 'e4', 'e5', 'e6', 'e7', ...)")


def test_what_is_missing_is_counted_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    old = written("old.jsonl", [*GOOD, *scores([1] * 40, "tone")])
    half = [*GOOD[2:], *scores([1] * 40, "tone")[3:]]
    data = verdict(capsys, written("new.jsonl", half), "--baseline", old)
    assert (data["verdict"], data["errored"]) == ("cannot tell", 1)
    assert data["missing"] == ["no result for 2 of 40 cases: 'c0', 'c1'"]
    assert "run what is missing" in data["next"]

    Path("ids.txt").write_text("c0\nzebra\n", encoding="utf-8")
    data = verdict(capsys, old, "--gates", "accuracy >= 0.5", "--expect", "ids.txt")
    assert data["missing"] == ["no result for 1 of 41 cases: 'zebra'"]
    twice = written("twice.jsonl", [*GOOD, *({**row, "repeat": 2} for row in GOOD)])
    data = verdict(capsys, written("once.jsonl", GOOD), "--gates", "accuracy >= 0.5", "--expect", twice)
    assert data["exit_code"] == 2
    assert data["missing"][0].startswith("found 1 of 2 repeats for 40 of 40 cases: 'c0', ")
    other = written("other.jsonl", [{**row, "suite": "other"} for row in GOOD])
    data = verdict(capsys, other, "--gates", "accuracy >= 0.5", "--expect", "ids.txt")
    assert data["missing"] == ["no result for 1 of 41 cases: 'zebra'"]
    data = verdict(capsys, twice, "--gates", "accuracy >= 0.5", "--expect", other)
    assert data["missing"] == ["no result of the suite 'other'"]


def test_what_was_not_measured_is_not_accepted_as_undecided() -> None:
    old, half = written("old.jsonl", GOOD), written("half.jsonl", GOOD[:20])
    broken = written("broken.jsonl", [{"case": row["case"], "error": "rate limit"} for row in GOOD])
    for results in (half, broken):
        assert gate(results, "--baseline", old, "--undecided", "pass") == 2
        assert gate(results, "--baseline", old, "--undecided", "fail") == 1
        with pytest.raises(AssertionError, match="cannot tell: "):
            ev.gate(results, baseline=old, undecided="pass")


def test_too_few_cases_are_undecided_and_say_how_many_more(capsys: pytest.CaptureFixture[str]) -> None:
    few = written("few.jsonl", GOOD[:4])
    assert gate(few, "--baseline", few) == 2
    assert "cannot tell: drop(accuracy) <= 0: 4 cases. 31 more would be enough" in capsys.readouterr().out
    assert gate(few, "--baseline", few, "--undecided", "pass") == 0
    assert gate(few, "--baseline", few, "--undecided", "fail") == 1


def test_gates_stand_in_a_file_or_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    new = written("new.jsonl", GOOD)
    assert gate(new, "--gates", "accuracy >= 0.8", "mean(accuracy) >= 0.8") == 0
    assert gate(new, "--gates", "accuracy >= 0.95") == 1
    Path("gates.yaml").write_text("- accuracy >= 0.8\n- acuracy >= 0.7\n", encoding="utf-8")
    assert gate(new, "--gates", "gates.yaml") == 2
    assert "gates.yaml:2:3  gates[1]: unknown metric acuracy" in capsys.readouterr().err
    Path("gates.yaml").write_text("group_by: [topic]\ncases: []\n", encoding="utf-8")
    assert gate(new, "--gates", "gates.yaml", "accuracy >= 0.8") == 2
    assert "gates.yaml:2:1  cases: found cases, expected none: results decide it" in capsys.readouterr().err


def test_results_are_approved_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    new = written("new.jsonl", GOOD)
    assert gate(new) == 2
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "accuracy 0.9000 (0.7695..0.9604), 40 cases; a drop of 0.1689 would be found in 80 of 100 runs",
        "cannot tell: nothing to compare with yet",
        "next: make these results the baseline: llmeval gate new.jsonl --snapshot-update",
    ]
    assert gate(new, "--undecided", "pass") == 2
    assert gate(new, "--snapshot-update") == 0
    assert "passed: the results are approved" in capsys.readouterr().out
    assert Path("__llmeval__/results.scores.json").exists()
    assert gate(new) == 0
    assert gate(written("bad.jsonl", BAD)) == 1
    assert "accuracy fell 0.9000 -> 0.4000" in capsys.readouterr().out
    passing = next(number for number, row in enumerate(GOOD) if row["score"] == 1)
    unlucky = [{**row, "score": 0.0} if number == passing else row for number, row in enumerate(GOOD)]
    assert gate(written("unlucky.jsonl", unlucky)) == 0  # the question is whether a drop is significant
    assert "cannot tell: accuracy 0.9000 -> 0.8750" in capsys.readouterr().out
    half = written("half.jsonl", GOOD[2:])
    data = verdict(capsys, half)
    assert (data["verdict"], data["exit_code"]) == ("cannot tell", 2)
    assert "no result for 2 of 40 cases: 'c0', 'c1'" in data["why"]
    assert data["next"].startswith("run what is missing")
    assert gate(half, "--undecided", "pass") == 2


def test_a_fall_that_is_approved_names_the_option_that_accepts_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(written("new.jsonl", GOOD), "--snapshot-update") == 0
    bad = written("bad.jsonl", BAD)
    for options in (["--snapshot-update"], []):  # approving it and judging it again have one verdict
        assert gate(bad, *options) == 1
        last = capsys.readouterr().out.splitlines()[-2]
        assert last.startswith("worse: drift(accuracy) <= 0: accuracy fell 0.9000 -> 0.4000 (limit 0). 20 cases worse")
        assert last.endswith("below 0.0001; llmeval gate bad.jsonl --snapshot-update --snapshot-anchor accepts it")
    assert gate(bad, "--snapshot-update", "--snapshot-anchor") == 0
    assert gate(bad) == 2  # 40 cases with this score are too few to find a drop from there


@pytest.mark.parametrize("demand", ["gain(accuracy) >= 0.02", "gates: [{metric: accuracy, min_gain: 0.02}]"])
@pytest.mark.parametrize("approved", [False, True], ids=["beside a file", "beside approved results"])
def test_a_gain_over_a_baseline_can_be_demanded(
    demand: str, approved: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = written("old.jsonl", BAD), written("new.jsonl", GOOD)
    if demand.startswith("gates"):
        Path("g.yaml").write_text(demand, encoding="utf-8")
        demand = "g.yaml"
    against = [] if approved else ["--baseline", old]
    if approved:
        assert gate(old, "--gates", demand, "--snapshot-update") == 0
    capsys.readouterr()
    assert gate(new, "--gates", demand, *against) == 0
    assert "\nbetter: accuracy 0.4000 -> 0.9000, a rise" in capsys.readouterr().out
    assert gate(old, "--gates", demand, *against) == 1
    assert "failed: gain(accuracy) >= 0.02: accuracy 0.4000 -> 0.4000" in capsys.readouterr().out


def test_what_cannot_be_judged_is_exit_code_2_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(written("empty.jsonl", []), "--gates", "accuracy >= 0.8") == 2
    assert "empty.jsonl  found an empty file" in capsys.readouterr().err
    other = written("other.jsonl", [{**row, "signature": "v2"} for row in GOOD])
    assert gate(other, "--baseline", written("old.jsonl", GOOD)) == 2
    assert "accuracy: computed as 'v2', in the baseline as '': not comparable" in capsys.readouterr().err
    assert gate("old.jsonl", "other.jsonl", "--gates", "accuracy >= 0.8") == 2
    assert "found case 'c0', metric 'accuracy', repeat 1, expected it once: old.jsonl has it" in capsys.readouterr().err
    assert gate("old.jsonl", "--baseline", "old.jsonl", "--snapshot-update") == 2
    assert "found --snapshot-update with --baseline, expected one of them" in capsys.readouterr().err
    errors = written("errors.jsonl", [{"case": "c0", "error": "crash"}])
    assert gate(errors, "--baseline", errors) == 2
    assert "nothing is measured: there are errors only, such as 'crash'" in capsys.readouterr().err
    data = verdict(capsys, errors, "--baseline", written("one.jsonl", GOOD[:1]))
    assert (data["exit_code"], data["errored"]) == (2, 1)


def test_any_names_can_be_judged(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = ["pass_rate", "judge_cost_usd", "mean(f1)", "Correctness [GEval]", "f1 >= 2", "<b>|`x`", "名"]
    cases = ["tests/a.py::test_b[1]", "<b>", "x y", "gate"]
    rows = [{"case": case, "metric": metric, "score": 1, "suite": "../../a b"} for case in cases for metric in metrics]
    files = written("odd.jsonl", rows), "--report", "page.html", "--comment", "c.md"
    data = verdict(capsys, *files, "--snapshot-update")
    assert data["verdict"] == "passed"
    assert list(data["suites"][0]["metrics"]) == [*(f"reported.{name}" for name in metrics[:3]), *metrics[3:]]
    assert "<b>" not in Path("c.md").read_text(encoding="utf-8").replace("<br>", "")
    approved = [path.name for path in Path("__llmeval__").iterdir()]
    assert all(name.startswith("a-b-") for name in approved)
    (place,) = {name.partition(".")[0] for name in approved}
    assert main(["history", f"{place}.results"]) == 0
    assert gate(written("id.jsonl", [{"case": "gate[x]", "metric": "m", "score": 1}]), "--gates", "m >= 0") == 2
    assert "found the id 'gate[x]', expected one that does not begin with" in capsys.readouterr().err


def test_the_page_names_every_form_that_is_read() -> None:
    page = (ROOT / "docs" / "keep-your-runner.md").read_text(encoding="utf-8")
    assert [name for name in FORMATS if f"`{name}`" not in page] == []


def test_the_reports_of_runs_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    files = written("new.jsonl", BAD), written("old.jsonl", GOOD)
    code = gate(files[0], "--baseline", files[1], "--report", "page.html", "--report", "r.json", "--comment", "c.md")
    assert code == 1
    assert "written to page.html" in capsys.readouterr().out
    assert "accuracy fell 0.9000" in Path("c.md").read_text(encoding="utf-8")
    report = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert report["suites"][0]["changes"]["against"] == "baseline"
    assert "accuracy fell 0.9000" in Path("page.html").read_text(encoding="utf-8")
    limited = written("limited.jsonl", [*GOOD[:-1], {"case": "c39", "error": "rate limit"}])
    assert gate(limited, "--baseline", files[1], "--report", "r.json", "--comment", "c.md") == 2
    assert "## Evaluation: **Check before you merge**" in Path("c.md").read_text(encoding="utf-8")
    assert RunReport.read(Path("r.json")).verdict == "undecided"


def test_a_suite_reads_results(capsys: pytest.CaptureFixture[str]) -> None:
    arms = [{**row, "system": system} for system, rows in (("a", GOOD), ("b", BAD)) for row in rows]
    written("new.jsonl", arms)
    suite = {
        "source": {"format": "results", "path": "new.jsonl"},
        "systems": {name: {"predictions": name} for name in "ab"},
        "evaluators": [{"recorded": {"metrics": ["accuracy"]}}],
        "gates": [{"metric": "accuracy", "min": 0.8, "system": "a"}],
    }
    Path("s.eval.json").write_text(json.dumps(suite), encoding="utf-8")
    assert main(["score", "s.eval.json"]) == 0
    assert main(["schema", "results"]) == 0
    assert '"title": "Result of a case"' in capsys.readouterr().out
    del suite["systems"]["b"], suite["gates"]
    suite["systems"]["c"] = {"predictions": "c"}
    Path("s.eval.json").write_text(json.dumps(suite), encoding="utf-8")
    assert main(["score", "s.eval.json"]) == 1
    assert "unknown system c" in capsys.readouterr().err


RECORDS = {
    "mcp-csharp-create": (1, 1, 1),
    "mcp-csharp-publish": (2, 1, 0),
    "mcp-csharp-test": (2, 1, 0),
    "configuring-opentelemetry-dotnet": (2, 1, 0),
    "dotnet-webapi": (3, 0, 0),
    "minimal-api-file-upload": (2, 1, 0),
    "technology-selection": (5, 1, 0),
    "convert-blazor-server-to-webapp": (1, 0, 0),
    "code-testing-agent": (1, 4, 0),
    "coverage-analysis": (4, 1, 0),
    "find-untested-sources": (3, 2, 0),
    "grade-tests": (4, 1, 0),
    "generate-testability-wrappers": (4, 0, 1),
}
"""Wins, ties and losses of evals with a skill against those without: dotnet/skills, pull requests 965 and 971."""

AIRLINE = (
    "00000010000110000010100010100101001110111011110011",
    "01000100000011000010110010010010001111101110001111",
    "00100001000011010010110010110000000111100010101011",
    "00000000000010011110110010000011001111101110010011",
)
"""Rewards of one agent in 50 tasks, four times: sierra-research/tau-bench, gpt-4o-airline.json, commit 59a200c6."""


def arms(wins: int, ties: int, losses: int) -> list[dict[str, Any]]:
    pairs = [(1, 0)] * wins + [(1, 1)] * ties + [(0, 1)] * losses
    return [
        {"case": f"e{n}", "metric": "score", "system": system, "score": score}
        for n, pair in enumerate(pairs)
        for system, score in zip(("with", "without"), pair, strict=True)
    ]


def test_records_of_skills_are_undecided_and_say_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    for skill, record in RECORDS.items():
        data = verdict(capsys, written("arms.jsonl", arms(*record)), "--gates", "lift(score) >= 0")
        assert (data["verdict"], data["exit_code"]) == ("cannot tell", 2), skill
        said = "is observed is not above 0" if record == (1, 1, 1) else "more would make the observed gain"
        assert said in data["why"][0], skill
        (cases,) = data["cases"].values()
        assert [len(cases[name]) for name in ("discriminates", "always_passes")] == [record[0] + record[2], record[1]]
    assert "33 more would make the observed gain significant" in data["why"][0]


def test_a_lift_is_established_or_refuted(capsys: pytest.CaptureFixture[str]) -> None:
    better, worse = written("better.jsonl", arms(18, 6, 0)), written("worse.jsonl", arms(0, 6, 18))
    assert gate(better) == 0
    assert "score, with against without: 18 of 24 cases discriminate; 6: both arms always pass: proves nothing" in (
        capsys.readouterr().out
    )
    assert gate(worse) == 1
    assert "failed: with: lift(score) >= 0, against without: a gain of 0 is ruled out" in capsys.readouterr().out
    assert gate(better, "--min-cases", "19") == 2
    assert "score: 18 cases could tell with against without, expected 19" in capsys.readouterr().out
    alone = written("alone.jsonl", arms(18, 6, 0)[::2])
    assert gate(alone, "--baseline", better) == 2
    assert "missing: no result of without, which 'results' had\n" in capsys.readouterr().out
    assert gate(alone, "--baseline", alone) == 0
    missing = written("missing.jsonl", arms(18, 6, 0)[:-1])
    assert gate(missing) == 2
    assert "missing: no result of without for 1 of 24 cases: 'e23'" in capsys.readouterr().out


def test_systems_are_arms_only_if_they_are_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    def systems(*names: str) -> str:
        return written("systems.jsonl", [{**row, "system": names[row["system"] == "with"]} for row in arms(18, 6, 0)])

    for names in (("prompt 0", "prompt 1"), ("prompt 1", "prompt 0"), ("without_a", "with_b")):
        assert gate(systems(*names)) == 2
        out = capsys.readouterr().out
        assert "cannot tell: nothing to compare with yet" in out
        assert "proves nothing" not in out
        assert f"score[{names[1]}] 1.0000 (0.8620..1.0000), 24 cases: they are all alike" in out
        assert f"score[{names[0]}] 0.2500 (0.1200..0.4490), 24 cases; too few to find any drop" in out
    for base in ("without", "without_skill", "without plugin"):
        assert gate(systems(base, base.replace("without", "with"))) == 0
        assert f"score, {base.replace('without', 'with')} against {base}: 18 of 24" in capsys.readouterr().out


def test_each_sentence_about_one_of_several_systems_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    def systems(name: str, good: int) -> str:
        values = {"fast": scores([1] * good + [0] * (40 - good)), "slow": scores([1] * 30 + [0] * 10)}
        return written(name, [{**row, "system": system} for system, rows in values.items() for row in rows])

    assert gate(systems("new.jsonl", 29), "--baseline", systems("old.jsonl", 30)) == 0
    out = capsys.readouterr().out
    assert "cannot tell: fast: accuracy 0.7500 -> 0.7250 (1 case worse, 0 better), a drop of 0.05" in out
    assert out.count("0.7500 -> 0.7250") == 1
    assert "cannot tell: slow: accuracy 0.7500 -> 0.7500, a drop of 0.05" in out


def test_a_single_case_says_nothing_about_drops_that_would_be_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(written("one.jsonl", scores([1]))) == 2
    assert "1 case: they are all alike, so that which drop would be found is not known" in capsys.readouterr().out
    assert gate(written("three.jsonl", scores([1, 0, 0]))) == 2
    assert "3 cases; too few to find any drop in 80 of 100 runs" in capsys.readouterr().out


def test_rows_that_promptfoo_numbers_are_known_by_their_content(capsys: pytest.CaptureFixture[str]) -> None:
    def run(name: str, passed: Sequence[tuple[str, bool]]) -> str:
        results = [
            {
                "promptIdx": 0,
                "testCase": {"description": f"Row #{place}", "vars": {"q": question}},
                "vars": {"q": question},
                "provider": {"id": "shop"},
                "score": int(ok),
                "success": ok,
                "namedScores": {},
            }
            for place, (question, ok) in enumerate(passed, 1)
        ]
        data = {"results": {"results": results, "prompts": []}, "config": {"description": "shop"}}
        Path(name).write_text(json.dumps(data), encoding="utf-8")
        return name

    old = run("old.json", [(f"question {n}", n >= 10) for n in range(60)])
    fell = [(f"question {n}", n >= 18) for n in range(60)]
    for name, answers in (("fell.json", fell), ("shifted.json", [("a new question", True), *fell])):
        data = verdict(capsys, run(name, answers), "--baseline", old)
        assert (data["verdict"], data["exit_code"]) == ("worse", 1)
        assert 'score fell 0.8333 -> 0.7000 (limit 0). 8 cases worse: {"q": "question 10"}' in data["why"][0]


def test_runs_of_one_agent_never_differ(capsys: pytest.CaptureFixture[str]) -> None:
    def run(name: str, *trials: int) -> str:
        rows = [
            {"case": f"task {n}", "metric": "reward", "score": int(reward), "repeat": place}
            for place, trial in enumerate(trials, 1)
            for n, reward in enumerate(AIRLINE[trial])
        ]
        return written(name, rows)

    for first in range(4):
        for second in range(first):
            data = verdict(capsys, run("new.jsonl", first), "--baseline", run("old.jsonl", second))
            assert data["verdict"] == "cannot tell"
            assert "drop(reward) <= 0: 50 cases. " in data["why"][0]
            assert "more would be enough to find a drop of" in data["why"][0]
    data = verdict(capsys, run("new.jsonl", 0, 1), "--baseline", run("old.jsonl", 2, 3), "--power", "0.1")
    assert data["verdict"] != "failed"
    assert "50 paired cases" in data["suites"][0]["gates"][0]["reason"]  # repeats are no cases
    assert data["notes"][0].startswith("power: a difference of 0.1 in reward needs ")
    assert "times as often" in data["notes"][0]


def test_a_json_report_of_our_own_is_a_file_of_results(capsys: pytest.CaptureFixture[str]) -> None:
    for name, right in (("old", 36), ("new", 16)):
        cases = [{"id": f"c{n}", "expected": {"a": 1}, "prediction": {"a": 1} if n < right else {}} for n in range(40)]
        Path("s.eval.yaml").write_text(f"suite: s\nevaluators: [fields]\ncases: {json.dumps(cases)}\n", "utf-8")
        assert main(["score", "s.eval.yaml", "--report", f"{name}.json"]) == 0
    capsys.readouterr()
    assert gate("old.json", "--baseline", "old.json") == 0
    capsys.readouterr()
    data = verdict(capsys, "new.json", "--baseline", "old.json")
    gates = {each["gate"]: each["outcome"] for each in data["suites"][0]["gates"]}
    assert (data["verdict"], data["suites"][0]["cases"]) == ("worse", 40)
    assert gates["drop(missing_fields) <= 0"] == gates["drop(fields_exact) <= 0"] == "failed"
    assert verdict(capsys, "old.json", "--baseline", "new.json")["verdict"] == "better"
    report = json.loads(Path("new.json").read_text(encoding="utf-8"))
    report["suites"][0]["cases"][3] |= {"outcome": "errored", "reason": "rate limit"}
    report["suites"][0]["cases"][4]["metrics"]["missing_fields"] = None
    Path("errors.json").write_text(json.dumps(report), encoding="utf-8")
    data = verdict(capsys, "errors.json", "--gates", "fields_exact >= 0.1", "--format", "llmeval")
    assert (data["errored"], data["suites"][0]["metrics"]["fields_exact"]["value"]) == (1, 15 / 39)
    report["suites"][0]["cases"][0]["metrics"]["missing_fields"] = "0"
    Path("errors.json").write_text(json.dumps(report), encoding="utf-8")
    assert gate("errors.json", "--gates", "fields_exact >= 0.1") == 2
    assert "suites[0].cases[0].metrics.missing_fields" in capsys.readouterr().err


def test_a_column_is_mapped_to_a_label(capsys: pytest.CaptureFixture[str]) -> None:
    for name, wrong in (("old.csv", 4), ("new.csv", 24)):
        lines = [f"q{n},{int(n >= wrong)},{'billing' if n < 24 else 'orders'}" for n in range(40)]
        Path(name).write_text("\n".join(["id,correct,topic", *lines]), encoding="utf-8")
    assert gate("new.csv", "--baseline", "old.csv", "--map", "id=case,correct=score,topic=label.topic") == 1
    assert "20 of 24 with topic=billing" in " ".join(capsys.readouterr().out.split())
