"""``stop: when_decided``: cases run in a random order, until all gates are decided."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from running import WITHOUT_UNUSED, run_python
from scripted_judges import shown_to
from servers import Call, Sent, reply

from pytest_llmeval.reports import RunReport, published

if TYPE_CHECKING:
    from conftest import Project, Ran
    from scripted_judges import Judged

CASES = 120


def answered(wrong: Sequence[int] = (), **more: Any) -> list[dict[str, Any]]:
    """Return cases, of which some are answered wrongly."""
    return [
        {"id": f"c{number}", "expected": "x", "prediction": "y" if number in wrong else "x", **more}
        for number in range(CASES)
    ]


def ran_cases(ran: "Ran", suite: str = "s") -> list[str]:
    return [case["id"] for case in ran.suites[suite]["cases"]]


def essence(ran: "Ran") -> str:
    """Return a report without times, and without what depends on how far workers had run ahead."""
    report = json.loads(json.dumps(ran.report))
    report["run"] = None
    report.pop("money", None)
    for suite in report["suites"]:
        suite.pop("money", None)
        for name in ("ran_ahead", "judge_calls", "answers", "cost_usd"):
            suite["stop"].pop(name)
        (suite.get("usage") or {}).pop("target_latency_s", None)
        (suite.get("usage") or {}).pop("latency_s", None)
        for case in suite["cases"]:
            del case["duration_s"]
    return json.dumps(report, indent=1)


def test_cases_that_are_not_needed_are_counted_and_fail_nothing(project: "Project") -> None:
    project.suite("s.eval.yaml", answered(), stop="when_decided", gates=["exact_match >= 0.5"])
    ran = project.run()
    assert ran.code == 0
    suite = ran.suites["s"]
    stop = suite["stop"]
    assert 0 < stop["cases"] < CASES / 2
    assert stop["cases"] + stop["not_needed"] == suite["counts"]["total"] == CASES
    assert suite["counts"]["not_needed"] == stop["not_needed"]
    assert suite["counts"]["not_run"] == 0
    assert len(suite["cases"]) == suite["counts"]["passed"] == stop["cases"]
    metric = suite["metrics"]["exact_match"]
    assert (metric["scored"], metric["missing"], metric["undefined"]) == (stop["cases"], 0, 0)
    assert ran.gates("s") == {"exact_match >= 0.5": "passed"}
    assert "over all of them it meets >= 0.5, evidence" in suite["gates"][0]["reason"]
    assert f"stopped after {stop['cases']} of {CASES} cases, all gates decided" in ran.text
    assert f"{stop['not_needed']} not needed" in ran.text.splitlines()[-1]
    assert "skipped" not in ran.text.splitlines()[-1]


def test_a_gate_that_is_missed_fails_the_run_early(project: "Project") -> None:
    project.suite("s.eval.yaml", answered(range(0, CASES, 2)), gates=["exact_match >= 0.9"])
    ran = project.run("--llmeval-stop=decided")
    assert ran.code == pytest.ExitCode.TESTS_FAILED
    assert ran.suites["s"]["stop"]["not_needed"] > CASES / 2
    assert "gate FAILED  exact_match >= 0.9  (exact_match is" in ran.text
    assert "over all of them it misses >= 0.9" in ran.text


def test_a_gate_that_is_not_decided_is_judged_by_all_cases_as_ever(project: "Project") -> None:
    wrong = range(0, CASES, 10)
    project.suite("s.eval.yaml", answered(wrong), stop="when_decided", gates=["exact_match >= 0.9"])
    stopping, never = project.run(), project.run("--llmeval-stop=never")
    assert stopping.code == never.code == 0
    assert "stop" not in stopping.suites["s"]
    assert stopping.suites["s"]["gates"] == never.suites["s"]["gates"]
    assert ran_cases(stopping) == ran_cases(never)


def test_workers_change_nothing(project: "Project") -> None:
    gates = ["exact_match >= 0.7", {"metric": "exact_match", "by": "half", "min": 0.6}, "pass_rate >= 0.5"]
    cases = [{**case, "labels": {"half": number % 2}} for number, case in enumerate(answered(range(0, CASES, 20)))]
    project.suite("s.eval.yaml", cases, stop={"confidence": 0.95, "block": 15}, gates=gates)
    serial, parallel = project.run(), project.run(workers=2)
    assert serial.suites["s"]["stop"]["not_needed"] > 0
    assert serial.suites["s"]["stop"]["ran_ahead"] == 0
    assert essence(serial) == essence(parallel)
    assert serial.code == parallel.code


def test_cases_that_always_run_come_first_and_count(project: "Project") -> None:
    cases = answered()
    cases[-1] |= {"always": True, "prediction": "y"}
    cases[-2] |= {"tags": ["critical"]}
    project.suite("s.eval.yaml", cases, stop={"always": ["critical"]}, gates=["exact_match >= 0.5"])
    ran = project.run("-v")
    first = list(ran.verdicts())[:2]
    assert [each.rpartition("::")[2] for each in first] == [f"c{CASES - 2}", f"c{CASES - 1}"]
    assert ran.suites["s"]["stop"]["not_needed"] > 0
    assert {f"c{CASES - 1}", f"c{CASES - 2}"} <= {*ran_cases(ran)}


def test_the_commit_fixes_the_order(project: "Project") -> None:
    project.suite("s.eval.yaml", answered(), stop="when_decided", gates=["exact_match >= 0.5"])
    without = ran_cases(project.run())
    assert without == ran_cases(project.run())
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "s.eval.yaml"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], cwd=project.path, check=True)
    first = ran_cases(project.run())
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "two"], cwd=project.path, check=True)
    second = ran_cases(project.run())
    assert first == sorted(first, key=lambda name: int(name[1:]))  # reports keep the order of the file
    assert len({*map(tuple, (without, first, second))}) == 3


def test_a_drop_is_judged_against_the_baseline_which_complete_runs_write(project: "Project") -> None:
    gates = [{"metric": "exact_match", "max_drop": 0.05}]
    project.suite("s.eval.yaml", answered(), stop="when_decided", snapshot=True, gates=gates)
    approving = project.run("--snapshot-update")
    assert len(ran_cases(approving)) == CASES
    files = {path: path.read_bytes() for path in (project.path / "__llmeval__").iterdir()}
    same = project.run("--llmeval-require-gates")
    assert same.code == 0
    assert same.suites["s"]["stop"]["not_needed"] > 0
    project.suite("s.eval.yaml", answered(range(0, CASES, 2)), stop="when_decided", snapshot=True, gates=gates)
    worse = project.run()
    assert worse.code == pytest.ExitCode.TESTS_FAILED
    assert worse.suites["s"]["stop"]["not_needed"] > 0
    assert "a drop beyond 0.05 is significant" in worse.suites["s"]["gates"][0]["reason"]
    assert files == {path: path.read_bytes() for path in (project.path / "__llmeval__").iterdir()}


def test_without_a_baseline_all_cases_run(project: "Project") -> None:
    gates = [{"metric": "exact_match", "max_drop": 0.05}]
    project.suite("s.eval.yaml", answered(), stop="when_decided", snapshot=True, gates=gates)
    ran = project.run()
    assert ran.code == pytest.ExitCode.TESTS_FAILED
    assert "stop" not in ran.suites["s"]


def test_a_suite_that_cannot_stop_says_why_and_runs_to_its_end(project: "Project") -> None:
    gates = ["exact_match >= 0.5", "p10(f1) >= 0.1", "p50(f1) >= 0.1", "p90(f1) >= 0.1", "p99(f1) >= 0.1"]
    project.suite("s.eval.yaml", answered(), stop="when_decided", gates=gates)
    ran = project.run()
    assert len(ran_cases(ran)) == CASES
    (why,) = (line for line in ran.text.splitlines() if line.startswith("s.eval.yaml: runs to its end: "))
    assert "p10(f1) >= 0.1: p10(f1) is no mean of scores" in why
    assert [f"p{part}(f1) >= 0.1" in why for part in (10, 50, 90, 99)] == [True] * 4


def test_systems_stop_together(project: "Project") -> None:
    cases = [{"id": f"c{number}", "input": number, "expected": "x"} for number in range(CASES)]
    project.write("bot.py", "def good(n): return 'x'\ndef bad(n): return 'x' if n % 2 else 'y'\n")
    project.ini("pythonpath = .")
    gates = ["exact_match >= 0.2", {"metric": "exact_match", "system": "good", "against": "bad", "min_gain": 0.05}]
    systems = {"good": {"python": "bot:good"}, "bad": {"python": "bot:bad"}}
    project.suite("s.eval.yaml", cases, systems=systems, stop="when_decided", gates=gates)
    ran = project.run()
    assert ran.code == 0
    stops = [ran.suites[f"s[{name}]"]["stop"]["cases"] for name in systems]
    assert stops[0] == stops[1] < CASES
    assert set(ran.gates("s[good]").values()) == {"passed"}
    assert len(ran.gates("s[good]")) == 2
    assert "gain above 0.05 is significant" in json.dumps(ran.suites["s[good]"]["gates"])


def test_a_python_test_over_the_cases_stops_too(project: "Project") -> None:
    project.suite("over.yaml", answered(), stop="when_decided", gates=["exact_match >= 0.5"])
    project.write(
        "test_over.py",
        """\
        import pytest

        @pytest.mark.llmeval("over.yaml")
        def test_over(case):
            case.score("x")
        """,
    )
    ran = project.run()
    assert ran.code == 0
    (suite,) = ran.suites.values()
    assert suite["stop"]["not_needed"] > 0


def test_a_selection_decides_nothing(project: "Project") -> None:
    project.suite("s.eval.yaml", answered(), stop="when_decided", gates=["exact_match >= 0.5"])
    ran = project.run("-k", "c1")
    assert ran.gates("s") == {"exact_match >= 0.5": "not_judged"}
    assert "stop" not in ran.suites["s"]


def test_a_judge_counts_the_calls_that_were_not_made(judged: "Judged") -> None:
    judged.server.script(reply("yes", tokens=(100, 10)))
    judge = judged.judge(price={"input": 10.0, "output": 0.0})
    words = [f"w{number}" for number in range(60)]
    judged.suite("s.eval.yaml", words, judge=judge, stop="when_decided", gates=["judge_score >= 0.5"])
    ran = judged.project.run()
    stop = ran.suites["s"]["stop"]
    assert ran.code == 0
    assert len(judged.server.calls) == stop["cases"] < 60
    assert stop["judge_calls"] == stop["not_needed"] == 60 - len(judged.server.calls)
    assert stop["cost_usd"] == pytest.approx(0.001 * stop["not_needed"])
    assert f"about {stop['judge_calls']} judge calls, {stop['cost_usd']:.4f} USD not spent" in ran.text


def _verdict(call: Call) -> Sent:
    return reply("no" if int(shown_to(call)["answer"][1:]) % 9 == 0 else "yes")(call)


@pytest.mark.release
def test_a_killed_run_that_is_run_again_decides_as_one_that_was_not(judged: "Judged") -> None:
    words = [f"w{number}" for number in range(60)]
    judged.server.script(_verdict)
    suite: Mapping[str, Any] = {"stop": "when_decided", "gates": ["judge_score >= 0.5"]}
    judged.suite("s.eval.yaml", words, **suite)
    whole = judged.project.run()
    made = len(judged.server.calls)
    judged.cache.unlink()

    def killing(call: Call) -> Sent:
        if call.number == made + 12:
            os.kill(running.pid, signal.SIGKILL)
        return _verdict(call)

    judged.server.script(killing)
    line = ["-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "--llmeval-concurrency=1"]
    running = subprocess.Popen([sys.executable, *line], cwd=judged.project.path, stdout=subprocess.DEVNULL)
    assert running.wait() == -signal.SIGKILL
    again = judged.project.run()
    assert essence_without_usage(again) == essence_without_usage(whole)


def essence_without_usage(ran: "Ran") -> str:
    data = json.loads(essence(ran))
    for suite in data["suites"]:
        suite.pop("usage")
    return json.dumps(data)


def test_shards_are_judged_by_the_cases_that_one_run_would_have_stopped_after(project: "Project") -> None:
    project.suite("s.eval.yaml", answered(range(0, CASES, 20)), stop="when_decided", gates=["exact_match >= 0.5"])
    whole = project.run()
    for number in (1, 2):
        project.run(f"--llmeval-shard={number}/2", f"--llmeval-report=part{number}.llmeval", report=f"p{number}.json")
    merged = run_python(
        ["-m", "pytest_llmeval", "merge", "part1.llmeval", "part2.llmeval", "--report=merged.json"],
        os.environ,
        project.path,
    )
    assert merged.code == 0, merged.out + merged.err
    report = json.loads((project.path / "merged.json").read_text(encoding="utf-8"))
    (suite,), alone = report["suites"], whole.suites["s"]
    assert suite["stop"]["ran_ahead"] == suite["stop"]["not_needed"] == alone["stop"]["not_needed"]
    assert (suite["gates"], suite["metrics"], suite["counts"]) == (alone["gates"], alone["metrics"], alone["counts"])


@pytest.mark.parametrize(
    ("stop", "fault"),
    [
        ("soon", "stop: found the text 'soon', expected when_decided, never or a mapping with confidence or block"),
        ({"confidence": 2}, "stop.confidence: found 2.0, expected 0.5 to 0.999999, such as 0.99"),
        ({"block": 0}, "stop.block: found 0, expected a number of cases of at least 1"),
    ],
)
def test_faults_of_the_key(project: "Project", stop: object, fault: str) -> None:
    project.suite("s.eval.yaml", answered()[:2], stop=stop, gates=["exact_match >= 0.5"])
    ran = project.run()
    assert fault in " ".join(ran.text.split())


def test_a_plan_foresees_what_a_stop_saves_by_the_approved_scores(judged: "Judged") -> None:
    words = [f"w{number}" for number in range(60)]
    top: Mapping[str, Any] = {"stop": "when_decided", "snapshot": True, "gates": ["judge_score >= 0.5"]}
    judged.suite("s.eval.yaml", words, **top)
    unknown = judged.project.run("--llmeval-plan", report="plan.json")
    assert "stop: s: unknown until a run of all cases is approved" in unknown.text
    assert judged.project.run("--snapshot-update").code == 0
    judged.cache.unlink()
    made = len(judged.server.calls)
    planned = judged.project.run("--llmeval-plan", report="plan.json")
    assert len(judged.server.calls) == made
    (stop,) = planned.report["stop"]["suites"]
    assert f"stop: s: after {stop['cases']} of 60 cases, if they score as approved" in planned.text
    assert planned.report["judge"]["calls"] == 60
    assert planned.report["stop"]["judge"]["calls"] == stop["cases"] < 60
    ran = judged.project.run()
    assert ran.suites["s"]["stop"]["cases"] == stop["cases"] == len(judged.server.calls) - made


def test_sources_and_python_say_which_cases_always_run(project: "Project") -> None:
    rows = "\n".join(f"c{number},x,x,{'TRUE' if number in (50, 70) else ''}" for number in range(CASES))
    project.write("cases.csv", f"id,expected,prediction,always\n{rows}\n")
    source = {"format": "csv", "path": "cases.csv"}
    project.suite("s.eval.yaml", [], source=source, stop="when_decided", gates=["exact_match >= 0.5"])
    project.write(
        "test_declared.py",
        """\
        import pytest_llmeval as ev

        cases = [ev.Case(f"c{n}", expected="x", prediction="x", always=n in (50, 70)) for n in range(120)]
        declared = ev.suite(
            "declared", cases=cases, evaluators=[ev.text()], gates=["f1 >= 0.5"], stop="when_decided"
        )
        """,
    )
    ran = project.run("-v")
    order = [nodeid.rpartition("::")[2] for nodeid in ran.verdicts()]
    assert order[:2] == ["c50", "c70"]
    for suite in ("s", "declared"):
        assert {"c50", "c70"} <= {*ran_cases(ran, suite)}
        assert ran.suites[suite]["stop"]["not_needed"] > 0
    project.write("cases.csv", f"id,expected,prediction,always\n{rows}\nlast,x,x,maybe\n")
    assert "always: found the text 'maybe', expected true or false" in " ".join(project.run("s.eval.yaml").text.split())


def test_a_report_that_is_read_back_is_the_report(project: "Project") -> None:
    project.suite("s.eval.yaml", answered(), stop="when_decided", sample={"cases": 100}, gates=["exact_match >= 0.5"])
    ran = project.run()
    (again,) = published(RunReport.read(project.path / "report.json"))["suites"]
    for name in ("stop", "sample", "counts", "gates", "metrics"):
        assert again[name] == ran.suites["s"][name], name
