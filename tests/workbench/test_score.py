"""``llmeval score`` and ``llmeval inputs``: suites whose predictions are known, without pytest."""

import gc
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import local_cluster
from servers import PATIENCE

from pytest_llmeval.baselines import SuiteIdentity
from pytest_llmeval.cli import main
from pytest_llmeval.workbench import _score as score_command

SUITE = """\
suite: capitals
evaluators:
  - text: {metrics: [exact_match, f1]}
thresholds: {f1: 0.3}
group_by: [continent]
gates: [f1 >= 0.5]
cases:
"""
CASES = [
    {"id": "france", "input": "France?", "expected": "Paris", "labels": {"continent": "Europe"}},
    {"id": "italy", "input": {"of": "Italië"}, "expected": "Rome", "labels": {"continent": "Europe"}},
    {"id": "japan", "input": "Japan?", "expected": "Tokyo", "labels": {"continent": "Asia"}},
    {"id": "peru", "input": "Peru?", "expected": "Lima", "tags": ["skip"]},
]
ANSWERS = {"france": "It is Paris.", "italy": "Rome", "japan": "Kyoto", "peru": "Quito"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("asked.eval.yaml").write_text(SUITE + "".join(f"  - {json.dumps(case)}\n" for case in CASES))
    answered = [{**case, "prediction": ANSWERS[str(case["id"])]} for case in CASES]
    Path("s.eval.yaml").write_text(SUITE + "".join(f"  - {json.dumps(case)}\n" for case in answered))
    rows = [json.dumps({"id": name, "prediction": answer}) for name, answer in ANSWERS.items()]
    Path("answers.jsonl").write_text("\n".join(rows))
    return tmp_path


def report(path: str = "run.json") -> Any:
    """Return a JSON report without what differs from run to run."""

    times = ("duration_s", "started_at")

    def still(data: Any) -> Any:
        if isinstance(data, dict):
            return {name: still(each) for name, each in data.items() if name not in times}
        return [still(each) for each in data] if isinstance(data, list) else data

    return still(json.loads(Path(path).read_text(encoding="utf-8")))


def test_a_suite_has_the_report_and_the_exit_code_of_a_pytest_run(folder: Path, pytester: pytest.Pytester) -> None:
    tagged = [
        {"id": "skipped", "expected": "x", "prediction": "x", "tags": ["skip"]},
        {"id": "known", "expected": "x", "prediction": "y", "tags": ["xfail"]},
        {"id": "unknown", "expected": "x", "prediction": "x", "tags": ["xfail"]},
        {"id": "errored", "expected": "x", "prediction": {"no": "text"}, "tags": ["xfail"]},
    ]
    lines = "".join(f"  - {json.dumps(case)}\n" for case in tagged)
    Path("s.eval.yaml").write_text((folder / "s.eval.yaml").read_text() + lines)
    ran = pytester.runpytest_inprocess(
        "-pno:asyncio", "-pno:pytest-retry", "--llmeval", "--llmeval-report=pytest.json", "s.eval.yaml"
    )
    assert (main(["score", "s.eval.yaml", "--report=run.json"]), int(ran.ret)) == (1, 1)
    assert report("run.json") == report("pytest.json")


def test_cases_have_fingerprints_only_where_there_is_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    fingerprinted = []
    digests = SuiteIdentity.digests.fget
    counting = property(lambda identity: fingerprinted.append(identity) or digests(identity))
    monkeypatch.setattr(SuiteIdentity, "digests", counting)
    assert main(["score", "s.eval.yaml"]) == 1
    assert fingerprinted == []
    main(["score", "s.eval.yaml", "--report=run.json"])
    assert all(case["content"] for case in report()["suites"][0]["cases"])


def test_predictions_of_a_file_are_scored_in_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "s.eval.yaml", "--report=run.json"]) == 1
    alone = report()
    capsys.readouterr()
    code = main(
        ["score", "asked.eval.yaml", "--predictions=answers.jsonl", "--executor=processes:2", "--report=run.json"]
    )
    assert code == 1
    assert "japan" in capsys.readouterr().out
    assert report()["suites"][0]["metrics"] == alone["suites"][0]["metrics"]
    assert report()["suites"][0]["groups"] == alone["suites"][0]["groups"]


def test_processes_get_no_target_of_a_suite() -> None:
    """Nothing is asked: what cannot be sent to another process, such as a lambda, stays here."""
    code = """if True:
        import pytest_llmeval as ev

        CASES = [{"id": "a", "input": "q", "expected": "x", "prediction": "x"}]
        qa = ev.suite("qa", cases=CASES, evaluators=["text"], target=ev.named(lambda q: q, name="echo"))
    """
    Path("test_qa.py").write_text(code, encoding="utf-8")
    assert main(["score", "test_qa.py::qa", "--executor=processes:1", "--report=run.json"]) == 0
    assert report()["suites"][0]["metrics"]["f1"]["value"] == 1


def test_a_suite_is_scored_on_a_dask_cluster() -> None:
    assert main(["score", "s.eval.yaml", "--report=run.json"]) == 1
    alone = report()
    with local_cluster(1) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        assert main(["score", "s.eval.yaml", f"--executor=dask://{address}", "--report=run.json"]) == 1
    assert report() == alone


def test_processes_end_with_a_command_that_is_killed() -> None:
    code = """if True:
        import os
        from pytest_llmeval.workbench._score import open_executor
        with open_executor("processes:1") as pool:
            print(pool.submit(os.getppid).result() == os.getpid(), flush=True)
            os.kill(os.getpid(), 9)
    """
    # A process that is left keeps the pipe open.
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout.strip()) == (-signal.SIGKILL, b"True")


def test_a_suite_without_failure_passes() -> None:
    Path("s.eval.yaml").write_text(Path("s.eval.yaml").read_text().replace("Kyoto", "Tokyo"))
    assert main(["score", "s.eval.yaml"]) == 0


def test_a_case_without_prediction_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("answers.jsonl").write_text('{"id": "france", "prediction": "Paris"}\n')
    assert main(["score", "asked.eval.yaml", "--predictions=answers.jsonl", "--report=run.json"]) == 1
    cases = {case["id"]: case for case in report()["suites"][0]["cases"]}
    assert [cases[name]["outcome"] for name in ("france", "italy", "japan")] == ["passed", "errored", "errored"]
    assert "no prediction and no target" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["asked.eval.yaml", "--predictions=other.jsonl"], "found 1 id that no case has ('france2')"),
        (["s.eval.yaml", "--executor=threads"], "executor: found 'threads', expected processes:N or dask://HOST:PORT"),
        (["empty.eval.yaml"], "the suite has no case"),
    ],
)
def test_what_cannot_be_scored_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other.jsonl").write_text('{"id": "france2", "prediction": "Paris"}\n')
    Path("empty.eval.yaml").write_text("evaluators: [text]\ncases: []\n")
    assert main(["score", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_inputs_are_lines_of_id_and_input_without_ground_truth(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inputs", "asked.eval.yaml"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [{"id": case["id"], "input": case["input"]} for case in CASES]


def test_inputs_of_a_suite_with_faults_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.eval.yaml").write_text("evaluators: [text]\ncases: [{id: a, expcted: x}, {id: b, input: x}]\n")
    assert main(["inputs", "bad.eval.yaml"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "did you mean expected" in captured.err


def test_a_faulty_row_costs_its_own_case_only(capsys: pytest.CaptureFixture[str], pytester: pytest.Pytester) -> None:
    rows = [
        '{"id": "a", "expected": "x", "prediction": "x"}',
        '{"id": "b", "expected": 1,',
        '{"id": "c", "expcted": 1}',
    ]
    Path("rows.jsonl").write_text("\n".join(rows) + '\n{"id": "d", "expected": "x", "prediction": "y"}\n')
    Path("rows.eval.yaml").write_text(
        "evaluators: [text: {metrics: [exact_match]}]\ngates: [exact_match >= 0.4]\n"
        "source: {format: jsonl, path: rows.jsonl}\n"
    )
    ran = pytester.runpytest_inprocess("-pno:asyncio", "--llmeval", "--llmeval-report=pytest.json", "rows.eval.yaml")
    assert (main(["score", "rows.eval.yaml", "--report=run.json"]), int(ran.ret)) == (1, 1)
    scored, collected = report("run.json"), report("pytest.json")
    (faults,) = scored["faults"].values()
    assert [fault.partition(",")[0] for fault in faults] == [
        "rows.jsonl:2:27  found the end of the text",
        "rows.jsonl:3:1  found the key 'expcted'",
    ]
    assert scored == collected
    suite = scored["suites"][0]
    assert (suite["metrics"]["exact_match"]["value"], suite["gates"][0]["outcome"]) == (0.5, "not_judged")
    assert "rows.jsonl:3:1" in capsys.readouterr().err


def test_faulty_predictions_cost_their_own_cases_only(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": name, "prediction": answer} for name, answer in ANSWERS.items()]
    rows[0] = {"id": rows[0]["id"], "predicted": "?"}
    Path("answers.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert main(["score", "asked.eval.yaml", "--predictions=answers.jsonl", "--report=run.json"]) == 1
    metric = report()["suites"][0]["metrics"]["f1"]
    assert (metric["scored"], metric["errored"]) == (2, 1)
    assert "expected `prediction` or `hypothesis`" in capsys.readouterr().err
    assert all(gate["outcome"] == "not_judged" for gate in report()["suites"][0]["gates"])


def test_the_garbage_collector_is_paused_while_the_command_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watch(_: object) -> int:
        seen.append(gc.isenabled())
        return 0

    enabled = gc.isenabled()
    monkeypatch.setattr(score_command, "_score", watch)
    assert main(["score", "s.eval.yaml"]) == 0
    assert (seen, gc.isenabled()) == ([False], enabled)
