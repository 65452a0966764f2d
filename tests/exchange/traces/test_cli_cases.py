"""``llmeval cases add``: a trace becomes a case."""

import json
from pathlib import Path

import pytest
from project import AGENT, RAG, export

from pytest_llmeval.cli import main
from pytest_llmeval.exchange.traces import TracesSource
from pytest_llmeval.suites import load_suite

SUITE = """\
suite: regress
target: {python: "bot:answer"}
evaluators:
  - text  # F1
cases:
  # the first one
  - id: one
    input: hello
    expected: hi

gates: [f1 >= 0.1]
"""
ADD = ("cases", "add", "s.eval.yaml", "--from=t.jsonl")


@pytest.fixture(autouse=True)
def project(here: Path) -> Path:
    (here / "s.eval.yaml").write_text(SUITE, encoding="utf-8")
    lines = [json.dumps(export(*spans)) for spans in (AGENT, RAG)]
    (here / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return here


def test_a_trace_is_appended_and_nothing_else_changes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ADD, "--trace=AAAA", "--expected=Order 7 is unknown.", "--label=topic=refund"]) == 0
    added = """\
  - id: aaaaaaaaaaaa
    input: Refund order 7
    expected: Order 7 is unknown.
    labels:
      topic: refund
"""
    text = SUITE.replace("    expected: hi\n", f"    expected: hi\n{added}")
    assert (project / "s.eval.yaml").read_text(encoding="utf-8") == text
    said = capsys.readouterr().out
    assert "+  - id: aaaaaaaaaaaa\n" in said
    assert "case 'aaaaaaaaaaaa' added; its trace is kept in traces/aaaaaaaaaaaa.json" in said
    (kept,) = TracesSource("traces/aaaaaaaaaaaa.json").load(project, [])
    (first, _) = TracesSource("t.jsonl").load(project, [])
    assert (kept.input, kept.prediction) == (first.input, first.prediction)


@pytest.mark.parametrize(
    "cases",
    [
        "cases:\n- {id: x, input: y}\n",
        "source: {format: jsonl, path: c.jsonl}\n",
        "cases:\n  - id: x\n    input: |\n      - a\n\n      b\n# the end\n",
    ],
)
def test_lists_of_other_forms_are_continued(project: Path, cases: str) -> None:
    (project / "s.eval.yaml").write_text(f"evaluators: [text]\n{cases}", encoding="utf-8")
    (project / "c.jsonl").write_text('{"id": "x", "input": "y"}\n', encoding="utf-8")
    assert main([*ADD, "--trace=b", "--id=new"]) == 0
    suite = load_suite(project / "s.eval.yaml")
    assert {case.id for case in suite.cases} == {"x", "new"}
    (new,) = (case for case in suite.cases if case.id == "new")
    assert new.prediction["answer"] == "30 days."
    assert new.prediction["contexts"] == ["Refunds take 30 days.", "Shipping is free."]


def test_a_suite_in_json_is_continued(project: Path) -> None:
    (project / "s.eval.json").write_text('{"evaluators": ["text"], "cases": [{"id": "x"}]}', encoding="utf-8")
    assert main(["cases", "add", "s.eval.json", "--from=t.jsonl", "--trace=a"]) == 0
    assert [case.id for case in load_suite(project / "s.eval.json").cases] == ["x", "aaaaaaaaaaaa"]


@pytest.mark.parametrize("again", [["--trace=a"], ["--trace=a", "--id=other"], ["--trace=b", "--id=one"]])
def test_a_case_that_is_there_is_not_added_again(
    project: Path, capsys: pytest.CaptureFixture[str], again: list[str]
) -> None:
    assert main([*ADD, "--trace=a"]) == 0
    before = (project / "s.eval.yaml").read_bytes()
    assert main([*ADD, *again]) == 1
    assert "with this id or input already" in capsys.readouterr().err
    assert (project / "s.eval.yaml").read_bytes() == before


def test_secrets_are_neither_in_the_case_nor_in_the_trace(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "find order 7")
    monkeypatch.setenv("OTHER_TOKEN", "Refund order")
    assert main([*ADD, "--trace=a"]) == 0
    for path in (project / "s.eval.yaml", project / "traces" / "aaaaaaaaaaaa.json"):
        text = path.read_text(encoding="utf-8")
        assert "find order 7" not in text
        assert "Refund order" not in text
        assert "***" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trace=zz"], "found no trace among 2 whose id begins with 'zz', expected one: 'aaaa"),
        (["--trace="], "found 2 traces whose id begins with '', expected one"),
        (["--trace=a", "--label=x"], "--label: found 'x', expected NAME=VALUE"),
    ],
)
def test_what_cannot_be_added_is_said(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main([*ADD, *arguments]) == 1
    assert said in capsys.readouterr().err
    assert (project / "s.eval.yaml").read_text(encoding="utf-8") == SUITE


def test_a_dry_run_writes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", *ADD, "--trace=a", "--dry-run"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert (result["case"], result["written"]) == ("aaaaaaaaaaaa", [])
    assert "+  - id: aaaaaaaaaaaa" in result["diff"]
    assert (project / "s.eval.yaml").read_text(encoding="utf-8") == SUITE
    assert not (project / "traces").exists()


@pytest.mark.parametrize("trace", ["../../evil", "/tmp/evil", ".hidden", "a b"])
def test_an_id_that_somebody_wrote_into_a_trace_names_no_file_elsewhere(
    project: Path, capsys: pytest.CaptureFixture[str], trace: str
) -> None:
    spans = [{**each, "traceId": trace} for each in AGENT]
    (project / "t.jsonl").write_text(json.dumps(export(*spans)), encoding="utf-8")
    before = set(project.parent.rglob("*"))
    assert main([*ADD, f"--trace={trace}"]) == 1
    assert "expected letters, digits, '-', '_' and '.': choose one by --id" in capsys.readouterr().err
    assert set(project.parent.rglob("*")) == before


def test_ends_of_lines_stay_as_they_are(project: Path) -> None:
    (project / "s.eval.yaml").write_bytes(SUITE.replace("\n", "\r\n").encode())
    assert main([*ADD, "--trace=a"]) == 0
    written = (project / "s.eval.yaml").read_bytes()
    assert written.count(b"\n") == written.count(b"\r\n") > SUITE.count("\n")


def test_secrets_that_only_the_suite_names_are_masked_in_the_trace(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM", "find order 7")
    judge = "judge: {model: 'openai:x', base_url: 'http://127.0.0.1:1/v1', api_key_env: TEAM}\n"
    (project / "s.eval.yaml").write_text(judge + SUITE, encoding="utf-8")
    assert main([*ADD, "--trace=a"]) == 0
    assert "find order 7" not in (project / "traces" / "aaaaaaaaaaaa.json").read_text(encoding="utf-8")
