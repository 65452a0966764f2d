"""``llmeval init --rag``: what it finds in questions and in one answer, and that what it writes is good."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from running import WITHOUT_UNUSED, run_python
from servers import PATIENCE

from pytest_llmeval.cli import main
from pytest_llmeval.core import LlmevalError
from pytest_llmeval.suites import Registry, load_suite
from pytest_llmeval.workbench.init._questions import (
    AnswerShape,
    QuestionColumns,
    answer_shape,
    find_columns,
    read_questions,
)

Command = Callable[..., tuple[int, list[str]]]

APP = """\
from pathlib import Path


def answer(question):
    with Path("asked.txt").open("a") as stream:
        print(repr(question), file=stream)
    return {"output": {"text": "It takes 30 days [1]."}, "hits": [{"body": "Refunds take 30 days."}]}
"""
ENVIRONMENT = {
    key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "GITHUB_", "CI", "COVERAGE_"))
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "my_app.py").write_text(APP, encoding="utf-8")
    write_questions(tmp_path / "questions.csv", 24)
    return tmp_path


@pytest.fixture
def init(shop: Path) -> Command:
    """Runs the command in the folder, without a terminal; returns its exit code and the lines that it prints."""

    def run(*arguments: str) -> tuple[int, list[str]]:
        command = ["-m", "pytest_llmeval", "init", "--rag", *(arguments or ("questions.csv",))]
        done = run_python(
            [*command, *([] if "--target" in arguments else ["--target", "my_app:answer"])], ENVIRONMENT, shop
        )
        return done.code, (done.out + done.err).splitlines()

    return run


def write_questions(path: Path, count: int, header: str = "id,question,ground_truth,topic") -> None:
    rows = [f"q{n},How long do refunds of kind {n} take?,30 days,{'ab'[n % 2]}" for n in range(count)]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def suite_of(folder: Path, name: str = "questions") -> Any:
    return yaml.safe_load((folder / "tests" / "evals" / f"{name}.eval.yaml").read_text(encoding="utf-8"))


def command(folder: Path, *arguments: str) -> str:
    done = run_python([*arguments], ENVIRONMENT, folder)
    assert done.code == 0, done.out + done.err
    return done.out


def test_a_suite_from_questions_and_one_answer_is_good_and_passes(init: Command, shop: Path) -> None:
    code, lines = init("questions.csv", "--yes")
    assert code == 0, lines
    assert lines[:5] == [
        "read     questions.csv: 24 questions; question: question, expected: ground_truth, id: id, label: topic",
        "asked    my_app:answer: How long do refunds of kind 0 take?",
        'answered {"output": {"text": "It takes 30 days [1]."}, "hits": [{"body": "Refunds take 30 days."}]}',
        "         text: output.text; 1 passage",
        "wrote    tests/evals/questions.eval.yaml",
    ]
    assert (shop / "asked.txt").read_text(encoding="utf-8") == "'How long do refunds of kind 0 take?'\n"
    suite = suite_of(shop)
    assert suite["parts"] == {"answer": "output.text", "contexts": "hits[].body"}
    assert suite["source"]["fields"] == {
        "id": "id",
        "input": "question",
        "expected": "ground_truth",
        "labels": {"topic": "topic"},
    }
    assert suite["gates"] == ["pass_rate >= 0.9", {"metric": "f1", "max_drop": 0.02}]
    validated = command(shop, "-m", "pytest_llmeval", "validate", "tests/evals")
    assert validated == "tests/evals/questions.eval.yaml: no fault in 24 cases\n"
    run = ("-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "tests/evals")
    assert "24 passed, 2 gates passed" in command(shop, *run, "--snapshot-update")
    assert "24 passed, 2 gates passed" in command(shop, *run)


def test_every_line_that_is_a_choice_says_why(init: Command, shop: Path) -> None:
    init("questions.csv", "--yes", "--judge", "openai:some-model")
    text = (shop / "tests" / "evals" / "questions.eval.yaml").read_text(encoding="utf-8")
    bare = [line for line in text.splitlines() if "#" not in line and not line.rstrip().endswith(":")]
    assert bare == [
        "suite: questions",
        "  format: csv",
        '  path: "../../questions.csv"',
        "    labels: {topic: topic}",
        "  - claims: {metrics: [faithfulness, context_recall, factual_f1]}",
        "  - mean(faithfulness) >= 0.8",
        "  - mean(factual_f1) >= 0.5",
    ]


def test_gates_of_a_judged_suite_can_be_decided_early_and_decide_on_falls(init: Command, shop: Path) -> None:
    write_questions(shop / "questions.csv", 60)
    init("questions.csv", "--yes", "--judge", "openai:some-model")
    path = shop / "tests/evals/questions.eval.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("# stop:", "stop:"), encoding="utf-8")
    suite = load_suite(path, Registry.installed(), root=shop)
    assert suite.all_faults == ()
    assert suite.stop is not None
    assert suite.stop_fault() == ""
    gates = [str(gate) for gate in suite.regressions]
    assert gates == ["drop(mean(faithfulness)) <= 0.02", "drop(mean(factual_f1)) <= 0.02"]
    assert suite.snapshot is not None
    assert [suite.snapshot.leaves(name) for name in ("faithfulness", "factual_f1")] == [False, False]
    assert str(suite.snapshot.tolerance_of("faithfulness")) == "1"


def test_without_consent_nothing_is_called(init: Command, shop: Path) -> None:
    code, lines = init()
    assert code == 0
    assert lines[1] == "         my_app:answer was not called; --yes calls it once, to see what its answers look like"
    assert not (shop / "asked.txt").exists()
    assert "parts" not in suite_of(shop)
    assert "no fault" in command(shop, "-m", "pytest_llmeval", "validate", "tests/evals")


def test_on_a_terminal_the_user_is_asked(shop: Path) -> None:
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "pytest_llmeval", "init", "--rag", "questions.csv", "--target", "my_app:answer"]
    process = subprocess.Popen(line, cwd=shop, stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRONMENT)
    os.close(theirs)
    os.write(ours, b"y\n")
    shown = b""
    try:
        while block := os.read(ours, 4096):
            shown += block
    except OSError:
        pass  # the end of a terminal on Linux
    assert process.wait(PATIENCE) == 0, shown
    os.close(ours)
    assert b"my_app:answer would be called once with: How long do refunds of kind 0 take?" in shown
    assert (shop / "asked.txt").exists()


@pytest.mark.parametrize("typed", ["n", "", "maybe"])
def test_without_a_yes_nothing_is_called(shop: Path, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    monkeypatch.chdir(shop)
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{name}.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: typed)
    assert main(["init", "--rag", "questions.csv", "--target", "my_app:answer"]) == 0
    assert not (shop / "asked.txt").exists()


def test_columns_without_usual_names_are_asked_for_with_a_default(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop)
    write_questions(shop / "questions.csv", 8, "a1,b1,c1,d1")
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{name}.isatty", lambda: True)
    asked: list[str] = []
    replies = ["b1", "", "no"]

    def reply(text: str) -> str:
        asked.append(text)
        return replies[len(asked) - 1]

    monkeypatch.setattr("builtins.input", reply)
    assert main(["init", "--rag", "questions.csv", "--target", "my_app:answer"]) == 0
    assert asked[:2] == [
        "Which column has the question: a1, b1, c1, d1? ('-' for none) [-] ",
        "Which column has the right answer: a1, c1, d1? ('-' for none) [-] ",
    ]
    assert "8 questions; question: b1\n" in capsys.readouterr().out
    assert suite_of(shop)["source"]["fields"] == {"input": "b1"}


def test_an_answer_with_several_texts_is_asked_about_with_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{name}.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", {"Where is its text: a, b? [a] ": ""}.__getitem__)
    assert answer_shape({"a": "x", "b": "y"}, {}) == AnswerShape("a")


def test_an_existing_suite_is_refused_before_anything_is_called(init: Command, shop: Path) -> None:
    (shop / "tests" / "evals").mkdir(parents=True)
    (shop / "tests" / "evals" / "questions.eval.yaml").write_text("mine", encoding="utf-8")
    code, lines = init("questions.csv", "--yes")
    assert code == 2
    assert lines[-1].startswith("tests/evals/questions.eval.yaml: it exists, and nothing is overwritten")
    assert not (shop / "asked.txt").exists()
    assert not (shop / "pyproject.toml").exists()


@pytest.mark.parametrize(
    ("app", "said"),
    [
        ("def answer(q): raise KeyError(q)", "my_app:answer raised KeyError: 'How long do refunds of kind 0 take?'"),
        (
            "def answer(q): return len",
            "my_app:answer: the target returned builtin_function_or_method, expected a value",
        ),
        (
            "def answer(q): return {'score': 1}",
            "the answer has the keys score; no text was found in it: name its place",
        ),
        ("import nothing_here\ndef answer(q): ...", "module 'my_app' cannot be imported: ModuleNotFoundError"),
        ("def answer(q): raise SystemExit(3)", "my_app:answer: the target called sys.exit(3)"),
    ],
)
def test_a_target_that_gives_no_answer_leaves_nothing_behind(init: Command, shop: Path, app: str, said: str) -> None:
    (shop / "my_app.py").write_text(app, encoding="utf-8")
    before = sorted(shop.rglob("*"))
    code, lines = init("questions.csv", "--yes")
    assert code == 2
    assert said in lines[-1]
    assert sorted(shop.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gone.csv",), "gone.csv"),
        (("my_app.py",), "--rag my_app.py: found suffix '.py', expected one of .csv"),
        (
            ("questions.csv", "--question", "questoin"),
            "--question questoin: found the columns id, question, ground_truth",
        ),
        (("questions.csv", "--judge-url", "http://localhost:1"), "--judge-url needs a model"),
        (("questions.csv", "--judge", "opnai:x"), "--judge: "),
        (("questions.csv", "--yes", "--part", "answer=hits.x"), "--part answer=hits.x: there is no text"),
    ],
)
def test_what_cannot_be_meant_is_said(init: Command, shop: Path, arguments: tuple[str, ...], said: str) -> None:
    code, lines = init(*arguments)
    assert code == 2
    assert said in lines[-1]
    assert not (shop / "tests" / "evals").exists()


def test_a_judge_and_passages_bring_claims(init: Command, shop: Path) -> None:
    init("questions.csv", "--yes", "--judge", "openai:qwen", "--judge-url", "http://localhost:8000/v1")
    suite = suite_of(shop)
    assert suite["evaluators"][1] == {"claims": {"metrics": ["faithfulness", "context_recall", "factual_f1"]}}
    assert suite["judge"] == {"model": "openai:qwen", "base_url": "http://localhost:8000/v1", "temperature": 0}
    assert "no fault" in command(shop, "-m", "pytest_llmeval", "validate", "tests/evals")


BOT = """\
def answer(question):
    ids = ["d1", "d2"] if "kind 3" in question else ["d2", "d3"]
    sources = [{"meta": {"uri": each}, "content": f"Passage {each}."} for each in ids]
    return {"answer": "It takes 30 days.", "sources": sources}
"""


def test_gold_ids_of_a_table_are_compared_with_those_of_an_answer(init: Command, shop: Path) -> None:
    (shop / "my_app.py").write_text(BOT, encoding="utf-8")
    rows = [
        f"How long do refunds of kind {n} take?,30 days,{'d1' if n == 3 else 'd2;d3'},{'ab'[n % 2]}" for n in range(6)
    ]
    table = "\n".join(["question,answer,gold_ids,topic", *rows, "Is it free?,,,a"])
    (shop / "questions.csv").write_text(table, encoding="utf-8")
    code, lines = init("questions.csv", "--yes")
    assert code == 0, lines
    assert "label: topic, documents: gold_ids" in lines[0]
    assert "         text: answer; 2 passages; ids: sources[].meta.uri" in lines
    suite = suite_of(shop)
    assert suite["source"]["fields"]["expected"] == {"answer": "answer", "contexts": "gold_ids"}
    options = {"k": 2, "metrics": ["recall", "mrr"], "separator": ";"}
    assert suite["evaluators"][1] == {"document_ids": options, True: "sources[].meta.uri"}  # YAML 1.1 reads on so
    assert suite["gates"][-1] == "recall@2 >= 0.5"
    command(shop, "-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "tests/evals", "--llmeval-report=run.json")
    (ran,) = json.loads((shop / "run.json").read_text(encoding="utf-8"))["suites"]
    counts = {
        name: [ran["metrics"][name][count] for count in ("scored", "undefined", "errored", "missing")]
        for name in ("recall@2", "f1")
    }
    assert ran["metrics"]["recall@2"]["value"] == 1.0
    assert counts == {"recall@2": [6, 1, 0, 0], "f1": [6, 1, 0, 0]}


WORKFLOW = ".github/workflows/evals.yml"


def test_the_workflow_has_the_key_of_a_model_or_replays_and_says_which(init: Command, shop: Path) -> None:
    _, lines = init("questions.csv", "--yes", "--judge", "openai:some-model", "--github")
    secret = "the secret OPENAI_API_KEY: gh secret set OPENAI_API_KEY"
    assert f"judge    the workflow asks openai:some-model, and needs {secret}" in lines
    steps = yaml.safe_load((shop / WORKFLOW).read_text(encoding="utf-8"))["jobs"]["evaluate"]["steps"]
    (step,) = [each for each in steps if each.get("name") == "Evaluate"]
    assert step["env"]["OPENAI_API_KEY"] == "${{ secrets.OPENAI_API_KEY }}"
    assert "--llmeval-judge=$JUDGE --llmeval-budget=calls=288 " in step["run"]
    assert [each["with"]["path"] for each in steps if "verdicts" in each.get("name", "")] == [".llmeval"] * 2
    (shop / WORKFLOW).unlink()
    (shop / "tests/evals/questions.eval.yaml").unlink()
    init("questions.csv", "--yes", "--judge", "openai:some-model", "--gitlab")
    job = yaml.safe_load((shop / ".gitlab-ci.yml").read_text(encoding="utf-8"))["evals"]
    assert [each["key"] for each in job["cache"]] == ["pip", "llmeval-$BASELINE", "verdicts"]
    assert job["script"][0].startswith("JUDGE=auto; if ")
    assert "--llmeval-judge=$JUDGE --llmeval-budget=calls=288 " in job["script"][1]
    (shop / "tests/evals/questions.eval.yaml").unlink()
    _, lines = init("questions.csv", "--yes", "--judge", "openai:q", "--judge-url", "http://localhost:1/v1", "--github")
    record = "pytest --llmeval tests/evals --llmeval-judge=record, then commit tests/evals/__llmeval__"
    assert f"judge    the workflow replays verdicts of openai:q: {record}" in lines
    steps = yaml.safe_load((shop / WORKFLOW).read_text(encoding="utf-8"))["jobs"]["evaluate"]["steps"]
    (step,) = [each for each in steps if each.get("name") == "Evaluate"]
    assert "env" not in step
    assert "--llmeval-texts=all --llmeval-judge=replay $SELECTION --junit-xml" in step["run"]


def test_claims_are_left_out_where_they_cannot_be_judged(init: Command, shop: Path) -> None:
    rows = [
        {"question": "How long?", "expected": ["30 days", "A month"]},
        {"question": "Is it free?", "expected": "No"},
    ]
    (shop / "q.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    code, lines = init("q.jsonl", "--yes", "--judge", "openai:some-model")
    assert code == 0, lines
    why = "some questions have several right answers"
    assert f"         openai:some-model is not used: it would judge claims, and {why}" in lines
    assert suite_of(shop, "q")["evaluators"] == [{"text": {"metrics": ["f1"], "ignore": ["citations"]}}]
    assert "judge" not in suite_of(shop, "q")


def test_rows_that_make_no_good_cases_are_said_and_the_exit_code_is_1(init: Command, shop: Path) -> None:
    rows = [{"question": "How long?", "tags": 3}]
    (shop / "q.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    code, lines = init("q.jsonl")
    assert code == 1
    assert any("q.jsonl:1" in line and "tags" in line for line in lines), lines


def test_passages_of_the_file_reach_the_target_only_on_request(init: Command, shop: Path) -> None:
    row = {"question": "How long?", "contexts": ["Refunds take 30 days."]}
    (shop / "q.json").write_text(json.dumps([row] * 3), encoding="utf-8")
    _, lines = init("q.json")
    assert lines[1] == "         column contexts: not used; --contexts contexts passes it to the target"
    assert suite_of(shop, "q")["source"]["fields"] == {"input": "question"}
    (shop / "tests" / "evals" / "q.eval.yaml").unlink()
    init("q.json", "--contexts", "contexts", "--yes", "--judge", "fixture:words")
    assert "{'question': 'How long?', 'contexts': ['Refunds take 30 days.']}" in (shop / "asked.txt").read_text()
    suite = suite_of(shop, "q")
    assert suite["source"]["fields"]["input"] == {"question": "question", "contexts": "contexts"}
    assert suite["gates"] == ["pass_rate >= 1", "mean(faithfulness) >= 0.8"]


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("编号,问题,参考答案,类别", ("问题", "参考答案", "编号", "类别")),
        ("No,User Input,Reference,Question-Type", ("User Input", "Reference", "No", "Question-Type")),
        ("x,query,answer,y", ("query", "answer", "", "")),
        ("x,prompt,y,z", ("prompt", "", "", "")),
    ],
)
def test_columns_are_known_by_their_usual_names(tmp_path: Path, header: str, found: tuple[str, ...]) -> None:
    path = tmp_path / "q.csv"
    write_questions(path, 8, header)
    columns = find_columns(read_questions(path), {})
    assert (columns.question, columns.expected, columns.id, columns.label) == found


def test_a_column_that_is_not_known_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    write_questions(path, 3, "a1,b1,c1,d1")
    file = read_questions(path)
    with pytest.raises(LlmevalError, match=r"name the one with the question: --question COLUMN"):
        find_columns(file, {})
    assert find_columns(file, {"question": "b1", "expected": "c1"})[:2] == ("b1", "c1")


def test_columns_that_the_user_names_come_first_and_a_hyphen_is_none(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    write_questions(path, 3, "id,question,answer,topic")
    columns = find_columns(read_questions(path), {"id": "-", "label": "answer", "expected": "topic"})
    assert columns == QuestionColumns("question", expected="topic", label="answer")
    with pytest.raises(LlmevalError, match=r"--label topics: found the columns .*did you mean 'topic'"):
        find_columns(read_questions(path), {"label": "topics"})


def test_ids_that_repeat_name_no_cases_and_empty_questions_are_faults(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("id;question\na;x\na;y\n", encoding="utf-8")
    file = read_questions(path)
    assert (file.delimiter, find_columns(file, {}).id) == (";", "")
    path.write_text("id,question\na,x\nb,\n", encoding="utf-8")
    with pytest.raises(LlmevalError, match=r"1 row without a question, the first is row 2: fill or remove them"):
        find_columns(read_questions(path), {})


@pytest.mark.parametrize(
    ("answer", "shape"),
    [
        ("30 days", AnswerShape()),
        ({"answer": "a", "contexts": ["b", "c"]}, AnswerShape("", "", 2)),
        (
            {"result": "a", "source_documents": [{"page_content": "b", "id": "1"}]},
            AnswerShape("result", "source_documents[].page_content", 1),
        ),
        (
            {"choices": [{"message": {"content": "a", "role": "x"}}]},
            AnswerShape("choices[0].message.content", "", None),
        ),
        (
            {"response": "a", "source_nodes": [{"node": {"text": "b", "id": "i"}}]},
            AnswerShape("response", "source_nodes[].node.text", 1),
        ),
        ({"data": {"答案": "a", "来源": ["b"]}}, AnswerShape('data."答案"', 'data."来源"', 1)),
        ({"said": "a", "score": 1}, AnswerShape("said", "", None)),
        ({"answer": "a", "sources": []}, AnswerShape("", "", None)),
        ({"answer": "a", "context": "b"}, AnswerShape("", "context", 1)),
    ],
)
def test_text_and_passages_are_found_in_answers_of_the_usual_forms(answer: Any, shape: AnswerShape) -> None:
    assert answer_shape(answer, {}) == shape


@pytest.mark.parametrize("answer", [["a"], 3, None, {"a": "x", "b": "y"}, {}])
def test_an_answer_without_a_text_that_can_be_told_is_refused(answer: Any) -> None:
    with pytest.raises(LlmevalError, match=r"name its place by --part answer=PATH"):
        answer_shape(answer, {})


def test_places_that_the_user_names_come_first() -> None:
    answer = {"answer": "a", "b": "c", "hits": [{"x": "p", "y": "q"}]}
    assert answer_shape(answer, {"answer": "b", "contexts": "hits[].y"}) == AnswerShape("b", "hits[].y", 1)
